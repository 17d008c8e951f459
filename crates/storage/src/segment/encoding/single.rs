//! One row of a column of whose block only a few bytes are at hand.
//!
//! Comes in: what the metadata says of a column, and a [`Source`] of ranges of its block's body. Goes out: the value of
//! one row, the same that the open block gives. It asks for the bytes where the row's NULL bit, code and value lie, and
//! for no others.
//!
//! What opening a block proves of all rows is proved here of the one: damage is told, never followed.

use std::ops::Range;

use mainstem_kernels::{bitmap, bitpack, cast};

use super::constant::Constant;
use super::native::{Native, dispatch};
use super::sections::{Damage, padded};
use super::{Encoding, dictionary, frame, plain};
use crate::error::{Error, Result};
use crate::row::Value;
use crate::schema::DataType;

/// Ranges of a block's body.
pub(crate) trait Source {
    /// The bytes of `range`, verified.
    ///
    /// # Errors
    /// Corrupt, also for a range that the body has not; Io.
    fn bytes(&mut self, range: Range<usize>) -> Result<&[u8]>;

    /// The error for `damage`.
    fn damage(&self, damage: Damage) -> Error;
}

/// A column, as its metadata describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleRows<'a> {
    pub data_type: DataType,
    pub rows: usize,
    pub null_count: usize,
    pub encoding: &'a Encoding,
}

impl SingleRows<'_> {
    /// Row `row` of the block that `source` gives the body of.
    ///
    /// # Errors
    /// Corrupt or Io; Internal for a row that is not there.
    pub fn value(&self, source: &mut impl Source, row: usize) -> Result<Value> {
        if row >= self.rows {
            return Err(Error::internal(format!("row {row} of a block of {}", self.rows)));
        }
        let mut start = 0;
        if self.null_count == self.rows {
            return Ok(Value::Null);
        } else if self.null_count > self.rows {
            return Err(source.damage(Damage::new(0, "more NULLs than rows")));
        } else if self.null_count > 0 {
            let byte = row / 8;
            let valid = source.bytes(byte..byte + 1)?.first().is_some_and(|bits| bits >> (row % 8) & 1 == 1);
            if !valid {
                return Ok(Value::Null);
            }
            start = padded(bitmap::words(self.rows) * 8);
        }
        let found = match self.encoding {
            Encoding::Constant { value: Value::Null } => Err(Damage::new(0, "a constant NULL beside values")),
            Encoding::Constant { value } => Constant::open(self.data_type, value).map(|one| one.value().clone()),
            Encoding::FrameOfReference { reference, width } => {
                let code = code_at(source, start, u32::from(*width), row)?;
                frame::value_of(self.data_type, *reference, u32::from(*width), code, start)
            }
            Encoding::Dictionary { distinct, width, length_width } => {
                let (distinct, width) = (*distinct as usize, u32::from(*width));
                if distinct == 0 || distinct > self.rows || width != dictionary::code_width(distinct) {
                    let what = format!("{distinct} distinct values with codes of {width} bits");
                    return Err(source.damage(Damage::new(0, what)));
                }
                let code = code_at(source, start, width, row)? as usize;
                if code >= distinct {
                    return Err(source.damage(Damage::new(start, "a code outside the dictionary")));
                }
                let values = padded(start + bitpack::packed_bytes(self.rows, width));
                return plain_value(self.data_type, source, values, distinct, *length_width, code);
            }
            Encoding::Plain { length_width } => {
                return plain_value(self.data_type, source, start, self.rows, *length_width, row);
            }
        };
        found.map_err(|damage| source.damage(damage))
    }
}

/// Value `at` of `count` in plain form, whose sections begin at `start`.
fn plain_value(
    data_type: DataType,
    source: &mut impl Source,
    start: usize,
    count: usize,
    length_width: u8,
    at: usize,
) -> Result<Value> {
    fn number<N: Native>(source: &mut impl Source, start: usize, at: usize) -> Result<Option<Value>> {
        let start = start + at * size_of::<N>();
        let values = cast::from_le_bytes::<N>(source.bytes(start..start + size_of::<N>())?);
        Ok(values.first().map(|value| value.value()))
    }
    let is_text = data_type.is_text() || data_type == DataType::Bytea;
    if !is_text && length_width != 0 {
        return Err(source.damage(Damage::new(start, "numbers with a width of lengths")));
    }
    let value = dispatch!(data_type,
        N => number::<N>(source, start, at)?,
        boolean => None,
        bytes => Some(text(data_type, source, start, count, u32::from(length_width), at)?));
    value.ok_or_else(|| source.damage(Damage::new(start, "plain booleans")))
}

/// Text or bytes `at`: the lengths of its group say where in the heap it is.
fn text(
    data_type: DataType,
    source: &mut impl Source,
    start: usize,
    count: usize,
    width: u32,
    at: usize,
) -> Result<Value> {
    if width > 31 {
        return Err(source.damage(Damage::new(start, "lengths of more than 31 bits")));
    }
    let group = at / plain::GROUP;
    let begins = padded(start + bitpack::packed_bytes(count, width));
    let heap = padded(begins + plain::groups_after_first(count) * 4);
    let mut from = 0;
    if let Some(earlier) = group.checked_sub(1) {
        let begin = begins + earlier * 4;
        from = cast::from_le_bytes::<u32>(source.bytes(begin..begin + 4)?).first().map_or(0, |begin| *begin as usize);
    }
    // A group of lengths begins at a byte.
    let first = group * plain::GROUP;
    let lengths = start + first * width as usize / 8;
    let before = at - first;
    let packed = source.bytes(lengths..lengths + bitpack::packed_bytes(before + 1, width))?;
    let length = |i| bitpack::get(packed, width, i) as usize;
    from = heap + from + (0..before).map(length).sum::<usize>();
    let to = from + length(before);
    let bytes = source.bytes(from..to)?;
    if data_type == DataType::Bytea {
        return Ok(Value::Bytes(bytes.into()));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Value::Text(text.into())),
        Err(_) => Err(source.damage(Damage::new(from, "text that is not UTF-8"))),
    }
}

/// Code `at` of those of `width` bits that begin at `start`.
fn code_at(source: &mut impl Source, start: usize, width: u32, at: usize) -> Result<u64> {
    if width == 0 {
        return Ok(0);
    }
    if width > 64 {
        return Err(source.damage(Damage::new(start, "codes of more than 64 bits")));
    }
    let bit = at * width as usize;
    let (first, shift) = (start + bit / 8, bit % 8);
    let bytes = source.bytes(first..first + (shift + width as usize).div_ceil(8))?;
    // At most 71 bits.
    let mut wide = [0; 16];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    Ok((u128::from_le_bytes(wide) >> shift) as u64 & (u64::MAX >> (64 - width)))
}
