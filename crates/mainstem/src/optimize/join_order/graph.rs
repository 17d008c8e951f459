//! The join graph of a tree, and the cheapest tree over it.
//!
//! Keys that are equal to each other are a class: of the members in two sets of leaves one pair is enough to join
//! these, as those within each set are equal already. A cardinality depends on the leaves of a set only, not on their
//! order: the product of their rows, over the numbers of distinct values of all members of each class but the one with
//! the fewest.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::logical_plan::{Filter, Join, Projection};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

use super::estimate::{Cardinality, damped};
use super::tree::{JoinTree, Shape, Side};

/// Leaves up to which all orders are looked at: each more triples the work.
const EXHAUSTIVE_MAX: usize = 10;
/// The share of combinations of rows that another condition leaves.
const CONDITION: f64 = 0.3;
const EQUALITY: f64 = 0.05;

/// Leaves, as bits.
type Leaves = u64;

/// Expressions that are equal in all rows of the join, at most one of each leaf.
#[derive(Debug)]
struct Class {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    leaf: usize,
    expr: Expr,
    distinct: f64,
}

impl Class {
    fn member_in(&self, leaves: Leaves) -> Option<&Member> {
        self.members.iter().find(|member| leaves & (1 << member.leaf) != 0)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct JoinGraph {
    leaves: Vec<Cardinality>,
    classes: Vec<Class>,
    /// Leaves of each other condition, and the share of rows that it leaves.
    conditions: Vec<(Leaves, f64)>,
    rows: RefCell<HashMap<Leaves, f64>>,
}

impl JoinGraph {
    /// The graph of `tree`, whose leaves have these cardinalities. `None` if a type cannot be had.
    pub(super) fn of(tree: &JoinTree, leaves: Vec<Cardinality>) -> Option<Self> {
        let mut classes = Vec::new();
        for sides in classes_of(tree)? {
            let values = sides.iter().map(|side| {
                let leaf = (leaves.get(side.leaf)?, tree.leaves.get(side.leaf)?);
                Some((leaf.0.values_of(&side.expr, leaf.1.schema()), leaf.0.unfiltered))
            });
            let values = values.collect::<Option<Vec<_>>>()?;
            // What is equal to a key is one of its values.
            let key = values
                .iter()
                .filter_map(|(values, _)| values.key)
                .fold(None, |a: Option<f64>, b| Some(a.map_or(b, |a| a.max(b))));
            let members = sides.into_iter().zip(values).map(|(Side { leaf, expr }, (values, rows))| {
                let distinct = values.distinct.unwrap_or(rows).min(rows).min(key.unwrap_or(f64::MAX)).max(1.0);
                Member { leaf, expr, distinct }
            });
            classes.push(Class { members: members.collect() });
        }
        let share = |expr: &Expr| match expr {
            Expr::BinaryExpr(BinaryExpr { op: Operator::Eq, .. }) => EQUALITY,
            _ => CONDITION,
        };
        let conditions = tree.conditions.iter().map(|(expr, leaves)| (*leaves, share(expr))).collect();
        Some(Self { leaves, classes, conditions, rows: RefCell::default() })
    }

    /// Rows of the join of `leaves`.
    fn rows(&self, leaves: Leaves) -> f64 {
        if let Some(known) = self.rows.borrow().get(&leaves) {
            return *known;
        }
        let has = |at: usize| leaves & (1 << at) != 0;
        let mut rows: f64 =
            self.leaves.iter().enumerate().filter(|(at, _)| has(*at)).map(|(_, leaf)| leaf.rows.max(1.0)).product();
        // By pairs of leaves: what several keys join depends on one another.
        let mut links: Vec<((usize, usize), Vec<f64>)> = Vec::new();
        for class in &self.classes {
            let mut members: Vec<&Member> = class.members.iter().filter(|member| has(member.leaf)).collect();
            members.sort_by(|a, b| self.by_distinct(a, b));
            let Some((root, others)) = members.split_first() else { continue };
            for member in others {
                let pair = (member.leaf.min(root.leaf), member.leaf.max(root.leaf));
                match links.iter_mut().find(|(known, _)| *known == pair) {
                    Some((_, distinct)) => distinct.push(member.distinct),
                    None => links.push((pair, vec![member.distinct])),
                }
            }
        }
        for ((a, b), distinct) in links {
            // Of a leaf's rows, no combination of columns has more values.
            let size = |at: usize| self.leaves.get(at).map_or(f64::MAX, |leaf| leaf.unfiltered);
            let largest = distinct.iter().copied().fold(1.0, f64::max);
            rows /= damped(distinct).min(largest.max(size(a).min(size(b))));
        }
        for (of, share) in &self.conditions {
            if of & leaves == *of {
                rows *= share;
            }
        }
        let rows = rows.max(1.0);
        self.rows.borrow_mut().insert(leaves, rows);
        rows
    }

    /// Members with few values first, and of as many those of the largest leaf: it refers to the others.
    fn by_distinct(&self, a: &Member, b: &Member) -> Ordering {
        let size = |member: &Member| self.leaves.get(member.leaf).map_or(0.0, |leaf| leaf.unfiltered);
        a.distinct.total_cmp(&b.distinct).then(size(b).total_cmp(&size(a))).then(a.leaf.cmp(&b.leaf))
    }

    /// Whether a key joins two sets.
    fn are_joined(&self, a: Leaves, b: Leaves) -> bool {
        self.classes.iter().any(|class| class.member_in(a).is_some() && class.member_in(b).is_some())
    }

    /// What joining two sets costs: the rows that come out, and those of the build side.
    fn step(&self, a: Leaves, b: Leaves) -> f64 {
        self.rows(a | b) + self.rows(a).min(self.rows(b))
    }

    /// What all joins of `shape` cost.
    pub(super) fn cost(&self, shape: &Shape) -> f64 {
        match shape {
            Shape::Leaf(_) => 0.0,
            Shape::Join(left, right) => self.cost(left) + self.cost(right) + self.step(left.leaves(), right.leaves()),
        }
    }

    /// The cheapest tree without cross products; `None` if there is none.
    pub(super) fn best(&self) -> Option<Shape> {
        if self.leaves.len() <= EXHAUSTIVE_MAX { self.exhaustive() } else { self.greedy() }
    }

    /// By dynamic programming over all connected sets.
    fn exhaustive(&self) -> Option<Shape> {
        let all: Leaves = (1 << self.leaves.len()) - 1;
        let mut best: HashMap<Leaves, (f64, Leaves)> = HashMap::new();
        for set in 1..=all {
            if set.is_power_of_two() {
                best.insert(set, (0.0, 0));
                continue;
            }
            let mut cheapest: Option<(f64, Leaves)> = None;
            let mut part = (set - 1) & set;
            while part > 0 {
                let other = set ^ part;
                // Each pair once.
                if part > other
                    && let (Some((a, _)), Some((b, _))) = (best.get(&part), best.get(&other))
                    && self.are_joined(part, other)
                {
                    let cost = a + b + self.step(part, other);
                    if cheapest.is_none_or(|(known, _)| cost < known) {
                        cheapest = Some((cost, part));
                    }
                }
                part = (part - 1) & set;
            }
            if let Some(cheapest) = cheapest {
                best.insert(set, cheapest);
            }
        }
        self.shape_of(all, &best)
    }

    fn shape_of(&self, set: Leaves, best: &HashMap<Leaves, (f64, Leaves)>) -> Option<Shape> {
        let (_, part) = best.get(&set)?;
        if *part == 0 {
            return Some(Shape::Leaf(set.trailing_zeros() as usize));
        }
        Some(self.sided(self.shape_of(*part, best)?, self.shape_of(set ^ part, best)?))
    }

    /// By joining the two sets again and again that is cheapest.
    fn greedy(&self) -> Option<Shape> {
        let mut sets: Vec<(Leaves, Shape)> = (0..self.leaves.len()).map(|at| (1 << at, Shape::Leaf(at))).collect();
        while sets.len() > 1 {
            let mut cheapest: Option<(f64, usize, usize)> = None;
            for (at, (a, _)) in sets.iter().enumerate() {
                for (beside, (b, _)) in sets.iter().enumerate().skip(at + 1) {
                    if !self.are_joined(*a, *b) {
                        continue;
                    }
                    let cost = self.step(*a, *b);
                    if cheapest.is_none_or(|(known, ..)| cost < known) {
                        cheapest = Some((cost, at, beside));
                    }
                }
            }
            let (_, at, beside) = cheapest?;
            let (b, right) = sets.remove(beside);
            let (a, left) = sets.remove(at);
            sets.push((a | b, self.sided(left, right)));
        }
        sets.pop().map(|(_, shape)| shape)
    }

    /// The join of two trees, the smaller on the left.
    fn sided(&self, a: Shape, b: Shape) -> Shape {
        if self.rows(b.leaves()) < self.rows(a.leaves()) { Shape::join(b, a) } else { Shape::join(a, b) }
    }

    /// The plan of `shape` over `leaves`, with the columns of `schema`; `None` if they would differ.
    ///
    /// # Errors
    /// Internal.
    pub(super) fn built(
        &self,
        shape: &Shape,
        tree: &JoinTree,
        leaves: Vec<LogicalPlan>,
        schema: &Arc<DFSchema>,
    ) -> Result<Option<LogicalPlan>> {
        let joined = self.plan_of(shape, tree, &leaves)?;
        let joined = Arc::new(joined);
        let columns = schema.columns().into_iter().map(Expr::Column).collect();
        let made = Projection::try_new(columns, joined.clone())?.schema;
        let projection = Projection::new_from_schema(joined, schema.clone());
        Ok(made.iter().eq(schema.iter()).then_some(LogicalPlan::Projection(projection)))
    }

    fn plan_of(&self, shape: &Shape, tree: &JoinTree, leaves: &[LogicalPlan]) -> Result<LogicalPlan> {
        let within = |set: Leaves, of: Leaves| of & set == of;
        let set = shape.leaves();
        let conditions = |is: &dyn Fn(Leaves) -> bool| {
            conjunction(tree.conditions.iter().filter(|(_, of)| within(set, *of) && is(*of)).map(|(e, _)| e.clone()))
        };
        match shape {
            Shape::Leaf(at) => {
                let Some(leaf) = leaves.get(*at).cloned() else {
                    return datafusion::common::internal_err!("a join has lost a leaf");
                };
                Ok(match conditions(&|_| true) {
                    Some(predicate) => LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(leaf))?),
                    None => leaf,
                })
            }
            Shape::Join(left, right) => {
                let (a, b) = (left.leaves(), right.leaves());
                let pair = |class: &Class| Some((class.member_in(a)?.expr.clone(), class.member_in(b)?.expr.clone()));
                let on = self.classes.iter().filter_map(pair).collect();
                let filter = conditions(&|of| !within(a, of) && !within(b, of));
                let left = Arc::new(self.plan_of(left, tree, leaves)?);
                let right = Arc::new(self.plan_of(right, tree, leaves)?);
                let (constraint, nulls) = (JoinConstraint::On, NullEquality::NullEqualsNothing);
                Join::try_new(left, right, on, filter, JoinType::Inner, constraint, nulls, false).map(LogicalPlan::Join)
            }
        }
    }
}

/// The keys of `tree` as classes, each with one member of a leaf at most.
fn classes_of(tree: &JoinTree) -> Option<Vec<Vec<Side>>> {
    // Sides, and the pairs that they come from.
    let mut classes: Vec<(Vec<Side>, Vec<[Side; 2]>)> = Vec::new();
    let mut single: Vec<Vec<Side>> = Vec::new();
    for pair in &tree.keys {
        let [a, b] = pair;
        let has = |side: &Side| classes.iter().position(|(sides, _)| sides.contains(side));
        // Only columns of one type are equal to what others of it are equal to.
        let is_plain = [a, b].iter().all(|side| matches!(side.expr, Expr::Column(_)))
            && a.expr.get_type(&tree.schema).ok()? == b.expr.get_type(&tree.schema).ok()?;
        match (has(a), has(b)) {
            _ if !is_plain => single.push(pair.to_vec()),
            (None, None) => classes.push((vec![a.clone(), b.clone()], vec![pair.clone()])),
            (Some(at), None) => add(classes.get_mut(at)?, Some(b), pair),
            (None, Some(at)) => add(classes.get_mut(at)?, Some(a), pair),
            (Some(at), Some(other)) if at == other => add(classes.get_mut(at)?, None, pair),
            (Some(at), Some(other)) => {
                let (sides, pairs) = classes.remove(at.max(other));
                let into = classes.get_mut(at.min(other))?;
                into.0.extend(sides);
                into.1.extend(pairs);
                add(into, None, pair);
            }
        }
    }
    for (sides, pairs) in classes {
        let twice = |side: &Side| sides.iter().filter(|other| other.leaf == side.leaf).count() > 1;
        if sides.iter().any(twice) {
            single.extend(pairs.into_iter().map(Vec::from));
        } else {
            single.push(sides);
        }
    }
    Some(single)
}

fn add((sides, pairs): &mut (Vec<Side>, Vec<[Side; 2]>), side: Option<&Side>, pair: &[Side; 2]) {
    sides.extend(side.cloned());
    if !pairs.contains(pair) {
        pairs.push(pair.clone());
    }
}
