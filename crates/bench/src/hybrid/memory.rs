//! Memory of a delta, as the engine counts it, beside the bytes of the values in it.

use mainstem::{Database, OpenOptions};

use super::bench::Bench;
use super::rows::{self, COLUMNS, ROW_BYTES};
use crate::experiment::Failure;
use crate::report::{Figure, Reach, Unit};

/// Rows of one commit: few enough to go to the delta.
const COMMIT_ROWS: u64 = 1_000;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    bench.report.progress("memory of a delta");
    // A database of its own, where nothing is merged away.
    let database = Database::in_memory_with(OpenOptions::new().background(false))?;
    let connection = database.connect()?;
    connection.execute(&rows::create_table("t", COLUMNS))?;
    let full = bench.plan.delta_rows;
    let mut at = 0;
    for (case, wanted) in [("delta, a tenth full", full / 10), ("delta, full", full)] {
        while at < wanted {
            let until = (at + COMMIT_ROWS).min(wanted);
            let keys = (at..until).map(|at| bench.keys.fresh(at));
            super::bench::append(&connection, "t", keys, |key| rows::value(key, 1))?;
            at = until;
        }
        let row = connection.query_row(
            "SELECT CAST(sum(rows) AS BIGINT), CAST(sum(bytes) AS BIGINT) FROM mainstem.containers \
             WHERE table_name = 't' AND kind LIKE '%delta'",
            (),
        )?;
        let (rows, bytes): (i64, i64) = (row.get(0)?, row.get(1)?);
        if rows != at as i64 {
            return Err(Failure::Wrong(format!("the delta has {rows} rows instead of {at}")));
        }
        let raw = (at * ROW_BYTES) as f64;
        let figure = Figure::once(case, "bytes a raw byte", Unit::Times, bytes as f64 / raw);
        bench.report.add(if at == full { figure.to_reach(Reach::AtMost(2.0)) } else { figure })?;
    }
    Ok(())
}
