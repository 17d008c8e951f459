//! Access paths: how a short statement finds its rows.
//!
//! Comes in: the condition of WHERE. Goes out: whole keys or ranges of keys, one for each member of a list behind IN;
//! and the rest of the condition, which each row found has to fulfil ([`Access`]).
//!
//! 1. Equations, with parameters, literals or arithmetic of them, for all columns of a key name a row by hash.
//! 2. Equations for the first columns of a key, and comparisons with the next, name a range of it; a list for one of
//!    these columns several ranges. So does nothing at all, where a LIMIT says how many rows are wanted ([`range`]). A
//!    range that may mean rows without the key is none.
//! 3. [`find`] gives the rows of either.
//!
//! In a join, columns of the outer row count as values where the inner side is looked for.
//!
//! It does not own: which of several keys is looked at (the first of `point_path::compile`).

mod find;
mod range;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use mainstem_storage::ids::{ColumnId, KeyId};
use mainstem_storage::point::{PointTable, has_all_rows};
use mainstem_storage::schema::{DataType, TableSchema};

use super::condition::Condition;
use super::counted;
use super::expression::Expression;
use super::planning::{Compiler, conjuncts};
pub(super) use find::{Rows, Sought, Taken, Wanted, each, sought};
use range::{KeyBounds, STEPS_MAX};

/// Most members of a list: more are found by a scan.
const KEYS_MAX: usize = 64;

/// One expression for each column of the key that rows are found by, in key order.
pub(super) type Key = Vec<Expression>;

/// See the module.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) path: Path,
    /// What stands beside that.
    pub(super) beside: Option<Condition>,
}

/// Where rows are looked for.
#[derive(Debug)]
pub(super) enum Path {
    /// Those that have one of the keys.
    Keys(Vec<Key>),
    /// Those whose keys are in a range, or in one of several.
    Ranges(KeyBounds),
}

impl Path {
    /// Which keys of `table` it looks at: a line for people.
    pub(super) fn description(&self, table: &PointTable) -> String {
        let schema = table.schema();
        let key = table.key().into_iter().flat_map(|id| schema.key_columns(id));
        let columns = key.filter_map(|id| schema.column(*id));
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        let what = match self {
            Self::Keys(keys) => counted(keys.len(), "key"),
            Self::Ranges(bounds) if bounds.ranges() > 1 => format!("{} ranges of keys", bounds.ranges()),
            Self::Ranges(_) => "range of keys".to_owned(),
        };
        format!("{what} of {} ({})", schema.name, names.join(", "))
    }

    /// Whether it finds all rows of the table.
    pub(super) fn is_all(&self) -> bool {
        matches!(self, Self::Ranges(bounds) if bounds.is_all())
    }

    /// As [`Expression::columns_mut`].
    pub(super) fn columns_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) -> Option<()> {
        match self {
            Self::Keys(keys) => keys.iter_mut().flatten().try_for_each(|part| part.columns_mut(visit)),
            Self::Ranges(bounds) => bounds.columns_mut(visit),
        }
    }

    /// Whether it finds all rows of `schema`'s table that it asks for by the key of `columns`: a row is without that
    /// where one of them is NULL.
    pub(super) fn finds_all(&self, schema: &TableSchema, columns: &[ColumnId]) -> bool {
        match self {
            Self::Keys(_) => true,
            Self::Ranges(bounds) => has_all_rows(schema, columns, bounds.compared()),
        }
    }
}

impl Access {
    /// The key, if it is one whole one.
    pub(super) fn key(&self) -> Option<&Key> {
        match &self.path {
            Path::Keys(keys) => keys.first().filter(|_| keys.len() == 1),
            Path::Ranges(_) => None,
        }
    }
}

/// Which paths are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Keys,
    /// Of a range of it; `all` is a range too.
    Range {
        all: bool,
    },
}

/// The keys of `schema`'s table, that which main is in the order of before the others: ranges of it lie side by side.
pub(super) fn keys_for_ranges(schema: &TableSchema) -> impl Iterator<Item = KeyId> {
    let ordered = schema.ordered_key();
    ordered.into_iter().chain(schema.keys().map(|(key, _)| key).filter(move |key| Some(*key) != ordered))
}

/// An equation of a key column and something that is no column.
struct Equation<'e> {
    /// Which column of the key.
    place: usize,
    value: &'e Expr,
    data_type: DataType,
}

impl Compiler<'_> {
    /// How the rows that `selection` asks for are found, if it is in `reach`.
    pub(super) fn access(&self, selection: Option<&Expr>, reach: Reach) -> Option<Access> {
        let mut parts = Vec::new();
        if let Some(selection) = selection {
            conjuncts(selection, &mut parts);
        }
        let (path, rest) = self.path(&parts, reach)?;
        if !path.finds_all(self.schema, self.key_columns) {
            return None;
        }
        Some(Access { path, beside: self.all_of(&rest)? })
    }

    /// The access path that `parts` ask for, if it is in `reach`, and the parts that say more.
    pub(super) fn path<'e>(&self, parts: &[&'e Expr], reach: Reach) -> Option<(Path, Vec<&'e Expr>)> {
        Some(match reach {
            Reach::Keys => {
                let (keys, rest) = self.keys(parts)?;
                (Path::Keys(keys), rest)
            }
            Reach::Range { all } => {
                let (bounds, rest) = self.bounds(parts)?;
                if bounds.is_all() && !all {
                    return None;
                }
                (Path::Ranges(bounds), rest)
            }
        })
    }

    /// `parts` as one condition; none of both if only a plan can do it.
    pub(super) fn all_of(&self, parts: &[&Expr]) -> Option<Option<Condition>> {
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

    /// The keys that `parts` ask for, and those parts that say more. One column may be in a list.
    fn keys<'e>(&self, parts: &[&'e Expr]) -> Option<(Vec<Key>, Vec<&'e Expr>)> {
        let listed = parts.iter().enumerate().find_map(|(at, part)| Some((at, self.listed(part)?)));
        let list_at = listed.as_ref().map(|(at, _)| *at);
        let list_place = listed.as_ref().map(|(_, (place, ..))| *place);
        let mut values: Vec<Option<Expression>> = vec![None; self.key_columns.len()];
        let mut rest = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let equation = self.equation(part).filter(|equation| {
                Some(equation.place) != list_place && values.get(equation.place).is_some_and(Option::is_none)
            });
            match equation {
                _ if Some(at) == list_at => {}
                Some(Equation { place, value, data_type }) => {
                    *values.get_mut(place)? = Some(self.constant(value, data_type)?);
                }
                None => rest.push(*part),
            }
        }
        let Some((_, (place, data_type, list))) = listed else {
            return Some((vec![values.into_iter().collect::<Option<_>>()?], rest));
        };
        if list.len() > KEYS_MAX {
            return None;
        }
        let of_member = |member: &Expr| {
            let mut key = values.clone();
            *key.get_mut(place)? = Some(self.constant(member, data_type)?);
            key.into_iter().collect::<Option<_>>()
        };
        Some((list.iter().map(of_member).collect::<Option<_>>()?, rest))
    }

    /// The column of the key that `part` says to be one of a list, its type, and the list.
    fn listed<'e>(&self, part: &'e Expr) -> Option<(usize, DataType, &'e [Expr])> {
        let Expr::InList { expr, list, negated: false } = part else { return None };
        let column = self.schema.columns.get(self.column(expr)?)?;
        let place = self.key_columns.iter().position(|id| *id == column.id)?;
        Some((place, column.data_type, list.as_slice()))
    }

    /// What `part` says to be equal, a column of the key and something that is no column.
    fn equation<'e>(&self, part: &'e Expr) -> Option<Equation<'e>> {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = part else { return None };
        let is_known = |side: Option<usize>| side.is_none_or(|at| at < self.known);
        let equation = |side: Option<usize>, other, value| {
            let column = self.schema.columns.get(side?)?;
            let place = self.key_columns.iter().position(|id| *id == column.id).filter(|_| is_known(other))?;
            Some(Equation { place, value, data_type: column.data_type })
        };
        let (of_left, of_right) = (self.column(left), self.column(right));
        equation(of_left, of_right, &**right).or_else(|| equation(of_right, of_left, left))
    }
}
