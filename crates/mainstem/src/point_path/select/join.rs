//! Joins whose inner side is looked up by a key for each row of the outer side.
//!
//! Comes in: a SELECT of two tables. Goes out: an access path for each of them, the inner one with values of the outer
//! row ([`JoinSelection`]); when it runs, rows of both tables side by side.
//!
//! 1. The parts of WHERE, and of ON where the join is an inner one, find the outer rows, of either table; of LEFT JOIN
//!    they are those of the left one.
//! 2. For each of them the other parts find the inner rows, and what is left of them is evaluated over both.
//!
//! The columns of both tables are one row: those of the outer table first, as far as anything reads them. It does not
//! own: joins of more tables, or of many rows.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Expr;
use mainstem_storage::Result;
use mainstem_storage::ids::{ColumnId, KeyId, RowRef};
use mainstem_storage::point::{self, PointTable};
use mainstem_storage::row::Value;
use mainstem_storage::schema::{DataType, TableSchema};
use mainstem_storage::transaction::Transaction;
use mainstem_storage::version::{Snapshot, TableView};

use super::aggregate::{self, Aggregate, Totals};
use super::{Gives, PlainSelect};
use crate::point_path::access::{Path, Reach, Rows, Taken, Wanted, each, keys_for_ranges};
use crate::point_path::condition::{Condition, NeedsPlan, holds};
use crate::point_path::expression::Expression;
use crate::point_path::planning::{Compiler, Unplanned, conjuncts};
use crate::point_path::values::Given;
use crate::point_path::{Action, Answer, Output, Short};
use crate::sql::Statement;

/// Most rows of the outer side, and most that are looked at on the inner side of all of them.
const OUTER_MAX: usize = 512;
const INNER_MAX: usize = 4_096;

/// See the module.
#[derive(Debug)]
pub(in crate::point_path) struct JoinSelection {
    outer: Path,
    inner_table: Arc<PointTable>,
    inner: Path,
    /// The columns of a row of both: those of the outer table by their positions there, then those of the inner table.
    outer_columns: Vec<usize>,
    inner_columns: Vec<usize>,
    /// What else of ON the rows have to fulfil.
    on: Option<Condition>,
    /// What else of WHERE.
    beside: Option<Condition>,
    /// An outer row without inner ones comes with NULLs.
    left: bool,
    backwards: bool,
    limit: Option<Expression>,
    /// What is given of the rows, if it is not they themselves.
    aggregates: Vec<Aggregate>,
}

impl JoinSelection {
    /// By which access paths rows of `outer`, and then of the other table, are found: a line for people.
    pub(in crate::point_path) fn description(&self, outer: &PointTable) -> String {
        format!("{}, then {}", self.outer.description(outer), self.inner.description(&self.inner_table))
    }
}

impl JoinSelection {
    /// Leaves out of a row of both tables, of which the outer one has `width` columns, whatever neither `output` nor
    /// anything else reads; `None` where that cannot be told.
    fn keep_what_is_read(&mut self, output: &mut Output, width: usize) -> Option<()> {
        let mut read = BTreeSet::new();
        self.columns_mut(output, &mut |at| _ = read.insert(*at))?;
        let places: HashMap<usize, usize> = read.iter().enumerate().map(|(place, at)| (*at, place)).collect();
        self.columns_mut(output, &mut |at| *at = places.get(at).copied().unwrap_or(*at))?;
        self.outer_columns = read.iter().copied().filter(|at| *at < width).collect();
        self.inner_columns = read.iter().filter_map(|at| at.checked_sub(width)).collect();
        Some(())
    }

    /// As [`Expression::columns_mut`], of all that reads a row of both tables.
    fn columns_mut(&mut self, output: &mut Output, visit: &mut dyn FnMut(&mut usize)) -> Option<()> {
        self.inner.columns_mut(visit)?;
        let mut conditions = self.on.iter_mut().chain(&mut self.beside);
        conditions.try_for_each(|condition| condition.columns_mut(visit))?;
        output.columns.iter_mut().for_each(&mut *visit);
        self.aggregates.iter_mut().filter_map(Aggregate::argument_mut).for_each(&mut *visit);
        output.computed.is_empty().then_some(())
    }

    /// How many columns a row of both has.
    fn width(&self) -> usize {
        self.outer_columns.len() + self.inner_columns.len()
    }

    /// What is shown of a row of both: nothing of one that goes into `totals`.
    fn shown(
        &self,
        output: &Output,
        both: &[Value],
        given: Given<'_>,
        totals: &mut Option<Totals<'_>>,
    ) -> Taken<Vec<Value>> {
        if !holds(self.beside.as_ref(), both, given)? {
            return Ok(None);
        }
        match totals {
            None => output.of(both, given).map(Some).ok_or(NeedsPlan),
            Some(totals) => totals.add(|at| both.get(at)).map(|()| Some(Vec::new())),
        }
    }
}

/// One of the two tables, as the statement calls it.
#[derive(Clone, Copy)]
struct Side<'a> {
    schema: &'a Arc<TableSchema>,
    qualifier: &'a str,
}

/// Compiles `statement`, a SELECT of the tables of `schemas`; `None` if it is not short.
pub(in crate::point_path) fn compile(
    statement: &Statement,
    schemas: [&Arc<TableSchema>; 2],
    parameters: &[Option<DataType>],
) -> Option<Short> {
    let Statement::Query(query) = statement else { return None };
    let select = PlainSelect::of(query).filter(|select| select.gives != Gives::Exists)?;
    let joined = select.joined.as_ref()?;
    let [left, right] = schemas;
    let left = Side { schema: left, qualifier: select.alias.as_deref().unwrap_or(&left.name) };
    let right = Side { schema: right, qualifier: joined.alias.as_deref().unwrap_or(&right.name) };
    if left.qualifier == right.qualifier {
        return None;
    }
    let sides: &[(Side<'_>, Side<'_>)] = if joined.left { &[(left, right)] } else { &[(left, right), (right, left)] };
    sides.iter().enumerate().find_map(|(at, (outer, inner))| {
        // `*` shows the columns of the left table first.
        let is_shown = at == 0 || !select.has_wildcard();
        is_shown.then(|| compile_sides(&select, joined.on, joined.left, *outer, *inner, parameters))?
    })
}

/// Ways to look for rows of a table: by each of its keys, and by a range of one.
fn ways(schema: &TableSchema) -> impl Iterator<Item = (KeyId, Reach)> {
    let ranges = keys_for_ranges(schema).map(|key| (key, Reach::Range { all: false }));
    schema.keys().map(|(key, _)| (key, Reach::Keys)).chain(ranges)
}

fn compile_sides(
    select: &PlainSelect<'_>,
    on: &Expr,
    left: bool,
    outer: Side<'_>,
    inner: Side<'_>,
    parameters: &[Option<DataType>],
) -> Option<Short> {
    let (both, inner_id) = side_by_side(outer.schema, inner.schema, left);
    let (reads_clock, nothing) = (Cell::new(false), Unplanned::default());
    let compiler = Compiler {
        schema: &both,
        key_columns: &[],
        qualifier: outer.qualifier,
        inner: Some((inner.qualifier, outer.schema.columns.len())),
        known: 0,
        parameters,
        // Over two tables nothing is planned.
        planning: &nothing,
        reads_clock: &reads_clock,
        in_arm: false,
    };
    let (mut of_where, mut of_on) = (Vec::new(), Vec::new());
    if let Some(selection) = &select.select.selection {
        conjuncts(selection, &mut of_where);
    }
    conjuncts(on, if left { &mut of_on } else { &mut of_where });
    let (outer_key, (outer_path, rest)) = ways(outer.schema).find_map(|(key, reach)| {
        let by_key = Compiler { key_columns: outer.schema.key_columns(key), ..compiler };
        let found = by_key.path(&of_where, reach)?;
        found.0.finds_all(outer.schema, by_key.key_columns).then_some((key, found))
    })?;
    let sought = if left { &of_on } else { &rest };
    let (inner_key, inner_columns, (inner_path, left_over)) = ways(inner.schema).find_map(|(key, reach)| {
        let columns: Vec<ColumnId> = inner.schema.key_columns(key).iter().map(|id| inner_id(*id)).collect();
        let by_key = Compiler { key_columns: &columns, known: outer.schema.columns.len(), ..compiler };
        let found = by_key.path(sought, reach)?;
        found.0.finds_all(inner.schema, inner.schema.key_columns(key)).then_some((key, columns, found))
    })?;
    let (on, beside) = if left { (left_over, rest) } else { (Vec::new(), left_over) };
    let is_single = matches!(&outer_path, Path::Keys(keys) if keys.len() == 1);
    // The rows of one outer row come in the order of the inner key.
    if !is_single && (select.limit.is_some() || !select.order.is_empty()) {
        return None;
    }
    let by_inner = Compiler { key_columns: &inner_columns, ..compiler };
    let backwards = select.backwards_behind(by_inner, &inner_path, outer.schema.columns.len())?;
    let limit = select.rows_wanted(compiler)?;
    let (aggregates, mut output) = match select.gives {
        Gives::Rows => (Vec::new(), compiler.output(&select.select.projection, false)?),
        _ if limit.is_some() || !select.order.is_empty() => return None,
        Gives::Count => (vec![Aggregate::ROWS], Output::of_one(select.name.as_deref()?, DataType::BigInt)),
        _ => aggregate::compile(compiler, &select.select.projection)?,
    };
    let mut join = JoinSelection {
        outer: outer_path,
        inner_table: Arc::new(PointTable::by(inner.schema, inner_key)?),
        inner: inner_path,
        outer_columns: Vec::new(),
        inner_columns: Vec::new(),
        on: compiler.all_of(&on)?,
        beside: compiler.all_of(&beside)?,
        left,
        backwards,
        limit,
        aggregates,
    };
    join.keep_what_is_read(&mut output, outer.schema.columns.len())?;
    Some(Short {
        table: Arc::new(PointTable::by(outer.schema, outer_key)?),
        action: Action::Join(Box::new(join)),
        output: Some(output),
        columns: (0..outer.schema.columns.len()).collect(),
        reads_clock: reads_clock.get(),
        checks: Vec::new(),
    })
}

/// The columns of both tables, those of `inner` with ids of their own, which the function gives, and NULLs in them
/// where the join is a left one.
fn side_by_side(
    outer: &TableSchema,
    inner: &TableSchema,
    left: bool,
) -> (TableSchema, impl Fn(ColumnId) -> ColumnId + use<>) {
    let behind = outer.columns.iter().map(|column| column.id.0 + 1).max().unwrap_or(0);
    let inner_id = move |id: ColumnId| ColumnId(behind + id.0);
    let mut columns = outer.columns.clone();
    columns.extend(inner.columns.iter().cloned().map(|mut column| {
        column.id = inner_id(column.id);
        column.nullable |= left;
        column
    }));
    (TableSchema::new(outer.id, outer.name.clone(), columns), inner_id)
}

impl Short {
    /// Runs a join at `snapshot`, outside a transaction.
    pub(in crate::point_path) fn join_at(
        &self,
        snapshot: &Arc<Snapshot>,
        join: &JoinSelection,
        given: Given<'_>,
    ) -> Result<Answer> {
        let view = |table: &PointTable| TableView::at(snapshot, table.schema().id);
        let (Some(outer), Some(inner)) = (view(&self.table), view(&join.inner_table)) else {
            return Ok(Answer::NotShort);
        };
        let find =
            |view: &TableView, table: &PointTable, key: &[u8]| point::find(view, table.found_by()?, key, |_| true);
        self.joined(join, (&outer, &inner), given, find)
    }

    /// Runs a join in `transaction`.
    pub(in crate::point_path) fn join(
        &self,
        transaction: &Transaction,
        join: &JoinSelection,
        given: Given<'_>,
    ) -> Result<Answer> {
        let (outer, inner) = (self.view(transaction)?, transaction.view(join.inner_table.schema().id)?);
        let find =
            |view: &TableView, table: &PointTable, key: &[u8]| transaction.find_key(view, table.found_by()?, key);
        self.joined(join, (&outer, &inner), given, find)
    }

    fn joined(
        &self,
        join: &JoinSelection,
        (outer, inner): (&TableView, &TableView),
        given: Given<'_>,
        find: impl Fn(&TableView, &PointTable, &[u8]) -> Result<Option<RowRef>>,
    ) -> Result<Answer> {
        let Some(output) = &self.output else { return Ok(Answer::NotShort) };
        let Some(wanted) = Wanted::rows(join.limit.as_ref(), join.backwards, given) else {
            return Ok(Answer::NotShort);
        };
        let few = Wanted { steps_max: OUTER_MAX, ..Wanted::ALL };
        let rows = Rows { table: &self.table, view: outer, path: &join.outer, wanted: few };
        let by_key = |key: &[u8]| find(outer, &self.table, key);
        let found = each(rows, given.scope(), by_key, |row| {
            let mut values = Vec::with_capacity(join.outer_columns.len());
            outer.read_row(row, &join.outer_columns, &mut values)?;
            Ok(Ok(Some(values)))
        })?;
        let Some(outer_rows) = found else { return Ok(Answer::NotShort) };
        let nulls = vec![Value::Null; join.width()];
        // What is wrong with a value is wrong whether or not there is a row.
        if outer_rows.is_empty() && !join.inner.is_right(given.over(&nulls, None)) {
            return Ok(Answer::NotShort);
        }
        let (mut shown, mut looked_at) = (Vec::new(), 0);
        let mut totals = (!join.aggregates.is_empty()).then(|| Totals::new(&join.aggregates));
        for outer_row in outer_rows {
            let limit = wanted.limit - shown.len();
            if limit == 0 {
                break;
            }
            let (mut both, mut is_matched) = (outer_row.clone(), false);
            let rows = Wanted { backwards: wanted.backwards, limit, ..Wanted::ALL };
            let rows = Rows { table: &join.inner_table, view: inner, path: &join.inner, wanted: rows };
            let by_key = |key: &[u8]| find(inner, &join.inner_table, key);
            let of_row = each(rows, given.over(&outer_row, None), by_key, |row| {
                looked_at += 1;
                both.truncate(join.outer_columns.len());
                inner.read_row(row, &join.inner_columns, &mut both)?;
                Ok(match holds(join.on.as_ref(), &both, given) {
                    Ok(true) => {
                        is_matched = true;
                        join.shown(output, &both, given, &mut totals)
                    }
                    Ok(false) => Ok(None),
                    Err(NeedsPlan) => Err(NeedsPlan),
                })
            })?;
            let Some(of_row) = of_row else { return Ok(Answer::NotShort) };
            shown.extend(of_row);
            if join.left && !is_matched {
                both.truncate(join.outer_columns.len());
                both.resize(join.width(), Value::Null);
                match join.shown(output, &both, given, &mut totals) {
                    Ok(of_row) => shown.extend(of_row),
                    Err(NeedsPlan) => return Ok(Answer::NotShort),
                }
            }
            if looked_at > INNER_MAX {
                return Ok(Answer::NotShort);
            }
        }
        let is_right =
            || [&join.on, &join.beside].iter().all(|condition| holds(condition.as_ref(), &nulls, given).is_ok());
        if shown.is_empty() && !is_right() {
            return Ok(Answer::NotShort);
        }
        let Some(totals) = totals else { return Ok(Answer::Rows(shown)) };
        Ok(totals.finish().map_or(Answer::NotShort, |values| Answer::Row(Some(values))))
    }
}
