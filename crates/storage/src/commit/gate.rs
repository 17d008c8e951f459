//! Write gates: how the third run of a long statement gets through a stream of small writers (contract 2).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::ids::TableId;

/// Longest time a writer waits at a closed gate before it goes on anyway: it may then conflict, never hang (contract 8).
const GATE_WAIT_MAX: Duration = Duration::from_secs(60);

/// The closed gates of a database.
#[derive(Debug, Default)]
pub struct Gates {
    closed: Mutex<BTreeSet<TableId>>,
    opened: Condvar,
}

/// Keeps one table's gate closed; opens it when dropped.
#[derive(Debug)]
pub struct WriteGate {
    gates: Arc<Gates>,
    table: TableId,
}

impl Gates {
    /// Closes `table`'s gate, after whoever holds it closed now.
    #[must_use]
    pub fn close(self: &Arc<Self>, table: TableId) -> WriteGate {
        let mut closed = self.closed.lock();
        while !closed.insert(table) {
            self.opened.wait(&mut closed);
        }
        WriteGate { gates: self.clone(), table }
    }

    /// Whether `table`'s gate is closed.
    #[must_use]
    pub fn is_closed(&self, table: TableId) -> bool {
        self.closed.lock().contains(&table)
    }

    /// Waits, for a bounded time, while `table`'s gate is closed. Called at the start of a writing statement, holding no
    /// lock.
    pub fn pass(&self, table: TableId) {
        let deadline = Instant::now() + GATE_WAIT_MAX;
        let mut closed = self.closed.lock();
        while closed.contains(&table) {
            if self.opened.wait_until(&mut closed, deadline).timed_out() {
                return;
            }
        }
    }
}

impl Drop for WriteGate {
    fn drop(&mut self) {
        self.gates.closed.lock().remove(&self.table);
        self.gates.opened.notify_all();
    }
}
