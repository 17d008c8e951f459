//! Disk calls that fail, once or from some call on: each operation succeeds or says why not, reads go on, nothing is half
//! applied, and after a repair and a restart the state is a prefix with all that was acknowledged.
//!
//! `MAINSTEM_SIM_SEED` sets the workload, `MAINSTEM_SIM_FAULT_SECONDS` how long the loop may take.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mainstem_sim::model::{Driver, Durable, Op, Settings, Weights, generate};
use mainstem_sim::{FaultKind, SimDisk};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::model::number;

/// Longer than any of these runs takes: then something waits for ever.
const HANG: Duration = Duration::from_secs(120);

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
    let calls = drive(&ops, None).1.calls();
    let (send, receive) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let step = (calls / 5) | 1;
        let (mut runs, mut failures) = (0, Vec::new());
        'kinds: for kind in 0..4 * calls {
            let (kind, turn) = (kind % 4, kind / 4);
            let fault = Fault {
                call: 1 + (turn * step + kind) % calls,
                kind: [FaultKind::Io, FaultKind::Full][(kind % 2) as usize],
                for_ever: kind >= 2,
            };
            if send.send(fault).is_err() {
                break;
            }
            runs += 1;
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&ops, fault))) {
                let text = panic.downcast_ref::<String>().cloned();
                failures.push(text.unwrap_or_else(|| format!("{fault:?}: panic")));
            }
            if failures.len() == FAILURES_MAX {
                break 'kinds;
            }
            if Instant::now() > end {
                break 'kinds;
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
    println!("{runs} of {} faults", 4 * calls);
}

/// A disk that fills while the database is used: statements fail with 53100 or 08007, reads go on; with room again and a
/// restart everything acknowledged is there.
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
