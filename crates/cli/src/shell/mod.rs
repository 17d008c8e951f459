//! The interactive shell: history, completion, statements over several lines, `\` commands, Ctrl-C.
//!
//! Comes in: lines from a terminal. Goes out: what their statements and commands give. Steps: [`lines`] reads a line,
//! or the next of those that were pasted at once; the splitter that scripts use, too, finds what is complete in it;
//! that runs, and a Tab meanwhile asks [`completion`]. It does not own: what commands do (`commands`), how results look
//! (`output`).

mod catalog;
mod completion;
mod context;
mod keywords;
mod lines;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;

use mainstem::TransactionStatus;
use rustyline::error::ReadlineError;

use crate::client::Client;
use crate::commands::HELP;
use crate::interrupt::{self, Idle};
use crate::messages;
use crate::output::{self, Stopped};
use crate::script::{self, Flow, Kind, Piece, Splitter, after_comments};

use completion::Mode;
use lines::Lines;

/// Words that are commands when they stand alone on a line.
const WORDS: &[&str] = &["clear", "exit", "help", "quit"];

/// Reads and runs statements until the end of input or `\q`.
pub fn run(client: &mut Client) -> ExitCode {
    let handle = client.connection.interrupt_handle();
    interrupt::on_ctrl_c(Idle::Stay, move || handle.interrupt());
    let mut lines = match Lines::new(client.connection.clone(), history_file()) {
        Ok(lines) => lines,
        Err(e) => {
            messages::say(&format!("ERROR 58030: could not use the terminal: {e}"));
            return ExitCode::FAILURE;
        }
    };
    let mut shell = Shell { client, splitter: Splitter::default(), failed: false };
    shell.print(&format!("Mainstem {}. Type \\? for help.", env!("CARGO_PKG_VERSION")));
    if let Err(e) = shell.read(&mut lines) {
        messages::say(&format!("ERROR 58030: could not read from the terminal: {e}"));
        shell.failed = true;
    }
    let closed = shell.client.redirect(None);
    shell.note(closed);
    lines.keep_history();
    if shell.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Shell<'a> {
    client: &'a mut Client,
    /// What was typed and is not complete.
    splitter: Splitter,
    /// Whether any statement failed: the program's exit status.
    failed: bool,
}

impl Shell<'_> {
    /// Reads and runs until the end.
    fn read(&mut self, lines: &mut Lines) -> rustyline::Result<()> {
        // What is typed until it is complete, for the history.
        let mut typed = String::new();
        loop {
            let is_open = !self.splitter.unfinished().is_empty();
            let mode = || Mode::Sql { before: self.splitter.unfinished().to_owned() };
            let line = match lines.next(prompt(self.client.connection.status(), is_open), mode) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => {
                    self.splitter.clear();
                    typed.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(e) => return Err(e),
            };
            if !is_open && let Some(word) = word(&line) {
                lines.remember(&line)?;
                match word {
                    "help" => self.print(HELP),
                    "clear" => lines.clear_screen()?,
                    _ => return Ok(()),
                }
                continue;
            }
            let mut ready = VecDeque::new();
            self.splitter.feed(&format!("{line}\n"), &mut ready);
            typed.push_str(&line);
            typed.push('\n');
            if self.splitter.unfinished().is_empty() {
                lines.remember(&typed)?;
                typed.clear();
            }
            if self.run(ready, lines)? == Flow::Quit {
                return Ok(());
            }
        }
    }

    /// Runs what a line made complete, up to the first that fails.
    fn run(&mut self, pieces: VecDeque<Piece>, lines: &mut Lines) -> rustyline::Result<Flow> {
        for Piece { kind, text, .. } in pieces {
            if kind == Kind::Command || !is_of_rows(&text) {
                lines.forget_names();
            }
            let ran = match kind {
                Kind::Command => script::run_backslash(self.client, &text),
                Kind::Statement => {
                    let data = if output::wants_data(&text) { data(lines)? } else { Some(String::new()) };
                    let Some(data) = data else { return Ok(Flow::Continue) };
                    self.client.run(&text, &mut data.as_bytes()).map(|()| Flow::Continue)
                }
            };
            match ran {
                Ok(Flow::Continue) => {}
                Ok(Flow::Quit) => return Ok(Flow::Quit),
                Err(stopped) => {
                    self.note(Err(stopped));
                    return Ok(Flow::Continue);
                }
            }
        }
        Ok(Flow::Continue)
    }

    /// Says what failed.
    fn note(&mut self, ran: Result<(), Stopped>) {
        if let Err(stopped) = ran {
            output::report_stop(&stopped, None);
            self.failed = true;
        }
    }

    /// A line on standard output; a terminal that is gone ends the shell at its next line.
    fn print(&mut self, line: &str) {
        let _ = self.client.print(line);
    }
}

/// The word of [`WORDS`] that stands alone on `line`.
fn word(line: &str) -> Option<&'static str> {
    let line = line.trim().trim_end_matches(';').trim_end();
    WORDS.iter().copied().find(|word| line.eq_ignore_ascii_case(word))
}

/// Statements that change neither tables nor what their names mean, by their first words.
const OF_ROWS: &[&str] = &[
    "BEGIN",
    "COPY",
    "DELETE",
    "EXECUTE",
    "EXPLAIN",
    "INSERT",
    "PREPARE",
    "SAVEPOINT",
    "SELECT",
    "SHOW",
    "TABLE",
    "UPDATE",
    "VALUES",
    "WITH",
];

/// Whether the statement `text` leaves names as they are.
fn is_of_rows(text: &str) -> bool {
    let text = after_comments(text).trim_start_matches('(');
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    OF_ROWS.contains(&word.to_ascii_uppercase().as_str())
}

/// The lines typed as data of COPY FROM STDIN, up to `\.` or Ctrl-D; none when Ctrl-C gave them up.
fn data(lines: &mut Lines) -> rustyline::Result<Option<String>> {
    let mut data = String::new();
    loop {
        match lines.next("  data...> ", || Mode::Data) {
            Ok(line) if line.trim_end() == "\\." => return Ok(Some(data)),
            Ok(line) => {
                data.push_str(&line);
                data.push('\n');
            }
            Err(ReadlineError::Eof) => return Ok(Some(data)),
            Err(ReadlineError::Interrupted) => return Ok(None),
            Err(e) => return Err(e),
        }
    }
}

fn prompt(state: TransactionStatus, unfinished: bool) -> &'static str {
    match (state, unfinished) {
        (_, true) => "      ...> ",
        (TransactionStatus::Idle, _) => "mainstem> ",
        (TransactionStatus::Open, _) => "mainstem*> ",
        (TransactionStatus::Failed, _) => "mainstem!> ",
    }
}

fn history_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))?;
    let dir = base.join("mainstem");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("history"))
}
