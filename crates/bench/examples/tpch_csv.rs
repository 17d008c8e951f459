//! Writes the eight TPC-H tables of tpchgen as CSV files with a header line:
//! `cargo run -p mainstem-bench --example tpch_csv -- SCALE_FACTOR DIRECTORY`.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use tpchgen::csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

fn write<R: Display>(directory: &Path, table: &str, header: &str, rows: impl Iterator<Item = R>) -> Result<()> {
    let mut file = BufWriter::new(File::create(directory.join(table).with_extension("csv"))?);
    writeln!(file, "{header}")?;
    for row in rows {
        writeln!(file, "{row}")?;
    }
    file.flush()
}

fn main() -> Result<()> {
    let usage = "usage: tpch_csv SCALE_FACTOR DIRECTORY";
    let mut arguments = std::env::args().skip(1);
    let (Some(scale), Some(directory)) = (arguments.next().and_then(|s| s.parse::<f64>().ok()), arguments.next())
    else {
        return Err(std::io::Error::other(usage));
    };
    let to = Path::new(&directory);
    std::fs::create_dir_all(to)?;
    write(to, "region", RegionCsv::header(), RegionGenerator::new(scale, 1, 1).iter().map(RegionCsv::new))?;
    write(to, "nation", NationCsv::header(), NationGenerator::new(scale, 1, 1).iter().map(NationCsv::new))?;
    write(to, "supplier", SupplierCsv::header(), SupplierGenerator::new(scale, 1, 1).iter().map(SupplierCsv::new))?;
    write(to, "part", PartCsv::header(), PartGenerator::new(scale, 1, 1).iter().map(PartCsv::new))?;
    write(to, "partsupp", PartSuppCsv::header(), PartSuppGenerator::new(scale, 1, 1).iter().map(PartSuppCsv::new))?;
    write(to, "customer", CustomerCsv::header(), CustomerGenerator::new(scale, 1, 1).iter().map(CustomerCsv::new))?;
    write(to, "orders", OrderCsv::header(), OrderGenerator::new(scale, 1, 1).iter().map(OrderCsv::new))?;
    write(to, "lineitem", LineItemCsv::header(), LineItemGenerator::new(scale, 1, 1).iter().map(LineItemCsv::new))
}
