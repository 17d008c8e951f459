//! How functions over rows are computed: over arrays of one length, or once where all arguments are constants.
//!
//! Comes in: the arguments of a call. Goes out: its results, a constant of constants. It does not own: what the
//! function does. Most of ours are no more than that: [`simple`].

pub(crate) mod simple;

use arrow::array::ArrayRef;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs};

/// What `compute` makes of the arguments of a call, arrays of so many rows.
///
/// # Errors
/// Those of `compute`.
pub(super) fn over_rows(
    args: &ScalarFunctionArgs,
    compute: impl FnOnce(&[ArrayRef], usize) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if constant { 1 } else { args.number_rows };
    let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
    let results = compute(&arrays, rows)?;
    Ok(if constant {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?)
    } else {
        ColumnarValue::Array(results)
    })
}

/// What `compute` makes of one argument.
///
/// # Errors
/// Those of `compute`.
pub(super) fn over_one(
    value: &ColumnarValue,
    compute: impl FnOnce(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(compute(array)?),
        ColumnarValue::Scalar(one) => {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&compute(&one.to_array()?)?, 0)?)
        }
    })
}
