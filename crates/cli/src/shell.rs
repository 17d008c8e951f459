//! The interactive shell: history, statements over several lines, `\` commands, Ctrl-C.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use mainstem::{Connection, Database};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::output::{self, Format};

const HELP: &str = "\
\\d            tables
\\d TABLE      columns of a table
\\timing       show how long statements take, or stop it
\\?            this help
\\q            quit
A statement ends with a semicolon and may have many lines; Ctrl-C cancels it.";

/// Reads and runs statements until the end of input or `\q`.
pub fn run(database: &Database, connection: &Connection, format: Format) -> ExitCode {
    output::cancel_on_ctrl_c(connection);
    let mut editor = match DefaultEditor::new() {
        Ok(editor) => editor,
        Err(e) => {
            eprintln!("ERROR 58030: could not use the terminal: {e}");
            return ExitCode::FAILURE;
        }
    };
    let history = history_file();
    if let Some(file) = &history {
        // No history yet is no error.
        let _ = editor.load_history(file);
    }
    println!("Mainstem {}. Type \\? for help.", env!("CARGO_PKG_VERSION"));
    let mut shell = Shell { connection, format, timing: false, failed: false };
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "mainstem> " } else { "      ... " };
        match editor.readline(prompt) {
            Ok(line) if text.is_empty() && line.trim_start().starts_with('\\') => {
                let _ = editor.add_history_entry(line.trim());
                if shell.command(line.trim()) {
                    break;
                }
            }
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
                if mainstem::is_complete(&text) {
                    let _ = editor.add_history_entry(text.trim());
                    shell.statements(&text);
                    text.clear();
                } else if text.trim().is_empty() {
                    text.clear();
                }
            }
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => break,
            Err(e) => {
                eprintln!("ERROR 58030: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    if let Some(file) = &history {
        let _ = editor.save_history(file);
    }
    let _ = database;
    if shell.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Shell<'a> {
    connection: &'a Connection,
    format: Format,
    timing: bool,
    failed: bool,
}

impl Shell<'_> {
    fn statements(&mut self, text: &str) {
        let start = Instant::now();
        let mut out = std::io::stdout().lock();
        if !output::run_text(self.connection, text, self.format, &mut out) {
            self.failed = true;
        }
        if self.timing {
            println!("Time: {:.3} ms", start.elapsed().as_secs_f64() * 1_000.0);
        }
    }

    /// Runs a `\` command; returns whether to quit.
    fn command(&mut self, line: &str) -> bool {
        let (command, argument) = line.split_once(char::is_whitespace).map_or((line, ""), |(c, a)| (c, a.trim()));
        match (command, argument) {
            ("\\q", _) => return true,
            ("\\?", _) => println!("{HELP}"),
            ("\\timing", _) => {
                self.timing = !self.timing;
                println!("Timing is {}.", if self.timing { "on" } else { "off" });
            }
            ("\\d", "") => self.statements(
                "SELECT table_name, columns, primary_key, layout, rows FROM mainstem.tables ORDER BY table_name;",
            ),
            ("\\d", table) => {
                let name = table.trim_matches('"').replace('\'', "''");
                self.statements(&format!(
                    "SELECT column_name, data_type, nullable, key FROM mainstem.columns WHERE table_name = '{name}' ORDER BY position;"
                ));
            }
            _ => eprintln!("unknown command {command}; \\? lists them"),
        }
        false
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
