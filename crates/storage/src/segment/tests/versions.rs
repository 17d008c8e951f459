//! Segments of older format versions are read; those of newer ones are refused as such.

use std::sync::Arc;

use super::{disk, schema, segment};
use crate::codec::{Decoder, Encoder};
use crate::disk::Disk;
use crate::error::{ErrorKind, sqlstate};
use crate::ids::{ColumnId, FileId};
use crate::row::Value;
use crate::schema::{Column, DataType};
use crate::segment::{BlockCache, Segment, SegmentMeta};

/// A segment of version 1, of a table with all types but TIME and TIMESTAMPTZ.
const VERSION_1: &[u8] = include_bytes!("../../../../../compat/4/data/0000000001.seg");

const TYPES: [DataType; 15] = [
    DataType::BigInt,
    DataType::SmallInt,
    DataType::Integer,
    DataType::Text { max_chars: None },
    DataType::Double,
    DataType::Real,
    DataType::Boolean,
    DataType::Decimal { precision: 20, scale: 2 },
    DataType::Date,
    DataType::Timestamp,
    DataType::Bytea,
    DataType::Uuid,
    DataType::Char { chars: 9 },
    DataType::Text { max_chars: None },
    DataType::Integer,
];

fn row(i: i64) -> [Value; 15] {
    let unless = |null: bool, value: Value| if null { Value::Null } else { value };
    [
        Value::Int(i * 3),
        Value::Int(i % 7),
        unless(i % 4 == 0, Value::Int(i * 1_000)),
        unless(i % 5 == 0, Value::Text(format!("text {i}").into())),
        Value::Double(i as f64 / 8.0),
        unless(i % 6 == 0, Value::Real((i % 3) as f32)),
        unless(i % 7 == 0, Value::Boolean(i % 2 == 0)),
        Value::Decimal(i128::from(i) * 100_000_000_725),
        Value::Int(18_262 + i % 40),
        Value::Int((1_704_067_200 + i) * 1_000_000),
        Value::Bytes(vec![0, i as u8].into()),
        // Its decimal digits are hexadecimal ones.
        Value::Uuid(u128::from_str_radix(&i.to_string(), 16).unwrap()),
        Value::Text(format!("no {}", i % 20).into()),
        Value::Text(["north", "south", "a direction with a long name"][i as usize % 3].into()),
        Value::Null,
    ]
}

#[test]
fn a_segment_of_version_1_is_read() {
    assert_eq!(VERSION_1[8], 1);
    let (memory, disk) = disk();
    memory.put("data/0000000001.seg", VERSION_1.to_vec());
    let cache = BlockCache::new(1 << 20);
    let file = cache.files().file(FileId(1), &disk);
    let meta = file.read_meta().unwrap();
    let names: Vec<&str> = meta.columns.iter().map(|column| column.encoding.name()).collect();
    for name in ["constant", "dictionary", "frame of reference", "plain"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let disk: Arc<dyn Disk> = disk;
    let segment = Segment::open(meta.clone(), disk, cache);
    let mut read = schema(&TYPES, 1);
    read.columns =
        meta.columns.iter().zip(TYPES).map(|(c, t)| Column::new(c.id, "c", t, c.id != ColumnId(1))).collect();
    read.columns[0].nullable = false;
    read.sort_key = vec![read.columns[0].id];
    read.primary_key = read.sort_key.clone();
    segment.verify(&read).unwrap();
    for i in 0..100 {
        let mut found = Vec::new();
        segment.read_row(read.version, read.columns.iter().enumerate(), i, &mut found).unwrap();
        assert_eq!(found, row(i.into()), "row {i}");
    }
    // Its metadata is of the newest version when it is written again, and says the same.
    let mut again = Encoder::new();
    meta.encode(&mut again);
    let again = again.finish();
    assert_eq!(again[..2], [0, 3]);
    assert_eq!(SegmentMeta::decode(&mut Decoder::new(&again, "manifest", 0)).unwrap(), meta);
}

#[test]
fn metadata_of_other_versions_is_refused() {
    let schema = schema(&[DataType::Text { max_chars: None }, DataType::BigInt], 0);
    let (_memory, disk) = disk();
    let texts = (0..2_000).map(|i| Value::Text(format!("carefully final deposits {i}").into())).collect();
    let numbers = (0..2_000).map(|i| Value::Int(i * 3)).collect();
    let meta = segment(&disk, 1, &schema, &[texts, numbers]).meta().clone();
    let mut bytes = Encoder::new();
    meta.encode(&mut bytes);
    let good = bytes.finish();
    let refused = |bytes: &[u8]| SegmentMeta::decode(&mut Decoder::new(bytes, "manifest", 0)).unwrap_err();
    let newer = refused(&[&[0, 4], &good[2..]].concat());
    assert_eq!(newer.sqlstate(), sqlstate::FEATURE_NOT_SUPPORTED, "{newer}");
    assert!(newer.message().contains("newer Mainstem"), "{newer}");
    for version in [0, 1] {
        assert_eq!(refused(&[&[0, version], &good[2..]].concat()).kind(), ErrorKind::Corrupt);
    }
    // Without a version it is of version 1, which lacks these encodings.
    let old = refused(&good[2..]);
    assert!(old.kind() == ErrorKind::Corrupt && old.message().contains("unknown in format version 1"), "{old}");
}
