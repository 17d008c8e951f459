use std::collections::HashSet;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::ids::{CommitTs, KeyId, RowRef};
use crate::row::Value;
use crate::row::key::KeyCodec;
use crate::run_writer::SegmentTarget;
use crate::run_writer::testing::*;
use crate::schema::{DataType, TableSchema};

/// Rows of a stream, whether it is a delta, its segments' rows, and which rows are dead.
#[derive(Clone, Debug)]
struct Stream {
    rows: Vec<Row>,
    is_delta: bool,
    segment_rows: usize,
    dead: Vec<bool>,
}

fn stream(schema: &TableSchema) -> impl Strategy<Value = Stream> + use<> {
    (rows(schema, 40), any::<bool>(), 1usize..10, vec(prop::bool::weighted(0.3), 40))
        .prop_map(|(rows, is_delta, segment_rows, dead)| Stream { rows, is_delta, segment_rows, dead })
}

fn case() -> impl Strategy<Value = (Arc<TableSchema>, Vec<Stream>, bool)> {
    any_table().prop_flat_map(|schema| (Just(schema.clone()), vec(stream(&schema), 0..6), any::<bool>()))
}

/// The parts of a stream and its live rows in order.
fn parts_of(schema: &Arc<TableSchema>, target: &SegmentTarget, stream: &Stream, whole: bool) -> (Vec<Part>, Vec<Row>) {
    let dead_bits = |dead: &[bool]| -> Option<Arc<[u64]>> {
        let word = |bits: &[bool]| bits.iter().enumerate().map(|(i, dead)| u64::from(*dead) << i).sum::<u64>();
        dead.contains(&true).then(|| dead.chunks(64).map(word).collect())
    };
    if stream.is_delta {
        let delta = delta(schema, target, &stream.rows, CommitTs(1));
        let live = stream.rows.iter().zip(&stream.dead).filter(|(_, dead)| !**dead).map(|(row, _)| row.clone());
        let part = Part::delta(delta, stream.rows.len() as u32).without(dead_bits(&stream.dead[..stream.rows.len()]));
        return (vec![part], sorted(schema, &live.collect::<Vec<_>>()));
    }
    let in_order = sorted(schema, &stream.rows);
    let live = in_order.iter().zip(&stream.dead).filter(|(_, dead)| !**dead).map(|(row, _)| row.clone()).collect();
    let Some(run) = run(schema, target, &stream.rows, stream.segment_rows) else { return (Vec::new(), live) };
    let mut at = 0;
    let part = |part: &crate::main_store::RunSegment| {
        let dead = dead_bits(&stream.dead[at..at + part.rows() as usize]);
        at += part.rows() as usize;
        // A whole part passes its dead rows on too: here only parts without any may be whole.
        let keep = whole && dead.is_none();
        let part = Part::segment(part.segment.clone(), part.range.clone()).without(dead);
        if keep { part.keep_whole() } else { part }
    };
    (run.segments().iter().map(part).collect(), live)
}

fn read(schema: &TableSchema, parts: &[Part], picks: &Picks) -> Vec<Row> {
    let gather = Gather::new(parts, picks).unwrap();
    let arrays: Vec<_> = schema.columns.iter().map(|column| gather.column(parts, column).unwrap()).collect();
    (0..picks.len()).map(|row| row_of(schema, &arrays, row)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_cursor_merges_as_a_stable_sort_does((schema, streams, whole) in case(), chunk in 1usize..30, opens in vec(any::<bool>(), 8)) {
        let target = target();
        let (mut parts, mut expected) = (Vec::new(), Vec::new());
        for stream in &streams {
            let (of_stream, live) = parts_of(&schema, &target, stream, whole);
            parts.push(of_stream);
            expected.extend(live);
        }
        let expected = sorted(&schema, &expected);
        let mut cursor = Cursor::new(KeyReader::of_sort_key(&schema), parts).unwrap();
        let (mut found, mut picks, mut opens) = (Vec::new(), Picks::default(), opens.into_iter().cycle());
        loop {
            picks.clear();
            let stop = cursor.next(chunk, &mut picks).unwrap();
            prop_assert!(picks.len() <= chunk);
            found.extend(read(&schema, cursor.parts(), &picks));
            match stop {
                Stop::Full => prop_assert_eq!(picks.len(), chunk),
                Stop::End => break,
                Stop::Whole(_) if opens.next().unwrap() => cursor.open_whole().unwrap(),
                Stop::Whole(part) => {
                    let whole = cursor.part(part).unwrap().clone();
                    let all: Picks = whole.range().map(|offset| Pick { part, offset }).collect();
                    found.extend(read(&schema, cursor.parts(), &all));
                    prop_assert!(cursor.whole_parts_ahead() >= 1);
                    cursor.skip_whole().unwrap();
                }
            }
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn replacing_keeps_all_rows_and_their_order((schema, streams, whole) in case(), chunk in 1usize..30, opens in vec(any::<bool>(), 8)) {
        let target = target();
        let (mut parts, mut expected) = (Vec::new(), Vec::new());
        for stream in &streams {
            let (of_stream, live) = parts_of(&schema, &target, stream, whole);
            parts.push(of_stream);
            expected.extend(live);
        }
        let mut cursor = Cursor::replacing(KeyReader::of_sort_key(&schema), parts).unwrap();
        let (mut found, mut picks, mut opens) = (Vec::new(), Picks::default(), opens.into_iter().cycle());
        loop {
            picks.clear();
            let stop = cursor.next(chunk, &mut picks).unwrap();
            let rows = read(&schema, cursor.parts(), &picks);
            let gather = Gather::new(cursor.parts(), &picks).unwrap();
            prop_assert_eq!(gather.parts_of_rows().count(), picks.len());
            let of_deltas = |part: u32| cursor.part(part).is_ok_and(|part| part.bounds().is_none());
            prop_assert_eq!(gather.parts_of_rows().filter(|part| of_deltas(*part)).count(), gather.count(of_deltas));
            prop_assert_eq!(gather.count(of_deltas) + gather.count(|part| !of_deltas(part)), picks.len());
            found.extend(rows);
            match stop {
                Stop::Full => {}
                Stop::End => break,
                Stop::Whole(_) if opens.next().unwrap() => cursor.open_whole().unwrap(),
                Stop::Whole(part) => {
                    let all: Picks = cursor.part(part).unwrap().range().map(|offset| Pick { part, offset }).collect();
                    found.extend(read(&schema, cursor.parts(), &all));
                    cursor.skip_whole().unwrap();
                }
            }
        }
        let keys = |rows: &[Row]| rows.iter().map(|row| key(&schema, row)).collect::<Vec<_>>();
        prop_assert!(keys(&found).is_sorted());
        let any_order = |mut rows: Vec<Row>| {
            rows.sort_by_cached_key(|row| format!("{row:?}"));
            rows
        };
        prop_assert_eq!(any_order(found), any_order(expected));
    }

    #[test]
    fn duplicates_are_found_wherever_they_are((schema, streams, whole) in case()) {
        prop_assume!(!schema.sort_key.is_empty());
        let target = target();
        let distinct = |s: Stream| {
            let mut seen = HashSet::new();
            let rows = s.rows.into_iter().filter(|row| !whole || seen.insert(key(&schema, row))).collect();
            Stream { rows, dead: vec![false; 40], ..s }
        };
        let streams: Vec<Stream> = streams.into_iter().map(distinct).collect();
        let parts: Vec<_> = streams.iter().map(|s| parts_of(&schema, &target, s, whole).0).collect();
        let all: Vec<Row> = streams.iter().flat_map(|s| s.rows.clone()).collect();
        let expected = sorted(&schema, &all).windows(2).find(|w| compare(&schema, &w[0], &w[1]).is_eq()).map(|w| key(&schema, &w[0]));
        let found = Cursor::new(KeyReader::of_sort_key(&schema), parts).unwrap().first_duplicate().unwrap();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn common_keys_are_those_of_the_naive_join(
        (schema, a, b) in any_table().prop_filter("a key", |s| !s.sort_key.is_empty()).prop_flat_map(|schema| {
            (Just(schema.clone()), stream(&schema), stream(&schema))
        }),
        odd in any::<bool>(),
    ) {
        let mut keyed = TableSchema::clone(&schema);
        keyed.primary_key = keyed.sort_key.clone();
        let schema = Arc::new(keyed);
        let target = target();
        let stream_of = |s: &Stream| if s.is_delta {
            let delta = delta(&schema, &target, &s.rows, CommitTs(1));
            Some(KeyStream::of_delta(&schema, &delta, s.rows.len() as u32).unwrap())
        } else {
            run(&schema, &target, &s.rows, s.segment_rows).map(|run| KeyStream::of_run(&schema, &run).unwrap())
        };
        let (Some(left), Some(right)) = (stream_of(&a), stream_of(&b)) else { return Ok(()) };
        // Some pairs count, some do not.
        let accept = |l: RowRef, r: RowRef| (l.offset() + r.offset()) % 2 == u32::from(odd);
        let pairs = |mut s: KeyStream| {
            let mut pairs = Vec::new();
            while let Some((key, row)) = s.peek() {
                pairs.push((key.to_vec(), row));
                s.advance().unwrap();
            }
            pairs
        };
        let (of_left, of_right) = (pairs(stream_of(&a).unwrap()), pairs(stream_of(&b).unwrap()));
        prop_assert_eq!(of_left.len(), a.rows.len());
        prop_assert!(of_left.is_sorted_by(|x, y| x.0 <= y.0));
        // Read anew, rows have the same offsets.
        let all = of_left.iter().flat_map(|l| of_right.iter().map(move |r| (l, r)));
        let expected = all.filter(|(l, r)| l.0 == r.0 && accept(l.1, r.1)).map(|(l, _)| l.0.clone()).min();
        prop_assert_eq!(first_common_key(left, right, accept).unwrap(), expected);
    }
}

fn key(schema: &TableSchema, row: &Row) -> Vec<u8> {
    let values: Vec<Value> = schema.sort_key.iter().map(|id| row[schema.position(*id).unwrap()].clone()).collect();
    let mut key = Vec::new();
    KeyCodec::new(schema, &schema.sort_key).encode_values(&values, &mut key).unwrap();
    key
}

fn numbers(from: i64, to: i64) -> Vec<Row> {
    (from..to).map(|i| vec![Value::Int(i), Value::Null]).collect()
}

fn number_table() -> Arc<TableSchema> {
    table(&[(DataType::BigInt, false), (DataType::BigInt, true)], 1, true, 10)
}

#[test]
fn a_stream_between_two_keys_has_exactly_those() {
    let (schema, target) = (number_table(), target());
    let run = run(&schema, &target, &numbers(0, 100), 10).unwrap();
    let encoded = |i: i64| key(&schema, &vec![Value::Int(i), Value::Null]);
    for (first, last) in [(0, 99), (5, 5), (10, 19), (-5, 3), (95, 300), (40, 39), (200, 300)] {
        let mut stream = KeyStream::of_run_between(&schema, &run, &encoded(first), Some(&encoded(last))).unwrap();
        let mut found = Vec::new();
        while let Some((key, _)) = stream.peek() {
            found.push(key.to_vec());
            stream.advance().unwrap();
        }
        let expected: Vec<_> = (first.max(0)..=last.min(99)).map(encoded).collect();
        assert_eq!(found, expected, "{first}..={last}");
    }
}

#[test]
fn a_join_reads_only_segments_that_may_meet() {
    let (schema, target) = (number_table(), target());
    let wide = run(&schema, &target, &numbers(0, 1_000), 10).unwrap();
    let narrow = run(&schema, &target, &[numbers(505, 506), numbers(2_000, 2_001)].concat(), 10).unwrap();
    // What was written is open until then.
    target.cache.resize(0);
    target.cache.resize(64 << 20);
    let before = target.cache.stats();
    let found = first_common_key(
        KeyStream::of_run(&schema, &wide).unwrap(),
        KeyStream::of_run(&schema, &narrow).unwrap(),
        |_, _| true,
    );
    assert!(found.unwrap().is_some());
    let read = target.cache.stats().blocks_read - before.blocks_read;
    assert!((1..=3).contains(&read), "{read} blocks of 101 were read");
}

#[test]
fn whole_parts_stay_apart_from_all_others() {
    let (schema, target) = (number_table(), target());
    let wide = run(&schema, &target, &numbers(0, 100), 10).unwrap();
    let delta = delta(&schema, &target, &[numbers(13, 14), numbers(57, 58)].concat(), CommitTs(1));
    let parts = wide.segments().iter().map(|p| Part::segment(p.segment.clone(), p.range.clone()).keep_whole());
    let mut cursor =
        Cursor::new(KeyReader::of_sort_key(&schema), vec![parts.collect(), vec![Part::delta(delta, 2)]]).unwrap();
    let (mut picks, mut whole) = (Picks::default(), HashSet::new());
    loop {
        match cursor.next(100, &mut picks).unwrap() {
            Stop::Whole(part) => {
                whole.insert(part);
                cursor.skip_whole().unwrap();
            }
            Stop::Full => {}
            Stop::End => break,
        }
    }
    assert_eq!(whole, HashSet::from([0, 2, 3, 4, 6, 7, 8, 9]));
    assert_eq!(picks.len(), 22);
}

#[test]
fn updated_rows_come_where_they_stood() {
    let target = target();
    let schema = table(&[(DataType::BigInt, false), (DataType::BigInt, false)], 1, true, 100);
    let loaded: Vec<Row> = (0..100).map(|i| vec![Value::Int(i), Value::Int(0)]).collect();
    let run = run(&schema, &target, &loaded, 100).unwrap();
    let updated = |i: i64| vec![Value::Int(i), Value::Int(1)];
    let delta = delta(&schema, &target, &[5, 77, 50, 49].map(updated), CommitTs(1));
    // Rows 5 and 50 were updated, 51 was deleted, 49 and 77 are there twice.
    let dead = (1u64 << 5) | (1 << 50) | (1 << 51);
    let part = &run.segments()[0];
    let part = Part::segment(part.segment.clone(), part.range.clone()).without(Some(vec![dead, 0].into()));
    let streams = vec![vec![part], vec![Part::delta(delta, 4)]];
    let mut cursor = Cursor::replacing(KeyReader::of_sort_key(&schema), streams).unwrap();
    let mut picks = Picks::default();
    assert_eq!(cursor.next(200, &mut picks).unwrap(), Stop::End);
    let stretches: Vec<_> = picks.stretches().iter().map(|s| (s.part, s.first, s.rows)).collect();
    assert_eq!(stretches, [(0, 0, 50), (1, 3, 1), (0, 50, 1), (0, 52, 26), (1, 1, 1), (0, 78, 22)]);
    let rows = read(&schema, cursor.parts(), &picks);
    let keys: Vec<i64> = (0..50).chain([49, 50]).chain(52..78).chain([77]).chain(78..100).collect();
    assert_eq!(
        rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>(),
        keys.into_iter().map(Value::Int).collect::<Vec<_>>()
    );
    let written: Vec<_> = rows.iter().filter(|row| row[1] == Value::Int(1)).map(|row| row[0].clone()).collect();
    assert_eq!(written, [5, 49, 50, 77].map(Value::Int));
}

/// Tables with a key that is their order, of one column or two.
fn keyed_table() -> impl Strategy<Value = Arc<TableSchema>> {
    let text = DataType::Text { max_chars: None };
    let shapes = vec![
        vec![(DataType::BigInt, false)],
        vec![(DataType::SmallInt, false)],
        vec![(text, false)],
        vec![(DataType::Integer, false), (DataType::Bytea, false)],
    ];
    (proptest::sample::select(shapes), 1u32..12).prop_map(move |(mut columns, segment_rows)| {
        let key = columns.len();
        columns.push((text, true));
        table(&columns, key, true, segment_rows)
    })
}

/// The rows of `run` that are not consumed, with their keys, in order.
fn keyed(schema: &TableSchema, run: &crate::main_store::Run) -> Vec<(RowRef, Vec<u8>)> {
    let offsets = |part: &crate::main_store::RunSegment| {
        let id = part.segment.id();
        part.range.clone().map(move |offset| RowRef::new(id, offset))
    };
    let keys = rows_of_run(schema, run).iter().map(|row| key(schema, row)).collect::<Vec<_>>();
    run.segments().iter().flat_map(offsets).zip(keys).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_first_key_that_ordered_runs_share_is_found(
        (schema, left, right, sizes) in keyed_table().prop_flat_map(|schema| {
            (Just(schema.clone()), rows(&schema, 40), rows(&schema, 12), (1usize..10, 1usize..10))
        }),
        consumed in 0u64..8,
    ) {
        let target = target();
        let (Some(a), Some(b)) = (run(&schema, &target, &left, sizes.0), run(&schema, &target, &right, sizes.1)) else {
            return Ok(());
        };
        let Some(a) = a.without_front(consumed.min(a.rows())).unwrap() else { return Ok(()) };
        let (of_a, of_b) = (keyed(&schema, &a), keyed(&schema, &b));
        let even = |row: RowRef| row.offset().is_multiple_of(2);
        for accept in [&|_, _| true, &|x: RowRef, y: RowRef| even(x) && !even(y)] as [&dyn Fn(RowRef, RowRef) -> bool; 2] {
            let pairs = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (x, y)));
            let first = pairs.filter(|(x, y)| x.1 == y.1 && accept(x.0, y.0)).map(|(x, _)| x.1.clone()).min();
            let found = first_shared_key(&schema, KeyId::PRIMARY, &a, &b, accept).unwrap();
            prop_assert_eq!(&found, &first);
            let found = first_shared_key(&schema, KeyId::PRIMARY, &b, &a, |y, x| accept(x, y)).unwrap();
            prop_assert_eq!(found, first);
        }
    }
}
