//! Bytes and back.

use super::*;

#[test]
fn bytes_and_back() {
    let values = [1i32, -2, i32::MAX, i32::MIN];
    let mut bytes = vec![7u8];
    to_le_bytes(&values, &mut bytes);
    assert_eq!(bytes[1..5], 1i32.to_le_bytes());
    // Unaligned source, and a torn value at the end.
    bytes.push(9);
    assert_eq!(from_le_bytes::<i32>(&bytes[1..]), values);
    assert_eq!(from_le_bytes::<u128>(&bytes[..15]), Vec::<u128>::new());
    assert_eq!(as_bytes(&[1.5f64]).len(), 8);
    assert_eq!(as_bytes::<u16>(&[]), &[] as &[u8]);
}
