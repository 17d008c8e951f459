//! Part `tail`: opening after a kill, with as much log to replay as there may be.
//!
//! Comes in: the plan. Goes out: time to the first answer, and peak memory, for a table of 17 columns and for one of
//! two, whose rows are many more in as many bytes.
//!
//! 1. A process loads a table and makes a checkpoint. Without background work, which would keep the tail shorter, it
//!    then inserts, updates and deletes rows, each in a transaction of its own, until the tail is as long as may be.
//! 2. It is killed. Each round opens a copy of what it left, as any database is opened, and sums up the table.

use super::Plan;
use super::child;
use super::writer::{expected, sums};
use crate::experiment::{Failure, Settings};
use crate::hybrid::rows::{COLUMNS, Keys};
use crate::report::{Figure, Report, Unit};
use crate::sessions::copy_folder;

/// Milliseconds from the beginning of an opening to its first answer.
const TOTAL_MS: f64 = 3_000.0;
/// Megabytes of the process that opens.
const PEAK: f64 = 1_000.0;
/// Measures the part.
///
/// # Errors
/// When a process cannot be started, or an answer is wrong.
pub(super) fn run(plan: Plan, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    for columns in [COLUMNS, 1] {
        let directory = settings.scratch()?;
        let left = directory.path().join("left");
        let case = format!("killed, {} columns", columns + 1);
        report.progress(format_args!("{case}: writing the log"));
        let written = child::write_and_kill(settings, &left, columns, plan.loaded_rows, plan.tail_bytes)?;
        let megabytes = written.tail_bytes as f64 / 1e6;
        report.add(Figure::once(&case, "log to replay", Unit::Megabytes, megabytes))?;
        report.add(Figure::once(&case, "transactions in it", Unit::Count, written.operations as f64))?;
        let wanted = expected(Keys::new(plan.loaded_rows), columns, written.operations);
        let mut openings = Vec::new();
        for round in 1..=plan.rounds {
            report.progress(format_args!("{case}: opening, round {round}"));
            let copy = directory.path().join(format!("copy{round}"));
            copy_folder(&left, &copy)?;
            let opened = child::open_and_query(settings, &copy, &sums(columns))?;
            if opened.answer != wanted {
                return Err(Failure::Wrong(format!("{case}: {:?} instead of {wanted:?}", opened.answer)));
            }
            openings.push(opened);
            std::fs::remove_dir_all(&copy)?;
        }
        child::report_openings(&case, &openings, Some(TOTAL_MS), Some(PEAK), report)?;
    }
    Ok(())
}
