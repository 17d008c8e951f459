//! The block cache under threads: its bound is kept at every moment, what does not fit it is not read again and again,
//! what it holds weighs what is counted, and a file is opened once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use arrow_array::Array;

use super::{arrays, disk, schema, write};
use crate::database::testing::DoneOnDrop;
use crate::disk::{Disk, DiskFile, DiskLock, MemDisk};
use crate::error::Result;
use crate::ids::{ContainerId, FileId};
use crate::row::Value;
use crate::schema::{DataType, TableSchema};
use crate::segment::cache::{OpenBlock, Place};
use crate::segment::{BlockCache, Segment, SegmentPlace, create_segment};
use crate::settings::Encodings;

/// Numbers of which no two are alike, in `columns` columns of `rows` rows.
fn numbers(columns: usize, rows: u32) -> (TableSchema, Vec<Vec<Value>>) {
    let value = |column: usize, row: u32| Value::Double((f64::from(row) * columns as f64 + column as f64) / 7.0);
    let values = (0..columns).map(|column| (0..rows).map(|row| value(column, row)).collect()).collect();
    (schema(&vec![DataType::Double; columns], 0), values)
}

/// Blocks are put in while the bound falls and rises: whoever looks sees no more than what may be held. The writers go
/// on until the one who looks has seen enough.
#[test]
fn the_bound_holds_while_it_is_moved() {
    const ROUNDS: u64 = 120;
    const PUTS: u64 = 100_000;
    let (schema, columns) = numbers(6, 500);
    let (_memory, disk) = disk();
    let meta = write(&disk, 1, &schema, &columns);
    let cache = BlockCache::new(0);
    let segment = Segment::open(meta, disk, Arc::clone(&cache));
    let blocks: Vec<_> = (0..6).map(|at| segment.block(at).unwrap()).collect();
    let (puts, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _done = DoneOnDrop(&done);
        for thread in 0..3 {
            let (segment, blocks, cache, puts, done) = (&segment, &blocks, &cache, &puts, &done);
            scope.spawn(move || {
                for i in (0..6).cycle().skip(thread).take_while(|_| !done.load(Ordering::Relaxed)) {
                    cache.put(segment.open_blocks(), Place::Column(i), OpenBlock::Column(blocks[i].clone()));
                    puts.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut round = 0;
        while round < ROUNDS || puts.load(Ordering::Relaxed) < PUTS {
            let bytes_max = round % 6 * 4_500;
            round += 1;
            cache.resize(bytes_max);
            for _ in 0..round % 20 {
                let stats = cache.stats();
                assert_eq!(stats.bytes_max, bytes_max);
                assert!(stats.bytes <= bytes_max, "round {round}: {stats:?}");
            }
        }
    });
}

/// To put in a block, or to push one out, copies a few places, not those of hundreds of columns.
#[test]
fn blocks_of_wide_segments_come_and_go_without_the_others() {
    const COLUMNS: usize = 100;
    let (schema, columns) = numbers(COLUMNS, 500);
    let (_memory, disk) = disk();
    let meta = write(&disk, 1, &schema, &columns);
    let cache = BlockCache::new(0);
    let segment = Segment::open(meta, disk, Arc::clone(&cache));
    let blocks: Vec<_> = (0..COLUMNS).map(|at| segment.block(at).unwrap()).collect();
    cache.resize(u64::MAX / 2);
    let open = segment.open_blocks();
    let changed = |change: &dyn Fn()| {
        let before = open.hold();
        change();
        let after = open.hold().groups();
        (before.groups().len(), before.groups().iter().zip(&after).filter(|(before, after)| before != after).count())
    };
    for at in (0..COLUMNS).rev() {
        let put = || cache.put(open, Place::Column(at), OpenBlock::Column(blocks[at].clone()));
        assert_eq!(changed(&put), (7, 1), "{at}");
        assert_eq!(changed(&put), (7, 0), "it is there");
    }
    let is_open = |at: usize| open.column(at).is_some_and(|block| Arc::ptr_eq(&block, &blocks[at]));
    assert!((0..COLUMNS).all(is_open) && open.column(COLUMNS).is_none());
    let bytes = cache.stats().bytes;
    assert_eq!(changed(&|| cache.resize(bytes - 1)), (7, 1));
    assert_eq!((0..COLUMNS).filter(|at| !is_open(*at)).count(), 1);
    drop(segment);
    assert_eq!(cache.stats().bytes, 0);
}

/// Whoever moves the bound by what it found when it had its turn is not overtaken by who looked before.
#[test]
fn bounds_are_computed_one_after_the_other() {
    let cache = BlockCache::new(7);
    let (begun, next) = (Barrier::new(2), AtomicU64::new(5));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            cache.resize_by(|now| {
                let seen = next.load(Ordering::Relaxed);
                begun.wait();
                // The other one has all the time it needs.
                std::thread::sleep(Duration::from_millis(50));
                now + seen
            });
        });
        begun.wait();
        next.store(100, Ordering::Relaxed);
        cache.resize_by(|now| now + next.load(Ordering::Relaxed));
    });
    assert_eq!(cache.bytes_max(), 7 + 5 + 100);
}

/// What readers use without a pause goes too when it has to.
#[test]
fn what_is_in_use_all_the_time_is_evicted() {
    const ROUNDS: u64 = 200;
    const READS: u64 = 500_000;
    let (schema, columns) = numbers(1, 500);
    let (_memory, disk) = disk();
    let meta = write(&disk, 1, &schema, &columns);
    let cache = BlockCache::new(1 << 20);
    let segment = Segment::open(meta, disk, Arc::clone(&cache));
    let (reads, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _done = DoneOnDrop(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                segment.open_blocks().column(0);
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut round = 0;
        while round < ROUNDS || reads.load(Ordering::Relaxed) < READS {
            round += 1;
            cache.resize(1 << 20);
            segment.read(&schema.columns[0], 0..3).unwrap();
            cache.resize(10);
            assert_eq!(cache.stats().bytes, 0, "round {round}");
        }
    });
}

/// Open texts weigh more than their block in the file: one that would fit by its length and does not when it is open is
/// tried once, and again when there is more room.
#[test]
fn what_does_not_fit_when_open_is_read_in_pages() {
    let rows = 20_000;
    let value = |row: u32| Value::Text(format!("{:06}", row.wrapping_mul(2_654_435_761) % 1_000_000).into());
    let (_memory, disk) = disk();
    let schema = schema(&[DataType::Text { max_chars: None }], 0);
    let meta = write(&disk, 1, &schema, &[(0..rows).map(value).collect()]);
    let len = meta.columns[0].block.unwrap().len;
    let cache = BlockCache::new(len + len / 2);
    let segment = Segment::open(meta, disk, Arc::clone(&cache));
    let read = |count: u32| {
        for i in 0..count {
            let row = i.wrapping_mul(40_503) % rows;
            assert_eq!(segment.value(&schema.columns[0], row).unwrap(), value(row));
        }
        cache.stats().blocks_read
    };
    assert_eq!(read(3_000), 1);
    cache.resize(12 * len);
    assert_eq!(read(3_000), 2);
    assert!(cache.stats().bytes > len + len / 2);
}

/// What was kept from writing takes the memory it is counted with, not what its buffers grew to.
#[test]
fn blocks_kept_from_writing_are_no_larger_than_they_are_counted() {
    let (schema, columns) = numbers(8, 30_000);
    let (_memory, disk) = disk();
    let cache = BlockCache::new(64 << 20);
    let arrays = arrays(&schema, &columns);
    let place = SegmentPlace {
        disk: &disk,
        id: ContainerId(1),
        file: FileId(1),
        threads: 1,
        encodings: Encodings::Smallest,
        symbols: None,
    };
    let made = create_segment(place, &cache, &schema, &arrays, 32 << 20).unwrap();
    made.keep();
    let stats = cache.stats();
    let buffers = |column| made.read(column, 0..30_000).unwrap().to_data().buffers()[0].capacity();
    let taken: usize = schema.columns.iter().map(buffers).sum();
    assert_eq!(cache.stats().blocks_read, 0, "they were kept");
    // The checksums of pages stand behind what is counted.
    assert!(taken as u64 <= stats.bytes + stats.bytes / 500, "{taken} bytes for {stats:?}");
}

/// Many threads that come to a closed file open it once.
#[test]
fn a_file_is_opened_once() {
    let (schema, columns) = numbers(4, 10);
    let slow = SlowDisk { disk: disk().0, opens: Arc::default() };
    let disk: Arc<dyn Disk> = Arc::new(slow.clone());
    let meta = write(&disk, 1, &schema, &columns);
    let segment = Segment::open(meta, disk, BlockCache::new(0));
    let together = Barrier::new(4);
    std::thread::scope(|scope| {
        for column in &schema.columns {
            scope.spawn(|| {
                together.wait();
                segment.read(column, 0..10).unwrap();
            });
        }
    });
    assert_eq!(slow.opens.load(Ordering::Relaxed), 1);
}

/// A disk that takes its time to open a file, and counts.
#[derive(Clone, Debug)]
struct SlowDisk {
    disk: MemDisk,
    opens: Arc<AtomicU64>,
}

impl Disk for SlowDisk {
    fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.opens.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        self.disk.open(path)
    }
    fn create(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.disk.create(path)
    }
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &str) -> Result<()> {
        self.disk.remove(path)
    }
    fn truncate(&self, path: &str, len: u64) -> Result<()> {
        self.disk.truncate(path, len)
    }
    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list(dir)
    }
    fn list_others(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list_others(dir)
    }
    fn open_to_append(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        self.disk.open_to_append(path)
    }
    fn create_dir(&self, dir: &str) -> Result<()> {
        self.disk.create_dir(dir)
    }
    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.disk.sync_dir(dir)
    }
    fn exists(&self, path: &str) -> Result<bool> {
        self.disk.exists(path)
    }
    fn lock(&self, exclusive: bool) -> Result<DiskLock> {
        self.disk.lock(exclusive)
    }
}
