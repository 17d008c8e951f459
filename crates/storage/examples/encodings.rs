//! Bytes and times of encodings: `cargo run --release -p mainstem-storage --example encodings [FILE]`, where FILE has a
//! text in each line.
//!
//! Prints for each column what its block takes, and nanoseconds a row to write it, to open it, to read all of it and to
//! select a tenth of it: the smallest encoding first, then with those that have to be decoded or are by vector.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement fails by panicking")]

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, StringViewArray};
use mainstem_storage::disk::{DATA_DIR, Disk, MemDisk};
use mainstem_storage::ids::{ColumnId, ContainerId, FileId, TableId};
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::row::{Value, value_of};
use mainstem_storage::schema::{Column, DataType, TableSchema};
use mainstem_storage::segment::{BlockCache, Segment, SegmentPlace, write_segment};
use mainstem_storage::settings::Encodings;

const ROWS: usize = 131_072;
const REPEATS: usize = 7;

fn main() {
    let mut columns: Vec<(&str, DataType, ArrayRef)> = Vec::new();
    if let Some(path) = std::env::args().nth(1) {
        let file = std::fs::read_to_string(path).expect("a file of texts");
        let texts: StringViewArray = file.lines().take(ROWS).map(Some).collect();
        columns.push(("texts of the file", DataType::Text { max_chars: None }, Arc::new(texts)));
    }
    let mixed = |i: i64| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let ints =
        |value: &dyn Fn(i64) -> i64| -> ArrayRef { Arc::new((0..ROWS as i64).map(value).collect::<Int64Array>()) };
    columns.push(("keys that ascend", DataType::BigInt, ints(&|i| i * 3)));
    columns.push(("numbers of 18 bits", DataType::BigInt, ints(&|i| (mixed(i) % 200_000) as i64)));
    columns.push(("clusters of 12 bits", DataType::BigInt, ints(&|i| ((i / 1_024) << 20) + (mixed(i) % 4_096) as i64)));
    let prices: Decimal128Array = (0..ROWS as i64).map(|i| i128::from(mixed(i) % 10_000_000)).collect();
    let prices = prices.with_precision_and_scale(15, 2).unwrap();
    columns.push(("decimals of 24 bits", DataType::Decimal { precision: 15, scale: 2 }, Arc::new(prices)));
    let doubles: Float64Array = (0..ROWS as i64).map(|i| (mixed(i) % 10_000_000) as f64 / 100.0).collect();
    columns.push(("decimals in doubles", DataType::Double, Arc::new(doubles)));
    println!(
        "{:<20} {:<20} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "column", "encoding", "bytes", "write", "open", "read", "select"
    );
    for (name, data_type, array) in columns {
        for encodings in [Encodings::Smallest, Encodings::Decoded] {
            measure(name, data_type, &array, encodings);
        }
    }
}

fn measure(name: &str, data_type: DataType, array: &ArrayRef, encodings: Encodings) {
    let column = Column::new(ColumnId(1), "c", data_type, true);
    let schema = TableSchema::new(TableId(1), "t", vec![column.clone()]);
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    disk.create_dir(DATA_DIR).unwrap();
    let rows = array.len() as u32;
    let mut id = 0;
    let (write, meta) = best(|| {
        id += 1;
        let place =
            SegmentPlace { disk: &disk, id: ContainerId(id), file: FileId(id), threads: 1, encodings, symbols: None };
        write_segment(place, &schema, std::slice::from_ref(array)).unwrap()
    });
    let open_segment = || {
        let segment = Segment::open(meta.clone(), disk.clone(), BlockCache::new(1 << 30));
        segment.read(&column, 0..1).unwrap();
        segment
    };
    let (open, segment) = best(open_segment);
    let (read, _) = best(|| {
        for start in (0..rows).step_by(8_192) {
            std::hint::black_box(segment.read(&column, start..rows.min(start + 8_192)).unwrap());
        }
    });
    let mut some: Vec<Value> =
        (0..array.len()).step_by(97).map(|row| value_of(array.as_ref(), data_type, row).unwrap()).collect();
    some.sort();
    let predicate = Predicate::Compare { column: column.id, op: CompareOp::Lt, value: some[some.len() / 10].clone() };
    let (select, _) = best(|| {
        for start in (0..rows).step_by(8_192) {
            std::hint::black_box(segment.select(&predicate, &column, start..rows.min(start + 8_192)).unwrap());
        }
    });
    let each = |ns: f64| ns / f64::from(rows);
    let (bytes, encoding) = (meta.bytes(), meta.columns[0].encoding.name());
    let (write, open, read, select) = (each(write), each(open), each(read), each(select));
    println!("{name:<20} {encoding:<20} {bytes:>9} {write:>8.2} {open:>8.2} {read:>8.2} {select:>8.2}");
}

/// The least nanoseconds of some runs, and what the last one gave.
fn best<T>(mut run: impl FnMut() -> T) -> (f64, T) {
    let mut least = f64::MAX;
    let mut last = None;
    for _ in 0..REPEATS {
        let start = Instant::now();
        last = Some(run());
        least = least.min(start.elapsed().as_nanos() as f64);
    }
    (least, last.expect("one run at least"))
}
