//! The columns of a join: what USING and NATURAL make of those of its two sides.
//!
//! Comes in: the columns of both sides in the order of `*`, and the join. Goes out: its columns in that order, and the
//! join with ON in the place of USING or NATURAL. It does not own: where the columns come from, and who means them (the
//! module above).

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CharacterLength, DataType as SqlType, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    TableFactor, TableWithJoins, Value,
};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, ErrorKind, Result};

use crate::analyze::ast::expr::{binary, call, called, cast};
use crate::names::{did_you_mean, similar, without_mark};
use crate::sql::{column_name, state};

/// A column of FROM.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// What says it, wherever a name alone could be another's.
    pub(super) expr: Expr,
    /// Its type, where it is that of a table's column.
    pub(super) data_type: Option<DataType>,
    /// Whether it is that of both sides of a join.
    pub(super) is_merged: bool,
}

impl Column {
    /// Whether its name is internal (`duplicate_names`): outside it means nothing.
    pub(super) fn is_internal(&self) -> bool {
        without_mark(&self.name) != self.name
    }

    /// The table in front of its name; `None` for that of both sides of a join.
    fn table(&self) -> Option<&Ident> {
        match &self.expr {
            Expr::CompoundIdentifier(idents) if !self.is_merged => idents.first(),
            _ => None,
        }
    }
}

/// Columns of FROM, in the order of `*`.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    pub(super) known: Vec<Column>,
    /// Those of each table, under the name that it goes by.
    pub(super) own: Vec<(String, Column)>,
    pub(super) tables: Vec<Table>,
    /// Whether there are others, of which nothing is known.
    pub(super) others: bool,
}

/// What stands in front of names of columns.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// As the statement says it.
    pub(super) name: String,
    /// The schema, if it is a table or a view under its own name.
    pub(super) schema: Option<String>,
    /// Whether that is said as an alias: then the schema belongs to no name of a column, but for the table that a
    /// statement writes.
    pub(super) is_alias: bool,
    /// What it is called from here on.
    pub(super) called: Option<Ident>,
}

impl Columns {
    pub(super) fn unknown() -> Self {
        Self { others: true, ..Self::default() }
    }

    /// These, then those of `more`.
    pub(super) fn extend(&mut self, more: Self) {
        self.known.extend(more.known);
        self.own.extend(more.own);
        self.tables.extend(more.tables);
        self.others |= more.others;
    }

    /// Fails if two of `columns`, those of one name, are of one table, or if one has an internal name, which the
    /// planner would not find among them. (It finds others that are ambiguous.)
    ///
    /// # Errors
    /// 42702.
    pub(super) fn check_one<'c>(mut columns: impl Iterator<Item = &'c Column>, reference: &[&str]) -> Result<()> {
        let mut tables = HashSet::new();
        if !columns.any(|column| column.is_internal() || !tables.insert(column.table())) {
            return Ok(());
        }
        let message = format!("column reference \"{}\" is ambiguous", reference.join("."));
        Err(Error::invalid(state::AMBIGUOUS_COLUMN, message)
            .with_object(NamedObject::new(ObjectKind::Column, reference.iter().copied())))
    }

    /// Whether there is a table that is called `table`.
    pub(super) fn has(&self, table: &str) -> bool {
        self.own.iter().any(|(own, _)| own == table)
    }

    /// The columns of `table`.
    pub(super) fn of<'c>(&'c self, table: &'c str) -> impl Iterator<Item = &'c Column> {
        self.own.iter().filter(move |(own, _)| own == table).map(|(_, column)| column)
    }

    /// Those that `name` alone may mean.
    pub(super) fn named<'c>(&'c self, name: &'c str) -> impl Iterator<Item = &'c Column> {
        self.known.iter().filter(move |column| without_mark(&column.name) == name)
    }
}

/// Which rows of its sides a join keeps, as far as it matters for what USING means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// All of the left side, or those of both: its column has the value.
    Left,
    Right,
    Both,
    /// The join has the columns of its left side alone.
    OnlyLeft,
    OnlyRight,
}

fn kept(operator: &JoinOperator) -> Kept {
    match operator {
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Kept::Right,
        JoinOperator::FullOuter(_) => Kept::Both,
        JoinOperator::LeftSemi(_) | JoinOperator::LeftAnti(_) => Kept::OnlyLeft,
        JoinOperator::RightSemi(_) | JoinOperator::RightAnti(_) => Kept::OnlyRight,
        _ => Kept::Left,
    }
}

/// Whether a join has columns of both sides.
pub(super) fn merges(operator: &JoinOperator) -> bool {
    match operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on)
        | JoinOperator::LeftSemi(on)
        | JoinOperator::RightSemi(on)
        | JoinOperator::LeftAnti(on)
        | JoinOperator::RightAnti(on) => matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural),
        _ => false,
    }
}

/// Whether the columns of `from` are other than those of its tables one after the other.
pub(crate) fn merges_itself(from: &TableWithJoins) -> bool {
    let of_factor = |factor: &TableFactor| match factor {
        TableFactor::NestedJoin { table_with_joins, alias: None } => merges_itself(table_with_joins),
        _ => false,
    };
    let of_join = |join: &Join| of_factor(&join.relation) || merges(&join.join_operator);
    of_factor(&from.relation) || from.joins.iter().any(of_join)
}

/// The condition of a join.
pub(super) fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on)
        | JoinOperator::LeftSemi(on)
        | JoinOperator::RightSemi(on)
        | JoinOperator::LeftAnti(on)
        | JoinOperator::RightAnti(on) => Some(on),
        _ => None,
    }
}

/// The columns of the join of `left` and `right` by `operator`, which has ON from here on.
///
/// # Errors
/// 42703, 42701 and 42702 for columns that USING names and that a side has not, or has twice; 0A000 where a side's
/// columns are not known.
pub(super) fn joined(left: Columns, right: Columns, operator: &mut JoinOperator) -> Result<Columns> {
    let kept = kept(operator);
    let on = constraint(operator);
    let names = match &on {
        Some(JoinConstraint::Using(names)) => using_columns(names)?,
        Some(JoinConstraint::Natural) => common(&left, &right)?,
        _ => return Ok(beside(left, right, kept)),
    };
    let (mut merged, mut condition) = (Vec::with_capacity(names.len()), None);
    for name in &names {
        let (of_left, of_right) = (one(&left, name, "left")?, one(&right, name, "right")?);
        let equal = equal(of_left, of_right);
        condition = Some(match condition {
            Some(before) => binary(before, BinaryOperator::And, equal),
            None => equal,
        });
        merged.push(both(of_left, of_right, kept));
    }
    if let Some(on) = on {
        *on = JoinConstraint::On(condition.unwrap_or_else(|| Expr::value(Value::Boolean(true))));
    }
    let rest = |side: Columns| {
        let known = side.known.into_iter().filter(|column| !names.contains(&column.name)).collect();
        Columns { known, ..side }
    };
    let mut columns = Columns { known: merged, ..Columns::default() };
    columns.extend(beside(rest(left), rest(right), kept));
    Ok(columns)
}

fn beside(left: Columns, right: Columns, kept: Kept) -> Columns {
    match kept {
        Kept::OnlyLeft => left,
        Kept::OnlyRight => right,
        Kept::Left | Kept::Right | Kept::Both => {
            let mut columns = left;
            columns.extend(right);
            columns
        }
    }
}

/// The names in USING.
fn using_columns(names: &[ObjectName]) -> Result<Vec<String>> {
    let mut columns: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let name = column_name(name)?;
        if columns.contains(&name) {
            let message = format!("column name \"{name}\" appears more than once in USING clause");
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, message));
        }
        columns.push(name);
    }
    Ok(columns)
}

/// The names that both sides have, in the order of the left one.
fn common(left: &Columns, right: &Columns) -> Result<Vec<String>> {
    if left.others || right.others {
        return Err(unknown_columns("NATURAL JOIN"));
    }
    let mut names: Vec<String> = Vec::new();
    for column in &left.known {
        let name = without_mark(&column.name);
        if right.named(name).next().is_some() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

pub(super) fn unknown_columns(what: &str) -> Error {
    Error::unsupported(format_args!(
        "{what} beside a function in FROM whose columns have no names (give it an alias with names: AS f (a, b))"
    ))
}

fn one<'c>(side: &'c Columns, name: &'c str, which: &str) -> Result<&'c Column> {
    let mut found = side.named(name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => {
            let message = format!("common column name \"{name}\" appears more than once in {which} table");
            Err(Error::invalid(state::AMBIGUOUS_COLUMN, message)
                .with_object(NamedObject::new(ObjectKind::Column, [name])))
        }
        (None, _) if side.others => Err(unknown_columns("JOIN with USING")),
        (None, _) => {
            let near = did_you_mean(&similar(name, side.known.iter().map(|column| column.name.as_str())));
            let message = format!("column \"{name}\" specified in USING clause does not exist in {which} table{near}");
            Err(Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message)
                .with_object(NamedObject::new(ObjectKind::Column, [name])))
        }
    }
}

/// The column of both sides.
fn both(left: &Column, right: &Column, kept: Kept) -> Column {
    let (first, second) = match kept {
        Kept::Right | Kept::OnlyRight => (right, left),
        Kept::Left | Kept::Both | Kept::OnlyLeft => (left, right),
    };
    let kinds = first.data_type.zip(second.data_type);
    let is_one_kind = kinds.is_none_or(|(first, second)| of_one_kind(first, second));
    // Where the types differ, the column has the type that both go into.
    let has_value = kept != Kept::Both && is_one_kind;
    let expr = match has_value {
        true => first.expr.clone(),
        false => coalesce(first, second),
    };
    let data_type = first.data_type.filter(|_| has_value || first.data_type == second.data_type);
    Column { name: left.name.clone(), expr, data_type, is_merged: true }
}

/// The first of the two that is not NULL.
fn coalesce(first: &Column, second: &Column) -> Expr {
    // Of many joins one call: nested ones would be written twice at each level when they become CASEs.
    let inner = match &first.expr {
        Expr::Cast { expr, .. } => expr,
        expr => expr,
    };
    let mut values = match called(inner) {
        Some((_, values)) => values.into_iter().cloned().collect(),
        None => vec![first.expr.clone()],
    };
    values.push(second.expr.clone());
    let value = call("coalesce", values);
    match (first.data_type, second.data_type) {
        // Shown with its blanks as a column, or as a cast.
        (Some(DataType::Char { chars }), Some(DataType::Char { chars: of_second })) if chars == of_second => {
            let length = CharacterLength::IntegerLength { length: u64::from(chars), unit: None };
            cast(value, SqlType::Char(Some(length)))
        }
        _ => value,
    }
}

/// Whether values of the two types look the same: lengths and digits aside, which PostgreSQL has no common ones of.
fn of_one_kind(left: DataType, right: DataType) -> bool {
    use DataType::{Char, Decimal, Text};
    match (left, right) {
        (Text { .. }, Text { .. }) | (Char { .. }, Char { .. }) | (Decimal { .. }, Decimal { .. }) => true,
        (left, right) => left == right,
    }
}

fn equal(left: &Column, right: &Column) -> Expr {
    binary(left.expr.clone(), BinaryOperator::Eq, right.expr.clone())
}
