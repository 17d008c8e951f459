//! `mainstem dump`: a whole database as SQL that `mainstem` reads back, into an empty one, whatever its version.
//!
//! The database is opened to read only, so nobody writes to it meanwhile. The text goes to standard output, or to a
//! file that is there only when it is whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use mainstem::{Error, OpenOptions, Result};

use crate::fail;

/// Writes the database in directory `path` to the file `output`, or to standard output.
pub fn run(path: &Path, output: Option<&Path>) -> ExitCode {
    match dump(path, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&e),
    }
}

fn dump(path: &Path, output: Option<&Path>) -> Result<()> {
    let database = crate::open(path, OpenOptions::new().read_only(true).create(false))?;
    crate::warn(database.notices());
    let connection = database.connect()?;
    match output {
        None => connection.dump(std::io::stdout().lock())?,
        Some(output) => {
            let aside = Aside::of(output);
            let failed = |e| Error::io("write", output.display(), e);
            let mut file = BufWriter::new(File::create(&aside.0).map_err(failed)?);
            let rows = connection.dump(&mut file)?;
            file.flush().and_then(|()| file.get_ref().sync_all()).map_err(failed)?;
            std::fs::rename(&aside.0, output).map_err(failed)?;
            rows
        }
    };
    drop(connection);
    database.close()
}

/// A file beside the one that is wanted; removed unless it took its name.
struct Aside(PathBuf);

impl Aside {
    fn of(output: &Path) -> Self {
        let mut name = output.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.tmp", std::process::id()));
        Self(output.with_file_name(name))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // It is not there where it took its name.
        let _ = std::fs::remove_file(&self.0);
    }
}
