//! Write gates: how the third run of a long statement gets through a stream of small writers (contract 2).
//!
//! One holder a table and time, in the order in which they came; the gate stays closed from the first to the last of
//! them. A transaction that had written to the table when the gate closed may still commit, once: only so often can the
//! holder lose again (`docs/design/0005-last-attempt.md`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::Result;
use crate::ids::TableId;

/// How often one that waits looks whether it is to go on waiting.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The closed gates of a database.
#[derive(Debug, Default)]
pub struct Gates {
    pub(super) queues: Mutex<Queues>,
    /// How many gates are closed: an open one is passed for the price of a load.
    closed: AtomicUsize,
    opened: Condvar,
    /// Most runs of a statement.
    runs_max: AtomicU32,
}

#[derive(Debug, Default)]
pub(super) struct Queues {
    next: u64,
    /// For each closed gate its holder, then those who want to be.
    pub(super) of_table: BTreeMap<TableId, VecDeque<u64>>,
}

/// Keeps one table's gate closed; opens it when dropped, unless the next one waits to have it.
#[derive(Debug)]
pub struct WriteGate {
    gates: Arc<Gates>,
    table: TableId,
    number: u64,
}

impl Gates {
    /// Closes `table`'s gate, after whoever holds it closed now or has asked before.
    ///
    /// # Errors
    /// What `go_on` returns, asked now and then while this waits.
    pub fn close(self: &Arc<Self>, table: TableId, mut go_on: impl FnMut() -> Result<()>) -> Result<WriteGate> {
        let mut queues = self.queues.lock();
        queues.next += 1;
        let number = queues.next;
        queues.of_table.entry(table).or_default().push_back(number);
        self.closed.store(queues.of_table.len(), Ordering::Release);
        drop(queues);
        let gate = WriteGate { gates: self.clone(), table, number };
        self.wait(&mut go_on, |queues| queues.holder(table) != Some(number))?;
        Ok(gate)
    }

    /// A statement that is a transaction of its own has ended, after so many runs.
    pub fn note_runs(&self, runs: u32) {
        self.runs_max.fetch_max(runs, Ordering::Relaxed);
    }

    /// The most runs of a statement since the last call: what gates bound.
    pub fn take_runs_max(&self) -> u32 {
        self.runs_max.swap(0, Ordering::Relaxed)
    }

    /// Whether `table`'s gate is closed.
    #[must_use]
    pub fn is_closed(&self, table: TableId) -> bool {
        self.closed.load(Ordering::Acquire) > 0 && self.queues.lock().holder(table).is_some()
    }

    /// Waits while `table`'s gate is closed. Called at the start of a writing statement, holding no lock and no gate.
    ///
    /// # Errors
    /// What `go_on` returns, asked now and then while this waits.
    pub fn pass(&self, table: TableId, mut go_on: impl FnMut() -> Result<()>) -> Result<()> {
        if self.closed.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        self.wait(&mut go_on, |queues| queues.holder(table).is_some())
    }

    fn wait(&self, go_on: &mut dyn FnMut() -> Result<()>, is_held_up: impl Fn(&Queues) -> bool) -> Result<()> {
        let mut queues = self.queues.lock();
        while is_held_up(&queues) {
            self.opened.wait_for(&mut queues, LOOK_AGAIN);
            MutexGuard::unlocked(&mut queues, &mut *go_on)?;
        }
        Ok(())
    }
}

impl Queues {
    fn holder(&self, table: TableId) -> Option<u64> {
        self.of_table.get(&table).and_then(|queue| queue.front().copied())
    }
}

impl Drop for WriteGate {
    fn drop(&mut self) {
        let mut queues = self.gates.queues.lock();
        if let Some(queue) = queues.of_table.get_mut(&self.table) {
            queue.retain(|number| *number != self.number);
            if queue.is_empty() {
                queues.of_table.remove(&self.table);
            }
        }
        self.gates.closed.store(queues.of_table.len(), Ordering::Release);
        self.gates.opened.notify_all();
    }
}
