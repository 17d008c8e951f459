//! What totals of one group and of many have in common: which values are added, and what becomes of a sum and a count.
//!
//! Comes in: values, or states, as arrays. Goes out: the same by their types; sums and averages of totals. It does not
//! own: adding (`sum`, `grouped_totals`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal64Type, Decimal128Type, Int16Type, Int32Type, Int64Type,
};
use arrow::error::ArrowError;
use datafusion_common::{DataFusionError, Result, ScalarValue};

use crate::operator::{digits_of, fitting, rounded, scale_of};

/// Decimal type of the state, whatever the scale of the values.
pub(super) const STATE: DataType = DataType::Decimal128(38, 0);
/// Digits that a sum of decimals has more than they.
const SUM_DIGITS: u8 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Sum,
    /// A sum of 38 digits, whatever the digits of the values.
    WideSum,
    Average,
}

pub(super) fn overflow() -> DataFusionError {
    out_of_range("a total has more than 38 digits")
}

fn out_of_range(message: &str) -> DataFusionError {
    DataFusionError::ArrowError(Box::new(ArrowError::ArithmeticOverflow(message.into())), None)
}

fn in_arrow(error: ArrowError) -> DataFusionError {
    DataFusionError::ArrowError(Box::new(error), None)
}

pub(super) fn mismatch() -> DataFusionError {
    DataFusionError::Internal("a total of integers or decimals got another type".into())
}

/// Whether we add values of this type ourselves.
pub(super) fn is_ours(data_type: &DataType) -> bool {
    match data_type {
        DataType::Int16 | DataType::Int32 | DataType::Int64 => true,
        DataType::Decimal128(_, scale) => *scale >= 0,
        _ => false,
    }
}

/// What becomes of a sum and a count.
#[derive(Clone, Debug)]
pub(super) struct Finish {
    kind: Kind,
    /// Digits behind the point of the values.
    scale: i8,
    pub(super) returns: DataType,
}

impl Finish {
    /// None for types that are not ours.
    pub(super) fn of(kind: Kind, values: &DataType) -> Option<Self> {
        if !is_ours(values) {
            return None;
        }
        let (digits, scale) = digits_of(values)?;
        let returns = match (kind, values) {
            (Kind::Sum, DataType::Decimal128(..)) => {
                DataType::Decimal128(digits.saturating_add(SUM_DIGITS).min(DECIMAL128_MAX_PRECISION), scale)
            }
            (Kind::Sum, _) => DataType::Int64,
            (Kind::WideSum, _) => DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale),
            (Kind::Average, _) => {
                DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale_of(i16::from(digits) - i16::from(scale), scale))
            }
        };
        Some(Self { kind, scale, returns })
    }

    pub(super) fn number(&self, sum: i128, count: i64) -> Result<i128> {
        match (self.kind, &self.returns) {
            (Kind::Average, DataType::Decimal128(_, scale)) => {
                rounded(sum, i32::from(*scale) - i32::from(self.scale), count.into()).map_err(in_arrow)
            }
            (_, DataType::Decimal128(..)) => fitting(sum).map_err(in_arrow),
            _ => i64::try_from(sum).map(i128::from).map_err(|_| out_of_range("sum is out of range for type bigint")),
        }
    }

    pub(super) fn scalar(&self, sum: i128, count: i64) -> Result<ScalarValue> {
        let number = if count == 0 { None } else { Some(self.number(sum, count)?) };
        Ok(match self.returns {
            DataType::Decimal128(digits, scale) => ScalarValue::Decimal128(number, digits, scale),
            _ => ScalarValue::Int64(number.and_then(|n| i64::try_from(n).ok())),
        })
    }

    pub(super) fn array(&self, totals: impl Iterator<Item = (i128, i64)>) -> Result<ArrayRef> {
        let numbers = totals.map(|(sum, count)| if count == 0 { Ok(None) } else { self.number(sum, count).map(Some) });
        let numbers = numbers.collect::<Result<Decimal128Array>>()?;
        Ok(match &self.returns {
            DataType::Decimal128(..) => Arc::new(numbers.with_data_type(self.returns.clone())),
            _ => Arc::new(numbers.unary_opt::<_, Int64Type>(|n| i64::try_from(n).ok())),
        })
    }
}

/// The values to be added.
pub(super) enum Numbers<'a> {
    Short(&'a PrimitiveArray<Int16Type>),
    Middle(&'a PrimitiveArray<Int32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
    /// Those that a plan carries in 64 bits, though its types say 128.
    Narrow(&'a PrimitiveArray<Decimal64Type>),
    Decimal(&'a Decimal128Array),
}

pub(super) fn numbers(values: &[ArrayRef]) -> Result<Numbers<'_>> {
    let values = values.first().ok_or_else(mismatch)?;
    match values.data_type() {
        DataType::Int16 => values.as_primitive_opt().map(Numbers::Short),
        DataType::Int32 => values.as_primitive_opt().map(Numbers::Middle),
        DataType::Int64 => values.as_primitive_opt().map(Numbers::Long),
        DataType::Decimal64(..) => values.as_primitive_opt().map(Numbers::Narrow),
        _ => values.as_primitive_opt().map(Numbers::Decimal),
    }
    .ok_or_else(mismatch)
}

/// The values in 128 bits.
pub(super) fn wide(values: &[ArrayRef]) -> Result<Decimal128Array> {
    Ok(match numbers(values)? {
        Numbers::Short(values) => values.unary(i128::from),
        Numbers::Middle(values) => values.unary(i128::from),
        Numbers::Long(values) => values.unary(i128::from),
        Numbers::Narrow(values) => values.unary(i128::from),
        Numbers::Decimal(values) => values.clone(),
    })
}

/// Sums and counts of partial results.
pub(super) fn states(values: &[ArrayRef]) -> Result<(&Decimal128Array, &Int64Array)> {
    match values {
        [sums, counts] => Ok((
            sums.as_primitive_opt::<Decimal128Type>().ok_or_else(mismatch)?,
            counts.as_primitive_opt::<Int64Type>().ok_or_else(mismatch)?,
        )),
        _ => Err(mismatch()),
    }
}
