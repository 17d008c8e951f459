//! What says that memory or disk space of queries is used up: whole sentences that name what wants how much, and what
//! to do.
//!
//! Comes in: requests that the memory pool refuses, and errors of operators that could not go on without memory, or not
//! write what they spill. Goes out: 53200 and 53100. An operator may wrap what the pool has said in texts of its own:
//! ours is found in it again.

use std::io;

use datafusion::common::DataFusionError;
use mainstem_postgres::types::byte_size_text;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, ErrorKind};

use super::words::first_line;

/// How what the pool says begins.
const NO_MEMORY: &str = "out of query memory: ";
/// What helps where memory is used up.
const ADVICE: &str = "raise memory_limit, lower threads, or run fewer queries at once";

/// A request that the pool of queries refuses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    /// Bytes that it has, and wants besides.
    pub(crate) has: usize,
    pub(crate) wants: usize,
    /// Bytes that are left for it, of those that all queries may take.
    pub(crate) left: usize,
    pub(crate) share: usize,
    pub(crate) memory_limit: u64,
}

impl Refused {
    /// The error of DataFusion's kind that makes operators spill.
    pub(crate) fn error(self) -> DataFusionError {
        let text = |bytes: usize| byte_size_text(bytes as u64);
        let has = if self.has == 0 { String::new() } else { format!(" beside the {} it has", text(self.has)) };
        DataFusionError::ResourcesExhausted(format!(
            "{NO_MEMORY}the query needs {}{has}, and {} of the {} that queries may take are left for it; {ADVICE} \
             (memory_limit is {})",
            text(self.wants),
            text(self.left),
            text(self.share),
            byte_size_text(self.memory_limit),
        ))
    }
}

/// 53200, for what DataFusion says of memory that is used up.
pub(super) fn out_of_memory(message: &str) -> Error {
    let text = match message.find(NO_MEMORY).and_then(|at| message.get(at..)) {
        Some(ours) => first_line(ours).to_owned(),
        None => match rows_too_wide(message) {
            Some(bytes) => format!(
                "{NO_MEMORY}a sort has to hold rows of {} at once, which is more than it may take; {ADVICE}",
                byte_size_text(bytes)
            ),
            None => format!("{NO_MEMORY}the query needs more than queries may take; {ADVICE}"),
        },
    };
    Error::new(ErrorKind::Full, sqlstate::OUT_OF_MEMORY, text)
}

/// The bytes of rows that the merge of a sort cannot divide any further.
fn rows_too_wide(message: &str) -> Option<u64> {
    let (_, behind) = message.split_once("a single record batch of ")?;
    behind.split_once(" bytes")?.0.parse().ok()
}

/// Whether DataFusion's internal error `message` wraps what the pool has said.
pub(super) fn is_out_of_memory(message: &str) -> bool {
    message.contains(NO_MEMORY)
}

/// The folder of what queries put aside: what is known where an error comes from.
pub(super) const WHERE_ASIDE: &str =
    "in the database's folder temp; in TMPDIR where the database is in memory or read only";

/// 53100, where the disk has no room for what a query with little memory puts aside.
pub(super) fn disk_full(error: &io::Error) -> Error {
    let message = format!(
        "could not write what a query with little memory puts aside ({WHERE_ASIDE}): {error}; free disk space there, or \
         raise memory_limit"
    );
    Error::new(ErrorKind::Full, sqlstate::DISK_FULL, message)
}

/// 53100, where what queries may put aside is used up.
pub(super) fn too_much_aside() -> Error {
    let message = "queries with little memory have put aside as much on disk as they may; raise memory_limit, or run \
                   fewer queries at once";
    Error::new(ErrorKind::Full, sqlstate::DISK_FULL, message)
}
