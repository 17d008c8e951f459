//! What an operator takes and is.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum};

/// The operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `+`.
    Add,
    /// `-` of two.
    Subtract,
    /// `*`.
    Multiply,
    /// `/` of floats.
    Divide,
    /// `%` of floats.
    Modulo,
    /// `-` of one.
    Negate,
}

/// An array, or one value that stands for many.
pub(super) struct Operand {
    pub array: ArrayRef,
    pub scalar: bool,
}

impl Datum for Operand {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.scalar)
    }
}

impl Operand {
    /// The value beside row `row` of the result.
    pub(super) fn value<T: ArrowPrimitiveType>(&self, row: usize) -> Option<T::Native> {
        let row = if self.scalar { 0 } else { row };
        self.array.as_primitive_opt::<T>().filter(|values| values.is_valid(row)).map(|values| values.value(row))
    }
}
