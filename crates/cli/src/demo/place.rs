//! Where the demo's files are: a directory that is ours, never one with somebody's files in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mainstem::{Error, Result};
use tempfile::TempDir;

/// The file that says a directory is ours.
const MARKER: &str = "mainstem-demo.txt";
const MARKER_TEXT: &str = "Made by `mainstem demo`, which deletes csv/ and database/ in here when it runs again.\n";
/// SQLSTATE duplicate_file.
const NOT_OURS: &str = "58P02";
/// SQLSTATE object_in_use.
const IN_USE: &str = "55006";

/// The demo's directory, empty but for the marker. A temporary one is deleted when this is dropped.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
    csv: PathBuf,
    database: PathBuf,
    temporary: Option<TempDir>,
    /// Locked, so that two demos do not delete one another's files.
    _marker: File,
}

impl Place {
    /// Takes `dir`, which is made if need be, and clears what an earlier demo left; without `dir`, a temporary
    /// directory.
    ///
    /// # Errors
    /// A directory with other files in it, or with a running demo; a failed file operation.
    pub fn new(dir: Option<&Path>) -> Result<Self> {
        let temporary = match dir {
            Some(_) => None,
            None => Some(
                tempfile::Builder::new()
                    .prefix("mainstem-demo-")
                    .tempdir()
                    .map_err(|e| Error::io("make a temporary directory in", std::env::temp_dir().display(), e))?,
            ),
        };
        let root =
            dir.map_or_else(|| temporary.as_ref().map_or_else(PathBuf::new, |t| t.path().into()), Path::to_path_buf);
        if root.is_file() {
            return Err(Error::invalid(NOT_OURS, format!("{} is a file, not a directory", root.display())));
        }
        fs::create_dir_all(&root).map_err(|e| Error::io("make the directory", root.display(), e))?;
        let marker = mark(&root)?;
        let place = Self { csv: root.join("csv"), database: root.join("database"), root, temporary, _marker: marker };
        for dir in [&place.csv, &place.database] {
            match fs::remove_dir_all(dir) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Error::io("delete", dir.display(), e)),
                _ => {}
            }
        }
        fs::create_dir(&place.csv).map_err(|e| Error::io("make the directory", place.csv.display(), e))?;
        Ok(place)
    }

    /// Where the CSV files go.
    pub fn csv(&self) -> &Path {
        &self.csv
    }

    /// Where the database goes.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Where the database stays when the demo is over, if it does.
    pub fn kept(&self) -> Option<PathBuf> {
        self.temporary.is_none().then(|| self.database.clone())
    }

    /// Bytes of all files of the database.
    ///
    /// # Errors
    /// A failed file operation.
    pub fn database_bytes(&self) -> Result<u64> {
        bytes_in(&self.database).map_err(|e| Error::io("measure", self.root.display(), e))
    }
}

/// Opens and locks the marker, making it in an empty directory only.
fn mark(root: &Path) -> Result<File> {
    let path = root.join(MARKER);
    let failed = |operation: &'static str| move |e: io::Error| Error::io(operation, root.display(), e);
    if !path.exists() && fs::read_dir(root).map_err(failed("read the directory"))?.next().is_some() {
        let message =
            format!("{} is not empty and was not made by mainstem demo: name another directory", root.display());
        return Err(Error::invalid(NOT_OURS, message));
    }
    let mut marker = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(failed("write into the directory"))?;
    if marker.try_lock().is_err() {
        return Err(Error::invalid(IN_USE, format!("another mainstem demo is running in {}", root.display())));
    }
    marker.write_all(MARKER_TEXT.as_bytes()).map_err(failed("write into the directory"))?;
    Ok(marker)
}

fn bytes_in(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        bytes += if kind.is_dir() { bytes_in(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
