//! What the catalog says of a table or a view, as far as names need it.

use mainstem_storage::catalog::Relation;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::DataType;

/// What the catalog says of a table or a view.
#[derive(Debug)]
pub(crate) struct KnownTable {
    /// The schema it stands in.
    pub(crate) schema: String,
    /// The names of its columns.
    pub(crate) columns: Vec<String>,
    /// The types of these, where they are known.
    pub(crate) types: Vec<Option<DataType>>,
    /// Those of its PRIMARY KEY; empty without one.
    pub(crate) key: Vec<String>,
}

impl KnownTable {
    /// That of `relation`, which stands in `schema`.
    pub(crate) fn of(schema: &str, relation: Relation) -> Self {
        match relation {
            Relation::Table(table) => {
                let column = |id: &ColumnId| table.column(*id).map(|column| column.name.clone());
                let columns = table.columns.iter().map(|column| column.name.clone()).collect();
                let types = table.columns.iter().map(|column| Some(column.data_type)).collect();
                Self {
                    schema: schema.to_owned(),
                    columns,
                    types,
                    key: table.primary_key.iter().filter_map(column).collect(),
                }
            }
            Relation::View(view) => Self::of_columns(schema, view.columns.clone()),
        }
    }

    /// A table of `columns` in `schema`, of which nothing else is known.
    pub(crate) fn of_columns(schema: &str, columns: Vec<String>) -> Self {
        let types = columns.iter().map(|_| None).collect();
        Self { schema: schema.to_owned(), columns, types, key: Vec::new() }
    }
}
