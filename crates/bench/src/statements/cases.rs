//! The statements that are measured, in the SQL that both engines read.

/// How a statement is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Prepared once, run with values.
    Prepared,
    /// Its text with values, each time; by SQLite prepared each time.
    OneShot,
    /// A text with literals in the places of `$1`.
    Text,
}

/// What `$1` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A key that is there, uniformly random.
    Key,
    /// A key that is not there yet: each is used once.
    NewKey,
    /// The statement has no parameter.
    None,
}

/// A statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    pub(super) call: Call,
    pub(super) value: Value,
}

const fn case(name: &'static str, sql: &'static str, call: Call, value: Value) -> Case {
    Case { name, sql, call, value }
}

use Call::{OneShot, Prepared, Text};
use Value::{Key, NewKey, None};

/// Prepared statements beside and on a whole key.
pub(super) const KEYS: &[Case] = &[
    case("key", "SELECT * FROM u WHERE id = $1", Prepared, Key),
    case("key, LIMIT 1", "SELECT * FROM u WHERE id = $1 LIMIT 1", Prepared, Key),
    case("keys", "SELECT * FROM u WHERE id IN ($1, 5, 7)", Prepared, Key),
    case("prefix", "SELECT * FROM o WHERE uid = $1", Prepared, Key),
    case("prefix, count", "SELECT count(*) FROM o WHERE uid = $1", Prepared, Key),
    case("prefix, last", "SELECT * FROM o WHERE uid = $1 ORDER BY n DESC LIMIT 1", Prepared, Key),
    case("prefix, UPDATE", "UPDATE o SET amount = amount + 1 WHERE uid = $1", Prepared, Key),
    case("exists", "SELECT EXISTS (SELECT 1 FROM u WHERE id = $1)", Prepared, Key),
    case("page", "SELECT id, n FROM u WHERE id > $1 ORDER BY id LIMIT 20", Prepared, Key),
    case("range", "SELECT id, n FROM u WHERE id BETWEEN $1 AND $1 + 20", Prepared, Key),
    case("join", "SELECT u.n, o.n FROM u JOIN o ON o.uid = u.id WHERE u.id = $1", Prepared, Key),
    case("two rows", "INSERT INTO o VALUES ($1, 100, 1, 'a'), ($1, 101, 2, 'b')", Prepared, NewKey),
];

/// Statements whose text is handed over each time.
pub(super) const TEXTS: &[Case] = &[
    case("one-shot SELECT", "SELECT * FROM u WHERE id = $1", OneShot, Key),
    case("text SELECT", "SELECT * FROM u WHERE id = $1", Text, Key),
    case("one-shot UPDATE", "UPDATE u SET n = n + 1 WHERE id = $1", OneShot, Key),
    case("one-shot INSERT", "INSERT INTO u VALUES ($1, 'new', 1, 0.5)", OneShot, NewKey),
    case("text INSERT", "INSERT INTO u VALUES ($1, 'new', 1, 0.5)", Text, NewKey),
];

/// Small statements off the keys, plain and prepared.
pub(super) const SMALL: &[Case] = &[
    case("SELECT 1", "SELECT 1", Text, None),
    case("filter", "SELECT count(*) FROM s WHERE n = 3", Text, None),
    case("group", "SELECT g, count(*), sum(n) FROM s GROUP BY g", Text, None),
    case("small join", "SELECT count(*) FROM s AS a JOIN s AS b ON a.k = b.n", Text, None),
    case("SELECT 1, prepared", "SELECT 1", Prepared, None),
    case("filter, prepared", "SELECT count(*) FROM s WHERE n = $1", Prepared, Key),
    case("group, prepared", "SELECT g, count(*), sum(n) FROM s GROUP BY g", Prepared, None),
    case("small join, prepared", "SELECT count(*) FROM s AS a JOIN s AS b ON a.k = b.n", Prepared, None),
];
