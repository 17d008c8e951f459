//! The fields of one column.

use std::ops::Range;

/// The fields of one column of some rows.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) ends: &'a [u32],
    start: usize,
    pub(super) columns: usize,
    pub(super) column: usize,
    /// What stands before the line feed of each row and is no part of its last field.
    pub(super) before_line_feed: usize,
}

/// How a field that is no plain value is to be taken.
#[derive(Clone, Copy, Debug)]
pub struct Quoting<'a> {
    /// The byte around fields in quotes.
    pub quote: u8,
    /// The text of a NULL, which is not in quotes; it has none in it.
    pub null: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Those of column `column` of rows of `columns` columns in `bytes`: the first row begins at `start`, and fields
    /// end at `ends`, those of one row behind those of the row before. `has_carriage_returns` says that each row ends
    /// in a carriage return and a line feed.
    ///
    /// # Panics
    /// When there is no such column, or `ends` are not those of whole rows.
    #[must_use]
    pub fn new(
        bytes: &'a [u8],
        ends: &'a [u32],
        start: usize,
        (columns, column): (usize, usize),
        has_carriage_returns: bool,
    ) -> Self {
        assert!(column < columns && ends.len().is_multiple_of(columns), "{} ends of {columns} columns", ends.len());
        let before_line_feed = usize::from(has_carriage_returns && column + 1 == columns);
        Self { bytes, ends, start, columns, column, before_line_feed }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() / self.columns
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Where field `row` begins and ends.
    #[inline]
    pub(super) fn place(&self, row: usize) -> (usize, usize) {
        let at = row * self.columns + self.column;
        let start = if at == 0 { self.start } else { self.ends[at - 1] as usize + 1 };
        (start, self.ends[at] as usize - self.before_line_feed)
    }

    /// Field `row`, with its quotes.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize) -> &'a [u8] {
        let (start, end) = self.place(row);
        &self.bytes[start..end]
    }

    /// Field `row`, and all that stands behind it.
    #[inline]
    pub(super) fn with_rest(&self, row: usize) -> &'a [u8] {
        &self.bytes[self.place(row).0..]
    }
}

impl Quoting<'_> {
    /// What stands between the quotes of `field`, if they are its first byte and its last and it has no others.
    #[inline]
    #[must_use]
    pub fn inner<'f>(&self, field: &'f [u8]) -> Option<&'f [u8]> {
        let [first, inner @ .., last] = field else { return None };
        (*first == self.quote && *last == self.quote && !inner.contains(&self.quote)).then_some(inner)
    }
}

/// Appends what `parse` makes of each of `fields` to `values`, the default for NULL, whose rows go to `nulls`. False
/// when there is a field of which `parse` makes nothing, with something or nothing appended.
///
/// `parse` takes all bytes and where in them a value begins and ends.
#[inline]
pub fn each<T: Copy + Default>(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    values: &mut Vec<T>,
    nulls: &mut Vec<u32>,
    parse: impl Fn(&[u8], usize, usize) -> Option<T>,
) -> bool {
    values.reserve(fields.len());
    each_of(fields, quoting, 0..fields.len(), values, nulls, parse)
}

/// As [`each`], of `rows` alone.
#[inline]
pub(super) fn each_of<T: Copy + Default>(
    fields: Fields<'_>,
    quoting: Quoting<'_>,
    rows: Range<usize>,
    values: &mut Vec<T>,
    nulls: &mut Vec<u32>,
    parse: impl Fn(&[u8], usize, usize) -> Option<T>,
) -> bool {
    // A NULL that may be a value as well has to be looked for first.
    let is_null_empty = quoting.null.is_empty();
    for row in rows {
        let (start, end) = fields.place(row);
        if start > end || end > fields.bytes.len() {
            return false;
        }
        if is_null_empty && let Some(value) = parse(fields.bytes, start, end) {
            values.push(value);
            continue;
        }
        let field = &fields.bytes[start..end];
        if field == quoting.null {
            nulls.push(row as u32);
            values.push(T::default());
            continue;
        }
        let value = match quoting.inner(field) {
            Some(_) => parse(fields.bytes, start + 1, end - 1),
            None => parse(fields.bytes, start, end),
        };
        let Some(value) = value else { return false };
        values.push(value);
    }
    true
}
