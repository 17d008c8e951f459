//! The ways in which a statement is run, and how their answers are compared.

use mainstem::{Connection, Database, OpenOptions};
use mainstem_storage::ids::TableId;

use super::super::printing::printed;
use super::choices::Choices;
use super::postgres::{Postgres, canonical};
use super::schema::{Setup, Step, System, insert};
use super::writes::Case;

/// The setting that keeps plans from using what is derived of orders, constants, equalities and keys.
const UNDERIVED: &str = "SET derived_properties = off";

/// Longer queries say nothing.
const TIMEOUT: &str = "SET statement_timeout = '5s'";

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Over tables without keys and orders, all rows in deltas, planned anew, one thread. What other ways are compared
    /// with.
    Heap,
    /// As it is, where rows were put.
    Placed,
    /// The same text again.
    Again,
    /// Each derived table made a table first.
    InSteps,
    /// PREPARE, with other values first.
    Prepared,
    /// With what plans derive switched off.
    Underived,
    /// With little memory.
    LittleMemory,
    /// By PostgreSQL, if there is one.
    Postgres,
    /// Three queries: where a condition is true, false, NULL.
    InThree,
}

impl Way {
    /// The ways in which a statement is run, after [`Way::Heap`]: planning takes most of the time, so there are few.
    pub fn some(choices: &mut Choices) -> Vec<Self> {
        let others = [Self::InSteps, Self::Prepared, Self::Again, Self::Underived, Self::InThree, Self::LittleMemory];
        let mut ways = vec![Self::Placed];
        for _ in 0..1 + choices.below(2) {
            let way = others[choices.weighted(&[4, 4, 3, 2, 2, 1])];
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        ways.push(Self::Postgres);
        ways
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Outcome {
    Rows(Vec<Vec<String>>),
    Failed {
        sqlstate: String,
        message: String,
    },
    /// This way cannot run this statement.
    Skipped,
}

impl Outcome {
    fn of(answer: mainstem::Result<Vec<Vec<String>>>) -> Self {
        match answer {
            Ok(rows) => Self::Rows(rows),
            Err(e) => Self::Failed { sqlstate: e.sqlstate().into(), message: e.message().into() },
        }
    }
}

/// What two answers say of one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Equal,
    /// One of them met an error of a value, which depends on what is evaluated first.
    ErrorOfOne(String),
    /// Nothing can be said: refused, canceled, no memory.
    Unknown(String),
    Different(String),
}

/// A database with the tables of a setup.
pub struct Stage {
    folder: tempfile::TempDir,
    database: Database,
    placed: Connection,
    heap: Connection,
    /// None: there is no such setting.
    underived: Option<Connection>,
    /// None: none is asked for.
    postgres: Option<Postgres>,
}

fn open(setup: &Setup, folder: &std::path::Path) -> Database {
    let options = OpenOptions::new().background(false).synchronous(mainstem::Synchronous::Off);
    if setup.on_disk {
        Database::open_with(folder.join("database"), options).unwrap()
    } else {
        Database::in_memory_with(options).unwrap()
    }
}

/// The sessions of a database: placed, heap and underived.
fn sessions(database: &Database, setup: &Setup) -> mainstem::Result<(Connection, Connection, Option<Connection>)> {
    let (placed, heap, underived) = (database.connect()?, database.connect()?, database.connect()?);
    for setting in &setup.session {
        placed.execute(setting)?;
    }
    for connection in [&heap, &underived] {
        connection.execute_batch("SET threads = 1; SET point_path = off; SET plan_cache_mode = force_custom_plan")?;
    }
    heap.execute("SET search_path = heap")?;
    let is_known = underived.execute(UNDERIVED).is_ok();
    if is_known {
        heap.execute(UNDERIVED)?;
    }
    for connection in [&placed, &heap, &underived] {
        connection.execute(TIMEOUT)?;
    }
    Ok((placed, heap, is_known.then_some(underived)))
}

impl Stage {
    /// # Errors
    /// A statement of the setup that fails.
    pub fn new(setup: &Setup) -> mainstem::Result<Self> {
        let folder = tempfile::tempdir().unwrap();
        let database = open(setup, folder.path());
        database.connect()?.execute("CREATE SCHEMA heap")?;
        let (placed, heap, underived) = sessions(&database, setup)?;
        let mut stage = Self { folder, database, placed, heap, underived, postgres: Postgres::start(setup) };
        for table in &setup.tables {
            stage.placed.execute(&table.create(System::Mainstem))?;
            stage.heap.execute(&table.create(System::Heap))?;
        }
        for step in &setup.steps {
            stage.step(setup, step)?;
        }
        Ok(stage)
    }

    fn step(&mut self, setup: &Setup, step: &Step) -> mainstem::Result<()> {
        match step {
            Step::Insert { table, rows } if !rows.is_empty() => {
                let table = &setup.tables[*table];
                let backwards: Vec<Vec<String>> = rows.iter().rev().cloned().collect();
                self.placed.execute(&insert(table, rows))?;
                self.heap.execute(&insert(table, &backwards))?;
            }
            Step::Insert { .. } => {}
            Step::Sql(text) => {
                self.placed.execute(text)?;
                self.heap.execute(text)?;
            }
            Step::Freeze(table) => self.database.storage().freeze(self.id(setup, *table)?)?,
            Step::Flush(table) => self.database.storage().flush(self.id(setup, *table)?)?,
            Step::Merge(table) => self.database.storage().merge(self.id(setup, *table)?)?,
            Step::Restart => self.restart(setup)?,
        }
        Ok(())
    }

    fn id(&self, setup: &Setup, table: usize) -> mainstem::Result<TableId> {
        Ok(self.placed.table(&setup.tables[table].name)?.id)
    }

    /// Closes the database and opens it again, if it is on disk.
    pub fn restart(&mut self, setup: &Setup) -> mainstem::Result<()> {
        if setup.on_disk {
            self.database.close()?;
            self.database = open(setup, self.folder.path());
            (self.placed, self.heap, self.underived) = sessions(&self.database, setup)?;
        }
        Ok(())
    }

    /// The answer of `case` in one way.
    pub fn run(&self, case: &Case, way: Way) -> Outcome {
        match way {
            Way::Heap => Outcome::of(whole(&self.heap, case, &case.statement.text(), &[])),
            Way::Placed | Way::Again => Outcome::of(whole(&self.placed, case, &case.statement.text(), &[])),
            Way::Underived => match &self.underived {
                Some(connection) => Outcome::of(whole(connection, case, &case.statement.text(), &[])),
                None => Outcome::Skipped,
            },
            Way::InSteps => {
                let mut steps = Vec::new();
                let text = case.statement.in_steps(&mut steps);
                let steps: Vec<String> = steps.into_iter().map(|(statement, _)| statement).collect();
                if steps.is_empty() { Outcome::Skipped } else { Outcome::of(whole(&self.heap, case, &text, &steps)) }
            }
            Way::Prepared => self.prepared(case),
            Way::LittleMemory => {
                if self.placed.execute("SET memory_limit = '6MB'").is_err() {
                    return Outcome::Skipped;
                }
                let outcome = Outcome::of(whole(&self.placed, case, &case.statement.text(), &[]));
                self.placed.execute("SET memory_limit = DEFAULT").unwrap();
                outcome
            }
            Way::Postgres => match &self.postgres {
                Some(postgres) => canonical(postgres.run(case), case),
                None => Outcome::Skipped,
            },
            Way::InThree => self.in_three(case),
        }
    }

    /// PREPARE, EXECUTE with other values, EXECUTE.
    fn prepared(&self, case: &Case) -> Outcome {
        let (text, literals) = case.statement.with_parameters();
        if literals.is_empty() || text.starts_with("CREATE") {
            return Outcome::Skipped;
        }
        let types: Vec<&str> = literals.iter().map(|literal| literal.data_type.name()).collect();
        let execute = |values: Vec<&str>| format!("EXECUTE p ({})", values.join(", "));
        let prepare = format!("PREPARE p ({}) AS {text}", types.join(", "));
        let others = execute(literals.iter().map(|literal| literal.other.as_str()).collect());
        let these = execute(literals.iter().map(|literal| literal.text.as_str()).collect());
        if case.read.is_some() {
            // A write: all in one transaction, of which the first EXECUTE is taken back.
            let steps = [prepare, "SAVEPOINT before".into(), others, "ROLLBACK TO before".into()];
            let outcome = Outcome::of(whole(&self.placed, case, &these, &steps));
            let _ = self.placed.execute("DEALLOCATE p");
            return outcome;
        }
        let outcome = match self.placed.execute(&prepare) {
            Err(e) => Outcome::of(Err(e)),
            Ok(_) => match rows(&self.placed, &others) {
                // What other values give is not looked at, but for what is never right.
                Err(e) if e.sqlstate().starts_with("XX") => Outcome::of(Err(e)),
                _ => Outcome::of(rows(&self.placed, &these)),
            },
        };
        let _ = self.placed.execute("DEALLOCATE p");
        outcome
    }

    /// The rows for which a condition over the answer is true, those for which it is not, and those where it is NULL.
    fn in_three(&self, case: &Case) -> Outcome {
        if case.read.is_some() {
            return Outcome::Skipped;
        }
        let column = &case.columns[case.columns.len() / 2];
        let condition = match column.data_type {
            super::types::Type::Boolean => format!("q.{}", column.name),
            data_type => format!("q.{} > {}", column.name, data_type.nth(1)),
        };
        let text = case.statement.text();
        let mut all = Vec::new();
        for condition in [condition.clone(), format!("NOT ({condition})"), format!("({condition}) IS NULL")] {
            match rows(&self.placed, &format!("SELECT * FROM ({text}) AS q WHERE {condition}")) {
                Ok(rows) => all.extend(rows),
                Err(e) => return Outcome::of(Err(e)),
            }
        }
        Outcome::Rows(all)
    }
}

/// The rows of a query; or, of a write, what is read after it, which is then rolled back. `steps` come before.
fn whole(connection: &Connection, case: &Case, text: &str, steps: &[String]) -> mainstem::Result<Vec<Vec<String>>> {
    let in_transaction = case.read.is_some() || !steps.is_empty();
    if !in_transaction {
        return rows(connection, text);
    }
    connection.execute("BEGIN")?;
    let run = || {
        for statement in case.before.iter().chain(steps) {
            match connection.execute(statement) {
                Err(e) if !statement.starts_with("EXECUTE") || e.sqlstate().starts_with("XX") => return Err(e),
                _ => {}
            }
        }
        match &case.read {
            None => rows(connection, text),
            Some(read) => {
                connection.execute(text)?;
                rows(connection, read)
            }
        }
    };
    let answer = run();
    connection.execute("ROLLBACK")?;
    answer
}

fn rows(connection: &Connection, text: &str) -> mainstem::Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    for batch in connection.query(text)? {
        rows.extend(printed(&batch?));
    }
    Ok(rows)
}

/// Whether `found` is what `expected` is; its rows are sorted by columns `sorted`, if they are.
pub fn compare(expected: &Outcome, found: &Outcome, sorted: &[usize]) -> Verdict {
    match (expected, found) {
        (Outcome::Skipped, _) | (_, Outcome::Skipped) => Verdict::Equal,
        (Outcome::Rows(expected), Outcome::Rows(found)) => compare_rows(expected, found, sorted),
        (Outcome::Failed { sqlstate: a, .. }, Outcome::Failed { sqlstate: b, .. })
            if is_of_value(a) && is_of_value(b) =>
        {
            Verdict::Equal
        }
        (failed @ Outcome::Failed { .. }, _) if judged(failed).is_some() => judged(failed).unwrap(),
        (_, failed @ Outcome::Failed { .. }) if judged(failed).is_some() => judged(failed).unwrap(),
        (Outcome::Failed { sqlstate, message }, _) | (_, Outcome::Failed { sqlstate, message }) => {
            Verdict::ErrorOfOne(format!("{sqlstate}: {message}"))
        }
    }
}

/// Whether an error is about a value: out of range, division by zero, no such date.
fn is_of_value(sqlstate: &str) -> bool {
    matches!(sqlstate, "22003" | "22007" | "22008" | "22012")
}

/// What an error says by itself. None: it is one of values.
fn judged(failed: &Outcome) -> Option<Verdict> {
    let Outcome::Failed { sqlstate, message } = failed else { return None };
    match sqlstate.as_str() {
        state if is_of_value(state) => None,
        "0A000" | "57014" | "53200" | "54001" => Some(Verdict::Unknown(format!("{sqlstate}: {message}"))),
        _ => Some(Verdict::Different(format!("{sqlstate}: {message}"))),
    }
}

fn compare_rows(expected: &[Vec<String>], found: &[Vec<String>], sorted: &[usize]) -> Verdict {
    let multiset = |rows: &[Vec<String>]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    if multiset(expected) != multiset(found) {
        return Verdict::Different("other rows".into());
    }
    let keys = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows.iter().map(|row| sorted.iter().map(|&at| row[at].clone()).collect()).collect()
    };
    if keys(expected) != keys(found) {
        return Verdict::Different("another order".into());
    }
    Verdict::Equal
}
