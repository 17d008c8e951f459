//! `lpad`, `rpad` and `repeat` with a bound on what they make: a few characters of SQL can ask for any number of bytes.
//!
//! One result is at most 1 GiB, as in PostgreSQL (54000). Before a batch is made, its bytes are reserved from the
//! query's memory (53200). DataFusion's own functions do the rest.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::compute::kernels::length::length;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};
use mainstem_storage::{Error, ErrorKind};

use crate::error::external;
use crate::function::adapter::{Change, adapt};
use crate::sqlstate;
use crate::types::byte_size_text;

/// Bytes of one text: PostgreSQL's limit.
const TEXT_BYTES_MAX: u64 = 1 << 30;
/// Bytes of the texts of one batch: offsets into them have 31 bits.
const BATCH_BYTES_MAX: u64 = i32::MAX as u64;
/// Bytes of the longest character, as which those of `lpad` and `rpad` are counted.
const CHAR_BYTES_MAX: u64 = 4;

/// `function`, one of `lpad`, `rpad` and `repeat`, bounded.
pub(crate) fn bounded(function: Arc<ScalarUDF>, pool: &Arc<dyn MemoryPool>) -> ScalarUDF {
    adapt(function, Bounded { pool: pool.clone() })
}

#[derive(Debug)]
struct Bounded {
    pool: Arc<dyn MemoryPool>,
}

/// Most bytes that the results of `function` for `args` have together.
fn bytes(function: &ScalarUDF, args: &ScalarFunctionArgs) -> Result<u64> {
    let [text, number, ..] = args.args.as_slice() else { return Ok(0) };
    let is_scalar = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
    // Computed once of constants.
    let rows = if is_scalar(text) && is_scalar(number) { 1 } else { args.number_rows };
    // Of a constant one row.
    let (texts, numbers) = (length(&text.to_array(1)?)?, cast(&number.to_array(1)?, &DataType::Int64)?);
    let texts = cast(&texts, &DataType::Int64)?;
    let at = |array: &ArrayRef, row: usize| {
        let row = if array.len() == 1 { 0 } else { row };
        let number = array.is_valid(row).then(|| array.as_primitive::<Int64Type>().value(row));
        number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    };
    let mut total = 0_u64;
    for row in 0..rows {
        let one = if function.name() == "repeat" { at(&texts, row) } else { CHAR_BYTES_MAX };
        let bytes = at(&numbers, row).saturating_mul(one);
        if bytes > TEXT_BYTES_MAX {
            return Err(external(Error::invalid(
                sqlstate::LIMIT_EXCEEDED,
                format!("requested length too large: {} would make {bytes} bytes", function.name()),
            )));
        }
        total = total.saturating_add(bytes);
    }
    if total > BATCH_BYTES_MAX {
        return Err(external(Error::new(
            ErrorKind::Full,
            sqlstate::OUT_OF_MEMORY,
            format!(
                "out of query memory: {} would make {} for {rows} rows at once, of which there may be {}; make shorter texts",
                function.name(),
                byte_size_text(total),
                byte_size_text(BATCH_BYTES_MAX)
            ),
        )));
    }
    Ok(total)
}

impl Change for Bounded {
    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = usize::try_from(bytes(function, &args)?).unwrap_or(usize::MAX);
        let reserved = MemoryConsumer::new(function.name()).register(&self.pool);
        reserved.try_grow(bytes)?;
        let args = if function.name() == "repeat" { args } else { with_lengths(args)? };
        function.inner().invoke_with_args(args)
    }
}

/// The arguments of `lpad` or `rpad` with 0 in the place of lengths below it: the text is empty.
fn with_lengths(mut args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
    match args.args.get_mut(1) {
        Some(ColumnarValue::Array(lengths)) if lengths.data_type().is_integer() => {
            let whole = cast(lengths, &DataType::Int64)?;
            let clamped = whole.as_primitive::<Int64Type>().unary::<_, Int64Type>(|length| length.max(0));
            *lengths = cast(&clamped, lengths.data_type())?;
        }
        Some(ColumnarValue::Scalar(ScalarValue::Int64(Some(length)))) => *length = (*length).max(0),
        _ => {}
    }
    Ok(args)
}
