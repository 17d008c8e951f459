use std::sync::Arc;

use proptest::prelude::*;

use crate::ids::{CommitTs, KeyId, RowRef};
use crate::main_store::key_index::testing::{BY_HASH, COLLIDE};
use crate::main_store::{Run, RunSegment};
use crate::memory::MemoryKind;
use crate::order::{first_repeated_key, first_shared_key};
use crate::point::find_in_run;
use crate::row::key::{HashedKey, KeyCodec};
use crate::row::testing::id;
use crate::run_writer::testing::*;
use crate::run_writer::{RunWriter, SORT_ENTRIES};
use crate::schema::{DataType, Layout, TableSchema};

/// Tables whose primary key is not their sort key: (key columns, sort columns), the last column is in neither.
fn indexed_table() -> impl Strategy<Value = Arc<TableSchema>> {
    let text = DataType::Text { max_chars: None };
    let shapes = vec![
        (vec![(DataType::BigInt, false), (DataType::Integer, true)], vec![0], vec![1]),
        (vec![(DataType::BigInt, false), (DataType::Integer, true)], vec![0], vec![]),
        (vec![(text, false), (DataType::Integer, false)], vec![0, 1], vec![1]),
        (vec![(text, false), (DataType::SmallInt, false)], vec![1, 0], vec![0, 1]),
        (vec![(DataType::Double, false), (DataType::Bytea, false)], vec![1, 0], vec![]),
    ];
    (proptest::sample::select(shapes), 1u32..12).prop_map(move |((mut columns, key, sort), segment_rows)| {
        columns.push((text, true));
        let mut schema = TableSchema::clone(&table(&columns, 0, false, segment_rows));
        schema.primary_key = key.into_iter().map(id).collect();
        schema.sort_key = sort.into_iter().map(id).collect();
        schema.layout = if schema.sort_key.is_empty() { Layout::Insertion } else { Layout::Sorted };
        assert!(schema.indexed_keys().next().is_some());
        Arc::new(schema)
    })
}

fn key(schema: &TableSchema, row: &Row) -> Vec<u8> {
    let values: Vec<_> = schema.primary_key.iter().map(|id| row[schema.position(*id).unwrap()].clone()).collect();
    let mut key = Vec::new();
    KeyCodec::new(schema, &schema.primary_key).encode_values(&values, &mut key).unwrap();
    key
}

/// Rows of `rows` with distinct keys.
fn distinct(schema: &TableSchema, rows: &[Row]) -> Vec<Row> {
    let mut seen = std::collections::BTreeSet::new();
    rows.iter().filter(|row| seen.insert(key(schema, row))).cloned().collect()
}

/// Rows of the run with their references.
fn rows_with_references(schema: &TableSchema, run: &Run) -> Vec<(RowRef, Row)> {
    let places = run
        .segments()
        .iter()
        .flat_map(|part| part.range.clone().map(|offset| RowRef::new(part.segment.id(), offset)).collect::<Vec<_>>());
    places.zip(rows_of_run(schema, run)).collect()
}

/// How indexes are made.
#[derive(Clone, Copy, Debug)]
struct Making {
    /// In the order of hashes, as older versions do; the first run, and the second.
    by_hash: [bool; 2],
    /// Five hashes for all keys.
    collide: bool,
    /// Entries sorted at once.
    sort_entries: Option<usize>,
}

fn making() -> impl Strategy<Value = Making> {
    let sort_entries = prop_oneof![Just(None), (1..9usize).prop_map(Some)];
    let making = |(by_hash, collide, sort_entries)| Making { by_hash, collide, sort_entries };
    (any::<[bool; 2]>(), any::<bool>(), sort_entries).prop_map(making)
}

fn set(making: Making, at: usize) {
    BY_HASH.set(making.by_hash[at]);
    COLLIDE.set(making.collide);
    SORT_ENTRIES.set(making.sort_entries);
}

fn sort_at_once(entries: usize) {
    set(Making { by_hash: [false; 2], collide: false, sort_entries: Some(entries) }, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_row_is_found_by_its_key_and_no_other(
        (schema, rows, absent) in indexed_table().prop_flat_map(|schema| {
            (Just(schema.clone()), rows(&schema, 60), rows(&schema, 10))
        }),
        making in making(),
    ) {
        set(making, 0);
        let target = target();
        let rows = distinct(&schema, &rows);
        let Some(run) = run(&schema, &target, &rows, schema.options.segment_rows as usize) else { return Ok(()) };
        prop_assert!(run.verify(&schema).is_empty(), "{:?}", run.verify(&schema));
        prop_assert_eq!(run.index(KeyId::PRIMARY).unwrap().entries().rows(), rows.len() as u64);
        prop_assert_eq!(run.index(KeyId::PRIMARY).unwrap().is_by_hash(), making.by_hash[0]);
        for (at, row) in rows_with_references(&schema, &run) {
            let key = key(&schema, &row);
            prop_assert_eq!(find_in_run(&schema, &run, KeyId::PRIMARY, HashedKey::of(&key), None, |_| true).unwrap(), Some(at));
            prop_assert_eq!(find_in_run(&schema, &run, KeyId::PRIMARY, HashedKey::of(&key), None, |row| row != at).unwrap(), None);
            prop_assert!(run.segment(at.container()).unwrap().segment.key_filter().unwrap().is_none());
        }
        for row in &absent {
            let key = key(&schema, row);
            let there = rows.iter().any(|row| self::key(&schema, row) == key);
            prop_assert_eq!(find_in_run(&schema, &run, KeyId::PRIMARY, HashedKey::of(&key), None, |_| true).unwrap().is_some(), there);
        }
        // Rows consumed from the front, and deleted ones, are not found.
        let half = run.rows() / 2;
        let rest = run.without_front(half).unwrap().unwrap();
        prop_assert!(rest.verify(&schema).is_empty(), "{:?}", rest.verify(&schema));
        for (number, (at, row)) in rows_with_references(&schema, &run).into_iter().enumerate() {
            let found = find_in_run(&schema, &rest, KeyId::PRIMARY, HashedKey::of(&key(&schema, &row)), None, |_| true).unwrap();
            prop_assert_eq!(found, (number as u64 >= half).then_some(at));
        }
        let (at, row) = rows_with_references(&schema, &run).pop().unwrap();
        run.segment(at.container()).unwrap().segment.deletes().record(CommitTs(5), &[at.offset()].into_iter().collect());
        let find = |ts| find_in_run(&schema, &run, KeyId::PRIMARY, HashedKey::of(&key(&schema, &row)), Some(CommitTs(ts)), |_| true).unwrap();
        prop_assert_eq!((find(4), find(5)), (Some(at), None));
    }

    #[test]
    fn keys_that_rows_of_runs_share_are_found(
        (schema, left, right) in indexed_table().prop_flat_map(|schema| {
            (Just(schema.clone()), rows(&schema, 30), rows(&schema, 30))
        }),
        making in making(),
    ) {
        let target = target();
        let size = schema.options.segment_rows as usize;
        let [a, b] = [&left, &right].into_iter().enumerate().map(|(at, rows)| {
            set(making, at);
            run(&schema, &target, rows, size)
        }).collect::<Vec<_>>().try_into().unwrap();
        let (Some(a), Some(b)) = (a, b) else { return Ok(()) };
        let (of_a, of_b) = (rows_with_references(&schema, &a), rows_with_references(&schema, &b));
        let even = |row: RowRef| row.offset().is_multiple_of(2);
        let pairs = |accept: &dyn Fn(RowRef, RowRef) -> bool| {
            let meet = |x: &(RowRef, Row), y: &(RowRef, Row)| {
                (accept(x.0, y.0) && key(&schema, &x.1) == key(&schema, &y.1)).then(|| key(&schema, &x.1))
            };
            of_a.iter().flat_map(|x| of_b.iter().filter_map(|y| meet(x, y)).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        for accept in [&|_, _| true, &|x: RowRef, y: RowRef| even(x) && !even(y)] as [&dyn Fn(RowRef, RowRef) -> bool; 2] {
            let wanted = pairs(accept);
            match first_shared_key(&schema, KeyId::PRIMARY, &a, &b, accept).unwrap() {
                Some(found) => prop_assert!(wanted.contains(&found)),
                None => prop_assert!(wanted.is_empty()),
            }
        }
        let mut keys: Vec<_> = left.iter().chain(&right).map(|row| key(&schema, row)).collect();
        keys.sort();
        let repeated: Vec<_> = keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0].clone()).collect();
        match first_repeated_key(&schema, KeyId::PRIMARY, &[a, b]) {
            // No load makes both.
            Err(_) => prop_assert!(making.by_hash[0] != making.by_hash[1]),
            Ok(Some(found)) => prop_assert!(repeated.contains(&found)),
            Ok(None) => prop_assert!(repeated.is_empty()),
        }
    }
}

/// What a cancelled merge does: entries that were written aside are merged no further, and leave no file.
#[test]
fn an_index_that_is_no_longer_wanted_is_not_written() {
    sort_at_once(4);
    let schema = {
        let mut schema =
            TableSchema::clone(&table(&[(DataType::BigInt, false), (DataType::BigInt, false)], 0, false, 8));
        (schema.primary_key, schema.sort_key) = (vec![id(0)], vec![id(1)]);
        schema.layout = Layout::Sorted;
        Arc::new(schema)
    };
    for asked_max in 0..4 {
        let target = target();
        let rows: Vec<Row> = (0..60).map(|n| [97 * n % 101, n].map(crate::row::Value::Int).to_vec()).collect();
        let mut writer = RunWriter::new(schema.clone(), target.clone());
        rows.chunks(8).for_each(|rows| {
            writer.write(batch(&schema, rows).columns()).unwrap();
        });
        let asked = std::cell::Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            if asked.get() > asked_max { Err(crate::Error::closed("enough")) } else { Ok(()) }
        };
        assert_eq!(writer.finish_while(&go_on).unwrap_err().message(), "enough");
        assert_eq!((asked.get(), files(&target)), (asked_max + 1, 0));
    }
}

/// While rows still come, too: sorted entries are merged when there are many, which takes a while and memory.
#[test]
fn a_merge_in_the_midst_of_a_load_can_be_canceled_and_is_counted() {
    sort_at_once(4);
    let schema = {
        let mut schema =
            TableSchema::clone(&table(&[(DataType::BigInt, false), (DataType::BigInt, false)], 0, false, 8));
        (schema.primary_key, schema.sort_key) = (vec![id(0)], vec![id(1)]);
        schema.layout = Layout::Sorted;
        Arc::new(schema)
    };
    let sorts = crate::limits::KEY_INDEX_FAN_IN as i64;
    let row = |n: i64| [n * 7_919 % 1_000_003, n].map(crate::row::Value::Int).to_vec();
    // What takes entries aside: rows, parts that stand already, and the wait for others.
    for way in 0..3 {
        for asked_max in [0, 2] {
            let target = target();
            let used = || target.memory.used(MemoryKind::Reserve);
            let whole = run(&schema, &target, &(0..8 * sorts).map(row).collect::<Vec<_>>(), 8).unwrap();
            let (before, asked) = (files(&target), std::cell::Cell::new(0));
            let most = std::cell::Cell::new(0);
            let go_on = || {
                asked.set(asked.get() + 1);
                most.set(used().max(most.get()));
                if asked.get() > asked_max { Err(crate::Error::closed("enough")) } else { Ok(()) }
            };
            let mut writer = RunWriter::new(schema.clone(), target.clone());
            let write = |writer: &mut RunWriter, part: i64| match way {
                0 => {
                    let rows = (8 * part..8 * part + 8).map(row).collect::<Vec<_>>();
                    writer.write_while(batch(&schema, &rows).columns(), 0, &go_on).map(|_| ())
                }
                1 => writer.keep(whole.segments()[part as usize].clone(), &go_on),
                _ => {
                    let rows = (3 * part..3 * part + 3).map(row).collect::<Vec<_>>();
                    writer.write_while(batch(&schema, &rows).columns(), 0, &|| unreachable!()).unwrap();
                    writer.put_entries_aside(&go_on)
                }
            };
            let error = (0..sorts).find_map(|part| {
                assert_eq!(asked.get(), 0);
                write(&mut writer, part).err()
            });
            assert_eq!(error.unwrap().message(), "enough", "way {way}");
            assert_eq!(asked.get(), asked_max + 1, "way {way}");
            assert!(most.get() >= sorts as u64 * 3 * 24 && used() == 0, "{} bytes", most.get());
            drop(writer);
            assert_eq!(files(&target), before);
        }
    }
}

/// Sorted runs of entries that are merged when there are many, and what is left of them in the end: no entry is lost,
/// no file stays.
#[test]
fn an_index_of_many_sorts_has_an_entry_for_each_row() {
    let schema = {
        let mut schema =
            TableSchema::clone(&table(&[(DataType::BigInt, false), (DataType::BigInt, false)], 0, false, 8));
        (schema.primary_key, schema.sort_key) = (vec![id(0)], vec![id(1)]);
        schema.layout = Layout::Sorted;
        Arc::new(schema)
    };
    sort_at_once(8);
    let fan_in = crate::limits::KEY_INDEX_FAN_IN as i64;
    // Just one place full, one short of it; both; more.
    for sorts in [fan_in - 1, fan_in, fan_in + 1, 2 * fan_in - 1, fan_in * fan_in + fan_in + 3] {
        let target = target();
        let row = |n: i64| vec![crate::row::Value::Int(n * 7_919 % 1_000_003), crate::row::Value::Int(n)];
        let rows: Vec<Row> = (0..8 * sorts - 3).map(row).collect();
        let mut writer = RunWriter::new(schema.clone(), target.clone());
        for (part, rows) in rows.chunks(8).enumerate() {
            writer.write(batch(&schema, rows).columns()).unwrap();
            if part == 5 {
                writer.put_entries_aside(&|| Ok(())).unwrap();
                assert_eq!(writer.entry_bytes(), 0);
            }
        }
        let whole = writer.finish().unwrap().unwrap().run;
        assert!(whole.verify(&schema).is_empty(), "{sorts} sorts: {:?}", whole.verify(&schema));
        let listed = whole.all_segments().count();
        assert_eq!(files(&target), listed, "{sorts} sorts");
        assert_eq!(whole.indexes()[0].entries().rows(), rows.len() as u64);
    }
}

#[test]
fn parts_that_a_run_keeps_are_indexed_as_far_as_they_are_its_own() {
    sort_at_once(4);
    let schema = {
        let mut schema =
            TableSchema::clone(&table(&[(DataType::BigInt, false), (DataType::BigInt, false)], 0, false, 8));
        (schema.primary_key, schema.sort_key) = (vec![id(0)], vec![id(1)]);
        schema.layout = Layout::Sorted;
        Arc::new(schema)
    };
    let target = target();
    let row = |n: i64| vec![crate::row::Value::Int(97 * n % 101), crate::row::Value::Int(n)];
    let numbers: Vec<Row> = (0..16).map(row).collect();
    let old = run(&schema, &target, &numbers, 8).unwrap();
    let mut writer = RunWriter::new(schema.clone(), target.clone());
    let [first, second] = old.segments() else { panic!("two segments") };
    let go_on = || Ok(());
    writer.keep(RunSegment { range: 3..8, ..first.clone() }, &go_on).unwrap();
    writer.keep(second.clone(), &go_on).unwrap();
    writer.write(batch(&schema, &(16..20).map(row).collect::<Vec<_>>()).columns()).unwrap();
    let crate::run_writer::WrittenRun { run: new, written } = writer.finish().unwrap().unwrap();
    assert_eq!(written.len(), 1, "segments of the index do not count as rows written");
    drop(written);
    assert!(new.verify(&schema).is_empty(), "{:?}", new.verify(&schema));
    for n in 0..20 {
        let found =
            find_in_run(&schema, &new, KeyId::PRIMARY, HashedKey::of(&key(&schema, &row(n))), None, |_| true).unwrap();
        assert_eq!(found.is_some(), n >= 3, "row {n}");
    }
    // An index of other rows, or none, does not pass for it.
    let rebuilt = |index| Run::new(new.id(), new.segments().to_vec()).unwrap().with_indexes(index);
    assert_eq!(rebuilt(old.indexes().to_vec()).verify(&schema).len(), 1);
    assert_eq!(rebuilt(Vec::new()).verify(&schema).len(), 1);
    // Files of spilled sorts are gone, and all others go with their runs.
    let listed = |run: &Run| run.all_segments().map(|part| part.segment.id()).collect::<Vec<_>>();
    let mut all = [listed(&old), listed(&new)].concat();
    all.sort();
    all.dedup();
    assert_eq!(files(&target), all.len());
    drop((old, new));
    assert_eq!(files(&target), 0);
}
