//! Damage or torn tail? The rule of contract 4, and where the log ends.
//!
//! A power cut may lose or tear anything above the position fsynced last, and nothing below. So bad bytes are damage
//! when a later file was begun (the one before was fsynced whole first). They are when they are a header with bytes
//! behind it (it was fsynced before them), or when a record behind them, or the caller, knows a position above them
//! that was fsynced. Otherwise they are the torn tail, and the log ends before them. A log that ends where a file says
//! that another follows, or before a position that the caller knows to have been fsynced, has lost a file or its end.
//!
//! Behind bad bytes no length can be trusted: every byte is tried as the start of a record. Checksums hold for one
//! place only, so none is found where none was written.

use std::sync::Arc;

use super::files::read_header;
use super::format::{FILE_HEADER_BYTES, FileHeader, Part, RECORD_ROOM_MIN, RecordHeader, file_path, parse_fragment};
use super::state::LogStart;
use crate::codec::Decoder;
use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::ids::{CommitTs, LogPosition};
use crate::limits::WAL_BLOCK_BYTES;

/// Where a log ends after a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailState {
    /// The last file that was begun.
    pub file_number: u64,
    /// Position of its first byte.
    pub file_first: LogPosition,
    /// Position behind the last whole record (or behind the header of a file without any).
    pub valid_end: LogPosition,
    /// The last record read, if any was.
    pub last_ts: Option<CommitTs>,
    /// Bytes behind `valid_end` that a power cut left of records never acknowledged as durable.
    pub torn_bytes: u64,
    /// Whether records may have stood behind `valid_end`: there are torn bytes, or a file that should follow has no
    /// header.
    pub is_torn: bool,
}

impl TailState {
    /// The file that the log ends in, and its byte where it does.
    #[must_use]
    pub fn end_place(&self) -> (String, u64) {
        (file_path(self.file_number), self.valid_end.0 - self.file_first.0)
    }

    /// What may have held more records, in words.
    #[must_use]
    pub fn torn_part(&self) -> String {
        match self.torn_bytes {
            0 => format!("{}, which has no header,", file_path(self.file_number + 1)),
            _ => format!("the torn tail of {}", file_path(self.file_number)),
        }
    }

    /// How to go on writing behind the last whole record, which had timestamp `ts`, with a new random `log_id`. A file
    /// without any is begun anew: however often a database is opened, files come with records only. Not so one whose
    /// tail is cut: no other cut has its number.
    #[must_use]
    pub fn next_start(&self, log_id: u64, ts: CommitTs) -> LogStart {
        if !self.is_torn && self.valid_end.0 == self.file_first.0 + FILE_HEADER_BYTES as u64 {
            return LogStart { log_id, file_number: self.file_number, position: self.file_first, ts };
        }
        LogStart { log_id, file_number: self.file_number + 1, position: self.valid_end, ts }
    }
}

/// A file and its length when it was opened.
#[derive(Debug)]
pub(super) struct Found {
    pub number: u64,
    pub len: u64,
    pub file: Arc<dyn DiskFile>,
}

/// The files from the one that holds `from` on; those without a header stand at the end.
pub(super) struct Chain {
    pub begun: Vec<(FileHeader, Found)>,
    pub not_begun: Vec<Found>,
}

/// Opens the files and checks that each begins where the one before ends.
pub(super) fn open_chain(disk: &dyn Disk, numbers: &[u64], from: LogPosition) -> Result<Chain> {
    let mut found = Vec::new();
    for &number in numbers {
        let file = disk.open(&file_path(number))?;
        let header = read_header(&*file, number)?;
        found.push((header, Found { number, len: file.len()?, file }));
    }
    let holds_from = |header: &Result<FileHeader, _>| header.is_ok_and(|header| header.first <= from);
    let Some(start) = found.iter().rposition(|(header, _)| holds_from(header)) else {
        // Of those without a header it may be any.
        let headless = found.iter().find_map(|(header, found)| header.as_ref().err().map(|why| (found.number, *why)));
        let (path, why) = match headless {
            Some((number, why)) => (file_path(number), format!("{why}, and ")),
            None => (super::WAL_DIR.to_owned(), String::new()),
        };
        return Err(Error::corrupt(path, 0, format_args!("{why}no log file holds position {from}")));
    };
    let last = found.iter().rposition(|(header, _)| header.is_ok()).unwrap_or(start);
    let mut not_begun = Vec::new();
    for (header, found) in found.split_off(last + 1) {
        // A header is fsynced before the first record behind it is written.
        if let (Err(why), true) = (header, found.len > FILE_HEADER_BYTES as u64) {
            return Err(Error::corrupt(file_path(found.number), 0, why));
        }
        not_begun.push(found);
    }
    let mut begun: Vec<(FileHeader, Found)> = Vec::new();
    for (header, found) in found.split_off(start) {
        let header = header.map_err(|why| Error::corrupt(file_path(found.number), 0, why))?;
        if let Some((before, before_found)) = begun.last() {
            let path = file_path(before.number);
            if before.number + 1 != header.number {
                let missing = file_path(before.number + 1);
                return Err(Error::corrupt(path, before_found.len, format_args!("log file {missing} is missing")));
            }
            let expected = header.first.0.saturating_sub(before.first.0);
            if before_found.len != expected {
                let message = format_args!("a closed log file of {expected} bytes has {}", before_found.len);
                return Err(Error::corrupt(path, before_found.len.min(expected), message));
            }
        }
        begun.push((header, found));
    }
    if let Some((header, found)) = begun.last()
        && header.first.0 + found.len < from.0
    {
        let message = format_args!("the log ends before position {from}, from which it is to be replayed");
        return Err(Error::corrupt(file_path(header.number), found.len, message));
    }
    Ok(Chain { begun, not_begun })
}

impl Chain {
    /// A position above `damage` that was fsynced, as some intact record behind it says, in the last begun file from
    /// byte `offset` on.
    pub(super) fn fsynced_above(&self, damage: LogPosition, offset: u64) -> Result<Option<LogPosition>> {
        let Some((header, found)) = self.begun.last() else { return Ok(None) };
        scan_for_fsynced(header, found, offset, damage)
    }
}

/// Looks at every byte from `offset` on for a record that knows a fsynced position above `limit`.
fn scan_for_fsynced(
    header: &FileHeader,
    found: &Found,
    offset: u64,
    limit: LogPosition,
) -> Result<Option<LogPosition>> {
    let path = file_path(header.number);
    let mut block_offset = offset - offset % WAL_BLOCK_BYTES as u64;
    let mut at = (offset - block_offset) as usize;
    let mut block = Vec::new();
    while block_offset < found.len {
        read_block(&*found.file, found.len, block_offset, &mut block)?;
        while at + RECORD_ROOM_MIN <= block.len() {
            // The type is the last byte of a fragment's header: looking at it first spares most checksums.
            let part = block.get(at + 6).and_then(|&byte| Part::from_byte(byte));
            let fragment = if part.is_some() { parse_fragment(header, &block, block_offset, at).ok() } else { None };
            let Some(fragment) = fragment else {
                at += 1;
                continue;
            };
            at = fragment.body.end;
            if fragment.part.begins_record() {
                let body = block.get(fragment.body).unwrap_or_default();
                let record = RecordHeader::decode(&mut Decoder::new(body, &path, block_offset), &path)?;
                if record.fsynced > limit {
                    return Ok(Some(record.fsynced));
                }
            }
        }
        block_offset += WAL_BLOCK_BYTES as u64;
        at = 0;
    }
    Ok(None)
}

/// Reads the block at `block_offset` of a file of `len` bytes: whole, or what there is of it.
pub(super) fn read_block(file: &dyn DiskFile, len: u64, block_offset: u64, block: &mut Vec<u8>) -> Result<()> {
    let bytes = len.saturating_sub(block_offset).min(WAL_BLOCK_BYTES as u64);
    block.resize(bytes as usize, 0);
    file.read_at(block_offset, block)
}
