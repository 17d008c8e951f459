//! What PostgreSQL has and Mainstem has not: told by its words, in the place of a syntax error.
//!
//! sqlparser reads part of PostgreSQL's grammar, and other databases' besides. Comes in: the tokens of a statement. Goes out: an
//! error that names what is not there. Steps:
//!
//! 1. a statement is told by the words that it begins with, before it is parsed ([`statement`]);
//! 2. a clause is told by words in a row, where a statement could not be read any further ([`clause`]).
//!
//! It does not own: what sqlparser reads and we do not do, which the readers of each statement refuse.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, ErrorKind};

use super::position::location_in;

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

/// Clauses by the first words of their statements, with what to do instead. `|` stands between words of which one is meant, `?` is
/// any word.
const CLAUSES: &[(&str, &str, &[&str])] = &[
    (
        "ALTER TABLE",
        "",
        &[
            "DROP IDENTITY|EXPRESSION",
            "RESTART",
            "SET GENERATED|INCREMENT|START|MINVALUE|MAXVALUE|CACHE|CYCLE|NO|SEQUENCE|RESTART",
            "SET STATISTICS|STORAGE|COMPRESSION",
            "SET SCHEMA|TABLESPACE|LOGGED|UNLOGGED|WITHOUT|ACCESS",
            "SET (",
            "RESET (",
            "CLUSTER ON",
            "NO INHERIT",
            "INHERIT ?",
            "NOT OF",
            "OF ?",
            "ATTACH|DETACH PARTITION",
            "EXCLUDE USING|(",
            "ALTER CONSTRAINT",
            "ALL IN TABLESPACE",
            "NO FORCE ROW LEVEL SECURITY",
            "STORAGE|COMPRESSION ?",
            "ARRAY",
            "INCLUDE (",
            "USING INDEX",
            "NULLS NOT DISTINCT",
            "WITH (",
        ],
    ),
    (
        "CREATE TABLE",
        "",
        &[
            "INCLUDE (",
            "USING INDEX",
            "EXCLUDE USING|(",
            "NO INHERIT",
            "STORAGE|COMPRESSION ?",
            "INCLUDING|EXCLUDING ?",
            "WITHOUT OIDS",
            "ARRAY",
            "AS EXECUTE",
            "NULLS NOT DISTINCT",
            "PARTITION OF",
            "TABLESPACE ?",
            "USING ?",
            "WITH ( FILLFACTOR",
        ],
    ),
    ("CREATE VIEW", "", &["WITH CHECK OPTION", "WITH LOCAL|CASCADED CHECK OPTION", "WITH ( SECURITY_BARRIER )"]),
    ("CREATE SCHEMA", "write the statements one by one", &["CREATE|GRANT ?"]),
    (
        "INSERT",
        "name the columns of a key, or none",
        &["( ? ) WHERE", "? COLLATE ?", "CONFLICT ( (", "CONFLICT ( ? (", "INTO ? ( ? ["],
    ),
    ("UPDATE", "", &["CURRENT OF", "SET ? ["]),
    ("DELETE", "", &["CURRENT OF"]),
    ("COPY", "options stand in parentheses: WITH (FORMAT csv, HEADER)", &["BINARY", "WHERE"]),
    ("BEGIN", "", &["NOT DEFERRABLE", "DEFERRABLE"]),
    ("START", "", &["NOT DEFERRABLE", "DEFERRABLE"]),
    ("SET", "", &["NOT DEFERRABLE", "DEFERRABLE"]),
    (
        "",
        "",
        &[
            "INTERVAL (",
            "FOR NO KEY UPDATE",
            "FOR KEY SHARE",
            "FOR READ ONLY",
            "ROWS FROM (",
            "EXCLUDE CURRENT ROW",
            "EXCLUDE GROUP|TIES",
            "EXCLUDE NO OTHERS",
            "ORDER BY ? USING",
            "SEARCH DEPTH|BREADTH FIRST",
            "CYCLE ? SET",
            "IS DOCUMENT|NORMALIZED",
            "IS NOT DOCUMENT|NORMALIZED",
            "VARIADIC",
            "GROUP BY ALL|DISTINCT",
            "USING ( ? ) AS",
            "FROM|UPDATE|JOIN ? *",
        ],
    ),
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
    let said = |kind: &str| words.iter().skip(1).take(kinds).any(|word| word == kind);
    if let Some((name, instead)) = OBJECTS.iter().find(|(name, _)| begins(object, name)) {
        return Some(absent(&format!("{first} {name}"), instead));
    }
    match (first, object.first()?.as_str()) {
        ("CREATE", "TABLE") if said("UNLOGGED") => {
            Some(absent("CREATE UNLOGGED TABLE", "use SET synchronous = off, or a temporary table"))
        }
        ("CREATE", "VIEW") if said("RECURSIVE") => {
            Some(absent("CREATE RECURSIVE VIEW", "use CREATE VIEW ... AS WITH RECURSIVE"))
        }
        ("ALTER", "VIEW") => Some(absent("ALTER VIEW", "use CREATE OR REPLACE VIEW, or DROP and CREATE")),
        ("ALTER", "SCHEMA") => Some(absent("ALTER SCHEMA", "")),
        _ => None,
    }
}

/// The error for a clause that is not there, of a statement that could not be read: `message` says from where on.
pub(super) fn clause(tokens: &[TokenWithSpan], message: &str) -> Option<Error> {
    let failed = location_in(message);
    let (mut words, mut end) = (Vec::with_capacity(tokens.len()), None);
    for token in tokens {
        let Some(word) = word(token) else { continue };
        if failed.is_some_and(|failed| token.span.start == failed) {
            end = end.or(Some(words.len()));
        }
        words.push(word);
    }
    let end = end.unwrap_or(words.len());
    if words == ["SELECT"] {
        return Some(absent("SELECT without columns", ""));
    }
    let whole = words.as_slice();
    let start = match words.first()?.as_str() {
        "EXPLAIN" | "PREPARE" => ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "MERGE", "CREATE", "DECLARE"]
            .iter()
            .filter_map(|verb| words.iter().position(|word| word == verb))
            .min()?,
        _ => 0,
    };
    let verbs = words.get(start..)?;
    let merges = verbs.first().is_some_and(|word| word == "MERGE" || word == "WITH")
        && verbs.iter().any(|word| word == "MERGE")
        && verbs.iter().any(|word| word == "MATCHED");
    if merges {
        return Some(absent("MERGE", MERGE_INSTEAD));
    }
    if words.first().is_some_and(|word| word == "EXPLAIN")
        && verbs.first().is_some_and(|word| word == "CREATE" || word == "DECLARE")
    {
        return Some(absent("EXPLAIN of anything but a query or a write", ""));
    }
    for (name, instead, clauses) in CLAUSES.iter().filter(|(name, ..)| is_a(verbs, name)) {
        for clause in *clauses {
            let length = clause.split(' ').count();
            // What could not be read is in the clause, or the first word behind it.
            let candidates = end.saturating_sub(length)..=end;
            if candidates.clone().any(|at| at >= start && whole.get(at..).is_some_and(|words| begins(words, clause))) {
                let named = clause.split(' ').map(|word| word.split('|').next().unwrap_or(word));
                let named = named.filter(|word| *word != "?").collect::<Vec<_>>().join(" ");
                let what = if name.is_empty() { named } else { format!("{name} ... {named}") };
                return Some(absent(&what, instead));
            }
        }
    }
    None
}

/// Whether a statement of `words` begins with `name`: a verb, perhaps with what it makes.
fn is_a(words: &[String], name: &str) -> bool {
    let (verb, object) = name.split_once(' ').unwrap_or((name, ""));
    let made = || words.iter().skip(1).find(|word| !KINDS.contains(&word.as_str()));
    name.is_empty()
        || words.first().is_some_and(|word| word == verb)
            && (object.is_empty() || made().is_some_and(|word| word == object))
}

/// Whether `words` begin with those of `pattern`.
fn begins(words: &[String], pattern: &str) -> bool {
    let mut words = words.iter();
    pattern
        .split(' ')
        .all(|one| words.next().is_some_and(|word| one == "?" || one.split('|').any(|choice| choice == word)))
}

/// A token as patterns have it; None for blanks and comments.
fn word(token: &TokenWithSpan) -> Option<String> {
    match &token.token {
        Token::Whitespace(_) | Token::EOF => None,
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
        Token::Word(_) => Some("\"".to_owned()),
        Token::SingleQuotedString(_) => Some("'".to_owned()),
        other => Some(other.to_string()),
    }
}

fn absent(what: &str, instead: &str) -> Error {
    let hint = if instead.is_empty() { String::new() } else { format!(" ({instead})") };
    Error::new(ErrorKind::Invalid, sqlstate::FEATURE_NOT_SUPPORTED, format!("{what} is not supported{hint}"))
}
