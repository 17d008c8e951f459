//! Files in memory: for in-memory databases and tests. Behaves like a directory, and never fails.
//!
//! A file is a list of pieces. A buffer that is appended becomes a piece as it is, and is read without a copy: blocks
//! of segments are in memory once, whether they are open or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow_buffer::Buffer;
use parking_lot::{Mutex, RwLock};

use super::{Disk, DiskFile, DiskLock};
use crate::error::{Error, ErrorKind, Result, sqlstate};

/// A directory in memory. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemDisk {
    names: Arc<Mutex<Names>>,
    /// Readers that hold the lock; -1: a writer does.
    holders: Arc<AtomicI64>,
}

#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<String, Arc<MemFile>>,
    dirs: BTreeSet<String>,
}

#[derive(Debug)]
struct MemFile {
    name: String,
    bytes: RwLock<Bytes>,
}

/// Bytes that are appended to one piece before another begins.
const PIECE_BYTES: usize = 1 << 20;

/// The bytes of a file.
#[derive(Debug, Default)]
struct Bytes {
    /// None is empty.
    pieces: Vec<Piece>,
    len: usize,
}

#[derive(Debug)]
struct Piece {
    /// Where in the file it begins.
    start: usize,
    bytes: PieceBytes,
}

#[derive(Debug)]
enum PieceBytes {
    /// May be appended to while it is the last one.
    Own(Vec<u8>),
    Shared(Buffer),
}

impl PieceBytes {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Bytes {
    fn of(bytes: Vec<u8>) -> Self {
        let mut all = Self::default();
        all.push(PieceBytes::Own(bytes));
        all
    }

    fn push(&mut self, bytes: PieceBytes) {
        let (start, len) = (self.len, bytes.as_slice().len());
        if len > 0 {
            self.pieces.push(Piece { start, bytes });
            self.len += len;
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut().map(|piece| &mut piece.bytes) {
            Some(PieceBytes::Own(last)) if last.len() + bytes.len() <= PIECE_BYTES => {
                last.extend_from_slice(bytes);
                self.len += bytes.len();
            }
            _ => self.push(PieceBytes::Own(bytes.to_vec())),
        }
    }

    /// The pieces from the one with byte `offset` on.
    fn pieces_from(&self, offset: usize) -> &[Piece] {
        let first = self.pieces.partition_point(|piece| piece.start <= offset).saturating_sub(1);
        self.pieces.get(first..).unwrap_or_default()
    }

    /// Fills `buffer` from byte `offset`; false if the file ends before.
    fn read(&self, offset: usize, buffer: &mut [u8]) -> bool {
        if offset.checked_add(buffer.len()).is_none_or(|end| end > self.len) {
            return false;
        }
        let (mut at, mut rest) = (offset, buffer);
        for piece in self.pieces_from(offset) {
            let found = piece.bytes.as_slice().get(at - piece.start..).unwrap_or_default();
            let (part, behind) = rest.split_at_mut(found.len().min(rest.len()));
            part.copy_from_slice(&found[..part.len()]);
            at += part.len();
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        true
    }

    fn cut(&mut self, len: usize) {
        while let Some(piece) = self.pieces.last_mut().filter(|_| self.len > len) {
            self.len = piece.start.max(len);
            if piece.start >= len {
                self.pieces.pop();
                continue;
            }
            match &mut piece.bytes {
                PieceBytes::Own(bytes) => bytes.truncate(len - piece.start),
                PieceBytes::Shared(bytes) => *bytes = bytes.slice_with_length(0, len - piece.start),
            }
        }
    }

    fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len);
        self.pieces.iter().for_each(|piece| all.extend_from_slice(piece.bytes.as_slice()));
        all
    }
}

impl MemDisk {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory of its own with copies of the files as they are now.
    #[must_use]
    pub fn copy(&self) -> Self {
        let names = self.names.lock();
        let copy = |(name, file): (&String, &Arc<MemFile>)| {
            let bytes = RwLock::new(Bytes::of(file.bytes.read().to_vec()));
            (name.clone(), Arc::new(MemFile { name: name.clone(), bytes }))
        };
        let copied = Names { files: names.files.iter().map(copy).collect(), dirs: names.dirs.clone() };
        Self { names: Arc::new(Mutex::new(copied)), holders: Arc::default() }
    }

    /// Puts a file with these bytes at `path`, whatever stood there.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        let file = MemFile { name: path.to_owned(), bytes: RwLock::new(Bytes::of(bytes)) };
        self.names.lock().files.insert(path.to_owned(), Arc::new(file));
    }

    /// The bytes of the file at `path`.
    ///
    /// # Errors
    /// NotFound.
    pub fn get(&self, path: &str) -> Result<Vec<u8>> {
        Ok(self.file(path)?.bytes.read().to_vec())
    }

    fn file(&self, path: &str) -> Result<Arc<MemFile>> {
        self.names.lock().files.get(path).cloned().ok_or_else(|| missing(path))
    }
}

fn missing(path: &str) -> Error {
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_FILE, format!("there is no file {path}"))
}

/// The folder of a path: `""` for a file of the database directory itself.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

impl Disk for MemDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let mut names = self.names.lock();
        if !folder(path).is_empty() && !names.dirs.contains(folder(path)) {
            return Err(missing(folder(path)));
        }
        let file = Arc::new(MemFile { name: path.to_owned(), bytes: RwLock::default() });
        names.files.insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        Ok(self.file(path)?)
    }

    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.open(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut names = self.names.lock();
        let file = names.files.remove(from).ok_or_else(|| missing(from))?;
        names.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<()> {
        self.names.lock().files.remove(path).map(|_| ()).ok_or_else(|| missing(path))
    }

    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.file(path)?.cut(len)
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let names = self.names.lock();
        let in_dir = names.files.keys().filter(|path| folder(path) == dir);
        Ok(in_dir.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect())
    }

    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        let names = self.names.lock();
        let in_dir = names.dirs.iter().filter(|path| folder(path) == dir);
        Ok(in_dir.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect())
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        let mut names = self.names.lock();
        let ends = dir.match_indices('/').map(|(at, _)| at).chain([dir.len()]);
        names.dirs.extend(ends.map(|end| dir.split_at(end).0.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, _dir: &str) -> Result<()> {
        Ok(())
    }

    fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.names.lock().files.contains_key(path))
    }

    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        let take = |holders: i64| match (exclusive, holders) {
            (true, 0) => Some(-1),
            (false, 0..) => Some(holders + 1),
            _ => None,
        };
        match self.holders.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
            Ok(_) => Ok(DiskLock::new(Held { holders: Arc::clone(&self.holders) })),
            Err(_) => {
                let message = "the database is open elsewhere in this process; close it there first";
                Err(Error::new(ErrorKind::Closed, sqlstate::LOCKED, message))
            }
        }
    }
}

#[derive(Debug)]
struct Held {
    holders: Arc<AtomicI64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let release = |holders: i64| Some(if holders < 0 { 0 } else { holders - 1 });
        let _ = self.holders.fetch_update(Ordering::AcqRel, Ordering::Acquire, release);
    }
}

impl DiskFile for MemFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        self.bytes.write().append(bytes);
        Ok(())
    }

    fn append_buffer(&self, bytes: &Buffer) -> Result<()> {
        // Room that is of no use is not kept.
        if bytes.capacity() > bytes.len() + bytes.len() / 8 {
            return self.append(bytes);
        }
        self.bytes.write().push(PieceBytes::Shared(bytes.clone()));
        Ok(())
    }

    fn shared(&self, offset: u64, len: usize) -> Option<Buffer> {
        let bytes = self.bytes.read();
        let offset = usize::try_from(offset).ok()?;
        let piece = bytes.pieces_from(offset).first()?;
        match &piece.bytes {
            PieceBytes::Shared(found) if offset.checked_add(len)? <= piece.start + found.len() => {
                Some(found.slice_with_length(offset - piece.start, len))
            }
            _ => None,
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        if usize::try_from(offset).is_ok_and(|offset| self.bytes.read().read(offset, buffer)) {
            return Ok(());
        }
        let message = format!("the file ends before the {} bytes expected here", buffer.len());
        Err(Error::corrupt(&self.name, offset, message))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes.read().len as u64)
    }

    fn cut(&self, len: u64) -> Result<()> {
        self.bytes.write().cut(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }

    fn reserve(&self, _len: u64) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
