//! A database under one placement configuration of `slt/configs/`: its sessions, and what is done to it after each
//! statement.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mainstem::{Connection, Database, Encodings, Error, OpenOptions, Result, StatementOutcome, TransactionStatus};
use mainstem_storage::ids::TableId;
use mainstem_storage::transaction::TransactionMode;

use super::printing::{letter, printed};

/// The folder `slt/`.
pub fn slt_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../slt")
}

/// The files of a folder of `slt/` with extension `extension`, without it, sorted.
pub fn names_in(folder: &Path, extension: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_string())
        .collect();
    names.sort();
    names
}

/// What is done after each statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Freeze,
    Flush,
    Merge,
    Restart,
}

/// How CREATE TABLE is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableChange {
    Insertion,
    Sorted,
}

/// One file of `slt/configs/`.
#[derive(Clone, Debug)]
pub struct Config {
    pub name: String,
    pub options: OpenOptions,
    pub create_table: Option<TableChange>,
    pub after_statement: Vec<Action>,
    /// What each session begins with.
    pub session: Vec<String>,
    /// Whether a query is run twice, and the second answer counts: that of what the first run has kept.
    pub repeat_queries: bool,
}

impl Config {
    /// The configuration called `name`.
    pub fn named(name: &str) -> Self {
        let path = slt_folder().join("configs").join(format!("{name}.json"));
        let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let known = ["name", "description", "settings", "create_table", "after_statement", "session", "repeat_queries"];
        for field in json.as_object().unwrap().keys() {
            assert!(known.contains(&field.as_str()), "{name}: unknown field {field}");
        }
        assert_eq!(json["name"], name);
        Self {
            name: name.into(),
            options: options(&json["settings"]),
            create_table: json.get("create_table").map(|change| match change.as_str().unwrap() {
                "insertion" => TableChange::Insertion,
                "sorted" => TableChange::Sorted,
                other => panic!("{name}: unknown change of CREATE TABLE {other}"),
            }),
            after_statement: json["after_statement"].as_array().unwrap().iter().map(action).collect(),
            session: json.get("session").map_or_else(Vec::new, |statements| {
                statements.as_array().unwrap().iter().map(|sql| sql.as_str().unwrap().into()).collect()
            }),
            repeat_queries: json.get("repeat_queries").is_some_and(|repeat| repeat.as_bool().unwrap()),
        }
    }

    /// The same without `restart`.
    pub fn without_restart(mut self) -> Self {
        self.after_statement.retain(|action| *action != Action::Restart);
        self
    }

    /// `sql`, which is to succeed, with its CREATE TABLE changed as the configuration says.
    pub fn create_table(&self, sql: &str) -> String {
        let upper = sql.to_ascii_uppercase();
        let of_query =
            [" AS SELECT", " AS WITH", " AS VALUES", " AS FROM", " AS ("].iter().any(|word| upper.contains(word));
        if !upper.trim_start().starts_with("CREATE TABLE") || upper.contains("PRIMARY KEY") || of_query {
            return sql.into();
        }
        let (columns_from, columns_to) = parentheses(sql, 0).unwrap();
        let (columns, behind) = (&sql[columns_from..columns_to], &sql[columns_to + 1..]);
        let upper_behind = behind.to_ascii_uppercase();
        match self.create_table {
            Some(TableChange::Insertion) if upper_behind.contains("ORDER BY") => {
                let at = upper_behind.find("ORDER BY").unwrap();
                let (_, end) = parentheses(behind, at).unwrap();
                format!("{}{}{}", &sql[..=columns_to], &behind[..at], &behind[end + 1..])
            }
            Some(TableChange::Sorted) if !upper_behind.contains("ORDER BY") && !upper_behind.contains("LAYOUT") => {
                let columns = columns.trim_start();
                let first = match columns.strip_prefix('"') {
                    Some(quoted) => format!("\"{}\"", &quoted[..quoted.find('"').unwrap()]),
                    None => columns.split_whitespace().next().unwrap().into(),
                };
                format!("{} ORDER BY ({first}){behind}", &sql[..=columns_to])
            }
            _ => sql.into(),
        }
    }
}

/// Where the first pair of parentheses behind `from` begins (inside) and ends.
fn parentheses(sql: &str, from: usize) -> Option<(usize, usize)> {
    let open = from + sql[from..].find('(')?;
    let mut depth = 0;
    for (at, c) in sql[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((open + 1, open + at));
        }
    }
    None
}

fn options(settings: &serde_json::Value) -> OpenOptions {
    let mut options = OpenOptions::default();
    for (name, value) in settings.as_object().unwrap() {
        let value = value.as_str().unwrap();
        match (name.as_str(), value) {
            ("background", "off") => options.background = false,
            ("background", "on") => options.background = true,
            ("segment_rows", number) => options.segment_rows = number.parse().unwrap(),
            ("encodings", "decoded") => options.encodings = Encodings::Decoded,
            ("encodings", "decoded_dictionaries") => options.encodings = Encodings::DecodedDictionaries,
            ("delta_rows", number) => options.delta_rows = number.parse().unwrap(),
            (other, value) => panic!("unknown setting {other} = {value}"),
        }
    }
    options
}

fn action(text: &serde_json::Value) -> Action {
    match text.as_str().unwrap() {
        "freeze" => Action::Freeze,
        "flush" => Action::Flush,
        "merge" => Action::Merge,
        "restart" => Action::Restart,
        other => panic!("unknown action {other}"),
    }
}

/// What a statement gave.
#[derive(Debug)]
pub enum Answer {
    /// Rows as `slt/README.md` prints them, with the type letter of each column.
    Rows(Vec<char>, Vec<Vec<String>>),
    /// How many rows it wrote.
    Done(u64),
}

/// The database and its sessions. On disk if the configuration restarts it, otherwise in memory.
pub struct Stage {
    config: Config,
    folder: tempfile::TempDir,
    database: Database,
    sessions: BTreeMap<String, Connection>,
    /// What a restart takes from each session and the next statement gives back: its settings and prepared statements.
    lost: BTreeMap<String, Vec<String>>,
}

/// Whether `sql` is a query, which changes nothing.
fn is_query(sql: &str) -> bool {
    let upper = sql.trim_start().to_ascii_uppercase();
    ["SELECT", "VALUES", "WITH", "("].iter().any(|word| upper.starts_with(word))
        && !["RETURNING", "FOR UPDATE", "FOR SHARE"].iter().any(|word| upper.contains(word))
}

/// Whether `sql` changes only what a session ends with.
fn is_of_session(sql: &str) -> bool {
    let mut words = sql.split_whitespace().map(str::to_ascii_uppercase);
    match words.next().as_deref() {
        Some("PREPARE" | "DEALLOCATE" | "RESET") => true,
        Some("SET") => !matches!(words.next().as_deref(), Some("LOCAL" | "TRANSACTION" | "CONSTRAINTS")),
        _ => false,
    }
}

impl Stage {
    pub fn new(config: &Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("files")).unwrap();
        let database = open(config, folder.path());
        Self { config: config.clone(), folder, database, sessions: BTreeMap::new(), lost: BTreeMap::new() }
    }

    /// A folder for the files of statements: `__TEST_DIR__`.
    pub fn file_folder(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// Runs one statement on session `name`, which is made at first use and after a restart.
    pub fn run(&mut self, name: &str, sql: &str) -> Result<Answer> {
        if !self.sessions.contains_key(name) {
            let session = self.database.connect()?;
            for setting in &self.config.session {
                session.execute(setting)?;
            }
            for statement in self.lost.get(name).into_iter().flatten() {
                // What it read may be gone or another by now: then it is missed where it is used.
                let _ = session.execute(statement);
            }
            self.sessions.insert(name.into(), session);
        }
        if self.config.repeat_queries && is_query(sql) {
            // What is wrong with it, it says again.
            let _: Result<()> =
                self.sessions[name].query(sql).and_then(|mut rows| rows.try_for_each(|batch| batch.map(drop)));
        }
        let outcomes: Vec<StatementOutcome> = self.sessions[name].run(sql)?.collect::<Result<_>>()?;
        // A transaction may take it back, and does in most tests that have one around it.
        if is_of_session(sql) && self.sessions[name].status() == TransactionStatus::Idle {
            self.lost.entry(name.into()).or_default().push(sql.into());
        }
        let [outcome] = <[StatementOutcome; 1]>::try_from(outcomes).expect("one statement a record");
        let Some(result) = outcome.rows else {
            return Ok(Answer::Done(outcome.rows_affected.unwrap_or(0)));
        };
        let types = result.schema().fields().iter().map(|field| letter(field.data_type())).collect();
        let mut rows = Vec::new();
        for batch in result {
            rows.extend(printed(&batch?));
        }
        Ok(Answer::Rows(types, rows))
    }

    /// Does what the configuration wants after a statement.
    pub fn after_statement(&mut self) -> Result<()> {
        for action in self.config.after_statement.clone() {
            let done = match action {
                Action::Freeze => self.each_table(|database, table| database.storage().freeze(table)),
                Action::Flush => self.each_table(|database, table| database.storage().flush(table)),
                Action::Merge => self.each_table(|database, table| database.storage().merge(table)),
                Action::Restart => self.restart(),
            };
            done.map_err(|e: Error| e.context(format!("{action:?} after a statement")))?;
        }
        Ok(())
    }

    fn each_table(&self, action: impl Fn(&Database, TableId) -> Result<()>) -> Result<()> {
        let look = self.database.storage().begin(TransactionMode { read_only: true, ..TransactionMode::default() })?;
        let tables: Vec<_> = look.catalog().tables().map(|table| table.id).collect();
        drop(look);
        tables.into_iter().try_for_each(|table| action(&self.database, table))
    }

    /// Closes all sessions and the database and opens it again, unless a session is in a transaction.
    fn restart(&mut self) -> Result<()> {
        if self.sessions.values().any(|session| session.status() != TransactionStatus::Idle) {
            return Ok(());
        }
        self.sessions.clear();
        self.database.close()?;
        self.database = open(&self.config, self.folder.path());
        Ok(())
    }
}

fn open(config: &Config, folder: &Path) -> Database {
    if config.after_statement.contains(&Action::Restart) {
        Database::open_with(folder.join("database"), config.options.clone()).unwrap()
    } else {
        Database::in_memory_with(config.options.clone()).unwrap()
    }
}

/// One test for each file under each configuration, as `run(file, configuration)`, and one that none is left out:
/// `folder` holds the files, with `extension`.
macro_rules! placement_matrix {
    ($run:ident, $folder:expr, $extension:expr, $files:tt) => {
        $crate::stage::placement_matrix!(@lists $run, $folder, $extension, $files, [
            delta_only,
            generic_plans,
            insertion_layout,
            many_runs,
            merge_each_statement,
            planned,
            restart_each_statement,
            sorted_layout,
            tiny_segments,
            tiny_segments_restart_merge,
        ]);
    };
    (@lists $run:ident, $folder:expr, $extension:expr, [$($file:ident),* $(,)?], $configs:tt) => {
        #[test]
        fn no_file_and_no_configuration_is_left_out() {
            assert_eq!($crate::stage::names_in(&$folder, $extension), [$(stringify!($file)),*]);
            let configs = $crate::stage::slt_folder().join("configs");
            assert_eq!($crate::stage::names_in(&configs, "json"), $crate::stage::placement_matrix!(@names $configs));
        }

        $(mod $file {
            $crate::stage::placement_matrix!(@tests $run, $file, $configs);
        })*
    };
    (@names [$($config:ident),* $(,)?]) => { [$(stringify!($config)),*] };
    (@tests $run:ident, $file:ident, [$($config:ident),* $(,)?]) => {
        $(
            #[test]
            fn $config() {
                super::$run(stringify!($file), stringify!($config));
            }
        )*
    };
}
pub(crate) use placement_matrix;
