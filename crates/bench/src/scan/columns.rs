//! The tables of `curves`: in each, 17 columns that get the same encoding.
//!
//! Comes in: an encoding, and how many rows. Goes out: statements that make and fill its table in any engine, and what
//! was in fact encoded how.
//!
//! Column `s` is what rows are selected by: its values are spread as random numbers below [`SELECTOR`] are, so that
//! every part of the table has its share of the selected rows, and no zone map tells anything.

use std::collections::BTreeSet;

use mainstem::Database;

use crate::experiment::Failure;
use crate::suite::numbers;

/// Columns of a table, beside that which selects.
pub(super) const COLUMNS: usize = 17;
/// The values of column `s` lie below this prime.
pub(super) const SELECTOR: u64 = 1_000_003;

/// Columns of one encoding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// As the report names it.
    pub name: &'static str,
    /// What segments name it.
    pub encoding: &'static str,
    sql_type: &'static str,
    /// What a column is consumed by.
    pub aggregate: &'static str,
    /// A value of a column: `{h}` is a number below a prime that differs by row and column, `{x}` that of the row,
    /// `{c}` that of the column, and `r` the 32 random letters of the row.
    value: &'static str,
}

/// All encodings of segments, and texts in the two that numbers have, too.
pub(super) const KINDS: [Kind; 9] = [
    Kind { name: "constant", encoding: "constant", sql_type: "INTEGER", aggregate: "sum", value: "{c}" },
    Kind {
        name: "dictionary",
        encoding: "dictionary",
        sql_type: "INTEGER",
        aggregate: "sum",
        value: "{h} % 100 * 10000019",
    },
    Kind {
        name: "frame of reference",
        encoding: "frame of reference",
        sql_type: "INTEGER",
        aggregate: "sum",
        value: "{h} % 1000003",
    },
    Kind {
        name: "frames by vector",
        encoding: "frames by vector",
        sql_type: "INTEGER",
        aggregate: "sum",
        value: "({x} - {x} % 1024) * 499 + {h} % 4096",
    },
    Kind {
        name: "plain",
        encoding: "plain",
        sql_type: "DOUBLE PRECISION",
        aggregate: "sum",
        value: "sqrt(CAST({h} AS DOUBLE PRECISION))",
    },
    Kind {
        name: "scaled floats",
        encoding: "scaled floats",
        sql_type: "DOUBLE PRECISION",
        aggregate: "sum",
        value: "CAST({h} % 1000003 AS DOUBLE PRECISION) / 100",
    },
    Kind { name: "text, plain", encoding: "plain", sql_type: "TEXT", aggregate: "max", value: "substr(r, {c}, 16)" },
    Kind {
        name: "text, dictionary",
        encoding: "dictionary",
        sql_type: "TEXT",
        aggregate: "max",
        value: "'state of affairs ' || ({h} % 100)",
    },
    Kind {
        name: "text, symbols",
        encoding: "symbols",
        sql_type: "TEXT",
        aggregate: "max",
        value: "'https://shop.example/item/' || {h} || '/view'",
    },
];

impl Kind {
    /// Statements that make table `t` and put `rows` rows into it.
    pub(super) fn script(&self, rows: u64) -> [String; 2] {
        let columns: Vec<String> = (1..=COLUMNS).map(|column| format!("c{column} {}", self.sql_type)).collect();
        let values: Vec<String> = (1..=COLUMNS).map(|column| self.value_of(column)).collect();
        let letters = match self.value.contains("(r,") {
            true => format!(", {} AS r", random_letters()),
            false => String::new(),
        };
        [
            format!("CREATE TABLE t (s INTEGER, {})", columns.join(", ")),
            // Squared: multiples alone would come in regular steps.
            format!(
                "INSERT INTO t SELECT y * y % {SELECTOR} * 7919 % {SELECTOR}, {} FROM \
                 (SELECT x, x * 48271 % {SELECTOR} AS y{letters} FROM {}) AS n",
                values.join(", "),
                numbers(rows)
            ),
        ]
    }

    fn value_of(&self, column: usize) -> String {
        let hash = format!("((x + {}) * 40692 % 2147483399 * 69621 % 2147483647)", column * 7_919);
        self.value.replace("{h}", &hash).replace("{x}", "x").replace("{c}", &column.to_string())
    }
}

/// 32 letters out of 90, each from other bits of a number.
fn random_letters() -> String {
    // Squared: the letters of a row would be those of another one, shifted.
    let letter = |at: u64| {
        let number = format!("(x + {at}) * (x + {at}) % 2147483647 * 48271 % 2147483399 % 90");
        format!("chr(CAST(33 + {number} AS INTEGER))")
    };
    (0..32).map(|at| letter(at * 1_000_003)).collect::<Vec<_>>().join(" || ")
}

/// How the columns of table `t`, but `s`, are encoded.
pub(super) fn encodings(database: &Database) -> Result<BTreeSet<&'static str>, Failure> {
    let transaction = database.storage().begin(Default::default())?;
    let catalog = transaction.catalog();
    let Some(table) = catalog.tables().find(|table| table.name == "t") else { return Ok(BTreeSet::new()) };
    let view = transaction.view(table.id)?;
    let segments = view.version().runs.iter().flat_map(|run| run.segments());
    Ok(segments.flat_map(|part| part.segment.meta().columns.iter().skip(1)).map(|c| c.encoding.name()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_values_of_their_own() {
        for kind in KINDS {
            let [create, insert] = kind.script(10);
            assert_eq!(create.matches(kind.sql_type).count(), COLUMNS + usize::from(kind.sql_type == "INTEGER"));
            assert!(!insert.contains('{'), "{insert}");
        }
        assert_ne!(KINDS[2].value_of(1), KINDS[2].value_of(2));
    }
}
