//! Writes the eight TPC-H tables of tpchgen as CSV files with a header line:
//! `cargo run -p mainstem-bench --example tpch_csv -- SCALE_FACTOR DIRECTORY`.

use std::io::{Error, Result};
use std::path::Path;

use mainstem_bench::tpch::write_tables;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(factor), Some(directory)) = (arguments.next().and_then(|s| s.parse().ok()), arguments.next()) else {
        return Err(Error::other("usage: tpch_csv SCALE_FACTOR DIRECTORY"));
    };
    std::fs::create_dir_all(&directory)?;
    write_tables(factor, Path::new(&directory))
}
