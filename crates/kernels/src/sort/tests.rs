use super::*;

/// Numbers that look random, the same each time.
fn numbers(count: usize, bits: u32, mut seed: u64) -> Vec<u64> {
    let mut next = || {
        seed = crate::hash::hash_u64(seed);
        if bits == 64 { seed } else { seed & ((1 << bits) - 1) }
    };
    (0..count).map(|_| next()).collect()
}

/// Sorts `words` and holds the answer to a stable sort by comparison.
fn check(words: &[u64], bits: u32) {
    let ids: Vec<u32> = (0..words.len() as u32).map(|id| id.wrapping_mul(7)).collect();
    let mut expected: Vec<(u64, u32)> = words.iter().copied().zip(ids.iter().copied()).collect();
    expected.sort_by_key(|pair| pair.0);
    let (mut words, mut ids) = (words.to_vec(), ids);
    sort_by_words(&mut words, &mut ids, bits);
    let sorted: Vec<(u64, u32)> = words.into_iter().zip(ids).collect();
    assert!(sorted == expected, "{} rows of {bits} bits", sorted.len());
}

#[test]
fn words_of_any_width_are_sorted_and_equal_ones_keep_their_order() {
    for count in [0, 1, 2, 3, COMPARED_MAX, COMPARED_MAX + 1, 1_024, 1_025, 5_000] {
        for bits in [0, 1, 2, 7, 10, 11, 20, 21, 31, 50, 51, 52, 53, 63, 64] {
            check(&numbers(count, bits, u64::from(bits)), bits);
        }
    }
}

#[test]
fn order_that_is_there_and_digits_that_are_the_same_everywhere() {
    let ascending: Vec<u64> = (0..3_000).collect();
    check(&ascending, 12);
    let descending: Vec<u64> = ascending.iter().rev().copied().collect();
    check(&descending, 12);
    // The middle digits are those of one number.
    let gaps: Vec<u64> = numbers(3_000, 6, 1).iter().map(|word| word << 40 | 0x55_5500 | word & 3).collect();
    check(&gaps, 46);
    check(&[u64::MAX; 2_000], 64);
}

#[test]
#[should_panic(expected = "a word for each row")]
fn ids_and_words_are_as_many() {
    sort_by_words(&mut [1, 0], &mut [0], 1);
}
