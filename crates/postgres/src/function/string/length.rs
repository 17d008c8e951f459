//! `lpad`, `rpad` and `repeat` with a bound on what they make: a few characters of SQL can ask for any number of bytes.
//!
//! One result is at most 1 GiB, as in PostgreSQL (54000). Before a batch is made, its bytes are reserved from the
//! query's memory (53200). DataFusion's own functions do the rest.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
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
/// Bytes of the longest character.
const CHAR_BYTES_MAX: u64 = 4;

/// `function`, one of `lpad`, `rpad` and `repeat`, bounded.
pub(crate) fn bounded(function: Arc<ScalarUDF>, pool: &Arc<dyn MemoryPool>) -> ScalarUDF {
    let length = if function.name() == "repeat" { Length::Repeat } else { Length::Pad };
    adapt(function, Bounded { length, pool: pool.clone() })
}

/// How long a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Length {
    /// The text times the number.
    Repeat,
    /// As many characters as the number says.
    Pad,
}

#[derive(Debug)]
struct Bounded {
    length: Length,
    pool: Arc<dyn MemoryPool>,
}

impl Bounded {
    /// Most bytes that the results of `function` for `args` have together.
    fn bytes(&self, function: &ScalarUDF, args: &ScalarFunctionArgs) -> Result<u64> {
        let [text, number, rest @ ..] = args.args.as_slice() else { return Ok(0) };
        let rows = match (text, number) {
            // Computed once.
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => 1,
            _ => args.number_rows,
        };
        let numbers = Numbers::of(number)?;
        let texts = Texts::of(text)?;
        let width = match (self.length, rest.first()) {
            (Length::Pad, fill) => {
                let ascii = texts.is_ascii() && fill.map(Texts::of).transpose()?.is_none_or(|fill| fill.is_ascii());
                if ascii { 1 } else { CHAR_BYTES_MAX }
            }
            (Length::Repeat, _) => 1,
        };
        let mut total = 0_u64;
        for row in 0..rows {
            let times = numbers.at(row).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
            let bytes = match self.length {
                Length::Repeat => texts.bytes(row).saturating_mul(times),
                Length::Pad => times.saturating_mul(width),
            };
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
}

/// The texts of one argument.
enum Texts {
    One(u64, bool),
    Many(ArrayRef),
}

impl Texts {
    fn of(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Scalar(ScalarValue::Utf8(t) | ScalarValue::LargeUtf8(t) | ScalarValue::Utf8View(t)) => {
                let text = t.as_deref().unwrap_or_default();
                Self::One(text.len() as u64, text.is_ascii())
            }
            ColumnarValue::Scalar(other) => Self::Many(other.to_array()?),
            ColumnarValue::Array(array) => Self::Many(array.clone()),
        })
    }

    fn bytes(&self, row: usize) -> u64 {
        match self {
            Self::One(bytes, _) => *bytes,
            Self::Many(array) if array.is_null(row) => 0,
            Self::Many(array) => match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().value(row).len() as u64,
                DataType::LargeUtf8 => array.as_string::<i64>().value(row).len() as u64,
                DataType::Utf8View => array.as_string_view().value(row).len() as u64,
                _ => 0,
            },
        }
    }

    fn is_ascii(&self) -> bool {
        match self {
            Self::One(_, ascii) => *ascii,
            Self::Many(array) => match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().is_ascii(),
                DataType::LargeUtf8 => array.as_string::<i64>().is_ascii(),
                DataType::Utf8View => array.as_string_view().is_ascii(),
                _ => false,
            },
        }
    }
}

/// The numbers of one argument.
enum Numbers {
    One(Option<i64>),
    Many(ArrayRef),
}

impl Numbers {
    fn of(value: &ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Scalar(ScalarValue::Int64(n)) => Self::One(*n),
            ColumnarValue::Scalar(other) => Self::Many(other.to_array()?),
            ColumnarValue::Array(array) => Self::Many(array.clone()),
        })
    }

    fn at(&self, row: usize) -> Option<i64> {
        match self {
            Self::One(number) => *number,
            Self::Many(array) => {
                array.as_primitive_opt::<Int64Type>().filter(|a| a.is_valid(row)).map(|a| a.value(row))
            }
        }
    }
}

impl Change for Bounded {
    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = usize::try_from(self.bytes(function, &args)?).unwrap_or(usize::MAX);
        let reserved = MemoryConsumer::new(function.name()).register(&self.pool);
        reserved.try_grow(bytes)?;
        function.inner().invoke_with_args(args)
    }
}
