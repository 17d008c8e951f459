//! Files to runs.

use std::sync::Arc;

use super::{UnloadManifest, UnloadedFile, UnloadedTable, rows_path};
use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{ColumnId, FileId};
use crate::main_store::{Run, RunSegment};
use crate::run_writer::{RunWriter, SegmentTarget};
use crate::schema::TableSchema;
use crate::segment::{PackedSegment, Segment, SegmentPlace};
use crate::threads::in_parallel_alone;

/// A folder that something was unloaded to.
#[derive(Debug)]
pub struct Unloaded<'a> {
    disk: &'a dyn Disk,
    manifest: UnloadManifest,
}

impl<'a> Unloaded<'a> {
    /// Opens the folder `disk`: reads its manifest.
    ///
    /// # Errors
    /// As [`UnloadManifest::read`].
    pub fn open(disk: &'a dyn Disk) -> Result<Self> {
        Ok(Self { disk, manifest: UnloadManifest::read(disk)? })
    }

    /// What it holds.
    #[must_use]
    pub fn manifest(&self) -> &UnloadManifest {
        &self.manifest
    }

    /// The rows of `table`, one of the folder's, as runs of `schema`'s table, which has the same columns in the same
    /// order, keys and layout. They stand aside: their files go with them unless somebody keeps them.
    ///
    /// # Errors
    /// Corrupt, which names the file; Full or Io; those of `go_on`, which is asked before each file.
    pub fn runs(
        &self,
        table: &UnloadedTable,
        schema: &Arc<TableSchema>,
        target: &SegmentTarget,
        threads: usize,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<Vec<Arc<Run>>> {
        let files: Vec<&UnloadedFile> = table.files().collect();
        let packed_as = table.schema.column_ids();
        let columns = schema.column_ids();
        let segments = in_parallel_alone(threads, files.len(), |at| {
            go_on()?;
            let file = files.get(at).ok_or_else(|| Error::internal("a file of a folder is not there"))?;
            let packed = self.packed(file, &packed_as)?;
            let (id, number) = (target.ids.next_container(), target.ids.next_file());
            let place = SegmentPlace {
                disk: &target.disk,
                id,
                file: number,
                threads: 1,
                encodings: target.encodings,
                symbols: None,
            };
            packed.write(place, &target.cache, schema.version, &columns)
        })?;
        let mut segments = segments.into_iter();
        let mut runs: Vec<Vec<Arc<Segment>>> = Vec::with_capacity(table.runs.len());
        for run in &table.runs {
            runs.push(segments.by_ref().take(run.len()).collect());
        }
        let finished = in_parallel_alone(threads, runs.len(), |at| {
            let mut writer = RunWriter::new(schema.clone(), target.clone());
            for segment in runs.get(at).into_iter().flatten() {
                writer.keep(RunSegment::whole(segment.clone()), &|| go_on())?;
            }
            writer.finish_while(&|| go_on())
        })?;
        Ok(finished.into_iter().flatten().map(|written| written.run).collect())
    }

    /// The segment in `file`, which has columns `columns`.
    fn packed(&self, file: &UnloadedFile, columns: &[ColumnId]) -> Result<PackedSegment> {
        let name = rows_path(file.number);
        let found = self.disk.open(&name).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::corrupt(&name, 0, "the file is missing, though the manifest names it"),
            _ => e,
        })?;
        let length = found.len()?;
        if length != file.bytes {
            let what = format_args!("the file has {length} bytes, and had {} when it was written", file.bytes);
            return Err(Error::corrupt(&name, length.min(file.bytes), what));
        }
        let mut bytes = Vec::new();
        found.read_into(0, usize::try_from(length).unwrap_or(usize::MAX), &mut bytes)?;
        if crc32c::crc32c(&bytes) != file.checksum {
            return Err(Error::corrupt(&name, 0, "the file does not match its checksum"));
        }
        let bytes = self.manifest.compression.unpack(bytes, &name)?;
        let packed = PackedSegment::parse(&bytes, FileId(file.number), &name)?;
        let meta = packed.meta();
        if meta.rows != file.rows || !meta.columns.iter().map(|column| column.id).eq(columns.iter().copied()) {
            return Err(Error::corrupt(&name, 0, "it has other rows or columns than the manifest says"));
        }
        Ok(packed)
    }
}
