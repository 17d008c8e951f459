//! The one form of floats: no minus zero, and one NaN, whose sign bit is not set.
//!
//! Kernels compare, hash and sort floats by their bits, and storage keeps the one form. So every float that a statement
//! computes is brought into it where it comes from: results of functions, operators and aggregates, casts of texts,
//! rows of files. Then equal values have equal bits, wherever they are compared. A processor makes NaNs with a sign
//! bit (`Infinity - Infinity`), which would sort below all numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, GenericListArray, OffsetSizeTrait, StructArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::ColumnarValue;

/// A float in its one form.
pub trait OneForm: Copy {
    /// See the module.
    #[must_use]
    fn one_form(self) -> Self;

    /// Whether it is in its one form.
    fn is_in_form(self) -> bool;
}

macro_rules! one_form {
    ($float:ty) => {
        impl OneForm for $float {
            #[inline]
            fn one_form(self) -> Self {
                // Plus zero turns -0.0 into 0.0, and changes nothing else.
                if self.is_nan() { <$float>::NAN } else { self + 0.0 }
            }

            #[inline]
            fn is_in_form(self) -> bool {
                const MINUS_ZERO: $float = -0.0;
                self.to_bits() != MINUS_ZERO.to_bits() && !self.is_nan()
            }
        }
    };
}

one_form!(f32);
one_form!(f64);

/// Whether values of `data_type` are floats, or contain some.
#[must_use]
pub fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(item) | DataType::LargeList(item) => has_floats(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}

/// `array` with its floats in their one form, those within lists and structures too.
#[must_use]
pub fn in_one_form(array: ArrayRef) -> ArrayRef {
    if !has_floats(array.data_type()) {
        return array;
    }
    match array.data_type() {
        DataType::Float32 => plain::<Float32Type>(array),
        DataType::Float64 => plain::<Float64Type>(array),
        DataType::List(_) => list::<i32>(array),
        DataType::LargeList(_) => list::<i64>(array),
        _ => structure(array),
    }
}

fn plain<T: ArrowPrimitiveType<Native: OneForm>>(array: ArrayRef) -> ArrayRef {
    let floats = array.as_primitive::<T>();
    // Without a branch for each value, so that several are compared at once.
    if floats.values().iter().fold(true, |are, value| are & value.is_in_form()) {
        return array;
    }
    Arc::new(floats.unary::<_, T>(OneForm::one_form))
}

fn list<O: OffsetSizeTrait>(array: ArrayRef) -> ArrayRef {
    let (field, offsets, values, nulls) = array.as_list::<O>().clone().into_parts();
    match GenericListArray::<O>::try_new(field, offsets, in_one_form(values), nulls) {
        Ok(list) => Arc::new(list),
        // Its parts have not changed.
        Err(_) => array,
    }
}

fn structure(array: ArrayRef) -> ArrayRef {
    let Some(rows) = array.as_struct_opt() else { return array };
    let (fields, columns, nulls) = rows.clone().into_parts();
    match StructArray::try_new(fields, columns.into_iter().map(in_one_form).collect(), nulls) {
        Ok(rows) => Arc::new(rows),
        Err(_) => array,
    }
}

/// `scalar` with its floats in their one form.
///
/// # Errors
/// Internal.
pub fn scalar_in_one_form(scalar: ScalarValue) -> Result<ScalarValue> {
    Ok(match scalar {
        ScalarValue::Float32(Some(value)) => ScalarValue::Float32(Some(value.one_form())),
        ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(value.one_form())),
        nested if nested.data_type().is_nested() && has_floats(&nested.data_type()) => {
            ScalarValue::try_from_array(&in_one_form(nested.to_array()?), 0)?
        }
        other => other,
    })
}

/// `value` with its floats in their one form.
///
/// # Errors
/// Internal.
pub fn value_in_one_form(value: ColumnarValue) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(in_one_form(array)),
        ColumnarValue::Scalar(scalar) => ColumnarValue::Scalar(scalar_in_one_form(scalar)?),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use arrow::array::{Float32Array, Float64Array, ListArray};

    use super::*;

    #[test]
    fn there_is_one_zero_and_one_nan() {
        for value in [0.0, -0.0, 1.5, -1.5, f64::INFINITY, f64::NEG_INFINITY, -5e-324] {
            assert_eq!(value.one_form().to_bits(), (value + 0.0).to_bits());
            assert_eq!((value as f32).one_form().to_bits(), (value as f32 + 0.0).to_bits());
        }
        let odd = f64::from_bits(0xfff8_0000_0000_0001);
        for nan in [f64::NAN, -f64::NAN, odd] {
            assert_eq!(nan.one_form().to_bits(), f64::NAN.to_bits());
            assert!(f64::NAN.total_cmp(&f64::INFINITY).is_gt());
        }
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![Some(-0.0), None, Some(-f64::NAN), Some(2.0)]));
        let formed = in_one_form(doubles);
        let bits: Vec<_> = formed.as_primitive::<Float64Type>().iter().map(|v| v.map(f64::to_bits)).collect();
        assert_eq!(bits, [Some(0), None, Some(f64::NAN.to_bits()), Some(2.0_f64.to_bits())]);
    }

    #[test]
    fn floats_within_lists_and_rows_are_formed() {
        let lists: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>([Some([Some(-0.0), None]), None]));
        let formed = in_one_form(lists);
        let first = formed.as_list::<i32>().value(0);
        assert_eq!(first.as_primitive::<Float64Type>().value(0).to_bits(), 0);
        assert!(formed.is_null(1) && first.is_null(1));
        let field = Arc::new(arrow::datatypes::Field::new("f", DataType::Float32, true));
        let column: ArrayRef = Arc::new(Float32Array::from(vec![-0.0]));
        let rows: ArrayRef = Arc::new(StructArray::try_new(vec![field].into(), vec![column], None).unwrap());
        let formed = in_one_form(rows);
        assert_eq!(formed.as_struct().column(0).as_primitive::<Float32Type>().value(0).to_bits(), 0);
        let scalar = ScalarValue::try_from_array(&formed, 0).unwrap();
        assert_eq!(scalar_in_one_form(scalar.clone()).unwrap(), scalar);
    }
}
