//! PostgreSQL as one more system that answers: by hand, where `MAINSTEM_RANDOM_QUERIES_PSQL` says how to start `psql`.
//!
//! Its database has to be in UTF-8 with collation C. Each stage has a schema of its own, which is dropped with it.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use super::oracles::Outcome;
use super::schema::{Setup, System};
use super::script;
use super::types::Type;
use super::writes::Case;

const END: &str = "@@end";
const FIELDS: char = '\u{1f}';
const ROWS: char = '\u{1e}';

/// A `psql` that waits for statements.
pub struct Postgres {
    child: Child,
    schema: String,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Postgres {
    /// With the tables of `setup`, if there is such a server.
    pub fn start(setup: &Setup) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let command = std::env::var("MAINSTEM_RANDOM_QUERIES_PSQL").ok()?;
        let options = format!("-X -q -A -t -P null=NULL -F '{FIELDS}' -R '{ROWS}'");
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec {command} {options} 2>&1")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pipes = RefCell::new((child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap())));
        let schema = format!("random_queries_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let made = Self { child, schema, pipes };
        let begin = format!(
            "\\set VERBOSITY sqlstate\nCREATE SCHEMA {0};\nSET search_path = {0};\n{1}",
            made.schema,
            script(setup, System::Postgres)
        );
        let output = made.output(&begin);
        assert!(!output.contains("ERROR"), "{output}\n{begin}");
        Some(made)
    }

    /// What `text` prints.
    fn output(&self, text: &str) -> String {
        let mut pipes = self.pipes.borrow_mut();
        writeln!(pipes.0, "{text}\n\\echo {END}").unwrap();
        pipes.0.flush().unwrap();
        let mut output = String::new();
        while !output.ends_with(&format!("{END}\n")) {
            assert!(pipes.1.read_line(&mut output).unwrap() > 0, "psql has ended: {output}");
        }
        output.truncate(output.len() - END.len() - 1);
        output
    }

    pub fn run(&self, case: &Case) -> Outcome {
        let statement = case.statement.text();
        let output = match &case.read {
            None => self.output(&format!("{statement};")),
            Some(read) => {
                let mut text = String::from("BEGIN;\n");
                case.before.iter().for_each(|before| text += &format!("{before};\n"));
                self.output(&format!("{text}{statement};\n{read};\nROLLBACK;"))
            }
        };
        if let Some(at) = output.find("ERROR:") {
            let state: String = output[at + 6..].trim_start().chars().take(5).collect();
            return Outcome::Failed { sqlstate: state, message: "of PostgreSQL".into() };
        }
        let Some(output) = output.strip_suffix('\n') else { return Outcome::Rows(Vec::new()) };
        Outcome::Rows(output.split(ROWS).map(|row| row.split(FIELDS).map(str::to_owned).collect()).collect())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.output(&format!("DROP SCHEMA {} CASCADE;", self.schema));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Rows whose values are written alike in both systems: numbers of so many digits. Skipped: years before 1, which
/// Mainstem writes with a sign.
pub fn canonical(outcome: Outcome, case: &Case) -> Outcome {
    let Outcome::Rows(rows) = outcome else { return outcome };
    if rows.iter().flatten().any(|text| text.ends_with(" BC")) {
        return Outcome::Skipped;
    }
    let value = |(text, data_type): (String, Type)| match data_type {
        _ if text == "NULL" => text,
        Type::Boolean => match text.as_str() {
            "t" => "true".into(),
            "f" => "false".into(),
            _ => text,
        },
        Type::Numeric | Type::Double | Type::Real => match text.parse::<f64>() {
            Ok(number) if number.is_nan() => "NaN".into(),
            Ok(0.0) => "0".into(),
            Ok(number) if data_type == Type::Real => format!("{number:.5e}"),
            Ok(number) => format!("{number:.9e}"),
            Err(_) => text,
        },
        Type::Text if text == "(empty)" => String::new(),
        _ => text,
    };
    let row = |row: Vec<String>| {
        let types = case.columns.iter().map(|column| column.data_type);
        row.into_iter().zip(types).map(value).collect()
    };
    Outcome::Rows(rows.into_iter().map(row).collect())
}
