//! Primary keys that two rows of runs share: by the order of the runs, or through their key indexes.

use std::sync::Arc;

use super::cursor::{Cursor, Pick};
use super::index_writer::entries_in_order;
use super::key_stream::{KeyStream, first_common};
use crate::error::{Error, Result};
use crate::ids::RowRef;
use crate::main_store::{Run, RunSegment, index_schema};
use crate::schema::TableSchema;

use super::part::PartRows;

/// The first primary key, in the order of the runs' keys or hashes, that a row of `a` and a row of `b` have which `accept` takes
/// together. Rows of all times are there, deleted ones too. Runs of a table whose primary key is not its order are joined by hash.
///
/// # Errors
/// Io or Corrupt.
pub fn first_shared_key(
    schema: &TableSchema,
    a: &Run,
    b: &Run,
    accept: impl Fn(RowRef, RowRef) -> bool,
) -> Result<Option<Vec<u8>>> {
    let (Some(of_a), Some(of_b)) = (a.index(), b.index()) else {
        let streams = (KeyStream::of_run(schema, a)?, KeyStream::of_run(schema, b)?);
        return first_common(streams.0, streams.1, |left, right| Ok(accept(left, right)));
    };
    let mut shared = None;
    let streams = (KeyStream::of_run(index_schema(), of_a)?, KeyStream::of_run(index_schema(), of_b)?);
    first_common(streams.0, streams.1, |left, right| {
        let (Some(left), Some(right)) = (row_of(a, of_a, left)?, row_of(b, of_b, right)?) else { return Ok(false) };
        if accept(left.1, right.1) {
            shared = shared_key(schema, left, right)?;
        }
        Ok(shared.is_some())
    })?;
    Ok(shared)
}

/// A primary key that two rows of `runs` have, all of which have key indexes; the first one in the order of hashes.
///
/// # Errors
/// Io or Corrupt.
pub fn first_repeated_key(schema: &TableSchema, runs: &[Arc<Run>]) -> Result<Option<Vec<u8>>> {
    let indexes: Vec<Arc<Run>> = runs.iter().filter_map(|run| run.index().cloned()).collect();
    if indexes.len() != runs.len() {
        return Err(Error::internal("a run without a key index"));
    }
    let mut repeated = None;
    entries_in_order(&indexes)?.first_equal_pair(|cursor, left, right| {
        if let (Some(left), Some(right)) = (row_at(cursor, runs, left)?, row_at(cursor, runs, right)?) {
            repeated = shared_key(schema, left, right)?;
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

/// The primary key of both rows, if they have the same.
fn shared_key(schema: &TableSchema, left: Held<'_>, right: Held<'_>) -> Result<Option<Vec<u8>>> {
    let key = |(part, row): Held<'_>| part.segment.primary_key(schema, row.offset());
    let left = key(left)?;
    Ok((left == key(right)?).then_some(left))
}
