//! How long a row of a file may be, and what is said of longer ones.

use std::fmt::Display;

use mainstem_postgres::types::byte_size_text;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, ErrorKind};

/// The part of `memory_limit` that a row may have: reading it takes about seven times as much, of half of the limit.
const SHARE: u64 = 16;

/// Bytes of the longest row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowLimit(u64);

impl RowLimit {
    /// That of any file, whatever memory there is.
    pub(crate) const MAX: Self = Self(1 << 30);

    /// That of a database whose memory is `memory_limit` bytes.
    pub(crate) fn within(memory_limit: u64) -> Self {
        Self((memory_limit / SHARE).min(Self::MAX.0))
    }

    #[cfg(test)]
    pub(crate) fn of(bytes: u64) -> Self {
        Self(bytes)
    }

    /// In bytes.
    pub(crate) fn bytes(self) -> usize {
        self.0 as usize
    }

    /// The error for `what`, a row or a field, which is longer.
    pub(crate) fn error(self, what: impl Display) -> Error {
        if self == Self::MAX {
            return Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("{what} is longer than 1 GiB"));
        }
        let message = format!(
            "{what} is longer than {}, the sixteenth of memory_limit that one may have (SET memory_limit changes it)",
            byte_size_text(self.0)
        );
        Error::new(ErrorKind::Full, sqlstate::OUT_OF_MEMORY, message)
    }
}
