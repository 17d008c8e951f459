//! Reading a log back: records in order, up to its end.
//!
//! Comes in: the log's files and a position. Goes out: each record once, then a [`TailState`], or a Corrupt error that
//! names file and byte. Invariants: memory holds one block and one record; bad bytes are never skipped: the reading
//! ends at them, in an error or as the torn tail (`tail`).

use std::fmt;

use super::files::list_files;
use super::format::{
    FILE_HEADER_BYTES, FileHeader, Part, RECORD_ROOM_MIN, RecordHeader, RecordKind, file_path, parse_fragment,
};
use super::tail::{Chain, Found, TailState, open_chain, read_block};
use crate::codec::Decoder;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::ids::{CommitTs, LogPosition, SchemaVersion};
use crate::limits::WAL_BLOCK_BYTES;

/// A record read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its place on the time line.
    pub ts: CommitTs,
    /// What it is about.
    pub kind: RecordKind,
    /// Version of the schemas it was made under.
    pub schema_version: SchemaVersion,
    /// When it was appended: microseconds since 1970, UTC.
    pub wall_clock: i64,
    /// Its content.
    pub payload: Vec<u8>,
    /// Where it begins.
    pub position: LogPosition,
    /// Where it ends.
    pub end_position: LogPosition,
    /// All below was fsynced when it was appended.
    pub fsynced_position: LogPosition,
}

/// Reads records from a position on, in order; an iterator that ends at the torn tail, or after its first error.
pub struct LogReader {
    chain: Chain,
    known: Known,
    /// The file being read, as an index into the chain, and the byte of it to read next.
    at_file: usize,
    offset: u64,
    block: Vec<u8>,
    /// Where `block` was read from; none was before the first.
    block_offset: Option<u64>,
    valid_end: LogPosition,
    /// The file being read says that it ends, and that there is another.
    file_ended: bool,
    last_ts: Option<CommitTs>,
    outcome: Outcome,
}

impl fmt::Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader").field("valid_end", &self.valid_end).finish_non_exhaustive()
    }
}

enum Outcome {
    Reading,
    Ended(TailState),
    Failed(Error),
}

/// A position below which all was fsynced.
#[derive(Clone, Copy)]
struct Known {
    position: LogPosition,
    /// Who says so.
    by: &'static str,
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}, which is known to have been fsynced ({} says so)", self.position, self.by)
    }
}

/// What stands at the current byte.
enum Step {
    Fragment(Part, std::ops::Range<usize>),
    EndOfFile,
    Bad(&'static str),
}

/// A record of which some fragments were read.
struct Begun {
    header: RecordHeader,
    position: LogPosition,
    payload: Vec<u8>,
}

impl LogReader {
    /// Reads from `from`, the position of a record or the end of the log.
    ///
    /// # Errors
    /// Corrupt when a file is missing, a closed one is damaged or has a wrong length, or the log ends before `from`;
    /// Invalid (0A000) for a newer format; Io.
    pub fn open(disk: &dyn Disk, from: LogPosition) -> Result<Self> {
        let chain = open_chain(disk, &list_files(disk)?, from)?;
        let first = chain.begun.first().map_or(from, |(header, _)| header.first);
        let offset = (from.0 - first.0).max(FILE_HEADER_BYTES as u64);
        Ok(Self {
            chain,
            known: Known { position: from, by: "the manifest" },
            at_file: 0,
            offset,
            block: Vec::new(),
            block_offset: None,
            valid_end: LogPosition(first.0 + offset),
            file_ended: false,
            last_ts: None,
            outcome: Outcome::Reading,
        })
    }

    /// Tells that all below `position` is known to have been fsynced, as file `by` says: bad bytes there are damage,
    /// whatever follows.
    #[must_use]
    pub fn known_fsynced(mut self, position: LogPosition, by: &'static str) -> Self {
        if position > self.known.position {
            self.known = Known { position, by };
        }
        self
    }

    /// Reads to the end and says where it is.
    ///
    /// # Errors
    /// As the iterator; also its error from before.
    pub fn finish(mut self) -> Result<TailState> {
        for record in self.by_ref() {
            record?;
        }
        match self.outcome {
            Outcome::Ended(tail) => Ok(tail),
            Outcome::Failed(error) => Err(error),
            Outcome::Reading => Err(Error::internal("a log reader stopped early")),
        }
    }

    fn current(&self) -> Result<&(FileHeader, Found)> {
        self.chain.begun.get(self.at_file).ok_or_else(|| Error::internal("a log reader without a file"))
    }

    fn step(&mut self) -> Result<Step> {
        let room = WAL_BLOCK_BYTES - (self.offset % WAL_BLOCK_BYTES as u64) as usize;
        if room < RECORD_ROOM_MIN {
            self.offset += room as u64;
        }
        let (header, found) = self.chain.begun.get(self.at_file).ok_or_else(|| Error::internal("no log file"))?;
        if self.offset >= found.len {
            return Ok(Step::EndOfFile);
        }
        let at = (self.offset % WAL_BLOCK_BYTES as u64) as usize;
        let block_offset = self.offset - at as u64;
        if self.block_offset != Some(block_offset) {
            self.block_offset = None;
            read_block(&*found.file, found.len, block_offset, &mut self.block)?;
            self.block_offset = Some(block_offset);
        }
        Ok(match parse_fragment(header, &self.block, block_offset, at) {
            Ok(fragment) => Step::Fragment(fragment.part, fragment.body),
            Err(why) => Step::Bad(why),
        })
    }

    /// The next record; None at the end of the log.
    fn read_record(&mut self) -> Result<Option<LogRecord>> {
        let mut begun: Option<Begun> = None;
        loop {
            let step = self.step()?;
            let (header, found) = self.current()?;
            let (number, position) = (header.number, LogPosition(header.first.0 + self.offset));
            let (part, body) = match step {
                Step::Bad(why) => return self.bad(why),
                Step::EndOfFile if begun.is_some() => return self.bad("the last record is cut off"),
                Step::EndOfFile if self.at_file + 1 < self.chain.begun.len() => {
                    self.at_file += 1;
                    self.offset = FILE_HEADER_BYTES as u64;
                    self.block_offset = None;
                    self.file_ended = false;
                    self.valid_end = LogPosition(self.current()?.0.first.0 + self.offset);
                    continue;
                }
                Step::EndOfFile => {
                    // Padding may be all that is left of a record.
                    self.offset = found.len;
                    return self.end();
                }
                Step::Fragment(Part::FileEnd, body) if begun.is_none() => {
                    self.offset += (body.end - self.block_at(&body)) as u64;
                    self.valid_end = LogPosition(self.current()?.0.first.0 + self.offset);
                    self.file_ended = true;
                    continue;
                }
                Step::Fragment(Part::FileEnd, _) => return self.bad("the file ends within a record"),
                Step::Fragment(part, _) if part.begins_record() != begun.is_none() => {
                    return self.bad("the fragments of a record are not in order");
                }
                Step::Fragment(part, body) => (part, body),
            };
            self.offset += (body.end - self.block_at(&body)) as u64;
            let bytes = self.block.get(body).unwrap_or_default();
            let record = match &mut begun {
                Some(record) => {
                    record.payload.extend_from_slice(bytes);
                    record
                }
                none => none.insert(begin_record(bytes, number, position)?),
            };
            if part.ends_record() {
                let end = LogPosition(self.current()?.0.first.0 + self.offset);
                return match begun.take() {
                    Some(record) => self.whole_record(record, number, end).map(Some),
                    None => Ok(None),
                };
            }
            if record.payload.len() > record.header.payload_bytes as usize {
                return Err(Error::corrupt(file_path(number), self.offset, "a record is longer than it says"));
            }
        }
    }

    /// Where in the block the fragment with this body begins.
    fn block_at(&self, body: &std::ops::Range<usize>) -> usize {
        body.start - super::format::FRAGMENT_HEADER_BYTES
    }

    fn whole_record(&mut self, record: Begun, number: u64, end: LogPosition) -> Result<LogRecord> {
        let path = file_path(number);
        let Begun { header, position, payload } = record;
        let corrupt = |message: String| Error::corrupt(&path, self.offset, message);
        if payload.len() != header.payload_bytes as usize {
            return Err(corrupt(format!("a record of {} bytes has {}", header.payload_bytes, payload.len())));
        }
        if self.last_ts.is_some_and(|last| header.ts <= last) {
            return Err(corrupt(format!("record {} follows a later one", header.ts)));
        }
        let kind = header.known_kind(&path)?;
        self.last_ts = Some(header.ts);
        self.valid_end = end;
        Ok(LogRecord {
            ts: header.ts,
            kind,
            schema_version: header.schema_version,
            wall_clock: header.wall_clock,
            payload,
            position,
            end_position: end,
            fsynced_position: header.fsynced,
        })
    }

    /// Bad bytes at the current offset: damage, or the end.
    fn bad(&mut self, why: &str) -> Result<Option<LogRecord>> {
        let (header, _) = self.current()?;
        let path = file_path(header.number);
        let damage = LogPosition(header.first.0 + self.offset);
        if self.at_file + 1 < self.chain.begun.len() {
            return Err(Error::corrupt(path, self.offset, format_args!("{why}, in a closed log file")));
        }
        let known = if self.known.position > damage {
            Some(self.known)
        } else {
            let above = self.chain.fsynced_above(damage, self.offset)?;
            above.map(|position| Known { position, by: "a record behind it" })
        };
        match known {
            Some(known) => Err(Error::corrupt(path, self.offset, format_args!("{why}, below {known}"))),
            None => self.end(),
        }
    }

    fn end(&mut self) -> Result<Option<LogRecord>> {
        let (header, found) = self.current()?;
        let next = header.number + 1;
        if self.file_ended && self.chain.not_begun.iter().all(|found| found.number != next) {
            let message = format_args!("log file {}, which follows it, is missing", file_path(next));
            return Err(Error::corrupt(file_path(header.number), found.len, message));
        }
        if self.valid_end < self.known.position {
            let known = self.known;
            // The file behind may be what is damaged: without its header nothing of it counts.
            return Err(match self.chain.not_begun.iter().find(|found| found.number == next) {
                Some(found) => {
                    let message = format_args!("the file header is cut off or damaged, and the log ends below {known}");
                    Error::corrupt(file_path(found.number), 0, message)
                }
                None => {
                    let end = self.valid_end.0 - header.first.0;
                    Error::corrupt(file_path(header.number), end, format_args!("the log ends below {known}"))
                }
            });
        }
        let torn_here = (header.first.0 + found.len).saturating_sub(self.valid_end.0);
        let torn_behind: u64 = self.chain.not_begun.iter().map(|found| found.len).sum();
        self.outcome = Outcome::Ended(TailState {
            file_number: header.number,
            file_first: header.first,
            valid_end: self.valid_end,
            last_ts: self.last_ts,
            torn_bytes: torn_here + torn_behind,
            is_torn: self.file_ended || torn_here + torn_behind > 0,
        });
        Ok(None)
    }
}

fn begin_record(bytes: &[u8], number: u64, position: LogPosition) -> Result<Begun> {
    let path = file_path(number);
    let mut d = Decoder::new(bytes, &path, position.0);
    let header = RecordHeader::decode(&mut d, &path)?;
    let payload = d.raw(d.remaining())?;
    let mut all = Vec::with_capacity(payload.len());
    all.extend_from_slice(payload);
    Ok(Begun { header, position, payload: all })
}

impl Iterator for LogReader {
    type Item = Result<LogRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if !matches!(self.outcome, Outcome::Reading) {
            return None;
        }
        let record = self.read_record();
        if let Err(error) = &record {
            self.outcome = Outcome::Failed(error.clone());
        }
        record.transpose()
    }
}
