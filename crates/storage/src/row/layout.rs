//! Where each column stands in a row (`docs/formats/row.md`), and the check that foreign bytes are such a row.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::ColumnId;
use crate::limits;
use crate::schema::{DataType, TableSchema};

use super::value::{normal_f32, normal_f64};

/// Largest precision whose unscaled values all fit an `i64`.
pub(super) const DECIMAL_NARROW_PRECISION: u8 = 18;

/// One column's place in a row.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// The column.
    pub(super) id: ColumnId,
    /// Its type.
    pub(super) data_type: DataType,
    /// Whether NULL is allowed.
    pub(super) nullable: bool,
    /// First byte of the slot, from the start of the row.
    pub(super) at: usize,
    /// The least and the greatest whole number that the column takes as it is: none lies between them where it takes
    /// none.
    whole: (i64, i64),
}

impl Slot {
    /// Whether the column takes the whole number `value` as it is.
    #[inline]
    pub(super) fn takes(&self, value: i64) -> bool {
        self.whole.0 <= value && value <= self.whole.1
    }
}

/// The row format of one schema version: null bitmap, one fixed slot per column, variable area.
pub struct RowLayout {
    schema: Arc<TableSchema>,
    slots: Vec<Slot>,
    fixed_bytes: usize,
    has_variable: bool,
}

impl RowLayout {
    /// Lays out the columns of `schema` in their order.
    #[must_use]
    pub fn new(schema: &Arc<TableSchema>) -> Arc<Self> {
        let mut at = schema.columns.len().div_ceil(64) * 8;
        let mut slots = Vec::with_capacity(schema.columns.len());
        for column in &schema.columns {
            let data_type = column.data_type;
            let whole = match data_type {
                DataType::SmallInt | DataType::Integer | DataType::BigInt => int_limits(data_type),
                _ => (0, -1),
            };
            slots.push(Slot { id: column.id, data_type, nullable: column.nullable, at, whole });
            at += slot_bytes(data_type);
        }
        let has_variable = slots.iter().any(|s| is_variable(s.data_type));
        Arc::new(Self { schema: schema.clone(), slots, fixed_bytes: at, has_variable })
    }

    /// The schema version the rows have.
    #[must_use]
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// Bytes of null bitmap and slots: the size of a row without text.
    #[must_use]
    pub fn fixed_bytes(&self) -> usize {
        self.fixed_bytes
    }

    /// Whether rows have a variable area, so that their sizes differ.
    #[must_use]
    pub fn has_variable(&self) -> bool {
        self.has_variable
    }

    /// The slots in column order.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Position of the column with id `id`.
    pub(super) fn position(&self, id: ColumnId) -> Option<usize> {
        self.slots.iter().position(|s| s.id == id)
    }

    /// Whether rows of `other` are rows of this layout.
    pub(super) fn same_rows(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.schema.id == other.schema.id && self.schema.version == other.schema.version)
    }

    /// Checks that `bytes` is exactly one row of this layout, in its one form: bounds, NULL bits, ranges, UTF-8.
    pub(super) fn validate(&self, bytes: &[u8]) -> Result<()> {
        if bytes.len() < self.fixed_bytes || bytes.len() > limits::ROW_BYTES_MAX {
            return Err(damaged(format_args!("{} bytes cannot be a row of {}", bytes.len(), self.schema.name)));
        }
        let mut end = self.fixed_bytes;
        for (position, slot) in self.slots.iter().enumerate() {
            let field = &bytes[slot.at..slot.at + slot_bytes(slot.data_type)];
            if null_bit(bytes, position) {
                if !slot.nullable || field.iter().any(|b| *b != 0) {
                    return Err(damaged(format_args!("column {} has a wrong NULL", position + 1)));
                }
            } else if is_variable(slot.data_type) {
                end = validate_variable(bytes, field, slot.data_type, end)
                    .ok_or_else(|| damaged(format_args!("column {} points at no text", position + 1)))?;
            } else if !slot_is_valid(field, slot.data_type) {
                return Err(damaged(format_args!("column {} is outside its type", position + 1)));
            }
        }
        let bitmap = &bytes[..self.slots.len().div_ceil(64) * 8];
        let set: u32 = bitmap.iter().map(|b| b.count_ones()).sum();
        let known = (0..self.slots.len()).filter(|p| null_bit(bytes, *p)).count();
        if set as usize != known || end != bytes.len() {
            return Err(damaged(format_args!("{} bytes, but {end} belong to columns", bytes.len())));
        }
        Ok(())
    }
}

impl fmt::Debug for RowLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowLayout({} v{}, {} bytes)", self.schema.name, self.schema.version, self.fixed_bytes)
    }
}

/// Whether values of the type stand in the variable area.
pub(super) fn is_variable(data_type: DataType) -> bool {
    data_type.is_text() || data_type == DataType::Bytea
}

/// Whether the type is a decimal too wide for 8 bytes.
pub(super) fn is_wide(data_type: DataType) -> bool {
    matches!(data_type, DataType::Decimal { precision, .. } if precision > DECIMAL_NARROW_PRECISION)
}

/// Bytes of the type's slot.
pub(super) fn slot_bytes(data_type: DataType) -> usize {
    if is_wide(data_type) || data_type == DataType::Uuid { 16 } else { 8 }
}

/// The smallest unscaled value above DECIMAL(precision, _).
pub(crate) fn decimal_limit(precision: u8) -> i128 {
    10i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX)
}

/// Microseconds of a day: TIME is below. 24:00:00, which PostgreSQL has too, is refused: Arrow cannot show it.
const DAY_MICROS: i64 = 86_400_000_000;

/// Smallest and largest integer of an integer, date, time or timestamp type.
#[inline]
pub(crate) fn int_limits(data_type: DataType) -> (i64, i64) {
    match data_type {
        DataType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Integer | DataType::Date => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DataType::Time => (0, DAY_MICROS - 1),
        _ => (i64::MIN, i64::MAX),
    }
}

/// Bit `position` of the null bitmap at the start of `row`.
#[inline]
pub(super) fn null_bit(row: &[u8], position: usize) -> bool {
    row[position / 8] >> (position % 8) & 1 == 1
}

/// Eight bytes at `at`; zeros past the end, which checked rows never ask for.
#[inline]
pub(super) fn eight(row: &[u8], at: usize) -> [u8; 8] {
    row.get(at..).and_then(|r| r.first_chunk()).copied().unwrap_or_default()
}

/// Sixteen bytes at `at`; zeros past the end, which checked rows never ask for.
#[inline]
pub(super) fn sixteen(row: &[u8], at: usize) -> [u8; 16] {
    row.get(at..).and_then(|r| r.first_chunk()).copied().unwrap_or_default()
}

/// Offset and length that the slot of a text column holds.
#[inline]
pub(super) fn span(slot: [u8; 8]) -> (usize, usize) {
    let [a, b, c, d, e, f, g, h] = slot;
    (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]) as usize)
}

/// Bytes that are no row: the caller adds which file they came from.
pub(super) fn damaged(what: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, sqlstate::CORRUPT, format!("a stored row is damaged: {what}"))
}

/// End of the text that `field` names, if it starts at `expected`, stays inside `bytes` and is valid.
fn validate_variable(bytes: &[u8], field: &[u8], data_type: DataType, expected: usize) -> Option<usize> {
    let (at, length) = span(eight(field, 0));
    let end = at.checked_add(length)?;
    let text = bytes.get(at..end)?;
    let right = match data_type {
        DataType::Bytea => true,
        DataType::Char { .. } => std::str::from_utf8(text).is_ok() && !text.ends_with(b" "),
        _ => std::str::from_utf8(text).is_ok(),
    };
    (at == expected && right).then_some(end)
}

/// Whether `field` holds a value of a fixed-width type in its one form.
fn slot_is_valid(field: &[u8], data_type: DataType) -> bool {
    let int = i64::from_le_bytes(eight(field, 0));
    match data_type {
        DataType::Boolean => int == 0 || int == 1,
        DataType::Real => {
            let bits = int as u32;
            int as u64 == u64::from(bits) && normal_f32(f32::from_bits(bits)).to_bits() == bits
        }
        DataType::Double => normal_f64(f64::from_bits(int as u64)).to_bits() == int as u64,
        DataType::Decimal { precision, .. } => {
            let value = if is_wide(data_type) { i128::from_le_bytes(sixteen(field, 0)) } else { i128::from(int) };
            value.unsigned_abs() < decimal_limit(precision).unsigned_abs()
        }
        DataType::Uuid => true,
        _ => {
            let (lo, hi) = int_limits(data_type);
            (lo..=hi).contains(&int)
        }
    }
}
