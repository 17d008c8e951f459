//! Damaged files of every kind: opening and reading everything gives the right rows or an error that names file and
//! byte. A commit may be missing only if the database was not closed, and it was the last one, above every position
//! known fsynced.

mod closed;
mod pages;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstem_sim::SimDisk;
use mainstem_sim::model::{Driver, Found, Op, Settings, Weights, generate};
use mainstem_storage::Error;
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::error::sqlstate;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::model::number;

/// How the use of a database ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
}

/// A database with manifest, several log files, segments, deltas and deletes, after its `end`.
fn database(seed: u64, end: End) -> (Driver, SimDisk) {
    let disk = SimDisk::new();
    let mut driver = Driver::new(Arc::new(disk.clone()), Settings::default()).unwrap();
    let weights = Weights { structural: 12, ddl: 2, reopen: 2, bulky: 2, background: false, lazy: false, slots: 1 };
    let mut ops = generate(&mut StdRng::seed_from_u64(seed), 90, &weights);
    ops.insert(60, Op::Checkpoint);
    for op in &ops {
        driver.step(op).unwrap();
    }
    for seed in 0..3 {
        driver.step(&Op::Insert { slot: 0, table: 0, rows: 5, flaw: mainstem_sim::model::Flaw::None, seed }).unwrap();
        driver.step(&Op::Delete { slot: 0, table: 0, seed }).unwrap();
        driver.step(&Op::Commit { slot: 0 }).unwrap();
    }
    let found = match end {
        End::Closed => {
            driver.database().unwrap().close().unwrap();
            disk
        }
        End::Killed => disk.process_kill(),
    };
    driver.abandon();
    (driver, found)
}

fn files(disk: &SimDisk) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["", "wal/", "data/"] {
        let names = disk.list(folder.trim_end_matches('/')).unwrap();
        files.extend(names.into_iter().map(|name| format!("{folder}{name}")));
    }
    files
}

/// Bytes at the end of the log that may hold the last commits, with nothing behind them that tells they were there.
const LAST_RECORDS_BYTES: usize = 4 << 10;

/// What was done to a file.
struct Damage {
    what: String,
    /// It reaches the last records: nothing behind them tells that they were there.
    at_the_end: bool,
}

fn damage(bytes: &mut Vec<u8>, rng: &mut StdRng) -> Damage {
    if bytes.is_empty() {
        bytes.push(7);
        return Damage { what: "one byte appended".into(), at_the_end: true };
    }
    let len = bytes.len();
    let at = rng.random_range(0..len);
    let end = (at + rng.random_range(1..600)).min(len);
    match rng.random_range(0..8) {
        0 => {
            bytes.truncate(at);
            Damage { what: format!("cut from {len} to {at} bytes"), at_the_end: true }
        }
        1 => {
            bytes[at..end].fill(0);
            Damage { what: format!("zeros in {at}..{end} of {len}"), at_the_end: end + LAST_RECORDS_BYTES > len }
        }
        2 => {
            bytes[at..end].iter_mut().for_each(|byte| *byte = rng.random());
            Damage { what: format!("rubbish in {at}..{end} of {len}"), at_the_end: end + LAST_RECORDS_BYTES > len }
        }
        3 => {
            bytes.extend((0..rng.random_range(1..100)).map(|_| rng.random::<u8>()));
            Damage { what: "rubbish appended".into(), at_the_end: false }
        }
        _ => {
            bytes[at] ^= 1 << rng.random_range(0..8);
            Damage { what: format!("a bit of byte {at} of {len} flipped"), at_the_end: false }
        }
    }
}

/// Damages looked at, at least, however slow the machine is.
const DAMAGES_MIN: u64 = 200;

#[test]
fn damage_is_named_or_harmless() {
    let first = number("MAINSTEM_SIM_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("MAINSTEM_SIM_CORRUPT_SECONDS", 15));
    let mut seed = first;
    let (mut named, mut harmless, mut lost) = (0u64, 0u64, 0u64);
    let (mut of_deletes, mut of_runs) = (0, 0);
    let goes_on = |damages: u64| damages < DAMAGES_MIN || Instant::now() < end;
    while goes_on(named + harmless + lost) {
        let ended = if seed.is_multiple_of(2) { End::Killed } else { End::Closed };
        let (driver, disk) = database(seed, ended);
        let mut rng = StdRng::seed_from_u64(seed);
        let files = files(&disk);
        of_deletes += files.iter().filter(|file| file.ends_with(".del")).count();
        of_runs += files.iter().filter(|file| file.ends_with(".run")).count();
        for file in files.iter().cycle().take(files.len().max(60)) {
            let copy = disk.process_kill();
            let mut done = None;
            copy.damage(file, |bytes| done = Some(damage(bytes, &mut rng))).unwrap();
            let Damage { what, at_the_end } = done.unwrap();
            let judge = catch_unwind(AssertUnwindSafe(|| driver.inspect(Arc::new(copy))));
            let context = format!("MAINSTEM_SIM_SEED={seed}, {ended:?}: {file}, {what}");
            match judge.unwrap_or_else(|_| panic!("{context}: panic")) {
                Ok(Found::Named(_)) => named += 1,
                Ok(Found::Whole) => harmless += 1,
                Ok(Found::Prefix(found)) => {
                    let may_be = file.starts_with("wal/") && ended == End::Killed;
                    assert!(may_be, "{context}: commits after {found} are lost");
                    let few = at_the_end || found + 1 >= driver.last_commit();
                    assert!(few, "{context}: commits after {found} of {} are lost", driver.last_commit());
                    lost += 1;
                }
                Err(e) => panic!("{context}: {e}"),
            }
            if !goes_on(named + harmless + lost) {
                break;
            }
        }
        seed += 1;
    }
    println!(
        "seeds {first}..{seed}: {named} named, {harmless} harmless, {lost} torn tails, {of_deletes} files of deletes, {of_runs} of runs"
    );
    assert!(of_deletes > 0, "no deletes stood in a file");
    assert!(of_runs > 0, "no runs stood in a file");
    assert!(named > harmless / 4, "hardly any damage was named");
}

/// A whole file that is gone never makes a smaller database of a larger one, nor a new one.
#[test]
fn a_file_that_is_gone_is_named_or_was_not_needed() {
    let first = number("MAINSTEM_SIM_SEED", 1);
    let (mut named, mut of_log, mut needless) = (0, 0, 0);
    for seed in first..first + 6 {
        let (driver, disk) = database(seed, End::Closed);
        for file in files(&disk) {
            let copy = disk.process_kill();
            copy.remove(&file).unwrap();
            let context = format!("MAINSTEM_SIM_SEED={seed}: {file} is gone");
            match driver.inspect(Arc::new(copy.clone())).unwrap_or_else(|e| panic!("{context}: {e}")) {
                Found::Named(e) => {
                    assert_eq!(e.sqlstate(), sqlstate::CORRUPT, "{context}: {e}");
                    named += 1;
                    of_log += u64::from(file.starts_with("wal/"));
                }
                Found::Whole => {
                    assert_ne!(file, "MANIFEST", "{context}, and nobody missed it");
                    needless += 1;
                }
                Found::Prefix(found) => panic!("{context}: commits after {found} are lost"),
            }
        }
    }
    println!("{named} named, {of_log} of them log files, {needless} were not needed");
    assert!(named > needless && of_log >= 6);
}
