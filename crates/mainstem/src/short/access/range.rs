//! Ranges of keys.
//!
//! Comes in: the parts of a condition. Goes out: values for the first columns of the key, bounds of the next one, and
//! the parts that say more.

use std::ops::Bound;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

use super::{Compiler, Equation};
use crate::short::expression::{Expression, Node};
use crate::short::values::{Scope, is_integer};

/// Most rows that are looked at one by one: a scan of so many takes no longer.
pub(super) const STEPS_MAX: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub(in crate::short) struct KeyBounds {
    pub(in crate::short) equal: Vec<Expression>,
    low: Bound<Expression>,
    high: Bound<Expression>,
}

/// The bounds of a run of the statement.
pub(super) enum Evaluated {
    Bounds {
        equal: Vec<Value>,
        low: Bound<Value>,
        high: Bound<Value>,
    },
    /// One of them is NULL: no row lies there.
    Nothing,
    NotShort,
}

impl KeyBounds {
    /// Whether all keys are in it.
    pub(super) fn is_all(&self) -> bool {
        self.equal.is_empty() && matches!((&self.low, &self.high), (Bound::Unbounded, Bound::Unbounded))
    }

    /// How many columns of the key it has values or bounds for.
    pub(super) fn compared(&self) -> usize {
        let is_bound = !matches!((&self.low, &self.high), (Bound::Unbounded, Bound::Unbounded));
        self.equal.len() + usize::from(is_bound)
    }

    /// Their values in `scope`.
    pub(super) fn evaluate(&self, scope: Scope<'_>) -> Evaluated {
        let mut is_null = false;
        let mut value = |expression: &Expression| {
            let value = expression.evaluate(scope)?;
            is_null |= value.is_null();
            Some(value)
        };
        let equal = self.equal.iter().map(&mut value).collect::<Option<Vec<_>>>();
        let mut bound = |bound: &Bound<Expression>| {
            Some(match bound {
                Bound::Unbounded => Bound::Unbounded,
                Bound::Included(expression) => Bound::Included(value(expression)?),
                Bound::Excluded(expression) => Bound::Excluded(value(expression)?),
            })
        };
        match (equal, bound(&self.low), bound(&self.high)) {
            (Some(_), Some(_), Some(_)) if is_null => Evaluated::Nothing,
            (Some(equal), Some(low), Some(high)) => Evaluated::Bounds { equal, low, high },
            _ => Evaluated::NotShort,
        }
    }
}

impl Compiler<'_> {
    /// The range of keys that `parts` ask for, and those parts that say more.
    pub(super) fn bounds<'e>(&self, parts: &[&'e Expr]) -> Option<(KeyBounds, Vec<&'e Expr>)> {
        let mut rest = parts.to_vec();
        let mut equal = Vec::new();
        while equal.len() < self.key_columns.len() {
            let value = |part: &&Expr| {
                let Equation { value, data_type, .. } =
                    self.equation(part).filter(|equation| equation.place == equal.len())?;
                self.bound(value, data_type)
            };
            let Some((at, value)) = rest.iter().enumerate().find_map(|(at, part)| Some((at, value(part)?))) else {
                break;
            };
            rest.remove(at);
            equal.push(value);
        }
        let (mut low, mut high) = (Bound::Unbounded, Bound::Unbounded);
        let is_open = |bound: &Bound<Expression>| matches!(bound, Bound::Unbounded);
        rest.retain(|part| match self.limits(part, equal.len()) {
            Some((from, upto)) if (is_open(&low) || is_open(&from)) && (is_open(&high) || is_open(&upto)) => {
                if !is_open(&from) {
                    low = from;
                }
                if !is_open(&upto) {
                    high = upto;
                }
                false
            }
            _ => true,
        });
        Some((KeyBounds { equal, low, high }, rest))
    }

    /// Between which values `part` has column `place` of the key.
    fn limits(&self, part: &Expr, place: usize) -> Option<(Bound<Expression>, Bound<Expression>)> {
        let id = self.key_columns.get(place)?;
        let at = self.schema.columns.iter().position(|column| column.id == *id)?;
        let data_type = self.schema.columns.get(at).map(|column| column.data_type)?;
        // Blanks count where they are compared.
        if matches!(data_type, DataType::Char { .. }) {
            return None;
        }
        let is_it = |expr: &Expr| self.column(expr) == Some(at);
        match part {
            Expr::Between { expr, negated: false, low, high } if is_it(expr) => {
                let bound = |expr| self.bound(expr, data_type).map(Bound::Included);
                Some((bound(low)?, bound(high)?))
            }
            Expr::BinaryOp { left, op, right } => {
                let (op, value) = match (is_it(left), is_it(right)) {
                    (true, false) => (op.clone(), right),
                    (false, true) => (flipped(op)?, left),
                    _ => return None,
                };
                let value = self.bound(value, data_type);
                Some(match op {
                    BinaryOperator::Gt => (Bound::Excluded(value?), Bound::Unbounded),
                    BinaryOperator::GtEq => (Bound::Included(value?), Bound::Unbounded),
                    BinaryOperator::Lt => (Bound::Unbounded, Bound::Excluded(value?)),
                    BinaryOperator::LtEq => (Bound::Unbounded, Bound::Included(value?)),
                    _ => return None,
                })
            }
            _ => None,
        }
    }

    /// A constant, or arithmetic of whole numbers without columns, as a value of a column of type `data_type`.
    fn bound(&self, expr: &Expr, data_type: DataType) -> Option<Expression> {
        if is_integer(data_type)
            && let Some(value) = self.expression(expr).filter(|value| is_integer(value.data_type) && !value.reads_row())
        {
            return Some(Expression { node: Node::Assigned(Box::new(value)), data_type });
        }
        self.constant(expr, data_type)
    }
}

/// The comparison with its sides exchanged.
fn flipped(op: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match op {
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        _ => return None,
    })
}
