//! Which module of a crate may import which: only downwards, or sideways within one rank where nothing forbids it.
//! `docs/ARCHITECTURE.md` draws the same lists.

use super::code_view::code_view;
use super::files::{is_test, production_lines};
use super::{Checkout, Violation, violation};

/// A crate whose modules have ranks.
struct Layers {
    src: &'static str,
    /// Modules from the ground up; a module imports its own rank and those below.
    ranks: &'static [&'static [&'static str]],
    /// Modules of one rank that may not know one another.
    strangers: &'static [&'static [&'static str]],
    /// Names at the root of the crate that are no modules.
    exported: &'static [&'static str],
    /// Crates that it may name nothing of, or of which only these names.
    crates: &'static [(&'static str, &'static [&'static str])],
}

const STORAGE: Layers = Layers {
    src: "crates/storage/src/",
    ranks: &[
        &[
            "ids",
            "limits",
            "error",
            "shared_map",
            "threads",
            "schema",
            "settings",
            "memory",
            "row",
            "predicate",
            "codec",
        ],
        &["disk", "catalog", "deletes", "layout"],
        &["segment", "index", "wal"],
        &["delta_store", "update_cache", "main_store", "manifest"],
        &["write_set"],
        &["version"],
        &["point", "order", "scan"],
        &["run_writer"],
        &["load", "merge", "unload"],
        &["commit"],
        &["recover", "background"],
        &["transaction", "database"],
        &["lib"],
    ],
    strangers: &[&["delta_store", "update_cache", "main_store"], &["load", "merge", "unload"]],
    exported: &["Error", "ErrorKind", "Result"],
    crates: &[("datafusion", &[]), ("mainstem_postgres", &[])],
};

/// What PostgreSQL's types and functions are: no planner, and of storage what columns and errors are.
const POSTGRES: Layers = Layers {
    src: "crates/postgres/src/",
    ranks: &[
        &["sqlstate", "types", "error", "evaluate"],
        &["cast"],
        &["operator"],
        &["function", "aggregate", "window"],
        &["registry"],
        &["lib"],
    ],
    strangers: &[],
    exported: &[],
    crates: &[
        ("datafusion", &[]),
        ("datafusion_sql", &[]),
        ("datafusion_optimizer", &[]),
        ("datafusion_physical_plan", &[]),
        ("mainstem_storage", &["error", "schema", "ids", "Error", "ErrorKind", "Result"]),
    ],
};

const SQL: Layers = Layers {
    src: "crates/mainstem/src/",
    ranks: &[
        &["names", "read_at", "value", "walk"],
        &["sql"],
        &["error"],
        &["csv"],
        &["provider"],
        &["analyze"],
        &["optimize"],
        &["decorrelate"],
        &["exec"],
        &["plan"],
        &["point_path"],
        &["session"],
        &["api"],
        &["lib"],
    ],
    strangers: &[],
    exported: &["named_params", "ToValue", "Params"],
    crates: &[],
};

impl Layers {
    fn rank(&self, module: &str) -> Option<usize> {
        self.ranks.iter().position(|names| names.contains(&module))
    }

    /// Why the file `rest` of `module` may not import `target`.
    fn refuse(&self, rest: &str, module: &str, target: &str) -> Option<String> {
        if module == target || module == "lib" || self.exported.contains(&target) {
            return None;
        }
        let Some(upper) = self.rank(target) else {
            return Some(format!("imports `{target}`, which has no rank in the tidy test's list"));
        };
        if self.strangers.iter().any(|names| names.contains(&module) && names.contains(&target)) {
            return Some(format!("`{module}` may not know `{target}`"));
        }
        if self.rank(module)? < upper {
            return Some(format!("`{module}` may not import `{target}`: it stands above"));
        }
        let decides = module == "layout" || rest.ends_with("/policy.rs");
        (decides && target == "disk").then(|| "what only decides may not import `disk`".to_string())
    }

    /// Names of other crates in `code` that may not stand there, with their lines.
    fn foreign(&self, code: &str) -> Vec<(usize, String)> {
        let mut found = vec![];
        for (name, allowed) in self.crates {
            for (at, path) in code.match_indices(&format!("{name}::")) {
                if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    continue;
                }
                let line = code[..at].matches('\n').count() + 1;
                for (lines, head) in heads(&code[at + path.len()..]) {
                    if !allowed.contains(&head.as_str()) {
                        found.push((line + lines, format!("`{name}::{head}` is not for this crate")));
                    }
                }
            }
        }
        found
    }
}

/// All imports that go up, to a stranger, or out of a crate's walls.
pub(super) fn check(checkout: &Checkout) -> Vec<Violation> {
    let mut found = vec![];
    for source in &checkout.rust {
        for layers in [&STORAGE, &POSTGRES, &SQL] {
            let Some(rest) = source.path.strip_prefix(layers.src) else { continue };
            if is_test(&source.path) {
                continue;
            }
            let module = rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs");
            if layers.rank(module).is_none() {
                let what = format!("module `{module}` has no rank in the tidy test's list");
                found.push(violation(&source.path, 0, what));
                continue;
            }
            let code: Vec<String> = code_view(&source.text).lines().map(str::to_string).collect();
            let code = code[..production_lines(&source.text)].join("\n");
            for (line, target) in imports(rest, &code) {
                if let Some(what) = layers.refuse(rest, module, &target) {
                    found.push(violation(&source.path, line, what));
                }
            }
            found.extend(layers.foreign(&code).into_iter().map(|(line, what)| violation(&source.path, line, what)));
        }
    }
    found
}

/// The root modules that `code` of the file `rest` names, with their lines: `crate::X`, `crate::{X, Y}` and as many
/// `super::` as lead to the root.
fn imports(rest: &str, code: &str) -> Vec<(usize, String)> {
    let depth = rest.matches('/').count() + usize::from(!rest.ends_with("mod.rs") && rest != "lib.rs");
    let mut found = vec![];
    for (prefix, needed) in [("crate::".to_string(), true), ("super::".repeat(depth.max(1)), depth > 0)] {
        for (at, _) in code.match_indices(prefix.as_str()).filter(|_| needed) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || "_$:".contains(c)) {
                continue;
            }
            let line = code[..at].matches('\n').count() + 1;
            found.extend(heads(&code[at + prefix.len()..]).into_iter().map(|(lines, head)| (line + lines, head)));
        }
    }
    found
}

/// The first name of each path that follows `crate::`: one, or those of a group in braces. With the lines passed.
fn heads(rest: &str) -> Vec<(usize, String)> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else {
        let name = word(rest);
        return if name.is_empty() || name == "super" { vec![] } else { vec![(0, name)] };
    };
    let (mut found, mut depth, mut expect, mut lines) = (vec![], 0_usize, true, 0);
    for (at, c) in group.char_indices() {
        match c {
            '\n' => lines += 1,
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => expect = true,
            c if expect && (c.is_alphabetic() || c == '_') => {
                found.push((lines, word(&group[at..])));
                expect = false;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn imports_are_seen_in_every_shape() {
    let names = |rest: &str, code: &str| imports(rest, code).into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    assert_eq!(names("merge/mod.rs", "use crate::scan::Request;"), ["scan"]);
    assert_eq!(names("merge/mod.rs", "use crate::{scan::{a, b}, error::Error,\n wal};"), ["scan", "error", "wal"]);
    assert_eq!(
        names("merge/job.rs", "let x = crate::disk::open(); super::plan::f(); super::super::load::g()"),
        ["disk", "load"]
    );
    assert_eq!(names("merge/mod.rs", "use super::load; $crate::x!(); pub(crate) fn f() {}"), ["load"]);
    assert_eq!(names("table.rs", "use super::database;"), ["database"]);
    assert_eq!(names("write_set/mod.rs", "use crate::codec::Encoder; use crate::wal::Log;"), ["codec", "wal"]);
    assert_eq!(imports("merge/mod.rs", "\nuse crate::{\n  a,\n  b\n};"), [(3, "a".into()), (4, "b".into())]);
}

#[test]
fn wrong_imports_are_refused() {
    let refuse = |rest: &str, module: &str, target: &str| STORAGE.refuse(rest, module, target);
    assert_eq!(refuse("merge/job.rs", "merge", "scan"), None);
    assert_eq!(refuse("merge/job.rs", "merge", "Error"), None);
    assert!(refuse("merge/job.rs", "merge", "load").unwrap().contains("may not know"));
    assert!(refuse("delta_store/mod.rs", "delta_store", "main_store").is_some());
    assert!(refuse("segment/mod.rs", "segment", "scan").unwrap().contains("stands above"));
    assert!(refuse("merge/policy.rs", "merge", "disk").is_some());
    assert!(refuse("merge/job.rs", "merge", "novelty").unwrap().contains("no rank"));
    assert!(SQL.refuse("sql/ddl.rs", "sql", "error").unwrap().contains("stands above"));
    assert_eq!(SQL.refuse("session/mod.rs", "session", "exec"), None);
}

#[test]
fn foreign_crates_stay_outside() {
    let code = "use datafusion::sql::x;\nuse mainstem_storage::{Error, transaction::T};\nuse datafusion_expr::Expr;";
    let found: Vec<String> = POSTGRES.foreign(code).into_iter().map(|(line, what)| format!("{line} {what}")).collect();
    assert_eq!(
        found,
        ["1 `datafusion::sql` is not for this crate", "2 `mainstem_storage::transaction` is not for this crate"]
    );
    assert!(SQL.foreign(code).is_empty());
}
