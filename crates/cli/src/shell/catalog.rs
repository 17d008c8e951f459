//! The names that a connection sees, as completion offers them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use mainstem::{Connection, Result};

/// Columns that are read at most: more than these nobody looks through.
const COLUMNS_MAX: usize = 100_000;

/// A table or view.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relation {
    pub schema: String,
    pub name: String,
    /// Whether its name is enough, without the schema.
    pub is_visible: bool,
}

/// Names at some point of time.
#[derive(Debug, Default)]
pub struct Catalog {
    relations: Vec<Relation>,
    /// Columns of tables, by schema and name.
    columns: HashMap<(String, String), Vec<String>>,
    /// All of these, each once, in order.
    names_of_columns: Vec<String>,
    /// Those of views and of the system's tables, as far as they were asked for.
    computed: Mutex<HashMap<Relation, Vec<String>>>,
    settings: Vec<String>,
}

impl Catalog {
    /// What `connection` sees now.
    ///
    /// # Errors
    /// Those of queries on the system tables.
    pub fn load(connection: &Connection) -> Result<Self> {
        let path = search_path(connection.query_row("SHOW search_path", ())?.get(0)?);
        let mut relations = Vec::new();
        let listed = "SELECT table_schema, table_name FROM information_schema.tables ORDER BY table_name, table_schema";
        for row in connection.query(listed)?.rows() {
            let row = row?;
            let schema: String = row.get(0)?;
            let is_visible = path.contains(&schema) || schema.starts_with("pg_temp");
            relations.push(Relation { schema, name: row.get(1)?, is_visible });
        }
        let mut columns: HashMap<_, Vec<String>> = HashMap::new();
        let all = format!(
            "SELECT schema_name, table_name, column_name FROM mainstem.columns \
             ORDER BY schema_name, table_name, position LIMIT {COLUMNS_MAX}"
        );
        for row in connection.query(&all)?.rows() {
            let row = row?;
            columns.entry((row.get(0)?, row.get(1)?)).or_default().push(row.get(2)?);
        }
        let mut settings = Vec::new();
        for row in connection.query("SELECT name FROM mainstem.settings ORDER BY name")?.rows() {
            settings.push(row?.get(0)?);
        }
        let mut names_of_columns: Vec<String> = columns.values().flatten().cloned().collect();
        names_of_columns.sort_unstable();
        names_of_columns.dedup();
        Ok(Self { relations, columns, names_of_columns, computed: Mutex::default(), settings })
    }

    /// All relations, by name.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// The schemas that they stand in.
    pub fn schemas(&self) -> BTreeSet<&str> {
        let named = self.relations.iter().map(|relation| relation.schema.as_str());
        named.filter(|schema| !schema.starts_with("pg_temp")).collect()
    }

    /// The settings.
    pub fn settings(&self) -> &[String] {
        &self.settings
    }

    /// The relation that `name`, perhaps with a schema, means.
    pub fn find(&self, schema: Option<&str>, name: &str) -> Option<&Relation> {
        let is_it = |relation: &&Relation| {
            relation.name == name && schema.map_or(relation.is_visible, |schema| relation.schema == schema)
        };
        self.relations.iter().find(is_it)
    }

    /// The columns of all tables, each name once.
    pub fn columns(&self) -> &[String] {
        &self.names_of_columns
    }

    /// The columns of `relation`; `connection` tells those of views.
    pub fn columns_of(&self, connection: &Connection, relation: &Relation) -> Vec<String> {
        let Relation { schema, name, .. } = relation;
        if let Some(columns) = self.columns.get(&(schema.clone(), name.clone())) {
            return columns.clone();
        }
        let mut computed = self.computed.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = computed.entry(relation.clone()).or_insert_with(|| {
            let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
            let sql = format!("SELECT * FROM {}.{}", quoted(schema), quoted(name));
            let columns = connection.prepare(&sql).and_then(|prepared| prepared.columns());
            columns.map_or_else(|_| Vec::new(), |all| all.iter().map(|column| column.name().to_owned()).collect())
        });
        columns.clone()
    }
}

/// The schemas of a list as SHOW writes it.
fn search_path(text: String) -> Vec<String> {
    let unquoted = |name: &str| {
        let inside = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inside.map_or_else(|| name.to_owned(), |inside| inside.replace("\"\"", "\""))
    };
    text.split(',').map(|name| unquoted(name.trim())).collect()
}
