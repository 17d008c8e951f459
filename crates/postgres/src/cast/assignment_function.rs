//! The assignment cast as a function, for cells of VALUES that are assigned to their column one by one (`sql::dml`).

use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::Column;

use super::assignment::{assign, check};
use crate::error::external;
use crate::evaluate::over_one;
use crate::types::sql_type;

/// The name of the function.
pub const ASSIGNED_TO: &str = "assigned to";

/// `"assigned to"(value, NULL of the column's type, the column's name)`.
pub fn assigned_to() -> ScalarUDF {
    ScalarUDF::new_from_impl(AssignedTo { signature: Signature::any(3, Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AssignedTo {
    signature: Signature,
}

/// The column of a type and a name. Lengths are looked at when rows are stored.
fn column(data_type: &ArrowType, name: Option<&ScalarValue>) -> Result<Column> {
    let name = name.and_then(|name| name.try_as_str().flatten());
    match (sql_type(data_type), name) {
        (Some(data_type), Some(name)) => Ok(Column::new(ColumnId(0), name, data_type, true)),
        _ => Err(DataFusionError::Internal("an assignment to no column".into())),
    }
}

impl ScalarUDFImpl for AssignedTo {
    fn name(&self) -> &str {
        ASSIGNED_TO
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        types.get(1).cloned().ok_or_else(|| DataFusionError::Internal("an assignment to no column".into()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let ([value, to, _], [literal, _, name]) = (args.arg_fields, args.scalar_arguments) else {
            return Err(DataFusionError::Internal("an assignment without its arguments".into()));
        };
        check(value.data_type(), literal.is_some(), &column(to.data_type(), *name)?).map_err(external)?;
        Ok(Arc::new(Field::new(ASSIGNED_TO, to.data_type().clone(), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, to, ColumnarValue::Scalar(name)] = args.args.as_slice() else {
            return Err(DataFusionError::Internal("an assignment without its arguments".into()));
        };
        let column = column(&to.data_type(), Some(name))?;
        over_one(value, |values| assign(values, &column).map_err(external))
    }
}
