//! Prepared statements that all connections of a database share by their texts.
//!
//! Comes in: what a connection has made of a text: its tree, the types of its parameters, a short statement, or a plan
//! that is kept. Goes out: the same, to connections that see the text for the first time, and the rows of
//! `mainstem.plans`.
//!
//! What is here is never run: a connection makes a copy of its own, with its own state of runs. It does not own: which
//! parts of it hold for another connection (`session::prepared`).

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

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

/// What is kept of a text, and how many connections have taken it over.
#[derive(Clone, Debug)]
struct Entry {
    statement: Arc<dyn SharedStatement>,
    adoptions: u64,
}

/// A row of `mainstem.plans`.
#[derive(Debug)]
pub(crate) struct PlanRow {
    pub(crate) text: String,
    pub(crate) execution: Option<&'static str>,
    pub(crate) parameters: usize,
    pub(crate) adoptions: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PlanCache(Mutex<RecentTexts<Entry>>);

impl Default for PlanCache {
    fn default() -> Self {
        Self(Mutex::new(RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX)))
    }
}

impl PlanCache {
    /// What is kept of `text`, for a connection that takes it over.
    pub(crate) fn adopt(&self, text: &str) -> Option<Arc<dyn SharedStatement>> {
        let mut texts = self.0.lock();
        let Entry { statement, adoptions } = texts.get(text)?;
        texts.put(text, Entry { statement: statement.clone(), adoptions: adoptions + 1 });
        Some(statement)
    }

    /// Keeps `statement` of `text`.
    pub(crate) fn publish(&self, text: &str, statement: Arc<dyn SharedStatement>) {
        let mut texts = self.0.lock();
        let adoptions = texts.get(text).map_or(0, |before| before.adoptions);
        texts.put(text, Entry { statement, adoptions });
    }

    /// All of them, by text.
    pub(crate) fn rows(&self) -> Vec<PlanRow> {
        let texts = self.0.lock();
        let row = |(text, Entry { statement, adoptions }): (&str, &Entry)| PlanRow {
            text: text.to_owned(),
            execution: statement.execution(),
            parameters: statement.parameters(),
            adoptions: *adoptions,
        };
        let mut rows: Vec<PlanRow> = texts.iter().map(row).collect();
        rows.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        rows
    }
}
