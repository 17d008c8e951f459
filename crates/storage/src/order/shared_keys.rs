//! Keys that two rows of runs share: by the order of the runs and their key filters, or through their key indexes.
//!
//! Indexes are joined by the order that both have, that of the key, or of hashes where both are of an older format. Of
//! two of different orders, the keys of one are looked up in the other.

use std::sync::Arc;

use mainstem_kernels::bitmap;

use super::cursor::Cursor;
use super::key_stream::{KeyStream, first_common};
use super::picks::Pick;
use crate::error::{Error, Result};
use crate::ids::{KeyId, RowRef};
use crate::main_store::{Run, RunIndex, RunSegment};
use crate::row::key::{HashedKey, hash_key};
use crate::schema::TableSchema;

use super::part::{KeyReader, Part, PartRows};

/// The first key `id`, in the order of the runs' keys or hashes, that a row of `a` and a row of `b` have which `accept`
/// takes together. Rows of all times are there, deleted ones too. Runs that are not in the order of the key are joined
/// by their indexes.
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
    match (of_a.is_by_hash(), of_b.is_by_hash()) {
        (false, true) => return first_looked_up(schema, (a, of_a), (b, of_b), accept),
        (true, false) => return first_looked_up(schema, (b, of_b), (a, of_a), |right, left| accept(left, right)),
        _ => {}
    }
    let mut shared = None;
    let streams = (entries_of(of_a)?, entries_of(of_b)?);
    first_common(streams.0, streams.1, |left, right| {
        let (Some(left), Some(right)) = (row_of(a, of_a, left)?, row_of(b, of_b, right)?) else { return Ok(false) };
        if accept(left.1, right.1) {
            shared = shared_key(schema, id, left, right)?;
        }
        Ok(shared.is_some())
    })?;
    Ok(shared)
}

/// As [`first_shared_key`], where the index of the run `sorted` is in the order of keys, and that of `hashed` of
/// hashes.
fn first_looked_up(
    schema: &TableSchema,
    (sorted, keys): (&Run, &RunIndex),
    (hashed, index): (&Run, &RunIndex),
    accept: impl Fn(RowRef, RowRef) -> bool,
) -> Result<Option<Vec<u8>>> {
    let mut stream = entries_of(keys)?;
    while let Some((key, entry)) = stream.peek() {
        if let Some((_, row)) = row_of(sorted, keys, entry)?
            && hashed.find_indexed(schema, index, HashedKey::of(&key), |_, other| accept(row, other))?.is_some()
        {
            return Ok(Some(key.to_vec()));
        }
        stream.advance()?;
    }
    Ok(None)
}

fn entries_of(index: &RunIndex) -> Result<KeyStream> {
    KeyStream::of_run(index.schema(), index.entries())
}

/// As [`first_shared_key`] of runs in the order of the key: the keys of `few` are looked up in the filters of `many`,
/// whose keys are then not read, but for the few that a filter does not deny. Segments that reach into no other are not
/// read.
fn first_by_filters(
    schema: &TableSchema,
    few: &Run,
    many: &Run,
    accept: impl Fn(RowRef, RowRef) -> bool,
) -> Result<Option<Vec<u8>>> {
    let reader = KeyReader::of_sort_key(schema);
    let (mut hashes, mut left) = (Vec::new(), Vec::new());
    // Segments of `many` that end below all keys to come.
    let mut passed = 0;
    for part in few.segments() {
        let part = Part::segment(part.segment.clone(), part.range.clone());
        let (mut loaded, mut from) = (None, 0);
        for (at, other) in many.segments().iter().enumerate().skip(passed) {
            let bounds = other.segment.meta().key_bounds.as_ref();
            if let (Some(theirs), Some((least, greatest))) = (bounds, part.bounds()) {
                if *theirs.max < *least {
                    passed = at + 1;
                    continue;
                }
                if *greatest < *theirs.min {
                    break;
                }
            }
            let rows = match &loaded {
                Some(rows) => rows,
                None => loaded.insert(reader.load(&part)?),
            };
            // A key where two segments meet may be in both.
            from = bounds.map_or(from, |theirs| rows.seek(from, &theirs.min));
            let end = bounds.map_or(rows.len, |theirs| rows.seek_behind(from, &theirs.max));
            hashes.clear();
            hashes.extend((from..end).map(|position| hash_key(&rows.key(position))));
            let mut maybe = bitmap::full(hashes.len());
            if let Some(filter) = other.segment.key_filter()? {
                filter.may_contain_many(&hashes, &mut maybe);
            }
            left.clear();
            bitmap::indices(&maybe, &mut left);
            for position in left.iter().map(|number| from + number) {
                let (key, row) = (rows.key(position), part.row_ref(rows.offset(position)));
                for offset in other.segment.find_key(schema, &key)? {
                    if other.range.contains(&offset) && accept(row, RowRef::new(other.segment.id(), offset)) {
                        return Ok(Some(key.to_vec()));
                    }
                }
            }
        }
    }
    Ok(None)
}

/// A key `id` that two rows of `runs` have, all of which have an index for it in the same order; the first one in that.
///
/// # Errors
/// Io or Corrupt; Internal for indexes in different orders.
pub fn first_repeated_key(schema: &TableSchema, id: KeyId, runs: &[Arc<Run>]) -> Result<Option<Vec<u8>>> {
    let index = |run: &Arc<Run>| run.index(id).cloned().ok_or_else(|| run.without_index(schema, id));
    let indexes = runs.iter().map(index).collect::<Result<Vec<_>>>()?;
    let Some(first) = indexes.iter().find(|index| !index.entries().is_empty()) else { return Ok(None) };
    if indexes.iter().any(|index| !index.entries().is_empty() && index.is_by_hash() != first.is_by_hash()) {
        return Err(Error::internal("runs of one load have key indexes in different orders"));
    }
    let entries: Vec<Arc<Run>> = indexes.iter().map(|index| index.entries().clone()).collect();
    let mut repeated = None;
    entries_in_order(first.schema(), &entries)?.first_equal_pair(|cursor, left, right| {
        if let (Some(left), Some(right)) = (row_at(cursor, runs, left)?, row_at(cursor, runs, right)?) {
            repeated = shared_key(schema, id, left, right)?;
        }
        Ok(repeated.is_some())
    })?;
    Ok(repeated)
}

/// A cursor over the entries of key indexes of `schema`, a stream each.
///
/// # Errors
/// Io or Corrupt.
pub fn entries_in_order(schema: &TableSchema, indexes: &[Arc<Run>]) -> Result<Cursor> {
    let parts = |index: &Arc<Run>| -> Vec<Part> {
        index.segments().iter().map(|part| Part::segment(part.segment.clone(), part.range.clone())).collect()
    };
    Cursor::new(KeyReader::of_sort_key(schema), indexes.iter().map(parts).collect())
}

/// A row and the segment it is in.
type Held<'a> = (&'a RunSegment, RowRef);

/// The row of `run` that `entry` of its index stands for.
fn row_of<'a>(run: &'a Run, index: &RunIndex, entry: RowRef) -> Result<Option<Held<'a>>> {
    let part =
        index.entries().segment(entry.container()).ok_or_else(|| Error::internal("an entry outside its key index"))?;
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
