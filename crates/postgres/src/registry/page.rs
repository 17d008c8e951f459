//! The page of functions in the documentation, made from the rows.

use std::fmt::Write as _;

use super::scalars::GROUPS;
use super::sets::{AGGREGATES, WINDOWS};
use super::{Fails, Function, arrays};

/// `docs/functions.md`.
#[must_use]
pub fn page() -> String {
    let mut page = "# Functions\n\nWritten from the list of functions in `crates/postgres/src/registry` by a test \
         (`MAINSTEM_WRITE=1 cargo test -p mainstem-postgres page`).\n\
         A call is an error of the class that is named for some values; all of them are NULL for a NULL, but for \
         `coalesce`, `concat` and the like.\n"
        .to_owned();
    let scalars = GROUPS.iter().map(|group| (group.title, group.functions));
    for (title, functions) in scalars.chain([("Arrays and rows", arrays::ARRAYS)]) {
        heading(&mut page, title);
        functions.iter().filter(|function| function.is_callable()).for_each(|function| row(&mut page, function));
    }
    for (title, functions) in [("Aggregates", AGGREGATES), ("Window functions", WINDOWS)] {
        heading(&mut page, title);
        for function in functions {
            line(&mut page, function.names, function.signature, function.fails);
        }
    }
    page
}

fn heading(page: &mut String, title: &str) {
    let _ = write!(page, "\n## {title}\n\n| function | also | may fail |\n|---|---|---|\n");
}

fn row(page: &mut String, function: &Function) {
    line(page, function.names, function.signature, function.fails);
}

fn line(page: &mut String, names: &[&str], signature: &str, fails: Fails) {
    let [name, others @ ..] = names else { return };
    let others = others.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let fails = match fails {
        Fails::Never => "",
        Fails::Overflow => "22003",
        Fails::Divisor(_) => "22012",
        Fails::Value => "for some values",
    };
    let _ = writeln!(page, "| `{name}{signature}` | {others} | {fails} |");
}
