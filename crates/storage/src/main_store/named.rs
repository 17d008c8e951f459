//! Runs as log records and the manifest name them: the metadata of their segments. Byte table: `docs/formats/records.md`.
//!
//! Comes in: runs. Goes out: bytes, in a record whose size is bounded and in a file aside when they did not fit; and back.
//!
//! 1. A commit or install that lists runs asks [`write_runs_aside`] before the commit lock, and then [`encode_runs`].
//! 2. Replay takes [`NamedRuns`] from the record, and [`NamedRuns::read`] only if it needs them: the file may be gone once the
//!    manifest covers the record.
//! 3. The manifest holds all its runs itself ([`NamedRun`]).
//!
//! It does not own: how long a file is needed (`commit`, `recover`).

use std::ops::Range;
use std::sync::Arc;

use super::{Run, RunIndex, RunSegment};
use crate::disk::{AsideFile, AsideKind, AsideRef, AsideWriter, Disk};
use crate::error::Result;
use crate::ids::{FileId, KeyId, RunId};
use crate::limits;
use crate::segment::{Segment, SegmentMeta};
use crate::wal::codec::{Decoder, Encoder};

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
        let indexes = run.indexes().iter().map(|index| (index.key, Self::of(&index.entries))).collect();
        Self { id: run.id(), segments, indexes }
    }

    /// Appends it to a record: id, then each segment's metadata and range, then each key with its index in the same form without
    /// this list.
    pub fn encode(&self, out: &mut Encoder) {
        self.encode_parts(out);
        out.list(self.indexes.iter(), |out, (key, index)| {
            out.u32(key.0);
            index.encode_parts(out);
        });
    }

    fn encode_parts(&self, out: &mut Encoder) {
        encode_parts(out, self.id, self.segments.iter().map(|(meta, range)| (meta, range)));
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
        let segments = input.list(|input| {
            let meta = SegmentMeta::decode(input)?;
            let range = input.u32()?..input.u32()?;
            if range.start > range.end || range.end > meta.rows {
                return Err(input.corrupt("a run names rows its segment does not have"));
            }
            Ok((meta, range))
        })?;
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
            indexes.push(RunIndex { key: *key, entries: index.open(open)? });
        }
        Ok(Arc::new(Run::new(self.id, segments)?.with_indexes(indexes)))
    }

    /// Segments, those of the key indexes included.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.segments.len() as u64 + self.indexes.iter().map(|(_, index)| index.segments()).sum::<u64>()
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

    /// The runs, and the file they stand in.
    ///
    /// # Errors
    /// Corrupt, Io.
    pub fn read(self, disk: &Arc<dyn Disk>) -> Result<(Vec<NamedRun>, Option<Arc<AsideFile>>)> {
        let Some(at) = self.file else { return Ok((self.inline, None)) };
        let file = AsideFile::named(disk.clone(), AsideKind::Runs, at);
        let bytes = file.read_whole()?;
        let mut input = Decoder::new(&bytes, file.path(), 0);
        let runs = input.list(NamedRun::decode)?;
        input.finish()?;
        if runs.iter().map(NamedRun::segments).sum::<u64>() != at.items {
            return Err(file.corrupt(0, format_args!("it does not name {} segments", at.items)));
        }
        Ok((runs, Some(file)))
    }
}

/// Appends `runs` to a record: by the file they stand in, if there is one.
pub fn encode_runs(out: &mut Encoder, runs: &[Arc<Run>], aside: Option<&Arc<AsideFile>>) {
    encode_list(out, if aside.is_some() { &[] } else { runs });
    out.option(aside, |out, file| file.at().encode(out));
}

/// Writes `runs` to a file with an id of `next_file`, durable, unless they fit into `room` bytes of a record, and takes those off. The
/// file goes unless it is kept.
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
    encode_list(&mut out, runs);
    let bytes = out.finish();
    if let Some(left) = room.checked_sub(bytes.len()) {
        *room = left;
        return Ok(None);
    }
    let mut file = AsideWriter::new(disk.clone(), AsideKind::Runs, next_file())?;
    let mut segments = runs.iter().map(|run| run.all_segments().count() as u64).sum();
    for block in bytes.chunks(limits::ASIDE_BLOCK_BYTES) {
        file.block(block, std::mem::take(&mut segments))?;
    }
    file.finish().map(Some)
}

fn encode_list(out: &mut Encoder, runs: &[Arc<Run>]) {
    out.list(runs.iter(), |out, run| {
        encode_run_parts(out, run);
        out.list(run.indexes().iter(), |out, index| {
            out.u32(index.key.0);
            encode_run_parts(out, &index.entries);
        });
    });
}

fn encode_run_parts(out: &mut Encoder, run: &Run) {
    encode_parts(out, run.id(), run.segments().iter().map(|part| (part.segment.meta(), &part.range)));
}

fn encode_parts<'a>(
    out: &mut Encoder,
    id: RunId,
    parts: impl ExactSizeIterator<Item = (&'a SegmentMeta, &'a Range<u32>)>,
) {
    out.u64(id.0);
    out.list(parts, |out, (meta, range)| {
        meta.encode(out);
        out.u32(range.start);
        out.u32(range.end);
    });
}
