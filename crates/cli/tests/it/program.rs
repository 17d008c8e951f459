//! Running the program.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the program left behind.
#[derive(Debug)]
pub struct Run {
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Exit status.
    pub status: i32,
}

impl Run {
    /// The output of a run that succeeded and had nothing to complain about.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!((self.status, self.err.as_str()), (0, ""), "{self:?}");
        self.out
    }

    /// The complaint of a run that failed, which must name `sqlstate`.
    #[track_caller]
    pub fn failed(self, sqlstate: &str) -> String {
        assert_eq!(self.status, 1, "{self:?}");
        assert!(self.err.contains(&format!("ERROR {sqlstate}: ")), "{self:?}");
        self.err
    }
}

/// The program: the one that was built, or that of `MAINSTEM_PROGRAM`, a wheel's for example.
pub fn path() -> std::ffi::OsString {
    std::env::var_os("MAINSTEM_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_mainstem").into())
}

/// The program, with nothing on its standard input.
pub fn command() -> Command {
    let mut command = Command::new(path());
    command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Runs it with these arguments.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    finish(command().args(arguments))
}

/// Runs it with these arguments and `input` in its pipe.
pub fn run_piped(arguments: &[&str], input: &[u8]) -> Run {
    let mut command = command();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may stop before it has read all of it.
    let _ = child.stdin.take().unwrap().write_all(input);
    read(child.wait_with_output().unwrap())
}

fn finish(command: &mut Command) -> Run {
    read(command.output().unwrap())
}

fn read(output: std::process::Output) -> Run {
    Run {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        status: output.status.code().unwrap(),
    }
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
