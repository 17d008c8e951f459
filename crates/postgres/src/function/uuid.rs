//! `gen_random_uuid()`, also called `uuid()`: a UUID of version 4 for each row. DataFusion's function makes the text.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_expr::{ColumnarValue, ScalarUDF, Signature, Volatility};

use crate::error::external;
use crate::evaluate::simple::of_call;
use crate::types::{UUID, from_text};

/// The function, over `texts`, DataFusion's own `uuid`.
pub(crate) fn random_uuid(texts: Arc<ScalarUDF>, _: &Arc<dyn MemoryPool>) -> ScalarUDF {
    of_call("gen_random_uuid", Signature::nullary(Volatility::Volatile), UUID, move |args| {
        let rows = args.number_rows;
        let texts = texts.inner().invoke_with_args(args)?.into_array(rows)?;
        let texts = cast(&texts, &DataType::Utf8View)?;
        Ok(ColumnarValue::Array(from_text(texts.as_string_view(), &UUID, false).map_err(external)?))
    })
}
