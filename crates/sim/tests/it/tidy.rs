//! The style as a test: one run reports every violation in the checkout, each with its file and line.
//!
//! What comes in: the files of the checkout (this crate's manifest stands two folders below its root).
//! What goes out: a panic that lists all violations, or nothing.
//!
//! 1. `files` looks at each Rust file and folder: lengths, names, banned words, `unsafe`, module maps, dead files;
//! 2. `layers` looks at what the modules of the storage crate import from one another;
//! 3. `documents` looks at what README, docs and CHANGELOG promise: paths and commands.
//!
//! It does not own: formatting (rustfmt) and lints (clippy).

mod code_view;
mod documents;
mod files;
mod layers;

use std::fmt;
use std::path::{Path, PathBuf};

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// Path below the root of the checkout.
    file: String,
    /// Line, from 1; 0 means the file or folder as a whole.
    line: usize,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{}: {}", self.file, line, self.what),
        }
    }
}

fn violation(file: impl Into<String>, line: usize, what: impl Into<String>) -> Violation {
    Violation { file: file.into(), line, what: what.into() }
}

/// A text file of the checkout.
struct Source {
    /// Path below the root, with `/`.
    path: String,
    text: String,
}

/// What the rules look at.
struct Checkout {
    root: PathBuf,
    /// Every `.rs` file below `crates/`.
    rust: Vec<Source>,
    /// Scripts, SQL and manifests, for banned words only.
    other: Vec<Source>,
    /// README, CHANGELOG and everything below `docs/`.
    documents: Vec<Source>,
}

impl Checkout {
    /// Reads the checkout at `root`; folders named `target` and hidden ones are left out.
    fn read(root: &Path) -> Self {
        let mut checkout = Self { root: root.to_path_buf(), rust: vec![], other: vec![], documents: vec![] };
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() {
                    if name != "target" && !name.starts_with('.') && !path.is_symlink() {
                        folders.push(path);
                    }
                    continue;
                }
                let relative = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                checkout.file(relative, &path);
            }
        }
        for list in [&mut checkout.rust, &mut checkout.other, &mut checkout.documents] {
            list.sort_by(|a, b| a.path.cmp(&b.path));
        }
        checkout
    }

    fn file(&mut self, relative: String, path: &Path) {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let list = match extension {
            "rs" if relative.starts_with("crates/") => &mut self.rust,
            "py" | "sh" | "slt" | "sql" | "toml" => &mut self.other,
            "md" if relative.starts_with("docs/") || matches!(relative.as_str(), "README.md" | "CHANGELOG.md") => {
                &mut self.documents
            }
            _ => return,
        };
        if let Ok(text) = std::fs::read_to_string(path) {
            list.push(Source { path: relative, text });
        }
    }
}

/// The root of the checkout. Asked at run time: several checkouts may share one build.
fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR"))).join("../..").canonicalize().unwrap()
}

#[test]
fn the_checkout_is_tidy() {
    let checkout = Checkout::read(&root());
    assert!(checkout.rust.iter().any(|s| s.path == "crates/storage/src/lib.rs"), "this is not the checkout");
    let mut found = files::check(&checkout);
    found.extend(layers::check(&checkout));
    found.extend(documents::check(&checkout));
    found.sort();
    found.dedup();
    let list: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert!(list.is_empty(), "{} violations of the style:\n{}", list.len(), list.join("\n"));
}
