//! Functions of DataFusion's with a [`Change`] of ours around them: a check of arguments or results, another type.
//!
//! Comes in: a function as it is registered. Goes out: one of the same name, aliases and documentation, which asks the
//! change first, and leaves to DataFusion's what the change does not answer. Two are equal if what they are around is.
//!
//! The optimizer may not shorten a call whose change checks something (`power(x, 0)` is 1 only after `x` was looked
//! at), so simplification is left out unless the change asks for it.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// What is otherwise in a function; by default nothing. The methods are those of [`ScalarUDFImpl`], with the function
/// as it was.
pub(crate) trait Change: Debug + Send + Sync + 'static {
    fn signature<'a>(&'a self, function: &'a ScalarUDF) -> &'a Signature {
        function.signature()
    }

    fn coerce_types(&self, function: &ScalarUDF, types: &[DataType]) -> Result<Vec<DataType>> {
        function.inner().coerce_types(types)
    }

    fn return_type(&self, function: &ScalarUDF, types: &[DataType]) -> Result<DataType> {
        function.inner().return_type(types)
    }

    fn return_field(&self, function: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        function.inner().return_field_from_args(args)
    }

    fn simplify(&self, _: &ScalarUDF, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Original(args))
    }

    fn invoke(&self, function: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        function.inner().invoke_with_args(args)
    }
}

/// `function` with `change` around it.
pub(crate) fn adapt(function: Arc<ScalarUDF>, change: impl Change) -> ScalarUDF {
    ScalarUDF::new_from_impl(Adapter { function, change })
}

#[derive(Debug)]
struct Adapter<C> {
    function: Arc<ScalarUDF>,
    change: C,
}

impl<C> PartialEq for Adapter<C> {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl<C> Eq for Adapter<C> {}

impl<C> Hash for Adapter<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
    }
}

impl<C: Change> ScalarUDFImpl for Adapter<C> {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.change.signature(&self.function)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.change.coerce_types(&self.function, arg_types)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.change.return_type(&self.function, arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.change.return_field(&self.function, args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.change.simplify(&self.function, args, info)
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.function.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.function.short_circuits()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.change.invoke(&self.function, args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}
