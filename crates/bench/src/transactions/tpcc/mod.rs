//! Part `tpcc`: a mix like TPC-C's by one thread, here and in SQLite in the same process.
//!
//! Comes in: the size of the warehouse. Goes out: transactions a second of the whole mix, and the median of each kind.
//!
//! 1. `schema` has tables and statements, `engine` what an engine has to do with them: `ours`, `sqlite`;
//! 2. `load` fills both with the same rows;
//! 3. both run the same transactions (`inputs` draws them, `mix` runs them), and what each reads is compared;
//! 4. rounds of both, in turn; afterwards `check` holds each to TPC-C's conditions 1 to 3.
//!
//! Invariants: both write to files, with a log that is written before COMMIT returns and not synced (`synchronous =
//! normal`, WAL); a transaction is drawn before its clock starts. It does not own: TPC-C's rules of measuring.

mod check;
mod engine;
mod inputs;
mod load;
mod mix;
mod ours;
mod schema;
mod sqlite;

#[cfg(test)]
mod tests;

use std::time::Instant;

use mainstem::{Database, OpenOptions};

use super::Plan;
use crate::duel::{Duel, Sample};
use crate::experiment::{Failure, Settings};
use crate::latency::Recorder;
use crate::report::{Figure, Promise, Report, Unit};
use engine::{Engine, Session};
pub use inputs::Size;
use inputs::{Input, Inputs, Kind};
use ours::Ours;
use sqlite::Sqlite;

/// As the report names the whole mix.
const MIX: &str = "mix like TPC-C's";
/// Seed of the transactions whose answers are compared; rounds have others.
const COMPARED_SEED: u64 = 7;

/// An engine while the part runs.
struct Side<'a> {
    session: Session<'a>,
    inputs: Inputs,
    /// Durations of each kind, in the order of the mix.
    kinds: [Recorder; Kind::MIX.len()],
}

impl<'a> Side<'a> {
    /// Loads `engine`.
    fn load(engine: &'a dyn Engine, size: Size) -> Result<Self, Failure> {
        let session = Session::new(engine);
        load::load(&session, size)?;
        check::check(&session)?;
        let inputs = Inputs::new(size, COMPARED_SEED + 1);
        Ok(Self { session, inputs, kinds: std::array::from_fn(|_| Recorder::default()) })
    }

    /// A round.
    fn round(&mut self, plan: Plan) -> Result<Sample, Failure> {
        let Self { session, inputs, kinds } = self;
        let sample = Sample::timed(
            plan.time,
            || inputs.draw(),
            |input| {
                let start = Instant::now();
                mix::run(session, &input)?;
                if let Some(recorder) = kinds.get_mut(input.kind as usize) {
                    recorder.record(start.elapsed());
                }
                Ok::<_, Failure>(())
            },
        )?;
        check::check(session)?;
        Ok(sample)
    }
}

pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let options = OpenOptions::new().synchronous("normal".parse()?);
    let database = Database::open_with(directory.path().join("tpcc"), options)?;
    let connection = database.connect()?;
    report.progress("loading the warehouse");
    let ours = Ours::new(&connection)?;
    let mut ours = Side::load(&ours, plan.size)?;
    match &settings.peers {
        None => rounds(plan, &mut ours, None, report)?,
        Some(_) => {
            let file = sqlite::open(&directory.path().join("tpcc.sqlite"))?;
            let theirs = Sqlite::new(&file)?;
            let mut theirs = Side::load(&theirs, plan.size).map_err(as_theirs)?;
            compare(plan, &ours.session, &theirs.session)?;
            rounds(plan, &mut ours, Some(&mut theirs), report)?;
        }
    }
    Ok(())
}

/// A wrong answer of SQLite's is none of ours.
fn as_theirs(failure: Failure) -> Failure {
    match failure {
        Failure::Wrong(what) => Failure::Broken(format!("SQLite: {what}")),
        other => other,
    }
}

/// Both run the same transactions, and read the same in each.
fn compare(plan: Plan, ours: &Session<'_>, theirs: &Session<'_>) -> Result<(), Failure> {
    let mut inputs = Inputs::new(plan.size, COMPARED_SEED);
    for _ in 0..plan.compared {
        let input = inputs.draw();
        mix::run(ours, &input)?;
        mix::run(theirs, &input).map_err(as_theirs)?;
        same(&input, ours.take_digest(), theirs.take_digest())?;
    }
    Ok(())
}

fn same(input: &Input, found: i64, expected: i64) -> Result<(), Failure> {
    match found == expected {
        true => Ok(()),
        false => Err(Failure::Wrong(format!("what {input:?} reads adds up to {found}, in SQLite to {expected}"))),
    }
}

fn rounds(
    plan: Plan,
    ours: &mut Side<'_>,
    mut theirs: Option<&mut Side<'_>>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut duel = Duel::default();
    for round in 1..=plan.rounds {
        report.progress(format_args!("{MIX}, round {round}"));
        duel.ours(ours.round(plan)?);
        if let Some(theirs) = theirs.as_deref_mut() {
            duel.other("SQLite", theirs.round(plan).map_err(as_theirs)?);
        }
    }
    report.add_duel(MIX, &duel, Promise { share: Some(1.0), ..Promise::default() })?;
    for (at, (kind, _)) in Kind::MIX.into_iter().enumerate() {
        let median = |side: &Side<'_>| side.kinds.get(at).map(|recorder| recorder.quantile(0.5).as_secs_f64() * 1e6);
        let figure = Figure::once(kind.name(), "p50", Unit::Microseconds, median(ours).unwrap_or_default());
        report.add(match theirs.as_deref().and_then(median) {
            Some(value) => figure.beside("SQLite", value),
            None => figure,
        })?;
    }
    Ok(())
}
