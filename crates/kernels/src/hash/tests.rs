//! The mixer mixes.

use super::*;

#[test]
fn each_input_bit_moves_about_half_of_the_output() {
    for bit in 0..64 {
        let moved: u32 = (0..1000u64).map(|key| (hash_u64(key) ^ hash_u64(key ^ (1 << bit))).count_ones()).sum();
        assert!((30_000..34_000).contains(&moved), "bit {bit}: {moved}");
    }
    assert_ne!(hash_combine(1, 2), hash_combine(2, 1));
}
