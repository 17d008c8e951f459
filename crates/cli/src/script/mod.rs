//! SQL from `-c`, `-f`, a pipe or `\i`: piece by piece, stopping at the first error.
//!
//! Files and pipes are read as they come, so that they may be larger than memory and a program on the other side of a
//! pipe may wait for an answer before it goes on. An error names the line its statement begins on. The data of COPY
//! FROM STDIN stands in the lines behind the statement, up to a line `\.`; that of a `-c` comes from the pipe.

mod data;
mod pieces;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use mainstem::Database;

use crate::client::Client;
use crate::commands::{self, Next};
use crate::interrupt::{self, Idle};
use crate::messages;
use crate::output::{self, Stopped};

use data::DataLines;
pub use pieces::{Kind, Piece, Splitter, after_comments};

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

/// Whether what runs goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// `\q`.
    Quit,
}

/// Runs `sources`, one after the other; a pipe if there is none. They are about `database`.
pub fn run(client: &mut Client, database: &Database, sources: &[Source<'_>]) -> ExitCode {
    let (handle, storage) = (client.connection.interrupt_handle(), database.storage().clone());
    interrupt::on_ctrl_c(Idle::Exit(Box::new(move || storage.close())), move || handle.interrupt());
    let done = match sources {
        [] => run_reader(client, std::io::stdin().lock(), "stdin"),
        sources => sources.iter().try_for_each(|source| match source {
            Source::Text(text) => run_command(client, text),
            Source::File(path) => run_file(client, path),
        }),
    };
    let closed = client.redirect(None);
    for stopped in [&done, &closed].into_iter().filter_map(|ended| ended.as_ref().err()) {
        output::report_stop(stopped, None);
    }
    if done.is_ok() && closed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `text`.
fn run_command(client: &mut Client, text: &str) -> Result<(), Stopped> {
    let mut lines = 0;
    let mut data = DataLines::new(std::io::stdin().lock(), &mut lines);
    let mut run = |piece: &str, kind: Kind| match kind {
        Kind::Statement => client.run(piece, &mut data).map(|()| Flow::Continue),
        Kind::Command => run_backslash(client, piece),
    };
    let mut pieces = Pieces::new(text.as_bytes());
    let mut all = VecDeque::new();
    while let Ok(Some(piece)) = pieces.next() {
        all.push_back(piece);
    }
    // Without commands nothing runs unless all of it can be parsed.
    if all.iter().all(|piece| piece.kind == Kind::Statement) {
        run(text, Kind::Statement).map(|_| ())
    } else {
        all.iter()
            .try_fold(Flow::Continue, |flow, piece| match flow {
                Flow::Continue => run(&piece.text, piece.kind),
                Flow::Quit => Ok(Flow::Quit),
            })
            .map(|_| ())
    }
}

/// Runs the `\` command in `line`, and the file that it names.
///
/// # Errors
/// Those of the command. 58P01, 58030 and others for a file that cannot be opened; what is wrong within is said with
/// its line.
pub fn run_backslash(client: &mut Client, line: &str) -> Result<Flow, Stopped> {
    match commands::run(client, line)? {
        Next::Continue => Ok(Flow::Continue),
        Next::Quit => Ok(Flow::Quit),
        Next::File(path) => run_file(client, &path).map(|()| Flow::Continue),
    }
}

/// Runs what the file at `path` holds.
fn run_file(client: &mut Client, path: &Path) -> Result<(), Stopped> {
    let file = File::open(path).map_err(|e| mainstem::Error::io("open", path.display(), e))?;
    client.files.push(path.to_owned());
    let ran = run_reader(client, BufReader::new(file), &path.display().to_string());
    client.files.pop();
    ran
}

/// Runs what `reader` holds.
fn run_reader(client: &mut Client, reader: impl BufRead, name: &str) -> Result<(), Stopped> {
    let mut pieces = Pieces::new(reader);
    loop {
        match pieces.next() {
            Ok(None) => return Ok(()),
            Ok(Some(piece)) => {
                let prepared = match pieces.take_dump() {
                    true => client.query(READS_DUMP, &mut std::io::empty()),
                    false => Ok(()),
                };
                let ran = prepared.and_then(|()| match piece.kind {
                    Kind::Statement => client.run(&piece.text, &mut pieces.data()).map(|()| Flow::Continue),
                    Kind::Command => run_backslash(client, &piece.text),
                });
                match ran {
                    Ok(Flow::Continue) => {}
                    Ok(Flow::Quit) => return Ok(()),
                    Err(stopped) => {
                        output::report_stop(&stopped, Some(&format!("{name}:{}", piece.line)));
                        return Err(Stopped::Reported);
                    }
                }
            }
            Err(e) => {
                let state = if e.kind() == std::io::ErrorKind::InvalidData { "22021" } else { "58030" };
                messages::say(&format!("{name}:{}: ERROR {state}: could not read: {e}", pieces.line_read()));
                return Err(Stopped::Reported);
            }
        }
    }
}

/// The line that dumps of PostgreSQL begin with.
const DUMP_LINE: &str = "-- PostgreSQL database dump";
/// What is run before what stands behind that line.
const READS_DUMP: &str = "SET postgres_dump = on";

/// Cuts what a reader holds into pieces.
struct Pieces<R> {
    reader: R,
    splitter: Splitter,
    ready: VecDeque<Piece>,
    line: String,
    ended: bool,
    /// Whether what was read last is a dump of PostgreSQL.
    is_dump: bool,
}

impl<R: BufRead> Pieces<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            splitter: Splitter::default(),
            ready: VecDeque::new(),
            line: String::new(),
            ended: false,
            is_dump: false,
        }
    }

    fn next(&mut self) -> std::io::Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.ended {
                return Ok(self.splitter.finish());
            }
            self.line.clear();
            self.ended = self.reader.read_line(&mut self.line)? == 0;
            self.is_dump |= self.line.trim_end() == DUMP_LINE && self.splitter.unfinished().is_empty();
            self.splitter.feed(&self.line, &mut self.ready);
        }
    }

    /// Whether a dump of PostgreSQL has begun since this was last asked.
    fn take_dump(&mut self) -> bool {
        std::mem::take(&mut self.is_dump)
    }

    /// The lines that follow, up to one that is `\.`: the data of the statement returned last.
    fn data(&mut self) -> DataLines<'_, &mut R> {
        DataLines::new(&mut self.reader, &mut self.splitter.line)
    }

    /// The line that was read last, or could not be.
    fn line_read(&self) -> usize {
        self.splitter.lines()
    }
}
