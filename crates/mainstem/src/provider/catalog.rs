//! The catalog that one statement sees.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::Result;
use mainstem_storage::catalog::Catalog;
use mainstem_storage::version::TableView;
use parking_lot::RwLock;

use super::system::SystemTables;
use super::table::UserTable;
use crate::sql::{PUBLIC, SYSTEM, TARGET_SCHEMA};

/// Name of the one catalog.
pub(crate) const CATALOG: &str = "mainstem";

/// The tables of one statement.
#[derive(Debug, Default)]
pub(crate) struct StatementTables {
    /// All tables of the snapshot.
    pub(crate) catalog: Arc<Catalog>,
    /// Views of those that the statement reads, by name.
    pub(crate) views: HashMap<String, Arc<TableView>>,
    /// The table that a write's own SELECT reads with row references.
    pub(crate) target: Option<Arc<TableView>>,
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

    /// Lets go of the snapshot that the last statement read. Names stay: `information_schema` is computed while its rows are
    /// read.
    pub(crate) fn clear(&self) {
        // Most statements are short, and are shown none.
        if !self.shown.load(Ordering::Acquire) {
            return;
        }
        let catalog = self.tables.read().catalog.clone();
        self.set(StatementTables { catalog, ..StatementTables::default() });
        self.shown.store(false, Ordering::Release);
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
        vec![PUBLIC.into(), SYSTEM.into()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let kind = match name {
            PUBLIC => Kind::Public,
            SYSTEM => Kind::System,
            TARGET_SCHEMA if self.0.target.is_some() => Kind::Target,
            _ => return None,
        };
        Some(Arc::new(TheSchema { tables: self.0.clone(), kind }))
    }
}

#[derive(Debug)]
enum Kind {
    Public,
    System,
    Target,
}

#[derive(Debug)]
struct TheSchema {
    tables: Arc<StatementTables>,
    kind: Kind,
}

#[async_trait]
impl SchemaProvider for TheSchema {
    fn table_names(&self) -> Vec<String> {
        match self.kind {
            Kind::Public => self.tables.catalog.tables().map(|t| t.name.clone()).collect(),
            Kind::System => SystemTables::names().iter().map(ToString::to_string).collect(),
            Kind::Target => Vec::new(),
        }
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(match self.kind {
            Kind::Public => self.tables.catalog.table_named(name).map(|schema| {
                let view = self.tables.views.get(name).cloned();
                Arc::new(UserTable::new(schema.clone(), view)) as _
            }),
            Kind::System => self.tables.system.table(name)?,
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
            Kind::Public => self.tables.catalog.table_named(name).is_some(),
            Kind::System => SystemTables::names().contains(&name),
            Kind::Target => self.tables.target.as_ref().is_some_and(|view| view.schema().name == name),
        }
    }
}
