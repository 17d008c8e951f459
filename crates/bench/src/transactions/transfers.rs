//! Part `transfers`: money between two accounts, with a line of audit, by one-shot calls; alone and beside threads that
//! sum all balances.
//!
//! 1. A transfer is drawn: two accounts and an amount, made before its clock starts;
//! 2. it reads both balances, writes both and inserts its audit row, in a transaction that runs again after 40001;
//! 3. after each run the sum of the balances must be what it was, and the audit rows those of the acknowledged commits;
//!    at the end each balance must be what its audit rows make of it.
//!
//! Invariants: audit row `first + at * threads + lane` belongs to transfer `at` of a lane. A sum that sees half a
//! transfer is a wrong answer.

use std::time::{Duration, Instant};

use mainstem::{Connection, Database, OpenOptions, Transaction};

use super::Plan;
use crate::duel::{Duel, Sample};
use crate::experiment::{Failure, Settings};
use crate::keys::{Random, mix};
use crate::latency::Recorder;
use crate::report::{Figure, Promise, Report, Unit};
use crate::sessions;

/// What each account has at the beginning.
const BALANCE: i64 = 1_000_000;
/// Threads that sum.
const SUMS: u64 = 2;
/// Transfers a second that are to be reached.
const RATE: f64 = 40_000.0;

const TABLES: [&str; 2] = [
    "CREATE TABLE account (id BIGINT PRIMARY KEY, balance INTEGER)",
    "CREATE TABLE audit (id BIGINT PRIMARY KEY, lane BIGINT, source BIGINT, target BIGINT, amount INTEGER)",
];
const SELECT: &str = "SELECT balance FROM account WHERE id = $1";
const UPDATE: &str = "UPDATE account SET balance = $2 WHERE id = $1";
const INSERT: &str = "INSERT INTO audit VALUES ($1, $2, $3, $4, $5)";
const SUM: &str = "SELECT sum(balance) FROM account";
const LANES: &str = "SELECT lane, count(*), min(id), max(id) FROM audit WHERE id >= $1 GROUP BY lane ORDER BY lane";
/// Accounts whose balance is not what their audit rows make of it.
const DISAGREEING: &str = "SELECT count(*) FROM account AS a LEFT JOIN (SELECT id, sum(change) AS change FROM \
     (SELECT source AS id, -amount AS change FROM audit UNION ALL SELECT target, amount FROM audit) AS c GROUP BY id) \
     AS m ON m.id = a.id WHERE a.balance <> $1 + coalesce(m.change, 0)";

/// Who works at once.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    threads: u64,
    /// Threads that sum all the while.
    sums: u64,
    rate: f64,
}

const CASES: [Case; 4] = [
    Case { name: "transfers, 1 thread", threads: 1, sums: 0, rate: RATE },
    Case { name: "transfers, 4 threads", threads: 4, sums: 0, rate: RATE },
    Case { name: "transfers, 1 thread beside 2 that sum", threads: 1, sums: SUMS, rate: RATE / 3.0 },
    Case { name: "transfers, 4 threads beside 2 that sum", threads: 4, sums: SUMS, rate: RATE / 3.0 },
];

/// What the rounds of a case gave.
#[derive(Default)]
struct Found {
    transfers: Duel,
    sums: Duel,
    /// Transfers that ran again after 40001.
    again: u64,
    commits: u64,
}

pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let options = OpenOptions::new().synchronous("normal".parse()?);
    let database = Database::open_with(directory.path().join("transfers"), options)?;
    let mut bank = Bank::load(&database, plan.accounts)?;
    let mut found = CASES.map(|_| Found::default());
    for round in 1..=plan.rounds {
        for (case, found) in CASES.into_iter().zip(&mut found) {
            report.progress(format_args!("{}, round {round}", case.name));
            bank.round(case, plan.time, found)?;
        }
    }
    bank.check_balances()?;
    for (case, found) in CASES.into_iter().zip(&found) {
        report.add_duel(case.name, &found.transfers, Promise { rate: Some(case.rate), ..Promise::default() })?;
        let again = found.again as f64 * 1e3 / found.commits.max(1) as f64;
        report.add(Figure::once(case.name, "run again of 1,000", Unit::Count, again))?;
        if let Some(figure) = Figure::of(case.name, "sums", Unit::PerSecond, &found.sums.series(|s| s.rate)) {
            report.add(figure)?;
        }
    }
    drop(bank);
    Ok(database.close()?)
}

/// What one thread did: its commits or sums are those whose durations were recorded.
#[derive(Default)]
struct Lane {
    latency: Recorder,
    elapsed: Duration,
    /// Runs of transfers, those included that met a conflict.
    runs: u64,
}

/// A transfer.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    id: i64,
    lane: i64,
    source: i64,
    target: i64,
    amount: i64,
}

/// The accounts, and what is known of them.
struct Bank<'a> {
    database: &'a Database,
    connection: Connection,
    accounts: u64,
    /// The id of the next run's first audit row.
    next: u64,
}

impl<'a> Bank<'a> {
    fn load(database: &'a Database, accounts: u64) -> Result<Self, Failure> {
        let connection = database.connect()?;
        TABLES.iter().try_for_each(|sql| connection.execute(sql).map(drop))?;
        let last = accounts.saturating_sub(1);
        connection
            .execute(&format!("INSERT INTO account SELECT x, {BALANCE} FROM generate_series(0, {last}) AS g (x)"))?;
        Ok(Self { database, connection, accounts, next: 0 })
    }

    /// Runs `case` for `time`, checks what it left behind, and enters it into `found`.
    fn round(&mut self, case: Case, time: Duration, found: &mut Found) -> Result<(), Failure> {
        let connect = || sessions::connect(self.database, "normal");
        let lanes =
            sessions::together(case.threads + case.sums, connect, |connection, thread| match thread < case.threads {
                true => self.transfers(connection, case.threads, thread, time),
                false => self.sums(connection, time),
            })?;
        let (transfers, sums) = lanes.split_at(case.threads as usize);
        self.check(transfers)?;
        let of = |lanes: &[Lane]| Sample::of_threads(lanes.iter().map(|lane| (&lane.latency, lane.elapsed)));
        found.transfers.ours(of(transfers));
        if case.sums > 0 {
            found.sums.ours(of(sums));
        }
        let commits = transfers.iter().map(|lane| lane.latency.count()).sum::<u64>();
        found.again += transfers.iter().map(|lane| lane.runs).sum::<u64>() - commits;
        found.commits += commits;
        let most = transfers.iter().map(|lane| lane.latency.count()).max().unwrap_or(0);
        self.next += most * case.threads;
        Ok(())
    }

    fn transfers(&self, connection: &Connection, threads: u64, lane: u64, time: Duration) -> Result<Lane, Failure> {
        let mut random = Random::new(mix(self.next) ^ lane);
        let mut done = Lane::default();
        let start = Instant::now();
        while start.elapsed() < time || done.latency.count() == 0 {
            let id = self.next + done.latency.count() * threads + lane;
            let transfer = self.draw(&mut random, id, lane);
            let begun = Instant::now();
            connection.run_transaction(|transaction| {
                done.runs += 1;
                run_transfer(transaction, transfer)
            })?;
            done.latency.record(begun.elapsed());
        }
        done.elapsed = start.elapsed();
        Ok(done)
    }

    /// A transfer between two accounts, never one.
    fn draw(&self, random: &mut Random, id: u64, lane: u64) -> Transfer {
        let source = random.below(self.accounts);
        let target = (source + 1 + random.below(self.accounts - 1)) % self.accounts;
        let [id, lane, source, target] = [id, lane, source, target].map(|number| number as i64);
        Transfer { id, lane, source, target, amount: random.within(1..=100) }
    }

    fn sums(&self, connection: &Connection, time: Duration) -> Result<Lane, Failure> {
        let mut done = Lane::default();
        let start = Instant::now();
        while start.elapsed() < time || done.latency.count() == 0 {
            let begun = Instant::now();
            self.check_sum(connection)?;
            done.latency.record(begun.elapsed());
        }
        done.elapsed = start.elapsed();
        Ok(done)
    }

    fn check_sum(&self, connection: &Connection) -> Result<(), Failure> {
        let (sum, wanted) = (connection.query_row(SUM, ())?.get::<i64>(0)?, self.accounts as i64 * BALANCE);
        match sum == wanted {
            true => Ok(()),
            false => Err(Failure::Wrong(format!("the balances add up to {sum} instead of {wanted}"))),
        }
    }

    /// The sum of the balances, and the audit rows of the run that `lanes` made.
    fn check(&self, lanes: &[Lane]) -> Result<(), Failure> {
        self.check_sum(&self.connection)?;
        let mut found = Vec::new();
        for row in self.connection.query_with(LANES, [self.next as i64])? {
            let row = row?;
            found.push([row.get::<i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
        }
        let (threads, next) = (lanes.len() as i64, self.next as i64);
        // Ids of a lane lie `threads` apart and are unique: as many as lie between the first and the last are all.
        let wanted: Vec<[i64; 4]> = (0..)
            .zip(lanes)
            .map(|(lane, done)| (lane, done.latency.count() as i64))
            .map(|(lane, commits)| [lane, commits, next + lane, next + lane + (commits - 1) * threads])
            .collect();
        match found == wanted {
            true => Ok(()),
            false => Err(Failure::Wrong(format!("the audit rows of the lanes are {found:?} instead of {wanted:?}"))),
        }
    }

    /// Each balance, by its audit rows.
    fn check_balances(&self) -> Result<(), Failure> {
        let accounts: i64 = self.connection.query_row(DISAGREEING, [BALANCE])?.get(0)?;
        match accounts {
            0 => Ok(()),
            _ => Err(Failure::Wrong(format!("{accounts} balances are not what their audit rows make of them"))),
        }
    }
}

/// Two SELECTs, two UPDATEs and an INSERT by key.
fn run_transfer(transaction: &Transaction<'_>, transfer: Transfer) -> Result<(), Failure> {
    let Transfer { id, lane, source, target, amount } = transfer;
    let balance = |account: i64| transaction.query_row(SELECT, [account])?.get::<i64>(0);
    let (from, to) = (balance(source)?, balance(target)?);
    let written = transaction.execute_with(UPDATE, [source, from - amount])?
        + transaction.execute_with(UPDATE, [target, to + amount])?
        + transaction.execute_with(INSERT, [id, lane, source, target, amount])?;
    match written {
        3 => Ok(()),
        _ => Err(Failure::Wrong(format!("a transfer wrote {written} rows instead of 3"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(database: &Database) -> (Bank<'_>, Vec<Lane>) {
        let bank = Bank::load(database, 100).unwrap();
        let lanes = (0..2).map(|lane| bank.transfers(&bank.connection, 2, lane, Duration::from_millis(5)).unwrap());
        let lanes = lanes.collect();
        (bank, lanes)
    }

    #[test]
    fn what_is_lost_or_made_up_is_found() {
        for (sql, why) in [
            ("UPDATE account SET balance = balance + 1 WHERE id = 3", "add up to"),
            ("DELETE FROM audit WHERE id = 0", "audit rows of the lanes"),
            ("INSERT INTO audit VALUES (100000, 1, 1, 2, 3)", "audit rows of the lanes"),
        ] {
            let database = Database::in_memory().unwrap();
            let (bank, lanes) = bank(&database);
            bank.check(&lanes).unwrap();
            bank.connection.execute(sql).unwrap();
            assert!(bank.check(&lanes).is_err_and(|e| e.to_string().contains(why)), "{sql}");
        }
    }

    #[test]
    fn balances_follow_from_audit_rows() {
        let database = Database::in_memory().unwrap();
        let (bank, lanes) = bank(&database);
        bank.check_balances().unwrap();
        bank.connection.execute("UPDATE account SET balance = balance + id - 2 WHERE id IN (1, 3)").unwrap();
        // The sum is as before.
        bank.check(&lanes).unwrap();
        assert!(bank.check_balances().is_err_and(|e| e.to_string().starts_with("2 balances")));
    }

    #[test]
    fn an_account_that_is_not_there_is_no_transfer() {
        let database = Database::in_memory().unwrap();
        let (bank, _) = bank(&database);
        bank.connection.execute("DELETE FROM account").unwrap();
        assert!(bank.transfers(&bank.connection, 1, 0, Duration::ZERO).is_err());
        assert!(bank.sums(&bank.connection, Duration::ZERO).is_err());
    }
}
