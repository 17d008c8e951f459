//! Casts as PostgreSQL does them, and string literals beside TIME and UUID.
//!
//! A UUID is `FixedSizeBinary(16)` in plans, and nothing else is: the type alone says what a value is, through
//! subqueries, joins, set operations and aggregates, and comparisons, hashes and order are those of its bytes, which
//! are the store's. DataFusion knows no way from text to it, so
//!
//! 1. while SQL becomes a plan ([`TypedLiterals`] as an `ExprPlanner`), a string literal beside a UUID in a comparison
//!    becomes a cast to UUID: a comparison of text with UUID has no type there; one beside a number in arithmetic a
//!    cast to the number's type; arithmetic with datetimes, times and intervals becomes that of `datetime_operators`,
//!    decimals beside doubles in an array doubles (`coercion`);
//! 2. before type coercion ([`typed_literals`]), so do the literals of IN lists, BETWEEN and CASE, beside numbers too
//!    in what CASE gives, and those beside a TIME in NULLIF, COALESCE, GREATEST and LEAST;
//! 3. after it ([`sql_casts`]), casts between text and the two types, coercion's own too, become functions of ours, and
//!    so do other casts that Arrow does otherwise than SQL (`converted` lists them; `value::convert` does them). They
//!    are folded as any, so that `id = '...'` reaches the store as a comparison with a UUID. Casts that PostgreSQL has
//!    not are 42846.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, ExprSchema, Result, ScalarValue};
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::logical_expr::expr::{Between, Case, InList, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, GetFieldAccess, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility, lit,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use mainstem_postgres::cast::{convert, is_composed, is_span};
use mainstem_postgres::function::interval_from_text;
use mainstem_postgres::types::{UUID, from_text, has_own_text, in_one_form, is_datetime};
use mainstem_storage::Error;
use mainstem_storage::schema::DataType as SqlType;

use super::datetime_operators::{Planned, planned};
use super::shared_type::{MAKE_ARRAY, decimal_of, widen_items};
use crate::analyze::names::without_label;
use crate::analyze::plan_walk::rewrite_plan;

/// cannot_coerce
const CANNOT_CAST: &str = "42846";
/// datatype_mismatch
const MISMATCH: &str = "42804";

fn is_uuid(expr: &Expr, schema: &dyn ExprSchema) -> bool {
    expr.get_type(schema).is_ok_and(|t| t == UUID)
}

/// A string literal as a cast to UUID; other expressions as they are.
fn as_uuid(expr: Expr) -> Expr {
    as_type(expr, &UUID)
}

/// A string literal as a cast to `data_type`; other expressions as they are.
fn as_type(expr: Expr, data_type: &DataType) -> Expr {
    match &expr {
        Expr::Literal(scalar, _) if scalar.data_type().is_string() => {
            Expr::Cast(Cast::new(Box::new(expr), data_type.clone()))
        }
        _ => expr,
    }
}

/// TIME or UUID, if one of `exprs`, which become values of one type, is of it.
fn literal_target<'e>(exprs: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Option<DataType> {
    let mut types = exprs.filter(|e| !matches!(e, Expr::Literal(..))).filter_map(|e| e.get_type(schema).ok());
    types.find(has_own_text)
}

/// The type of integers or floats that `exprs` become together, if all others among them are string literals, one at
/// least, or NULL.
fn number_target<'e>(exprs: impl Iterator<Item = &'e Expr>, schema: &DFSchema) -> Option<DataType> {
    let mut has_text = false;
    let mut target: Option<DataType> = None;
    for expr in exprs {
        let of = expr.get_type(schema).ok()?;
        has_text |= of.is_string() && matches!(expr, Expr::Literal(..));
        match &mut target {
            _ if of.is_null() || of.is_string() && matches!(expr, Expr::Literal(..)) => {}
            _ if !of.is_integer() && !of.is_floating() => return None,
            Some(target) if target.is_floating() != of.is_floating() => *target = DataType::Float64,
            Some(target) if target.primitive_width() >= of.primitive_width() => {}
            target => *target = Some(of),
        }
    }
    target.filter(|_| has_text)
}

/// `literal` as a number, if it is a text and `other` is a number, whose type it takes. A decimal has the digits that
/// are written.
fn number_beside(literal: &Expr, other: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::Literal(scalar, _) = literal else { return None };
    let text = scalar.try_as_str().flatten()?;
    let wanted = match other.get_type(schema).ok()? {
        DataType::Decimal128(..) | DataType::Decimal256(..) => decimal_of(text),
        number if number.is_numeric() => number,
        _ => return None,
    };
    Some(Expr::Cast(Cast::new(Box::new(literal.clone()), wanted)))
}

/// Whether `text` is a string literal, and `other` a truth value.
fn spells_truth(text: &Expr, other: &Expr, schema: &DFSchema) -> bool {
    let is = |expr: &Expr, of: fn(&DataType) -> bool| expr.get_type(schema).is_ok_and(|data_type| of(&data_type));
    matches!(text, Expr::Literal(..)) && is(text, DataType::is_string) && is(other, |of| *of == DataType::Boolean)
}

/// String literals beside UUIDs, truth values and numbers.
#[derive(Debug)]
pub(crate) struct TypedLiterals;

impl ExprPlanner for TypedLiterals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus};
        let RawBinaryExpr { op, mut left, mut right } = expr;
        if matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            match (&left, &right) {
                (Expr::Literal(..), _) if is_uuid(&right, schema) => left = as_uuid(left),
                (_, Expr::Literal(..)) if is_uuid(&left, schema) => right = as_uuid(right),
                (text, other) if spells_truth(text, other, schema) => left = as_type(left, &DataType::Boolean),
                (other, text) if spells_truth(text, other, schema) => right = as_type(right, &DataType::Boolean),
                _ => {}
            }
        }
        if matches!(op, Plus | Minus | Multiply | Divide | Modulo) {
            if let Some(number) = number_beside(&left, &right, schema) {
                left = number;
            } else if let Some(number) = number_beside(&right, &left, schema) {
                right = number;
            }
        }
        Ok(match planned(&op, left, right, schema) {
            Planned::Operation(operation) => PlannerResult::Planned(operation),
            Planned::Operands(left, right) => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }

    /// DataFusion's planner makes `nth_value` of it, which wants its rows in order, so that two of different orders
    /// would be refused.
    fn plan_field_access(&self, expr: RawFieldAccessExpr, _: &DFSchema) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { field_access, expr } = expr;
        match (field_access, expr) {
            (GetFieldAccess::ListIndex { key }, Expr::AggregateFunction(call)) if call.func.name() == "array_agg" => {
                Ok(PlannerResult::Planned(array_element(Expr::AggregateFunction(call), *key)))
            }
            (field_access, expr) => Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr })),
        }
    }

    fn plan_array_literal(&self, exprs: Vec<Expr>, schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Original(widen_items(exprs, schema)))
    }
}

/// The rule.
pub(crate) fn typed_literals(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &typed)
}

fn typed(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::InList(InList { expr, list, negated }) if is_uuid(&expr, schema) => {
            let list = list.into_iter().map(as_uuid).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
        }
        Expr::InList(InList { expr, list, negated }) if list.iter().any(|item| spells_truth(item, &expr, schema)) => {
            let list = list.into_iter().map(|item| as_type(item, &DataType::Boolean)).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_uuid(&expr, schema) => {
            let (low, high) = (Box::new(as_uuid(*low)), Box::new(as_uuid(*high)));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            if expr.is_none() {
                when_then_expr.iter().try_for_each(|(when, _)| check_condition(when, schema))?;
            }
            let by_uuid = expr.as_ref().is_some_and(|e| is_uuid(e, schema));
            let results = when_then_expr.iter().map(|(_, then)| &**then).chain(else_expr.as_deref());
            let given = literal_target(results.clone(), schema).or_else(|| number_target(results, schema));
            let result = |e: Box<Expr>| match &given {
                Some(given) => Box::new(as_type(*e, given)),
                None => e,
            };
            // DataFusion 55.2 panics on a list of such literals behind CASE x WHEN, so the comparison is written out.
            let condition = |when: Box<Expr>| match &expr {
                Some(value) if by_uuid => Box::new(value.as_ref().clone().eq(as_uuid(*when))),
                _ => when,
            };
            let when_then_expr =
                when_then_expr.into_iter().map(|(when, then)| (condition(when), result(then))).collect();
            let else_expr = else_expr.map(result);
            let case = Case { expr: expr.filter(|_| !by_uuid), when_then_expr, else_expr };
            let expr = Expr::Case(case);
            Ok(if by_uuid || given.is_some() { Transformed::yes(expr) } else { Transformed::no(expr) })
        }
        Expr::ScalarFunction(call) if matches!(call.name(), "nullif" | "greatest" | "least" | "coalesce") => {
            let Some(given) = literal_target(call.args.iter(), schema) else {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            };
            let args: Vec<Expr> = call.args.into_iter().map(|arg| as_type(arg, &given)).collect();
            // It would be read as one.
            if call.func.name() == "coalesce"
                && let Some(text) = args.iter().filter_map(|arg| arg.get_type(schema).ok()).find(DataType::is_string)
            {
                let message = format!("COALESCE types {} and {} cannot be matched", sql_name(&given), sql_name(&text));
                return Err(ours(Error::invalid(MISMATCH, message)));
            }
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(call.func, args))))
        }
        Expr::ScalarFunction(call) if matches!(call.name(), "concat" | "concat_ws") => {
            let args = call.args.into_iter().map(|arg| written(arg, schema)).collect();
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(call.func, args))))
        }
        Expr::ScalarFunction(call) if call.name() == MAKE_ARRAY => {
            let args = widen_items(call.args, schema);
            Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(call.func, args))))
        }
        Expr::ScalarFunction(call) => Ok(match without_label(call) {
            Ok(value) => Transformed::yes(value),
            Err(call) => Transformed::no(Expr::ScalarFunction(call)),
        }),
        other => Ok(Transformed::no(other)),
    }
}

/// `expr` as `concat` writes it: truth values as `t` and `f`, unlike casts, arrays and rows as texts, which
/// DataFusion's does not take.
fn written(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(DataType::Boolean) => {
            let letter = |flag: bool, letter: &str| (Box::new(lit(flag)), Box::new(lit(letter)));
            let when_then_expr = vec![letter(true, "t"), letter(false, "f")];
            Expr::Case(Case { expr: Some(Box::new(expr)), when_then_expr, else_expr: None })
        }
        Ok(data_type) if is_composed(&data_type) => Expr::Cast(Cast::new(Box::new(expr), DataType::Utf8View)),
        _ => expr,
    }
}

/// Fails for a condition of CASE that is no BOOLEAN. A string literal becomes one.
fn check_condition(when: &Expr, schema: &DFSchema) -> Result<()> {
    let data_type = when.get_type(schema)?;
    if data_type == DataType::Boolean
        || data_type.is_null()
        || data_type.is_string() && matches!(when, Expr::Literal(..))
    {
        return Ok(());
    }
    let message = format!("argument of CASE/WHEN must be type boolean, not type {}", sql_name(&data_type));
    Err(ours(Error::invalid(MISMATCH, message)))
}

fn cast_of_sql(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (inner, to, or_null) = match &expr {
        Expr::Cast(Cast { expr, field }) => (expr, field.data_type(), false),
        Expr::TryCast(TryCast { expr, field }) => (expr, field.data_type(), true),
        _ => return Ok(Transformed::no(expr)),
    };
    if matches!(to, DataType::List(_)) {
        // Arrow makes an array of one of it.
        return match inner.get_type(schema)? {
            from if is_composed(&from) || from.is_null() => Ok(Transformed::no(expr)),
            from if from.is_string() => {
                Err(ours(Error::unsupported("a cast of texts that are no literals to an array")))
            }
            from => Err(cannot_cast(&from, to)),
        };
    }
    if !has_own_text(to) && !to.is_string() && !to.is_numeric() && !to.is_binary() && !to.is_temporal() {
        return Ok(Transformed::no(expr));
    }
    let from = inner.get_type(schema)?;
    let call = |gives: SqlType| {
        let function = ScalarUDF::new_from_impl(SqlCast::new(gives, or_null));
        let call = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![(**inner).clone()]));
        if gives.arrow() == *to { call } else { Expr::Cast(Cast::new(Box::new(call), to.clone())) }
    };
    Ok(match (&from, to) {
        (from, to) if from.is_string() && has_own_text(to) => {
            Transformed::yes(call(if *to == UUID { SqlType::Uuid } else { SqlType::Time }))
        }
        (from, DataType::Interval(_)) if from.is_string() => {
            let read = interval_from_text((**inner).clone());
            Transformed::yes(if read.get_type(schema)? == *to {
                read
            } else {
                Expr::Cast(Cast::new(Box::new(read), to.clone()))
            })
        }
        (from, to) if has_own_text(from) && to.is_string() => Transformed::yes(call(TEXT)),
        (from, to) if *from == UUID && *to != UUID => return Err(cannot_cast(from, to)),
        (from, to) if *to == UUID && *from != UUID && !from.is_null() => return Err(cannot_cast(from, to)),
        (from, to) if is_time(from) && (to.is_numeric() || is_datetime(to)) => return Err(cannot_cast(from, to)),
        (from, to) if is_time(to) && (from.is_numeric() || is_day(from)) => return Err(cannot_cast(from, to)),
        // What Arrow makes of it may be minus zero.
        (from, DataType::Float32) if or_null && may_be_minus_zero(from) => Transformed::yes(call(SqlType::Real)),
        (from, DataType::Float64) if or_null && may_be_minus_zero(from) => Transformed::yes(call(SqlType::Double)),
        (from, to) => match converted(from, to) {
            Some(gives) => Transformed::yes(call(gives)),
            None => Transformed::no(expr),
        },
    })
}

const TEXT: SqlType = SqlType::Text { max_chars: None };

/// The type to convert to, of a cast that is ours: Arrow's cuts digits off where SQL rounds, makes bytes of the
/// characters that spell them, knows other texts of dates and floats, takes a number that is too large for an infinite
/// one. And DataFusion takes a cast that rounds, or that may fail, for one that can be undone: `CAST(d AS INTEGER) = 2`
/// became `d = 2.0`. A function stays where it is. Casts that are left as they are give each value another one, in the
/// same order, and none fails, so that `i::bigint = 5` may become `i = 5`.
fn converted(from: &DataType, to: &DataType) -> Option<SqlType> {
    let wanted = mainstem_postgres::types::sql_type(to)?;
    if to.is_string() {
        let has_text_of_ours =
            from.is_binary() || from.is_floating() || is_datetime(from) || is_span(from) || is_composed(from);
        return has_text_of_ours.then_some(TEXT);
    }
    let ours = match (from, to) {
        (from, to) if from.is_string() => to.is_numeric() || is_datetime(to) || to.is_binary(),
        (DataType::Decimal128(digits, behind), DataType::Decimal128(to_digits, to_behind)) => {
            let before = |digits: u8, behind: i8| i16::from(digits) - i16::from(behind);
            to_behind < behind || before(*to_digits, *to_behind) < before(*digits, *behind)
        }
        (DataType::Float32 | DataType::Float64, DataType::Decimal128(..)) => true,
        // Arrow divides what it has rounded already.
        (DataType::Decimal128(digits, _), DataType::Float32 | DataType::Float64) => *digits > 15,
        (DataType::Decimal128(..) | DataType::Float32 | DataType::Float64, to) => {
            to.is_integer() || (from == &DataType::Float64 && to == &DataType::Float32)
        }
        (DataType::Timestamp(..), DataType::Date32) => true,
        (from, to) => may_be_out_of_range(from, to),
    };
    // Of other units too: coercion asks for nanoseconds.
    let same = wanted.arrow() == *to || matches!(to, DataType::Timestamp(..));
    (ours && same).then_some(wanted)
}

fn may_be_minus_zero(data_type: &DataType) -> bool {
    data_type.is_string() || data_type.is_floating()
}

/// Whether some values of `from`, integers or days and times, which are integers too, are none of `to`. DataFusion 55.2
/// takes such a cast off where it stands beside a literal: `i::smallint > 0` becomes `i > 0`
/// ([issue 22142](https://github.com/apache/datafusion/issues/22142)), and so does TRY_CAST ([issue
/// 24702](https://github.com/apache/datafusion/issues/24702)).
fn may_be_out_of_range(from: &DataType, to: &DataType) -> bool {
    match (bits(from), to) {
        (Some(of_from), DataType::Decimal128(digits, behind)) => {
            // 2^15, 2^31 and 2^63 have so many.
            let before = match of_from {
                ..=16 => 5,
                17..=32 => 10,
                _ => 19,
            };
            i16::from(*digits) - i16::from(*behind) < before
        }
        (Some(of_from), to) => bits(to).is_some_and(|of_to| of_to < of_from),
        (None, _) => false,
    }
}

/// The bits of an integer, and of a day or time that is one.
fn bits(data_type: &DataType) -> Option<usize> {
    let is_whole = data_type.is_signed_integer() || is_datetime(data_type) || is_day(data_type);
    data_type.primitive_width().filter(|_| is_whole).map(|bytes| bytes * 8)
}

/// `number`, a decimal of as many digits behind the point as `to`, or of none, as a value of the type `to`, which fails
/// if it is out of range (22003).
pub(crate) fn in_range(number: Expr, to: &DataType) -> Expr {
    match mainstem_postgres::types::sql_type(to) {
        Some(gives) => {
            let function = ScalarUDF::new_from_impl(SqlCast::new(gives, false));
            Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![number]))
        }
        None => Expr::Cast(Cast::new(Box::new(number), to.clone())),
    }
}

fn is_time(data_type: &DataType) -> bool {
    has_own_text(data_type) && *data_type != UUID
}

fn is_day(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64)
}

fn cannot_cast(from: &DataType, to: &DataType) -> DataFusionError {
    ours(Error::invalid(CANNOT_CAST, format!("cannot cast type {} to {}", sql_name(from), sql_name(to))))
}

fn sql_name(data_type: &DataType) -> String {
    match mainstem_postgres::types::sql_type(data_type) {
        Some(SqlType::Decimal { .. }) => "numeric".to_owned(),
        Some(known) => known.to_string(),
        None => data_type.to_string(),
    }
}

fn ours(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Casts that Arrow's do otherwise than SQL, or not at all.
pub(crate) fn sql_casts(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &cast_of_sql)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SqlCast {
    to: SqlType,
    or_null: bool,
    signature: Signature,
}

impl SqlCast {
    fn new(to: SqlType, or_null: bool) -> Self {
        Self { to, or_null, signature: Signature::any(1, Volatility::Immutable) }
    }

    fn convert(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if self.or_null && matches!(self.to, SqlType::Real | SqlType::Double) {
            return Ok(in_one_form(cast(array, &self.to.arrow())?));
        }
        if self.or_null && matches!(self.to, SqlType::Time | SqlType::Uuid) {
            let texts = cast(array, &DataType::Utf8View)?;
            return from_text(texts.as_string_view(), &self.to.arrow(), true).map_err(ours);
        }
        match convert(array, self.to) {
            Err(_) if self.or_null => self.convert_or_null(array),
            converted => converted.map_err(ours),
        }
    }

    /// Each value alone, NULL where it has no other one.
    fn convert_or_null(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let target = self.to.arrow();
        let one = |row| convert(&array.slice(row, 1), self.to).unwrap_or_else(|_| new_null_array(&target, 1));
        let values: Vec<ArrayRef> = (0..array.len()).map(one).collect();
        let values: Vec<&dyn Array> = values.iter().map(|value| &**value).collect();
        Ok(concat(&values)?)
    }
}

impl ScalarUDFImpl for SqlCast {
    fn name(&self) -> &str {
        match (self.to, self.or_null) {
            (SqlType::Time, true) => "time_of_or_null",
            (SqlType::Uuid, true) => "uuid_of_or_null",
            (SqlType::Boolean, _) => "boolean_of",
            (SqlType::SmallInt, _) => "smallint_of",
            (SqlType::Integer, _) => "integer_of",
            (SqlType::BigInt, _) => "bigint_of",
            (SqlType::Real, _) => "real_of",
            (SqlType::Double, _) => "double_of",
            (SqlType::Decimal { .. }, _) => "decimal_of",
            (SqlType::Date, _) => "date_of",
            (SqlType::Time, false) => "time_of",
            (SqlType::Timestamp, _) => "timestamp_of",
            (SqlType::TimestampTz, _) => "timestamptz_of",
            (SqlType::Text { .. } | SqlType::Char { .. }, _) => "text_of",
            (SqlType::Bytea, _) => "bytea_of",
            (SqlType::Uuid, false) => "uuid_of",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.arrow())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        // What may fail is called NULL: `i::smallint IS NOT NULL` would be folded otherwise, and not fail.
        let may_fail = |from: &DataType| !from.is_temporal() && !self.to.is_text();
        let nullable =
            self.or_null || args.arg_fields.iter().any(|field| field.is_nullable() || may_fail(field.data_type()));
        Ok(Arc::new(Field::new(self.name(), self.to.arrow(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(self.convert(array)?)),
            [ColumnarValue::Scalar(value)] => {
                let one = self.convert(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?))
            }
            other => Err(DataFusionError::Internal(format!("{} with {} arguments", self.name(), other.len()))),
        }
    }
}
