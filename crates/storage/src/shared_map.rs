//! An ordered map that shares what it has in common with its copies: a copy costs a pointer, a change O(log n) nodes,
//! whatever the copies. The tables of a root and the names of a catalog are such maps, since a new root or catalog is
//! made under the commit lock.
//!
//! A weight-balanced tree (Adams, "Efficient sets: a balancing act", 1993; factors of Hirai and Yamamoto, 2011) of
//! immutable nodes: neither side of a node holds more than three times what the other does. Invariant: keys ascend,
//! each stands once.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

/// How many times the weight of one side the other may have.
const DELTA: usize = 3;
/// How many times the weight of its outer side the inner side of the heavier one may have to be lifted by one rotation.
const RATIO: usize = 2;

/// The map.
pub struct SharedMap<K, V> {
    root: Link<K, V>,
}

type Link<K, V> = Option<Arc<Node<K, V>>>;

struct Node<K, V> {
    len: usize,
    key: K,
    value: V,
    left: Link<K, V>,
    right: Link<K, V>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self { root: None }
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone() }
    }
}

impl<K: Debug, V: Debug> Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K, V> SharedMap<K, V> {
    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        len(&self.root)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// All of it, keys ascending.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { above: Vec::new(), left: self.len() };
        iter.descend(&self.root);
        iter
    }

    /// The keys, ascending.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in the order of their keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// What `key` stands for.
    #[must_use]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut at = &self.root;
        while let Some(node) = at {
            at = match key.cmp(node.key.borrow()) {
                Ordering::Equal => return Some(&node.value),
                Ordering::Less => &node.left,
                Ordering::Greater => &node.right,
            };
        }
        None
    }

    /// Whether `key` stands for something.
    #[must_use]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The first key at or above `key`, and what it stands for.
    #[must_use]
    pub fn first_from<Q: Ord + ?Sized>(&self, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (mut at, mut found) = (&self.root, None);
        while let Some(node) = at {
            at = if node.key.borrow() < key {
                &node.right
            } else {
                found = Some((&node.key, &node.value));
                &node.left
            };
        }
        found
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Has `key` stand for `value`, whatever it stood for.
    pub fn insert(&mut self, key: K, value: V) {
        self.root = Some(inserted(&self.root, key, value));
    }

    /// Takes `key` out and returns what it stood for.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let gone = self.get(key)?.clone();
        self.root = removed(&self.root, key);
        Some(gone)
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::default();
        entries.into_iter().for_each(|(key, value)| map.insert(key, value));
        map
    }
}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Walks a [`SharedMap`], keys ascending.
pub struct Iter<'a, K, V> {
    /// Nodes whose own entry is still to come, with what is right of them; the next one last.
    above: Vec<&'a Node<K, V>>,
    left: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    fn descend(&mut self, mut at: &'a Link<K, V>) {
        while let Some(node) = at {
            self.above.push(node);
            at = &node.left;
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.above.pop()?;
        self.descend(&node.right);
        self.left -= 1;
        Some((&node.key, &node.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}

fn len<K, V>(link: &Link<K, V>) -> usize {
    link.as_ref().map_or(0, |node| node.len)
}

/// What balance goes by: one more than the entries.
fn weight<K, V>(link: &Link<K, V>) -> usize {
    len(link) + 1
}

fn node<K, V>(key: K, value: V, left: Link<K, V>, right: Link<K, V>) -> Arc<Node<K, V>> {
    Arc::new(Node { len: len(&left) + len(&right) + 1, key, value, left, right })
}

fn inserted<K: Ord + Clone, V: Clone>(link: &Link<K, V>, key: K, value: V) -> Arc<Node<K, V>> {
    let Some(at) = link else { return node(key, value, None, None) };
    match key.cmp(&at.key) {
        Ordering::Equal => node(key, value, at.left.clone(), at.right.clone()),
        Ordering::Less => balanced(at, Some(inserted(&at.left, key, value)), at.right.clone()),
        Ordering::Greater => balanced(at, at.left.clone(), Some(inserted(&at.right, key, value))),
    }
}

fn removed<K: Ord + Clone + Borrow<Q>, V: Clone, Q: Ord + ?Sized>(link: &Link<K, V>, key: &Q) -> Link<K, V> {
    let at = link.as_ref()?;
    match key.cmp(at.key.borrow()) {
        Ordering::Less => Some(balanced(at, removed(&at.left, key), at.right.clone())),
        Ordering::Greater => Some(balanced(at, at.left.clone(), removed(&at.right, key))),
        Ordering::Equal => match (&at.left, &at.right) {
            (None, rest) | (rest, None) => rest.clone(),
            (left, Some(right)) => {
                let (first, rest) = without_first(right);
                Some(balanced(first, left.clone(), rest))
            }
        },
    }
}

/// The first entry below `at`, as its node, and the rest.
fn without_first<K: Clone, V: Clone>(at: &Arc<Node<K, V>>) -> (&Node<K, V>, Link<K, V>) {
    match &at.left {
        None => (at, at.right.clone()),
        Some(left) => {
            let (first, rest) = without_first(left);
            (first, Some(balanced(at, rest, at.right.clone())))
        }
    }
}

/// The entry of `at` with `left` and `right`, one of which has an entry more or less than balance allows, at most.
fn balanced<K: Clone, V: Clone>(at: &Node<K, V>, left: Link<K, V>, right: Link<K, V>) -> Arc<Node<K, V>> {
    let (key, value) = (at.key.clone(), at.value.clone());
    match (&left, &right) {
        (_, Some(heavy)) if weight(&right) > DELTA * weight(&left) => {
            if let Some(inner) = heavy.left.as_ref().filter(|_| weight(&heavy.left) >= RATIO * weight(&heavy.right)) {
                let outer = node(heavy.key.clone(), heavy.value.clone(), inner.right.clone(), heavy.right.clone());
                let lifted = node(key, value, left, inner.left.clone());
                return node(inner.key.clone(), inner.value.clone(), Some(lifted), Some(outer));
            }
            let lifted = node(key, value, left, heavy.left.clone());
            node(heavy.key.clone(), heavy.value.clone(), Some(lifted), heavy.right.clone())
        }
        (Some(heavy), _) if weight(&left) > DELTA * weight(&right) => {
            if let Some(inner) = heavy.right.as_ref().filter(|_| weight(&heavy.right) >= RATIO * weight(&heavy.left)) {
                let outer = node(heavy.key.clone(), heavy.value.clone(), heavy.left.clone(), inner.left.clone());
                let lifted = node(key, value, inner.right.clone(), right);
                return node(inner.key.clone(), inner.value.clone(), Some(outer), Some(lifted));
            }
            let lifted = node(key, value, heavy.right.clone(), right);
            node(heavy.key.clone(), heavy.value.clone(), heavy.left.clone(), Some(lifted))
        }
        _ => node(key, value, left, right),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Proves balance and counts; returns the height.
    fn height(link: &Link<u32, u32>) -> usize {
        let Some(node) = link else { return 0 };
        assert_eq!(node.len, len(&node.left) + len(&node.right) + 1);
        let (left, right) = (weight(&node.left), weight(&node.right));
        assert!(left <= DELTA * right && right <= DELTA * left, "{left} beside {right}");
        1 + height(&node.left).max(height(&node.right))
    }

    fn check(map: &SharedMap<u32, u32>, model: &BTreeMap<u32, u32>) {
        assert!(map.iter().eq(model.iter()));
        assert_eq!((map.len(), map.iter().len(), map.is_empty()), (model.len(), model.len(), model.is_empty()));
        let height = height(&map.root);
        assert!(height <= 3 * (model.len() + 1).ilog2() as usize, "{height} high with {}", model.len());
    }

    #[test]
    fn it_is_a_map_and_its_copies_stay() {
        for seed in 0..20 {
            let mut rng = StdRng::seed_from_u64(seed);
            let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
            let mut copies = Vec::new();
            // Growing, then shrinking.
            for step in 0..2_000u32 {
                let key = rng.random_range(0..300);
                if rng.random_range(0..2_000) > step {
                    map.insert(key, step);
                    model.insert(key, step);
                } else {
                    assert_eq!(map.remove(&key), model.remove(&key));
                }
                assert_eq!((map.get(&key), map.contains_key(&key)), (model.get(&key), model.contains_key(&key)));
                let from = rng.random_range(0..310);
                assert_eq!(map.first_from(&from), model.range(from..).next());
                if step % 100 == 0 {
                    copies.push((map.clone(), model.clone()));
                }
                if step % 10 == 0 {
                    check(&map, &model);
                }
            }
            copies.iter().for_each(|(map, model)| check(map, model));
        }
    }

    #[test]
    fn ascending_and_descending_keys_stay_balanced() {
        for descending in [false, true] {
            let key = |at: u32| if descending { 5_000 - at } else { at };
            let mut map: SharedMap<u32, u32> = (0..5_000).map(|at| (key(at), at)).collect();
            let mut model: BTreeMap<u32, u32> = (0..5_000).map(|at| (key(at), at)).collect();
            check(&map, &model);
            for at in 0..4_000 {
                map.remove(&key(at));
                model.remove(&key(at));
            }
            check(&map, &model);
        }
    }

    /// A change shares all but the way to it.
    #[test]
    fn a_change_costs_the_way_to_it() {
        let map: SharedMap<u32, Arc<u32>> = (0..10_000).map(|at| (at, Arc::new(at))).collect();
        let held = |key: u32| Arc::strong_count(map.get(&key).unwrap());
        let mut next = map.clone();
        next.insert(5_000, Arc::new(0));
        let copied = (0..10_000).filter(|key| held(*key) > 1).count();
        assert!(copied < 60, "{copied} nodes copied");
    }
}
