//! The end mark: up to where the log was fsynced when the database was last closed, in the file `LOG_END` beside the
//! manifest.
//!
//! Comes in: the position behind the last record of a log that is fsynced whole. Goes out: a small file, written aside,
//! fsynced, renamed, its directory fsynced; and at the next opening the position again, below which bad bytes are
//! damage and no torn tail.
//!
//! Why a file of its own:
//! - A mark within the log would go with the records that it vouches for: a cut of the log's end would take both, and
//!   nobody would know.
//! - The manifest grows with the segments, and a close should cost what has changed: one small file, whatever the
//!   database holds. A checkpoint knows the position as well, so a close right after one writes nothing.
//!
//! Invariants:
//! - What it says never ceases to be true. Positions only grow, and none below it is written again, whatever is opened,
//!   killed or checkpointed later: so nobody has to take it away before the first write, and an older one does no harm.
//! - It is never written in part: damage to it is an error that names it. If it is removed, the log ends where it ends,
//!   as after a crash.
//!
//! It does not own: when a database is closed (`database`), the rule on damage (`tail`). Byte table:
//! `docs/formats/wal.md`.

use super::format::newer;
use super::state::Log;
use crate::codec::{Decoder, Encoder};
use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::LogPosition;

/// Name of the mark in the database directory.
pub const END_MARK_FILE: &str = "LOG_END";
/// Name it has while it is written.
pub const END_MARK_ASIDE: &str = "LOG_END.tmp";

const MAGIC: &[u8; 8] = b"MSTEMEND";
const FORMAT_VERSION: u32 = 1;
/// Magic, version, zero, position, checksum.
const MARK_BYTES: usize = 8 + 4 + 4 + 8 + 4;
/// What the checksum covers, which stands behind it in every format version.
const CHECKED_BYTES: usize = MARK_BYTES - 4;

/// Up to where the log was fsynced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndMark {
    /// The position behind the last record.
    pub position: LogPosition,
}

impl EndMark {
    /// The mark that the last close has left, if one has.
    ///
    /// # Errors
    /// Corrupt, with what to do; Invalid (0A000) for a newer format; Io.
    pub fn read(disk: &dyn Disk) -> Result<Option<Self>> {
        let file = match disk.open(END_MARK_FILE) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let damaged = |at: u64, what: String| {
            let remedy = "remove it if the log is known to be whole, else bring the directory back from a copy";
            Error::corrupt(END_MARK_FILE, at, format_args!("{what}; it says where the log ends: {remedy}"))
        };
        let len = file.len()?;
        if len != MARK_BYTES as u64 {
            return Err(damaged(len.min(MARK_BYTES as u64), format!("{len} bytes, not {MARK_BYTES}")));
        }
        let mut bytes = [0; MARK_BYTES];
        file.read_at(0, &mut bytes)?;
        let (checked, checksum) = bytes.split_at(CHECKED_BYTES);
        if !checked.starts_with(MAGIC) || crc32c::crc32c(checked).to_le_bytes() != checksum {
            return Err(damaged(0, "it does not match its checksum".to_owned()));
        }
        let mut input = Decoder::new(checked, END_MARK_FILE, 0);
        input.raw(MAGIC.len())?;
        let (version, _zero) = (input.u32()?, input.u32()?);
        if version != FORMAT_VERSION {
            return Err(newer(END_MARK_FILE, format_args!("format version {version}")));
        }
        Ok(Some(Self { position: LogPosition(input.u64()?) }))
    }

    /// Writes the mark. What was there before stays whole until the new one is.
    ///
    /// # Errors
    /// Io or Full: the old mark, or the new one, stays.
    fn write(self, disk: &dyn Disk) -> Result<()> {
        let mut out = Encoder::with_capacity(MARK_BYTES);
        out.raw(MAGIC);
        out.u32(FORMAT_VERSION);
        out.u32(0);
        out.u64(self.position.0);
        let checksum = crc32c::crc32c(out.as_slice());
        out.u32(checksum);
        let written = disk.create(END_MARK_ASIDE).and_then(|file| {
            file.append(out.as_slice())?;
            file.sync()
        });
        written.and_then(|()| disk.rename(END_MARK_ASIDE, END_MARK_FILE)).inspect_err(|_| {
            // What cannot be removed now is removed at the next start.
            let _ = disk.remove(END_MARK_ASIDE);
        })?;
        disk.sync_dir("")
    }
}

impl Log {
    /// Marks up to where the log is fsynced, for whoever has fsynced all of it and appends nothing any more, unless it
    /// is `known` to be so.
    ///
    /// # Errors
    /// Closed after a failed write: nothing is marked. Io or Full.
    pub fn mark_end(&self, known: LogPosition) -> Result<()> {
        let Some(disk) = &self.0.disk else { return Ok(()) };
        let position = {
            let state = self.0.state.lock();
            state.refuse_if_poisoned()?;
            // Not behind what was appended: somebody who is refused later may just begin a file.
            state.fsynced.position
        };
        if position <= known { Ok(()) } else { EndMark { position }.write(&**disk) }
    }
}
