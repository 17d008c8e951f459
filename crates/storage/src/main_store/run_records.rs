//! Runs as log records and the manifest name them: the metadata of their segments. Byte table:
//! `docs/formats/records.md`.
//!
//! Comes in: runs. Goes out: bytes, in a record whose size is bounded and in a file aside when they did not fit; and
//! back.
//!
//! 1. A commit or install that lists runs asks [`write_runs_aside`] before the commit lock, and then [`encode_runs`].
//! 2. Replay takes [`NamedRuns`] from the record, and [`NamedRuns::open`] only if it needs them: the file may be gone
//!    once the manifest covers the record.
//! 3. The manifest holds all its runs itself ([`NamedRun`]).
//!
//! Invariant: of a file no more than a block and an entry are in memory, written or read: each segment is an entry, and
//! opened when that has been read. It does not own: how long a file is needed (`commit`, `recover`).

use std::ops::Range;
use std::sync::Arc;

use super::{Run, RunIndex, RunSegment};
use crate::codec::{Decoder, Encoder};
use crate::disk::{AsideFile, AsideKind, AsideRef, AsideWriter, Disk};
use crate::error::Result;
use crate::ids::{FileId, KeyId, RunId};
use crate::limits;
use crate::segment::{Segment, SegmentMeta};

/// A run by name: what opening it takes.
#[derive(Clone, Debug)]
pub struct NamedRun {
    /// Its id.
    pub id: RunId,
    /// Its segments with the row ranges that belong to it.
    pub segments: Vec<(SegmentMeta, Range<u32>)>,
    /// Its key indexes, which have none themselves.
    pub indexes: Vec<(KeyId, Self)>,
}

impl NamedRun {
    /// Names `run`.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let segments = run.segments().iter().map(|part| (part.segment.meta().clone(), part.range.clone())).collect();
        let indexes = run.indexes().iter().map(|index| (index.key(), Self::of(index.entries()))).collect();
        Self { id: run.id(), segments, indexes }
    }

    /// Appends it to a record: id, then each segment's metadata and range, then each key with its index in the same
    /// form without this list.
    pub fn encode(&self, out: &mut Encoder) {
        self.encode_parts(out);
        out.list(self.indexes.iter(), |out, (key, index)| {
            out.u32(key.0);
            index.encode_parts(out);
        });
    }

    fn encode_parts(&self, out: &mut Encoder) {
        let parts = self.segments.iter().map(|(meta, range)| (meta, range));
        encode_parts(out, self.id, parts, usize::MAX);
    }

    /// Takes it from a record.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let run = Self::decode_parts(input)?;
        let indexes = input.list(|input| Ok((KeyId(input.u32()?), Self::decode_parts(input)?)))?;
        Ok(Self { indexes, ..run })
    }

    fn decode_parts(input: &mut Decoder<'_>) -> Result<Self> {
        let id = RunId(input.u64()?);
        let segments = input.list(|input| decode_part(input))?;
        Ok(Self { id, segments, indexes: Vec::new() })
    }

    /// The run, whose segments `open` opens.
    ///
    /// # Errors
    /// As [`Run::new`].
    pub fn open(&self, open: &mut impl FnMut(&SegmentMeta) -> Arc<Segment>) -> Result<Arc<Run>> {
        let part = |(meta, range): &(_, Range<u32>)| RunSegment { segment: open(meta), range: range.clone() };
        let segments = self.segments.iter().map(part).collect();
        let mut indexes = Vec::with_capacity(self.indexes.len());
        for (key, index) in &self.indexes {
            indexes.push(RunIndex::new(*key, index.open(open)?));
        }
        Ok(Arc::new(Run::new(self.id, segments)?.with_indexes(indexes)))
    }
}

/// The runs that a record names: in itself, or all of them in a file aside.
#[derive(Clone, Debug, Default)]
pub struct NamedRuns {
    inline: Vec<NamedRun>,
    file: Option<AsideRef>,
}

impl NamedRuns {
    /// Takes them from a record.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let inline = input.list(NamedRun::decode)?;
        let file = input.option(AsideRef::decode)?;
        if file.is_some() && !inline.is_empty() {
            return Err(input.corrupt("runs in the record and in a file"));
        }
        Ok(Self { inline, file })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inline.is_empty() && self.file.is_none()
    }

    /// The files that the record itself names: those of its segments, or the one that all of the runs stand in.
    pub fn files(&self) -> impl Iterator<Item = FileId> {
        let of_indexes = self.inline.iter().flat_map(|run| &run.indexes).flat_map(|(_, index)| &index.segments);
        let segments = self.inline.iter().flat_map(|run| &run.segments).chain(of_indexes);
        segments.flat_map(|(meta, _)| meta.files()).chain(self.file.map(|at| at.file))
    }

    /// The file that they stand in, if they do.
    #[must_use]
    pub fn file(&self, disk: &Arc<dyn Disk>) -> Option<Arc<AsideFile>> {
        self.file.map(|at| AsideFile::named(disk.clone(), AsideKind::Runs, at))
    }

    /// The runs, of the record or `file`, whose segments `open` opens.
    ///
    /// # Errors
    /// Corrupt, Io; as [`Run::new`].
    pub fn open(
        &self,
        file: Option<&AsideFile>,
        open: &mut impl FnMut(&SegmentMeta) -> Arc<Segment>,
    ) -> Result<Vec<Arc<Run>>> {
        let Some(file) = file else { return self.inline.iter().map(|run| run.open(open)).collect() };
        let mut runs = OpenedRuns::default();
        // What is not read yet: an entry may go on in the next block.
        let mut bytes = Vec::new();
        file.read(|block, at| {
            bytes.extend_from_slice(block);
            let start = at + block.len() as u64 - bytes.len() as u64;
            let (mut segments, mut done) = (0, 0);
            while let Some(entry) = bytes.get(done..).and_then(first_entry) {
                let mut input = Decoder::new(entry, file.path(), start + (done + ENTRY_HEAD_BYTES) as u64);
                segments += runs.entry(&mut input, open)?;
                input.finish()?;
                done += ENTRY_HEAD_BYTES + entry.len();
            }
            bytes.drain(..done);
            Ok(segments)
        })?;
        if !bytes.is_empty() {
            let at = file.at().bytes.saturating_sub(bytes.len() as u64);
            return Err(file.corrupt(at, "the file ends within an entry"));
        }
        runs.finish()
    }
}

/// Runs as the entries of a file name them, one after the other.
#[derive(Default)]
struct OpenedRuns {
    done: Vec<Arc<Run>>,
    /// The run that began last.
    last: Option<OpenedRun>,
}

/// A run whose segments are being named.
struct OpenedRun {
    id: RunId,
    segments: Vec<RunSegment>,
    /// Its key indexes so far; segments that follow are the last one's.
    indexes: Vec<(KeyId, RunId, Vec<RunSegment>)>,
}

impl OpenedRuns {
    /// Takes an entry and returns how many segments it named.
    fn entry(&mut self, input: &mut Decoder<'_>, open: &mut impl FnMut(&SegmentMeta) -> Arc<Segment>) -> Result<u64> {
        match (input.u8()?, &mut self.last) {
            (BEGIN_RUN, _) => {
                let run = OpenedRun { id: RunId(input.u64()?), segments: Vec::new(), indexes: Vec::new() };
                self.done.extend(self.last.replace(run).map(OpenedRun::finish).transpose()?);
                Ok(0)
            }
            (BEGIN_INDEX, Some(run)) => {
                run.indexes.push((KeyId(input.u32()?), RunId(input.u64()?), Vec::new()));
                Ok(0)
            }
            (SEGMENT, Some(run)) => {
                let (meta, range) = decode_part(input)?;
                let segments = run.indexes.last_mut().map_or(&mut run.segments, |(_, _, segments)| segments);
                segments.push(RunSegment { segment: open(&meta), range });
                Ok(1)
            }
            (tag, _) => Err(input.corrupt(format_args!("{tag} stands where a run is named"))),
        }
    }

    fn finish(mut self) -> Result<Vec<Arc<Run>>> {
        self.done.extend(self.last.map(OpenedRun::finish).transpose()?);
        Ok(self.done)
    }
}

impl OpenedRun {
    fn finish(self) -> Result<Arc<Run>> {
        let mut indexes = Vec::with_capacity(self.indexes.len());
        for (key, id, segments) in self.indexes {
            indexes.push(RunIndex::new(key, Arc::new(Run::new(id, segments)?)));
        }
        Ok(Arc::new(Run::new(self.id, self.segments)?.with_indexes(indexes)))
    }
}

/// The first entry of `bytes`, as far as it is there.
fn first_entry(bytes: &[u8]) -> Option<&[u8]> {
    let (len, rest) = bytes.split_first_chunk::<ENTRY_HEAD_BYTES>()?;
    rest.get(..u32::from_le_bytes(*len) as usize)
}

/// Its length, before an entry of a file.
const ENTRY_HEAD_BYTES: usize = 4;
/// What an entry is: a run that begins, an index of it for a key, a segment of what began last.
const BEGIN_RUN: u8 = 1;
const BEGIN_INDEX: u8 = 2;
const SEGMENT: u8 = 3;

/// Appends `runs` to a record: by the file they stand in, if there is one.
pub fn encode_runs(out: &mut Encoder, runs: &[Arc<Run>], aside: Option<&Arc<AsideFile>>) {
    encode_list(out, if aside.is_some() { &[] } else { runs }, usize::MAX);
    out.option(aside, |out, file| file.at().encode(out));
}

/// Writes `runs` to a file with an id of `next_file`, durable, unless they fit into `room` bytes of a record, and takes
/// those off. The file goes unless it is kept.
///
/// # Errors
/// Io or Full: nothing is left.
pub fn write_runs_aside(
    disk: &Arc<dyn Disk>,
    next_file: impl FnOnce() -> FileId,
    runs: &[Arc<Run>],
    room: &mut usize,
) -> Result<Option<Arc<AsideFile>>> {
    if runs.is_empty() {
        return Ok(None);
    }
    let mut out = Encoder::new();
    encode_list(&mut out, runs, *room);
    if let Some(left) = room.checked_sub(out.len()) {
        *room = left;
        return Ok(None);
    }
    let mut entries = EntryWriter {
        file: AsideWriter::new(disk.clone(), AsideKind::Runs, next_file())?,
        bytes: Vec::new(),
        segments: 0,
    };
    for run in runs {
        entries.add(|out| {
            out.u8(BEGIN_RUN);
            out.u64(run.id().0);
        })?;
        entries.segments_of(run)?;
        for index in run.indexes() {
            entries.add(|out| {
                out.u8(BEGIN_INDEX);
                out.u32(index.key().0);
                out.u64(index.entries().id().0);
            })?;
            entries.segments_of(index.entries())?;
        }
    }
    entries.finish().map(Some)
}

/// A file of runs, of which less than a block is in memory.
struct EntryWriter {
    file: AsideWriter,
    /// Those that are in no block yet.
    bytes: Vec<u8>,
    /// Segments among the entries since the last block began.
    segments: u64,
}

impl EntryWriter {
    fn add(&mut self, encode: impl FnOnce(&mut Encoder)) -> Result<()> {
        let mut entry = Encoder::new();
        encode(&mut entry);
        self.bytes.extend_from_slice(&(entry.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(entry.as_slice());
        while let Some(block) = self.bytes.get(..limits::ASIDE_BLOCK_BYTES) {
            self.file.block(block, std::mem::take(&mut self.segments))?;
            self.bytes.drain(..limits::ASIDE_BLOCK_BYTES);
        }
        Ok(())
    }

    fn segments_of(&mut self, run: &Run) -> Result<()> {
        run.segments().iter().try_for_each(|part| {
            self.segments += 1;
            self.add(|out| {
                out.u8(SEGMENT);
                encode_part(out, part.segment.meta(), &part.range);
            })
        })
    }

    fn finish(mut self) -> Result<Arc<AsideFile>> {
        if !self.bytes.is_empty() {
            self.file.block(&self.bytes, self.segments)?;
        }
        self.file.finish()
    }
}

/// Appends the list of `runs`; no more segments once it is longer than `bytes_max`, for it is then of no use.
fn encode_list(out: &mut Encoder, runs: &[Arc<Run>], bytes_max: usize) {
    let parts_of = |out: &mut Encoder, run: &Run| {
        let parts = run.segments().iter().map(|part| (part.segment.meta(), &part.range));
        encode_parts(out, run.id(), parts, bytes_max);
    };
    out.list(runs.iter(), |out, run| {
        parts_of(out, run);
        out.list(run.indexes().iter(), |out, index| {
            out.u32(index.key().0);
            parts_of(out, index.entries());
        });
    });
}

fn encode_parts<'a>(
    out: &mut Encoder,
    id: RunId,
    parts: impl ExactSizeIterator<Item = (&'a SegmentMeta, &'a Range<u32>)>,
    bytes_max: usize,
) {
    out.u64(id.0);
    out.list(parts, |out, (meta, range)| {
        if out.len() <= bytes_max {
            encode_part(out, meta, range);
        }
    });
}

fn encode_part(out: &mut Encoder, meta: &SegmentMeta, range: &Range<u32>) {
    meta.encode(out);
    out.u32(range.start);
    out.u32(range.end);
}

fn decode_part(input: &mut Decoder<'_>) -> Result<(SegmentMeta, Range<u32>)> {
    let meta = SegmentMeta::decode(input)?;
    let range = input.u32()?..input.u32()?;
    if range.start >= range.end || range.end > meta.rows {
        return Err(input.corrupt("a run names rows its segment does not have"));
    }
    Ok((meta, range))
}
