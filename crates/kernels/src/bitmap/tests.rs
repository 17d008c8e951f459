//! Bitmaps against a vector of booleans.

use super::*;
use crate::hash::hash_u64;
use proptest::prelude::*;

fn bitmap(rows: &[bool]) -> Vec<u64> {
    let mut bits = vec![0; words(rows.len())];
    for (row, _) in rows.iter().enumerate().filter(|(_, yes)| **yes) {
        set(&mut bits, row);
    }
    bits
}

/// Rows of which about `percent` are selected.
fn rows(len: usize, percent: u64) -> Vec<bool> {
    (0..len as u64).map(|row| hash_u64(row) % 100 < percent).collect()
}

fn ones(rows: &[bool]) -> Vec<u32> {
    rows.iter().enumerate().filter(|(_, yes)| **yes).map(|(row, _)| row as u32).collect()
}

const LENGTHS: [usize; 13] = [0, 1, 2, 63, 64, 65, 127, 128, 129, 511, 512, 513, 3000];

#[test]
fn counting_and_walking() {
    for len in LENGTHS {
        for percent in [0, 1, 10, 20, 50, 90, 100] {
            let rows = rows(len, percent);
            let bits = bitmap(&rows);
            let expected = ones(&rows);
            for (indices, count) in [
                (indices as fn(&[u64], &mut Vec<u32>), count_ones as fn(&[u64]) -> usize),
                (scalar::indices, scalar::count_ones),
            ] {
                let mut out = vec![7];
                indices(&bits, &mut out);
                assert_eq!((out[0], &out[1..]), (7, &expected[..]), "{len} rows, {percent} %");
                assert_eq!(count(&bits), expected.len());
            }
            let mut walked = Vec::new();
            for_each_one(&bits, |row| walked.push(row as u32));
            assert_eq!(walked, expected);
            assert_eq!(is_empty(&bits), expected.is_empty());
            assert!(rows.iter().enumerate().all(|(row, &yes)| get(&bits, row) == yes));
        }
    }
}

#[test]
fn rank_and_select() {
    for len in LENGTHS {
        for percent in [0, 3, 50, 100] {
            let rows = rows(len, percent);
            let expected = ones(&rows);
            let rank = Rank::new(bitmap(&rows), len);
            for row in 0..=len {
                assert_eq!(rank.rank(row), expected.partition_point(|&one| (one as usize) < row), "row {row} of {len}");
            }
            for (k, &row) in expected.iter().enumerate() {
                assert_eq!(rank.select(k), Some(row as usize));
            }
            assert_eq!(rank.select(expected.len()), None);
            assert_eq!((rank.ones(), rank.len(), rank.is_empty()), (expected.len(), len, len == 0));
        }
    }
    // More words than rows, as a caller with a reused buffer has.
    assert_eq!(Rank::new(vec![0b101, 0, 0], 3).rank(3), 2);
}

#[test]
fn select_in_a_word() {
    for seed in 0..500 {
        let word = hash_u64(seed) & hash_u64(seed * 7);
        for k in 0..word.count_ones() as usize {
            let place = scalar::select_in_word(word, k);
            assert_eq!((word & ((1 << place) - 1)).count_ones() as usize, k);
            assert_eq!(word >> place & 1, 1);
        }
    }
}

#[test]
#[should_panic(expected = "past 3 rows")]
fn rank_past_the_end_panics() {
    let _ = Rank::new(vec![0], 3).rank(4);
}

#[test]
fn whole_and_empty() {
    for len in LENGTHS {
        let bits = full(len);
        assert_eq!(bits, bitmap(&vec![true; len]));
        let mut none = bits.clone();
        not_in_place(&mut none, len);
        assert!(is_empty(&none));
        not_in_place(&mut none, len);
        assert_eq!(none, bits);
    }
}

#[test]
#[should_panic(expected = "different size")]
fn combining_different_sizes_panics() {
    and_in_place(&mut [0, 1], &[0]);
}

proptest! {
    #[test]
    fn ranges(rows in prop::collection::vec(any::<bool>(), 0..400), a in 0usize..400, b in 0usize..400) {
        let (from, to) = (a.min(b).min(rows.len()), a.max(b).min(rows.len()));
        let bits = bitmap(&rows);
        prop_assert_eq!(count_range(&bits, from..to), rows[from..to].iter().filter(|yes| **yes).count());
        prop_assert_eq!(copy_range(&bits, from..to), bitmap(&rows[from..to]));
        let mut expected = rows.clone();
        let mut changed = bits.clone();
        set_range(&mut changed, from..to);
        expected[from..to].fill(true);
        prop_assert_eq!(&changed, &bitmap(&expected));
        clear_range(&mut changed, from..to);
        expected[from..to].fill(false);
        prop_assert_eq!(&changed, &bitmap(&expected));
        if let Some(row) = (from < to).then_some(from) {
            set(&mut changed, row);
            prop_assert!(get(&changed, row));
            clear(&mut changed, row);
            prop_assert_eq!(&changed, &bitmap(&expected));
        }
    }

    #[test]
    fn logic(pairs in prop::collection::vec(any::<(bool, bool)>(), 0..400)) {
        let side = |op: fn(bool, bool) -> bool| bitmap(&pairs.iter().map(|&(l, r)| op(l, r)).collect::<Vec<_>>());
        let (left, right) = (side(|l, _| l), side(|_, r| r));
        let run = |op: fn(&mut [u64], &[u64])| {
            let mut left = left.clone();
            op(&mut left, &right);
            left
        };
        prop_assert_eq!(run(and_in_place), side(|l, r| l && r));
        prop_assert_eq!(run(or_in_place), side(|l, r| l || r));
        prop_assert_eq!(run(and_not_in_place), side(|l, r| l && !r));
        let mut not = left.clone();
        not_in_place(&mut not, pairs.len());
        prop_assert_eq!(not, side(|l, _| !l));
    }

    #[test]
    fn twins_agree(bits in prop::collection::vec(any::<u64>(), 0..50)) {
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        indices(&bits, &mut fast);
        scalar::indices(&bits, &mut slow);
        prop_assert_eq!(fast, slow);
        prop_assert_eq!(count_ones(&bits), scalar::count_ones(&bits));
    }
}
