//! CREATE TABLE with the keys of TPC-H, and COPY FROM the generated files, table by table.

use std::path::Path;
use std::time::{Duration, Instant};

use mainstem::{Connection, Error};

use super::generate::{Table, TableFiles};
use super::{Cancel, Outcome, Trouble, progress};

/// The tables, the same as in the SQL logic tests.
pub const SCHEMA: &str = include_str!("../../../../slt/tpch/schema.sql");

/// How a table was loaded.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The table.
    pub table: Table,
    /// Rows in its files.
    pub rows: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// From the first COPY to the return of the last commit.
    pub time: Duration,
}

/// Makes the tables and loads them, one after the other.
///
/// # Errors
/// A failed statement; a COPY that says it read other rows than the files have; Ctrl-C.
pub fn load(connection: &Connection, tables: &[TableFiles], cancel: &Cancel) -> Outcome<Vec<Loaded>> {
    connection.execute(SCHEMA)?;
    let bar = progress::bytes("Loading", tables.iter().map(|table| table.bytes).sum());
    let mut all = Vec::new();
    for TableFiles { table, files, rows, bytes } in tables {
        bar.set_message(table.name());
        let start = Instant::now();
        let mut copied = 0;
        for file in files {
            cancel.check()?;
            copied += connection.execute(&copy(*table, file)?)?;
            bar.inc(bytes / files.len() as u64);
        }
        let time = start.elapsed();
        if copied != *rows {
            return Err(Trouble::Wrong(format!("COPY {} read {copied} rows where {rows} were written", table.name())));
        }
        all.push(Loaded { table: *table, rows: *rows, bytes: *bytes, time });
    }
    bar.finish_and_clear();
    Ok(all)
}

fn copy(table: Table, file: &Path) -> Result<String, Error> {
    let path = file
        .to_str()
        .ok_or_else(|| Error::invalid("22021", format!("{} is no text: name another directory", file.display())))?;
    Ok(format!("COPY {} FROM '{}' (FORMAT csv, HEADER true)", table.name(), path.replace('\'', "''")))
}
