//! SQLite in memory, in this process: its statements are called as ours are.

use rusqlite::{Connection, Row};

use super::cases::{Call, Case};
use super::{Answer, ORDERS, TABLES, is_query, with_literal};
use crate::experiment::Failure;

/// A database of SQLite's, loaded.
pub(super) struct Sqlite(Connection);

fn broken(error: &rusqlite::Error) -> Failure {
    Failure::Broken(format!("SQLite: {error}"))
}

impl Sqlite {
    /// One with the tables of `users` users.
    pub(super) fn load(users: u64) -> Result<Self, Failure> {
        let connection = Connection::open_in_memory().map_err(|e| broken(&e))?;
        connection.set_prepared_statement_cache_capacity(64);
        let numbers =
            |last: u64| format!("WITH RECURSIVE g (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM g WHERE x < {last})");
        let orders = users * ORDERS - 1;
        let script = [
            TABLES.join(";"),
            format!("INSERT INTO u {} SELECT x, 'user ' || x, x % 1000, x + 0.25 FROM g", numbers(users - 1)),
            format!("INSERT INTO o {} SELECT x / {ORDERS}, x % {ORDERS}, x % 100, 'order' FROM g", numbers(orders)),
            format!("INSERT INTO s {} SELECT x, x % 50, x % 10 FROM g", numbers(999)),
        ];
        connection.execute_batch(&script.join(";")).map_err(|e| broken(&e))?;
        Ok(Self(connection))
    }

    /// What `case` gives for `key`. A one-shot call and a text are prepared each time, which is all SQLite has for
    /// them.
    pub(super) fn run(&self, case: Case, key: i64) -> Result<Answer, Failure> {
        self.answer(case, key).map_err(|e| broken(&e))
    }

    fn answer(&self, case: Case, key: i64) -> rusqlite::Result<Answer> {
        let values: &[i64] = if case.call != Call::Text && case.sql.contains("$1") { &[key] } else { &[] };
        let values = rusqlite::params_from_iter(values);
        let (mut cached, mut fresh);
        let statement: &mut rusqlite::Statement<'_> = match case.call {
            Call::Prepared => {
                cached = self.0.prepare_cached(case.sql)?;
                &mut cached
            }
            Call::OneShot => {
                fresh = self.0.prepare(case.sql)?;
                &mut fresh
            }
            Call::Text => {
                fresh = self.0.prepare(&with_literal(case.sql, key))?;
                &mut fresh
            }
        };
        if !is_query(case.sql) {
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
}

/// The whole number in column `at`, 0 for other values.
fn number(row: &Row<'_>, at: usize) -> i64 {
    row.get_ref(at).ok().and_then(|value| value.as_i64().ok()).unwrap_or(0)
}
