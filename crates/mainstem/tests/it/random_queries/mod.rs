//! Random queries and writes over random tables answer the same in every way in which they can be run: where rows lie,
//! what was kept of a plan, one derived table after the other, with what plans derive of orders and keys switched off.
//!
//! A seed makes a database (`schema`) and statements for it (`generator`, `expressions`, `aggregates`, `sources`,
//! `writes`), each valid and with one right answer by construction. `oracles` runs them in all ways; `shrink` makes
//! what fails small.
//!
//! | variable | |
//! |---|---|
//! | `MAINSTEM_RANDOM_QUERIES_SECONDS` | how long it goes on |
//! | `MAINSTEM_RANDOM_QUERIES_SEED` | the first seed; seeds follow one another |
//! | `MAINSTEM_RANDOM_QUERIES_STATEMENT` | only this statement of that seed |
//! | `MAINSTEM_RANDOM_QUERIES_REPORT` | a file: failures are appended to it, and it goes on |
//! | `MAINSTEM_RANDOM_QUERIES_SHRINK_SECONDS` | how long a failure is made smaller |
//! | `MAINSTEM_RANDOM_QUERIES_PSQL` | how to start `psql`: PostgreSQL answers too (`postgres`) |

mod aggregates;
mod choices;
mod expressions;
mod generator;
mod oracles;
mod postgres;
mod schema;
mod shrink;
mod sources;
mod sql;
mod types;
mod writes;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use self::choices::Choices;
use self::generator::Generator;
use self::oracles::{Outcome, Stage, Verdict, Way};
use self::schema::{Setup, Step, System, insert};
use self::shrink::{Failure, failure_of, shrink_case, shrink_setup};
use self::writes::{Case, case};

const SECONDS: u64 = 10;
/// One of so many answers may be none, because a statement is refused or only one way meets an error of values.
const UNSURE_SHARE: u64 = 5;
/// Statements for one database.
const STATEMENTS: u64 = 40;

/// A number from the environment, or `default`.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(format!("MAINSTEM_RANDOM_QUERIES_{name}")).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What was met.
#[derive(Debug, Default)]
struct Seen {
    databases: u64,
    statements: u64,
    answers: u64,
    failures: BTreeMap<String, u64>,
    /// Errors of values that one way met and another did not.
    errors_of_one: BTreeMap<String, u64>,
    /// Refused, canceled, no memory.
    unknown: BTreeMap<String, u64>,
}

impl Seen {
    fn note(&mut self, verdict: &Verdict) {
        self.answers += 1;
        let start = |text: &str| text.chars().take(70).collect::<String>();
        match verdict {
            Verdict::ErrorOfOne(text) => *self.errors_of_one.entry(start(text)).or_default() += 1,
            Verdict::Unknown(text) => *self.unknown.entry(start(text)).or_default() += 1,
            _ => {}
        }
    }
}

/// What runs until `end`.
struct Campaign {
    next: AtomicU64,
    end: Instant,
    only: Option<u64>,
    report: Option<String>,
    seen: Mutex<Seen>,
    failed: Mutex<Option<String>>,
}

fn setup_of(seed: u64) -> Setup {
    schema::setup(&mut Choices::seeded(seed))
}

fn choices_of(seed: u64, statement: u64) -> Choices {
    Choices::seeded(seed.wrapping_mul(1_000_003).wrapping_add(statement + 1))
}

impl Campaign {
    /// All statements of one seed.
    fn seed(&self, seed: u64) {
        let setup = setup_of(seed);
        let mut stage =
            Stage::new(&setup).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{}", script(&setup, System::Mainstem)));
        self.seen.lock().unwrap().databases += 1;
        for statement in 0..STATEMENTS {
            if self.only.is_some_and(|only| only != statement) {
                continue;
            }
            if Instant::now() > self.end && self.only.is_none() || self.failed.lock().unwrap().is_some() {
                return;
            }
            if statement == STATEMENTS / 2 {
                stage.restart(&setup).unwrap();
            }
            let mut choices = choices_of(seed, statement);
            let case = case(&mut Generator::new(&mut choices, &setup.tables));
            let list = choices.taken.clone();
            let failure =
                failure_of(&stage, &case, &Way::some(&mut choices), |verdict| self.seen.lock().unwrap().note(verdict));
            self.seen.lock().unwrap().statements += 1;
            if let Some(failure) = failure {
                self.fail(seed, statement, &setup, &stage, &list, &failure);
            }
        }
    }

    fn fail(&self, seed: u64, statement: u64, setup: &Setup, stage: &Stage, list: &[u32], failure: &Failure) {
        let signature = format!("{:?}: {}", failure.way, failure.class);
        let known = {
            let mut seen = self.seen.lock().unwrap();
            let count = seen.failures.entry(signature.clone()).or_default();
            *count += 1;
            *count
        };
        if self.report.is_some() && known > number("REPORTS", 12) {
            return;
        }
        let seconds = Duration::from_secs(number("SHRINK_SECONDS", 30));
        let small = shrink_case(setup, stage, list, failure, Instant::now() + seconds);
        let small_setup = shrink_setup(setup, &small, failure, Instant::now() + seconds);
        let text = description(&small_setup, &small, failure);
        let text = format!(
            "MAINSTEM_RANDOM_QUERIES_SEED={seed} MAINSTEM_RANDOM_QUERIES_STATEMENT={statement}\n{signature}\n{text}"
        );
        match &self.report {
            Some(path) => {
                use std::io::Write as _;
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
                writeln!(file, "{text}\n").unwrap();
            }
            None => *self.failed.lock().unwrap() = Some(text),
        }
    }
}

/// The statements of a setup, each with a semicolon.
fn script(setup: &Setup, system: System) -> String {
    let mut text = String::new();
    for table in &setup.tables {
        writeln!(text, "{};", table.create(system)).unwrap();
    }
    for step in &setup.steps {
        match step {
            Step::Insert { rows, .. } if rows.is_empty() => {}
            Step::Insert { table, rows } => writeln!(text, "{};", insert(&setup.tables[*table], rows)).unwrap(),
            Step::Sql(sql) => writeln!(text, "{sql};").unwrap(),
            other if system == System::Mainstem => writeln!(text, "-- {other:?}").unwrap(),
            _ => {}
        }
    }
    text
}

/// A failure with all that it takes to see it again.
fn description(setup: &Setup, case: &Case, failure: &Failure) -> String {
    let mut text = setup.session.join("; ");
    text += "\n";
    text += &script(setup, System::Mainstem);
    writeln!(text, "{};", case.statement.text()).unwrap();
    if let Some(read) = &case.read {
        writeln!(text, "-- then {read}").unwrap();
    }
    if failure.way == Way::Prepared {
        let (prepared, literals) = case.statement.with_parameters();
        let values: Vec<String> = literals.iter().map(|l| format!("{} before {}", l.other, l.text)).collect();
        writeln!(text, "-- prepared: {prepared} ({})", values.join(", ")).unwrap();
    }
    if failure.way == Way::InSteps {
        let mut steps = Vec::new();
        let last = case.statement.in_steps(&mut steps);
        for (step, _) in steps {
            writeln!(text, "-- step: {step}").unwrap();
        }
        writeln!(text, "-- last: {last}").unwrap();
    }
    let Ok(stage) = Stage::new(setup) else { return text };
    let first = if failure.way == Way::Postgres { Way::Placed } else { Way::Heap };
    for way in [first, failure.way] {
        match stage.run(case, way) {
            Outcome::Rows(rows) => {
                writeln!(text, "{way:?}: {} rows", rows.len()).unwrap();
                for row in rows.iter().take(12) {
                    writeln!(text, "    {}", row.join(" | ")).unwrap();
                }
            }
            other => writeln!(text, "{way:?}: {other:?}").unwrap(),
        }
    }
    text
}

#[test]
fn random_statements_have_one_answer_in_every_way() {
    let (first, seconds) = (number("SEED", 1), number("SECONDS", SECONDS));
    println!("MAINSTEM_RANDOM_QUERIES_SEED={first}, {seconds} s");
    let only = std::env::var("MAINSTEM_RANDOM_QUERIES_STATEMENT").ok().and_then(|text| text.parse().ok());
    let began = Instant::now();
    let campaign = Campaign {
        next: AtomicU64::new(first),
        end: began + Duration::from_secs(seconds),
        only,
        report: std::env::var("MAINSTEM_RANDOM_QUERIES_REPORT").ok(),
        seen: Mutex::new(Seen::default()),
        failed: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for _ in 0..if only.is_some() { 1 } else { 2 } {
            scope.spawn(|| {
                loop {
                    campaign.seed(campaign.next.fetch_add(1, Ordering::Relaxed));
                    let is_over = Instant::now() > campaign.end || campaign.failed.lock().unwrap().is_some();
                    if is_over || only.is_some() {
                        break;
                    }
                }
            });
        }
    });
    let seen = campaign.seen.into_inner().unwrap();
    println!("{seen:#?}");
    println!("{} statements, {} answers, {:?}", seen.statements, seen.answers, began.elapsed());
    if let Some(text) = campaign.failed.into_inner().unwrap() {
        panic!("{text}");
    }
    let unsure: u64 = seen.unknown.values().chain(seen.errors_of_one.values()).sum();
    assert!(seen.statements > 0 && unsure * UNSURE_SHARE <= seen.answers, "{unsure} of {} answers", seen.answers);
}
