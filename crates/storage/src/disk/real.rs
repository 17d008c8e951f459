//! A directory of the operating system.
//!
//! Comes in: names relative to the database directory. Goes out: bytes, through pread, pwrite, fdatasync. Invariants: a
//! name never leads out of the directory; the file a name stood for stays whole for those who hold it open.
//!
//! Many files are made durable by one call for all of their file system (syncfs), where that is known to tell of failed
//! writes: on Linux 5.8, and no file system above another, which may not pass them on. An error is told to one call, of
//! whatever file it is. So there is one call at a time, and after an error each file is synced by itself, for ever: it
//! has its own error. What others have written to the file system is waited for, too.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind as Io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pread};
use xxhash_rust::xxh3::xxh3_64;

use super::lock::{LOCK_FILE, lock_directory};
use super::{Disk, DiskFile, DiskLock, TEMPORARY_DIR};
use crate::error::{Error, Result, sqlstate};

/// The files below one directory.
#[derive(Debug)]
pub struct RealDisk {
    dir: PathBuf,
    /// The directory, open from the beginning: what fails to be written meanwhile is told through it. `None` where
    /// each file is synced by itself.
    pub(super) file_system: Mutex<Option<FileSystem>>,
    syncs: Arc<AtomicU64>,
}

/// A file system, as its directory that is open.
#[derive(Debug)]
pub(super) struct FileSystem {
    directory: File,
    /// The same for what is mounted, or linked to, below it.
    number: u64,
    pub(super) sync: fn(&File) -> std::io::Result<()>,
}

impl RealDisk {
    /// Opens directory `dir`; makes it, and those above it, when it is not there and `create` is set.
    ///
    /// # Errors
    /// NotFound (58P01) without the directory, Invalid (22023) when `dir` is something else, Io.
    pub fn open(dir: &Path, create: bool) -> Result<Self> {
        match fs::metadata(dir) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                let message = format!("{} is a file, and a database is a directory", dir.display());
                return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
            }
            Err(e) if e.kind() == Io::NotFound && create => {
                fs::create_dir_all(dir).map_err(|e| Error::io("make directory", dir.display(), e))?;
                if let Some(above) = dir.parent() {
                    sync_directory(if above.as_os_str().is_empty() { Path::new(".") } else { above })?;
                }
            }
            Err(e) if e.kind() == Io::NotFound => {
                let message = format!("there is no database at {}: no such directory", dir.display());
                return Err(Error::new(crate::ErrorKind::NotFound, sqlstate::UNDEFINED_FILE, message));
            }
            Err(e) => return Err(Error::io("open directory", dir.display(), e)),
        }
        let file_system = Mutex::new(FileSystem::of(dir));
        Ok(Self { dir: dir.to_path_buf(), file_system, syncs: Arc::default() })
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, name: &str) -> Result<PathBuf> {
        let relative = Path::new(name);
        if relative.components().any(|c| !matches!(c, Component::Normal(_))) {
            return Err(Error::internal(format!("file name {name:?} leads out of the database directory")));
        }
        Ok(self.dir.join(relative))
    }

    fn open_with(&self, path: &str, options: &OpenOptions) -> Result<Arc<dyn DiskFile>> {
        let full = self.path(path)?;
        let open = || {
            let file = options.open(&full)?;
            let end = file.metadata()?.len();
            Ok((file, end))
        };
        let (file, end) = open().map_err(|e| Error::io("open", full.display(), e))?;
        Ok(Arc::new(RealFile { file, path: full, end: AtomicU64::new(end), syncs: self.syncs.clone() }))
    }

    /// Whether the folders of this directory are of the file system `number`, and not links to, or mounts of, others.
    fn is_all_of(&self, number: u64) -> bool {
        let folders = fs::read_dir(&self.dir).map(|entries| {
            let lasting = entries.filter_map(|entry| entry.ok().filter(|entry| entry.file_name() != TEMPORARY_DIR));
            lasting.filter_map(|entry| fs::metadata(entry.path()).ok())
        });
        folders.is_ok_and(|mut folders| folders.all(|found| found.dev() == number))
    }

    /// Where this database alone puts aside.
    fn own_temporary_folder(&self) -> Result<PathBuf> {
        // What is around it is others': the folder above may be a link to where other databases put aside, too.
        let own = fs::canonicalize(&self.dir).unwrap_or_else(|_| self.dir.clone());
        let name = format!("mainstem-{:016x}", xxh3_64(own.as_os_str().as_encoded_bytes()));
        Ok(self.path(TEMPORARY_DIR)?.join(name))
    }

    /// What stands in folder `dir`, sorted, and whether it is a file; nothing when there is no such folder.
    fn entries(&self, dir: &str) -> Result<Vec<(OsString, bool)>> {
        let full = self.path(dir)?;
        let fail = |e| Error::io("list", full.display(), e);
        let entries = match fs::read_dir(&full) {
            Ok(entries) => entries,
            Err(e) if matches!(e.kind(), Io::NotFound | Io::NotADirectory) => return Ok(Vec::new()),
            Err(e) => return Err(fail(e)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(fail)?;
            found.push((entry.file_name(), entry.file_type().map_err(fail)?.is_file()));
        }
        found.sort_unstable();
        Ok(found)
    }
}

impl FileSystem {
    /// That of `dir`, if a sync of it tells of writes that have failed.
    #[cfg(target_os = "linux")]
    pub(super) fn of(dir: &Path) -> Option<Self> {
        let directory = syncs_together(dir).then(|| File::open(dir).ok()).flatten()?;
        let number = directory.metadata().ok()?.dev();
        Some(Self { directory, number, sync: |directory| Ok(rustix::fs::syncfs(directory)?) })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_: &Path) -> Option<Self> {
        None
    }
}

/// Whether a sync of the whole file system of `dir` tells of writes that have failed.
pub(crate) fn syncs_together(dir: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        // ext4, XFS, Btrfs, F2FS; tmpfs writes nothing.
        const KNOWN: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];
        let is_known = rustix::fs::statfs(dir).is_ok_and(|found| KNOWN.contains(&(found.f_type as u64)));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
        is_known && (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 8)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = dir;
        false
    }
}

fn sync_directory(path: &Path) -> Result<()> {
    let run = || File::open(path)?.sync_all();
    run().map_err(|e| Error::io("sync directory", path.display(), e))
}

impl Disk for RealDisk {
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let full = self.path(path)?;
        let open = || OpenOptions::new().read(true).write(true).create_new(true).open(&full);
        // A new file, not the old one emptied: who holds the old one keeps its bytes, and a power cut never leaves it
        // half.
        let file = match open() {
            Err(e) if e.kind() == Io::AlreadyExists => fs::remove_file(&full).and_then(|()| open()),
            other => other,
        };
        let file = file.map_err(|e| Error::io("create", full.display(), e))?;
        Ok(Arc::new(RealFile { file, path: full, end: AtomicU64::new(0), syncs: self.syncs.clone() }))
    }

    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.open_with(path, OpenOptions::new().read(true))
    }

    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.open_with(path, OpenOptions::new().read(true).write(true))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        fs::rename(&from, &to).map_err(|e| Error::io("rename", from.display(), e))
    }

    fn remove(&self, path: &str) -> Result<()> {
        let full = self.path(path)?;
        fs::remove_file(&full).map_err(|e| Error::io("remove", full.display(), e))
    }

    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        let full = self.path(path)?;
        let run = || {
            let file = OpenOptions::new().write(true).open(&full)?;
            file.set_len(len)?;
            file.sync_all()
        };
        run().map_err(|e| Error::io("truncate", full.display(), e))
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let entries = self.entries(dir)?;
        // A name that is not UTF-8 is not ours.
        let files = entries.into_iter().filter(|(_, is_file)| *is_file).filter_map(|(name, _)| name.into_string().ok());
        Ok(files.filter(|name| !(dir.is_empty() && name == LOCK_FILE)).collect())
    }

    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        let entries = self.entries(dir)?;
        let others = entries.into_iter().filter(|(name, is_file)| !is_file || name.to_str().is_none());
        Ok(others.map(|(name, _)| name.to_string_lossy().into_owned()).collect())
    }

    fn create_dir(&self, dir: &str) -> Result<()> {
        let full = self.path(dir)?;
        fs::create_dir_all(&full).map_err(|e| Error::io("make directory", full.display(), e))
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        sync_directory(&self.path(dir)?)
    }

    fn sync_together(&self) -> Result<bool> {
        let mut file_system = self.file_system.lock();
        let Some(found) = &*file_system else { return Ok(false) };
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let synced = self.is_all_of(found.number) && (found.sync)(&found.directory).is_ok();
        if !synced {
            // The error may be of another's file, and each of ours has its own.
            *file_system = None;
        }
        Ok(synced)
    }

    fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let full = self.path(path)?;
        full.try_exists().map_err(|e| Error::io("look for", full.display(), e))
    }

    fn temporary_file(&self) -> Result<Option<Arc<dyn DiskFile>>> {
        let folder = self.own_temporary_folder()?;
        let made = fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder));
        let file = made.map_err(|e| Error::io("make a temporary file in", folder.display(), e))?;
        let path = folder.join("(temporary)");
        Ok(Some(Arc::new(RealFile { file, path, end: AtomicU64::new(0), syncs: self.syncs.clone() })))
    }

    fn temporary_folder(&self) -> Result<Option<PathBuf>> {
        let folder = self.own_temporary_folder()?;
        match fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != Io::NotFound => Err(Error::io("remove folder", folder.display(), e)),
            _ => Ok(Some(folder)),
        }
    }

    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        lock_directory(&self.dir, exclusive)
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
    path: PathBuf,
    /// Where the next append goes. Not the length the system knows: a failed append may have left bytes behind it.
    end: AtomicU64,
    /// Of the disk.
    syncs: Arc<AtomicU64>,
}

impl RealFile {
    fn failed(&self, operation: &str, e: std::io::Error) -> Error {
        Error::io(operation, self.path.display(), e)
    }
}

impl DiskFile for RealFile {
    fn append(&self, bytes: &[u8]) -> Result<()> {
        let end = self.end.load(Ordering::Acquire);
        self.file.write_all_at(bytes, end).map_err(|e| self.failed("write to", e))?;
        self.end.store(end + bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|e| match e.kind() {
            Io::UnexpectedEof => {
                let message = format!("the file ends before the {} bytes expected here", buffer.len());
                Error::corrupt(self.path.display(), offset, message)
            }
            _ => self.failed("read", e),
        })
    }

    fn read_into(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let end = out.len() + len;
        let mut at = offset;
        out.reserve_exact(len);
        while out.len() < end {
            // May read beyond the end when there is more room than asked for; that is cut off.
            match pread(&self.file, spare_capacity(out), at) {
                Ok(0) => {
                    let message = format!("the file ends before the {len} bytes expected here");
                    return Err(Error::corrupt(self.path.display(), offset, message));
                }
                Ok(read) => at += read as u64,
                Err(Errno::INTR) => {}
                Err(e) => return Err(self.failed("read", e.into())),
            }
        }
        out.truncate(end);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.end.load(Ordering::Acquire))
    }

    fn cut(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.failed("cut", e))?;
        self.end.store(len, Ordering::Release);
        Ok(())
    }

    fn reserve(&self, len: u64) -> Result<()> {
        let end = self.end.load(Ordering::Acquire);
        if len <= end {
            return Ok(());
        }
        loop {
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, end, len - end) {
                Err(Errno::INTR) => {}
                // File systems that cannot set space aside: an append may then meet a full disk, which ends writing.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(e) => return Err(self.failed("reserve space for", e.into())),
            }
        }
    }

    fn sync(&self) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.file.sync_data().map_err(|e| self.failed("sync", e))
    }
}
