//! What a Tab completes: keywords, tables, columns, settings, commands and files.
//!
//! Comes in: the line at the terminal, and what was typed before it. Goes out: words that may be meant. Names are those
//! that the connection sees, in its open transaction too; what a failed one would see is not asked for. Invariants:
//! asking changes nothing, and what cannot be asked is no error, there is just less to complete.

use std::sync::{Arc, Mutex, PoisonError};

use mainstem::{Connection, TransactionStatus};
use rustyline::completion::Pair;

use super::catalog::{Catalog, Relation};
use super::context::{Named, Place, Wanted, place};
use super::keywords::KEYWORDS;
use crate::commands::{self, Argument, COMMANDS};

/// What the next line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// SQL or a command, behind the lines `before` of the same statement.
    Sql { before: String },
    /// Data of COPY.
    Data,
}

/// See the module.
pub struct Completion {
    connection: Arc<Connection>,
    state: Mutex<State>,
}

struct State {
    mode: Mode,
    catalog: Arc<Catalog>,
    /// Whether `catalog` is what names mean now.
    is_fresh: bool,
}

impl Completion {
    /// Completion of what `connection` knows.
    pub fn new(connection: Arc<Connection>) -> Self {
        let mode = Mode::Sql { before: String::new() };
        Self { connection, state: Mutex::new(State { mode, catalog: Arc::default(), is_fresh: false }) }
    }

    /// Says what the next line is.
    pub fn expect(&self, mode: Mode) {
        self.with_state(|state| state.mode = mode);
    }

    /// Says that names may mean something else from now on.
    pub fn forget(&self) {
        self.with_state(|state| state.is_fresh = false);
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there is something to complete at byte `at` of `line`.
    pub fn completes(&self, line: &str, at: usize) -> bool {
        let (start, candidates) = self.candidates(line, at);
        let typed = line.get(start..at).unwrap_or_default();
        match candidates.as_slice() {
            [] => false,
            // It is there already.
            [only] => !only.replacement.trim_end().eq_ignore_ascii_case(typed),
            _ => true,
        }
    }

    /// What may be meant at byte `at` of `line`, and where that begins.
    pub fn candidates(&self, line: &str, at: usize) -> (usize, Vec<Pair>) {
        let is_blank = line.get(..at).is_none_or(|before| before.trim().is_empty());
        let before = match self.with_state(|state| state.mode.clone()) {
            Mode::Sql { before } if !is_blank => before,
            _ => return (at, Vec::new()),
        };
        // A command may stand between the lines of a statement.
        let before = if line.trim_start().starts_with('\\') { String::new() } else { before };
        let text = format!("{before}{line}");
        let place = place(&text, before.len() + at);
        let Some(start) = place.start.checked_sub(before.len()) else { return (at, Vec::new()) };
        let typed = line.get(start..at).unwrap_or_default();
        (start, self.words(&place, typed))
    }

    /// The words for `place` that begin as `typed`.
    fn words(&self, place: &Place, typed: &str) -> Vec<Pair> {
        let word = Word::new(typed);
        let mut found = match &place.wanted {
            Wanted::Nothing => Vec::new(),
            Wanted::Command => {
                let known = COMMANDS.iter().filter(|(name, _)| name.starts_with(typed));
                known.map(|(name, argument)| plain(name, *argument != Argument::None)).collect()
            }
            Wanted::File => files(typed),
            Wanted::Switch => {
                ["on", "off"].iter().filter(|name| name.starts_with(typed)).map(|n| plain(n, false)).collect()
            }
            Wanted::Setting => {
                self.catalog().settings().iter().filter(|name| word.begins(name)).map(|n| plain(n, true)).collect()
            }
            Wanted::Relation { schema } => word.relations(&self.catalog(), schema.as_deref()),
            Wanted::Member { of } => self.members(of, &place.tables, &word),
            Wanted::Any => self.any(&place.tables, &word),
        };
        if let [only] = found.as_mut_slice() {
            // Nothing but a blank can follow.
            only.finish();
        }
        found
            .into_iter()
            .map(|candidate| Pair { display: candidate.text.clone(), replacement: candidate.text })
            .collect()
    }

    /// Columns of what `tables` call `of`, or the tables of the schema of that name.
    fn members(&self, of: &str, tables: &[Named], word: &Word<'_>) -> Vec<Candidate> {
        let catalog = self.catalog();
        let called = |table: &&Named| table.alias.as_deref().unwrap_or(&table.name) == of;
        let columns: Vec<String> =
            tables.iter().filter(called).flat_map(|table| self.columns_of(&catalog, table)).collect();
        match columns.is_empty() {
            true => word.relations(&catalog, Some(of)),
            false => word.names(&columns),
        }
    }

    /// Columns, tables and keywords.
    fn any(&self, tables: &[Named], word: &Word<'_>) -> Vec<Candidate> {
        let catalog = self.catalog();
        let mut columns: Vec<String> = tables.iter().flat_map(|table| self.columns_of(&catalog, table)).collect();
        columns.sort_unstable();
        columns.dedup();
        let mut found = word.names(if columns.is_empty() { catalog.columns() } else { &columns });
        found.extend(word.relations(&catalog, None));
        found.extend(word.keywords());
        found
    }

    fn columns_of(&self, catalog: &Catalog, table: &Named) -> Vec<String> {
        match catalog.find(table.schema.as_deref(), &table.name) {
            Some(relation) => catalog.columns_of(&self.connection, relation),
            None => Vec::new(),
        }
    }

    /// What names mean now, or meant last if that cannot be asked.
    fn catalog(&self) -> Arc<Catalog> {
        let known = self.with_state(|state| (state.catalog.clone(), state.is_fresh));
        if known.1 || self.connection.status() == TransactionStatus::Failed {
            return known.0;
        }
        let Ok(catalog) = Catalog::load(&self.connection).map(Arc::new) else { return known.0 };
        self.with_state(|state| {
            state.catalog = catalog.clone();
            state.is_fresh = true;
        });
        catalog
    }
}

/// A word that may be meant.
struct Candidate {
    text: String,
    /// Whether a blank stands behind it.
    ends: bool,
}

impl Candidate {
    fn finish(&mut self) {
        if self.ends {
            self.text.push(' ');
        }
    }
}

fn plain(text: &str, ends: bool) -> Candidate {
    Candidate { text: text.to_owned(), ends }
}

/// A word as far as it is typed.
struct Word<'a> {
    typed: &'a str,
    /// Without its quote, in small letters.
    folded: String,
    is_quoted: bool,
}

impl<'a> Word<'a> {
    fn new(typed: &'a str) -> Self {
        let name = typed.strip_prefix('"');
        Self { typed, folded: name.unwrap_or(typed).to_lowercase(), is_quoted: name.is_some() }
    }

    /// Whether `name` begins so.
    fn begins(&self, name: &str) -> bool {
        name.to_lowercase().starts_with(&self.folded)
    }

    /// Those of `names` that begin so.
    fn names(&self, names: &[String]) -> Vec<Candidate> {
        let found = names.iter().filter(|name| self.begins(name));
        found.map(|name| plain(&self.in_sql(name), true)).collect()
    }

    /// Relations of `schema`, or those that are found without one, and schemas.
    fn relations(&self, catalog: &Catalog, schema: Option<&str>) -> Vec<Candidate> {
        let is_wanted = |relation: &&Relation| match schema {
            Some(schema) => relation.schema == schema,
            None => relation.is_visible,
        };
        let found = catalog.relations().iter().filter(is_wanted).filter(|relation| self.begins(&relation.name));
        let relations = found.map(|relation| plain(&self.in_sql(&relation.name), true));
        let schemas = catalog.schemas().into_iter().filter(|name| schema.is_none() && self.begins(name));
        relations.chain(schemas.map(|name| plain(&format!("{}.", self.in_sql(name)), false))).collect()
    }

    /// Keywords, in the letters that are typed.
    fn keywords(&self) -> Vec<Candidate> {
        if self.is_quoted {
            return Vec::new();
        }
        let is_small = self.typed.contains(char::is_lowercase);
        let found = KEYWORDS.iter().filter(|keyword| self.begins(keyword));
        found
            .map(|keyword| plain(&if is_small { keyword.to_lowercase() } else { (*keyword).to_owned() }, true))
            .collect()
    }

    /// `name` as SQL has it: in quotes where it must be, or where it is so begun.
    fn in_sql(&self, name: &str) -> String {
        let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        match is_plain && !self.is_quoted {
            true => name.to_owned(),
            false => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }
}

/// Files and folders whose paths begin with `typed`.
fn files(typed: &str) -> Vec<Candidate> {
    let (folder, name) = typed.split_at(typed.rfind('/').map_or(0, |slash| slash + 1));
    let path = if folder.is_empty() { commands::expanded("./") } else { commands::expanded(folder) };
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut found: Vec<Candidate> = entries
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            // Hidden ones only if they are asked for.
            let is_wanted = file.starts_with(name) && (name.starts_with('.') || !file.starts_with('.'));
            let slash = if entry.path().is_dir() { "/" } else { "" };
            is_wanted.then(|| plain(&format!("{folder}{file}{slash}"), false))
        })
        .collect();
    found.sort_unstable_by(|a, b| a.text.cmp(&b.text));
    found
}

#[cfg(test)]
mod tests;
