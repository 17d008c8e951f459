//! Part `tail`: opening after a kill, with as much log to replay as there may be.
//!
//! Comes in: the plan. Goes out: time to the first answer, and peak memory, for a table of 17 columns and for one of
//! two, whose rows are many more in as many bytes.
//!
//! 1. A process loads a table and makes a checkpoint. Without background work, which would keep the tail shorter, it
//!    then inserts, updates and deletes rows, each in a transaction of its own, until the tail is as long as may be.
//! 2. It is killed. Each round opens a copy of what it left, as any database is opened, and sums up the table.

use std::path::Path;

use mainstem::{Connection, Database, OpenOptions, Statement, Synchronous, ValueRef};

use super::Plan;
use super::child::{self, Written};
use crate::experiment::{Failure, Settings};
use crate::hybrid::rows::{self, COLUMNS, Keys};
use crate::report::{Figure, Report, Unit};
use crate::sessions::copy_folder;

/// Milliseconds from the beginning of an opening to its first answer.
const TOTAL_MS: f64 = 3_000.0;
/// Megabytes of the process that opens.
const PEAK: f64 = 1_000.0;
/// Transactions between two looks at the tail.
const AT_ONCE: u64 = 64;
/// Bytes that so many transactions write at most: the tail must not grow beyond what is allowed.
const ROOM: u64 = AT_ONCE * 256;

/// Measures the part.
///
/// # Errors
/// When a process cannot be started, or an answer is wrong.
pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    for columns in [COLUMNS, 1] {
        let directory = settings.scratch()?;
        let left = directory.path().join("left");
        let case = format!("killed, {} columns", columns + 1);
        report.progress(format_args!("{case}: writing the log"));
        let written = child::write_and_kill(settings, &left, columns, plan.loaded_rows, plan.tail_bytes)?;
        let megabytes = written.tail_bytes as f64 / 1e6;
        report.add(Figure::once(&case, "log to replay", Unit::Megabytes, megabytes))?;
        report.add(Figure::once(&case, "transactions in it", Unit::Count, written.operations as f64))?;
        let wanted = expected(Keys::new(plan.loaded_rows), columns, written.operations);
        let mut openings = Vec::new();
        for round in 1..=plan.rounds {
            report.progress(format_args!("{case}: opening, round {round}"));
            let copy = directory.path().join(format!("copy{round}"));
            copy_folder(&left, &copy)?;
            let opened = child::open_and_query(settings, &copy, &sums(columns))?;
            if opened.answer != wanted {
                return Err(Failure::Wrong(format!("{case}: {:?} instead of {wanted:?}", opened.answer)));
            }
            openings.push(opened);
            std::fs::remove_dir_all(&copy)?;
        }
        child::report_openings(&case, &openings, Some(TOTAL_MS), Some(PEAK), report)?;
    }
    Ok(())
}

/// Row count, and sums of the key, the first and the last integer.
fn sums(columns: usize) -> String {
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
fn expected(keys: Keys, columns: usize, operations: u64) -> Vec<i64> {
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
