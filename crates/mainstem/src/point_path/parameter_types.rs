//! Types of a statement's parameters, from its tree and the columns of its tables.
//!
//! Comes in: a statement. Goes out: the type of each parameter, if each of its places is one that tells it at once:
//! beside a column in a comparison, in a list or between bounds; as the value of a column; as LIMIT, which gives it
//! none. They are those that planning the statement would find, at a small part of its cost; where it is not so plain
//! they are left to it.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, LimitClause, Query, SetExpr, Value as Literal, Visit};
use mainstem_storage::schema::{DataType, TableSchema};

use super::Short;
use super::planning::unnested;
use crate::exec::parameter_of;
use crate::sql::{Assignments, Insert, Statement, Target, fold};
use crate::walk::walk_expressions;

impl Short {
    /// The types of the `count` parameters of `statement`, which is on the tables of `schemas`; `None` if not all of
    /// them are plain.
    pub(crate) fn parameter_types(
        statement: &Statement,
        schemas: &[&TableSchema],
        count: usize,
    ) -> Option<Vec<Option<DataType>>> {
        let mut places = Places { schemas, types: vec![None; count], told: 0, all: 0, is_plain: true };
        match statement {
            Statement::Query(query) => places.query(query),
            Statement::Lock(lock) => places.query(&lock.query),
            Statement::Insert(insert) => places.insert(insert),
            Statement::Update(update) => {
                let (assignments, selection) = update.plain()?;
                places.assignments(assignments);
                selection.into_iter().for_each(|selection| places.visit(selection));
                places.returned(&update.target);
            }
            Statement::Delete(delete) => {
                delete.plain_selection()?.into_iter().for_each(|selection| places.visit(selection));
                places.returned(&delete.target);
            }
            _ => return None,
        }
        let is_told = places.is_plain && places.told == places.all;
        is_told.then_some(places.types)
    }
}

/// The places of parameters.
struct Places<'a> {
    schemas: &'a [&'a TableSchema],
    types: Vec<Option<DataType>>,
    /// How many places told a type, and how many there are.
    told: usize,
    all: usize,
    is_plain: bool,
}

impl Places<'_> {
    fn query(&mut self, query: &Query) {
        if let Some(LimitClause::LimitOffset { limit: Some(limit), .. }) = &query.limit_clause {
            // Any number will do.
            self.told += usize::from(parameter_of(limit).is_some());
        }
        self.visit(query);
    }

    fn insert(&mut self, insert: &Insert) {
        self.returned(&insert.target);
        self.is_plain &= insert.conflict.is_none();
        let ([schema], SetExpr::Values(values)) = (self.schemas, &*insert.source.body) else {
            self.is_plain = false;
            return;
        };
        for row in &values.rows {
            for (at, cell) in row.content.iter().enumerate() {
                let column = match insert.columns.get(at) {
                    Some(name) => schema.column_named(name),
                    None => schema.columns.get(at).filter(|_| insert.columns.is_empty()),
                };
                self.tell(cell, column.map(|column| column.data_type));
            }
        }
        self.visit(&insert.source);
    }

    fn assignments(&mut self, assignments: &Assignments) {
        for (name, value) in assignments.iter() {
            let [schema] = self.schemas else { continue };
            self.tell(value, schema.column_named(name).map(|column| column.data_type));
            self.visit(value);
        }
    }

    fn returned(&mut self, target: &Target) {
        target.returned_items().into_iter().flatten().for_each(|item| self.visit(item));
    }

    fn visit(&mut self, tree: &impl Visit) {
        let _: ControlFlow<()> = walk_expressions(tree, |expr| {
            match expr {
                Expr::Value(value) if matches!(value.value, Literal::Placeholder(_)) => self.all += 1,
                Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                    self.tell(left, self.type_of(right));
                    self.tell(right, self.type_of(left));
                }
                Expr::InList { expr, list, .. } => {
                    let data_type = self.type_of(expr);
                    list.iter().for_each(|item| self.tell(item, data_type));
                }
                Expr::Between { expr, low, high, .. } => {
                    let data_type = self.type_of(expr);
                    [low, high].into_iter().for_each(|bound| self.tell(bound, data_type));
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
    }

    /// The type of the column `expr`, if it is one.
    fn type_of(&self, expr: &Expr) -> Option<DataType> {
        let name = match unnested(expr) {
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(names) => names.last()?,
            _ => return None,
        };
        let name = fold(name);
        let mut columns = self.schemas.iter().filter_map(|schema| schema.column_named(&name));
        let column = columns.next().filter(|_| columns.next().is_none())?;
        Some(match column.data_type {
            // Longer ones are compared as they are.
            DataType::Text { .. } => DataType::Text { max_chars: None },
            data_type => data_type,
        })
    }

    /// `expr`, if it is a parameter, has type `data_type`, if that is known.
    fn tell(&mut self, expr: &Expr, data_type: Option<DataType>) {
        let (Some(at), Some(data_type)) = (parameter_of(expr), data_type) else { return };
        let Some(slot) = self.types.get_mut(at) else { return };
        self.told += 1;
        self.is_plain &= *slot.get_or_insert(data_type) == data_type;
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}
