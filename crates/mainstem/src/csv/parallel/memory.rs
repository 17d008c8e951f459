//! What chunks of a file take in memory with the arrays that are made of them, as its first rows tell.
//!
//! Comes in: the first bytes of a file, and its columns. Goes out: how long a row is, and how many bytes of memory a
//! byte of the file takes. Values may have more bytes in an array than in the file: a NULL of a BIGINT has 8 there, and
//! here the delimiter behind it. It does not own: how much memory there is, and who gets it.

use arrow::datatypes::DECIMAL64_MAX_PRECISION;
use mainstem_kernels::csv::{Marks, find_separators};
use mainstem_storage::schema::DataType;

use super::Conversion;

/// [`RowSizes::copies`] are counted in parts of this size.
const PARTS: u64 = 256;
/// Bytes of a text in an array beside its own: where it ends, or its view.
const OFFSET_BYTES: u64 = 4;
const VIEW_BYTES: u64 = 16;

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

    /// Those of the rows of `sample`, the beginning of a file, which become values as `conversion` says: as storage
    /// takes them for a load if `is_load`.
    pub(super) fn of_sample(sample: &[u8], marks: Marks, conversion: &Conversion<'_>, is_load: bool) -> Self {
        let mut separators = Vec::new();
        let rows = find_separators(sample, marks, false, &mut separators).line_feeds as u64;
        let file = separators.last().map_or(0, |at| u64::from(*at) + 1);
        if rows == 0 {
            return Self::UNKNOWN;
        }
        // Each field with the separator at its end; those of a column where all rows have as many.
        let fields = separators.len() / rows as usize;
        let mut field_bytes = vec![0; fields];
        let mut start = 0;
        for (nth, at) in separators.iter().enumerate() {
            if let Some(bytes) = field_bytes.get_mut(nth % fields) {
                *bytes += u64::from(*at) + 1 - start;
            }
            start = u64::from(*at) + 1;
        }
        let array_bytes = |(at, data_type)| match (fixed_bytes(data_type, is_load), field_bytes.get(at)) {
            (Some(bytes), _) => rows * bytes,
            (None, bytes) => rows * if is_load { OFFSET_BYTES } else { VIEW_BYTES } + bytes.copied().unwrap_or(0),
        };
        let arrays: u64 = conversion.wanted().map(|(at, column)| (at, column.data_type)).map(array_bytes).sum();
        Self { row_bytes: Some(file / rows), copies: PARTS + (arrays * PARTS / file).max(PARTS) }
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
