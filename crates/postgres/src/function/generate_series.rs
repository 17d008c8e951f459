//! `generate_series` as a function that gives an array: of whole numbers and of dates and timestamps, by DataFusion. Of
//! decimals there is none (0A000).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::ScalarUDF;
use mainstem_storage::Error;

use super::adapter::{Change, adapt};
use crate::error::external;

/// `function` that refuses decimals, if it is `generate_series`; others are returned as they are.
pub fn without_decimals(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    if function.name() != "generate_series" {
        return function;
    }
    Arc::new(adapt(function, WithoutDecimals))
}

#[derive(Debug)]
struct WithoutDecimals;

impl Change for WithoutDecimals {
    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.iter().any(|data_type| data_type.is_decimal() || data_type.is_floating()) {
            return Err(external(Error::unsupported(
                "generate_series of decimals (cast to BIGINT, or divide a series of them)",
            )));
        }
        function.inner().coerce_types(types)
    }
}
