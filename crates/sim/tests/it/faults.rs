//! Disk calls that fail, once or from some call on: each operation succeeds or says why not, reads go on, nothing is
//! half applied, and after a repair and a restart the state is a prefix with all that was acknowledged.
//!
//! `MAINSTEM_SIM_SEED` sets the workload and the order of the faults, `MAINSTEM_SIM_FAULT_SECONDS` how long the loop
//! may take. What was covered is printed: calls (times two: once, from then on) and, of the calls that need space, the
//! same for a disk that is full. At the other calls a full disk is a broken one, or no fault at all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mainstem_sim::model::{Driver, Durable, Op, Settings, Weights, generate};
use mainstem_sim::{FaultKind, SimDisk};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::model::number;

/// Longer than any of these runs takes: then something waits for ever.
const HANG: Duration = Duration::from_secs(600);

/// Failures told of at once.
const FAILURES_MAX: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Fault {
    call: u64,
    kind: FaultKind,
    for_ever: bool,
}

fn workload(seed: u64) -> Vec<Op> {
    let weights =
        Weights { structural: 25, ddl: 4, reopen: 3, bulky: 5, background: false, slots: 2, ..Weights::default() };
    generate(&mut StdRng::seed_from_u64(seed), 45, &weights)
}

/// Every fault that differs, in an order that `seed` chooses: a run that is cut short has looked at a part of all
/// calls.
fn faults(disk: &SimDisk, seed: u64) -> Vec<Fault> {
    let all = |calls: Vec<u64>, kind: FaultKind| {
        calls.into_iter().flat_map(move |call| [false, true].map(|for_ever| Fault { call, kind, for_ever }))
    };
    let broken = all((1..=disk.calls()).collect(), FaultKind::Io);
    let mut faults: Vec<Fault> = broken.chain(all(disk.calls_that_need_space(), FaultKind::Full)).collect();
    faults.shuffle(&mut StdRng::seed_from_u64(seed));
    faults
}

/// The workload with `fault`; calls it made.
fn drive(ops: &[Op], fault: Option<Fault>) -> (Driver, SimDisk) {
    let disk = SimDisk::new();
    match fault {
        Some(Fault { call, kind, for_ever: true }) => disk.fail_all_from(call, kind),
        Some(Fault { call, kind, for_ever: false }) => disk.fail_at(call, kind),
        None => {}
    }
    let mut driver = Driver::new(
        Arc::new(disk.clone()),
        Settings { faults: true, thorough: fault.is_some_and(|f| f.call % 4 == 0), ..Settings::default() },
    )
    .unwrap_or_else(|e| panic!("{fault:?}: {e}"));
    for (number, op) in ops.iter().enumerate() {
        driver.step(op).unwrap_or_else(|e| {
            let calls = disk.recent_calls().join("\n  ");
            panic!("{fault:?}: operation {number}, {op:?}: {e}\n  {calls}")
        });
    }
    (driver, disk)
}

fn check(ops: &[Op], fault: Fault) {
    let (mut driver, disk) = drive(ops, Some(fault));
    driver.abandon();
    disk.repair();
    driver.trust();
    driver.recover(Arc::new(disk.clone()), Durable::Written, false).unwrap_or_else(|e| panic!("{fault:?}: {e}"));
    for op in workload(fault.call).iter().take(14) {
        driver.step(op).unwrap_or_else(|e| panic!("{fault:?}: after the repair, {op:?}: {e}"));
    }
    // What was read back after a failed fsync must be as durable as what was told later.
    let found = disk.power_cut(fault.call);
    driver
        .recover(Arc::new(found), Durable::Synced, false)
        .unwrap_or_else(|e| panic!("{fault:?}: power cut later: {e}"));
}

#[test]
fn a_failing_call_leaves_a_clean_error_and_a_sound_database() {
    let seed = number("MAINSTEM_SIM_SEED", 1);
    let end = Instant::now() + Duration::from_secs(number("MAINSTEM_SIM_FAULT_SECONDS", 20));
    let ops = workload(seed);
    let disk = drive(&ops, None).1;
    let (calls, faults) = (disk.calls(), faults(&disk, seed));
    let possible = faults.len();
    let (send, receive) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let (mut runs, mut failures) = (0, Vec::new());
        for fault in faults {
            if send.send(fault).is_err() {
                break;
            }
            runs += 1;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&ops, fault))) {
                let text = panic.downcast_ref::<String>().cloned();
                failures.push(text.unwrap_or_else(|| format!("{fault:?}: panic")));
            }
            if failures.len() == FAILURES_MAX || Instant::now() > end {
                break;
            }
        }
        (runs, failures)
    });
    println!("MAINSTEM_SIM_SEED={seed}: {calls} calls");
    let mut last = None;
    loop {
        match receive.recv_timeout(HANG) {
            Ok(fault) => last = Some(fault),
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("MAINSTEM_SIM_SEED={seed}: {last:?} hangs"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let (runs, failures) = worker.join().unwrap();
    assert!(failures.is_empty(), "MAINSTEM_SIM_SEED={seed}:\n{}", failures.join("\n"));
    println!("{runs} of {possible} faults at {calls} calls");
}

/// A disk that fills while the database is used: statements fail with 53100 or 08007, reads go on; with room again and
/// a restart everything acknowledged is there.
#[test]
fn a_full_disk_loses_nothing() {
    let seed = number("MAINSTEM_SIM_SEED", 1);
    for round in 0..10 {
        let ops = workload(seed * 100 + round);
        let disk = SimDisk::new();
        let settings = Settings { faults: true, ..Settings::default() };
        let mut driver = Driver::new(Arc::new(disk.clone()), settings).unwrap();
        for (number, op) in ops.iter().enumerate() {
            if number == 5 + 3 * round as usize {
                disk.limit_capacity(disk.used_bytes() + (round * 3_000));
            }
            driver.step(op).unwrap_or_else(|e| panic!("seed {seed}, round {round}: operation {number}, {op:?}: {e}"));
        }
        driver.abandon();
        disk.repair();
        driver.trust();
        driver.recover(Arc::new(disk), Durable::Written, false).unwrap_or_else(|e| panic!("round {round}: {e}"));
    }
}

/// Whatever fails while a database is closed: the close says so, and nothing is lost.
#[test]
fn a_close_that_fails_says_so_and_loses_nothing() {
    let ops = workload(number("MAINSTEM_SIM_SEED", 1));
    let driven = || {
        let disk = SimDisk::new();
        let settings = Settings { faults: true, thorough: false, ..Settings::default() };
        let mut driver = Driver::new(Arc::new(disk.clone()), settings).unwrap();
        ops.iter().for_each(|op| driver.step(op).unwrap_or_else(|e| panic!("{op:?}: {e}")));
        (driver, disk)
    };
    let mut failures = 0;
    for (kind, for_ever) in
        [(FaultKind::Io, false), (FaultKind::Io, true), (FaultKind::Full, false), (FaultKind::Full, true)]
    {
        for call in 1.. {
            let (mut driver, disk) = driven();
            let before = disk.calls();
            if for_ever {
                disk.fail_all_from(before + call, kind);
            } else {
                disk.fail_at(before + call, kind);
            }
            let closed = driver.database().unwrap().close();
            let calls = disk.calls() - before;
            driver.abandon();
            disk.repair();
            driver.trust();
            failures += u64::from(closed.is_err());
            let durable = if closed.is_ok() { Durable::Everything } else { Durable::Synced };
            let found = if closed.is_ok() { disk.power_cut(call) } else { disk.process_kill() };
            driver.recover(Arc::new(found), durable, false).unwrap_or_else(|e| panic!("{kind:?} at call {call}: {e}"));
            if call > calls {
                break;
            }
        }
    }
    assert!(failures >= 8, "{failures} closes failed");
    // No space for the mark of the log's end: said with what it means, and all is there.
    let (mut driver, disk) = driven();
    disk.limit_capacity(disk.used_bytes());
    let error = driver.database().unwrap().close().unwrap_err();
    assert_eq!(error.sqlstate(), "53100", "{error}");
    assert!(error.message().contains("every commit is durable") && error.message().contains("LOG_END"), "{error}");
    driver.abandon();
    driver.trust();
    driver.recover(Arc::new(disk.power_cut(1)), Durable::Everything, false).unwrap_or_else(|e| panic!("{e}"));
}
