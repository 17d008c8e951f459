use std::sync::Arc;

use crate::codec::{Decoder, Encoder};
use crate::disk::{DATA_DIR, Disk, MemDisk};
use crate::error::ErrorKind;
use crate::ids::{ColumnId, ContainerId, FileId, KeyId, RunId};
use crate::limits;
use crate::main_store::{NamedRun, NamedRuns, Run, RunIndex, RunSegment, encode_runs, write_runs_aside};
use crate::predicate::{CompareOp, Predicate, Prune};
use crate::row::Value;
use crate::row::key::KeyCodec;
use crate::schema::{DataType, TableSchema};
use crate::segment::tests::{disk, schema, segment, write};
use crate::segment::{BlockCache, Segment, SegmentMeta};

fn part(disk: &Arc<dyn Disk>, id: u64, schema: &TableSchema, keys: &[i64]) -> RunSegment {
    RunSegment::whole(segment(disk, id, schema, &[keys.iter().map(|k| Value::Int(*k)).collect()]))
}

fn ids(parts: &[RunSegment]) -> Vec<u64> {
    parts.iter().map(|p| p.segment.id().0).collect()
}

#[test]
fn a_key_is_in_one_segment_or_at_a_boundary() {
    let schema = schema(&[DataType::BigInt], 1);
    let (_memory, disk) = disk();
    let parts = vec![
        part(&disk, 1, &schema, &[1, 5, 9]),
        part(&disk, 2, &schema, &[9, 9]),
        part(&disk, 3, &schema, &[9, 20]),
        part(&disk, 4, &schema, &[30, 40]),
    ];
    let run = Run::new(RunId(1), parts).unwrap();
    assert_eq!(run.rows(), 9);
    assert!(run.verify(&schema).is_empty());
    let codec = KeyCodec::new(&schema, &schema.sort_key);
    for (key, expected) in [
        (0, vec![]),
        (1, vec![1]),
        (7, vec![1]),
        (9, vec![1, 2, 3]),
        (10, vec![3]),
        (25, vec![]),
        (30, vec![4]),
        (41, vec![]),
    ] {
        let mut bytes = Vec::new();
        codec.encode_values(&[Value::Int(key)], &mut bytes).unwrap();
        assert_eq!(ids(run.find_segments(&bytes)), expected, "{key}");
    }
    let from = [Predicate::Compare { column: ColumnId(1), op: CompareOp::GtEq, value: Value::Int(20) }];
    let found: Vec<_> = run.overlapping(&from).map(|(p, prune)| (p.segment.id().0, prune)).collect();
    assert_eq!(found, [(3, Prune::Some), (4, Prune::All)]);
    assert!(run.segment(ContainerId(3)).is_some() && run.segment(ContainerId(9)).is_none());
}

#[test]
fn long_keys_keep_their_order_though_bounds_are_shortened() {
    let schema = schema(&[DataType::Text { max_chars: None }], 1);
    let (_memory, disk) = disk();
    let long = |c: char, tail: &str| format!("{}{tail}", c.to_string().repeat(300));
    let keys = [
        long('a', "1"),
        long('a', "2"),
        long('a', "3"),
        "b".into(),
        long('b', ""),
        long('b', "x"),
        long('\u{10ffff}', ""),
    ];
    let parts = keys.windows(2).step_by(2).enumerate().map(|(i, pair)| {
        let column = pair.iter().map(|k| Value::Text(k.as_str().into())).collect();
        RunSegment::whole(segment(&disk, i as u64 + 1, &schema, &[column]))
    });
    let run = Run::new(RunId(1), parts.collect()).unwrap();
    let codec = KeyCodec::new(&schema, &schema.sort_key);
    for (i, key) in keys.iter().enumerate().take(6) {
        let mut bytes = Vec::new();
        codec.encode_values(&[Value::Text(key.as_str().into())], &mut bytes).unwrap();
        let found = run.find_segments(&bytes);
        assert!(ids(found).contains(&(i as u64 / 2 + 1)), "key {i} in {:?}", ids(found));
        let hits: u32 = found.iter().map(|p| p.segment.find_key(&schema, &bytes).unwrap().len() as u32).sum();
        assert_eq!(hits, 1);
    }
    assert!(run.verify(&schema).is_empty());
    // Shortened bounds cannot tell these two apart; the keys themselves can.
    let swapped = [4, 3].map(|at: usize| {
        let column = vec![Value::Text(format!("{}{at}", "q".repeat(300)).into())];
        RunSegment::whole(segment(&disk, 10 + at as u64, &schema, &[column]))
    });
    let run = Run::new(RunId(2), swapped.into()).unwrap();
    assert_eq!(run.verify(&schema).len(), 1);
}

#[test]
fn disorder_is_refused() {
    let schema = schema(&[DataType::BigInt], 1);
    let (_memory, disk) = disk();
    let a = part(&disk, 1, &schema, &[1, 5]);
    let b = part(&disk, 2, &schema, &[4, 9]);
    assert!(Run::new(RunId(1), vec![a.clone(), b.clone()]).is_err());
    assert!(Run::new(RunId(1), vec![b.clone(), a.clone()]).is_err());
    assert!(Run::new(RunId(1), vec![a.clone(), a.clone()]).is_err());
    assert!(Run::new(RunId(1), vec![RunSegment { range: 1..1, ..a.clone() }]).is_err());
    assert!(Run::new(RunId(1), vec![RunSegment { range: 0..3, ..a }]).is_err());
}

#[test]
fn a_run_is_consumed_from_its_front() {
    let schema = schema(&[DataType::BigInt], 1);
    let (_memory, disk) = disk();
    let run = Run::new(RunId(4), vec![part(&disk, 1, &schema, &[1, 2, 3]), part(&disk, 2, &schema, &[4, 5])]).unwrap();
    let shapes: Vec<Vec<(u64, u32, u32)>> = (0..=5)
        .map(|rows| {
            run.without_front(rows).unwrap().map_or(vec![], |rest| {
                assert_eq!((rest.rows(), rest.id()), (5 - rows, RunId(4)));
                rest.segments().iter().map(|p| (p.segment.id().0, p.range.start, p.range.end)).collect()
            })
        })
        .collect();
    assert_eq!(
        shapes,
        [
            vec![(1, 0, 3), (2, 0, 2)],
            vec![(1, 1, 3), (2, 0, 2)],
            vec![(1, 2, 3), (2, 0, 2)],
            vec![(2, 0, 2)],
            vec![(2, 1, 2)],
            vec![],
        ]
    );
    assert!(run.without_front(6).is_err());
    assert!(!RunSegment { range: 1..3, ..run.segments()[0].clone() }.is_whole());
}

/// Runs whose metadata takes several blocks of a file, one with key indexes, one of which has no segment.
fn large_runs(disk: &Arc<dyn Disk>) -> Vec<Arc<Run>> {
    let schema = schema(&[DataType::BigInt; 60], 0);
    let meta = write(disk, 1, &schema, &vec![vec![Value::Int(7)]; 60]);
    let cache = BlockCache::new(0);
    let run = |id: u64, segments: u64| {
        let meta = |n| SegmentMeta { id: ContainerId(id * 10_000 + n), ..meta.clone() };
        let open = |n| RunSegment::whole(Segment::open(meta(n), disk.clone(), cache.clone()));
        Run::new(RunId(id), (0..segments).map(open).collect()).unwrap()
    };
    let index = |key, id, segments| RunIndex::new(KeyId(key), Arc::new(run(id, segments)));
    vec![
        Arc::new(run(5, 900).with_indexes([index(0, 6, 400), index(3, 7, 0)])),
        Arc::new(run(8, 1)),
        Arc::new(run(9, 0)),
    ]
}

fn names(runs: &[Arc<Run>]) -> Vec<u8> {
    let mut out = Encoder::new();
    out.list(runs.iter(), |out, run| NamedRun::of(run).encode(out));
    out.finish()
}

/// What does not fit a record comes back from a file, whatever it takes; it is opened block by block.
#[test]
fn runs_come_back_from_their_file_block_by_block() {
    let memory = MemDisk::new();
    memory.create_dir(DATA_DIR).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let runs = large_runs(&disk);
    let bytes = names(&runs);
    assert!(bytes.len() > 2 * limits::ASIDE_BLOCK_BYTES, "{} bytes", bytes.len());
    let mut room = bytes.len();
    assert!(write_runs_aside(&disk, || FileId(2), &runs, &mut room).unwrap().is_none());
    assert_eq!(room, 0, "it fits to the byte");
    room = bytes.len() - 1;
    let file = write_runs_aside(&disk, || FileId(3), &runs, &mut room).unwrap().unwrap();
    assert_eq!((room, file.at().items), (bytes.len() - 1, 1_301));

    let named = |aside| {
        let mut out = Encoder::new();
        encode_runs(&mut out, &runs, aside);
        NamedRuns::decode(&mut Decoder::new(out.as_slice(), "record", 0)).unwrap()
    };
    let mut opened = 0;
    let mut open = |meta: &SegmentMeta| {
        opened += 1;
        Segment::open(meta.clone(), disk.clone(), BlockCache::new(0))
    };
    for aside in [None, Some(&file)] {
        let from = named(aside).file(&disk);
        assert_eq!(from.as_ref().map(|file| file.at()), aside.map(|file| file.at()));
        assert_eq!(names(&named(aside).open(from.as_deref(), &mut open).unwrap()), bytes);
    }
    assert_eq!(opened, 2 * 1_301);

    // Of a file that is damaged at its end all but the last segments are opened first, and are of no use.
    let mut damaged = memory.get(file.path()).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    memory.put(file.path(), damaged);
    let mut opened = 0;
    let mut open = |meta: &SegmentMeta| {
        opened += 1;
        Segment::open(meta.clone(), disk.clone(), BlockCache::new(0))
    };
    let error = named(Some(&file)).open(Some(&file), &mut open).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!((1..1_301).contains(&opened), "{opened}");
}
