//! Aggregates of values in an order: ordered-set aggregates that give one of them, `mode() WITHIN GROUP (ORDER BY x)`,
//! the most frequent one, and `percentile_disc(f) WITHIN GROUP (ORDER BY x)`, the first one that has the share f at or
//! before it.
//!
//! Both count how often each value occurs; NULLs do not count. Of values that are equally frequent `mode` takes the
//! first in the order.
//!
//! They, and `string_agg(x, d ORDER BY y)`, sort by themselves. DataFusion's `string_agg` does, too, and yet asks for
//! rows in order, so that two with different orders in one query would be refused: [`SortedTexts`] is the same
//! function, and does not ask.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion_common::{DataFusionError, Result, ScalarValue, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use datafusion_functions_aggregate::string_agg::string_agg_udaf;
use mainstem_storage::Error;

use crate::sqlstate;

/// The functions.
pub fn ordered_sets() -> Vec<AggregateUDF> {
    let named = [("mode", false), ("percentile_disc", true)];
    let signature = || Signature::user_defined(Volatility::Immutable);
    let one = |(name, by_share)| AggregateUDF::new_from_impl(OrderedSet { name, by_share, signature: signature() });
    let texts = AggregateUDF::new_from_impl(SortedTexts { inner: string_agg_udaf() });
    named.into_iter().map(one).chain([texts]).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct OrderedSet {
    name: &'static str,
    /// By the share of the values before it, or the most frequent.
    by_share: bool,
    signature: Signature,
}

fn mismatch() -> DataFusionError {
    DataFusionError::Internal("an ordered set of other than it takes".into())
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value] if !self.by_share => Ok(vec![value.clone()]),
            [value, share] if self.by_share && (share.is_numeric() || share.is_null()) => {
                Ok(vec![value.clone(), DataType::Float64])
            }
            _ => plan_err!("No function matches the given name and argument types '{}'", self.name),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().ok_or_else(mismatch)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.input_fields.first().ok_or_else(mismatch)?.data_type().clone();
        let list = |part, of| {
            let item = Field::new_list_field(of, true);
            Arc::new(Field::new_list(format_state_name(args.name, part), item, true))
        };
        let share = Field::new(format_state_name(args.name, "share"), DataType::Float64, true);
        Ok(vec![list("values", value), list("counts", DataType::Int64), Arc::new(share)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let of = args.expr_fields.first().ok_or_else(mismatch)?.data_type().clone();
        let descending = args.order_bys.first().is_some_and(|by| by.options.descending);
        Ok(Box::new(Counted { of, by_share: self.by_share, descending, counts: HashMap::new(), bytes: 0, share: None }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(self: Arc<Self>, _is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }
}

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SortedTexts {
    inner: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for SortedTexts {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn with_beneficial_ordering(self: Arc<Self>, _is_ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        Ok(Some(self))
    }
}

/// How often each value occurs.
#[derive(Debug)]
struct Counted {
    of: DataType,
    by_share: bool,
    descending: bool,
    counts: HashMap<ScalarValue, i64>,
    /// Of the values, beside the table.
    bytes: usize,
    share: Option<f64>,
}

impl Counted {
    fn add(&mut self, value: ScalarValue, count: i64) {
        let bytes = value.size() - size_of::<ScalarValue>();
        let counted = self.counts.entry(value).or_insert_with(|| {
            self.bytes += bytes;
            0
        });
        *counted += count;
    }

    fn set_share(&mut self, shares: &ArrayRef) -> Result<()> {
        let shares = shares.as_primitive_opt::<Float64Type>().ok_or_else(mismatch)?;
        if self.share.is_none() && !shares.is_empty() && shares.is_valid(0) {
            let share = shares.value(0);
            if !(0.0..=1.0).contains(&share) {
                let error =
                    Error::invalid(sqlstate::OUT_OF_RANGE, format!("percentile value {share} is not between 0 and 1"));
                return Err(DataFusionError::External(Box::new(error)));
            }
            self.share = Some(share);
        }
        Ok(())
    }

    /// The values in their order.
    fn sorted(&self) -> Vec<(&ScalarValue, i64)> {
        let mut values: Vec<_> = self.counts.iter().map(|(value, count)| (value, *count)).collect();
        values.sort_by(|(left, _), (right, _)| {
            let order = left.partial_cmp(right).unwrap_or(Ordering::Equal);
            if self.descending { order.reverse() } else { order }
        });
        values
    }
}

impl Accumulator for Counted {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // Behind the arguments comes what they are ordered by: the values again.
        let [values, behind @ ..] = values else { return Err(mismatch()) };
        if self.by_share {
            self.set_share(behind.first().ok_or_else(mismatch)?)?;
        }
        for row in (0..values.len()).filter(|row| values.is_valid(*row)) {
            self.add(ScalarValue::try_from_array(values, row)?.compacted(), 1);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sorted = self.sorted();
        let found = if self.by_share {
            let all: i64 = sorted.iter().map(|(_, count)| count).sum();
            let wanted = self.share.map(|share| ((share * all as f64).ceil() as i64).max(1));
            let mut before = 0;
            wanted.and_then(|wanted| {
                sorted.iter().find(|(_, count)| {
                    before += count;
                    before >= wanted
                })
            })
        } else {
            sorted.iter().reduce(|most, other| if other.1 > most.1 { other } else { most })
        };
        match found {
            Some((value, _)) => Ok((*value).clone()),
            None => ScalarValue::try_from(&self.of),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * size_of::<(ScalarValue, i64)>() + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<ScalarValue>, Vec<ScalarValue>) =
            self.counts.iter().map(|(value, count)| (value.clone(), ScalarValue::Int64(Some(*count)))).unzip();
        Ok(vec![
            ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.of)),
            ScalarValue::List(ScalarValue::new_list_nullable(&counts, &DataType::Int64)),
            ScalarValue::Float64(self.share),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, counts, shares] = states else { return Err(mismatch()) };
        let lists = |array: &ArrayRef| array.as_list_opt::<i32>().cloned().ok_or_else(mismatch);
        for row in 0..shares.len() {
            self.set_share(&shares.slice(row, 1))?;
        }
        for (values, counts) in lists(values)?.iter().zip(lists(counts)?.iter()) {
            let (Some(values), Some(counts)) = (values, counts) else { continue };
            let counts = counts.as_primitive_opt::<Int64Type>().ok_or_else(mismatch)?;
            for row in 0..values.len().min(counts.len()) {
                self.add(ScalarValue::try_from_array(&values, row)?.compacted(), counts.value(row));
            }
        }
        Ok(())
    }
}
