//! The catalog that one statement sees.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use mainstem_postgres::function::SearchPath;
use mainstem_storage::catalog::{Catalog, Relation};
use mainstem_storage::ids::TableId;
use mainstem_storage::schema::{PUBLIC, RelationName};
use mainstem_storage::version::TableView;
use parking_lot::RwLock;

use super::external::ExternalSource;
use super::files::FileTable;
use super::names::Names;
use super::system::SystemTables;
use super::table::UserTable;
use crate::sql::{FILES_SCHEMA, INFORMATION, SYSTEM, TARGET_SCHEMA, TableName};

/// Name of the one catalog.
pub(crate) const CATALOG: &str = "mainstem";
/// Name of the schema in which names without one are looked for: it shows what the search path finds.
pub(crate) const SEARCHED: &str = "search path";

/// The tables of one statement.
#[derive(Debug, Default)]
pub(crate) struct StatementTables {
    /// All tables of the snapshot.
    pub(crate) catalog: Arc<Catalog>,
    /// Which of them names mean.
    pub(crate) names: Arc<Names>,
    /// Views of those that the statement reads.
    pub(crate) views: HashMap<TableId, Arc<TableView>>,
    /// Views (CREATE VIEW) that the statement reads, by full name.
    pub(crate) queries: HashMap<RelationName, Arc<ViewTable>>,
    /// The table that a write's own SELECT reads with row references.
    pub(crate) target: Option<Arc<TableView>>,
    /// The files that it reads, by the names that stand for them.
    pub(crate) files: HashMap<String, Arc<FileTable>>,
    /// Those of the program that it reads, by name.
    pub(crate) externals: HashMap<String, Arc<ExternalSource>>,
    /// Tables of schema `mainstem`, as far as the statement reads them.
    pub(crate) system: SystemTables,
}

/// A catalog list whose contents are swapped for each statement, so that a session keeps one planner.
#[derive(Debug, Default)]
pub(crate) struct StatementCatalog {
    tables: RwLock<Arc<StatementTables>>,
    /// Whether there are tables that a statement may still read.
    shown: AtomicBool,
}

impl StatementCatalog {
    /// Shows `tables` from now on.
    pub(crate) fn set(&self, tables: StatementTables) {
        *self.tables.write() = Arc::new(tables);
        self.shown.store(true, Ordering::Release);
    }

    /// Lets go of the snapshot that the last statement read. Names stay.
    pub(crate) fn clear(&self) {
        // Most statements are short, and are shown none.
        if !self.shown.load(Ordering::Acquire) {
            return;
        }
        let (catalog, names) = {
            let tables = self.tables.read();
            (tables.catalog.clone(), tables.names.clone())
        };
        self.set(StatementTables { catalog, names, ..StatementTables::default() });
        self.shown.store(false, Ordering::Release);
    }
}

impl SearchPath for StatementCatalog {
    fn database(&self) -> &str {
        CATALOG
    }

    fn schemas(&self, implicit: bool) -> Vec<String> {
        let tables = self.tables.read().clone();
        tables.names.existing(&tables.catalog, implicit)
    }
}

impl CatalogProviderList for StatementCatalog {
    fn register_catalog(&self, _name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        // Nothing is taken in: the only catalog is the statement's.
        Some(catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![CATALOG.into()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == CATALOG).then(|| Arc::new(TheCatalog(self.tables.read().clone())) as _)
    }
}

#[derive(Debug)]
struct TheCatalog(Arc<StatementTables>);

impl CatalogProvider for TheCatalog {
    fn schema_names(&self) -> Vec<String> {
        let users = self.0.catalog.namespaces().map(str::to_owned);
        [PUBLIC, SYSTEM, INFORMATION].map(str::to_owned).into_iter().chain(users).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let kind = match name {
            SEARCHED => Kind::Searched,
            SYSTEM => Kind::System(SYSTEM),
            INFORMATION => Kind::System(INFORMATION),
            FILES_SCHEMA => Kind::Files,
            TARGET_SCHEMA if self.0.target.is_some() => Kind::Target,
            name => Kind::Users(self.0.names.real(name).to_owned()),
        };
        Some(Arc::new(TheSchema { tables: self.0.clone(), kind }))
    }
}

#[derive(Debug)]
enum Kind {
    Searched,
    /// A schema of users.
    Users(String),
    /// One of our own.
    System(&'static str),
    /// Those that the statement reads.
    Files,
    Target,
}

#[derive(Debug)]
struct TheSchema {
    tables: Arc<StatementTables>,
    kind: Kind,
}

impl TheSchema {
    /// What is called `name` in a schema of users.
    fn users(&self, name: &str) -> Option<(RelationName, Relation)> {
        let schema = match &self.kind {
            Kind::Searched => None,
            Kind::Users(schema) => Some(schema.clone()),
            Kind::System(_) | Kind::Files | Kind::Target => return None,
        };
        let name = TableName { schema, name: name.to_owned() };
        self.tables.names.find(&self.tables.catalog, &name)
    }

    /// A table of the program, which no schema has.
    fn external(&self, name: &str) -> Option<&Arc<ExternalSource>> {
        matches!(self.kind, Kind::Searched).then(|| self.tables.externals.get(name)).flatten()
    }
}

#[async_trait]
impl SchemaProvider for TheSchema {
    fn table_names(&self) -> Vec<String> {
        match &self.kind {
            Kind::Users(schema) => {
                let catalog = &self.tables.catalog;
                let tables = catalog.tables().filter(|table| table.namespace == *schema).map(|table| &table.name);
                let views = catalog.views().filter(|view| view.name.namespace == *schema).map(|view| &view.name.name);
                tables.chain(views).cloned().collect()
            }
            Kind::System(schema) => SystemTables::names(schema).iter().map(ToString::to_string).collect(),
            Kind::Searched | Kind::Files | Kind::Target => Vec::new(),
        }
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(match self.kind {
            Kind::Searched | Kind::Users(_) => match self.users(name) {
                Some((_, Relation::Table(schema))) => {
                    let view = self.tables.views.get(&schema.id).cloned();
                    Some(Arc::new(UserTable::new(schema, view)) as _)
                }
                Some((full, Relation::View(_))) => self.tables.queries.get(&full).cloned().map(|view| view as _),
                None => self.external(name).cloned().map(|table| table as _),
            },
            Kind::System(schema) => self.tables.system.table(schema, name)?,
            Kind::Files => self.tables.files.get(name).cloned().map(|file| file as _),
            Kind::Target => self
                .tables
                .target
                .as_ref()
                .filter(|view| view.schema().name == name)
                .map(|view| Arc::new(UserTable::with_row_refs(view.clone())) as _),
        })
    }

    fn table_exist(&self, name: &str) -> bool {
        match self.kind {
            Kind::Searched | Kind::Users(_) => self.users(name).is_some() || self.external(name).is_some(),
            Kind::System(schema) => SystemTables::names(schema).contains(&name),
            Kind::Files => self.tables.files.contains_key(name),
            Kind::Target => self.tables.target.as_ref().is_some_and(|view| view.schema().name == name),
        }
    }
}
