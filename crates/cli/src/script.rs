//! SQL from `-c`, `-f` or a pipe: statement by statement, stopping at the first error.
//!
//! Files and pipes are read as they come, so that they may be larger than memory and a program on the other side of a pipe may
//! wait for an answer before it goes on. An error names the line its statement begins on. The data of COPY FROM STDIN stands in
//! the lines behind the statement, up to a line `\.`; that of a `-c` comes from the pipe.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use mainstem::Connection;

use crate::interrupt::{self, Idle};
use crate::output::{self, Format};

#[cfg(test)]
mod tests;

/// Where SQL comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// The SQL itself.
    Text(&'a str),
    /// A file with it.
    File(&'a Path),
}

/// Runs `sources`, one after the other; a pipe if there is none.
pub fn run(connection: &Connection, sources: &[Source<'_>], format: Format) -> ExitCode {
    let handle = connection.interrupt_handle();
    interrupt::on_ctrl_c(Idle::Exit, move || handle.interrupt());
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    let done = match sources {
        [] => run_reader(connection, std::io::stdin().lock(), "stdin", format, &mut out),
        sources => sources.iter().all(|source| match source {
            Source::Text(text) => run_command(connection, text, format, &mut out),
            Source::File(path) => run_file(connection, path, format, &mut out),
        }),
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `text`; returns whether all of it succeeded.
fn run_command(connection: &Connection, text: &str, format: Format, out: &mut dyn Write) -> bool {
    let mut lines = 0;
    let mut data = DataLines::new(std::io::stdin().lock(), &mut lines);
    match output::run_text(connection, text, format, &mut data, out) {
        Ok(()) => true,
        Err(stopped) => {
            output::report_stop(&stopped, None);
            false
        }
    }
}

/// Runs what the file at `path` holds; returns whether all of it succeeded.
fn run_file(connection: &Connection, path: &Path, format: Format, out: &mut dyn Write) -> bool {
    match File::open(path) {
        Ok(file) => run_reader(connection, BufReader::new(file), &path.display().to_string(), format, out),
        Err(e) => {
            output::say(&format!("ERROR {}: could not open {}: {e}", sqlstate_of(&e), path.display()));
            false
        }
    }
}

fn sqlstate_of(error: &std::io::Error) -> &'static str {
    if error.kind() == std::io::ErrorKind::NotFound { "58P01" } else { "58030" }
}

/// Runs what `reader` holds; returns whether all of it succeeded.
fn run_reader(connection: &Connection, reader: impl BufRead, name: &str, format: Format, out: &mut dyn Write) -> bool {
    let mut pieces = Pieces::new(reader);
    loop {
        match pieces.next() {
            Ok(None) => return true,
            Ok(Some(piece)) => {
                if let Err(stopped) = output::run_text(connection, &piece.text, format, &mut pieces.data(), out) {
                    output::report_stop(&stopped, Some(&format!("{name}:{}", piece.line)));
                    return false;
                }
            }
            Err(e) => {
                let state = if e.kind() == std::io::ErrorKind::InvalidData { "22021" } else { "58030" };
                output::say(&format!("{name}:{}: ERROR {state}: could not read: {e}", pieces.line_read()));
                return false;
            }
        }
    }
}

/// A statement as it stands in a file.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    /// The statement, without its semicolon.
    text: String,
    /// The line it begins on, from 1.
    line: usize,
}

/// Cuts what a reader holds into statements.
struct Pieces<R> {
    reader: R,
    ready: VecDeque<Piece>,
    /// Read, and not a whole statement yet.
    text: String,
    /// The line `text` begins on.
    line: usize,
    ended: bool,
}

impl<R: BufRead> Pieces<R> {
    fn new(reader: R) -> Self {
        Self { reader, ready: VecDeque::new(), text: String::new(), line: 1, ended: false }
    }

    /// The next statement; the last need not have a semicolon.
    fn next(&mut self) -> std::io::Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.ended {
                let rest = std::mem::take(&mut self.text);
                return Ok(self.piece(&rest));
            }
            let before = self.text.len();
            self.ended = self.reader.read_line(&mut self.text)? == 0;
            // Where a statement ends is looked for only when a semicolon came: a long one is not read again at each line.
            if self.text.get(before..).is_some_and(|line| line.contains(';')) {
                let text = std::mem::take(&mut self.text);
                let (done, rest) = mainstem::split_statements(&text);
                for statement in done {
                    let piece = self.piece(statement);
                    self.ready.extend(piece);
                }
                rest.clone_into(&mut self.text);
            }
        }
    }

    /// The lines that follow, up to one that is `\.`: the data of the statement returned last.
    fn data(&mut self) -> DataLines<'_, &mut R> {
        DataLines::new(&mut self.reader, &mut self.line)
    }

    /// The line that was read last, or could not be.
    fn line_read(&self) -> usize {
        self.line + self.text.matches('\n').count()
    }

    /// The statement in `text`, which follows what was returned so far; none if it is blank.
    fn piece(&mut self, text: &str) -> Option<Piece> {
        let statement = after_line_comments(text);
        let line =
            self.line + text.get(..text.len() - statement.len()).map_or(0, |skipped| skipped.matches('\n').count());
        self.line += text.matches('\n').count();
        (!statement.is_empty()).then(|| Piece { text: statement.to_owned(), line })
    }
}

/// Lines of data between statements, up to one that is `\.`, which is read and left out.
pub struct DataLines<'a, R> {
    reader: R,
    /// Counts them.
    lines: &'a mut usize,
    line: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<'a, R: BufRead> DataLines<'a, R> {
    /// The lines that `reader` gives next.
    pub fn new(reader: R, lines: &'a mut usize) -> Self {
        Self { reader, lines, line: Vec::new(), at: 0, ended: false }
    }
}

impl<R: BufRead> Read for DataLines<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.line.len() && !self.ended {
            self.line.clear();
            self.at = 0;
            self.ended = self.reader.read_until(b'\n', &mut self.line)? == 0;
            *self.lines += usize::from(!self.ended);
            if self.line.trim_ascii_end() == b"\\." {
                self.line.clear();
                self.ended = true;
            }
        }
        let mut rest = self.line.get(self.at..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

/// `text` without the blanks and the whole-line comments it begins with.
fn after_line_comments(text: &str) -> &str {
    let mut text = text.trim_start();
    while text.starts_with("--") {
        text = text.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
    }
    text
}
