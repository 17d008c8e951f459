//! The log records of commits and installs: redo only, one each (contract 4). Byte tables: `docs/formats/records.md`.
//!
//! Inserts carry delta generation and first offset; deletes are row references as of the commit, after forwarding; a
//! large insert names its segments; an install names what it consumed, its output, and the deletes carried to it. What
//! of this grows with containers (runs, deletes) stands in files aside once it is more than a record should hold: the
//! bytes of a record are bounded.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::codec::{Decoder, Encoder};
pub use crate::commit::ddl::record::DdlRecord;
use crate::commit::ddl::record::{decode_change, encode_change};
use crate::commit::prepare::PreparedTable;
use crate::deletes::{DeleteSet, NamedDeletes, named_bytes};
use crate::disk::{AsideFile, AsideRef};
use crate::error::{Error, Result, sqlstate};
use crate::ids::{CommitTs, ContainerId, RunId, SchemaVersion, TableId};
use crate::limits;
use crate::main_store::{NamedRuns, encode_runs};
use crate::merge::MergeOutcome;
use crate::row::RowBuffer;
use crate::schema::TableSchema;
use crate::write_set::DdlChange;

/// Encodes a commit ahead of the lock; only delta ids and offsets are filled in under it.
pub(super) struct CommitEncoder {
    payload: Vec<u8>,
    /// Where each table's delta id and first offset stand.
    places: Vec<usize>,
}

impl CommitEncoder {
    /// Encodes all but the places in the deltas.
    pub fn new(ddl: &[DdlChange], tables: &[PreparedTable]) -> Result<Self> {
        /// Of each table and each row, or so, besides the values.
        const FRAME_BYTES: usize = 16;
        let rows: usize = tables.iter().map(|table| table.rows.bytes() + (table.rows.len() + 4) * FRAME_BYTES).sum();
        let mut out = Encoder::with_capacity(rows);
        let mut places = Vec::with_capacity(tables.len());
        out.list(ddl.iter(), encode_change);
        out.list(tables.iter(), |out, table| {
            out.u64(table.schema.id.0);
            out.u64(table.schema.version.0);
            places.push(out.len());
            out.u64(0);
            out.u32(0);
            out.bytes_by(table.rows.written_bytes(), |out| table.rows.write_to(out));
            encode_runs(out, &table.runs, table.runs_aside.as_ref());
            let inline = if table.deletes_aside.is_some() { Vec::new() } else { clone_sets(&table.deletes) };
            NamedDeletes { inline, files: table.deletes_aside.iter().map(|file| file.at()).collect() }.encode(out);
        });
        if out.len() > limits::WAL_RECORD_BYTES_MAX {
            let message = format!(
                "the transaction needs a log record of {} bytes, at most {} are possible: change fewer rows at a time",
                out.len(),
                limits::WAL_RECORD_BYTES_MAX
            );
            return Err(Error::invalid(sqlstate::LIMIT_EXCEEDED, message));
        }
        Ok(Self { payload: out.finish(), places })
    }

    /// The record of a log that is never read.
    pub fn unread() -> Self {
        Self { payload: Vec::new(), places: Vec::new() }
    }

    /// Bytes of the record.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Fills in where each table's rows go.
    pub fn place(&mut self, targets: impl Iterator<Item = (ContainerId, u32)>) {
        for (&at, (id, offset)) in self.places.iter().zip(targets) {
            if let Some(bytes) = self.payload.get_mut(at..at + 12) {
                bytes[..8].copy_from_slice(&id.0.to_le_bytes());
                bytes[8..].copy_from_slice(&offset.to_le_bytes());
            }
        }
    }

    /// The record.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// Encodes the commit of a short statement ahead of the lock, as [`CommitEncoder`] would.
pub(super) struct RowEncoder(CommitEncoder);

impl RowEncoder {
    /// Encodes all but the place in the delta: of `schema`'s table `rows` come, and `deleted` go.
    pub fn new(schema: &TableSchema, rows: &RowBuffer, deleted: Vec<(ContainerId, DeleteSet)>) -> Self {
        /// Of all but the values, or so, and of each row.
        const FRAME_BYTES: usize = 128;
        const ROW_BYTES: usize = 16;
        let mut out = Encoder::with_capacity(rows.bytes() + FRAME_BYTES + ROW_BYTES * rows.len());
        out.list(std::iter::empty::<()>(), |_, ()| {});
        let mut places = Vec::with_capacity(1);
        out.list(std::iter::once(deleted), |out, deleted| {
            out.u64(schema.id.0);
            out.u64(schema.version.0);
            places.push(out.len());
            out.u64(0);
            out.u32(0);
            out.bytes_by(rows.written_bytes(), |out| rows.write_to(out));
            encode_runs(out, &[], None);
            NamedDeletes { inline: deleted, files: Vec::new() }.encode(out);
        });
        Self(CommitEncoder { payload: out.finish(), places })
    }

    /// See [`CommitEncoder::bytes`].
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Fills in where the row goes.
    pub fn place(&mut self, delta: ContainerId, offset: u32) {
        self.0.place(std::iter::once((delta, offset)));
    }

    /// See [`CommitEncoder::payload`].
    pub fn payload(&self) -> &[u8] {
        self.0.payload()
    }
}

/// A decoded commit record.
pub struct CommitRecord<'a> {
    /// Schema changes in order.
    pub ddl: Vec<DdlRecord>,
    /// Per table.
    pub tables: Vec<TableRecord<'a>>,
}

/// One table's part of a commit record.
pub struct TableRecord<'a> {
    /// The table.
    pub table: TableId,
    /// The schema version of the rows.
    pub schema_version: SchemaVersion,
    /// The delta generation the rows went to.
    pub delta: ContainerId,
    /// Offset of the first of them.
    pub first_offset: u32,
    /// The rows, as [`RowBuffer::write_to`] wrote them.
    pub rows: &'a [u8],
    /// Runs written aside.
    pub runs: NamedRuns,
    /// Its deletes.
    pub deletes: NamedDeletes,
}

/// A decoded install record.
#[derive(Clone, Debug)]
pub struct InstallRecord {
    /// The table.
    pub table: TableId,
    /// The snapshot the merge read at.
    pub h: CommitTs,
    /// Deltas it consumed.
    pub deltas: Vec<ContainerId>,
    /// Runs it consumed.
    pub runs: Vec<RunId>,
    /// What it made of them: at most one run, none when no row was left.
    pub output: NamedRuns,
    /// Deletes carried to the output's segments.
    pub carried: NamedDeletes,
}

fn clone_sets(sets: &BTreeMap<ContainerId, DeleteSet>) -> Vec<(ContainerId, DeleteSet)> {
    sets.iter().map(|(id, set)| (*id, set.clone())).collect()
}

impl<'a> CommitRecord<'a> {
    /// Reads a commit record.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode(payload: &'a [u8], file: &'a str, base: u64) -> Result<Self> {
        let mut input = Decoder::new(payload, file, base);
        let ddl = input.list(decode_change)?;
        let tables = input.list(|input| {
            Ok(TableRecord {
                table: TableId(input.u64()?),
                schema_version: SchemaVersion(input.u64()?),
                delta: ContainerId(input.u64()?),
                first_offset: input.u32()?,
                rows: input.bytes()?,
                runs: NamedRuns::decode(input)?,
                deletes: NamedDeletes::decode(input)?,
            })
        })?;
        input.finish()?;
        Ok(Self { ddl, tables })
    }
}

impl TableRecord<'_> {
    /// The rows, under the schema they were written with.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode_rows(&self, schema: &Arc<TableSchema>) -> Result<RowBuffer> {
        RowBuffer::read_from(crate::row::RowLayout::new(schema), self.rows)
    }
}

/// Encodes an install ahead of the lock; only the deletes carried under it are added there.
pub(super) struct InstallEncoder {
    /// What stands before the carried deletes.
    head: Encoder,
    /// Deletes carried before the lock: few enough bytes to be copied under it.
    inline: Vec<(ContainerId, DeleteSet)>,
    /// More of them.
    files: Vec<AsideRef>,
}

impl InstallEncoder {
    /// Encodes the install of `outcome`, whose output stands in `aside` if that is a file, with what was carried to
    /// each output segment so far.
    pub fn new(table: TableId, outcome: &MergeOutcome, aside: Option<&Arc<AsideFile>>, carried: NamedDeletes) -> Self {
        let mut head = Encoder::new();
        head.u64(table.0);
        head.u64(outcome.h.0);
        head.list(outcome.consumed_deltas.iter(), |out, id| out.u64(id.0));
        head.list(outcome.consumed_runs.iter(), |out, id| out.u64(id.0));
        encode_runs(&mut head, outcome.output.as_slice(), aside);
        Self { head, inline: carried.inline, files: carried.files }
    }

    /// Bytes so far, at most.
    pub fn bytes(&self) -> usize {
        /// Of a file's reference, and of both counts together.
        const FILE_BYTES: usize = 32;
        let inline: usize = self.inline.iter().map(|(_, set)| named_bytes(set)).sum();
        self.head.len() + inline + (self.files.len() + 1) * FILE_BYTES
    }

    /// The record, with the deletes carried since.
    pub fn finish(mut self, rest: &BTreeMap<ContainerId, DeleteSet>) -> Vec<u8> {
        self.inline.extend(clone_sets(rest));
        NamedDeletes { inline: self.inline, files: self.files }.encode(&mut self.head);
        self.head.finish()
    }
}

impl InstallRecord {
    /// Reads an install record.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode(payload: &[u8], file: &str, base: u64) -> Result<Self> {
        let mut input = Decoder::new(payload, file, base);
        let record = Self {
            table: TableId(input.u64()?),
            h: CommitTs(input.u64()?),
            deltas: input.list(|input| Ok(ContainerId(input.u64()?)))?,
            runs: input.list(|input| Ok(RunId(input.u64()?)))?,
            output: NamedRuns::decode(&mut input)?,
            carried: NamedDeletes::decode(&mut input)?,
        };
        input.finish()?;
        Ok(record)
    }
}
