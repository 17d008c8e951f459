//! Bit packing against the definition, and each fast twin against its scalar twin.

use super::*;

/// Values of `width` bits that look random.
fn values(count: usize, width: u32) -> Vec<u64> {
    (0..count as u64).map(|i| crate::hash::hash_u64(i) & mask(width)).collect()
}

/// The definition of the layout, bit by bit.
fn by_definition(values: &[u64], width: u32) -> Vec<u8> {
    let mut bytes = vec![0u8; packed_bytes(values.len(), width)];
    for (row, value) in values.iter().enumerate() {
        for bit in 0..width as usize {
            let at = row * width as usize + bit;
            bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
        }
    }
    bytes
}

#[test]
fn pack_follows_the_definition() {
    for width in 0..=64 {
        for count in [0, 1, 7, 63, 64, 65, 200] {
            let values = values(count, width);
            let mut packed = Vec::new();
            pack(&values, width, &mut packed);
            assert_eq!(packed, by_definition(&values, width), "width {width} count {count}");
            for (row, &value) in values.iter().enumerate() {
                assert_eq!(get(&packed, width, row), value);
            }
        }
    }
}
