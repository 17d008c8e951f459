//! The interactive shell: history, statements over several lines, `\` commands, Ctrl-C.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use mainstem::{Connection, TransactionStatus};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, DefaultEditor, Editor};

use crate::interrupt::{self, Idle};
use crate::output::{self, Format, Stopped};

const HELP: &str = "\
\\d            tables
\\d TABLE      columns of a table
\\timing       show how long statements take, or stop it
\\?            this help
\\q            quit (Ctrl-D too)
A statement ends with a semicolon and may have many lines; Ctrl-C cancels it.
The prompt shows an open transaction: mainstem*>, or mainstem!> when it failed and waits for ROLLBACK.";

/// Lines of history kept.
const HISTORY_MAX: usize = 10_000;

/// Reads and runs statements until the end of input or `\q`.
pub fn run(connection: &Connection, format: Format) -> ExitCode {
    let handle = connection.interrupt_handle();
    interrupt::on_ctrl_c(Idle::Stay, move || handle.interrupt());
    let config = Config::builder().max_history_size(HISTORY_MAX).map(|config| config.auto_add_history(false).build());
    let mut editor = match config.and_then(DefaultEditor::with_config) {
        Ok(editor) => editor,
        Err(e) => {
            output::say(&format!("ERROR 58030: could not use the terminal: {e}"));
            return ExitCode::FAILURE;
        }
    };
    let history = history_file();
    if let Some(file) = &history {
        // No history yet is no error.
        let _ = editor.load_history(file);
    }
    let mut shell = Shell { connection, format, timing: false, failed: false };
    shell.print(&format!("Mainstem {}. Type \\? for help.", env!("CARGO_PKG_VERSION")));
    if let Err(e) = shell.read(&mut editor) {
        output::say(&format!("ERROR 58030: could not read from the terminal: {e}"));
        shell.failed = true;
    }
    if let Some(file) = &history
        && let Err(e) = editor.save_history(file)
    {
        output::say(&format!("The history could not be kept in {}: {e}", file.display()));
    }
    if shell.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

struct Shell<'a> {
    connection: &'a Connection,
    format: Format,
    timing: bool,
    /// Whether any statement failed: the program's exit status.
    failed: bool,
}

impl Shell<'_> {
    /// Reads and runs until the end.
    fn read(&mut self, editor: &mut Editor<(), FileHistory>) -> rustyline::Result<()> {
        let mut text = String::new();
        loop {
            let line = match editor.readline(prompt(self.connection.status(), !text.is_empty())) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => {
                    text.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => return Ok(()),
                Err(e) => return Err(e),
            };
            let typed = line.trim();
            if text.is_empty() && (typed.starts_with('\\') || matches!(typed, "quit" | "exit")) {
                editor.add_history_entry(typed)?;
                if self.command(typed) {
                    return Ok(());
                }
                continue;
            }
            text.push_str(&line);
            text.push('\n');
            if is_complete(&text) {
                editor.add_history_entry(text.trim())?;
                let data = if output::wants_data(&text) { data(editor)? } else { Some(String::new()) };
                if let Some(data) = data {
                    self.statements(&text, &data);
                }
                text.clear();
            } else if text.trim().is_empty() {
                text.clear();
            }
        }
    }

    /// Runs what was typed; says how long it took, if that is wanted.
    fn statements(&mut self, text: &str, data: &str) {
        let start = Instant::now();
        self.run(text, data);
        if self.timing {
            self.print(&format!("Time: {:.3} ms", start.elapsed().as_secs_f64() * 1_000.0));
        }
    }

    fn run(&mut self, text: &str, data: &str) {
        let out = &mut std::io::stdout().lock();
        if let Err(stopped) = output::run_text(self.connection, text, self.format, &mut data.as_bytes(), out) {
            self.stop(&stopped);
        }
    }

    fn stop(&mut self, stopped: &Stopped) {
        output::report_stop(stopped, None);
        self.failed = true;
    }

    /// Runs a `\` command; returns whether to quit.
    fn command(&mut self, line: &str) -> bool {
        let (command, argument) = line.split_once(char::is_whitespace).map_or((line, ""), |(c, a)| (c, a.trim()));
        match (command, argument.trim_end_matches(';')) {
            ("\\q" | "quit" | "exit", _) => return true,
            ("\\?", _) => self.print(HELP),
            ("\\timing", _) => {
                self.timing = !self.timing;
                self.print(if self.timing { "Timing is on." } else { "Timing is off." });
            }
            ("\\d", "") => self.run(TABLES, ""),
            ("\\d", table) => self.describe(table),
            _ => output::say(&format!("Unknown command {command}; \\? lists them.")),
        }
        false
    }

    fn describe(&mut self, table: &str) {
        let name = folded(table);
        let quoted = name.replace('\'', "''");
        match self.known(&quoted) {
            Ok(true) => self.run(&columns_query(&quoted), ""),
            Ok(false) => {
                output::say(&format!("ERROR 42P01: table \"{name}\" does not exist; \\d lists the tables"));
                self.failed = true;
            }
            Err(error) => self.stop(&error.into()),
        }
    }

    fn known(&self, quoted: &str) -> mainstem::Result<bool> {
        let sql = format!("SELECT table_name FROM mainstem.tables WHERE table_name = '{quoted}'");
        let mut rows = 0;
        for batch in self.connection.query(&sql)? {
            rows += batch?.num_rows();
        }
        Ok(rows > 0)
    }

    /// A line on standard output; a terminal that is gone ends the shell at its next line.
    fn print(&self, line: &str) {
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
}

/// The lines typed as data of COPY FROM STDIN, up to `\.` or Ctrl-D; none when Ctrl-C gave them up.
fn data(editor: &mut Editor<(), FileHistory>) -> rustyline::Result<Option<String>> {
    let mut data = String::new();
    loop {
        match editor.readline("  data...> ") {
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

const TABLES: &str = "\
SELECT t.table_name AS \"table\", t.primary_key, t.layout, CAST(coalesce(sum(c.rows - c.deleted), 0) AS BIGINT) AS rows
FROM mainstem.tables t LEFT JOIN mainstem.containers c ON c.table_name = t.table_name
GROUP BY t.table_name, t.primary_key, t.layout ORDER BY t.table_name";

fn columns_query(quoted: &str) -> String {
    let mut sql = String::from("SELECT column_name AS \"column\", data_type AS type, ");
    // Writing to a String does not fail.
    let _ = write!(
        sql,
        "CASE WHEN nullable THEN '' ELSE 'NOT NULL' END AS \"null\" \
         FROM mainstem.columns WHERE table_name = '{quoted}' ORDER BY position"
    );
    sql
}

/// The name a table has when it is written so in SQL: in small letters, unless quoted.
fn folded(table: &str) -> String {
    match table.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => table.to_lowercase(),
    }
}

/// Whether `text` is whole statements, with nothing behind the last semicolon but a comment to the end of the line.
fn is_complete(text: &str) -> bool {
    let (done, rest) = mainstem::split_statements(text);
    !done.is_empty() && rest.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with("--"))
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
