//! What the values of a column are read as.
//!
//! Comes in: the type of a column. Goes out: the type of the arrays that have its values. Whoever asks for another form
//! than [`Form::Values`] spares what it takes to make the column's own arrays: texts that only tell groups apart stay
//! codes, and decimals that fit into 64 bits are not widened to 128.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal64Type, Decimal128Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, UInt32Array};
use arrow_schema::{DECIMAL64_MAX_PRECISION, DataType as ArrowType};

use crate::error::{Error, Result};
use crate::schema::DataType;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Arrays of the column's type.
    #[default]
    Values,
    /// Arrow dictionaries: codes into distinct values where the column is stored so.
    Codes,
    /// Decimals in 64 bits. Others are [`Form::Values`].
    Narrow,
}

impl Form {
    /// The type of arrays that have values of `data_type`.
    #[must_use]
    pub fn arrow(self, data_type: DataType) -> ArrowType {
        match (self, data_type) {
            (Self::Codes, _) => ArrowType::Dictionary(Box::new(ArrowType::UInt32), Box::new(data_type.arrow())),
            (Self::Narrow, DataType::Decimal { precision, scale }) if is_narrow(data_type) => {
                ArrowType::Decimal64(precision, scale)
            }
            _ => data_type.arrow(),
        }
    }

    /// Whether numbers of `data_type` are decoded in 64 bits, whatever they are stored as.
    pub(crate) fn narrows(self, data_type: DataType) -> bool {
        self == Self::Narrow && is_narrow(data_type)
    }

    /// `values`, an array of a column of `data_type`, in this form.
    ///
    /// # Errors
    /// Internal for an array of another type.
    pub(crate) fn of(self, values: ArrayRef, data_type: DataType) -> Result<ArrayRef> {
        match self {
            Self::Values => Ok(values),
            Self::Codes => codes_of(values),
            Self::Narrow if !is_narrow(data_type) => Ok(values),
            Self::Narrow => {
                let wide = values.as_primitive_opt::<Decimal128Type>();
                let wide = wide.ok_or_else(|| Error::internal(format!("decimals of type {}", values.data_type())))?;
                // A column of so many digits has no value of more.
                let narrow: PrimitiveArray<Decimal64Type> = wide.unary(|digits| digits as i64);
                Ok(Arc::new(narrow.with_data_type(self.arrow(data_type))))
            }
        }
    }
}

/// Whether 64 bits have room for all values of `data_type`, a decimal.
pub fn is_narrow(data_type: DataType) -> bool {
    matches!(data_type, DataType::Decimal { precision, .. } if precision <= DECIMAL64_MAX_PRECISION)
}

/// `values` as an Arrow dictionary in which each row has a value of its own.
fn codes_of(values: ArrayRef) -> Result<ArrayRef> {
    let codes: Vec<u32> = (0..values.len() as u32).collect();
    let codes = UInt32Array::try_new(codes.into(), values.logical_nulls())?;
    Ok(Arc::new(DictionaryArray::try_new(codes, values)?))
}
