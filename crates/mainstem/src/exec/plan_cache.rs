//! Prepared statements that all connections of a database share by their texts.
//!
//! Comes in: what a connection has made of a text: its tree, the types of its parameters, a short statement, or a plan
//! that is kept. Goes out: the same, to connections that see the text for the first time, and the rows of
//! `mainstem.plans`.
//!
//! Invariants: all of it is of one version of the schema, the last that somebody shared something of; what another
//! connection takes is a copy, with its own state of runs. Where plans take more than their share of `memory_limit`,
//! the texts that were not used lately are forgotten. It does not own: which parts of a statement hold for another
//! connection, what they take of memory (`session::prepared`).

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use mainstem_storage::catalog::Catalog;
use mainstem_storage::memory::{Charge, MemoryBudget, MemoryKind};
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

    /// How often it was run, by all connections.
    fn runs(&self) -> u64;

    /// About how many bytes of memory it takes.
    fn bytes(&self) -> u64;
}

/// Counts the runs of a text on one connection. Copies for other connections are counted together with it, each where
/// no other one writes.
#[derive(Debug, Default)]
pub(crate) struct RunCount {
    own: Arc<AtomicU64>,
    of_text: Arc<Mutex<TextRuns>>,
}

#[derive(Debug, Default)]
struct TextRuns {
    /// Those of counts that are gone.
    ended: u64,
    counts: Vec<Weak<AtomicU64>>,
    /// So many counts, and those that are gone are taken off the list.
    sweep_at: usize,
}

impl RunCount {
    /// A count for another connection.
    pub(crate) fn for_copy(&self) -> Self {
        let own = Arc::new(AtomicU64::new(0));
        let mut runs = self.of_text.lock();
        if runs.counts.len() >= runs.sweep_at {
            runs.counts.retain(|count| count.strong_count() > 0);
            runs.sweep_at = 2 * runs.counts.len() + 8;
        }
        runs.counts.push(Arc::downgrade(&own));
        drop(runs);
        Self { own, of_text: self.of_text.clone() }
    }

    /// One more run.
    pub(crate) fn count(&self) {
        self.own.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs of all connections.
    pub(crate) fn all(&self) -> u64 {
        let runs = self.of_text.lock();
        let living = runs.counts.iter().filter_map(Weak::upgrade).map(|count| count.load(Ordering::Relaxed));
        runs.ended + living.sum::<u64>()
    }
}

impl Drop for RunCount {
    fn drop(&mut self) {
        self.of_text.lock().ended += self.own.load(Ordering::Relaxed);
    }
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
    pub(crate) runs: u64,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
struct Texts {
    /// The version of the schema that all statements are of.
    catalog: Arc<Catalog>,
    texts: RecentTexts<Entry>,
    /// What the texts take.
    memory: Charge,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PlanCache {
    texts: Mutex<Option<Texts>>,
    memory: Arc<MemoryBudget>,
}

impl PlanCache {
    /// An empty one, counted in `memory`.
    pub(crate) fn new(memory: Arc<MemoryBudget>) -> Self {
        Self { texts: Mutex::default(), memory }
    }

    /// What is kept of `text` under `catalog`, for a connection that makes a copy of it.
    pub(crate) fn get(&self, text: &str, catalog: &Arc<Catalog>) -> Option<Arc<dyn SharedStatement>> {
        let mut cache = self.texts.lock();
        let entry = cache.as_mut().filter(|texts| Arc::ptr_eq(&texts.catalog, catalog))?.texts.get(text)?;
        entry.reuses += 1;
        Some(entry.statement.clone())
    }

    /// Keeps `statement` of `text` under `catalog`, the database's at present.
    pub(crate) fn share(&self, text: &str, catalog: &Arc<Catalog>, statement: Arc<dyn SharedStatement>) {
        let mut cache = self.texts.lock();
        let outdated = cache.take_if(|texts| !Arc::ptr_eq(&texts.catalog, catalog));
        let Texts { texts, memory, .. } = cache.get_or_insert_with(|| Texts {
            catalog: catalog.clone(),
            texts: RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX),
            memory: self.memory.charge(MemoryKind::Plans, 0),
        });
        let unused = if memory.is_over() { texts.age() } else { HashMap::new() };
        let displaced = match texts.get(text) {
            Some(entry) => {
                entry.statement = statement;
                HashMap::new()
            }
            None => texts.put(text, Entry { statement, reuses: 0 }),
        };
        memory.resize(texts.bytes());
        drop(cache);
        // Many trees and plans, which nobody else has to wait for.
        drop((outdated, unused, displaced));
    }

    /// All of them under `catalog`, by text.
    pub(crate) fn rows(&self, catalog: &Arc<Catalog>) -> Vec<PlanRow> {
        let cache = self.texts.lock();
        let row = |(text, Entry { statement, reuses }): (&str, &Entry)| PlanRow {
            text: text.to_owned(),
            execution: statement.execution(),
            parameters: statement.parameters(),
            reuses: *reuses,
            runs: statement.runs(),
            bytes: statement.bytes(),
        };
        let texts = cache.as_ref().filter(|texts| Arc::ptr_eq(&texts.catalog, catalog));
        let mut rows: Vec<PlanRow> = texts.into_iter().flat_map(|texts| texts.texts.iter()).map(row).collect();
        rows.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        rows
    }
}
