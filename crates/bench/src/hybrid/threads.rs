//! Two threads with disjoint keys against one thread.

use super::bench::Bench;
use super::lanes::Work;
use crate::duel::Duel;
use crate::experiment::Failure;
use crate::report::{Figure, Reach, Unit};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    const ALL: [Work; 4] = [Work::Select, Work::Insert, Work::Update, Work::Delete];
    let mut rates = ALL.map(|_| (Duel::default(), Duel::default()));
    for round in 1..=bench.plan.rounds {
        for (work, (one, two)) in ALL.into_iter().zip(&mut rates) {
            bench.report.progress(format_args!("{}, one and two threads, round {round}", work.name()));
            one.ours(bench.timed(work, 1, "off", bench.plan.time)?.sample());
            two.ours(bench.timed(work, 2, "off", bench.plan.time)?.sample());
        }
        bench.tidy()?;
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
