//! The rows of a generation in sort-key order.
//!
//! 1. A full block is sorted once, by whoever needs it first; the open block each time.
//! 2. The blocks' permutations are merged pairwise, the earlier block first among equals: ties stand in offset order.
//! 3. The longest permutation made is kept. A shorter one is what it says of the lower offsets. One at a time sorts:
//!    who asks for the same meanwhile waits for it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::column::BLOCK_ROWS;
use super::generation::DeltaGeneration;
use crate::error::{Error, Result};
use crate::limits;
use crate::row::key::{KeyCodec, Keys};
use crate::schema::{Column, TableSchema};

/// How a generation is ordered.
pub(super) struct SortOrder {
    /// `None` without a sort key: rows stand in arrival order.
    codec: Option<KeyCodec>,
    columns: Vec<Column>,
    longest: Mutex<Option<Arc<[u32]>>>,
    /// Held by whoever sorts.
    sorting: Mutex<()>,
}

impl SortOrder {
    pub(super) fn new(schema: &TableSchema) -> Self {
        let codec = (!schema.sort_key.is_empty()).then(|| KeyCodec::new(schema, &schema.sort_key));
        let columns = schema.sort_key.iter().filter_map(|&id| schema.column(id)).cloned().collect();
        Self { codec, columns, longest: Mutex::default(), sorting: Mutex::default() }
    }

    /// The order of the first `upto_rows` rows, if the longest permutation has them.
    fn known(&self, upto_rows: u32) -> Option<Arc<[u32]>> {
        let longest = self.longest.lock().clone().filter(|longest| longest.len() >= upto_rows as usize)?;
        if longest.len() == upto_rows as usize {
            return Some(longest);
        }
        Some(longest.iter().copied().filter(|&offset| offset < upto_rows).collect())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.longest.lock().as_ref().map_or(0, |longest| size_of_val(longest.as_ref()))
    }
}

impl DeltaGeneration {
    /// The offsets of the first `upto_rows` published rows in sort-key order, ties by offset; deleted rows are among
    /// them. Without a sort key that is offset order. Errors: Internal if the rows are not published.
    pub fn sorted_offsets(&self, upto_rows: u32) -> Result<Arc<[u32]>> {
        if upto_rows > self.rows() {
            return Err(Error::internal(format!("{self:?} asked to order {upto_rows} rows")));
        }
        let Some(codec) = &self.order.codec else { return Ok((0..upto_rows).collect()) };
        if let Some(sorted) = self.order.known(upto_rows) {
            return Ok(sorted);
        }
        let _sorting = self.order.sorting.lock();
        if let Some(sorted) = self.order.known(upto_rows) {
            return Ok(sorted);
        }
        let sorted: Arc<[u32]> = self.sort(codec, upto_rows)?.into();
        let mut longest = self.order.longest.lock();
        if longest.as_ref().is_none_or(|l| l.len() < sorted.len()) {
            *longest = Some(Arc::clone(&sorted));
        }
        Ok(sorted)
    }

    fn sort(&self, codec: &KeyCodec, upto_rows: u32) -> Result<Vec<u32>> {
        let mut keys: Vec<Keys> = Vec::new();
        let mut runs: Vec<Vec<u32>> = Vec::new();
        for (number, range) in self.block_ranges(upto_rows).enumerate() {
            let arrays = self.order.columns.iter().map(|column| self.read(column, range.clone()));
            let block_keys = codec.encode_arrays(&arrays.collect::<Result<Vec<_>>>()?)?;
            runs.push(match self.blocks.get(number) {
                Some(block) if range.len() == BLOCK_ROWS => {
                    let narrow = || block_keys.sorted_permutation().into_iter().map(|row| row as u16).collect();
                    block.order.get_or_init(narrow).iter().map(|&row| range.start + u32::from(row)).collect()
                }
                _ => block_keys.sorted_permutation().into_iter().map(|row| range.start + row).collect(),
            });
            keys.push(block_keys);
        }
        let key = |offset: u32| keys[(offset / limits::DELTA_BLOCK_ROWS) as usize].get(offset as usize % BLOCK_ROWS);
        while runs.len() > 1 {
            runs = pairwise(runs, |left, right| key(left) <= key(right));
        }
        Ok(runs.pop().unwrap_or_default())
    }
}

/// Merges each run with its right neighbour. `first` tells whether its left argument goes first.
fn pairwise(runs: Vec<Vec<u32>>, first: impl Fn(u32, u32) -> bool) -> Vec<Vec<u32>> {
    let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
    let mut runs = runs.into_iter();
    while let Some(left) = runs.next() {
        merged.push(match runs.next() {
            Some(right) => merge(left, &right, &first),
            None => left,
        });
    }
    merged
}

fn merge(mut left: Vec<u32>, right: &[u32], first: &impl Fn(u32, u32) -> bool) -> Vec<u32> {
    let apart = left.last().zip(right.first()).is_none_or(|(&l, &r)| first(l, r));
    if apart {
        left.extend_from_slice(right);
        return left;
    }
    let mut out = Vec::with_capacity(left.len() + right.len());
    let (mut l, mut r) = (left.iter().copied().peekable(), right.iter().copied().peekable());
    while let (Some(&a), Some(&b)) = (l.peek(), r.peek()) {
        if first(a, b) {
            out.push(a);
            l.next();
        } else {
            out.push(b);
            r.next();
        }
    }
    out.extend(l);
    out.extend(r);
    out
}
