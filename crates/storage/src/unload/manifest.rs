//! What a folder holds: tables, views, and the files with their rows.

use std::sync::Arc;

use super::{Compression, UNLOAD_ASIDE, UNLOAD_FILE};
use crate::catalog::format::{decode_schema, decode_view, encode_schema, encode_view};
use crate::codec::{Decoder, Encoder};
use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{ColumnId, CommitTs};
use crate::schema::{TableSchema, View};

/// First bytes of the file.
const MAGIC: &[u8; 8] = b"MSTMUNLD";
/// Version of the format. An older program refuses a newer one.
pub(super) const FORMAT_VERSION: u32 = 1;
/// Magic, version, payload length, payload checksum, checksum of these.
const HEADER_BYTES: usize = HEADER_CHECKED + 4;
/// The bytes that the header's checksum covers.
const HEADER_CHECKED: usize = 8 + 4 + 8 + 4;

/// What a folder holds.
#[derive(Clone, Debug)]
pub struct UnloadManifest {
    /// Whether it is all that the database had, or one table.
    pub whole: bool,
    /// The snapshot.
    pub ts: CommitTs,
    /// How the files are compressed.
    pub compression: Compression,
    /// The namespaces, but for the one that always exists.
    pub namespaces: Vec<String>,
    /// The tables.
    pub tables: Vec<UnloadedTable>,
    /// The views.
    pub views: Vec<Arc<View>>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct UnloadedTable {
    /// Its definition.
    pub schema: Arc<TableSchema>,
    /// Numbers taken of its IDENTITY columns.
    pub numbers: Vec<(ColumnId, u64)>,
    /// The files of its runs, oldest run first, each in order.
    pub runs: Vec<Vec<UnloadedFile>>,
}

/// A file: a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnloadedFile {
    /// Its number: no two of a folder have the same.
    pub number: u64,
    /// Its bytes.
    pub bytes: u64,
    /// CRC-32C of them.
    pub checksum: u32,
    /// Its rows.
    pub rows: u32,
}

impl UnloadedTable {
    /// Its rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files().map(|file| u64::from(file.rows)).sum()
    }

    /// All its files.
    pub fn files(&self) -> impl Iterator<Item = &UnloadedFile> {
        self.runs.iter().flatten()
    }
}

impl UnloadManifest {
    /// Writes it, durably, and with it makes the folder one that can be read.
    ///
    /// # Errors
    /// Io or Full: it is not there then.
    pub(super) fn write(&self, disk: &dyn Disk) -> Result<()> {
        let payload = self.encode();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes.extend_from_slice(&payload);
        let file = disk.create(UNLOAD_ASIDE)?;
        file.append(&bytes)?;
        file.sync()?;
        disk.rename(UNLOAD_ASIDE, UNLOAD_FILE)?;
        disk.sync_dir("")
    }

    /// Reads that of the folder `disk`.
    ///
    /// # Errors
    /// NotFound (58P01) where there is none: nothing was unloaded there, or not to the end. Corrupt; Invalid (0A000)
    /// for a newer format; Io.
    pub fn read(disk: &dyn Disk) -> Result<Self> {
        let file = disk.open(UNLOAD_FILE).map_err(|e| match e.kind() {
            ErrorKind::NotFound => Error::new(
                ErrorKind::NotFound,
                sqlstate::UNDEFINED_FILE,
                format!("there is no file {UNLOAD_FILE}: nothing was unloaded there, or not to its end"),
            ),
            _ => e,
        })?;
        let mut bytes = Vec::new();
        file.read_into(0, usize::try_from(file.len()?).unwrap_or(usize::MAX), &mut bytes)?;
        let mut header = Decoder::new(&bytes, UNLOAD_FILE, 0);
        if header.raw(MAGIC.len())? != MAGIC {
            return Err(Error::corrupt(UNLOAD_FILE, 0, "it does not begin as such a file does"));
        }
        let (version, length, checksum) = (header.u32()?, header.u64()?, header.u32()?);
        let own = header.u32()?;
        if bytes.get(..HEADER_CHECKED).map(crc32c::crc32c) != Some(own) {
            return Err(Error::corrupt(UNLOAD_FILE, 0, "the header does not match its checksum"));
        }
        if version > FORMAT_VERSION || version == 0 {
            let message = format!(
                "file {UNLOAD_FILE} has format version {version}, this program knows up to {FORMAT_VERSION}: load it \
                 with a newer Mainstem"
            );
            return Err(Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, message));
        }
        let payload = bytes.get(HEADER_BYTES..).unwrap_or_default();
        if payload.len() as u64 != length || crc32c::crc32c(payload) != checksum {
            return Err(Error::corrupt(UNLOAD_FILE, HEADER_BYTES as u64, "it does not match its checksum"));
        }
        Self::decode(payload)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.bool(self.whole);
        out.u64(self.ts.0);
        out.u8(self.compression.tag());
        out.list(self.namespaces.iter(), |out, name| out.str(name));
        out.list(self.tables.iter(), |out, table| {
            encode_schema(out, &table.schema);
            out.list(table.numbers.iter(), |out, (column, taken)| {
                out.u32(column.0);
                out.u64(*taken);
            });
            out.list(table.runs.iter(), |out, run| {
                out.list(run.iter(), |out, file| {
                    out.u64(file.number);
                    out.u64(file.bytes);
                    out.u32(file.checksum);
                    out.u32(file.rows);
                });
            });
        });
        out.list(self.views.iter(), |out, view| encode_view(out, view));
        out.finish()
    }

    fn decode(payload: &[u8]) -> Result<Self> {
        let mut input = Decoder::new(payload, UNLOAD_FILE, HEADER_BYTES as u64);
        let (whole, ts, tag) = (input.bool()?, CommitTs(input.u64()?), input.u8()?);
        let compression =
            Compression::of_tag(tag).ok_or_else(|| input.corrupt(format_args!("compression {tag} is unknown")))?;
        let namespaces = input.list(|input| Ok(input.str()?.to_owned()))?;
        let tables = input.list(|input| {
            let schema = Arc::new(decode_schema(input)?);
            let numbers = input.list(|input| Ok((ColumnId(input.u32()?), input.u64()?)))?;
            let runs = input.list(|input| {
                input.list(|input| {
                    let (number, bytes) = (input.u64()?, input.u64()?);
                    Ok(UnloadedFile { number, bytes, checksum: input.u32()?, rows: input.u32()? })
                })
            })?;
            Ok(UnloadedTable { schema, numbers, runs })
        })?;
        let views = input.list(|input| decode_view(input).map(Arc::new))?;
        input.finish()?;
        Ok(Self { whole, ts, compression, namespaces, tables, views })
    }
}
