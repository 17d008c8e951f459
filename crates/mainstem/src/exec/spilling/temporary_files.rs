//! Where queries put aside what they have no memory for: a folder in `temp` of the database, which its disk has room
//! for, or the system's folder for temporary files where the database is in memory or may not be written to.
//!
//! The folder is made when the first file is. Files go with what holds them; what a killed process leaves goes when the
//! database is opened the next time (`mainstem_storage::disk::Disk::temporary_folder`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerMode};
use datafusion::execution::{SpillFile, TempFileFactory};
use parking_lot::Mutex;

/// See the module.
#[derive(Debug)]
pub(in crate::exec) struct TemporaryFiles {
    folder: Option<PathBuf>,
    /// Counts what is put aside; made with the first file, for it makes a folder.
    manager: Mutex<Option<Arc<DiskManager>>>,
}

impl TemporaryFiles {
    /// Files in `folder`, or in that of the system.
    pub(in crate::exec) fn new(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_owned), manager: Mutex::default() }
    }

    fn manager(&self) -> Result<Arc<DiskManager>> {
        let mut made = self.manager.lock();
        if let Some(manager) = &*made {
            return Ok(manager.clone());
        }
        let mode = match &self.folder {
            Some(folder) => {
                fs::create_dir_all(folder)?;
                DiskManagerMode::Directories(vec![folder.clone()])
            }
            None => DiskManagerMode::OsTmpDirectory,
        };
        let manager = Arc::new(DiskManager::builder().with_mode(mode).build()?);
        Ok(made.insert(manager).clone())
    }
}

/// A new file without a name in `folder`, or in that of the system; it goes when it is closed.
///
/// # Errors
/// Of the operating system.
pub(crate) fn unnamed_file(folder: Option<&Path>) -> io::Result<File> {
    let Some(folder) = folder else { return tempfile::tempfile() };
    fs::create_dir_all(folder)?;
    tempfile::tempfile_in(folder)
}

impl TempFileFactory for TemporaryFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        self.manager()?.create_tmp_file(description)
    }
}
