use proptest::prelude::*;

use super::{Decoder, Encoder};
use crate::error::ErrorKind;

proptest! {
    #[test]
    fn what_was_written_is_read(a: u64, b: i64, c: i128, text: String, raw: Vec<u8>, small: u16, list: Vec<i64>, o: Option<u32>) {
        let mut e = Encoder::new();
        e.varint(a);
        e.zigzag(b);
        e.i128(c);
        e.str(&text);
        e.bytes(&raw);
        e.u16(small);
        e.list(list.iter(), |e, v| e.zigzag(*v));
        e.option(o, |e, v| e.u32(v));
        let bytes = e.finish();
        let mut d = Decoder::new(&bytes, "t", 0);
        prop_assert_eq!(d.varint().unwrap(), a);
        prop_assert_eq!(d.zigzag().unwrap(), b);
        prop_assert_eq!(d.i128().unwrap(), c);
        prop_assert_eq!(d.str().unwrap(), text);
        prop_assert_eq!(d.bytes().unwrap(), raw);
        prop_assert_eq!(d.u16().unwrap(), small);
        prop_assert_eq!(d.list(Decoder::zigzag).unwrap(), list);
        prop_assert_eq!(d.option(Decoder::u32).unwrap(), o);
        d.finish().unwrap();
    }

    #[test]
    fn any_bytes_are_a_value_or_corrupt(bytes: Vec<u8>, ops in prop::collection::vec(0..8u8, 0..20)) {
        let mut d = Decoder::new(&bytes, "t", 7);
        for op in ops {
            let failed = match op {
                0 => d.varint().err(),
                1 => d.zigzag().err(),
                2 => d.str().err(),
                3 => d.bytes().err(),
                4 => d.list(Decoder::bool).err(),
                5 => d.option(Decoder::u64).err(),
                6 => d.varint_u32().err(),
                _ => d.count(3).err(),
            };
            if let Some(e) = failed {
                prop_assert_eq!(e.kind(), ErrorKind::Corrupt);
            }
        }
    }
}

#[test]
fn a_varint_of_65_bits_is_corrupt() {
    let mut bytes = vec![0xff; 9];
    bytes.push(0x01);
    assert_eq!(Decoder::new(&bytes, "t", 0).varint().unwrap(), u64::MAX);
    bytes[9] = 0x02;
    assert!(Decoder::new(&bytes, "t", 0).varint().is_err());
}

#[test]
fn a_message_names_file_and_byte() {
    let mut d = Decoder::new(&[1, 2, 3], "wal/1", 100);
    d.u16().unwrap();
    let e = d.u64().unwrap_err();
    assert!(e.message().contains("wal/1") && e.message().contains("102"), "{e}");
}
