//! What becomes known of a column while a plan runs, on its way to scans: the keys of a join's build side, for which
//! scans of its probe side wait, and the bound of the rows that a limit keeps, which tightens.
//!
//! Operators that move rows between threads begin to read before the join asks for the first row, and before its build
//! side is there. A scan that began at once would read most of its rows without the filter.
//!
//! Invariant: who waits is woken: by the keys, by the word that none will come, or by time. The build side never waits
//! for its own probe side, so time is for build sides that take long: their keys are used when they come, unless a scan
//! is to have them from its first row on or not at all.

use std::sync::Arc;
use std::time::Duration;

use mainstem_storage::scan::{DynamicFilter, FirstRows, KeySet};
use parking_lot::Mutex;
use tokio::sync::watch;

/// The longest wait of a scan. One that goes on without the keys uses them when they come.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(crate) struct RuntimeFilter {
    filter: Arc<DynamicFilter>,
    is_settled: watch::Sender<bool>,
    late: Mutex<Late>,
}

/// What becomes of keys that come after a scan has begun without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// They are used.
    Used,
    /// They are not, should a scan begin without them.
    Unused,
    /// A scan has.
    Missed,
}

impl RuntimeFilter {
    /// Keys of a join that nobody knows yet.
    pub(crate) fn of_join() -> Arc<Self> {
        let late = Mutex::new(Late::Used);
        Arc::new(Self { filter: Arc::default(), is_settled: watch::Sender::new(false), late })
    }

    /// The first rows of an order, of which nobody knows yet how far they reach. Nobody waits for it.
    pub(crate) fn of_first_rows(first_rows: FirstRows) -> Arc<Self> {
        let filter = Arc::new(DynamicFilter::of_first_rows(first_rows));
        Arc::new(Self { filter, is_settled: watch::Sender::new(true), late: Mutex::new(Late::Used) })
    }

    /// From now on scans have it from their first row on, or not at all; whether that can be: a bound tightens.
    pub(crate) fn take_whole(&self) -> bool {
        if *self.is_settled.borrow() {
            return false;
        }
        *self.late.lock() = Late::Unused;
        true
    }

    /// Tells that rows behind `value` are not needed.
    pub(crate) fn tighten(&self, value: i64) {
        self.filter.tighten(value);
    }

    /// Tells all keys.
    pub(crate) fn publish(&self, keys: KeySet) {
        let late = self.late.lock();
        if *late != Late::Missed {
            self.filter.publish(keys);
        }
        drop(late);
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
        let in_time = tokio::time::timeout(WAIT_MAX, settled.wait_for(|is_settled| *is_settled)).await.is_ok();
        if !in_time {
            self.begin_without();
        }
    }

    /// A scan begins without the keys, unless they have come.
    fn begin_without(&self) {
        let mut late = self.late.lock();
        if *late == Late::Unused && !self.filter.is_known() {
            *late = Late::Missed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_come_too_late_are_used_where_groups_may_lack_rows() {
        for (is_whole, is_used) in [(false, true), (true, false)] {
            let filter = RuntimeFilter::of_join();
            assert!(!is_whole || filter.take_whole());
            filter.begin_without();
            filter.publish(KeySet::default());
            assert_eq!(filter.state(), (true, is_used));
        }
        let filter = RuntimeFilter::of_join();
        assert!(filter.take_whole());
        filter.publish(KeySet::default());
        filter.begin_without();
        assert_eq!(filter.state(), (true, true));
        assert!(!RuntimeFilter::of_first_rows(FirstRows { descending: false, nulls_first: false }).take_whole());
    }
}
