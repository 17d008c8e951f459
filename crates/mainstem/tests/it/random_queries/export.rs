//! A database, its statements and their answers as a file of JSON, for another system to compare.

use std::path::Path;

use serde_json::json;

use super::generator::Generator;
use super::oracles::{Outcome, Stage, Way};
use super::schema::System;
use super::writes::case;
use super::{STATEMENTS, choices_of, script, setup_of};

/// Writes `folder/SEED.json`.
pub fn write(folder: &Path, seed: u64) {
    let setup = setup_of(seed);
    let stage = Stage::new(&setup).unwrap();
    let statements: Vec<serde_json::Value> = (0..STATEMENTS)
        .map(|statement| {
            let mut choices = choices_of(seed, statement);
            let case = case(&mut Generator::new(&mut choices, &setup.tables));
            let types: Vec<&str> = case.columns.iter().map(|column| column.data_type.name()).collect();
            let answer = match stage.run(&case, Way::Placed) {
                Outcome::Rows(rows) => json!({ "rows": rows }),
                Outcome::Failed { sqlstate, message } => json!({ "sqlstate": sqlstate, "message": message }),
                Outcome::Skipped => json!({}),
            };
            json!({
                "number": statement,
                "before": case.before,
                "statement": case.statement.text(),
                "read": case.read,
                "types": types,
                "sorted": case.sorted,
                "answer": answer,
            })
        })
        .collect();
    let text = json!({
        "seed": seed,
        "setup": script(&setup, System::Postgres),
        "mainstem": script(&setup, System::Mainstem),
        "session": setup.session,
        "statements": statements,
    });
    std::fs::write(folder.join(format!("{seed}.json")), text.to_string()).unwrap();
}
