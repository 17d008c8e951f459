//! Part `hybrid`: the table of experiment `hybrid`, a BIGINT key and 16 INTEGERs, read as a whole.
//!
//! Comes in: the plan. Goes out: rows a second of three queries beside DuckDB's; and their time after short statements
//! wrote to the table, beside their time before.
//!
//! 1. Our engine and DuckDB load the rows in an order of keys that looks random, by one statement.
//! 2. The queries are compared and measured in turn.
//! 3. A copy of our database takes INSERTs, UPDATEs and DELETEs of one row each, a third each; nothing is merged.
//! 4. What the copy answers has to be what the writes make of the first answers; both are measured in turn.

use mainstem::{Connection, Database, ValueRef};

use super::{Plan, load, open};
use crate::duel::{Duel, Sample};
use crate::experiment::{Failure, Settings, note};
use crate::hybrid::rows::{self, COLUMNS, Keys};
use crate::peers::{Call, Engine, Told};
use crate::report::{Figure, Reach, Report, Unit};
use crate::sessions::copy_folder;
use crate::suite::{self, Engines, milliseconds};

/// Half of the values lie below.
const HALF: i32 = 500_000_003;
/// What a query may take of its time before the writes.
const UNMERGED_SHARE: f64 = 1.1;

/// A query, and what its rate has to reach as a share of DuckDB's.
struct Query {
    case: &'static str,
    sql: String,
    call: Call,
    share: f64,
}

impl Query {
    fn told(&self) -> Told<'_> {
        Told { case: self.case, sql: &self.sql, call: self.call, values: None }
    }
}

fn queries() -> [Query; 3] {
    let sums: Vec<String> = (1..=COLUMNS).map(|column| format!("sum(c{column})")).collect();
    [
        Query {
            case: "filter keeps half, sum",
            sql: format!("SELECT sum(c2) FROM t WHERE c1 < {HALF}"),
            call: Call::Text,
            share: 1.3,
        },
        Query {
            case: "all columns, sums",
            // Metadata tells sums, but not what a FILTER counts: so rows are read.
            sql: format!("SELECT count(*) FILTER (WHERE k >= 0), sum(k), {} FROM t", sums.join(", ")),
            call: Call::Text,
            share: 1.0,
        },
        Query { case: "all columns, Arrow batches", sql: "SELECT * FROM t".into(), call: Call::Arrow, share: 1.0 },
    ]
}

/// Measures the part.
///
/// # Errors
/// When the table cannot be loaded or changed; a wrong answer ends it, too.
pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let folders = ["clean", "changed"].map(|name| directory.path().join(name));
    let [clean, changed] = &folders;
    let keys = Keys::new(plan.rows);
    let script = [rows::create_table("t", COLUMNS), rows::load_statement("t", COLUMNS, keys)];
    report.progress(format_args!("hybrid: loading {} rows", keys.rows()));
    let peers = suite::start_peers(settings, Engine::DuckDbMemory, &script, directory.path());
    let database = open(clean, true)?;
    drop(load(&database, &script)?);
    database.close()?;
    copy_folder(clean, changed)?;
    let database = open(clean, false)?;
    let connection = database.connect()?;
    let mut engines = Engines { connection: &connection, local: None, peers };
    for query in queries() {
        let outcome = against_peers(&mut engines, &query, keys, plan, report);
        note(query.case, outcome, report)?;
    }
    engines.peers.notes().iter().for_each(|note| report.note(note));
    // Nothing else may run beside ours from here on.
    drop(engines);
    let changes = open(changed, false)?;
    against_clean(&connection, &changes, keys, plan, report)?;
    drop(connection);
    database.close()?;
    Ok(changes.close()?)
}

fn against_peers(
    engines: &mut Engines<'_>,
    query: &Query,
    keys: Keys,
    plan: Plan,
    report: &mut Report,
) -> Result<(), Failure> {
    report.progress(query.case);
    engines.compare(&query.told())?;
    let duel = engines.duel(&query.told(), plan.rounds())?;
    let rows = keys.rows() as f64;
    let rates = duel.series(|sample| sample.rate).scaled(rows);
    let Some(figure) = Figure::of(query.case, "rows", Unit::PerSecond, &rates) else { return Ok(()) };
    let theirs = duel.yardsticks(|sample| sample.rate).into_iter().next();
    report.add(match theirs {
        Some((name, rate)) => figure.beside(&name, rate * rows).to_reach(Reach::OfYardstick(query.share)),
        None => figure,
    })?;
    Ok(())
}

/// Writes to `changes`, and measures the queries over it and over the table without the writes, in turn.
fn against_clean(
    clean: &Connection,
    changes: &Database,
    keys: Keys,
    plan: Plan,
    report: &mut Report,
) -> Result<(), Failure> {
    report.progress(format_args!("hybrid: {} writes of one row", plan.writes));
    let connection = changes.connect()?;
    let mut wanted = Sums::of(clean)?;
    write(&connection, keys, plan.writes, &mut wanted)?;
    let found = Sums::of(&connection)?;
    if found != wanted {
        return Err(Failure::Wrong(format!("after the writes there is {found:?} instead of {wanted:?}")));
    }
    for query in queries() {
        report.progress(format_args!("{}, after writes", query.case));
        let mut duel = Duel::default();
        for connection in [clean, &connection] {
            suite::run(connection, &query.told())?;
        }
        for _ in 0..plan.rounds {
            let round = |connection| Sample::timed(plan.time, || (), |()| suite::run(connection, &query.told()));
            duel.ours(round(&connection)?);
            duel.other("before them", round(clean)?);
        }
        let case = format!("{}, after {} unmerged writes", query.case, plan.writes);
        let times = Figure::of(&case, "time", Unit::Milliseconds, &duel.series(milliseconds));
        if let (Some(figure), Some((name, time))) = (times, duel.yardsticks(milliseconds).into_iter().next()) {
            report.add(figure.beside(&name, time).to_reach(Reach::AtMostOfYardstick(UNMERGED_SHARE)))?;
        }
    }
    Ok(())
}

/// What the table holds, as far as the queries see it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sums {
    rows: i64,
    /// Of all columns, the key first.
    all: Vec<i64>,
    /// Of the second integer, where the first one lies below [`HALF`].
    half: i64,
}

impl Sums {
    fn of(connection: &Connection) -> Result<Self, Failure> {
        let sums: Vec<String> = (1..=COLUMNS).map(|column| format!("CAST(sum(c{column}) AS BIGINT)")).collect();
        let sql = format!("SELECT count(*), CAST(sum(k) AS BIGINT), {} FROM t", sums.join(", "));
        let row = connection.query_row(&sql, ())?;
        let all = (1..=COLUMNS + 1).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        let half = format!("SELECT CAST(sum(c2) AS BIGINT) FROM t WHERE c1 < {HALF}");
        Ok(Self { rows: row.get(0)?, all, half: connection.query_row(&half, ())?.get(0)? })
    }

    /// A row with `key`, whose first integer is `c1`, is there (1) or is not any more (-1).
    fn add(&mut self, sign: i64, key: i64, c1: i32) {
        self.rows += sign;
        for (at, sum) in self.all.iter_mut().enumerate() {
            *sum += sign
                * match at {
                    0 => key,
                    1 => c1.into(),
                    _ => rows::value(key, at).into(),
                };
        }
        if c1 < HALF {
            self.half += sign * i64::from(rows::value(key, 2));
        }
    }
}

/// INSERTs of fresh rows, UPDATEs and DELETEs of loaded ones: `writes` transactions of one row each. What becomes of
/// the table is put down in `sums`.
fn write(connection: &Connection, keys: Keys, writes: u64, sums: &mut Sums) -> Result<(), Failure> {
    let insert = connection.prepare(&rows::insert_statement(1, COLUMNS))?;
    let update = connection.prepare("UPDATE t SET c1 = $2 WHERE k = $1")?;
    let delete = connection.prepare("DELETE FROM t WHERE k = $1")?;
    for number in 0..writes {
        let (fresh, loaded) = (keys.fresh(number), keys.loaded(number));
        let written = match number % 3 {
            0 => {
                sums.add(1, fresh, rows::value(fresh, 1));
                insert.execute(rows::parameters(fresh, rows::value(fresh, 1)))?
            }
            1 => {
                // From below the half to above it, and back.
                let c1 = rows::value(loaded, 1);
                let other = if c1 < HALF { c1 + HALF } else { c1 - HALF };
                sums.add(-1, loaded, c1);
                sums.add(1, loaded, other);
                update.execute([ValueRef::BigInt(loaded), ValueRef::Integer(other)])?
            }
            _ => {
                sums.add(-1, loaded, rows::value(loaded, 1));
                delete.execute([loaded])?
            }
        };
        if written != 1 {
            return Err(Failure::Wrong(format!("write {number} wrote {written} rows")));
        }
    }
    Ok(())
}
