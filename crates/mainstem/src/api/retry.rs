//! Transactions that are run again when another one was first.
//!
//! Comes in: a closure. Goes out: what it returned in the run that committed. Steps: begin, run the closure, commit;
//! after a conflict (40001), from a statement or from the commit, roll back, wait, and do it again; each wait is about
//! twice as long as the one before, by chance, so that those who met do not meet again. Invariants: whatever else goes
//! wrong is returned, and so is the last conflict when attempts or time are used up; a commit whose outcome is unknown
//! (08007) is never run again; nothing of a run that did not commit is left. It does not own: what a conflict is.

use std::time::{Duration, Instant};

use mainstem_storage::{Error, ErrorKind, Result};

use super::{Connection, Transaction};

/// How often and how long a transaction is run again: see [`Connection::run_transaction_with`].
///
/// ```
/// use std::time::Duration;
///
/// let options = mainstem::RetryOptions::new().attempts_max(3).time_max(Duration::from_secs(1));
/// assert_eq!(options.attempts_max, 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryOptions {
    /// Runs altogether, the first one included; at least one.
    pub attempts_max: u32,
    /// Time from the first BEGIN after which no further run begins.
    pub time_max: Duration,
    /// The wait behind the first run, at most.
    pub delay_min: Duration,
    /// The longest wait.
    pub delay_max: Duration,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            attempts_max: 20,
            time_max: Duration::from_secs(30),
            delay_min: Duration::from_millis(1),
            delay_max: Duration::from_millis(500),
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

impl RetryOptions {
    /// The defaults: 20 runs in 30 seconds, with waits from a millisecond to half a second.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! { attempts_max: u32, time_max: Duration, delay_min: Duration, delay_max: Duration }
}

/// Where the runs of one transaction stand.
#[derive(Debug)]
pub(super) struct Retries {
    options: RetryOptions,
    begun: Instant,
    runs: u32,
}

impl Retries {
    pub(super) fn new(options: RetryOptions) -> Self {
        Self { options, begun: Instant::now(), runs: 1 }
    }

    /// How long to wait before the next run; none when this one was the last.
    pub(super) fn next_delay(&mut self) -> Option<Duration> {
        let options = &self.options;
        let doubled = options.delay_min.saturating_mul(1 << (self.runs - 1).min(30));
        let delay = jittered(doubled.min(options.delay_max));
        if self.runs >= options.attempts_max || self.begun.elapsed().saturating_add(delay) >= options.time_max {
            return None;
        }
        self.runs += 1;
        Some(delay)
    }
}

/// A time between half of `delay` and all of it.
fn jittered(delay: Duration) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    // Every state is keyed anew: what it makes of nothing is as good as chance.
    let chance = RandomState::new().hash_one(()) % 1_024;
    delay / 2 + (delay / 2).saturating_mul(chance as u32) / 1_024
}

impl Connection {
    /// Runs `work` in a transaction and commits it. When another transaction was first (40001, from a statement or from
    /// the commit), it is rolled back and run again, some time later; `work` is called once for each run, so what it
    /// does outside the transaction happens as often. Its own errors, and all others, roll back and are returned; so
    /// does a panic roll back. The closure's error may be of any type that [`Error`] becomes.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n BIGINT)")?;
    /// connection.execute("INSERT INTO counter VALUES (1, 0)")?;
    /// let n = connection.run_transaction(|transaction| {
    ///     let n = transaction.query_row("SELECT n FROM counter WHERE id = 1", ())?.get::<i64>(0)? + 1;
    ///     transaction.execute_with("UPDATE counter SET n = $1 WHERE id = 1", [n])?;
    ///     Ok::<_, mainstem::Error>(n)
    /// })?;
    /// assert_eq!(n, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// That of the closure; 25001 in an open transaction; those of a commit: 08007 is never run again; the last
    /// conflict (40001) when [`RetryOptions`] allow no more; 57014 when the connection is interrupted while it waits.
    pub fn run_transaction<T, E: From<Error>>(
        &self,
        work: impl FnMut(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_transaction_with(RetryOptions::default(), work)
    }

    /// As [`Connection::run_transaction`], as often and as long as `options` say.
    ///
    /// # Errors
    /// As there.
    pub fn run_transaction_with<T, E: From<Error>>(
        &self,
        options: RetryOptions,
        mut work: impl FnMut(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut retries = Retries::new(options);
        loop {
            let transaction = self.transaction()?;
            let error = match work(&transaction) {
                Ok(value) => match transaction.commit() {
                    Ok(()) => return Ok(value),
                    Err(error) if error.kind() == ErrorKind::Conflict => E::from(error),
                    Err(error) => return Err(E::from(error)),
                },
                Err(error) => {
                    let is_conflict = self.has_conflict();
                    transaction.rollback();
                    if !is_conflict {
                        return Err(error);
                    }
                    error
                }
            };
            let Some(delay) = retries.next_delay() else { return Err(error) };
            self.wait(delay)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_by_chance_up_to_the_longest() {
        let ms = Duration::from_millis;
        let options = RetryOptions::new().attempts_max(9).delay_min(ms(4)).delay_max(ms(100)).time_max(ms(3_600_000));
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut retries = Retries::new(options);
            for most in [4, 8, 16, 32, 64, 100, 100, 100] {
                let delay = retries.next_delay().unwrap();
                assert!(delay >= ms(most) / 2 && delay <= ms(most), "{delay:?} of {most}");
                seen.insert(delay);
            }
            assert_eq!(retries.next_delay(), None, "nine runs");
        }
        assert!(seen.len() > 100, "they differ: {}", seen.len());
        for options in [options.attempts_max(1), options.attempts_max(0), options.time_max(Duration::ZERO)] {
            assert_eq!(Retries::new(options).next_delay(), None);
        }
        // A wait that would end too late is none.
        assert_eq!(Retries::new(options.delay_min(ms(100)).time_max(ms(40))).next_delay(), None);
        let mut many = Retries::new(options.attempts_max(u32::MAX).delay_max(Duration::ZERO));
        assert!((0..100).all(|_| many.next_delay() == Some(Duration::ZERO)));
    }
}
