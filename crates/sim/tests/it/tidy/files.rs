//! Rules on single files and folders.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use super::code_view::{code_view, has_word};
use super::{Checkout, Source, Violation, violation};

/// Lines of one file outside its tests. The style says about 600.
const FILE_LINES_MAX: usize = 620;
/// Rust files directly in one folder below `src/`.
const FOLDER_FILES_MAX: usize = 12;
/// Folders between `src/` and a file.
const NESTING_MAX: usize = 3;
/// Columns of a comment.
const COMMENT_COLUMNS_MAX: usize = 120;
/// Words of one sentence of a comment.
const SENTENCE_WORDS_MAX: usize = 40;
/// Bytes of one tracked file.
const BLOB_BYTES_MAX: u64 = 512 * 1024;

const BANNED_NAMES: [&str; 8] = ["utils", "util", "helpers", "helper", "common", "misc", "stuff", "shared"];

/// Words that may not stand in code, spelled apart so that this file may.
fn banned_code() -> [String; 4] {
    [["todo", "!"], ["unimplemented", "!"], ["dbg", "!"], ["#[", "ignore"]].map(|parts| parts.concat())
}

/// Words that may not stand anywhere, comments included.
fn banned_words() -> [String; 3] {
    [["FIX", "ME"], ["X", "XX"], ["HA", "CK"]].map(|parts| parts.concat())
}

/// Beginnings of paths that exist on one machine only.
fn banned_paths() -> [String; 4] {
    ["root/", "home/", "work/", "Users/"].map(|folder| format!("/{folder}"))
}

/// All violations of the rules on files.
pub(super) fn check(checkout: &Checkout) -> Vec<Violation> {
    let mut found = vec![];
    for source in &checkout.rust {
        let code = code_view(&source.text);
        length(source, &mut found);
        name(source, &mut found);
        code_words(source, &code, &mut found);
        module_map(source, &mut found);
        comments(source, &mut found);
    }
    for source in checkout.rust.iter().chain(&checkout.other) {
        text_words(source, &mut found);
    }
    folders(checkout, &mut found);
    dead_files(checkout, &mut found);
    blobs(checkout, &mut found);
    found
}

/// Whether a file holds only tests.
pub(super) fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// The lines before an inline test module.
pub(super) fn production_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let starts = |i: &usize| {
        lines[*i].trim() == "#[cfg(test)]"
            && lines.get(i + 1).is_some_and(|next| next.contains("mod ") && next.ends_with('{'))
    };
    (0..lines.len()).find(starts).unwrap_or(lines.len())
}

fn length(source: &Source, found: &mut Vec<Violation>) {
    let lines = production_lines(&source.text);
    if !is_test(&source.path) && lines > FILE_LINES_MAX {
        found.push(violation(&source.path, 0, format!("{lines} lines; split it by role (at most {FILE_LINES_MAX})")));
    }
}

fn name(source: &Source, found: &mut Vec<Violation>) {
    for part in source.path.trim_end_matches(".rs").split('/') {
        let version =
            part.rsplit_once("_v").is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if BANNED_NAMES.contains(&part) || version {
            found.push(violation(&source.path, 0, format!("\"{part}\" says nothing: name it by its role")));
        }
    }
}

fn code_words(source: &Source, code: &str, found: &mut Vec<Violation>) {
    for (at, line) in code.lines().enumerate() {
        for word in banned_code().iter().filter(|word| line.contains(word.as_str())) {
            found.push(violation(&source.path, at + 1, format!("`{word}` may not stay")));
        }
        if has_word(line, "unsafe") && !source.path.starts_with("crates/kernels/") {
            found.push(violation(&source.path, at + 1, "`unsafe` belongs into crates/kernels"));
        }
    }
}

fn text_words(source: &Source, found: &mut Vec<Violation>) {
    for (at, line) in source.text.lines().enumerate() {
        for word in banned_words().iter().filter(|word| has_word(line, word)) {
            found.push(violation(&source.path, at + 1, format!("`{word}` may not stay")));
        }
        for path in banned_paths() {
            let starts_a_path =
                |(at, _): (usize, &str)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-./}$)".contains(c));
            if line.match_indices(path.as_str()).any(starts_a_path) {
                found.push(violation(&source.path, at + 1, format!("`{path}` is a path of one machine")));
            }
        }
    }
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("//")?;
    Some(rest.trim_start_matches(['/', '!']).trim())
}

/// Comments are narrow, and their sentences short. Tables and examples are left out.
fn comments(source: &Source, found: &mut Vec<Violation>) {
    let (mut words, mut is_code) = (0, false);
    for (at, line) in source.text.lines().enumerate() {
        let Some(text) = comment(line) else {
            (words, is_code) = (0, false);
            continue;
        };
        is_code ^= text.starts_with("```");
        let is_table = text.starts_with('|');
        if line.chars().count() > COMMENT_COLUMNS_MAX && !is_table && !is_code && !text.contains("://") {
            found.push(violation(
                &source.path,
                at + 1,
                format!("a comment of more than {COMMENT_COLUMNS_MAX} columns"),
            ));
        }
        if text.is_empty() || is_table || is_code {
            words = 0;
            continue;
        }
        let begins_item = text.starts_with("- ") || text.split_once(". ").is_some_and(|(n, _)| n.parse::<u8>().is_ok());
        if begins_item {
            words = 0;
        }
        for word in text.split_whitespace() {
            words += 1;
            if words == SENTENCE_WORDS_MAX + 1 {
                let what = format!("a sentence of more than {SENTENCE_WORDS_MAX} words ends here or behind");
                found.push(violation(&source.path, at + 1, what));
            }
            if word.ends_with(['.', '?', '!', ':', ';']) || word.ends_with(".)") {
                words = 0;
            }
        }
    }
}

/// Every folder module opens with its map.
fn module_map(source: &Source, found: &mut Vec<Violation>) {
    let folder_module = source.path.contains("/src/") && source.path.ends_with("/mod.rs");
    if folder_module && !is_test(&source.path) && !source.text.starts_with("//!") {
        found.push(violation(&source.path, 1, "a module opens with its `//!` map"));
    }
}

/// The part of a path below `src/`.
fn below_src(path: &str) -> Option<&str> {
    path.split_once("/src/").map(|(_, rest)| rest)
}

fn folders(checkout: &Checkout, found: &mut Vec<Violation>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut only: BTreeMap<&str, &str> = BTreeMap::new();
    for source in &checkout.rust {
        let Some(rest) = below_src(&source.path) else { continue };
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *counts.entry(folder).or_default() += 1;
        only.insert(folder, &source.path);
        if rest.matches('/').count() > NESTING_MAX {
            found.push(violation(&source.path, 0, format!("more than {NESTING_MAX} folders below src/")));
        }
    }
    for (folder, path) in only {
        let inside = format!("{folder}/");
        let has_folders = counts.keys().any(|other| other.starts_with(&inside));
        if counts.get(folder) == Some(&1) && !has_folders && !folder.ends_with("/src") && !is_test(path) {
            found.push(violation(path, 0, "the only file of its folder: it stands one above"));
        }
    }
    for (folder, count) in counts.into_iter().filter(|&(_, count)| count > FOLDER_FILES_MAX) {
        found.push(violation(folder, 0, format!("{count} files in one folder (at most {FOLDER_FILES_MAX})")));
    }
}

/// Every file is reached by a `mod` line from a root of its crate.
fn dead_files(checkout: &Checkout, found: &mut Vec<Violation>) {
    let texts: BTreeMap<&str, &str> = checkout.rust.iter().map(|s| (s.path.as_str(), s.text.as_str())).collect();
    let mut pending: Vec<&str> = texts.keys().copied().filter(|path| is_root(path)).collect();
    let mut reached: BTreeSet<&str> = pending.iter().copied().collect();
    while let Some(path) = pending.pop() {
        for module in modules(texts[path]) {
            for candidate in candidates(path, &module) {
                if let Some((&next, _)) = texts.get_key_value(candidate.as_str())
                    && reached.insert(next)
                {
                    pending.push(next);
                }
            }
        }
    }
    for path in texts.keys().filter(|path| !reached.contains(*path)) {
        found.push(violation(*path, 0, "dead file: no `mod` line leads to it"));
    }
}

fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        [_, _, "src", "lib.rs" | "main.rs"]
            | [_, _, "build.rs"]
            | [_, _, "src", "bin", _]
            | [_, _, "examples" | "benches" | "tests", _]
            | [_, _, "src", "bin", _, "main.rs"]
            | [_, _, "examples" | "benches" | "tests", _, "main.rs"]
    )
}

/// Names declared by `mod NAME;` lines, with the folders of inline modules left out.
fn modules(text: &str) -> Vec<String> {
    let declared = |line: &str| {
        let line = line.trim().strip_suffix(';')?;
        let (before, name) = line.rsplit_once("mod ")?;
        (before.is_empty() || before.trim_end().starts_with("pub") || before.trim_end().ends_with(']'))
            .then(|| name.trim().to_string())
    };
    code_view(text).lines().filter_map(declared).collect()
}

/// Where the module `name` of the file `path` may stand.
fn candidates(path: &str, name: &str) -> [String; 2] {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let base = if matches!(stem, "mod" | "lib" | "main") || is_root(path) {
        folder.to_string()
    } else {
        format!("{folder}/{stem}")
    };
    [format!("{base}/{name}.rs"), format!("{base}/{name}/mod.rs")]
}

/// No large file is tracked. Outside git there is nothing to ask.
fn blobs(checkout: &Checkout, found: &mut Vec<Violation>) {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(&checkout.root).output();
    let Ok(output) = listed else { return };
    if !output.status.success() {
        return;
    }
    for path in String::from_utf8_lossy(&output.stdout).split('\0').filter(|path| !path.is_empty()) {
        let bytes = std::fs::metadata(checkout.root.join(path)).map_or(0, |m| m.len());
        if bytes > BLOB_BYTES_MAX {
            found.push(violation(path, 0, format!("{bytes} bytes in git (at most {BLOB_BYTES_MAX})")));
        }
    }
}

/// Everything wrong that can be, in a checkout made up for it.
#[test]
fn every_rule_on_files_is_felt() {
    let source = |path: &str, text: String| Source { path: path.into(), text };
    let words = [banned_code().join(";\n"), banned_words().map(|w| format!("// {w} here")).join("\n")].join("\n");
    let mut rust = vec![
        source(
            "crates/storage/src/lib.rs",
            format!("//! {}\nmod long;\nmod utils;\nmod a;\nmod words;\nmod map;", "wide ".repeat(41)),
        ),
        source("crates/storage/src/long.rs", "//! Long.\n".repeat(FILE_LINES_MAX + 1)),
        source("crates/storage/src/utils.rs", "//! Utils.".into()),
        source("crates/storage/src/dead_v2.rs", "//! Dead.".into()),
        source("crates/storage/src/a/b/c/d/deep.rs", "//! Deep.".into()),
        source("crates/storage/src/words.rs", words),
        source("crates/storage/src/map/mod.rs", format!("use x;\nunsafe {{ }}\n// see {}me\n", banned_paths()[0])),
    ];
    rust.extend((0..13).map(|n| source(&format!("crates/kernels/src/many/m{n}.rs"), String::new())));
    let checkout =
        Checkout { root: std::env::temp_dir().join("no such folder"), rust, other: vec![], documents: vec![] };
    let found: Vec<String> = check(&checkout).iter().map(Violation::to_string).collect();
    for (part, times) in [
        ("long.rs: 621 lines", 1),
        ("\"utils\" says nothing", 1),
        ("\"dead_v2\" says nothing", 1),
        ("dead_v2.rs: dead file", 1),
        ("deep.rs: more than 3 folders", 1),
        ("deep.rs: the only file", 1),
        ("more than 120 columns", 1),
        ("more than 40 words", 1),
        ("may not stay", 7),
        ("map/mod.rs:2: `unsafe`", 1),
        ("map/mod.rs:1: a module opens", 1),
        ("is a path of one machine", 1),
        ("many: 13 files in one folder", 1),
    ] {
        let seen = found.iter().filter(|line| line.contains(part)).count();
        assert_eq!(seen, times, "{part}:\n{}", found.join("\n"));
    }
}

#[test]
fn modules_are_found_where_they_may_stand() {
    let text =
        "pub mod a;\n#[cfg(test)]\nmod tests;\npub(crate) mod b;\n// mod no;\nmod inline {\n}\n#[cfg(loom)] mod c;";
    assert_eq!(modules(text), ["a", "tests", "b", "c"]);
    assert_eq!(candidates("crates/x/src/lib.rs", "a")[1], "crates/x/src/a/mod.rs");
    assert_eq!(candidates("crates/x/src/a.rs", "b")[0], "crates/x/src/a/b.rs");
    assert_eq!(candidates("crates/x/src/a/mod.rs", "b")[0], "crates/x/src/a/b.rs");
    assert_eq!(candidates("crates/x/tests/it/main.rs", "t")[0], "crates/x/tests/it/t.rs");
}
