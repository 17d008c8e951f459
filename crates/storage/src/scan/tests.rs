//! Whole scans over every kind of container: what is pruned, what is returned, in which pieces.

use std::collections::BTreeSet;

use super::*;
use crate::database::testing::{ID, Table, V, pairs, rows_of, table};
use crate::predicate::CompareOp;
use crate::row::Value;

/// Rows 0..35 in five segments of seven, 35..40 in a delta.
fn mixed() -> Table {
    let t = table(7);
    t.insert(0..35);
    t.flush();
    t.insert(35..40);
    t
}

fn request(predicates: Vec<Predicate>) -> ScanRequest {
    ScanRequest { predicates, ..ScanRequest::all(vec![ID, V]) }
}

fn where_id(op: CompareOp, value: i64) -> Predicate {
    Predicate::Compare { column: ID, op, value: Value::Int(value) }
}

fn ids(scan: &Arc<Scan>) -> Vec<i64> {
    pairs(scan).into_iter().map(|(id, _)| id).collect()
}

#[test]
fn segments_are_pruned_and_enclosed_by_their_zone_maps() {
    let t = mixed();
    let scan = t.view().scan(&request(vec![where_id(CompareOp::GtEq, 10), where_id(CompareOp::Lt, 21)])).unwrap();
    let counts =
        ScanCounts { segments: 5, segments_pruned: 3, segments_enclosed: 1, delta_rows: 5, ..ScanCounts::default() };
    assert_eq!(scan.counts(), counts, "7..14 in part, 14..21 whole");
    assert_eq!(ids(&scan), (10..21).collect::<Vec<_>>());
    let none = t.view().scan(&request(vec![where_id(CompareOp::Gt, 1_000)])).unwrap();
    assert_eq!((none.counts().segments_pruned, ids(&none).len()), (5, 0));
    let nulls = t.view().scan(&request(vec![Predicate::IsNull { column: V }])).unwrap();
    assert_eq!((nulls.counts().segments_pruned, ids(&nulls).len()), (5, 0));
}

/// Equal to a constant on the first columns of the sort key: a binary search in each run, with the answer of looking at
/// all.
#[test]
fn segments_of_a_key_are_found_by_their_bounds() {
    let db = crate::database::Database::in_memory(crate::database::testing::options()).unwrap();
    let mut definition = crate::database::testing::definition("t");
    definition.options.segment_rows = 7;
    definition.sort_key = Some(vec!["v".into(), "id".into()]);
    let mut txn = db.begin(crate::transaction::TransactionMode::default()).unwrap();
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    let t = Table { db, id };
    for start in [0, 40] {
        let rows: Vec<_> = (start..start + 40).map(|id| (id, (id % 5 != 4).then_some(id % 5))).collect();
        let mut txn = t.begin();
        t.write_in(&mut txn, &[], &rows).unwrap();
        txn.commit().unwrap();
        t.flush();
    }
    let where_v = |value| Predicate::Compare { column: V, op: CompareOp::Eq, value };
    let view = t.view();
    let all: Vec<_> = view.version().runs.iter().flat_map(|run| run.segments()).collect();
    for v in -1..6 {
        for predicates in [vec![where_v(Value::Int(v))], vec![where_id(CompareOp::Eq, 5 + v), where_v(Value::Int(v))]] {
            let scan = view.scan(&request(predicates.clone())).unwrap();
            let may = all.iter().filter(|part| part.segment.prune(&predicates) != Prune::None).count();
            assert!(
                scan.counts().segments - scan.counts().segments_pruned <= may && scan.counts().segments == all.len()
            );
            let expected = |id: &i64| id % 5 == v && v != 4 && (predicates.len() == 1 || *id == 5 + v);
            assert_eq!(ids(&scan), (0..80).filter(expected).collect::<Vec<_>>(), "{predicates:?}");
        }
    }
    assert!(ids(&view.scan(&request(vec![where_v(Value::Null)])).unwrap()).is_empty());
    let prefix = key_prefix(view.schema(), &[where_v(Value::Int(3)), where_id(CompareOp::Eq, 8)]);
    assert!(view.version().runs.iter().all(|run| (1..=2).contains(&run.find_prefix(&prefix).len())));
}

#[test]
fn a_worker_says_where_its_rows_live() {
    let t = mixed();
    t.delete(&[3, 37]);
    let scan = t.view().scan(&request(vec![where_id(CompareOp::GtEq, 2)])).unwrap();
    let mut worker = scan.worker();
    let rows: usize = worker.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, worker.emitted()), (36, EmittedRows { main: 32, delta: 4, own: 0, dropped: 0, filtered: 0 }));
}

#[test]
fn an_enclosed_segment_still_loses_its_deleted_rows() {
    let t = mixed();
    t.delete(&[15, 16, 36]);
    let scan = t.view().scan(&request(vec![where_id(CompareOp::GtEq, 14)])).unwrap();
    assert_eq!(scan.counts().segments_enclosed, 3);
    assert_eq!(ids(&scan), (14..40).filter(|id| ![15, 16, 36].contains(id)).collect::<Vec<_>>());
}

#[test]
fn a_limit_counts_selected_rows_of_all_workers_together() {
    let t = mixed();
    t.delete(&[3]);
    for limit in [0, 1, 6, 7, 8, 34, 39, 100] {
        let request = ScanRequest { limit: Some(limit), ..request(vec![where_id(CompareOp::NotEq, 20)]) };
        let scan = t.view().scan(&request).unwrap();
        let workers: Vec<_> = (0..3).map(|_| scan.worker()).collect();
        let rows: usize = workers.into_iter().flatten().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, limit.min(38), "limit {limit}");
    }
}

#[test]
fn batches_keep_to_the_size_asked_for() {
    let t = mixed();
    for (batch_rows, largest) in [(1, 1), (3, 3), (0, 7), (100, 7)] {
        let scan = t.view().scan(&ScanRequest { batch_rows, ..request(Vec::new()) }).unwrap();
        let sizes: Vec<usize> = scan.worker().map(|batch| batch.unwrap().num_rows()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 40);
        assert_eq!(sizes.iter().max(), Some(&largest), "{batch_rows}: {sizes:?}");
        assert!(sizes.iter().all(|size| *size > 0), "no empty batches");
    }
}

/// A segment of which some stretches are whole, some gone, and some have most or a few of their rows.
#[test]
fn vectors_of_every_density_are_the_rows_that_are_left() {
    let t = table(3_000);
    t.insert(0..5_000);
    t.flush();
    let is_gone = |id: &i64| match id / 250 % 5 {
        0 => false,
        1 => id % 9 == 4,
        2 => id % 10 != 3,
        3 => true,
        _ => id % 2 == 0,
    };
    t.delete(&(0..5_000).filter(is_gone).collect::<Vec<_>>());
    for (batch_rows, from) in [(1, 0), (7, 130), (64, 700), (100, 0), (250, 3_010), (1_000, 5), (0, 0)] {
        let request = ScanRequest { batch_rows, ..request(vec![where_id(CompareOp::GtEq, from)]) };
        let scan = t.view().scan(&request).unwrap();
        let largest = scan.worker().map(|batch| batch.unwrap().num_rows()).max();
        assert!(batch_rows == 0 || largest <= Some(batch_rows), "{batch_rows}: {largest:?}");
        let scan = t.view().scan(&request).unwrap();
        assert_eq!(ids(&scan), (from..5_000).filter(|id| !is_gone(id)).collect::<Vec<_>>(), "{batch_rows}");
    }
}

#[test]
fn a_scan_without_columns_counts_rows() {
    let t = mixed();
    t.delete(&[0, 39]);
    let scan = t.view().scan(&ScanRequest::all(Vec::new())).unwrap();
    assert_eq!(scan.worker().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 38);
}

#[test]
fn row_references_name_each_row_once_and_lead_back_to_it() {
    let t = mixed();
    let mut txn = t.begin();
    t.insert_in(&mut txn, 100..103);
    let view = txn.view(t.id).unwrap();
    let rows = rows_of(&view);
    assert_eq!(rows.iter().map(|row| row.0).collect::<BTreeSet<_>>().len(), 43);
    let named: Vec<_> = rows.iter().filter(|row| [3, 20, 37, 101].contains(&row.1)).map(|row| row.0).collect();
    let mut statement = txn.statement();
    statement.delete(view.schema(), &named).unwrap();
    txn.apply(statement).unwrap();
    let left: Vec<i64> = rows_of(&txn.view(t.id).unwrap()).into_iter().map(|row| row.1).collect();
    let gone: BTreeSet<i64> = rows.iter().map(|row| row.1).filter(|id| !left.contains(id)).collect();
    assert_eq!(gone, BTreeSet::from([3, 20, 37, 101]));
}

#[test]
fn own_writes_are_scanned_with_the_same_predicates() {
    let t = mixed();
    let mut txn = t.begin();
    t.write_in(&mut txn, &[1, 36], &[(1, None), (50, Some(7)), (51, None)]).unwrap();
    t.write_in(&mut txn, &[51], &[]).unwrap();
    let before = txn.view(t.id).unwrap();
    t.write_in(&mut txn, &[2, 50], &[]).unwrap();
    let after = txn.view(t.id).unwrap();
    let null = request(vec![Predicate::IsNull { column: V }]);
    assert_eq!(pairs(&before.scan(&null).unwrap()), vec![(1, None)]);
    let low = request(vec![where_id(CompareOp::Lt, 4)]);
    assert_eq!(pairs(&after.scan(&low).unwrap()), vec![(0, Some(0)), (1, None), (3, Some(30))]);
    let high = request(vec![where_id(CompareOp::GtEq, 35)]);
    assert_eq!(ids(&before.scan(&high).unwrap()), vec![35, 37, 38, 39, 50], "an older statement's view stays");
    assert_eq!(ids(&after.scan(&high).unwrap()), vec![35, 37, 38, 39]);
}

#[test]
fn workers_share_the_work_and_miss_nothing() {
    let t = table(1_000);
    t.insert(0..20_000);
    t.flush();
    t.insert(20_000..30_000);
    let scan = t.view().scan(&request(vec![where_id(CompareOp::NotEq, 5)])).unwrap();
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let work = || scan.worker().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(counts.iter().sum::<usize>(), 29_999);
}

#[test]
fn an_unknown_column_is_refused() {
    let view = mixed().view();
    assert!(view.scan(&ScanRequest::all(vec![ColumnId(9)])).is_err());
    let elsewhere = Predicate::IsNull { column: ColumnId(9) };
    assert!(view.scan(&request(vec![elsewhere])).is_err());
}

#[test]
fn statistics_are_exact_only_without_deletes_deltas_and_own_writes() {
    let t = table(7);
    t.insert(0..35);
    let of = |view: &TableView| {
        let statistics = view.statistics();
        let id = statistics.columns[0].clone();
        (statistics.rows, id.exact, id.range.map(|range| (range.min, range.max)))
    };
    assert_eq!(of(&t.view()), (35, false, None), "rows in a delta have no bounds");
    t.flush();
    let whole = (35, true, Some((Value::Int(0), Value::Int(34))));
    assert_eq!(of(&t.view()), whole);
    let before = t.view();
    t.delete(&[34]);
    let (rows, exact, _) = of(&t.view());
    assert_eq!((rows, exact), (34, false), "34 may have been the largest");
    assert_eq!(of(&before), whole, "at the older snapshot nothing was deleted");
    t.db.merge(t.id).unwrap();
    let mut txn = t.begin();
    t.write_in(&mut txn, &[3], &[(90, None), (91, None)]).unwrap();
    let (rows, exact, _) = of(&txn.view(t.id).unwrap());
    assert_eq!((rows, exact), (35, false), "own writes count and end exactness");
}

/// The keys of a delta are read once, held while its rows come, and told to who counts memory; those of segments read
/// in place are not.
#[test]
fn a_scan_in_order_tells_the_keys_that_it_holds() {
    use crate::order::part::testing::LOADS;
    let t = table(7);
    t.insert((0..70).map(|id| 10 * id));
    t.flush();
    let in_order = |t: &Table| t.view().scan_in_order(&request(Vec::new())).unwrap().unwrap();
    let loads = LOADS.get();
    assert_eq!((in_order(&t).memory(), LOADS.get() - loads), (0, 0), "nothing is between the rows of a segment");
    t.insert((0..5).map(|id| 301 + id));
    t.insert((5..9).map(|id| 301 + id));
    let loads = LOADS.get();
    let mut scan = in_order(&t);
    // A key of eight bytes and a place in the order, each.
    assert_eq!((scan.memory(), LOADS.get() - loads), (9 * (8 + 4), 1));
    let rows: usize = scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!((rows, scan.memory()), (79, 0));
    assert_eq!(LOADS.get() - loads, 2, "and the segment that they stand in the midst of");
}

/// Rows found by their keys are those of a scan with the same predicates, in key order.
#[test]
fn a_range_of_keys_gives_what_a_scan_gives() {
    check_range_of_keys(None);
}

/// Also through indexes, where main is in another order, or in none.
#[test]
fn a_range_of_indexed_keys_gives_what_a_scan_gives() {
    check_range_of_keys(Some(vec!["id".into()]));
    check_range_of_keys(Some(Vec::new()));
}

fn check_range_of_keys(sort_key: Option<Vec<String>>) {
    let in_order = sort_key.is_none();
    let db = crate::database::Database::in_memory(crate::database::testing::options()).unwrap();
    let mut definition = crate::database::testing::definition("t");
    definition.options.segment_rows = 7;
    definition.columns[1].nullable = false;
    definition.primary_key = vec!["v".into(), "id".into()];
    definition.sort_key = sort_key;
    let mut txn = db.begin(crate::transaction::TransactionMode::default()).unwrap();
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    let t = Table { db, id };
    for start in [0, 40, 80] {
        let rows: Vec<_> = (start..start + 40).map(|id| (id, Some(id % 5))).collect();
        let mut txn = t.begin();
        t.write_in(&mut txn, &[], &rows).unwrap();
        txn.commit().unwrap();
        if start < 80 {
            t.flush();
        }
    }
    t.delete(&[3, 13, 58, 83, 98]);
    let compare = |column, op, value| Predicate::Compare { column, op, value: Value::Int(value) };
    let view = t.view();
    let ops = [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
    let mut found_rows = 0;
    for v in [3, 4, 9] {
        let on_second = ops.iter().flat_map(|op| [8, 58, 83].map(|value| compare(ID, *op, value)));
        for more in std::iter::once(None).chain(on_second.map(Some)) {
            for last in [None, Some(compare(ID, CompareOp::Lt, 90)), Some(compare(V, CompareOp::Gt, 3))] {
                for limit in [None, Some(2)] {
                    let predicates =
                        [Some(compare(V, CompareOp::Eq, v)), more.clone(), last.clone()].into_iter().flatten();
                    let request = ScanRequest { row_refs: true, limit, ..request(predicates.collect()) };
                    let rows = view.rows_of_key_range(&request.predicates, 100).unwrap().unwrap();
                    assert_eq!(rows.in_order, in_order);
                    let found = view.scan_rows(&request, &rows.rows).unwrap();
                    let whole = view.scan(&ScanRequest { limit: None, ..request.clone() }).unwrap();
                    let mut expected: Vec<Vec<i64>> =
                        whole.worker().flat_map(|batch| rows_in(&batch.unwrap())).collect();
                    expected.sort_unstable();
                    expected.truncate(limit.unwrap_or(usize::MAX));
                    assert_eq!(rows_in(&found), expected, "{request:?}");
                    found_rows += found.num_rows();
                }
            }
        }
    }
    assert!(found_rows > 500, "{found_rows}");
    // Bounds of the first column alone.
    for op in [CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq] {
        let request = ScanRequest { row_refs: true, ..request(vec![compare(V, op, 3), compare(ID, CompareOp::Gt, 8)]) };
        let rows = view.rows_of_key_range(&request.predicates, 120).unwrap().unwrap();
        let found = rows_in(&view.scan_rows(&request, &rows.rows).unwrap());
        let mut expected: Vec<Vec<i64>> =
            view.scan(&request).unwrap().worker().flat_map(|batch| rows_in(&batch.unwrap())).collect();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected, "{op:?}");
        assert!(found.len() > 10, "{op:?}");
    }
    // Nothing is compared, or with a value that the column cannot have; too many.
    assert!(view.rows_of_key_range(&[compare(ID, CompareOp::Eq, 5)], 100).unwrap().is_none());
    assert!(view.rows_of_key_range(&[compare(V, CompareOp::NotEq, 3)], 100).unwrap().is_none());
    assert!(view.rows_of_key_range(&[compare(V, CompareOp::Gt, 1)], 10).unwrap().is_none());
    let text = Predicate::Compare { column: V, op: CompareOp::Eq, value: Value::Text("5".into()) };
    assert!(view.rows_of_key_range(&[text], 100).unwrap().is_none());
    assert!(view.rows_of_key_range(&[compare(V, CompareOp::Eq, 4)], 10).unwrap().is_none());
}

/// The rows of a batch of numbers, the reference of each behind its values.
fn rows_in(batch: &arrow_array::RecordBatch) -> Vec<Vec<i64>> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, UInt64Type};
    let value = |row: usize, column: &arrow_array::ArrayRef| match column.as_primitive_opt::<Int64Type>() {
        Some(numbers) => numbers.value(row),
        None => column.as_primitive::<UInt64Type>().value(row) as i64,
    };
    (0..batch.num_rows()).map(|row| batch.columns().iter().map(|column| value(row, column)).collect()).collect()
}

/// Ranges of the leading column, one after the other, are all rows in its order: key columns `v, id`, so that rows with
/// one value stand on both sides of a border of segments, in several runs and in a delta, some of them deleted or
/// updated.
#[test]
fn ranges_of_the_leading_column_make_up_the_order() {
    let db = crate::database::Database::in_memory(crate::database::testing::options()).unwrap();
    let mut definition = crate::database::testing::definition("t");
    definition.options.segment_rows = 7;
    definition.columns[1].nullable = false;
    definition.sort_key = Some(vec!["v".into(), "id".into()]);
    let mut txn = db.begin(crate::transaction::TransactionMode::default()).unwrap();
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    let t = Table { db, id };
    let value = |id: i64| id * 7 % 23;
    let insert = |ids: std::ops::Range<i64>| {
        let rows: Vec<_> = ids.map(|id| (id, Some(value(id)))).collect();
        let mut txn = t.begin();
        t.write_in(&mut txn, &[], &rows).unwrap();
        txn.commit().unwrap();
    };
    for ids in [0..60, 60..90] {
        insert(ids);
        t.flush();
    }
    // No other stream reaches above 22.
    let far: Vec<_> = (200..220).map(|id| (id, Some(id))).collect();
    let mut txn = t.begin();
    t.write_in(&mut txn, &[], &far).unwrap();
    txn.commit().unwrap();
    t.flush();
    insert(90..120);
    let dead = [3, 4, 17, 61, 95, 119, 203, 204];
    t.delete(&dead);
    // New versions of some, which come where the old ones stood.
    let again = [(4, Some(value(4))), (61, Some(value(61))), (203, Some(203))];
    let mut txn = t.begin();
    t.write_in(&mut txn, &[], &again).unwrap();
    txn.commit().unwrap();
    let view = t.view();
    let lives = |id: &i64| !dead.contains(id) || again.iter().any(|row| row.0 == *id);
    let mut expected: Vec<(i64, i64)> = (0..120).filter(lives).map(|id| (value(id), id)).collect();
    expected.extend((200..220).filter(lives).map(|id| (id, id)));
    let bounds = [-5, 0, 1, 6, 7, 11, 22, 23, 200, 204, 219, 300];
    for batch_rows in [0, 5] {
        for predicates in [vec![], vec![where_id(CompareOp::GtEq, 20)]] {
            let request = ScanRequest { batch_rows, ..request(predicates.clone()) };
            for from in std::iter::once(None).chain(bounds.map(Some)) {
                for to in bounds.map(Some).into_iter().chain([None]) {
                    let within = |v: i64| from.is_none_or(|from| from <= v) && to.is_none_or(|to| v < to);
                    let keeps = |(v, id): &&(i64, i64)| within(*v) && (predicates.is_empty() || *id >= 20);
                    let mut expected: Vec<_> = expected.iter().filter(keeps).copied().collect();
                    expected.sort_unstable();
                    for by_whole_key in [false, true] {
                        let scan = view.scan_range_in_order(&request, from, to, by_whole_key).unwrap().unwrap();
                        let batches: Vec<_> = scan.map(|batch| batch.unwrap()).collect();
                        let mut found: Vec<(i64, i64)> =
                            batches.iter().flat_map(rows_in).map(|row| (row[1], row[0])).collect();
                        assert!(found.is_sorted_by_key(|row| row.0), "{from:?}..{to:?}: {found:?}");
                        assert!(!by_whole_key || found.is_sorted(), "{from:?}..{to:?}: {found:?}");
                        found.sort_unstable();
                        assert_eq!(found, expected, "{from:?}..{to:?} {predicates:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_range_of_a_key_that_no_integer_leads_is_refused() {
    let db = crate::database::Database::in_memory(crate::database::testing::options()).unwrap();
    let mut definition = crate::database::testing::definition("t");
    definition.sort_key = Some(vec!["v".into(), "id".into()]);
    let mut txn = db.begin(crate::transaction::TransactionMode::default()).unwrap();
    let id = txn.create_table(definition).unwrap();
    txn.commit().unwrap();
    let t = Table { db, id };
    let refused = t.view().scan_range_in_order(&request(Vec::new()), Some(1), None, false).unwrap_err();
    assert!(refused.to_string().contains("no integer leads"), "v may be NULL: {refused}");
}
