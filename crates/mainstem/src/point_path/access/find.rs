//! Rows of an access path.
//!
//! Comes in: the path, the values of a run, a view. Goes out: what the caller makes of the rows, one by one; or that
//! only a plan knows, because a value is not simple, or because they are too many.

use mainstem_storage::Result;
use mainstem_storage::ids::RowRef;
use mainstem_storage::point::{self, PointTable, RangeRequest};
use mainstem_storage::row::Value;
use mainstem_storage::row::key::KeyRange;
use mainstem_storage::version::TableView;

use super::{Key, Path, STEPS_MAX};
use crate::point_path::condition::NeedsPlan;
use crate::point_path::expression::Expression;
use crate::point_path::values::{Given, Scope};

impl Path {
    /// Whether all of its values in `scope` are such as a plan would have.
    pub(in crate::point_path) fn is_right(&self, scope: Scope<'_>) -> bool {
        match self {
            Self::Keys(keys) => keys.iter().flatten().all(|part| part.evaluate(scope).is_some()),
            Self::Ranges(bounds) => bounds.is_right(scope),
        }
    }
}

/// What becomes of a row: something, or nothing because a condition is not fulfilled.
pub(in crate::point_path) type Taken<T> = std::result::Result<Option<T>, NeedsPlan>;

/// The encoded key.
pub(in crate::point_path) enum Sought {
    Key(Vec<u8>),
    /// A part of it is NULL: no row has it.
    Nothing,
    /// Only a plan knows.
    NotShort,
}

/// Which rows of a view are asked for.
#[derive(Clone, Copy)]
pub(in crate::point_path) struct Rows<'a> {
    pub(in crate::point_path) table: &'a PointTable,
    pub(in crate::point_path) view: &'a TableView,
    pub(in crate::point_path) path: &'a Path,
    pub(in crate::point_path) wanted: Wanted,
}

/// How many rows of an access path, and from which end.
#[derive(Clone, Copy)]
pub(in crate::point_path) struct Wanted {
    pub(in crate::point_path) backwards: bool,
    pub(in crate::point_path) limit: usize,
    pub(in crate::point_path) steps_max: usize,
}

impl Wanted {
    pub(in crate::point_path) const ALL: Self = Self { backwards: false, limit: usize::MAX, steps_max: STEPS_MAX };

    /// As many as LIMIT says, from the end that ORDER BY says; `None` where only a plan knows.
    pub(in crate::point_path) fn rows(limit: Option<&Expression>, backwards: bool, given: Given<'_>) -> Option<Self> {
        let limit = match limit.map(|limit| limit.evaluate(given.scope())) {
            None => usize::MAX,
            Some(rows) => match rows? {
                Value::Null => usize::MAX,
                Value::Int(rows) => usize::try_from(rows).ok()?,
                _ => return None,
            },
        };
        Some(Self { backwards, limit, ..Self::ALL })
    }
}

/// The key that `key` is in a run.
///
/// # Errors
/// Those of encoding it.
pub(in crate::point_path) fn sought(table: &PointTable, key: &Key, scope: Scope<'_>) -> Result<Sought> {
    let mut values = Vec::with_capacity(key.len());
    for part in key {
        match part.evaluate(scope) {
            None => return Ok(Sought::NotShort),
            Some(value) => values.push(value),
        }
    }
    if values.iter().any(Value::is_null) {
        return Ok(Sought::Nothing);
    }
    let mut encoded = Vec::with_capacity(16);
    table.encode(&values, &mut encoded)?;
    Ok(Sought::Key(encoded))
}

/// What `take` makes of `rows`, those that it takes; `None` where only a plan knows.
pub(in crate::point_path) fn each<T>(
    rows: Rows<'_>,
    scope: Scope<'_>,
    find: impl Fn(&[u8]) -> Result<Option<RowRef>>,
    mut take: impl FnMut(RowRef) -> Result<Taken<T>>,
) -> Result<Option<Vec<T>>> {
    let Rows { table, path, wanted, .. } = rows;
    match path {
        Path::Keys(keys) => {
            let (mut taken, mut seen) = (Vec::with_capacity(keys.len()), Vec::with_capacity(keys.len()));
            for key in keys {
                let key = match sought(table, key, scope)? {
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
        Path::Ranges(bounds) => match bounds.evaluate(table, scope)? {
            None => Ok(None),
            Some(mut ranges) => {
                if wanted.backwards {
                    ranges.reverse();
                }
                between(rows, &ranges, take)
            }
        },
    }
}

/// As [`each`], of the rows whose keys are in `ranges`, one range after the other.
fn between<T>(
    rows: Rows<'_>,
    ranges: &[KeyRange],
    mut take: impl FnMut(RowRef) -> Result<Taken<T>>,
) -> Result<Option<Vec<T>>> {
    let Rows { table, view, wanted: Wanted { backwards, limit, steps_max }, .. } = rows;
    let (id, mut all, mut looked_at) = (table.found_by()?, Vec::new(), 0);
    for range in ranges {
        let (limit, steps_max) = (limit - all.len(), steps_max - looked_at);
        if limit == 0 {
            break;
        }
        let request = RangeRequest { id, range, backwards, limit, steps_max };
        let mut needs_plan = false;
        let taken = point::rows_between(view, request, |row| {
            looked_at += 1;
            Ok(match if needs_plan { Ok(None) } else { take(row)? } {
                Ok(of_row) => of_row,
                Err(NeedsPlan) => {
                    needs_plan = true;
                    None
                }
            })
        })?;
        let Some(taken) = taken.filter(|_| !needs_plan) else { return Ok(None) };
        if all.is_empty() {
            all = taken;
        } else {
            all.extend(taken);
        }
    }
    Ok(Some(all))
}
