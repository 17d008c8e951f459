//! Files aside: what is too large for a log record, or for the manifest, written to a file that the record names
//! (contract 4). Byte table: `docs/formats/aside.md`.
//!
//! 1. [`AsideWriter`] appends blocks, each with its checksum; [`AsideWriter::finish`] makes the bytes and the name
//!    durable, so that a record may name the file from then on.
//! 2. [`AsideFile::keep`] says that a record, or the manifest, names it; [`AsideFile::release`] that none does any
//!    more.
//! 3. The last handle to go removes a file that nobody names. A crash leaves orphans, which recovery removes.
//!
//! Invariants: a file is never changed once finished; reading holds one block in memory; what differs from what was
//! written, or is missing, is a Corrupt error that names file and byte. It does not own: what stands in the blocks
//! (`deletes`, `main_store`), when a file is needed (`commit`, `recover`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{DATA_DIR, Disk, DiskFile};
use crate::codec::{Decoder, Encoder};
use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::FileId;
use crate::limits;

/// Version of the format.
const FORMAT_VERSION: u32 = 1;
/// Magic, version, zero, file number, checksum.
const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 4;
/// Where the checksum of the header stands.
const HEADER_CHECKED: usize = HEADER_BYTES - 4;
/// Checksum and length before the body of a block.
const BLOCK_HEAD_BYTES: usize = 8;

/// What a file aside holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsideKind {
    /// Sets of deleted rows.
    Deletes,
    /// Runs: the metadata of their segments.
    Runs,
}

impl AsideKind {
    const ALL: [Self; 2] = [Self::Deletes, Self::Runs];

    /// First bytes of a file.
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Deletes => b"MSTEMDEL",
            Self::Runs => b"MSTEMRUN",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Deletes => "del",
            Self::Runs => "run",
        }
    }

    /// What is lost with a file.
    fn content(self) -> &'static str {
        match self {
            Self::Deletes => "deletes",
            Self::Runs => "names of segments",
        }
    }

    /// Path of file `file`.
    #[must_use]
    pub fn path(self, file: FileId) -> String {
        format!("{DATA_DIR}/{:010}.{}", file.0, self.extension())
    }
}

/// The file aside that a name in [`DATA_DIR`] stands for; `None` for anything else.
#[must_use]
pub fn parse_aside_name(name: &str) -> Option<FileId> {
    let (digits, extension) = name.rsplit_once('.')?;
    let kind = AsideKind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
    let file = FileId(digits.parse().ok()?);
    (kind.path(file).strip_prefix(DATA_DIR)?.strip_prefix('/')? == name).then_some(file)
}

/// How a record or the manifest names a file aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsideRef {
    /// The file.
    pub file: FileId,
    /// Its length in bytes.
    pub bytes: u64,
    /// What it holds, counted: deleted rows, or segments.
    pub items: u64,
    /// CRC-32C of the checksums of its blocks, in order.
    pub checksum: u32,
}

impl AsideRef {
    /// Appends it to a record.
    pub fn encode(&self, out: &mut Encoder) {
        out.u64(self.file.0);
        out.u64(self.bytes);
        out.u64(self.items);
        out.u32(self.checksum);
    }

    /// Takes it from a record.
    ///
    /// # Errors
    /// Corrupt.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        Ok(Self { file: FileId(input.u64()?), bytes: input.u64()?, items: input.u64()?, checksum: input.u32()? })
    }
}

/// The name of a file, which goes with its last handle unless it is kept.
#[derive(Debug)]
struct Name {
    disk: Arc<dyn Disk>,
    kind: AsideKind,
    path: String,
    kept: AtomicBool,
}

impl Drop for Name {
    fn drop(&mut self) {
        if !self.kept.load(Ordering::Acquire)
            && let Err(e) = self.disk.remove(&self.path)
        {
            // Not lost: what nothing names is removed at the next start.
            tracing::warn!(file = %self.path, error = %e, "could not remove a file that is no longer used");
        }
    }
}

/// A file aside that somebody may still read.
#[derive(Debug)]
pub struct AsideFile {
    name: Name,
    at: AsideRef,
}

impl AsideFile {
    /// The file that a record or the manifest names as `at`.
    #[must_use]
    pub fn named(disk: Arc<dyn Disk>, kind: AsideKind, at: AsideRef) -> Arc<Self> {
        let name = Name { disk, kind, path: kind.path(at.file), kept: AtomicBool::new(true) };
        Arc::new(Self { name, at })
    }

    /// How it is named.
    #[must_use]
    pub fn at(&self) -> AsideRef {
        self.at
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> AsideKind {
        self.name.kind
    }

    /// Where it stands.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.name.path
    }

    /// A record or the manifest names it: it stays.
    pub fn keep(&self) {
        self.name.kept.store(true, Ordering::Release);
    }

    /// Nothing that recovery may read names it any more: it goes with the last handle.
    pub fn release(&self) {
        self.name.kept.store(false, Ordering::Release);
    }

    /// Damage at byte `at`.
    pub fn corrupt(&self, at: u64, message: impl std::fmt::Display) -> Error {
        Error::corrupt(&self.name.path, at, message)
    }

    /// Gives each block to `take`, with the byte at which its body begins; `take` returns how many items stand in it.
    /// One block in memory at a time.
    ///
    /// # Errors
    /// Corrupt when the file is missing or differs from what was written; blocks before the damage have been given. Io.
    /// What `take` returns.
    pub fn read(&self, mut take: impl FnMut(&[u8], u64) -> Result<u64>) -> Result<()> {
        let mut items = 0;
        self.read_blocks(|body, at| {
            items += take(body, at)?;
            Ok(())
        })?;
        if items != self.at.items {
            return Err(self.corrupt(self.at.bytes, format_args!("{items} items, not the {} named", self.at.items)));
        }
        Ok(())
    }

    /// Proves that the file has the bytes that were written.
    ///
    /// # Errors
    /// Corrupt, Io.
    pub fn verify(&self) -> Result<()> {
        self.read_blocks(|_, _| Ok(()))
    }

    fn read_blocks(&self, mut take: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let file = self.name.disk.open(&self.name.path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                let content = self.name.kind.content();
                self.corrupt(0, format_args!("the file is missing, though {content} that were committed stand in it"))
            }
            _ => e,
        })?;
        let len = file.len()?;
        if len != self.at.bytes {
            return Err(self.corrupt(len.min(self.at.bytes), format_args!("{len} bytes, not {}", self.at.bytes)));
        }
        self.check_header(file.as_ref())?;
        let (mut at, mut checksum) = (HEADER_BYTES as u64, 0);
        while at < len {
            let (body, sum) = self.read_block(file.as_ref(), at)?;
            checksum = crc32c::crc32c_append(checksum, &sum.to_le_bytes());
            take(&body, at + BLOCK_HEAD_BYTES as u64)?;
            at += (BLOCK_HEAD_BYTES + body.len()) as u64;
        }
        if checksum != self.at.checksum {
            return Err(self.corrupt(len, "the blocks are not those that were named"));
        }
        Ok(())
    }

    fn check_header(&self, file: &dyn DiskFile) -> Result<()> {
        let mut header = [0; HEADER_BYTES];
        file.read_at(0, &mut header)?;
        let mut input = Decoder::new(&header, &self.name.path, 0);
        if input.raw(8)? != self.name.kind.magic() {
            return Err(self.corrupt(0, format_args!("this is no file of {}", self.name.kind.content())));
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
        if u64::from(bytes) > left - BLOCK_HEAD_BYTES as u64 || bytes as usize > limits::ASIDE_BLOCK_BYTES_MAX {
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

/// Writes a file aside. Dropped before [`AsideWriter::finish`] it takes the file along.
#[derive(Debug)]
pub struct AsideWriter {
    name: Name,
    file: Arc<dyn DiskFile>,
    id: FileId,
    at: u64,
    items: u64,
    checksum: u32,
}

impl AsideWriter {
    /// A new file `id` of `kind`.
    ///
    /// # Errors
    /// Io or Full.
    pub fn new(disk: Arc<dyn Disk>, kind: AsideKind, id: FileId) -> Result<Self> {
        let path = kind.path(id);
        let file = disk.create(&path)?;
        let name = Name { disk, kind, path, kept: AtomicBool::new(false) };
        let mut header = Encoder::with_capacity(HEADER_BYTES);
        header.raw(kind.magic());
        header.u32(FORMAT_VERSION);
        header.u32(0);
        header.u64(id.0);
        header.u32(crc32c::crc32c(header.as_slice()));
        file.append(header.as_slice())?;
        Ok(Self { name, file, id, at: HEADER_BYTES as u64, items: 0, checksum: 0 })
    }

    /// Appends a block with `items` items.
    ///
    /// # Errors
    /// Io or Full.
    pub fn block(&mut self, body: &[u8], items: u64) -> Result<()> {
        debug_assert!(body.len() <= limits::ASIDE_BLOCK_BYTES_MAX);
        let checksum = block_checksum(self.id, self.at, body);
        let mut head = Encoder::with_capacity(BLOCK_HEAD_BYTES);
        head.u32(checksum);
        head.u32(body.len() as u32);
        self.file.append(head.as_slice())?;
        self.file.append(body)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &checksum.to_le_bytes());
        self.at += (BLOCK_HEAD_BYTES + body.len()) as u64;
        self.items += items;
        Ok(())
    }

    /// Ends the file: its bytes and its name are durable, so that a record may name it.
    ///
    /// # Errors
    /// Io or Full: the file goes.
    pub fn finish(self) -> Result<Arc<AsideFile>> {
        self.file.sync()?;
        self.name.disk.sync_dir(DATA_DIR)?;
        let at = AsideRef { file: self.id, bytes: self.at, items: self.items, checksum: self.checksum };
        Ok(Arc::new(AsideFile { name: self.name, at }))
    }
}
