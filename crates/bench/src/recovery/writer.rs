//! What the process writes that is killed: transactions whose outcome their number tells.
//!
//! Comes in: a folder, and how long the tail of the log is to be. Goes out: the database as it is left, and how many
//! transactions that were; for whoever opens it, what it has to answer.

use std::path::Path;

use mainstem::{Connection, Database, OpenOptions, Statement, Synchronous, ValueRef};
use serde::{Deserialize, Serialize};

use crate::experiment::Failure;
use crate::hybrid::rows::{self, Keys};

/// Transactions between two looks at the tail.
const AT_ONCE: u64 = 64;
/// Bytes that so many transactions write at most: the tail must not grow beyond what is allowed.
const ROOM: u64 = AT_ONCE * 256;

/// What a process wrote.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Written {
    /// Transactions of one row.
    pub operations: u64,
    /// Bytes that a restart has to replay.
    pub tail_bytes: u64,
}

/// Row count, and sums of the key, the first and the last integer.
pub(super) fn sums(columns: usize) -> String {
    format!("SELECT count(*), CAST(sum(k) AS BIGINT), CAST(sum(c1) AS BIGINT), CAST(sum(c{columns}) AS BIGINT) FROM t")
}

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Insert { key: i64 },
    Update { position: u64, c1: i32 },
    Delete { position: u64 },
}

/// Transaction `number`: two INSERTs, an UPDATE, a DELETE. Rows that were loaded are deleted once each from the first
/// half of a random order, and updated in the other.
fn operation(keys: Keys, number: u64) -> Operation {
    let half = keys.rows() / 2;
    match number % 4 {
        2 => Operation::Update { position: half + number / 4 % half, c1: (number & 0x3fff_ffff) as i32 },
        3 if number / 4 < half => Operation::Delete { position: number / 4 },
        _ => Operation::Insert { key: keys.fresh(number) },
    }
}

/// What [`sums`] has to give after `operations` transactions.
pub(super) fn expected(keys: Keys, columns: usize, operations: u64) -> Vec<i64> {
    let row = |key: i64, c1: i32| {
        let last = if columns == 1 { c1 } else { rows::value(key, columns) };
        [1, key, c1.into(), last.into()]
    };
    let mut sums = [0_i64; 4];
    let mut add = |sign: i64, row: [i64; 4]| sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += sign * value);
    let mut c1: Vec<i32> = (0..keys.rows()).map(|position| rows::value(keys.loaded(position), 1)).collect();
    (0..keys.rows()).for_each(|at| add(1, row(keys.loaded(at), rows::value(keys.loaded(at), 1))));
    for number in 0..operations {
        match operation(keys, number) {
            Operation::Insert { key } => add(1, row(key, rows::value(key, 1))),
            Operation::Delete { position } => {
                let key = keys.loaded(position);
                add(-1, row(key, rows::value(key, 1)));
            }
            Operation::Update { position, c1: new } => {
                let key = keys.loaded(position);
                if let Some(old) = c1.get_mut(position as usize) {
                    add(-1, row(key, *old));
                    add(1, row(key, new));
                    *old = new;
                }
            }
        }
    }
    sums.to_vec()
}

/// The statements of the operations.
struct Statements<'a> {
    insert: Statement<'a>,
    update: Statement<'a>,
    delete: Statement<'a>,
    columns: usize,
}

impl<'a> Statements<'a> {
    fn new(connection: &'a Connection, columns: usize) -> Result<Self, Failure> {
        Ok(Self {
            insert: connection.prepare(&rows::insert_statement(1, columns))?,
            update: connection.prepare("UPDATE t SET c1 = $2 WHERE k = $1")?,
            delete: connection.prepare("DELETE FROM t WHERE k = $1")?,
            columns,
        })
    }

    fn run(&self, keys: Keys, number: u64) -> Result<(), Failure> {
        let written = match operation(keys, number) {
            Operation::Insert { key } => {
                let row = rows::parameters(key, rows::value(key, 1));
                self.insert.execute(row.get(..=self.columns).unwrap_or_default())?
            }
            Operation::Update { position, c1 } => {
                self.update.execute([ValueRef::BigInt(keys.loaded(position)), ValueRef::Integer(c1)])?
            }
            Operation::Delete { position } => self.delete.execute([keys.loaded(position)])?,
        };
        match written {
            1 => Ok(()),
            _ => Err(Failure::Wrong(format!("transaction {number} wrote {written} rows"))),
        }
    }
}

/// In the process that is killed: makes the database in `folder`, and writes until a restart has `tail_bytes` to
/// replay. The database has to live as long as the process.
pub(super) fn write(
    folder: &Path,
    columns: usize,
    loaded_rows: u64,
    tail_bytes: u64,
) -> Result<(Database, Written), Failure> {
    let options = OpenOptions::new().background(false).synchronous(Synchronous::Off);
    let database = Database::open_with(folder, options)?;
    let keys = Keys::new(loaded_rows);
    let connection = database.connect()?;
    connection.execute(&rows::create_table("t", columns))?;
    connection.execute(&rows::load_statement("t", columns, keys))?;
    database.storage().checkpoint()?;
    let statements = Statements::new(&connection, columns)?;
    let mut operations = 0;
    while database.storage().log_tail_bytes() + ROOM < tail_bytes {
        for _ in 0..AT_ONCE {
            statements.run(keys, operations)?;
            operations += 1;
        }
    }
    // What was committed before a commit that the disk has is on the disk, too.
    connection.execute("SET synchronous = full")?;
    statements.run(keys, operations)?;
    operations += 1;
    let tail_bytes = database.storage().log_tail_bytes();
    drop(statements);
    drop(connection);
    Ok((database, Written { operations, tail_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_keep_out_of_each_others_way() {
        let keys = Keys::new(32);
        let all: Vec<Operation> = (0..100).map(|number| operation(keys, number)).collect();
        let deleted: Vec<u64> = all
            .iter()
            .filter_map(|operation| match operation {
                Operation::Delete { position } => Some(*position),
                _ => None,
            })
            .collect();
        assert_eq!(deleted, (0..16).collect::<Vec<_>>());
        assert!(all.iter().all(|o| !matches!(o, Operation::Update { position, .. } if *position < 16)));
        let inserts = all.iter().filter(|o| matches!(o, Operation::Insert { .. })).count() as i64;
        assert_eq!(expected(keys, 16, 100).first(), Some(&(32 - 16 + inserts)));
    }

    #[test]
    fn what_is_expected_is_there() {
        let folder = tempfile::tempdir().unwrap();
        for columns in [1, 3] {
            let path = folder.path().join(columns.to_string());
            let (database, written) = write(&path, columns, 320, 20_000).unwrap();
            assert!(written.tail_bytes <= 20_000 && written.operations > 10, "{written:?}");
            let row = database.connect().unwrap().query_row(&sums(columns), ()).unwrap();
            let found: Vec<i64> = (0..4).map(|at| row.get(at).unwrap()).collect();
            assert_eq!(found, expected(Keys::new(320), columns, written.operations));
        }
    }
}
