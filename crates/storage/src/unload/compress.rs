//! Compression of whole files, in frames: each is a block of LZ4 by itself.

use crate::codec::{Decoder, Encoder};
use crate::error::{Error, Result};

/// How files are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not: segments are encoded by themselves.
    #[default]
    None,
    /// LZ4, block format.
    Lz4,
}

/// Bytes of a frame before it is compressed, but for the last one.
pub(super) const FRAME_BYTES: usize = 1 << 20;

impl Compression {
    pub(super) fn tag(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Lz4 => 1,
        }
    }

    pub(super) fn of_tag(tag: u8) -> Option<Self> {
        match tag {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }

    /// `bytes` as they are stored.
    pub(super) fn pack(self, bytes: Vec<u8>) -> Vec<u8> {
        if self == Self::None {
            return bytes;
        }
        let mut out = Encoder::with_capacity(bytes.len());
        for frame in bytes.chunks(FRAME_BYTES) {
            let packed = lz4_flex::block::compress(frame);
            // At most FRAME_BYTES, and a little more for what does not compress.
            out.u32(frame.len() as u32);
            out.u32(packed.len() as u32);
            out.raw(&packed);
        }
        out.finish()
    }

    /// What was stored as `bytes` in file `name`.
    ///
    /// # Errors
    /// Corrupt.
    pub(super) fn unpack(self, bytes: Vec<u8>, name: &str) -> Result<Vec<u8>> {
        if self == Self::None {
            return Ok(bytes);
        }
        let mut input = Decoder::new(&bytes, name, 0);
        let mut out = Vec::new();
        while input.remaining() > 0 {
            let at = input.position() as u64;
            let (length, packed) = (input.u32()? as usize, input.u32()? as usize);
            let packed = input.raw(packed)?;
            let damaged = |what: &str| Error::corrupt(name, at, format_args!("a frame {what}"));
            // Before memory for it is asked for.
            if length > FRAME_BYTES {
                return Err(damaged("of more bytes than a frame has"));
            }
            let start = out.len();
            out.resize(start + length, 0);
            let target = out.get_mut(start..).unwrap_or_default();
            match lz4_flex::block::decompress_into(packed, target) {
                Ok(found) if found == length => {}
                _ => return Err(damaged("that does not decompress")),
            }
        }
        Ok(out)
    }
}
