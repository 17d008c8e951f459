//! The marks *applied* and *visible*, and registered snapshots.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ids::CommitTs;
use crate::version::Root;

/// Which mark a transaction starts at (contract 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// The last commit that is durable under its mode, with all before it.
    #[default]
    Visible,
    /// The last commit in memory: for the engine's own second runs of a statement. What is read there may be told to nobody
    /// before *visible* has reached it.
    Applied,
}

/// How many registered snapshots stand at a timestamp.
#[derive(Clone, Copy, Debug, Default)]
struct Pins {
    readers: usize,
    writers: usize,
}

#[derive(Debug)]
struct State {
    applied: CommitTs,
    visible: CommitTs,
    /// Roots in `valid_from` order; the first is the newest at or below *visible*.
    roots: VecDeque<Arc<Root>>,
    pins: BTreeMap<CommitTs, Pins>,
}

/// The database's time line. One short lock, taken for a snapshot, a commit's publication and a mark's advance.
#[derive(Debug)]
pub struct Timeline {
    state: Mutex<State>,
}

/// A registered snapshot: timestamp and root. While it lives, whatever it can read stays.
#[derive(Debug)]
pub struct Snapshot {
    ts: CommitTs,
    root: Arc<Root>,
    writes: bool,
    timeline: Arc<Timeline>,
}

impl Snapshot {
    /// Commits at or before it are seen.
    #[must_use]
    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Tables and containers as of the snapshot.
    #[must_use]
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut state = self.timeline.state.lock();
        let Some(pins) = state.pins.get_mut(&self.ts) else { return };
        if self.writes {
            pins.writers -= 1;
        } else {
            pins.readers -= 1;
        }
        if pins.readers + pins.writers == 0 {
            state.pins.remove(&self.ts);
        }
    }
}

impl Timeline {
    /// A time line whose present is `root` at `at`, applied and visible.
    #[must_use]
    pub fn new(root: Arc<Root>, at: CommitTs) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { applied: at, visible: at, roots: VecDeque::from([root]), pins: BTreeMap::new() }),
        })
    }

    /// Takes and registers a snapshot in one step. `writes` says that a transaction may name rows of it in a commit, so
    /// that forwarding is kept for it (contract 3).
    #[must_use]
    pub fn snapshot(self: &Arc<Self>, base: Base, writes: bool) -> Arc<Snapshot> {
        let mut state = self.state.lock();
        let ts = match base {
            Base::Visible => state.visible,
            Base::Applied => state.applied,
        };
        let root = state.root_at(ts);
        let pins = state.pins.entry(ts).or_default();
        if writes {
            pins.writers += 1;
        } else {
            pins.readers += 1;
        }
        Arc::new(Snapshot { ts, root, writes, timeline: self.clone() })
    }

    /// The newest root and the mark *applied*. Stable only for a holder of the commit lock.
    #[must_use]
    pub fn present(&self) -> (CommitTs, Arc<Root>) {
        let state = self.state.lock();
        (state.applied, state.newest())
    }

    /// Moves *applied* to `ts`, with `root` if the commit, install or DDL made one. Called under the commit lock, when all
    /// of it is in memory.
    pub fn apply(&self, ts: CommitTs, root: Option<Arc<Root>>) {
        let mut state = self.state.lock();
        debug_assert!(ts == state.applied.next());
        state.applied = ts;
        if let Some(root) = root {
            debug_assert!(root.valid_from == ts);
            state.roots.push_back(root);
        }
    }

    /// Puts `root`, which holds the same rows at every timestamp, in the newest one's place: a freeze.
    pub fn replace_newest(&self, root: Arc<Root>) {
        let mut state = self.state.lock();
        debug_assert!(state.roots.back().is_some_and(|newest| newest.valid_from == root.valid_from));
        state.roots.pop_back();
        state.roots.push_back(root);
    }

    /// Moves *visible* up to `ts` (never back) and forgets roots that no new snapshot can use. Their versions die as soon
    /// as no registered snapshot holds them.
    pub fn advance_visible(&self, ts: CommitTs) {
        let mut dead = Vec::new();
        let mut state = self.state.lock();
        // A record may be durable before its commit has finished applying.
        let ts = ts.min(state.applied);
        if ts <= state.visible {
            return;
        }
        state.visible = ts;
        while state.roots.get(1).is_some_and(|root| root.valid_from <= ts) {
            dead.extend(state.roots.pop_front());
        }
        drop(state);
        drop(dead);
    }

    /// The mark *visible*.
    #[must_use]
    pub fn visible(&self) -> CommitTs {
        self.state.lock().visible
    }

    /// The mark *applied*.
    #[must_use]
    pub fn applied(&self) -> CommitTs {
        self.state.lock().applied
    }

    /// What delete logs must be able to tell apart, ascending: registered snapshots at or below *visible*, and *visible* as the
    /// last. No snapshot is taken below *visible* any more; what ended above it stays as it is.
    #[must_use]
    pub fn needed(&self) -> Vec<CommitTs> {
        let state = self.state.lock();
        let mut needed: Vec<CommitTs> = state.pins.range(..state.visible).map(|(ts, _)| *ts).collect();
        needed.push(state.visible);
        needed
    }

    /// The oldest timestamp at which a transaction that may write stands, or at which one may yet begin: *visible*.
    #[must_use]
    pub fn oldest_writer(&self) -> CommitTs {
        let state = self.state.lock();
        let standing = state.pins.iter().find(|(_, pins)| pins.writers > 0).map(|(ts, _)| *ts);
        standing.map_or(state.visible, |ts| ts.min(state.visible))
    }

    /// The oldest registered snapshot, if there is one.
    #[must_use]
    pub fn oldest_snapshot(&self) -> Option<CommitTs> {
        self.state.lock().pins.keys().next().copied()
    }
}

impl State {
    fn newest(&self) -> Arc<Root> {
        #[expect(clippy::expect_used, reason = "`roots` starts with one and only shrinks while there are two")]
        self.roots.back().expect("a root").clone()
    }

    fn root_at(&self, ts: CommitTs) -> Arc<Root> {
        self.roots.iter().rev().find(|root| root.valid_from <= ts).or(self.roots.front()).cloned().unwrap_or_default()
    }
}
