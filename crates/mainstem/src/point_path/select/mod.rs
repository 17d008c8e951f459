//! Which SELECTs are short, and what they give.
//!
//! Comes in: the tree of a query. Goes out: its one table, its condition, its order and limit, and whether it gives the
//! rows, their number, aggregates of them ([`aggregate`]), or whether there are any ([`PlainSelect`]); or a second
//! table whose rows are looked up for each row of the first ([`join`]). All else that a query may say makes it none of
//! these.

pub(super) mod aggregate;
pub(super) mod join;

use std::sync::LazyLock;

use datafusion::sql::sqlparser::ast::{
    Expr, JoinConstraint, JoinOperator, LimitClause, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr,
    TableAlias, TableFactor,
};
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

use super::access::{Access, Path, Reach, Wanted};
use super::expression::{Expression, Node};
use super::planning::{Compiler, unnested};
use super::values::{Given, is_integer};
use super::{Action, Output};
use crate::sql::{Lock, TableName, fold, query_of, table_name};
use aggregate::Aggregate;
pub(super) use join::JoinSelection;

/// The shortest queries of so many tables. Every text that is planned is compared with one of them.
static NO_TABLE: LazyLock<Option<Box<Query>>> = LazyLock::new(|| query_of("SELECT 1").ok());
static ONE_TABLE: LazyLock<Option<Box<Query>>> = LazyLock::new(|| query_of("SELECT 1 FROM a").ok());
static TWO_TABLES: LazyLock<Option<Box<Query>>> = LazyLock::new(|| query_of("SELECT 1 FROM a JOIN b ON true").ok());

/// What a SELECT gives of the rows that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    Rows,
    /// How many there are.
    Count,
    /// Aggregates of them.
    Aggregates,
    /// Whether there are any.
    Exists,
}

/// SELECT: the rows in question, their order, and what it gives of them.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) access: Access,
    pub(super) gives: Gives,
    pub(super) aggregates: Vec<Aggregate>,
    /// The greatest key first.
    pub(super) backwards: bool,
    pub(super) limit: Option<Expression>,
    /// FOR UPDATE, FOR SHARE.
    pub(super) locks: bool,
}

impl Selection {
    /// Which rows of its access path it wants; `None` where only a plan knows.
    pub(super) fn wanted(&self, given: Given<'_>) -> Option<Wanted> {
        let wanted = Wanted::rows(self.limit.as_ref(), self.backwards, given)?;
        // A row that is but counted is not read.
        let is_read = matches!(self.gives, Gives::Rows | Gives::Aggregates) || self.access.beside.is_some();
        Some(if is_read { wanted } else { Wanted { steps_max: 16 * wanted.steps_max, ..wanted } })
    }
}

/// A query of one table, or of one joined with another.
pub(super) struct PlainSelect<'e> {
    select: &'e Select,
    table: TableName,
    alias: Option<String>,
    joined: Option<Joined<'e>>,
    order: &'e [OrderByExpr],
    limit: Option<&'e Expr>,
    gives: Gives,
    /// What the one column is called that is no column of the table.
    name: Option<String>,
}

/// `[LEFT] JOIN table [alias] ON ...`.
struct Joined<'e> {
    table: TableName,
    alias: Option<String>,
    on: &'e Expr,
    left: bool,
}

impl<'e> PlainSelect<'e> {
    /// The names of its tables.
    pub(super) fn into_tables(self) -> Vec<TableName> {
        std::iter::once(self.table).chain(self.joined.map(|joined| joined.table)).collect()
    }

    /// Reads `query`: `SELECT ... FROM table [alias] [WHERE ...] [ORDER BY ...] [LIMIT n]`, `SELECT count(*) FROM ...`
    /// or `SELECT EXISTS (SELECT ...)`.
    pub(super) fn of(query: &'e Query) -> Option<Self> {
        if let Some((subquery, name)) = existence(query) {
            let inner =
                Self::of_table(subquery).filter(|inner| inner.gives == Gives::Rows && inner.joined.is_none())?;
            return Some(Self { gives: Gives::Exists, name: Some(name), ..inner });
        }
        Self::of_table(query)
    }

    fn of_table(query: &'e Query) -> Option<Self> {
        let SetExpr::Select(select) = &*query.body else { return None };
        let [from] = select.from.as_slice() else { return None };
        let (joined, mut plain) = match from.joins.as_slice() {
            [] => (None, ONE_TABLE.clone()?),
            [join] => {
                let (left, on) = match &join.join_operator {
                    JoinOperator::Join(on) | JoinOperator::Inner(on) => (false, on),
                    JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (true, on),
                    _ => return None,
                };
                let JoinConstraint::On(on) = on else { return None };
                let (table, alias) = plain_table(&join.relation)?;
                (Some(Joined { table, alias, on, left }), TWO_TABLES.clone()?)
            }
            _ => return None,
        };
        let (table, alias) = plain_table(&from.relation)?;
        // Whatever else a SELECT may say would make this differ: compare it with the shortest one.
        let SetExpr::Select(body) = &mut *plain.body else { return None };
        body.projection.clone_from(&select.projection);
        body.selection.clone_from(&select.selection);
        if let [plain_from] = body.from.as_mut_slice() {
            copy_name(&from.relation, &mut plain_from.relation);
            if let ([join], [plain_join]) = (from.joins.as_slice(), plain_from.joins.as_mut_slice()) {
                copy_name(&join.relation, &mut plain_join.relation);
                plain_join.join_operator.clone_from(&join.join_operator);
            }
        }
        plain.limit_clause.clone_from(&query.limit_clause);
        plain.order_by.clone_from(&query.order_by);
        if *plain != *query {
            return None;
        }
        let limit = match &query.limit_clause {
            None => None,
            Some(LimitClause::LimitOffset { limit, offset: None, limit_by }) if limit_by.is_empty() => limit.as_ref(),
            Some(_) => return None,
        };
        let order = match &query.order_by {
            None => &[][..],
            Some(order) => match &order.kind {
                OrderByKind::Expressions(order_by) if order.interpolate.is_none() => order_by.as_slice(),
                _ => return None,
            },
        };
        let counted = counted(select);
        let gives = match () {
            () if counted.is_some() => Gives::Count,
            () if aggregate::has_only(select) => Gives::Aggregates,
            () => Gives::Rows,
        };
        Some(Self { select, table, alias, joined, order, limit, gives, name: counted })
    }

    /// Compiles it with `plain`, whose qualifier is the table's name.
    pub(super) fn compile(&self, plain: Compiler<'_>, range: bool, locks: bool) -> Option<(Action, Output)> {
        if self.joined.is_some() {
            return None;
        }
        let compiler = Compiler { qualifier: self.alias.as_deref().unwrap_or(plain.qualifier), ..plain };
        let all = self.limit.is_some() || self.gives == Gives::Aggregates;
        let reach = if range { Reach::Range { all } } else { Reach::Keys };
        let limit = self.rows_wanted(compiler)?;
        let access = compiler.access(self.select.selection.as_ref(), reach)?;
        let mut backwards = self.backwards(compiler, &access.path)?;
        let mut aggregates = Vec::new();
        let is_single = access.key().is_some();
        let (limit, output) = match self.gives {
            Gives::Rows => {
                // Which of several rows come first is the plan's to say, unless they have an order.
                if limit.is_some() && !is_single && matches!(access.path, Path::Keys(_)) {
                    return None;
                }
                // A plan names what has no name by the whole name of the table.
                let is_named = self.table.schema.is_none() || self.alias.is_some();
                (limit, compiler.output(&self.select.projection, is_named)?)
            }
            // Of the one row that they give.
            _ if locks => return None,
            Gives::Count if limit.is_some() || !self.order.is_empty() => return None,
            Gives::Count => (None, Output::of_one(self.name.as_deref()?, DataType::BigInt)),
            Gives::Aggregates if limit.is_some() || !self.order.is_empty() => return None,
            Gives::Aggregates => {
                let output;
                (aggregates, output) = aggregate::compile(compiler, &self.select.projection)?;
                let is_last = is_last_key(compiler, &access, &aggregates);
                if is_last.is_none() && access.path.is_all() {
                    return None;
                }
                backwards = is_last.unwrap_or(false);
                (is_last.map(|_| one()), output)
            }
            Gives::Exists => {
                if limit.is_some() || !self.shows_anything(compiler) {
                    return None;
                }
                (Some(one()), Output::of_one(self.name.as_deref()?, DataType::Boolean))
            }
        };
        let selection = Selection { access, gives: self.gives, aggregates, backwards, limit, locks };
        Some((Action::Select(selection), output))
    }

    /// LIMIT, if it has one; `None` if only a plan knows.
    fn rows_wanted(&self, compiler: Compiler<'_>) -> Option<Option<Expression>> {
        match self.limit {
            None => Some(None),
            Some(limit) => {
                let rows = compiler.expression(limit)?;
                (is_integer(rows.data_type) && !rows.reads_row()).then_some(Some(rows))
            }
        }
    }

    /// Whether the items of a subquery of EXISTS, of which nothing is seen, are right: literals, or columns.
    fn shows_anything(&self, compiler: Compiler<'_>) -> bool {
        let items = &self.select.projection;
        let is_literal = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(Expr::Value(value)) if !value.to_string().starts_with('$'));
        items.iter().all(is_literal) || compiler.output(items, true).is_some()
    }

    /// Whether its order is that of keys of `path`, the greatest first; `None` if it is another one.
    fn backwards(&self, compiler: Compiler<'_>, path: &Path) -> Option<bool> {
        self.backwards_behind(compiler, path, 0)
    }

    /// As [`PlainSelect::backwards`], where the first columns, so many, are of one row.
    fn backwards_behind(&self, compiler: Compiler<'_>, path: &Path, constant: usize) -> Option<bool> {
        let (mut backwards, width) = (None, compiler.key_columns.len());
        let bounds = match path {
            Path::Keys(keys) if keys.len() > 1 => return self.order.is_empty().then_some(false),
            Path::Keys(_) => None,
            Path::Ranges(bounds) => Some(bounds),
        };
        // Behind a whole key nothing is left to be ordered.
        let is_constant = |place| bounds.is_none_or(|bounds| bounds.is_constant(place));
        let varies_from = |place: usize| (place..width).find(|place| !is_constant(*place)).unwrap_or(width);
        let mut next = varies_from(0);
        for OrderByExpr { expr, options, with_fill } in self.order {
            let at =
                compiler.column(expr).filter(|at| with_fill.is_none() && !self.is_shadowed(compiler, expr, *at))?;
            if at < constant {
                continue;
            }
            let id = compiler.schema.columns.get(at)?.id;
            let place = compiler.key_columns.iter().position(|column| *column == id);
            if next == width || place.is_some_and(|place| place < next || is_constant(place)) {
                continue;
            }
            let descends = options.asc == Some(false);
            if place != Some(next) || backwards.is_some_and(|backwards| backwards != descends) {
                return None;
            }
            backwards = Some(descends);
            next = varies_from(next + 1);
        }
        Some(backwards.unwrap_or(false))
    }

    /// Whether it shows all columns by `*`.
    fn has_wildcard(&self) -> bool {
        self.select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)))
    }

    /// Whether a name of the result, which ORDER BY means first, is something else than the column at `at`.
    fn is_shadowed(&self, compiler: Compiler<'_>, expr: &Expr, at: usize) -> bool {
        let Expr::Identifier(name) = unnested(expr) else { return false };
        let name = fold(name);
        self.select.projection.iter().any(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => fold(alias) == name && compiler.column(expr) != Some(at),
            // What casts and functions are called may be any name.
            SelectItem::UnnamedExpr(expr) => compiler.column(expr).is_none(),
            _ => false,
        })
    }
}

/// Whether what `aggregates` give is the last key of `access`, or the first one; `None` if it is neither. Only its row
/// is looked at then.
fn is_last_key(compiler: Compiler<'_>, access: &Access, aggregates: &[Aggregate]) -> Option<bool> {
    let ([aggregate], Path::Ranges(bounds), None) = (aggregates, &access.path, &access.beside) else { return None };
    let is_last = aggregate.is_greatest()?;
    let id = compiler.schema.columns.get(aggregate.argument()?)?.id;
    let varies = (0..compiler.key_columns.len()).find(|place| !bounds.is_constant(*place))?;
    (compiler.key_columns.get(varies) == Some(&id)).then_some(is_last)
}

/// LIMIT 1.
fn one() -> Expression {
    Expression { node: Node::Literal(Value::Int(1)), data_type: DataType::BigInt }
}

/// Name and alias of a table, if `factor` is one.
fn plain_table(factor: &TableFactor) -> Option<(TableName, Option<String>)> {
    let TableFactor::Table { name, alias, .. } = factor else { return None };
    let alias = match alias {
        None => None,
        Some(TableAlias { name, columns, .. }) if columns.is_empty() => Some(fold(name)),
        Some(_) => return None,
    };
    Some((table_name(name).ok()?, alias))
}

/// Gives `to`, a table, the name and the alias of `from`.
fn copy_name(from: &TableFactor, to: &mut TableFactor) {
    if let (TableFactor::Table { name, alias, .. }, TableFactor::Table { name: to_name, alias: to_alias, .. }) =
        (from, to)
    {
        to_name.clone_from(name);
        to_alias.clone_from(alias);
    }
}

/// The SELECT of FOR UPDATE.
pub(super) fn locked(lock: &Lock) -> Option<PlainSelect<'_>> {
    PlainSelect::of_table(&lock.query).filter(|select| select.gives == Gives::Rows && select.joined.is_none())
}

/// The subquery of `SELECT EXISTS (...) [AS name]`, and the name.
fn existence(query: &Query) -> Option<(&Query, String)> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [item] = select.projection.as_slice() else { return None };
    let (expr, name) = named(item)?;
    let Expr::Exists { subquery, negated: false } = unnested(expr) else { return None };
    let mut plain = NO_TABLE.clone()?;
    if let SetExpr::Select(body) = &mut *plain.body {
        body.projection.clone_from(&select.projection);
    }
    (*plain == *query).then(|| (&**subquery, name.unwrap_or_else(|| "exists".to_owned())))
}

/// What the one column of `SELECT count(*)` is called, if `select` is that.
fn counted(select: &Select) -> Option<String> {
    let [item] = select.projection.as_slice() else { return None };
    let (expr, name) = named(item)?;
    let Expr::Function(call) = expr else { return None };
    call.to_string().eq_ignore_ascii_case("count(*)").then(|| name.unwrap_or_else(|| "count".to_owned()))
}

fn named(item: &SelectItem) -> Option<(&Expr, Option<String>)> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some((expr, None)),
        SelectItem::ExprWithAlias { expr, alias } => Some((expr, Some(fold(alias)))),
        _ => None,
    }
}
