//! Statements that a connection keeps by their texts, so that a text that was seen before is neither parsed nor
//! planned. What it makes of a text it shares with the other connections of the database (`exec::plan_cache`).
//!
//! What a prepared statement knows of a version of the schema it checks itself. What is kept counts towards
//! `memory_limit`: where plans take more than their share of it, the texts that were not used lately are forgotten. A
//! statement that a program holds stays, counted.

use std::sync::Arc;

use mainstem_storage::memory::{Charge, MemoryBudget, MemoryKind};

use parking_lot::Mutex;

use super::Session;
use super::prepared::Prepared;
use crate::exec::{PlanCacheMode, RecentTexts};
use crate::sql::Several;

/// Texts of a generation.
const ENTRIES_MAX: usize = 256;
/// Bytes of the texts of a generation.
const TEXT_BYTES_MAX: usize = 512 << 10;

/// What is kept of a text.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// It was not seen before.
    New,
    /// It was seen once: texts that never come back are not prepared.
    Seen,
    /// It is no statement for which this is of use.
    Useless,
    /// It is prepared.
    Prepared(Arc<Mutex<Prepared>>),
    /// It has several statements, each with a text of its own.
    Several(Arc<KeptSeveral>),
}

/// The statements of a text, counted.
#[derive(Debug)]
pub(crate) struct KeptSeveral {
    pub(crate) several: Several,
    _memory: Charge,
}

/// See the module.
#[derive(Debug)]
pub(super) struct StatementCache {
    texts: RecentTexts<Kept>,
    /// What the texts take.
    memory: Charge,
}

impl StatementCache {
    /// None yet, counted in `memory`.
    pub(super) fn new(memory: &Arc<MemoryBudget>) -> Self {
        Self { texts: RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX), memory: memory.charge(MemoryKind::Plans, 0) }
    }

    fn put(&mut self, text: &str, kept: Kept) {
        self.give_way();
        self.texts.put(text, kept);
        self.memory.resize(self.texts.bytes());
    }

    /// Forgets texts that were not used lately while plans take more than their share: by twice all of them.
    pub(super) fn give_way(&mut self) {
        for _ in 0..2 {
            if !self.memory.is_over() {
                return;
            }
            drop(self.texts.age());
            self.memory.resize(self.texts.bytes());
        }
    }
}

impl Session {
    /// What is kept of `text`, by this connection or by another one.
    pub(crate) fn kept(&mut self, text: &str) -> Option<Kept> {
        if let Some(kept) = self.texts.texts.get(text) {
            return Some(kept.clone());
        }
        let prepared = self.copy_of_shared(text)?;
        let kept = Kept::Prepared(Arc::new(Mutex::new(prepared)));
        self.texts.put(text, kept.clone());
        Some(kept)
    }

    /// What is kept of `text`, with its literals or without, as the setting `plan_cache_mode` has it.
    pub(crate) fn kept_generic(&mut self, text: &str) -> Kept {
        match self.settings.plan_cache_mode() {
            PlanCacheMode::ForceCustom => Kept::Useless,
            mode => self.kept(text).unwrap_or_else(|| match mode {
                PlanCacheMode::ForceGeneric => Kept::Seen,
                _ => {
                    self.texts.put(text, Kept::Seen);
                    Kept::New
                }
            }),
        }
    }

    /// Keeps `prepared` of `text`, for other connections too.
    pub(crate) fn keep(&mut self, text: &str, mut prepared: Prepared) -> Arc<Mutex<Prepared>> {
        prepared.share_as(text);
        self.count_memory(&mut prepared);
        self.share(&prepared);
        let prepared = Arc::new(Mutex::new(prepared));
        self.texts.put(text, Kept::Prepared(prepared.clone()));
        prepared
    }

    /// `several`, the statements of `text`; keeps them if they come `again`.
    pub(crate) fn keep_several(&mut self, text: &str, several: Several, again: bool) -> Arc<KeptSeveral> {
        let memory = self.shared.storage.memory_budget().charge(MemoryKind::Plans, several.bytes());
        let kept = Arc::new(KeptSeveral { several, _memory: memory });
        if again {
            self.texts.put(text, Kept::Several(kept.clone()));
        }
        kept
    }

    /// Remembers that nothing is to be kept of `text`.
    pub(crate) fn keep_nothing(&mut self, text: &str) {
        self.texts.put(text, Kept::Useless);
    }

    /// Counts what `prepared` takes from now on, besides its plans.
    pub(super) fn count_memory(&self, prepared: &mut Prepared) {
        prepared.count_memory(self.shared.storage.memory_budget());
    }

    /// Tells other connections what is known of `prepared` now: what the text of a session with the names of all means
    /// under the present schema.
    pub(super) fn share(&self, prepared: &Prepared) {
        let catalog = self.shared.storage.catalog();
        if let Some(text) = prepared.shared_as()
            && prepared.is_of(&catalog)
            && self.settings.names().are_of_all(&catalog)
        {
            self.shared.plans.share(text, &catalog, Arc::new(prepared.copy_for(self.settings.names())));
        }
    }

    /// What other connections have made of `text`, as far as it holds for this one.
    fn copy_of_shared(&self, text: &str) -> Option<Prepared> {
        let catalog = self.shared.storage.catalog();
        let shared: Arc<dyn std::any::Any + Send + Sync> = self.shared.plans.get(text, &catalog)?;
        let prepared = shared.downcast::<Prepared>().ok()?;
        Some(prepared.copy_for(self.settings.names()))
    }
}
