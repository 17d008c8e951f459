//! Keys of one stream in order, and the join of two.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::delta_store::DeltaGeneration;
use crate::error::Result;
use crate::ids::RowRef;
use crate::main_store::Run;
use crate::schema::TableSchema;

use super::part::{KeyAt, KeyReader, LoadedPart, Part};

/// The (key, row) pairs of a run or a delta in the order of the sort key.
/// Rows of all times are there, deleted ones too: the caller knows which count.
#[derive(Debug)]
pub struct KeyStream {
    reader: KeyReader,
    parts: std::vec::IntoIter<Part>,
    current: Option<(Part, LoadedPart)>,
    position: u32,
    /// Keys above it are not wanted.
    last: Option<Box<[u8]>>,
}

impl KeyStream {
    /// The keys of `run`.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn of_run(schema: &TableSchema, run: &Run) -> Result<Self> {
        Self::of_run_between(schema, run, &[], None)
    }

    /// The keys of `run` from `first` to `last`, both included; segments outside are not read.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn of_run_between(schema: &TableSchema, run: &Run, first: &[u8], last: Option<&[u8]>) -> Result<Self> {
        let parts = run.segments().iter().map(|part| Part::segment(part.segment.clone(), part.range.clone()));
        Self::new(schema, parts.collect(), first, last)
    }

    /// The keys of the first `rows` rows of `delta`.
    ///
    /// # Errors
    /// Internal when there are not as many rows.
    pub fn of_delta(schema: &TableSchema, delta: &Arc<DeltaGeneration>, rows: u32) -> Result<Self> {
        Self::of_delta_between(schema, delta, rows, &[], None)
    }

    /// As [`KeyStream::of_delta`], from `first` to `last`, both included.
    ///
    /// # Errors
    /// Internal when there are not as many rows.
    pub fn of_delta_between(
        schema: &TableSchema,
        delta: &Arc<DeltaGeneration>,
        rows: u32,
        first: &[u8],
        last: Option<&[u8]>,
    ) -> Result<Self> {
        Self::new(schema, vec![Part::delta(delta.clone(), rows)], first, last)
    }

    fn new(schema: &TableSchema, parts: Vec<Part>, first: &[u8], last: Option<&[u8]>) -> Result<Self> {
        let reader = KeyReader::of_sort_key(schema);
        let last = last.map(Box::from);
        let mut stream = Self { reader, parts: parts.into_iter(), current: None, position: 0, last };
        stream.seek(first)?;
        Ok(stream)
    }

    /// The pair at hand; `None` at the end.
    #[must_use]
    pub fn peek(&self) -> Option<(KeyAt<'_>, RowRef)> {
        let (part, rows) = self.current.as_ref()?;
        Some((rows.key(self.position), part.row_ref(rows.offset(self.position))))
    }

    /// Moves to the next pair.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn advance(&mut self) -> Result<()> {
        self.position += 1;
        self.settle(&[])
    }

    /// Moves ahead to the first pair whose key is at or above `key`. Segments that end below it are not read.
    ///
    /// # Errors
    /// Io or Corrupt.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        if let Some((_, rows)) = &self.current {
            self.position = rows.seek(self.position, key);
        }
        self.settle(key)
    }

    /// Goes on to the parts behind when the one at hand has no row left, and ends above the last key.
    fn settle(&mut self, key: &[u8]) -> Result<()> {
        while self.current.as_ref().is_none_or(|(_, rows)| self.position >= rows.len) {
            let Some(part) = self.parts.next() else {
                self.current = None;
                return Ok(());
            };
            if part.bounds().is_some_and(|(_, max)| max < key) {
                continue;
            }
            if let (Some((min, _)), Some(last)) = (part.bounds(), &self.last)
                && min > &last[..]
            {
                self.end();
                return Ok(());
            }
            let rows = self.reader.load(&part)?;
            self.position = rows.seek(0, key);
            self.current = Some((part, rows));
        }
        let above = |last: &[u8]| self.peek().is_some_and(|(key, _)| *key > *last);
        if self.last.as_deref().is_some_and(above) {
            self.end();
        }
        Ok(())
    }

    fn end(&mut self) {
        self.current = None;
        self.parts = Vec::new().into_iter();
    }

    /// Takes all rows with the key at hand.
    fn take_group(&mut self, key: &[u8], rows: &mut Vec<RowRef>) -> Result<()> {
        rows.clear();
        while let Some((at, row)) = self.peek() {
            if *at != *key {
                break;
            }
            rows.push(row);
            self.advance()?;
        }
        Ok(())
    }
}

/// The first key that a row of `a` and a row of `b` have which `accept` takes together. Parts of one stream that lie
/// between keys of the other are skipped unread.
///
/// # Errors
/// Io or Corrupt.
pub fn first_common_key(
    a: KeyStream,
    b: KeyStream,
    accept: impl Fn(RowRef, RowRef) -> bool,
) -> Result<Option<Vec<u8>>> {
    first_common(a, b, |left, right| Ok(accept(left, right)))
}

/// As [`first_common_key`], with an `accept` that may fail.
pub(super) fn first_common(
    mut a: KeyStream,
    mut b: KeyStream,
    mut accept: impl FnMut(RowRef, RowRef) -> Result<bool>,
) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::new();
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    while let (Some((key_a, _)), Some((key_b, _))) = (a.peek(), b.peek()) {
        key.clear();
        match key_a.cmp(&*key_b) {
            Ordering::Less => {
                key.extend_from_slice(&key_b);
                a.seek(&key)?;
            }
            Ordering::Greater => {
                key.extend_from_slice(&key_a);
                b.seek(&key)?;
            }
            Ordering::Equal => {
                key.extend_from_slice(&key_a);
                a.take_group(&key, &mut of_a)?;
                b.take_group(&key, &mut of_b)?;
                for (left, right) in of_a.iter().flat_map(|left| of_b.iter().map(move |right| (*left, *right))) {
                    if accept(left, right)? {
                        return Ok(Some(key));
                    }
                }
            }
        }
    }
    Ok(None)
}
