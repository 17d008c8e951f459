//! What certain encodings promise: vectors of rows that differ, texts and floats of which only some are alike, sizes,
//! memory, and the choice among them.

use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, StringArray};
use proptest::prelude::*;

use super::conformance::check;
use super::{ENCODINGS, disk, schema, write, write_with};
use crate::ids::{ContainerId, FileId};
use crate::row::Value;
use crate::schema::DataType;
use crate::segment::{BlockCache, Encoding, Segment, SegmentMeta, SegmentPlace, write_segment};
use crate::settings::Encodings;

const TEXT: DataType = DataType::Text { max_chars: None };

fn mixed(i: usize) -> u64 {
    mainstem_kernels::hash::hash_u64(i as u64)
}

fn of(data_type: DataType, values: &[Value], encodings: Encodings) -> (SegmentMeta, Arc<Segment>) {
    let schema = schema(&[data_type], 0);
    let (_memory, disk) = disk();
    let meta = write_with(encodings, &disk, 1, &schema, &[values.to_vec()]);
    (meta.clone(), Segment::open(meta, disk, BlockCache::new(64 << 20)))
}

/// Sentences of a few words.
fn sentence(i: usize) -> String {
    const WORDS: [&str; 12] = [
        "carefully",
        "final",
        "deposits",
        "sleep",
        "quickly",
        "above",
        "the",
        "furiously",
        "regular",
        "accounts",
        "haggle",
        "foxes",
    ];
    (0..3 + mixed(i) as usize % 6)
        .map(|n| WORDS[mixed(i * 31 + n) as usize % WORDS.len()])
        .collect::<Vec<_>>()
        .join(" ")
}

/// Vectors of few bits, of none, of many, of NULLs alone, and one that is not full.
#[test]
fn vectors_of_every_kind() {
    let value = |i: usize| match i / 1024 {
        0 => Value::Int(1_000 + (mixed(i) % 100) as i64),
        1 => Value::Int(5_000_000),
        2 => Value::Null,
        3 if i.is_multiple_of(3) => Value::Null,
        3 => Value::Int(-(i as i64)),
        _ => Value::Int((mixed(i) % (1 << 40)) as i64),
    };
    let values: Vec<Value> = (0..4_500).map(value).collect();
    let constants = [Value::Int(1_050), Value::Int(5_000_000), Value::Int(-3_100), Value::Int(1 << 39)];
    check(DataType::BigInt, &values, &constants);
    let (meta, _) = of(DataType::BigInt, &values, Encodings::Smallest);
    assert!(matches!(meta.columns[0].encoding, Encoding::VectorFrames { .. }), "{:?}", meta.columns[0].encoding);
    let decimal = |value: &Value| match value {
        Value::Int(v) => Value::Decimal(i128::from(*v) << 20),
        _ => Value::Null,
    };
    let wide: Vec<Value> = values.iter().map(decimal).collect();
    let constants: Vec<Value> = constants.iter().map(decimal).collect();
    check(DataType::Decimal { precision: 38, scale: 2 }, &wide, &constants);
}

/// Texts of hundreds of bytes, whose beginnings repeat and whose ends differ, in symbols, beside short ones and none.
#[test]
fn long_texts_in_symbols() {
    let text = |i: usize| match i % 5 {
        0 => Value::Null,
        1 => Value::Text(i.to_string().into()),
        _ => Value::Text(sentence(i).repeat(1 + i % 23).into()),
    };
    let values: Vec<Value> = (0..1_500).map(text).collect();
    let constants = [text(2), text(98), Value::Text("carefully".into()), Value::Text("".into())];
    check(TEXT, &values, &constants);
    let (meta, _) = of(TEXT, &values, Encodings::Smallest);
    assert!(matches!(meta.columns[0].encoding, Encoding::Symbols { .. }), "{:?}", meta.columns[0].encoding);
}

/// Decimals of which one vector ends more than 64 bits above the least value, though it begins within, and the same
/// with one that ends just there.
#[test]
fn vectors_that_end_beyond_64_bits() {
    let least = -9_900_000_000_000_000_000i128;
    for (end, is_framed) in [(i128::from(u64::MAX), true), (i128::from(u64::MAX) + 1, false)] {
        let value = |i: usize| match i {
            0..1024 => least + (mixed(i) % 5) as i128 * i128::from(i != 0),
            2047 => least + end,
            _ => least + end - i128::from(mixed(i) >> 1),
        };
        let values: Vec<Value> = (0..2_048).map(|i| Value::Decimal(value(i))).collect();
        let data_type = DataType::Decimal { precision: 20, scale: 0 };
        check(data_type, &values, &[Value::Decimal(least), Value::Decimal(least + end), Value::Decimal(0)]);
        let (meta, _) = of(data_type, &values, Encodings::Smallest);
        let encoding = &meta.columns[0].encoding;
        assert_eq!(matches!(encoding, Encoding::VectorFrames { .. }), is_framed, "{encoding:?}");
    }
}

/// Equal keys over several vectors.
#[test]
fn equal_keys_across_vectors_are_found() {
    let values: Vec<i64> = (0..6_000i64).map(|i| i / 2_500 * 1_000_000 + i64::from(i >= 5_990)).collect();
    let column: Vec<Value> = values.iter().map(|v| Value::Int(*v)).collect();
    let (_, segment) = of(DataType::BigInt, &column, Encodings::Decoded);
    let block = segment.block(0).unwrap();
    for sought in [-1, 0, 1, 1_000_000, 1_999_999, 2_000_000, 2_000_001, 2_000_002] {
        for rows in [0..6_000, 100..5_995, 2_400..2_600, 1_024..4_096] {
            let part = &values[rows.clone()];
            let first = rows.start + part.partition_point(|v| *v < sought);
            let end = rows.start + part.partition_point(|v| *v <= sought);
            assert_eq!(
                block.equal_range(&Value::Int(sought), rows.clone()).unwrap(),
                first..end,
                "{sought} in {rows:?}"
            );
        }
    }
}

/// The ends of each integer type, in vectors of their own and beside each other.
#[test]
fn vectors_at_the_ends_of_types() {
    for (data_type, least, greatest) in [
        (DataType::SmallInt, i64::from(i16::MIN), i64::from(i16::MAX)),
        (DataType::Integer, i32::MIN.into(), i32::MAX.into()),
        (DataType::BigInt, i64::MIN, i64::MAX),
    ] {
        let value = |i: usize| match i {
            0..1024 => Value::Int(least + (i % 2) as i64),
            1024..2048 => Value::Int(greatest - (i % 3) as i64),
            _ => Value::Int(if i.is_multiple_of(2) { least } else { greatest }),
        };
        let values: Vec<Value> = (0..2_100).map(value).collect();
        check(data_type, &values, &[Value::Int(least), Value::Int(greatest), Value::Int(0)]);
    }
}

/// Keys of several vectors are found in the middle of them and where they meet.
#[test]
fn ascending_vectors_are_searched() {
    let values: Vec<i64> = (0..5_000i64).map(|i| if i < 2_000 { i * 2 } else { i * 1_000 + i % 7 / 3 }).collect();
    let column: Vec<Value> = values.iter().map(|v| Value::Int(*v)).collect();
    for encodings in ENCODINGS {
        let (_, segment) = of(DataType::BigInt, &column, encodings);
        let block = segment.block(0).unwrap();
        for sought in values.iter().step_by(13).flat_map(|v| [v - 1, *v, v + 1]).chain([i64::MIN, i64::MAX]) {
            for rows in [0..5_000, 1_000..3_000, 1_024..2_048, 1_024..4_096, 700..5_000, 0..4_999, 7..7] {
                let part = &values[rows.clone()];
                let first = rows.start + part.partition_point(|v| *v < sought);
                let end = rows.start + part.partition_point(|v| *v <= sought);
                let found = block.equal_range(&Value::Int(sought), rows.clone()).unwrap();
                assert_eq!(found, first..end, "{sought} in {rows:?}");
            }
        }
    }
}

/// Rows that ascend among others that do not, as those of a key's second column do.
#[test]
fn ascending_rows_among_others_are_searched() {
    let values: Vec<i64> =
        (0..9_000i64).map(|i| if (1_500..6_500).contains(&i) { i * 3 } else { i * 7_919 % 40_000 }).collect();
    let column: Vec<Value> = values.iter().map(|v| Value::Int(*v)).collect();
    let (_, segment) = of(DataType::BigInt, &column, Encodings::Decoded);
    let block = segment.block(0).unwrap();
    for rows in [1_500..6_500, 1_501..2_049, 2_048..6_144, 3_000..3_001] {
        for sought in (4_000..20_000).step_by(7) {
            let part = &values[rows.clone()];
            let first = rows.start + part.partition_point(|v| *v < sought);
            let end = rows.start + part.partition_point(|v| *v <= sought);
            let found = block.equal_range(&Value::Int(sought), rows.clone()).unwrap();
            assert_eq!((found.start, found.len()), (first, end - first), "{sought} in {rows:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    /// Vectors with their own spread, offset and NULLs.
    #[test]
    fn vectors_answer_like_the_values(
        vectors in prop::collection::vec((any::<i32>(), 0u32..40, 0u8..4), 1..4),
        last in 1usize..1024,
    ) {
        let value = |i: usize| {
            let (offset, bits, nulls) = vectors[i / 1024];
            match mixed(i) % 8 {
                n if n < u64::from(nulls) => Value::Null,
                _ => Value::Int(i64::from(offset) + (mixed(i + 7) & ((1 << bits) - 1)) as i64),
            }
        };
        let rows = (vectors.len() - 1) * 1024 + last;
        let values: Vec<Value> = (0..rows).map(value).collect();
        let constants = [values[0].clone(), values[rows / 2].clone(), Value::Int(vectors[0].0.into())];
        check(DataType::BigInt, &values, &constants);
    }

    /// Decimals of some digits with others between them.
    #[test]
    fn floats_answer_like_the_values(
        digits in 0i32..8,
        others in prop::collection::vec(prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(1e-300)], 0..30),
        rows in 1usize..3_000,
    ) {
        let value = |i: usize| match others.get(mixed(i) as usize % 500) {
            Some(other) => if other.is_nan() { f64::NAN } else { other + 0.0 },
            None => (mixed(i) % 100_000) as f64 / 10f64.powi(digits),
        };
        let null = |i: usize| mixed(i + 9).is_multiple_of(11);
        let doubles: Vec<Value> = (0..rows).map(|i| if null(i) { Value::Null } else { Value::Double(value(i)) }).collect();
        let small = |v: f64| if v.is_nan() { f32::NAN } else { v as f32 + 0.0 };
        let reals: Vec<Value> = (0..rows).map(|i| if null(i) { Value::Null } else { Value::Real(small(value(i))) }).collect();
        check(DataType::Double, &doubles, &[Value::Double(0.5), Value::Double(f64::NAN)]);
        check(DataType::Real, &reals, &[Value::Real(0.5), Value::Real(f32::NAN)]);
    }

    /// Any bytes, of which symbols may or may not be found.
    #[test]
    fn bytes_answer_like_the_values(
        pool in prop::collection::vec(prop::collection::vec(prop_oneof![Just(0u8), Just(255u8), 97u8..100, any::<u8>()], 0..40), 1..20),
        rows in 1usize..700,
    ) {
        let value = |i: usize| Value::Bytes([pool[mixed(i) as usize % pool.len()].as_slice(), &i.to_le_bytes()[..i % 3]].concat().into());
        let values: Vec<Value> = (0..rows).map(|i| if mixed(i + 3).is_multiple_of(9) { Value::Null } else { value(i) }).collect();
        check(DataType::Bytea, &values, &[value(0), value(rows)]);
    }
}

/// What takes more steps to read has to be smaller by an eighth, and is chosen then.
#[test]
fn the_smaller_one_is_chosen() {
    let chosen = |data_type, values: Vec<Value>| {
        let (meta, _) = of(data_type, &values, Encodings::Smallest);
        (meta.columns[0].encoding.name(), meta.bytes())
    };
    let ints = |f: &dyn Fn(usize) -> u64| (0..20_000).map(|i| Value::Int(f(i) as i64)).collect::<Vec<_>>();
    let texts = |f: &dyn Fn(usize) -> String| (0..20_000).map(|i| Value::Text(f(i).into())).collect::<Vec<_>>();
    let doubles = |f: &dyn Fn(usize) -> f64| (0..20_000).map(|i| Value::Double(f(i))).collect::<Vec<_>>();
    assert_eq!(chosen(DataType::BigInt, ints(&|i| i as u64 * 3)).0, "frames by vector");
    assert_eq!(chosen(DataType::BigInt, ints(&|i| mixed(i) >> 40)).0, "frame of reference");
    assert_eq!(chosen(DataType::BigInt, ints(&|i| i as u64 / 1_024 * (1 << 40))).0, "frames by vector");
    assert_eq!(chosen(DataType::BigInt, ints(&mixed)).0, "plain");
    let (name, bytes) = chosen(TEXT, texts(&|i| format!("{} {i}", sentence(i))));
    let plain: usize = (0..20_000).map(|i| format!("{} {i}", sentence(i)).len()).sum();
    assert_eq!(name, "symbols");
    assert!(bytes < plain as u64 / 2, "{bytes} of {plain}");
    assert_eq!(chosen(TEXT, texts(&|i| format!("{:016x}", mixed(i)))).0, "symbols", "hexadecimal digits");
    let random = |i: usize| Value::Bytes([mixed(i).to_le_bytes(), mixed(i + 20_000).to_le_bytes()].concat().into());
    assert_eq!(chosen(DataType::Bytea, (0..20_000).map(random).collect()).0, "plain");
    assert_eq!(chosen(TEXT, texts(&|i| sentence(i % 50))).0, "dictionary");
    assert_eq!(chosen(DataType::Double, doubles(&|i| (mixed(i) % 10_000_000) as f64 / 100.0)).0, "scaled floats");
    assert_eq!(chosen(DataType::Double, doubles(&|i| (mixed(i) as f64).sqrt())).0, "plain");
    assert_eq!(chosen(DataType::Double, doubles(&|i| (mixed(i) % 4) as f64)).0, "dictionary");
    // The values of a dictionary have symbols too, where they are long.
    let (meta, _) = of(TEXT, &texts(&|i| format!("{} {}", sentence(i % 900), i % 900)), Encodings::Smallest);
    assert!(matches!(meta.columns[0].encoding, Encoding::Dictionary { symbol_bytes: 1.., distinct: 900, .. }));
}

/// What was decoded does not keep the bytes it was decoded from, and is counted with what it takes.
#[test]
fn decoded_blocks_weigh_what_they_take() {
    let texts: Vec<Value> =
        (0..20_000).map(|i| if i % 10 == 0 { Value::Null } else { Value::Text(sentence(i).into()) }).collect();
    let heap: usize = (0..20_000).filter(|i| i % 10 != 0).map(|i| sentence(i).len()).sum();
    let (meta, segment) = of(TEXT, &texts, Encodings::Decoded);
    assert!(meta.bytes() < heap as u64 / 2);
    let memory = segment.block(0).unwrap().memory();
    // Texts, views, NULLs.
    let expected = heap + 20_000 * 16 + 20_000 / 8;
    assert!((expected..expected + 1_000).contains(&memory), "{memory}, {expected} expected");
    let doubles: Vec<Value> = (0..20_000).map(|i| Value::Double(f64::from(i) / 4.0)).collect();
    let (_, segment) = of(DataType::Double, &doubles, Encodings::Decoded);
    let memory = segment.block(0).unwrap().memory();
    assert!((160_000..161_000).contains(&memory), "{memory}");
}

/// A row that is read from pages decodes its own value, from few pages.
#[test]
fn single_rows_of_decoded_blocks_are_read_from_few_pages() {
    let rows = 100_000;
    let columns: [(DataType, Vec<Value>); 3] = [
        (TEXT, (0..rows).map(|i| Value::Text(sentence(i).into())).collect()),
        (DataType::Double, (0..rows).map(|i| Value::Double((mixed(i) % 1_000_000) as f64 / 100.0)).collect()),
        (DataType::BigInt, (0..rows).map(|i| Value::Int((i * 1_000) as i64 + (mixed(i) % 5_000) as i64)).collect()),
    ];
    for (data_type, values) in columns {
        let schema = schema(&[data_type], 0);
        let (_memory, disk) = disk();
        let meta = write(&disk, 1, &schema, std::slice::from_ref(&values));
        assert!(!matches!(meta.columns[0].encoding, Encoding::Plain { .. } | Encoding::FrameOfReference { .. }));
        let segment = Segment::open(meta, disk, BlockCache::new(1_000));
        for look in 0..500 {
            let row = mixed(look) as usize % rows;
            assert_eq!(segment.value(&schema.columns[0], row as u32).unwrap(), values[row]);
        }
        let stats = segment.cache().stats();
        assert!(stats.blocks_read == 0 && stats.page_reads <= 500 * 5, "{stats:?}");
    }
}

/// Codes of somebody else's dictionary, which has texts twice, in any order, and some that no row has: the segment is
/// that of the texts.
#[test]
fn codes_of_any_dictionary_are_those_of_the_texts() {
    let texts = ["pear", "apple", "", "apple", "never", "a text that is longer than a view holds", "pear", "fig"];
    let schema = schema(&[TEXT], 0);
    let used: &[&[i32]] = &[&[0, 1, 2, 3, 5, 6, 7], &[1, 3], &[7], &[2]];
    for (used, has_nulls) in used.iter().flat_map(|used| [(*used, false), (*used, true)]) {
        let code = |row: usize| (!has_nulls || !row.is_multiple_of(5)).then(|| used[mixed(row) as usize % used.len()]);
        let codes: Int32Array = (0..3_000).map(code).collect();
        let values: Vec<Value> = codes
            .iter()
            .map(|code| code.map_or(Value::Null, |code| Value::Text(texts[code as usize].into())))
            .collect();
        let coded = DictionaryArray::new(codes, Arc::new(StringArray::from(texts.to_vec())) as ArrayRef);
        let (_memory, disk) = disk();
        let expected = write(&disk, 1, &schema, &[values]);
        let place = SegmentPlace {
            disk: &disk,
            id: ContainerId(1),
            file: FileId(2),
            threads: 1,
            encodings: Encodings::Smallest,
            symbols: None,
        };
        let meta = write_segment(place, &schema, &[Arc::new(coded)]).unwrap();
        let sums =
            |meta: &SegmentMeta| meta.columns.iter().map(|column| column.block.map(|b| b.checksum)).collect::<Vec<_>>();
        assert_eq!(sums(&meta), sums(&expected), "{used:?} {has_nulls}");
        assert_eq!(meta.columns[0].encoding, expected.columns[0].encoding);
        assert_eq!(meta.columns[0].distinct, expected.columns[0].distinct);
    }
}
