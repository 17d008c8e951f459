//! One thread, one kind of statement: look-ups and upserts.

use super::bench::Bench;
use super::lanes::Work;
use crate::duel::Duel;
use crate::experiment::Failure;
use crate::peers::Engine;
use crate::report::Promise;

const PEERS: [Engine; 2] = [Engine::SqliteMemory, Engine::DuckDbMemory];

/// Look-ups by key, uniformly random, all columns read.
pub(super) fn selects(bench: &mut Bench<'_>) -> Result<(), Failure> {
    rounds(bench, Work::Select, Promise { rate: Some(300_000.0), p99_us: Some(10.0), ..Promise::default() })
}

/// Upserts of which half find their row.
pub(super) fn upserts(bench: &mut Bench<'_>) -> Result<(), Failure> {
    rounds(bench, Work::Upsert, Promise { rate: Some(120_000.0), ..Promise::default() })
}

fn rounds(bench: &mut Bench<'_>, work: Work, promise: Promise) -> Result<(), Failure> {
    let mut duel = Duel::default();
    bench.settle()?;
    for round in 1..=bench.plan.rounds {
        bench.report.progress(format_args!("{}, round {round}", work.name()));
        let run = bench.timed(work, 1, "off", bench.plan.time)?;
        duel.ours(run.sample());
        bench.tidy()?;
        bench.peers(work.peer_case(), &PEERS, &mut duel);
    }
    Ok(bench.report.add_duel(work.name(), &duel, promise)?)
}
