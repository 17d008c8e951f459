//! Delete files: sets of deletes that are too large for a log record or the manifest, written aside (contract 4). Byte table:
//! `docs/formats/deletes.md`.
//!
//! 1. [`DeleteFileWriter`] appends sets in blocks of bounded size, each with its checksum; [`DeleteFileWriter::finish`] makes the
//!    bytes and the name durable, so that a record may name the file from then on.
//! 2. [`DeleteFile::keep`] says that a record, or the manifest, names it; [`DeleteFile::release`] that none does any more.
//! 3. The last handle to go removes a file that nobody names. A crash leaves orphans, which recovery removes.
//!
//! Invariants: a file is never changed once finished; reading holds one block in memory; what differs from what was written,
//! or is missing, is a Corrupt error that names file and byte. It does not own: when a file is needed (`commit`, `recover`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::DeleteSet;
use crate::disk::{DATA_DIR, Disk, DiskFile};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::{ContainerId, FileId};
use crate::limits;
use crate::wal::codec::{Decoder, Encoder};

/// First bytes of a delete file.
const MAGIC: &[u8; 8] = b"MSTEMDEL";
/// Version of the format.
const FORMAT_VERSION: u32 = 1;
/// Magic, version, zero, file number, checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 4;
/// Where the checksum of the header stands.
const HEADER_CHECKED: usize = HEADER_BYTES - 4;
/// Checksum and length before the body of a block.
const BLOCK_HEAD_BYTES: usize = 8;

/// Path of the delete file `file`.
#[must_use]
pub fn delete_file_path(file: FileId) -> String {
    format!("{DATA_DIR}/{:010}.del", file.0)
}

/// The delete file a name in [`DATA_DIR`] stands for; `None` for anything else.
#[must_use]
pub fn parse_delete_file_name(name: &str) -> Option<FileId> {
    let digits = name.strip_suffix(".del")?;
    let file = FileId(digits.parse().ok()?);
    (delete_file_path(file).strip_prefix(DATA_DIR)?.strip_prefix('/')? == name).then_some(file)
}

/// How a record or the manifest names a delete file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeleteFileRef {
    /// The file.
    pub file: FileId,
    /// Its length in bytes.
    pub bytes: u64,
    /// Rows in its sets, over all containers.
    pub rows: u64,
    /// CRC-32C of the checksums of its blocks, in order.
    pub checksum: u32,
}

impl DeleteFileRef {
    /// Appends it to a record.
    pub fn encode(&self, out: &mut Encoder) {
        out.u64(self.file.0);
        out.u64(self.bytes);
        out.u64(self.rows);
        out.u32(self.checksum);
    }

    /// Takes it from a record.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        Ok(Self { file: FileId(input.u64()?), bytes: input.u64()?, rows: input.u64()?, checksum: input.u32()? })
    }
}

/// The name of a file, which goes with its last handle unless it is kept.
#[derive(Debug)]
struct Name {
    disk: Arc<dyn Disk>,
    path: String,
    kept: AtomicBool,
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Acquire)
            && let Err(e) = self.disk.remove(&self.path)
        {
            // Not lost: what nothing names is removed at the next start.
            tracing::warn!(file = %self.path, error = %e, "could not remove a delete file that is no longer used");
        }
    }
}

/// A delete file that somebody may still read.
#[derive(Debug)]
pub struct DeleteFile {
    name: Name,
    at: DeleteFileRef,
}

impl DeleteFile {
    /// The file that a record or the manifest names as `at`.
    #[must_use]
    pub fn named(disk: Arc<dyn Disk>, at: DeleteFileRef) -> Arc<Self> {
        let name = Name { disk, path: delete_file_path(at.file), kept: AtomicBool::new(true) };
        Arc::new(Self { name, at })
    }

    /// How it is named.
    #[must_use]
    pub fn at(&self) -> DeleteFileRef {
        self.at
    }

    /// A record or the manifest names it: it stays.
    pub fn keep(&self) {
        self.name.kept.store(true, Ordering::Release);
    }

    /// Nothing that recovery may read names it any more: it goes with the last handle.
    pub fn release(&self) {
        self.name.kept.store(false, Ordering::Release);
    }

    fn corrupt(&self, at: u64, message: impl std::fmt::Display) -> Error {
        Error::corrupt(&self.name.path, at, message)
    }

    /// Gives `each` set of the file to `take`, one block in memory at a time.
    ///
    /// # Errors
    /// Corrupt when the file is missing or differs from what was written; sets before the damage have been given. Io. What
    /// `take` returns.
    pub fn read(&self, mut take: impl FnMut(ContainerId, DeleteSet) -> Result<()>) -> Result<()> {
        let file = self.name.disk.open(&self.name.path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                self.corrupt(0, "the file is missing, though deletes that were committed stand in it")
            }
            _ => e,
        })?;
        let len = file.len()?;
        if len != self.at.bytes {
            return Err(self.corrupt(len.min(self.at.bytes), format_args!("{len} bytes, not {}", self.at.bytes)));
        }
        self.check_header(file.as_ref())?;
        let (mut at, mut rows, mut checksum) = (HEADER_BYTES as u64, 0, 0);
        while at < len {
            let (body, sum) = self.read_block(file.as_ref(), at)?;
            checksum = crc32c::crc32c_append(checksum, &sum.to_le_bytes());
            let mut input = Decoder::new(&body, &self.name.path, at + BLOCK_HEAD_BYTES as u64);
            while input.remaining() > 0 {
                let container = ContainerId(input.u64()?);
                let set = DeleteSet::decode(&mut input)?;
                rows += set.len() as u64;
                take(container, set)?;
            }
            at += (BLOCK_HEAD_BYTES + body.len()) as u64;
        }
        if rows != self.at.rows || checksum != self.at.checksum {
            return Err(self.corrupt(len, format_args!("{rows} rows, not the {} of the record", self.at.rows)));
        }
        Ok(())
    }

    /// Proves that the file is whole.
    ///
    /// # Errors
    /// As [`DeleteFile::read`].
    pub fn verify(&self) -> Result<()> {
        self.read(|_, _| Ok(()))
    }

    fn check_header(&self, file: &dyn DiskFile) -> Result<()> {
        let mut header = [0; HEADER_BYTES];
        file.read_at(0, &mut header)?;
        let mut input = Decoder::new(&header, &self.name.path, 0);
        if input.raw(8)? != MAGIC {
            return Err(self.corrupt(0, "this is no delete file"));
        }
        let version = input.u32()?;
        let zero = input.u32()?;
        let (id, checksum) = (input.u64()?, input.u32()?);
        if checksum != crc32c::crc32c(&header[..HEADER_CHECKED]) {
            return Err(self.corrupt(HEADER_CHECKED as u64, "the checksum of the header does not match"));
        }
        if version > FORMAT_VERSION {
            let message = format!("{} has format version {version}, newer than this program knows", self.name.path);
            return Err(Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, message));
        }
        if version == 0 || zero != 0 || id != self.at.file.0 {
            return Err(self.corrupt(8, "the header is that of another file"));
        }
        Ok(())
    }

    /// The body of the block at byte `at`, and its checksum.
    fn read_block(&self, file: &dyn DiskFile, at: u64) -> Result<(Vec<u8>, u32)> {
        let mut head = [0; BLOCK_HEAD_BYTES];
        let left = self.at.bytes - at;
        if left < BLOCK_HEAD_BYTES as u64 {
            return Err(self.corrupt(at, "the file ends within a block"));
        }
        file.read_at(at, &mut head)?;
        let mut input = Decoder::new(&head, &self.name.path, at);
        let (checksum, bytes) = (input.u32()?, input.u32()?);
        // Before memory for it is asked for.
        if u64::from(bytes) > left - BLOCK_HEAD_BYTES as u64 || bytes as usize > limits::DELETE_FILE_BLOCK_BYTES_MAX {
            return Err(self.corrupt(at, format_args!("a block of {bytes} bytes")));
        }
        let mut body = vec![0; bytes as usize];
        file.read_at(at + BLOCK_HEAD_BYTES as u64, &mut body)?;
        if checksum != block_checksum(self.at.file, at, &body) {
            return Err(self.corrupt(at, format_args!("a block of {bytes} bytes does not match its checksum")));
        }
        Ok((body, checksum))
    }
}

/// Over file number and place too, so that a block never counts elsewhere.
fn block_checksum(file: FileId, at: u64, body: &[u8]) -> u32 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&file.0.to_le_bytes()), &at.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(sum, &(body.len() as u32).to_le_bytes()), body)
}

/// Writes a delete file. Dropped before [`DeleteFileWriter::finish`] it takes the file along.
#[derive(Debug)]
pub struct DeleteFileWriter {
    name: Name,
    file: Arc<dyn DiskFile>,
    id: FileId,
    at: u64,
    block: Encoder,
    rows: u64,
    checksum: u32,
}

impl DeleteFileWriter {
    /// A new file `id`.
    ///
    /// # Errors
    /// Io or Full.
    pub fn new(disk: Arc<dyn Disk>, id: FileId) -> Result<Self> {
        let path = delete_file_path(id);
        let file = disk.create(&path)?;
        let name = Name { disk, path, kept: AtomicBool::new(false) };
        let mut header = Encoder::with_capacity(HEADER_BYTES);
        header.raw(MAGIC);
        header.u32(FORMAT_VERSION);
        header.u32(0);
        header.u64(id.0);
        header.u32(crc32c::crc32c(header.as_slice()));
        file.append(header.as_slice())?;
        Ok(Self { name, file, id, at: HEADER_BYTES as u64, block: Encoder::new(), rows: 0, checksum: 0 })
    }

    /// Adds the deletes of one container.
    ///
    /// # Errors
    /// Io or Full.
    pub fn push(&mut self, container: ContainerId, set: &DeleteSet) -> Result<()> {
        self.block.u64(container.0);
        set.encode(&mut self.block);
        self.rows += set.len() as u64;
        if self.block.len() >= limits::DELETE_FILE_BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let body = std::mem::take(&mut self.block).finish();
        if body.is_empty() {
            return Ok(());
        }
        let checksum = block_checksum(self.id, self.at, &body);
        let mut head = Encoder::with_capacity(BLOCK_HEAD_BYTES);
        head.u32(checksum);
        head.u32(body.len() as u32);
        self.file.append(head.as_slice())?;
        self.file.append(&body)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &checksum.to_le_bytes());
        self.at += (BLOCK_HEAD_BYTES + body.len()) as u64;
        Ok(())
    }

    /// Ends the file: its bytes and its name are durable, so that a record may name it.
    ///
    /// # Errors
    /// Io or Full: the file goes.
    pub fn finish(mut self) -> Result<Arc<DeleteFile>> {
        self.end_block()?;
        self.file.sync()?;
        self.name.disk.sync_dir(DATA_DIR)?;
        let at = DeleteFileRef { file: self.id, bytes: self.at, rows: self.rows, checksum: self.checksum };
        Ok(Arc::new(DeleteFile { name: self.name, at }))
    }
}
