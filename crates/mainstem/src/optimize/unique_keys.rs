//! Which columns of a logical plan are unique: what DataFusion's rules may know of keys, and nothing else.
//!
//! DataFusion 55.2 carries functional dependencies through plans (`DFSchema::functional_dependencies`) and takes away
//! sort keys, group keys, DISTINCT and joins by them. Those above joins are wrong: in `v CROSS JOIN (SELECT DISTINCT a
//! FROM t) q` it says that `q.a` determines the columns of `v`. No public issue was found.
//!
//! Comes in: one of its rules that reads dependencies. Goes out: the same rule, which sees the keys that [`keys_of`]
//! derives, as dependencies of all columns: the groups of an aggregation, carried through operators one at a time. Two
//! rows are never equal in a key, NULL being equal to NULL. Tables do not say their keys to DataFusion.
//!
//! - Sorts lose keys that are there twice, and no others.
//! - `eliminate_join`, `optimize_projections` and `replace_distinct_aggregate` see plans whose schemas have these keys.
//! - The planner sees none ([`WithoutDependencies`]): by those of a derived table it adds columns to GROUP BY, and
//!   makes frames of peers frames of rows.
//!
//! It does not own: columns that GROUP BY of a key allows in a SELECT list, which are known from the tree (`analyze`).

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Dependency, FunctionalDependence, FunctionalDependencies, Result};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, Join, JoinType, LogicalPlan, Projection, Sort};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::sql::sqlparser::ast::TableFactor;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// The positions of columns in which no two rows are equal.
type Key = Vec<usize>;

/// `rule`, one of DataFusion's, with the keys of the module if it reads dependencies; others as they are.
pub(crate) fn with_unique_keys(rule: Rule) -> Rule {
    match rule.name() {
        "eliminate_duplicated_expr" => Arc::new(DuplicatedExpressions(rule)),
        "eliminate_join" | "optimize_projections" | "replace_distinct_aggregate" => Arc::new(WithKeys(rule)),
        _ => rule,
    }
}

/// The rule that takes away expressions that are there twice, but leaves those that others determine.
#[derive(Debug)]
struct DuplicatedExpressions(Rule);

impl OptimizerRule for DuplicatedExpressions {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Sort(sort) = plan else { return self.0.rewrite(plan, config) };
        let (mut seen, all) = (HashSet::new(), sort.expr.len());
        let expr: Vec<_> = sort.expr.into_iter().filter(|key| seen.insert(key.expr.clone())).collect();
        let is_changed = expr.len() < all;
        let sort = LogicalPlan::Sort(Sort { expr, ..sort });
        Ok(if is_changed { Transformed::yes(sort) } else { Transformed::no(sort) })
    }
}

/// A rule that sees our keys in the place of DataFusion's.
#[derive(Debug)]
struct WithKeys(Rule);

impl OptimizerRule for WithKeys {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // A rule that is handed one node after the other reads dependencies of no other than these.
        if self.apply_order().is_some() && !matches!(plan, LogicalPlan::Distinct(Distinct::All(_))) {
            return self.0.rewrite(plan, config);
        }
        self.0.rewrite(with_keys(plan)?, config)
    }
}

thread_local! {
    /// Whether the relation that is planned next is the one that [`WithoutDependencies`] has asked for.
    static IS_ASKED_FOR: Cell<bool> = const { Cell::new(false) };
}

/// Plans relations of FROM as DataFusion does, without functional dependencies; see the module. Tables have none.
#[derive(Debug)]
pub(crate) struct WithoutDependencies;

impl RelationPlanner for WithoutDependencies {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let may_have = matches!(relation, TableFactor::Derived { .. } | TableFactor::Table { args: None, .. });
        if IS_ASKED_FOR.take() || !may_have {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        IS_ASKED_FOR.set(true);
        let planned = context.plan(relation);
        IS_ASKED_FOR.set(false);
        let plan = without_dependencies(planned?)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// `plan`, whose own schema has no dependencies.
fn without_dependencies(mut plan: LogicalPlan) -> Result<LogicalPlan> {
    if plan.schema().functional_dependencies().is_empty() {
        return Ok(plan);
    }
    let Some(schema) = own_schema(&mut plan) else {
        return Ok(plan.map_children(|input| without_dependencies(input).map(Transformed::yes))?.data);
    };
    let unknown = DFSchema::clone(schema).with_functional_dependencies(FunctionalDependencies::empty())?;
    *schema = Arc::new(unknown);
    Ok(plan)
}

/// `plan`, whose schemas have the keys of [`keys_of`], and no other dependencies.
///
/// # Errors
/// Internal.
fn with_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    // Where each node agrees with its inputs, all do.
    if !plan.exists(|node| {
        Ok(own_dependencies(node)?.is_some_and(|ours| *node.schema().functional_dependencies() != ours))
    })? {
        return Ok(plan);
    }
    Ok(plan
        .transform_up_with_subqueries(|mut node| {
            let (Some(dependencies), Some(schema)) = (own_dependencies(&node)?, own_schema(&mut node)) else {
                return Ok(Transformed::no(node));
            };
            if *schema.functional_dependencies() == dependencies {
                return Ok(Transformed::no(node));
            }
            let known = DFSchema::clone(schema).with_functional_dependencies(dependencies)?;
            *schema = Arc::new(known);
            Ok(Transformed::yes(node))
        })?
        .data)
}

/// The keys of `node` as dependencies, if it has a schema of its own.
fn own_dependencies(node: &LogicalPlan) -> Result<Option<FunctionalDependencies>> {
    let Some(keys) = keys_of(node)? else { return Ok(None) };
    let columns: Vec<usize> = (0..node.schema().fields().len()).collect();
    let keys = keys
        .into_iter()
        .map(|key| FunctionalDependence::new(key, columns.clone(), false).with_mode(Dependency::Single));
    Ok(Some(FunctionalDependencies::new(keys.collect())))
}

/// The schema of `node`, if it has one of its own.
fn own_schema(node: &mut LogicalPlan) -> Option<&mut Arc<DFSchema>> {
    Some(match node {
        LogicalPlan::TableScan(scan) => &mut scan.projected_schema,
        LogicalPlan::Projection(projection) => &mut projection.schema,
        LogicalPlan::SubqueryAlias(alias) => &mut alias.schema,
        LogicalPlan::Aggregate(aggregate) => &mut aggregate.schema,
        LogicalPlan::Window(window) => &mut window.schema,
        LogicalPlan::Join(join) => &mut join.schema,
        LogicalPlan::Union(union) => &mut union.schema,
        LogicalPlan::Unnest(unnest) => &mut unnest.schema,
        LogicalPlan::Distinct(Distinct::On(distinct)) => &mut distinct.schema,
        _ => return None,
    })
}

/// The keys of `node`, whose inputs have theirs in their schemas; `None` if it has a schema of another node.
fn keys_of(node: &LogicalPlan) -> Result<Option<Vec<Key>>> {
    Ok(Some(match node {
        // Tables do not say their keys to DataFusion.
        LogicalPlan::TableScan(_) => Vec::new(),
        LogicalPlan::Projection(projection) => through_projection(projection),
        // Same columns; windows come behind them.
        LogicalPlan::SubqueryAlias(alias) => known_keys(alias.input.schema()),
        LogicalPlan::Window(window) => known_keys(window.input.schema()),
        LogicalPlan::Aggregate(aggregate) => of_groups(aggregate)?,
        LogicalPlan::Join(join) => through_join(join),
        LogicalPlan::Union(_) | LogicalPlan::Unnest(_) | LogicalPlan::Distinct(Distinct::On(_)) => Vec::new(),
        _ => return Ok(None),
    }))
}

/// The keys that a schema says, which [`with_keys`] has put there.
fn known_keys(schema: &DFSchema) -> Vec<Key> {
    let unique = schema.functional_dependencies().iter().filter(|known| known.mode == Dependency::Single);
    unique.filter(|known| !known.nullable).map(|known| known.source_indices.clone()).collect()
}

fn through_projection(projection: &Projection) -> Vec<Key> {
    let input = projection.input.schema();
    let sources: Vec<_> = projection.expr.iter().map(|expr| position(expr, input)).collect();
    let place = |at: &usize| sources.iter().position(|source| source.as_ref() == Some(at));
    known_keys(input).iter().filter_map(|key| key.iter().map(place).collect::<Option<Key>>()).collect()
}

/// The position of the column of `schema` that `expr` is.
fn position(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    match expr {
        Expr::Alias(alias) => position(&alias.expr, schema),
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    }
}

fn of_groups(aggregate: &Aggregate) -> Result<Vec<Key>> {
    let has_sets = aggregate.group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)));
    if has_sets || aggregate.group_expr.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![(0..aggregate.group_expr_len()?).collect()])
}

fn through_join(join: &Join) -> Vec<Key> {
    let (left, right) = (join.left.schema(), join.right.schema());
    let (of_left, of_right) = (known_keys(left), known_keys(right));
    let columns = left.fields().len();
    let shifted = |key: &Key| key.iter().map(|at| at + columns).collect::<Key>();
    let both = || {
        let pair = of_left.first().zip(of_right.first());
        pair.map(|(left, right)| left.iter().copied().chain(shifted(right)).collect::<Key>())
    };
    // Whether a row of one side has at most one partner: its values for the keys of the other side are given.
    let finds_one = |keys: &[Key], of: &DFSchema, is_right: bool| {
        let on = join.on.iter().map(|(left, right)| if is_right { right } else { left });
        let given: HashSet<usize> = on.filter_map(|expr| position(expr, of)).collect();
        keys.iter().any(|key| key.iter().all(|at| given.contains(at)))
    };
    let (one_left, one_right) = (finds_one(&of_left, left, false), finds_one(&of_right, right, true));
    let (mut keys, right_keys) = (Vec::new(), || of_right.iter().map(shifted).collect::<Vec<_>>());
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => return of_left,
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => return of_right,
        JoinType::Inner => {
            if one_right {
                keys.extend(of_left.iter().cloned());
            }
            if one_left {
                keys.extend(right_keys());
            }
        }
        // Rows without a partner are NULL on the other side, as many as there are.
        JoinType::Left if one_right => keys.extend(of_left.iter().cloned()),
        JoinType::Right if one_left => keys.extend(right_keys()),
        JoinType::Left | JoinType::Right => {}
        JoinType::Full => return Vec::new(),
    }
    if keys.is_empty() {
        keys.extend(both());
    }
    keys
}
