//! INSERT and its ON CONFLICT.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::ast::{
    ConflictTarget as AstTarget, DoUpdate, Expr, Insert as AstInsert, ObjectName, ObjectNamePart,
    OnConflict as AstConflict, OnConflictAction, OnInsert, Query, SelectItem, SetExpr, TableAliasWithoutColumns,
    TableObject, Value, With,
};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::{Error, Result};

use super::super::stored::is_default;
use super::super::{check_query, column_name, fold, table_name};
use super::assignments::{self, Assignments};
use super::select::{SelectOf, query_of, stored_table};
use super::target::{Target, named_twice};
use super::values::assign_cells;
use super::{EXCLUDED, check_once, quoted};
use crate::sql::refuse::refuse;

/// INSERT.
#[derive(Clone, Debug)]
pub(crate) struct Insert {
    pub(crate) target: Target,
    /// The named columns; empty means all, in order.
    pub(crate) columns: Vec<String>,
    /// With NULL where VALUES says DEFAULT.
    pub(crate) source: Box<Query>,
    /// Where VALUES says DEFAULT.
    pub(crate) defaults: DefaultCells,
    pub(crate) overriding: Option<Overriding>,
    pub(crate) conflict: Option<OnConflict>,
}

/// What becomes of values given for identity columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overriding {
    /// They are taken, also where the column is ALWAYS generated.
    System,
    /// They are not: the column counts.
    User,
}

/// Which values of a VALUES are the keyword DEFAULT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DefaultCells {
    /// Of each column that has any, by position, which rows, ascending.
    Of(BTreeMap<usize, Vec<usize>>),
    /// DEFAULT VALUES: one row of nothing else, and no column in the source.
    All,
}

impl DefaultCells {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Of(cells) if cells.is_empty())
    }
}

/// ON CONFLICT.
#[derive(Clone, Debug)]
pub(crate) struct OnConflict {
    pub(crate) target: ConflictTarget,
    pub(crate) action: ConflictAction,
}

/// Which keys ON CONFLICT looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConflictTarget {
    /// All.
    Any,
    /// The one of these columns.
    Columns(Vec<String>),
    /// The one of this name.
    Constraint(String),
}

/// What ON CONFLICT does with a row whose key is taken.
#[derive(Clone, Debug)]
pub(crate) enum ConflictAction {
    /// DO NOTHING.
    Nothing,
    /// DO UPDATE SET ... WHERE ...
    Update { assignments: Assignments, selection: Option<Box<Expr>> },
}

/// The expression that `item` shows, if it is one.
fn shown(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Reads an INSERT, `with` the queries in front of it.
pub(in super::super) fn insert(insert: AstInsert, with: Option<With>) -> Result<Insert> {
    refuse_the_rest(&insert)?;
    let AstInsert { into, table, table_alias, columns, source, on, returning, .. } = insert;
    if !into {
        return Err(Error::invalid(sqlstate::SYNTAX, "syntax error: INSERT without INTO"));
    }
    let TableObject::TableName(name) = table else {
        return Err(Error::unsupported("INSERT into anything but a table"));
    };
    let (mut source, defaults) = match source {
        Some(mut source) => {
            let defaults = take_defaults(&mut source)?;
            (source, defaults)
        }
        None if columns.is_empty() => (query_of("SELECT 1 AS \"default\"")?, DefaultCells::All),
        None => return Err(Error::invalid(sqlstate::SYNTAX, "syntax error: DEFAULT VALUES behind a list of columns")),
    };
    check_query(&source)?;
    source.with = join_with(with.as_ref(), source.with.take())?;
    let columns = columns.iter().map(column_name).collect::<Result<Vec<_>>>()?;
    check_once(&columns)?;
    let alias = match table_alias {
        None => None,
        Some(TableAliasWithoutColumns { explicit: true, alias }) => Some(alias),
        // Among others, PARTITION of another database.
        Some(TableAliasWithoutColumns { explicit: false, alias }) => {
            return Err(Error::invalid(
                sqlstate::SYNTAX,
                format!("syntax error at \"{alias}\": INSERT takes an alias of its table behind AS"),
            ));
        }
    };
    let target = Target::new(table_name(&name)?, alias, with, Vec::new(), returning)?;
    let conflict = on.map(on_conflict).transpose()?;
    if conflict.is_some() && target.qualifier_name() == EXCLUDED {
        return Err(named_twice(EXCLUDED));
    }
    Ok(Insert { target, columns, source, defaults, overriding: None, conflict })
}

/// Refuses every clause of INSERT that is not used above. The list is the whole struct, so that a clause added to the
/// parser does not compile until it is decided here.
fn refuse_the_rest(insert: &AstInsert) -> Result<()> {
    let AstInsert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into: _,
        table: _,
        table_alias: _,
        columns: _,
        overwrite,
        source: _,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword,
        on: _,
        returning: _,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    let refusals = [
        (or.is_some() || *ignore || *replace_into, "INSERT OR, INSERT IGNORE and REPLACE (use ON CONFLICT)"),
        (insert_alias.is_some() || output.is_some(), "a clause of another database's INSERT"),
        (
            *overwrite
                || !assignments.is_empty()
                || partitioned.is_some()
                || !after_columns.is_empty()
                || *has_table_keyword
                || priority.is_some()
                || settings.is_some()
                || format_clause.is_some()
                || multi_table_insert_type.is_some()
                || !multi_table_into_clauses.is_empty()
                || !multi_table_when_clauses.is_empty()
                || multi_table_else_clause.is_some(),
            "a clause of another database's INSERT",
        ),
    ];
    refuse(&refusals)
}

/// Puts NULL in the place of each DEFAULT of a VALUES, and says where that was.
fn take_defaults(source: &mut Query) -> Result<DefaultCells> {
    let mut cells: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    if let SetExpr::Values(values) = &mut *source.body {
        for (number, row) in values.rows.iter_mut().enumerate() {
            for (at, expr) in row.content.iter_mut().enumerate().filter(|(_, expr)| is_default(expr)) {
                *expr = Expr::value(Value::Null);
                cells.entry(at).or_default().push(number);
            }
        }
    }
    // Rows of VALUES are known by their number.
    if !cells.is_empty() && (source.order_by.is_some() || source.limit_clause.is_some()) {
        return Err(Error::invalid(sqlstate::SYNTAX, "DEFAULT is not allowed in this context"));
    }
    Ok(DefaultCells::Of(cells))
}

/// The queries of `outer` in front of those of `inner`.
fn join_with(outer: Option<&With>, inner: Option<With>) -> Result<Option<With>> {
    let (Some(outer), Some(inner)) = (outer, &inner) else { return Ok(inner.or_else(|| outer.cloned())) };
    let mut joined = outer.clone();
    joined.recursive |= inner.recursive;
    for cte in &inner.cte_tables {
        if outer.cte_tables.iter().any(|other| fold(&other.alias.name) == fold(&cte.alias.name)) {
            return Err(Error::unsupported("two queries of one name in two WITH of an INSERT"));
        }
        joined.cte_tables.push(cte.clone());
    }
    Ok(Some(joined))
}

fn on_conflict(on: OnInsert) -> Result<OnConflict> {
    let OnInsert::OnConflict(AstConflict { conflict_target, action }) = on else {
        return Err(Error::unsupported("ON DUPLICATE KEY (use ON CONFLICT)"));
    };
    let target = match conflict_target {
        None => ConflictTarget::Any,
        Some(AstTarget::Columns(columns)) => ConflictTarget::Columns(columns.iter().map(fold).collect()),
        Some(AstTarget::OnConstraint(name)) => ConflictTarget::Constraint(constraint_name(&name)?),
    };
    let action = match action {
        OnConflictAction::DoNothing => ConflictAction::Nothing,
        OnConflictAction::DoUpdate(DoUpdate { assignments, selection }) => {
            if target == ConflictTarget::Any {
                return Err(Error::invalid(
                    sqlstate::SYNTAX,
                    "ON CONFLICT DO UPDATE needs to know which key: ON CONFLICT (columns)",
                ));
            }
            if let Some(selection) = &selection {
                check_query(selection)?;
            }
            ConflictAction::Update { assignments: assignments::read(assignments)?, selection: selection.map(Box::new) }
        }
    };
    Ok(OnConflict { target, action })
}

fn constraint_name(name: &ObjectName) -> Result<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Ok(fold(ident)),
        _ => Err(Error::invalid(sqlstate::SYNTAX, format!("\"{name}\" is not the name of a constraint"))),
    }
}

impl Insert {
    /// The rows of VALUES, if that is all there is to it but for DEFAULT, OVERRIDING, ON CONFLICT and RETURNING.
    /// DEFAULT VALUES is a row without values.
    pub(crate) fn plain_values(&self) -> Option<Vec<&[Expr]>> {
        if !self.target.is_plain() {
            return None;
        }
        if self.defaults == DefaultCells::All {
            return Some(vec![&[]]);
        }
        let SetExpr::Values(values) = &*self.source.body else { return None };
        let mut plain = query_of("VALUES (1)").ok()?;
        plain.body.clone_from(&self.source.body);
        (plain == self.source).then(|| values.rows.iter().map(|row| row.content.as_slice()).collect())
    }

    /// The row of `INSERT INTO ... SELECT ...` without FROM, or anything else that could make it another number of
    /// rows.
    pub(crate) fn plain_select(&self) -> Option<Vec<&Expr>> {
        let SetExpr::Select(select) = &*self.source.body else { return None };
        if !self.target.is_plain() || !self.defaults.is_empty() {
            return None;
        }
        let mut plain = query_of("SELECT 1").ok()?;
        if let SetExpr::Select(body) = &mut *plain.body {
            body.projection.clone_from(&select.projection);
        }
        (plain == self.source).then(|| select.projection.iter().map(shown).collect())?
    }

    /// The query whose rows are inserted into `table`; where rows of VALUES give values of different types, each is
    /// assigned to the column by itself.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn query(&self, table: &TableSchema) -> Result<Box<Query>> {
        let mut query = self.source.clone();
        if let SetExpr::Values(values) = &mut *query.body {
            assign_cells(values, |at| match self.columns.get(at) {
                Some(name) => table.column_named(name),
                None if self.columns.is_empty() => table.columns.get(at),
                None => None,
            })?;
        }
        Ok(query)
    }

    /// What ON CONFLICT assigns, if it updates.
    pub(crate) fn conflict_assignments(&self) -> Option<&Assignments> {
        match &self.conflict {
            Some(OnConflict { action: ConflictAction::Update { assignments, .. }, .. }) => Some(assignments),
            _ => None,
        }
    }

    /// The SELECT of the update arm of ON CONFLICT: reference and new values, one for each column of `schema`, of rows
    /// that are in the target, each beside the row that was to come. None for an INSERT without that arm.
    ///
    /// # Errors
    /// 42703 when an assigned column does not exist.
    pub(crate) fn update_arm(&self, schema: &TableSchema) -> Result<Option<Query>> {
        let Some(OnConflict { action: ConflictAction::Update { assignments, selection }, .. }) = &self.conflict else {
            return Ok(None);
        };
        let target = &self.target;
        let mut items = vec![target.row_ref()];
        items.extend(assignments.items(schema, target)?);
        let mut from = target.from()?;
        from.push(stored_table(schema, &quoted(EXCLUDED))?);
        let (with, selection) = (target.with().cloned(), selection.as_deref().cloned());
        SelectOf { with, items, from, selection, sorted: false }.query().map(Some)
    }
}
