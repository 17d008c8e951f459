//! Single rows of segments whose blocks are not open: the same values, from few pages, and damage is found in them.

use std::sync::Arc;

use super::{ENCODINGS, disk, schema, write, write_with};
use crate::disk::Disk;
use crate::error::ErrorKind;
use crate::ids::{ContainerId, FileId};
use crate::limits;
use crate::row::key::{KeyCodec, hash_key};
use crate::row::{Value, array_of};
use crate::schema::{DataType, TableSchema};
use crate::segment::cache::Place;
use crate::segment::format::{PAGE_BYTES, body_bytes};
use crate::segment::pages::PagedBlock;
use crate::segment::pages::sums::seal;
use crate::segment::{BlockCache, Segment, SegmentMeta, SegmentPlace, create_segment};
use crate::settings::Encodings;

/// Opens `meta` over a cache of `bytes`.
fn open(disk: &Arc<dyn Disk>, meta: &SegmentMeta, bytes: u64) -> Arc<Segment> {
    Segment::open(meta.clone(), Arc::clone(disk), BlockCache::new(bytes))
}

/// Each value of column `at` read from pages, which an unopened segment of any size would do.
pub(super) fn check_pages(segment: &Segment, at: usize, values: &[Value]) {
    let column = &segment.meta().columns[at];
    let Some(block) = &column.block else { return };
    let single = segment.single_rows(column);
    for forwards in [true, false] {
        let mut pages = Vec::new();
        let mut source = PagedBlock::new(segment, Place::Column(at), block, &mut pages);
        for i in 0..values.len() {
            let row = if forwards { i } else { values.len() - 1 - i };
            assert_eq!(single.value(&mut source, row).unwrap(), values[row], "row {row} of {:?}", column.encoding);
        }
        single.value(&mut source, values.len()).unwrap_err();
    }
}

fn mixed(i: usize) -> u64 {
    mainstem_kernels::hash::hash_u64(i as u64)
}

/// Codes of every width, so that some cross the ends of pages at every bit; with and without NULLs before them.
#[test]
fn codes_of_every_width_across_pages() {
    let rows = 9_000;
    for bits in 1..=63 {
        for nulls in [false, true] {
            let value = |i: usize| match i {
                _ if nulls && mixed(i).is_multiple_of(7) => Value::Null,
                1 => Value::Int(0),
                2 => Value::Int(((1u64 << bits) - 1) as i64),
                _ => Value::Int((mixed(i) >> (64 - bits)) as i64),
            };
            let values: Vec<Value> = (0..rows / (bits / 8 + 1)).map(value).collect();
            let schema = schema(&[DataType::BigInt], 0);
            let (_memory, disk) = disk();
            for encodings in ENCODINGS {
                let meta = write_with(encodings, &disk, 1, &schema, std::slice::from_ref(&values));
                check_pages(&open(&disk, &meta, 0), 0, &values);
            }
        }
    }
}

#[test]
fn values_of_every_type_across_pages() {
    let text = |i: usize| match i % 300 {
        7 => "long ".repeat(i % 2_000),
        9 => String::new(),
        _ => format!("é{}", mixed(i)),
    };
    let few = |i: usize| mixed(i) % 40;
    let types = [
        (DataType::SmallInt, (|i| Value::Int((mixed(i) as i16).into())) as fn(usize) -> Value),
        (DataType::Double, |i| Value::Double(mixed(i) as f64 / 3.0)),
        (DataType::Real, |i| Value::Real(mixed(i) as f32 / 3.0)),
        (DataType::Decimal { precision: 38, scale: 0 }, |i| Value::Decimal(i128::from(mixed(i)) << 60)),
        (DataType::Uuid, |i| Value::Uuid(u128::from(mixed(i)) << 64 | i as u128)),
        (DataType::Boolean, |i| Value::Boolean(mixed(i) & 1 == 0)),
        (DataType::Time, |i| Value::Int((mixed(i) % 86_400_000_000) as i64)),
    ];
    let mut columns: Vec<(DataType, Vec<Value>)> =
        types.into_iter().map(|(t, value)| (t, (0..5_000).map(value).collect())).collect();
    let of = |value: &dyn Fn(usize) -> Value| (0..5_000).map(value).collect::<Vec<_>>();
    let long = |i: u64| format!("{i} ").repeat(300);
    let string = DataType::Text { max_chars: None };
    columns.push((string, of(&|i| Value::Text(text(i).into()))));
    columns.push((DataType::Bytea, of(&|i| Value::Bytes(text(i).into_bytes().into()))));
    columns.push((string, of(&|i| Value::Text(long(few(i)).into()))));
    columns.push((DataType::Bytea, of(&|i| Value::Bytes(long(mixed(i) % 600).into_bytes().into()))));
    columns.push((DataType::Double, of(&|i| Value::Double(few(i) as f64))));
    columns.push((DataType::Double, of(&|i| Value::Double((mixed(i) % 1_500) as f64))));
    for (data_type, mut values) in columns {
        for nulls in [false, true] {
            if nulls {
                values.iter_mut().step_by(3).for_each(|value| *value = Value::Null);
            }
            let schema = schema(&[data_type], 0);
            let (_memory, disk) = disk();
            for encodings in ENCODINGS {
                let meta = write_with(encodings, &disk, 1, &schema, std::slice::from_ref(&values));
                check_pages(&open(&disk, &meta, 0), 0, &values);
            }
        }
    }
}

/// A table of a key and seven numbers, `rows` rows.
fn wide(rows: i64) -> (TableSchema, Vec<Vec<Value>>) {
    let types = [[DataType::BigInt].as_slice(), &[DataType::Double; 7]].concat();
    // Nearly as far apart within a few rows as all together: one frame of reference.
    let key = |i: i64| Value::Int((i << 40) + (mixed(i as usize) >> 24) as i64);
    let mut columns = vec![(0..rows).map(key).collect::<Vec<_>>()];
    columns.extend((1..8).map(|c| (0..rows).map(|i| Value::Double((i * 8 + c) as f64 / 7.0)).collect()));
    (schema(&types, 1), columns)
}

fn row(segment: &Segment, schema: &TableSchema, offset: u32) -> crate::error::Result<Vec<Value>> {
    let mut row = Vec::new();
    segment.read_row(schema.version, schema.columns.iter().enumerate(), offset, &mut row).map(|()| row)
}

/// A row is read from a page a column, until that has cost as much as an eighth of the block; where others would have
/// to go for the block, until it has cost four times the block; where it does not fit at all, for ever.
#[test]
fn blocks_are_opened_when_they_are_worth_it() {
    let (schema, columns) = wide(20_000);
    let (_memory, disk) = disk();
    let meta = write(&disk, 1, &schema, &columns);
    let expected = |offset: u32| columns.iter().map(|c| c[offset as usize].clone()).collect::<Vec<_>>();
    let block = meta.columns[1].block.unwrap().len;

    let segment = open(&disk, &meta, 64 << 20);
    let mut rows_before = 0;
    while segment.cache().stats().blocks_read == 0 {
        let offset = (mixed(rows_before) % 20_000) as u32;
        assert_eq!(row(&segment, &schema, offset).unwrap(), expected(offset));
        rows_before += 1;
    }
    let pages = block / limits::PAGES_BEFORE_OPENING_SHARE / PAGE_BYTES as u64;
    assert!((pages - 1..=pages + 2).contains(&(rows_before as u64)), "{rows_before} rows for {pages} pages");
    for i in 0..100 {
        row(&segment, &schema, (mixed(i) % 20_000) as u32).unwrap();
    }
    let (stats, all) = (segment.cache().stats(), row(&segment, &schema, 4).unwrap());
    assert_eq!((stats.blocks_read, all), (8, expected(4)));
    assert_eq!(segment.cache().stats().page_reads, stats.page_reads, "nothing is read any more");
    assert!(stats.page_reads <= 8 * (pages + 2));

    // A cache that is full of another segment's blocks.
    let cache = BlockCache::new(64 << 20);
    let other = write(&disk, 2, &schema, &columns);
    let hot = Segment::open(other, Arc::clone(&disk), Arc::clone(&cache));
    schema.columns.iter().for_each(|column| drop(hot.read(column, 0..1).unwrap()));
    // Room for the checksums of pages, and for no block.
    cache.resize(cache.stats().bytes + 4_000);
    let segment = Segment::open(meta.clone(), Arc::clone(&disk), Arc::clone(&cache));
    let (opened, mut rows_before) = (cache.stats().blocks_read, 0);
    while cache.stats().blocks_read == opened {
        let offset = (mixed(rows_before) % 20_000) as u32;
        assert_eq!(row(&segment, &schema, offset).unwrap(), expected(offset));
        rows_before += 1;
        assert!(cache.stats().bytes <= cache.stats().bytes_max);
    }
    let pages = block * limits::PAGES_BEFORE_EVICTING / PAGE_BYTES as u64;
    // The key's block is a little smaller.
    assert!((pages / 4..=pages + 2).contains(&(rows_before as u64)), "{rows_before} rows for {pages} pages");

    let nothing = open(&disk, &meta, 1_000);
    for i in 0..2_000 {
        let offset = (mixed(i) % 20_000) as u32;
        assert_eq!(row(&nothing, &schema, offset).unwrap(), expected(offset));
    }
    assert_eq!(nothing.cache().stats().blocks_read, 0);
}

/// Few rows are gathered from pages; the array is the one that the block gives.
#[test]
fn few_rows_are_gathered_from_pages() {
    let (schema, columns) = wide(20_000);
    let (_memory, disk) = disk();
    let meta = write(&disk, 1, &schema, &columns);
    let segment = open(&disk, &meta, 0);
    let offsets = [19_999, 0, 7, 7, 12_345];
    for (column, values) in schema.columns.iter().zip(&columns) {
        let gathered = segment.gather(column, &offsets).unwrap();
        let naive = array_of(offsets.iter().map(|o| &values[*o as usize]), column.data_type).unwrap();
        assert_eq!(&gathered, &naive);
        segment.gather(column, &[20_000]).unwrap_err();
    }
    assert_eq!(segment.cache().stats().blocks_read, 0);
    segment.gather(&schema.columns[1], &[5; limits::GATHER_PAGES_MAX + 1]).unwrap();
    assert_eq!(segment.cache().stats().blocks_read, 1);
}

/// The key of a row, by its number.
type KeyOf = Box<dyn Fn(i64) -> Vec<Value>>;

/// Keys are found by pages as they are in open blocks, those that are there and those that are not, and in few pages.
#[test]
fn keys_are_found_by_pages() {
    let text = DataType::Text { max_chars: None };
    let uneven = |i: i64| if i < 10_000 { i * 2 } else { i * 1_000_003 };
    let tables: [(&[DataType], KeyOf, u64); 5] = [
        (&[DataType::BigInt], Box::new(|i| vec![Value::Int(i * 16 + (mixed(i as usize) % 16) as i64)]), 3),
        (&[DataType::BigInt], Box::new(move |i| vec![Value::Int(uneven(i))]), 14),
        (&[text], Box::new(|i| vec![Value::Text(format!("key {i:09}").into())]), 70),
        // Few first values, and seconds that begin anew with each.
        (
            &[DataType::Integer, DataType::BigInt],
            Box::new(|i| vec![Value::Int(i / 5_000), Value::Int(i % 5_000 * 3)]),
            40,
        ),
        // Scaled floats with exceptions, which are looked for before the code.
        (&[DataType::Double], Box::new(|i| vec![Value::Double(i as f64 / 3.0)]), 42),
    ];
    for (types, key, reads_max) in tables {
        let mut all_types = types.to_vec();
        all_types.push(DataType::Integer);
        let schema = schema(&all_types, types.len());
        let rows = 40_000;
        // Every other key is there.
        let column = |c: usize| (0..rows).map(|i| key(i * 2)[c].clone()).collect::<Vec<_>>();
        let mut columns: Vec<Vec<Value>> = (0..types.len()).map(column).collect();
        columns.push((0..rows).map(|i| Value::Int(i % 1_000)).collect());
        let (_memory, disk) = disk();
        let meta = write(&disk, 1, &schema, &columns);
        let (cold, warm) = (open(&disk, &meta, 0), open(&disk, &meta, 64 << 20));
        let looks = 300;
        for look in 0..looks {
            let i = match look {
                0..4 => look as i64,
                4..8 => rows * 2 - 1 - look as i64 % 4,
                _ => (mixed(look) % (rows as u64 * 2)) as i64,
            };
            let mut encoded = Vec::new();
            KeyCodec::new(&schema, &schema.primary_key).encode_values(&key(i), &mut encoded).unwrap();
            let expected = if i % 2 == 0 { i as u32 / 2..i as u32 / 2 + 1 } else { 0..0 };
            let found = warm.find_key(&schema, &encoded).unwrap();
            assert_eq!(found.len(), expected.len());
            assert_eq!(cold.find_key(&schema, &encoded).unwrap(), found);
            let hash = hash_key(&encoded);
            assert_eq!(cold.may_contain_key(hash).unwrap(), warm.key_filter().unwrap().unwrap().may_contain(hash));
            let probed = cold.probe_key(&schema, &encoded, || hash).unwrap();
            assert_eq!((probed.len(), expected.len()), (expected.len(), probed.len()));
            if i % 2 == 0 {
                assert_eq!(probed, expected);
            }
        }
        let stats = cold.cache().stats();
        // Blocks of few pages are read whole, and not kept.
        let small = meta.blocks().all(|block| block.len > limits::SMALL_BLOCK_BYTES);
        assert_eq!(stats.blocks_read == 0, small, "{types:?}");
        // `find_key`, the filter, and `probe_key`, which is both.
        let reads = (stats.page_reads + stats.blocks_read) / looks as u64;
        assert!(reads <= 2 * reads_max + 2, "{reads} reads of pages a look: {types:?}");
    }
}

/// Damage in any page of a block: found by who reads a row of that page, named by file and byte; other rows are read as
/// they are.
#[test]
fn damage_is_found_in_the_page_that_is_read() {
    let (schema, columns) = wide(6_000);
    let (memory, disk) = disk();
    let meta = write(&disk, 5, &schema, &columns);
    let path = "data/0000000005.seg";
    let whole = memory.get(path).unwrap();
    for (at, column) in schema.columns.iter().enumerate() {
        let block = meta.columns[at].block.unwrap();
        let body = body_bytes(block.len).unwrap();
        let pages = body.div_ceil(PAGE_BYTES);
        for byte in (0..body).step_by(777).chain(body - 1..block.len as usize) {
            let mut bytes = whole.clone();
            bytes[block.offset as usize + byte] ^= 4;
            memory.put(path, bytes);
            let segment = open(&disk, &meta, 0);
            let mut found = 0;
            for offset in (0..6_000).step_by(50).chain([5_999]) {
                match segment.value(column, offset) {
                    Ok(value) => assert_eq!(value, columns[at][offset as usize]),
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::Corrupt);
                        let page =
                            block.offset + if byte < body { byte / PAGE_BYTES * PAGE_BYTES } else { body } as u64;
                        assert!(e.message().contains(path) && e.message().contains(&format!("byte {page}")), "{e}");
                        found += 1;
                    }
                }
            }
            match byte {
                // In one page of several, or in what all of them hang on.
                _ if byte < body => assert!(found > 0 && (pages == 1 || found < 121), "{found} at {byte} of {body}"),
                _ => assert_eq!(found, 121, "{byte} of {body}"),
            }
            segment.read(column, 0..6_000).unwrap_err();
        }
    }
    // The key filter.
    let filter = meta.key_filter.unwrap();
    let mut bytes = whole.clone();
    bytes[filter.offset as usize + 5_000] ^= 1;
    memory.put(path, bytes);
    let segment = open(&disk, &meta, 0);
    let answers: Vec<_> = (0..500).map(|i| segment.may_contain_key(mixed(i))).collect();
    let wrong = answers.iter().filter_map(|answer| answer.as_ref().err());
    assert!(wrong.clone().all(|e| e.kind() == ErrorKind::Corrupt));
    assert!((1..500).contains(&wrong.count()));
}

#[test]
fn the_length_of_a_block_says_that_of_its_body() {
    let lengths = [0, 1, 2, 15, 4095, 4096, 4097, 4100, 8191, 8192, 8193, 12_288, 100_000];
    for len in lengths {
        let mut block = vec![7; len];
        seal(&mut block);
        assert_eq!(body_bytes(block.len() as u64), Some(len));
    }
    let possible = (0..20_000).filter(|len| body_bytes(*len).is_some()).count();
    // 4 lengths of each 4100 end amid a checksum, and the first four bytes are one.
    assert_eq!(possible, 20_000 - 4 - 4 * 5);
}

/// Few files are open at once, however many are read.
#[test]
fn few_files_are_open_at_once() {
    let schema = schema(&[DataType::Double], 0);
    let (_memory, disk) = disk();
    let cache = BlockCache::new(0);
    let values: Vec<Value> = (0..3).map(|i| Value::Double(f64::from(i) / 7.0)).collect();
    let many = limits::SEGMENT_FILES_OPEN_MAX as u64 + 50;
    let segments: Vec<_> = (1..=many)
        .map(|id| {
            let meta = write(&disk, id, &schema, std::slice::from_ref(&values));
            Segment::open(SegmentMeta { id: ContainerId(id), ..meta }, Arc::clone(&disk), Arc::clone(&cache))
        })
        .collect();
    for segment in segments.iter().chain(&segments) {
        assert_eq!(segment.value(&schema.columns[0], 1).unwrap(), values[1]);
        let open = (1..=many).filter(|id| cache.files().file(FileId(*id), &disk).is_open()).count();
        assert!(open <= limits::SEGMENT_FILES_OPEN_MAX, "{open}");
    }
}

/// What was just written is open, as far as there is room, and the same as what was read back.
#[test]
fn a_written_segment_is_open() {
    let (schema, mut columns) = wide(20_000);
    // A column without a block among them.
    columns[3] = vec![Value::Double(1.0); 20_000];
    let arrays = super::arrays(&schema, &columns);
    let whole = {
        let (_memory, disk) = disk();
        write(&disk, 1, &schema, &columns).bytes()
    };
    for room in [64 << 20, whole / 2, 0] {
        let (_memory, disk) = disk();
        let cache = BlockCache::new(room);
        let (id, file, encodings) = (ContainerId(1), FileId(1), Encodings::Smallest);
        let place = SegmentPlace { disk: &disk, id, file, threads: 1, encodings, symbols: None };
        let made = create_segment(place, &cache, &schema, &arrays, 32 << 20).unwrap();
        made.keep();
        let bytes = cache.stats().bytes;
        assert!(bytes <= room && (bytes > whole / 4 || room == 0) && (bytes > whole || room < whole), "{bytes}");
        for (column, values) in schema.columns.iter().zip(&columns) {
            let array = made.read(column, 0..20_000).unwrap();
            assert_eq!(&array, &array_of(values.iter(), column.data_type).unwrap());
        }
        for i in 0..200 {
            let offset = (mixed(i) % 20_000) as u32;
            let expected: Vec<_> = columns.iter().map(|c| c[offset as usize].clone()).collect();
            assert_eq!(row(&made, &schema, offset).unwrap(), expected);
        }
        let hash = |key: i64| {
            let mut encoded = Vec::new();
            KeyCodec::new(&schema, &schema.primary_key).encode_values(&[Value::Int(key)], &mut encoded).unwrap();
            hash_key(&encoded)
        };
        let Value::Int(key) = columns[0][77] else { panic!("no key") };
        assert!(made.may_contain_key(hash(key)).unwrap());
        assert!((0..100).any(|key| !made.may_contain_key(hash(-1 - key)).unwrap()));
        assert_eq!(cache.stats().blocks_read == 0, room > whole, "{:?}", cache.stats());
        made.verify(&schema).unwrap();
    }
}

/// What is lent to the cache is given back at once.
#[test]
fn a_cache_that_becomes_smaller_evicts() {
    let (schema, columns) = wide(20_000);
    let (_memory, disk) = disk();
    let meta = write(&disk, 1, &schema, &columns);
    let segment = open(&disk, &meta, 64 << 20);
    schema.columns.iter().for_each(|column| drop(segment.read(column, 0..1).unwrap()));
    let before = segment.cache().stats();
    segment.cache().resize(before.bytes / 2);
    let after = segment.cache().stats();
    assert!(after.bytes <= before.bytes / 2 && after.bytes > before.bytes / 4, "{after:?}");
    segment.cache().resize(0);
    assert_eq!(segment.cache().stats().bytes, 0);
    for offset in [0, 19_999] {
        let expected: Vec<_> = columns.iter().map(|c| c[offset as usize].clone()).collect();
        assert_eq!(row(&segment, &schema, offset).unwrap(), expected);
    }
}
