//! Rows of an access path.
//!
//! Comes in: the path, the values of a run, a view. Goes out: what the caller makes of the rows, one by one; or that only
//! a plan knows, because a value is not simple, or because they are too many.

use mainstem_storage::Result;
use mainstem_storage::ids::RowRef;
use mainstem_storage::point::{self, RangeRequest};
use mainstem_storage::row::Value;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::TableView;

use super::range::Evaluated;
use super::{Access, Key, Path, STEPS_MAX};
use crate::short::Short;
use crate::short::condition::NeedsPlan;
use crate::short::run::holds;
use crate::short::select::{Gives, Selection};
use crate::short::values::Given;

/// What becomes of a row: something, or nothing because a condition is not fulfilled.
pub(in crate::short) type Taken<T> = std::result::Result<Option<T>, NeedsPlan>;

/// Rows, with the values of all columns; `None` where only a plan knows.
pub(in crate::short) type Located = Option<Vec<(RowRef, Vec<Value>)>>;

/// The encoded key.
pub(in crate::short) enum Sought {
    Key(Vec<u8>),
    /// A part of it is NULL: no row has it.
    Nothing,
    /// Only a plan knows.
    NotShort,
}

/// Which rows of a view are asked for.
#[derive(Clone, Copy)]
pub(in crate::short) struct Rows<'a> {
    pub(in crate::short) view: &'a TableView,
    pub(in crate::short) access: &'a Access,
    pub(in crate::short) wanted: Wanted,
}

/// How many rows of an access path, and from which end.
#[derive(Clone, Copy)]
pub(in crate::short) struct Wanted {
    backwards: bool,
    limit: usize,
    steps_max: usize,
}

impl Wanted {
    pub(in crate::short) const ALL: Self = Self { backwards: false, limit: usize::MAX, steps_max: STEPS_MAX };

    /// Those of a SELECT; `None` where only a plan knows.
    pub(in crate::short) fn of(selection: &Selection, given: Given<'_>) -> Option<Self> {
        let limit = match &selection.limit {
            None => usize::MAX,
            Some(limit) => match limit.evaluate(given.scope())? {
                Value::Null => usize::MAX,
                Value::Int(rows) => usize::try_from(rows).ok()?,
                _ => return None,
            },
        };
        // A row that is but counted is not read.
        let is_read = selection.gives == Gives::Rows || selection.access.beside.is_some();
        let steps_max = if is_read { STEPS_MAX } else { 16 * STEPS_MAX };
        Some(Self { backwards: selection.backwards, limit, steps_max })
    }
}

impl Short {
    /// The key that `key` is in a run.
    ///
    /// # Errors
    /// Those of encoding it.
    pub(in crate::short) fn sought(&self, key: &Key, given: Given<'_>) -> Result<Sought> {
        let mut values = Vec::with_capacity(key.len());
        for part in key {
            match part.evaluate(given.scope()) {
                None => return Ok(Sought::NotShort),
                Some(Value::Null) => return Ok(Sought::Nothing),
                Some(value) => values.push(value),
            }
        }
        let mut encoded = Vec::with_capacity(16);
        self.table.encode(&values, &mut encoded)?;
        Ok(Sought::Key(encoded))
    }

    /// What `take` makes of `rows`, those that it takes; `None` where only a plan knows.
    pub(in crate::short) fn each<T>(
        &self,
        rows: Rows<'_>,
        given: Given<'_>,
        find: impl Fn(&[u8]) -> Result<Option<RowRef>>,
        mut take: impl FnMut(RowRef) -> Result<Taken<T>>,
    ) -> Result<Option<Vec<T>>> {
        let Rows { view, access, wanted } = rows;
        match &access.path {
            Path::Keys(keys) => {
                let (mut taken, mut seen) = (Vec::with_capacity(keys.len()), Vec::with_capacity(keys.len()));
                for key in keys {
                    let key = match self.sought(key, given)? {
                        Sought::Key(key) => key,
                        Sought::Nothing => continue,
                        Sought::NotShort => return Ok(None),
                    };
                    if taken.len() >= wanted.limit {
                        continue;
                    }
                    let Some(row) = find(&key)?.filter(|row| !seen.contains(row)) else { continue };
                    seen.push(row);
                    match take(row)? {
                        Ok(of_row) => taken.extend(of_row),
                        Err(NeedsPlan) => return Ok(None),
                    }
                }
                Ok(Some(taken))
            }
            Path::Range(bounds) => {
                let (equal, low, high) = match bounds.evaluate(given) {
                    Evaluated::Bounds { equal, low, high } => (equal, low, high),
                    Evaluated::Nothing => return Ok(Some(Vec::new())),
                    Evaluated::NotShort => return Ok(None),
                };
                let range = self.table.range(equal, low, high)?;
                let Wanted { backwards, limit, steps_max } = wanted;
                let request = RangeRequest { id: self.table.key(), range: &range, backwards, limit, steps_max };
                let mut needs_plan = false;
                let taken = point::rows_between(view, request, |row| {
                    Ok(match take(row)? {
                        Ok(of_row) => of_row,
                        Err(NeedsPlan) => {
                            needs_plan = true;
                            None
                        }
                    })
                })?;
                Ok(taken.filter(|_| !needs_plan))
            }
        }
    }

    /// The rows of `access`, with the values of all columns; `None` where only a plan knows.
    pub(in crate::short) fn located(
        &self,
        transaction: &Transaction,
        access: &Access,
        given: Given<'_>,
    ) -> Result<Located> {
        let view = self.view(transaction)?;
        let find = |key: &[u8]| transaction.find_key(&view, self.table.key(), key);
        self.each(Rows { view: &view, access, wanted: Wanted::ALL }, given, find, |row| {
            let values = self.row_of(&view, row)?;
            Ok(holds(access.beside.as_ref(), &values, given).map(|holds| holds.then_some((row, values))))
        })
    }
}
