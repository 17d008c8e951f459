//! `coalesce` with a TIME or UUID among its arguments, beside string literals.
//!
//! DataFusion's finds no type for the two when SQL becomes a plan, which is before the literals can be made casts (`spelled`). This one
//! leaves them as they are until then, when what else is text beside TIME or UUID is told.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::value::has_own_text;

/// `function`, DataFusion's, with those types.
pub(crate) fn coalesce(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::new_from_impl(Coalesce { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Coalesce {
    function: Arc<ScalarUDF>,
}

fn may_stand_beside(data_type: &DataType, spelled: &DataType) -> bool {
    data_type == spelled
        || matches!(data_type, DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function.inner().return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        if let Some(spelled) = args.arg_fields.iter().find(|field| has_own_text(field.data_type())) {
            let nullable = args.arg_fields.iter().all(|field| field.is_nullable());
            return Ok(Arc::new(Field::new(self.name(), spelled.data_type().clone(), nullable)));
        }
        self.function.inner().return_field_from_args(args)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        match arg_types.iter().find(|data_type| has_own_text(data_type)) {
            Some(spelled) if arg_types.iter().all(|other| may_stand_beside(other, spelled)) => {
                let given = |other: &DataType| if other.is_null() { spelled.clone() } else { other.clone() };
                Ok(arg_types.iter().map(given).collect())
            }
            _ => self.function.inner().coerce_types(arg_types),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.function.inner().simplify(args, info)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.function.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.function.short_circuits()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.function.inner().invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}
