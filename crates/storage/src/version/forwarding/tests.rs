use std::collections::HashMap as StdMap;

use mainstem_kernels::bitmap::{self, Rank};
use proptest::prelude::*;

use super::*;

/// One stream's containers: (rows alive, permuted).
type Stream = Vec<Vec<bool>>;

struct Model {
    table: ForwardingTable,
    expected: StdMap<RowRef, Forward>,
    rows: usize,
}

/// Merges `streams` in the order that `choices` picks, into segments of `segment_rows`.
fn build(streams: &[Stream], shuffled: bool, choices: &[usize], segment_rows: usize) -> Model {
    let mut builder = ForwardingBuilder::new(streams.len());
    let mut expected = StdMap::new();
    let mut inputs = Vec::new();
    let mut queues: Vec<Vec<RowRef>> = Vec::new();
    let mut next_container = 1;
    for (stream, containers) in streams.iter().enumerate() {
        let mut queue = Vec::new();
        for alive in containers {
            let container = ContainerId(next_container);
            next_container += 1;
            let first = 3;
            let row = |i: usize| RowRef::new(container, first + i as u32);
            let mut live: Vec<usize> = (0..alive.len()).filter(|i| alive[*i]).collect();
            (0..alive.len()).filter(|i| !alive[*i]).for_each(|i| {
                expected.insert(row(i), Forward::Gone);
            });
            let survivors = if shuffled && containers.len() == 1 {
                live.reverse();
                let mut places = vec![Survivors::GONE; alive.len()];
                live.iter().enumerate().for_each(|(place, i)| places[*i] = place as u32);
                Survivors::Permuted(places.into())
            } else {
                let mut bits = vec![0; bitmap::words(alive.len())];
                live.iter().for_each(|i| bitmap::set(&mut bits, *i));
                Survivors::InOrder(Rank::new(bits, alive.len()))
            };
            queue.extend(live.iter().map(|i| row(*i)));
            inputs.push(ForwardedInput { container, first, stream, survivors });
        }
        queue.reverse();
        queues.push(queue);
    }
    let total: usize = queues.iter().map(Vec::len).sum();
    let mut outputs = Vec::new();
    for position in 0..total {
        let wish = choices.get(position % choices.len().max(1)).copied().unwrap_or(0);
        let stream = (0..streams.len()).map(|i| (i + wish) % streams.len()).find(|s| !queues[*s].is_empty()).unwrap();
        let row = queues[stream].pop().unwrap();
        builder.push(stream, 1);
        let container = ContainerId(1_000 + (position / segment_rows) as u64);
        if position % segment_rows == 0 {
            outputs.push((container, 0));
        }
        outputs.last_mut().unwrap().1 += 1;
        expected.insert(row, Forward::To(RowRef::new(container, (position % segment_rows) as u32)));
    }
    Model { table: builder.finish(inputs, &outputs), expected, rows: total }
}

proptest! {
    #[test]
    fn forwarding_equals_the_naive_map(
        streams in prop::collection::vec(prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.8), 0..90), 1..4), 1..20),
        shuffled in any::<bool>(),
        choices in prop::collection::vec(0usize..20, 1..50),
        segment_rows in 1usize..100,
    ) {
        let model = build(&streams, shuffled, &choices, segment_rows);
        for (row, forward) in &model.expected {
            prop_assert_eq!(model.table.forward(*row), Some(*forward), "{:?}", row);
        }
        prop_assert_eq!(model.table.forward(RowRef::new(ContainerId(1), 0)), None);
        prop_assert_eq!(model.table.forward(RowRef::new(ContainerId(1), 3 + streams[0][0].len() as u32)), None);
        prop_assert_eq!(model.table.forward(RowRef::new(ContainerId(999), 3)), None);
    }
}

#[test]
fn many_rows_cross_the_counted_blocks() {
    let streams: Vec<Stream> = (0..5).map(|s| vec![vec![true; 3_000 + s], vec![true; 1_500]]).collect();
    let model = build(&streams, false, &[0, 0, 3, 1, 4, 4, 4, 2], 1_000);
    for (row, forward) in &model.expected {
        assert_eq!(model.table.forward(*row), Some(*forward));
    }
}

#[test]
fn sixteen_streams_cost_less_than_a_byte_a_row() {
    let streams: Vec<Stream> = (0..16).map(|_| vec![vec![true; 16_384]]).collect();
    let model = build(&streams, false, &(0..16).collect::<Vec<_>>(), 131_072);
    let bytes = model.table.memory_bytes();
    assert!(bytes <= model.rows, "{bytes} bytes for {} rows", model.rows);
}

fn one_to_one(from: u64, to: u64, rows: u32) -> Arc<ForwardingTable> {
    let mut builder = ForwardingBuilder::new(1);
    builder.push(0, rows as usize);
    let survivors = Survivors::InOrder(Rank::new(bitmap::full(rows as usize), rows as usize));
    let input = ForwardedInput { container: ContainerId(from), first: 0, stream: 0, survivors };
    Arc::new(builder.finish(vec![input], &[(ContainerId(to), rows)]))
}

#[test]
fn chains_are_followed_to_where_the_version_has_the_row() {
    let forwardings = Forwardings::default();
    let row = |container| RowRef::new(ContainerId(container), 4);
    assert_eq!(forwardings.resolve(row(1), |_| true), Some(row(1)));
    assert_eq!(forwardings.resolve(row(1), |_| false), None, "no forwarding is a conflict");
    forwardings.add(CommitTs(10), TableId(1), one_to_one(1, 2, 8));
    forwardings.add(CommitTs(20), TableId(1), one_to_one(2, 3, 8));
    assert_eq!(forwardings.resolve(row(1), |id| id.0 == 3), Some(row(3)));
    assert_eq!(forwardings.resolve(row(1), |id| id.0 == 2), Some(row(2)));
    assert_eq!(forwardings.resolve(row(2), |id| id.0 == 3), Some(row(3)));
    assert_eq!(forwardings.resolve(row(1), |_| false), None);
    assert!(forwardings.memory_bytes() > 0);

    forwardings.prune(Some(CommitTs(9)));
    assert_eq!(forwardings.len(), 2);
    forwardings.prune(Some(CommitTs(10)));
    assert_eq!(forwardings.len(), 1, "no writer older than the first install is left");
    assert_eq!(forwardings.resolve(row(1), |id| id.0 == 3), None);
    assert_eq!(forwardings.resolve(row(2), |id| id.0 == 3), Some(row(3)));
    forwardings.prune(None);
    assert!(forwardings.is_empty());
    assert_eq!(forwardings.memory_bytes(), 0);
}

#[test]
fn a_dropped_table_takes_its_forwarding_along() {
    let forwardings = Forwardings::default();
    forwardings.add(CommitTs(10), TableId(1), one_to_one(1, 2, 8));
    forwardings.add(CommitTs(11), TableId(2), one_to_one(5, 6, 8));
    forwardings.forget_table(TableId(1));
    assert_eq!(forwardings.len(), 1);
    let row = |container| RowRef::new(ContainerId(container), 0);
    assert_eq!(forwardings.resolve(row(1), |id| id.0 == 2), None);
    assert_eq!(forwardings.resolve(row(5), |id| id.0 == 6), Some(row(6)));
}
