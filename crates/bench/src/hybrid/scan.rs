//! Scans of the whole table: alone, and beside a thread that writes as fast as it can.
//!
//! The writer adds to one integer of a row what it takes from another, so every snapshot has the same sums: a scan that
//! sees half a transaction, or a row twice, is found out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mainstem::Database;

use super::bench::Bench;
use super::rows::{COLUMNS, Keys};
use crate::duel::{Duel, Sample};
use crate::experiment::Failure;
use crate::latency::Recorder;
use crate::peers::Engine;
use crate::report::{Figure, Promise, Unit};
use crate::sessions;

/// Integer columns that the writer changes, and the one that updates set.
const MOVED: [usize; 2] = [3, 4];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let (mut alone, mut beside, mut writer) = (Duel::default(), Duel::default(), Duel::default());
    let wanted = sums(bench)?;
    for round in 1..=bench.plan.rounds {
        bench.report.progress(format_args!("scans, round {round}"));
        bench.settle()?;
        alone.ours(scans(bench, wanted)?);
        bench.peers("scan", &[Engine::DuckDbMemory], &mut alone);
        let stop = AtomicBool::new(false);
        let (scanned, written) = std::thread::scope(|scope| {
            let (database, keys, stop) = (&bench.database, bench.keys, &stop);
            let writing = scope.spawn(move || write(database, keys, u64::from(round), stop));
            let scanned = scans(bench, wanted);
            stop.store(true, Ordering::Relaxed);
            let panicked = || Err(Failure::Wrong("the writer panicked".into()));
            (scanned, writing.join().unwrap_or_else(|_| panicked()))
        });
        beside.ours(scanned?);
        writer.ours(written?);
    }
    bench.report.add_duel("rows scanned, all columns", &alone, Promise::default())?;
    let rate = Figure::of("rows scanned beside a writer", "rate", Unit::PerSecond, &beside.series(|s| s.rate));
    if let (Some(rate), Some(alone)) = (rate, alone.series(|s| s.rate).median()) {
        bench.report.add(rate.beside("without writer", alone))?;
    }
    Ok(bench.report.add_duel("UPDATE beside scans, sync off", &writer, Promise::default())?)
}

/// Row count, the sum of the two columns among which values move, and that of all others.
fn sums(bench: &Bench<'_>) -> Result<[i64; 3], Failure> {
    let columns: Vec<String> = (1..=COLUMNS).map(|column| format!("CAST(sum(c{column}) AS BIGINT)")).collect();
    let row = bench.connection.query_row(&format!("SELECT count(*), {} FROM t", columns.join(", ")), ())?;
    let mut found = [row.get(0)?, 0, 0];
    for column in 1..=COLUMNS {
        found[if MOVED.contains(&column) { 1 } else { 2 }] += row.get::<i64>(column)?;
    }
    Ok(found)
}

/// Scans again and again; the rate counts rows.
fn scans(bench: &Bench<'_>, wanted: [i64; 3]) -> Result<Sample, Failure> {
    let mut latency = Recorder::default();
    let start = Instant::now();
    let mut last = start;
    while last - start < bench.plan.time {
        let found = sums(bench)?;
        if found != wanted {
            return Err(Failure::Wrong(format!("a scan found {found:?} instead of {wanted:?}")));
        }
        let now = Instant::now();
        latency.record(now - last);
        last = now;
    }
    Ok(Sample::of(latency.count() * bench.keys.rows(), (last - start).as_secs_f64(), &latency))
}

/// Moves values within rows until it is told to stop, once at least.
fn write(database: &Database, keys: Keys, round: u64, stop: &AtomicBool) -> Result<Sample, Failure> {
    let connection = sessions::connect(database, "off")?;
    let update = connection.prepare("UPDATE t SET c3 = c3 - 1, c4 = c4 + 1 WHERE k = $1")?;
    let mut latency = Recorder::default();
    let start = Instant::now();
    let mut last = start;
    let mut position = round * keys.rows() / 7;
    while !stop.load(Ordering::Relaxed) || latency.count() == 0 {
        let written = update.execute([keys.loaded(position)])?;
        if written != 1 {
            return Err(Failure::Wrong(format!("an update by key wrote {written} rows")));
        }
        position += 1;
        let now = Instant::now();
        latency.record(now - last);
        last = now;
    }
    let spent: Duration = last - start;
    Ok(Sample::of(latency.count(), spent.as_secs_f64(), &latency))
}
