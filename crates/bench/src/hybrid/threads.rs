//! Two threads with disjoint keys against one thread.
//!
//! Each round measures them in both orders, and each pair begins when no merge runs: what a run leaves to be merged is
//! no burden of the other side alone.

use super::bench::Bench;
use super::lanes::Work;
use crate::duel::Duel;
use crate::experiment::Failure;
use crate::report::{Figure, Reach, Unit};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    const ALL: [Work; 4] = [Work::Select, Work::Insert, Work::Update, Work::Delete];
    let mut rates = ALL.map(|_| (Duel::default(), Duel::default()));
    for round in 1..=bench.plan.rounds {
        for order in [[1, 2], [2, 1]] {
            for (work, (one, two)) in ALL.into_iter().zip(&mut rates) {
                bench.report.progress(format_args!("{}, one and two threads, round {round}", work.name()));
                bench.settle()?;
                for threads in order {
                    let sample = bench.timed(work, threads, "off", bench.plan.time)?.sample();
                    if threads == 1 { one.ours(sample) } else { two.ours(sample) }
                }
            }
            bench.tidy()?;
        }
    }
    for (work, (one, two)) in ALL.into_iter().zip(&rates) {
        let case = format!("{}, two threads", work.name());
        let share = if work == Work::Select { 1.9 } else { 1.4 };
        let rate = Figure::of(&case, "rate", Unit::PerSecond, &two.series(|s| s.rate));
        if let (Some(rate), Some(alone)) = (rate, one.series(|s| s.rate).median()) {
            bench.report.add(rate.beside("one thread", alone).to_reach(Reach::OfYardstick(share)))?;
        }
    }
    Ok(())
}
