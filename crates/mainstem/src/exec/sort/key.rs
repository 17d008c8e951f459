//! Columns of a sort key as numbers: as many leading bits of the whole key as one word takes.
//!
//! Comes in: the arrays of the key, and some of their rows. Goes out: a word a row, whose order is that of the rows as
//! far as the word goes, and the column from which on it says nothing or not everything.
//!
//! 1. A column's values become whole numbers of the same order. Texts give the bytes behind the prefix that all of them
//!    share.
//! 2. The least one is taken away, so that a number takes the bits of the range, not those of the type. NULL is a
//!    number below or above all others.
//! 3. Columns are put one behind another while bits are left. Of the last one its leading bits are taken.
//!
//! Invariants: rows of different words are in the order of their words; rows of one word equal one another in all
//! columns before the one that was reached. Values are compared as `arrow_ord` does: floats by their total order.
//!
//! It does not own: how rows are moved (`order`).

use std::ops::Sub;

use arrow::array::{Array, ArrayRef, AsArray, ByteView};
use arrow::buffer::NullBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::{
    ArrowPrimitiveType, BinaryType, BinaryViewType, ByteArrayType, ByteViewType, DataType, Date32Type, Date64Type,
    Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, StringViewType,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, Utf8Type,
};

/// Bits of a word.
const WORD_BITS: u32 = u64::BITS;
/// Bytes of a text that a number takes if it tells everything: the eighth says how many there are.
const WHOLE_TEXT_MAX: usize = 7;

/// A column of a sort key.
#[derive(Clone, Debug)]
pub(super) struct KeyColumn {
    pub values: ArrayRef,
    pub options: SortOptions,
}

/// Words of rows, as far as they go.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub words: Vec<u64>,
    /// How many of a word's lowest bits may be set.
    pub bits: u32,
    /// The first column that the words do not tell in full; none where they tell everything.
    pub reached: Option<usize>,
}

/// Whether values of that type can be made numbers.
pub(in crate::exec) fn is_sortable(data_type: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal128, FixedSizeBinary, Float32, Float64, Int8, Int16, Int32,
        Int64, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    matches!(
        data_type,
        Boolean
            | Int8
            | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Date32
            | Date64
            | Time64(TimeUnit::Microsecond)
            | Timestamp(TimeUnit::Microsecond, _)
            | Decimal128(..)
            | Float32
            | Float64
            | FixedSizeBinary(16)
            | Utf8
            | Utf8View
            | Binary
            | BinaryView
    )
}

/// The words of `rows`, from column `first` of `columns` on, which are all [sortable](is_sortable).
pub(super) fn words_of(columns: &[KeyColumn], first: usize, rows: &[u32]) -> Words {
    let mut made = Words { words: vec![0; rows.len()], ..Words::default() };
    for (at, column) in columns.iter().enumerate().skip(first) {
        if !append(&mut made, column, rows) {
            made.reached = Some(at);
            return made;
        }
    }
    made
}

/// Appends `column`; whether in full.
fn append(made: &mut Words, column: &KeyColumn, rows: &[u32]) -> bool {
    let values = column.values.as_ref();
    let mut to = Appender { made, nulls: values.nulls(), options: column.options, rows };
    match values.data_type() {
        DataType::Boolean => {
            let values = values.as_boolean().values();
            to.append(|row| u64::from(values.value(row)))
        }
        DataType::Int8 => to.integers::<Int8Type>(values),
        DataType::Int16 => to.integers::<Int16Type>(values),
        DataType::Int32 => to.integers::<Int32Type>(values),
        DataType::Int64 => to.integers::<Int64Type>(values),
        DataType::Date32 => to.integers::<Date32Type>(values),
        DataType::Date64 => to.integers::<Date64Type>(values),
        DataType::Time64(_) => to.integers::<Time64MicrosecondType>(values),
        DataType::Timestamp(..) => to.integers::<TimestampMicrosecondType>(values),
        DataType::UInt8 => to.primitives::<UInt8Type, u64>(values, u64::from),
        DataType::UInt16 => to.primitives::<UInt16Type, u64>(values, u64::from),
        DataType::UInt32 => to.primitives::<UInt32Type, u64>(values, u64::from),
        DataType::UInt64 => to.primitives::<UInt64Type, u64>(values, |value| value),
        DataType::Decimal128(..) => to.decimals(values),
        DataType::Float32 => to.primitives::<Float32Type, u64>(values, |value| float_code(f64::from(value))),
        DataType::Float64 => to.primitives::<Float64Type, u64>(values, float_code),
        DataType::FixedSizeBinary(_) => {
            let values = values.as_fixed_size_binary();
            to.append(|row| values.value(row).try_into().map_or(0, u128::from_be_bytes))
        }
        DataType::Utf8 => to.byte_arrays::<Utf8Type>(values),
        DataType::Binary => to.byte_arrays::<BinaryType>(values),
        DataType::Utf8View => to.byte_views::<StringViewType>(values),
        DataType::BinaryView => to.byte_views::<BinaryViewType>(values),
        // Nothing is known of its order: no row is before another.
        _ => false,
    }
}

/// A number in the total order of floats. A narrow float keeps its order as a wide one.
fn float_code(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Whole numbers that a column's values become.
trait Code: Copy + Ord + Sub<Output = Self> + Into<u128> {
    /// The lowest 64 bits.
    fn low(self) -> u64;
}

impl Code for u64 {
    fn low(self) -> u64 {
        self
    }
}

impl Code for u128 {
    fn low(self) -> u64 {
        self as u64
    }
}

/// Where a column's numbers go.
struct Appender<'a> {
    made: &'a mut Words,
    nulls: Option<&'a NullBuffer>,
    options: SortOptions,
    rows: &'a [u32],
}

impl Appender<'_> {
    fn integers<T>(&mut self, values: &dyn Array) -> bool
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i64>,
    {
        self.primitives::<T, u64>(values, |value| value.into() as u64 ^ (1 << 63))
    }

    fn primitives<T: ArrowPrimitiveType, C: Code>(
        &mut self,
        values: &dyn Array,
        code: impl Fn(T::Native) -> C,
    ) -> bool {
        let values = values.as_primitive::<T>().values();
        self.append(|row| code(values[row]))
    }

    /// Decimals, as 64-bit integers where all of them fit.
    fn decimals(&mut self, values: &dyn Array) -> bool {
        let values = values.as_primitive::<Decimal128Type>().values();
        if self.rows.iter().all(|row| i64::try_from(values[*row as usize]).is_ok()) {
            return self.append(|row| values[row] as u64 ^ (1 << 63));
        }
        self.append(|row| values[row] as u128 ^ (1 << 127))
    }

    fn byte_arrays<T: ByteArrayType>(&mut self, values: &dyn Array) -> bool {
        let values = values.as_bytes::<T>();
        self.texts(|row| values.value(row).as_ref())
    }

    fn byte_views<T: ByteViewType>(&mut self, values: &dyn Array) -> bool {
        let (values, views) = (values.as_byte_view::<T>(), values.as_byte_view::<T>().views());
        let is_inline = |row: &u32| ByteView::from(views[*row as usize]).length <= 12;
        if values.data_buffers().is_empty() || self.rows.iter().all(is_inline) {
            // The bytes stand in the view, behind four of length: nothing is followed.
            let length = |row: usize| ByteView::from(views[row]).length as usize;
            return self.texts_of(length, |row, skip| (views[row] >> 32 >> (8 * skip)) as u64);
        }
        self.texts(|row| values.value(row).as_ref())
    }

    fn texts<'v>(&mut self, value: impl Fn(usize) -> &'v [u8]) -> bool {
        let length = |row: usize| value(row).len();
        self.texts_of(length, |row, skip| {
            let rest = value(row).get(skip..).unwrap_or_default();
            match rest.first_chunk() {
                Some(bytes) => u64::from_le_bytes(*bytes),
                None => rest.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
            }
        })
    }

    /// Texts of `length(row)` bytes, of which `eight(row, skip)` gives those from `skip` on, the first of them lowest,
    /// with zeros behind the last.
    fn texts_of(&mut self, length: impl Fn(usize) -> usize, eight: impl Fn(usize, usize) -> u64) -> bool {
        let shared = self.shared_prefix(&length, &eight);
        let longest = self.valid().map(&length).max().unwrap_or(0);
        if longest - shared.min(longest) <= WHOLE_TEXT_MAX {
            return self.append(|row| {
                let bytes = eight(row, shared).swap_bytes() & !0xff;
                bytes | length(row).saturating_sub(shared) as u64
            });
        }
        self.append(|row| eight(row, shared).swap_bytes());
        false
    }

    /// How many bytes at the beginning all texts share.
    fn shared_prefix(&self, length: &impl Fn(usize) -> usize, eight: &impl Fn(usize, usize) -> u64) -> usize {
        let Some(first) = self.valid().next() else { return 0 };
        let mut shared = length(first);
        for row in self.valid() {
            let mut same = 0;
            while same < shared {
                let differing = eight(first, same) ^ eight(row, same);
                same += differing.trailing_zeros() as usize / 8;
                if differing != 0 {
                    break;
                }
            }
            shared = shared.min(same).min(length(row));
            if shared == 0 {
                break;
            }
        }
        shared
    }

    /// Rows that are not NULL, as they come.
    fn valid(&self) -> impl Iterator<Item = usize> {
        let nulls = self.nulls;
        let rows = self.rows.iter().map(|row| *row as usize);
        rows.filter(move |row| nulls.is_none_or(|nulls| nulls.is_valid(*row)))
    }

    /// Appends `code(row)` of each row; whether all bits had room.
    fn append<C: Code>(&mut self, code: impl Fn(usize) -> C) -> bool {
        let bounds = self.valid().fold(None, |bounds, row| {
            let code = code(row);
            let (least, greatest) = bounds.unwrap_or((code, code));
            Some((least.min(code), greatest.max(code)))
        });
        let has_nulls = self.nulls.is_some_and(|nulls| self.rows.iter().any(|row| nulls.is_null(*row as usize)));
        let Some((least, greatest)) = bounds else { return true };
        let range: u128 = (greatest - least).into();
        // NULL is one number more, below or above the others. A range of all bits then loses the lowest one.
        let (range, lost) = if has_nulls && range >> 64 != 0 { (range >> 1, 1) } else { (range, 0) };
        let needed = u128::BITS - (range + u128::from(has_nulls)).leading_zeros();
        let room = WORD_BITS - self.made.bits;
        let (bits, shift) = if needed <= room { (needed, 0) } else { (room, needed - room) };
        self.made.bits += bits;
        if bits == 0 {
            return shift == 0;
        }
        let (descending, first) = (self.options.descending, has_nulls && self.options.nulls_first);
        let offset = |row: usize| if descending { greatest - code(row) } else { code(row) - least };
        let rows = self.rows.iter().map(|row| *row as usize);
        let words = self.made.words.iter_mut().zip(rows);
        // Shifting by all bits of a word is no shift.
        let push = |word: &mut u64, number: u64| *word = word.checked_shl(bits).unwrap_or(0) | number;
        if needed < WORD_BITS && lost == 0 {
            let null = if first { 0 } else { range as u64 + 1 };
            match self.nulls.filter(|_| has_nulls) {
                None => words.for_each(|(word, row)| push(word, offset(row).low() >> shift)),
                Some(nulls) => words.for_each(|(word, row)| {
                    let number = if nulls.is_null(row) { null } else { offset(row).low() + u64::from(first) };
                    push(word, number >> shift);
                }),
            }
        } else {
            let null = if first { 0 } else { range + 1 };
            let is_null = |row: usize| has_nulls && self.nulls.is_some_and(|nulls| nulls.is_null(row));
            words.for_each(|(word, row)| {
                let number = if is_null(row) { null } else { (offset(row).into() >> lost) + u128::from(first) };
                push(word, (number >> shift) as u64);
            });
        }
        shift == 0 && lost == 0
    }
}
