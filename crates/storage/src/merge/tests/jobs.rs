use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::*;
use crate::deletes::DeleteSet;
use crate::delta_store::DeltaGeneration;
use crate::ids::{CommitTs, ContainerId, RowRef, SchemaVersion};
use crate::row::{Value, testing};
use crate::run_writer::SegmentTarget;
use crate::run_writer::testing::*;
use crate::schema::{Column, DataType, TableSchema};
use crate::version::{Forward, TableVersion};

/// The merge reads at it; deletes happen from 2 to [`END`].
const H: CommitTs = CommitTs(10);
const END: u64 = 20;

/// One input: its rows, and when each is deleted (an odd share of small numbers: never).
#[derive(Clone, Debug)]
struct Input {
    rows: Vec<Row>,
    ends: Vec<u64>,
    segment_rows: usize,
    /// Written before the table got its last column.
    older: bool,
}

#[derive(Clone, Debug)]
struct Case {
    schema: Arc<TableSchema>,
    runs: Vec<Input>,
    deltas: Vec<Input>,
}

/// `schema` with one more column, as ALTER TABLE ADD COLUMN makes it.
fn altered(schema: &TableSchema) -> Arc<TableSchema> {
    let mut next = schema.clone();
    next.version = SchemaVersion(schema.version.0 + 1);
    next.columns.push(Column {
        missing_value: Value::Int(42),
        ..Column::new(schema.next_column, "added", DataType::Integer, true)
    });
    next.next_column = testing::id(next.columns.len());
    Arc::new(next)
}

fn input(schema: &TableSchema) -> impl Strategy<Value = Input> + use<> {
    let end = prop_oneof![3 => Just(u64::MAX), 1 => 2..=END];
    (rows(schema, 60), vec(end, 60), 1usize..14, any::<bool>(), any::<bool>()).prop_map(
        |(rows, mut ends, segment_rows, older, pristine)| {
            // Whole segments without a dead row are what a merge may keep.
            if pristine {
                ends.fill(u64::MAX);
            }
            Input { rows, ends, segment_rows, older }
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    any_table().prop_flat_map(|schema| {
        (Just(schema.clone()), vec(input(&schema), 0..5), vec(input(&schema), 0..4))
            .prop_map(|(schema, runs, deltas)| Case { schema, runs, deltas })
    })
}

/// A row of the model.
#[derive(Clone, Debug)]
struct ModelRow {
    at: RowRef,
    row: Row,
    end: u64,
}

struct World {
    schema: Arc<TableSchema>,
    target: SegmentTarget,
    version: TableVersion,
    /// Rows of all inputs, in the order of streams.
    rows: Vec<ModelRow>,
}

fn build(case: &Case) -> World {
    let old = &case.schema;
    let schema = altered(old);
    let target = target();
    let mut model = Vec::new();
    let mut version = TableVersion::new(schema.clone(), CommitTs(1), delta(&schema, &target, &[], CommitTs(1)));
    let widened = |input: &Input| -> Vec<Row> {
        let added = |i: usize| if input.older { Value::Int(42) } else { Value::Int(i as i64) };
        input.rows.iter().enumerate().map(|(i, row)| [row.clone(), vec![added(i)]].concat()).collect()
    };
    for input in &case.runs {
        let (under, rows) = if input.older { (old, input.rows.clone()) } else { (&schema, widened(input)) };
        let Some(run) = run(under, &target, &rows, input.segment_rows) else { continue };
        let places = run.segments().iter().flat_map(|p| p.range.clone().map(|o| RowRef::new(p.segment.id(), o)));
        let in_order = sorted(&schema, &widened(input));
        for ((at, row), end) in places.zip(in_order).zip(&input.ends) {
            model.push(ModelRow { at, row, end: *end });
        }
        version.runs.push(run);
    }
    for input in &case.deltas {
        let (under, rows) = if input.older { (old, input.rows.clone()) } else { (&schema, widened(input)) };
        let delta = delta(under, &target, &rows, CommitTs(1));
        delta.freeze();
        for ((offset, row), end) in (0..).zip(widened(input)).zip(&input.ends) {
            model.push(ModelRow { at: RowRef::new(delta.id(), offset), row, end: *end });
        }
        version.deltas.insert(version.deltas.len() - 1, delta);
    }
    World { schema, target, version, rows: model }
}

impl World {
    /// Records the deletes that end in (`after`, `upto`], in commit order.
    fn delete(&self, after: u64, upto: u64) {
        for ts in after + 1..=upto {
            let mut sets: BTreeMap<ContainerId, Vec<u32>> = BTreeMap::new();
            for row in self.rows.iter().filter(|row| row.end == ts) {
                sets.entry(row.at.container()).or_default().push(row.at.offset());
            }
            for (id, offsets) in sets {
                let set: DeleteSet = offsets.into_iter().collect();
                self.version.container(id).unwrap().deletes().record(CommitTs(ts), &set);
            }
        }
    }

    fn everything(&self) -> MergeChoice {
        MergeChoice {
            deltas: self.version.frozen_deltas().iter().map(|delta| delta.id()).collect(),
            runs: self.version.runs.iter().map(|run| run.id()).collect(),
            reason: MergeReason::Asked,
        }
    }

    fn job(&self, control: &Arc<MergeControl>) -> MergeJob {
        let plan = MergePlan::new(&self.version, self.everything(), H).unwrap();
        MergeJob::new(plan, self.target.clone(), control.clone()).unwrap()
    }

    /// Input rows live at `ts`, in the order that a merge of everything gives them.
    fn expected(&self, ts: u64) -> Vec<ModelRow> {
        let mut live: Vec<ModelRow> = self.rows.iter().filter(|row| row.end > ts).cloned().collect();
        live.sort_by(|a, b| compare(&self.schema, &a.row, &b.row));
        live
    }
}

/// The output's rows that are live at `ts`.
fn found(schema: &TableSchema, outcome: &MergeOutcome, ts: u64) -> Vec<(RowRef, Row)> {
    let Some(run) = &outcome.output else { return Vec::new() };
    let places = run.segments().iter().flat_map(|p| p.range.clone().map(move |o| (p, o)));
    places
        .zip(rows_of_run(schema, run))
        .filter(|((part, offset), _)| !part.segment.deletes().is_deleted(*offset, CommitTs(ts)))
        .map(|((part, offset), row)| (RowRef::new(part.segment.id(), offset), row))
        .collect()
}

/// Where an input row is after the merge.
fn place(outcome: &MergeOutcome, row: RowRef) -> Option<RowRef> {
    match outcome.forwarding.forward(row) {
        Some(Forward::To(to)) => Some(to),
        Some(Forward::Gone) => None,
        None => Some(row),
    }
}

fn check(case: &Case, round: u64) {
    let world = build(case);
    world.delete(1, H.0);
    let job = world.job(&Arc::default());
    // Deletes that land while the merge is at work.
    world.delete(H.0, round);
    let outcome = job.run().unwrap();
    world.delete(round, END);
    for (after, upto) in [(H.0, round), (round, END)] {
        for (id, end, set) in outcome.carry(CommitTs(after), CommitTs(upto), outcome.inputs_in(&world.version)) {
            assert!(end.0 > after && end.0 <= upto);
            let output = outcome.output.as_ref().unwrap();
            output.segment(id).unwrap().segment.deletes().record(end, &set);
        }
    }
    for ts in H.0..=END {
        let (expected, found) = (world.expected(ts), found(&world.schema, &outcome, ts));
        let expected_rows: Vec<Row> = expected.iter().map(|row| row.row.clone()).collect();
        let found_rows: Vec<Row> = found.iter().map(|(_, row)| row.clone()).collect();
        assert_eq!(found_rows, expected_rows, "rows at {ts}");
        let expected_places: Vec<_> = expected.iter().map(|row| place(&outcome, row.at)).collect();
        let found_places: Vec<_> = found.iter().map(|(at, _)| Some(*at)).collect();
        assert_eq!(found_places, expected_places, "forwarding at {ts}");
    }
    for row in world.rows.iter().filter(|row| row.end <= H.0) {
        let forward = outcome.forwarding.forward(row.at);
        assert!(matches!(forward, Some(Forward::Gone) | None), "{forward:?}");
    }
    let segment_rows = world.schema.options.segment_rows;
    if let Some(run) = &outcome.output {
        assert!(
            run.segments()
                .iter()
                .all(|p| p.rows() <= segment_rows || outcome.forwarding.inputs().all(|i| i != p.segment.id()))
        );
    }
    let (kept, before) = (outcome.rows_written(), files(&world.target));
    drop(outcome);
    assert!(kept == 0 || files(&world.target) <= before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_merge_equals_the_naive_one(case in case(), round in H.0..=END) {
        check(&case, round);
    }

    #[test]
    fn a_cancelled_merge_leaves_no_file(case in case()) {
        let world = build(&case);
        let before = files(&world.target);
        let control = Arc::new(MergeControl::default());
        let mut job = world.job(&control);
        let _ = job.step(&|| {}).unwrap();
        control.cancel();
        prop_assert!(job.run().is_err());
        prop_assert_eq!(files(&world.target), before);
        // Nor does one that nobody installs; one that is installed keeps its files.
        let outcome = world.job(&Arc::default()).run().unwrap();
        drop(outcome);
        prop_assert_eq!(files(&world.target), before);
        let outcome = world.job(&Arc::default()).run().unwrap();
        let made = files(&world.target);
        outcome.keep_files();
        drop(outcome);
        prop_assert_eq!(files(&world.target), made);
    }
}

fn numbers(range: std::ops::Range<i64>) -> Vec<Row> {
    range.map(|i| vec![Value::Int(i), Value::Int(i)]).collect()
}

fn number_version(segment_rows: u32, runs: &[Vec<Row>], deltas: &[Vec<Row>]) -> (TableVersion, SegmentTarget) {
    let schema = table(&[(DataType::BigInt, false), (DataType::BigInt, true)], 1, true, segment_rows);
    let target = target();
    let frozen = |rows: &Vec<Row>| -> Arc<DeltaGeneration> {
        let delta = delta(&schema, &target, rows, CommitTs(1));
        delta.freeze();
        delta
    };
    let mut version = TableVersion::new(schema.clone(), CommitTs(1), delta(&schema, &target, &[], CommitTs(1)));
    version.runs = runs.iter().map(|rows| run(&schema, &target, rows, segment_rows as usize).unwrap()).collect();
    version.deltas.splice(0..0, deltas.iter().map(frozen));
    (version, target)
}

fn merge_all(version: &TableVersion, target: &SegmentTarget) -> MergeOutcome {
    let choice = MergeChoice {
        deltas: version.frozen_deltas().iter().map(|delta| delta.id()).collect(),
        runs: version.runs.iter().map(|run| run.id()).collect(),
        reason: MergeReason::Asked,
    };
    let plan = MergePlan::new(version, choice, H).unwrap();
    MergeJob::new(plan, target.clone(), Arc::default()).unwrap().run().unwrap()
}

#[test]
fn segments_that_nothing_reaches_into_are_kept() {
    let (version, target) = number_version(10, &[numbers(0..100)], &[numbers(100..120), numbers(-5..0)]);
    let kept: HashSet<_> = version.runs[0].segments().iter().map(|p| p.segment.id()).collect();
    let outcome = merge_all(&version, &target);
    let output = outcome.output.as_ref().unwrap();
    assert_eq!(rows_of_run(&version.schema, output), numbers(-5..120));
    let there = output.segments().iter().filter(|p| kept.contains(&p.segment.id())).count();
    assert_eq!(there, 10, "all ten old segments stay");
    assert_eq!(outcome.rows_written(), 25);
    assert_eq!(outcome.forwarding.inputs().len(), 2, "only the deltas' rows moved");
}

#[test]
fn small_pieces_do_not_pile_up() {
    // Two rows between any two segments: each would cost a piece of its own.
    let gaps: Vec<Row> = (0..20).flat_map(|i| numbers(i * 20 + 10..i * 20 + 12)).collect();
    let full: Vec<Row> = (0..20).flat_map(|i| numbers(i * 20..i * 20 + 10)).collect();
    let (version, target) = number_version(10, &[full], &[gaps]);
    let outcome = merge_all(&version, &target);
    let output = outcome.output.as_ref().unwrap();
    let small = output.segments().iter().filter(|p| p.rows() < 5).count();
    assert!(output.segments().len() <= 30 && small <= output.segments().len() / 5, "{small} small pieces");
}

#[test]
fn nothing_left_is_no_run() {
    let (version, target) = number_version(10, &[numbers(0..30)], &[numbers(30..40)]);
    for part in version.runs[0].segments() {
        part.segment.deletes().record(CommitTs(5), &DeleteSet::range(0..10));
    }
    version.deltas[0].deletes().record(CommitTs(6), &DeleteSet::range(0..10));
    let outcome = merge_all(&version, &target);
    assert!(outcome.output.is_none());
    assert!(outcome.carry(H, CommitTs(END), outcome.inputs_in(&version)).is_empty());
}

#[test]
fn an_input_that_is_not_there_or_not_frozen_is_refused() {
    let (version, _) = number_version(10, &[numbers(0..30)], &[numbers(30..40)]);
    let choice = |deltas, runs| MergeChoice { deltas, runs, reason: MergeReason::Asked };
    let active = version.active_delta().unwrap().id();
    assert!(MergePlan::new(&version, choice(vec![active], vec![]), H).is_err());
    assert!(MergePlan::new(&version, choice(vec![], vec![crate::ids::RunId(999)]), H).is_err());
    let early = MergePlan::new(&version, choice(vec![version.deltas[0].id()], vec![]), CommitTs::ZERO);
    assert!(early.is_err(), "its rows began after H");
}
