//! The tables and what they are loaded with, in SQL that all engines read.

/// Orders of a user.
const ORDERS: u64 = 4;

/// Rows of the table of medium size, at most.
const MEDIUM: u64 = 100_000;

/// Statements that make and fill the tables of `users` users. `numbers` gives what stands behind FROM for the numbers
/// `x` from 0 to its argument.
///
/// A whole quotient is made of a multiple: DuckDB divides to fractions.
pub(super) fn script(users: u64, numbers: impl Fn(u64) -> String) -> Vec<String> {
    let (user, order, small) = (numbers(users - 1), numbers(users * ORDERS - 1), numbers(999));
    let medium = numbers(users.saturating_mul(5).min(MEDIUM) - 1);
    vec![
        "CREATE TABLE u (id BIGINT PRIMARY KEY, name TEXT, n INTEGER, d DECIMAL(10, 2))".into(),
        "CREATE TABLE o (uid BIGINT, n INTEGER, amount INTEGER, note TEXT, PRIMARY KEY (uid, n))".into(),
        "CREATE TABLE s (k INTEGER PRIMARY KEY, n INTEGER, g INTEGER)".into(),
        "CREATE TABLE m (k INTEGER PRIMARY KEY, n INTEGER, g INTEGER)".into(),
        format!("INSERT INTO u SELECT x, 'user ' || x, x % 1000, x + 0.25 FROM {user}"),
        format!("INSERT INTO o SELECT (x - x % {ORDERS}) / {ORDERS}, x % {ORDERS}, x % 100, 'order' FROM {order}"),
        format!("INSERT INTO s SELECT x, x % 50, x % 10 FROM {small}"),
        format!("INSERT INTO m SELECT x, x % 50, x % 10 FROM {medium}"),
    ]
}

/// Numbers as PostgreSQL makes them.
pub(super) fn series(last: u64) -> String {
    format!("generate_series(0, {last}) AS g (x)")
}

/// Numbers without a function for them.
pub(super) fn recursive(last: u64) -> String {
    format!("(WITH RECURSIVE g (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM g WHERE x < {last}) SELECT x FROM g)")
}
