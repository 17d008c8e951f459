//! Functions that are no more than a name, the types that they take and give, and what they compute.
//!
//! Comes in: these. Goes out: a function as DataFusion calls it. Two of one name are the same function. What gives its
//! result's type by the values of arguments, or is changed while a plan is made, implements DataFusion's trait itself.

use std::fmt;
use std::hash::{Hash, Hasher};

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::over_rows;

type Rule<T> = Box<dyn Fn(&[DataType]) -> Result<T> + Send + Sync>;
type Kernel = Box<dyn Fn(ScalarFunctionArgs) -> Result<ColumnarValue> + Send + Sync>;

/// A function as the module says.
pub(crate) struct Simple {
    name: &'static str,
    signature: Signature,
    /// The types of arguments for those that are given, where no signature says it.
    coerce: Option<Rule<Vec<DataType>>>,
    /// The type of results by those of arguments.
    result: Rule<DataType>,
    kernel: Kernel,
}

impl Simple {
    /// A function of results of the type `result`, which `compute` makes of arrays of so many rows.
    pub(crate) fn new(
        name: &'static str,
        signature: Signature,
        result: DataType,
        compute: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Self {
        let kernel: Kernel = Box::new(move |args| over_rows(&args, &compute));
        Self { name, signature, coerce: None, result: Box::new(move |_| Ok(result.clone())), kernel }
    }

    /// The function with arguments of the types that `coerce` makes of those given.
    pub(crate) fn coerced(self, coerce: impl Fn(&[DataType]) -> Result<Vec<DataType>> + Send + Sync + 'static) -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        Self { signature, coerce: Some(Box::new(coerce)), ..self }
    }

    /// The function with results of the type that `result` makes of the arguments' types.
    pub(crate) fn giving(self, result: impl Fn(&[DataType]) -> Result<DataType> + Send + Sync + 'static) -> Self {
        Self { result: Box::new(result), ..self }
    }

    /// As DataFusion calls it.
    pub(crate) fn udf(self) -> ScalarUDF {
        ScalarUDF::new_from_impl(self)
    }
}

/// A function of results of the type `result`, which `kernel` computes of a call as it is.
pub(crate) fn of_call(
    name: &'static str,
    signature: Signature,
    result: DataType,
    kernel: impl Fn(ScalarFunctionArgs) -> Result<ColumnarValue> + Send + Sync + 'static,
) -> ScalarUDF {
    let result: Rule<DataType> = Box::new(move |_| Ok(result.clone()));
    Simple { name, signature, coerce: None, result, kernel: Box::new(kernel) }.udf()
}

impl fmt::Debug for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Simple {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Simple {}

impl Hash for Simple {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Simple {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.coerce.as_ref().map_or_else(|| Ok(types.to_vec()), |coerce| coerce(types))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        (self.result)(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.kernel)(args)
    }
}
