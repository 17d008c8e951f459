//! The bytes of a log file: header, blocks, fragments, record headers (`docs/formats/wal.md`).
//!
//! Comes in: records or bytes. Goes out: bytes or checked pieces of records. Invariants: a fragment never crosses a
//! block; the first fragment of a record holds the whole record header, so one intact fragment says which position was
//! fsynced; a checksum holds for one place of one log only, so bytes that lie in the wrong place never pass.

use crc32c::{crc32c, crc32c_append};

use crate::codec::{Decoder, Encoder};
use crate::error::{Error, Result, sqlstate};
use crate::ids::{CommitTs, LogPosition, SchemaVersion};
use crate::limits::{WAL_BLOCK_BYTES, WAL_ROOM_KEPT_BYTES};

/// Folder of the log files.
pub const WAL_DIR: &str = "wal";

/// Bytes of the header at the start of each file.
pub(super) const FILE_HEADER_BYTES: usize = 64;
/// Bytes in front of each fragment's body: checksum (4), length of the body (2), type (1).
pub(super) const FRAGMENT_HEADER_BYTES: usize = 7;
/// Bytes of the checksum among them, which covers what follows.
const CHECKSUM_BYTES: usize = 4;
/// Bytes in front of each record's payload.
pub(super) const RECORD_HEADER_BYTES: usize = 40;
/// A record starts in a block only with room for its whole header; less than this is padding.
pub(super) const RECORD_ROOM_MIN: usize = FRAGMENT_HEADER_BYTES + RECORD_HEADER_BYTES;
/// Most bytes that the end of a file takes: padding, then a fragment without a body.
const FILE_END_BYTES_MAX: u64 = (RECORD_ROOM_MIN - 1 + FRAGMENT_HEADER_BYTES) as u64;
/// Bytes of disk space set aside behind the records of a file: for its end, and for an opening when the disk is full.
pub(super) const ROOM_BEHIND_BYTES: u64 = FILE_END_BYTES_MAX + WAL_ROOM_KEPT_BYTES;

const MAGIC: &[u8; 8] = b"MSTEMWAL";
const FILE_FORMAT_VERSION: u32 = 2;
/// Since version 2 the metadata of a segment may say its own version; since 3 a run that extends another may have key
/// indexes, which extend that one's.
const RECORD_FORMAT_VERSION: u8 = 3;
/// Where the header's checksum stands, in every format version.
const HEADER_CRC_AT: usize = 60;

/// What a log record is about. New kinds may come: a reader refuses those it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum RecordKind {
    /// A transaction's changes, DDL included.
    Commit = 1,
    /// The installation of a merge.
    Install = 2,
}

impl RecordKind {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Commit),
            2 => Some(Self::Install),
            _ => None,
        }
    }
}

/// Path of log file `number`.
pub(super) fn file_path(number: u64) -> String {
    format!("{WAL_DIR}/{number:010}.log")
}

/// Number of the log file with this name, if it is one.
pub(super) fn file_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    if digits.len() < 10 || !digits.bytes().all(|b| b.is_ascii_digit()) { None } else { digits.parse().ok() }
}

/// What the header of a log file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub log_id: u64,
    pub number: u64,
    /// Position of the file's first byte, which is the header's.
    pub first: LogPosition,
}

impl FileHeader {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut e = Encoder::with_capacity(FILE_HEADER_BYTES);
        e.raw(MAGIC);
        e.u32(FILE_FORMAT_VERSION);
        e.u32(WAL_BLOCK_BYTES as u32);
        e.u64(self.log_id);
        e.u64(self.number);
        e.u64(self.first.0);
        e.raw(&[0; HEADER_CRC_AT - 40]);
        let crc = crc32c(e.as_slice());
        e.u32(crc);
        e.finish()
    }

    /// `Ok(Err(why))`: these bytes are no header (damaged, or never written).
    ///
    /// # Errors
    /// Invalid (0A000) for a format version this build does not know.
    pub(super) fn decode(bytes: &[u8], path: &str) -> Result<Result<Self, &'static str>> {
        let (Some(body), Some(crc)) = (bytes.get(..HEADER_CRC_AT), bytes.get(HEADER_CRC_AT..FILE_HEADER_BYTES)) else {
            return Ok(Err("the file header is cut off"));
        };
        if !body.starts_with(MAGIC) || crc32c(body).to_le_bytes() != crc {
            return Ok(Err("the file header has a wrong checksum"));
        }
        let mut d = Decoder::new(body, path, 0);
        d.raw(MAGIC.len())?;
        let (version, block_bytes) = (d.u32()?, d.u32()?);
        if version != FILE_FORMAT_VERSION || block_bytes as usize != WAL_BLOCK_BYTES {
            return Err(newer(path, format_args!("log format version {version} with blocks of {block_bytes} bytes")));
        }
        Ok(Ok(Self { log_id: d.u64()?, number: d.u64()?, first: LogPosition(d.u64()?) }))
    }
}

pub(super) fn newer(path: &str, what: impl std::fmt::Display) -> Error {
    let message = format!("file {path} has {what}, which this build does not know; open it with a newer one");
    Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, message)
}

/// What stands in front of a record's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub kind: u8,
    pub ts: CommitTs,
    pub payload_bytes: u32,
    /// Microseconds since 1970, UTC.
    pub wall_clock: i64,
    pub schema_version: SchemaVersion,
    /// All below was fsynced when the record was appended.
    pub fsynced: LogPosition,
}

impl RecordHeader {
    pub(super) fn encode(&self) -> [u8; RECORD_HEADER_BYTES] {
        // Without an encoder, which would allocate: this is done under the commit lock.
        let mut bytes = [0; RECORD_HEADER_BYTES];
        let ([head, rest @ ..], []) = bytes.as_chunks_mut::<8>() else { return bytes };
        let [p0, p1, p2, p3] = self.payload_bytes.to_le_bytes();
        *head = [RECORD_FORMAT_VERSION, self.kind, 0, 0, p0, p1, p2, p3];
        let words =
            [self.ts.0, self.wall_clock.cast_unsigned(), self.schema_version.0, self.fsynced.0].map(u64::to_le_bytes);
        rest.copy_from_slice(&words);
        bytes
    }

    /// # Errors
    /// Corrupt; Invalid (0A000) for a format version this build does not know.
    pub(super) fn decode(d: &mut Decoder<'_>, path: &str) -> Result<Self> {
        let (version, kind, _reserved) = (d.u8()?, d.u8()?, d.u16()?);
        if !(1..=RECORD_FORMAT_VERSION).contains(&version) {
            return Err(newer(path, format_args!("a record of format version {version}")));
        }
        let payload_bytes = d.u32()?;
        Ok(Self {
            kind,
            payload_bytes,
            ts: CommitTs(d.u64()?),
            wall_clock: d.i64()?,
            schema_version: SchemaVersion(d.u64()?),
            fsynced: LogPosition(d.u64()?),
        })
    }

    /// The kind, if this build knows it.
    ///
    /// # Errors
    /// Invalid (0A000).
    pub(super) fn known_kind(&self, path: &str) -> Result<RecordKind> {
        RecordKind::from_byte(self.kind).ok_or_else(|| newer(path, format_args!("a record of kind {}", self.kind)))
    }
}

/// Which part of its record a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Part {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
    /// No part of any: the file ends here, and the next one was there before this was written.
    FileEnd = 5,
}

impl Part {
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Full),
            2 => Some(Self::First),
            3 => Some(Self::Middle),
            4 => Some(Self::Last),
            5 => Some(Self::FileEnd),
            _ => None,
        }
    }

    pub(super) fn begins_record(self) -> bool {
        matches!(self, Self::Full | Self::First)
    }

    pub(super) fn ends_record(self) -> bool {
        matches!(self, Self::Full | Self::Last)
    }
}

/// Most bytes that a record with such a payload takes in a file: its fragments and the padding before it.
pub(super) fn framed_bytes_max(payload_bytes: usize) -> u64 {
    let record = payload_bytes + RECORD_HEADER_BYTES;
    let fragments = record / (WAL_BLOCK_BYTES - FRAGMENT_HEADER_BYTES) + 2;
    (record + fragments * FRAGMENT_HEADER_BYTES + RECORD_ROOM_MIN) as u64
}

/// Checksum of a fragment at `position` of log `log_id`, whose length, type and body are `checked`.
fn fragment_crc(log_id: u64, position: LogPosition, checked: &[u8]) -> u32 {
    let seed = u128::from(log_id) | u128::from(position.0) << 64;
    crc32c_append(crc32c(&seed.to_le_bytes()), checked)
}

/// Appends a record to `out`, whose next byte is byte `offset` of the file, and returns the file offset of its first
/// fragment.
pub(super) fn frame(out: &mut Vec<u8>, file: &FileHeader, offset: u64, header: &RecordHeader, payload: &[u8]) -> u64 {
    let mut offset = offset;
    let mut head: &[u8] = &header.encode();
    let mut payload = payload;
    let mut begun = None;
    loop {
        let room = WAL_BLOCK_BYTES - (offset % WAL_BLOCK_BYTES as u64) as usize;
        if begun.is_none() && room < RECORD_ROOM_MIN {
            out.resize(out.len() + room, 0);
            offset += room as u64;
            continue;
        }
        let body_bytes = (head.len() + payload.len()).min(room - FRAGMENT_HEADER_BYTES);
        let (body, rest) = payload.split_at(body_bytes - head.len());
        let part = match (begun.is_none(), rest.is_empty()) {
            (true, true) => Part::Full,
            (true, false) => Part::First,
            (false, false) => Part::Middle,
            (false, true) => Part::Last,
        };
        begun.get_or_insert(offset);
        let length = (body_bytes as u16).to_le_bytes();
        let at = out.len();
        out.extend_from_slice(&[0, 0, 0, 0, length[0], length[1], part as u8]);
        out.extend_from_slice(head);
        out.extend_from_slice(body);
        // Over bytes that stand together: this is done under the commit lock.
        if let Some((checksum, checked)) = out.get_mut(at..).and_then(<[u8]>::split_first_chunk_mut) {
            *checksum = fragment_crc(file.log_id, LogPosition(file.first.0 + offset), checked).to_le_bytes();
        }
        offset += (FRAGMENT_HEADER_BYTES + body_bytes) as u64;
        (head, payload) = (&[], rest);
        if let (true, Some(begun)) = (rest.is_empty(), begun) {
            return begun;
        }
    }
}

/// Appends the end of `file` to `out`, whose next byte is byte `offset` of it; returns how many bytes that are.
pub(super) fn frame_end(out: &mut Vec<u8>, file: &FileHeader, offset: u64) -> u64 {
    let room = WAL_BLOCK_BYTES - (offset % WAL_BLOCK_BYTES as u64) as usize;
    let padding = if room < RECORD_ROOM_MIN { room } else { 0 };
    out.resize(out.len() + padding, 0);
    let checked = [0, 0, Part::FileEnd as u8];
    let position = LogPosition(file.first.0 + offset + padding as u64);
    out.extend_from_slice(&fragment_crc(file.log_id, position, &checked).to_le_bytes());
    out.extend_from_slice(&checked);
    (padding + FRAGMENT_HEADER_BYTES) as u64
}

/// An intact fragment within a block.
#[derive(Clone, Debug)]
pub(super) struct Fragment {
    pub part: Part,
    /// Its body's bytes within the block.
    pub body: std::ops::Range<usize>,
}

/// The fragment at byte `at` of `block`, whose first byte is byte `block_offset` of the file, or why there is none.
pub(super) fn parse_fragment(
    file: &FileHeader,
    block: &[u8],
    block_offset: u64,
    at: usize,
) -> Result<Fragment, &'static str> {
    let rest = block.get(at..).unwrap_or_default();
    let Some((&[c0, c1, c2, c3, l0, l1, part_byte], bodies)) = rest.split_first_chunk::<FRAGMENT_HEADER_BYTES>() else {
        return Err("a fragment header is cut off");
    };
    let part = Part::from_byte(part_byte).ok_or("a fragment has an unknown type")?;
    let body = bodies.get(..usize::from(u16::from_le_bytes([l0, l1]))).ok_or("a fragment is cut off")?;
    let position = LogPosition(file.first.0 + block_offset + at as u64);
    let checked = rest.get(CHECKSUM_BYTES..FRAGMENT_HEADER_BYTES + body.len()).unwrap_or_default();
    if fragment_crc(file.log_id, position, checked) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err("a fragment has a wrong checksum");
    }
    if part.begins_record() && body.len() < RECORD_HEADER_BYTES {
        return Err("a record header is cut off");
    }
    let start = at + FRAGMENT_HEADER_BYTES;
    Ok(Fragment { part, body: start..start + body.len() })
}
