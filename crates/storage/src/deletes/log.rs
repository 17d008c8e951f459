//! The delete log of one container.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use mainstem_kernels::bitmap;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::DeleteSet;
use super::intent::{Decision, Intents};
use super::latest::LatestBits;
use crate::ids::CommitTs;
use crate::limits;

/// Which rows of one container were deleted, and when (contract 1). One writer, the holder of the commit lock; any
/// number of readers. See the module for the steps.
///
/// Timestamps given to readers' methods are those of pinned snapshots, or of the present: what nobody has pinned may
/// have been folded away.
pub struct DeleteLog {
    /// Offsets at or above this do not exist.
    capacity: u32,
    /// Rows that a bitmap must cover.
    rows: AtomicU32,
    latest: LatestBits,
    /// There are intents, or sets in [`State::unpoured`]. To be read before `latest`: a set is taken off only when its
    /// bits are there.
    unpoured: AtomicBool,
    state: RwLock<State>,
    /// Held by the one fold at work, so that only `record` changes the log meanwhile, and only at its end.
    folding: Mutex<()>,
    /// Rows that readers of ranges have stepped over because they were dead.
    dead_steps: AtomicU64,
}

#[derive(Default)]
struct State {
    /// End of the last delete that only a bitmap still tells, the first of `folded`; 0 while the log tells all.
    floor: CommitTs,
    /// Ascending; each is valid from the floor or from the end of a log entry.
    folded: Vec<Bitmap>,
    /// What scans asked for lately, any order.
    recent: Vec<Bitmap>,
    /// In commit order, all with `end` above the floor.
    log: Vec<Entry>,
    /// Rows deleted.
    count: u64,
    /// Deletes of commits that may still fail, and of some that have not and are to be moved to the log.
    intents: Intents,
    /// Sets that were intents, whose bits are not yet all in `latest`, with their ends.
    unpoured: Vec<(CommitTs, DeleteSet)>,
}

/// What looking for deletes may still cost: rows looked up, 10 to 20 ns each.
#[derive(Debug)]
pub struct Lookups(pub usize);

impl Lookups {
    /// What it costs to come to a log at all, which may be nowhere near the processor.
    const OF_A_LOG: usize = 16;

    /// Takes `cost` off; false when there is not so much left.
    fn spend(&mut self, cost: usize) -> bool {
        let left = self.0.checked_sub(cost);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// The rows deleted at or before `from`.
#[derive(Clone)]
struct Bitmap {
    from: CommitTs,
    bits: Arc<[u64]>,
    count: u64,
}

#[derive(Clone)]
struct Entry {
    end: CommitTs,
    set: DeleteSet,
    /// Rows deleted by this entry and all before it.
    count: u64,
}

/// What a reader at some timestamp stands on.
struct Footing {
    /// Newest bitmap that helps.
    base: Option<Bitmap>,
    /// Sets to add to it.
    sets: Vec<DeleteSet>,
    /// End of the last of them, or `base.from`.
    from: CommitTs,
    /// Rows deleted at `from`.
    count: u64,
}

impl State {
    /// What was deleted at the floor.
    fn base(&self) -> Option<&Bitmap> {
        self.folded.first().filter(|b| b.from <= self.floor)
    }

    /// Log entries with end at or before `at`.
    fn entries_upto(&self, at: CommitTs) -> usize {
        if self.log.last().is_none_or(|e| e.end <= at) {
            return self.log.len();
        }
        self.log.partition_point(|e| e.end <= at)
    }

    /// The newest folded bitmap valid at `at`.
    fn folded_at(&self, at: CommitTs) -> Option<&Bitmap> {
        self.folded.iter().rev().find(|b| b.from <= at)
    }

    /// (end of the last delete at or before `at`, rows deleted then); `None` if nothing was.
    fn effective(&self, at: CommitTs) -> Option<(CommitTs, u64)> {
        debug_assert!(at >= self.floor, "a reader at {at} that nobody pinned: the delete log begins at {}", self.floor);
        let upto = self.entries_upto(at);
        if let Some(entry) = upto.checked_sub(1).and_then(|i| self.log.get(i)) {
            return Some((entry.end, entry.count));
        }
        self.base().filter(|b| b.from <= at).map(|b| (b.from, b.count))
    }

    /// Adds an entry, all of whose rows are new.
    fn push(&mut self, end: CommitTs, set: DeleteSet) {
        if !set.is_empty() {
            self.count += set.len() as u64;
            self.log.push(Entry { end, set, count: self.count });
        }
    }

    /// Moves decided intents to the log. Whoever reads or changes the log has it done first.
    fn settle(&mut self) {
        for (end, set) in self.intents.take_decided() {
            debug_assert!(self.log.last().map_or(self.floor, |e| e.end) <= end, "deletes come in commit order");
            self.unpoured.push((end, set.clone()));
            self.push(end, set);
        }
    }

    fn footing(&self, at: CommitTs) -> Option<Footing> {
        let (from, count) = self.effective(at)?;
        let folded = self.folded_at(from);
        let recent = self.recent.iter().filter(|b| b.from <= from).max_by_key(|b| b.from);
        let base = [folded, recent].into_iter().flatten().max_by_key(|b| b.from).cloned();
        let start = base.as_ref().map_or(0, |b| self.log.partition_point(|e| e.end <= b.from));
        let sets = self.log.get(start..self.entries_upto(from)).unwrap_or_default();
        Some(Footing { base, sets: sets.iter().map(|e| e.set.clone()).collect(), from, count })
    }

    /// Whether row `offset` is in a set whose bits are still on their way to `latest`.
    fn is_unpoured(&self, offset: u32) -> bool {
        self.unpoured.iter().any(|(_, set)| set.contains(offset))
    }

    fn end_of(&self, offset: u32) -> CommitTs {
        let found = self.log.iter().find(|e| e.set.contains(offset));
        // A row of `latest` that no entry holds is in the base.
        found.map_or_else(|| self.floor, |e| e.end)
    }
}

impl Footing {
    /// The bitmap, of at least `words` words; shared when it is there already.
    fn build(self, words: usize) -> Bitmap {
        let Self { base, sets, from, count } = self;
        match base {
            Some(base) if base.from == from && base.bits.len() >= words => base,
            base => {
                let old = base.as_ref().map_or(&[][..], |b| &b.bits);
                let mut bits = Vec::with_capacity(words.max(old.len()));
                bits.extend_from_slice(old);
                bits.resize(words.max(old.len()), 0);
                for set in &sets {
                    add(&mut bits, set);
                }
                Bitmap { from, bits: bits.into(), count }
            }
        }
    }
}

/// Sets the bits of `set`, whose offsets are below the container's rows.
fn add(bits: &mut Vec<u64>, set: &DeleteSet) {
    let words = set.max().map_or(0, |max| max as usize / 64 + 1);
    if bits.len() < words {
        bits.resize(words, 0);
    }
    match set.as_long_range() {
        Some(range) => bitmap::set_range(bits, range.start as usize..range.end as usize),
        None => set.iter().for_each(|offset| bitmap::set(bits, offset as usize)),
    }
}

impl DeleteLog {
    /// The log of a container that has `rows` rows, none deleted.
    #[must_use]
    pub fn new(rows: u32) -> Self {
        Self::with_rows(rows, rows)
    }

    /// The log of a container that grows to at most `capacity` rows and has none yet; see [`DeleteLog::cover`].
    #[must_use]
    pub fn growing(capacity: u32) -> Self {
        Self::with_rows(capacity, 0)
    }

    fn with_rows(capacity: u32, rows: u32) -> Self {
        Self {
            capacity,
            rows: AtomicU32::new(rows),
            latest: LatestBits::new(capacity),
            unpoured: AtomicBool::new(false),
            state: RwLock::default(),
            folding: Mutex::new(()),
            dead_steps: AtomicU64::new(0),
        }
    }

    /// The container has at least `rows` rows from here on; to be called before they are published.
    pub fn cover(&self, rows: u32) {
        self.rows.fetch_max(rows.min(self.capacity), Ordering::Release);
    }

    /// Words of a bitmap that covers the rows of now, up to the end of a block of a growing container.
    fn words(&self) -> usize {
        let rows = self.rows.load(Ordering::Acquire);
        if rows == self.capacity {
            return bitmap::words(rows as usize);
        }
        bitmap::words(rows.next_multiple_of(limits::DELTA_BLOCK_ROWS) as usize)
    }

    /// The rows of `set` are deleted from `ts` on. Only for the holder of the commit lock, in commit order, before `ts`
    /// is applied. Rows that were deleted before keep their end. Time: 2 ns a row; a long unbroken range far less.
    pub fn record(&self, ts: CommitTs, set: &DeleteSet) {
        debug_assert!(
            set.max().is_none_or(|max| max < self.capacity),
            "deleted row {:?} of {}",
            set.max(),
            self.capacity
        );
        if set.is_empty() {
            return;
        }
        let mut state = self.write();
        debug_assert!(state.log.last().map_or(state.floor, |e| e.end) <= ts, "deletes come in commit order");
        let known = state.unpoured.iter().any(|(_, unpoured)| unpoured.first_common(set).is_some());
        let added = match set.as_long_range() {
            Some(range) => self.latest.set_range(range),
            None => set.iter().filter(|&offset| self.latest.set(offset)).count() as u64,
        };
        if added == 0 {
            return;
        }
        let set = if added == set.len() as u64 && !known { set.clone() } else { self.new_rows(&state, set) };
        state.push(ts, set);
    }

    /// The rows of `set`, which the caller has proved to be live and will have proved once more when it makes the
    /// `decision`, are deleted once that is made. Outside the commit lock; from here on until [`DeleteLog::pour`] or
    /// [`DeleteLog::withdraw`], which are to be called there too, readers of this container take longer.
    pub fn intend(&self, decision: &Decision, set: &DeleteSet) {
        if set.is_empty() {
            return;
        }
        let mut state = self.state.write();
        state.intents.push(decision, set.clone());
        // Before the decision is made, and so before *applied* is published: who reads at its timestamp sees it.
        self.unpoured.store(true, Ordering::Release);
    }

    /// Takes back what waits for `decision`, which is not made and will not be.
    pub fn withdraw(&self, decision: &Decision) {
        let mut state = self.state.write();
        state.intents.withdraw(decision);
        self.lower_flag(&state);
    }

    /// Whether a commit's intents stand here, decided or not.
    #[cfg(test)]
    pub(crate) fn has_intents(&self) -> bool {
        !self.state.read().intents.is_empty()
    }

    /// Sets the bits of intents that are decided in `latest`. Holds the lock for a microsecond at a time.
    pub fn pour(&self) {
        if !self.unpoured.load(Ordering::Acquire) {
            return;
        }
        let sets = self.read().unpoured.clone();
        for (_, set) in &sets {
            set.for_each_chunk(|chunk, words| {
                let _one_writer = self.state.write();
                self.latest.set_chunk(chunk, words);
            });
        }
        let mut state = self.state.write();
        state.unpoured.retain(|(ts, _)| sets.iter().all(|(poured, _)| poured != ts));
        self.lower_flag(&state);
    }

    /// Where nothing is left that bits do not tell, readers need not look for it.
    fn lower_flag(&self, state: &State) {
        if state.unpoured.is_empty() && state.intents.is_empty() {
            self.unpoured.store(false, Ordering::Release);
        }
    }

    /// The state to read, with all that is decided in its log.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        let state = self.state.read();
        if !state.intents.any_decided() {
            return state;
        }
        drop(state);
        RwLockWriteGuard::downgrade(self.write())
    }

    /// The state to be changed, with all that is decided in its log.
    fn write(&self) -> RwLockWriteGuard<'_, State> {
        let mut state = self.state.write();
        state.settle();
        state
    }

    /// Whether row `offset` was ever deleted.
    #[inline]
    fn is_known(&self, offset: u32) -> bool {
        // In this order: a bit that is still off after the flag was is off for good.
        let unpoured = self.unpoured.load(Ordering::Acquire);
        self.latest.get(offset) || (unpoured && self.is_known_slow(offset))
    }

    #[cold]
    fn is_known_slow(&self, offset: u32) -> bool {
        let state = self.read();
        // Poured meanwhile, perhaps.
        state.is_unpoured(offset) || self.latest.get(offset)
    }

    /// The rows of `set` that neither the log nor the base holds. Rare: a commit deletes live rows only.
    fn new_rows(&self, state: &State, set: &DeleteSet) -> DeleteSet {
        let known = |offset| {
            state.log.iter().any(|e| e.set.contains(offset)) || state.base().is_some_and(|b| has_bit(&b.bits, offset))
        };
        set.iter().filter(|&offset| offset < self.capacity && !known(offset)).collect()
    }

    /// For recovery: the rows of `set` were deleted at `ts` or before. Only on a log without deletes.
    pub fn restore(&self, ts: CommitTs, set: &DeleteSet) {
        if set.is_empty() {
            return;
        }
        let mut state = self.state.write();
        debug_assert!(state.log.is_empty() && state.folded.is_empty(), "restored twice");
        let mut bits = vec![0; self.words()];
        add(&mut bits, set);
        let count = set.iter().filter(|&offset| self.latest.set(offset)).count() as u64;
        state.count = count;
        state.floor = ts;
        state.folded.push(Bitmap { from: ts, bits: bits.into(), count });
    }

    /// Whether row `offset` is deleted for a snapshot at `at`. Free of locks for a row that was never deleted.
    #[inline]
    #[must_use]
    pub fn is_deleted(&self, offset: u32, at: CommitTs) -> bool {
        self.is_known(offset) && self.is_deleted_slow(offset, at)
    }

    #[cold]
    fn is_deleted_slow(&self, offset: u32, at: CommitTs) -> bool {
        let state = self.read();
        let upto = state.entries_upto(at);
        if upto == state.log.len() && state.floor <= at {
            return true;
        }
        let base = state.folded_at(at);
        if base.is_some_and(|b| has_bit(&b.bits, offset)) {
            return true;
        }
        let start = base.map_or(0, |b| state.log.partition_point(|e| e.end <= b.from));
        state.log.get(start..upto).unwrap_or_default().iter().any(|e| e.set.contains(offset))
    }

    /// Whether row `offset` is deleted as of the last commit applied.
    #[inline]
    #[must_use]
    pub fn is_deleted_now(&self, offset: u32) -> bool {
        self.is_known(offset)
    }

    /// When row `offset` was deleted; [`CommitTs::INFINITY`] while it is live. After a fold this may be later than the
    /// truth, but never so that a pinned snapshot could tell.
    #[must_use]
    pub fn end_of(&self, offset: u32) -> CommitTs {
        if !self.is_known(offset) {
            return CommitTs::INFINITY;
        }
        self.read().end_of(offset)
    }

    /// Some row of `set` that is deleted as of now.
    #[must_use]
    pub fn first_deleted(&self, set: &DeleteSet) -> Option<u32> {
        set.iter().find(|&offset| self.is_known(offset))
    }

    /// Some row of `set` that was deleted after `after`.
    #[must_use]
    pub fn first_deleted_after(&self, set: &DeleteSet, after: CommitTs) -> Option<u32> {
        let state = self.read();
        let seen = state.entries_upto(after);
        state.log.get(seen..).unwrap_or_default().iter().find_map(|e| e.set.first_common(set))
    }

    /// As [`DeleteLog::first_deleted_after`], for as long as `left` allows; `None` when it did not suffice.
    #[must_use]
    pub fn find_deleted_after(&self, set: &DeleteSet, after: CommitTs, left: &mut Lookups) -> Option<Option<u32>> {
        if !left.spend(Lookups::OF_A_LOG) {
            return None;
        }
        let state = self.read();
        for entry in state.log.get(state.entries_upto(after)..).unwrap_or_default() {
            if !left.spend(entry.set.lookups_with(set)) {
                return None;
            }
            let common = entry.set.first_common(set);
            if common.is_some() {
                return Some(common);
            }
        }
        Some(None)
    }

    /// The rows deleted for a snapshot at `at` as bits, row 0 the lowest bit of word 0; `None` if there are none. The
    /// bits cover at least the rows the container had before this call. Repeated calls share one bitmap.
    #[must_use]
    pub fn bitmap_at(&self, at: CommitTs) -> Option<Arc<[u64]>> {
        // Before the lock: a row is covered before it can be deleted.
        let words = self.words();
        let footing = self.read().footing(at)?;
        let shared = footing.base.as_ref().is_some_and(|b| b.from == footing.from && b.bits.len() >= words);
        let built = footing.build(words);
        let bits = Arc::clone(&built.bits);
        if !shared {
            self.remember(built);
        }
        Some(bits)
    }

    fn remember(&self, built: Bitmap) {
        let mut state = self.state.write();
        // A commit may delete in two steps with one timestamp: a bitmap made in between must not stay.
        if state.effective(built.from.max(state.floor)) != Some((built.from, built.count)) {
            return;
        }
        state.recent.retain(|b| b.from != built.from);
        if state.recent.len() >= limits::DELETE_LOG_RECENT_BITMAPS {
            let oldest = state.recent.iter().enumerate().min_by_key(|(_, b)| b.from).map_or(0, |(i, _)| i);
            state.recent.swap_remove(oldest);
        }
        state.recent.push(built);
    }

    /// The rows deleted for a snapshot at `at` as a set: what a checkpoint writes and [`DeleteLog::restore`] takes.
    #[must_use]
    pub fn set_at(&self, at: CommitTs) -> DeleteSet {
        let words = self.words();
        // Not kept for readers: a checkpoint asks every container, once.
        let footing = self.read().footing(at);
        footing.map_or_else(DeleteSet::empty, |footing| DeleteSet::from_words(&footing.build(words).bits))
    }

    /// Rows deleted for a snapshot at `at`.
    #[must_use]
    pub fn count_at(&self, at: CommitTs) -> u64 {
        self.read().effective(at).map_or(0, |(_, count)| count)
    }

    /// Rows deleted after `at`, as of now.
    #[must_use]
    pub fn count_after(&self, at: CommitTs) -> u64 {
        let state = self.read();
        state.count - state.effective(at).map_or(0, |(_, count)| count)
    }

    /// Rows deleted as of now.
    #[must_use]
    pub fn count_now(&self) -> u64 {
        self.read().count
    }

    /// Readers of ranges have stepped over `steps` rows that were dead for them.
    pub fn note_dead_steps(&self, steps: u64) {
        self.dead_steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Whether readers have stepped over `steps` dead rows, and more than are worth a file: a merge that leaves them
    /// out would have taken less.
    #[must_use]
    pub fn is_stepped_over(&self, steps: u64) -> bool {
        self.dead_steps.load(Ordering::Relaxed) >= steps.max(limits::DEAD_STEPS_MIN) && self.count_now() > 0
    }

    /// The deletes with `after` < end <= `upto`, in commit order: what a merge that read at `after` has to carry.
    #[must_use]
    pub fn between(&self, after: CommitTs, upto: CommitTs) -> Vec<(CommitTs, DeleteSet)> {
        let state = self.read();
        let range = state.entries_upto(after)..state.entries_upto(upto);
        let entries = state.log.get(range).unwrap_or_default();
        let folded = state.base().filter(|b| b.from > after && b.from <= upto);
        let folded = folded.map(|b| (b.from, DeleteSet::from_words(&b.bits)));
        folded.into_iter().chain(entries.iter().map(|e| (e.end, e.set.clone()))).collect()
    }

    /// When the last delete happened; [`CommitTs::ZERO`] if none did.
    #[must_use]
    pub fn last_delete_ts(&self) -> CommitTs {
        let state = self.read();
        state.log.last().map_or_else(|| state.floor, |e| e.end)
    }

    /// Whether the log is long enough for [`DeleteLog::fold`] to be worth its while.
    #[must_use]
    pub fn wants_fold(&self) -> bool {
        self.read().log.len() >= limits::DELETE_LOG_FOLD_ENTRIES
    }

    /// Keeps apart only what the snapshots at `needed` can tell apart: the timestamps of all pinned snapshots,
    /// ascending, and last the present, at or below the last commit applied. No snapshot may stand, or be taken later,
    /// below the present at another timestamp.
    ///
    /// Runs beside readers and the writer; holds the lock only to swap the result in.
    pub fn fold(&self, needed: &[CommitTs]) {
        let (Some(&oldest), Some(&present)) = (needed.first(), needed.last()) else { return };
        debug_assert!(needed.is_sorted());
        self.pour();
        let _one = self.folding.lock();
        let words = self.words();
        let (old, ends, footings) = {
            let state = self.read();
            let old = state.log.get(..state.entries_upto(present)).unwrap_or_default().to_vec();
            let footing = |at: CommitTs| if at < state.floor { None } else { state.footing(at) };
            (old, state.folded.iter().map(|b| b.from).collect::<Vec<_>>(), [footing(oldest), footing(present)])
        };
        let below = old.partition_point(|e| e.end <= oldest);
        let kept = combine(old.get(below..).unwrap_or_default(), needed);
        let floor = footings.first().and_then(Option::as_ref).map(|f| f.from);
        let mut made: Vec<Bitmap> = footings.into_iter().flatten().map(|f| f.build(words)).collect();
        made.dedup_by_key(|b| b.from);
        if below == 0 && kept.len() == old.len() && made.iter().all(|b| ends.contains(&b.from)) {
            return;
        }
        let mut state = self.state.write();
        let wanted: Vec<Bitmap> = state
            .folded
            .iter()
            .filter(|b| kept.iter().any(|e| e.end == b.from) && made.iter().all(|m| m.from != b.from))
            .cloned()
            .collect();
        made.extend(wanted);
        made.sort_by_key(|b| b.from);
        let dropped_bitmaps = std::mem::replace(&mut state.folded, made);
        let floor = floor.unwrap_or(state.floor);
        state.floor = floor;
        state.recent.retain(|b| b.from > floor);
        let dropped_entries: Vec<Entry> = state.log.splice(..old.len(), kept).collect();
        let room = 2 * state.log.len();
        state.log.shrink_to(room);
        drop(state);
        drop((dropped_bitmaps, dropped_entries));
    }

    /// Bytes held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let state = self.read();
        let bitmaps = state.folded.iter().chain(&state.recent).map(|b| size_of_val(b.bits.as_ref())).sum::<usize>();
        let sets = state.log.iter().map(|e| e.set.heap_bytes()).sum::<usize>();
        size_of::<Self>()
            + self.latest.bytes()
            + bitmaps
            + sets
            + state.intents.heap_bytes()
            + state.log.capacity() * size_of::<Entry>()
    }
}

/// One entry for all those of `entries` (ascending, above the first of `needed`) that end after one needed timestamp
/// and at or before the next; it ends with the last of them.
fn combine(entries: &[Entry], needed: &[CommitTs]) -> Vec<Entry> {
    let mut rest = entries;
    let mut out = Vec::new();
    for &upto in needed {
        let (group, later) = rest.split_at(rest.partition_point(|e| e.end <= upto));
        rest = later;
        match group {
            [] => {}
            [one] => out.push(one.clone()),
            [.., last] => {
                let set = DeleteSet::union(group.iter().map(|e| &e.set));
                out.push(Entry { end: last.end, set, count: last.count });
            }
        }
    }
    out
}

#[inline]
fn has_bit(bits: &[u64], offset: u32) -> bool {
    bits.get(offset as usize / 64).is_some_and(|word| word >> (offset % 64) & 1 == 1)
}
