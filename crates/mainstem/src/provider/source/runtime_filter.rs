//! What becomes known of a column while a plan runs, on its way to scans: the keys of a join's build side, for which
//! scans of its probe side wait, and the bound of the rows that a limit keeps, which tightens.
//!
//! Operators that move rows between threads begin to read before the join asks for the first row, and before its build
//! side is there. A scan that began at once would read most of its rows without the filter.
//!
//! Invariant: who waits is woken: by the keys, by the word that none will come, or by time. The build side never waits
//! for its own probe side, so time is for build sides that take long: their keys are used when they come.

use std::sync::Arc;
use std::time::Duration;

use mainstem_storage::scan::{DynamicFilter, FirstRows, KeySet};
use tokio::sync::watch;

/// The longest wait of a scan. One that goes on without the keys uses them when they come.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct RuntimeFilter {
    filter: Arc<DynamicFilter>,
    is_settled: watch::Sender<bool>,
}

impl RuntimeFilter {
    /// Keys of a join that nobody knows yet.
    pub(crate) fn of_join() -> Arc<Self> {
        Arc::new(Self { filter: Arc::default(), is_settled: watch::Sender::new(false) })
    }

    /// The first rows of an order, of which nobody knows yet how far they reach. Nobody waits for it.
    pub(crate) fn of_first_rows(first_rows: FirstRows) -> Arc<Self> {
        let filter = Arc::new(DynamicFilter::of_first_rows(first_rows));
        Arc::new(Self { filter, is_settled: watch::Sender::new(true) })
    }

    /// Tells that rows behind `value` are not needed.
    pub(crate) fn tighten(&self, value: i64) {
        self.filter.tighten(value);
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
