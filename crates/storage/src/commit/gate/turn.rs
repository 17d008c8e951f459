//! Turns: how a large commit gets through merges, other large commits and many small ones.
//!
//! What a commit validates outside the lock may be old when it has the lock: rows were moved, runs loaded, or more was
//! committed than can be looked at there. Then it has been *overtaken*, and validates again what has come since.
//!
//! 1. Its first validation holds nobody up.
//! 2. From then on it is *entered* here. Installs of its tables wait for it, if it was entered before they asked and as
//!    long as nobody waits for background work. Any number of commits may be entered for a table.
//! 3. When it is overtaken once more it takes the *turn*, the only one of the database. Commits to its tables, and
//!    installs, wait for it before they begin. What is past that point may still overtake it, each once: so a commit is
//!    validated at most twice, and once more for each commit and install that was under way when its turn began.
//!
//! Invariants: the holder of the turn waits for nobody (`super`); turns go by the order of entering; whoever waits
//! holds no lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::ids::TableId;

/// How often an install that waits looks whether somebody waits for it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The overtaken commits of a database.
#[derive(Debug, Default)]
pub struct Turns {
    pub(super) state: Mutex<State>,
    /// How many commits are entered: while it is none, nobody looks further.
    pub(super) entered: AtomicUsize,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Number of the next one to be entered.
    next: u64,
    /// By number, which is the order of entering.
    pub(super) entered: BTreeMap<u64, Entry>,
    pub(super) turn: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Entry {
    tables: Vec<TableId>,
    pub(super) wants_turn: bool,
}

/// An overtaken commit; leaves when dropped.
#[derive(Debug)]
pub struct Overtaken<'a> {
    turns: &'a Turns,
    number: u64,
}

impl State {
    /// Tables of the commit whose turn it is.
    fn tables_of_turn(&self) -> &[TableId] {
        self.turn.and_then(|number| self.entered.get(&number)).map_or(&[], |entry| &entry.tables)
    }

    fn next_for_turn(&self) -> Option<u64> {
        self.entered.iter().find(|(_, entry)| entry.wants_turn).map(|(number, _)| *number)
    }
}

impl Turns {
    /// Enters a commit to `tables` that was overtaken.
    pub fn enter(&self, tables: Vec<TableId>) -> Overtaken<'_> {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.entered.insert(number, Entry { tables, wants_turn: false });
        self.entered.store(state.entered.len(), Ordering::Release);
        Overtaken { turns: self, number }
    }

    /// How many commits are entered.
    #[cfg(test)]
    pub fn entered(&self) -> usize {
        self.entered.load(Ordering::Acquire)
    }

    /// Before a commit to `tables` validates: waits while another one has the turn for one of them.
    pub fn pass(&self, tables: &[TableId]) {
        if self.entered.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.state.lock();
        while state.tables_of_turn().iter().any(|table| tables.contains(table)) {
            self.changed.wait(&mut state);
        }
    }

    /// Before an install to `table`: waits while a commit to it has the turn, and for those entered by now, unless
    /// somebody `is_waited_for`.
    pub fn pass_install(&self, table: TableId, is_waited_for: impl Fn() -> bool) {
        if self.entered.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.state.lock();
        let upto = state.next;
        loop {
            let strict = state.tables_of_turn().contains(&table);
            let polite = || state.entered.range(..upto).any(|(_, entry)| entry.tables.contains(&table));
            if !strict && (!polite() || is_waited_for()) {
                return;
            }
            self.changed.wait_for(&mut state, LOOK_AGAIN);
        }
    }
}

impl Overtaken<'_> {
    /// Waits until it is this commit's turn. It must not wait for anything from here on until it leaves.
    pub fn take_turn(&self) {
        let mut state = self.turns.state.lock();
        if let Some(entry) = state.entered.get_mut(&self.number) {
            entry.wants_turn = true;
        }
        if state.turn.is_none() {
            state.turn = Some(self.number);
        }
        while state.turn != Some(self.number) {
            self.turns.changed.wait(&mut state);
        }
    }
}

impl Drop for Overtaken<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        state.entered.remove(&self.number);
        if state.turn == Some(self.number) {
            // At once, so that nobody slips in between.
            state.turn = state.next_for_turn();
        }
        self.turns.entered.store(state.entered.len(), Ordering::Release);
        self.turns.changed.notify_all();
    }
}
