//! DataFusion's filters as predicates of the store, when they mean exactly the same.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList, Like};
use datafusion::logical_expr::{Expr, Operator};
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::Value;
use mainstem_storage::schema::{Column, DataType, TableSchema};

use self::operators::{column, compare_op, flipped};
use super::values::to_value;

mod days;
mod operators;

/// Longest `NOT IN` list that becomes a chain of `<>`.
const NOT_IN_MAX: usize = 16;

/// The predicates whose conjunction is `expr`; None if it cannot be said exactly.
pub(super) fn translate(expr: &Expr, schema: &TableSchema) -> Option<Vec<Predicate>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let mut both = translate(left, schema)?;
            both.extend(translate(right, schema)?);
            Some(both)
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
            let mut equals = Equals::default();
            equals.collect(expr, schema)?;
            Some(vec![Predicate::In { column: equals.column?, values: equals.values }])
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            compare(left, *op, right, schema).or_else(|| days::compare(left, *op, right, schema)).map(|p| vec![p])
        }
        Expr::InList(InList { expr, list, negated }) => in_list(expr, list, *negated, schema),
        Expr::IsNull(inner) => Some(vec![Predicate::IsNull { column: column(inner, schema)?.id }]),
        Expr::IsNotNull(inner) => Some(vec![Predicate::IsNotNull { column: column(inner, schema)?.id }]),
        Expr::Column(_) => boolean(expr, true, schema),
        Expr::Not(inner) => boolean(inner, false, schema),
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let bound = |op, bound| translate(&Expr::BinaryExpr(BinaryExpr::new(expr.clone(), op, bound)), schema);
            let mut both = bound(Operator::GtEq, low.clone())?;
            both.extend(bound(Operator::LtEq, high.clone())?);
            Some(both)
        }
        Expr::Like(like) => prefix(like, schema),
        // What the optimizer makes of a filter that it has pushed down before.
        Expr::Literal(ScalarValue::Boolean(Some(true)), _) => Some(Vec::new()),
        Expr::Literal(ScalarValue::Boolean(_), _) => never(schema),
        _ => None,
    }
}

/// What no row fulfils.
fn never(schema: &TableSchema) -> Option<Vec<Predicate>> {
    Some(vec![Predicate::In { column: schema.columns.first()?.id, values: Vec::new() }])
}

fn literal(expr: &Expr, column: &Column) -> Option<Value> {
    match expr {
        Expr::Literal(scalar, _) => to_value(scalar, column.data_type),
        _ => None,
    }
}

fn compare(left: &Expr, op: Operator, right: &Expr, schema: &TableSchema) -> Option<Predicate> {
    let op = compare_op(op)?;
    if let Some(column) = column(left, schema) {
        return Some(Predicate::Compare { column: column.id, op, value: literal(right, column)? });
    }
    let column = column(right, schema)?;
    Some(Predicate::Compare { column: column.id, op: flipped(op), value: literal(left, column)? })
}

fn in_list(expr: &Expr, list: &[Expr], negated: bool, schema: &TableSchema) -> Option<Vec<Predicate>> {
    let column = column(expr, schema)?;
    let is_null = |e: &Expr| matches!(e, Expr::Literal(scalar, _) if scalar.is_null());
    if negated {
        // A NULL in the list makes NOT IN never true; that is left to DataFusion.
        if list.len() > NOT_IN_MAX {
            return None;
        }
        return list
            .iter()
            .map(|e| Some(Predicate::Compare { column: column.id, op: CompareOp::NotEq, value: literal(e, column)? }))
            .collect();
    }
    let values = list.iter().filter(|e| !is_null(e)).map(|e| literal(e, column)).collect::<Option<Vec<_>>>()?;
    Some(vec![Predicate::In { column: column.id, values }])
}

fn boolean(expr: &Expr, wanted: bool, schema: &TableSchema) -> Option<Vec<Predicate>> {
    let column = column(expr, schema)?;
    (column.data_type == DataType::Boolean)
        .then(|| vec![Predicate::Compare { column: column.id, op: CompareOp::Eq, value: Value::Boolean(wanted) }])
}

/// `a = 1 OR a = 2 OR ...`, which is how DataFusion writes short IN lists.
#[derive(Default)]
struct Equals {
    column: Option<mainstem_storage::ids::ColumnId>,
    values: Vec<Value>,
}

impl Equals {
    fn collect(&mut self, expr: &Expr, schema: &TableSchema) -> Option<()> {
        if let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) = expr {
            self.collect(left, schema)?;
            return self.collect(right, schema);
        }
        // A row is no more wanted for it: `g IN (1, NULL)` is written so, too.
        if matches!(expr, Expr::Literal(ScalarValue::Boolean(None | Some(false)), _)) {
            return Some(());
        }
        let (column, values) = match translate(expr, schema)?.as_slice() {
            [Predicate::Compare { column, op: CompareOp::Eq, value }] => (*column, vec![value.clone()]),
            [Predicate::In { column, values }] => (*column, values.clone()),
            _ => return None,
        };
        if *self.column.get_or_insert(column) != column {
            return None;
        }
        self.values.extend(values);
        Some(())
    }
}

/// `column LIKE 'abc%'` is `column >= 'abc' AND column < 'abd'`: text compares by bytes, and UTF-8 keeps the order of
/// characters.
fn prefix(like: &Like, schema: &TableSchema) -> Option<Vec<Predicate>> {
    let Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false } = like else { return None };
    let column = column(expr, schema)?;
    let (Expr::Literal(scalar, _), DataType::Text { .. }) = (&**pattern, column.data_type) else { return None };
    let (ScalarValue::Utf8(Some(pattern))
    | ScalarValue::LargeUtf8(Some(pattern))
    | ScalarValue::Utf8View(Some(pattern))) = scalar
    else {
        return None;
    };
    let start = pattern.strip_suffix('%')?;
    if start.is_empty() || start.contains(['%', '_', '\\']) {
        return None;
    }
    let mut chars: Vec<char> = start.chars().collect();
    let last = chars.pop()?;
    // The step range skips the surrogates; after the last character there is no simple bound.
    chars.push((last..=char::MAX).nth(1)?);
    let end: String = chars.into_iter().collect();
    let bound = |op, text: &str| Predicate::Compare { column: column.id, op, value: Value::Text(text.into()) };
    Some(vec![bound(CompareOp::GtEq, start), bound(CompareOp::Lt, &end)])
}

#[cfg(test)]
mod tests;
