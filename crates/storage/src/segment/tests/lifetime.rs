//! Files live as long as somebody lists or reads them; the cache stays within its bound; metadata survives a round
//! trip.

use std::sync::Arc;

use super::{disk, schema, segment, write};
use crate::codec::{Decoder, Encoder};
use crate::disk::DATA_DIR;
use crate::ids::{ColumnId, ContainerId, FileId};
use crate::row::Value;
use crate::schema::DataType;
use crate::segment::{
    BlockCache, Segment, SegmentMeta, SegmentPlace, parse_segment_name, rows_that_fit, write_segment,
};
use crate::settings::Encodings;

#[test]
fn a_file_goes_with_its_last_reader_once_dropped() {
    let schema = schema(&[DataType::BigInt], 0);
    let (_memory, disk) = disk();
    let cache = BlockCache::new(1 << 20);
    let meta = write(&disk, 1, &schema, &[(0..100).map(Value::Int).collect()]);
    let open = |meta: &SegmentMeta| Segment::open(meta.clone(), Arc::clone(&disk), Arc::clone(&cache));
    let first = open(&meta);
    first.read(&schema.columns[0], 0..100).unwrap();
    assert!(cache.stats().bytes > 0);
    // Closed, not dropped: the file stays.
    drop(first);
    assert!(disk.exists("data/0000000001.seg").unwrap());
    // A later segment keeps the block of the older one's file.
    let older = open(&meta);
    let newer = open(&SegmentMeta { id: ContainerId(2), ..meta.clone() });
    let reader = Arc::clone(&older);
    older.drop_when_unreferenced();
    older.drop_when_unreferenced();
    drop(older);
    drop(reader);
    assert!(disk.exists("data/0000000001.seg").unwrap());
    newer.drop_when_unreferenced();
    let reader = Arc::clone(&newer);
    drop(newer);
    assert!(disk.exists("data/0000000001.seg").unwrap());
    reader.read(&schema.columns[0], 0..100).unwrap();
    drop(reader);
    assert!(!disk.exists("data/0000000001.seg").unwrap());
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn a_dropped_file_that_is_read_stands_under_its_temporary_name() {
    let schema = schema(&[DataType::BigInt], 0);
    let (_memory, disk) = disk();
    let cache = BlockCache::new(1 << 20);
    let meta = write(&disk, 1, &schema, &[(0..100).map(Value::Int).collect()]);
    let open = |meta: &SegmentMeta| Segment::open(meta.clone(), Arc::clone(&disk), Arc::clone(&cache));
    let names = || disk.list(DATA_DIR).unwrap();
    let (older, newer) = (open(&meta), open(&SegmentMeta { id: ContainerId(2), ..meta.clone() }));
    let give_up = |segment: &Segment| segment.weak_files().for_each(|file| file.upgrade().unwrap().give_name_up());
    older.drop_when_unreferenced();
    give_up(&older);
    assert_eq!(names(), ["0000000001.seg"], "the newer one lists it");
    newer.drop_when_unreferenced();
    give_up(&newer);
    give_up(&older);
    assert_eq!(names(), ["0000000001.seg.tmp"]);
    // Opened anew, and as it is open.
    for _ in 0..2 {
        assert_eq!(newer.value(&schema.columns[0], 7).unwrap(), Value::Int(7));
        newer.verify(&schema).unwrap();
        newer.files().iter().for_each(|(_, file)| file.close());
    }
    // Who lists it again names it again.
    let last = open(&SegmentMeta { id: ContainerId(3), ..meta.clone() });
    assert!(last.take_names().unwrap());
    give_up(&older);
    assert_eq!(names(), ["0000000001.seg"]);
    last.drop_when_unreferenced();
    give_up(&last);
    drop((older, newer));
    assert_eq!(names(), ["0000000001.seg.tmp"]);
    drop(last);
    assert_eq!(names(), [""; 0]);
}

#[test]
fn a_segment_of_blocks_of_two_files() {
    let schema = schema(&[DataType::BigInt, DataType::Text { max_chars: None }], 0);
    let (_memory, disk) = disk();
    let numbers = |by: i64| (0..50).map(|i| Value::Int(i * by)).collect::<Vec<_>>();
    let texts = |by: i64| (0..50).map(|i| Value::Text(format!("text {}", i * by).into())).collect::<Vec<_>>();
    let mut meta = write(&disk, 1, &schema, &[numbers(1), texts(1)]);
    let other = write(&disk, 2, &schema, &[numbers(7), texts(7)]);
    meta.columns[1] = other.columns[1].clone();
    meta.id = ContainerId(3);
    assert_eq!(meta.files(), [FileId(1), FileId(2)]);
    let mixed = Segment::open(meta, Arc::clone(&disk), BlockCache::new(1 << 20));
    assert_eq!(mixed.value(&schema.columns[0], 3).unwrap(), Value::Int(3));
    assert_eq!(mixed.value(&schema.columns[1], 3).unwrap(), Value::Text("text 21".into()));
    mixed.verify(&schema).unwrap();
}

#[test]
fn the_cache_keeps_its_bound_and_counts() {
    let types = [DataType::Double; 8];
    let schema = schema(&types, 0);
    let (_memory, disk) = disk();
    let columns: Vec<Vec<Value>> =
        (0..8).map(|c| (0..1000).map(|i| Value::Double(f64::from(i * 8 + c) / 7.0)).collect()).collect();
    let meta = write(&disk, 1, &schema, &columns);
    let cache = BlockCache::new(30_000);
    let segment = Segment::open(meta, Arc::clone(&disk), Arc::clone(&cache));
    for round in 0..20u32 {
        for (c, column) in schema.columns.iter().enumerate() {
            let row = round * 3 % 1000;
            assert_eq!(segment.value(column, row).unwrap(), columns[c][row as usize]);
            assert!(cache.stats().bytes <= 30_000, "{:?}", cache.stats());
        }
        // The hot column is asked for between all others.
        segment.value(&schema.columns[0], 1).unwrap();
    }
    let stats = cache.stats();
    // Hits are what is left of the 180.
    assert!((80..=161).contains(&stats.blocks_read), "{stats:?}");
    // A block larger than the cache is read and not kept.
    let tiny = BlockCache::new(100);
    let segment = Segment::open(segment.meta().clone(), disk, Arc::clone(&tiny));
    segment.value(&schema.columns[3], 5).unwrap();
    assert_eq!(tiny.stats().bytes, 0);
}

#[test]
fn metadata_survives_a_round_trip() {
    let types = [
        DataType::BigInt,
        DataType::Text { max_chars: Some(9) },
        DataType::Decimal { precision: 20, scale: 3 },
        DataType::Bytea,
        DataType::Real,
        DataType::Boolean,
        DataType::Time,
        DataType::Uuid,
        DataType::Char { chars: 5 },
    ];
    let schema = schema(&types, 1);
    let (_memory, disk) = disk();
    let row = |i: i64| {
        [
            Value::Int(i),
            if i % 3 == 0 { Value::Null } else { Value::Text("é".repeat(40).into()) },
            Value::Decimal(i128::from(i) << 60),
            Value::Bytes(vec![0xff; 40].into()),
            Value::Real(i as f32),
            Value::Null,
            Value::Int(i),
            Value::Uuid(u128::MAX - i as u128),
            Value::Text("abc".into()),
        ]
    };
    let columns: Vec<Vec<Value>> = (0..9).map(|c| (0..33).map(|i| row(i)[c].clone()).collect()).collect();
    let meta = segment(&disk, 7, &schema, &columns).meta().clone();
    let mut e = Encoder::new();
    meta.encode(&mut e);
    let bytes = e.finish();
    let mut d = Decoder::new(&bytes, "manifest", 0);
    assert_eq!(SegmentMeta::decode(&mut d).unwrap(), meta);
    d.finish().unwrap();
    for len in 0..bytes.len() {
        SegmentMeta::decode(&mut Decoder::new(&bytes[..len], "manifest", 0)).unwrap_err();
    }
    for at in 0..bytes.len() {
        for bit in [1, 16, 128] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            // Any answer, no panic.
            let _ = SegmentMeta::decode(&mut Decoder::new(&damaged, "manifest", 0));
        }
    }
    assert_eq!(meta.column(ColumnId(2)).unwrap().data_type, types[1]);
}

#[test]
fn wrong_rows_are_refused_and_leave_no_file() {
    let schema = schema(&[DataType::BigInt, DataType::Integer], 1);
    let (_memory, disk) = disk();
    let attempt = |columns: &[Vec<Value>]| {
        let arrays = super::arrays(&schema, columns);
        let (id, file, encodings) = (ContainerId(1), FileId(1), Encodings::Smallest);
        write_segment(SegmentPlace { disk: &disk, id, file, threads: 1, encodings, symbols: None }, &schema, &arrays)
            .unwrap_err()
    };
    attempt(&[vec![Value::Int(2), Value::Int(1)], vec![Value::Int(0); 2]]);
    attempt(&[vec![Value::Int(2)], vec![Value::Int(0); 2]]);
    attempt(&[vec![Value::Null], vec![Value::Int(0)]]);
    attempt(&[vec![], vec![]]);
    attempt(&[vec![Value::Int(2)]]);
    assert_eq!(disk.list(DATA_DIR).unwrap(), Vec::<String>::new());
}

#[test]
fn what_metadata_says_in_full_has_no_file() {
    let schema = schema(&[DataType::BigInt, DataType::Boolean], 0);
    let (_memory, disk) = disk();
    let segment = segment(&disk, 1, &schema, &[vec![Value::Int(7); 9], vec![Value::Null; 9]]);
    assert_eq!(disk.list(DATA_DIR).unwrap(), Vec::<String>::new());
    assert_eq!((segment.meta().files(), segment.meta().bytes()), (vec![], 0));
    assert_eq!(segment.value(&schema.columns[0], 8).unwrap(), Value::Int(7));
    segment.verify(&schema).unwrap();
    segment.drop_when_unreferenced();
}

#[test]
fn readers_of_many_threads_share_a_small_cache() {
    let schema = schema(&[DataType::Double; 6], 0);
    let (_memory, disk) = disk();
    let value = |c: usize, row: u32| Value::Double((f64::from(row) * 6.0 + c as f64) / 7.0);
    let columns: Vec<Vec<Value>> = (0..6).map(|c| (0..500).map(|row| value(c, row)).collect()).collect();
    let meta = write(&disk, 1, &schema, &columns);
    let cache = BlockCache::new(3 * 4_200);
    let segment = Segment::open(meta, disk, Arc::clone(&cache));
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let (segment, schema, cache) = (&segment, &schema, &cache);
            scope.spawn(move || {
                for i in 0..300u32 {
                    let (c, row) = ((i * 7 + thread) as usize % 6, (i * 31 + thread) % 500);
                    assert_eq!(segment.value(&schema.columns[c], row).unwrap(), value(c, row));
                    assert!(cache.stats().bytes <= cache.stats().bytes_max);
                }
            });
        }
    });
    let read = cache.stats().blocks_read;
    assert!((6..=1200).contains(&read), "{read} blocks");
}

#[test]
fn names_of_files() {
    assert_eq!(parse_segment_name("0000000012.seg"), Some(FileId(12)));
    assert_eq!(parse_segment_name("12345678901.seg"), Some(FileId(12_345_678_901)));
    for other in ["12.seg", "0000000012.seg.tmp", "+000000012.seg", "x.seg", "0000000012"] {
        assert_eq!(parse_segment_name(other), None, "{other}");
    }
}

#[test]
fn wide_rows_make_smaller_segments() {
    let schema = schema(&[DataType::Text { max_chars: None }], 0);
    let long = Value::Text("x".repeat(1 << 20).into());
    let arrays = super::arrays(&schema, &[vec![long; 3]]);
    assert_eq!(rows_that_fit(&arrays), 3);
    let many = arrow_select::take::take(&arrays[0], &arrow_array::UInt32Array::from_value(0, 1000), None).unwrap();
    assert_eq!(rows_that_fit(&[many]), 128);
}

/// The blocks that single rows were read from weigh what they are, once.
#[test]
fn the_columns_of_rows_are_in_the_cache_once() {
    let schema = schema(&[DataType::Double; 8], 0);
    let (_memory, disk) = disk();
    let columns: Vec<Vec<Value>> =
        (0..8).map(|c| (0..1000).map(|i| Value::Double(f64::from(i * 8 + c) / 7.0)).collect()).collect();
    let segment = segment(&disk, 1, &schema, &columns);
    let blocks: u64 = segment.meta().blocks().map(|block| block.len).sum();
    let held = || segment.cache().stats().bytes;
    for offset in [3, 999, 3] {
        let mut row = Vec::new();
        segment.read_row(schema.version, schema.columns.iter().enumerate(), offset, &mut row).unwrap();
        let expected: Vec<Value> = columns.iter().map(|column| column[offset as usize].clone()).collect();
        assert_eq!(row, expected);
        assert!((blocks..blocks + blocks / 4).contains(&held()), "{} for blocks of {blocks}", held());
    }
    // What a scan has put there is taken from there.
    segment.read(&schema.columns[0], 0..1000).unwrap();
    let read = segment.cache().stats().blocks_read;
    segment.read(&schema.columns[0], 0..1000).unwrap();
    assert_eq!(segment.cache().stats().blocks_read, read);
}
