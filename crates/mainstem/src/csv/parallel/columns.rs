//! Columns of a table from the rows of a chunk.
//!
//! Block by block (`blocks`), and of a block column by column, the values of its fields are appended. A block whose
//! fields of a column are not all in the plainest form of their type goes by way of texts and
//! [`Conversion::column`](super::Conversion), for this column.
//!
//! The block is so small that the caches hold it, and its separators, until the last column is read. Where something is
//! wrong nothing comes out, and others tell what.

use std::sync::Arc;

use arrow::array::new_empty_array;
use arrow::array::{Array, ArrayRef, AsArray, BooleanBufferBuilder, PrimitiveArray, StringArray, StringViewArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::compute::concat;
use arrow::datatypes::{
    ArrowPrimitiveType, DECIMAL64_MAX_PRECISION, Date32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type,
    Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use mainstem_kernels::csv::{Fields, Quoting, Texts, dates, decimals, each, integers, timestamps};
use mainstem_postgres::types::in_one_form;
use mainstem_storage::schema::{Column, DataType};

use super::blocks::{Block, Blocks, RowForm};
use super::chunk::{Chunk, FoundRows};
use super::spare::Spare;
use super::{Conversion, FileRows};

/// Bytes of a block: with the places of its separators they fit a core's own cache (section 3.3 of the paper, figure
/// 13).
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// The columns of the rows `found` in `chunk`, and how many rows they are; None if something is wrong with one of them,
/// which others can tell.
pub(super) fn columns_of(rows: &FileRows<'_>, chunk: &Chunk, found: &FoundRows) -> Option<(Vec<ArrayRef>, usize)> {
    let (header, body) = chunk.header_and_rows(found);
    let form = RowForm::behind(header, rows.marks(), rows.columns.len())?;
    if !found.is_whole {
        return None;
    }
    let mut columns = Columns::new(rows, body.len());
    let mut blocks = Blocks::new(form, body, BLOCK_BYTES);
    let mut separators = Vec::new();
    while let Some(block) = blocks.next(&mut separators)? {
        columns.append(&block)?;
    }
    columns.finish()
}

/// The columns that are wanted, which grow block by block.
pub(super) struct Columns<'a> {
    rows: &'a FileRows<'a>,
    builders: Vec<Builder<'a>>,
    count: usize,
    /// Bytes of all blocks, about.
    bytes: usize,
}

impl<'a> Columns<'a> {
    /// None yet, of `bytes` bytes of rows that will come.
    pub(super) fn new(rows: &'a FileRows<'a>, bytes: usize) -> Self {
        let builders = rows.conversion.wanted().map(|column| Builder::new(column, rows.is_load, &rows.spare)).collect();
        Self { rows, builders, count: 0, bytes }
    }

    /// Appends the rows of `block`; None if something is wrong with one of them.
    pub(super) fn append(&mut self, block: &Block<'_>) -> Option<()> {
        let (rows, columns) = (self.rows, self.rows.columns.len());
        let quoting = Quoting { quote: rows.options.quote, null: rows.options.null.as_bytes() };
        self.count += block.ends.len() / columns;
        for builder in &mut self.builders {
            let fields = Fields::new(block.bytes, block.ends, 0, (columns, builder.at), block.has_returns);
            let is_first = builder.rows == 0;
            builder.append(&rows.conversion, fields, quoting, block.has_quotes)?;
            // A block that ends early, before a long row, says nothing of the others.
            if is_first && block.bytes.len() >= BLOCK_BYTES / 2 {
                builder.values.reserve(self.bytes / block.bytes.len());
            }
        }
        Some(())
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// An array of each, and how many rows they have.
    pub(super) fn finish(self) -> Option<(Vec<ArrayRef>, usize)> {
        let is_load = self.rows.is_load;
        let columns = self.builders.into_iter().map(|builder| builder.finish(is_load)).collect::<Option<Vec<_>>>()?;
        Some((columns, self.count))
    }
}

/// Whether columns of `data_type` are texts as they stand in the file.
fn is_text(data_type: DataType, is_load: bool) -> bool {
    matches!(data_type, DataType::Text { .. }) || is_load && matches!(data_type, DataType::Char { .. })
}

/// Whether arrays of blocks are joined at the end, so that all of it is there twice.
pub(super) fn is_joined(data_type: DataType) -> bool {
    matches!(Values::new(data_type, false, &Spare::default()), Values::Others(_))
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
    Text(Texts),
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
            _ if is_text(data_type, is_load) => Self::Text(Texts::new(spare.take(), spare.take())),
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
            Self::Text(texts) => texts.reserve(times),
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
            Self::Text(texts) => texts.read(fields, quoting, has_quotes, nulls),
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
            Self::Text(_) => None,
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
            Self::Real(values) => in_one_form(Arc::new(array::<Float32Type>(values, nulls))),
            Self::Double(values) => in_one_form(Arc::new(array::<Float64Type>(values, nulls))),
            Self::Text(texts) => Arc::new(StringViewArray::from(&texts.finish(nulls)?)),
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

    fn finish(self, is_load: bool) -> Option<ArrayRef> {
        let nulls = null_buffer(self.rows, &self.nulls);
        match self.values {
            Values::Text(texts) if is_load => Some(Arc::new(texts.finish(nulls)?)),
            values => values.finish(self.column.data_type, nulls),
        }
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
    let (mut texts, mut nulls) = (Texts::new(Vec::new(), Vec::new()), Vec::new());
    if !texts.read(fields, quoting, has_quotes, &mut nulls) {
        return None;
    }
    texts.finish(null_buffer(fields.len(), &nulls))
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
