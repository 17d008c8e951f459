//! The statements that are measured, in the SQL that all engines read.

use crate::peers::{Call, Told};

/// What `$1` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A key that is there, uniformly random.
    Key,
    /// A key that is not there yet: each is used once.
    NewKey,
    /// A number below this one, uniformly random.
    Below(u64),
    /// This number.
    Always(u64),
    /// The statement has no parameter.
    None,
}

/// A statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// `$1` stands for the value, [`FRESH`] for a number that is new in each run.
    pub(super) sql: &'static str,
    pub(super) call: Call,
    pub(super) value: Value,
    /// Statements a second that are to be reached.
    pub(super) rate: Option<f64>,
    /// The share of SQLite's rate that is to be reached.
    pub(super) share: Option<f64>,
}

/// Where a number stands that is new in each run, so that nobody has seen the text before.
pub(super) const FRESH: &str = "@";

impl Case {
    /// The same, with what is to be reached.
    const fn reaching(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }

    /// The same, which is to reach SQLite's rate.
    const fn as_sqlite(self) -> Self {
        Self { share: Some(1.0), ..self }
    }

    /// Whether it gives rows.
    pub(super) fn is_query(self) -> bool {
        self.sql.starts_with("SELECT") || self.is_explain()
    }

    /// Whether it shows a plan: every engine shows another.
    pub(super) fn is_explain(self) -> bool {
        self.sql.starts_with("EXPLAIN")
    }

    /// As peers are told.
    pub(super) fn told(&self, values: Option<crate::peers::Values>) -> Told<'_> {
        Told { case: self.name, sql: self.sql, call: self.call, values }
    }
}

const fn case(name: &'static str, sql: &'static str, call: Call, value: Value) -> Case {
    Case { name, sql, call, value, rate: Option::None, share: Option::None }
}

/// Each statement twice: as a text that is always the same, and prepared.
macro_rules! plain_and_prepared {
    ($($name:literal, $sql:literal, $literal:expr, $value:expr;)*) => {
        &[$(
            case($name, $sql, Text, $literal),
            case(concat!($name, ", prepared"), $sql, Prepared, $value),
        )*]
    };
}

use Call::{OneShot, Prepared, Text};
use Value::{Always, Below, Key, NewKey, None};

/// Prepared statements beside and on a whole key.
pub(super) const KEYS: &[Case] = &[
    case("key", "SELECT * FROM u WHERE id = $1", Prepared, Key).as_sqlite(),
    case("key, LIMIT 1", "SELECT * FROM u WHERE id = $1 LIMIT 1", Prepared, Key).as_sqlite(),
    case("keys", "SELECT * FROM u WHERE id IN ($1, 5, 7)", Prepared, Key).as_sqlite(),
    case("prefix", "SELECT * FROM o WHERE uid = $1", Prepared, Key).as_sqlite(),
    case("prefix, count", "SELECT count(*) FROM o WHERE uid = $1", Prepared, Key).as_sqlite(),
    case("prefix, last", "SELECT * FROM o WHERE uid = $1 ORDER BY n DESC LIMIT 1", Prepared, Key).as_sqlite(),
    case("prefix, UPDATE", "UPDATE o SET amount = amount + 1 WHERE uid = $1", Prepared, Key).as_sqlite(),
    case("exists", "SELECT EXISTS (SELECT 1 FROM u WHERE id = $1)", Prepared, Key).as_sqlite(),
    case("page", "SELECT id, n FROM u WHERE id > $1 ORDER BY id LIMIT 20", Prepared, Key).as_sqlite(),
    case("range", "SELECT id, n FROM u WHERE id BETWEEN $1 AND $1 + 20", Prepared, Key).as_sqlite(),
    case("join", "SELECT u.n, o.n FROM u JOIN o ON o.uid = u.id WHERE u.id = $1", Prepared, Key).as_sqlite(),
    case("two rows", "INSERT INTO o VALUES ($1, 100, 1, 'a'), ($1, 101, 2, 'b')", Prepared, NewKey).as_sqlite(),
];

/// Statements whose text is handed over each time.
pub(super) const TEXTS: &[Case] = &[
    case("one-shot SELECT", "SELECT * FROM u WHERE id = $1", OneShot, Key).as_sqlite(),
    case("text SELECT", "SELECT * FROM u WHERE id = $1", Text, Key).as_sqlite(),
    case("one-shot UPDATE", "UPDATE u SET n = n + 1 WHERE id = $1", OneShot, Key).as_sqlite(),
    case("one-shot INSERT", "INSERT INTO u VALUES ($1, 'new', 1, 0.5)", OneShot, NewKey).as_sqlite(),
    case("text INSERT", "INSERT INTO u VALUES ($1, 'new', 1, 0.5)", Text, NewKey).as_sqlite(),
];

/// Small statements off the keys. They read nothing that the other parts change: the engines run those a different
/// number of times.
pub(super) const SMALL: &[Case] = plain_and_prepared! {
    "SELECT 1", "SELECT 1", None, None;
    "filter", "SELECT count(*) FROM s WHERE n = $1", Always(3), Below(50);
    "group", "SELECT g, count(*), sum(n) FROM s GROUP BY g", None, None;
    "small join", "SELECT count(*) FROM s AS a JOIN s AS b ON a.k = b.n", None, None;
    "top", "SELECT k, n FROM s WHERE g = $1 ORDER BY n DESC, k LIMIT 10", Always(7), Below(10);
    "distinct", "SELECT DISTINCT n, g FROM s WHERE k < $1", Always(500), Below(1_000);
    "aggregates", "SELECT max(k), min(k), avg(n) > 20, sum(CASE WHEN n IN (1, 2, 3) THEN 1 WHEN n < 20 THEN 2 ELSE 0 END) \
        FROM s WHERE g <> $1", Always(7), Below(10);
    "having", "SELECT n, count(*), sum(k) FROM s WHERE g < $1 GROUP BY n HAVING sum(k) > 10000 \
        ORDER BY sum(k) DESC, n", Always(7), Below(10);
    "window", "SELECT k, row_number() OVER (PARTITION BY g ORDER BY n, k) FROM s WHERE k < $1", Always(500), Below(1_000);
    "subquery", "SELECT count(*), sum(n) FROM o WHERE uid < 250 AND uid IN (SELECT k FROM s WHERE g = $1)", Always(7), Below(10);
};

/// The same of 100,000 rows.
pub(super) const MEDIUM: &[Case] = &[
    case("medium filter, prepared", "SELECT count(*) FROM m WHERE n = $1", Prepared, Below(50)),
    case("medium group, prepared", "SELECT g, count(*), sum(n) FROM m WHERE n < $1 GROUP BY g", Prepared, Below(50)),
    case("medium join, prepared", "SELECT count(*) FROM m JOIN s ON s.k = m.n WHERE s.g = $1", Prepared, Below(10)),
    case("medium top, prepared", "SELECT k, n FROM m WHERE g = $1 ORDER BY n DESC, k LIMIT 10", Prepared, Below(10)),
];

/// Planning alone: plans of texts never seen before, shown and thrown away; and a first call, whose run is short.
pub(super) const PLANNING: &[Case] = &[
    case("EXPLAIN filter", "EXPLAIN SELECT count(*) AS c@ FROM s WHERE n = $1", Text, Below(50)).reaching(6_667.0),
    case("EXPLAIN group", "EXPLAIN SELECT g, count(*) AS c@, sum(n) FROM s GROUP BY g", Text, None).reaching(4_000.0),
    case("EXPLAIN join", "EXPLAIN SELECT count(*) AS c@ FROM s AS a JOIN s AS b ON a.k = b.n", Text, None)
        .reaching(2_500.0),
    case("first call", "SELECT id AS c@, name FROM u WHERE id = $1", OneShot, Key).reaching(16_667.0),
];
