//! TPC-H data as CSV files with a header, several tables or parts of tables at a time.
//!
//! Large tables are made in as many parts as there are threads, each a file of its own; the parts of a table together
//! are the same rows for any number of threads.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use indicatif::ProgressBar;
use mainstem::Error;
use tpchgen::csv::{CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use super::{Cancel, Outcome, Trouble, progress};

/// Rows between two looks at whether to go on.
const STEP_ROWS: u64 = 4_096;
/// Rows from which on a table is made in parts.
const PARTS_ROWS_MIN: i64 = 50_000;

/// A table of TPC-H.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Region,
    Nation,
    Supplier,
    Part,
    Partsupp,
    Customer,
    Orders,
    Lineitem,
}

impl Table {
    /// All of them, each after those its keys refer to.
    pub const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Part,
        Self::Partsupp,
        Self::Customer,
        Self::Orders,
        Self::Lineitem,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Part => "part",
            Self::Partsupp => "partsupp",
            Self::Customer => "customer",
            Self::Orders => "orders",
            Self::Lineitem => "lineitem",
        }
    }

    /// Its rows, as good as they are known before; line items are four an order on average.
    fn rows(self, scale_factor: f64) -> i64 {
        match self {
            Self::Region => 5,
            Self::Nation => 25,
            Self::Supplier => SupplierGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Part => PartGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Partsupp => PartSuppGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Customer => CustomerGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Orders => OrderGenerator::calculate_row_count(scale_factor, 1, 1),
            Self::Lineitem => 4 * OrderGenerator::calculate_row_count(scale_factor, 1, 1),
        }
    }
}

/// A table's files.
#[derive(Clone, Debug)]
pub struct TableFiles {
    /// The table.
    pub table: Table,
    /// Its parts, in order.
    pub files: Vec<PathBuf>,
    /// Rows in all of them.
    pub rows: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// A file to make.
#[derive(Clone, Debug)]
struct Job {
    table: Table,
    part: i32,
    parts: i32,
    path: PathBuf,
}

/// Makes the files of all tables in `dir`, with `threads` threads.
///
/// # Errors
/// A failed file operation; Ctrl-C.
pub fn generate(dir: &Path, scale_factor: f64, threads: usize, cancel: &Cancel) -> Outcome<Vec<TableFiles>> {
    let jobs = jobs(dir, scale_factor, threads);
    let total: i64 = Table::ALL.iter().map(|table| table.rows(scale_factor)).sum();
    let bar = progress::rows("Generating", u64::try_from(total).unwrap_or(0));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        // The largest tables stand last, and are begun first.
        while let Some(job) = jobs.iter().rev().nth(next.fetch_add(1, Ordering::Relaxed)) {
            let (rows, bytes) = make(job, scale_factor, &bar, cancel)?;
            done.push((job.table, rows, bytes));
        }
        Ok(done)
    };
    let done: Vec<Outcome<Vec<_>>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|w| w.join().unwrap_or_else(|_| Err(panicked("generating")))).collect()
    });
    bar.finish_and_clear();
    let done: Vec<_> = done.into_iter().collect::<Outcome<Vec<_>>>()?.concat();
    let files_of = |table| {
        let of_table = || done.iter().filter(move |(of, ..)| *of == table);
        TableFiles {
            table,
            files: jobs.iter().filter(|job| job.table == table).map(|job| job.path.clone()).collect(),
            rows: of_table().map(|(_, rows, _)| rows).sum(),
            bytes: of_table().map(|(.., bytes)| bytes).sum(),
        }
    };
    Ok(Table::ALL.map(files_of).to_vec())
}

/// What a thread that panicked comes to.
pub fn panicked(what: &str) -> Trouble {
    Trouble::Wrong(format!("{what} failed inside the program"))
}

fn jobs(dir: &Path, scale_factor: f64, threads: usize) -> Vec<Job> {
    let mut jobs = Vec::new();
    for table in Table::ALL {
        let many = table.rows(scale_factor) >= PARTS_ROWS_MIN;
        let parts = if many { i32::try_from(threads.max(1)).unwrap_or(1) } else { 1 };
        for part in 1..=parts {
            let name =
                if parts == 1 { format!("{}.csv", table.name()) } else { format!("{}.{part}.csv", table.name()) };
            jobs.push(Job { table, part, parts, path: dir.join(name) });
        }
    }
    jobs
}

/// Makes one file; returns its rows and bytes.
fn make(job: &Job, sf: f64, bar: &ProgressBar, cancel: &Cancel) -> Outcome<(u64, u64)> {
    let (part, parts) = (job.part, job.parts);
    let mut file = CsvFile::create(&job.path, bar, cancel)?;
    match job.table {
        Table::Region => {
            file.write(RegionCsv::header(), RegionGenerator::new(sf, part, parts).iter().map(RegionCsv::new))
        }
        Table::Nation => {
            file.write(NationCsv::header(), NationGenerator::new(sf, part, parts).iter().map(NationCsv::new))
        }
        Table::Supplier => {
            file.write(SupplierCsv::header(), SupplierGenerator::new(sf, part, parts).iter().map(SupplierCsv::new))
        }
        Table::Part => file.write(PartCsv::header(), PartGenerator::new(sf, part, parts).iter().map(PartCsv::new)),
        Table::Partsupp => {
            let mut repeated = Repeated::default();
            let rows = PartSuppGenerator::new(sf, part, parts).iter();
            let rows = rows.filter(|row| !repeated.supplier(row.ps_partkey, row.ps_suppkey));
            file.write(PartSuppCsv::header(), rows.map(PartSuppCsv::new))
        }
        Table::Customer => {
            file.write(CustomerCsv::header(), CustomerGenerator::new(sf, part, parts).iter().map(CustomerCsv::new))
        }
        Table::Orders => file.write(OrderCsv::header(), OrderGenerator::new(sf, part, parts).iter().map(OrderCsv::new)),
        Table::Lineitem => {
            file.write(LineItemCsv::header(), LineItemGenerator::new(sf, part, parts).iter().map(LineItemCsv::new))
        }
    }
}

/// With few suppliers TPC-H's formula may give a part the same one twice, which its primary key forbids; the four
/// suppliers of a part stand together.
#[derive(Default)]
struct Repeated {
    part: i64,
    suppliers: Vec<i64>,
}

impl Repeated {
    /// Whether the part had this supplier already.
    fn supplier(&mut self, part: i64, supplier: i64) -> bool {
        if self.part != part {
            self.part = part;
            self.suppliers.clear();
        }
        let repeated = self.suppliers.contains(&supplier);
        self.suppliers.push(supplier);
        repeated
    }
}

/// A CSV file being made.
struct CsvFile<'a> {
    path: &'a Path,
    out: BufWriter<File>,
    bar: &'a ProgressBar,
    cancel: &'a Cancel,
}

impl<'a> CsvFile<'a> {
    fn create(path: &'a Path, bar: &'a ProgressBar, cancel: &'a Cancel) -> Outcome<Self> {
        let file = File::create(path).map_err(|e| Error::io("make the file", path.display(), e))?;
        Ok(Self { path, out: BufWriter::with_capacity(1 << 20, file), bar, cancel })
    }

    /// Writes the header and all rows; returns the rows and bytes in the file.
    fn write<R: Display>(&mut self, header: &str, rows: impl Iterator<Item = R>) -> Outcome<(u64, u64)> {
        let mut count = 0;
        self.line(&header)?;
        for row in rows {
            self.line(&row)?;
            count += 1;
            if count % STEP_ROWS == 0 {
                self.bar.inc(STEP_ROWS);
                self.cancel.check()?;
            }
        }
        self.bar.inc(count % STEP_ROWS);
        let flushed = self.out.flush().and_then(|()| self.out.get_ref().metadata());
        Ok((count, flushed.map_err(|e| self.failed(e))?.len()))
    }

    fn line(&mut self, line: &dyn Display) -> Outcome<()> {
        writeln!(self.out, "{line}").map_err(|e| self.failed(e).into())
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io("write the file", self.path.display(), error)
    }
}
