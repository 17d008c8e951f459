//! `cargo compat`: runs what other programs' tests say of the module for Python and its drivers
//! (`crates/python/compat/run.py`, which says what there is).

use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/compat/run.py");
    let status = Command::new("python3").arg(script).args(std::env::args_os().skip(1)).status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("python3 cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}
