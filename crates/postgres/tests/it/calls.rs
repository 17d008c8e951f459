//! The tables of calls in `tests/calls`: `call -> text or SQLSTATE`, as PostgreSQL answers (`generate.py` asks it), and
//! `call => text or SQLSTATE` where Mainstem differs, or PostgreSQL has no such function.
//!
//! Each call is evaluated twice, with constants and with columns. An error of DataFusion's own agrees with every
//! SQLSTATE: the SQL crate gives it one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use arrow::array::{Array as _, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use mainstem_postgres::registry::callable;
use mainstem_postgres::types::{has_floats, in_one_form};

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

/// Of each function, called with up to three floats and arrays of them: no result is minus zero, or another NaN.
#[test]
fn floats_that_functions_give_are_in_their_one_form() {
    let functions = Functions::new();
    let floats = ["0", "-0.3", "-1e-300", "-2.5", "0.5", "1", "Infinity", "-Infinity", "NaN", "1e308"];
    let doubles = floats.map(|text| format!("CAST('{text}' AS DOUBLE PRECISION)"));
    let reals = ["0", "-0.3", "-1e-30", "NaN"].map(|text| format!("CAST('{text}' AS REAL)"));
    let arrays = [format!("ARRAY[{}, {}]", doubles[0], doubles[3]), format!("ARRAY[{}, {}]", doubles[6], doubles[7])];
    let numbers: Vec<&String> = doubles.iter().chain(&reals).collect();
    let mut given: Vec<String> = numbers.iter().map(|one| (*one).clone()).chain(arrays).collect();
    given.extend(numbers.iter().flat_map(|one| numbers.iter().map(move |other| format!("{one}, {other}"))));
    given.extend(numbers.iter().flat_map(|one| ["1", "-1", "0"].map(|digits| format!("{one}, {digits}"))));
    let mut found = BTreeSet::new();
    for name in callable().map(|function| function.name()).filter(|name| !NOT_IN_TABLES.contains(name)) {
        for args in &given {
            let call = format!("{name}({args})");
            let Some(result) = functions.array(&call).filter(|result| has_floats(result.data_type())) else { continue };
            found.insert(name);
            assert_eq!(bits(&result), bits(&in_one_form(result)), "{call}");
        }
    }
    assert!(found.len() > 30, "only of {found:?}");
}

/// The bits of the floats that are in `array`.
fn bits(array: &ArrayRef) -> Vec<Option<u64>> {
    match array.data_type() {
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().iter().map(|float| float.map(|float| float.to_bits().into())).collect()
        }
        DataType::Float64 => array.as_primitive::<Float64Type>().iter().map(|float| float.map(f64::to_bits)).collect(),
        DataType::List(_) => array.as_list::<i32>().iter().flatten().flat_map(|items| bits(&items)).collect(),
        DataType::Struct(_) => array.as_struct().columns().iter().flat_map(bits).collect(),
        _ => Vec::new(),
    }
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
