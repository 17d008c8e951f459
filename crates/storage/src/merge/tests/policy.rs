use proptest::collection::vec;
use proptest::prelude::*;

use super::super::policy::settled_runs_max;
use super::super::*;
use crate::ids::{ContainerId, RunId};
use crate::limits::{MERGE_FAN_IN, RUN_DECAY_RATIO};

const SEGMENT_ROWS: u32 = 100;

fn run(id: u64, rows: u64) -> RunDescription {
    RunDescription {
        id: RunId(id),
        segments: rows.div_ceil(u64::from(SEGMENT_ROWS)),
        rows,
        live_rows: rows,
        stepped_over: false,
        busy: false,
    }
}

fn delta(id: u64, rows: u64) -> DeltaDescription {
    DeltaDescription { id: ContainerId(id), rows, live_rows: rows, bytes: rows * 16 }
}

fn table(runs: &[u64], frozen: &[u64]) -> TableDescription {
    TableDescription {
        segment_rows: SEGMENT_ROWS,
        frozen: (1..).zip(frozen).map(|(id, rows)| delta(id, *rows)).collect(),
        runs: (1..).zip(runs).map(|(id, rows)| run(id, *rows)).collect(),
    }
}

/// A short merge if there is one, else a long one.
fn choose_any(table: &TableDescription) -> Option<MergeChoice> {
    choose(table, Lane::Short).or_else(|| choose(table, Lane::Long))
}

/// What the merge makes of the table: its live rows in one run where the oldest input run stood.
fn apply(table: &mut TableDescription, choice: &MergeChoice, next_id: &mut u64) {
    assert!(!table.runs.iter().any(|run| run.busy && choice.runs.contains(&run.id)), "one merge a run");
    assert!(choice.runs.len() <= MERGE_FAN_IN && choice.deltas.len() <= MERGE_FAN_IN);
    assert!(choice.runs.len() + choice.deltas.len() > 0);
    let oldest: Vec<_> = table.frozen.iter().take(choice.deltas.len()).map(|d| d.id).collect();
    assert_eq!(choice.deltas, oldest, "deltas are flushed from the oldest on");
    let at = table.runs.iter().position(|r| choice.runs.contains(&r.id)).unwrap_or(table.runs.len());
    let neighbours: Vec<_> = table.runs.iter().skip(at).take(choice.runs.len()).map(|r| r.id).collect();
    assert_eq!(choice.runs, neighbours, "only neighbours merge");
    if !choice.deltas.is_empty() {
        assert_eq!(at + choice.runs.len(), table.runs.len(), "deltas join the newest runs");
    }
    let live: u64 = table.runs.iter().filter(|r| choice.runs.contains(&r.id)).map(|r| r.live_rows).sum::<u64>()
        + table.frozen.iter().filter(|d| choice.deltas.contains(&d.id)).map(|d| d.live_rows).sum::<u64>();
    table.runs.retain(|r| !choice.runs.contains(&r.id));
    table.frozen.retain(|d| !choice.deltas.contains(&d.id));
    if live > 0 {
        *next_id += 1;
        table.runs.insert(at, run(*next_id, live));
    }
}

/// Merges until nothing is left to do; returns the rows rewritten.
fn settle(table: &mut TableDescription, next_id: &mut u64) -> u64 {
    let mut rewritten = 0;
    for step in 0.. {
        assert!(step < 2_000, "the policy does not come to rest: {table:?}");
        let Some(choice) = choose_any(table) else { break };
        let rows = |runs: &[RunDescription]| -> u64 {
            runs.iter().filter(|r| choice.runs.contains(&r.id)).map(|r| r.live_rows).sum()
        };
        rewritten += rows(&table.runs);
        apply(table, &choice, next_id);
    }
    rewritten
}

fn assert_settled(table: &TableDescription) {
    let total: u64 = table.runs.iter().map(|r| r.live_rows).sum();
    assert!(table.frozen.is_empty());
    assert!(table.runs.len() <= settled_runs_max(total), "{} runs of {total} rows", table.runs.len());
    for pair in table.runs.windows(2) {
        assert!(pair[1].live_rows * RUN_DECAY_RATIO <= pair[0].live_rows);
    }
}

#[derive(Clone, Debug)]
enum Event {
    Freeze(u64),
    Load(u64),
    /// Of the n-th run, this many hundredths of its rows are deleted.
    Delete(usize, u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0u64..400).prop_map(Event::Freeze),
        2 => prop_oneof![1u64..1_000, 1u64..1_000_000].prop_map(Event::Load),
        2 => (0usize..8, 0u64..=100).prop_map(|(run, share)| Event::Delete(run, share)),
    ]
}

fn happen(table: &mut TableDescription, event: &Event, next_id: &mut u64) {
    *next_id += 1;
    match event {
        Event::Freeze(rows) => table.frozen.push(delta(*next_id, *rows)),
        Event::Load(rows) => table.runs.push(run(*next_id, *rows)),
        Event::Delete(at, share) => {
            if let Some(run) = table.runs.get_mut(*at) {
                run.live_rows -= run.live_rows * share / 100;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn it_comes_to_rest_with_few_runs(events in vec(event(), 0..60)) {
        let (mut table, mut next_id) = (table(&[], &[]), 0);
        for event in &events {
            happen(&mut table, event, &mut next_id);
        }
        settle(&mut table, &mut next_id);
        assert_settled(&table);
    }

    #[test]
    fn one_merge_a_lane_and_event_keeps_runs_bounded(events in vec(event(), 0..300)) {
        let (mut table, mut next_id) = (table(&[], &[]), 0);
        for event in &events {
            happen(&mut table, event, &mut next_id);
            for lane in [Lane::Short, Lane::Long] {
                if let Some(choice) = choose(&table, lane) {
                    apply(&mut table, &choice, &mut next_id);
                }
            }
            let total: u64 = table.runs.iter().map(|r| r.live_rows).sum();
            prop_assert!(table.runs.len() <= settled_runs_max(total) + 2 * MERGE_FAN_IN, "{:?}", table.runs);
        }
    }
}

#[test]
fn nothing_to_do() {
    assert_eq!(choose_any(&table(&[], &[])), None);
    assert_eq!(choose_any(&table(&[1_000], &[])), None);
    assert_eq!(choose_any(&table(&[6_400, 800, 100], &[])), None);
}

#[test]
fn a_flush_takes_along_what_it_would_merge_with_at_once() {
    let flush = choose_any(&table(&[100_000, 500], &[100])).unwrap();
    assert_eq!((flush.reason, flush.runs), (MergeReason::Flush, vec![RunId(2)]));
    let flush = choose_any(&table(&[100_000, 5_000], &[100, 50])).unwrap();
    assert_eq!((flush.deltas.len(), flush.runs.len()), (2, 0), "one eighth is small enough");
    let flush = choose_any(&table(&[1_100], &[900])).unwrap();
    assert!(flush.runs.is_empty(), "more than ten segments are left for later");
}

#[test]
fn like_runs_merge_eight_at_a_time_and_are_not_rewritten_often() {
    let mut many = table(&[1_000; 64], &[]);
    let first = choose_any(&many).unwrap();
    assert_eq!((first.reason, first.runs.len()), (MergeReason::Decay, MERGE_FAN_IN));
    let rewritten = settle(&mut many, &mut 100);
    assert_eq!(many.runs.len(), 1);
    assert!(rewritten <= 3 * 64_000, "{rewritten} rows rewritten for 64,000");
}

#[test]
fn a_steady_stream_of_flushes_rewrites_each_row_a_few_times() {
    let (mut steady, mut next_id, mut rewritten) = (table(&[], &[]), 0, 0);
    for _ in 0..4_096 {
        happen(&mut steady, &Event::Freeze(100), &mut next_id);
        rewritten += settle(&mut steady, &mut next_id);
    }
    assert_settled(&steady);
    let times = rewritten / (4_096 * 100);
    assert!(times <= 4 * 5, "each row was rewritten {times} times over five levels");
}

#[test]
fn flushes_without_end_do_not_keep_runs_from_merging() {
    let (mut busy, mut next_id) = (table(&[], &[]), 0);
    for _ in 0..500 {
        // Too many rows for a flush to take a run along, and always one more waiting.
        happen(&mut busy, &Event::Freeze(900), &mut next_id);
        for lane in [Lane::Short, Lane::Long] {
            if let Some(choice) = choose(&busy, lane) {
                apply(&mut busy, &choice, &mut next_id);
            }
        }
        let total: u64 = busy.runs.iter().map(|r| r.live_rows).sum();
        assert!(busy.runs.len() <= settled_runs_max(total) + MERGE_FAN_IN, "{} runs", busy.runs.len());
        assert!(busy.frozen.is_empty(), "{} deltas wait", busy.frozen.len());
    }
}

#[test]
fn no_choice_has_a_run_that_another_merge_reads() {
    let mut runs = table(&[1_000, 1_000, 1_000], &[100]);
    runs.runs[1].busy = true;
    assert_eq!(choose(&runs, Lane::Long), None, "no two neighbours are free");
    let mut newest = table(&[100_000, 500], &[100]);
    newest.runs[1].busy = true;
    assert_eq!(choose(&newest, Lane::Short).unwrap().runs, vec![], "the flush goes on without it");
    let mut dead = table(&[10_000, 1_000], &[]);
    dead.runs[1].live_rows = 100;
    dead.runs[1].busy = true;
    assert_eq!(choose(&dead, Lane::Long), None);
    let mut beside = table(&[40, 10, 10, 10, 10, 10], &[]);
    beside.runs[0].busy = true;
    assert_eq!(choose(&beside, Lane::Long).unwrap().runs.len(), 5, "a merge does not grow into a busy run");
}

#[test]
fn the_lanes_share_the_work() {
    assert_eq!(choose(&table(&[1_000, 1_000], &[]), Lane::Short), None, "merges of runs are long");
    assert_eq!(choose(&table(&[1_000], &[100]), Lane::Long), None, "flushes are short");
    let both = table(&[10_000, 10_000], &[100]);
    assert_eq!(choose(&both, Lane::Short).unwrap().reason, MergeReason::Flush);
    assert_eq!(choose(&both, Lane::Long).unwrap().deltas, vec![]);
}

/// A merge of the first runs takes as long as 200 flushes do.
#[test]
fn runs_do_not_pile_up_behind_a_long_merge() {
    let (mut table, mut next_id) = (table(&[500_000, 400_000, 300_000], &[]), 100);
    table.runs.iter_mut().for_each(|run| run.busy = true);
    let mut flushed = 0;
    for _ in 0..200 {
        happen(&mut table, &Event::Freeze(150), &mut next_id);
        flushed += 150;
        while let Some(choice) = choose(&table, Lane::Short) {
            apply(&mut table, &choice, &mut next_id);
        }
        let rows_max = short_rows_max(SEGMENT_ROWS);
        let free = table.runs.iter().filter(|run| !run.busy).count() as u64;
        let total: u64 = table.runs.iter().map(|run| run.live_rows).sum();
        assert!(free <= settled_runs_max(total) as u64 + MERGE_FAN_IN as u64 + 2 * flushed / rows_max, "{free} runs");
        assert!(table.frozen.is_empty());
    }
    table.runs.iter_mut().for_each(|run| run.busy = false);
    settle(&mut table, &mut next_id);
    assert_settled(&table);
}

#[test]
fn a_merge_takes_along_what_its_output_would_merge_with_at_once() {
    let choice = choose_any(&table(&[40, 10, 10, 10, 10, 10], &[])).unwrap();
    assert_eq!((choice.reason, choice.runs.len()), (MergeReason::Decay, 6), "five tens would be too large beside 40");
    let choice = choose_any(&table(&[10_000, 10, 10, 10, 8], &[])).unwrap();
    assert_eq!(choice.runs.len(), 4, "the large one is left alone");
}

#[test]
fn dead_rows_are_cleaned_up() {
    let mut dead = table(&[10_000, 1_000], &[]);
    dead.runs[0].live_rows = 8_000;
    assert_eq!(choose_any(&dead), None);
    // Few, over which readers have stepped again and again.
    dead.runs[0].stepped_over = true;
    let choice = choose_any(&dead).map(|choice| (choice.runs, choice.reason));
    assert_eq!(choice, Some((vec![RunId(1)], MergeReason::DeadRows)));
    dead.runs[0].stepped_over = false;
    dead.runs[1].live_rows = 700;
    let choice = choose_any(&dead).unwrap();
    assert_eq!((choice.reason, choice.runs), (MergeReason::DeadRows, vec![RunId(2)]));
}
