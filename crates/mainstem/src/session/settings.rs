//! Settings of a session: SET, SHOW, and the system table of them.

use std::num::NonZeroUsize;

use mainstem_storage::error::sqlstate;
use mainstem_storage::limits;
use mainstem_storage::schema::TableOptions;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::{Error, Result};

use crate::sql::state;

/// What a session can be told, and what it can tell.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    options: OpenOptions,
    synchronous: Synchronous,
    segment_rows: u32,
    delta_rows: u32,
    threads: usize,
}

/// Settings and what they are, in the order of SHOW ALL.
const DESCRIPTIONS: &[(&str, &str)] = &[
    ("background", "Whether merges and checkpoints run by themselves; set when the database is opened."),
    ("checkpoint_bytes", "Log bytes after which a checkpoint is made; set when the database is opened."),
    ("delta_rows", "Rows at which the delta of a new table is frozen."),
    ("memory_limit", "Bytes for all buffers and queries; set when the database is opened."),
    ("read_only", "Whether the database was opened to read only."),
    ("segment_rows", "Rows of a full segment of a new table."),
    ("synchronous", "When COMMIT returns: full (fsynced), normal (handed to the operating system), off."),
    ("threads", "Partitions a query is cut into."),
    ("timezone", "Always UTC."),
    ("transaction_isolation", "Always repeatable read, which is snapshot isolation."),
];

/// Cores of the machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, NonZeroUsize::get)
}

impl Settings {
    /// What a new session has.
    pub(crate) fn new(options: &OpenOptions) -> Self {
        Self {
            synchronous: options.synchronous,
            segment_rows: options.segment_rows,
            delta_rows: options.delta_rows,
            threads: cores(),
            options: options.clone(),
        }
    }

    pub(crate) fn synchronous(&self) -> Synchronous {
        self.synchronous
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Options of a new table that names `segment_rows` and `delta_rows` or leaves them open.
    pub(crate) fn table_options(&self, segment_rows: Option<u32>, delta_rows: Option<u32>) -> Result<TableOptions> {
        let options = TableOptions {
            segment_rows: segment_rows.unwrap_or(self.segment_rows),
            delta_rows: delta_rows.unwrap_or(self.delta_rows),
        };
        check_range("segment_rows", options.segment_rows, limits::SEGMENT_ROWS_MAX)?;
        check_range("delta_rows", options.delta_rows, limits::SEGMENT_ROWS_MAX)?;
        Ok(options)
    }

    /// Sets `name`; None means its default.
    ///
    /// # Errors
    /// 42704 unknown, 22023 a bad value, 25006 a setting that cannot be changed.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        let default = Self::new(&self.options);
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
            "timezone" => match value {
                None => {}
                Some(zone)
                    if ["utc", "gmt", "etc/utc", "0", "+00:00"].contains(&zone.to_ascii_lowercase().as_str()) => {}
                Some(zone) => {
                    return Err(Error::unsupported(format_args!("the time zone {zone} (sessions run in UTC)")));
                }
            },
            _ if DESCRIPTIONS.iter().any(|(known, _)| *known == name) => {
                return Err(Error::invalid(
                    sqlstate::INVALID_PARAMETER,
                    format!("\"{name}\" cannot be changed in a session"),
                ));
            }
            _ => return Err(unknown(name)),
        }
        Ok(())
    }

    /// The value of `name`.
    ///
    /// # Errors
    /// 42704.
    pub(crate) fn show(&self, name: &str) -> Result<String> {
        Ok(match name {
            "background" => self.options.background.to_string(),
            "checkpoint_bytes" => self.options.checkpoint_bytes.to_string(),
            "delta_rows" => self.delta_rows.to_string(),
            "memory_limit" => self.options.memory_limit.to_string(),
            "read_only" => self.options.read_only.to_string(),
            "segment_rows" => self.segment_rows.to_string(),
            "synchronous" => self.synchronous.to_string(),
            "threads" => self.threads.to_string(),
            "timezone" => "UTC".into(),
            "transaction_isolation" => "repeatable read".into(),
            _ => return Err(unknown(name)),
        })
    }

    /// Name, value and description of all.
    pub(crate) fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        DESCRIPTIONS
            .iter()
            .filter_map(|(name, description)| self.show(name).ok().map(|value| (*name, value, *description)))
            .collect()
    }
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = DESCRIPTIONS.iter().map(|(name, _)| *name).collect();
    Error::invalid(state::UNDEFINED_OBJECT, format!("there is no setting \"{name}\"; there are {}", known.join(", ")))
}

fn number(name: &str, value: Option<&str>, max: u32) -> Result<Option<u32>> {
    let Some(value) = value else { return Ok(None) };
    let number = value.trim().parse::<u32>().map_err(|_| {
        Error::invalid(
            sqlstate::INVALID_PARAMETER,
            format!("{name} is a whole number from 1 to {max}, not \"{value}\""),
        )
    })?;
    check_range(name, number, max)?;
    Ok(Some(number))
}

fn check_range(name: &str, number: u32, max: u32) -> Result<()> {
    if (1..=max).contains(&number) {
        return Ok(());
    }
    Err(Error::invalid(sqlstate::INVALID_PARAMETER, format!("{name} is a whole number from 1 to {max}, not {number}")))
}
