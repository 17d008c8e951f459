//! What the partitions of one execution of a plan share.
//!
//! A plan may be executed more than once: the n-th opening of a partition joins the n-th thing.

use datafusion::common::{Result, internal_datafusion_err};
use parking_lot::Mutex;

/// See the module.
#[derive(Debug)]
pub(crate) struct Executions<T> {
    things: Mutex<Vec<T>>,
    /// How often each partition was opened.
    opened: Mutex<Vec<usize>>,
}

impl<T> Default for Executions<T> {
    fn default() -> Self {
        Self { things: Mutex::default(), opened: Mutex::default() }
    }
}

impl<T: Clone> Executions<T> {
    /// The thing for the next opening of `partition`, which the first partition of an execution makes.
    ///
    /// # Errors
    /// That of `make`.
    pub(crate) fn join(&self, partition: usize, make: impl Fn() -> Result<T>) -> Result<T> {
        let mut opened = self.opened.lock();
        if opened.len() <= partition {
            opened.resize(partition + 1, 0);
        }
        let round = opened.get(partition).copied().unwrap_or_default();
        let mut things = self.things.lock();
        while things.len() <= round {
            things.push(make()?);
        }
        if let Some(times) = opened.get_mut(partition) {
            *times += 1;
        }
        things.get(round).cloned().ok_or_else(|| internal_datafusion_err!("what an execution shares went missing"))
    }
}
