//! What chunks of a file take in memory with the arrays that are made of them, as its first rows tell.
//!
//! Comes in: the first bytes of a file, and its columns. Goes out: how long a row is, and how many bytes of memory a
//! byte of the file takes. Values may have more bytes in an array than in the file: a NULL of a BIGINT has 8 there, and
//! here the delimiter behind it. It does not own: how much memory there is, and who gets it.

use arrow::datatypes::DECIMAL64_MAX_PRECISION;
use mainstem_kernels::csv::{Marks, find_separators};
use mainstem_storage::schema::DataType;

use super::columns::is_joined;
use super::{Conversion, CsvOptions};

/// [`RowSizes::copies`] are counted in parts of this size.
const PARTS: u64 = 256;
/// Bytes of a text in an array beside its own: where it ends, or its view.
const OFFSET_BYTES: u64 = 4;
const VIEW_BYTES: u64 = 16;
/// Bytes that are noted of a NULL until the array is made, with room to grow.
const NULL_BYTES: u64 = 8;

/// The sizes of rows, about.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowSizes {
    /// Bytes of a row in the file, where that is known.
    pub(super) row_bytes: Option<u64>,
    /// Bytes that a byte of the file takes with its arrays, in [`PARTS`]: at least two.
    copies: u64,
}

impl RowSizes {
    pub(super) const UNKNOWN: Self = Self { row_bytes: None, copies: 2 * PARTS };

    /// Those of the rows of `sample`, the beginning of a file that looks like `options`, which become values as
    /// `conversion` says: as storage takes them for a load if `is_load`.
    pub(super) fn of_sample(sample: &[u8], options: &CsvOptions, conversion: &Conversion<'_>, is_load: bool) -> Self {
        let marks = Marks { delimiter: options.delimiter, quote: options.quote };
        let mut separators = Vec::new();
        find_separators(sample, marks, false, &mut separators);
        let is_row_end = |at: &u32| sample.get(*at as usize) == Some(&b'\n');
        let begin = if options.header { separators.iter().position(is_row_end).map_or(0, |at| at + 1) } else { 0 };
        let end = separators.iter().rposition(is_row_end).map_or(0, |at| at + 1);
        let mut start = begin.checked_sub(1).and_then(|at| separators.get(at)).map_or(0, |at| u64::from(*at) + 1);
        let first = start;
        // Of each column its fields with the separators behind them, and how many are empty.
        let mut fields: Vec<(u64, u64)> = Vec::new();
        let (mut rows, mut column) = (0, 0);
        for at in separators.get(begin..end).unwrap_or_default() {
            let bytes = u64::from(*at) + 1 - start;
            start = u64::from(*at) + 1;
            if fields.len() == column {
                fields.push((0, 0));
            }
            if let Some((all, empty)) = fields.get_mut(column) {
                (*all, *empty) = (*all + bytes, *empty + u64::from(bytes == 1));
            }
            let ends_row = is_row_end(at);
            rows += u64::from(ends_row);
            column = if ends_row { 0 } else { column + 1 };
        }
        let file = start - first;
        if rows == 0 {
            return Self::UNKNOWN;
        }
        // Rows that are left out have others read by way of texts, which gives other forms.
        let is_load = is_load && !conversion.ignores_rows();
        let array_bytes = |(at, data_type)| {
            let (bytes, empty) = fields.get(at).copied().unwrap_or_default();
            let values = match fixed_bytes(data_type, is_load) {
                Some(bytes) => rows * bytes,
                None => rows * if is_load { OFFSET_BYTES } else { VIEW_BYTES } + bytes,
            };
            values * if is_joined(data_type) { 2 } else { 1 } + empty * NULL_BYTES
        };
        let arrays: u64 = conversion.wanted().map(|(at, column)| (at, column.data_type)).map(array_bytes).sum();
        Self { row_bytes: Some(file / rows), copies: PARTS + (arrays * PARTS / file.max(1)).max(PARTS) }
    }

    /// Bytes that `bytes` bytes of the file take with their arrays.
    pub(super) fn held(self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.copies) / PARTS
    }

    /// Bytes of the file that take `memory` with their arrays.
    pub(super) fn within(self, memory: u64) -> u64 {
        (memory / self.copies).saturating_mul(PARTS)
    }
}

/// Bytes of a value of `data_type` in an array, if they are the same for all.
fn fixed_bytes(data_type: DataType, is_load: bool) -> Option<u64> {
    match data_type {
        DataType::Decimal { precision, .. } if is_load && precision <= DECIMAL64_MAX_PRECISION => Some(8),
        _ => data_type.arrow().primitive_width().map(|bytes| bytes as u64),
    }
}
