//! Columns of a table from the rows of a chunk.
//!
//! 1. Separators of a block of whole rows are found; each row has to have as many as there are columns, and all have to
//!    end in the same way.
//! 2. Column by column the values of its fields are appended. A block whose fields of a column are not all in the
//!    plainest form of their type goes by way of texts and [`Conversion::column`](super::Conversion), for this column.
//!
//! The block is so small that the caches hold it, and its separators, until the last column is read. Where something is
//! wrong nothing comes out, and others tell what.

use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder, PrimitiveArray, StringArray, StringViewArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::concat;
use arrow::datatypes::{
    ArrowPrimitiveType, DECIMAL64_MAX_PRECISION, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use mainstem_kernels::csv::{
    Fields, Marks, Quoting, dates, decimals, each, find_separators, integers, texts, timestamps,
};
use mainstem_storage::schema::{Column, DataType};

use super::chunk::{Chunk, FoundRows};
use super::spare::Spare;
use super::{Conversion, FileRows};

/// Bytes of a block: with the places of its separators they fit a core's own cache (section 3.3 of the paper, figure
/// 13).
const BLOCK_BYTES: usize = 256 << 10;

/// The columns of the rows `found` in `chunk`, and how many rows they are; None if something is wrong with one of them,
/// which others can tell.
pub(super) fn columns_of(rows: &FileRows<'_>, chunk: &Chunk, found: &FoundRows) -> Option<(Vec<ArrayRef>, usize)> {
    let (header, body) = chunk.header_and_rows(found);
    let mut blocks = Blocks { marks: rows.marks(), columns: rows.columns.len(), ends: ends_of(header)?, rest: body };
    if !found.is_whole {
        return None;
    }
    let quoting = Quoting { quote: rows.options.quote, null: rows.options.null.as_bytes() };
    let mut builders: Vec<_> =
        rows.conversion.wanted().map(|column| Builder::new(column, rows.is_load, &rows.spare)).collect();
    let mut count = 0;
    let mut separators = Vec::new();
    let whole = body.len();
    while let Some(block) = blocks.next(&mut separators)? {
        count += block.ends.len() / rows.columns.len();
        for builder in &mut builders {
            let fields = Fields::new(block.bytes, block.ends, 0, (rows.columns.len(), builder.at), block.has_returns);
            let is_first = builder.rows == 0;
            builder.append(&rows.conversion, fields, quoting, block.has_quotes)?;
            // A block that ends early, before a long row, says nothing of the others.
            if is_first && block.bytes.len() >= BLOCK_BYTES / 2 {
                builder.values.reserve(whole / block.bytes.len());
            }
        }
    }
    let columns = builders.into_iter().map(|builder| builder.finish(rows.is_load)).collect::<Option<Vec<_>>>()?;
    Some((columns, count))
}

/// How rows end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Unknown,
    /// With a carriage return before the line feed, or without.
    Known {
        has_returns: bool,
    },
}

/// How `header` wants rows to end, if it has one; None if it has carriage returns elsewhere.
fn ends_of(header: &[u8]) -> Option<Ends> {
    let returns = header.iter().filter(|byte| **byte == b'\r').count();
    match returns {
        0 => Some(Ends::Unknown),
        1 if header.ends_with(b"\r\n") => Some(Ends::Known { has_returns: true }),
        _ => None,
    }
}

/// Whole rows, block by block.
struct Blocks<'a> {
    marks: Marks,
    columns: usize,
    ends: Ends,
    rest: &'a [u8],
}

/// Whole rows, each with a field for each column.
struct Block<'a> {
    bytes: &'a [u8],
    /// Where the fields end.
    ends: &'a [u32],
    has_quotes: bool,
    has_returns: bool,
}

impl<'a> Blocks<'a> {
    /// The next block, whose separators go to `separators`; none behind the last one. None at all where a row has too
    /// few fields or too many, or ends otherwise than others.
    fn next<'s>(&mut self, separators: &'s mut Vec<u32>) -> Option<Option<Block<'s>>>
    where
        'a: 's,
    {
        let mut bytes = BLOCK_BYTES;
        loop {
            if self.rest.is_empty() {
                return Some(None);
            }
            let part = self.rest.get(..bytes).unwrap_or(self.rest);
            separators.clear();
            let structure = find_separators(part, self.marks, false, separators);
            if structure.line_feeds == 0 && part.len() < self.rest.len() {
                // A row that is longer than a block.
                bytes *= 4;
                continue;
            }
            let (found, ends) = (structure.line_feeds * self.columns, &*separators);
            let ends = ends.get(..found).filter(|ends| !ends.is_empty())?;
            let len = *ends.last()? as usize + 1;
            let (block, tail) = part.split_at_checked(len)?;
            // As many of them are line feeds as there are rows, and so no others.
            let mut lasts = ends.iter().skip(self.columns - 1).step_by(self.columns).map(|end| *end as usize);
            if !lasts.clone().all(|end| block.get(end) == Some(&b'\n')) {
                return None;
            }
            // Those behind the rows are of the next block.
            let mut behind = Vec::new();
            let returns_behind = match structure.carriage_returns {
                0 => 0,
                _ => find_separators(tail, self.marks, false, &mut behind).carriage_returns,
            };
            let returns = structure.carriage_returns - returns_behind;
            let has_returns = returns > 0;
            let is_ended = |end: usize| block.get(end.wrapping_sub(1)) == Some(&b'\r');
            if has_returns && !(returns == structure.line_feeds && lasts.all(is_ended)) {
                return None;
            }
            let ends_as = Ends::Known { has_returns };
            if self.ends != Ends::Unknown && self.ends != ends_as {
                return None;
            }
            self.ends = ends_as;
            self.rest = self.rest.get(len..).unwrap_or_default();
            return Some(Some(Block { bytes: block, ends, has_quotes: structure.has_quotes, has_returns }));
        }
    }
}

/// Whether columns of `data_type` are texts as they stand in the file.
fn is_text(data_type: DataType, is_load: bool) -> bool {
    matches!(data_type, DataType::Text { .. }) || is_load && matches!(data_type, DataType::Char { .. })
}

/// A column that grows block by block.
struct Builder<'a> {
    /// Where it is in the file.
    at: usize,
    column: &'a Column,
    values: Values,
    /// Its NULL rows.
    nulls: Vec<u32>,
    rows: usize,
}

/// Values of a type, in its plainest form.
enum Values {
    SmallInt(Vec<i16>),
    Integer(Vec<i32>),
    BigInt(Vec<i64>),
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: u8,
    },
    /// Of at most 18 digits, as storage takes them for a load.
    NarrowDecimal {
        values: Vec<i64>,
        precision: u8,
        scale: u8,
    },
    Date(Vec<i32>),
    Timestamp(Vec<i64>),
    Real(Vec<f32>),
    Double(Vec<f64>),
    Text {
        heap: Vec<u8>,
        ends: Vec<i32>,
    },
    /// Those of other types, block by block.
    Others(Vec<ArrayRef>),
}

impl Values {
    /// None yet, in the form of a load if `is_load`.
    fn new(data_type: DataType, is_load: bool, spare: &Spare) -> Self {
        match data_type {
            DataType::SmallInt => Self::SmallInt(spare.take()),
            DataType::Integer => Self::Integer(spare.take()),
            DataType::BigInt => Self::BigInt(spare.take()),
            DataType::Decimal { precision, scale } => match u8::try_from(scale) {
                Ok(scale) if scale <= precision && is_load && precision <= DECIMAL64_MAX_PRECISION => {
                    Self::NarrowDecimal { values: spare.take(), precision, scale }
                }
                Ok(scale) if scale <= precision => Self::Decimal { values: spare.take(), precision, scale },
                _ => Self::Others(Vec::new()),
            },
            DataType::Date => Self::Date(spare.take()),
            DataType::Timestamp => Self::Timestamp(spare.take()),
            DataType::Real => Self::Real(spare.take()),
            DataType::Double => Self::Double(spare.take()),
            // CHAR(n) with the blanks at its end, which the check of a load looks for.
            _ if is_text(data_type, is_load) => {
                let mut ends = spare.take();
                ends.push(0);
                Self::Text { heap: spare.take(), ends }
            }
            _ => Self::Others(Vec::new()),
        }
    }

    /// Makes room for `times` as much as there is, and a little more.
    fn reserve(&mut self, times: usize) {
        fn more<T>(values: &mut Vec<T>, times: usize) {
            values.reserve(values.len() * times + values.len() * times / 16);
        }
        match self {
            Self::SmallInt(values) => more(values, times),
            Self::Integer(values) | Self::Date(values) => more(values, times),
            Self::BigInt(values) | Self::Timestamp(values) => more(values, times),
            Self::Decimal { values, .. } => more(values, times),
            Self::NarrowDecimal { values, .. } => more(values, times),
            Self::Real(values) => more(values, times),
            Self::Double(values) => more(values, times),
            Self::Text { heap, ends } => {
                more(heap, times);
                more(ends, times);
            }
            Self::Others(_) => {}
        }
    }

    /// Appends the values of `fields`, and to `nulls` which of them are NULL; false if something is in another form,
    /// with something or nothing appended.
    fn read(&mut self, fields: Fields<'_>, quoting: Quoting<'_>, has_quotes: bool, nulls: &mut Vec<u32>) -> bool {
        match self {
            Self::SmallInt(values) => integers(fields, quoting, values, nulls),
            Self::Integer(values) => integers(fields, quoting, values, nulls),
            Self::BigInt(values) => integers(fields, quoting, values, nulls),
            Self::Decimal { values, precision, scale } => {
                decimals(fields, quoting, (*precision, *scale), values, nulls)
            }
            Self::NarrowDecimal { values, precision, scale } => {
                decimals(fields, quoting, (*precision, *scale), values, nulls)
            }
            Self::Date(values) => dates(fields, quoting, values, nulls),
            Self::Timestamp(values) => timestamps(fields, quoting, values, nulls),
            Self::Real(values) => {
                each(fields, quoting, values, nulls, |bytes, start, end| float(bytes.get(start..end)?))
            }
            Self::Double(values) => {
                each(fields, quoting, values, nulls, |bytes, start, end| float(bytes.get(start..end)?))
            }
            Self::Text { heap, ends } => texts(fields, quoting, has_quotes, heap, ends, nulls),
            Self::Others(_) => false,
        }
    }

    /// Appends those of `array`, which is of the type, behind the first `rows`; None for texts, which have but one
    /// form.
    fn extend(&mut self, rows: usize, array: &ArrayRef) -> Option<()> {
        fn behind<T: ArrowPrimitiveType>(values: &mut Vec<T::Native>, rows: usize, array: &ArrayRef) -> Option<()> {
            values.truncate(rows);
            values.extend_from_slice(array.as_primitive_opt::<T>()?.values());
            Some(())
        }
        match self {
            Self::SmallInt(values) => behind::<Int16Type>(values, rows, array),
            Self::Integer(values) => behind::<Int32Type>(values, rows, array),
            Self::BigInt(values) => behind::<Int64Type>(values, rows, array),
            Self::Decimal { values, .. } => behind::<Decimal128Type>(values, rows, array),
            Self::NarrowDecimal { values, .. } => {
                values.truncate(rows);
                // They fit their precision, but for what stands where a value is NULL.
                values.extend(array.as_primitive_opt::<Decimal128Type>()?.values().iter().map(|digits| *digits as i64));
                Some(())
            }
            Self::Date(values) => behind::<Date32Type>(values, rows, array),
            Self::Timestamp(values) => behind::<TimestampMicrosecondType>(values, rows, array),
            Self::Real(values) => behind::<Float32Type>(values, rows, array),
            Self::Double(values) => behind::<Float64Type>(values, rows, array),
            Self::Text { .. } => None,
            Self::Others(arrays) => {
                arrays.push(array.clone());
                Some(())
            }
        }
    }

    /// All as an array of `data_type`.
    fn finish(self, data_type: DataType, nulls: Option<NullBuffer>) -> Option<ArrayRef> {
        fn array<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>) -> PrimitiveArray<T> {
            PrimitiveArray::new(ScalarBuffer::from(values), nulls)
        }
        Some(match self {
            Self::SmallInt(values) => Arc::new(array::<Int16Type>(values, nulls)),
            Self::Integer(values) => Arc::new(array::<Int32Type>(values, nulls)),
            Self::BigInt(values) => Arc::new(array::<Int64Type>(values, nulls)),
            Self::Decimal { values, precision, scale } => {
                let values = array::<Decimal128Type>(values, nulls);
                Arc::new(values.with_precision_and_scale(precision, i8::try_from(scale).ok()?).ok()?)
            }
            Self::NarrowDecimal { values, precision, scale } => {
                let values = array::<Decimal64Type>(values, nulls);
                Arc::new(values.with_precision_and_scale(precision, i8::try_from(scale).ok()?).ok()?)
            }
            Self::Date(values) => Arc::new(array::<Date32Type>(values, nulls)),
            Self::Timestamp(values) => Arc::new(array::<TimestampMicrosecondType>(values, nulls)),
            Self::Real(values) => Arc::new(array::<Float32Type>(values, nulls)),
            Self::Double(values) => Arc::new(array::<Float64Type>(values, nulls)),
            Self::Text { heap, ends } => Arc::new(StringViewArray::from(&strings(heap, ends, nulls)?)),
            Self::Others(arrays) if arrays.is_empty() => new_empty_array(&data_type.arrow()),
            Self::Others(arrays) => concat(&arrays.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>()).ok()?,
        })
    }
}

impl<'a> Builder<'a> {
    fn new((at, column): (usize, &'a Column), is_load: bool, spare: &Spare) -> Self {
        Self { at, column, values: Values::new(column.data_type, is_load, spare), nulls: Vec::new(), rows: 0 }
    }

    /// Appends the values of `fields`; None if one is none of its type, or they are too long together.
    fn append(
        &mut self,
        conversion: &Conversion<'_>,
        fields: Fields<'_>,
        quoting: Quoting<'_>,
        has_quotes: bool,
    ) -> Option<()> {
        let known = self.nulls.len();
        let is_text = conversion.wants_no_zeros(self.at) && has_zeros(fields, quoting.quote);
        let of_column = |row: u32| self.rows as u32 + row;
        if !is_text && self.values.read(fields, quoting, has_quotes, &mut self.nulls) {
            self.nulls.iter_mut().skip(known).for_each(|row| *row = of_column(*row));
        } else {
            self.nulls.truncate(known);
            let text: ArrayRef = Arc::new(text(fields, quoting, has_quotes)?);
            let array = conversion.column(self.at, &text).ok()?;
            self.values.extend(self.rows, &array)?;
            if let Some(nulls) = array.nulls().filter(|_| !matches!(self.values, Values::Others(_))) {
                self.nulls.extend((0..fields.len()).filter(|row| nulls.is_null(*row)).map(|row| of_column(row as u32)));
            }
        }
        self.rows += fields.len();
        Some(())
    }

    fn finish(mut self, is_load: bool) -> Option<ArrayRef> {
        if let (Values::Text { heap, ends }, true) = (&mut self.values, is_load) {
            let nulls = null_buffer(self.rows, &self.nulls);
            return Some(Arc::new(strings(std::mem::take(heap), std::mem::take(ends), nulls)?));
        }
        self.values.finish(self.column.data_type, null_buffer(self.rows, &self.nulls))
    }
}

fn null_buffer(rows: usize, nulls: &[u32]) -> Option<NullBuffer> {
    if nulls.is_empty() {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(rows);
    valid.append_n(rows, true);
    nulls.iter().for_each(|row| valid.set_bit(*row as usize, false));
    Some(NullBuffer::new(valid.finish()))
}

/// The texts of `fields`; None if they are no UTF-8, or too long.
fn text(fields: Fields<'_>, quoting: Quoting<'_>, has_quotes: bool) -> Option<StringArray> {
    let (mut heap, mut ends, mut nulls) = (Vec::new(), vec![0], Vec::new());
    if !texts(fields, quoting, has_quotes, &mut heap, &mut ends, &mut nulls) {
        return None;
    }
    strings(heap, ends, null_buffer(fields.len(), &nulls))
}

/// The texts of `heap`, which end at `ends`, 0 before the first one; None if they are no UTF-8.
fn strings(heap: Vec<u8>, ends: Vec<i32>, nulls: Option<NullBuffer>) -> Option<StringArray> {
    let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
    StringArray::try_new(ends, Buffer::from_vec(heap), nulls).ok()
}

/// Whether one of `fields` has zeros in front of its digits.
fn has_zeros(fields: Fields<'_>, quote: u8) -> bool {
    let of_field = |field: &[u8]| {
        let field = field.strip_prefix(&[quote]).unwrap_or(field);
        matches!(field, [b'0', b'0'..=b'9', ..] | [b'-', b'0', b'0'..=b'9', ..])
    };
    (0..fields.len()).any(|row| of_field(fields.get(row)))
}

/// A float that is read exactly.
trait Float: Copy + std::str::FromStr {
    fn is_finite(self) -> bool;
    fn is_zero(self) -> bool;
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Float for $t {
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            fn is_zero(self) -> bool {
                self == 0.0
            }
        }
    )*};
}

float!(f32, f64);

/// The float that `text` spells in digits, perhaps with a point and an exponent. What is too large or too small for its
/// type is left to others, who refuse it.
fn float<T: Float>(text: &[u8]) -> Option<T> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = digits.first().is_some_and(u8::is_ascii_digit)
        && digits.last().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+'));
    let value: T = if is_plain { std::str::from_utf8(text).ok()?.parse().ok()? } else { return None };
    let is_exact_zero = || digits.iter().all(|byte| matches!(byte, b'0' | b'.'));
    (value.is_finite() && (!value.is_zero() || is_exact_zero())).then_some(value)
}
