//! Walks over syntax trees.
//!
//! Comes in: a tree of the parser, and a visitor. Goes out: what the visitor made of it, as the parser's own walks have
//! it. Those are generated code for each kind of visitor, some hundred functions that differ in nothing but the visitor
//! they call. Here all visitors are one kind, called through a trait object: there is one walk, and one that changes
//! trees.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};

/// Walks over `tree`.
pub(crate) fn walk<V: Visitor>(tree: &impl Visit, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut held = Held { visitor, found: None };
    let _: ControlFlow<()> = tree.visit(&mut Erased(&mut held));
    held.found.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Walks over `tree`, which the visitor may change.
pub(crate) fn walk_mut<V: VisitorMut>(tree: &mut impl VisitMut, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut held = Held { visitor, found: None };
    let _: ControlFlow<()> = tree.visit(&mut ErasedMut(&mut held));
    held.found.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Calls `each` with every expression of `tree`, an outer one before those in it.
pub(crate) fn walk_expressions<B>(tree: &impl Visit, each: impl FnMut(&Expr) -> ControlFlow<B>) -> ControlFlow<B> {
    walk(tree, &mut Expressions(each))
}

/// Calls `each` with every expression of `tree`, an outer one after those in it.
pub(crate) fn walk_expressions_mut<B>(
    tree: &mut impl VisitMut,
    each: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    walk_mut(tree, &mut ExpressionsMut(each))
}

/// Calls `each` with every name of a relation in `tree`.
pub(crate) fn walk_relations<B>(tree: &impl Visit, each: impl FnMut(&ObjectName) -> ControlFlow<B>) -> ControlFlow<B> {
    walk(tree, &mut Relations(each))
}

struct Relations<F>(F);

impl<B, F: FnMut(&ObjectName) -> ControlFlow<B>> Visitor for Relations<F> {
    type Break = B;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<B> {
        (self.0)(relation)
    }
}

struct Expressions<F>(F);

impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Expressions<F> {
    type Break = B;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        (self.0)(expr)
    }
}

struct ExpressionsMut<F>(F);

impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for ExpressionsMut<F> {
    type Break = B;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        (self.0)(expr)
    }
}

/// A visitor, and what it ended the walk with.
struct Held<'v, V, B> {
    visitor: &'v mut V,
    found: Option<B>,
}

impl<V, B> Held<'_, V, B> {
    fn call(&mut self, call: impl FnOnce(&mut V) -> ControlFlow<B>) -> ControlFlow<()> {
        match call(self.visitor) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(found) => {
                self.found = Some(found);
                ControlFlow::Break(())
            }
        }
    }
}

/// Any visitor.
struct Erased<'v>(&'v mut dyn Visitor<Break = ()>);

/// Any visitor that changes trees.
struct ErasedMut<'v>(&'v mut dyn VisitorMut<Break = ()>);

/// The methods of a visitor: each calls the one of the same name behind it.
macro_rules! visitor {
    ($visitor:ident, $erased:ident, $($method:ident: $node:ty,)*) => {
        impl<V: $visitor> $visitor for Held<'_, V, V::Break> {
            type Break = ();

            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                self.call(|visitor| visitor.$method(node))
            })*
        }

        impl $visitor for $erased<'_> {
            type Break = ();

            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                self.0.$method(node)
            })*
        }
    };
}

visitor!(
    Visitor, Erased,
    pre_visit_query: &Query,
    post_visit_query: &Query,
    pre_visit_select: &Select,
    post_visit_select: &Select,
    pre_visit_relation: &ObjectName,
    post_visit_relation: &ObjectName,
    pre_visit_table_factor: &TableFactor,
    post_visit_table_factor: &TableFactor,
    pre_visit_expr: &Expr,
    post_visit_expr: &Expr,
    pre_visit_statement: &Statement,
    post_visit_statement: &Statement,
    pre_visit_value: &ValueWithSpan,
    post_visit_value: &ValueWithSpan,
);

visitor!(
    VisitorMut, ErasedMut,
    pre_visit_query: &mut Query,
    post_visit_query: &mut Query,
    pre_visit_select: &mut Select,
    post_visit_select: &mut Select,
    pre_visit_relation: &mut ObjectName,
    post_visit_relation: &mut ObjectName,
    pre_visit_table_factor: &mut TableFactor,
    post_visit_table_factor: &mut TableFactor,
    pre_visit_expr: &mut Expr,
    post_visit_expr: &mut Expr,
    pre_visit_statement: &mut Statement,
    post_visit_statement: &mut Statement,
    pre_visit_value: &mut ValueWithSpan,
    post_visit_value: &mut ValueWithSpan,
);
