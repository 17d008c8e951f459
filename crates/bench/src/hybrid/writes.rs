//! Writes of one row, each its own transaction: sustained without waiting for the disk, and waiting for it.

use super::bench::Bench;
use super::lanes::Work;
use crate::duel::{Duel, Series};
use crate::experiment::Failure;
use crate::fsync;
use crate::peers::Engine;
use crate::report::{Figure, Promise, Reach, Unit};

/// Threads that share fsyncs.
const MANY: u64 = 16;
/// Commits whose log bytes are counted.
const PROBE_COMMITS: i64 = 100;

/// `synchronous = off`. Deletes follow inserts, so that the table is as large after both as before; merges run all the
/// while.
pub(super) fn sustained(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let promise = Promise { rate: Some(150_000.0), p99_us: Some(50.0), worst_ms: Some(50.0), ..Promise::default() };
    let engines = [Engine::SqliteMemory, Engine::DuckDbMemory];
    let mut duels = Work::WRITES.map(|_| Duel::default());
    for round in 1..=bench.plan.rounds {
        for (work, duel) in Work::WRITES.into_iter().zip(&mut duels) {
            bench.report.progress(format_args!("{}, synchronous = off, round {round}", work.name()));
            duel.ours(bench.timed(work, 1, "off", bench.plan.sustained)?.sample());
        }
        bench.tidy()?;
        for (work, duel) in Work::WRITES.into_iter().zip(&mut duels) {
            bench.peers(work.peer_case(), &engines, duel);
        }
    }
    for (work, duel) in Work::WRITES.into_iter().zip(&duels) {
        bench.report.add_duel(&format!("{}, sync off", work.name()), duel, promise)?;
    }
    Ok(())
}

/// What one kind of write gave with `synchronous = full`.
#[derive(Default)]
struct Durable {
    one: Duel,
    /// What fdatasync alone allows.
    disk: Series,
    many: Duel,
    /// Commits an fsync.
    shared: Series,
}

/// `synchronous = full`: one thread beside what the disk alone allows, then many threads.
pub(super) fn durable(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let mut all = Work::WRITES.map(|_| Durable::default());
    for round in 1..=bench.plan.rounds {
        for (work, durable) in Work::WRITES.into_iter().zip(&mut all) {
            bench.report.progress(format_args!("{}, synchronous = full, round {round}", work.name()));
            bench.settle()?;
            let bytes = log_bytes(bench, work)?;
            durable.one.ours(bench.timed(work, 1, "full", bench.plan.time)?.sample());
            durable.disk.push(fsync::append_and_sync(bench.directory, bytes, bench.plan.time / 2)?.rate);
            let (commits, fsyncs) = log_counts(bench)?;
            durable.many.ours(bench.timed(work, MANY, "full", bench.plan.time)?.sample());
            let (commits_after, fsyncs_after) = log_counts(bench)?;
            durable.shared.push((commits_after - commits) as f64 / (fsyncs_after - fsyncs).max(1) as f64);
        }
        bench.tidy()?;
        for (work, durable) in Work::WRITES.into_iter().zip(&mut all) {
            bench.peers(work.peer_case(), &[Engine::SqliteDisk], &mut durable.one);
        }
    }
    for (work, durable) in Work::WRITES.into_iter().zip(&all) {
        report(bench, work.name(), durable)?;
    }
    Ok(())
}

fn report(bench: &mut Bench<'_>, name: &str, durable: &Durable) -> Result<(), Failure> {
    let case = format!("{name}, sync full, 1 thread");
    let rate = Figure::of(&case, "rate", Unit::PerSecond, &durable.one.series(|s| s.rate));
    if let (Some(rate), Some(disk)) = (rate, durable.disk.median()) {
        bench.report.add(rate.beside("fdatasync alone", disk).to_reach(Reach::OfYardstick(0.8)))?;
    }
    bench.report.add_duel(&case, &durable.one, Promise::default())?;
    let case = format!("{name}, sync full, {MANY} threads");
    bench.report.add_duel(&case, &durable.many, Promise::default())?;
    if let Some(shared) = Figure::of(&case, "commits per fsync", Unit::Count, &durable.shared) {
        bench.report.add(shared.to_reach(Reach::AtLeast(6.0)))?;
    }
    Ok(())
}

/// Bytes of log that a commit takes, from a few of them. They belong to rows that the books know.
fn log_bytes(bench: &mut Bench<'_>, work: Work) -> Result<usize, Failure> {
    let bytes = |bench: &Bench<'_>| bench.number("SELECT bytes FROM mainstem.wal");
    let commits = |bench: &Bench<'_>| bench.number("SELECT commits FROM mainstem.wal");
    let (bytes_before, commits_before) = (bytes(bench)?, commits(bench)?);
    while commits(bench)? - commits_before < PROBE_COMMITS {
        // Short, so that rows are left to work on.
        bench.timed(work, 1, "off", bench.plan.time / 20)?;
    }
    let (grown, commits) = (bytes(bench)? - bytes_before, commits(bench)? - commits_before);
    // A checkpoint in between shortens the log: then a row and its record are as good a guess.
    let per_commit = grown / commits.max(1);
    Ok(usize::try_from(per_commit).ok().filter(|&bytes| bytes > 0).unwrap_or(128))
}

fn log_counts(bench: &Bench<'_>) -> Result<(i64, i64), Failure> {
    let row = bench.connection.query_row("SELECT commits, fsyncs FROM mainstem.wal", ())?;
    Ok((row.get(0)?, row.get(1)?))
}
