//! The marks *applied* and *visible*, and registered snapshots.
//!
//! Snapshots are taken by every statement of every thread, the marks move with every commit, and roots change rarely.
//! So each thread registers its snapshots with a stripe of its own, under that stripe's lock, and shares no other
//! memory that is written to.
//!
//! 1. A stripe may know the roots that snapshots at the marks stand on. Whoever changes one of these roots holds all
//!    stripes meanwhile and takes what they know away: while a stripe is held, what it knows holds.
//! 2. A snapshot holds its stripe, reads the mark, and registers. It is one step: the mark may move on meanwhile, the
//!    root may not.
//! 3. Whoever asks what is registered reads *visible* first and then each stripe. A snapshot that a stripe does not
//!    show yet is taken after the look at it, and stands at or above the mark that was read.
//!
//! Locks: the roots, then stripes in order.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::ids::{CommitTs, TableId};
use crate::schema::TableSchema;
use crate::version::{Activity, Root, TableVersion};

/// Stripes of a time line: more than threads that are likely to run at once.
const STRIPES: usize = 32;

/// Which mark a transaction starts at (contract 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Base {
    /// The last commit that is durable under its mode, with all before it.
    #[default]
    Visible,
    /// The last commit in memory: for the engine's own second runs of a statement. What is read there may be told to
    /// nobody before *visible* has reached it.
    Applied,
}

/// How many registered snapshots stand at a timestamp.
#[derive(Clone, Copy, Debug)]
struct Pins {
    ts: CommitTs,
    readers: usize,
    writers: usize,
}

/// What views of a table at one root have in common.
#[derive(Debug)]
pub(super) struct ViewedTable {
    pub(super) schema: Arc<TableSchema>,
    pub(super) version: Arc<TableVersion>,
}

/// A root as the snapshots of one stripe share it.
#[derive(Debug)]
struct Held {
    root: Arc<Root>,
    /// Tables that were looked at, as the views of the stripe share them.
    tables: Mutex<Vec<Arc<ViewedTable>>>,
}

impl Held {
    fn new(root: Arc<Root>) -> Arc<Self> {
        Arc::new(Self { root, tables: Mutex::default() })
    }
}

/// What one stripe knows.
#[derive(Debug, Default)]
struct Pinned {
    /// The root at *visible*, if it is known.
    at_visible: Option<Arc<Held>>,
    /// The newest root, if it is known.
    newest: Option<Arc<Held>>,
    /// Ascending by timestamp.
    pins: Vec<Pins>,
}

/// Registered snapshots of some threads, who is at work, of all threads, and how many snapshots were taken to read
/// alone. Alone in its cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe(Mutex<Pinned>, Arc<Activity>, AtomicU64);

/// The database's time line.
#[derive(Debug)]
pub struct Timeline {
    applied: AtomicU64,
    visible: AtomicU64,
    /// Roots in `valid_from` order; the first is the newest at or below *visible*. The marks move under this lock.
    roots: Mutex<VecDeque<Arc<Root>>>,
    stripes: Box<[Arc<Stripe>]>,
    activity: Arc<Activity>,
}

/// A registered snapshot: timestamp and root. While it lives, whatever it can read stays.
#[derive(Debug)]
pub struct Snapshot {
    ts: CommitTs,
    held: Arc<Held>,
    writes: bool,
    stripe: Arc<Stripe>,
}

impl Snapshot {
    /// Commits at or before it are seen.
    #[must_use]
    pub fn ts(&self) -> CommitTs {
        self.ts
    }

    /// Who is at work for users, at this snapshot and others.
    #[must_use]
    pub fn activity(&self) -> &Activity {
        &self.stripe.1
    }

    /// Tables and containers as of the snapshot.
    #[must_use]
    pub fn root(&self) -> &Arc<Root> {
        &self.held.root
    }

    /// A table of the snapshot for its views; `None` if it is not there.
    pub(super) fn table(&self, id: TableId) -> Option<Arc<ViewedTable>> {
        let mut tables = self.held.tables.lock();
        if let Some(known) = tables.iter().find(|table| table.schema.id == id) {
            return Some(known.clone());
        }
        let schema = self.held.root.catalog.table(id)?.clone();
        let version = self.held.root.tables.get(&id)?.clone();
        let table = Arc::new(ViewedTable { schema, version });
        tables.push(table.clone());
        Some(table)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.stripe.0.lock().unpin(self.ts, self.writes);
    }
}

impl Pinned {
    fn pin(&mut self, ts: CommitTs, writes: bool) {
        let at = match self.pins.binary_search_by_key(&ts, |pins| pins.ts) {
            Ok(at) => at,
            Err(at) => {
                self.pins.insert(at, Pins { ts, readers: 0, writers: 0 });
                at
            }
        };
        if let Some(pins) = self.pins.get_mut(at) {
            *if writes { &mut pins.writers } else { &mut pins.readers } += 1;
        }
    }

    fn unpin(&mut self, ts: CommitTs, writes: bool) {
        let Ok(at) = self.pins.binary_search_by_key(&ts, |pins| pins.ts) else { return };
        let Some(pins) = self.pins.get_mut(at) else { return };
        *if writes { &mut pins.writers } else { &mut pins.readers } -= 1;
        if pins.readers + pins.writers == 0 {
            self.pins.remove(at);
        }
    }
}

/// The stripe of the calling thread: threads take turns.
fn stripe_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static STRIPE: Cell<Option<usize>> = const { Cell::new(None) });
    STRIPE.with(|stripe| match stripe.get() {
        Some(number) => number,
        None => {
            let number = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES;
            stripe.set(Some(number));
            number
        }
    })
}

impl Timeline {
    /// A time line whose present is `root` at `at`, applied and visible.
    #[must_use]
    pub fn new(root: Arc<Root>, at: CommitTs) -> Arc<Self> {
        let activity = Arc::<Activity>::default();
        Arc::new(Self {
            applied: AtomicU64::new(at.0),
            visible: AtomicU64::new(at.0),
            roots: Mutex::new(VecDeque::from([root])),
            stripes: (0..STRIPES)
                .map(|_| Arc::new(Stripe(Mutex::default(), activity.clone(), AtomicU64::new(0))))
                .collect(),
            activity,
        })
    }

    /// Who is at work for users.
    #[must_use]
    pub fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Of each stripe, how many snapshots were taken by those who only read.
    pub(super) fn reads(&self) -> Vec<u64> {
        self.stripes.iter().map(|stripe| stripe.2.load(Ordering::Relaxed)).collect()
    }

    /// Takes and registers a snapshot in one step. `writes` says that a transaction may name rows of it in a commit, so
    /// that forwarding is kept for it (contract 3).
    #[must_use]
    pub fn snapshot(&self, base: Base, writes: bool) -> Arc<Snapshot> {
        Arc::new(self.take_snapshot(base, writes))
    }

    /// As [`Timeline::snapshot`], for one that is not shared.
    #[must_use]
    pub fn take_snapshot(&self, base: Base, writes: bool) -> Snapshot {
        let stripe = &self.stripes[stripe_of_thread()];
        let mut pinned = stripe.0.lock();
        let known = match base {
            Base::Visible => &pinned.at_visible,
            Base::Applied => &pinned.newest,
        };
        let held = match known {
            Some(held) => held.clone(),
            None => {
                drop(pinned);
                let roots = self.roots.lock();
                pinned = stripe.0.lock();
                let held = Held::new(match base {
                    Base::Visible => root_at(&roots, self.visible()),
                    Base::Applied => newest(&roots),
                });
                let known = match base {
                    Base::Visible => &mut pinned.at_visible,
                    Base::Applied => &mut pinned.newest,
                };
                *known = Some(held.clone());
                held
            }
        };
        // Only now: while the stripe is held this root stays the one at the mark, wherever that moves.
        let ts = match base {
            Base::Visible => self.visible(),
            Base::Applied => self.applied(),
        };
        pinned.pin(ts, writes);
        if !writes {
            // Nobody else counts while this stripe is held.
            stripe.2.store(stripe.2.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        drop(pinned);
        Snapshot { ts, held, writes, stripe: stripe.clone() }
    }

    /// The newest root and the mark *applied*. Stable only for a holder of the commit lock.
    #[must_use]
    pub fn present(&self) -> (CommitTs, Arc<Root>) {
        let roots = self.roots.lock();
        (self.applied(), newest(&roots))
    }

    /// Moves *applied* to `ts`, with `root` if the commit, install or DDL made one. Called under the commit lock, when
    /// all of it is in memory.
    pub fn apply(&self, ts: CommitTs, root: Option<Arc<Root>>) {
        debug_assert!(ts == self.applied().next());
        let mut roots = self.roots.lock();
        let Some(root) = root else { return self.applied.store(ts.0, Ordering::Release) };
        debug_assert!(root.valid_from == ts);
        let mut stripes = self.hold_all();
        roots.push_back(root);
        self.applied.store(ts.0, Ordering::Release);
        let known: Vec<_> = stripes.iter_mut().map(|stripe| stripe.newest.take()).collect();
        drop(stripes);
        drop(roots);
        drop(known);
    }

    /// Puts `root`, which holds the same rows at every timestamp, in the newest one's place: a freeze.
    pub fn replace_newest(&self, root: Arc<Root>) {
        let mut roots = self.roots.lock();
        debug_assert!(roots.back().is_some_and(|newest| newest.valid_from == root.valid_from));
        let mut stripes = self.hold_all();
        let replaced = roots.pop_back();
        roots.push_back(root);
        // The one at *visible* may be the newest.
        let known: Vec<_> = stripes.iter_mut().map(|stripe| (stripe.newest.take(), stripe.at_visible.take())).collect();
        drop(stripes);
        drop(roots);
        drop((replaced, known));
    }

    /// Moves *visible* up to `ts` (never back) and forgets roots that no new snapshot can use. Their versions die as
    /// soon as no registered snapshot holds them.
    pub fn advance_visible(&self, ts: CommitTs) {
        if ts <= self.visible() {
            return;
        }
        let mut roots = self.roots.lock();
        // A record may be durable before its commit has finished applying.
        let ts = ts.min(self.applied());
        if ts <= self.visible() {
            return;
        }
        if roots.get(1).is_none_or(|next| next.valid_from > ts) {
            return self.visible.store(ts.0, Ordering::Release);
        }
        let mut stripes = self.hold_all();
        self.visible.store(ts.0, Ordering::Release);
        let mut dead = Vec::new();
        while roots.get(1).is_some_and(|root| root.valid_from <= ts) {
            dead.extend(roots.pop_front());
        }
        let known: Vec<_> = stripes.iter_mut().map(|stripe| stripe.at_visible.take()).collect();
        drop(stripes);
        drop(roots);
        drop((dead, known));
    }

    /// As [`Timeline::advance_visible`], where no root is forgotten by it: in memory and at once, for a holder of the
    /// commit lock. Else nothing happens yet.
    pub fn advance_visible_within_root(&self, ts: CommitTs) {
        let roots = self.roots.lock();
        let ts = ts.min(self.applied());
        if ts > self.visible() && roots.get(1).is_none_or(|next| next.valid_from > ts) {
            self.visible.store(ts.0, Ordering::Release);
        }
    }

    /// All stripes, in order. Under the lock of the roots.
    fn hold_all(&self) -> Vec<MutexGuard<'_, Pinned>> {
        self.stripes.iter().map(|stripe| stripe.0.lock()).collect()
    }

    /// The mark *visible*.
    #[must_use]
    pub fn visible(&self) -> CommitTs {
        CommitTs(self.visible.load(Ordering::Acquire))
    }

    /// The mark *applied*.
    #[must_use]
    pub fn applied(&self) -> CommitTs {
        CommitTs(self.applied.load(Ordering::Acquire))
    }

    /// What delete logs must be able to tell apart, ascending: registered snapshots at or below *visible*, and
    /// *visible* as the last. No snapshot is taken below *visible* any more; what ended above it stays as it is.
    #[must_use]
    pub fn needed(&self) -> Vec<CommitTs> {
        let visible = self.visible();
        let mut needed = vec![visible];
        for stripe in &self.stripes {
            needed.extend(stripe.0.lock().pins.iter().map(|pins| pins.ts).take_while(|ts| *ts < visible));
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The oldest timestamp at which a transaction that may write stands, or at which one may yet begin: *visible*.
    #[must_use]
    pub fn oldest_writer(&self) -> CommitTs {
        let visible = self.visible();
        let oldest = |stripe: &Arc<Stripe>| {
            let pinned = stripe.0.lock();
            pinned.pins.iter().find(|pins| pins.writers > 0).map(|pins| pins.ts)
        };
        self.stripes.iter().filter_map(oldest).min().map_or(visible, |ts| ts.min(visible))
    }

    /// The oldest registered snapshot, if there is one.
    #[must_use]
    pub fn oldest_snapshot(&self) -> Option<CommitTs> {
        self.stripes.iter().filter_map(|stripe| stripe.0.lock().pins.first().map(|pins| pins.ts)).min()
    }
}

fn newest(roots: &VecDeque<Arc<Root>>) -> Arc<Root> {
    #[expect(clippy::expect_used, reason = "`roots` starts with one and only shrinks while there are two")]
    roots.back().expect("a root").clone()
}

fn root_at(roots: &VecDeque<Arc<Root>>, ts: CommitTs) -> Arc<Root> {
    roots.iter().rev().find(|root| root.valid_from <= ts).or(roots.front()).cloned().unwrap_or_default()
}
