//! Experiment `plan`: statements beside the point path, prepared and as texts. Issue "Nothing planned twice, no cliff
//! beside the point path", section Figures.
//!
//! Comes in: the scale. Goes out: microseconds a statement, beside SQLite's through its C interface in the same
//! process, and DuckDB's, a process behind its Python binding: the cost of that call is a few microseconds of some
//! hundred.
//!
//! 1. Users, orders with a key of two columns, and tables of 1,000 and 100,000 rows (`tables`) are loaded, here, into
//!    a file of SQLite's and by the peer;
//! 2. before the first round of a case (`cases`) all engines answer the same values (`inputs`), and what they answer is
//!    compared: rows, and the sum of the whole numbers in them;
//! 3. each case runs in rounds, ours and the others' in turn (`ours`, `sqlite`, `bench/peers/statements.py`).
//!
//! Invariants: texts and values are made before the clock starts; what the parts change, none of them compares. A
//! statement that answers differently is a wrong answer, and the next one is measured all the same.

mod cases;
mod inputs;
mod ours;
mod sqlite;
mod tables;

#[cfg(test)]
mod tests;

use std::time::Duration;

use mainstem::{Connection, Database, OpenOptions};

use crate::duel::{Duel, Sample};
use crate::experiment::{Experiment, Failure, Scale, Settings, note};
use crate::peers::{Answer, Engine, Load, Peers};
use crate::report::{Promise, Report};
use cases::Case;
use inputs::{Inputs, Operation};
use ours::Ours;
use sqlite::Sqlite;

/// The entry in the list of experiments.
pub const EXPERIMENT: Experiment = Experiment {
    name: "plan",
    about: "statements beside the point path, beside SQLite and DuckDB",
    parts: &[
        ("keys", "prepared statements on keys, parts and ranges of keys, and joins by them"),
        ("texts", "one-shot calls and texts with literals"),
        ("small", "ten small statements off the keys, plain and prepared"),
        ("medium", "prepared statements on 100,000 rows"),
        ("planning", "plans of texts never seen before, and a first call"),
    ],
    run: |settings, report| run(Plan::of(settings.scale), settings, report),
};

const PARTS: [(&str, &[Case]); 5] = [
    ("keys", cases::KEYS),
    ("texts", cases::TEXTS),
    ("small", cases::SMALL),
    ("medium", cases::MEDIUM),
    ("planning", cases::PLANNING),
];

const PEERS: [Engine; 1] = [Engine::DuckDbMemory];

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Users; each has four orders.
    pub users: u64,
    /// Rounds of each case.
    pub rounds: u32,
    /// A round.
    pub time: Duration,
}

impl Plan {
    /// The plan of that scale. There is no paper to repeat.
    #[must_use]
    pub fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { users: 20_000, rounds: 3, time: Duration::from_millis(100) },
            Scale::Full | Scale::Paper => Self { users: 500_000, rounds: 5, time: Duration::from_secs(1) },
        }
    }

    /// Just enough to see every case work.
    #[must_use]
    pub fn tiny() -> Self {
        Self { users: 1_000, rounds: 1, time: Duration::from_millis(2) }
    }
}

/// Operations whose answers are compared.
const COMPARED: u64 = 20;

/// Runs the parts that `settings` name, as `plan` says.
///
/// # Errors
/// When there is no place for the database, or the tables cannot be loaded; what is wrong with single statements stands
/// in the report.
pub fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let directory = settings.scratch()?;
    let options = OpenOptions::new().synchronous("off".parse()?);
    let database = Database::open_with(directory.path().join("db"), options)?;
    report.progress("loading users and orders");
    let script = tables::script(plan.users, tables::series);
    let (sqlite, peers) = match &settings.peers {
        Some(folder) => {
            let load = Load { rows: plan.users, directory: directory.path(), script: &script };
            (Some(Sqlite::load(plan.users, directory.path())?), Peers::start(folder, "statements.py", &PEERS, &load))
        }
        None => (None, Peers::none()),
    };
    let connection = database.connect()?;
    script.iter().try_for_each(|sql| connection.execute(sql).map(|_| ()))?;
    let mut bench = Bench { plan, connection: &connection, sqlite, peers, inputs: Inputs::new(plan.users), report };
    for (part, cases) in PARTS {
        if settings.wants(part) {
            bench.report.progress(part);
            cases.iter().try_for_each(|case| bench.measure_or_note(*case))?;
        }
    }
    for note in bench.peers.notes() {
        bench.report.note(note);
    }
    drop(connection);
    database.close()?;
    Ok(())
}

/// The experiment while it runs.
struct Bench<'a> {
    plan: Plan,
    connection: &'a Connection,
    sqlite: Option<Sqlite>,
    peers: Peers,
    inputs: Inputs,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Measures `case`; what ends that alone is put down in the report.
    fn measure_or_note(&mut self, case: Case) -> Result<(), Failure> {
        let outcome = self.measure(case);
        note(case.name, outcome, self.report)
    }

    fn measure(&mut self, case: Case) -> Result<(), Failure> {
        let ours = Ours::new(self.connection, case)?;
        self.compare(case, &ours)?;
        let mut duel = Duel::default();
        let (time, inputs) = (self.plan.time, &mut self.inputs);
        for _ in 0..self.plan.rounds {
            duel.ours(Sample::timed(time, || inputs.operation(case), |operation| ours.run(&operation).map(drop))?);
            if let Some(sqlite) = &self.sqlite {
                let run = |operation| sqlite.run(case, &operation).map(drop);
                duel.other("SQLite", Sample::timed(time, || inputs.operation(case), run)?);
            }
            self.peers.round(case.name, time, &PEERS, &mut duel);
        }
        Ok(self.report.add_duel(
            case.name,
            &duel,
            Promise { rate: case.rate, share: case.share, ..Promise::default() },
        )?)
    }

    /// Lets all engines run `case` with the same values, and holds ours to what the others answer.
    fn compare(&mut self, case: Case, ours: &Ours<'_>) -> Result<(), Failure> {
        let operations: Vec<Operation> = (0..COMPARED).map(|_| self.inputs.operation(case)).collect();
        type Answers = Result<Vec<Answer>, Failure>;
        let answers =
            |run: &dyn Fn(&Operation) -> Result<Answer, Failure>| operations.iter().map(run).collect::<Answers>();
        let found = answers(&|operation| ours.run(operation))?;
        let mut others: Vec<(String, Vec<Answer>)> = Vec::new();
        if let Some(sqlite) = &self.sqlite {
            others.push(("SQLite".into(), answers(&|operation| sqlite.run(case, operation))?));
        }
        let values: Vec<Option<i64>> = operations.iter().map(|operation| operation.value).collect();
        others.extend(self.peers.tell(&case.told(self.inputs.of_peers(case)), &values));
        if case.is_explain() {
            return Ok(());
        }
        for (who, expected) in others {
            for ((operation, found), expected) in operations.iter().zip(&found).zip(&expected) {
                if found != expected {
                    let value = operation.value;
                    return Err(Failure::Wrong(format!("of {value:?}: {found:?}, {who} answers {expected:?}")));
                }
            }
        }
        Ok(())
    }
}
