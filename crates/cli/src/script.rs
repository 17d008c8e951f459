//! SQL from `-c`, `-f` or a pipe: statement by statement, stopping at the first error.

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use mainstem::Connection;

use crate::output::{self, Format};

/// Runs all of it.
pub fn run(connection: &Connection, commands: &[String], file: Option<&Path>, format: Format) -> ExitCode {
    output::cancel_on_ctrl_c(connection);
    let mut texts: Vec<String> = commands.to_vec();
    if let Some(path) = file {
        match std::fs::read_to_string(path) {
            Ok(text) => texts.push(text),
            Err(e) => {
                eprintln!("ERROR 58P01: could not read {}: {e}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    if texts.is_empty() {
        let mut text = String::new();
        if let Err(e) = std::io::stdin().read_to_string(&mut text) {
            eprintln!("ERROR 58030: could not read standard input: {e}");
            return ExitCode::FAILURE;
        }
        texts.push(text);
    }
    let mut out = std::io::stdout().lock();
    for text in &texts {
        if !output::run_text(connection, text, format, &mut out) {
            return ExitCode::FAILURE;
        }
    }
    match out.flush() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
