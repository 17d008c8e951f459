//! Expressions of short statements: columns, parameters, literals, and `+`, `-`, `*` of integers.
//!
//! Types are known when an expression is compiled, and are those DataFusion would give it: an integer literal is a BIGINT, both
//! sides of an operation have the larger type of the two. Evaluation gives `None` for whatever is not that simple.

use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

use crate::value::ValueRef;

/// An expression with its type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    pub(super) node: Node,
    pub(super) data_type: DataType,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// The column at this position of the row.
    Column(usize),
    /// The value bound to this parameter, counted from 0, as one of the expression's type.
    Parameter(usize),
    /// A value of the expression's type, or NULL.
    Literal(Value),
    /// Of two integers; NULL if one of them is.
    Arithmetic(Operator, Box<Expression>, Box<Expression>),
    /// An expression as a value of a column of the expression's type.
    Assigned(Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
}

/// Whether the type is a whole number.
pub(super) fn is_integer(data_type: DataType) -> bool {
    matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt)
}

/// Whether `value` is a whole number that `data_type` has.
fn in_range(value: i64, data_type: DataType) -> bool {
    match data_type {
        DataType::SmallInt => i16::try_from(value).is_ok(),
        DataType::Integer => i32::try_from(value).is_ok(),
        DataType::BigInt => true,
        _ => false,
    }
}

/// `value` as one of type `wanted`, if it is one, or an integer that fits.
pub(super) fn fit(value: ValueRef<'_>, wanted: DataType) -> Option<Value> {
    let whole = match value {
        ValueRef::SmallInt(v) => Some(i64::from(v)),
        ValueRef::Integer(v) => Some(i64::from(v)),
        ValueRef::BigInt(v) => Some(v),
        _ => None,
    };
    let fits = match (value, wanted) {
        (ValueRef::Null, _) => return Some(Value::Null),
        _ if whole.is_some() => whole.is_some_and(|v| in_range(v, wanted)),
        (ValueRef::Boolean(_), DataType::Boolean)
        | (ValueRef::Real(_), DataType::Real)
        | (ValueRef::Double(_), DataType::Double)
        | (ValueRef::Date(_), DataType::Date)
        | (ValueRef::Timestamp(_), DataType::Timestamp)
        | (ValueRef::TimestampTz(_), DataType::TimestampTz)
        | (ValueRef::Text(_), DataType::Text { .. })
        | (ValueRef::Bytes(_), DataType::Bytea) => true,
        (ValueRef::Decimal(_), DataType::Decimal { precision, scale }) => match value.data_type() {
            Some(DataType::Decimal { precision: digits, scale: behind }) => behind == scale && digits <= precision,
            _ => false,
        },
        _ => false,
    };
    fits.then(|| value.to_stored())
}

/// Whether values of type `from` can be stored in a column of type `to` by [`Node::Assigned`].
pub(super) fn is_assignable(from: DataType, to: DataType) -> bool {
    match (from, to) {
        (DataType::Text { .. }, DataType::Text { .. }) => true,
        (from, to) => from == to || (is_integer(from) && is_integer(to)),
    }
}

impl Expression {
    /// The value for `row` and `parameters`; `None` where only a plan knows.
    pub(super) fn evaluate(&self, row: &[Value], parameters: &[ValueRef<'_>]) -> Option<Value> {
        match &self.node {
            Node::Column(at) => row.get(*at).cloned(),
            Node::Parameter(at) => fit(*parameters.get(*at)?, self.data_type),
            Node::Literal(value) => Some(value.clone()),
            Node::Assigned(inner) => match inner.evaluate(row, parameters)? {
                Value::Int(v) if is_integer(self.data_type) => in_range(v, self.data_type).then_some(Value::Int(v)),
                other => Some(other),
            },
            Node::Arithmetic(operator, left, right) => {
                let values = (left.evaluate(row, parameters)?, right.evaluate(row, parameters)?);
                let (Value::Int(left), Value::Int(right)) = values else {
                    return (values.0.is_null() || values.1.is_null()).then_some(Value::Null);
                };
                let result = match operator {
                    Operator::Add => left.checked_add(right),
                    Operator::Subtract => left.checked_sub(right),
                    Operator::Multiply => left.checked_mul(right),
                };
                result.filter(|v| in_range(*v, self.data_type)).map(Value::Int)
            }
        }
    }
}
