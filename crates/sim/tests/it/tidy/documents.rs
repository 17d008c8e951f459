//! What the documents promise: the paths they name exist, the commands they show can be run.

use super::{Checkout, Source, Violation, violation};

/// A name in backticks that begins so is a path of the checkout.
const PATH_STARTS: [&str; 7] = ["crates/", "docs/", "slt/", "bench/", "compat/", "scripts/", ".ci/"];

/// Cargo's own commands that a document may show.
const CARGO: [&str; 12] =
    ["build", "test", "run", "check", "clippy", "fmt", "doc", "bench", "install", "add", "clean", "update"];

/// All promises of the documents that do not hold.
pub(super) fn check(checkout: &Checkout) -> Vec<Violation> {
    let aliases = std::fs::read_to_string(checkout.root.join(".cargo/config.toml")).unwrap_or_default();
    let mut found = vec![];
    for source in &checkout.documents {
        let exists = |path: &str| checkout.root.join(path).exists();
        paths(source, &exists, &mut found);
        commands(source, &aliases, &mut found);
    }
    found
}

/// What may be asked of the checkout for a name in backticks: the path, or the folder in front of a pattern.
fn path_of(name: &str) -> Option<String> {
    if !PATH_STARTS.iter().any(|start| name.starts_with(start)) || name.contains(' ') {
        return None;
    }
    let name = name.split(['#', ':']).next().unwrap_or(name);
    let stands_for_names = |part: &str| {
        part.contains(['*', '{', '<', '…', '?']) || part.contains("NNNN") || part.split('.').any(|word| word == "NAME")
    };
    let fixed: Vec<&str> = name.split('/').take_while(|part| !stands_for_names(part)).collect();
    Some(fixed.join("/").trim_end_matches('/').to_string())
}

fn paths(source: &Source, exists: &dyn Fn(&str) -> bool, found: &mut Vec<Violation>) {
    for (at, line) in source.text.lines().enumerate() {
        for name in line.split('`').skip(1).step_by(2) {
            if let Some(path) = path_of(name)
                && !exists(&path)
            {
                found.push(violation(&source.path, at + 1, format!("`{name}` does not exist")));
            }
        }
    }
}

/// `cargo X` at the start of a line in a fenced block: X is Cargo's or an alias of ours.
fn commands(source: &Source, aliases: &str, found: &mut Vec<Violation>) {
    let mut fenced = false;
    for (at, line) in source.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let shown = line.trim_start().trim_start_matches("$ ");
        let Some(rest) = shown.strip_prefix("cargo ").filter(|_| fenced) else { continue };
        let command = rest.split_whitespace().find(|word| !word.starts_with('+')).unwrap_or("");
        let alias = aliases.lines().any(|line| line.split('=').next().is_some_and(|key| key.trim() == command));
        if !CARGO.contains(&command) && !alias {
            found.push(violation(
                &source.path,
                at + 1,
                format!("`cargo {command}` is no command and no alias of ours"),
            ));
        }
    }
}

#[test]
fn broken_promises_are_seen() {
    let text = "See `crates/storage/src/gone.rs` and `slt/*.slt`, `docs/design/NNNN-name.md`, `gone/`.\n\
                ```\ncargo demo\n$ cargo frobnicate\n```\ncargo prose\n";
    let source = Source { path: "README.md".into(), text: text.into() };
    let mut found = vec![];
    paths(&source, &|path| ["slt", "docs/design"].contains(&path), &mut found);
    commands(&source, "[alias]\ndemo = \"run\"\n", &mut found);
    let found: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert_eq!(
        found,
        [
            "README.md:1: `crates/storage/src/gone.rs` does not exist",
            "README.md:4: `cargo frobnicate` is no command and no alias of ours",
        ]
    );
}

#[test]
fn patterns_ask_for_their_folder() {
    assert_eq!(path_of("slt/configs/NAME.json").as_deref(), Some("slt/configs"));
    assert_eq!(path_of("docs/formats/{wal,segment}.md").as_deref(), Some("docs/formats"));
    assert_eq!(path_of("crates/storage/src/lib.rs:12").as_deref(), Some("crates/storage/src/lib.rs"));
    assert_eq!(path_of("docs/ARCHITECTURE.md").as_deref(), Some("docs/ARCHITECTURE.md"));
    assert_eq!(path_of("merge/"), None);
}
