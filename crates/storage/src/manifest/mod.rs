//! The manifest: a checkpoint of the state at one fsynced timestamp (contract 4). The log alone makes a change true;
//! the manifest only says where replay starts and what stands before it.
//!
//! Comes in: a [`Manifest`] (plain data). Goes out: one file, written aside, fsynced, renamed, its directory fsynced.
//! Invariant: every record up to [`Manifest::at`] was fsynced before the manifest took its name. It does not own:
//! replay (`recover`), or when a checkpoint is made (`background`). Byte table: `docs/formats/manifest.md`.

use std::sync::Arc;

use crate::catalog::format::{decode_schema, decode_view, encode_schema, encode_view};
use crate::codec::{Decoder, Encoder};
use crate::deletes::NamedDeletes;
use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{ColumnId, CommitTs, ContainerId, LogPosition, SchemaVersion, TableId};
use crate::main_store::NamedRun;
use crate::schema::{TableSchema, View};

#[cfg(test)]
mod tests;

/// Whether the header of `bytes` matches its checksum, if its version is `version`.
fn is_header(bytes: &[u8], version: u32) -> bool {
    let Some((header, checksum)) = bytes.get(..HEADER_BYTES).map(|header| header.split_at(HEADER_CHECKED)) else {
        return false;
    };
    let (magic, rest) = header.split_at(MAGIC.len());
    let (_, rest) = rest.split_at(size_of::<u32>());
    let sum = crc32c::crc32c_append(crc32c::crc32c(magic), &version.to_le_bytes());
    crc32c::crc32c_append(sum, rest).to_le_bytes() == checksum
}

/// Name of the manifest in the database directory.
pub const MANIFEST_FILE: &str = "MANIFEST";
/// Name it has while it is written.
pub const MANIFEST_ASIDE: &str = "MANIFEST.tmp";
/// First bytes of a manifest.
const MAGIC: &[u8; 8] = b"MAINSTEM";
/// Version of the database's file formats. An older program refuses a newer one. Since version 5 the metadata of a
/// segment may say its own version.
pub const FORMAT_VERSION: u32 = 5;
/// The oldest version that is read.
const OLDEST_VERSION: u32 = 4;
/// The first version whose header has a checksum, which stands at the same place in every later one.
const FIRST_CHECKED_VERSION: u32 = 4;
/// Magic, version, payload length, payload checksum, checksum of these.
const HEADER_BYTES: usize = HEADER_CHECKED + 4;
/// The bytes of the header that its checksum covers, which stands behind them.
const HEADER_CHECKED: usize = 8 + 4 + 8 + 4;

/// The state at one fsynced timestamp.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The timestamp.
    pub at: CommitTs,
    /// The log was fsynced up to here when the manifest was written: bad bytes below are damage, not a torn tail.
    pub log_synced: LogPosition,
    /// Where replay starts: at or before the first insert of any listed delta.
    pub log_start: LogPosition,
    /// Next unused container id; the others likewise.
    pub next_container: u64,
    /// See `next_container`.
    pub next_file: u64,
    /// See `next_container`.
    pub next_run: u64,
    /// See `next_container`.
    pub next_table: u64,
    /// The namespaces, but for the one that always exists.
    pub namespaces: Vec<String>,
    /// The tables.
    pub tables: Vec<ManifestTable>,
    /// The views.
    pub views: Vec<Arc<View>>,
    /// Numbers taken of IDENTITY columns.
    pub numbers: Vec<(TableId, ColumnId, u64)>,
    /// Rows of their containers that were deleted at or before the manifest's timestamp.
    pub deletes: NamedDeletes,
}

/// One table of a manifest.
#[derive(Clone, Debug)]
pub struct ManifestTable {
    /// Its schema.
    pub schema: Arc<TableSchema>,
    /// Its deltas, oldest first: not written anywhere but in the log. Each with the version of the schema that its rows
    /// have.
    pub deltas: Vec<(ContainerId, Arc<TableSchema>)>,
    /// Its runs, oldest first.
    pub runs: Vec<NamedRun>,
}

impl Manifest {
    /// Writes the manifest to `disk`. What was there before stays whole until the new one is.
    ///
    /// # Errors
    /// Io or Full: the old manifest stays.
    pub fn write(&self, disk: &dyn Disk) -> Result<()> {
        self.write_aside(disk)?;
        Self::take_name(disk)
    }

    /// Writes the manifest under another name, durably.
    ///
    /// # Errors
    /// Io or Full: nothing is left.
    pub fn write_aside(&self, disk: &dyn Disk) -> Result<()> {
        let payload = self.encode();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes.extend_from_slice(&payload);
        let written = disk.create(MANIFEST_ASIDE).and_then(|file| {
            file.append(&bytes)?;
            file.sync()
        });
        written.inspect_err(|_| discard_aside(disk))
    }

    /// Makes the manifest written aside the one that a restart finds.
    ///
    /// # Errors
    /// Io or Full: a restart finds the old one or the new one.
    pub fn take_name(disk: &dyn Disk) -> Result<()> {
        disk.rename(MANIFEST_ASIDE, MANIFEST_FILE).inspect_err(|_| discard_aside(disk))?;
        disk.sync_dir("")
    }

    /// Reads the manifest of `disk`; `None` when there is none.
    ///
    /// # Errors
    /// Corrupt; Invalid (0A000) for a newer format version.
    pub fn read(disk: &dyn Disk) -> Result<Option<Self>> {
        let file = match disk.open(MANIFEST_FILE) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let len = file.len()? as usize;
        if len < HEADER_BYTES {
            return Err(Error::corrupt(MANIFEST_FILE, 0, format!("{len} bytes are too few for a manifest")));
        }
        let mut bytes = vec![0; len];
        file.read_at(0, &mut bytes)?;
        Self::decode_file(&bytes).map(Some)
    }

    fn decode_file(bytes: &[u8]) -> Result<Self> {
        let mut header = Decoder::new(bytes, MANIFEST_FILE, 0);
        if header.raw(8)? != MAGIC {
            return Err(Error::corrupt(MANIFEST_FILE, 0, "this is no Mainstem manifest"));
        }
        let version = header.u32()?;
        // Before a version is believed: a flipped bit must not send anybody to look for another program.
        let is_checked = version == 0 || version >= FIRST_CHECKED_VERSION;
        // An older version whose header would be right with a checked one is a flipped bit, too.
        let is_flipped = || (FIRST_CHECKED_VERSION..=FORMAT_VERSION).any(|version| is_header(bytes, version));
        let is_damaged = if is_checked { !is_header(bytes, version) } else { is_flipped() };
        if is_damaged {
            return Err(Error::corrupt(MANIFEST_FILE, 0, "the header does not match its checksum"));
        }
        if version == 0 {
            return Err(Error::corrupt(MANIFEST_FILE, 8, "there is no format version 0"));
        }
        if version < OLDEST_VERSION {
            let message = format!(
                "the database has format version {version}, this program reads {OLDEST_VERSION} to {FORMAT_VERSION}: copy its tables out with the program that wrote it"
            );
            return Err(Error::new(ErrorKind::Invalid, sqlstate::FEATURE_NOT_SUPPORTED, message));
        }
        if version > FORMAT_VERSION {
            return Err(Error::new(
                ErrorKind::Invalid,
                sqlstate::FEATURE_NOT_SUPPORTED,
                format!(
                    "the database has format version {version}, this program knows up to {FORMAT_VERSION}: open it with a newer Mainstem"
                ),
            ));
        }
        let len = header.u64()? as usize;
        let (checksum, _of_header) = (header.u32()?, header.u32()?);
        let payload = header.raw(len)?;
        header.finish()?;
        if crc32c::crc32c(payload) != checksum {
            return Err(Error::corrupt(MANIFEST_FILE, HEADER_BYTES as u64, "checksum does not match"));
        }
        Self::decode(payload)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new();
        out.u64(self.at.0);
        out.u64(self.log_synced.0);
        out.u64(self.log_start.0);
        for next in [self.next_container, self.next_file, self.next_run, self.next_table] {
            out.u64(next);
        }
        out.list(self.namespaces.iter(), |out, name| out.str(name));
        out.list(self.tables.iter(), |out, table| {
            encode_schema(out, &table.schema);
            let older = table.older_schemas();
            out.list(older.iter(), |out, schema| encode_schema(out, schema));
            out.list(table.deltas.iter(), |out, (delta, schema)| {
                out.u64(delta.0);
                out.u64(schema.version.0);
            });
            out.list(table.runs.iter(), |out, run| run.encode(out));
        });
        out.list(self.views.iter(), |out, view| encode_view(out, view));
        out.list(self.numbers.iter(), |out, (table, column, taken)| {
            out.u64(table.0);
            out.u32(column.0);
            out.u64(*taken);
        });
        self.deletes.encode(&mut out);
        out.finish()
    }

    fn decode(payload: &[u8]) -> Result<Self> {
        let mut input = Decoder::new(payload, MANIFEST_FILE, HEADER_BYTES as u64);
        let manifest = Self {
            at: CommitTs(input.u64()?),
            log_synced: LogPosition(input.u64()?),
            log_start: LogPosition(input.u64()?),
            next_container: input.u64()?,
            next_file: input.u64()?,
            next_run: input.u64()?,
            next_table: input.u64()?,
            namespaces: input.list(|input| Ok(input.str()?.to_owned()))?,
            tables: input.list(decode_table)?,
            views: input.list(|input| Ok(Arc::new(decode_view(input)?)))?,
            numbers: input.list(|input| Ok((TableId(input.u64()?), ColumnId(input.u32()?), input.u64()?)))?,
            deletes: NamedDeletes::decode(&mut input)?,
        };
        input.finish()?;
        Ok(manifest)
    }
}

impl ManifestTable {
    /// The versions of the schema, but for the present one, that rows of the deltas have; each once.
    fn older_schemas(&self) -> Vec<&Arc<TableSchema>> {
        let mut older: Vec<&Arc<TableSchema>> = Vec::new();
        for (_, schema) in self.deltas.iter().filter(|(_, schema)| schema.version != self.schema.version) {
            if older.iter().all(|known| known.version != schema.version) {
                older.push(schema);
            }
        }
        older
    }
}

/// The old manifest stands; what cannot be removed now is swept at the next open.
fn discard_aside(disk: &dyn Disk) {
    let _ = disk.remove(MANIFEST_ASIDE);
}

fn decode_table(input: &mut Decoder<'_>) -> Result<ManifestTable> {
    let schema = Arc::new(decode_schema(input)?);
    let mut schemas = input.list(|input| Ok(Arc::new(decode_schema(input)?)))?;
    if schemas.iter().any(|older| older.id != schema.id || older.version >= schema.version) {
        return Err(input.corrupt("an older schema that is none of the table's"));
    }
    schemas.push(schema.clone());
    let deltas = input.list(|input| {
        let (id, version) = (ContainerId(input.u64()?), SchemaVersion(input.u64()?));
        let known = schemas.iter().find(|known| known.version == version);
        let known = known.ok_or_else(|| input.corrupt(format!("delta {id} of an unknown schema version {version}")))?;
        Ok((id, known.clone()))
    })?;
    let runs = input.list(NamedRun::decode)?;
    Ok(ManifestTable { schema, deltas, runs })
}
