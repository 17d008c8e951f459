//! Part `changed`: the queries over tables of which one row in a hundred was updated and one in a hundred deleted,
//! beside the same tables without changes.
//!
//! Comes in: the statements that make and fill the tables. Goes out: each query's time before and after a merge, and
//! beside a thread that updates rows at a fixed rate, each beside its time over clean tables, in turn.
//!
//! 1. Two databases load the tables. One is changed by short statements, a row each, with nothing merged.
//! 2. All queries are measured; what they answer is kept aside.
//! 3. The changes are merged: answers have to be the same, and queries are measured again.
//! 4. Merges run by themselves while a writer updates; columns that it sets keep their values, and so do the answers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mainstem::{Connection, Database, OpenOptions, Synchronous};

use super::{Plan, queries};
use crate::duel::{Duel, Sample};
use crate::experiment::{Failure, Settings};
use crate::peers::Answer;
use crate::report::{Figure, Reach, Report, Unit};
use crate::suite::{digest, milliseconds, settle};

/// What all queries together may take of their time over clean tables.
const UNMERGED_SHARE: f64 = 1.05;
const MERGED_SHARE: f64 = 1.02;
const BESIDE_WRITER_SHARE: f64 = 1.25;
/// Updates a second of the writer.
const UPDATES_PER_SECOND: u64 = 5_000;

/// Measures the part.
///
/// # Errors
/// When the tables cannot be loaded; a wrong answer stands in the report.
pub(super) fn run(script: &[String], plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let folders = ["clean", "changed"].map(|name| directory.path().join(name));
    for folder in &folders {
        report.progress("changed: loading");
        let database = open(folder, true)?;
        let connection = database.connect()?;
        script.iter().try_for_each(|sql| connection.execute(sql).map(drop))?;
        settle(&database);
        drop(connection);
        database.close()?;
    }
    let [clean, changed] = folders;
    let clean = open(&clean, false)?;
    let changes = open(&changed, false)?;
    let keys = change(&changes.connect()?)?;
    report.note(format!("changed: {} rows updated and as many deleted, in lineitem and orders", keys.len() / 2));
    let mut bench = Bench { plan, clean: clean.connect()?, report, answers: Vec::new() };
    bench.measure("before a merge", &changes, UNMERGED_SHARE, None)?;
    merge(&changes)?;
    bench.measure("after a merge", &changes, MERGED_SHARE, None)?;
    changes.close()?;
    let changes = open(&changed, true)?;
    bench.measure("beside 5,000 updates a second", &changes, BESIDE_WRITER_SHARE, Some(&keys))?;
    changes.close()?;
    drop(bench);
    clean.close()?;
    Ok(())
}

fn open(folder: &Path, background: bool) -> Result<Database, Failure> {
    let options = OpenOptions::new().synchronous(Synchronous::Off).background(background);
    Ok(Database::open_with(folder, options)?)
}

fn merge(database: &Database) -> Result<(), Failure> {
    let look = database.storage().begin(Default::default())?;
    let tables: Vec<_> = look.catalog().tables().map(|table| table.id).collect();
    drop(look);
    for table in tables {
        database.storage().merge(table)?;
    }
    Ok(())
}

/// Keys of line items that are still there, two for each one deleted.
type Keys = Vec<(i64, i32)>;

/// Updates and deletes a hundredth of the line items and of the orders, a row a statement. Returns keys of line items
/// that are left.
fn change(connection: &Connection) -> Result<Keys, Failure> {
    // A multiplication spreads keys: what is left of a division by a hundred then is as good as random.
    let picked = |hash: &str, at: u32| format!("({hash}) * 2654435761 % 4294967296 / 42949673 = {at}");
    let items = |at: u32| {
        let hash = picked("l_orderkey * 8 + l_linenumber", at);
        let rows = connection.query_with(&format!("SELECT l_orderkey, l_linenumber FROM lineitem WHERE {hash}"), ())?;
        rows.map(|row| row.and_then(|row| Ok((row.get(0)?, row.get(1)?)))).collect::<Result<Keys, _>>()
    };
    let orders = |at: u32| {
        let rows =
            connection.query_with(&format!("SELECT o_orderkey FROM orders WHERE {}", picked("o_orderkey", at)), ())?;
        rows.map(|row| row.and_then(|row| row.get(0))).collect::<Result<Vec<i64>, _>>()
    };
    let update = connection.prepare(UPDATE)?;
    for key in items(3)? {
        update.execute(key)?;
    }
    let delete = connection.prepare("DELETE FROM lineitem WHERE l_orderkey = $1 AND l_linenumber = $2")?;
    for key in items(7)? {
        delete.execute(key)?;
    }
    let update = connection.prepare("UPDATE orders SET o_shippriority = o_shippriority WHERE o_orderkey = $1")?;
    for key in orders(3)? {
        update.execute([key])?;
    }
    let delete = connection.prepare("DELETE FROM orders WHERE o_orderkey = $1")?;
    for key in orders(7)? {
        delete.execute([key])?;
    }
    let mut keys = items(3)?;
    keys.extend(items(11)?);
    Ok(keys)
}

/// A row gets a new version of the same values.
const UPDATE: &str = "UPDATE lineitem SET l_tax = l_tax WHERE l_orderkey = $1 AND l_linenumber = $2";

struct Bench<'a> {
    plan: Plan,
    clean: Connection,
    report: &'a mut Report,
    /// Of each query over the changed tables.
    answers: Vec<Answer>,
}

impl Bench<'_> {
    /// Measures all queries over `changed`, while rows of `written` are updated, if there are some.
    fn measure(&mut self, case: &str, changed: &Database, share: f64, written: Option<&Keys>) -> Result<(), Failure> {
        let connection = changed.connect()?;
        let (mut ours, mut theirs) = (0.0, 0.0);
        for (at, (name, sql)) in queries::TPCH.into_iter().enumerate() {
            self.report.progress(format_args!("changed: {name} {case}"));
            let answer = digest(&connection.query(sql)?.collect_batches()?);
            match self.answers.get(at) {
                Some(before) if *before != answer => {
                    self.report.wrong(format!("changed: {name} {case} answers {answer:?}, before that {before:?}"));
                }
                Some(_) => {}
                None => self.answers.push(answer),
            }
            self.clean.query(sql)?.collect_batches()?;
            let mut duel = Duel::default();
            for _ in 0..self.plan.rounds {
                let run = |connection: &Connection| connection.query(sql)?.collect_batches().map(drop);
                duel.ours(beside(changed, written, || Sample::timed(self.plan.time, || (), |()| run(&connection)))?);
                duel.other("clean tables", Sample::timed(self.plan.time, || (), |()| run(&self.clean))?);
            }
            let yardsticks = duel.yardsticks(milliseconds);
            let case = format!("changed {name} {case}");
            let Some(figure) = Figure::of(&case, "time", Unit::Milliseconds, &duel.series(milliseconds)) else {
                continue;
            };
            for (name, time) in yardsticks {
                ours += figure.value;
                theirs += time;
                self.report.add(figure.clone().beside(&name, time))?;
            }
        }
        let all = Figure::once(&format!("changed {case}, all"), "time", Unit::Milliseconds, ours);
        Ok(self.report.add(all.beside("clean tables", theirs).to_reach(Reach::AtMostOfYardstick(share)))?)
    }
}

/// What `work` gives while a thread updates the rows of `keys`, one after the other.
fn beside<T>(
    database: &Database,
    keys: Option<&Keys>,
    work: impl FnOnce() -> mainstem::Result<T>,
) -> Result<T, Failure> {
    let Some(keys) = keys.filter(|keys| !keys.is_empty()) else { return Ok(work()?) };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writing = scope.spawn(|| write(database, keys, &stop));
        let done = work();
        stop.store(true, Ordering::Relaxed);
        writing.join().unwrap_or_else(|_| Err(Failure::Wrong("the writer panicked".into())))?;
        Ok(done?)
    })
}

/// Updates rows at the rate until it is told to stop.
fn write(database: &Database, keys: &Keys, stop: &AtomicBool) -> Result<(), Failure> {
    const AT_ONCE: u64 = 10;
    let connection = database.connect()?;
    let update = connection.prepare(UPDATE)?;
    let begun = Instant::now();
    let mut written: u64 = 0;
    for key in keys.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        update.execute(*key)?;
        written += 1;
        if written.is_multiple_of(AT_ONCE) {
            let due = Duration::from_micros(written * 1_000_000 / UPDATES_PER_SECOND);
            thread::sleep(due.saturating_sub(begun.elapsed()));
        }
    }
    Ok(())
}
