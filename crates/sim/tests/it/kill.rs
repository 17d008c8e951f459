//! A process that writes to a real directory is killed at random moments; the next one finds every commit it told of.
//!
//! The child is this test binary with `MAINSTEM_SIM_CHILD` set. `MAINSTEM_SIM_KILLS` sets the number of rounds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::database::Database;
use mainstem_storage::ids::{RowRef, TableId};
use mainstem_storage::scan::ScanRequest;
use mainstem_storage::schema::{DataType, TableOptions};
use mainstem_storage::settings::{OpenOptions, Synchronous};
use mainstem_storage::transaction::{Transaction, TransactionMode};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::number;

const CHILD: &str = "MAINSTEM_SIM_CHILD";
const WRITERS: i64 = 3;
/// No machine is so slow.
const STUCK: Duration = Duration::from_secs(300);
/// Rows of each writer that stand; each commit inserts one and deletes the one this far back.
const KEPT: i64 = 12;

fn options() -> OpenOptions {
    OpenOptions::new().checkpoint_bytes(32 << 10).inline_delete_bytes(24).inline_run_bytes(0)
}

fn rows(txn: &Transaction, table: TableId) -> Vec<(i64, i64, RowRef)> {
    let view = txn.view(table).unwrap();
    let request = ScanRequest { row_refs: true, ..ScanRequest::all(view.schema().column_ids()) };
    let mut rows = Vec::new();
    for batch in view.scan(&request).unwrap().worker() {
        let batch = batch.unwrap();
        let column = |at: usize| batch.column(at).as_primitive::<Int64Type>().values().to_vec();
        let refs = batch.column(2).as_primitive::<UInt64Type>().values().iter().map(|bits| RowRef::from_bits(*bits));
        rows.extend(column(0).into_iter().zip(column(1)).zip(refs).map(|((writer, n), at)| (writer, n, at)));
    }
    rows
}

fn tables(db: &Database) -> [TableId; 2] {
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let catalog = txn.catalog();
    let ids = ["keyed", "arrival"].map(|name| match catalog.table_named(name) {
        Some(schema) => schema.id,
        None => {
            let column = |name: &str| ColumnDefinition::new(name, DataType::BigInt, false);
            let key = if name == "keyed" { vec!["writer".into(), "n".into()] } else { vec![] };
            txn.create_table(TableDefinition {
                primary_key: key,
                options: TableOptions { segment_rows: 7, delta_rows: 20 },
                ..TableDefinition::new(name, vec![column("writer"), column("n")])
            })
            .unwrap()
        }
    });
    txn.commit().unwrap();
    ids
}

/// Commits one step of `writer`: row `n` into both tables, row `n - KEPT` out of both.
fn step(db: &Database, tables: [TableId; 2], writer: i64, n: i64, synchronous: Synchronous) {
    let mut txn = db.begin(TransactionMode { synchronous, ..TransactionMode::default() }).unwrap();
    for table in tables {
        let schema = txn.catalog().table(table).cloned().unwrap();
        let old: Vec<RowRef> =
            rows(&txn, table).into_iter().filter(|r| r.0 == writer && r.1 <= n - KEPT).map(|r| r.2).collect();
        let columns: [(&str, ArrayRef); 2] =
            [("writer", Arc::new(Int64Array::from(vec![writer]))), ("n", Arc::new(Int64Array::from(vec![n])))];
        let mut statement = txn.statement();
        statement.delete(&schema, &old).unwrap();
        statement.insert(&schema, &RecordBatch::try_from_iter(columns).unwrap()).unwrap();
        txn.apply(statement).unwrap();
    }
    txn.commit().unwrap();
}

/// The state of each writer: its last number. Checks that all its rows, and no others, stand in both tables.
fn state(db: &Database, tables: [TableId; 2]) -> BTreeMap<i64, i64> {
    let txn = db.begin(TransactionMode::default()).unwrap();
    let mut last = BTreeMap::new();
    for (at, table) in tables.into_iter().enumerate() {
        let mut found: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        rows(&txn, table).into_iter().for_each(|(writer, n, _)| found.entry(writer).or_default().push(n));
        for (writer, mut numbers) in found {
            numbers.sort_unstable();
            let end = *numbers.last().unwrap();
            let wanted: Vec<i64> = ((end - KEPT + 1).max(1)..=end).collect();
            assert_eq!(numbers, wanted, "rows of writer {writer} in table {at}");
            if let Some(other) = last.insert(writer, end) {
                assert_eq!(other, end, "half a commit of writer {writer}");
            }
        }
    }
    last
}

/// What the child does; nothing when this is no child.
#[test]
fn child_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let db = Database::open(Path::new(&dir), options()).unwrap();
    let tables = tables(&db);
    let last = state(&db, tables);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, start) = (&db, last.get(&writer).copied().unwrap_or(0));
            scope.spawn(move || {
                for n in start + 1.. {
                    let synchronous = if writer == 0 { Synchronous::Normal } else { Synchronous::Full };
                    step(db, tables, writer, n, synchronous);
                    // One write, so that a kill leaves the line whole or away.
                    std::io::stdout().write_all(format!("ack {writer} {n}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_killed_process_loses_no_commit_it_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let seed = number("MAINSTEM_SIM_SEED", 1);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut told: BTreeMap<i64, i64> = BTreeMap::new();
    for round in 0..number("MAINSTEM_SIM_KILLS", 5) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::child_writes_until_it_is_killed", "--exact", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (tell, first) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut acks = Vec::new();
            for line in output.lines() {
                let Ok(line) = line else { break };
                // The test runner's own line may stand before the first.
                let words: Vec<&str> = line.split_whitespace().collect();
                if let [.., "ack", writer, n] = words.as_slice() {
                    acks.push((writer.parse::<i64>().unwrap(), n.parse::<i64>().unwrap()));
                    let _ = tell.send(());
                }
            }
            acks
        });
        let life = Duration::from_millis(rng.random_range(150..1_200));
        let begun = Instant::now();
        // In every other round while it opens the database, if that takes so long.
        let mut wrote = round % 2 == 1;
        while begun.elapsed() < life || !wrote {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            assert!(begun.elapsed() < STUCK, "the child writes nothing");
            wrote |= first.try_recv().is_ok();
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for (writer, n) in reader.join().unwrap() {
            told.insert(writer, n);
        }
        let db = Database::open(dir.path(), options()).unwrap();
        let tables = tables(&db);
        let found = state(&db, tables);
        for (writer, n) in &told {
            let there = found.get(writer).copied().unwrap_or(0);
            assert!(
                there >= *n,
                "MAINSTEM_SIM_SEED={seed}, round {round}: writer {writer} was told {n}, found {there}"
            );
        }
        assert!(db.verify().is_empty(), "{:?}", db.verify());
        println!("round {round}, killed after {life:?}: told {told:?}, found {found:?}");
    }
    assert!(told.values().sum::<i64>() > 0, "no commit was told in any round");
}
