//! Simplifications that forget NULL: IN lists over one expression, and `a # a`.
//!
//! DataFusion 55.2 ([issue 24246](https://github.com/apache/datafusion/issues/24246), mended by pull request 24258
//! after that version) makes one list of two that stand beside each other:
//!
//! | written | made of it | wrong where |
//! |---|---|---|
//! | `x IN (1) AND x IN (2)` | `false` | x is NULL, and the whole stands below NOT or in a select list |
//! | `x IN (0, 2) AND x NOT IN (2, NULL)` | `x IN (0)` | x is 0: the second list says NULL |
//! | `x NOT IN (0) OR x NOT IN (1)` | `true` | x is NULL |
//! | `x IN (a) AND x IN (b)` | `false` | a = b: members are compared as they are written |
//!
//! Equalities join in, because `x = 1 OR x = 2` becomes a list first. And `a # a` becomes 0.
//!
//! Comes in: the expressions of one plan node. Goes out: the same, simplified. Steps:
//!
//! 1. Lists are noted, each with what it is about, its members, and whether it is negated in the end ([`Lists`]).
//!    Nothing more is done unless AND or OR brings two different ones together in a way that DataFusion gets wrong.
//! 2. The columns of such lists get an alias whose metadata tells the lists apart. Two lists are then never about the
//!    same expression, unless they are the same list.
//! 3. DataFusion simplifies, and the aliases are taken off.
//!
//! It does not own: which lists the store evaluates (`provider::filter`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{Alias, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The name of DataFusion's rule.
const RULE: &str = "simplify_expressions";
/// The key of the metadata that tells lists apart.
const LIST: &str = "mainstem.list";

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// `rule` in the form that the module says, if it is the one that simplifies; others as they are.
pub(crate) fn null_safe_simplification(rule: Rule) -> Rule {
    if rule.name() == RULE { Arc::new(NullSafe(rule)) } else { rule }
}

/// `expr` as `simplifier` makes it, with NULLs kept.
///
/// # Errors
/// Those of the simplifier.
pub(crate) fn simplified(simplifier: &ExprSimplifier, expr: Expr) -> Result<Expr> {
    if !is_at_risk(&expr) {
        return simplifier.simplify(expr);
    }
    let marked = mark(expr)?.data;
    Ok(unmark(simplifier.simplify(marked)?)?.data)
}

#[derive(Debug)]
struct NullSafe(Rule);

impl OptimizerRule for NullSafe {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut at_risk = false;
        plan.apply_expressions(|expr| {
            at_risk |= is_at_risk(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !at_risk {
            return self.0.rewrite(plan, config);
        }
        let marked =
            plan.map_expressions(|expr| if is_at_risk(&expr) { mark(expr) } else { Ok(Transformed::no(expr)) })?;
        let simplified = self.0.rewrite(marked.data, config)?;
        // A projection may stand above an aggregate now.
        let unmarked = simplified.data.transform_down(|node| {
            let node = node.map_expressions(unmark)?;
            let recursion = if node.transformed { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop };
            Ok(Transformed::new(node.data, node.transformed, recursion))
        })?;
        Ok(Transformed::new_transformed(unmarked.data, simplified.transformed))
    }
}

/// Whether DataFusion might make one of two lists in `expr`, or nothing of both sides of a `#`.
fn is_at_risk(expr: &Expr) -> bool {
    let (mut lists, mut equalities, mut has_xor) = (0, 0, false);
    let looked = expr.apply(|expr| {
        match expr {
            Expr::InList(_) => lists += 1,
            Expr::BinaryExpr(BinaryExpr { op: Operator::Eq | Operator::NotEq, .. }) => equalities += 1,
            Expr::BinaryExpr(BinaryExpr { op: Operator::BitwiseXor, .. }) => has_xor = true,
            _ => {}
        }
        Ok(if has_xor { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    // It takes two equalities to make a list.
    let has_two = lists + equalities / 2 > 1 || lists + equalities > 1 && lists > 0;
    looked.is_ok() && (has_xor || has_two && Lists::of(expr).at_risk)
}

/// What tells lists apart: what each is about, its members, and whether it is negated in the end.
type Identity = (Expr, Vec<Expr>, bool);

/// The lists of an expression, those that two equalities might become among them.
#[derive(Default)]
struct Lists {
    numbers: HashMap<Identity, usize>,
    at_risk: bool,
}

/// Which lists over some columns a part of an expression holds.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Held {
    #[default]
    None,
    /// The list of this number.
    One(usize),
    Several,
}

impl Held {
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (held, Self::None) | (Self::None, held) => held,
            (one, other) if one == other => one,
            _ => Self::Several,
        }
    }

    /// Whether one of these and one of `other` are two.
    fn differs(self, other: Self) -> bool {
        self != Self::None && other != Self::None && self.with(other) == Self::Several
    }
}

/// By the columns that lists are about: those that are not negated in the end, and those that are.
type HeldByColumns = BTreeMap<Vec<Column>, (Held, Held)>;

impl Lists {
    fn of(expr: &Expr) -> Self {
        let mut lists = Self::default();
        lists.part(expr, Place::default());
        lists
    }

    fn part(&mut self, expr: &Expr, place: Place) -> HeldByColumns {
        let mut held = HeldByColumns::new();
        if let Some(list) = place.list(expr) {
            let columns: BTreeSet<Column> = list.0.column_refs().into_iter().cloned().collect();
            let negated = list.2;
            let number = Held::One(self.number(list));
            let both = if negated { (Held::None, number) } else { (number, Held::None) };
            held.insert(columns.into_iter().collect(), both);
        }
        let (is_or, below) = place.below(expr);
        let walked = expr.apply_children(|child| {
            let child = self.part(child, below);
            self.join(&mut held, child, is_or);
            Ok(TreeNodeRecursion::Continue)
        });
        self.at_risk |= walked.is_err();
        held
    }

    /// Adds what a second operand of AND or OR holds.
    fn join(&mut self, held: &mut HeldByColumns, other: HeldByColumns, is_or: bool) {
        for (columns, (plain, negated)) in other {
            let both = held.entry(columns).or_default();
            // Of OR those that are negated, of AND the others: a NOT above makes one of the other. One of each in both.
            let is_of_both =
                (both.0 != Held::None && negated != Held::None) || (both.1 != Held::None && plain != Held::None);
            self.at_risk |= is_of_both || if is_or { both.1.differs(negated) } else { both.0.differs(plain) };
            *both = (both.0.with(plain), both.1.with(negated));
        }
    }

    fn number(&mut self, list: Identity) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(list).or_insert(next)
    }

    /// `expr`, at `place`, with aliases that tell its lists apart.
    fn marked(&mut self, expr: Expr, place: Place) -> Result<Transformed<Expr>> {
        let expr = match place.list(&expr) {
            Some(list) if list.0.column_refs().is_empty() && !list.0.is_volatile() => Transformed::yes(compared(expr)),
            Some(list) => {
                // Two volatile values are never the same.
                let number = if list.0.is_volatile() { self.unique() } else { self.number(list) };
                Transformed::yes(match expr {
                    Expr::InList(InList { expr, list, negated }) => {
                        Expr::InList(InList { expr: Box::new(aliased(*expr, number)?), list, negated })
                    }
                    equality => aliased(equality, number)?,
                })
            }
            None => Transformed::no(expr),
        };
        let below = place.below(&expr.data).1;
        let expr = expr.transform_children(|e| e.map_children(|child| self.marked(child, below)))?;
        expr.transform_data(|expr| match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right }) => {
                let right = Box::new(alias(*right, self.unique()));
                Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right })))
            }
            other => Ok(Transformed::no(other)),
        })
    }

    /// A number that no list has.
    fn unique(&mut self) -> usize {
        let next = self.numbers.len();
        self.number((lit(next as u64), Vec::new(), false))
    }
}

/// Where an expression stands among the ANDs, ORs and NOTs above it.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Below an odd number of NOTs.
    negated: bool,
    /// The nearest AND or OR above is OR in the end.
    in_or: bool,
}

impl Place {
    /// Whether `expr`, here, is an OR in the end, and the place of what it is made of.
    fn below(self, expr: &Expr) -> (bool, Self) {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                let is_or = (*op == Operator::Or) != self.negated;
                (is_or, Self { in_or: is_or, ..self })
            }
            Expr::Not(_) => (false, Self { negated: !self.negated, ..self }),
            Expr::Alias(_) => (false, self),
            // A CASE may become ANDs and ORs.
            _ => (false, Self::default()),
        }
    }

    /// The list that `expr`, here, is or may become a part of.
    fn list(self, expr: &Expr) -> Option<Identity> {
        match expr {
            Expr::InList(InList { expr, list, negated }) => {
                Some((without_casts(expr).clone(), list.clone(), *negated != self.negated))
            }
            // `x = 1 OR x = 2` becomes a list, and so does `NOT (x <> 1 AND x <> 2)`.
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Eq | Operator::NotEq), right })
                if ((*op == Operator::NotEq) == self.negated) == self.in_or =>
            {
                match (without_casts(left), without_casts(right)) {
                    (column @ Expr::Column(_), member @ Expr::Literal(..))
                    | (member @ Expr::Literal(..), column @ Expr::Column(_)) => {
                        Some((column.clone(), vec![member.clone()], !self.in_or))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => without_casts(&cast.expr),
        Expr::TryCast(cast) => without_casts(&cast.expr),
        other => other,
    }
}

fn alias(expr: Expr, number: usize) -> Expr {
    let metadata = FieldMetadata::from(BTreeMap::from([(LIST.to_owned(), number.to_string())]));
    let (relation, name) = expr.qualified_name();
    Expr::Alias(Alias { expr: Box::new(expr), relation, name, metadata: Some(metadata) })
}

/// `expr` with an alias around each column; around the whole where there is none.
fn aliased(expr: Expr, number: usize) -> Result<Expr> {
    let columns = expr.clone().transform(|expr| match expr {
        Expr::Column(_) => Ok(Transformed::new(alias(expr, number), true, TreeNodeRecursion::Jump)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(if columns.transformed { columns.data } else { alias(expr, number) })
}

/// A list about a constant as comparisons: `1 IN (a, b)` as `1 = a OR 1 = b`.
fn compared(expr: Expr) -> Expr {
    let Expr::InList(InList { expr, list, negated }) = expr else { return expr };
    let (compare, combine) = if negated { (Operator::NotEq, Operator::And) } else { (Operator::Eq, Operator::Or) };
    let mut parts: Vec<Expr> = list
        .into_iter()
        .map(|member| Expr::BinaryExpr(BinaryExpr::new(expr.clone(), compare, Box::new(member))))
        .collect();
    // As shallow as it can be.
    while parts.len() > 1 {
        let mut halved = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => Expr::BinaryExpr(BinaryExpr::new(Box::new(left), combine, Box::new(right))),
                None => left,
            });
        }
        parts = halved;
    }
    parts.pop().unwrap_or_else(|| lit(negated))
}

fn mark(expr: Expr) -> Result<Transformed<Expr>> {
    Lists::default().marked(expr, Place::default())
}

/// `expr` without the aliases of [`mark`].
fn unmark(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::Alias(Alias { expr, metadata: Some(metadata), .. }) if metadata.inner().contains_key(LIST) => {
            Ok(Transformed::yes(*expr))
        }
        other => Ok(Transformed::no(other)),
    })
}
