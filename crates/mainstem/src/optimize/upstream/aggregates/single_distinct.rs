//! Sums beside a DISTINCT aggregate: `SELECT g, count(DISTINCT a), sum(n) FROM t GROUP BY g`.
//!
//! DataFusion 55.2's rule groups by `g` and `a` first and adds up the sums of those groups (since pull request 8266).
//! Two things are wrong with it, of which no public issue is known:
//!
//! - A sum of decimals has more digits than they, and a sum of sums more again. Whatever stands above, `HAVING sum(n) >
//!   100`, was given the type of before.
//! - A group of `g` and `a` may be out of range where the whole group is not: `sum` of a BIGINT is a BIGINT. Beyond 38
//!   digits that is so still (`docs/known-defects.md`).
//!
//! Its column names `alias1`, `group_alias_0` and so on may be those of a column of the table, too.
//!
//! Comes in: that rule. Goes out: one that is given sums of 38 digits, whose sums are of the same type, with a
//! projection above that casts them to the type of before; and that leaves plans alone where a column has such a name.
//! It does not own: which aggregates the rule is for.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, ExprSchema, Result, TableReference};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use mainstem_postgres::aggregate::wide_sum;

use crate::analyze::in_range;

/// The name of DataFusion's rule.
const RULE: &str = "single_distinct_aggregation_to_group_by";
/// What the names of its columns begin with.
const ALIASES: [&str; 2] = ["alias", "group_alias_"];

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// `rule` in the form that the module says, if it is that one; others are returned as they are.
pub(crate) fn exact_sums_beside_distinct(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(ExactSums { rule, sum: Arc::new(wide_sum()) }) } else { rule }
}

#[derive(Debug)]
struct ExactSums {
    rule: Rule,
    /// The sum of 38 digits.
    sum: Arc<AggregateUDF>,
}

impl OptimizerRule for ExactSums {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
        if !aggregate.aggr_expr.iter().any(is_distinct) || has_alias(aggregate) {
            return Ok(Transformed::no(plan));
        }
        let Some(wide) = self.with_wide_sums(aggregate)? else { return self.rule.rewrite(plan, config) };
        let names = wide.schema.columns();
        let rewritten = self.rule.rewrite(LogicalPlan::Aggregate(wide), config)?;
        if !rewritten.transformed {
            return Ok(Transformed::no(plan));
        }
        rewritten.map_data(|rewritten| with_types_of(aggregate, rewritten, names))
    }
}

impl ExactSums {
    /// `aggregate` with sums of 38 digits; `None` if it has no sum of integers or decimals.
    fn with_wide_sums(&self, aggregate: &Aggregate) -> Result<Option<Aggregate>> {
        let input = aggregate.input.schema();
        let mut functions = aggregate.aggr_expr.clone();
        let mut has_sums = false;
        for function in &mut functions {
            let Expr::AggregateFunction(AggregateFunction { func, params }) = function else { continue };
            let [argument] = params.args.as_slice() else { continue };
            let is_exact =
                |data_type: DataType| matches!(data_type, DataType::Decimal128(..)) || data_type.is_signed_integer();
            if func.name() == self.sum.name() && !params.distinct && is_exact(argument.get_type(input)?) {
                *func = self.sum.clone();
                has_sums = true;
            }
        }
        if !has_sums {
            return Ok(None);
        }
        Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), functions).map(Some)
    }
}

fn is_distinct(function: &Expr) -> bool {
    matches!(
        function,
        Expr::AggregateFunction(AggregateFunction { params: AggregateFunctionParams { distinct: true, .. }, .. })
    )
}

/// Whether a column that `aggregate` reads is called as one of the rule's may be.
fn has_alias(aggregate: &Aggregate) -> bool {
    aggregate.input.schema().fields().iter().any(|field| {
        let number = ALIASES.iter().find_map(|alias| field.name().strip_prefix(alias));
        number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    })
}

/// `rewritten`, whose columns are called `names`, with the columns of `aggregate`, of their types.
fn with_types_of(aggregate: &Aggregate, rewritten: LogicalPlan, names: Vec<Column>) -> Result<LogicalPlan> {
    let column = |((qualifier, field), name): ((Option<&TableReference>, &FieldRef), Column)| {
        let (of_now, wanted) = (rewritten.schema().data_type(&name)?, field.data_type());
        let value = Expr::Column(name);
        Ok(match of_now == wanted {
            true => value,
            false => in_range(value, wanted).alias_qualified(qualifier.cloned(), field.name()),
        })
    };
    let columns = aggregate.schema.iter().zip(names).map(column).collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(rewritten).project(columns)?.build()
}
