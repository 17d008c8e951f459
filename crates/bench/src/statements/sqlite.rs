//! SQLite in this process: its statements are called as ours are. Its database is a file with a write-ahead log that
//! nobody waits for, as ours is, and a cache that all of it fits into.

use std::path::Path;

use rusqlite::{Connection, Row};

use super::cases::Case;
use super::inputs::Operation;
use super::tables;
use crate::experiment::Failure;
use crate::peers::{Answer, Call};

const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -1048576";

/// A database of SQLite's, loaded.
pub(super) struct Sqlite(Connection);

impl Sqlite {
    /// One with the tables of `users` users, in `directory`.
    pub(super) fn load(users: u64, directory: &Path) -> Result<Self, Failure> {
        let connection = Connection::open(directory.join("sqlite.db"))?;
        connection.execute_batch(SETTINGS)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(&tables::script(users, tables::recursive).join(";"))?;
        Ok(Self(connection))
    }

    /// What a run of `case` gives. A one-shot call and a text are prepared each time, which is all SQLite has for them.
    pub(super) fn run(&self, case: Case, operation: &Operation) -> Result<Answer, Failure> {
        let values = rusqlite::params_from_iter(operation.parameter);
        let (mut cached, mut fresh);
        let statement: &mut rusqlite::Statement<'_> = match case.call {
            Call::Prepared => {
                cached = self.0.prepare_cached(case.sql)?;
                &mut cached
            }
            Call::OneShot | Call::Text | Call::Arrow => {
                fresh = self.0.prepare(&operation.text)?;
                &mut fresh
            }
        };
        if !case.is_query() {
            return Ok(Answer { rows: statement.execute(values)? as u64, sum: 0 });
        }
        let columns = statement.column_count();
        let mut rows = statement.query(values)?;
        let mut answer = Answer::default();
        while let Some(row) = rows.next()? {
            answer.rows += 1;
            answer.sum = answer.sum.wrapping_add((0..columns).map(|at| number(row, at)).sum());
        }
        Ok(answer)
    }

    /// Runs a statement of a test.
    #[cfg(test)]
    pub(super) fn change(&self, sql: &str) {
        self.0.execute_batch(sql).unwrap();
    }
}

/// The whole number in column `at`, 0 for other values.
fn number(row: &Row<'_>, at: usize) -> i64 {
    row.get_ref(at).ok().and_then(|value| value.as_i64().ok()).unwrap_or(0)
}
