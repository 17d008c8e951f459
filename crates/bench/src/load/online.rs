//! Experiment `load/online`: single-row transactions beside a load (Instant Loading, section 5.5 and figure 14). Issue
//! "Instant Loading", section Figures.
//!
//! Comes in: the scale. Goes out: the rate of transactions alone and beside the load, the time of the load alone and
//! beside them, and how long its commit takes.
//!
//! 1. A table of accounts with a key is made, and a CSV file of line items of TPC-H, of about the paper's 1.3 GB.
//! 2. In each round: transactions alone; a load alone; a load beside transactions, whose rate counts while it runs.
//!    A transaction adds 1 to a random account. The load is COPY in a transaction; its COMMIT is what the paper calls
//!    the merge transaction.
//! 3. After each load the rows are counted; at the end the sum of all accounts is the number of transactions.
//!
//! The database is in memory, as the paper's. It does not own: what a transaction waits for on a disk
//! (`transactions`).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mainstem::{Connection, Database};

use super::{LINE_ITEM_COLUMNS, check_rows};
use crate::duel::Series;
use crate::experiment::{Experiment, Failure, Scale, Settings};
use crate::keys::Random;
use crate::report::{Figure, Reach, Report, Unit};
use crate::tpch::write_line_items;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "load/online",
    about: "single-row transactions beside a load of CSV, figure 14 of Instant Loading",
    parts: &[("accounts", "one thread of transactions, one load")],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

/// What transactions beside a load have to reach of their rate alone, and what the load may take of its time alone.
const RATE_SHARE_MIN: f64 = 0.6;
const LOAD_TIMES_MAX: f64 = 2.2;
/// Milliseconds that the commit of a load may take.
const INSTALL_MAX: f64 = 250.0;
/// What the figure and the text beside it say of one thread of transactions and a load by all others: transactions a
/// second beside it and alone, seconds of the load with them and the milliseconds of the merge transaction.
const PAPER: &str = "the paper: 100,000 of 200,000 transactions/s beside a load of 1.2 s by all threads, commit 250 ms";

/// Sizes.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// TPC-H's scale factor.
    pub factor: f64,
    /// Accounts.
    pub accounts: u64,
    /// How long transactions run alone.
    pub time: Duration,
    /// Rounds.
    pub rounds: u32,
}

impl Plan {
    /// The plan of that scale.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        let full = Self { factor: 1.75, accounts: 1_000_000, time: Duration::from_secs(3), rounds: 3 };
        match scale {
            Scale::Quick => Self { factor: 0.2, time: Duration::from_secs(1), ..full },
            Scale::Full | Scale::Paper => full,
        }
    }

    /// Just enough to see it work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { factor: 0.01, accounts: 1_000, time: Duration::from_millis(20), rounds: 1 }
    }
}

/// What the rounds gave.
#[derive(Default)]
struct Found {
    rate_alone: Series,
    rate_beside: Series,
    load_alone: Series,
    load_beside: Series,
    /// Of the loads beside transactions: their commits, and the longest transaction.
    install: Series,
    stall: Series,
}

/// Runs it.
///
/// # Errors
/// When there is no place for the file, or ours refuses a statement; a wrong answer stands in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    report.progress(format_args!("writing the line items of scale factor {}", plan.factor));
    let written = write_line_items(plan.factor, directory.path())?;
    let bytes = std::fs::metadata(directory.path().join("lineitem.csv"))?.len();
    report.note(format!("{} rows, {} MB; {PAPER}", written.0, bytes / 1_000_000));
    let database = Database::in_memory()?;
    let connection = database.connect()?;
    connection.execute("CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)")?;
    let accounts = format!("INSERT INTO account SELECT n, 0 FROM generate_series(0, {}) s (n)", plan.accounts - 1);
    connection.execute(&accounts)?;
    let (mut found, mut transactions) = (Found::default(), 0);
    for round in 0..plan.rounds {
        report.progress(format_args!("round {}", round + 1));
        let alone = Work { accounts: plan.accounts, seed: u64::from(round), until: Until::Time(plan.time) };
        let done = alone.run(&connection)?;
        transactions += done.count;
        found.rate_alone.push(done.rate());
        let (load, _) = load(&connection, directory.path())?;
        found.load_alone.push(load);
        check_rows("a load alone", &connection, written, report)?;
        transactions += beside(&database, &connection, directory.path(), &plan, &mut found)?;
        check_rows("a load beside transactions", &connection, written, report)?;
    }
    let sum: i64 = connection.query_row("SELECT CAST(sum(balance) AS BIGINT) FROM account", ())?.get(0)?;
    if sum as u64 != transactions {
        report.wrong(format!("the accounts have {sum} after {transactions} transactions"));
    }
    put(&found, report)
}

/// A load beside transactions; returns how many there were.
fn beside(
    database: &Database,
    connection: &Connection,
    folder: &Path,
    plan: &Plan,
    found: &mut Found,
) -> Result<u64, Failure> {
    let over = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        let transactions = scope.spawn(|| {
            let connection = database.connect()?;
            Work { accounts: plan.accounts, seed: 77, until: Until::Over(&over) }.run(&connection)
        });
        let loaded = load(connection, folder);
        over.store(true, Ordering::Release);
        let done = transactions.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok::<_, Failure>((done, loaded?))
    });
    let (done, (load, install)) = done?;
    found.rate_beside.push(done.rate());
    found.load_beside.push(load);
    found.install.push(install);
    found.stall.push(done.longest.as_secs_f64() * 1e3);
    Ok(done.count)
}

/// Milliseconds of a load into a new table, and of its commit.
fn load(connection: &Connection, folder: &Path) -> Result<(f64, f64), Failure> {
    let file = folder.join("lineitem.csv").display().to_string().replace('\'', "''");
    connection.execute("DROP TABLE IF EXISTS lineitem")?;
    connection.execute(&format!("CREATE TABLE lineitem ({LINE_ITEM_COLUMNS})"))?;
    let start = Instant::now();
    connection.execute("BEGIN")?;
    connection.execute(&format!("COPY lineitem FROM '{file}' (FORMAT csv, HEADER true)"))?;
    let commit = Instant::now();
    connection.execute("COMMIT")?;
    Ok((start.elapsed().as_secs_f64() * 1e3, commit.elapsed().as_secs_f64() * 1e3))
}

/// Transactions of one thread.
struct Work<'a> {
    accounts: u64,
    seed: u64,
    until: Until<'a>,
}

enum Until<'a> {
    Time(Duration),
    Over(&'a AtomicBool),
}

/// What was done.
struct Done {
    count: u64,
    time: Duration,
    longest: Duration,
}

impl Done {
    fn rate(&self) -> f64 {
        self.count as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

impl Work<'_> {
    fn run(&self, connection: &Connection) -> Result<Done, Failure> {
        let statement = connection.prepare("UPDATE account SET balance = balance + 1 WHERE id = $1")?;
        let mut random = Random::new(self.seed + 1);
        let (begun, mut count, mut longest) = (Instant::now(), 0, Duration::ZERO);
        let mut before = begun;
        loop {
            let is_over = match &self.until {
                Until::Time(time) => before - begun >= *time,
                Until::Over(over) => over.load(Ordering::Acquire),
            };
            if is_over && count > 0 {
                return Ok(Done { count, time: before - begun, longest });
            }
            let id = (random.draw() % self.accounts) as i64;
            statement.execute((id,))?;
            count += 1;
            let now = Instant::now();
            longest = longest.max(now - before);
            before = now;
        }
    }
}

/// Puts the figures down.
fn put(found: &Found, report: &mut Report) -> Result<(), Failure> {
    let Found { rate_alone, rate_beside, load_alone, load_beside, install, stall } = found;
    let mut add = |case: &str, metric, unit, series: &Series, beside: Option<(&str, &Series)>, reach: Option<Reach>| {
        let Some(mut figure) = Figure::of(case, metric, unit, series) else { return Ok(()) };
        if let Some((name, value)) = beside.and_then(|(name, series)| Some((name, series.median()?))) {
            figure = figure.beside(name, value);
        }
        figure.reach = reach;
        report.add(figure)
    };
    add("transactions alone", "rate", Unit::PerSecond, rate_alone, None, None)?;
    let reach = Some(Reach::OfYardstick(RATE_SHARE_MIN));
    add("transactions beside a load", "rate", Unit::PerSecond, rate_beside, Some(("alone", rate_alone)), reach)?;
    add("transactions beside a load", "longest", Unit::Milliseconds, stall, None, None)?;
    add("load alone", "time", Unit::Milliseconds, load_alone, None, None)?;
    let reach = Some(Reach::AtMostOfYardstick(LOAD_TIMES_MAX));
    add("load beside transactions", "time", Unit::Milliseconds, load_beside, Some(("alone", load_alone)), reach)?;
    let reach = Some(Reach::AtMost(INSTALL_MAX));
    Ok(add("load beside transactions", "commit", Unit::Milliseconds, install, None, reach)?)
}
