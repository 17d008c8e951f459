//! Expressions of short statements: columns, parameters, literals, `+`, `-`, `*` of integers, and what the planner has
//! compiled.
//!
//! Types are known when an expression is compiled, and are those DataFusion would give it: an integer literal is a
//! BIGINT, both sides of an operation have the larger type of the two. Evaluation gives `None` for whatever is not that
//! simple.

use mainstem_storage::row::Value;
use mainstem_storage::schema::{Column, DataType};

use super::computed::Computed;
use super::values::{Scope, fit, in_range, is_integer, same_kind, value_of_parameter};
use crate::plan;
use crate::value::ValueRef;

const DAY_MICROS: i64 = 86_400_000_000;

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
    /// The column at this position of the row that was to come.
    Coming(usize),
    /// The value bound to this parameter, counted from 0, as one of the expression's type.
    Parameter(usize),
    /// The value bound to this parameter as a column stores it.
    Stored(usize, Box<StoredAs>),
    /// A value of the expression's type, or NULL.
    Literal(Value),
    /// Of two integers; NULL if one of them is.
    Arithmetic(Operator, Box<Expression>, Box<Expression>),
    /// An expression as a value of a column of the expression's type.
    Assigned(Box<Expression>),
    /// What the planner has compiled, as a value of this column.
    Computed(Box<(Computed, Column)>),
    /// What the planner has compiled, as a value of the expression's type.
    Evaluated(Box<Computed>),
    /// When the statement began, as a value of the expression's type.
    Clock,
    /// Characters of a text.
    Length(Box<Expression>),
    /// The next number of the identity column that it stands for: drawn when all else is known ([`super::insert`]).
    Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
}

/// Whether values of type `from` can be stored in a column of type `to` by [`Node::Assigned`].
pub(super) fn is_assignable(from: DataType, to: DataType) -> bool {
    match (from, to) {
        (from, to) if from.is_text() && to.is_text() => true,
        (from, to) => from == to || (is_integer(from) && is_integer(to)),
    }
}

/// How a value bound to a parameter gets into a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredAs {
    /// The type that the context gives the parameter.
    bound_as: DataType,
    column: Column,
    /// The two are of one kind.
    is_same: bool,
    /// The least and the greatest whole number that the column takes as it is, if it takes any.
    whole: Option<(i64, i64)>,
}

impl StoredAs {
    pub(super) fn new(bound_as: DataType, column: &Column) -> Self {
        let is_same = same_kind(bound_as, column.data_type);
        let whole = match column.data_type {
            DataType::SmallInt => Some((i16::MIN.into(), i16::MAX.into())),
            DataType::Integer => Some((i32::MIN.into(), i32::MAX.into())),
            DataType::BigInt => Some((i64::MIN, i64::MAX)),
            _ => None,
        };
        Self { bound_as, column: column.clone(), is_same, whole: whole.filter(|_| is_same) }
    }

    /// The whole number that `value` is, if the column takes it as it is.
    #[inline]
    pub(super) fn whole(&self, value: ValueRef<'_>) -> Option<i64> {
        let number = match value {
            ValueRef::BigInt(v) => v,
            ValueRef::Integer(v) => v.into(),
            ValueRef::SmallInt(v) => v.into(),
            _ => return None,
        };
        self.whole.filter(|(least, greatest)| (*least..=*greatest).contains(&number)).map(|_| number)
    }

    pub(super) fn value(&self, value: ValueRef<'_>) -> Option<Value> {
        if let Some(number) = self.whole(value) {
            return Some(Value::Int(number));
        }
        let simple = if self.is_same { fit(value, self.column.data_type) } else { None };
        // An error is the plan's to tell.
        simple.or_else(|| plan::stored_value(value, self.bound_as, &self.column).ok())
    }
}

impl Expression {
    /// Whether its value follows from a row; what the planner has compiled counts as if it did.
    pub(super) fn reads_row(&self) -> bool {
        match &self.node {
            Node::Column(_) | Node::Coming(_) | Node::Computed(_) | Node::Evaluated(_) | Node::Number => true,
            Node::Parameter(_) | Node::Stored(..) | Node::Literal(_) | Node::Clock => false,
            Node::Assigned(inner) | Node::Length(inner) => inner.reads_row(),
            Node::Arithmetic(_, left, right) => left.reads_row() || right.reads_row(),
        }
    }

    /// Gives `visit` the position of each column of the row that it reads, to be changed; `None` where that cannot be
    /// told.
    pub(super) fn columns_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) -> Option<()> {
        match &mut self.node {
            Node::Column(at) => visit(at),
            Node::Computed(_) | Node::Evaluated(_) | Node::Coming(_) | Node::Number => return None,
            Node::Parameter(_) | Node::Stored(..) | Node::Literal(_) | Node::Clock => {}
            Node::Assigned(inner) | Node::Length(inner) => inner.columns_mut(visit)?,
            Node::Arithmetic(_, left, right) => {
                left.columns_mut(visit)?;
                right.columns_mut(visit)?;
            }
        }
        Some(())
    }

    /// The value in `scope`; `None` where only a plan knows.
    pub(super) fn evaluate(&self, scope: Scope<'_>) -> Option<Value> {
        match &self.node {
            Node::Column(at) => scope.row.get(*at).cloned(),
            Node::Coming(at) => scope.coming.map(|row| row.value(*at)),
            Node::Parameter(at) => value_of_parameter(*scope.parameters.get(*at)?, self.data_type),
            Node::Computed(computed) => computed.0.assigned(scope, &computed.1),
            Node::Evaluated(computed) => computed.value(scope, self.data_type),
            Node::Clock => match self.data_type {
                DataType::Date => Some(Value::Int(scope.clock.div_euclid(DAY_MICROS))),
                DataType::Timestamp | DataType::TimestampTz => Some(Value::Int(scope.clock)),
                _ => None,
            },
            Node::Length(text) => match text.evaluate(scope)? {
                Value::Null => Some(Value::Null),
                Value::Text(text) => i64::try_from(text.chars().count()).ok().map(Value::Int),
                _ => None,
            },
            Node::Stored(at, stored_as) => stored_as.value(*scope.parameters.get(*at)?),
            Node::Literal(value) => Some(value.clone()),
            Node::Number => None,
            Node::Assigned(inner) => match inner.evaluate(scope)? {
                Value::Int(v) if is_integer(self.data_type) => in_range(v, self.data_type).then_some(Value::Int(v)),
                other => Some(other),
            },
            Node::Arithmetic(operator, left, right) => {
                let values = (left.evaluate(scope)?, right.evaluate(scope)?);
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
