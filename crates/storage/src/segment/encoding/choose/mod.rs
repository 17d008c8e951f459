//! The choice of an encoding: the smallest by computed size. What is only a little larger but cheaper to read wins
//! ties: constant, frame of reference, plain, dictionary. What has to be decoded, or takes more steps to read, has to
//! save an eighth or more, and half where the column is searched: a search pays for each step at every row it looks at.
//!
//! [`numbers`] has the choice for numbers, whose sizes are computed, [`texts`] that for texts and bytes, whose sizes
//! are estimated from samples.

mod numbers;
mod texts;

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal64Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_schema::DataType as ArrowType;
use mainstem_kernels::bitmap;

use super::super::sketch::DistinctSketch;
use super::fsst::LastSymbols;
use super::native::{Native, dispatch, wrong_type};
use super::sections::begin_section;
use super::{Encoding, frame};
use crate::error::Result;
use crate::row::{Value, coded_texts};
use crate::schema::DataType;
use crate::settings::Encodings;

/// Whether `bytes` are so much less than `others` that it is worth to take more steps to read them.
fn is_worth(bytes: usize, others: usize) -> bool {
    bytes <= others / 8 * 7
}

/// A column, encoded.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// How.
    pub encoding: Encoding,
    /// NULL rows.
    pub null_count: u32,
    /// The bitmap of rows that are not NULL, unless all or none are, and the sections of the encoding. Empty when the
    /// metadata says it all.
    pub body: Vec<u8>,
    /// Least and greatest value; NULL without any.
    pub bounds: (Value, Value),
    /// Distinct values, where the encoding knows them.
    pub distinct: Option<u32>,
    /// The sum of the values, of integers and unscaled decimals, unless it overflows.
    pub sum: Option<i128>,
    /// A sketch of the distinct values, where the encoding does not know them.
    pub sketch: Option<DistinctSketch>,
}

/// Whether arrays of type `arrow` have the values of a column of `data_type`: its own type, for texts Utf8 and codes of
/// such, and for decimals those of 64 bits, too.
pub(crate) fn is_stored_as(data_type: DataType, arrow: &ArrowType) -> bool {
    *arrow == data_type.arrow()
        || match (data_type, arrow) {
            (DataType::Text { .. } | DataType::Char { .. }, ArrowType::Utf8) => true,
            (DataType::Text { .. } | DataType::Char { .. }, ArrowType::Dictionary(codes, texts)) => {
                (codes.as_ref(), texts.as_ref()) == (&ArrowType::Int32, &ArrowType::Utf8)
            }
            (DataType::Decimal { precision, scale }, ArrowType::Decimal64(digits, point)) => {
                (precision, scale) == (*digits, *point)
            }
            _ => false,
        }
}

/// What is known of a column beside its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnUse<'a> {
    /// Which encodings are wanted.
    pub encodings: Encodings,
    /// Whether rows are found by its values, as by those of a sort key.
    pub is_searched: bool,
    /// The symbols that it had in the segment before.
    pub symbols: Option<&'a LastSymbols>,
}

/// Encodes `array`, whose type [`is_stored_as`] allows.
///
/// # Errors
/// Internal for another type; Full when texts exceed 2 GiB.
pub(crate) fn encode(data_type: DataType, array: &ArrayRef, column: ColumnUse<'_>) -> Result<Encoded> {
    let ColumnUse { encodings, is_searched, symbols } = column;
    if !is_stored_as(data_type, array.data_type()) {
        return Err(wrong_type(data_type, &array.data_type().to_string()));
    }
    let nulls = array.nulls().filter(|n| n.null_count() > 0);
    let null_count = array.null_count();
    let mut body = Vec::new();
    if let Some(nulls) = nulls.filter(|n| n.null_count() < n.len()) {
        encode_validity(nulls, &mut body);
    }
    let mut encoded = Encoded {
        encoding: Encoding::Constant { value: Value::Null },
        null_count: null_count as u32,
        body,
        bounds: (Value::Null, Value::Null),
        distinct: Some(0),
        sum: None,
        sketch: None,
    };
    if null_count == array.len() {
        return Ok(encoded);
    }
    if matches!(array.data_type(), ArrowType::Dictionary(..)) {
        if let Some((codes, values)) = coded_texts(array).filter(|_| encodings == Encodings::Smallest)
            && texts::encode_coded(data_type, codes, values, &mut encoded)?
        {
            return Ok(encoded);
        }
        let texts = cast(array, &ArrowType::Utf8)?;
        return encode(data_type, &texts, column);
    }
    let narrow = match (data_type, array.as_primitive_opt::<Decimal64Type>()) {
        (DataType::Decimal { .. }, Some(values)) => Some(Cow::Borrowed(&values.values()[..])),
        (DataType::Decimal { .. }, None) => {
            i128::values_of(array.as_ref()).and_then(|values| narrowed(&values)).map(Cow::Owned)
        }
        _ => None,
    };
    if let Some(values) = narrow {
        numbers::encode::<i64, i128>(data_type, &values, nulls, (encodings, is_searched), &mut encoded);
        return Ok(encoded);
    }
    dispatch!(data_type,
    N => {
        let values = N::values_of(array.as_ref()).ok_or_else(|| wrong_type(data_type, "numbers"))?;
        numbers::encode::<N, N>(data_type, &values, nulls, (encodings, is_searched), &mut encoded);
    },
    boolean => encode_booleans(array, nulls, &mut encoded),
    bytes => {
        let short = array.as_string_opt().filter(|_| null_count == 0 && encodings == Encodings::Smallest);
        let is_done = short.map(|short| texts::encode_short(data_type, short, &mut encoded)).transpose()?;
        if is_done != Some(true) {
            texts::encode(data_type, &texts_of(data_type, array), nulls, (encodings, symbols), &mut encoded)?;
        }
    });
    Ok(encoded)
}

/// `values` in 64 bits, if they fit: most decimals do, and each step takes a fraction of the time then.
fn narrowed(values: &[i128]) -> Option<Vec<i64>> {
    let fit = values.iter().fold(true, |fit, value| fit & (*value == i128::from(*value as i64)));
    fit.then(|| values.iter().map(|value| *value as i64).collect())
}

/// The texts of `array`, empty for NULL.
fn texts_of(data_type: DataType, array: &ArrayRef) -> Vec<&[u8]> {
    if let Some(texts) = array.as_string_opt::<i32>() {
        // Of NULL the offsets say nothing.
        return texts.iter().map(|text| text.unwrap_or_default().as_bytes()).collect();
    }
    match data_type {
        DataType::Bytea => array.as_binary_view().iter().map(Option::unwrap_or_default).collect(),
        _ => array.as_string_view().iter().map(|text| text.unwrap_or_default().as_bytes()).collect(),
    }
}

/// The bitmap of rows that are not NULL, in whole words.
fn encode_validity(nulls: &NullBuffer, body: &mut Vec<u8>) {
    begin_section(body);
    body.extend(nulls.inner().sliced().iter().take(nulls.len().div_ceil(8)));
    // Bits behind the last row are zero in the file, whatever Arrow has there.
    if let (Some(last), tail @ 1..) = (body.last_mut(), nulls.len() % 8) {
        *last &= (1u8 << tail) - 1;
    }
    body.resize(bitmap::words(nulls.len()) * 8, 0);
}

fn encode_booleans(array: &ArrayRef, nulls: Option<&NullBuffer>, encoded: &mut Encoded) {
    let bits = array.as_boolean().values();
    let valid = |i: usize| nulls.is_none_or(|n| n.is_valid(i));
    let any = |wanted: bool| bits.iter().enumerate().any(|(i, b)| b == wanted && valid(i));
    let (least, greatest) = (!any(false), any(true));
    encoded.bounds = (Value::Boolean(least), Value::Boolean(greatest));
    if least == greatest {
        encoded.encoding = Encoding::Constant { value: Value::Boolean(least) };
        encoded.distinct = Some(1);
    } else {
        let values: Vec<i16> = bits.iter().map(i16::from).collect();
        frame::encode(&values, nulls, 0, 1, &mut encoded.body);
        encoded.encoding = Encoding::FrameOfReference { reference: 0, width: 1 };
        encoded.distinct = Some(2);
    }
}

/// The values with `None` for NULL.
fn present<'a, T: Copy>(
    values: &'a [T],
    nulls: Option<&'a NullBuffer>,
) -> impl ExactSizeIterator<Item = Option<T>> + 'a {
    values.iter().enumerate().map(move |(i, v)| nulls.is_none_or(|n| n.is_valid(i)).then_some(*v))
}
