//! Prepared statements that all connections of a database share by their texts.
//!
//! Comes in: what a connection has made of a text: its tree, the types of its parameters, a short statement, or a plan
//! that is kept. Goes out: the same, to connections that see the text for the first time, and the rows of
//! `mainstem.plans`.
//!
//! Invariants: all of it is of one version of the schema, the last that somebody shared something of; what another
//! connection takes is a copy, with its own state of runs. It does not own: which parts of a statement hold for another
//! connection (`session::prepared`).

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use mainstem_storage::catalog::Catalog;
use parking_lot::Mutex;

use super::recent_texts::RecentTexts;

/// Texts of a generation.
const ENTRIES_MAX: usize = 1_024;
/// Bytes of the texts of a generation.
const TEXT_BYTES_MAX: usize = 2 << 20;

/// What is kept of a text, for all connections.
pub(crate) trait SharedStatement: Any + Debug + Send + Sync {
    /// How many parameters it has.
    fn parameters(&self) -> usize;

    /// How it is executed, as EXPLAIN says it, as far as that is known: `None` before its first run.
    fn execution(&self) -> Option<&'static str>;
}

/// What is kept of a text, and how many connections have copied it.
#[derive(Debug)]
struct Entry {
    statement: Arc<dyn SharedStatement>,
    reuses: u64,
}

/// A row of `mainstem.plans`.
#[derive(Debug)]
pub(crate) struct PlanRow {
    pub(crate) text: String,
    pub(crate) execution: Option<&'static str>,
    pub(crate) parameters: usize,
    pub(crate) reuses: u64,
}

#[derive(Debug)]
struct Texts {
    /// The version of the schema that all statements are of.
    catalog: Arc<Catalog>,
    texts: RecentTexts<Entry>,
}

impl Texts {
    fn new(catalog: &Arc<Catalog>) -> Self {
        Self { catalog: catalog.clone(), texts: RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX) }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct PlanCache(Mutex<Option<Texts>>);

impl PlanCache {
    /// What is kept of `text` under `catalog`, for a connection that makes a copy of it.
    pub(crate) fn get(&self, text: &str, catalog: &Arc<Catalog>) -> Option<Arc<dyn SharedStatement>> {
        let mut cache = self.0.lock();
        let entry = cache.as_mut().filter(|texts| Arc::ptr_eq(&texts.catalog, catalog))?.texts.get(text)?;
        entry.reuses += 1;
        Some(entry.statement.clone())
    }

    /// Keeps `statement` of `text` under `catalog`, the database's at present.
    pub(crate) fn share(&self, text: &str, catalog: &Arc<Catalog>, statement: Arc<dyn SharedStatement>) {
        let mut cache = self.0.lock();
        let outdated = cache.take_if(|texts| !Arc::ptr_eq(&texts.catalog, catalog));
        let texts = &mut cache.get_or_insert_with(|| Texts::new(catalog)).texts;
        let displaced = match texts.get(text) {
            Some(entry) => {
                entry.statement = statement;
                HashMap::new()
            }
            None => texts.put(text, Entry { statement, reuses: 0 }),
        };
        drop(cache);
        // Many trees and plans, which nobody else has to wait for.
        drop((outdated, displaced));
    }

    /// All of them under `catalog`, by text.
    pub(crate) fn rows(&self, catalog: &Arc<Catalog>) -> Vec<PlanRow> {
        let cache = self.0.lock();
        let row = |(text, Entry { statement, reuses }): (&str, &Entry)| PlanRow {
            text: text.to_owned(),
            execution: statement.execution(),
            parameters: statement.parameters(),
            reuses: *reuses,
        };
        let texts = cache.as_ref().filter(|texts| Arc::ptr_eq(&texts.catalog, catalog));
        let mut rows: Vec<PlanRow> = texts.into_iter().flat_map(|texts| texts.texts.iter()).map(row).collect();
        rows.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        rows
    }
}
