//! What there is in the database: the tables that ADBC has for catalogs, schemas, tables, columns and constraints.
//!
//! Comes in: how deep to look, and patterns of names, as LIKE has them. Goes out: one batch. It is read from
//! `information_schema`, as of the connection's transaction.

use std::sync::Arc;

use adbc_core::error::{Result, Status};
use adbc_core::options::ObjectDepth;
use adbc_core::schemas::{GET_OBJECTS_SCHEMA, GET_TABLE_TYPES_SCHEMA};
use mainstem::arrow::array::{RecordBatch, StringArray};
use mainstem::arrow::datatypes::{Field, FieldRef, Schema};
use mainstem::arrow::json::ReaderBuilder;
use mainstem::{Connection, Row, ToValue};
use serde_json::{Map, Value, json};

use crate::errors::{adbc, misuse};
use crate::results::{Reader, Ready, shown};
use crate::session::{CATALOG, quoted};

/// The types of tables, as `information_schema` and as ADBC's users know them.
const TABLE_TYPES: [(&str, &str); 3] =
    [("BASE TABLE", "table"), ("LOCAL TEMPORARY", "temporary table"), ("VIEW", "view")];

/// Schemas of the engine itself, which are shown to those who ask for them by name.
const SYSTEM_SCHEMAS: [&str; 2] = ["information_schema", "mainstem"];

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Wanted<'w> {
    pub(crate) depth: ObjectDepth,
    pub(crate) catalog: Option<&'w str>,
    pub(crate) db_schema: Option<&'w str>,
    pub(crate) table_name: Option<&'w str>,
    pub(crate) table_type: Option<Vec<&'w str>>,
    pub(crate) column_name: Option<&'w str>,
}

/// The table of `AdbcConnectionGetObjects`.
pub(crate) fn get(connection: &Connection, wanted: &Wanted<'_>) -> Result<Reader> {
    let objects = Objects { connection, wanted };
    let catalogs = objects.catalogs().map_err(|error| adbc(&error))?;
    let schema = GET_OBJECTS_SCHEMA.clone();
    let batch = ReaderBuilder::new(schema.clone())
        .with_batch_size(catalogs.len().max(1))
        .build_decoder()
        .and_then(|mut decoder| {
            decoder.serialize(&catalogs)?;
            decoder.flush()
        })
        .map_err(|error| misuse(Status::Internal, error.to_string()))?;
    let batch = batch.unwrap_or_else(|| RecordBatch::new_empty(schema.clone()));
    Ok(Box::new(Ready::new(schema, vec![batch])))
}

/// The schema of a table or view, or NotFound.
pub(crate) fn table_schema(
    connection: &Connection,
    catalog: Option<&str>,
    db_schema: Option<&str>,
    table_name: &str,
    keeps_views: bool,
) -> Result<Schema> {
    if catalog.is_some_and(|catalog| !catalog.is_empty() && catalog != CATALOG) {
        return Err(misuse(Status::NotFound, format!("there is no catalog {}", catalog.unwrap_or_default())));
    }
    let db_schema = db_schema.filter(|schema| !schema.is_empty());
    let name = match db_schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(table_name)),
        None => quoted(table_name),
    };
    let select = connection.prepare(&format!("SELECT * FROM {name}")).map_err(|error| adbc(&error))?;
    let schema = select.schema().map_err(|error| adbc(&error))?;
    let Some(schema) = schema else {
        return Err(misuse(Status::Internal, "a query of a table has no columns"));
    };
    // A view has no definition of this kind; all of its columns may be NULL.
    let whole = db_schema.map_or_else(|| table_name.to_owned(), |schema| format!("{schema}.{table_name}"));
    let table = connection.table(&whole).ok();
    let required = |name: &str| {
        table.as_ref().is_some_and(|table| table.columns.iter().any(|column| column.name == name && !column.nullable))
    };
    let field = |field: &FieldRef| Field::clone(field).with_nullable(!required(field.name()));
    let fields = shown(&schema, keeps_views).fields().iter().map(field).collect::<Vec<_>>();
    Ok(Schema::new(fields))
}

/// The table of `AdbcConnectionGetTableTypes`.
pub(crate) fn table_types() -> Result<Reader> {
    let schema = GET_TABLE_TYPES_SCHEMA.clone();
    let types = StringArray::from_iter_values(TABLE_TYPES.map(|(_, shown)| shown));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(types)]);
    let batch = batch.map_err(|error| misuse(Status::Internal, error.to_string()))?;
    Ok(Box::new(Ready::new(schema, vec![batch])))
}

struct Objects<'o> {
    connection: &'o Connection,
    wanted: &'o Wanted<'o>,
}

/// Values to be written as JSON, which Arrow's reader takes.
type Values = Vec<Value>;

impl Objects<'_> {
    fn catalogs(&self) -> mainstem::Result<Values> {
        let matches = match self.wanted.catalog {
            None => true,
            Some(pattern) => self.connection.query_row("SELECT $1 LIKE $2", [CATALOG, pattern])?.get::<bool>(0)?,
        };
        if !matches {
            return Ok(Vec::new());
        }
        let schemas = match self.wanted.depth {
            ObjectDepth::Catalogs => Value::Null,
            _ => self.schemas()?.into(),
        };
        Ok(vec![json!({"catalog_name": CATALOG, "catalog_db_schemas": schemas})])
    }

    fn schemas(&self) -> mainstem::Result<Values> {
        let sql = "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE $1 ORDER BY 1";
        let names = self.rows(sql, &[&self.wanted.db_schema.unwrap_or("%")], |row| row.get::<String>(0))?;
        let is_named = self.wanted.db_schema.is_some_and(|pattern| !pattern.contains(['%', '_']));
        let is_named = is_named || self.wanted.db_schema == Some("information_schema");
        let names = names.into_iter().filter(|name| is_named || !SYSTEM_SCHEMAS.contains(&name.as_str()));
        names
            .map(|name| {
                let tables = match self.wanted.depth {
                    ObjectDepth::Schemas => Value::Null,
                    _ => self.tables(&name)?.into(),
                };
                Ok(json!({"db_schema_name": name, "db_schema_tables": tables}))
            })
            .collect()
    }

    fn tables(&self, schema: &str) -> mainstem::Result<Values> {
        let sql = "SELECT table_name, table_type FROM information_schema.tables \
                   WHERE table_schema = $1 AND table_name LIKE $2 ORDER BY 1";
        let tables = self.rows(sql, &[&schema, &self.wanted.table_name.unwrap_or("%")], |row| {
            Ok((row.get::<String>(0)?, row.get::<String>(1)?))
        })?;
        let with_columns = matches!(self.wanted.depth, ObjectDepth::All | ObjectDepth::Columns);
        let mut all = Vec::new();
        for (name, own_type) in tables {
            let shown = TABLE_TYPES.iter().find(|(own, _)| *own == own_type).map_or(&*own_type, |(_, shown)| shown);
            if self.wanted.table_type.as_ref().is_some_and(|types| !types.contains(&shown)) {
                continue;
            }
            let (columns, constraints) = if with_columns {
                (self.columns(schema, &name)?.into(), self.constraints(schema, &name)?.into())
            } else {
                (Value::Null, Value::Null)
            };
            all.push(json!({
                "table_name": name, "table_type": shown, "table_columns": columns, "table_constraints": constraints,
            }));
        }
        Ok(all)
    }

    fn columns(&self, schema: &str, table: &str) -> mainstem::Result<Values> {
        let sql = "SELECT column_name, ordinal_position, data_type, character_maximum_length, numeric_precision, \
                   numeric_scale, numeric_precision_radix, is_nullable, column_default, is_identity, is_generated \
                   FROM information_schema.columns \
                   WHERE table_schema = $1 AND table_name = $2 AND column_name LIKE $3 ORDER BY 2";
        self.rows(sql, &[&schema, &table, &self.wanted.column_name.unwrap_or("%")], column)
    }

    fn constraints(&self, schema: &str, table: &str) -> mainstem::Result<Values> {
        let sql = "SELECT constraint_name, constraint_type FROM information_schema.table_constraints \
                   WHERE table_schema = $1 AND table_name = $2 ORDER BY constraint_type DESC, 1";
        let constraints =
            self.rows(sql, &[&schema, &table], |row| Ok((row.get::<Option<String>>(0)?, row.get::<String>(1)?)))?;
        let of_key = "SELECT column_name FROM information_schema.key_column_usage \
                      WHERE table_schema = $1 AND table_name = $2 AND constraint_name = $3 ORDER BY ordinal_position";
        let of_check = "SELECT column_name FROM information_schema.constraint_column_usage \
                        WHERE table_schema = $1 AND table_name = $2 AND constraint_name = $3 ORDER BY 1";
        let constraint = |(name, of_type): (Option<String>, String)| {
            let sql = if of_type == "CHECK" { of_check } else { of_key };
            let columns = self.rows(sql, &[&schema, &table, &name], |row| row.get::<String>(0))?;
            Ok(json!({
                "constraint_name": name, "constraint_type": of_type,
                "constraint_column_names": columns, "constraint_column_usage": Value::Null,
            }))
        };
        constraints.into_iter().map(constraint).collect()
    }

    /// What `read` makes of each row that `sql` gives.
    fn rows<T>(
        &self,
        sql: &str,
        params: &[&dyn ToValue],
        read: impl Fn(&Row) -> mainstem::Result<T>,
    ) -> mainstem::Result<Vec<T>> {
        self.connection.query_with(sql, params)?.map(|row| read(&row?)).collect()
    }
}

/// A column, as ODBC's SQLColumns tells it.
fn column(row: &Row) -> mainstem::Result<Value> {
    let type_name = row.get::<String>("data_type")?;
    let is_nullable = row.get::<String>("is_nullable")? != "NO";
    let length = row.get::<Option<i32>>("character_maximum_length")?;
    let values = json!({
        "column_name": row.get::<String>("column_name")?,
        "ordinal_position": row.get::<i32>("ordinal_position")?,
        "xdbc_data_type": sql_code(&type_name),
        "xdbc_type_name": type_name,
        "xdbc_column_size": length.or(row.get::<Option<i32>>("numeric_precision")?),
        "xdbc_decimal_digits": row.get::<Option<i32>>("numeric_scale")?,
        "xdbc_num_prec_radix": row.get::<Option<i32>>("numeric_precision_radix")?,
        "xdbc_nullable": i16::from(is_nullable),
        "xdbc_column_def": row.get::<Option<String>>("column_default")?,
        "xdbc_sql_data_type": sql_code(&type_name),
        "xdbc_is_nullable": if is_nullable { "YES" } else { "NO" },
        "xdbc_is_autoincrement": row.get::<Option<String>>("is_identity")?.as_deref() == Some("YES"),
        "xdbc_is_generatedcolumn": row.get::<Option<String>>("is_generated")?.as_deref() == Some("ALWAYS"),
    });
    // Arrow's reader takes a missing value for NULL.
    let Value::Object(values) = values else { return Ok(values) };
    Ok(Value::Object(values.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>()))
}

/// The code that ODBC and JDBC have for a type.
fn sql_code(type_name: &str) -> Option<i16> {
    Some(match type_name {
        "boolean" => -7,
        "smallint" => 5,
        "integer" => 4,
        "bigint" => -5,
        "real" => 7,
        "double precision" => 8,
        "numeric" => 2,
        "text" => -1,
        "character varying" => 12,
        "character" => 1,
        "bytea" => -3,
        "date" => 91,
        "time without time zone" => 92,
        "timestamp without time zone" => 93,
        "timestamp with time zone" => 2014,
        "uuid" => -11,
        _ => return None,
    })
}
