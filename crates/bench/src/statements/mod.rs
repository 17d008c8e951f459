//! Experiment `plan`: statements beside the point path, prepared and as texts. Issue "Nothing planned twice, no cliff
//! beside the point path", section Figures.
//!
//! Comes in: the scale. Goes out: microseconds a statement, beside SQLite's through its C interface in the same
//! process.
//!
//! 1. Users, orders with a key of two columns, and a table of 1,000 rows are loaded, here and into SQLite in memory;
//! 2. each case runs in rounds, ours and SQLite's in turn; before the first both answer the same values, and what they
//!    answer is compared.

mod cases;
mod sqlite;

use std::time::{Duration, Instant};

use mainstem::{Connection, Database, OpenOptions, Statement, Value as Cell, ValueRef};

use crate::duel::{Duel, Sample};
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::latency::Recorder;
use crate::report::{Promise, Report};
use cases::{Call, Case, Value};
use sqlite::Sqlite;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "plan",
    about: "statements beside the point path, beside SQLite",
    parts: &[
        ("keys", "prepared statements on keys, parts and ranges of keys, and joins by them"),
        ("texts", "one-shot calls and texts with literals"),
        ("small", "small statements off the keys, plain and prepared"),
    ],
    run,
};

const PARTS: [(&str, &[Case]); 3] = [("keys", cases::KEYS), ("texts", cases::TEXTS), ("small", cases::SMALL)];

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
struct Plan {
    users: u64,
    rounds: u32,
    time: Duration,
}

impl Plan {
    fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { users: 20_000, rounds: 3, time: Duration::from_millis(100) },
            Scale::Full | Scale::Paper => Self { users: 500_000, rounds: 5, time: Duration::from_secs(1) },
        }
    }
}

/// Orders of a user.
const ORDERS: u64 = 4;
/// Operations whose answers are compared.
const COMPARED: u64 = 20;

/// The tables, in SQL that both read.
const TABLES: [&str; 3] = [
    "CREATE TABLE u (id BIGINT PRIMARY KEY, name TEXT, n INTEGER, d DECIMAL(10, 2))",
    "CREATE TABLE o (uid BIGINT, n INTEGER, amount INTEGER, note TEXT, PRIMARY KEY (uid, n))",
    "CREATE TABLE s (k INTEGER PRIMARY KEY, n INTEGER, g INTEGER)",
];

fn run(settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let plan = Plan::of(settings.scale);
    let directory = tempfile::Builder::new().prefix("mainstem-bench-").tempdir_in(&settings.directory)?;
    let options = OpenOptions::new().synchronous("off".parse()?);
    let database = Database::open_with(directory.path().join("db"), options)?;
    let connection = database.connect()?;
    report.progress("loading users and orders");
    let mut sqlite = match settings.peers {
        Some(_) => Some(Sqlite::load(plan.users)?),
        None => None,
    };
    load(&connection, plan.users)?;
    let mut keys = Keys { users: plan.users, state: 1, next: plan.users * 2 };
    for (part, cases) in PARTS {
        if settings.parts.is_empty() || settings.parts.iter().any(|name| name == part) {
            for case in cases {
                measure(&connection, sqlite.as_mut(), *case, plan, &mut keys, report)?;
            }
        }
    }
    database.close()?;
    Ok(())
}

fn load(connection: &Connection, users: u64) -> Result<(), Failure> {
    TABLES.iter().try_for_each(|table| connection.execute(table).map(|_| ()))?;
    let insert = [
        format!(
            "INSERT INTO u SELECT x, 'user ' || x, x % 1000, x + 0.25 FROM generate_series(0, {}) AS g (x)",
            users - 1
        ),
        format!(
            "INSERT INTO o SELECT x / {ORDERS}, x % {ORDERS}, x % 100, 'order' FROM generate_series(0, {}) AS g (x)",
            users * ORDERS - 1
        ),
        "INSERT INTO s SELECT x, x % 50, x % 10 FROM generate_series(0, 999) AS g (x)".to_owned(),
    ];
    insert.iter().try_for_each(|sql| connection.execute(sql).map(|_| ()))?;
    Ok(())
}

/// Values for `$1`.
struct Keys {
    users: u64,
    state: u64,
    next: u64,
}

impl Keys {
    fn next(&mut self, value: Value) -> i64 {
        let number = match value {
            Value::None => 0,
            Value::NewKey => {
                self.next += 1;
                self.next
            }
            Value::Key => {
                // Marsaglia's xorshift.
                self.state ^= self.state << 13;
                self.state ^= self.state >> 7;
                self.state ^= self.state << 17;
                self.state % self.users
            }
        };
        i64::try_from(number).unwrap_or(i64::MAX)
    }
}

/// What an operation gave: rows, and a sum of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) rows: u64,
    pub(crate) sum: i64,
}

/// A statement of ours as it is handed over.
enum Ours<'a> {
    Prepared(Statement<'a>),
    OneShot(&'a Connection, &'static str),
    Text(&'a Connection, &'static str),
}

impl<'a> Ours<'a> {
    fn new(connection: &'a Connection, case: Case) -> Result<Self, Failure> {
        Ok(match case.call {
            Call::Prepared => Self::Prepared(connection.prepare(case.sql)?),
            Call::OneShot => Self::OneShot(connection, case.sql),
            Call::Text => Self::Text(connection, case.sql),
        })
    }

    fn run(&self, case: Case, key: i64) -> Result<Answer, Failure> {
        let value = [ValueRef::BigInt(key)];
        let values = if case.sql.contains("$1") { &value[..] } else { &[] };
        let mut answer = Answer::default();
        let mut count = |rows: mainstem::Rows| -> Result<(), Failure> {
            for row in rows {
                answer.rows += 1;
                let row = row?;
                let numbers = row.values().iter().map(|cell| match cell {
                    Cell::Int(number) => *number,
                    Cell::Boolean(flag) => i64::from(*flag),
                    _ => 0,
                });
                answer.sum = answer.sum.wrapping_add(numbers.sum::<i64>());
            }
            Ok(())
        };
        if is_query(case.sql) {
            match self {
                Self::Prepared(statement) => count(statement.query(values)?)?,
                Self::OneShot(connection, sql) => count(connection.query_with(sql, values)?)?,
                Self::Text(connection, sql) => count(connection.query(&with_literal(sql, key))?.rows())?,
            }
        } else {
            answer.rows = match self {
                Self::Prepared(statement) => statement.execute(values)?,
                Self::OneShot(connection, sql) => connection.execute_with(sql, values)?,
                Self::Text(connection, sql) => connection.execute(&with_literal(sql, key))?,
            };
        }
        Ok(answer)
    }
}

fn is_query(sql: &str) -> bool {
    sql.starts_with("SELECT")
}

fn with_literal(sql: &str, key: i64) -> String {
    sql.replace("$1", &key.to_string())
}

fn measure(
    connection: &Connection,
    mut sqlite: Option<&mut Sqlite>,
    case: Case,
    plan: Plan,
    keys: &mut Keys,
    report: &mut Report,
) -> Result<(), Failure> {
    let ours = Ours::new(connection, case)?;
    for _ in 0..COMPARED {
        let key = keys.next(case.value);
        let found = ours.run(case, key)?;
        if let Some(sqlite) = sqlite.as_deref_mut() {
            let expected = sqlite.run(case, key)?;
            if found != expected {
                report.wrong(format!("{} of {key}: {found:?}, SQLite {expected:?}", case.name));
                return Ok(());
            }
        }
    }
    let mut duel = Duel::default();
    for _ in 0..plan.rounds {
        duel.ours(timed(plan.time, || ours.run(case, keys.next(case.value)).map(|_| ()))?);
        if let Some(sqlite) = sqlite.as_deref_mut() {
            duel.other("SQLite", timed(plan.time, || sqlite.run(case, keys.next(case.value)).map(|_| ()))?);
        }
    }
    Ok(report.add_duel(case.name, &duel, Promise::default())?)
}

/// Runs `work` again and again for `time`.
fn timed(time: Duration, mut work: impl FnMut() -> Result<(), Failure>) -> Result<Sample, Failure> {
    let (mut recorder, mut operations) = (Recorder::default(), 0);
    let began = Instant::now();
    while began.elapsed() < time {
        let start = Instant::now();
        work()?;
        recorder.record(start.elapsed());
        operations += 1;
    }
    Ok(Sample::of(operations, began.elapsed().as_secs_f64(), &recorder))
}
