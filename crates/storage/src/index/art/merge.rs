//! Several trees become one (Instant Loading, section 3.6.2): nodes of the same path are merged, by several threads,
//! and what only one tree has goes on as it is, found by the name that it has always had.
//!
//! 1. The pages of all trees go to the first one. From then on nothing that was there is changed: nodes in which trees
//!    meet are made anew, beside them, so that all threads may read all of it.
//! 2. A *meeting* is a group of nodes and leaves, of one tree each, whose keys begin alike. The path that all of them
//!    share ends where the first node branches, or two keys part. There the merged node branches: for each byte with
//!    what the nodes have for it, which is one child, or a meeting again. All of k trees meet at once: no node is
//!    copied twice. Where one of the nodes is of the largest kind, so is the merged one: each byte has a place, and
//!    nothing is sorted.
//! 3. The meetings at the root, and on as many levels below it as it takes to have [`INDEX_MERGE_PARTS`] of them, are
//!    *put off*: their places are noted. They are the parts of the work; threads take one after the other.
//! 4. Meetings deeper than recursion may go are put off within their part in the same way.
//! 5. In the end the nodes that were merged give their places back; a page without others goes.
//!
//! Keys that meet in their last byte are duplicates: the one of the first tree stays. They are told in an
//! order that does not depend on threads.

use std::ops::Range;

use parking_lot::Mutex;

use super::RadixTree;
use super::byte_set::ByteSet;
use super::node::{Handle, Head, Kind, Node256};
use super::nodes::Nodes;
use crate::error::{Error, Result};
use crate::index::Duplicate;
use crate::index::key::KeyKind;
use crate::limits::{INDEX_DEPTH_MAX, INDEX_MERGE_PARTS};
use crate::threads::in_parallel;

/// A meeting that is for later.
#[derive(Debug)]
struct PutOff {
    group: Vec<Handle>,
    depth: usize,
    /// Whose child it is, for which byte.
    parent: Handle,
    byte: u8,
}

/// What a thread makes.
struct Merge<'a, K: KeyKind, V> {
    /// What was there.
    nodes: &'a Nodes<K, V>,
    /// What is made.
    made: Nodes<K, V>,
    /// What was there and is merged.
    dead: Vec<Handle>,
    duplicates: Vec<Duplicate<V>>,
    /// Groups of the meetings at hand, and children of nodes to be made, one meeting behind the other.
    stack: Vec<(u8, Handle)>,
    /// Levels of meetings that it goes down.
    levels: usize,
    put_off: Vec<PutOff>,
}

/// The children of a node to be made, by their bytes: the first one for each.
struct Places {
    children: [Handle; 256],
    /// Whether there are more for the byte.
    several: [bool; 256],
}

impl Default for Places {
    fn default() -> Self {
        Self { children: [Handle::NONE; 256], several: [false; 256] }
    }
}

impl Places {
    fn add(&mut self, byte: u8, child: Handle) {
        let place = &mut self.children[usize::from(byte)];
        self.several[usize::from(byte)] |= !place.is_none();
        if place.is_none() {
            *place = child;
        }
    }

    /// Adds all children of a node, without a branch for each: who is there follows no rule.
    fn add_all(&mut self, children: &[Handle; 256]) {
        for ((place, several), child) in self.children.iter_mut().zip(&mut self.several).zip(children) {
            *several |= !place.is_none() & !child.is_none();
            *place = if place.is_none() { *child } else { *place };
        }
    }

    /// The bytes for which there are several.
    fn several(&self) -> ByteSet {
        let mut bytes = ByteSet::default();
        for (word, several) in bytes.0.iter_mut().zip(self.several.as_chunks::<64>().0) {
            *word = several.iter().rev().fold(0, |word, several| word << 1 | u64::from(*several));
        }
        bytes
    }
}

/// What is left of a thread's work.
struct Made<K: KeyKind, V> {
    made: Nodes<K, V>,
    dead: Vec<Handle>,
}

impl<K, V> RadixTree<K, V>
where
    K: KeyKind,
    V: Copy + Send + Sync,
{
    /// One tree of all `trees`, which were made in the same space, by `threads` threads. Of keys that several have, the
    /// one of the first of them stays, and the others are told. No trees are no tree.
    ///
    /// # Errors
    /// Full (54000) when the space has no names left; Internal when the trees are of several spaces.
    pub fn merge(trees: Vec<Self>, threads: usize) -> Result<Option<(Self, Vec<Duplicate<V>>)>> {
        let mut trees = trees.into_iter();
        let Some(mut all) = trees.next() else { return Ok(None) };
        let mut roots = vec![all.root];
        for tree in trees {
            if !tree.nodes.space().is(all.nodes.space()) {
                return Err(Error::internal("indexes of several spaces cannot be merged"));
            }
            roots.push(tree.root);
            all.len += tree.len;
            all.nodes.adopt(tree.nodes);
        }
        roots.retain(|root| !root.is_none());
        all.finger = None;
        if roots.len() < 2 {
            all.root = roots.pop().unwrap_or(Handle::NONE);
            return Ok(Some((all, Vec::new())));
        }
        let (root, made, duplicates) = merge_roots(&all.nodes, &roots, threads)?;
        let mut dead = Vec::new();
        for part in made {
            all.nodes.adopt(part.made);
            dead.extend(part.dead);
        }
        all.nodes.free_all(&dead);
        all.root = root;
        all.len -= duplicates.len();
        Ok(Some((all, duplicates)))
    }
}

/// What a merge gives: the root, what was made, and the duplicates.
type Outcome<K, V> = (Handle, Vec<Made<K, V>>, Vec<Duplicate<V>>);

fn merge_roots<K, V>(nodes: &Nodes<K, V>, roots: &[Handle], threads: usize) -> Result<Outcome<K, V>>
where
    K: KeyKind,
    V: Copy + Send + Sync,
{
    let mut top = Merge::new(nodes);
    // Level by level, until there is enough to do for all.
    top.levels = 1;
    let root = top.meet(roots, 0)?;
    loop {
        let before = top.put_off.len();
        if before == 0 || before >= INDEX_MERGE_PARTS {
            break;
        }
        for meeting in std::mem::take(&mut top.put_off) {
            top.meet_at(&meeting)?;
        }
        if top.put_off.len() <= before {
            break;
        }
    }
    let parts = std::mem::take(&mut top.put_off);
    let idle = Mutex::new(Vec::new());
    let done = in_parallel(threads, parts.len(), |part| {
        let Some(meeting) = parts.get(part) else { return Err(Error::internal("a part that is not there")) };
        let mut thread: Merge<'_, K, V> = idle.lock().pop().unwrap_or_else(|| Merge::new(nodes));
        let merged = thread.meet(&meeting.group, meeting.depth)?;
        while let Some(meeting) = thread.put_off.pop() {
            thread.meet_at(&meeting)?;
        }
        let duplicates = std::mem::take(&mut thread.duplicates);
        idle.lock().push(thread);
        Ok((merged, duplicates))
    })?;
    let mut duplicates = std::mem::take(&mut top.duplicates);
    for ((merged, of_part), meeting) in done.into_iter().zip(&parts) {
        top.made.replace(meeting.parent, meeting.byte, merged);
        duplicates.extend(of_part);
    }
    let made = idle.into_inner().into_iter().chain([top]).map(|merge| Made { made: merge.made, dead: merge.dead });
    Ok((root, made.collect(), duplicates))
}

impl<'a, K: KeyKind, V: Copy> Merge<'a, K, V> {
    fn new(nodes: &'a Nodes<K, V>) -> Self {
        Self {
            nodes,
            made: nodes.sibling(),
            dead: Vec::new(),
            duplicates: Vec::new(),
            stack: Vec::new(),
            levels: INDEX_DEPTH_MAX,
            put_off: Vec::new(),
        }
    }

    /// What `group` becomes, whose keys have `depth` bytes in common.
    fn meet(&mut self, group: &[Handle], depth: usize) -> Result<Handle> {
        self.stack.clear();
        self.stack.extend(group.iter().map(|node| (0, *node)));
        self.merge(0..group.len(), depth, 0)
    }

    /// What `meeting` becomes, in its place.
    fn meet_at(&mut self, meeting: &PutOff) -> Result<()> {
        let merged = self.meet(&meeting.group, meeting.depth)?;
        self.made.replace(meeting.parent, meeting.byte, merged);
        Ok(())
    }

    /// How many bytes the keys of a group share: up to where the first node branches, or keys part.
    fn path(&self, group: &Range<usize>, depth: usize) -> usize {
        let first = self.nodes.key(self.nodes.sample(self.stack[group.start].1));
        let mut end = usize::MAX;
        for (_, node) in &self.stack[group.clone()] {
            let node_end = match node.kind() {
                Kind::Leaf => {
                    let key = self.nodes.key(self.nodes.leaf(*node).key);
                    K::shared(first, key, depth).min(K::len(key))
                }
                Kind::Direct256 => depth,
                _ => {
                    let head = self.nodes.head(*node);
                    K::shared(first, self.nodes.key(head.sample), depth).min(head.end as usize)
                }
            };
            end = end.min(node_end);
        }
        end
    }

    /// What the `group` on the stack becomes, whose keys have `depth` bytes in common. It stands on `level`.
    fn merge(&mut self, group: Range<usize>, depth: usize, level: usize) -> Result<Handle> {
        let end = self.path(&group, depth);
        let nodes = self.nodes;
        let sample = nodes.sample(self.stack[group.start].1);
        let branches = |node: Handle| !node.is_leaf() && nodes.head(node).end as usize == end;
        let mut own = Handle::NONE;
        for at in group.clone() {
            let node = self.stack[at].1;
            let ended = nodes.own_behind(node, end);
            if !ended.is_none() {
                self.end_at(&mut own, ended);
            }
            if branches(node) {
                self.dead.push(node);
            }
        }
        let put_off = self.put_off.len();
        let node = if self.stack[group.clone()].iter().any(|(_, node)| nodes.places(*node, end).is_some()) {
            let children = self.merge_places(group, end, level)?;
            self.made.add_largest(Node256 { head: Head { sample, end: end as u32, own }, children }, depth)?
        } else {
            let base = self.stack.len();
            for at in group {
                let stack = &mut self.stack;
                nodes.for_each_behind(stack[at].1, end, |byte, child| stack.push((byte, child)));
            }
            if self.stack.len() == base {
                // Nothing but one key.
                return Ok(own);
            }
            // Stable: what is first in its tree's order stays first.
            self.stack[base..].sort_by_key(|(byte, _)| *byte);
            let children = self.merge_children(base, end, level)?;
            let head = Head { sample, end: end as u32, own };
            let node = self.made.add_node(head, &self.stack[base..base + children], depth)?;
            self.stack.truncate(base);
            node
        };
        if level + 1 == self.levels {
            self.put_off[put_off..].iter_mut().for_each(|meeting| meeting.parent = node);
        }
        Ok(node)
    }

    /// The children of what the `group` on the stack becomes, one of whose nodes has a place for each byte: those that
    /// one node alone has stay as they are.
    fn merge_places(&mut self, group: Range<usize>, end: usize, level: usize) -> Result<[Handle; 256]> {
        let mut places = Places::default();
        for (_, node) in &self.stack[group.clone()] {
            match self.nodes.places(*node, end) {
                Some(children) => places.add_all(children),
                None => self.nodes.for_each_behind(*node, end, |byte, child| places.add(byte, child)),
            }
        }
        for byte in places.several() {
            let from = self.stack.len();
            for at in group.clone() {
                let child = self.nodes.child_behind(self.stack[at].1, end, byte);
                if !child.is_none() {
                    self.stack.push((byte, child));
                }
            }
            let child = &mut places.children[usize::from(byte)];
            *child = self.meet_below(from..self.stack.len(), *child, end, level)?;
            self.stack.truncate(from);
        }
        Ok(places.children)
    }

    /// What the `group` on the stack becomes, all of which have the same byte behind the path of `end` bytes, and the
    /// first of which is `first`: later, below the levels that are gone down.
    fn meet_below(&mut self, group: Range<usize>, first: Handle, end: usize, level: usize) -> Result<Handle> {
        if level + 1 < self.levels {
            return self.merge(group, end + 1, level + 1);
        }
        let byte = self.stack[group.start].0;
        let group = self.stack[group].iter().map(|(_, node)| *node).collect();
        self.put_off.push(PutOff { group, depth: end + 1, parent: Handle::NONE, byte });
        Ok(first)
    }

    /// Merges children with the same byte, which stand next to each other on the stack from `base` on. Returns how many
    /// are left there, one for each byte.
    fn merge_children(&mut self, base: usize, end: usize, level: usize) -> Result<usize> {
        let to = self.stack.len();
        let (mut from, mut children) = (base, base);
        while from < to {
            let (byte, first) = self.stack[from];
            let same = self.stack[from..to].iter().take_while(|(other, _)| *other == byte).count();
            let group = from..from + same;
            from += same;
            let child = if same == 1 { first } else { self.meet_below(group, first, end, level)? };
            self.stack.truncate(to);
            self.stack[children] = (byte, child);
            children += 1;
        }
        Ok(children - base)
    }

    /// The key of `leaf` ends at the node to be made; that of `own` does so already, if there is one.
    fn end_at(&mut self, own: &mut Handle, leaf: Handle) {
        if own.is_none() {
            *own = leaf;
            return;
        }
        let (kept, left_out) = (self.nodes.leaf(*own).value, self.nodes.leaf(leaf).value);
        self.duplicates.push(Duplicate { kept, left_out });
        self.dead.push(leaf);
    }
}
