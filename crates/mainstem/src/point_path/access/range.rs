//! Ranges of keys.
//!
//! Comes in: the parts of a condition. Goes out: values for the first columns of the key, bounds of the next one, and
//! the parts that say more. One of the first columns may be in a list behind IN: each of its members makes a range.

use std::ops::Bound;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use mainstem_storage::Result;
use mainstem_storage::point::PointTable;
use mainstem_storage::row::Value;
use mainstem_storage::row::key::KeyRange;
use mainstem_storage::schema::DataType;

use super::{Compiler, Equation, KEYS_MAX};
use crate::point_path::expression::{Expression, Node};
use crate::point_path::values::{Scope, is_integer};

/// Most rows that are looked at one by one: a scan of so many takes no longer.
pub(super) const STEPS_MAX: usize = 1_024;

/// See the module.
#[derive(Debug)]
pub(in crate::point_path) struct KeyBounds {
    equal: Vec<Expression>,
    /// The place in `equal` of a column that may have one of several values, and those.
    list: Option<(usize, Vec<Expression>)>,
    low: Bound<Expression>,
    high: Bound<Expression>,
}

impl KeyBounds {
    /// As [`Expression::columns_mut`].
    pub(super) fn columns_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) -> Option<()> {
        let members = self.list.iter_mut().flat_map(|(_, members)| members);
        self.equal.iter_mut().chain(members).try_for_each(|part| part.columns_mut(visit))?;
        for bound in [&mut self.low, &mut self.high] {
            if let Bound::Included(expression) | Bound::Excluded(expression) = bound {
                expression.columns_mut(visit)?;
            }
        }
        Some(())
    }

    /// How many ranges it makes, at most.
    pub(super) fn ranges(&self) -> usize {
        self.list.as_ref().map_or(1, |(_, members)| members.len())
    }

    /// Whether the column of the key at `place` has one value in all of its rows.
    pub(in crate::point_path) fn is_constant(&self, place: usize) -> bool {
        place < self.equal.len() && self.list.as_ref().is_none_or(|(listed, _)| *listed != place)
    }

    /// Whether all keys are in it.
    pub(super) fn is_all(&self) -> bool {
        self.equal.is_empty() && matches!((&self.low, &self.high), (Bound::Unbounded, Bound::Unbounded))
    }

    /// How many columns of the key it has values or bounds for.
    pub(super) fn compared(&self) -> usize {
        let is_bound = !matches!((&self.low, &self.high), (Bound::Unbounded, Bound::Unbounded));
        self.equal.len() + usize::from(is_bound)
    }

    /// The ranges of `table`'s keys in `scope`, in the order of the keys, no two of them with a key in common; `None`
    /// where only a plan knows.
    ///
    /// # Errors
    /// Those of encoding keys.
    pub(super) fn evaluate(&self, table: &PointTable, scope: Scope<'_>) -> Result<Option<Vec<KeyRange>>> {
        let Some(first) = self.values(scope) else { return Ok(None) };
        let Some((place, members)) = &self.list else { return Ok(Some(first.range(table)?.into_iter().collect())) };
        let mut ranges = Vec::with_capacity(members.len());
        for member in members {
            let Some(member) = member.evaluate(scope) else { return Ok(None) };
            let mut values = first.clone();
            match values.equal.get_mut(*place) {
                Some(value) => *value = member,
                None => return Ok(None),
            }
            ranges.extend(values.range(table)?);
        }
        ranges.sort_by(|a, b| a.from().cmp(b.from()));
        ranges.dedup_by(|a, b| a.from() == b.from() && a.upto() == b.upto());
        Ok(Some(ranges))
    }

    /// Whether all of its values in `scope` are such as a plan would have.
    pub(super) fn is_right(&self, scope: Scope<'_>) -> bool {
        let mut members = self.list.iter().flat_map(|(_, members)| members);
        self.values(scope).is_some() && members.all(|member| member.evaluate(scope).is_some())
    }

    /// The values of all but the list, in whose place stands its first member.
    fn values(&self, scope: Scope<'_>) -> Option<Bounds> {
        let bound = |bound: &Bound<Expression>| {
            Some(match bound {
                Bound::Unbounded => Bound::Unbounded,
                Bound::Included(expression) => Bound::Included(expression.evaluate(scope)?),
                Bound::Excluded(expression) => Bound::Excluded(expression.evaluate(scope)?),
            })
        };
        let equal = self.equal.iter().map(|part| part.evaluate(scope)).collect::<Option<_>>()?;
        Some(Bounds { equal, low: bound(&self.low)?, high: bound(&self.high)? })
    }
}

/// The bounds of one range, in a run of the statement.
#[derive(Clone)]
struct Bounds {
    equal: Vec<Value>,
    low: Bound<Value>,
    high: Bound<Value>,
}

impl Bounds {
    /// The range of `table`'s keys; `None` where a bound is NULL: no row lies there.
    fn range(self, table: &PointTable) -> Result<Option<KeyRange>> {
        let is_null =
            |bound: &Bound<Value>| matches!(bound, Bound::Included(value) | Bound::Excluded(value) if value.is_null());
        if self.equal.iter().any(Value::is_null) || is_null(&self.low) || is_null(&self.high) {
            return Ok(None);
        }
        table.range(self.equal, self.low, self.high).map(Some)
    }
}

impl Compiler<'_> {
    /// The range of keys that `parts` ask for, and those parts that say more.
    pub(super) fn bounds<'e>(&self, parts: &[&'e Expr]) -> Option<(KeyBounds, Vec<&'e Expr>)> {
        let mut rest = parts.to_vec();
        let (mut equal, mut list) = (Vec::new(), None);
        while equal.len() < self.key_columns.len() {
            let place = equal.len();
            let value = |part: &&Expr| {
                let Equation { value, data_type, .. } =
                    self.equation(part).filter(|equation| equation.place == place)?;
                self.bound(value, data_type)
            };
            if let Some((at, value)) = rest.iter().enumerate().find_map(|(at, part)| Some((at, value(part)?))) {
                rest.remove(at);
                equal.push(value);
                continue;
            }
            let members = |part: &&Expr| self.members(part, place).filter(|_| list.is_none());
            let Some((at, members)) = rest.iter().enumerate().find_map(|(at, part)| Some((at, members(part)?))) else {
                break;
            };
            rest.remove(at);
            equal.push(members.first()?.clone());
            // One member is as good as an equation.
            list = (members.len() > 1).then_some((place, members));
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
        Some((KeyBounds { equal, list, low, high }, rest))
    }

    /// The values one of which `part` says that column `place` of the key has.
    fn members(&self, part: &Expr, place: usize) -> Option<Vec<Expression>> {
        let (_, data_type, list) = self.listed(part).filter(|(listed, ..)| *listed == place)?;
        if list.is_empty() || list.len() > KEYS_MAX {
            return None;
        }
        list.iter().map(|member| self.bound(member, data_type)).collect()
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
