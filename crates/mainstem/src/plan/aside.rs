//! What a statement writes for other programs: a file, or a folder, beside its target until it is whole.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use mainstem_storage::{Error, Result};

/// SQLSTATE: there is something of that name.
const DUPLICATE_FILE: &str = "58P02";
/// SQLSTATE: it is of another kind.
const WRONG_OBJECT_TYPE: &str = "42809";

/// A file or folder beside its target; removed unless installed. What is no regular file, a pipe or a device, is
/// written to as it is.
pub(super) struct Aside {
    path: PathBuf,
    target: PathBuf,
    installed: bool,
}

impl Aside {
    /// A file that is to be `target`.
    ///
    /// # Errors
    /// 42809 for a folder.
    pub(super) fn of_file(target: &str) -> Result<Self> {
        // A link stays one: what it leads to is replaced.
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| PathBuf::from(target));
        match std::fs::metadata(&target) {
            Ok(found) if found.is_dir() => {
                let message = format!("\"{}\" is a directory", target.display());
                Err(Error::invalid(WRONG_OBJECT_TYPE, message))
            }
            Ok(found) if !found.is_file() => Ok(Self { path: target.clone(), target, installed: true }),
            _ => Ok(Self { path: beside(&target), target, installed: false }),
        }
    }

    /// A folder that is to be `target`, which is not there, or empty.
    ///
    /// # Errors
    /// 58P02 for a folder with something in it, 42809 for a file; Io.
    pub(super) fn of_folder(target: &str) -> Result<Self> {
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| PathBuf::from(target));
        let failed = |e| Error::io("create", format_args!("\"{}\"", target.display()), e);
        if let Ok(found) = std::fs::metadata(&target) {
            if !found.is_dir() {
                let message = format!("\"{}\" is no directory", target.display());
                return Err(Error::invalid(WRONG_OBJECT_TYPE, message));
            }
            if std::fs::read_dir(&target).map_err(failed)?.next().is_some() {
                let message = format!("the directory \"{}\" is not empty", target.display());
                return Err(Error::invalid(DUPLICATE_FILE, message));
            }
        }
        let path = beside(&target);
        std::fs::create_dir(&path).map_err(failed)?;
        Ok(Self { path, target, installed: false })
    }

    /// What messages call a part of it.
    pub(super) fn shown(&self, part: Option<&str>) -> String {
        match part {
            Some(part) => format!("\"{}\"", self.target.join(part).display()),
            None => format!("\"{}\"", self.target.display()),
        }
    }

    /// Makes the file.
    ///
    /// # Errors
    /// Io, Full.
    pub(super) fn file(&self) -> Result<File> {
        let opened =
            if self.installed { File::options().write(true).open(&self.path) } else { File::create_new(&self.path) };
        opened.map_err(|e| Error::io("create", self.shown(None), e))
    }

    /// Where it stands.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, durably.
    ///
    /// # Errors
    /// Io: the target is as it was.
    pub(super) fn install(mut self) -> Result<()> {
        if self.installed {
            return Ok(());
        }
        let shown = self.shown(None);
        if self.path.is_dir() {
            sync_folders(&self.path).map_err(|e| Error::io("fsync", &shown, e))?;
        }
        std::fs::rename(&self.path, &self.target).map_err(|e| Error::io("rename to", &shown, e))?;
        self.installed = true;
        let folder = self.target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| Error::io("fsync the folder of", &shown, e))
    }
}

/// A name that nothing has, in the same folder.
fn beside(target: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    target.with_file_name(name)
}

/// Makes the names in `folder`, and in those in it, durable.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.installed {
            // What cannot be removed is a leftover with a telling name, not an error of the statement.
            let _ =
                if self.path.is_dir() { std::fs::remove_dir_all(&self.path) } else { std::fs::remove_file(&self.path) };
        }
    }
}
