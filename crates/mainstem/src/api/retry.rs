//! Transactions that are run again after a conflict.
//!
//! Snapshot isolation lets the first committer win: the other one gets 40001 and has to begin anew. Comes in: a closure, and how often
//! and how long it may be run. Goes out: what it gives once its transaction has committed. Steps: begin, run the closure, commit; after
//! 40001, from a statement or from COMMIT, wait a random time that doubles with each attempt, and begin again.
//!
//! Invariants: every attempt sees a new snapshot; any other error ends it, 08007 (outcome unknown) too, since the writes may be there.
//! It does not own: single statements outside a transaction, which the engine runs again by itself.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use mainstem_storage::Result;
use mainstem_storage::error::sqlstate;

use super::{Connection, Transaction};

/// Waits in a statement, which an interrupt and `statement_timeout` end.
pub(super) const WAIT: &str = "SELECT pg_sleep($1)";

/// How often and how long a transaction is run again.
///
/// ```
/// use std::time::Duration;
/// let patient = mainstem::RetryOptions::new().attempts_max(100).time_max(Duration::from_secs(60));
/// # let _ = patient;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryOptions {
    /// Attempts, the first one counted; 20 unless told, at least 1.
    pub attempts_max: u32,
    /// The time after which no further attempt begins; 10 seconds unless told.
    pub time_max: Duration,
    /// The longest wait before the second attempt; 2 milliseconds unless told. It doubles with each further one.
    pub wait_first: Duration,
    /// The longest wait before any attempt; 500 milliseconds unless told.
    pub wait_max: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            attempts_max: 20,
            time_max: Duration::from_secs(10),
            wait_first: Duration::from_millis(2),
            wait_max: Duration::from_millis(500),
        }
    }
}

impl RetryOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With so many attempts at most, the first one counted.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// With no further attempt after this time.
    #[must_use]
    pub fn time_max(mut self, time: Duration) -> Self {
        self.time_max = time;
        self
    }

    /// With this longest wait before the second attempt.
    #[must_use]
    pub fn wait_first(mut self, wait: Duration) -> Self {
        self.wait_first = wait;
        self
    }

    /// With this longest wait before any attempt.
    #[must_use]
    pub fn wait_max(mut self, wait: Duration) -> Self {
        self.wait_max = wait;
        self
    }
}

/// The attempts that were made.
#[derive(Debug)]
pub(super) struct Attempts<'a> {
    options: &'a RetryOptions,
    began: Instant,
    made: u32,
    random: RandomState,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(options: &'a RetryOptions) -> Self {
        Self { options, began: Instant::now(), made: 0, random: RandomState::new() }
    }

    /// Notes that an attempt ended in `outcome`; the seconds to wait before another one, if there is to be one.
    pub(super) fn wait_after<T>(&mut self, outcome: &Result<T>) -> Option<f64> {
        self.made += 1;
        let is_conflict = outcome.as_ref().is_err_and(|e| e.sqlstate() == sqlstate::CONFLICT);
        if !is_conflict || self.made >= self.options.attempts_max {
            return None;
        }
        let doubled = self.options.wait_first.saturating_mul(1 << (self.made - 1).min(20));
        let longest = doubled.min(self.options.wait_max);
        // Those that met wait for different times, half of the longest one at least.
        let share = self.random.hash_one(self.made) as f64 / u64::MAX as f64;
        let wait = longest.mul_f64(0.5 + share / 2.0);
        (self.began.elapsed() + wait < self.options.time_max).then_some(wait.as_secs_f64())
    }
}

impl Connection {
    /// Runs `work` in a transaction and commits it, again and again while others commit first (40001), as [`RetryOptions`] says by
    /// default. What `work` does beside the transaction it may do several times.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n BIGINT)")?;
    /// connection.execute("INSERT INTO counter VALUES (1, 0)")?;
    /// let n = connection.run_transaction(|transaction| {
    ///     let n: i64 = transaction.query_row("SELECT n FROM counter WHERE id = 1", ())?.get(0)?;
    ///     transaction.execute_with("UPDATE counter SET n = $1 WHERE id = 1", [n + 1])?;
    ///     Ok(n + 1)
    /// })?;
    /// assert_eq!(n, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The error of `work` or of the commit, after a rollback; the last 40001 when no further attempt is to be made; 25001 inside a
    /// transaction; 57014 when it is interrupted, or `statement_timeout` passes, while it waits.
    pub fn run_transaction<T>(&self, work: impl FnMut(&Transaction<'_>) -> Result<T>) -> Result<T> {
        self.run_transaction_with(&RetryOptions::default(), work)
    }

    /// As [`Connection::run_transaction`], as often and as long as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn run_transaction_with<T>(
        &self,
        options: &RetryOptions,
        mut work: impl FnMut(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut attempts = Attempts::new(options);
        loop {
            let transaction = self.transaction()?;
            let outcome = match work(&transaction) {
                Ok(value) => transaction.commit().map(|()| value),
                Err(error) => {
                    transaction.rollback();
                    Err(error)
                }
            };
            match attempts.wait_after(&outcome) {
                Some(seconds) => drop(self.query_row(WAIT, [seconds])?),
                None => return outcome,
            }
        }
    }
}
