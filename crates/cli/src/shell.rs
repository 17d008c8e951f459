//! The interactive shell: history, statements over several lines, `\` commands, Ctrl-C.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use mainstem::{Connection, TransactionStatus};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Cmd, Config, DefaultEditor, Editor, KeyCode, KeyEvent, Modifiers};

use crate::interrupt::{self, Idle};
use crate::output::{self, Format, Stopped};

const HELP: &str = "\
\\d            tables and views
\\d NAME       columns and constraints of a table, query of a view
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
    // There is nothing to complete: a tab is a character, as data of COPY has it. (A bound `SelfInsert` would insert what was typed last.)
    editor.bind_sequence(KeyEvent(KeyCode::Tab, Modifiers::NONE), Cmd::Insert(1, "\t".to_owned()));
    let history = history_file();
    if let Some(file) = &history {
        // No history yet is no error.
        let _ = editor.load_history(file);
    }
    let mut shell = Shell { connection, format, timing: false, failed: false };
    shell.print(&format!("Mainstem {}. Type \\? for help.", env!("CARGO_PKG_VERSION")));
    if let Err(e) = shell.read(&mut Lines { editor: &mut editor, pasted: VecDeque::new() }) {
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

/// Lines from the terminal.
struct Lines<'a> {
    editor: &'a mut Editor<(), FileHistory>,
    /// Lines that came at once with the one returned last: a terminal hands over what is pasted as one text.
    pasted: VecDeque<String>,
}

impl Lines<'_> {
    /// The next line; `prompt` is shown unless it has come already.
    fn next(&mut self, prompt: &str) -> rustyline::Result<String> {
        if let Some(line) = self.pasted.pop_front() {
            return Ok(line);
        }
        let typed = self.editor.readline(prompt)?;
        let mut lines = typed.split('\n').map(|line| line.trim_end_matches('\r').to_owned());
        let first = lines.next().unwrap_or_default();
        self.pasted.extend(lines);
        Ok(first)
    }
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
    fn read(&mut self, lines: &mut Lines<'_>) -> rustyline::Result<()> {
        let mut text = String::new();
        loop {
            let line = match lines.next(prompt(self.connection.status(), !text.is_empty())) {
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
                lines.editor.add_history_entry(typed)?;
                if self.command(typed) {
                    return Ok(());
                }
                continue;
            }
            text.push_str(&line);
            text.push('\n');
            if is_complete(&text) {
                lines.editor.add_history_entry(text.trim())?;
                let data = if output::wants_data(&text) { data(lines)? } else { Some(String::new()) };
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
        match self.find(&name) {
            Ok(Some((schema, name, is_view))) => {
                let of = Literals { schema: literal(&schema), name: literal(&name) };
                if is_view {
                    self.run(&view_columns_query(&of), "");
                    self.run(&view_query(&of), "");
                    return;
                }
                self.run(&columns_query(&of), "");
                let constraints = constraints_query(&of);
                match self.has_rows(&constraints) {
                    Ok(true) => self.run(&constraints, ""),
                    Ok(false) => {}
                    Err(error) => self.stop(&error.into()),
                }
            }
            // A table that the system makes is in no catalog.
            Ok(None) if system_columns(&name).is_some_and(|query| self.has_rows(&query).unwrap_or(false)) => {
                if let Some(query) = system_columns(&name) {
                    self.run(&query, "");
                }
            }
            Ok(None) => {
                output::say(&format!("ERROR 42P01: table \"{name}\" does not exist; \\d lists the tables"));
                self.failed = true;
            }
            Err(error) => self.stop(&error.into()),
        }
    }

    /// Schema and name of the table or view that `name`, perhaps with a schema, means, and whether it is a view.
    fn find(&self, name: &str) -> mainstem::Result<Option<(String, String, bool)>> {
        match self.connection.table(name) {
            Ok(table) => return Ok(Some((table.namespace.clone(), table.name.clone(), false))),
            // 42809: it is a view.
            Err(error) if matches!(error.sqlstate(), "42P01" | "42809") => {}
            Err(error) => return Err(error),
        }
        let (schema, bare) = name.split_once('.').unwrap_or(("", name));
        let sql = format!(
            "SELECT table_schema, table_name FROM information_schema.views \
             WHERE table_name = {0} AND {1} IN ('', table_schema) OR table_name = {2} \
             ORDER BY table_schema <> 'public', table_schema LIMIT 1",
            literal(bare),
            literal(schema),
            literal(name)
        );
        let Some(row) = self.connection.prepare(&sql)?.query_optional(())? else { return Ok(None) };
        Ok(Some((row.get(0)?, row.get(1)?, true)))
    }

    fn has_rows(&self, sql: &str) -> mainstem::Result<bool> {
        let mut rows = 0;
        for batch in self.connection.query(sql)? {
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
fn data(lines: &mut Lines<'_>) -> rustyline::Result<Option<String>> {
    let mut data = String::new();
    loop {
        match lines.next("  data...> ") {
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

/// The query for the columns of `name`, if that would be a table of the system.
fn system_columns(name: &str) -> Option<String> {
    let (schema, name) = name.split_once('.')?;
    let is_system = matches!(schema, "mainstem" | "information_schema");
    is_system.then(|| view_columns_query(&Literals { schema: literal(schema), name: literal(name) }))
}

const TABLES: &str = "\
SELECT t.schema_name AS schema, t.table_name AS \"table\", t.primary_key, t.layout, \
CAST(coalesce(sum(c.rows - c.deleted), 0) AS BIGINT) AS rows \
FROM mainstem.tables t LEFT JOIN mainstem.containers c \
ON c.table_name = t.table_name AND c.schema_name = t.schema_name AND c.kind <> 'key index' \
GROUP BY t.schema_name, t.table_name, t.primary_key, t.layout \
UNION ALL SELECT table_schema, table_name, NULL, 'view', NULL FROM information_schema.views \
ORDER BY 1, 2";

/// A relation's schema and name as SQL literals.
struct Literals {
    schema: String,
    name: String,
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn columns_query(of: &Literals) -> String {
    format!(
        "SELECT column_name AS \"column\", data_type AS type, \
         CASE WHEN nullable THEN '' ELSE 'NOT NULL' END AS \"null\", \
         coalesce(column_default, 'generated ' || identity || ' as identity', '') AS \"default\" \
         FROM mainstem.columns WHERE schema_name = {} AND table_name = {} ORDER BY position",
        of.schema, of.name
    )
}

fn constraints_query(of: &Literals) -> String {
    let Literals { schema, name } = of;
    format!(
        "SELECT c.constraint_name AS \"constraint\", c.constraint_type AS kind, \
         coalesce(max(k.check_clause), string_agg(u.column_name, ', ' ORDER BY u.ordinal_position)) AS \"on\" \
         FROM information_schema.table_constraints c \
         LEFT JOIN information_schema.key_column_usage u ON u.constraint_name = c.constraint_name \
         AND u.table_name = c.table_name AND u.table_schema = c.table_schema \
         LEFT JOIN information_schema.check_constraints k ON c.constraint_type = 'CHECK' \
         AND k.constraint_name = c.constraint_name AND k.constraint_schema = c.constraint_schema \
         WHERE c.table_schema = {schema} AND c.table_name = {name} \
         GROUP BY c.constraint_name, c.constraint_type ORDER BY c.constraint_type = 'CHECK', c.constraint_name"
    )
}

fn view_columns_query(of: &Literals) -> String {
    format!(
        "SELECT column_name AS \"column\", data_type AS type FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
        of.schema, of.name
    )
}

fn view_query(of: &Literals) -> String {
    format!(
        "SELECT view_definition AS query FROM information_schema.views WHERE table_schema = {} AND table_name = {}",
        of.schema, of.name
    )
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
