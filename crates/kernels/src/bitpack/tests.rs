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
        for count in [0, 1, 7, 16, 63, 64, 65, 200] {
            let values = values(count, width);
            let mut packed = Vec::new();
            for twin in [pack, scalar::pack] {
                packed = b"before".to_vec();
                twin(&values, width, &mut packed);
                packed = packed.split_off(b"before".len());
                assert_eq!(packed, by_definition(&values, width), "width {width} count {count}");
            }
            for (row, &value) in values.iter().enumerate() {
                assert_eq!(get(&packed, width, row), value);
            }
        }
    }
}

/// The AVX2 twins, which a processor with AVX-512 would not come to, where they take a call.
mod with_avx2 {
    use super::super::*;

    macro_rules! twins {
        ($($name:ident $t:ty, $fast_max:expr, $twin:ident, ($($reference:ident: $r:ty as $u:ty)?), ($($zero:literal)?), $cast:ident;)*) => {$(
            pub(super) fn $name(packed: &[u8], width: u32, start: usize, $($reference: $r,)? out: &mut [$t]) {
                #[cfg(target_arch = "x86_64")]
                if fast(width, $fast_max, out.len()) {
                    check(packed, width, start, out.len(), $fast_max);
                    // SAFETY: the processor has AVX2; rows and width were checked.
                    return unsafe { avx2::$twin(packed, width, start, $($reference as $u,)? $($zero,)? $cast(out)) };
                }
                scalar::$name(packed, width, start, $($reference,)? out);
            }
        )*};
    }
    fn same<T>(out: &mut [T]) -> &mut [T] {
        out
    }
    twins! {
        unpack_u64 u64, lanes::WIDTH_MAX_64, unpack_64, (), (0), same;
        unpack_u32 u32, 32, unpack_32, (), (0), same;
        unpack_u16 u16, 16, unpack_16, (), (0), same;
        unpack_u8 u8, 8, unpack_8, (), (), same;
        unpack_for_i64 i64, lanes::WIDTH_MAX_64, unpack_64, (reference: i64 as u64), (), as_u64;
        unpack_for_i32 i32, 32, unpack_32, (reference: i32 as u32), (), as_u32;
        unpack_for_i16 i16, 16, unpack_16, (reference: i16 as u16), (), as_u16;
    }
    pub(super) use super::super::scalar::unpack_for_i128;
}

/// All twins of one call on rows `start..start + len`, with the result in a slice that starts at `shift`, so that
/// output alignment varies too.
macro_rules! twins {
    ($packed:expr, $width:expr, $start:expr, $len:expr, $expected:expr, $name:ident $t:ty $(, $reference:expr)?) => {{
        for twin in [$name, scalar::$name, with_avx2::$name] {
            let shift = $start % 4;
            let mut out = vec![<$t>::MAX; shift + $len + 1];
            twin($packed, $width, $start, $($reference,)? &mut out[shift..shift + $len]);
            let expected: Vec<$t> = $expected.iter().skip($start).take($len).map(|&code| {
                let value = code as $t;
                $(let value = value.wrapping_add($reference);)?
                value
            }).collect();
            assert_eq!(out[shift..shift + $len], expected, "{} width {} rows {}+{}", stringify!($name), $width, $start, $len);
            assert!(out[..shift].iter().chain(&out[shift + $len..]).all(|&v| v == <$t>::MAX), "wrote outside");
        }
    }};
}

fn unpack_all(packed: &[u8], width: u32, start: usize, len: usize, values: &[u64], seed: u64) {
    let reference = crate::hash::hash_u64(seed) as i64;
    twins!(packed, width, start, len, values, unpack_u64 u64);
    twins!(packed, width, start, len, values, unpack_for_i64 i64, reference);
    for reference in [i128::from(reference) << 60, i128::from(reference), i128::from(reference >> 7), i64::MAX.into()] {
        twins!(packed, width, start, len, values, unpack_for_i128 i128, reference);
    }
    if width <= 32 {
        twins!(packed, width, start, len, values, unpack_u32 u32);
        twins!(packed, width, start, len, values, unpack_for_i32 i32, reference as i32);
    }
    if width <= 16 {
        twins!(packed, width, start, len, values, unpack_u16 u16);
        twins!(packed, width, start, len, values, unpack_for_i16 i16, reference as i16);
    }
    if width <= 8 {
        twins!(packed, width, start, len, values, unpack_u8 u8);
    }
}

#[test]
fn unpack_at_every_width_start_and_length() {
    for width in 0..=64 {
        let values = values(400, width);
        let mut packed = Vec::new();
        pack(&values, width, &mut packed);
        for start in (0..10).chain([63, 64, 65, 127]) {
            for len in [0, 1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 128, 191, 400 - start] {
                unpack_all(&packed, width, start, len, &values, width.into());
            }
        }
    }
}

/// The allocation ends exactly where the packed bytes end, without the padding to 8 bytes: a read beyond would be seen
/// by Miri, and the answer must not need those bytes.
#[test]
fn unpack_without_padding() {
    for width in (1..=64).step_by(if cfg!(miri) { 9 } else { 1 }) {
        for count in [1, 5, 17, 64, 77] {
            let values = values(count, width);
            let mut packed = Vec::new();
            pack(&values, width, &mut packed);
            let exact: Box<[u8]> = packed[..(count * width as usize).div_ceil(8)].into();
            unpack_all(&exact, width, 0, count, &values, 3);
            assert_eq!(get(&exact, width, count - 1), values[count - 1]);
        }
    }
}

#[test]
fn sizes() {
    assert_eq!(packed_bytes(0, 64), 0);
    assert_eq!(packed_bytes(9, 0), 0);
    assert_eq!(packed_bytes(1, 1), 8);
    assert_eq!(packed_bytes(64, 3), 24);
    assert_eq!(packed_bytes(65, 1), 16);
    assert_eq!([0, 1, 2, 255, 256, u64::MAX].map(bits_needed), [0, 1, 2, 8, 9, 64]);
}

#[test]
#[should_panic(expected = "do not fit")]
fn too_few_bytes_panic() {
    unpack_u64(&[0; 8], 5, 3, &mut [0; 10]);
}

#[test]
#[should_panic(expected = "do not fit")]
fn rows_near_the_end_of_the_address_space_panic() {
    unpack_u32(&[0; 8], 5, usize::MAX, &mut [0; 10]);
}

#[test]
#[should_panic(expected = "above 16")]
fn too_wide_for_the_type_panics() {
    unpack_u16(&[0; 80], 17, 0, &mut [0; 10]);
}

mod random {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn twins_agree(
            width in 0u32..=64,
            raw in prop::collection::vec(any::<u64>(), 0..500),
            start in 0usize..100,
            short in 0usize..100,
        ) {
            let values: Vec<u64> = raw.iter().map(|value| value & mask(width)).collect();
            let mut packed = Vec::new();
            pack(&values, width, &mut packed);
            prop_assert_eq!(&packed, &by_definition(&values, width));
            let start = start.min(values.len());
            let len = (values.len() - start).saturating_sub(short);
            unpack_all(&packed, width, start, len, &values, raw.len() as u64);
        }
    }
}
