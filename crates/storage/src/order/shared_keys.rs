//! Keys that two rows of runs share: by the order of the runs and their key filters, or through their key indexes.

use std::sync::Arc;

use mainstem_kernels::filter::BlockedBloom;

use super::cursor::{Cursor, Pick};
use super::index_writer::entries_in_order;
use super::key_stream::{KeyStream, first_common};
use crate::error::{Error, Result};
use crate::ids::{KeyId, RowRef};
use crate::main_store::{Run, RunSegment, index_schema};
use crate::row::key::hash_key;
use crate::schema::TableSchema;

use super::part::PartRows;

/// The first key `id`, in the order of the runs' keys or hashes, that a row of `a` and a row of `b` have which `accept` takes
/// together. Rows of all times are there, deleted ones too. Runs that are not in the order of the key are joined by hash.
///
/// # Errors
/// Io or Corrupt.
pub fn first_shared_key(
    schema: &TableSchema,
    id: KeyId,
    a: &Run,
    b: &Run,
    accept: impl Fn(RowRef, RowRef) -> bool,
) -> Result<Option<Vec<u8>>> {
    let (Some(of_a), Some(of_b)) = (a.index(id), b.index(id)) else {
        if !schema.is_order(schema.key_columns(id)) {
            return Err(a.without_index(schema, id));
        }
        return if a.rows() <= b.rows() {
            first_by_filters(schema, a, b, accept)
        } else {
            first_by_filters(schema, b, a, |right, left| accept(left, right))
        };
    };
    let mut shared = None;
    let streams = (KeyStream::of_run(index_schema(), of_a)?, KeyStream::of_run(index_schema(), of_b)?);
    first_common(streams.0, streams.1, |left, right| {
        let (Some(left), Some(right)) = (row_of(a, of_a, left)?, row_of(b, of_b, right)?) else { return Ok(false) };
        if accept(left.1, right.1) {
            shared = shared_key(schema, id, left, right)?;
        }
        Ok(shared.is_some())
    })?;
    Ok(shared)
}

/// As [`first_shared_key`] of runs in the order of the key: each key of `few` is looked up in the filters of `many`, whose keys are then
/// not read, but for the few that a filter does not deny.
fn first_by_filters(
    schema: &TableSchema,
    few: &Run,
    many: &Run,
    accept: impl Fn(RowRef, RowRef) -> bool,
) -> Result<Option<Vec<u8>>> {
    /// The last filter that was asked, and where its segment stands.
    struct Asked(usize, Option<Arc<BlockedBloom>>);

    let parts = many.segments();
    let bounds = |at: usize| parts.get(at).and_then(|part: &RunSegment| part.segment.meta().key_bounds.as_ref());
    let mut stream = KeyStream::of_run(schema, few)?;
    let mut asked: Option<Asked> = None;
    // Segments before it end below the key at hand.
    let mut first = 0;
    while let Some((key, row)) = stream.peek() {
        while bounds(first).is_some_and(|bounds| *bounds.max < *key) {
            first += 1;
        }
        if first == parts.len() {
            break;
        }
        if let Some(begin) = bounds(first).filter(|bounds| *bounds.min > *key).map(|bounds| bounds.min.clone()) {
            stream.seek(&begin)?;
            continue;
        }
        let hash = hash_key(key);
        for (at, part) in parts.iter().enumerate().skip(first) {
            if bounds(at).is_some_and(|bounds| *bounds.min > *key) {
                break;
            }
            let filter = match &asked {
                Some(Asked(number, filter)) if *number == at => filter,
                _ => &asked.insert(Asked(at, part.segment.key_filter()?)).1,
            };
            if filter.as_ref().is_some_and(|filter| !filter.may_contain(hash)) {
                continue;
            }
            for offset in part.segment.find_key(schema, key)? {
                if part.range.contains(&offset) && accept(row, RowRef::new(part.segment.id(), offset)) {
                    return Ok(Some(key.to_vec()));
                }
            }
        }
        stream.advance()?;
    }
    Ok(None)
}

/// A key `id` that two rows of `runs` have, all of which have an index for it; the first one in the order of hashes.
///
/// # Errors
/// Io or Corrupt.
pub fn first_repeated_key(schema: &TableSchema, id: KeyId, runs: &[Arc<Run>]) -> Result<Option<Vec<u8>>> {
    let index = |run: &Arc<Run>| run.index(id).cloned().ok_or_else(|| run.without_index(schema, id));
    let indexes = runs.iter().map(index).collect::<Result<Vec<_>>>()?;
    let mut repeated = None;
    entries_in_order(&indexes)?.first_equal_pair(|cursor, left, right| {
        if let (Some(left), Some(right)) = (row_at(cursor, runs, left)?, row_at(cursor, runs, right)?) {
            repeated = shared_key(schema, id, left, right)?;
        }
        Ok(repeated.is_some())
    })?;
    Ok(repeated)
}

/// A row and the segment it is in.
type Held<'a> = (&'a RunSegment, RowRef);

/// The row of `run` that `entry` of its index stands for.
fn row_of<'a>(run: &'a Run, index: &Run, entry: RowRef) -> Result<Option<Held<'a>>> {
    let part = index.segment(entry.container()).ok_or_else(|| Error::internal("an entry outside its key index"))?;
    run.indexed_row(&part.segment, entry.offset())
}

/// The row that the entry at `pick` stands for: stream `i` is the index of `runs[i]`.
fn row_at<'a>(cursor: &Cursor, runs: &'a [Arc<Run>], pick: Pick) -> Result<Option<Held<'a>>> {
    let stream = cursor.streams().get(pick.part as usize);
    match (&cursor.part(pick.part)?.rows, stream.and_then(|stream| runs.get(*stream))) {
        (PartRows::Segment(segment, _), Some(run)) => run.indexed_row(segment, pick.offset),
        _ => Err(Error::internal("an entry outside its key index")),
    }
}

/// Key `id` of both rows, if they have the same.
fn shared_key(schema: &TableSchema, id: KeyId, left: Held<'_>, right: Held<'_>) -> Result<Option<Vec<u8>>> {
    let key = |(part, row): Held<'_>| part.segment.key_of(schema, id, row.offset());
    let (left, right) = (key(left)?, key(right)?);
    Ok(left.filter(|left| right.as_ref() == Some(left)))
}
