//! Rows put aside as bytes: short ones, for they are written and read once, and both are bound by how many they are.
//!
//! Comes in: rows of a sort, column by column, in the form in which the load has them. Goes out: bytes, and columns
//! in the same form again.
//!
//! - Numbers are differences from the least one of the block, in as few whole bytes as all need.
//! - Texts are their lengths, written as numbers are, and their bytes.
//! - Codes are numbers; the texts that they name stay in memory (`texts`).
//! - NULLs are bits in front of their column, if there are any.
//!
//! Invariants: bytes are read by the process that has written them, so that their form has no version; what does not
//! match its checksum is not read. It does not own: places in the file and checksums (`spill`).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, RecordBatch, StringArray, StringViewArray,
    UInt32Array, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType as ArrowType;
use mainstem_kernels::extremes::extremes_i64;

use super::texts::Texts;
use crate::codec::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::row::batch_of;

/// What messages call the file.
pub(super) const FILE: &str = "a temporary file";

/// The types of a sort's columns.
#[derive(Debug)]
pub(super) struct Columns(Vec<ArrowType>);

impl Columns {
    /// Those of `batch`, rows of the sort.
    pub fn of(batch: &RecordBatch) -> Self {
        Self(batch.columns().iter().map(|array| array.data_type().clone()).collect())
    }

    /// Appends `rows`, some of the sort's, to `out`.
    ///
    /// # Errors
    /// Internal for columns of other types.
    pub fn write(&self, rows: &RecordBatch, out: &mut Encoder) -> Result<()> {
        self.0.iter().zip(rows.columns()).try_for_each(|(data_type, array)| write(data_type, array, out))
    }

    /// The `rows` rows that `bytes` are, which begin at byte `at` of the file; codes name `texts`.
    ///
    /// # Errors
    /// Corrupt for what [`Columns::write`] does not write.
    pub fn read(&self, bytes: &Buffer, rows: usize, at: u64, texts: &[Option<Texts>]) -> Result<RecordBatch> {
        let mut input = Decoder::new(bytes, FILE, at);
        let column =
            |(data_type, texts): (&ArrowType, &Option<Texts>)| read(data_type, bytes, &mut input, rows, texts.as_ref());
        let columns = self.0.iter().zip(texts).map(column).collect::<Result<_>>()?;
        input.finish()?;
        batch_of(columns)
    }
}

fn write(data_type: &ArrowType, array: &ArrayRef, out: &mut Encoder) -> Result<()> {
    out.option(array.nulls().filter(|nulls| nulls.null_count() > 0), |out, nulls| write_bits(nulls.inner(), out));
    match data_type {
        ArrowType::Boolean => write_bits(array.as_boolean().values(), out),
        ArrowType::Utf8 => {
            let texts = array.as_string::<i32>();
            let ends = texts.value_offsets();
            write_numbers(ends.windows(2).map(|ends| i64::from(ends[1] - ends[0])), out);
            let (first, last) = (ends.first().copied().unwrap_or(0), ends.last().copied().unwrap_or(0));
            out.raw(texts.value_data().get(first as usize..last as usize).unwrap_or_default());
        }
        ArrowType::Utf8View => {
            let texts = array.as_string_view();
            write_texts(texts.views(), |row| texts.value(row).as_bytes(), out);
        }
        ArrowType::BinaryView => {
            let texts = array.as_binary_view();
            write_texts(texts.views(), |row| texts.value(row), out);
        }
        data_type => {
            let (data, rows) = (array.to_data(), array.len());
            match data_type.primitive_width() {
                Some(2) => write_numbers(first(data.buffer::<i16>(0), rows).iter().map(|v| i64::from(*v)), out),
                Some(4) => write_numbers(first(data.buffer::<i32>(0), rows).iter().map(|v| i64::from(*v)), out),
                Some(8) => write_numbers(first(data.buffer::<i64>(0), rows).iter().copied(), out),
                Some(16) => write_wide(first(data.buffer::<i128>(0), rows), out),
                _ => {
                    let values = array.as_fixed_size_binary_opt().ok_or_else(|| not_written(data_type))?;
                    out.raw(first(values.value_data(), rows * values.value_length() as usize));
                }
            }
        }
    }
    Ok(())
}

fn read(
    data_type: &ArrowType,
    bytes: &Buffer,
    input: &mut Decoder<'_>,
    rows: usize,
    texts: Option<&Texts>,
) -> Result<ArrayRef> {
    let nulls = input.option(|input| read_bits(bytes, input, rows))?.map(NullBuffer::new);
    Ok(match (data_type, texts) {
        (ArrowType::UInt32, Some(texts)) => {
            texts.read(UInt32Array::new(read_numbers(input, rows, |code| code as u32)?.into(), nulls))?
        }
        (ArrowType::Boolean, _) => Arc::new(BooleanArray::new(read_bits(bytes, input, rows)?, nulls)),
        (ArrowType::Utf8, _) => {
            let (ends, texts) = read_texts(bytes, input, rows)?;
            Arc::new(StringArray::try_new(ends, texts, nulls)?)
        }
        (ArrowType::Utf8View, _) => {
            let (ends, texts) = read_texts(bytes, input, rows)?;
            Arc::new(StringViewArray::from(&StringArray::try_new(ends, texts, nulls)?))
        }
        (ArrowType::BinaryView, _) => {
            let (ends, texts) = read_texts(bytes, input, rows)?;
            Arc::new(BinaryViewArray::from(&BinaryArray::try_new(ends, texts, nulls)?))
        }
        (data_type, _) => {
            let values = match (data_type.primitive_width(), data_type) {
                (Some(2), _) => read_numbers(input, rows, |value| value as i16)?.into(),
                (Some(4), _) => read_numbers(input, rows, |value| value as i32)?.into(),
                (Some(8), _) => read_numbers(input, rows, |value| value)?.into(),
                (Some(16), _) => read_wide(input, rows)?.into(),
                (_, ArrowType::FixedSizeBinary(width)) => {
                    take_bytes(bytes, input, rows * width.unsigned_abs() as usize)?
                }
                _ => return Err(not_written(data_type)),
            };
            let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(values).nulls(nulls);
            make_array(data.build()?)
        }
    })
}

fn not_written(data_type: &ArrowType) -> Error {
    Error::internal(format!("a column of {data_type} put aside"))
}

fn first<T>(values: &[T], count: usize) -> &[T] {
    values.get(..count).unwrap_or(values)
}

/// The next `count` bytes of `input`, which reads `bytes`, without a copy.
fn take_bytes(bytes: &Buffer, input: &mut Decoder<'_>, count: usize) -> Result<Buffer> {
    let at = input.position();
    input.raw(count)?;
    Ok(bytes.slice_with_length(at, count))
}

fn write_bits(bits: &BooleanBuffer, out: &mut Encoder) {
    out.raw(first(&bits.sliced(), bits.len().div_ceil(8)));
}

fn read_bits(bytes: &Buffer, input: &mut Decoder<'_>, rows: usize) -> Result<BooleanBuffer> {
    Ok(BooleanBuffer::new(take_bytes(bytes, input, rows.div_ceil(8))?, 0, rows))
}

/// Appends texts of these lengths.
fn write_texts<'a>(views: &[u128], text: impl Fn(usize) -> &'a [u8], out: &mut Encoder) {
    // The low half of a view is the length.
    write_numbers(views.iter().map(|view| i64::from(*view as u32)), out);
    (0..views.len()).for_each(|row| out.raw(text(row)));
}

fn read_texts(bytes: &Buffer, input: &mut Decoder<'_>, rows: usize) -> Result<(OffsetBuffer<i32>, Buffer)> {
    let lengths = read_numbers(input, rows, |length| length as u32)?;
    let mut end = 0_u64;
    let mut ends = Vec::with_capacity(rows + 1);
    ends.push(0);
    ends.extend(lengths.iter().map(|length| {
        end += u64::from(*length);
        end as i32
    }));
    if i32::try_from(end).is_err() {
        return Err(input.corrupt("texts that are longer than a column may be"));
    }
    let texts = take_bytes(bytes, input, end as usize)?;
    Ok((OffsetBuffer::new(ScalarBuffer::from(ends)), texts))
}

/// Appends `values`: the least one, the bytes of a difference from it, and the differences.
fn write_numbers(values: impl ExactSizeIterator<Item = i64>, out: &mut Encoder) {
    let values: Vec<i64> = values.collect();
    let (least, greatest) = extremes_i64(&values).unwrap_or((0, 0));
    let differences = values.iter().map(|value| value.wrapping_sub(least) as u64);
    let width = match greatest.wrapping_sub(least) as u64 {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    out.u8(width);
    out.i64(least);
    match width {
        0 => {}
        1 => out.raw(&differences.map(|value| value as u8).collect::<Vec<_>>()),
        2 => out.raw(differences.map(|value| (value as u16).to_le_bytes()).collect::<Vec<_>>().as_flattened()),
        4 => out.raw(differences.map(|value| (value as u32).to_le_bytes()).collect::<Vec<_>>().as_flattened()),
        _ => out.raw(differences.map(u64::to_le_bytes).collect::<Vec<_>>().as_flattened()),
    }
}

/// What [`write_numbers`] wrote of `rows` values, each through `of`.
fn read_numbers<T: Clone>(input: &mut Decoder<'_>, rows: usize, of: impl Fn(i64) -> T) -> Result<Vec<T>> {
    let (width, least) = (input.u8()?, input.i64()?);
    let of = |difference: u64| of(least.wrapping_add(difference as i64));
    let packed = input.raw(rows.saturating_mul(usize::from(width)))?;
    Ok(match width {
        0 => vec![of(0); rows],
        1 => packed.iter().map(|value| of(u64::from(*value))).collect(),
        2 => packed.as_chunks().0.iter().map(|value| of(u64::from(u16::from_le_bytes(*value)))).collect(),
        4 => packed.as_chunks().0.iter().map(|value| of(u64::from(u32::from_le_bytes(*value)))).collect(),
        8 => packed.as_chunks().0.iter().map(|value| of(u64::from_le_bytes(*value))).collect(),
        _ => return Err(input.corrupt(format_args!("numbers of {width} bytes"))),
    })
}

/// Appends whether 64 bits are enough for all `values`, and these.
fn write_wide(values: &[i128], out: &mut Encoder) {
    let are_narrow = values.iter().fold(true, |all, value| all & (*value == i128::from(*value as i64)));
    out.bool(are_narrow);
    if are_narrow {
        write_numbers(values.iter().map(|value| *value as i64), out);
    } else {
        out.raw(values.iter().map(|value| value.to_le_bytes()).collect::<Vec<_>>().as_flattened());
    }
}

fn read_wide(input: &mut Decoder<'_>, rows: usize) -> Result<Vec<i128>> {
    if input.bool()? {
        return read_numbers(input, rows, i128::from);
    }
    let packed = input.raw(rows.saturating_mul(size_of::<i128>()))?;
    Ok(packed.as_chunks().0.iter().map(|value| i128::from_le_bytes(*value)).collect())
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Float64Type, Int16Type, Int32Type, Int64Type};
    use arrow_array::{Decimal128Array, FixedSizeBinaryArray, PrimitiveArray};

    use super::*;
    use crate::error::ErrorKind;

    /// Written from a slice of them, and read.
    fn same(array: ArrayRef) {
        for (from, rows) in [(0, array.len()), (1, array.len() - 1), (array.len() / 2, 2), (3, 0)] {
            let batch = batch_of(vec![array.slice(from, rows)]).unwrap();
            let (columns, mut out) = (Columns::of(&batch), Encoder::new());
            columns.write(&batch, &mut out).unwrap();
            let bytes = Buffer::from_vec(out.finish());
            let found = columns.read(&bytes, rows, 0, &[None]).unwrap();
            assert_eq!(found.column(0), batch.column(0), "{} from {from}", array.data_type());
            let cut = bytes.slice_with_length(0, bytes.len() - 1);
            assert_eq!(columns.read(&cut, rows, 0, &[None]).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn columns_stay_what_they_are() {
        let extremes = [Some(i64::MIN), None, Some(i64::MAX), Some(0), Some(-1), Some(1 << 40), None];
        same(Arc::new(extremes.iter().copied().collect::<PrimitiveArray<Int64Type>>()));
        for spread in [1, 200, 60_000, 4_000_000_000, i64::MAX] {
            let values = [7, 7 + spread / 2, 7 - spread / 2, 8, 9].map(Some);
            same(Arc::new(values.into_iter().collect::<PrimitiveArray<Int64Type>>()));
            same(Arc::new(values.map(|v| v.map(|v| v as i32)).into_iter().collect::<PrimitiveArray<Int32Type>>()));
            same(Arc::new(values.map(|v| v.map(|v| v as i16)).into_iter().collect::<PrimitiveArray<Int16Type>>()));
            same(Arc::new(Decimal128Array::from(values.map(|v| v.map(i128::from)).to_vec())));
        }
        same(Arc::new(Decimal128Array::from(vec![i128::MIN, i128::MAX, 0, 1, i128::from(i64::MIN) - 1])));
        same(Arc::new(PrimitiveArray::<Float64Type>::from(vec![0.1, f64::INFINITY, -0.0, f64::MIN_POSITIVE, 1e300])));
        same(Arc::new(BooleanArray::from((0..21).map(|i| (i % 5 != 0).then_some(i % 3 == 0)).collect::<Vec<_>>())));
        let texts = ["", "a", "\u{1f333} wide", "more than twelve bytes of text", ""];
        let nulls = |(at, text)| (at != 2).then_some(text);
        same(Arc::new(texts.into_iter().enumerate().map(nulls).collect::<StringArray>()));
        same(Arc::new(texts.into_iter().enumerate().map(nulls).collect::<StringViewArray>()));
        let bytes = texts.into_iter().enumerate().map(nulls).map(|text| text.map(str::as_bytes));
        same(Arc::new(bytes.collect::<BinaryViewArray>()));
        let uuids = (0..6_u8).map(|i| (i != 1).then_some([i; 16]));
        same(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids, 16).unwrap()));
    }
}
