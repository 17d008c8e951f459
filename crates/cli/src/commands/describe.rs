//! `\d` and its family: what there is, as queries on the system tables.

use mainstem::{Error, ErrorKind, sqlstate};

use crate::client::Client;
use crate::output::Stopped;

use super::names;

/// Which relations are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    All,
    Tables,
    Views,
}

/// How much is shown of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Essential,
    /// With sizes, keys and layouts.
    More,
}

/// Lists relations, or describes the one that `argument` names.
pub(super) fn run(client: &mut Client, listed: Listed, shown: Shown, argument: &str) -> Result<(), Stopped> {
    let is_pattern = argument.is_empty() || !argument.contains('"') && argument.contains(['*', '?']);
    if is_pattern || listed != Listed::All {
        return query(client, &list(listed, shown, argument)?);
    }
    describe(client, &names(argument)?, shown)
}

fn query(client: &mut Client, sql: &str) -> Result<(), Stopped> {
    client.query(sql, &mut std::io::empty())
}

fn describe(client: &mut Client, name: &[String], shown: Shown) -> Result<(), Stopped> {
    match find(client, name)? {
        Some(Relation { of, is_view: false }) => describe_table(client, &of, shown),
        Some(Relation { of, is_view: true }) => {
            query(client, &columns_of_view(&of))?;
            query(client, &query_of_view(&of))
        }
        // A table that the system makes is in no catalog.
        None => match system_columns(name) {
            Some(columns) if has_rows(client, &columns)? => query(client, &columns),
            _ => Err(missing(client, name).into()),
        },
    }
}

/// The error for a name that means nothing, with what helps.
fn missing(client: &Client, name: &[String]) -> Error {
    let name = name.join(".");
    let undefined = client.connection.table(&name).err().filter(|error| error.sqlstate() == sqlstate::UNDEFINED_TABLE);
    let message = match &undefined {
        Some(error) if error.message().contains("; ") => error.message().to_owned(),
        Some(error) => format!("{}; \\d lists the tables", error.message()),
        // Its parts, read as another name, are a table.
        None => format!("table \"{name}\" does not exist; \\d lists the tables"),
    };
    undefined.map_or_else(
        || Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, message.as_str()),
        |error| error.with_message(message.as_str()),
    )
}

fn describe_table(client: &mut Client, of: &Literals, shown: Shown) -> Result<(), Stopped> {
    query(client, &columns_query(of))?;
    let constraints = constraints_query(of);
    if has_rows(client, &constraints)? {
        query(client, &constraints)?;
    }
    if shown == Shown::More {
        query(client, &options_query(of))?;
        query(client, &containers_query(of))?;
    }
    Ok(())
}

/// A table or a view.
struct Relation {
    of: Literals,
    is_view: bool,
}

/// What `name`, perhaps with a schema, means: without one, the first of the search path.
fn find(client: &Client, name: &[String]) -> Result<Option<Relation>, Stopped> {
    const PLACE: &str = "array_position(current_schemas(true), schema_name)";
    let (is_in_schema, bare) = match name {
        // Each session calls its own so, and sees no other.
        [schema, bare] if schema == "pg_temp" => ("schema_name LIKE 'pg!_temp%' ESCAPE '!'".to_owned(), bare),
        [schema, bare] => (format!("schema_name = {}", literal(schema)), bare),
        [bare] => (format!("{PLACE} IS NOT NULL"), bare),
        _ => return Ok(None),
    };
    let sql = format!(
        "SELECT schema_name, table_name, is_view FROM \
         (SELECT schema_name, table_name, false AS is_view FROM mainstem.tables UNION ALL \
         SELECT table_schema, table_name, true FROM information_schema.views) relations \
         WHERE table_name = {} AND {is_in_schema} ORDER BY {PLACE} LIMIT 1",
        literal(bare),
    );
    let Some(row) = client.connection.prepare(&sql)?.query_optional(())? else { return Ok(None) };
    Ok(Some(Relation { of: Literals::new(row.get(0)?, row.get(1)?), is_view: row.get(2)? }))
}

fn has_rows(client: &Client, sql: &str) -> Result<bool, Stopped> {
    for batch in client.connection.query(sql)? {
        if batch?.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The query for the columns of `name`, if that would be a table of the system.
fn system_columns(name: &[String]) -> Option<String> {
    let [schema, name] = name else { return None };
    let is_system = matches!(schema.as_str(), "mainstem" | "information_schema");
    is_system.then(|| columns_of_view(&Literals::new(schema, name)))
}

/// The query that lists the relations whose names `pattern` matches.
fn list(listed: Listed, shown: Shown, pattern: &str) -> Result<String, Stopped> {
    let (schema, name) = match pattern.trim() {
        "" => ("*".to_owned(), "*".to_owned()),
        pattern => match names(pattern)?.as_slice() {
            [schema, name] => (schema.clone(), name.clone()),
            names => ("*".to_owned(), names.concat()),
        },
    };
    let matches = |schema_column: &str, name_column: &str| {
        format!("{schema_column} LIKE {} ESCAPE '!' AND {name_column} LIKE {} ESCAPE '!'", like(&schema), like(&name))
    };
    let more = shown == Shown::More;
    let more_of_tables = if more {
        ", t.sort_key, count(c.container) AS containers, CAST(coalesce(sum(c.bytes), 0) AS BIGINT) AS bytes"
    } else {
        ""
    };
    let more_of_views = if more { ", NULL, NULL, NULL" } else { "" };
    let tables = format!(
        "SELECT t.schema_name AS schema, t.table_name AS \"table\", t.primary_key, t.layout, \
         CAST(coalesce(sum(c.rows - c.deleted) FILTER (WHERE c.kind <> 'key index'), 0) AS BIGINT) AS rows{more_of_tables} \
         FROM mainstem.tables t LEFT JOIN mainstem.containers c \
         ON c.table_name = t.table_name AND c.schema_name = t.schema_name \
         WHERE {} GROUP BY t.schema_name, t.table_name, t.primary_key, t.layout, t.sort_key",
        matches("t.schema_name", "t.table_name")
    );
    let views = |names: &str| {
        format!(
            "SELECT table_schema{names}, NULL, 'view', NULL{more_of_views} FROM information_schema.views WHERE {}",
            matches("table_schema", "table_name")
        )
    };
    Ok(match listed {
        Listed::All => format!("{tables} UNION ALL {} ORDER BY 1, 2", views(", table_name")),
        Listed::Tables => format!("{tables} ORDER BY 1, 2"),
        Listed::Views if more => format!(
            "SELECT table_schema AS schema, table_name AS \"view\", view_definition AS query \
             FROM information_schema.views WHERE {} ORDER BY 1, 2",
            matches("table_schema", "table_name")
        ),
        Listed::Views => format!(
            "SELECT table_schema AS schema, table_name AS \"view\" FROM information_schema.views WHERE {} ORDER BY 1, 2",
            matches("table_schema", "table_name")
        ),
    })
}

/// A relation's schema and name as SQL literals.
struct Literals {
    schema: String,
    name: String,
}

impl Literals {
    fn new(schema: &str, name: &str) -> Self {
        Self { schema: literal(schema), name: literal(name) }
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A pattern with `*` and `?` as a literal for LIKE, with `!` in front of what means itself.
fn like(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    for c in pattern.chars() {
        match c {
            '*' => text.push('%'),
            '?' => text.push('_'),
            '%' | '_' | '!' => text.extend(['!', c]),
            c => text.push(c),
        }
    }
    literal(&text)
}

fn columns_query(of: &Literals) -> String {
    format!(
        "SELECT column_name AS \"column\", data_type AS type, \
         CASE WHEN nullable THEN '' ELSE 'NOT NULL' END AS \"null\", \
         coalesce(column_default, 'generated ' || identity || ' as identity', '') AS \"default\" \
         FROM mainstem.columns WHERE schema_name = {} AND table_name = {} ORDER BY position",
        of.schema, of.name
    )
}

fn constraints_query(of: &Literals) -> String {
    let Literals { schema, name } = of;
    format!(
        "SELECT c.constraint_name AS \"constraint\", c.constraint_type AS kind, \
         coalesce(max(k.check_clause), string_agg(u.column_name, ', ' ORDER BY u.ordinal_position)) AS \"on\" \
         FROM information_schema.table_constraints c \
         LEFT JOIN information_schema.key_column_usage u ON u.constraint_name = c.constraint_name \
         AND u.table_name = c.table_name AND u.table_schema = c.table_schema \
         LEFT JOIN information_schema.check_constraints k ON c.constraint_type = 'CHECK' \
         AND k.constraint_name = c.constraint_name AND k.constraint_schema = c.constraint_schema \
         WHERE c.table_schema = {schema} AND c.table_name = {name} \
         GROUP BY c.constraint_name, c.constraint_type ORDER BY c.constraint_type = 'CHECK', c.constraint_name"
    )
}

fn options_query(of: &Literals) -> String {
    format!(
        "SELECT layout, sort_key, segment_rows, delta_rows FROM mainstem.tables \
         WHERE schema_name = {} AND table_name = {}",
        of.schema, of.name
    )
}

fn containers_query(of: &Literals) -> String {
    format!(
        "SELECT kind AS containers, count(*) AS count, CAST(coalesce(sum(rows - deleted), 0) AS BIGINT) AS rows, \
         CAST(coalesce(sum(deleted), 0) AS BIGINT) AS deleted, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes \
         FROM mainstem.containers WHERE schema_name = {} AND table_name = {} GROUP BY kind ORDER BY kind",
        of.schema, of.name
    )
}

fn columns_of_view(of: &Literals) -> String {
    format!(
        "SELECT column_name AS \"column\", data_type AS type FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
        of.schema, of.name
    )
}

fn query_of_view(of: &Literals) -> String {
    format!(
        "SELECT view_definition AS query FROM information_schema.views WHERE table_schema = {} AND table_name = {}",
        of.schema, of.name
    )
}
