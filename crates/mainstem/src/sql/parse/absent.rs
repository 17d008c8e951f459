//! Statements that PostgreSQL has and Mainstem has not: 0A000 by name, in the place of a syntax error.
//!
//! Comes in: the tokens of a statement. Goes out: an error that names the statement, and what to do instead. It is
//! known by its first words, before it is parsed. It does not own: clauses, which are syntax errors (42601), or what
//! sqlparser reads and we do not do, which the readers of each statement refuse.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, ErrorKind};

/// Statements by their first words, each with what to do instead.
const STATEMENTS: &[(&str, &str)] = &[
    ("CALL", ""),
    ("CLOSE", "read the rows of a query as they come"),
    ("CLUSTER", "ORDER BY (...) of CREATE TABLE keeps rows in an order"),
    ("COMMENT", ""),
    ("COMMIT PREPARED", ""),
    ("DECLARE", "read the rows of a query as they come"),
    ("DISCARD", "use RESET ALL and DEALLOCATE ALL"),
    ("DO", ""),
    ("FETCH", "read the rows of a query as they come"),
    ("GRANT", "there are no roles: access is that to the database's directory"),
    ("IMPORT", ""),
    ("LISTEN", ""),
    ("LOAD", ""),
    ("LOCK", "writers of the same rows are told apart by 40001; use SELECT ... FOR UPDATE"),
    ("MERGE", MERGE_INSTEAD),
    ("MOVE", "read the rows of a query as they come"),
    ("NOTIFY", ""),
    ("PREPARE TRANSACTION", ""),
    ("REASSIGN", "there are no roles"),
    ("REFRESH", "there are no materialized views"),
    ("REINDEX", "there is nothing to do: indexes are written with the rows"),
    ("RESET ROLE", "there are no roles"),
    ("RESET SESSION", "there are no roles"),
    ("REVOKE", "there are no roles: access is that to the database's directory"),
    ("ROLLBACK PREPARED", ""),
    ("SECURITY", ""),
    ("SET CONSTRAINTS", "keys and checks are looked at when the statement ends"),
    ("SET ROLE", "there are no roles"),
    ("SET SESSION AUTHORIZATION", "there are no roles"),
    ("SET XML", ""),
    ("UNLISTEN", ""),
];

const MERGE_INSTEAD: &str = "use INSERT ... ON CONFLICT, UPDATE ... FROM and DELETE ... USING in a transaction";

/// Words between CREATE and what is created.
const KINDS: &[&str] = &[
    "OR",
    "REPLACE",
    "UNIQUE",
    "GLOBAL",
    "LOCAL",
    "TEMP",
    "TEMPORARY",
    "UNLOGGED",
    "RECURSIVE",
    "TRUSTED",
    "PROCEDURAL",
    "CONSTRAINT",
];

/// What is created, altered or dropped, and is not there, each with what to do instead.
const OBJECTS: &[(&str, &str)] = &[
    ("ACCESS METHOD", ""),
    ("AGGREGATE", ""),
    ("CAST", ""),
    ("COLLATION", "text is ordered by its bytes"),
    ("CONVERSION", "text is UTF-8"),
    ("DATABASE", "each directory is one"),
    ("DEFAULT CONVERSION", "text is UTF-8"),
    ("DEFAULT PRIVILEGES", "there are no roles"),
    ("DOMAIN", "use CHECK"),
    ("EVENT TRIGGER", ""),
    ("EXTENSION", ""),
    ("FOREIGN", "use COPY"),
    ("FUNCTION", ""),
    ("GROUP", "there are no roles"),
    (
        "INDEX",
        "a UNIQUE constraint has one; ORDER BY (...) of CREATE TABLE keeps rows in an order, and every column is pruned by its values",
    ),
    ("LANGUAGE", ""),
    ("LARGE OBJECT", "use BYTEA"),
    ("MATERIALIZED VIEW", "use a view, or CREATE TABLE AS"),
    ("OPERATOR", ""),
    ("OWNED", "there are no roles"),
    ("POLICY", ""),
    ("PROCEDURE", ""),
    ("PUBLICATION", ""),
    ("ROLE", "there are no roles: access is that to the database's directory"),
    ("ROUTINE", ""),
    ("RULE", ""),
    ("SEQUENCE", "use an IDENTITY column"),
    ("SERVER", ""),
    ("STATISTICS", "statistics are those of the rows themselves"),
    ("SUBSCRIPTION", ""),
    ("SYSTEM", "use SET"),
    ("TABLESPACE", ""),
    ("TEXT SEARCH", ""),
    ("TRANSFORM", ""),
    ("TRIGGER", ""),
    ("TYPE", ""),
    ("USER", "there are no roles: access is that to the database's directory"),
];

/// The error for a statement that is not there, if that is what `tokens` begin with.
pub(super) fn statement(tokens: &[TokenWithSpan]) -> Option<Error> {
    let words: Vec<String> = tokens.iter().filter_map(word).take(8).collect();
    let first = words.first()?.as_str();
    if matches!(first, "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "WITH" | "VALUES") {
        return None;
    }
    if let Some((name, instead)) = STATEMENTS.iter().find(|(name, _)| begins(&words, name)) {
        return Some(absent(name, instead));
    }
    if !matches!(first, "CREATE" | "ALTER" | "DROP") {
        return None;
    }
    let kinds = words.iter().skip(1).take_while(|word| KINDS.contains(&word.as_str())).count();
    let object = words.get(1 + kinds..)?;
    let has = |kind: &str| words.iter().skip(1).take(kinds).any(|word| word == kind);
    if let Some((name, instead)) = OBJECTS.iter().find(|(name, _)| begins(object, name)) {
        return Some(absent(&format!("{first} {name}"), instead));
    }
    match (first, object.first()?.as_str()) {
        ("CREATE", "TABLE") if has("UNLOGGED") => {
            Some(absent("CREATE UNLOGGED TABLE", "use SET synchronous = off, or a temporary table"))
        }
        ("CREATE", "VIEW") if has("RECURSIVE") => {
            Some(absent("CREATE RECURSIVE VIEW", "use CREATE VIEW ... AS WITH RECURSIVE"))
        }
        ("ALTER", "VIEW") => Some(absent("ALTER VIEW", "use CREATE OR REPLACE VIEW, or DROP and CREATE")),
        ("ALTER", "SCHEMA") => Some(absent("ALTER SCHEMA", "")),
        _ => None,
    }
}

/// Whether `words` begin with those of `pattern`.
fn begins(words: &[String], pattern: &str) -> bool {
    let mut words = words.iter();
    pattern.split(' ').all(|one| words.next().is_some_and(|word| word == one))
}

/// A word that stands without quotes, in capitals.
fn word(token: &TokenWithSpan) -> Option<String> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
        _ => None,
    }
}

fn absent(what: &str, instead: &str) -> Error {
    let hint = if instead.is_empty() { String::new() } else { format!(" ({instead})") };
    Error::new(ErrorKind::Invalid, sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported{hint}"))
}
