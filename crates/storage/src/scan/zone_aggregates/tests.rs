//! What metadata says and what a scan of the same request reads are together the rows of the view.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::database::testing::{ID, Table, V, pairs, table};
use crate::predicate::CompareOp;
use crate::scan::EmittedRows;
use crate::version::TableVersion;

type Row = (i64, Option<i64>);

/// COUNT, MIN, MAX and SUM of `V`, and the rows.
#[derive(Debug, Default, PartialEq)]
struct Totals {
    rows: u64,
    count: u64,
    min: Option<i64>,
    max: Option<i64>,
    sum: i128,
}

impl Totals {
    fn add(&mut self, rows: &[Row]) {
        self.rows += rows.len() as u64;
        for value in rows.iter().filter_map(|row| row.1) {
            self.count += 1;
            self.min = Some(self.min.map_or(value, |min| min.min(value)));
            self.max = Some(self.max.map_or(value, |max| max.max(value)));
            self.sum += i128::from(value);
        }
    }

    fn add_known(&mut self, known: &ZoneAggregates) {
        let [counts, mins, maxs, sums] = known.values.as_slice() else { panic!("{known:?}") };
        self.rows += known.rows;
        self.count += counts.iter().map(|value| value.count).sum::<u64>();
        self.sum += sums.iter().map(|value| number(&value.value).unwrap()).sum::<i128>();
        let bounds = |values: &[ZoneValue]| -> Vec<i64> {
            values
                .iter()
                .filter_map(|value| number(&value.value).filter(|_| !value.value.is_null()))
                .map(|v| v as i64)
                .collect()
        };
        self.min = bounds(mins).into_iter().chain(self.min).min();
        self.max = bounds(maxs).into_iter().chain(self.max).max();
        assert!(values_agree(counts, sums), "{known:?}");
    }
}

fn values_agree(counts: &[ZoneValue], sums: &[ZoneValue]) -> bool {
    counts.iter().map(|value| value.count).eq(sums.iter().map(|value| value.count))
}

fn request(predicates: Vec<Predicate>, asked: Option<Vec<(ColumnId, ZoneAggregate)>>) -> ScanRequest {
    ScanRequest { predicates, zone_aggregates: asked, ..ScanRequest::all(vec![ID, V]) }
}

fn all_of(column: ColumnId) -> Option<Vec<(ColumnId, ZoneAggregate)>> {
    use ZoneAggregate as A;
    Some([A::Count, A::Min, A::Max, A::Sum].map(|aggregate| (column, aggregate)).to_vec())
}

/// Metadata and scan together, and in how many segments metadata knows all.
fn totals(view: &Arc<TableView>, predicates: &[Predicate]) -> (Totals, usize) {
    let request = request(predicates.to_vec(), all_of(V));
    let (known, rest) = (view.zone_aggregates(&request).unwrap(), view.scan(&request).unwrap());
    assert_eq!(rest.counts().segments_from_metadata, known.segments);
    let mut totals = Totals::default();
    totals.add(&pairs(&rest));
    totals.add_known(&known);
    (totals, known.segments)
}

/// Counts and sums of metadata, codes and scan together, and of how many segments codes are added up.
fn totals_on_codes(view: &Arc<TableView>, predicates: &[Predicate]) -> (Totals, usize) {
    use ZoneAggregate as A;
    let request = request(predicates.to_vec(), Some(vec![(V, A::Count), (V, A::Sum)]));
    let (known, rest) = (view.zone_aggregates(&request).unwrap(), view.scan(&request).unwrap());
    let pieces = view.aggregate_scan(&request).unwrap();
    assert!(rest.pieces.is_empty(), "all rows are added up");
    assert_eq!(rest.counts().segments_from_metadata, known.segments);
    // Two that share the pieces.
    let (mut totals, mut some, mut others) = (Totals::default(), pieces.nothing(), pieces.nothing());
    let mut counted = EmittedRows::default();
    while pieces.add_next(&mut some, &mut counted).unwrap() {
        pieces.add_next(&mut others, &mut counted).unwrap();
    }
    assert_eq!(counted.main + counted.delta + counted.own, some.rows + others.rows);
    totals.add(&pairs(&rest));
    for known in [&known, &some, &others] {
        let [counts, sums] = known.values.as_slice() else { panic!("{known:?}") };
        assert!(values_agree(counts, sums), "{known:?}");
        totals.rows += known.rows;
        totals.count += counts.iter().map(|value| value.count).sum::<u64>();
        totals.sum += sums.iter().map(|value| number(&value.value).unwrap()).sum::<i128>();
    }
    (Totals { min: None, max: None, ..totals }, rest.counts().segments_on_codes)
}

/// `view` without the first rows of each of its runs, as a merge in steps leaves them.
fn without_front(view: &TableView, rows: u64) -> Arc<TableView> {
    let version = view.version();
    let runs = version.runs.iter().filter_map(|run| run.without_front(rows.min(run.rows())).unwrap()).map(Arc::new);
    let version = TableVersion {
        schema: version.schema.clone(),
        valid_from: version.valid_from,
        moves: version.moves,
        deltas: version.deltas.clone(),
        runs: runs.collect(),
    };
    Arc::new(TableView::new(view.schema().clone(), Arc::new(version), view.own().cloned(), view.ts(), None))
}

fn compare(column: ColumnId, op: CompareOp, value: i64) -> Predicate {
    Predicate::Compare { column, op, value: Value::Int(value) }
}

/// Rows 0..35 in segments of seven, some of them deleted, 35..40 in a delta.
fn some_deleted() -> Table {
    let t = table(7);
    t.insert(0..35);
    t.flush();
    t.insert(35..40);
    t.delete(&[1, 8, 9, 36]);
    t
}

#[test]
fn rows_of_part_of_a_segment_are_counted_exactly() {
    let t = some_deleted();
    let view = t.view();
    assert_eq!(view.statistics_of(&[]).rows, 36);
    for front in 0..=35 {
        let rest = without_front(&view, front);
        let expected = pairs(&rest.scan(&ScanRequest::all(vec![ID, V])).unwrap());
        assert_eq!(expected.len(), (front as i64..40).filter(|id| ![1, 8, 9, 36].contains(id)).count());
        assert_eq!(rest.statistics_of(&[]).rows, expected.len() as u64, "without {front}");
        // COUNT(*) alone needs no whole segments.
        let known = rest.zone_aggregates(&request(Vec::new(), Some(Vec::new()))).unwrap();
        assert_eq!(
            (known.rows, known.segments),
            (expected.len() as u64 - 4, rest.version().runs.iter().map(|run| run.segments().len()).sum())
        );
        let (found, segments) = totals(&rest, &[]);
        let mut wanted = Totals::default();
        wanted.add(&expected);
        assert_eq!(found, wanted, "without {front}");
        // The two with deletes are read, and so is the one that is there in part.
        let whole = 5_usize.saturating_sub((front as usize).div_ceil(7).max(2));
        assert_eq!(segments, whole, "without {front}");
    }
}

#[test]
fn segments_answer_for_what_metadata_knows_exactly() {
    let t = some_deleted();
    let segments = |predicates: &[Predicate]| totals(&t.view(), predicates).1;
    assert_eq!(segments(&[]), 3);
    assert_eq!(segments(&[compare(ID, CompareOp::GtEq, 15)]), 2, "14..21 is cut");
    assert_eq!(segments(&[compare(ID, CompareOp::GtEq, 14), compare(V, CompareOp::Lt, 280)]), 2);
    assert_eq!(segments(&[Predicate::IsNull { column: V }]), 0);
    // Deletes of the transaction itself, which nobody else sees.
    let mut txn = t.begin();
    t.write_in(&mut txn, &[20], &[(50, None)]).unwrap();
    let (found, known) = totals(&txn.view(t.id).unwrap(), &[compare(ID, CompareOp::GtEq, 14)]);
    let mut wanted = Totals::default();
    wanted.add(&(14..40).filter(|id| ![20, 36].contains(id)).map(|id| (id, Some(10 * id))).collect::<Vec<_>>());
    wanted.add(&[(50, None)]);
    assert_eq!((found, known), (wanted, 2));
    assert_eq!(segments(&[]), 3);
    let on_codes = |view: &Arc<TableView>, predicates: &[Predicate]| totals_on_codes(view, predicates).1;
    assert_eq!(on_codes(&t.view(), &[]), 2, "two have deleted rows");
    assert_eq!(on_codes(&t.view(), &[compare(ID, CompareOp::GtEq, 15)]), 1, "14..21 is cut");
    assert_eq!(on_codes(&txn.view(t.id).unwrap(), &[compare(ID, CompareOp::GtEq, 15)]), 1, "its own delete");
    // Without a question all is scanned.
    let none = t.view().zone_aggregates(&request(Vec::new(), None)).unwrap();
    assert_eq!(none, ZoneAggregates::default());
}

proptest! {
    #[test]
    fn metadata_and_scan_are_the_rows_of_the_view(
        values in prop::collection::vec(prop::option::weighted(0.8, -20_i64..20), 1..60),
        flushed in 0_usize..60,
        gone in prop::collection::btree_set(0_i64..60, 0..6),
        own_gone in prop::collection::btree_set(0_i64..60, 0..4),
        own in prop::collection::vec(prop::option::of(-20_i64..20), 0..4),
        front in 0_u64..20,
        conditions in prop::collection::vec((any::<bool>(), 0_usize..6, -25_i64..60), 0..3),
    ) {
        let ops = [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq];
        let rows: Vec<Row> = (0..).zip(values).collect();
        let t = table(5);
        let (first, second) = rows.split_at(flushed.min(rows.len()));
        for (some, is_flushed) in [(first, true), (second, false)] {
            let mut txn = t.begin();
            t.write_in(&mut txn, &[], some).unwrap();
            txn.commit().unwrap();
            if is_flushed {
                t.flush();
            }
        }
        let there = |ids: &std::collections::BTreeSet<i64>| -> Vec<i64> {
            ids.iter().copied().filter(|id| (*id as usize) < rows.len()).collect()
        };
        t.delete(&there(&gone));
        let mut txn = t.begin();
        let own_gone: Vec<i64> = there(&own_gone).into_iter().filter(|id| !gone.contains(id)).collect();
        t.write_in(&mut txn, &own_gone, &(100..).zip(own).collect::<Vec<_>>()).unwrap();
        let view = without_front(&txn.view(t.id).unwrap(), front);
        let predicates: Vec<_> =
            conditions.into_iter().map(|(by_id, op, value)| compare(if by_id { ID } else { V }, ops[op], value)).collect();
        let mut wanted = Totals::default();
        wanted.add(&pairs(&view.scan(&request(predicates.clone(), None)).unwrap()));
        prop_assert_eq!(&totals(&view, &predicates).0, &wanted);
        wanted = Totals { min: None, max: None, ..wanted };
        prop_assert_eq!(totals_on_codes(&view, &predicates).0, wanted);
    }
}
