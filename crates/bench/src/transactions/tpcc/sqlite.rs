//! The mix's statements in SQLite: a file with WAL and `synchronous = NORMAL`, as durable as ours.
//!
//! Tables with a key are stored in its order (`WITHOUT ROWID`), which spares SQLite an index beside the table.

use std::cell::RefCell;
use std::path::Path;

use mainstem::ValueRef;
use rusqlite::types::{ToSqlOutput, ValueRef as Theirs};
use rusqlite::{Connection, Statement, ToSql};

use super::engine::Engine;
use super::schema::{Query, TABLES};
use crate::experiment::Failure;

/// Opens a database with the tables.
pub(super) fn open(path: &Path) -> Result<Connection, Failure> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -1000000")?;
    for table in TABLES {
        let order = if table.contains("PRIMARY KEY (") { " WITHOUT ROWID" } else { "" };
        connection.execute_batch(&format!("{table}{order}"))?;
    }
    Ok(connection)
}

/// A connection and its prepared statements.
pub(super) struct Sqlite<'a> {
    statements: Vec<RefCell<Statement<'a>>>,
    begin: RefCell<Statement<'a>>,
    commit: RefCell<Statement<'a>>,
    rollback: RefCell<Statement<'a>>,
}

impl<'a> Sqlite<'a> {
    /// Prepares the statements.
    pub(super) fn new(connection: &'a Connection) -> Result<Self, Failure> {
        let prepare = |sql: &str| connection.prepare(sql).map(RefCell::new);
        Ok(Self {
            // What begins with a dollar sign is numbered in the order of its first places.
            statements: Query::ALL
                .iter()
                .map(|query| prepare(&query.sql().replace('$', "?")))
                .collect::<rusqlite::Result<_>>()?,
            begin: prepare("BEGIN")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
        })
    }

    fn statement(&self, query: Query) -> Result<&RefCell<Statement<'a>>, Failure> {
        self.statements.get(query as usize).ok_or_else(|| Failure::Broken(format!("{query:?} is not prepared")))
    }
}

/// A value on its way to SQLite.
struct Bound<'a>(ValueRef<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            ValueRef::BigInt(number) => Theirs::Integer(number),
            ValueRef::Text(text) => Theirs::Text(text.as_bytes()),
            _ => Theirs::Null,
        }))
    }
}

fn bound<'a>(values: &'a [ValueRef<'a>]) -> rusqlite::ParamsFromIter<impl Iterator<Item = Bound<'a>>> {
    rusqlite::params_from_iter(values.iter().map(|value| Bound(*value)))
}

impl Engine for Sqlite<'_> {
    fn execute(&self, query: Query, values: &[ValueRef<'_>]) -> Result<u64, Failure> {
        Ok(self.statement(query)?.borrow_mut().execute(bound(values))? as u64)
    }

    fn query(
        &self,
        query: Query,
        values: &[ValueRef<'_>],
        cell: &mut dyn FnMut(usize, ValueRef<'_>),
    ) -> Result<(), Failure> {
        let mut statement = self.statement(query)?.borrow_mut();
        let columns = statement.column_count();
        let mut rows = statement.query(bound(values))?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                cell(
                    column,
                    match row.get_ref(column)? {
                        Theirs::Integer(number) => ValueRef::BigInt(number),
                        Theirs::Text(text) => ValueRef::Text(std::str::from_utf8(text).unwrap_or_default()),
                        _ => ValueRef::Null,
                    },
                );
            }
        }
        Ok(())
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
        self.begin.borrow_mut().execute(())?;
        let outcome = work();
        let end = if matches!(outcome, Ok(true)) { &self.commit } else { &self.rollback };
        let ended = end.borrow_mut().execute(());
        outcome?;
        ended?;
        Ok(())
    }
}
