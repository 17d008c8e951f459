//! The order of a tree, and what it does with its nodes.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::RadixTree;
use super::node::Kind;
use crate::index::{ByteKeys, IndexSpace, U32Keys, U64Keys};
use crate::row::key::KeyCodec;

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let key = || prop::collection::vec(0..4_u8, 0..6);
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
    }
}

/// Whether `key` lies between the bounds, which may be the wrong way round.
fn is_between(key: &[u8], from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    let above = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
    };
    above
        && match to {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
        }
}

proptest! {
    #[test]
    fn ranges_are_those_of_a_map(
        keys in prop::collection::vec(prop::collection::vec(0..4_u8, 0..6), 0..80),
        bounds in prop::collection::vec((bound(), bound()), 12),
    ) {
        let mut tree = RadixTree::<ByteKeys, usize>::new(&IndexSpace::new());
        let mut model = BTreeMap::new();
        for (row, key) in keys.iter().enumerate() {
            prop_assert_eq!(tree.insert(key, row).unwrap(), model.get(key).copied());
            model.entry(key.clone()).or_insert(row);
        }
        for (from, to) in &bounds {
            let (from, to) = (as_slice(from), as_slice(to));
            let found: Vec<_> = tree.range(from, to).map(|(key, row)| (key.to_vec(), row)).collect();
            let wanted = model.iter().filter(|(key, _)| is_between(key, from, to));
            prop_assert_eq!(found, wanted.map(|(key, row)| (key.clone(), *row)).collect::<Vec<_>>());
        }
    }
}

#[test]
fn ranges_of_numbers_end_where_they_should() {
    let space = IndexSpace::new();
    let mut entries: Vec<(u64, u32)> = (0..100_000).map(|row| (u64::from(row) * 3, row)).collect();
    let (tree, _) = RadixTree::<U64Keys, u32>::build(&space, &mut entries).unwrap();
    for (from, to) in [(0, 0), (1, 2), (299, 301), (255 * 3, 257 * 3), (65_535, 65_537), (299_996, u64::MAX), (9, 8)] {
        let found: Vec<u64> = tree.range(Bound::Included(from), Bound::Excluded(to)).map(|(key, _)| key).collect();
        let wanted: Vec<u64> = (from..to.min(300_000)).filter(|key| key % 3 == 0).collect();
        assert_eq!(found, wanted, "{from}..{to}");
    }
}

/// Keys of columns in the order of SQL: what the codec makes of them is what the tree is in the order of.
#[test]
fn encoded_keys_keep_the_order_of_values() {
    use crate::row::Value;
    use crate::row::testing::table;
    use crate::schema::DataType;
    let schema = table(&[(DataType::Text { max_chars: None }, false), (DataType::Integer, false)]);
    let columns: Vec<_> = schema.columns.iter().map(|column| column.id).collect();
    let codec = KeyCodec::of_values(&schema, &columns);
    let mut tree = RadixTree::<ByteKeys, usize>::new(&IndexSpace::new());
    let texts = ["", "a", "a\0", "a\u{1}", "ab", "b"];
    let mut rows: Vec<(&str, i64)> = texts.iter().flat_map(|text| [5, -3, 0].map(|number| (*text, number))).collect();
    for (row, (text, number)) in rows.iter().enumerate() {
        let mut key = Vec::new();
        codec.encode_values(&[Value::Text((*text).into()), Value::Int(*number)], &mut key).unwrap();
        assert_eq!(tree.insert(&key, row).unwrap(), None);
    }
    let found: Vec<_> = tree.iter().map(|(_, row)| rows[row]).collect();
    rows.sort_unstable();
    assert_eq!(found, rows);
}

/// Dense numbers in order: nodes with 256 children right below one another.
#[test]
fn a_dense_order_makes_full_nodes() {
    let space = IndexSpace::new();
    let mut tree = RadixTree::<U32Keys, u32>::new(&space);
    for key in 0..1 << 17 {
        assert_eq!(tree.insert(key, key).unwrap(), None);
    }
    let mut kinds = vec![];
    let mut node = tree.root;
    while !node.is_leaf() {
        kinds.push(node.kind());
        node = tree.nodes.child_from(node, 1).unwrap().1;
    }
    assert_eq!(kinds, [Kind::N4, Kind::Direct256, Kind::Direct256]);
    // What has grown is used again: one node of each smaller kind is left for the next one.
    assert!(tree.bytes() < (1 << 17) * (8 + 4 + 8) + (24 << 20), "{}", tree.bytes());
    assert!((0..1 << 17).all(|key| tree.insert(key, 0).unwrap() == Some(key)));
}

/// Ranges of a dense order share one node with the next one: a merge makes few nodes, whatever the rows.
#[test]
fn ranges_become_one_without_being_copied() {
    let space = IndexSpace::new();
    let tree = |range: std::ops::Range<u32>| {
        let mut tree = RadixTree::<U32Keys, u32>::new(&space);
        range.for_each(|key| assert_eq!(tree.insert(key, key).unwrap(), None));
        tree
    };
    let trees = vec![tree(0..50_000), tree(50_000..90_000), tree(90_000..100_000)];
    let bytes: usize = trees.iter().map(RadixTree::bytes).sum();
    let (all, told) = RadixTree::merge(trees, 2).unwrap().unwrap();
    assert!(told.is_empty() && all.iter().map(|(key, _)| key).eq(0..100_000));
    assert!(all.bytes() < bytes + (64 << 10), "{} of {bytes}", all.bytes());
}
