//! The memory that loads share: who may collect rows, and how many.
//!
//! 1. A load that begins to collect takes a *piece*: as many bytes as are worth a sort
//!    ([`limits::LOAD_PIECE_BYTES_MIN`]), or those of its first rows. It gets them when all loads together then have no
//!    more than their share; until then it waits in line.
//! 2. With its piece it collects on while nobody waits in line, and it leaves free what others need: at least a piece,
//!    and 1 / [`limits::LOAD_LEAVES_SHARE`] of what it holds. Else it sorts and writes what it has, and lets go.
//! 3. Entries of key indexes, which come with what is written, count too (`LoadTurn::set_entries`). Who has to wait
//!    writes them aside before.
//! 4. Blocks that are kept from writing count for as long as the segment is written, and are kept as far as there is
//!    room ([`LoadTurn::borrow`]).
//! 5. Who has waited too long fails with 53200: the others hold their rows for clients or disks that take their time.
//! 6. Whoever holds a write gate waits for nobody: without room it takes its piece of the reserve, as a commit does,
//!    and no more than that.
//!
//! Invariants: all loads together have no more than their share, but for one that holds a single row larger than that,
//! alone.
//!
//! Why nobody waits for ever, nor for a client that stands still:
//! - Who waits in line holds nothing of the share, no lock and no gate. So whoever holds some of it waits for no other
//!   load, nor for anybody who waits for one: it can go on, and lets go as soon as it has collected a piece or its rows
//!   end.
//! - A load that stands still keeps what it holds. Before it grew it left free a third of that, and a piece, for those
//!   that begin: one, then a second and a third can stand still with all they may have, and others go on with what is
//!   left, a piece at a time.
//! - The line is first come, first served: a large piece is not overtaken by small ones for ever.
//! - With more loads standing still than there are pieces the wait ends after [`limits::BACK_PRESSURE_MS_MAX`], and
//!   earlier when the statement is canceled, for who waits asks now and then.
//!
//! It does not own: what is done with the rows (`loader`).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::limits;
use crate::memory::{Charge, MemoryBudget, MemoryKind};
use crate::version::{Activity, Work};

/// How often one that waits asks whether it is to go on waiting.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// How a load waits for others.
#[derive(Clone, Default)]
pub enum Waiting {
    /// In line.
    #[default]
    Uncancelled,
    /// In line, asking now and then whether to go on; an error ends the wait.
    While(Arc<dyn Fn() -> Result<()> + Send + Sync>),
    /// Not at all: others wait for it.
    Never,
}

impl Waiting {
    /// # Errors
    /// Why not to go on.
    pub fn go_on(&self) -> Result<()> {
        match self {
            Self::While(go_on) => go_on(),
            Self::Uncancelled | Self::Never => Ok(()),
        }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uncancelled => "uncancelled",
            Self::While(_) => "while it is to go on",
            Self::Never => "never",
        })
    }
}

/// The loads of a database.
#[derive(Debug)]
pub struct LoadMemory {
    budget: Arc<MemoryBudget>,
    line: Mutex<Line>,
    freed: Condvar,
    wait_max: Duration,
    /// Where loads count as work of users, but not while they wait.
    activity: Arc<Activity>,
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
    waiting: Waiting,
    /// What rows and entries are taken of: the share of loads, or the reserve.
    of: MemoryKind,
    /// Rows, and what their sort will take beside them.
    rows: Charge,
    /// Entries of key indexes, of rows that are written.
    entries: Charge,
    /// Blocks of the segment being written.
    blocks: Charge,
}

impl LoadMemory {
    /// No loads yet.
    #[must_use]
    pub fn new(budget: Arc<MemoryBudget>, activity: Arc<Activity>) -> Arc<Self> {
        Self::with_wait(budget, activity, Duration::from_millis(limits::BACK_PRESSURE_MS_MAX))
    }

    fn with_wait(budget: Arc<MemoryBudget>, activity: Arc<Activity>, wait_max: Duration) -> Arc<Self> {
        Arc::new(Self { budget, line: Mutex::default(), freed: Condvar::new(), wait_max, activity })
    }

    /// A load that holds nothing yet, and waits as `waiting` says.
    #[must_use]
    pub fn enter(self: &Arc<Self>, waiting: Waiting) -> LoadTurn {
        let (of, none) = (MemoryKind::Loads, || self.budget.charge(MemoryKind::Loads, 0));
        LoadTurn { memory: self.clone(), waiting, of, rows: none(), entries: none(), blocks: none() }
    }

    /// Bytes at which a load that is alone sorts: with the rows that it takes next it holds no more than it may.
    #[must_use]
    pub fn sort_bytes(&self) -> u64 {
        let alone = self.share() / (limits::LOAD_LEAVES_SHARE + 1) * limits::LOAD_LEAVES_SHARE;
        alone.saturating_sub(self.piece())
    }

    fn share(&self) -> u64 {
        self.budget.share(MemoryKind::Loads)
    }

    /// Bytes that are worth a sort.
    fn piece(&self) -> u64 {
        limits::LOAD_PIECE_BYTES_MIN.min(self.share() / 8)
    }

    /// What nobody holds.
    fn free(&self) -> u64 {
        self.share().saturating_sub(self.budget.used(MemoryKind::Loads))
    }
}

impl LoadTurn {
    /// Bytes of rows that it may hold.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rows.bytes()
    }

    /// Most bytes that rows taken at once should have.
    #[must_use]
    pub fn rows_at_once(&self) -> u64 {
        self.memory.piece().max(1)
    }

    /// Takes `bytes` for rows that come at once and are written at once, if they are but a part of the share, nobody
    /// waits, and there is room now.
    pub fn try_take(&mut self, bytes: u64) -> bool {
        let memory = self.memory.clone();
        let line = memory.line.lock();
        let is_part = bytes <= memory.share() / (limits::LOAD_LEAVES_SHARE + 1);
        is_part && line.waiting.is_empty() && self.take_if_room(bytes)
    }

    /// How it waits for others.
    #[must_use]
    pub fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Begins to collect, with `bytes` of rows, if there is room for a piece now and nobody waits in line.
    pub fn try_begin(&mut self, bytes: u64) -> bool {
        let memory = self.memory.clone();
        let line = memory.line.lock();
        // Nobody in line has to wait for it, for it waits for nobody.
        let is_first = line.waiting.is_empty() || matches!(self.waiting, Waiting::Never);
        is_first && self.take_if_room(self.wanted(bytes))
    }

    /// Begins to collect, with `bytes` of rows: waits in line for a piece, while it holds nothing. Without waiting the
    /// piece is one of the reserve. Its thread is at work ([`Work::Thread`]), and counts as such but for the wait.
    ///
    /// # Errors
    /// Full (53200) when the others did not let go of enough in time; what the question whether to go on returns.
    pub fn begin(&mut self, bytes: u64) -> Result<()> {
        if self.try_begin(bytes) {
            return Ok(());
        }
        let wanted = self.wanted(bytes);
        if matches!(self.waiting, Waiting::Never) {
            self.take(MemoryKind::Reserve, wanted);
            return Ok(());
        }
        let memory = self.memory.clone();
        let _paused = memory.activity.pause(Work::Thread);
        let mut line = memory.line.lock();
        line.last += 1;
        let number = line.last;
        line.waiting.push_back(number);
        let begun = self.wait_in(&mut line, number, wanted);
        line.waiting.retain(|waiting| *waiting != number);
        // The next one may have room, too, or be the first now.
        memory.freed.notify_all();
        begun
    }

    fn wait_in(&mut self, line: &mut MutexGuard<'_, Line>, number: u64, wanted: u64) -> Result<()> {
        let deadline = Instant::now() + self.memory.wait_max;
        loop {
            let now = Instant::now();
            self.memory.freed.wait_until(line, deadline.min(now + ASK_AGAIN));
            if line.waiting.front() == Some(&number) && self.take_if_room(wanted) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(no_turn());
            }
            MutexGuard::unlocked(line, || self.waiting.go_on())?;
        }
    }

    /// Whether it holds `bytes` of rows now: what it holds already, or more where nobody waits and enough is left for
    /// others.
    pub fn grow(&mut self, bytes: u64) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes()).filter(|more| *more > 0) else { return true };
        let line = self.memory.line.lock();
        let held = self.rows.bytes() + self.entries.bytes() + more;
        let left = self.memory.piece().max(held / limits::LOAD_LEAVES_SHARE);
        let may = self.of == MemoryKind::Loads && line.waiting.is_empty() && self.memory.free() >= more + left;
        if may {
            self.rows.resize(size(bytes));
        }
        may
    }

    /// Whether others wait for what it holds.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.memory.line.lock().waiting.is_empty()
    }

    /// Holds `rows` bytes of rows and `entries` of entries from now on, in place of rows that it had: entries are
    /// counted with their rows before.
    pub fn set(&mut self, rows: u64, entries: u64) {
        let _line = self.memory.line.lock();
        self.rows.resize(size(rows));
        self.entries.resize(size(entries));
        self.memory.freed.notify_all();
    }

    /// Borrows up to `bytes` for blocks of the segment that is written next, as far as nobody else wants them; returns
    /// how many. What was borrowed before is given back.
    pub fn borrow(&mut self, bytes: u64) -> u64 {
        let line = self.memory.line.lock();
        self.blocks.resize(0);
        let may = self.of == MemoryKind::Loads && line.waiting.is_empty();
        let lent = if may { bytes.min(self.memory.free()) } else { 0 };
        self.blocks.resize(size(lent));
        self.memory.freed.notify_all();
        lent
    }

    fn wanted(&self, bytes: u64) -> u64 {
        bytes.max(self.memory.piece())
    }

    /// Takes `bytes` for rows, if there is room. Under the lock of the line, so that no two find the same room.
    fn take_if_room(&mut self, bytes: u64) -> bool {
        let memory = &self.memory;
        let here = if self.of == MemoryKind::Loads { self.rows.bytes() + self.entries.bytes() } else { 0 };
        let more = (bytes + self.entries.bytes()).saturating_sub(here);
        let is_alone = memory.budget.used(MemoryKind::Loads) == here;
        let has_room = is_alone || memory.free() >= more;
        if has_room {
            self.take(MemoryKind::Loads, bytes);
        }
        has_room
    }

    /// Holds `bytes` of rows, and its entries, of the memory for `of`.
    fn take(&mut self, of: MemoryKind, bytes: u64) {
        if self.of != of {
            let budget = &self.memory.budget;
            self.rows = budget.charge(of, 0);
            self.entries = budget.charge(of, size(self.entries.bytes()));
            self.of = of;
        }
        self.rows.resize(size(bytes));
    }
}

impl Drop for LoadTurn {
    fn drop(&mut self) {
        self.blocks.resize(0);
        self.set(0, 0);
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
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;

    /// Loads may take 3,200 bytes; a piece has 400.
    fn memory(wait: Duration) -> Arc<LoadMemory> {
        let budget = MemoryBudget::new(51_200);
        assert_eq!(budget.share(MemoryKind::Loads), 3_200);
        LoadMemory::with_wait(budget, Arc::default(), wait)
    }

    const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_secs(60);

    impl LoadMemory {
        fn uncancelled(self: &Arc<Self>) -> LoadTurn {
            self.enter(Waiting::Uncancelled)
        }

        fn used(&self) -> u64 {
            self.budget.used(MemoryKind::Loads)
        }
    }

    #[test]
    fn a_load_collects_on_while_there_is_room_and_nobody_waits() {
        let memory = memory(SOON);
        let (mut first, mut second) = (memory.uncancelled(), memory.uncancelled());
        first.begin(10).unwrap();
        assert_eq!(first.bytes(), 400, "a piece");
        assert!(first.grow(300) && first.grow(2_400) && first.bytes() == 2_400);
        assert!(!first.grow(2_401), "a third of it is left for others");
        let error = second.begin(810).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, sqlstate::OUT_OF_MEMORY));
        assert!(!first.is_wanted(), "it does not wait any more");
        second.begin(10).unwrap();
        assert!(!first.grow(2_401) && first.grow(2_400) && !second.grow(401), "less than a piece would be left");
        first.set(2_000, 0);
        assert!(second.grow(800) && !second.grow(801));
        drop(first);
        assert!(second.grow(2_400) && !second.grow(2_401));
        drop(second);
        assert_eq!(memory.used(), 0);
    }

    /// Each has grown as far as it may, and stands still.
    #[test]
    fn another_load_can_begin_whatever_those_that_stand_still_hold() {
        let memory = memory(SOON);
        let mut still = Vec::new();
        for _ in 0..2 {
            let mut load = memory.uncancelled();
            load.begin(1).unwrap();
            let mut bytes = load.bytes();
            while load.grow(bytes + 10) {
                bytes += 10;
            }
            still.push(load);
        }
        assert!(memory.used() >= 2_800, "{}", memory.used());
        for _ in 0..3 {
            let mut load = memory.uncancelled();
            load.begin(1).unwrap();
            assert!(!load.grow(401));
            load.set(0, 0);
            load.begin(400).unwrap();
        }
    }

    #[test]
    fn rows_that_are_written_at_once_take_what_is_free() {
        let memory = memory(SOON);
        let (mut first, mut second) = (memory.uncancelled(), memory.uncancelled());
        assert!(!first.try_take(801), "more than a quarter");
        assert!(first.try_take(800) && first.bytes() == 800);
        second.begin(2_300).unwrap();
        let mut third = memory.uncancelled();
        assert!(!third.try_take(101) && third.try_take(100), "there is no more room");
        first.set(0, 0);
        third.set(0, 0);
        assert_eq!(memory.used(), 2_300);
        second.set(3_200, 0);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| first.begin(400).unwrap_err());
            while !second.is_wanted() {
                std::thread::yield_now();
            }
            assert!(!second.try_take(1), "somebody waits");
            waits.join().unwrap();
        });
    }

    #[test]
    fn entries_count_like_rows() {
        let memory = memory(SOON);
        let (mut first, mut second) = (memory.uncancelled(), memory.uncancelled());
        first.begin(1_200).unwrap();
        first.set(0, 1_200);
        assert_eq!(memory.used(), 1_200);
        assert!(first.try_begin(400) && first.grow(1_200) && !first.grow(1_201), "2,400 in all");
        second.begin(800).unwrap();
        assert!(!first.try_begin(1_201), "it is alone no more");
        first.set(1_200, 0);
        assert_eq!(memory.used(), 2_000);
    }

    #[test]
    fn blocks_are_kept_where_there_is_room() {
        let memory = memory(LATE);
        let (mut first, mut second) = (memory.uncancelled(), memory.uncancelled());
        first.begin(2_800).unwrap();
        assert_eq!((first.borrow(300), first.borrow(900), memory.used()), (300, 400, 3_200));
        assert_eq!(second.borrow(1), 0);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| second.begin(400).unwrap());
            while !first.is_wanted() {
                std::thread::yield_now();
            }
            assert_eq!(first.borrow(900), 0, "somebody waits for it");
            waits.join().unwrap();
        });
        drop(first);
        assert_eq!(memory.used(), 400);
    }

    /// Merges do not yield to it.
    #[test]
    fn who_waits_is_not_at_work() {
        let memory = memory(LATE);
        let working = || memory.activity.threads(Duration::ZERO);
        let mut held = memory.uncancelled();
        held.begin(3_200).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let _at_work = memory.activity.begin(Work::Thread);
                assert_eq!(working(), 1);
                memory.uncancelled().begin(10).unwrap();
                working()
            });
            while !held.is_wanted() {
                std::thread::yield_now();
            }
            assert_eq!(working(), 0);
            held.set(0, 0);
            assert_eq!(waits.join().unwrap(), 1);
        });
    }

    #[test]
    fn who_waits_can_be_canceled() {
        let memory = memory(LATE);
        let mut held = memory.uncancelled();
        held.begin(3_200).unwrap();
        let canceled = Arc::new(AtomicBool::new(false));
        let go_on = {
            let canceled = canceled.clone();
            move || if canceled.load(Ordering::Relaxed) { Err(Error::internal("enough")) } else { Ok(()) }
        };
        let mut load = memory.enter(Waiting::While(Arc::new(go_on)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| load.begin(10).unwrap_err());
            while !held.is_wanted() {
                std::thread::yield_now();
            }
            canceled.store(true, Ordering::Relaxed);
            assert_eq!(waits.join().unwrap().message(), "enough");
        });
        assert!(!held.is_wanted());
    }

    /// As whoever holds a write gate.
    #[test]
    fn who_waits_for_nobody_takes_of_the_reserve() {
        let memory = memory(LATE);
        let reserved = || memory.budget.used(MemoryKind::Reserve);
        let (mut held, mut other) = (memory.uncancelled(), memory.uncancelled());
        held.begin(3_200).unwrap();
        let mut load = memory.enter(Waiting::Never);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| other.begin(1_000).unwrap());
            while !held.is_wanted() {
                std::thread::yield_now();
            }
            load.begin(10).unwrap();
            assert!(!load.grow(401) && load.borrow(1) == 0);
            load.set(0, 30);
            assert_eq!((reserved(), memory.used()), (30, 3_200));
            held.set(2_700, 0);
            load.begin(10).unwrap();
            assert_eq!((reserved(), memory.used()), (0, 3_130), "past those in line");
            held.set(0, 0);
            waits.join().unwrap();
        });
        drop((held, load, other));
        assert_eq!((reserved(), memory.used()), (0, 0));
    }

    #[test]
    fn a_row_larger_than_the_share_is_taken_alone() {
        let memory = memory(SOON);
        let (mut wide, mut other) = (memory.uncancelled(), memory.uncancelled());
        other.begin(1).unwrap();
        assert!(wide.begin(9_000).is_err());
        drop(other);
        wide.begin(9_000).unwrap();
        assert_eq!(wide.bytes(), 9_000);
    }

    #[test]
    fn many_loads_take_turns_and_never_more_than_their_share() {
        const LOADS: u64 = 40;
        let memory = memory(LATE);
        let (most, pieces) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for load in 0..LOADS {
                let (memory, most, pieces) = (&memory, &most, &pieces);
                scope.spawn(move || {
                    let mut turn = memory.uncancelled();
                    for _ in 0..20 {
                        turn.begin(100 + load).unwrap();
                        let mut bytes = 100 + load;
                        while bytes < 2_000 && !turn.is_wanted() && turn.grow(bytes + 90) {
                            bytes += 90;
                            most.fetch_max(memory.used(), Ordering::Relaxed);
                            std::thread::yield_now();
                        }
                        turn.set(0, 0);
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
        let memory = memory(LATE);
        let mut held = memory.uncancelled();
        held.begin(3_200).unwrap();
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for load in 0..5 {
                let (memory, order) = (&memory, &order);
                scope.spawn(move || {
                    let mut turn = memory.uncancelled();
                    // All of the share, so that they come one by one.
                    turn.begin(3_200).unwrap();
                    order.lock().push(load);
                });
                while memory.line.lock().waiting.len() <= load {
                    std::thread::yield_now();
                }
            }
            assert!(held.is_wanted() && !held.grow(3_201));
            held.set(0, 0);
        });
        assert_eq!(order.into_inner(), [0, 1, 2, 3, 4]);
    }
}
