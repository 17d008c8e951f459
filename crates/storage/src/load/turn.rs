//! The memory that loads share: who may collect rows, and how many.
//!
//! 1. A load that begins to collect takes a *piece*: as many bytes as are worth a sort ([`limits::LOAD_PIECE_BYTES_MIN`]), or those of its
//!    first rows. It gets them when all loads together then have no more than their share; until then it waits in line.
//! 2. With its piece it collects on while there is room and nobody waits in line. Else it sorts and writes what it has, and lets go.
//! 3. Who has waited too long fails with 53200: the others hold their rows for clients or disks that take their time.
//!
//! Invariants: all loads together have no more than their share, but for one that holds a single row larger than that, alone; who
//! waits holds no rows of its own, so whoever holds some can go on. It does not own: what is done with the rows (`loader`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::limits;
use crate::memory::{Charge, MemoryBudget, MemoryKind};

/// The loads of a database.
#[derive(Debug)]
pub struct LoadMemory {
    budget: Arc<MemoryBudget>,
    line: Mutex<Line>,
    freed: Condvar,
    wait_max: Duration,
}

/// Who waits, in the order in which they came.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<u64>,
    last: u64,
}

/// What one load holds.
#[derive(Debug)]
pub struct LoadTurn {
    memory: Arc<LoadMemory>,
    charge: Charge,
}

impl LoadMemory {
    /// No loads yet.
    #[must_use]
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        Self::with_wait(budget, Duration::from_millis(limits::BACK_PRESSURE_MS_MAX))
    }

    fn with_wait(budget: Arc<MemoryBudget>, wait_max: Duration) -> Arc<Self> {
        Arc::new(Self { budget, line: Mutex::default(), freed: Condvar::new(), wait_max })
    }

    /// A load that holds nothing yet.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> LoadTurn {
        LoadTurn { memory: self.clone(), charge: self.budget.charge(MemoryKind::Loads, 0) }
    }

    fn share(&self) -> u64 {
        self.budget.share(MemoryKind::Loads)
    }

    /// Bytes that are worth a sort.
    fn piece(&self) -> u64 {
        limits::LOAD_PIECE_BYTES_MIN.min(self.share() / 8)
    }

    /// Whether a load may take `bytes` more. Under the lock of the line, so that no two find the same room.
    fn has_room(&self, bytes: u64) -> bool {
        let used = self.budget.used(MemoryKind::Loads);
        used == 0 || used.saturating_add(bytes) <= self.share()
    }
}

impl LoadTurn {
    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// Most bytes that rows taken at once should have.
    #[must_use]
    pub fn rows_at_once(&self) -> u64 {
        self.memory.piece().max(1)
    }

    /// Begins to collect, with `bytes` of rows: waits in line for a piece.
    ///
    /// # Errors
    /// Full (53200) when the others did not let go of enough in time.
    pub fn begin(&mut self, bytes: u64) -> Result<()> {
        let wanted = bytes.max(self.memory.piece());
        let mut line = self.memory.line.lock();
        if line.waiting.is_empty() && self.memory.has_room(wanted) {
            self.charge.resize(size(wanted));
            return Ok(());
        }
        line.last += 1;
        let number = line.last;
        line.waiting.push_back(number);
        let deadline = Instant::now() + self.memory.wait_max;
        let mut is_mine = false;
        while !is_mine && Instant::now() < deadline {
            self.memory.freed.wait_until(&mut line, deadline);
            is_mine = line.waiting.front() == Some(&number) && self.memory.has_room(wanted);
        }
        line.waiting.retain(|waiting| *waiting != number);
        if is_mine {
            self.charge.resize(size(wanted));
        }
        // The next one may have room, too, or be the first now.
        self.memory.freed.notify_all();
        if is_mine { Ok(()) } else { Err(no_turn()) }
    }

    /// Whether it holds `bytes` now: what it holds already, or more where there is room and nobody waits.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes()) else { return true };
        let line = self.memory.line.lock();
        let may = more == 0 || (line.waiting.is_empty() && self.memory.has_room(more));
        if may {
            self.charge.resize(size(bytes));
        }
        may
    }

    /// Whether others wait for what it holds.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.memory.line.lock().waiting.is_empty()
    }

    /// Holds `bytes` from now on, whatever others hold: those it has still, or what its sort takes for a moment.
    pub fn set(&mut self, bytes: u64) {
        let _line = self.memory.line.lock();
        self.charge.resize(size(bytes));
        self.memory.freed.notify_all();
    }
}

impl Drop for LoadTurn {
    fn drop(&mut self) {
        self.set(0);
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn no_turn() -> Error {
    Error::new(
        ErrorKind::Full,
        sqlstate::OUT_OF_MEMORY,
        "loads that run at once hold all the rows that their share of memory_limit has room for: load less at a time, end loads and appenders that stand still, or raise memory_limit",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Loads may take 3,200 bytes; a piece has 400.
    fn memory(wait: Duration) -> Arc<LoadMemory> {
        let budget = MemoryBudget::new(51_200);
        assert_eq!(budget.share(MemoryKind::Loads), 3_200);
        LoadMemory::with_wait(budget, wait)
    }

    #[test]
    fn a_load_collects_on_while_there_is_room_and_nobody_waits() {
        let memory = memory(Duration::from_millis(20));
        let (mut first, mut second) = (memory.enter(), memory.enter());
        first.begin(10).unwrap();
        assert_eq!(first.bytes(), 400, "a piece");
        assert!(first.grow(300) && first.grow(2_900) && first.bytes() == 2_900);
        let error = second.begin(10).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, sqlstate::OUT_OF_MEMORY));
        assert!(!first.is_wanted(), "it does not wait any more");
        first.set(2_800);
        second.begin(10).unwrap();
        assert!(!first.grow(2_801) && first.grow(2_800) && !second.grow(401));
        drop(first);
        assert!(second.grow(3_200) && !second.grow(3_201));
        drop(second);
        assert_eq!(memory.budget.used(MemoryKind::Loads), 0);
    }

    #[test]
    fn a_row_larger_than_the_share_is_taken_alone() {
        let memory = memory(Duration::from_millis(20));
        let (mut wide, mut other) = (memory.enter(), memory.enter());
        other.begin(1).unwrap();
        assert!(wide.begin(9_000).is_err());
        drop(other);
        wide.begin(9_000).unwrap();
        assert_eq!(wide.bytes(), 9_000);
    }

    #[test]
    fn many_loads_take_turns_and_never_more_than_their_share() {
        const LOADS: u64 = 40;
        let memory = memory(Duration::from_secs(60));
        let (most, pieces) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for load in 0..LOADS {
                let (memory, most, pieces) = (&memory, &most, &pieces);
                scope.spawn(move || {
                    let mut turn = memory.enter();
                    for _ in 0..20 {
                        turn.begin(100 + load).unwrap();
                        let mut bytes = 100 + load;
                        while bytes < 2_000 && !turn.is_wanted() && turn.grow(bytes + 90) {
                            bytes += 90;
                            most.fetch_max(memory.budget.used(MemoryKind::Loads), Ordering::Relaxed);
                            std::thread::yield_now();
                        }
                        turn.set(0);
                        pieces.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(pieces.into_inner(), LOADS * 20);
        let most = most.into_inner();
        assert!(most > 400 && most <= 3_200, "{most}");
    }

    #[test]
    fn who_came_first_is_first() {
        let memory = memory(Duration::from_secs(60));
        let mut held = memory.enter();
        held.begin(3_200).unwrap();
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for load in 0..5 {
                let (memory, order) = (&memory, &order);
                scope.spawn(move || {
                    let mut turn = memory.enter();
                    // All of the share, so that they come one by one.
                    turn.begin(3_200).unwrap();
                    order.lock().push(load);
                });
                while memory.line.lock().waiting.len() <= load {
                    std::thread::yield_now();
                }
            }
            assert!(held.is_wanted() && !held.grow(3_201));
            held.set(0);
        });
        assert_eq!(order.into_inner(), [0, 1, 2, 3, 4]);
    }
}
