//! Parameters in physical plans: functions without arguments that give the values of the run.
//!
//! Comes in: the values of a run, before it. Goes out: each where its parameter stands, as a single value, as a literal
//! would be. DataFusion 55.2 has no parameters in physical plans. Functions without arguments are not computed while
//! planning, and those that are not volatile may be moved.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use parking_lot::Mutex;

/// The values of a run; none between runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Values(Arc<Mutex<Vec<ScalarValue>>>);

impl Values {
    /// What the next run has.
    pub(super) fn bind(&self, values: Vec<ScalarValue>) {
        *self.0.lock() = values;
    }

    /// Lets go of the values.
    pub(super) fn release(&self) {
        self.0.lock().clear();
    }

    /// The parameter at `at`, from 0, of the type of `field`, as an expression.
    pub(super) fn slot(&self, at: usize, field: FieldRef) -> Expr {
        let slot = Slot { at, field, values: self.clone(), signature: Signature::nullary(Volatility::Stable) };
        ScalarUDF::new_from_impl(slot).call(Vec::new())
    }
}

/// A parameter.
#[derive(Debug)]
struct Slot {
    at: usize,
    field: FieldRef,
    values: Values,
    signature: Signature,
}

impl PartialEq for Slot {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && self.field == other.field && Arc::ptr_eq(&self.values.0, &other.values.0)
    }
}

impl Eq for Slot {}

impl Hash for Slot {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.at.hash(state);
    }
}

impl ScalarUDFImpl for Slot {
    fn name(&self) -> &str {
        "parameter"
    }

    fn display_name(&self, _: &[Expr]) -> Result<String> {
        Ok(format!("${}", self.at + 1))
    }

    fn schema_name(&self, _: &[Expr]) -> Result<String> {
        Ok(format!("${}", self.at + 1))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(self.field.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = self.values.0.lock().get(self.at).cloned();
        let value = value.ok_or_else(|| internal_datafusion_err!("a kept plan is run without its values"))?;
        Ok(ColumnarValue::Scalar(value))
    }
}
