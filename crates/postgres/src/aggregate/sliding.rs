//! Sums and averages of doubles over a frame whose beginning moves.
//!
//! DataFusion takes what leaves the frame out of a running total: infinity and NaN would stay once they were in, and
//! what a large value has swallowed would not come back. Here the sums of the frame's older part are kept, one for each
//! beginning, so that a row costs the same however long the frame is, and nothing is ever subtracted.

use std::collections::VecDeque;
use std::mem::size_of;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::Float64Type;
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::Accumulator;

/// Sum or average of the doubles of a frame; values leave in the order in which they came.
#[derive(Debug)]
pub(super) struct FloatTotal {
    is_average: bool,
    /// Those that are not NULL, the oldest first.
    values: VecDeque<f64>,
    /// Of the oldest values: the sum of each and those behind it, up to the youngest that is in them; the oldest
    /// value's stands last.
    suffixes: Vec<f64>,
    /// The sum of the values that are not in `suffixes`.
    behind: f64,
}

impl FloatTotal {
    /// The average of a frame, or its sum.
    pub(super) fn new(is_average: bool) -> Self {
        Self { is_average, values: VecDeque::new(), suffixes: Vec::new(), behind: 0.0 }
    }

    fn doubles(values: &[ArrayRef]) -> Result<&Float64Array> {
        let doubles = values.first().and_then(|values| values.as_primitive_opt::<Float64Type>());
        doubles.ok_or_else(|| DataFusionError::Internal("a total of doubles got another type".into()))
    }

    fn remove(&mut self) {
        if self.suffixes.is_empty() {
            let mut sum = 0.0;
            for value in self.values.iter().rev() {
                sum += value;
                self.suffixes.push(sum);
            }
            self.behind = 0.0;
        }
        self.suffixes.pop();
        self.values.pop_front();
    }

    fn sum(&self) -> f64 {
        self.suffixes.last().copied().unwrap_or_default() + self.behind
    }
}

impl Accumulator for FloatTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in Self::doubles(values)?.iter().flatten() {
            self.values.push_back(value);
            self.behind += value;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let doubles = Self::doubles(values)?;
        for _ in doubles.null_count()..doubles.len() {
            self.remove();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let count = self.values.len();
        let result = (count > 0).then(|| if self.is_average { self.sum() / count as f64 } else { self.sum() });
        Ok(ScalarValue::Float64(result))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + (self.values.capacity() + self.suffixes.capacity()) * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(no_partial_aggregation())
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(no_partial_aggregation())
    }
}

/// The error of a state of a window's total.
pub(crate) fn no_partial_aggregation() -> DataFusionError {
    DataFusionError::Internal("windows are not computed in parts".into())
}
