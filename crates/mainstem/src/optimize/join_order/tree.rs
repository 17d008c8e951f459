//! A maximal tree of inner joins in a plan.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, Result};
use datafusion::logical_expr::logical_plan::{Aggregate, Join};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use mainstem_postgres::registry::may_fail;

/// Leaves of a tree that is looked at.
const LEAVES_MAX: usize = 40;

/// Which leaves are joined with which.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Leaf(usize),
    Join(Box<Shape>, Box<Shape>),
}

impl Shape {
    pub(super) fn join(left: Self, right: Self) -> Self {
        Self::Join(Box::new(left), Box::new(right))
    }

    /// Its leaves, as bits.
    pub(super) fn leaves(&self) -> u64 {
        match self {
            Self::Leaf(at) => 1 << at,
            Self::Join(left, right) => left.leaves() | right.leaves(),
        }
    }
}

/// What joins a tree of them joins, and on what.
#[derive(Debug)]
pub(super) struct JoinTree {
    pub(super) leaves: Vec<Arc<LogicalPlan>>,
    /// All columns of the leaves.
    pub(super) schema: DFSchema,
    /// Expressions that are equal, each of one leaf.
    pub(super) keys: Vec<[Side; 2]>,
    /// Other conditions, with their leaves as bits.
    pub(super) conditions: Vec<(Expr, u64)>,
    /// The order that was given.
    pub(super) shape: Shape,
}

/// One side of a key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Side {
    pub(super) leaf: usize,
    pub(super) expr: Expr,
}

/// What is found on the way down.
#[derive(Default)]
struct Found {
    leaves: Vec<Arc<LogicalPlan>>,
    keys: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
}

impl JoinTree {
    /// The tree that `root` is the root of; `None` if there is nothing to order.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn of(root: &LogicalPlan) -> Result<Option<Self>> {
        if !matches!(root, LogicalPlan::Join(_) | LogicalPlan::Filter(_)) || !has_join(root) {
            return Ok(None);
        }
        let mut found = Found::default();
        let shape = found.below(&Arc::new(root.clone()));
        let Found { leaves, keys, conditions } = found;
        if !(3..=LEAVES_MAX).contains(&leaves.len()) {
            return Ok(None);
        }
        // A column that is left out on the way up may have the name of another one.
        let mut schema = DFSchema::empty();
        for leaf in &leaves {
            match schema.join(leaf.schema()) {
                Ok(more) => schema = more,
                Err(_) => return Ok(None),
            }
        }
        let mut tree = Self { leaves, schema, keys: Vec::new(), conditions: Vec::new(), shape };
        for (left, right) in keys {
            let (Some(of_left), Some(of_right)) = (tree.leaves_of(&left), tree.leaves_of(&right)) else {
                return Ok(None);
            };
            if of_left.count_ones() == 1 && of_right.count_ones() == 1 && of_left != of_right {
                let side = |expr, leaves: u64| Side { leaf: leaves.trailing_zeros() as usize, expr };
                tree.keys.push([side(left, of_left), side(right, of_right)]);
            } else {
                let equal = BinaryExpr::new(Box::new(left), Operator::Eq, Box::new(right));
                tree.conditions.push((Expr::BinaryExpr(equal), of_left | of_right));
            }
        }
        for condition in conditions {
            let Some(leaves) = tree.leaves_of(&condition) else { return Ok(None) };
            tree.conditions.push((condition, leaves));
        }
        Ok(Some(tree))
    }

    /// The leaves, as bits, whose columns `expr` names; `None` if it names none, or one that is not theirs.
    fn leaves_of(&self, expr: &Expr) -> Option<u64> {
        let mut leaves = 0;
        for column in expr.column_refs() {
            leaves |= 1 << self.leaf_of(column)?;
        }
        Some(leaves).filter(|leaves| *leaves != 0)
    }

    /// The one leaf that has `column`.
    fn leaf_of(&self, column: &Column) -> Option<usize> {
        let has = |leaf: &Arc<LogicalPlan>| leaf.schema().maybe_index_of_column(column).is_some();
        let mut leaves = self.leaves.iter().enumerate().filter(|(_, leaf)| has(leaf)).map(|(at, _)| at);
        leaves.next().filter(|_| leaves.next().is_none())
    }
}

impl Found {
    /// What `plan` joins. What cannot be looked into is a leaf.
    fn below(&mut self, plan: &Arc<LogicalPlan>) -> Shape {
        match plan.as_ref() {
            // Further leaves are of no use: there are too many.
            LogicalPlan::Join(join) if self.leaves.len() <= LEAVES_MAX && may_move(join) => {
                self.keys.extend(join.on.iter().cloned());
                self.conditions.extend(join.filter.iter().flat_map(split_conjunction).cloned());
                let left = self.below(&join.left);
                let right = match join.join_type {
                    JoinType::Inner => self.below(&join.right),
                    _ => self.leaf(&join.right),
                };
                Shape::join(left, right)
            }
            LogicalPlan::Projection(projection) if has_join(&projection.input) => {
                let passes = |(expr, to): (&Expr, Column)| matches!(expr, Expr::Column(from) if *from == to);
                match projection.expr.iter().zip(projection.schema.columns()).all(passes) {
                    true => self.below(&projection.input),
                    false => self.leaf(plan),
                }
            }
            LogicalPlan::Filter(filter) if has_join(&filter.input) => {
                match moves(&filter.predicate, filter.input.schema()) {
                    true => {
                        self.conditions.extend(split_conjunction(&filter.predicate).into_iter().cloned());
                        self.below(&filter.input)
                    }
                    false => self.leaf(plan),
                }
            }
            _ => self.leaf(plan),
        }
    }

    fn leaf(&mut self, plan: &Arc<LogicalPlan>) -> Shape {
        self.leaves.push(plan.clone());
        Shape::Leaf(self.leaves.len() - 1)
    }
}

/// Whether a join that can be looked into stands below projections and filters.
fn has_join(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => may_move(join),
        LogicalPlan::Projection(projection) => has_join(&projection.input),
        LogicalPlan::Filter(filter) => has_join(&filter.input),
        _ => false,
    }
}

/// Whether `join` is an inner join, or as good as one, whose conditions may be asked about other rows than now.
fn may_move(join: &Join) -> bool {
    let is_inner = match join.join_type {
        JoinType::Inner => true,
        JoinType::LeftSemi => finds_one_row(join),
        _ => false,
    };
    if !is_inner || join.null_equality != NullEquality::NullEqualsNothing || join.null_aware {
        return false;
    }
    // The two sides of a semi join may have columns of the same names.
    let Ok(schema) = join.left.schema().join(join.right.schema()) else { return false };
    let mut keys = join.on.iter().flat_map(|(left, right)| [left, right]);
    keys.all(|key| moves(key, &schema)) && join.filter.iter().all(|filter| moves(filter, &schema))
}

/// Whether `expr` has the same value for a row wherever it is asked, and ends in no error.
fn moves(expr: &Expr, schema: &DFSchema) -> bool {
    let has_plan = |e: &Expr| {
        matches!(e, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
            || matches!(e, Expr::OuterReferenceColumn(..))
    };
    !(expr.is_volatile() || may_fail(expr, schema) || expr.exists(|e| Ok(has_plan(e))).unwrap_or(true))
}

/// Whether each row finds one row of the right side at most: the keys are those that an aggregate groups by. Then a
/// semi join is an inner join.
fn finds_one_row(join: &Join) -> bool {
    let keys: Option<Vec<&Column>> = join.on.iter().map(|(_, right)| right.try_as_col()).collect();
    keys.is_some_and(|keys| !keys.is_empty() && are_groups(&join.right, &keys.into_iter().cloned().collect::<Vec<_>>()))
}

/// Whether no two rows of `plan` are equal in all of `columns`, because they are groups.
fn are_groups(plan: &LogicalPlan, columns: &[Column]) -> bool {
    match plan {
        LogicalPlan::Aggregate(Aggregate { group_expr, schema, .. }) => {
            let is_key = |at: usize| columns.iter().any(|column| schema.maybe_index_of_column(column) == Some(at));
            let is_set = group_expr.iter().any(|expr| matches!(expr, Expr::GroupingSet(_)));
            !is_set && (0..group_expr.len()).all(is_key)
        }
        LogicalPlan::Filter(filter) => are_groups(&filter.input, columns),
        LogicalPlan::Sort(sort) => are_groups(&sort.input, columns),
        LogicalPlan::SubqueryAlias(alias) => {
            let input = alias.input.schema().columns();
            let inner = columns.iter().map(|column| input.get(alias.schema.maybe_index_of_column(column)?).cloned());
            inner.collect::<Option<Vec<_>>>().is_some_and(|columns| are_groups(&alias.input, &columns))
        }
        LogicalPlan::Projection(projection) => {
            let inner = columns.iter().map(|column| {
                let expr = projection.expr.get(projection.schema.maybe_index_of_column(column)?)?;
                expr.clone().unalias().try_as_col().cloned()
            });
            inner.collect::<Option<Vec<_>>>().is_some_and(|columns| are_groups(&projection.input, &columns))
        }
        _ => false,
    }
}
