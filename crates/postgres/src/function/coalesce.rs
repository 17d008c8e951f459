//! `coalesce` with a TIME, a UUID, a date or a timestamp among its arguments, beside string literals.
//!
//! DataFusion's finds no type for the two when SQL becomes a plan, which is before the literals can be made casts
//! (`analyze::types::casts`). This one leaves them as they are until then, when what else is text beside TIME or UUID
//! is told. Dates and timestamps get the type that they have together.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryPool;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{Expr, ReturnFieldArgs, ScalarUDF};

use super::adapter::{Change, adapt};
use crate::types::{common_datetime, has_own_text};

/// `function`, DataFusion's, with those types.
pub(crate) fn coalesce(function: Arc<ScalarUDF>, _: &Arc<dyn MemoryPool>) -> ScalarUDF {
    adapt(function, Coalesce)
}

#[derive(Debug)]
struct Coalesce;

fn may_stand_beside(data_type: &DataType, parsed: &DataType) -> bool {
    data_type == parsed || data_type.is_null() || data_type.is_string()
}

impl Change for Coalesce {
    fn return_field(&self, function: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        if let Some(parsed) = args.arg_fields.iter().find(|field| has_own_text(field.data_type())) {
            let nullable = args.arg_fields.iter().all(|field| field.is_nullable());
            return Ok(Arc::new(Field::new(function.name(), parsed.data_type().clone(), nullable)));
        }
        let types = args.arg_fields.iter().map(|field| field.data_type());
        if let Some(common) = common_datetime(types) {
            let nullable = args.arg_fields.iter().all(|field| field.is_nullable());
            return Ok(Arc::new(Field::new(function.name(), common, nullable)));
        }
        function.inner().return_field_from_args(args)
    }

    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        match types.iter().find(|data_type| has_own_text(data_type)) {
            Some(parsed) if types.iter().all(|other| may_stand_beside(other, parsed)) => {
                let given = |other: &DataType| if other.is_null() { parsed.clone() } else { other.clone() };
                Ok(types.iter().map(given).collect())
            }
            _ => match common_datetime(types.iter()) {
                Some(common) => Ok(vec![common; types.len()]),
                None => function.inner().coerce_types(types),
            },
        }
    }

    fn simplify(&self, function: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        function.inner().simplify(args, info)
    }
}
