//! Damaged segments of which single rows are read by key: blocks have several pages and are not open, so that a row
//! comes from the pages it is in. Whatever is damaged, each answer is right or an error that names file and byte, and
//! what the check of whole blocks finds, reading rows from all of their pages finds too.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition, UniqueDefinition};
use mainstem_storage::error::sqlstate;
use mainstem_storage::row::key::TableKey;
use mainstem_storage::schema::{DataType, TableOptions, TableSchema};
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::transaction::TransactionMode;
use mainstem_storage::{point, row::Value};

use super::*;

const ROWS: i64 = 12_000;
/// Two segments, of blocks of up to 60 pages.
const SEGMENT_ROWS: u32 = 6_000;
/// Every how many rows one is read: of the widest column a page has several times as many.
const STEP: usize = 37;
/// Bytes of a page, which damage is named by.
const PAGE_BYTES: u64 = 4_096;

/// A key, and a UNIQUE one; values whose blocks have NULLs, codes, values as they are, texts, and a dictionary of
/// texts.
fn row(i: i64) -> Vec<Value> {
    let mixed = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    vec![
        Value::Int(i * 7 + (mixed % 7) as i64),
        Value::Int(mixed as i64),
        if i % 5 == 0 { Value::Null } else { Value::Int((mixed % 1_000_000) as i64) },
        Value::Double(mixed as f64 / 3.0),
        if i % 11 == 0 {
            Value::Null
        } else {
            Value::Text(format!("é {mixed} {}", "and more ".repeat(i as usize % 4)).into())
        },
        Value::Text(format!("one of five hundred texts, each of which is rather long: {}", i % 500).into()),
        if i % 3 == 0 { Value::Null } else { Value::Boolean(mixed.is_multiple_of(2)) },
    ]
}

fn definition() -> TableDefinition {
    let text = DataType::Text { max_chars: None };
    let columns = [
        ("id", DataType::BigInt, false),
        ("code", DataType::BigInt, false),
        ("n", DataType::Integer, true),
        ("d", DataType::Double, true),
        ("t", text, true),
        ("w", text, true),
        ("b", DataType::Boolean, true),
    ];
    let columns = columns.map(|(name, data_type, nullable)| ColumnDefinition::new(name, data_type, nullable));
    TableDefinition {
        primary_key: vec!["id".into()],
        unique_keys: vec![UniqueDefinition { name: "t_code_key".into(), columns: vec!["code".into()] }],
        options: TableOptions { segment_rows: SEGMENT_ROWS, ..TableOptions::default() },
        ..TableDefinition::new("t", columns.into())
    }
}

fn batch(schema: &TableSchema, rows: &[Vec<Value>]) -> RecordBatch {
    let int = |at: usize| rows.iter().map(move |row| if let Value::Int(v) = row[at] { Some(v) } else { None });
    let text = |at: usize| rows.iter().map(move |row| if let Value::Text(v) = &row[at] { Some(&**v) } else { None });
    let double = |row: &Vec<Value>| if let Value::Double(v) = row[3] { Some(v) } else { None };
    let boolean = |row: &Vec<Value>| if let Value::Boolean(v) = row[6] { Some(v) } else { None };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(int(0).collect::<Int64Array>()),
        Arc::new(int(1).collect::<Int64Array>()),
        Arc::new(int(2).map(|v| v.map(|v| v as i32)).collect::<Int32Array>()),
        Arc::new(rows.iter().map(double).collect::<Float64Array>()),
        Arc::new(text(4).collect::<StringViewArray>()),
        Arc::new(text(5).collect::<StringViewArray>()),
        Arc::new(rows.iter().map(boolean).collect::<BooleanArray>()),
    ];
    RecordBatch::try_new(schema.arrow().clone(), columns).unwrap()
}

/// A database whose rows are in segments; closed.
fn database(rows: &[Vec<Value>]) -> SimDisk {
    let disk = SimDisk::new();
    let options = OpenOptions::new().background(false);
    let db = Database::open_on(Arc::new(disk.clone()), options).unwrap();
    let mut txn = db.begin(TransactionMode::default()).unwrap();
    let table = txn.create_table(definition()).unwrap();
    txn.commit().unwrap();
    for rows in rows.chunks(1_000) {
        let mut txn = db.begin(TransactionMode::default()).unwrap();
        let schema = txn.catalog().table(table).unwrap().clone();
        let mut statement = txn.statement();
        statement.insert(&schema, &batch(&schema, rows)).unwrap();
        txn.apply(statement).unwrap();
        txn.commit().unwrap();
    }
    db.freeze(table).unwrap();
    db.flush(table).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    disk
}

/// Reads the row at `STEP`s by each of its keys; returns the errors. A wrong answer is a failure.
fn read_rows(db: &Database, rows: &[Vec<Value>], context: &str) -> Vec<Error> {
    let txn = db.begin(TransactionMode { read_only: true, ..TransactionMode::default() }).unwrap();
    let table = txn.catalog().tables().next().unwrap().id;
    let view = txn.view(table).unwrap();
    let (keys, positions): (_, Vec<usize>) = (TableKey::all(view.schema()), (0..7).collect());
    let mut errors = Vec::new();
    for (i, row) in rows.iter().enumerate().step_by(STEP).chain(rows.iter().enumerate().next_back()) {
        for (key, values) in keys.iter().zip([&row[..1], &row[1..2]]) {
            let mut bytes = Vec::new();
            key.codec().encode_values(values, &mut bytes).unwrap();
            let mut found = Vec::new();
            let read = point::find(&view, key.id(), &bytes, |_| true).and_then(|at| match at {
                Some(at) => view.read_row(at, &positions, &mut found),
                None => panic!("{context}: row {i} is missing"),
            });
            match read {
                Ok(()) => assert_eq!(&found, row, "{context}: row {i}"),
                Err(e) => errors.push(e),
            }
        }
        // One that is not there.
        let (mut bytes, Value::Int(id)) = (Vec::new(), &row[0]) else { panic!("a row without a key") };
        let other =
            Value::Int(id + if rows.get(i + 1).is_some_and(|next| next[0] == Value::Int(id + 1)) { 0 } else { 1 });
        if other != row[0] {
            keys[0].codec().encode_values(&[other], &mut bytes).unwrap();
            match point::find(&view, keys[0].id(), &bytes, |_| true) {
                Ok(found) => assert_eq!(found, None, "{context}: behind row {i}"),
                Err(e) => errors.push(e),
            }
        }
    }
    errors
}

/// The byte that `error` names.
fn byte_of(error: &Error) -> u64 {
    let (_, rest) = error.message().split_once("damaged at byte ").unwrap();
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn damage_of_pages_is_named_or_harmless() {
    let seed = number("MAINSTEM_SIM_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("MAINSTEM_SIM_CORRUPT_SECONDS", 15));
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    let disk = database(&rows);
    let files: Vec<_> = files(&disk).into_iter().filter(|file| file.ends_with(".seg")).collect();
    assert!(files.len() >= 4, "segments of rows and of a key index: {files:?}");
    // Nothing fits the cache, so that each row is read from pages; or blocks are opened once it is worth it.
    let open = |disk: SimDisk, cold: bool| {
        let memory_limit = if cold { 0 } else { OpenOptions::default().memory_limit };
        let options = OpenOptions::new().read_only(true).background(false).memory_limit(memory_limit);
        Database::open_on(Arc::new(disk), options).unwrap()
    };
    let sound = open(disk.process_kill(), true);
    assert_eq!(read_rows(&sound, &rows, "sound").len(), 0);
    let stats = sound.cache_stats();
    assert!(stats.page_reads > 3_000 && stats.bytes == 0, "{stats:?}");

    let mut rng = StdRng::seed_from_u64(seed);
    let (mut found, mut harmless, mut elsewhere) = (0, 0, 0);
    while Instant::now() < end || found + harmless + elsewhere < 8 {
        let file = &files[rng.random_range(0..files.len())];
        let copy = disk.process_kill();
        let (mut done, mut flipped) = (None, None);
        copy.damage(file, |bytes| {
            let before = bytes.clone();
            done = Some(damage(bytes, &mut rng));
            let differ: Vec<usize> =
                (0..bytes.len().min(before.len())).filter(|at| bytes[*at] != before[*at]).collect();
            flipped = (bytes.len() == before.len() && differ.len() == 1).then(|| differ[0] as u64);
        })
        .unwrap();
        let cold = rng.random_ratio(3, 4);
        let context = format!("MAINSTEM_SIM_SEED={seed}: {file}, {}, cold {cold}", done.unwrap().what);
        let db = open(copy, cold);
        let errors = read_rows(&db, &rows, &context);
        for e in &errors {
            let named = e.message().contains(file.as_str()) && e.message().contains("damaged at byte");
            assert!(e.sqlstate() == sqlstate::CORRUPT && named, "{context}: {e:?}");
            if let Some(at) = flipped {
                assert!((byte_of(e)..byte_of(e) + PAGE_BYTES).contains(&at), "{context}: {e}");
            }
        }
        match db.verify().as_slice() {
            [] => {
                assert!(errors.is_empty(), "{context}: rows cannot be read of what is sound: {:?}", errors[0]);
                harmless += 1;
            }
            // What rows are read from.
            [e, ..] if e.message().contains(" block") => {
                assert!(!errors.is_empty(), "{context}: rows were read though {e}");
                found += 1;
            }
            // Header and footer, of which those who have the metadata need nothing.
            _ => elsewhere += 1,
        }
    }
    println!("seed {seed}: {found} found in pages, {harmless} harmless, {elsewhere} in headers and footers");
    assert!(found > 0, "no damage was found");
}
