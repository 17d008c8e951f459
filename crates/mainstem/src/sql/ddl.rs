//! What defines things: CREATE, ALTER, DROP, TRUNCATE.

use datafusion::sql::sqlparser::ast::helpers::stmt_create_table::CreateTableBuilder;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, CreateTable as AstCreateTable, CreateTableOptions, Expr, HiveFormat,
    OneOrManyWithParens, SqlOption, Value,
};
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::schema::Layout;
use mainstem_storage::{Error, ErrorKind, Result};

use super::refuse::refuse;
use super::stored::default_text;
use super::types::{column_type, is_by_bytes};
use super::{fold, table_name};
use crate::names::{did_you_mean, similar};
pub(crate) use constraints::Constraints;
use identity::{SERIAL, check_type, identity, serial_type};

mod alter;
mod constraints;
mod create_as;
mod dump;
mod identity;
mod objects;
mod table;
mod view;

pub(crate) use alter::{AlterAction, AlterTable, Draws, Truncate};
pub(super) use alter::{alter_table, truncate};
pub(crate) use create_as::CreateTableAs;
pub(super) use create_as::create_table_as;
pub(crate) use dump::{NO_OWNERS, Passed};
pub(super) use dump::{create_index, passed};
pub(crate) use identity::{CreateSequence, Sequence, SetPosition};
pub(super) use identity::{create_sequence, order_options, setval};
pub(crate) use objects::{CreateSchema, CreateView, Drop, Dropped};
pub(super) use objects::{create_schema, create_view, drop_of};
pub(crate) use table::{CreateTable, NewColumn, OnCommit};
pub(crate) use view::{expand_wildcards, item_names, qualify, query_text, read_by, stored_query};

/// Reads a CREATE TABLE; `options_behind` are WITH options that stood behind ORDER BY.
pub(super) fn create_table(table: AstCreateTable, options_behind: Vec<SqlOption>) -> Result<CreateTable> {
    refuse_the_rest(&table)?;
    let AstCreateTable {
        if_not_exists, temporary, on_commit, name, columns, constraints, table_options, order_by, ..
    } = table;
    let mut new = CreateTable::new(table_name(&name)?, if_not_exists);
    new.set_temporary(temporary, on_commit.as_ref())?;
    let mut found = Constraints::default();
    for column in &columns {
        let column = new_column(column, &mut found)?;
        if new.columns.iter().any(|c| c.name == column.name) {
            return Err(Error::invalid(
                sqlstate::DUPLICATE_COLUMN,
                format!("column \"{}\" is named twice in table \"{}\"", column.name, new.name.name),
            ));
        }
        new.columns.push(column);
    }
    if new.columns.is_empty() {
        return Err(Error::unsupported("a table without columns"));
    }
    for constraint in constraints {
        found.add(constraint)?;
    }
    found.settle(&mut new)?;
    new.sort_key = order_by.map(|by| sort_columns(&by)).transpose()?;
    let mut options = match table_options {
        CreateTableOptions::None => Vec::new(),
        CreateTableOptions::With(options) => options,
        other => return Err(Error::unsupported(format_args!("{other}"))),
    };
    options.extend(options_behind);
    for option in &options {
        set_option(&mut new, option)?;
    }
    check_keys(&mut new)?;
    Ok(new)
}

/// Key columns exist, occur once and are NOT NULL.
fn check_keys(new: &mut CreateTable) -> Result<()> {
    let unique = new.unique_keys.iter().map(|key| ("UNIQUE", Some(&key.columns)));
    for (kind, key) in
        [("primary key", Some(&new.primary_key)), ("ORDER BY", new.sort_key.as_ref())].into_iter().chain(unique)
    {
        for (at, name) in key.into_iter().flatten().enumerate() {
            if !new.columns.iter().any(|c| c.name == *name) {
                let near = did_you_mean(&similar(name, new.columns.iter().map(|column| column.name.as_str())));
                let message = format!("column \"{name}\" of the {kind} does not exist{near}");
                return Err(Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message)
                    .with_object(NamedObject::new(ObjectKind::Column, [name])));
            }
            if key.into_iter().flatten().take(at).any(|before| before == name) {
                return Err(Error::invalid(
                    sqlstate::DUPLICATE_COLUMN,
                    format!("column \"{name}\" is named twice in the {kind}"),
                ));
            }
        }
    }
    for column in &mut new.columns {
        if new.primary_key.contains(&column.name) {
            column.nullable = false;
        }
    }
    if new.layout == Some(Layout::Insertion) && new.sort_key.is_some() {
        return Err(Error::invalid(
            sqlstate::INVALID_TABLE,
            "layout 'insertion' keeps arrival order and has no ORDER BY",
        ));
    }
    if new.layout == Some(Layout::Sorted) && new.sort_key.is_none() && new.primary_key.is_empty() {
        return Err(Error::invalid(sqlstate::INVALID_TABLE, "layout 'sorted' needs a PRIMARY KEY or an ORDER BY"));
    }
    Ok(())
}

/// Reads a column; its constraints go to `found`.
pub(super) fn new_column(column: &ColumnDef, found: &mut Constraints) -> Result<NewColumn> {
    let ColumnDef { name, data_type, options } = column;
    let name = fold(name);
    if name.starts_with("_row_ref") {
        return Err(Error::unsupported(format_args!("the column name \"{name}\", which the engine uses itself,")));
    }
    let serial = serial_type(data_type);
    let data_type = match serial {
        Some(data_type) => data_type,
        None => column_type(data_type).map_err(|e| e.context(format_args!("column \"{name}\"")))?,
    };
    let mut counts = serial.map(|_| SERIAL);
    let (mut null, mut not_null, mut is_key, mut default) = (false, false, false, None);
    for ColumnOptionDef { name: constraint, option } in options {
        match option {
            ColumnOption::Null => null = true,
            ColumnOption::NotNull => not_null = true,
            ColumnOption::Collation(name) if is_by_bytes(name) => {}
            ColumnOption::Default(expr) => {
                if default.replace(default_text(expr)?).is_some() {
                    return Err(Error::invalid(
                        sqlstate::SYNTAX,
                        format!("multiple default values specified for column \"{name}\""),
                    ));
                }
            }
            ColumnOption::Generated {
                generated_as,
                sequence_options,
                generation_expr: None,
                generation_expr_mode: None,
                generated_keyword: true,
            } => {
                if counts.replace(identity(generated_as, sequence_options.as_ref())?).is_some() {
                    let message = format!("multiple identity specifications for column \"{name}\"");
                    return Err(Error::invalid(sqlstate::SYNTAX, message));
                }
                check_type(data_type)?;
            }
            ColumnOption::PrimaryKey(key) => {
                is_key = true;
                found.column_key(key, constraint.as_ref(), &name)?;
            }
            ColumnOption::Unique(key) => found.column_unique(key, constraint.as_ref(), &name)?,
            ColumnOption::Check(check) => found.check(check, constraint.as_ref())?,
            other => return Err(Error::unsupported(format_args!("\"{other}\" on column \"{name}\""))),
        }
    }
    if counts.is_some() && default.is_some() {
        let message = format!("both default and identity specified for column \"{name}\"");
        return Err(Error::invalid(sqlstate::SYNTAX, message));
    }
    not_null |= counts.is_some();
    if null && (not_null || is_key) {
        return Err(Error::invalid(sqlstate::SYNTAX, format!("column \"{name}\" is declared both NULL and NOT NULL")));
    }
    Ok(NewColumn { name, data_type, nullable: !(not_null || is_key), default, identity: counts })
}

fn sort_columns(by: &OneOrManyWithParens<Expr>) -> Result<Vec<String>> {
    let exprs = match by {
        OneOrManyWithParens::One(expr) => std::slice::from_ref(expr),
        OneOrManyWithParens::Many(exprs) => exprs.as_slice(),
    };
    if exprs.is_empty() {
        return Err(Error::invalid(sqlstate::SYNTAX, "ORDER BY names no column"));
    }
    exprs
        .iter()
        .map(|expr| match expr {
            Expr::Identifier(ident) => Ok(fold(ident)),
            other => Err(Error::unsupported(format_args!("\"{other}\" in the ORDER BY of a table"))),
        })
        .collect()
}

fn set_option(new: &mut CreateTable, option: &SqlOption) -> Result<()> {
    let SqlOption::KeyValue { key, value } = option else {
        return Err(Error::unsupported(format_args!("the table option {option}")));
    };
    let twice = |name: &str| Error::invalid(sqlstate::INVALID_PARAMETER, format!("table option {name} is set twice"));
    match fold(key).as_str() {
        name @ "segment_rows" => {
            if new.segment_rows.replace(positive(name, value)?).is_some() {
                return Err(twice(name));
            }
        }
        name @ "delta_rows" => {
            if new.delta_rows.replace(positive(name, value)?).is_some() {
                return Err(twice(name));
            }
        }
        "layout" => {
            let text = match value {
                Expr::Value(v) => match &v.value {
                    Value::SingleQuotedString(text) => text.clone(),
                    other => other.to_string(),
                },
                Expr::Identifier(ident) => fold(ident),
                other => other.to_string(),
            };
            let layout = match text.as_str() {
                "insertion" => Layout::Insertion,
                "sorted" => Layout::Sorted,
                _ => {
                    return Err(Error::invalid(
                        sqlstate::INVALID_PARAMETER,
                        format!("layout is 'insertion' or 'sorted', not '{text}'"),
                    ));
                }
            };
            if new.layout.replace(layout).is_some() {
                return Err(twice("layout"));
            }
        }
        other => {
            return Err(Error::invalid(
                sqlstate::INVALID_PARAMETER,
                format!("there is no table option \"{other}\"; there are segment_rows, delta_rows and layout"),
            ));
        }
    }
    Ok(())
}

fn positive(name: &str, value: &Expr) -> Result<u32> {
    let number = match value {
        Expr::Value(v) => match &v.value {
            Value::Number(n, false) => n.parse::<u32>().ok(),
            Value::SingleQuotedString(n) => n.parse::<u32>().ok(),
            _ => None,
        },
        _ => None,
    };
    number.filter(|n| *n > 0).ok_or_else(|| {
        Error::invalid(sqlstate::INVALID_PARAMETER, format!("{name} is a positive whole number, not {value}"))
    })
}

/// Refuses every clause of CREATE TABLE that is not used above: what a statement of these alone would not be.
fn refuse_the_rest(table: &AstCreateTable) -> Result<()> {
    let refusals = [
        (table.query.is_some(), "CREATE TABLE AS with types of columns"),
        (table.like.is_some() || table.clone.is_some(), "CREATE TABLE LIKE"),
        (table.or_replace, "CREATE OR REPLACE TABLE"),
        (
            table.partition_by.is_some() || table.partition_of.is_some() || table.inherits.is_some(),
            "PARTITION BY, PARTITION OF and INHERITS",
        ),
    ];
    refuse(&refusals)?;
    let known = CreateTableBuilder::new(table.name.clone())
        .temporary(table.temporary)
        // GLOBAL and LOCAL say nothing in PostgreSQL either.
        .global(table.global)
        .if_not_exists(table.if_not_exists)
        .columns(table.columns.clone())
        .constraints(table.constraints.clone())
        .table_options(table.table_options.clone())
        .on_commit(table.on_commit)
        .order_by(table.order_by.clone())
        .hive_formats(table.hive_formats.clone().filter(|formats| *formats == HiveFormat::default()));
    if known.build() != *table {
        return Err(Error::unsupported("a clause of another database's CREATE TABLE"));
    }
    Ok(())
}
