//! What all connections of a database start from, and the one order of all rules over plans.
//!
//! Comes in: the database. Goes out: the state of a session: functions, rules, memory for queries.
//!
//! A statement passes, from its text on:
//!
//! | step | where | needs before it |
//! |---|---|---|
//! | rewrites of the tree | `analyze::rewrite`, `planner` | the catalog, for names |
//! | operators and `extract` become functions | [`expression_planners`] | names of columns |
//! | rules before type coercion | [`BEFORE_TYPE_COERCION`] | a plan by DataFusion's planner |
//! | type coercion, and DataFusion's other analyzer rules | DataFusion | literals and decimals that have SQL's types |
//! | rules behind it | [`BEHIND_TYPE_COERCION`] | equal types on both sides of an operator |
//! | DataFusion's optimizer, some of its rules guarded | [`guarded_optimizers`] | no subquery that it decorrelates wrongly |
//! | the order of joins | `optimize`, called by `planner` | keys and filters where they belong |
//! | computed keys as columns, each once, short circuits | `optimize`, called by `planner` | filters where they belong, no rule behind them |
//! | patterns of several pieces | `optimize`, called by `planner`, before short circuits | as above |
//! | predicates that are not analysed by intervals | `optimize`, called by `planner` | predicates as they are run |
//! | the physical plan, by DataFusion's rules | DataFusion | operators that declare what is proved of their rows, and nothing else (`derived_properties`) |
//! | rows of a sort stay in its order | `optimize::upstream` | operators on several partitions |
//! | scans that use the keys of joins | `dynamic_filters` | no rule behind it that moves operators |
//! | joins of tables in the order of their keys | `merge_joins` | scans that filter by keys of joins: those have no order |
//! | aggregation in the order of sort keys | `streaming` | filters where they are: a filtered scan has no order |
//! | aggregates from metadata | `metadata_aggregates` | filters in scans, no rule behind it that changes scans |
//! | windows in the order of sort keys | `streaming` | windows with their sorts below them |
//! | rankings in the order of rows | `streaming` | windows with their sorts below them |
//! | sorts in memory | `sort` | limits where they are, and the order of scans |
//! | aggregations of more groups than memory holds | `spilling_aggregates` | as above, and the order of aggregations |
//! | joins that may be larger than memory | `spilling_joins` | limits where they are, and keys that scans are told |
//! | conditions in scans | `scan_filters` | no rule behind it that knows filters |
//! | decimals of up to 18 digits in 64 bits | `narrow_decimals` | conditions in scans |
//! | groups by codes and by integers near each other | `code_aggregates` | conditions in scans |
//! | groups of rows in order, without hashing | `streaming` | no rule behind it that knows aggregations |
//! | probe sides that begin early | `eager_probes` | joins as they are run |
//! | joins made to be canceled | `cancel` | |
//!
//! Rules that a plan gives nothing to do are left out (`triggers`).

use std::sync::Arc;

use datafusion::common::Result as DataFusionResult;
use datafusion::common::config::ConfigOptions;
use datafusion::config::Dialect;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::{Analyzer, AnalyzerRule, OptimizerRule};
use datafusion::prelude::SessionConfig;
use mainstem_postgres::aggregate::{average, checked_sum, of_floats, ordered_sets};
use mainstem_postgres::cast::assigned_to;
use mainstem_postgres::registry::{aggregate_function, scalar_functions};
use mainstem_postgres::window::{moving, shifts, whole_numbers};
use mainstem_storage::Result;
use mainstem_storage::database::Database;

use super::cancel::interruptible;
use super::code_aggregates::CodeAggregates;
use super::derived_properties::{DeclaredPlans, declaring};
use super::dynamic_filters::DynamicFilters;
use super::eager_probes::EagerProbes;
use super::generate_series::GenerateSeries;
use super::memory_pool::QueryPool;
use super::merge_joins::MergeJoins;
use super::metadata_aggregates::MetadataAggregation;
use super::narrow_decimals::NarrowDecimals;
use super::pg_sleep::pg_sleep;
use super::scan_filters::ScanFilters;
use super::sort::RadixSorts;
use super::spilling::TemporaryFiles;
use super::spilling_aggregates::SpillingAggregates;
use super::spilling_joins::SpillingJoins;
use super::streaming::{OrderedGroupBy, RankingWindows, StreamingAggregates, StreamingWindows};
use super::triggers::triggered;
use crate::analyze::{
    DecimalOperators, ExtractPlanner, RealOperators, TypedLiterals, bpchar, cast_label, checked_arithmetic,
    coerced_types, decimal_operators, grouping_arguments, multiset_operations, rounded_decimals, sql_casts,
    typed_literals, window_frames,
};
use crate::decorrelate::{decorrelated, null_aware_in, nullable_subqueries, subqueries_in_values};
use crate::error::from_datafusion;
use crate::optimize::{
    OrderedOutput, WithoutDependencies, exact_sums_beside_distinct, guarded, null_safe_joins, null_safe_simplification,
    seen_sorts, with_schemas_above_laterals, with_unique_keys,
};
use crate::provider::{CATALOG, SEARCHED, StatementCatalog};
use crate::sql::CastTypes;

/// Operators that become functions, or get other types, while DataFusion makes a plan of a tree.
fn expression_planners() -> Vec<Arc<dyn ExprPlanner>> {
    vec![Arc::new(TypedLiterals), Arc::new(DecimalOperators), Arc::new(RealOperators), Arc::new(ExtractPlanner)]
}

/// A function of plans as a rule, with its name.
#[derive(Debug)]
struct Rule(&'static str, fn(LogicalPlan) -> DataFusionResult<LogicalPlan>);

impl AnalyzerRule for Rule {
    fn name(&self) -> &str {
        self.0
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> DataFusionResult<LogicalPlan> {
        (self.1)(plan)
    }
}

/// Rules that give types, so that DataFusion's type coercion finds SQL's.
const BEFORE_TYPE_COERCION: [Rule; 9] = [
    // First: where nobody sees an order, no other rule meets a sort.
    Rule("seen_sorts", seen_sorts),
    // A literal's type follows from what stands beside it: before anything asks for types.
    Rule("typed_literals", typed_literals),
    Rule("bpchar", bpchar),
    Rule("coerced_types", coerced_types),
    // Its cells have their types.
    Rule("subqueries_in_values", subqueries_in_values),
    Rule("window_frames", window_frames),
    // Scales follow from the types of operands, and roundings from both.
    Rule("decimal_operators", decimal_operators),
    Rule("rounded_decimals", rounded_decimals),
    // Once groups are what they will be.
    Rule("grouping_arguments", grouping_arguments),
];

/// Rules that need both sides of an operator to have one type.
const BEHIND_TYPE_COERCION: [Rule; 6] = [
    // IN that may be NULL, before EXISTS is made of it.
    Rule("null_aware_in", null_aware_in),
    // Before joins of what stands in queries get conditions of the outer rows.
    Rule("multiset_operations", multiset_operations),
    Rule("decorrelated", decorrelated),
    Rule("nullable_subqueries", nullable_subqueries),
    Rule("sql_casts", sql_casts),
    Rule("checked_arithmetic", checked_arithmetic),
];

/// `rules` as DataFusion takes them.
fn shared<const N: usize>(rules: [Rule; N]) -> impl Iterator<Item = Arc<dyn AnalyzerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(rule) as _)
}

/// DataFusion's optimizer rules, with guards around those that are wrong in 55.2 (`optimize::upstream`).
fn guarded_optimizers(state: &SessionState) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = state.optimizers().iter().cloned().map(guarded).map(null_safe_joins);
    rules
        .map(null_safe_simplification)
        .map(exact_sums_beside_distinct)
        .map(with_unique_keys)
        .map(with_schemas_above_laterals)
        .collect()
}

/// What all connections of a database start from: functions, rules, memory for queries.
///
/// # Errors
/// Internal or Io when the runtime environment cannot be made.
pub(crate) fn template(storage: &Database, threads: usize) -> Result<SessionState> {
    let mut config = SessionConfig::new()
        .with_default_catalog_and_schema(CATALOG, SEARCHED)
        .with_create_default_catalog_and_schema(false)
        // Ours is a schema like others.
        .with_information_schema(false)
        .with_target_partitions(threads)
        .with_batch_size(mainstem_storage::limits::BATCH_ROWS);
    let parser = &mut config.options_mut().sql_parser;
    parser.dialect = Dialect::PostgreSQL;
    // Numbers with a point are decimals, as in PostgreSQL.
    parser.parse_float_as_decimal = true;
    // Errors say where a name stands.
    parser.collect_spans = true;
    // A length would be read and forgotten.
    parser.support_varchar_with_length = false;
    parser.map_string_types_to_utf8view = true;
    // Which order is seen is decided once (`optimize::subquery_sorts`).
    parser.enable_subquery_sort_elimination = false;
    config.options_mut().execution.time_zone = Some("+00:00".into());
    // It fails for UNION of columns of which the optimizer has learned that they are never NULL, and tells no
    // difference.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    // DataFusion 55.2 keeps the first rows of each input of a repartition by hash, which belong to other outputs than
    // the first rows of those: windows then lack rows of their frames (`optimize::upstream`).
    config.options_mut().optimizer.enable_topk_repartition = false;
    let pool = Arc::new(QueryPool::new(storage.query_memory()));
    let spilled =
        DiskManager::builder().with_temp_file_factory(Arc::new(TemporaryFiles::new(storage.temporary_folder())));
    let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(spilled);
    let environment = environment.build_arc().map_err(|e| from_datafusion(&e))?;
    let analyzers = shared(BEFORE_TYPE_COERCION).chain(Analyzer::new().rules).chain(shared(BEHIND_TYPE_COERCION));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(environment)
        .with_expr_planners(expression_planners())
        .with_default_features()
        .with_type_planner(Arc::new(CastTypes))
        .with_relation_planners(vec![Arc::new(WithoutDependencies)])
        .with_catalog_list(Arc::new(StatementCatalog::default()))
        .with_analyzer_rules(analyzers.collect())
        .build();
    let optimizers = guarded_optimizers(&state);
    state = SessionStateBuilder::new_from_existing(state)
        .with_optimizer_rules(optimizers)
        // Behind all rules that move operators.
        .with_physical_optimizer_rule(Arc::new(OrderedOutput))
        .with_physical_optimizer_rule(Arc::new(DynamicFilters))
        .with_physical_optimizer_rule(Arc::new(MergeJoins))
        .with_physical_optimizer_rule(Arc::new(StreamingAggregates))
        .with_physical_optimizer_rule(Arc::new(MetadataAggregation))
        .with_physical_optimizer_rule(Arc::new(StreamingWindows))
        .with_physical_optimizer_rule(Arc::new(RankingWindows))
        .with_physical_optimizer_rule(Arc::new(RadixSorts))
        .with_physical_optimizer_rule(Arc::new(SpillingAggregates))
        .with_physical_optimizer_rule(Arc::new(SpillingJoins))
        // Last: until then a filter is an operator, which rules know.
        .with_physical_optimizer_rule(Arc::new(ScanFilters))
        // Scans have their filters by then.
        .with_physical_optimizer_rule(Arc::new(NarrowDecimals))
        .with_physical_optimizer_rule(Arc::new(CodeAggregates))
        .with_physical_optimizer_rule(Arc::new(OrderedGroupBy))
        .with_physical_optimizer_rule(Arc::new(EagerProbes))
        .build();
    register(&mut state)?;
    let rules = state.physical_optimizers().iter().cloned().map(declaring).map(triggered);
    let physical = std::iter::once(Arc::new(DeclaredPlans) as _).chain(rules).collect();
    state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(physical).build();
    Ok(interruptible(state))
}

/// The functions that have a row in the registry, under the names that SQL has for them, in the place of all of
/// DataFusion's.
fn register(state: &mut SessionState) -> Result<()> {
    let ours = || ordered_sets().into_iter().chain([checked_sum(), average()]).map(Arc::new);
    let theirs: Vec<_> = state.aggregate_functions().values().cloned().collect();
    for aggregate in &theirs {
        state.deregister_udaf(aggregate.name()).map_err(|e| from_datafusion(&e))?;
    }
    for aggregate in theirs.into_iter().chain(ours()).filter_map(aggregate_function) {
        state.register_udaf(of_floats(moving(aggregate))).map_err(|e| from_datafusion(&e))?;
    }
    let windows: Vec<_> = state.window_functions().values().cloned().collect();
    for window in windows {
        state.register_udwf(shifts(whole_numbers(window))).map_err(|e| from_datafusion(&e))?;
    }
    if let Some(theirs) = state.deregister_udtf("generate_series").map_err(|e| from_datafusion(&e))? {
        state.register_udtf("generate_series", Arc::new(GenerateSeries { theirs }));
    }
    let theirs = state.scalar_functions().clone();
    for function in theirs.values() {
        state.deregister_udf(function.name()).map_err(|e| from_datafusion(&e))?;
    }
    let pool = state.runtime_env().memory_pool.clone();
    let of_statements = [assigned_to(), cast_label(), pg_sleep()].map(Arc::new);
    for function in scalar_functions(&theirs, &pool).into_iter().chain(of_statements) {
        state.register_udf(function).map_err(|e| from_datafusion(&e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use datafusion::optimizer::Optimizer;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;
    use crate::exec::triggers;

    /// A rule that has another name would run always, which nobody would see.
    #[test]
    fn each_trigger_is_of_a_rule_that_there_is() {
        let ours = BEFORE_TYPE_COERCION.iter().chain(&BEHIND_TYPE_COERCION).map(|rule| rule.0.to_owned());
        let logical = Optimizer::new().rules.into_iter().map(|rule| rule.name().to_owned());
        let physical = PhysicalOptimizer::new().rules.into_iter().map(|rule| rule.name().to_owned());
        let last = [
            "ordered_output",
            "dynamic_filters",
            "merge_joins",
            "streaming_aggregates",
            "metadata_aggregates",
            "streaming_windows",
            "ranking_windows",
            "radix_sorts",
            "spilling_aggregates",
            "spilling_joins",
            "narrow_decimals",
            "code_aggregates",
            "ordered_group_by",
            "eager_probes",
        ];
        let all: HashSet<_> = ours.chain(logical).chain(physical).chain(last.map(str::to_owned)).collect();
        for name in triggers::names() {
            assert!(all.contains(name), "{name}");
        }
    }
}
