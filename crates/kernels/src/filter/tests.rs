//! No false negatives, few false positives, equal twins, bytes and back.

use super::*;
use crate::hash::hash_u64;

fn hashes(range: std::ops::Range<u64>) -> Vec<u64> {
    range.map(hash_u64).collect()
}

#[test]
fn contains_what_it_was_built_from() {
    for keys in [1, 2, 100, 5000] {
        for bits_per_key in [0, 1, 8, 12, 20] {
            let inside = hashes(0..keys);
            let filter = BlockedBloom::build(&inside, bits_per_key);
            assert!(inside.iter().all(|&hash| filter.may_contain(hash)));
            let mut out = vec![0; crate::bitmap::words(inside.len()) + 1];
            filter.may_contain_many(&inside, &mut out);
            assert_eq!(crate::bitmap::count_ones(&out), inside.len());
        }
    }
}

#[test]
fn false_positives_are_few() {
    let filter = BlockedBloom::build(&hashes(0..20_000), 12);
    let wrong = hashes(1_000_000..1_100_000).iter().filter(|&&hash| filter.may_contain(hash)).count();
    assert!((100..1000).contains(&wrong), "{wrong} of 100,000");
    assert!(filter.byte_len() <= 20_000 * 12 / 8 + 32);
}

#[test]
fn twins_agree() {
    let filter = BlockedBloom::build(&hashes(0..300), 6);
    for len in [0, 1, 63, 64, 65, 1000] {
        let probes = hashes(100..100 + len);
        let (mut fast, mut slow) = (vec![1; 16], vec![2; 16]);
        filter.may_contain_many(&probes, &mut fast);
        scalar::may_contain_many(&filter.blocks, &probes, cut(&mut slow, probes.len()));
        assert_eq!(fast, slow);
        for (row, &hash) in probes.iter().enumerate() {
            let expected = scalar::may_contain(&filter.blocks, hash);
            assert_eq!((filter.may_contain(hash), crate::bitmap::get(&fast, row)), (expected, expected));
        }
    }
}

#[test]
fn a_part_says_the_same() {
    for keys in [1, 30, 5000] {
        let filter = BlockedBloom::build(&hashes(0..keys), 12);
        let bytes = filter.to_le_bytes();
        for hash in hashes(0..2 * keys + 50) {
            let part = BlockedBloom::part_of(bytes.len(), hash).unwrap();
            let part = BlockedBloom::from_le_bytes(&bytes[part]).unwrap();
            assert_eq!(part.may_contain(hash), filter.may_contain(hash));
        }
    }
    assert_eq!(BlockedBloom::part_of(0, 7), None);
    assert_eq!(BlockedBloom::part_of(33, 7), None);
}

#[test]
fn empty_contains_nothing() {
    let filter = BlockedBloom::build(&[], 12);
    assert_eq!((filter.byte_len(), filter.may_contain(0)), (0, false));
    let mut out = [u64::MAX; 2];
    filter.may_contain_many(&[0, 1, 2], &mut out);
    assert_eq!(out, [0, 0]);
    assert_eq!(BlockedBloom::from_le_bytes(&[]), Some(filter));
}

#[test]
fn bytes_and_back() {
    let filter = BlockedBloom::build(&hashes(0..100), 10);
    let bytes = filter.to_le_bytes();
    assert_eq!(bytes.len(), filter.byte_len());
    assert_eq!(BlockedBloom::from_le_bytes(&bytes).as_ref(), Some(&filter));
    assert_eq!(BlockedBloom::from_le_bytes(&bytes[1..]), None);
}

/// The bytes are a file format: they may not change.
#[test]
fn bytes_are_fixed() {
    let bytes = BlockedBloom::build(&[1, 0x8000_0000_1234_5678], 256).to_le_bytes();
    let words: Vec<u32> = crate::cast::from_le_bytes(&bytes);
    let expected_first = SALTS.map(|salt| 1u32 << (salt >> 27));
    assert_eq!(words[..8], expected_first);
    assert_eq!(words[8..].iter().map(|word| word.count_ones()).sum::<u32>(), 8);
}
