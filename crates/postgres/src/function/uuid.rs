//! `gen_random_uuid()`, also called `uuid()`: a UUID of version 4 for each row. DataFusion's function makes the text.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::types::{UUID, from_text};

/// The function, over `texts`, DataFusion's own `uuid`.
pub(crate) fn random_uuid(texts: Arc<ScalarUDF>, _: &Arc<dyn MemoryPool>) -> ScalarUDF {
    ScalarUDF::new_from_impl(RandomUuid { texts, signature: Signature::nullary(Volatility::Volatile) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RandomUuid {
    texts: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for RandomUuid {
    fn name(&self) -> &str {
        "gen_random_uuid"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(UUID)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let texts = self.texts.inner().invoke_with_args(args)?.into_array(rows)?;
        let texts = cast(&texts, &DataType::Utf8View)?;
        let uuids =
            from_text(texts.as_string_view(), &UUID, false).map_err(|e| DataFusionError::External(Box::new(e)))?;
        Ok(ColumnarValue::Array(uuids))
    }
}
