//! Part `curves`: how the time of a query follows from how many rows it selects, for columns of each encoding.
//!
//! Comes in: the plan. Goes out: for each encoding, and 1, 4 and 17 columns of it, the time at each selectivity beside
//! DuckDB's, the worst step between neighbours, and the step down to all rows (`cliffs`): at most 2 x what each should
//! take.
//!
//! 1. A table of each encoding is loaded here and by DuckDB; columns that have got another one are noted.
//! 2. `SELECT count(*) FILTER (WHERE s >= 0), sum(c1), ... FROM t WHERE s < bound` is compared at each selectivity.
//!    Texts are consumed by `max`. Metadata tells sums and `max` of all rows, but not what a FILTER counts: so rows are
//!    read.
//! 3. Rounds go over all selectivities of a curve, the engines in turn.

use mainstem::Database;

use super::cliffs::{self, Cliff};
use super::columns::{self, KINDS, Kind, SELECTOR};
use super::{Plan, load, open};
use crate::duel::Duel;
use crate::experiment::{Failure, Settings, note};
use crate::peers::{Engine, Told};
use crate::report::{Figure, Reach, Report, Unit};
use crate::suite::{self, Engines, milliseconds};

/// How much of the table is selected, in percent.
const PERCENTS: [f64; 10] = [0.001, 0.01, 0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 90.0, 100.0];
/// Columns that are read.
const WIDTHS: [usize; 3] = [1, 4, columns::COLUMNS];
/// What a step may take of what it should.
const STEP: f64 = 2.0;

/// What finds a step of a curve.
type Worst = fn(&[cliffs::Point]) -> Option<Cliff>;

const STEPS: [(&str, Worst); 2] = [("worst step", cliffs::worst), ("down to all rows", cliffs::down_to_all)];

/// Measures the part.
///
/// # Errors
/// When a table cannot be loaded; what is wrong with single queries stands in the report.
pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    for kind in KINDS {
        let directory = settings.scratch()?;
        report.progress(format_args!("curves: loading {} rows, {}", plan.curve_rows, kind.name));
        let script = kind.script(plan.curve_rows);
        let peers = suite::start_peers(settings, Engine::DuckDbMemory, &script, directory.path());
        let database = open(&directory.path().join("db"), true)?;
        let connection = load(&database, &script)?;
        note_encodings(&kind, &database, report)?;
        let mut engines = Engines { connection: &connection, local: None, peers };
        for width in WIDTHS {
            let case = format!("{}, {width} column{}", kind.name, if width == 1 { "" } else { "s" });
            report.progress(&case);
            let outcome = curve(&case, &kind, width, &mut engines, plan, report);
            note(&case, outcome, report)?;
        }
        engines.peers.notes().iter().for_each(|note| report.note(note));
        drop(engines);
        drop(connection);
        database.close()?;
    }
    Ok(())
}

/// Says so where columns have another encoding than they are there for.
fn note_encodings(kind: &Kind, database: &Database, report: &mut Report) -> Result<(), Failure> {
    let found = columns::encodings(database)?;
    if !found.iter().eq([&kind.encoding]) {
        report.note(format!("{}: the columns are encoded as {found:?}", kind.name));
    }
    Ok(())
}

/// A query of a curve, and its rounds.
struct Point {
    percent: f64,
    name: String,
    sql: String,
    duel: Duel,
}

impl Point {
    fn of(case: &str, kind: &Kind, width: usize, percent: f64) -> Self {
        let consumed: Vec<String> = (1..=width).map(|column| format!("{}(c{column})", kind.aggregate)).collect();
        let bound = (SELECTOR as f64 * percent / 100.0).ceil() as u64;
        let sql = format!("SELECT count(*) FILTER (WHERE s >= 0), {} FROM t WHERE s < {bound}", consumed.join(", "));
        Self { percent, name: format!("{case}, {percent} %"), sql, duel: Duel::default() }
    }

    fn told(&self) -> Told<'_> {
        suite::text(&self.name, &self.sql)
    }
}

/// Measures one curve. A round goes over all of its points: what disturbs one for a while is not held against a point.
fn curve(
    case: &str,
    kind: &Kind,
    width: usize,
    engines: &mut Engines<'_>,
    plan: Plan,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut points = PERCENTS.map(|percent| Point::of(case, kind, width, percent));
    for point in &points {
        engines.compare(&point.told())?;
    }
    for _ in 0..plan.rounds {
        for Point { name, sql, duel, .. } in &mut points {
            engines.round(&suite::text(name, sql), plan.curve_time, duel)?;
        }
    }
    let (mut ours, mut theirs, mut peer) = (Vec::new(), Vec::new(), String::new());
    for point in &points {
        let times = point.duel.series(milliseconds);
        let Some(figure) = Figure::of(&point.name, "time", Unit::Milliseconds, &times) else { continue };
        ours.push((point.percent, figure.value));
        report.add(match point.duel.yardsticks(milliseconds).into_iter().next() {
            Some((name, time)) => {
                theirs.push((point.percent, time));
                peer = name;
                figure.beside(&peer, time)
            }
            None => figure,
        })?;
    }
    for (metric, worst) in STEPS {
        let Some(cliff) = worst(&ours) else { continue };
        if cliff.times > STEP {
            let (percent, times) = (cliff.percent, cliff.times);
            report.note(format!("{case}, {metric}: a cliff at {percent} %, {times:.1} x what it should take"));
        }
        let figure = Figure::once(case, metric, Unit::Times, cliff.times).to_reach(Reach::AtMost(STEP));
        report.add(match worst(&theirs) {
            Some(theirs) => figure.beside(&peer, theirs.times),
            None => figure,
        })?;
    }
    Ok(())
}
