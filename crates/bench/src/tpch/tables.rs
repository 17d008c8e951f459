//! The eight tables as CSV files with a header line.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use tpchgen::csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
use tpchgen::generators::{
    CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

/// Their names.
pub const NAMES: [&str; 8] = ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"];

/// Writes the tables of tpchgen at scale factor `factor` into `directory`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(factor: f64, directory: &Path) -> Result<()> {
    macro_rules! table {
        ($name:literal, $csv:ident, $generator:ident) => {
            file(directory, $name, $csv::header(), $generator::new(factor, 1, 1).iter().map($csv::new))?
        };
    }
    table!("region", RegionCsv, RegionGenerator);
    table!("nation", NationCsv, NationGenerator);
    table!("supplier", SupplierCsv, SupplierGenerator);
    table!("part", PartCsv, PartGenerator);
    table!("partsupp", PartSuppCsv, PartSuppGenerator);
    table!("customer", CustomerCsv, CustomerGenerator);
    table!("orders", OrderCsv, OrderGenerator);
    table!("lineitem", LineItemCsv, LineItemGenerator);
    Ok(())
}

/// Writes the line items alone, and returns how many they are, and the sum of their numbers.
///
/// # Errors
/// As [`write()`].
pub fn write_line_items(factor: f64, directory: &Path) -> Result<(u64, i64)> {
    let (mut rows, mut sum) = (0, 0);
    let count = |item: &LineItem<'_>| {
        rows += 1;
        sum += i64::from(item.l_linenumber);
    };
    let items = LineItemGenerator::new(factor, 1, 1).iter().inspect(count).map(LineItemCsv::new);
    file(directory, "lineitem", LineItemCsv::header(), items)?;
    Ok((rows, sum))
}

fn file<R: Display>(directory: &Path, table: &str, header: &str, rows: impl Iterator<Item = R>) -> Result<()> {
    let mut file = BufWriter::new(File::create(directory.join(table).with_extension("csv"))?);
    writeln!(file, "{header}")?;
    for row in rows {
        writeln!(file, "{row}")?;
    }
    file.flush()
}
