//! Damage in every place of a segment file: a Corrupt error that names file and byte, or right data; never a panic.

use std::sync::Arc;

use arrow_array::Array;

use super::{ENCODINGS, disk, schema, write, write_with};
use crate::disk::{Disk, MemDisk};
use crate::error::{ErrorKind, Result, sqlstate};
use crate::predicate::{CompareOp, Predicate};
use crate::row::Value;
use crate::row::key::{KeyCodec, hash_key};
use crate::schema::{DataType, TableSchema};
use crate::segment::cache::Place;
use crate::segment::format::body_bytes;
use crate::segment::pages::PagedBlock;
use crate::segment::pages::sums::seal;
use crate::segment::{BlockCache, Encoding, Segment, SegmentMeta};
use crate::settings::Encodings;

const PATH: &str = "data/0000000005.seg";
const HEADER_BYTES: usize = crate::segment::format::HEADER_BYTES;

fn table() -> (TableSchema, Vec<Vec<Value>>) {
    let text = DataType::Text { max_chars: None };
    let types = [
        DataType::BigInt,
        text,
        text,
        DataType::Double,
        DataType::Boolean,
        DataType::Decimal { precision: 20, scale: 2 },
        DataType::Time,
        DataType::Uuid,
        DataType::Uuid,
        DataType::Char { chars: 30 },
    ];
    let row = |i: i64| {
        [
            Value::Int(i * 3),
            Value::Text(["north", "south", "a direction with a long name"][i as usize % 3].into()),
            if i % 4 == 0 { Value::Null } else { Value::Text(format!("é{i} and some more").into()) },
            Value::Double(i as f64 / 3.0),
            if i % 7 == 0 { Value::Null } else { Value::Boolean(i % 2 == 0) },
            Value::Decimal(i128::from(i) * 1_000_000_007),
            Value::Int(i * 955_000_001),
            if i % 5 == 0 { Value::Null } else { Value::Uuid((i as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15 << 50)) },
            Value::Uuid(1 << 127 | (i % 3) as u128),
            Value::Text(format!("no {}", i % 20).into()),
        ]
    };
    let columns = (0..types.len()).map(|c| (0..90).map(|i| row(i)[c].clone()).collect()).collect();
    (schema(&types, 1), columns)
}

/// Reads everything in every way; right answers are checked, errors returned.
fn use_all(segment: &Segment, schema: &TableSchema, columns: &[Vec<Value>]) -> Result<()> {
    let mut first_error = None;
    for (column, values) in schema.columns.iter().zip(columns) {
        let read = (|| {
            let array = segment.read(column, 0..90)?;
            let expected = crate::row::array_of(values.iter(), column.data_type).unwrap();
            assert_eq!(&array, &expected);
            assert_eq!(segment.gather(column, &[89, 0, 7])?.len(), 3);
            let predicate = Predicate::Compare { column: column.id, op: CompareOp::GtEq, value: values[5].clone() };
            segment.select(&predicate, column, 3..80)?;
            assert_eq!(segment.value(column, 44)?, values[44]);
            Ok(())
        })();
        first_error = first_error.or(read.err());
    }
    let mut key = Vec::new();
    KeyCodec::new(schema, &schema.primary_key).encode_values(&[Value::Int(30)], &mut key)?;
    match segment.may_contain_key(hash_key(&key)).and_then(|_| segment.find_key(schema, &key)) {
        Ok(rows) => assert_eq!(rows, 10..11),
        Err(e) => first_error = first_error.or(Some(e)),
    }
    first_error.map_or(Ok(()), Err)
}

fn open(memory: &MemDisk, meta: &SegmentMeta) -> Arc<Segment> {
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    Segment::open(meta.clone(), disk, BlockCache::new(1 << 20))
}

#[test]
fn damaged_bytes_are_found() {
    ENCODINGS.into_iter().for_each(damaged_bytes_are_found_in);
}

fn damaged_bytes_are_found_in(encodings: Encodings) {
    let (schema, columns) = table();
    let (memory, disk) = disk();
    let meta = write_with(encodings, &disk, 5, &schema, &columns);
    let whole = memory.get(PATH).unwrap();
    let footer_start = (meta.blocks().map(|b| b.offset + b.len).max().unwrap() as usize).next_multiple_of(16);
    use_all(&open(&memory, &meta), &schema, &columns).unwrap();
    let in_a_block = |at: usize| meta.blocks().any(|b| (b.offset as usize..(b.offset + b.len) as usize).contains(&at));
    let damage = |at: usize, bytes: Vec<u8>| {
        memory.put(PATH, bytes);
        let segment = open(&memory, &meta);
        let used = use_all(&segment, &schema, &columns);
        let verified = segment.verify(&schema);
        for error in used.iter_errors().chain(verified.iter_errors()) {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.message().contains(PATH) && error.message().contains("byte"), "{error}");
        }
        let in_header = at < HEADER_BYTES;
        assert_eq!(used.is_err(), in_a_block(at) || in_header, "byte {at}");
        // Padding between blocks is nobody's.
        let padding = !in_header && at < footer_start && !in_a_block(at);
        assert_eq!(verified.is_err(), !padding, "byte {at}");
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        damage(at, bytes);
    }
}

#[test]
fn a_file_of_a_newer_format_is_refused_and_a_missing_one_named() {
    let (schema, columns) = table();
    let (memory, disk) = disk();
    let meta = write(&disk, 5, &schema, &columns);
    let good = memory.get(PATH).unwrap();
    let errors = || {
        let segment = open(&memory, &meta);
        [use_all(&segment, &schema, &columns).unwrap_err(), segment.verify(&schema).unwrap_err()]
    };
    let mut newer = good.clone();
    newer[8] += 1;
    let checksum = crc32c::crc32c(&newer[..HEADER_BYTES - 4]).to_le_bytes();
    newer[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&checksum);
    memory.put(PATH, newer);
    for error in errors() {
        assert_eq!(error.sqlstate(), sqlstate::FEATURE_NOT_SUPPORTED, "{error}");
        assert!(error.message().contains(PATH) && error.message().contains("newer Mainstem"), "{error}");
    }
    memory.remove(PATH).unwrap();
    for error in errors() {
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Corrupt, sqlstate::CORRUPT), "{error}");
        assert!(error.message().contains(PATH) && error.message().contains("missing"), "{error}");
    }
}

/// The error of a result, as an iterator.
trait IterErrors {
    fn iter_errors(&self) -> std::option::IntoIter<&crate::Error>;
}

impl<T> IterErrors for Result<T> {
    fn iter_errors(&self) -> std::option::IntoIter<&crate::Error> {
        self.as_ref().err().into_iter()
    }
}

#[test]
fn cut_and_zeroed_files_are_found() {
    let (schema, columns) = table();
    let (memory, disk) = disk();
    let meta = write(&disk, 5, &schema, &columns);
    let whole = memory.get(PATH).unwrap();
    for len in (0..whole.len()).step_by(37) {
        let mut zeroed = whole.clone();
        zeroed[len..].fill(0);
        for bytes in [whole[..len].to_vec(), zeroed] {
            memory.put(PATH, bytes);
            let segment = open(&memory, &meta);
            for error in use_all(&segment, &schema, &columns).iter_errors() {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            }
            assert_eq!(segment.verify(&schema).unwrap_err().kind(), ErrorKind::Corrupt, "{len}");
        }
    }
    memory.remove(PATH).unwrap();
    assert_eq!(open(&memory, &meta).verify(&schema).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// Bytes that make no sense under a right checksum: every byte of every block is changed, and the checksums with it.
#[test]
fn nonsense_with_a_right_checksum_never_panics() {
    let (schema, columns) = table();
    let refused = ENCODINGS.map(|encodings| nonsense_never_panics_in(encodings, &schema, &columns, |_| true));
    assert!(refused.iter().all(|refused| *refused > 100), "{refused:?} refused");
}

/// The same where there are several vectors, in their frames and exceptions and in some of the codes.
#[test]
fn nonsense_in_several_vectors_never_panics() {
    let schema = schema(&[DataType::BigInt, DataType::Double], 0);
    let rows = 2_100;
    let value = |i: i64| if i % 700 == 3 { 0.1 + f64::EPSILON * i as f64 } else { i as f64 / 100.0 };
    let columns =
        [(0..rows).map(|i| Value::Int(i * i)).collect(), (0..rows).map(|i| Value::Double(value(i))).collect()];
    let refused = nonsense_never_panics_in(Encodings::Decoded, &schema, &columns, |(at, bytes)| {
        at < 160 || at + 160 > bytes || at % 97 == 0
    });
    assert!(refused > 100, "{refused} refused");
}

/// Changes bytes of which `changed` says so by their place and the block's length; how many changes were refused.
fn nonsense_never_panics_in(
    encodings: Encodings,
    schema: &TableSchema,
    columns: &[Vec<Value>],
    changed: impl Fn((usize, usize)) -> bool,
) -> usize {
    let (memory, disk) = disk();
    let meta = write_with(encodings, &disk, 5, schema, columns);
    let rows = meta.rows;
    let whole = memory.get(PATH).unwrap();
    let mut refused = 0;
    for (c, column) in schema.columns.iter().enumerate() {
        let Some(block) = meta.columns[c].block else { continue };
        let start = block.offset as usize;
        let end = start + body_bytes(block.len).unwrap();
        for at in (start..end).filter(|at| changed((at - start, end - start))) {
            for value in [0, 0xff, whole[at] ^ 1, whole[at] ^ 0x80] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let mut sealed = bytes[start..end].to_vec();
                let checksum = seal(&mut sealed);
                bytes[start..start + sealed.len()].copy_from_slice(&sealed);
                memory.put(PATH, bytes);
                let mut meta = meta.clone();
                meta.columns[c].block.as_mut().unwrap().checksum = checksum;
                let segment = open(&memory, &meta);
                let all = segment.read(column, 0..rows).and_then(|_| {
                    let predicate =
                        Predicate::Compare { column: column.id, op: CompareOp::Lt, value: columns[c][5].clone() };
                    segment.select(&predicate, column, 0..rows)?;
                    segment.gather(column, &(0..rows).collect::<Vec<_>>())?;
                    (0..rows).try_for_each(|row| segment.value(column, row).map(drop))
                });
                // What pages say of single rows, damage in others or not.
                let single = segment.single_rows(&meta.columns[c]);
                let (mut pages, at) = (Vec::new(), meta.columns[c].block.as_ref().unwrap());
                let mut source = PagedBlock::new(&segment, Place::Column(c), at, &mut pages);
                for row in (0..rows as usize).step_by(rows as usize / 90) {
                    match (single.value(&mut source, row), all.is_ok()) {
                        (Ok(value), true) => assert_eq!(value, segment.value(column, row as u32).unwrap()),
                        (Ok(_), false) => {}
                        (Err(e), _) => assert_eq!((e.kind(), all.is_err()), (ErrorKind::Corrupt, true), "{e}"),
                    }
                }
                if let Err(e) = all {
                    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
                    refused += 1;
                }
            }
        }
    }
    refused
}

/// Metadata that disagrees with its block.
#[test]
fn wrong_parameters_never_panic() {
    ENCODINGS.into_iter().for_each(wrong_parameters_never_panic_in);
}

fn wrong_parameters_never_panic_in(encodings: Encodings) {
    let (schema, columns) = table();
    let (memory, disk) = disk();
    let meta = write_with(encodings, &disk, 5, &schema, &columns);
    let parameters = [
        Encoding::Constant { value: Value::Null },
        Encoding::Constant { value: Value::Int(i64::MAX) },
        Encoding::Dictionary { distinct: 0, width: 0, length_width: 0, symbol_bytes: 0 },
        Encoding::Dictionary { distinct: 3, width: 2, length_width: 5, symbol_bytes: 0 },
        Encoding::Dictionary { distinct: u32::MAX, width: 32, length_width: 31, symbol_bytes: 0 },
        Encoding::FrameOfReference { reference: i128::MAX, width: 3 },
        Encoding::FrameOfReference { reference: i128::MIN, width: 64 },
        Encoding::FrameOfReference { reference: i64::MAX.into(), width: 1 },
        Encoding::FrameOfReference { reference: 0, width: 255 },
        Encoding::FrameOfReference { reference: 1, width: 9 },
        Encoding::Plain { length_width: 0 },
        Encoding::Plain { length_width: 255 },
        Encoding::Plain { length_width: 5 },
        Encoding::Symbols { length_width: 5, symbol_bytes: 0 },
        Encoding::Symbols { length_width: 5, symbol_bytes: 7 },
        Encoding::Symbols { length_width: 32, symbol_bytes: u16::MAX },
        Encoding::Dictionary { distinct: 3, width: 2, length_width: 5, symbol_bytes: 9 },
        Encoding::VectorFrames { reference: 0, code_bytes: 0 },
        Encoding::VectorFrames { reference: i128::MAX, code_bytes: 8 },
        Encoding::VectorFrames { reference: -5, code_bytes: u32::MAX },
        Encoding::ScaledFloats { code_bytes: 0, exceptions: 0 },
        Encoding::ScaledFloats { code_bytes: 80, exceptions: u32::MAX },
        Encoding::ScaledFloats { code_bytes: u32::MAX, exceptions: 1 },
    ];
    for (c, column) in schema.columns.iter().enumerate() {
        for encoding in &parameters {
            for null_count in [0, 1, meta.columns[c].null_count, 90, 91, u32::MAX] {
                for rows in [90, 1, 89, 91, 1 << 22] {
                    let mut meta = meta.clone();
                    meta.columns[c].encoding = encoding.clone();
                    meta.columns[c].null_count = null_count;
                    meta.rows = rows;
                    let segment = open(&memory, &meta);
                    let all = segment.read(column, 0..rows).and_then(|_| segment.value(column, rows - 1));
                    if let Err(e) = all {
                        assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
                    }
                    let Some(at) = &meta.columns[c].block else { continue };
                    let single = segment.single_rows(&meta.columns[c]);
                    let mut pages = Vec::new();
                    let mut source = PagedBlock::new(&segment, Place::Column(c), at, &mut pages);
                    for row in [0, rows as usize / 2, rows as usize - 1] {
                        if let Err(e) = single.value(&mut source, row) {
                            assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
                        }
                    }
                }
            }
        }
    }
}
