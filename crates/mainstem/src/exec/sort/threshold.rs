//! The last row that a limit keeps so far: which of other rows come before it.

use arrow::array::{Array, ArrayRef, AsArray, Datum, Scalar};
use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use arrow::compute::SortOptions;
use arrow::compute::kernels::cmp::{eq, gt, lt};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use super::gather::gather;
use super::key::KeyColumn;

/// A row's key.
#[derive(Debug)]
pub(super) struct Threshold(Vec<(Scalar<ArrayRef>, SortOptions)>);

impl Threshold {
    /// The key of row `at`, which keeps nothing of the others in memory.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn of(columns: &[KeyColumn], at: u32) -> Result<Self, ArrowError> {
        let at = ScalarBuffer::from(vec![at]);
        let value = |column: &KeyColumn| Ok((Scalar::new(gather(&column.values, &at)?), column.options));
        Ok(Self(columns.iter().map(value).collect::<Result<_, ArrowError>>()?))
    }

    /// The value of the first column, if it is an integer.
    pub(super) fn leading(&self) -> Option<i64> {
        let (value, _) = self.0.first()?;
        let value = value.get().0;
        if value.is_null(0) {
            return None;
        }
        Some(match value.data_type() {
            DataType::Int16 => value.as_primitive::<Int16Type>().value(0).into(),
            DataType::Int32 => value.as_primitive::<Int32Type>().value(0).into(),
            DataType::Int64 => value.as_primitive::<Int64Type>().value(0),
            DataType::Date32 => value.as_primitive::<Date32Type>().value(0).into(),
            DataType::Time64(_) => value.as_primitive::<Time64MicrosecondType>().value(0),
            DataType::Timestamp(..) => value.as_primitive::<TimestampMicrosecondType>().value(0),
            DataType::Decimal128(..) => value.as_primitive::<Decimal128Type>().value(0).try_into().ok()?,
            _ => return None,
        })
    }

    /// Which rows of `columns`, the same ones of other rows, come before it; None if none does.
    ///
    /// # Errors
    /// Of Arrow, for values that cannot be compared.
    pub(super) fn before(&self, columns: &[ArrayRef]) -> Result<Option<BooleanBuffer>, ArrowError> {
        let mut before: Option<BooleanBuffer> = None;
        let mut tied: Option<BooleanBuffer> = None;
        for ((value, options), column) in self.0.iter().zip(columns) {
            let (mut first, mut equal) = compare(value, column, *options)?;
            if let Some(tied) = &tied {
                (first, equal) = (&first & tied, &equal & tied);
            }
            before = Some(match before {
                Some(before) => &before | &first,
                None => first,
            });
            if equal.count_set_bits() == 0 {
                break;
            }
            tied = Some(equal);
        }
        Ok(before.filter(|before| before.count_set_bits() > 0))
    }
}

/// Whether values of that type are integers of at most 64 bits, or such with a point.
pub(super) fn has_integers(data_type: &DataType) -> bool {
    use DataType::{Date32, Decimal128, Int16, Int32, Int64, Time64, Timestamp};
    match data_type {
        Int16 | Int32 | Int64 | Date32 => true,
        Time64(unit) | Timestamp(unit, _) => *unit == TimeUnit::Microsecond,
        Decimal128(precision, _) => *precision <= 18,
        _ => false,
    }
}

/// Which rows of `column` come before `value`, and which equal it.
fn compare(
    value: &Scalar<ArrayRef>,
    column: &ArrayRef,
    options: SortOptions,
) -> Result<(BooleanBuffer, BooleanBuffer), ArrowError> {
    let rows = column.len();
    let nulls = || match column.nulls() {
        Some(nulls) => !nulls.inner(),
        None => BooleanBuffer::new_unset(rows),
    };
    if value.get().0.is_null(0) {
        let first = if options.nulls_first { BooleanBuffer::new_unset(rows) } else { !&nulls() };
        return Ok((first, nulls()));
    }
    let first = if options.descending { gt(column, value)? } else { lt(column, value)? };
    let is_true = |found: arrow::array::BooleanArray| match found.nulls() {
        Some(nulls) => found.values() & nulls.inner(),
        None => found.values().clone(),
    };
    let (mut first, equal) = (is_true(first), is_true(eq(column, value)?));
    if options.nulls_first && column.null_count() > 0 {
        first = &first | &nulls();
    }
    Ok((first, equal))
}
