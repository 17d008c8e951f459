//! The columns that select items give, and those that a `*` stands for.
//!
//! Comes in: select items, and the columns of FROM. Goes out: the items with a name for each column that others can
//! name, and lists in the place of a `*`. It does not own: what names mean (the module above).

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, ObjectName, Select, SelectItem, SelectItemQualifiedWildcardKind, TableAlias,
    TableAliasColumnDef, WildcardAdditionalOptions,
};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, ErrorKind, Result};

use super::join_columns::{Column, Columns, unknown_columns};
use crate::analyze::ast::expr::{alias, bare, is_star};
use crate::analyze::names::column_names::{mentioned, name_of, own_name_of_item};
use crate::analyze::names::output_names::title;
use crate::names::{without_mark, without_marks};
use crate::sql::fold;

/// A column that a query gives.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) data_type: Option<DataType>,
}

/// The columns of a query; `None` if they are not known.
pub(super) type Outputs = Option<Vec<Output>>;

/// The columns `columns` of a table that is called `qualifier`, with the names that `alias` gives them.
pub(super) fn columns_of(columns: Outputs, qualifier: Option<&Ident>, alias: Option<&TableAlias>) -> Columns {
    let columns = match alias {
        Some(alias) => renamed(columns, alias),
        None => columns,
    };
    let (Some(columns), Some(qualifier)) = (columns, qualifier) else { return Columns::unknown() };
    let column = |Output { name, data_type }| Column {
        expr: Expr::CompoundIdentifier(vec![quoted(&fold(qualifier)), quoted(&name)]),
        name,
        data_type,
        is_merged: false,
    };
    let known: Vec<Column> = columns.into_iter().map(column).collect();
    let own = known.iter().map(|column| (fold(qualifier), column.clone())).collect();
    Columns { known, own, ..Columns::default() }
}

/// Names those of `columns` that `alias` does not, if it names any: DataFusion wants all of them.
pub(super) fn complete(alias: Option<&mut TableAlias>, columns: &Outputs) {
    if let (Some(alias), Some(columns)) = (alias, columns)
        && !alias.columns.is_empty()
    {
        let mut names: Vec<String> = alias.columns.iter().map(|column| fold(&column.name)).collect();
        let rest: Vec<&Output> = columns.iter().skip(names.len()).collect();
        names.extend(rest.iter().map(|column| without_mark(&column.name).to_owned()));
        for column in rest {
            // An ambiguous name is none any more if the others of that name have another.
            let name_of_column = without_mark(&column.name);
            let is_only = names.iter().filter(|name| *name == name_of_column).count() == 1;
            let name = quoted(if is_only { name_of_column } else { &column.name });
            alias.columns.push(TableAliasColumnDef { name, data_type: None });
        }
    }
}

/// `columns` with the names that `alias` gives them, from the first one on.
pub(super) fn renamed(columns: Outputs, alias: &TableAlias) -> Outputs {
    let mut columns = columns?;
    for (column, of_alias) in columns.iter_mut().zip(&alias.columns) {
        column.name = fold(&of_alias.name);
    }
    Some(columns)
}

/// Puts the columns that each `*` of `items` stands for in its place.
///
/// # Errors
/// 0A000 where they are not known.
pub(super) fn expand(items: &mut Vec<SelectItem>, scope: &Columns) -> Result<()> {
    // Beside a name alone, the same with a table's name is ambiguous.
    let mut alone: HashSet<String> = items.iter().filter_map(alias).collect();
    if items.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) {
        alone.extend(scope.known.iter().filter(|column| name_of(&column.expr).is_none()).map(|c| c.name.clone()));
    }
    let mut expanded = Vec::with_capacity(items.len());
    let mut seen: HashSet<Expr> = HashSet::new();
    for item in items.drain(..) {
        let table = table_of(&item);
        let (columns, options): (Vec<&Column>, _) = match &item {
            SelectItem::Wildcard(_) if scope.others => return Err(unknown_columns("*")),
            SelectItem::Wildcard(options) => (scope.known.iter().collect(), options),
            SelectItem::QualifiedWildcard(_, options) => match &table {
                Some(table) if scope.has(table) => (scope.of(table).collect(), options),
                _ => {
                    expanded.push(item);
                    continue;
                }
            },
            _ => {
                expanded.push(item);
                continue;
            }
        };
        let excluded = excluded(options)?;
        let others = WildcardAdditionalOptions { opt_exclude: None, ..options.clone() };
        if others != WildcardAdditionalOptions::default() {
            return Err(Error::unsupported(format_args!("{item} beside joins with USING, or beside another *")));
        }
        check_excluded(&excluded, &columns)?;
        for column in columns.into_iter().filter(|column| !excluded.iter().any(|name| name.is(column))) {
            let position = expanded.len() + 1;
            let of_table = name_of(&column.expr).as_ref() == Some(&column.name);
            let is_new = seen.insert(column.expr.clone());
            expanded.push(match of_table && is_new && !alone.contains(&column.name) {
                true => SelectItem::UnnamedExpr(column.expr.clone()),
                false => {
                    let is_first = is_new && !of_table;
                    let name = if is_first { column.name.clone() } else { format!("{}_{position}", column.name) };
                    SelectItem::ExprWithAlias { expr: column.expr.clone(), alias: quoted(&name) }
                }
            });
        }
    }
    *items = expanded;
    Ok(())
}

/// A name in EXCLUDE, perhaps with that of a table.
struct Excluded {
    table: Option<String>,
    name: String,
}

impl Excluded {
    fn is(&self, column: &Column) -> bool {
        let of_table = |table: &String| match &column.expr {
            Expr::CompoundIdentifier(idents) => {
                matches!(idents.as_slice(), [own, _] if without_marks(&fold(own)) == *table)
            }
            _ => false,
        };
        without_mark(&column.name) == self.name && self.table.as_ref().is_none_or(of_table)
    }
}

/// The columns that EXCLUDE leaves out of a `*`.
fn excluded(options: &WildcardAdditionalOptions) -> Result<Vec<Excluded>> {
    let excluded = |name: &ObjectName| {
        let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(fold)).collect();
        match parts.as_deref() {
            Some([name]) => Ok(Excluded { table: None, name: name.clone() }),
            Some([table, name]) => Ok(Excluded { table: Some(table.clone()), name: name.clone() }),
            _ => Err(Error::unsupported(format_args!("{name} in EXCLUDE (name a column, perhaps with its table)"))),
        }
    };
    match &options.opt_exclude {
        None => Ok(Vec::new()),
        Some(ExcludeSelectItem::Single(column)) => Ok(vec![excluded(column)?]),
        Some(ExcludeSelectItem::Multiple(columns)) => columns.iter().map(excluded).collect(),
    }
}

/// EXCLUDE names columns that are there, and leaves one. That of both sides of a join is of neither table.
fn check_excluded(excluded: &[Excluded], columns: &[&Column]) -> Result<()> {
    for name in excluded {
        let is_of_both = |column: &&Column| column.is_merged && column.name == name.name;
        if let Some(table) = name.table.as_ref().filter(|_| columns.iter().any(is_of_both)) {
            let what = format_args!("{table}.{0} in EXCLUDE beside USING ({0}) (write {0})", name.name);
            return Err(Error::unsupported(what));
        }
        if !columns.iter().any(|column| name.is(column)) {
            let table = name.table.as_ref().map(|table| format!("{table}.")).unwrap_or_default();
            let message = format!("column \"{table}{}\" in the EXCLUDE list does not exist", name.name);
            return Err(Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message));
        }
    }
    if !excluded.is_empty() && columns.iter().all(|column| excluded.iter().any(|name| name.is(column))) {
        return Err(Error::invalid(sqlstate::SYNTAX, "EXCLUDE leaves no column of *"));
    }
    Ok(())
}

/// Puts columns in the place of each `*` if one of `items` leaves columns out.
///
/// # Errors
/// As [`expand`].
pub(super) fn expand_excluding(items: &mut Vec<SelectItem>, scope: &Columns) -> Result<()> {
    if excludes(items) { expand(items, scope) } else { Ok(()) }
}

/// Whether a `*` of `items` leaves columns out.
pub(super) fn excludes(items: &[SelectItem]) -> bool {
    items.iter().any(|item| match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => options.opt_exclude.is_some(),
        _ => false,
    })
}

/// Whether a column stands in several `*` of `items`.
pub(super) fn repeats(items: &[SelectItem]) -> bool {
    let stars: Vec<Option<String>> = items.iter().filter(|item| is_star(item)).map(table_of).collect();
    let mut seen = HashSet::new();
    stars.iter().any(|star| !seen.insert(star)) || stars.len() > 1 && stars.contains(&None)
}

/// The names of the columns that each `*` of `items` stands for.
pub(super) fn starred(items: &[SelectItem], scope: &Columns) -> HashSet<String> {
    let mut names = HashSet::new();
    for item in items.iter().filter(|item| is_star(item)) {
        match table_of(item) {
            Some(table) => names.extend(scope.of(&table).map(|column| column.name.clone())),
            None => names.extend(scope.known.iter().map(|column| column.name.clone())),
        }
    }
    names
}

/// The table that `item` is all columns of.
fn table_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            Some(fold(name.0.last()?.as_ident()?))
        }
        _ => None,
    }
}

/// The columns that `items` give. If others can name them, each gets a name.
pub(super) fn outputs(select: &mut Select, scope: &Columns, is_named: bool) -> Outputs {
    let mut outputs = Vec::with_capacity(select.projection.len());
    // DataFusion reads select items in HAVING.
    let mut taken = select.having.as_ref().map(mentioned).unwrap_or_default();
    taken.extend(select.projection.iter().filter_map(own_name_of_item));
    if select.projection.iter().any(is_star) {
        taken.extend(scope.own.iter().map(|(_, column)| column.name.clone()));
    }
    for (position, item) in (1..).zip(&mut select.projection) {
        match item {
            SelectItem::Wildcard(_) if scope.others => return None,
            SelectItem::Wildcard(_) => outputs.extend(scope.known.iter().map(output)),
            SelectItem::QualifiedWildcard(..) => {
                let table = table_of(item).filter(|table| scope.has(table))?;
                outputs.extend(scope.of(&table).map(output));
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                outputs.push(Output { name: fold(alias), data_type: type_of(expr, scope) });
            }
            SelectItem::UnnamedExpr(expr) => {
                let data_type = type_of(expr, scope);
                if let Some(name) = name_of(expr) {
                    outputs.push(Output { name, data_type });
                    continue;
                }
                if !is_named {
                    return None;
                }
                let mut name = title(expr);
                while !taken.insert(name.clone()) {
                    name = format!("{name}_{position}");
                }
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: quoted(&name) };
                outputs.push(Output { name, data_type });
            }
            SelectItem::ExprWithAliases { .. } => return None,
        }
    }
    Some(outputs)
}

pub(super) fn output(column: &Column) -> Output {
    Output { name: column.name.clone(), data_type: column.data_type }
}

/// The type of `expr`, if it is a column.
fn type_of(expr: &Expr, scope: &Columns) -> Option<DataType> {
    match bare(expr) {
        Expr::Identifier(ident) => scope.named(&fold(ident)).next()?.data_type,
        Expr::CompoundIdentifier(idents) => {
            let [.., table, name] = idents.as_slice() else { return None };
            let (table, name) = (fold(table), fold(name));
            scope.of(&table).find(|column| column.name == name)?.data_type
        }
        _ => None,
    }
}

/// The alias of `item`, if it is another thing than the column of FROM of that name.
pub(super) fn hides(item: &SelectItem, scope: &Columns) -> Option<String> {
    let name = alias(item)?;
    let is_there = scope.own.iter().any(|(_, column)| column.name == name);
    (is_there && resolves_to_itself(item, scope).is_none()).then_some(name)
}

/// The alias of `item`, if it is that of the column of FROM of that name.
pub(super) fn resolves_to_itself(item: &SelectItem, scope: &Columns) -> Option<String> {
    let SelectItem::ExprWithAlias { expr, alias } = item else { return None };
    let name = fold(alias);
    let found: Vec<&Column> = scope.named(&name).collect();
    let [column] = found.as_slice() else { return None };
    let is_it = match bare(expr) {
        Expr::Identifier(ident) => fold(ident) == name,
        expr => *expr == column.expr,
    };
    is_it.then_some(name)
}

/// What the select item is that DISTINCT ON means by `key`, a name.
pub(super) fn item_called<'i>(key: &Expr, items: &'i [SelectItem]) -> Option<&'i Expr> {
    let Expr::Identifier(ident) = bare(key) else { return None };
    let name = fold(ident);
    let item = items.iter().find(|item| own_name_of_item(item).as_ref() == Some(&name))?;
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

pub(super) fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}
