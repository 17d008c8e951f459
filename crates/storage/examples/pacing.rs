//! What pacing does to the latencies of queries and of reads by key, and to the merge beside them (contract 8).
//!
//! `cargo run --release -p mainstem-storage --example pacing -- [ROWS] [ROUNDS] [SECONDS]` makes a table of ROWS rows
//! (default 2,000,000) in runs that want to be merged, and another of 500,000 rows to be read. Then in one process,
//! ROUNDS times (default 7) in an order that changes: it opens a copy of the database without merges, with merges that
//! are not paced, and with paced ones. It reads from one thread more than cores are left beside the merge, as long as
//! the merge takes and for at most SECONDS (default 4).
//!
//! Told are medians over the rounds of each round's 50th, 95th and 99th percentile and of its worst read, what share of
//! the merge was done, and the ratios: paced to not paced, and both to no merge at all. Where other programs run beside
//! it, only the ratios mean much.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use mainstem_storage::background::MergeState;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::{KeyId, TableId};
use mainstem_storage::point::{self, PointTable};
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::Value;
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::DataType;
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::TransactionMode;
use mainstem_storage::version::TableView;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const COLUMNS: usize = 6;
const RUNS: i64 = 8;
const READ_ROWS: i64 = 500_000;

/// What reads go on, and what a read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Read {
    Scan,
    Key,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Merges {
    None,
    Unpaced,
    Paced,
}

/// One round's reads, in microseconds, and the share of the merge that was done.
#[derive(Clone, Copy, Debug)]
struct Round {
    percentiles: [f64; 4],
    reads: f64,
    merged: f64,
}

fn create(db: &Database, name: &str) -> Outcome<TableId> {
    let column = |at| ColumnDefinition::new(format!("c{at}"), DataType::BigInt, false);
    let mut definition = TableDefinition::new(name, (0..COLUMNS).map(column).collect());
    definition.primary_key = vec!["c0".into()];
    let mut txn = db.begin(TransactionMode::default())?;
    let id = txn.create_table(definition)?;
    txn.commit()?;
    Ok(id)
}

/// Every `step`-th row from `first` on, below `end`, with values that no encoding makes small.
fn insert(db: &Database, table: TableId, first: i64, end: i64, step: usize) -> Outcome<()> {
    let mut txn = db.begin(TransactionMode { synchronous: Synchronous::Off, ..TransactionMode::default() })?;
    let schema = txn.view(table)?.schema().clone();
    let mut statement = txn.statement();
    let all: Vec<i64> = (first..end).step_by(step).collect();
    for part in all.chunks(8_192) {
        let mixed = |at: usize| move |id: &i64| id.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed()) >> (8 * at);
        let column = |at: usize| -> ArrayRef {
            match at {
                0 => Arc::new(part.iter().copied().collect::<Int64Array>()),
                at => Arc::new(part.iter().map(mixed(at)).collect::<Int64Array>()),
            }
        };
        statement.insert(&schema, &RecordBatch::try_new(schema.arrow(), (0..COLUMNS).map(column).collect())?)?;
    }
    txn.apply(statement)?;
    txn.commit()?;
    Ok(())
}

fn make(dir: &Path, rows: i64) -> Outcome<()> {
    let db = Database::open(dir, OpenOptions::new().background(false))?;
    let (merged, read) = (create(&db, "merged")?, create(&db, "read")?);
    for run in 0..RUNS {
        insert(&db, merged, run, rows, RUNS as usize)?;
    }
    insert(&db, read, 0, READ_ROWS, 1)?;
    db.checkpoint()?;
    db.close()?;
    Ok(())
}

/// Files of segments never change, so another name will do for them.
fn copy(from: &Path, to: &Path) -> Outcome<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let (entry, target) = match entry {
            Ok(entry) => (entry.path(), to.join(entry.file_name())),
            Err(e) => return Err(e.into()),
        };
        if entry.is_dir() {
            copy(&entry, &target)?;
        } else if from.ends_with("data") {
            std::fs::hard_link(&entry, &target)?;
        } else {
            std::fs::copy(&entry, &target)?;
        }
    }
    Ok(())
}

/// A scan of two columns with a condition, or a look-up of one row.
fn read_once(db: &Database, table: TableId, keyed: &PointTable, read: Read, number: i64) -> Outcome<()> {
    let snapshot = db.snapshot()?;
    let view = TableView::at(&snapshot, table).ok_or("no table")?;
    let id = number.wrapping_mul(7_919) % READ_ROWS;
    match read {
        Read::Scan => {
            let column = |at: usize| keyed.schema().columns.get(at).map(|column| column.id).ok_or("no column");
            let predicate = Predicate::Compare { column: column(3)?, op: CompareOp::Gt, value: Value::Int(id << 16) };
            let request = ScanRequest { predicates: vec![predicate], ..ScanRequest::all(vec![column(1)?, column(2)?]) };
            let mut rows = 0;
            for batch in Arc::new(view).scan(&request)?.worker() {
                rows += batch?.num_rows();
            }
            if rows == 0 { Err("no rows".into()) } else { Ok(()) }
        }
        Read::Key => {
            let mut key = Vec::new();
            keyed.encode(&[Value::Int(id)], &mut key)?;
            let row = point::find(&view, KeyId::PRIMARY, &key, |_| true)?.ok_or("no row")?;
            let mut values = Vec::with_capacity(COLUMNS);
            view.read_row(row, &[0, 1, 2], &mut values)?;
            if values.first() == Some(&Value::Int(id)) { Ok(()) } else { Err("another row".into()) }
        }
    }
}

fn is_merged(db: &Database) -> bool {
    let merges = db.merges();
    !merges.is_empty() && merges.iter().all(|merge| merge.state != MergeState::Running) && runs(db) == 1
}

fn runs(db: &Database) -> usize {
    let all = db.containers();
    let runs = all.iter().filter(|part| part.table == "merged").filter_map(|part| part.run);
    runs.collect::<BTreeSet<_>>().len()
}

fn round(from: &Path, dir: &Path, merges: Merges, read: Read, rows: i64, time: Duration) -> Outcome<Round> {
    copy(from, dir)?;
    let db = Database::open(dir, OpenOptions::new().background(merges != Merges::None))?;
    db.set_paced(merges == Merges::Paced);
    let table = db.catalog().table_named("read").ok_or("no table")?.id;
    let keyed = db.catalog().table(table).and_then(PointTable::new).ok_or("no key")?;
    // One thread a core: with a merge they are one too many.
    let threads = std::thread::available_parallelism()?.get();
    let ended = AtomicBool::new(false);
    let latencies = std::thread::scope(|scope| {
        let reader = |thread: usize| {
            let (db, keyed, ended) = (&db, &keyed, &ended);
            scope.spawn(move || -> Outcome<Vec<u64>> {
                let mut all = Vec::new();
                let mut number = thread as i64 * 1_000_003;
                while !ended.load(Ordering::Relaxed) {
                    number += 1;
                    let start = Instant::now();
                    read_once(db, table, keyed, read, number)?;
                    all.push(u64::try_from(start.elapsed().as_nanos())?);
                }
                Ok(all)
            })
        };
        let readers: Vec<_> = (0..threads).map(reader).collect();
        let start = Instant::now();
        while start.elapsed() < time && (merges == Merges::None || !is_merged(&db)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        ended.store(true, Ordering::Relaxed);
        let taken = start.elapsed();
        let joined = readers.into_iter().map(|reader| reader.join().map_err(|_| "a reader panicked")?);
        let mut all: Vec<u64> = joined.collect::<Outcome<Vec<_>>>()?.concat();
        all.sort_unstable();
        Ok::<_, Box<dyn Error + Send + Sync>>((all, taken))
    });
    let (all, taken) = latencies?;
    let done: u64 = db.merges().iter().map(|merge| merge.rows_written).max().unwrap_or(0);
    db.close()?;
    drop(db);
    std::fs::remove_dir_all(dir)?;
    let at = |share: f64| {
        let place = ((all.len() as f64 * share) as usize).min(all.len().saturating_sub(1));
        all.get(place).map_or(0.0, |nanos| *nanos as f64 / 1_000.0)
    };
    Ok(Round {
        percentiles: [at(0.5), at(0.95), at(0.99), at(1.0)],
        reads: all.len() as f64 / taken.as_secs_f64(),
        merged: done as f64 / rows as f64 / taken.as_secs_f64(),
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_unstable_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: i64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (rows, rounds, seconds) = (number(2_000_000)?, number(7)?, number(4)?);
    let dir: PathBuf = std::env::temp_dir().join(format!("mainstem-pacing-{}", std::process::id()));
    let (from, to) = (dir.join("made"), dir.join("round"));
    make(&from, rows)?;

    let mut results: BTreeMap<(Read, Merges), Vec<Round>> = BTreeMap::new();
    let kinds = [Merges::None, Merges::Unpaced, Merges::Paced];
    for at in 0..usize::try_from(rounds)? {
        for read in [Read::Scan, Read::Key] {
            for place in 0..kinds.len() {
                let Some(merges) = kinds.get((at + place) % kinds.len()).copied() else { continue };
                let one = round(&from, &to, merges, read, rows, Duration::from_secs(seconds.unsigned_abs()))?;
                results.entry((read, merges)).or_default().push(one);
            }
        }
    }
    std::fs::remove_dir_all(dir)?;

    println!("medians of {rounds} rounds   p50 us    p95 us    p99 us  worst us   reads/s  merge/s");
    let mut medians = BTreeMap::new();
    for ((read, merges), all) in &results {
        let percentiles = [0, 1, 2, 3].map(|at| median(all.iter().filter_map(|one| one.percentiles.get(at).copied())));
        let (reads, merged) = (median(all.iter().map(|one| one.reads)), median(all.iter().map(|one| one.merged)));
        let [p50, p95, p99, worst] = percentiles;
        let name = format!("{read:?}, merges {merges:?}");
        println!("{name:<22} {p50:>9.1} {p95:>9.1} {p99:>9.1} {worst:>9.1} {reads:>9.0} {:>7.1}%", merged * 100.0);
        medians.insert((*read, *merges), percentiles);
    }
    let ratio = |read, a, b| -> Option<String> {
        let (a, b) = (medians.get(&(read, a))?, medians.get(&(read, b))?);
        Some(a.iter().zip(b).map(|(a, b)| format!("{:>9.2}", a / b)).collect())
    };
    for read in [Read::Scan, Read::Key] {
        for (a, b) in [(Merges::Paced, Merges::Unpaced), (Merges::Paced, Merges::None), (Merges::Unpaced, Merges::None)]
        {
            println!("{:<22} {}", format!("{read:?}, {a:?} / {b:?}"), ratio(read, a, b).ok_or("not measured")?);
        }
    }
    Ok(())
}
