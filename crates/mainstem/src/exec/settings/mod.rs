//! Settings of a session: SET, SHOW, and the system table of them.

mod fixed;
mod plan_cache_mode;

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_postgres::types::{parse_byte_size, split_number, without_exponent};
use mainstem_storage::database::Database;
use mainstem_storage::error::{NamedObject, ObjectKind, sqlstate};
use mainstem_storage::limits;
use mainstem_storage::schema::{Identity, TableOptions};
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::{Error, ErrorKind, Result};

use self::fixed::{FIXED, fixed, set_fixed};
use self::plan_cache_mode::PLAN_CACHE_MODE;
pub(crate) use self::plan_cache_mode::PlanCacheMode;
use super::merge_joins;
use crate::names::{did_you_mean, similar};
use crate::provider::Names;
use crate::sql::{RowLimit, TableName, fold, state};

/// What a session can be told, and what it can tell.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    options: OpenOptions,
    /// Has the settings that are the database's, not the session's.
    storage: Database,
    /// What names mean in a new session.
    names: Arc<Names>,
    /// What statements go by.
    current: Values,
    /// Whether statements may read and write files; once not, never again.
    file_access: bool,
    /// What they will go by when the transaction commits: `current` without SET LOCAL.
    kept: Values,
    /// What they went by when the open transaction began: ROLLBACK undoes SET.
    at_begin: Option<Values>,
}

/// What SET and SET LOCAL have made of a session's settings at some point of a transaction.
#[derive(Clone, Debug)]
pub(crate) struct SettingsState {
    current: Values,
    kept: Values,
}

/// The settings that a session can change.
#[derive(Clone, Debug)]
struct Values {
    synchronous: Synchronous,
    segment_rows: u32,
    delta_rows: u32,
    threads: usize,
    /// None: statements may run as long as they like.
    statement_timeout: Option<Duration>,
    point_path: bool,
    plan_cache_mode: PlanCacheMode,
    dynamic_filter_min_rows: u32,
    merge_join_min_rows: u32,
    derived_properties: bool,
    /// None: as many as a segment's rows have.
    load_chunk_bytes: Option<u64>,
    application_name: Arc<str>,
    names: Arc<Names>,
    postgres_dump: bool,
    /// What CREATE SEQUENCE has said, until a column counts like it.
    sequences: Arc<Vec<(TableName, Identity)>>,
}

/// The setting that is the database's.
const MEMORY_LIMIT: &str = "memory_limit";

/// The setting that says whether statements may read and write files.
const FILE_ACCESS: &str = "enable_file_access";

/// The setting that says which scans wait for the keys of joins.
const DYNAMIC_FILTER_MIN_ROWS: &str = "dynamic_filter_min_rows";

/// The setting that says which joins merge.
const MERGE_JOIN_MIN_ROWS: &str = "merge_join_min_rows";

/// The setting that says whether plans may rely on what is known of their rows.
const DERIVED_PROPERTIES: &str = "derived_properties";

/// The setting that says how much of a CSV file a thread of a load reads at once, and its bounds.
const LOAD_CHUNK_BYTES: &str = "load_chunk_bytes";
const LOAD_CHUNK_RANGE: std::ops::RangeInclusive<u64> = 64 << 10..=32 << 20;

/// Settings and what they are, in the order of SHOW ALL.
const DESCRIPTIONS: &[(&str, &str)] = &[
    ("application_name", "What the client calls itself."),
    ("background", "Whether merges and checkpoints run by themselves; set when the database is opened."),
    ("checkpoint_bytes", "Log bytes after which a checkpoint is made; set when the database is opened."),
    ("delta_rows", "Rows at which the delta of a new table is frozen."),
    (
        DERIVED_PROPERTIES,
        "Whether plans rely on orders, keys and limits that are known of their rows; off is to look for wrong answers.",
    ),
    (
        DYNAMIC_FILTER_MIN_ROWS,
        "Rows of a table from which on its scans leave out what joins and limits above them do not need.",
    ),
    (FILE_ACCESS, "Whether statements may read and write files; off is for the rest of the session."),
    (
        LOAD_CHUNK_BYTES,
        "Bytes, or 256kB, 4MB, of a CSV file that a thread of COPY reads at once; 0: as many as the rows of a segment have.",
    ),
    (
        "log_tail_bytes_max",
        "Log bytes that a restart may have to replay: near it writers wait; set when the database is opened.",
    ),
    (
        MEMORY_LIMIT,
        "Bytes, or 512MB, 4GB, for all buffers and queries of the database; SET is for all sessions and at once.",
    ),
    (MERGE_JOIN_MIN_ROWS, "Rows of the smaller table from which on joins of tables in the order of their keys merge."),
    (
        PLAN_CACHE_MODE,
        "When plans are kept, and texts that differ in literals alone are one statement: auto (seen twice, the default), \
         force_generic_plan (at once), force_custom_plan (never).",
    ),
    ("point_path", "Whether statements on a whole key run without a plan; their answers are the same."),
    (
        "postgres_dump",
        "Whether statements of pg_dump that say nothing here (owners, privileges, comments, indexes, foreign keys) are \
         passed over with a notice.",
    ),
    ("read_only", "Whether the database was opened to read only."),
    ("search_path", "Schemas in which names without one are looked for."),
    ("segment_rows", "Rows of a full segment of a new table."),
    ("statement_timeout", "Milliseconds, or 100ms, 5s, 2min, after which a statement is canceled; 0 for never."),
    ("synchronous", "When COMMIT returns: full (fsynced), normal (handed to the operating system), off."),
    ("threads", "Partitions a query is cut into."),
    ("timezone", "Always UTC."),
    ("transaction_isolation", "Always repeatable read, which is snapshot isolation."),
];

/// Units of durations, the smallest first.
const UNITS: &[(&str, Duration)] = &[
    ("us", Duration::from_micros(1)),
    ("ms", Duration::from_millis(1)),
    ("s", Duration::from_secs(1)),
    ("min", Duration::from_secs(60)),
    ("h", Duration::from_secs(3_600)),
    ("d", Duration::from_secs(86_400)),
];
/// The longest timeout: as many milliseconds as PostgreSQL counts.
const TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);

/// Cores of the machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

impl Settings {
    /// What a new session has, whose temporary tables stand in schema `temporary`.
    pub(crate) fn new(storage: &Database, temporary: Arc<str>) -> Self {
        let options = storage.options().clone();
        let names = Arc::new(Names::of_session(temporary));
        let values = Values::new(&options, &names);
        let (current, kept) = (values.clone(), values);
        Self { options, storage: storage.clone(), names, current, file_access: true, kept, at_begin: None }
    }

    /// A transaction begins.
    pub(crate) fn begin(&mut self) {
        self.at_begin = Some(self.current.clone());
    }

    /// The transaction ends: with it ends SET LOCAL, and SET too if it is rolled back.
    pub(crate) fn end(&mut self, committed: bool) {
        if let Some(before) = self.at_begin.take()
            && !committed
        {
            self.kept = before;
        }
        self.current = self.kept.clone();
    }

    /// For [`Settings::back_to`].
    pub(crate) fn state(&self) -> SettingsState {
        SettingsState { current: self.current.clone(), kept: self.kept.clone() }
    }

    /// The transaction goes back to where `state` was taken.
    pub(crate) fn back_to(&mut self, state: SettingsState) {
        self.current = state.current;
        self.kept = state.kept;
    }

    pub(crate) fn synchronous(&self) -> Synchronous {
        self.current.synchronous
    }

    /// Whether short statements run without a plan.
    pub(crate) fn point_path(&self) -> bool {
        self.current.point_path && self.current.derived_properties
    }

    /// When texts without literals are kept.
    pub(crate) fn plan_cache_mode(&self) -> PlanCacheMode {
        if self.current.derived_properties { self.current.plan_cache_mode } else { PlanCacheMode::ForceCustom }
    }

    /// Whether plans may rely on what is known of their rows.
    pub(crate) fn derived_properties(&self) -> bool {
        self.current.derived_properties
    }

    /// Rows of a table from which on its scans wait for the keys of joins.
    pub(crate) fn dynamic_filter_min_rows(&self) -> u32 {
        self.current.dynamic_filter_min_rows
    }

    /// Rows of the smaller table of a join from which on tables in the order of its keys are merged.
    pub(crate) fn merge_join_min_rows(&self) -> u32 {
        self.current.merge_join_min_rows
    }

    /// Bytes that a thread of a load reads at once, if that is set.
    pub(crate) fn load_chunk_bytes(&self) -> Option<u64> {
        self.current.load_chunk_bytes
    }

    /// Whether a dump of PostgreSQL is being read.
    pub(crate) fn restores_dump(&self) -> bool {
        self.current.postgres_dump
    }

    /// Keeps how a sequence counts.
    pub(crate) fn note_sequence(&mut self, name: TableName, identity: Identity) {
        for values in [&mut self.current, &mut self.kept] {
            Arc::make_mut(&mut values.sequences).push((name.clone(), identity));
        }
    }

    /// How the sequence called `name` counts.
    ///
    /// # Errors
    /// 42P01.
    pub(crate) fn sequence(&self, name: &TableName) -> Result<Identity> {
        let found = self.current.sequences.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, identity)| *identity).ok_or_else(|| {
            let message = format!("relation \"{name}\" does not exist: this session has made no such sequence");
            Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_TABLE, message)
        })
    }

    /// Which tables names mean. The same pointer as long as nothing changes.
    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.current.names
    }

    pub(crate) fn threads(&self) -> usize {
        self.current.threads
    }

    /// How long a row of a file may be.
    pub(crate) fn row_limit(&self) -> RowLimit {
        RowLimit::within(self.storage.memory_limit())
    }

    /// How long a statement may run.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.current.statement_timeout
    }

    /// Options of a new table that names `segment_rows` and `delta_rows` or leaves them open.
    pub(crate) fn table_options(&self, segment_rows: Option<u32>, delta_rows: Option<u32>) -> Result<TableOptions> {
        let options = TableOptions {
            segment_rows: segment_rows.unwrap_or(self.current.segment_rows),
            delta_rows: delta_rows.unwrap_or(self.current.delta_rows),
        };
        check_range("segment_rows", options.segment_rows, limits::SEGMENT_ROWS_MAX)?;
        check_range("delta_rows", options.delta_rows, limits::SEGMENT_ROWS_MAX)?;
        Ok(options)
    }

    /// Sets `name`; None means its default. `local` says: until the transaction ends.
    ///
    /// # Errors
    /// 42704 unknown, 22023 a bad value or a setting that cannot be changed, 0A000 for one of the database with
    /// `local`.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<()> {
        if name == MEMORY_LIMIT {
            return self.set_memory_limit(value, local);
        }
        if name == FILE_ACCESS {
            return self.set_file_access(value, local);
        }
        let default = Values::new(&self.options, &self.names);
        self.current.set(name, value, &default)?;
        if !local {
            self.kept.set(name, value, &default)?;
        }
        Ok(())
    }

    /// Sets `memory_limit`, which is no transaction's and no session's: it is in force for all of them at once, and
    /// stays.
    fn set_memory_limit(&self, value: Option<&str>, local: bool) -> Result<()> {
        if local {
            return Err(Error::unsupported(
                "SET LOCAL memory_limit (it is a setting of the database, in force for all sessions: use SET)",
            ));
        }
        let bytes = value.map(parse_byte_size).transpose().map_err(|e| e.context(MEMORY_LIMIT))?;
        self.storage.set_memory_limit(bytes)
    }

    /// Sets `enable_file_access`, which whoever runs untrusted statements turns off.
    fn set_file_access(&mut self, value: Option<&str>, local: bool) -> Result<()> {
        let wanted = value.map_or(Ok(true), |value| boolean(FILE_ACCESS, value))?;
        if local {
            return Err(Error::unsupported(format_args!(
                "SET LOCAL {FILE_ACCESS} (off is for the rest of the session)"
            )));
        }
        if wanted && !self.file_access {
            let message = format!("{FILE_ACCESS} is off for the rest of the session");
            return Err(Error::invalid(state::READ_ONLY_TABLE, message));
        }
        self.file_access = wanted;
        Ok(())
    }

    /// Fails if statements may not read or write the file `name`.
    ///
    /// # Errors
    /// 42501.
    pub(crate) fn check_file_access(&self, name: &str) -> Result<()> {
        if self.file_access {
            return Ok(());
        }
        let message = format!("permission denied for file \"{name}\": {FILE_ACCESS} is off");
        Err(Error::invalid(state::READ_ONLY_TABLE, message))
    }

    /// Sets everything that is the session's to its default.
    pub(crate) fn reset_all(&mut self) {
        self.current = Values::new(&self.options, &self.names);
        self.kept = self.current.clone();
    }

    /// The value of `name`.
    ///
    /// # Errors
    /// 42704.
    pub(crate) fn show(&self, name: &str) -> Result<String> {
        Ok(match name {
            "background" => self.options.background.to_string(),
            "checkpoint_bytes" => self.options.checkpoint_bytes.to_string(),
            "delta_rows" => self.current.delta_rows.to_string(),
            DERIVED_PROPERTIES => if self.current.derived_properties { "on" } else { "off" }.into(),
            DYNAMIC_FILTER_MIN_ROWS => self.current.dynamic_filter_min_rows.to_string(),
            MERGE_JOIN_MIN_ROWS => self.current.merge_join_min_rows.to_string(),
            LOAD_CHUNK_BYTES => self.current.load_chunk_bytes.unwrap_or(0).to_string(),
            FILE_ACCESS => if self.file_access { "on" } else { "off" }.into(),
            "log_tail_bytes_max" => self.options.log_tail_bytes_max.to_string(),
            MEMORY_LIMIT => self.storage.memory_limit().to_string(),
            PLAN_CACHE_MODE => self.current.plan_cache_mode.name().into(),
            "point_path" => if self.current.point_path { "on" } else { "off" }.into(),
            "postgres_dump" => if self.current.postgres_dump { "on" } else { "off" }.into(),
            "read_only" => self.options.read_only.to_string(),
            "search_path" => self.current.names.to_string(),
            "segment_rows" => self.current.segment_rows.to_string(),
            "statement_timeout" => self.current.statement_timeout.map_or_else(|| "0".into(), shown),
            "synchronous" => self.current.synchronous.to_string(),
            "threads" => self.current.threads.to_string(),
            "timezone" => "UTC".into(),
            "transaction_isolation" => "repeatable read".into(),
            "application_name" => self.current.application_name.to_string(),
            _ => fixed(name).ok_or_else(|| unknown(name))?.into(),
        })
    }

    /// Name, value and description of all.
    pub(crate) fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        DESCRIPTIONS
            .iter()
            .map(|(name, description)| (*name, *description))
            .chain(FIXED.iter().map(|(name, ..)| (*name, "PostgreSQL's; it has this value only.")))
            .filter_map(|(name, description)| self.show(name).ok().map(|value| (name, value, description)))
            .collect()
    }
}

impl Values {
    fn new(options: &OpenOptions, names: &Arc<Names>) -> Self {
        Self {
            synchronous: options.synchronous,
            segment_rows: options.segment_rows,
            delta_rows: options.delta_rows,
            threads: cores(),
            statement_timeout: None,
            point_path: true,
            plan_cache_mode: PlanCacheMode::default(),
            dynamic_filter_min_rows: limits::DYNAMIC_FILTER_MIN_ROWS,
            merge_join_min_rows: merge_joins::MIN_ROWS,
            derived_properties: true,
            load_chunk_bytes: None,
            application_name: Arc::from(""),
            names: names.clone(),
            postgres_dump: false,
            sequences: Arc::default(),
        }
    }

    fn set(&mut self, name: &str, value: Option<&str>, default: &Self) -> Result<()> {
        match name {
            "synchronous" => {
                self.synchronous = value.map(str::parse).transpose()?.unwrap_or(default.synchronous);
            }
            "segment_rows" => {
                self.segment_rows = number(name, value, limits::SEGMENT_ROWS_MAX)?.unwrap_or(default.segment_rows);
            }
            "delta_rows" => {
                self.delta_rows = number(name, value, limits::SEGMENT_ROWS_MAX)?.unwrap_or(default.delta_rows);
            }
            "threads" => {
                self.threads = number(name, value, 256)?.map_or(default.threads, |n| n as usize);
            }
            DYNAMIC_FILTER_MIN_ROWS => {
                let rows = number(name, value, u32::MAX)?;
                self.dynamic_filter_min_rows = rows.unwrap_or(default.dynamic_filter_min_rows);
            }
            MERGE_JOIN_MIN_ROWS => {
                let rows = number(name, value, u32::MAX)?;
                self.merge_join_min_rows = rows.unwrap_or(default.merge_join_min_rows);
            }
            DERIVED_PROPERTIES => {
                self.derived_properties =
                    value.map(|v| boolean(name, v)).transpose()?.unwrap_or(default.derived_properties);
            }
            LOAD_CHUNK_BYTES => self.load_chunk_bytes = value.map_or(Ok(None), chunk_bytes)?,
            "statement_timeout" => {
                self.statement_timeout = match value {
                    Some(value) => duration(name, value)?,
                    None => default.statement_timeout,
                };
            }
            "search_path" => {
                self.names = match value {
                    Some(text) => Arc::new(self.names.with_path(path_of(text)?)),
                    None => default.names.clone(),
                };
            }
            PLAN_CACHE_MODE => {
                self.plan_cache_mode = value.map(PlanCacheMode::named).transpose()?.unwrap_or(default.plan_cache_mode);
            }
            "point_path" => {
                self.point_path = value.map(|v| boolean(name, v)).transpose()?.unwrap_or(default.point_path);
            }
            "postgres_dump" => {
                self.postgres_dump = value.map(|v| boolean(name, v)).transpose()?.unwrap_or(default.postgres_dump);
            }
            "timezone" => match value {
                None => {}
                Some(zone)
                    if ["utc", "gmt", "etc/utc", "0", "+00:00"].contains(&zone.to_ascii_lowercase().as_str()) => {}
                Some(zone) => {
                    return Err(Error::unsupported(format_args!("the time zone {zone} (sessions run in UTC)")));
                }
            },
            "application_name" => {
                self.application_name = value.map_or_else(|| default.application_name.clone(), Arc::from);
            }
            _ if DESCRIPTIONS.iter().any(|(known, _)| *known == name) => {
                return Err(Error::invalid(
                    sqlstate::INVALID_PARAMETER,
                    format!("\"{name}\" cannot be changed in a session"),
                ));
            }
            _ => set_fixed(name, value)?,
        }
        Ok(())
    }
}

/// The names of a list: folded unless quoted, with commas between them.
fn path_of(text: &str) -> Result<Vec<String>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let dialect = PostgreSqlDialect {};
    let names = Parser::new(&dialect).try_with_sql(text).and_then(|mut parser| {
        let names = parser.parse_comma_separated(Parser::parse_identifier)?;
        parser.expect_token(&Token::EOF).map(|_| names)
    });
    let names: Vec<String> = names.unwrap_or_default().iter().map(fold).collect();
    if names.is_empty() || names.iter().any(String::is_empty) {
        let message = format!("search_path is a list of schemas, not \"{text}\"");
        return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
    }
    Ok(names)
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = DESCRIPTIONS.iter().map(|(name, _)| *name).collect();
    let near = similar(name, known.iter().copied().chain(FIXED.iter().map(|(name, ..)| *name)));
    let hint = if near.is_empty() { format!("; there are {}", known.join(", ")) } else { did_you_mean(&near) };
    Error::invalid(state::UNDEFINED_OBJECT, format!("there is no setting \"{name}\"{hint}"))
        .with_object(NamedObject::new(ObjectKind::Other, name.split('.')))
}

/// Bytes of a chunk; 0 leaves them to the load.
fn chunk_bytes(text: &str) -> Result<Option<u64>> {
    if text.trim() == "0" {
        return Ok(None);
    }
    let bytes = parse_byte_size(text).map_err(|e| e.context(LOAD_CHUNK_BYTES))?;
    if LOAD_CHUNK_RANGE.contains(&bytes) {
        return Ok(Some(bytes));
    }
    let message = format!("{LOAD_CHUNK_BYTES} is 0, or from 64kB to 32MB, not \"{text}\"");
    Err(Error::invalid(sqlstate::INVALID_PARAMETER, message))
}

/// A truth value as PostgreSQL's settings spell it.
fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("{name} is on or off, not \"{value}\""))),
    }
}

fn number(name: &str, value: Option<&str>, max: u32) -> Result<Option<u32>> {
    let Some(value) = value else { return Ok(None) };
    let number = plain_number(value).parse::<u32>().map_err(|_| {
        Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!("{name} is a whole number from 1 to {max}, not \"{value}\""),
        )
    })?;
    check_range(name, number, max)?;
    Ok(Some(number))
}

/// `text` without its exponent, if it is a number with one: `1e3` is 1000.
fn plain_number(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    match without_exponent(text) {
        Some(plain) if text.contains(['e', 'E']) => Cow::Owned(plain.trim_end_matches('.').to_owned()),
        _ => Cow::Borrowed(text),
    }
}

fn check_range(name: &str, number: u32, max: u32) -> Result<()> {
    if (1..=max).contains(&number) {
        return Ok(());
    }
    Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("{name} is a whole number from 1 to {max}, not {number}")))
}

/// A duration as PostgreSQL writes settings: a number of milliseconds, or a number with a unit. None for 0.
fn duration(name: &str, text: &str) -> Result<Option<Duration>> {
    let bad = || {
        let units: Vec<&str> = UNITS.iter().map(|(unit, _)| *unit).collect();
        Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!("{name} is a number of milliseconds or one with a unit ({}), not \"{text}\"", units.join(", ")),
        )
    };
    let (number, unit) = split_number(text.trim());
    let number: u64 = plain_number(number).parse().map_err(|_| bad())?;
    let unit = match unit.trim() {
        "" => Duration::from_millis(1),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length).ok_or_else(bad)?,
    };
    let length = u32::try_from(number).ok().and_then(|number| unit.checked_mul(number)).ok_or_else(bad)?;
    if length > TIMEOUT_MAX {
        return Err(bad());
    }
    Ok((!length.is_zero()).then_some(length))
}

/// The duration in the largest unit that says it exactly.
fn shown(length: Duration) -> String {
    let exact = UNITS.iter().rev().find(|(_, unit)| length.as_micros().is_multiple_of(unit.as_micros()));
    match exact {
        Some((name, unit)) => format!("{}{name}", length.as_micros() / unit.as_micros()),
        None => format!("{}us", length.as_micros()),
    }
}
