//! Where rows went that a merge moved (contract 3; `docs/design/0002-forwarding.md`).
//!
//! Comes in: per merge, which rows of each input survived and from which input each output row came. Goes out: old
//! [`RowRef`] to new, or gone.
//!
//! 1. A merge reads *streams*: a run is one (its segments follow one another), a delta is one. Rows leave a stream in
//!    order, so the k-th survivor of a stream is the k-th output row that came from it.
//! 2. Per input container, a bitmap with rank turns an offset into k; a delta that is not in key order has a
//!    permutation.
//! 3. The [`Interleaving`] turns (stream, k) into a position in the output, the output's list into container and
//!    offset.
//! 4. [`Forwardings`] keeps the tables of installed merges while a transaction may still name rows from before. An
//!    install, which holds the commit lock, only adds to a list; who looks first files what is in it by input.
//!
//! Invariants: a container is an input of at most one table per row; tables never change; ids are never reused, so
//! chains end. It does not own: whether a row is live where it went, or when a writer has ended.

use std::sync::Arc;

use hashbrown::HashMap;
use mainstem_kernels::bitmap::Rank;
use parking_lot::{Mutex, RwLock};

use crate::ids::{CommitTs, ContainerId, RowRef, TableId};

mod interleaving;

use interleaving::Interleaving;

#[cfg(test)]
mod tests;

/// What became of a row that a merge read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// It lives there now.
    To(RowRef),
    /// It was deleted at the merge's snapshot, so it was dropped.
    Gone,
}

/// Which rows of an input survived, in the order in which they left it.
#[derive(Debug)]
pub enum Survivors {
    /// Bit `i` is row `first + i`; survivors left in offset order.
    InOrder(Rank),
    /// Entry `i` is row `first + i`: its number among this input's survivors, or [`Survivors::GONE`].
    Permuted(Box<[u32]>),
}

impl Survivors {
    /// Entry of a row that did not survive.
    pub const GONE: u32 = u32::MAX;

    fn rows(&self) -> usize {
        match self {
            Self::InOrder(rank) => rank.len(),
            Self::Permuted(places) => places.len(),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::InOrder(rank) => rank.ones() as u64,
            Self::Permuted(places) => places.iter().filter(|p| **p != Self::GONE).count() as u64,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::InOrder(rank) => rank.bytes(),
            Self::Permuted(places) => size_of_val(places.as_ref()),
        }
    }
}

/// A container that a merge read rows from.
#[derive(Debug)]
pub struct ForwardedInput {
    /// The container.
    pub container: ContainerId,
    /// The first offset that was read.
    pub first: u32,
    /// The stream its rows left in.
    pub stream: usize,
    /// Which of its rows survived.
    pub survivors: Survivors,
}

/// An input with what [`ForwardingTable::forward`] needs beside it.
#[derive(Debug)]
struct Input {
    from: ForwardedInput,
    /// Survivors of the same stream in containers before this one.
    before: u64,
}

/// Output segment: rows from position `start` on are in `container`, from offset 0.
#[derive(Clone, Copy, Debug)]
struct Output {
    start: u64,
    container: ContainerId,
}

/// Old row to new, for one merge. Segments that the merge kept as they are do not appear in it: their rows did not
/// move.
#[derive(Debug)]
pub struct ForwardingTable {
    /// By container, ascending.
    inputs: Vec<Input>,
    interleaving: Interleaving,
    /// By start, ascending.
    outputs: Vec<Output>,
}

/// Collects a [`ForwardingTable`] while a merge runs.
#[derive(Debug)]
pub struct ForwardingBuilder {
    interleaving: Interleaving,
}

impl ForwardingBuilder {
    /// For a merge of `streams` streams.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        Self { interleaving: Interleaving::new(streams) }
    }

    /// The next `rows` output rows come from `stream`.
    pub fn push(&mut self, stream: usize, rows: usize) {
        self.interleaving.push(stream, rows);
    }

    /// The table. `inputs` stand stream by stream in the order in which they were read; `outputs` are the written
    /// segments with their rows, in order.
    #[must_use]
    pub fn finish(self, inputs: Vec<ForwardedInput>, outputs: &[(ContainerId, u32)]) -> ForwardingTable {
        let mut left = vec![0u64; self.interleaving.streams()];
        let mut inputs: Vec<Input> = inputs
            .into_iter()
            .map(|from| {
                let count = from.survivors.count();
                let before = left.get(from.stream).copied().unwrap_or(0);
                if let Some(left) = left.get_mut(from.stream) {
                    *left += count;
                }
                Input { from, before }
            })
            .collect();
        debug_assert_eq!(
            left.iter().sum::<u64>(),
            self.interleaving.len(),
            "every output row is some input's survivor"
        );
        debug_assert_eq!(outputs.iter().map(|(_, rows)| u64::from(*rows)).sum::<u64>(), self.interleaving.len());
        inputs.sort_unstable_by_key(|input| input.from.container);
        let mut start = 0;
        let outputs = outputs
            .iter()
            .map(|&(container, rows)| {
                let output = Output { start, container };
                start += u64::from(rows);
                output
            })
            .collect();
        ForwardingTable { inputs, interleaving: self.interleaving.finish(), outputs }
    }
}

impl ForwardingTable {
    /// Where `row` went; `None` if it was not read by this merge.
    #[must_use]
    pub fn forward(&self, row: RowRef) -> Option<Forward> {
        let at = self.inputs.binary_search_by_key(&row.container(), |input| input.from.container).ok()?;
        let Input { from, before } = self.inputs.get(at)?;
        let index = row.offset().checked_sub(from.first)? as usize;
        if index >= from.survivors.rows() {
            return None;
        }
        let number = match &from.survivors {
            Survivors::InOrder(rank) => rank.get(index).then(|| rank.rank(index) as u64),
            Survivors::Permuted(places) => {
                places.get(index).filter(|place| **place != Survivors::GONE).map(|place| u64::from(*place))
            }
        };
        let Some(number) = number else { return Some(Forward::Gone) };
        self.interleaving
            .select(from.stream, before + number)
            .and_then(|position| self.row_at(position))
            .map(Forward::To)
    }

    /// The row at `position` of the output.
    fn row_at(&self, position: u64) -> Option<RowRef> {
        let after = self.outputs.partition_point(|output| output.start <= position);
        let output = self.outputs.get(after.checked_sub(1)?)?;
        Some(RowRef::new(output.container, (position - output.start) as u32))
    }

    /// Whether it forwards rows of `container`.
    #[must_use]
    pub fn has_input(&self, container: ContainerId) -> bool {
        self.inputs.binary_search_by_key(&container, |input| input.from.container).is_ok()
    }

    /// The containers whose rows it forwards, ascending.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = ContainerId> {
        self.inputs.iter().map(|input| input.from.container)
    }

    /// Bytes held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let inputs: usize = self.inputs.iter().map(|input| size_of::<Input>() + input.from.survivors.bytes()).sum();
        size_of::<Self>() + inputs + self.interleaving.bytes() + size_of_val(self.outputs.as_slice())
    }
}

/// The forwarding tables of installed merges.
#[derive(Debug, Default)]
pub struct Forwardings {
    state: RwLock<Registered>,
    /// Added and not in `state` yet. Taken from only under the write lock of `state`.
    fresh: Mutex<Vec<Installed>>,
}

#[derive(Debug, Default)]
struct Registered {
    /// In install order.
    tables: Vec<Installed>,
    /// The tables that read a container: one, or with stepwise installs several that read ranges of it.
    by_input: HashMap<ContainerId, Vec<Arc<ForwardingTable>>>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Installed {
    at: CommitTs,
    table: TableId,
    forwarding: Arc<ForwardingTable>,
}

impl Registered {
    fn step(&self, row: RowRef) -> Option<Forward> {
        self.by_input.get(&row.container())?.iter().find_map(|table| table.forward(row))
    }

    fn file(&mut self, installed: Installed) {
        self.bytes += installed.forwarding.memory_bytes();
        for input in installed.forwarding.inputs() {
            self.by_input.entry(input).or_default().push(installed.forwarding.clone());
        }
        self.tables.push(installed);
    }

    fn forget(&mut self, installed: &Installed) {
        for input in installed.forwarding.inputs() {
            if let Some(tables) = self.by_input.get_mut(&input) {
                tables.retain(|table| !Arc::ptr_eq(table, &installed.forwarding));
                if tables.is_empty() {
                    self.by_input.remove(&input);
                }
            }
        }
        self.bytes -= installed.forwarding.memory_bytes();
    }
}

impl Forwardings {
    /// Keeps `forwarding`, of a merge of `table` installed at `installed_at`. To be called under the commit lock,
    /// before the install is applied.
    pub fn add(&self, installed_at: CommitTs, table: TableId, forwarding: Arc<ForwardingTable>) {
        self.fresh.lock().push(Installed { at: installed_at, table, forwarding });
    }

    /// Files what was added. Whoever finds nothing to file waits, at `state`, for whoever is filing.
    fn file(&self) {
        if self.fresh.lock().is_empty() {
            return;
        }
        let mut state = self.state.write();
        let fresh = std::mem::take(&mut *self.fresh.lock());
        fresh.into_iter().for_each(|installed| state.file(installed));
    }

    /// Where `row` lives in a version whose containers are those that are `still_there`. `None` if it is gone, or left
    /// a container without a forwarding: both are conflicts (contract 3).
    #[must_use]
    pub fn resolve(&self, row: RowRef, still_there: impl Fn(ContainerId) -> bool) -> Option<RowRef> {
        if still_there(row.container()) {
            return Some(row);
        }
        self.file();
        let state = self.state.read();
        let mut row = row;
        loop {
            let Some(Forward::To(next)) = state.step(row) else { return None };
            if still_there(next.container()) {
                return Some(next);
            }
            row = next;
        }
    }

    /// Forgets the tables that no writer needs. `oldest_writer` is the oldest timestamp at which a snapshot stands
    /// whose transaction may still write, or at which one may yet be taken (the mark *visible* while it is behind
    /// *applied*); `None` if there is neither.
    pub fn prune(&self, oldest_writer: Option<CommitTs>) {
        self.file();
        let unneeded = |installed: &Installed| oldest_writer.is_none_or(|writer| installed.at <= writer);
        if !self.state.read().tables.iter().any(unneeded) {
            return;
        }
        let mut state = self.state.write();
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut state.tables).into_iter().partition(unneeded);
        state.tables = kept;
        gone.iter().for_each(|installed| state.forget(installed));
        drop(state);
        drop(gone);
    }

    /// Forgets the tables of a dropped table.
    pub fn forget_table(&self, table: TableId) {
        self.file();
        let mut state = self.state.write();
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.tables).into_iter().partition(|installed| installed.table == table);
        state.tables = kept;
        gone.iter().for_each(|installed| state.forget(installed));
    }

    /// How many merges it has forwarding for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.file();
        self.state.read().tables.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.file();
        self.state.read().bytes
    }
}
