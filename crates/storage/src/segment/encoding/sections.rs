//! The sections of a block's body: each begins at a multiple of [`ALIGN`] bytes, so that a block read into an aligned
//! buffer is used in place. What is damaged is told as a [`Damage`]; whoever knows the file makes an error of it.

use std::borrow::Cow;

use arrow_buffer::Buffer;

/// Alignment of a section: that of the widest number, `i128`.
pub(crate) const ALIGN: usize = 16;

// Blocks are used in place, and the format is little-endian.
const _: () = assert!(cfg!(target_endian = "little"), "segments are little-endian");

/// Bytes that make no sense although their checksum is right.
#[derive(Debug)]
pub(crate) struct Damage {
    /// Where in the block.
    pub at: usize,
    /// What is wrong.
    pub what: Cow<'static, str>,
}

impl Damage {
    /// Damage at byte `at` of the block.
    pub fn new(at: usize, what: impl Into<Cow<'static, str>>) -> Self {
        Self { at, what: what.into() }
    }
}

/// One of so many bytes is room for what will stand behind a body, its checksums.
const BEHIND_SHARE: usize = 512;
/// Sections of a body, at most.
const SECTIONS: usize = 8;

/// Makes room for `bytes` more in `body`, and for the checksums behind them: what has to grow once more is copied.
pub(crate) fn make_room(body: &mut Vec<u8>, bytes: usize) {
    let behind = (body.len() + bytes) / BEHIND_SHARE + 2 * ALIGN;
    if body.capacity() - body.len() < bytes + behind {
        body.reserve_exact(bytes + behind + SECTIONS * ALIGN);
    }
}

/// Pads `body` to the start of its next section.
pub(crate) fn begin_section(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(ALIGN), 0);
}

/// Bytes a section takes when another one follows.
pub(crate) fn padded(len: usize) -> usize {
    len.next_multiple_of(ALIGN)
}

/// Takes the sections of a body one after the other.
#[derive(Debug)]
pub(crate) struct Sections {
    body: Buffer,
    at: usize,
}

impl Sections {
    /// The sections of `body`, from its start.
    pub fn new(body: Buffer) -> Self {
        Self { body, at: 0 }
    }

    /// Where the next section begins.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next section, of `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<Buffer, Damage> {
        let start = self.at.next_multiple_of(ALIGN);
        match start.checked_add(len) {
            Some(end) if end <= self.body.len() => {
                self.at = end;
                Ok(self.body.slice_with_length(start, len))
            }
            _ => Err(Damage::new(start, format!("a section of {len} bytes ends behind the block"))),
        }
    }

    /// The last section: all that is left.
    pub fn rest(&mut self) -> Buffer {
        let start = self.at.next_multiple_of(ALIGN).min(self.body.len());
        self.at = self.body.len();
        self.body.slice(start)
    }

    /// Says whether anything is left over.
    pub fn finish(&self) -> Result<(), Damage> {
        if self.at == self.body.len() { Ok(()) } else { Err(Damage::new(self.at, "bytes behind the last section")) }
    }
}
