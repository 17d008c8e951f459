//! One row of a column of whose block only a few bytes are at hand.
//!
//! Comes in: what the metadata says of a column, and a [`Source`] of ranges of its block's body. Goes out: the value of
//! one row, the same that the open block gives. It asks for the bytes where the row's NULL bit, code and value lie, and
//! for no others.
//!
//! What serves all rows, a table of symbols or the frames of all vectors, is kept for the next row that is asked for,
//! if it is small.
//!
//! What opening a block proves of all rows is proved here of the one: damage is told, never followed.

use std::cell::OnceCell;
use std::ops::Range;

use mainstem_kernels::alp::Float;
use mainstem_kernels::fsst::Symbols;
use mainstem_kernels::{bitmap, bitpack, cast};

use super::constant::Constant;
use super::frame::{self, VECTOR_ROWS, vectors};
use super::native::{Native, dispatch};
use super::plain::TextForm;
use super::sections::{Damage, padded};
use super::{Encoding, alp, dictionary, plain};
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

/// Bytes of the entries of all vectors up to which they are read together, and kept: a page of them.
const ENTRIES_KEPT_BYTES: usize = 4096;

/// A column, as its metadata describes it.
#[derive(Debug)]
pub(crate) struct SingleRows<'a> {
    data_type: DataType,
    rows: usize,
    null_count: usize,
    encoding: &'a Encoding,
    symbols: OnceCell<Symbols>,
    entries: OnceCell<Vec<u8>>,
}

/// A part of a block in plain form.
#[derive(Clone, Copy)]
struct PlainPart {
    data_type: DataType,
    /// Where its sections begin.
    start: usize,
    /// Values.
    count: usize,
    form: TextForm,
}

impl<'a> SingleRows<'a> {
    /// A column of `rows` rows, of which `null_count` are NULL.
    pub fn new(data_type: DataType, rows: usize, null_count: usize, encoding: &'a Encoding) -> Self {
        Self { data_type, rows, null_count, encoding, symbols: OnceCell::new(), entries: OnceCell::new() }
    }

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
            Encoding::VectorFrames { reference, code_bytes } => {
                return self.vector_value(source, start, row, *reference, *code_bytes as usize);
            }
            Encoding::ScaledFloats { code_bytes, exceptions } => {
                let (code_bytes, exceptions) = (*code_bytes as usize, *exceptions as usize);
                return match self.data_type {
                    DataType::Real => self.scaled_value::<f32>(source, start, row, code_bytes, exceptions),
                    DataType::Double => self.scaled_value::<f64>(source, start, row, code_bytes, exceptions),
                    _ => Err(source.damage(Damage::new(start, "scaled floats that are none"))),
                };
            }
            Encoding::Dictionary { distinct, width, length_width, symbol_bytes } => {
                let (distinct, width) = (*distinct as usize, u32::from(*width));
                if distinct == 0 || distinct > self.rows || width != dictionary::code_width(distinct) {
                    let what = format!("{distinct} distinct values with codes of {width} bits");
                    return Err(source.damage(Damage::new(0, what)));
                }
                let code = code_at(source, start, width, row)? as usize;
                if code >= distinct {
                    return Err(source.damage(Damage::new(start, "a code outside the dictionary")));
                }
                let start = padded(start + bitpack::packed_bytes(self.rows, width));
                let form = TextForm { length_width: *length_width, symbol_bytes: *symbol_bytes };
                let part = PlainPart { data_type: self.data_type, start, count: distinct, form };
                return self.plain_value(source, part, code);
            }
            Encoding::Plain { length_width } | Encoding::Symbols { length_width, .. } => {
                let symbol_bytes = if let Encoding::Symbols { symbol_bytes, .. } = self.encoding {
                    if *symbol_bytes == 0 {
                        return Err(source.damage(Damage::new(start, "symbols without a table")));
                    }
                    *symbol_bytes
                } else {
                    0
                };
                let form = TextForm { length_width: *length_width, symbol_bytes };
                let part = PlainPart { data_type: self.data_type, start, count: self.rows, form };
                return self.plain_value(source, part, row);
            }
        };
        found.map_err(|damage| source.damage(damage))
    }

    /// Value `at` of `part`.
    fn plain_value(&self, source: &mut impl Source, part: PlainPart, at: usize) -> Result<Value> {
        fn number<N: Native>(source: &mut impl Source, start: usize, at: usize) -> Result<Option<Value>> {
            let start = start + at * size_of::<N>();
            let values = cast::from_le_bytes::<N>(source.bytes(start..start + size_of::<N>())?);
            Ok(values.first().map(|value| value.value()))
        }
        part.form.check(part.data_type, part.start).map_err(|damage| source.damage(damage))?;
        let value = dispatch!(part.data_type,
            N => number::<N>(source, part.start, at)?,
            boolean => None,
            bytes => Some(self.text(source, part, at)?));
        value.ok_or_else(|| source.damage(Damage::new(part.start, "plain booleans")))
    }

    /// Text or bytes `at`: the lengths of its group say where in the heap it is.
    fn text(&self, source: &mut impl Source, part: PlainPart, at: usize) -> Result<Value> {
        let PlainPart { data_type, start, count, form } = part;
        let symbols = padded(
            padded(start + bitpack::packed_bytes(count, u32::from(form.length_width)))
                + plain::groups_after_first(count) * 4,
        );
        let table = match usize::from(form.symbol_bytes) {
            0 => None,
            bytes => Some(self.symbols(source, symbols..symbols + bytes)?),
        };
        let heap = padded(symbols + usize::from(form.symbol_bytes));
        let stored = stored_text(source, part, heap, at)?;
        let mut decoded = Vec::new();
        let bytes = match table {
            None => source.bytes(stored.clone())?,
            Some(table) => {
                if !table.decode(source.bytes(stored.clone())?, &mut decoded) {
                    return Err(source.damage(Damage::new(stored.start, "codes of a text that have no symbols")));
                }
                decoded.as_slice()
            }
        };
        if data_type == DataType::Bytea {
            return Ok(Value::Bytes(bytes.into()));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::Text(text.into())),
            Err(_) => Err(source.damage(Damage::new(stored.start, "text that is not UTF-8"))),
        }
    }

    /// The table of symbols in `range`.
    fn symbols(&self, source: &mut impl Source, range: Range<usize>) -> Result<&Symbols> {
        if let Some(symbols) = self.symbols.get() {
            return Ok(symbols);
        }
        let at = range.start;
        let found = Symbols::from_bytes(source.bytes(range)?);
        let found = found.ok_or_else(|| source.damage(Damage::new(at, "a table of symbols that is none")))?;
        Ok(self.symbols.get_or_init(|| found))
    }

    /// The entry, of `bytes` bytes, of vector `number`, of those that begin at `start`.
    fn entry(&self, source: &mut impl Source, start: usize, number: usize, bytes: usize) -> Result<Vec<u8>> {
        let all = frame::vectors_of(self.rows) * bytes;
        let here = number * bytes..(number + 1) * bytes;
        if all > ENTRIES_KEPT_BYTES {
            return Ok(source.bytes(start + here.start..start + here.end)?.to_vec());
        }
        if self.entries.get().is_none() {
            let entries = source.bytes(start..start + all)?.to_vec();
            self.entries.get_or_init(|| entries);
        }
        Ok(self.entries.get().and_then(|entries| entries.get(here)).unwrap_or_default().to_vec())
    }

    /// Row `row` of frames by vector, whose sections begin at `start`.
    fn vector_value(
        &self,
        source: &mut impl Source,
        start: usize,
        row: usize,
        reference: i128,
        code_bytes: usize,
    ) -> Result<Value> {
        let number = row / VECTOR_ROWS;
        let entry = self.entry(source, start, number, vectors::ENTRY_BYTES)?;
        let vector = vectors::room_above(self.data_type, reference)
            .and_then(|room| vectors::Vector::of_entry(&entry, number, self.rows, code_bytes, room));
        let vector = vector.map_err(|what| source.damage(Damage::new(start, what)))?;
        let (at, width) = vector.codes();
        let codes = padded(start + frame::vectors_of(self.rows) * vectors::ENTRY_BYTES) + at;
        let above = vector.above_least(code_at(source, codes, width, row % VECTOR_ROWS)?);
        let above = above.ok_or_else(|| source.damage(Damage::new(codes, "a code beyond the frame of its vector")))?;
        Ok(vectors::value_above(self.data_type, reference, above))
    }

    /// Row `row` of scaled floats, whose sections begin at `start`.
    fn scaled_value<N: Native + Float>(
        &self,
        source: &mut impl Source,
        start: usize,
        row: usize,
        code_bytes: usize,
        exceptions: usize,
    ) -> Result<Value> {
        let (number, place) = (row / VECTOR_ROWS, (row % VECTOR_ROWS) as u16);
        let mut vector = |number| -> Result<alp::Vector> {
            let entry = self.entry(source, start, number, alp::ENTRY_BYTES)?;
            let vector = alp::Vector::of_entry(&entry, number, self.rows, code_bytes, exceptions);
            vector.map_err(|what| source.damage(Damage::new(start, what)))
        };
        let own = vector(number)?;
        let is_last = number + 1 >= frame::vectors_of(self.rows);
        let end = if is_last { exceptions } else { vector(number + 1)?.exception() };
        let places = alp::Places::of(start, self.rows, code_bytes, exceptions);
        let first = own.exception();
        if first > end {
            return Err(source.damage(Damage::new(start, "exceptions out of order")));
        }
        let own_places =
            if first == end { &[] } else { source.bytes(places.places + first * 2..places.places + end * 2)? };
        if let Ok(found) = cast::from_le_bytes::<u16>(own_places).binary_search(&place) {
            let at = places.values + (first + found) * size_of::<N>();
            let values = cast::from_le_bytes::<N>(source.bytes(at..at + size_of::<N>())?);
            return values.first().map(|value| value.value()).ok_or_else(|| Error::internal("a float without bytes"));
        }
        let (at, width) = own.codes();
        let code = code_at(source, places.codes + at, width, usize::from(place))?;
        Ok(own.value::<N>(code).value())
    }
}

/// Where text or bytes `at` of `part` are, in the heap at `heap`.
fn stored_text(source: &mut impl Source, part: PlainPart, heap: usize, at: usize) -> Result<Range<usize>> {
    let PlainPart { start, count, form, .. } = part;
    let width = u32::from(form.length_width);
    let group = at / plain::GROUP;
    let begins = padded(start + bitpack::packed_bytes(count, width));
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
    Ok(from..from + length(before))
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
