//! The log of a database that was closed: whatever is flipped, cut off or zeroed at its end, and whichever file of it
//! is gone, is told by name, and nothing is changed by whoever only looked.
//!
//! `MAINSTEM_SIM_SEED` sets the first database, `MAINSTEM_SIM_CORRUPT_SECONDS` how long the campaign may take.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstem_sim::SimDisk;
use mainstem_sim::model::{Driver, Found};
use mainstem_storage::disk::Disk;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::LogPosition;
use mainstem_storage::wal::LogReader;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{End, database, files};
use crate::model::number;

fn bytes_of(disk: &SimDisk, path: &str) -> Vec<u8> {
    let file = disk.open(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn all_files(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    files(disk).into_iter().map(|path| (path.clone(), bytes_of(disk, &path))).collect()
}

/// The log of a closed database.
struct ClosedLog {
    driver: Driver,
    disk: SimDisk,
    /// The newest file, and its bytes.
    path: String,
    bytes: Vec<u8>,
    /// Where its records begin, and where the last one ends.
    records: Vec<usize>,
}

impl ClosedLog {
    /// Of the database of `seed`, if its newest log file has several records.
    fn new(seed: u64) -> Option<Self> {
        let (driver, disk) = database(seed, End::Closed);
        let path = files(&disk).into_iter().rfind(|path| path.starts_with("wal/")).unwrap();
        let bytes = bytes_of(&disk, &path);
        let first = u64::from_le_bytes(bytes[32..40].try_into().unwrap());
        let offset = |position: LogPosition| (position.0 - first) as usize;
        let found: Vec<_> = LogReader::open(&disk, LogPosition(first)).unwrap().map(|record| record.unwrap()).collect();
        let mut records: Vec<usize> = found.iter().map(|record| offset(record.position)).collect();
        records.extend(found.last().map(|record| offset(record.end_position)));
        assert!(records.last().is_none_or(|end| *end == bytes.len()));
        (records.len() > 3).then_some(Self { driver, disk, path, bytes, records })
    }

    /// Opens the database with other bytes in its newest log file: an error names that file, and no file is touched.
    /// False when the bytes are the same, or differ only where no restart reads them.
    fn names(&self, what: &str, bytes: Vec<u8>) -> bool {
        if bytes == self.bytes {
            return false;
        }
        let last = self.records[self.records.len() - 2];
        let reaches_last = bytes.len() != self.bytes.len() || bytes[last..] != self.bytes[last..];
        let damaged = self.disk.process_kill();
        damaged.damage(&self.path, |log| *log = bytes).unwrap();
        let before = all_files(&damaged);
        match self.driver.inspect(Arc::new(damaged.clone())) {
            Ok(Found::Named(e)) => {
                assert_eq!(e.sqlstate(), sqlstate::CORRUPT, "{what}: {e}");
                assert!(e.message().contains(&self.path), "{what}: {e}");
            }
            // The checkpoint needs no record before the last one.
            Ok(Found::Whole) if !reaches_last => return false,
            other => panic!("{what} of {}: {other:?}", self.path),
        }
        assert!(all_files(&damaged) == before, "{what}: files were changed");
        true
    }

    fn changed(&self, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        change(&mut bytes);
        bytes
    }
}

#[test]
fn damage_to_the_end_of_a_closed_log_is_named() {
    let first = number("MAINSTEM_SIM_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("MAINSTEM_SIM_CORRUPT_SECONDS", 15));
    let (mut seed, mut damages) = (first, 0u64);
    while damages == 0 || Instant::now() < end {
        let Some(log) = ClosedLog::new(seed) else {
            seed += 1;
            continue;
        };
        let mut rng = StdRng::seed_from_u64(seed);
        let [.., last, len] = log.records[..] else { unreachable!() };
        let context = |what: String| format!("MAINSTEM_SIM_SEED={seed}: {what}");
        // Each length that cuts into the last record, each that leaves whole records, some of the others, and none.
        let mut lengths: Vec<usize> = (last..len).chain(log.records[..log.records.len() - 1].to_vec()).collect();
        lengths.extend([0, 1, 63, 64, 65].into_iter().chain((0..60).map(|_| rng.random_range(0..len))));
        for at in lengths {
            damages += u64::from(log.names(&context(format!("cut to {at} of {len} bytes")), log.bytes[..at].to_vec()));
        }
        for at in (0..64).step_by(5).chain(last..len) {
            let flipped = log.changed(|bytes| bytes[at] ^= 1 << rng.random_range(0..8));
            damages += u64::from(log.names(&context(format!("a bit of byte {at} of {len} flipped")), flipped));
        }
        let starts = log.records[..log.records.len() - 1].iter().copied().chain((last..len).step_by(7)).chain([0, 64]);
        for at in starts {
            let zeroed = log.changed(|bytes| bytes[at..].fill(0));
            damages += u64::from(log.names(&context(format!("zeros from byte {at} of {len} on")), zeroed));
            // A sector that was never written, and what a file system may put in the place of lost bytes.
            let sector =
                log.changed(|bytes| bytes[at..(at + 512).min(len)].iter_mut().for_each(|byte| *byte = rng.random()));
            damages += u64::from(log.names(&context(format!("rubbish from byte {at} of {len} on")), sector));
        }
        seed += 1;
    }
    println!("seeds {first}..{seed}: {damages} damages, all named");
    assert!(damages > 200);
}

/// Files of the log that are gone, one, some or all of them, are missed.
#[test]
fn a_closed_log_that_has_lost_files_is_named() {
    for seed in 1..6 {
        let (driver, disk) = database(seed, End::Closed);
        let log: Vec<String> = files(&disk).into_iter().filter(|path| path.starts_with("wal/")).collect();
        for from in 0..log.len() {
            let copy = disk.process_kill();
            log[from..].iter().for_each(|path| copy.remove(path).unwrap());
            match driver.inspect(Arc::new(copy)) {
                Ok(Found::Named(e)) => assert_eq!(e.sqlstate(), sqlstate::CORRUPT, "{e}"),
                other => panic!("MAINSTEM_SIM_SEED={seed}: without {:?}: {other:?}", &log[from..]),
            }
        }
    }
}

/// The mark that says where the log ends is believed when it is whole, missed by nobody when it is gone, and refused
/// when it is damaged.
#[test]
fn a_damaged_end_mark_is_named() {
    let (driver, disk) = database(1, End::Closed);
    let sound = bytes_of(&disk, "LOG_END");
    let mut damaged: Vec<Vec<u8>> = (0..sound.len()).map(|len| sound[..len].to_vec()).collect();
    damaged.extend((0..sound.len() * 8).map(|bit| {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    }));
    damaged.push([&sound[..], &[0]].concat());
    damaged.push(vec![0; sound.len()]);
    for bytes in damaged {
        let copy = disk.process_kill();
        copy.damage("LOG_END", |mark| *mark = bytes).unwrap();
        match driver.inspect(Arc::new(copy)) {
            Ok(Found::Named(e)) => assert!(e.message().contains("file LOG_END is damaged at byte"), "{e}"),
            other => panic!("{other:?}"),
        }
    }
    let copy = disk.process_kill();
    copy.remove("LOG_END").unwrap();
    assert!(matches!(driver.inspect(Arc::new(copy)), Ok(Found::Whole)));
}
