//! The tables of calls in `tests/calls`: `call -> text or SQLSTATE`, as PostgreSQL answers (`generate.py` asks it), and
//! `call => text or SQLSTATE` where Mainstem differs, or PostgreSQL has no such function.
//!
//! Each call is evaluated twice, with constants and with columns. An error of DataFusion's own agrees with every
//! SQLSTATE: the SQL crate gives it one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mainstem_postgres::registry::callable;

use crate::evaluate::{Failure, Functions, Given};

/// Functions whose values depend on the session or the time, or that have none outside a plan.
const NOT_IN_TABLES: &[&str] = &[
    "clock_timestamp",
    "coalesce",
    "current_catalog",
    "current_database",
    "current_date",
    "current_role",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_time",
    "current_user",
    "gen_random_uuid",
    "localtime",
    "localtimestamp",
    "now",
    "nvl",
    "pg_sleep",
    "random",
    "session_user",
    "setting_value",
    "user",
    "version",
];

#[test]
fn calls_are_answered_as_in_postgresql() {
    let functions = Functions::new();
    let (mut calls, mut wrong, mut called) = (0, Vec::new(), BTreeSet::new());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls");
    for entry in fs::read_dir(folder).expect("the folder of tables") {
        let path = entry.expect("a table").path();
        if path.extension().is_none_or(|extension| extension != "calls") {
            continue;
        }
        for (at, line) in fs::read_to_string(&path).expect("a table").lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let split = line.rsplit_once(" -> ").or_else(|| line.rsplit_once(" => "));
            let (call, expected) = split.unwrap_or_else(|| panic!("{}:{}: {line}", path.display(), at + 1));
            calls += 1;
            for given in [Given::Constants, Given::Columns] {
                let (outcome, names) = functions.evaluate(call, given);
                called.extend(names);
                let found = match outcome {
                    Ok(text) => text,
                    Err(Failure::State(state)) => state,
                    Err(Failure::Theirs(_)) if is_state(expected) => expected.to_owned(),
                    Err(Failure::Theirs(what) | Failure::NotThere(what)) => what,
                };
                if found != expected {
                    let how = if given == Given::Constants { "constants" } else { "columns" };
                    wrong.push(format!("{}:{}: {call} -> {expected}, of {how}: {found}", path.display(), at + 1));
                }
            }
        }
    }
    assert!(calls > 500, "only {calls} calls were found");
    assert!(wrong.is_empty(), "{} of {calls} calls:\n{}", wrong.len(), wrong.join("\n"));
    let named = callable().map(|function| function.name()).filter(|name| !NOT_IN_TABLES.contains(name));
    let untested: Vec<&str> = named.filter(|name| !called.contains(*name)).collect();
    assert!(untested.is_empty(), "functions without a call in the tables: {untested:?}");
}

fn is_state(text: &str) -> bool {
    text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

#[test]
fn rows_of_the_registry_are_those_of_functions() {
    let functions = Functions::new();
    for row in callable() {
        for name in row.names {
            let Some(function) = functions.get(name) else {
                assert_eq!(row.name(), "pg_sleep", "{name} is not there");
                continue;
            };
            assert_eq!(function.name(), row.name(), "{name}");
            assert_eq!(function.signature().volatility, row.volatility, "{name}");
        }
        let Some(function) = functions.get(row.name()) else { continue };
        let unlisted: Vec<_> = function.aliases().iter().filter(|name| !row.names.contains(&name.as_str())).collect();
        assert!(unlisted.is_empty(), "names of {} that its row has not: {unlisted:?}", row.name());
    }
}
