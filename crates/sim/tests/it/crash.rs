//! Power cuts at every sync of a workload, of a close and of the opening after it, kills between operations, crashes
//! during recovery.
//!
//! `MAINSTEM_SIM_SEED` sets the workload and the tears, `MAINSTEM_SIM_CRASH_SECONDS` how long the loop may take: it
//! begins again with the next seed when it has been through all syncs. `MAINSTEM_SIM_TEARS` sets how many ways of
//! tearing what was not synced are looked at per cut: the workload up to the cut is driven once for all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mainstem_sim::SimDisk;
use mainstem_sim::model::{Driver, Durable, Found, Op, Settings, Weights, generate};
use mainstem_storage::database::Database;
use mainstem_storage::disk::Disk;
use mainstem_storage::settings::OpenOptions;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::model::number;

const OPERATIONS: usize = 70;
const LATER_OPERATIONS: usize = 12;
const TEARS: u64 = 4;

fn settings() -> Settings {
    Settings { faults: true, thorough: false, ..Settings::default() }
}

fn workload(seed: u64, count: usize) -> Vec<Op> {
    let weights =
        Weights { structural: 20, ddl: 4, reopen: 3, bulky: 4, background: false, slots: 2, ..Weights::default() };
    generate(&mut StdRng::seed_from_u64(seed), count, &weights)
}

/// Does `ops` until the power is gone.
fn drive(disk: &SimDisk, ops: &[Op]) -> Driver {
    let mut driver = Driver::new(Arc::new(disk.clone()), settings()).unwrap();
    for (number, op) in ops.iter().enumerate() {
        if !disk.is_powered() {
            break;
        }
        driver.step(op).unwrap_or_else(|e| panic!("operation {number}, {op:?}: {e}"));
    }
    driver
}

/// Opens what a power cut left, with further cuts while it does, then for good; goes on writing; cuts once more.
/// Returns how many files set aside it met.
fn recover(mut driver: Driver, disk: &SimDisk, tear: u64, cuts: u64, durable: Durable) -> u64 {
    let mut found = match durable {
        Durable::Synced => disk.power_cut(tear),
        _ => disk.process_kill(),
    };
    for cut in 0..cuts {
        found.cut_at_sync(found.syncs() + 1 + (cut + tear) % 6);
        drop(Database::open_on(Arc::new(found.clone()), OpenOptions::new().background(false)));
        found = found.power_cut(tear * 31 + cut);
    }
    driver.trust();
    // A close has made everything durable.
    let durable = if cuts > 0 && durable == Durable::Written { Durable::Synced } else { durable };
    driver.recover(Arc::new(found.clone()), durable, false).unwrap_or_else(|e| panic!("{e}"));
    for op in workload(tear + 1, LATER_OPERATIONS) {
        driver.step(&op).unwrap_or_else(|e| panic!("after recovery, {op:?}: {e}"));
    }
    driver.check_all().unwrap_or_else(|e| panic!("after recovery: {e}"));
    let again = found.power_cut(tear + 2);
    driver.recover(Arc::new(again), Durable::Synced, false).unwrap_or_else(|e| panic!("second recovery: {e}"));
    driver.step(&Op::Reopen { background: false }).unwrap_or_else(|e| panic!("clean restart: {e}"));
    driver.seen().lost_files
}

#[test]
fn a_power_cut_at_every_sync_loses_nothing_acknowledged() {
    let first = number("MAINSTEM_SIM_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("MAINSTEM_SIM_CRASH_SECONDS", 20));
    let tears = number("MAINSTEM_SIM_TEARS", TEARS);
    let (mut seed, mut cuts, mut found, mut lost) = (first, 0u64, 0u64, 0u64);
    'seeds: loop {
        let ops = workload(seed, OPERATIONS);
        let disk = SimDisk::new();
        drive(&disk, &ops);
        let syncs = disk.syncs();
        // An odd step goes through all syncs in an order that spreads.
        let step = (syncs / 3) | 1;
        for turn in 0..syncs {
            let at = 1 + (turn * step) % syncs;
            let disk = SimDisk::new();
            disk.cut_at_sync(at);
            let mut driver = drive(&disk, &ops);
            driver.abandon();
            for turn in turn..turn + tears {
                let tear = (seed * 1_000_003 + at) * 1_009 + turn;
                let during = if turn % 4 == 0 { 10 } else { turn % 2 };
                println!(
                    "MAINSTEM_SIM_SEED={seed}: cut at sync {at} of {syncs}, tear {tear}, {during} cuts in recovery"
                );
                lost += recover(driver.knowledge(), &disk, tear, during, Durable::Synced);
                found += 1;
            }
            cuts += 1;
            if Instant::now() > end {
                break 'seeds;
            }
        }
        seed += 1;
    }
    println!("{cuts} power cuts, torn in {found} ways, from seed {first} to {seed}; {lost} files set aside");
    assert!(lost > 0 || found < 100, "no torn tail left a file that it may have named");
}

/// The newest log file and its length.
fn end_of_log(disk: &SimDisk) -> (String, u64) {
    let path = format!("wal/{}", disk.list("wal").unwrap().pop().unwrap());
    let bytes = disk.open(&path).unwrap().len().unwrap();
    (path, bytes)
}

/// A close that was interrupted has lost nothing that was acknowledged before; after one that has returned, everything
/// is there, whatever becomes of the next opening, and whoever damages the end of the log is told so.
#[test]
fn a_power_cut_during_a_close_or_the_next_opening_loses_nothing() {
    let first = number("MAINSTEM_SIM_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("MAINSTEM_SIM_CRASH_SECONDS", 20));
    let (mut round, mut in_close, mut in_opening, mut named) = (0, 0, 0, 0);
    while round < 3 || Instant::now() < end {
        let ops = workload(first * 1_000 + round, 10 + (round as usize % 12) * 5);
        println!("MAINSTEM_SIM_SEED={first}, round {round}");
        let driven = || {
            let disk = SimDisk::new();
            (drive(&disk, &ops), disk)
        };
        for sync in 1.. {
            let (mut driver, disk) = driven();
            disk.cut_at_sync(disk.syncs() + sync);
            let closed = driver.database().unwrap().close();
            driver.abandon();
            if closed.is_ok() {
                break;
            }
            for tear in [round, round + 1] {
                recover(driver.knowledge(), &disk, tear, tear % 2, Durable::Synced);
                in_close += 1;
            }
        }
        let (mut driver, disk) = driven();
        driver.database().unwrap().close().unwrap();
        driver.abandon();
        let (path, bytes) = end_of_log(&disk);
        for sync in 1.. {
            let opening = disk.process_kill();
            opening.cut_at_sync(sync);
            if Database::open_on(Arc::new(opening.clone()), OpenOptions::new().background(false)).is_ok() {
                assert!(sync > 2);
                break;
            }
            let found = opening.power_cut(round * 31 + sync);
            let damaged = found.process_kill();
            damaged.damage(&path, |log| log[bytes as usize - 1] ^= 1).unwrap();
            let found_damaged = driver.inspect(Arc::new(damaged)).unwrap_or_else(|e| panic!("cut at sync {sync}: {e}"));
            match &found_damaged {
                Found::Named(e) => {
                    assert!(e.message().contains(&path), "cut at sync {sync}: {e}");
                    named += 1;
                }
                // A checkpoint was the last operation: a restart reads nothing of the log before it.
                Found::Whole => {}
                Found::Prefix(last) => panic!("cut at sync {sync}: commits after {last} are lost"),
            }
            recover(driver.knowledge(), &found, round + sync, sync % 3, Durable::Everything);
            in_opening += 1;
        }
        round += 1;
    }
    println!("{round} rounds: {in_close} cuts in closes, {in_opening} in the openings after them");
    assert!(in_close > 0 && named > in_opening / 2, "{named} damages named");
}

#[test]
fn a_kill_between_operations_loses_nothing_handed_over() {
    // With power cuts while the next process opens, what was not fsynced may go; nothing else.
    let seed = number("MAINSTEM_SIM_SEED", 1);
    for round in 0..16 {
        let ops = workload(seed * 1_000 + round, 10 + round as usize * 5);
        println!("MAINSTEM_SIM_SEED={seed}, round {round}");
        for cuts in [0, 1, 5] {
            let disk = SimDisk::new();
            let driver = drive(&disk, &ops);
            recover(driver, &disk, round, cuts, Durable::Written);
        }
    }
}
