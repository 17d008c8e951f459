//! What statements and commands work with, wherever they come from: the connection, how results look, and where they
//! go.

use std::fs::File;
use std::io::{self, BufWriter, Read, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use mainstem::{Connection, Error};

use crate::output::{self, Format, Stopped, Style};

/// Bytes of a result that are written at once.
const BUFFER_BYTES: usize = 1 << 16;

/// See the module.
pub struct Client {
    pub connection: Arc<Connection>,
    pub style: Style,
    /// Whether to say how long statements took.
    pub timing: bool,
    /// What `\restrict` said: no command runs until `\unrestrict` says the same.
    pub restricted: Option<String>,
    /// The files whose statements run, the innermost last.
    pub files: Vec<PathBuf>,
    stdout: BufWriter<Stdout>,
    /// Where results go instead.
    file: Option<Target>,
}

/// A file for results.
struct Target {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl Client {
    /// A client that writes to standard output.
    pub fn new(connection: Arc<Connection>, format: Format) -> Self {
        Self {
            connection,
            style: Style { format, expanded: false },
            timing: false,
            restricted: None,
            files: Vec::new(),
            stdout: BufWriter::with_capacity(BUFFER_BYTES, io::stdout()),
            file: None,
        }
    }

    /// Runs the statements of `text`, and says how long they took, if that is wanted. `data` is what COPY FROM STDIN
    /// reads.
    ///
    /// # Errors
    /// Whatever a statement or the output failed with.
    pub fn run(&mut self, text: &str, data: &mut dyn Read) -> Result<(), Stopped> {
        let start = Instant::now();
        let ran = self.query(text, data);
        if self.timing {
            self.print(&format!("Time: {:.3} ms", start.elapsed().as_secs_f64() * 1_000.0))?;
        }
        ran
    }

    /// Runs the statements of `text`; `data` is what COPY FROM STDIN reads.
    ///
    /// # Errors
    /// Whatever a statement or the output failed with.
    pub fn query(&mut self, text: &str, data: &mut dyn Read) -> Result<(), Stopped> {
        let out: &mut dyn Write = match &mut self.file {
            Some(file) => &mut file.writer,
            None => &mut self.stdout,
        };
        let ran = output::run_text(&self.connection, text, self.style, data, out);
        match (ran, &self.file) {
            // Standard output may be a pipe that nobody reads; a file is wanted.
            (Err(Stopped::Output(error)), Some(file)) => Err(Error::io("write to", file.path.display(), error).into()),
            (ran, _) => ran,
        }
    }

    /// A line on standard output.
    ///
    /// # Errors
    /// Those of writing.
    pub fn print(&mut self, line: &str) -> Result<(), Stopped> {
        writeln!(self.stdout, "{line}").and_then(|()| self.stdout.flush()).map_err(Stopped::Output)
    }

    /// Writes results to the file at `path`, made anew, or to standard output again. If that fails, nothing changes.
    ///
    /// # Errors
    /// 58P01, 58030 and others when the file cannot be opened, or what was written to the one before is not there.
    pub fn redirect(&mut self, path: Option<&Path>) -> Result<(), Stopped> {
        let open = |path: &Path| {
            let file = File::create(path).map_err(|e| Error::io("open", path.display(), e))?;
            Ok::<_, Error>(Target { path: path.to_owned(), writer: BufWriter::with_capacity(BUFFER_BYTES, file) })
        };
        let next = path.map(open).transpose()?;
        match std::mem::replace(&mut self.file, next) {
            Some(mut file) => file.writer.flush().map_err(|e| Error::io("write to", file.path.display(), e).into()),
            None => Ok(()),
        }
    }
}
