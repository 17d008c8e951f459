//! What a database, a session or a transaction can be told.

use std::str::FromStr;

use crate::error::{Error, Result, sqlstate};
use crate::limits;
use crate::memory::memory_limit_default;

/// When a commit returns (contract 4). Modes may differ by session; whatever is lost is a suffix in commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Synchronous {
    /// Handed to the operating system within 10 ms.
    Off,
    /// Handed to the operating system before commit returns (survives a killed process), fsynced within 1 s.
    Normal,
    /// Fsynced before commit returns (survives a power cut).
    #[default]
    Full,
}

impl FromStr for Synchronous {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s.to_ascii_lowercase().as_str() {
            "off" => Ok(Self::Off),
            "normal" => Ok(Self::Normal),
            "full" | "on" => Ok(Self::Full),
            _ => Err(Error::invalid(
                sqlstate::INVALID_PARAMETER,
                format!("synchronous is full, normal or off, not \"{s}\""),
            )),
        }
    }
}

impl std::fmt::Display for Synchronous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Normal => "normal",
            Self::Full => "full",
        })
    }
}

/// Which encodings columns get. The answers of a database are the same whatever they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encodings {
    /// The smallest ones.
    #[default]
    Smallest,
    /// Symbols of texts, frames by vector and scaled floats wherever a column can have them. For tests.
    Decoded,
    /// The same, and dictionaries of symbols for texts. For tests.
    DecodedDictionaries,
}

/// How a database is opened. Later versions may have more options: they are set by name, and begin with their defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Make the database if it is not there.
    pub create: bool,
    /// Replay in memory and write nothing; any number of processes may (contract 4).
    pub read_only: bool,
    /// Bytes for buffers, deltas, write sets, forwarding and query memory (contract 8). By default half of the memory
    /// of the machine, or of the container; 4 GiB where that is not known.
    pub memory_limit: u64,
    /// Default durability of its transactions.
    pub synchronous: Synchronous,
    /// Freeze, merge and checkpoint by themselves. Tests that place rows by hand switch it off.
    pub background: bool,
    /// Rows of a full segment for tables that do not say.
    pub segment_rows: u32,
    /// Rows at which deltas are frozen for tables that do not say.
    pub delta_rows: u32,
    /// Log bytes after which a checkpoint is made.
    pub checkpoint_bytes: u64,
    /// Encoded bytes of deletes that a log record, or the manifest, holds itself; more are written aside as a file.
    /// Tests lower it.
    pub inline_delete_bytes: usize,
    /// Encoded bytes of runs that a log record holds itself; more are written aside as a file. Tests lower it.
    pub inline_run_bytes: usize,
    /// How the columns of segments are encoded. Tests change it.
    pub encodings: Encodings,
    /// Log bytes that a restart may have to replay: near it writers wait for the background to shorten the log's tail
    /// (contract 4). Only with `background`.
    pub log_tail_bytes_max: u64,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: true,
            read_only: false,
            memory_limit: memory_limit_default(),
            synchronous: Synchronous::Full,
            background: true,
            segment_rows: limits::SEGMENT_ROWS_DEFAULT,
            delta_rows: limits::DELTA_ROWS_DEFAULT,
            checkpoint_bytes: limits::WAL_CHECKPOINT_BYTES,
            inline_delete_bytes: limits::INLINE_DELETE_BYTES,
            inline_run_bytes: limits::INLINE_RUN_BYTES,
            encodings: Encodings::Smallest,
            log_tail_bytes_max: limits::WAL_TAIL_BYTES_MAX,
        }
    }
}

macro_rules! setters {
    ($($option:ident: $of_type:ty),* $(,)?) => {
        $(
            #[doc = concat!("The same options with [`", stringify!($option), "`](field@Self::", stringify!($option), ").")]
            #[must_use]
            pub fn $option(mut self, $option: $of_type) -> Self {
                self.$option = $option;
                self
            }
        )*
    };
}

impl OpenOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        create: bool,
        read_only: bool,
        memory_limit: u64,
        synchronous: Synchronous,
        background: bool,
        segment_rows: u32,
        delta_rows: u32,
        checkpoint_bytes: u64,
        inline_delete_bytes: usize,
        inline_run_bytes: usize,
        encodings: Encodings,
        log_tail_bytes_max: u64,
    }
}
