//! Runs the interleaved sessions of `slt/hermitage/` under every configuration; `slt/hermitage/README.md` says what the
//! lines mean.

use std::collections::BTreeMap;

use super::stage::{Answer, Config, Stage, placement_matrix, slt_folder};

/// One case: statements one after the other.
struct Case {
    name: String,
    /// Line number and SQL.
    setup: Vec<(usize, String)>,
    steps: Vec<Step>,
}

struct Step {
    line: usize,
    session: String,
    sql: String,
    expected: Expectation,
}

#[derive(Clone, Debug, PartialEq)]
enum Expectation {
    Ok(Option<u64>),
    Rows(Vec<String>),
    Error(String),
    ConflictByCommit,
    Conflict,
}

/// Where a session's transaction stands with regard to an expected conflict.
#[derive(Clone, Copy, Default, PartialEq)]
enum Fate {
    #[default]
    Normal,
    /// It is lost, but has not failed yet.
    Lost,
    /// It has failed: nothing more is sent until its COMMIT.
    Failed,
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (head, rest) = line.split_once(": ").unwrap_or_else(|| panic!("line {number}: {line}"));
        if let Some(name) = head.strip_prefix("case ") {
            cases.push(Case { name: name.into(), setup: Vec::new(), steps: Vec::new() });
            continue;
        }
        let case = cases.last_mut().unwrap_or_else(|| panic!("line {number}: no case yet"));
        if head == "setup" {
            case.setup.push((number, rest.into()));
            continue;
        }
        let (sql, expected) = rest.rsplit_once(" => ").unwrap_or_else(|| panic!("line {number}: {line}"));
        let expected = expectation(expected).unwrap_or_else(|| panic!("line {number}: {expected}"));
        case.steps.push(Step { line: number, session: head.into(), sql: sql.into(), expected });
    }
    cases
}

fn expectation(text: &str) -> Option<Expectation> {
    Some(match text.split_once(' ') {
        None if text == "ok" => Expectation::Ok(None),
        None if text == "conflict" => Expectation::Conflict,
        Some(("ok", count)) => Expectation::Ok(Some(count.parse().ok()?)),
        Some(("rows", "none")) => Expectation::Rows(Vec::new()),
        Some(("rows", rows)) => Expectation::Rows(rows.split(" | ").map(Into::into).collect()),
        Some(("error", code)) => Expectation::Error(code.into()),
        Some(("conflict", "by COMMIT")) => Expectation::ConflictByCommit,
        _ => return None,
    })
}

/// Runs a case; returns what is wrong, with its line.
fn run_case(case: &Case, config: &Config) -> Vec<String> {
    let mut stage = Stage::new(config);
    let mut wrong = Vec::new();
    for (line, sql) in &case.setup {
        if let Err(e) = stage.run("setup", sql) {
            wrong.push(format!("line {line}: {sql}: {e:?}"));
        }
        move_rows(&mut stage, sql, *line, &mut wrong);
    }
    let mut fates: BTreeMap<&str, Fate> = BTreeMap::new();
    for step in &case.steps {
        let fate = fates.entry(&step.session).or_default();
        let ends = step.sql.eq_ignore_ascii_case("COMMIT");
        if *fate == Fate::Failed {
            if ends {
                let _ = stage.run(&step.session, "ROLLBACK");
                *fate = Fate::Normal;
            }
            continue;
        }
        if step.expected == Expectation::ConflictByCommit {
            *fate = Fate::Lost;
        }
        let answer = stage.run(&step.session, &step.sql);
        let conflict = matches!(&answer, Err(e) if e.sqlstate() == "40001");
        if *fate == Fate::Lost && conflict {
            *fate = Fate::Failed;
            if ends {
                let _ = stage.run(&step.session, "ROLLBACK");
                *fate = Fate::Normal;
            }
        } else if let Err(e) = judge(&step.expected, &answer) {
            wrong.push(format!("line {}: {}: {}: {e}", step.line, step.session, step.sql));
            if ends {
                *fate = Fate::Normal;
            }
        }
        move_rows(&mut stage, &step.sql, step.line, &mut wrong);
    }
    wrong
}

fn move_rows(stage: &mut Stage, sql: &str, line: usize, wrong: &mut Vec<String>) {
    if sql.to_ascii_uppercase().starts_with("SELECT") {
        return;
    }
    if let Err(e) = stage.after_statement() {
        wrong.push(format!("line {line}: {e:?}"));
    }
}

/// Whether `answer` is what was expected, conflicts of a lost transaction aside.
fn judge(expected: &Expectation, answer: &mainstem::Result<Answer>) -> Result<(), String> {
    let fits = match (expected, answer) {
        (Expectation::Ok(None) | Expectation::ConflictByCommit, Ok(_)) => true,
        (Expectation::Ok(Some(count)), Ok(Answer::Done(written))) => count == written,
        (Expectation::Rows(rows), Ok(Answer::Rows(_, got))) => {
            rows.iter().eq(got.iter().map(|row| row.join(" ")).collect::<Vec<_>>().iter())
        }
        (Expectation::Error(code), Err(e)) => code == e.sqlstate(),
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("expected {expected:?}, got {answer:?}")) }
}

fn run_file(file: &str, config: &str) {
    let config = Config::named(config).without_restart();
    let text = std::fs::read_to_string(slt_folder().join(format!("hermitage/{file}.txt"))).unwrap();
    let cases = parse(&text);
    assert!(!cases.is_empty());
    let mut failures = Vec::new();
    for case in &cases {
        for wrong in run_case(case, &config) {
            failures.push(format!("{file}.txt, case {}, {wrong}", case.name));
        }
    }
    assert!(failures.is_empty(), "{} lines fail:\n{}", failures.len(), failures.join("\n"));
}

/// The runner notices what is wrong.
#[test]
fn wrong_expectations_are_noticed() {
    let cases = parse(
        "\
case wrong: every line that is marked fails
setup: CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)
setup: INSERT INTO t VALUES (1, 10)
S1: SELECT * FROM t => rows 1 11
S1: SELECT * FROM t => rows none
S1: UPDATE t SET v = 11 => ok 2
S1: INSERT INTO t VALUES (1, 1) => ok
S1: INSERT INTO t VALUES (1, 1) => error 23502
S1: BEGIN => ok
S1: UPDATE t SET v = 12 => conflict by COMMIT
S1: COMMIT => conflict
S1: BEGIN => ok
S2: UPDATE t SET v = 13 => ok 1
S1: UPDATE t SET v = 14 => conflict by COMMIT
S1: SELECT * FROM t => rows 9 9
S1: COMMIT => conflict
S1: SELECT * FROM t => rows 1 14
",
    );
    let wrong = run_case(&cases[0], &Config::named("delta_only"));
    let lines: Vec<&str> = wrong.iter().map(|w| w.split(':').next().unwrap()).collect();
    let expected = ["line 4", "line 5", "line 6", "line 7", "line 8", "line 11"];
    assert_eq!(lines[..expected.len()], expected, "{wrong:#?}");
}

placement_matrix!(
    run_file,
    slt_folder().join("hermitage"),
    "txt",
    [g0, g1, g2, g2_item, g_single, keys, otv, p4, pmp, tables, upsert]
);
