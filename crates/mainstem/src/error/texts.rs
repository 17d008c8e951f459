//! The one table of texts: mistakes in statements that DataFusion tells apart by nothing but the words of a message.
//!
//! Comes in: the message of an error whose variant holds a text alone. Goes out: our error for it. The rows are of
//! DataFusion 55.2.0: a test makes it say each of them, and fails when another version is built. Where DataFusion gives
//! a kind (`SchemaError`, an error of Arrow or of a library below), no row belongs here.
//!
//! It does not own: words for what is left over (`words`).

use mainstem_postgres::types::sql_words;
use mainstem_storage::Error;
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};

use super::names::{missing_from_clause_entry, undefined_function_called};
use super::words::{SUBQUERY_PLACE, first_line, readable, undefined_function};
use super::{no_function, not_implemented, resources};
use crate::sql::state;

use self::Means::{Call, Code, Made, NotImplemented, Says, Unsupported};
use self::Of::{Any, Execution, Internal, Io, Plan};

/// Which errors have the text, and why they have no kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Several variants, by the way the message takes: optimizer and physical planner wrap it in texts of their own.
    Any,
    /// `DataFusionError::Plan(String)`. Its `Diagnostic` has a place and more texts, but no kind either.
    Plan,
    /// `DataFusionError::Execution(String)`.
    Execution,
    /// `DataFusionError::Internal(String)`, for what is a mistake of the statement or a want of memory nevertheless.
    Internal,
    /// `io::Error::other(String)`.
    Io,
}

/// What a text means.
#[derive(Clone, Copy, Debug)]
enum Means {
    /// This SQLSTATE. The words will do.
    Code(&'static str),
    /// This SQLSTATE, in these words.
    Says(&'static str, &'static str),
    /// 0A000 of this.
    Unsupported(&'static str),
    /// 0A000, of what the message names.
    NotImplemented,
    /// What is made of the first line; another row may know more if that is nothing.
    Made(fn(&str) -> Option<Error>),
    /// 42883 of a call; its types may stand in a later line.
    Call,
}

/// A row: the message holds all of `parts`, whose letters are small here.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) parts: &'static [&'static str],
    pub(super) of: Of,
    means: Means,
    /// Where DataFusion 55.2.0 says it.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and the test that knows the version"))]
    pub(super) from: &'static str,
}

const fn text(of: Of, parts: &'static [&'static str], means: Means, from: &'static str) -> Text {
    Text { parts, of, means, from }
}

const MORE_ROWS: &str = "more than one row returned by a subquery used as an expression";

/// The first row that fits is the one.
pub(super) const TEXTS: &[Text] = &[
    text(Any, &["no function matches the given name and argument types '"], Call, "expr: type_coercion/functions.rs"),
    text(Any, &["coerce arguments to satisfy a call to '"], Call, "expr: type_coercion/functions.rs"),
    text(Any, &["function '", "' failed to match"], Call, "expr: type_coercion/functions.rs"),
    text(Any, &["function '", "' user-defined coercion failed"], Call, "expr: type_coercion/functions.rs"),
    text(Any, &["function '", "' expects"], Call, "expr: type_coercion/functions.rs"),
    text(Any, &["the function '", "' expected"], Call, "expr: type_coercion/functions.rs"),
    text(Any, &["invalid function '"], Made(unknown_function), "sql: expr/function.rs"),
    text(
        Any,
        &["for select distinct, order by expressions"],
        Says(state::INVALID_REFERENCE, "for SELECT DISTINCT, ORDER BY expressions must appear in select list"),
        "expr: logical_plan/builder.rs",
    ),
    text(
        Any,
        &["select distinct on expressions must match"],
        Code(state::INVALID_REFERENCE),
        "expr: logical_plan/plan.rs",
    ),
    text(Any, &["while expanding wildcard, column \"", "\" must appear"], Made(ungrouped), "sql: utils.rs"),
    text(Any, &["with non-boolean predicate", " returning "], Made(no_boolean), "expr: logical_plan/plan.rs"),
    text(
        Any,
        &["expected ", " to be an integer or null, but got "],
        Made(no_count),
        "optimizer: analyzer/type_coercion.rs",
    ),
    text(
        Any,
        &["there is only support literal types for field at idx"],
        Unsupported("an offset of lag or lead, or a number of ntile or nth_value, that is no constant"),
        "functions-window: utils.rs",
    ),
    text(
        Any,
        &["the subquery should only return one column"],
        Says(sqlstate::SYNTAX, "subquery must return only one column"),
        "sql: expr/subquery.rs",
    ),
    text(
        Any,
        &["in/exist/setcomparison subquery can only be used in"],
        Unsupported(SUBQUERY_PLACE),
        "expr: logical_plan/invariants.rs",
    ),
    text(Any, &["the window ", " is not defined"], Made(undefined_window), "sql: select.rs"),
    text(Any, &["with query name", "more than once"], Code(state::DUPLICATE_ALIAS), "sql: cte.rs"),
    text(Any, &["invalid qualifier "], Made(unknown_qualifier), "expr: utils.rs"),
    text(
        Any,
        &["cannot access field"],
        Says(sqlstate::WRONG_OBJECT_TYPE, "a field of a value that has none: there are no composite types"),
        "functions: core/getfield.rs",
    ),
    text(
        Any,
        &["logical expression windowfunction"],
        Says(state::WINDOWING, "window functions stand in the select list and in ORDER BY only"),
        "physical-expr: planner.rs",
    ),
    text(
        Any,
        &["regular expression did not compile"],
        Says(state::INVALID_REGEX, "invalid regular expression"),
        "arrow-string 59: regexp.rs",
    ),
    text(Plan, &["order by index"], Code(state::INVALID_REFERENCE), "sql: expr/order_by.rs"),
    text(Plan, &["order by column out of bounds"], Code(state::INVALID_REFERENCE), "sql: expr/order_by.rs"),
    text(Plan, &["find column with position"], Code(state::INVALID_REFERENCE), "sql: utils.rs"),
    text(Plan, &["limit must be >="], Code(state::NEGATIVE_LIMIT), "expr: logical_plan/plan.rs"),
    text(Plan, &["offset must be >="], Code(state::NEGATIVE_OFFSET), "expr: logical_plan/plan.rs"),
    text(Plan, &["requires a boolean expression"], Code(sqlstate::TYPE_MISMATCH), "sql: expr/unary_op.rs"),
    text(Plan, &["does not support", "function"], Code(state::UNDEFINED_FUNCTION), "sql: expr/function.rs"),
    text(Plan, &["group by"], Code(state::GROUPING), "sql: utils.rs, select.rs"),
    text(Plan, &["aggregate", "not allowed"], Code(state::GROUPING), "sql: select.rs"),
    text(Plan, &["aggregate", "cannot"], Code(state::GROUPING), "expr: utils.rs"),
    text(
        Plan,
        &["correlated scalar subquery must be aggregated"],
        Unsupported("a scalar subquery that refers to the outer query without an aggregate (use max, or a join)"),
        "expr: logical_plan/invariants.rs",
    ),
    text(
        Plan,
        &["correlated scalar subquery can only be used"],
        Unsupported("a scalar subquery that refers to the outer query in ORDER BY or ON"),
        "expr: logical_plan/invariants.rs",
    ),
    text(Plan, &["inconsistent data length"], Code(sqlstate::SYNTAX), "expr: logical_plan/builder.rs"),
    text(Plan, &["as column alias"], Code(sqlstate::SYNTAX), "sql: planner.rs"),
    text(Plan, &["different number of columns"], Code(sqlstate::SYNTAX), "sql: set_expr.rs"),
    // Whatever type coercion says: dozens of messages, which all name types.
    text(Plan, &["coerc"], Code(sqlstate::TYPE_MISMATCH), "optimizer: analyzer/type_coercion.rs"),
    text(Plan, &["type"], Code(sqlstate::TYPE_MISMATCH), "expr-common: type_coercion/binary.rs"),
    text(Plan, &["not supported"], NotImplemented, "sql: statement.rs"),
    text(Plan, &["unsupported"], NotImplemented, "sql: expr/value.rs"),
    text(Plan, &["invalid window frame"], Code(state::WINDOWING), "expr: window_frame.rs"),
    text(Plan, &["unique expression names"], Code(sqlstate::DUPLICATE_COLUMN), "expr: logical_plan/builder.rs"),
    text(Execution, &["more than one row"], Says(sqlstate::ROW_TWICE, MORE_ROWS), "physical-plan: scalar_subquery.rs"),
    text(Execution, &["overflow"], Code(sqlstate::OUT_OF_RANGE), "functions: string/repeat.rs"),
    text(Execution, &["out of range"], Code(sqlstate::OUT_OF_RANGE), "functions: datetime/make_date.rs"),
    text(Execution, &["too large"], Code(sqlstate::OUT_OF_RANGE), "functions: unicode/lpad.rs"),
    text(Execution, &["parse"], Code(sqlstate::INVALID_TEXT), "functions: datetime/common.rs"),
    text(Execution, &["invalid"], Code(sqlstate::INVALID_TEXT), "functions: string/chr.rs"),
    text(Execution, &["exceeds the representable"], Code(sqlstate::OUT_OF_RANGE), "common: scalar/mod.rs"),
    text(Execution, &["not supported"], Code(sqlstate::FEATURE_NOT_SUPPORTED), "functions: datetime/date_part.rs"),
    text(Execution, &["unsupported"], Code(sqlstate::FEATURE_NOT_SUPPORTED), "functions: datetime/date_trunc.rs"),
    text(
        Internal,
        &["ran out of memory with no aggregated groups"],
        Made(|message| Some(resources::out_of_memory(message))),
        "physical-plan: aggregates/hash_stream.rs",
    ),
    text(Internal, &["failed to coerce types"], Code(sqlstate::TYPE_MISMATCH), "optimizer: analyzer/type_coercion.rs"),
    text(
        Internal,
        &["cannot run range queries on datatype"],
        Code(sqlstate::TYPE_MISMATCH),
        "optimizer: analyzer/type_coercion.rs",
    ),
    text(Internal, &["not supported"], NotImplemented, "functions-aggregate: min_max.rs"),
    text(
        Io,
        &["exceeded the allowable limit"],
        Made(|_| Some(resources::too_much_aside())),
        "execution: disk_manager.rs",
    ),
];

/// What the table makes of a `message` of `of`.
pub(super) fn known(of: Of, message: &str) -> Option<Error> {
    let lower = message.to_lowercase();
    let line = first_line(&lower);
    let fits = |text: &&Text| {
        let place = if matches!(text.means, Call) { &lower } else { line };
        (text.of == of || text.of == Any) && text.parts.iter().all(|part| place.contains(part))
    };
    TEXTS.iter().filter(fits).find_map(|text| meaning(text.means, message))
}

fn meaning(means: Means, message: &str) -> Option<Error> {
    let line = first_line(message);
    match means {
        Code(code) => Some(Error::invalid(code, readable(line))),
        Says(code, words) => Some(Error::invalid(code, words)),
        Unsupported(what) => Some(Error::unsupported(what)),
        NotImplemented => Some(not_implemented(line)),
        Made(make) => make(line),
        Call => undefined_function(message).map(|call| no_function(&call)),
    }
}

fn between<'a>(message: &'a str, from: &str, to: &str) -> Option<&'a str> {
    message.split_once(from)?.1.split_once(to).map(|(text, _)| text)
}

fn unknown_function(message: &str) -> Option<Error> {
    between(message, "Invalid function '", "'").map(undefined_function_called)
}

fn ungrouped(message: &str) -> Option<Error> {
    let column = between(message, "While expanding wildcard, column \"", "\" must appear")?;
    let message = format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function");
    Some(Error::invalid(state::GROUPING, message))
}

fn no_boolean(message: &str) -> Option<Error> {
    let (_, data_type) = message.split_once("with non-boolean predicate")?.1.rsplit_once(" returning ")?;
    let message = format!("argument of WHERE must be type boolean, not type {}", sql_words(data_type));
    Some(Error::invalid(sqlstate::TYPE_MISMATCH, message))
}

fn no_count(message: &str) -> Option<Error> {
    let (clause, data_type) = message.split_once("Expected ")?.1.split_once(" to be an integer or null, but got ")?;
    let data_type = sql_words(data_type).to_lowercase();
    let message = format!("argument of {clause} must be type bigint, not type {data_type}");
    Some(Error::invalid(sqlstate::TYPE_MISMATCH, message))
}

fn undefined_window(message: &str) -> Option<Error> {
    let name = between(message, "The window ", " is not defined")?;
    let object = NamedObject::new(ObjectKind::Other, [name]);
    let message = format!("window \"{name}\" does not exist");
    Some(Error::invalid(state::UNDEFINED_OBJECT, message).with_object(object))
}

fn unknown_qualifier(message: &str) -> Option<Error> {
    message.split_once("Invalid qualifier ").map(|(_, name)| missing_from_clause_entry(name))
}
