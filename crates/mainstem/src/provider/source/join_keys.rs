//! The keys of a join's build side on their way to scans of its probe side, which wait for them.
//!
//! Operators that move rows between threads begin to read before the join asks for the first row, and before its build
//! side is there. A scan that began at once would read most of its rows without the filter.
//!
//! Invariant: who waits is woken: by the keys, by the word that none will come, or by time. The build side never waits
//! for its own probe side, so time is for build sides that take long: their keys are used when they come.

use std::sync::Arc;
use std::time::Duration;

use mainstem_storage::scan::{DynamicFilter, KeySet};
use tokio::sync::watch;

/// The longest wait of a scan. One that goes on without the keys uses them when they come.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// Keys that become known while a plan runs; see the module.
#[derive(Debug)]
pub(crate) struct JoinKeys {
    filter: Arc<DynamicFilter>,
    is_settled: watch::Sender<bool>,
}

impl JoinKeys {
    /// Keys that nobody knows yet.
    pub(crate) fn unknown() -> Arc<Self> {
        Arc::new(Self { filter: Arc::default(), is_settled: watch::Sender::new(false) })
    }

    /// Tells all keys.
    pub(crate) fn publish(&self, keys: KeySet) {
        self.filter.publish(keys);
        self.settle();
    }

    /// Tells that nobody need wait any more.
    pub(crate) fn settle(&self) {
        self.is_settled.send_replace(true);
    }

    /// What storage filters by.
    pub(super) fn filter(&self) -> &Arc<DynamicFilter> {
        &self.filter
    }

    /// Whether nobody need wait any more, and whether the keys are known.
    #[cfg(test)]
    pub(crate) fn state(&self) -> (bool, bool) {
        (*self.is_settled.borrow(), self.filter.is_known())
    }

    /// Ends when the keys are known or will not come.
    pub(super) async fn wait(self: Arc<Self>) {
        let mut settled = self.is_settled.subscribe();
        // The sender is `self`: it is not closed.
        let _ = tokio::time::timeout(WAIT_MAX, settled.wait_for(|is_settled| *is_settled)).await;
    }
}
