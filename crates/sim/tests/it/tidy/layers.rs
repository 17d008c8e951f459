//! Which module of the storage crate may import which: only downwards, or sideways within one rank where nothing
//! forbids it. `docs/ARCHITECTURE.md` draws the same list.

use super::code_view::code_view;
use super::files::{is_test, production_lines};
use super::{Checkout, Violation, violation};

/// The one part of `wal` that everybody who has a byte form may use: it knows numbers and strings only.
const CODEC: &str = "wal::codec";

/// Modules from the ground up; a module imports its own rank and those below. `codec` is [`CODEC`].
const RANKS: [&[&str]; 12] = [
    &["ids", "limits", "error", "shared_map", "threads", "schema", "settings", "memory", "row", "predicate", "codec"],
    &["disk", "catalog", "deletes", "layout"],
    &["segment", "index", "wal"],
    &["delta_store", "update_cache", "main_store", "manifest"],
    &["txn"],
    &["version"],
    &["point", "order", "scan"],
    &["load", "merge"],
    &["commit"],
    &["recover", "background"],
    &["transaction", "database"],
    &["lib"],
];

/// Modules of one rank that may not know one another.
const STRANGERS: [&[&str]; 2] = [&["delta_store", "update_cache", "main_store"], &["load", "merge"]];

/// Names at the root of the crate that are no modules but what `lib.rs` exports again from the base.
const EXPORTED: [&str; 3] = ["Error", "ErrorKind", "Result"];

const SRC: &str = "crates/storage/src/";

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|names| names.contains(&module))
}

/// All imports of the storage crate that go up, or to a stranger.
pub(super) fn check(checkout: &Checkout) -> Vec<Violation> {
    let mut found = vec![];
    for source in &checkout.rust {
        let Some(rest) = source.path.strip_prefix(SRC) else { continue };
        if is_test(&source.path) {
            continue;
        }
        let module = rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs");
        if rank(module).is_none() {
            found.push(violation(&source.path, 0, format!("module `{module}` has no rank in the tidy test's list")));
            continue;
        }
        let code: Vec<String> = code_view(&source.text).lines().map(str::to_string).collect();
        let code = code[..production_lines(&source.text)].join("\n");
        for (line, target) in imports(rest, &code) {
            if let Some(what) = refuse(rest, module, &target) {
                found.push(violation(&source.path, line, what));
            }
        }
    }
    found
}

/// Why the file `rest` of `module` may not import `target`.
fn refuse(rest: &str, module: &str, target: &str) -> Option<String> {
    if module == target || module == "lib" || EXPORTED.contains(&target) {
        return None;
    }
    let Some(upper) = rank(target) else {
        return Some(format!("imports `{target}`, which has no rank in the tidy test's list"));
    };
    if STRANGERS.iter().any(|names| names.contains(&module) && names.contains(&target)) {
        return Some(format!("`{module}` may not know `{target}`"));
    }
    if rank(module)? < upper {
        return Some(format!("`{module}` may not import `{target}`: it stands above"));
    }
    let decides = module == "layout" || rest.ends_with("/policy.rs");
    (decides && target == "disk").then(|| "what only decides may not import `disk`".to_string())
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
    let word = |text: &str| match text.strip_prefix(CODEC) {
        Some(_) => "codec".to_string(),
        None => text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>(),
    };
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
    assert_eq!(names("txn/mod.rs", "use crate::wal::codec::Encoder; use crate::wal::Log;"), ["codec", "wal"]);
    assert_eq!(imports("merge/mod.rs", "\nuse crate::{\n  a,\n  b\n};"), [(3, "a".into()), (4, "b".into())]);
}

#[test]
fn wrong_imports_are_refused() {
    assert_eq!(refuse("merge/job.rs", "merge", "scan"), None);
    assert_eq!(refuse("merge/job.rs", "merge", "Error"), None);
    assert!(refuse("merge/job.rs", "merge", "load").unwrap().contains("may not know"));
    assert!(refuse("delta_store/mod.rs", "delta_store", "main_store").is_some());
    assert!(refuse("segment/mod.rs", "segment", "scan").unwrap().contains("stands above"));
    assert!(refuse("merge/policy.rs", "merge", "disk").is_some());
    assert!(refuse("merge/job.rs", "merge", "novelty").unwrap().contains("no rank"));
}
