//! Statements that a connection keeps by their texts, so that a text that was seen before is neither parsed nor
//! planned. What it makes of a text it shares with the other connections of the database (`exec::plan_cache`).
//!
//! What a prepared statement knows of a version of the schema it checks itself.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Session;
use super::prepared::Prepared;
use crate::exec::{PlanCacheMode, RecentTexts};

/// Texts of a generation.
const ENTRIES_MAX: usize = 256;
/// Bytes of the texts of a generation.
const TEXT_BYTES_MAX: usize = 512 << 10;

/// What is kept of a text.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// It was seen once: texts that never come back are not prepared.
    Seen,
    /// It is no statement for which this is of use.
    Useless,
    /// It is prepared.
    Prepared(Arc<Mutex<Prepared>>),
}

/// See the module.
#[derive(Debug)]
pub(super) struct StatementCache(RecentTexts<Kept>);

impl Default for StatementCache {
    fn default() -> Self {
        Self(RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX))
    }
}

impl Session {
    /// What is kept of `text`, by this connection or by another one.
    pub(crate) fn kept(&mut self, text: &str) -> Option<Kept> {
        if let Some(kept) = self.texts.0.get(text) {
            return Some(kept.clone());
        }
        let prepared = self.copy_of_shared(text)?;
        let kept = Kept::Prepared(Arc::new(Mutex::new(prepared)));
        self.texts.0.put(text, kept.clone());
        Some(kept)
    }

    /// What is kept of `text`, which is one without its literals, as the setting `plan_cache_mode` has it.
    pub(crate) fn kept_generic(&mut self, text: &str) -> Kept {
        match self.settings.plan_cache_mode() {
            PlanCacheMode::ForceCustom => Kept::Useless,
            mode => self.kept(text).unwrap_or_else(|| match mode {
                PlanCacheMode::ForceGeneric => Kept::Seen,
                _ => {
                    self.texts.0.put(text, Kept::Seen);
                    Kept::Useless
                }
            }),
        }
    }

    /// Keeps `prepared` of `text`, for other connections too.
    pub(crate) fn keep(&mut self, text: &str, mut prepared: Prepared) -> Arc<Mutex<Prepared>> {
        prepared.share_as(text);
        self.share(&prepared);
        let prepared = Arc::new(Mutex::new(prepared));
        self.texts.0.put(text, Kept::Prepared(prepared.clone()));
        prepared
    }

    /// Remembers that nothing is to be kept of `text`.
    pub(crate) fn keep_nothing(&mut self, text: &str) {
        self.texts.0.put(text, Kept::Useless);
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
