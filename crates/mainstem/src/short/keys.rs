//! The keys that a WHERE names its rows by, and what stands beside them.
//!
//! Comes in: a condition. Goes out: an expression for each column of the key, of each key if one column is to be in a
//! list, and the rest of the condition.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use mainstem_storage::schema::DataType;

use super::Key;
use super::condition::Condition;
use super::planning::{Compiler, conjuncts};

/// Most keys of a list: more are found by a scan.
const KEYS_MAX: usize = 64;

impl Compiler<'_> {
    /// The key that `selection` asks for, one equation for each of its columns, and what stands beside that.
    pub(super) fn key(&self, selection: Option<&Expr>) -> Option<(Key, Option<Condition>)> {
        let mut parts = Vec::new();
        conjuncts(selection?, &mut parts);
        let mut values: Vec<Option<(&Expr, DataType)>> = vec![None; self.key_columns.len()];
        let mut others = Vec::new();
        for part in parts {
            match self.equation(part) {
                Some((place, value, data_type)) if values.get(place).is_some_and(Option::is_none) => {
                    *values.get_mut(place)? = Some((value, data_type));
                }
                _ => others.push(part),
            }
        }
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        let constant = |(value, data_type): (&Expr, DataType)| self.constant(value, data_type);
        let key = values.into_iter().map(constant).collect::<Option<_>>()?;
        let mut beside = None;
        for part in others {
            let condition = self.condition(part)?;
            beside = Some(match beside {
                None => condition,
                Some(before) => Condition::And(Box::new(before), Box::new(condition)),
            });
        }
        Some((key, beside))
    }

    /// The keys that rows are found by: one of each member of a list behind IN, if there is one, and what stands beside
    /// that.
    pub(super) fn keys(&self, selection: Option<&Expr>) -> Option<(Vec<Key>, Option<Condition>)> {
        let mut parts = Vec::new();
        conjuncts(selection?, &mut parts);
        let Some((at, column, list)) = parts.iter().enumerate().find_map(|(at, part)| {
            let (column, list) = self.listed(part)?;
            Some((at, column, list))
        }) else {
            return self.key(selection).map(|(key, beside)| (vec![key], beside));
        };
        if list.len() > KEYS_MAX {
            return None;
        }
        let mut keys = Vec::with_capacity(list.len());
        let mut beside = None;
        for member in list {
            let equation = |value: &Expr| {
                let (left, right) = (Box::new(column.clone()), Box::new(value.clone()));
                Expr::BinaryOp { left, op: BinaryOperator::Eq, right }
            };
            let others = parts.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, part)| (*part).clone());
            let whole = others.fold(equation(member), |left, right| {
                let (left, right) = (Box::new(left), Box::new(Expr::Nested(Box::new(right))));
                Expr::BinaryOp { left, op: BinaryOperator::And, right }
            });
            let (key, of_member) = self.key(Some(&whole))?;
            keys.push(key);
            // The same for each.
            beside = of_member;
        }
        Some((keys, beside))
    }

    /// The column of the key that `part` says to be one of a list, and the list.
    fn listed<'e>(&self, part: &'e Expr) -> Option<(&'e Expr, &'e [Expr])> {
        let Expr::InList { expr, list, negated: false } = part else { return None };
        let column = self.schema.columns.get(self.column(expr)?)?;
        self.key_columns.contains(&column.id).then_some((&**expr, list.as_slice()))
    }

    /// The place in the key, the value and the type of a column of it that `part` says to be equal to something that is
    /// no column.
    fn equation<'e>(&self, part: &'e Expr) -> Option<(usize, &'e Expr, DataType)> {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = part else { return None };
        let (column, value) = match (self.column(left), self.column(right)) {
            (Some(column), None) => (column, right),
            (None, Some(column)) => (column, left),
            _ => return None,
        };
        let column = self.schema.columns.get(column)?;
        let place = self.key_columns.iter().position(|id| *id == column.id)?;
        Some((place, value, column.data_type))
    }
}
