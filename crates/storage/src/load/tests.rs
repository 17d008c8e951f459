mod spilled;

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{LoadMemory, Loader, Waiting};
use crate::error::{Result, sqlstate};
use crate::main_store::Run;
use crate::memory::{MemoryBudget, MemoryKind};
use crate::row::Value;
use crate::run_writer::testing::*;
use crate::schema::{DataType, TableSchema};

/// Loads `rows` in batches of these sizes, over and over.
fn load(
    schema: &Arc<TableSchema>,
    target: &super::LoadTarget,
    rows: &[Row],
    batches: &[usize],
    sort: (usize, usize),
) -> Result<Vec<Arc<Run>>> {
    load_by(1, schema, target, rows, batches, sort)
}

/// As [`load`], by so many threads.
fn load_by(
    threads: usize,
    schema: &Arc<TableSchema>,
    target: &super::LoadTarget,
    rows: &[Row],
    batches: &[usize],
    sort: (usize, usize),
) -> Result<Vec<Arc<Run>>> {
    let mut loader = Loader::new(schema.clone(), target.clone(), schema.options.segment_rows).with_threads(threads);
    loader = loader.with_sort_limits(sort.0, sort.1);
    let mut rest = rows;
    for size in batches.iter().cycle() {
        let (head, tail) = rest.split_at(rest.len().min(*size));
        loader.push(&batch(schema, head))?;
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    loader.finish()
}

/// A row collected is counted with all that is beside it when it is sorted and written, a segment at a time.
#[test]
fn what_a_sort_and_a_segment_take_is_counted_with_the_rows() {
    // A key, and three numbers more; a piece is less than the rows of a segment.
    let schema = table(&[(DataType::BigInt, false); 4], 1, true, 1_000);
    let budget = MemoryBudget::new(8 << 20);
    let used = || budget.used(MemoryKind::Loads);
    let row = |n: i64| vec![Value::Int(n * 7_919 % 100_003); 4];
    let (values, key, order) = (32, 9, 12);
    // Beside the rows of the first segment, which wait for it the longest: a copy in order and what is encoded at once;
    // beside others: columns that are joined.
    for (threads, first, later) in [(1, values + 8, 8), (2, values + values, 16), (4, values + values, values)] {
        let loads = LoadMemory::new(budget.clone(), Arc::default());
        let mut loader = Loader::new(schema.clone(), target(), schema.options.segment_rows)
            .with_threads(threads)
            .in_turn(loads.enter(Waiting::Uncancelled));
        for (from, bytes) in [(0, first), (1_000, later), (2_000, later)] {
            let before = if from == 0 { 0 } else { used() };
            loader.push(&batch(&schema, &(from..from + 1_000).map(row).collect::<Vec<_>>())).unwrap();
            assert_eq!(used() - before, 1_000 * (values + key + order + bytes), "{threads} threads, from {from}");
        }
        loader.finish().unwrap();
        assert_eq!(used(), 0);
    }
}

fn numbers(rows: impl IntoIterator<Item = i64>) -> Vec<Row> {
    rows.into_iter().map(|i| vec![Value::Int(i), Value::Int(i * 7)]).collect()
}

fn number_table(segment_rows: u32) -> Arc<TableSchema> {
    table(&[(DataType::BigInt, false), (DataType::BigInt, true)], 1, true, segment_rows)
}

fn all_rows(schema: &TableSchema, runs: &[Arc<Run>]) -> Vec<Row> {
    runs.iter().flat_map(|run| rows_of_run(schema, run)).collect()
}

/// Each run is in order, its segments are no larger than they may be, and all rows are there. Each run's rows came
/// before those of the next, so a stable sort of all is a stable sort of what came in.
fn are_loaded(schema: &TableSchema, runs: &[Arc<Run>], rows: &[Row]) {
    for run in runs {
        let of_run = rows_of_run(schema, run);
        assert!(of_run.is_sorted_by(|a, b| compare(schema, a, b).is_le()));
        assert!(run.segments().iter().all(|part| part.rows() <= schema.options.segment_rows));
    }
    assert_eq!(sorted(schema, &all_rows(schema, runs)), sorted(schema, rows));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_load_equals_the_naive_sort(
        (schema, rows) in any_table().prop_flat_map(|schema| (Just(schema.clone()), rows(&schema, 120))),
        batches in vec(1usize..40, 1..5),
        sort in (1usize..60, 200usize..4_000),
    ) {
        let target = target();
        let runs = load(&schema, &target, &rows, &batches, sort).unwrap();
        are_loaded(&schema, &runs, &rows);
        if schema.sort_key.is_empty() {
            prop_assert_eq!(&all_rows(&schema, &runs), &rows);
            prop_assert!(runs.len() <= 1);
        }
        // Block by block the same, checksums included, however many threads encode them.
        let metas = |runs: &[Arc<Run>]| -> Vec<_> {
            runs.iter().flat_map(|run| run.segments()).map(|part| part.segment.meta().clone()).collect()
        };
        let by = |threads| {
            let target = crate::run_writer::testing::target();
            load_by(threads, &schema, &target, &rows, &batches, (sort.0, usize::MAX)).unwrap()
        };
        let (by_one, by_three) = (by(1), by(3));
        prop_assert_eq!(metas(&by_three), metas(&by_one));
        prop_assert_eq!(all_rows(&schema, &by_three), all_rows(&schema, &by_one));
        drop(runs);
        prop_assert_eq!(files(&target), 0, "nobody kept the files");
    }

    #[test]
    fn a_key_that_is_twice_is_named(
        keys in vec(0i64..60, 1..40),
        batches in vec(1usize..20, 1..4),
        sort_rows in 1usize..20,
        segment_rows in 1u32..6,
    ) {
        let (schema, target) = (number_table(segment_rows), target());
        let mut seen = std::collections::HashSet::new();
        let twice: Vec<i64> = keys.iter().copied().filter(|key| !seen.insert(*key)).collect();
        match load(&schema, &target, &numbers(keys), &batches, (sort_rows, usize::MAX)) {
            Ok(_) => prop_assert!(twice.is_empty()),
            Err(e) => {
                prop_assert_eq!(e.sqlstate(), sqlstate::UNIQUE);
                let named = |key: &i64| e.message() == format!(
                    "duplicate key value violates unique constraint \"t_pkey\": Key (c0)=({key}) already exists."
                );
                prop_assert!(twice.iter().any(named), "{e}: {twice:?}");
            }
        }
        prop_assert_eq!(files(&target), 0);
    }
}

#[test]
fn sorted_rows_become_one_run_of_full_segments() {
    let (schema, target) = (number_table(10), target());
    for (batches, least) in [(&[6][..], 10), (&[6, 130], 8), (&[7], 7), (&[9], 9), (&[16], 8), (&[17], 8)] {
        let runs = load(&schema, &target, &numbers(0..1_000), batches, (40, usize::MAX)).unwrap();
        assert_eq!(runs.len(), 1);
        let of_run: Vec<u32> = runs[0].segments().iter().map(|part| part.rows()).collect();
        // Rows that come at once are not joined with others if they nearly make a segment, or two. What comes last has
        // as many as there are.
        let (others, last) = of_run.split_at(of_run.len() - 2);
        assert!(of_run.iter().all(|rows| *rows <= 10) && others.iter().all(|rows| *rows >= least), "{of_run:?}");
        assert!(last.iter().sum::<u32>() > 0, "{of_run:?}");
        assert_eq!(all_rows(&schema, &runs), numbers(0..1_000));
    }
}

#[test]
fn a_sort_limit_in_bytes_holds() {
    let text = DataType::Text { max_chars: None };
    let schema = table(&[(DataType::BigInt, false), (text, true)], 1, true, 4);
    let wide = |i: i64| vec![Value::Int(-i), Value::Text("x".repeat(1_000).into())];
    let rows: Vec<Row> = (0..32).map(wide).collect();
    let target = target();
    let runs = load(&schema, &target, &rows, &[1], (1 << 20, 20_000)).unwrap();
    assert_eq!(runs.len(), 4, "eight rows fit 20,000 bytes, with what their sort and a segment of four take");
    assert!(runs.iter().all(|run| run.rows() == 8 && run.segments().len() == 2));
}

#[test]
fn wide_and_time_keys_are_shown_as_sql_shows_them() {
    let text = DataType::Text { max_chars: None };
    let schema = table(&[(text, false), (DataType::Timestamp, false), (DataType::Integer, true)], 2, true, 4);
    let row = vec![Value::Text("a b".into()), Value::Int(1_500_000), Value::Null];
    let error = load(&schema, &target(), &[row.clone(), row], &[9], (8, usize::MAX)).unwrap_err();
    assert!(error.message().contains("Key (c0, c1)=(a b, 1970-01-01 00:00:01.5) already exists."), "{error}");
}

#[test]
fn a_loader_dropped_half_way_leaves_no_file() {
    let (schema, target) = (number_table(3), target());
    let mut loader = Loader::new(schema.clone(), target.clone(), 3).with_sort_limits(6, usize::MAX);
    loader.push(&batch(&schema, &numbers(0..50))).unwrap();
    assert!(files(&target) > 0);
    drop(loader);
    assert_eq!(files(&target), 0);

    let runs = load(&schema, &target, &numbers(0..50), &[50], (6, usize::MAX)).unwrap();
    runs.iter().flat_map(|run| run.segments()).for_each(|part| part.segment.keep());
    drop(runs);
    assert_eq!(files(&target), 17, "kept files stay");
}
