//! The checksums of a block's pages: made, kept and compared.

use super::super::encoding::{ALIGN, Damage};
use super::super::format::{BlockRef, PAGE_BYTES, SUM_BYTES, body_bytes};

/// The checksums of a block's pages.
#[derive(Debug)]
pub(crate) struct PageSums(Box<[u32]>);

impl PageSums {
    /// Takes them from `tail`, what stands behind the body of `block`.
    pub fn of(block: &BlockRef, tail: &[u8]) -> Result<Self, Damage> {
        let (sums, end) = tail.split_at(tail.len().saturating_sub(SUM_BYTES));
        let computed = crc32c::crc32c(sums);
        if computed != block.checksum || end != computed.to_le_bytes() {
            let what = "the checksums of a block's pages do not match theirs";
            return Err(Damage::new(body_bytes(block.len).unwrap_or(0), what));
        }
        let (sums, _) = sums.as_chunks::<SUM_BYTES>();
        Ok(Self(sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect()))
    }

    /// Compares the checksums of `pages`, whole ones of the body from byte `start` on.
    pub fn check(&self, start: usize, pages: &[u8]) -> Result<(), Damage> {
        let expected = self.0.get(start / PAGE_BYTES..).unwrap_or(&[]);
        for (at, page) in pages.chunks(PAGE_BYTES).enumerate() {
            if expected.get(at) != Some(&crc32c::crc32c(page)) {
                let what = format!("{} bytes of a block do not match their checksum", page.len());
                return Err(Damage::new(start + at * PAGE_BYTES, what));
            }
        }
        Ok(())
    }

    /// Bytes of memory it takes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.0)
    }
}

/// Appends the checksums to `body`, which makes a block of it, and returns that of the checksums.
pub(crate) fn seal(body: &mut Vec<u8>) -> u32 {
    let sums: Vec<u8> = body.chunks(PAGE_BYTES).flat_map(|page| crc32c::crc32c(page).to_le_bytes()).collect();
    let checksum = crc32c::crc32c(&sums);
    // A body that is full would double otherwise.
    body.reserve_exact(sums.len() + SUM_BYTES + ALIGN);
    body.extend_from_slice(&sums);
    body.extend_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Compares all checksums of `bytes`, the whole of `block`, and returns the length of its body.
pub(crate) fn check(block: &BlockRef, bytes: &[u8]) -> Result<usize, Damage> {
    let no_block = || Damage::new(0, format!("a block of {} bytes", bytes.len()));
    let body_len = body_bytes(bytes.len() as u64).ok_or_else(no_block)?;
    let (body, tail) = bytes.split_at_checked(body_len).ok_or_else(no_block)?;
    PageSums::of(block, tail)?.check(0, body)?;
    Ok(body_len)
}
