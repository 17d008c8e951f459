//! The keys that a WHERE names its rows by, and what stands beside them.
//!
//! Comes in: a condition. Goes out: an expression for each column of the key, of each key if one column is to be in a
//! list, and the rest of the condition.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use mainstem_storage::schema::{Column, DataType};

use super::Key;
use super::condition::Condition;
use super::expression::Expression;
use super::planning::{Compiler, conjuncts};

/// Most keys of a list: more are found by a scan.
const KEYS_MAX: usize = 64;

impl Compiler<'_> {
    /// The key that `selection` asks for, one equation for each of its columns, and what stands beside that.
    pub(super) fn key(&self, selection: Option<&Expr>) -> Option<(Key, Option<Condition>)> {
        let mut parts = Vec::new();
        conjuncts(selection?, &mut parts);
        let (values, others) = self.divided(&parts, None)?;
        let key = values.into_iter().collect::<Option<_>>()?;
        Some((key, self.beside(&others)?))
    }

    /// The keys that rows are found by: one of each member of a list behind IN, if there is one, and what stands beside
    /// that.
    pub(super) fn keys(&self, selection: Option<&Expr>) -> Option<(Vec<Key>, Option<Condition>)> {
        let mut parts = Vec::new();
        conjuncts(selection?, &mut parts);
        let Some((at, (column, list))) = parts.iter().enumerate().find_map(|(at, part)| Some((at, self.listed(part)?)))
        else {
            return self.key(selection).map(|(key, beside)| (vec![key], beside));
        };
        if list.len() > KEYS_MAX || list.iter().any(|member| self.column(member).is_some()) {
            return None;
        }
        parts.remove(at);
        let place = self.key_columns.iter().position(|id| *id == column.id)?;
        let (values, others) = self.divided(&parts, Some(place))?;
        let key_of = |member: &Expr| {
            let member = self.constant(member, column.data_type)?;
            let mut values = values.clone();
            *values.get_mut(place)? = Some(member);
            values.into_iter().collect::<Option<Key>>()
        };
        let keys = list.iter().map(key_of).collect::<Option<_>>()?;
        Some((keys, self.beside(&others)?))
    }

    /// The values of the key's columns that equations in `parts` tell, and the parts that are no such equation.
    /// `listed` is the place of the column that a list tells.
    fn divided<'e>(
        &self,
        parts: &[&'e Expr],
        listed: Option<usize>,
    ) -> Option<(Vec<Option<Expression>>, Vec<&'e Expr>)> {
        let mut values = vec![None; self.key_columns.len()];
        let mut others = Vec::new();
        for part in parts {
            match self.equation(part) {
                Some((place, value, data_type))
                    if listed != Some(place) && values.get(place).is_some_and(Option::is_none) =>
                {
                    *values.get_mut(place)? = Some(self.constant(value, data_type)?);
                }
                _ => others.push(*part),
            }
        }
        Some((values, others))
    }

    /// `parts` as one condition; none of both if only a plan can do it.
    fn beside(&self, parts: &[&Expr]) -> Option<Option<Condition>> {
        let mut beside = None;
        for part in parts {
            let condition = self.condition(part)?;
            beside = Some(match beside {
                None => condition,
                Some(before) => Condition::And(Box::new(before), Box::new(condition)),
            });
        }
        Some(beside)
    }

    /// The column of the key that `part` says to be one of a list, and the list.
    fn listed<'e>(&self, part: &'e Expr) -> Option<(&Column, &'e [Expr])> {
        let Expr::InList { expr, list, negated: false } = part else { return None };
        let column = self.schema.columns.get(self.column(expr)?)?;
        self.key_columns.contains(&column.id).then_some((column, list.as_slice()))
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
