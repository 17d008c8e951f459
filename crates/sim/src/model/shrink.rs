//! Runs a list of operations, and leaves out what a failure does not need.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::driver::{Driver, Mismatch, Seen, Settings};
use super::op::Op;
use crate::SimDisk;

/// Does `ops` on a new database; ends with a restart.
///
/// # Errors
/// What went wrong, panics included.
pub fn run(ops: &[Op], settings: Settings) -> Result<Seen, String> {
    let work = || -> Result<Seen, Mismatch> {
        let mut driver = Driver::new(Arc::new(SimDisk::new()), settings)?;
        for (number, op) in ops.iter().enumerate() {
            driver.step(op).map_err(|e| Mismatch(format!("operation {number}, {op:?}: {e}")))?;
        }
        driver.check_all()?;
        driver.step(&Op::Reopen { background: false })?;
        driver.check_all()?;
        Ok(driver.seen().clone())
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|e| e.0),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("panic: {}", text.unwrap_or_else(|| "without a message".into())))
        }
    }
}

/// A shorter list for which `fails` is still true: the longest part that can be left out goes first. Stops at
/// `deadline`.
pub fn shrink(ops: &[Op], deadline: Instant, mut fails: impl FnMut(&[Op]) -> bool) -> Vec<Op> {
    let mut ops = ops.to_vec();
    let mut part = ops.len().div_ceil(2);
    while part > 0 {
        let mut start = 0;
        let mut shorter = false;
        while start < ops.len() {
            if Instant::now() > deadline {
                return ops;
            }
            let end = (start + part).min(ops.len());
            let without: Vec<Op> = ops[..start].iter().chain(&ops[end..]).copied().collect();
            if fails(&without) {
                ops = without;
                shorter = true;
            } else {
                start = end;
            }
        }
        if !shorter || part > 1 {
            part /= 2;
        }
    }
    ops
}
