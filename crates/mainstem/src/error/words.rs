//! What DataFusion says of a statement, in words of SQL.
//!
//! Comes in: its messages, which name types as Arrow does, say which layer failed, and show trees as Rust prints them.
//! Goes out: text without any of that. It does not own: SQLSTATEs.

use mainstem_postgres::types::sql_words;

/// What DataFusion puts in front of messages, at each layer that they pass.
const LAYERS: &[&str] = &[
    "Internal error: ",
    "Error during planning: ",
    "Execution error: ",
    "Schema error: ",
    "This feature is not implemented: ",
    "External error: ",
    "Arrow error: ",
    "Invalid argument error: ",
    "Compute error: ",
    "Cast error: ",
    "Parser error: ",
    "Optimizer rule ",
    "SQL error: ",
    "type_coercion\ncaused by\n",
];

/// How trees begin that are printed as Rust does.
const TREES: &[&str] = &[
    " { ",
    "Some(",
    "(Literal(",
    "Literal(",
    "Column(",
    "(Column",
    "ScalarFunction(",
    "AggregateFunction",
    "Value(",
    "Subquery(",
    "Identifier(",
    "BinaryExpr(",
    "Unnest(",
    "Wildcard",
    "TypeSignature",
    "Coercible(",
    "UserDefined",
    "Box<",
    "OneOf(",
    "Exact(",
    "Uniform(",
];

/// Predicates of subqueries, where they cannot stand.
pub(super) const SUBQUERY_PLACE: &str =
    "EXISTS, IN, ANY or ALL of a query anywhere but in WHERE (join, or compare a count)";

/// `message` in words of SQL, on one line.
pub(super) fn readable(message: &str) -> String {
    let mut text = match message.find("\nThis issue was likely caused") {
        Some(end) => message.get(..end).unwrap_or(message),
        None => message,
    }
    .lines()
    .next()
    .unwrap_or_default()
    .to_owned();
    for layer in LAYERS {
        text = text.replace(layer, "");
    }
    let text = sql_words(without_tree(&text));
    text.replace("DataFusion", "Mainstem")
}

/// `text` up to a tree that Rust has printed, and the word in front of it.
fn without_tree(text: &str) -> &str {
    let Some(start) = TREES.iter().filter_map(|tree| text.find(tree)).min() else { return text };
    let front = text.get(..start).unwrap_or_default();
    // A tree's own name stands before its brace.
    let end = if text.get(start..).is_some_and(|rest| rest.starts_with(' ')) {
        front.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '(' || c == '[')).map_or(0, |at| at + 1)
    } else {
        start
    };
    front.get(..end).unwrap_or(front).trim_end_matches([' ', ':', '(', '[', ',', '\'', '"'])
}

/// What a tree that DataFusion cannot plan is called in SQL.
pub(super) fn tree_name(message: &str) -> Option<&'static str> {
    let (_, tree) = message.split_once("logical expression ").or_else(|| message.split_once("ast node "))?;
    let tree = tree.split_once(": ").filter(|(front, _)| !front.contains(['{', '('])).map_or(tree, |(_, tree)| tree);
    let name = tree.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    Some(match name {
        "Exists" | "InSubquery" | "SetComparison" | "AnyOp" | "AllOp" => SUBQUERY_PLACE,
        "ScalarSubquery" => {
            "a scalar subquery that refers to the outer query by anything but = (use a join, or a window function)"
        }
        "OuterReferenceColumn" => {
            "a LATERAL or correlated query that refers to the tables around it by anything but = (use a join)"
        }
        "Collate" => "COLLATE (text compares by bytes)",
        "Wildcard" => "* here",
        "GroupingSet" => "grouping sets here",
        "WindowFunction" => "a window function here",
        "AggregateFunction" => "an aggregate here",
        "Tuple" => "a row of several values here",
        _ => return None,
    })
}

/// The function, with the types of its arguments, that `message` says is not there: the texts of the rows `Call` of
/// `texts`.
pub(super) fn undefined_function(message: &str) -> Option<String> {
    let between = |from: &str, to: &str| {
        let (_, behind) = message.split_once(from)?;
        behind.split_once(to).map(|(text, _)| text)
    };
    // The last one: a function of ours says so, and DataFusion again, with the types.
    let last = message.rsplit_once("No function matches the given name and argument types '");
    if let Some((call, _)) = last.and_then(|(_, behind)| behind.split_once("'. You might")) {
        return Some(call_in_sql(call));
    }
    let types = between("coercion from ", " to the signature");
    let name = between("a call to '", "' function")
        .or_else(|| between("Function '", "' failed to match"))
        .or_else(|| between("Function '", "' user-defined coercion failed"))
        .or_else(|| between("Function '", "' expects"))
        .or_else(|| between("The function '", "' expected"))?;
    Some(match types {
        Some(types) => call_in_sql(&format!("{name}({types})")),
        None => name.to_owned(),
    })
}

/// What is said of a call that no function answers, if it is not that there is none: of a word that is no function in
/// SQL, and types that do not go together.
pub(super) fn mismatch(call: &str) -> Option<String> {
    let (name, types) = call.split_once('(')?;
    let types = listed(types.strip_suffix(')').unwrap_or(types)).join(" and ");
    match name {
        "coalesce" | "greatest" | "least" => Some(format!("{} types {types} cannot be matched", name.to_uppercase())),
        "make_array" => Some(format!("ARRAY types {types} cannot be matched")),
        "array_element" => {
            let of = types.split(" and ").next().unwrap_or_default();
            Some(format!("cannot subscript type {of} because it does not support subscripting"))
        }
        _ => None,
    }
}

/// The types of a list with commas between, some of which are in parentheses of a type.
fn listed(types: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let parts = types.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

fn call_in_sql(call: &str) -> String {
    match call.split_once('(') {
        Some((name, types)) => format!("{name}({}", sql_words(types)),
        None => call.to_owned(),
    }
}

/// What of `text` is for users: no backtrace.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{mismatch, readable, sql_words, tree_name, undefined_function};

    #[test]
    fn trees_and_layers_are_left_out() {
        let message = "Internal error: Physical plan does not support logical expression Exists(Exists { subquery: <subquery> }).\nThis issue was likely caused by a bug";
        assert_eq!(readable(message), "Physical plan does not support logical expression");
        assert!(tree_name(message).unwrap().starts_with("EXISTS"));
        let message = "Unsupported ast node in sqltorel: Collate { expr: Value(ValueWithSpan { value: 1 }) }";
        assert!(tree_name(message).unwrap().starts_with("COLLATE"));
        assert_eq!(readable("Error during planning: a and Int32"), "a and integer");
    }

    #[test]
    fn types_have_names_of_sql() {
        assert_eq!(sql_words("Timestamp(Microsecond, None) + Date32"), "timestamp + date");
        assert_eq!(sql_words("Timestamp(Microsecond, Some(\"+00:00\")), x"), "timestamp with time zone, x");
        assert_eq!(sql_words("Int64(1) + Utf8(\"a\") + Int32"), "1 + 'a' + integer");
        assert_eq!(sql_words("Decimal128(10, 2), Interval(MonthDayNano)"), "decimal(10, 2), interval");
    }

    #[test]
    fn functions_that_are_not_there_have_types() {
        let message = "Internal error: Function 'sum' failed to match any signature, errors: x\nThis. No function matches the given name and argument types 'sum(Utf8View)'. You might need";
        assert_eq!(undefined_function(message).as_deref(), Some("sum(text)"));
        assert_eq!(undefined_function("Function 'abs' failed to match any signature").as_deref(), Some("abs"));
        assert_eq!(undefined_function("something else"), None);
        let types = mismatch("coalesce(decimal(2, 1), date)");
        assert_eq!(types.as_deref(), Some("COALESCE types decimal(2, 1) and date cannot be matched"));
    }
}
