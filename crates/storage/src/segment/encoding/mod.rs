//! Encodings of one column of one segment: how its values become bytes, and what can be asked of the bytes.
//!
//! Comes in: an Arrow array when written, the bytes of a block when opened. Goes out: bytes with an [`Encoding`], or
//! Arrow arrays, selections and single values.
//!
//! 1. [`choose::encode`] looks at the values and takes the smallest encoding by computed size, unless a test says which
//!    ([`crate::settings::Encodings`]).
//! 2. [`EncodedValues::open`] takes the bytes back and proves everything that reading relies on.
//! 3. Reading a range, gathering, selecting and searching are one call into the encoding, each over slices; the choice
//!    among the encodings, and among the types, is made once per call.
//!
//! Encodings that are read in place: constant, dictionary, frame of reference, one or by vector, plain. Those that are
//! decoded when the block is opened, and are plain from then on: symbols of texts, scaled floats. All of them give a
//! single row without the others.
//!
//! One file per encoding, all of one shape: `open`, `read`, `gather`, `value`, `equal_range`, `select`, and functions
//! that give the encoded size and encode. `native` has the number types, `form` the types of arrays, `condition`
//! translates predicates, `single` reads one row from the few bytes that it is in.
//!
//! Invariants: an open encoding answers for each row below its row count without a panic, whatever bytes it came from.
//! NULLs are the block's matter: here a NULL slot has some value.
//!
//! It does not own: files, checksums, NULLs, zone maps.

mod native;
mod form;
mod sections;
mod condition;
mod plain;
mod constant;
mod frame;
mod dictionary;
mod short_texts;
mod fsst;
mod alp;
mod choose;
mod single;

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use mainstem_kernels::bitmap;

use self::condition::Condition;
use self::plain::TextForm;
use crate::error::Result;
use crate::predicate::Predicate;
use crate::row::Value;
use crate::schema::DataType;

pub(crate) use choose::{ColumnUse, encode, is_stored_as};
pub(crate) use condition::EntrySelection;
pub use form::{Form, is_narrow};
pub use fsst::SymbolTables;
pub(crate) use native::wide_value;
pub(crate) use plain::sum_of_array;
pub(crate) use sections::{ALIGN, Damage, Sections, begin_section};
pub(crate) use short_texts::short_text_codes;
pub(crate) use single::{SingleRows, Source};

/// How a column's values are stored, with what a reader has to know before it sees the bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Encoding {
    /// One value for all rows that are not NULL; NULL if there are none.
    Constant {
        /// The value.
        value: Value,
    },
    /// Codes into the ascending distinct values (HYRISE section 3).
    Dictionary {
        /// Number of distinct values.
        distinct: u32,
        /// Bits of a code: `ceil(log2(distinct))`.
        width: u8,
        /// Bits of the length of a text or of bytes; 0 for other types.
        length_width: u8,
        /// Bytes of the table of symbols that values are codes of; 0 where they are not.
        symbol_bytes: u16,
    },
    /// Bit-packed differences from the least value.
    FrameOfReference {
        /// The least value.
        reference: i128,
        /// Bits of a difference.
        width: u8,
    },
    /// Values as they are.
    Plain {
        /// Bits of the length of a text or of bytes; 0 for other types.
        length_width: u8,
    },
    /// Texts as codes of symbols (FSST).
    Symbols {
        /// Bits of the length of a text's codes.
        length_width: u8,
        /// Bytes of the table of symbols.
        symbol_bytes: u16,
    },
    /// Bit-packed differences from the least value of each vector of rows.
    VectorFrames {
        /// The least value.
        reference: i128,
        /// Bytes of the packed codes.
        code_bytes: u32,
    },
    /// Floats as scaled integers, in frames of reference by vector (ALP).
    ScaledFloats {
        /// Bytes of the packed codes.
        code_bytes: u32,
        /// Floats that are no scaled integers.
        exceptions: u32,
    },
}

impl Encoding {
    /// Its name, as shown to users.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::Dictionary { .. } => "dictionary",
            Self::FrameOfReference { .. } => "frame of reference",
            Self::Plain { .. } => "plain",
            Self::Symbols { .. } => "symbols",
            Self::VectorFrames { .. } => "frames by vector",
            Self::ScaledFloats { .. } => "scaled floats",
        }
    }

    /// Whether an open block needs the bytes of its body, besides its NULLs.
    pub(crate) fn is_read_in_place(&self) -> bool {
        !matches!(self, Self::Symbols { .. } | Self::ScaledFloats { .. })
    }
}

/// An open column without its NULLs.
#[derive(Debug)]
pub(crate) enum EncodedValues {
    Constant(constant::Constant),
    Dictionary(dictionary::Dictionary),
    Frame(frame::Frame),
    VectorFrames(frame::VectorFrames),
    /// Of encodings that are decoded when the block is opened, too.
    Plain(plain::Plain),
}

impl EncodedValues {
    /// Opens `rows` values from the remaining sections of a block, and proves that reading cannot fail.
    pub fn open(
        data_type: DataType,
        encoding: &Encoding,
        mut sections: Sections,
        rows: usize,
        nulls: Option<&NullBuffer>,
    ) -> Result<Self, Damage> {
        let values = match encoding {
            Encoding::Constant { value } => Self::Constant(constant::Constant::open(data_type, value)?),
            Encoding::Dictionary { distinct, width, length_width, symbol_bytes } => {
                let form = TextForm { length_width: *length_width, symbol_bytes: *symbol_bytes };
                let distinct = *distinct;
                Self::Dictionary(dictionary::Dictionary::open(data_type, &mut sections, rows, distinct, *width, form)?)
            }
            Encoding::FrameOfReference { reference, width } => {
                Self::Frame(frame::Frame::open(data_type, &mut sections, rows, *reference, *width)?)
            }
            Encoding::Plain { length_width } => {
                let form = TextForm { length_width: *length_width, symbol_bytes: 0 };
                Self::Plain(plain::Plain::open(data_type, &mut sections, rows, form, nulls)?)
            }
            Encoding::Symbols { length_width, symbol_bytes } => {
                let form = TextForm { length_width: *length_width, symbol_bytes: *symbol_bytes };
                if form.symbol_bytes == 0 {
                    return Err(Damage::new(0, "symbols without a table"));
                }
                Self::Plain(plain::Plain::open(data_type, &mut sections, rows, form, nulls)?)
            }
            Encoding::VectorFrames { reference, code_bytes } => {
                Self::VectorFrames(frame::VectorFrames::open(data_type, &mut sections, rows, *reference, *code_bytes)?)
            }
            Encoding::ScaledFloats { code_bytes, exceptions } => {
                Self::Plain(alp::open(data_type, &mut sections, rows, *code_bytes, *exceptions)?)
            }
        };
        sections.finish()?;
        Ok(values)
    }

    /// Bytes of memory beside the block's own buffer, when it was opened from `encoding`.
    pub fn memory(&self, encoding: &Encoding) -> usize {
        match self {
            Self::Constant(_) | Self::Frame(_) => 0,
            Self::VectorFrames(frames) => frames.memory(),
            Self::Dictionary(dictionary) => match encoding {
                Encoding::Dictionary { symbol_bytes: 1.., .. } => dictionary.memory() + dictionary.value_bytes(),
                _ => dictionary.memory(),
            },
            Self::Plain(plain) if encoding.is_read_in_place() => plain.memory(),
            Self::Plain(plain) => plain.memory() + plain.value_bytes(),
        }
    }

    /// Rows `rows` as an Arrow array with the given NULLs. In [`Form::Codes`] each row of an encoding without codes has
    /// its own.
    pub fn read(
        &self,
        (data_type, form): (DataType, Form),
        rows: Range<usize>,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let (own, rest) = self.divided(form);
        let target = (data_type, own);
        let values = match self {
            Self::Constant(constant) => constant.read(target, rows.len(), nulls),
            Self::Dictionary(dictionary) => dictionary.read(target, rows, nulls),
            Self::Frame(frame) => frame.read(target, rows, nulls),
            Self::VectorFrames(frames) => frames.read(target, rows, nulls),
            Self::Plain(plain) => plain.read(target, rows, nulls),
        };
        rest.of(values?, data_type)
    }

    /// The rows at `offsets` as an Arrow array with the given NULLs, as [`EncodedValues::read`].
    pub fn gather(
        &self,
        (data_type, form): (DataType, Form),
        offsets: &[u32],
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let (own, rest) = self.divided(form);
        let target = (data_type, own);
        let values = match self {
            Self::Constant(constant) => constant.read(target, offsets.len(), nulls),
            Self::Dictionary(dictionary) => dictionary.gather(target, offsets, nulls),
            Self::Frame(frame) => frame.gather(target, offsets, nulls),
            Self::VectorFrames(frames) => frames.gather(target, offsets, nulls),
            Self::Plain(plain) => plain.take(target, offsets.to_vec(), nulls),
        };
        rest.of(values?, data_type)
    }

    /// What the encoding decodes for arrays in `form`, and what is made of that.
    fn divided(&self, form: Form) -> (Form, Form) {
        match (self, form) {
            (Self::Dictionary(_), _) | (_, Form::Values | Form::Narrow) => (form, Form::Values),
            (_, Form::Codes) => (Form::Values, Form::Codes),
        }
    }

    /// Row `i`, which must not be NULL.
    pub fn value(&self, data_type: DataType, i: usize) -> Result<Value> {
        match self {
            Self::Constant(constant) => Ok(constant.value().clone()),
            Self::Dictionary(dictionary) => dictionary.value(i),
            Self::Frame(frame) => Ok(frame.value(data_type, i)),
            Self::VectorFrames(frames) => Ok(frames.value(data_type, i)),
            Self::Plain(plain) => plain.value(i),
        }
    }

    /// Value `i` of a column whose values are [`Value::Int`], NULL or not.
    #[inline]
    pub fn whole(&self, i: usize) -> Option<i64> {
        match self {
            Self::Constant(constant) => constant.whole(),
            Self::Dictionary(dictionary) => dictionary.whole(i),
            Self::Frame(frame) => Some(frame.whole(i)),
            Self::VectorFrames(frames) => Some(frames.whole(i)),
            Self::Plain(plain) => plain.whole(i),
        }
    }

    /// Of the ascending rows `rows`, without NULLs: where those equal to `value` begin and end. O(log rows).
    ///
    /// # Errors
    /// Internal when `value` is of another type.
    pub fn equal_range(&self, value: &Value, rows: Range<usize>) -> Result<(usize, usize)> {
        match self {
            Self::Constant(constant) => Ok(constant.equal_range(value, rows)),
            Self::Dictionary(dictionary) => dictionary.equal_range(value, rows),
            Self::Frame(frame) => frame.equal_range(value, rows),
            Self::VectorFrames(frames) => frames.equal_range(value, rows),
            Self::Plain(plain) => plain.equal_range(value, rows),
        }
    }

    /// Those of `rows` that `selection` has, `count` of them and none of them NULL, as an Arrow array; `None` where
    /// that is no better than reading all.
    pub fn read_selected(
        &self,
        (data_type, form): (DataType, Form),
        rows: Range<usize>,
        selection: &[u64],
        count: usize,
    ) -> Result<Option<ArrayRef>> {
        let (own, rest) = self.divided(form);
        let target = (data_type, own);
        let values = match self {
            Self::Frame(frame) => frame.read_selected(target, rows, selection, count),
            Self::VectorFrames(frames) => frames.read_selected(target, rows, selection, count).map(Some),
            Self::Dictionary(dictionary) => dictionary.read_selected(target, rows, selection, count).map(Some),
            Self::Constant(_) | Self::Plain(_) => Ok(None),
        };
        values?.map(|values| rest.of(values, data_type)).transpose()
    }

    /// The sum of the values of those of `rows` that `selection` has, which are `count` and none of them NULL; `None`
    /// if they are no integers. It must fit 128 bits, as those of damaged blocks may not: they wrap.
    pub fn sum(&self, rows: Range<usize>, selection: &[u64], count: usize) -> Option<i128> {
        match self {
            Self::Constant(constant) => constant.sum(count),
            Self::Dictionary(dictionary) => dictionary.sum(rows, selection),
            Self::Frame(frame) => Some(frame.sum(rows, selection, count)),
            Self::VectorFrames(frames) => Some(frames.sum(rows, selection, count)),
            Self::Plain(plain) => plain.sum(rows, selection),
        }
    }

    /// Rows of `rows` that meet `predicate`, a comparison with constants of the column's type; NULL slots come out
    /// either way.
    pub fn select(&self, data_type: DataType, predicate: &Predicate, rows: Range<usize>) -> Result<Vec<u64>> {
        match self {
            Self::Constant(constant) => Ok(constant.select(predicate, rows.len())),
            Self::Dictionary(dictionary) => dictionary.select(predicate, rows),
            Self::Frame(frame) => frame.select(data_type, predicate, rows),
            Self::VectorFrames(frames) => frames.select(data_type, predicate, rows),
            Self::Plain(plain) => plain.select(predicate, rows),
        }
    }

    /// The distinct values that rows are codes of, if there are at most `max` of them, and a NULL behind them.
    pub fn entries(&self, data_type: DataType, max: usize) -> Result<Option<ArrayRef>> {
        match self {
            Self::Constant(constant) => constant.entries(data_type).map(Some),
            Self::Dictionary(dictionary) if dictionary.distinct() <= max => dictionary.entries(data_type).map(Some),
            Self::Dictionary(_) | Self::Frame(_) | Self::VectorFrames(_) | Self::Plain(_) => Ok(None),
        }
    }

    /// Rows of `rows` whose entry is in `entries`; NULL slots come out either way. Without entries, all rows.
    pub fn select_entries(&self, entries: &EntrySelection, rows: Range<usize>) -> Vec<u64> {
        match self {
            Self::Constant(_) if entries.codes == Condition::Never => vec![0; bitmap::words(rows.len())],
            Self::Dictionary(dictionary) => dictionary.select_codes(&entries.codes, rows),
            Self::Constant(_) | Self::Frame(_) | Self::VectorFrames(_) | Self::Plain(_) => bitmap::full(rows.len()),
        }
    }

    /// Distinct values, where the encoding knows them.
    pub fn distinct(&self) -> Option<usize> {
        match self {
            Self::Constant(constant) => Some(usize::from(!constant.value().is_null())),
            Self::Dictionary(dictionary) => Some(dictionary.distinct()),
            Self::Frame(_) | Self::VectorFrames(_) | Self::Plain(_) => None,
        }
    }
}
