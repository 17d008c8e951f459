//! Rows of `information_schema`: the catalog as SQL has it.

use arrow::datatypes::SchemaRef;
use mainstem_postgres::types::field_type;
use mainstem_storage::Result;
use mainstem_storage::catalog::Catalog;
use mainstem_storage::ids::{ColumnId, KeyId};
use mainstem_storage::schema::{Column, DataType, PUBLIC, RelationName, TableSchema};

use crate::provider::{CATALOG, Cell, Names, SystemTables};
use crate::sql::{INFORMATION, SYSTEM, columns_in, expression_of};

/// A view and the columns that it has.
pub(in super::super) type ViewColumns = (RelationName, SchemaRef);

/// The rows of table `name`. `views` are all views, if it is `columns`.
///
/// # Errors
/// Internal.
pub(in super::super) fn rows(
    name: &str,
    catalog: &Catalog,
    names: &Names,
    views: &[ViewColumns],
) -> Result<Vec<Vec<Cell>>> {
    let tables: Vec<&TableSchema> =
        catalog.tables().map(|table| &**table).filter(|table| names.sees(&table.namespace)).collect();
    Ok(match name {
        "schemata" => [PUBLIC, SYSTEM, INFORMATION]
            .into_iter()
            .chain(catalog.namespaces().filter(|name| names.sees(name)))
            .map(schema)
            .collect(),
        "tables" => {
            let kind = |table: &TableSchema| {
                if names.is_temporary(&table.namespace) { "LOCAL TEMPORARY" } else { "BASE TABLE" }
            };
            let tables = tables.iter().map(|table| relation(&table.relation_name(), kind(table), "YES"));
            let views = catalog.views().map(|view| relation(&view.name, "VIEW", "NO"));
            tables.chain(views).chain(of_system().map(|name| relation(&name, "VIEW", "NO"))).collect()
        }
        "columns" => {
            let of_tables = tables.iter().flat_map(|table| {
                let name = table.relation_name();
                (1_u32..).zip(&table.columns).map(move |(at, column)| column_row(&name, at, column)).collect::<Vec<_>>()
            });
            let of_system = of_system().flat_map(|name| {
                let columns = SystemTables::columns(&name.namespace, &name.name);
                view_columns(&(name, columns))
            });
            of_tables.chain(views.iter().flat_map(view_columns)).chain(of_system).collect()
        }
        "views" => catalog
            .views()
            .map(|view| {
                let mut row = name_cells(&view.name).to_vec();
                row.extend([view.query.clone().into(), "NONE".into()]);
                row.extend(std::iter::repeat_n(Cell::from("NO"), 5));
                row
            })
            .collect(),
        "table_constraints" => each_table(&tables, table_constraints),
        "key_column_usage" => each_table(&tables, key_columns),
        "check_constraints" => tables
            .iter()
            .flat_map(|table| table.checks.iter().map(move |check| (table, check)))
            .map(|(table, check)| {
                let [catalog, schema, name] = name_cells(&RelationName::new(&table.namespace, &check.name));
                vec![catalog, schema, name, format!("({})", check.expression).into()]
            })
            .collect(),
        "constraint_column_usage" => {
            let mut rows = Vec::new();
            for table in &tables {
                constraint_columns(table, &mut rows)?;
            }
            rows
        }
        _ => Vec::new(),
    })
}

/// Our own tables, which are views: nobody writes to them.
fn of_system() -> impl Iterator<Item = RelationName> {
    let of_schema = |schema| SystemTables::names(schema).into_iter().map(move |name| RelationName::new(schema, name));
    [SYSTEM, INFORMATION].into_iter().flat_map(of_schema)
}

fn each_table(tables: &[&TableSchema], rows: impl Fn(&TableSchema, &mut Vec<Vec<Cell>>)) -> Vec<Vec<Cell>> {
    let mut all = Vec::new();
    tables.iter().for_each(|table| rows(table, &mut all));
    all
}

/// Catalog, schema and name.
fn name_cells(name: &RelationName) -> [Cell; 3] {
    [CATALOG.into(), name.namespace.clone().into(), name.name.clone().into()]
}

fn schema(name: &str) -> Vec<Cell> {
    vec![CATALOG.into(), name.into(), CATALOG.into(), Cell::Null, Cell::Null, Cell::Null, Cell::Null]
}

fn relation(name: &RelationName, kind: &str, insertable: &str) -> Vec<Cell> {
    let mut row = name_cells(name).to_vec();
    row.push(kind.into());
    row.extend(std::iter::repeat_n(Cell::Null, 5));
    row.extend([insertable.into(), "NO".into(), Cell::Null]);
    row
}

fn yes_or_no(yes: bool) -> Cell {
    if yes { "YES" } else { "NO" }.into()
}

fn column_row(table: &RelationName, at: u32, column: &Column) -> Vec<Cell> {
    let mut row = name_cells(table).to_vec();
    row.extend([column.name.clone().into(), at.into()]);
    row.push(column.default.as_deref().map(str::to_owned).into());
    row.push(yes_or_no(column.nullable));
    row.extend(type_cells(&column.data_type.to_string(), Some(column.data_type), at));
    row.extend(identity_cells(column));
    row.extend(["NEVER".into(), Cell::Null, "YES".into()]);
    row
}

/// Whether it is one, how values come, the first, the step, the largest, the smallest, and whether it begins again
/// behind the last.
fn identity_cells(column: &Column) -> [Cell; 7] {
    let Some(identity) = column.identity else {
        return ["NO".into(), Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null, "NO".into()];
    };
    let (least, most) = match column.data_type {
        DataType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let (smallest, largest) = if identity.increment > 0 { (1, most) } else { (least, -1) };
    [
        "YES".into(),
        if identity.always { "ALWAYS" } else { "BY DEFAULT" }.into(),
        identity.start.to_string().into(),
        identity.increment.to_string().into(),
        largest.to_string().into(),
        smallest.to_string().into(),
        "NO".into(),
    ]
}

fn view_columns((name, schema): &ViewColumns) -> Vec<Vec<Cell>> {
    let row = |(at, field): (u32, &arrow::datatypes::FieldRef)| {
        let mut row = name_cells(name).to_vec();
        row.extend([field.name().clone().into(), at.into(), Cell::Null, "YES".into()]);
        let known = field_type(field);
        let name = known.map_or_else(|| field.data_type().to_string().to_lowercase(), |t| t.to_string());
        row.extend(type_cells(&name, known, at));
        row.extend(["NO".into(), Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null, "NO".into()]);
        row.extend(["NEVER".into(), Cell::Null, "NO".into()]);
        row
    };
    (1_u32..).zip(schema.fields()).map(row).collect()
}

/// What is told of the type called `whole` of the column at `position`: its name, lengths, precisions and scale,
/// nothing of intervals, character sets, collations and domains, PostgreSQL's own name of it.
fn type_cells(whole: &str, data_type: Option<DataType>, position: u32) -> Vec<Cell> {
    // Bytes of a character at most, and of a text.
    const CHARACTER: u32 = 4;
    const TEXT: u32 = 1 << 30;
    let int = |n: u32| Cell::from(n);
    // What stands in parentheses has columns of its own.
    let name = whole.split('(').next().unwrap_or_default();
    let mut numbers = [Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null];
    let [chars, octets, precision, radix, scale, second] = &mut numbers;
    let mut whole_number = |bits| (*precision, *radix, *scale) = (int(bits), int(2), int(0));
    let udt = match data_type {
        Some(DataType::SmallInt) => {
            whole_number(16);
            "int2"
        }
        Some(DataType::Integer) => {
            whole_number(32);
            "int4"
        }
        Some(DataType::BigInt) => {
            whole_number(64);
            "int8"
        }
        Some(DataType::Real) => {
            (*precision, *radix) = (int(24), int(2));
            "float4"
        }
        Some(DataType::Double) => {
            (*precision, *radix) = (int(53), int(2));
            "float8"
        }
        Some(DataType::Decimal { precision: digits, scale: behind }) => {
            (*precision, *radix, *scale) = (int(u32::from(digits)), int(10), Cell::Int(i64::from(behind)));
            "numeric"
        }
        Some(DataType::Char { chars: length }) => {
            (*chars, *octets) = (int(length), int(length.saturating_mul(CHARACTER)));
            "bpchar"
        }
        Some(DataType::Text { max_chars: Some(length) }) => {
            (*chars, *octets) = (int(length), int(length.saturating_mul(CHARACTER)));
            "varchar"
        }
        Some(DataType::Text { max_chars: None }) => {
            *octets = int(TEXT);
            "text"
        }
        Some(DataType::Boolean) => "bool",
        Some(DataType::Bytea) => "bytea",
        Some(DataType::Uuid) => "uuid",
        Some(DataType::Date) => {
            *second = int(0);
            "date"
        }
        Some(datetime @ (DataType::Time | DataType::Timestamp | DataType::TimestampTz)) => {
            *second = int(6);
            match datetime {
                DataType::Time => "time",
                DataType::Timestamp => "timestamp",
                _ => "timestamptz",
            }
        }
        None => name,
    };
    let nothing = |count| std::iter::repeat_n(Cell::Null, count);
    let mut cells = vec![name.into()];
    cells.extend(numbers);
    // Of intervals, character sets, collations, domains.
    cells.extend(nothing(2 + 3 + 3 + 3));
    cells.extend([CATALOG.into(), "pg_catalog".into(), udt.into()]);
    // Of scopes, arrays.
    cells.extend(nothing(3 + 1));
    cells.extend([position.to_string().into(), "NO".into()]);
    cells
}

/// Name and columns of the keys of `table`, with what they are.
fn keys(table: &TableSchema) -> Vec<(String, &'static str, &[ColumnId])> {
    let kind = |key| if key == KeyId::PRIMARY { "PRIMARY KEY" } else { "UNIQUE" };
    table.keys().map(|(key, columns)| (table.key_name(key).into_owned(), kind(key), columns)).collect()
}

fn table_constraints(table: &TableSchema, rows: &mut Vec<Vec<Cell>>) {
    let keys = keys(table).into_iter().map(|(name, kind, _)| (name, kind));
    let checks = table.checks.iter().map(|check| (check.name.clone(), "CHECK"));
    for (name, kind) in keys.chain(checks) {
        let mut row = name_cells(&RelationName::new(&table.namespace, name)).to_vec();
        row.extend(name_cells(&table.relation_name()));
        row.extend([kind.into(), "NO".into(), "NO".into(), "YES".into()]);
        row.push(if kind == "UNIQUE" { "YES".into() } else { Cell::Null });
        rows.push(row);
    }
}

fn key_columns(table: &TableSchema, rows: &mut Vec<Vec<Cell>>) {
    for (name, _, columns) in keys(table) {
        for (at, column) in (1_u32..).zip(columns) {
            let mut row = name_cells(&RelationName::new(&table.namespace, &name)).to_vec();
            row.extend(name_cells(&table.relation_name()));
            row.extend([table.column(*column).map(|c| c.name.clone()).into(), at.into(), Cell::Null]);
            rows.push(row);
        }
    }
}

fn constraint_columns(table: &TableSchema, rows: &mut Vec<Vec<Cell>>) -> Result<()> {
    let mut push = |constraint: &str, column: String| {
        let mut row = name_cells(&table.relation_name()).to_vec();
        row.push(column.into());
        row.extend(name_cells(&RelationName::new(&table.namespace, constraint)));
        rows.push(row);
    };
    for (name, _, columns) in keys(table) {
        columns.iter().filter_map(|id| table.column(*id)).for_each(|column| push(&name, column.name.clone()));
    }
    for check in &table.checks {
        columns_in(&expression_of(&check.expression)?).into_iter().for_each(|column| push(&check.name, column));
    }
    Ok(())
}
