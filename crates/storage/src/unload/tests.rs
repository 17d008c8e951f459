use super::compress::FRAME_BYTES;
use super::*;

#[test]
fn files_are_what_they_were_behind_compression() {
    for length in [0, 1, 1_000, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES + 17] {
        // Half of it repeats, half does not.
        let mut state = 1_u64;
        let bytes: Vec<u8> = (0..length)
            .map(|at| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if at % 1_000 < 500 { b'a' } else { (state >> 56) as u8 }
            })
            .collect();
        for compression in [Compression::None, Compression::Lz4] {
            let packed = compression.pack(bytes.clone());
            assert!(compression == Compression::None || length < 1_000 || packed.len() < length * 3 / 4);
            assert!(compression.unpack(packed, "rows/1.rows").unwrap() == bytes, "{length} bytes");
        }
    }
}

/// What passes for a frame and is none is an error: the checksum of the file is looked at before, but whoever wrote the
/// file may have been wrong.
#[test]
fn frames_that_are_none_are_refused() {
    let bytes: Vec<u8> = (0..5_000_u32).flat_map(u32::to_le_bytes).collect();
    let packed = Compression::Lz4.pack(bytes.clone());
    for at in 0..packed.len() {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x55;
        match Compression::Lz4.unpack(damaged, "rows/1.rows") {
            Ok(found) => assert!(found.len() == bytes.len(), "byte {at}"),
            Err(error) => assert!(error.message().contains("rows/1.rows"), "{error}"),
        }
        if let Err(error) = Compression::Lz4.unpack(packed[..at].to_vec(), "rows/1.rows") {
            assert_eq!(error.sqlstate(), "XX001");
        } else {
            assert_eq!(at, 0, "a file that was cut");
        }
    }
    let mut huge = u32::MAX.to_le_bytes().to_vec();
    huge.extend_from_slice(&[0; 4]);
    assert_eq!(Compression::Lz4.unpack(huge, "rows/1.rows").unwrap_err().sqlstate(), "XX001");
}
