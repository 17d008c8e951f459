//! The two images of one file, and what a power cut leaves of them.

use rand::Rng;
use rand::rngs::StdRng;

/// Bytes a device writes in one piece.
const SECTOR_BYTES: usize = 512;

/// Disk space comes in pieces of so many bytes.
const BLOCK_BYTES: u64 = 4_096;

/// A file's bytes, live and durable.
#[derive(Clone, Debug, Default)]
pub(super) struct Bytes {
    live: Vec<u8>,
    /// Where the next append goes; a failed one may have left bytes behind it.
    end: u64,
    durable: Vec<u8>,
    /// The images agree below this byte.
    agree: usize,
    /// Space set aside up to this byte.
    reserved: u64,
    /// A sync failed: the system has forgotten which bytes were not durable.
    sync_failed: bool,
}

/// What becomes of the unsynced bytes of one file.
#[derive(Clone, Copy, Debug)]
enum Tear {
    Nothing,
    Everything,
    Prefix,
    Sectors,
}

impl Bytes {
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        let (agree, end) = (bytes.len(), bytes.len() as u64);
        Self { live: bytes.clone(), end, durable: bytes, agree, reserved: 0, sync_failed: false }
    }

    pub(super) fn live(&self) -> &[u8] {
        &self.live
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.append_unowned(bytes);
        self.end += bytes.len() as u64;
    }

    /// Writes behind the end without moving it, as a write that fails half way does.
    pub(super) fn append_unowned(&mut self, bytes: &[u8]) {
        let start = self.end as usize;
        let end = start + bytes.len();
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[start..end].copy_from_slice(bytes);
        self.agree = self.agree.min(start);
    }

    pub(super) fn cut(&mut self, len: u64) {
        self.live.resize(len as usize, 0);
        self.end = len;
        self.agree = self.agree.min(self.live.len());
        // Cutting gives reserved space back.
        self.reserved = self.reserved.min(len);
    }

    pub(super) fn reserve(&mut self, len: u64) {
        self.reserved = self.reserved.max(len);
    }

    /// Bytes of disk space it takes.
    pub(super) fn space(&self) -> u64 {
        self.reserved.max(self.live.len() as u64).next_multiple_of(BLOCK_BYTES)
    }

    /// Bytes of disk space it would take more with `len` bytes.
    pub(super) fn growth(&self, len: u64) -> u64 {
        len.next_multiple_of(BLOCK_BYTES).saturating_sub(self.space())
    }

    pub(super) fn sync(&mut self) {
        if !self.sync_failed {
            self.durable.truncate(self.agree);
            self.durable.extend_from_slice(&self.live[self.agree..]);
            self.agree = self.live.len();
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.sync_failed = true;
    }

    /// The file found after a power cut.
    pub(super) fn after_power_cut(&self, rng: &mut StdRng) -> Self {
        let tear = match rng.random_range(0..8) {
            0 | 1 => Tear::Nothing,
            2 => Tear::Everything,
            3 | 4 => Tear::Prefix,
            _ => Tear::Sectors,
        };
        let (short, long) = (self.durable.len().min(self.live.len()), self.durable.len().max(self.live.len()));
        let bytes = match tear {
            Tear::Nothing => self.durable.clone(),
            Tear::Everything => self.live.clone(),
            // Only appended since the last sync, a prefix of the new bytes; after a cut the lengths in between are
            // possible.
            Tear::Prefix => {
                let longer = if self.live.len() == long { &self.live } else { &self.durable };
                longer[..rng.random_range(short..=long)].to_vec()
            }
            Tear::Sectors => self.mixed_sectors(rng.random_range(short..=long), rng),
        };
        // A shorter prefix than agreed would lose what was synced.
        debug_assert!(bytes.len() >= self.agree && bytes[..self.agree] == self.live[..self.agree]);
        Self::durable(bytes)
    }

    /// `len` bytes: those both images agree on, then each sector from either image, zero or rubbish.
    fn mixed_sectors(&self, len: usize, rng: &mut StdRng) -> Vec<u8> {
        let mut bytes = self.live[..self.agree].to_vec();
        while bytes.len() < len {
            let start = bytes.len();
            let end = (start / SECTOR_BYTES + 1).saturating_mul(SECTOR_BYTES).min(len);
            let from = |image: &[u8]| {
                let mut sector = image.get(start..end.min(image.len())).unwrap_or_default().to_vec();
                sector.resize(end - start, 0);
                sector
            };
            let sector = match rng.random_range(0..8) {
                0..4 => from(&self.live),
                4 => from(&self.durable),
                5 | 6 => vec![0; end - start],
                _ => (start..end).map(|_| rng.random()).collect(),
            };
            bytes.extend_from_slice(&sector);
        }
        bytes
    }
}
