//! Processes of this program that work for the experiment, and how it speaks with them.
//!
//! Comes in: what to do, by arguments. Goes out: one line of JSON. A process that writes stays until it is killed; one
//! that opens ends by itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use mainstem::Database;
use serde::{Deserialize, Serialize};

use super::writer::{self, Written};
use crate::duel::Series;
use crate::experiment::{Failure, Settings};
use crate::report::{Figure, Reach, Report, Unit};

/// What a process saw that opened a database for one query.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Opened {
    open_ms: f64,
    query_ms: f64,
    peak_bytes: Option<u64>,
    /// The only row of the answer.
    pub answer: Vec<i64>,
}

/// Does what `arguments` say, in a process of its own.
///
/// # Errors
/// Those of the database; Broken for other arguments.
pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["write", folder, columns, loaded_rows, tail_bytes] => {
            let (database, written) =
                writer::write(Path::new(folder), number(columns)? as usize, number(loaded_rows)?, number(tail_bytes)?)?;
            say(&written)?;
            // Until it is killed; an experiment that ended without that closes the pipe.
            std::io::stdin().read_to_end(&mut Vec::new())?;
            drop(database);
            Ok(())
        }
        ["open", folder, sql] => say(&open(Path::new(folder), sql)?),
        _ => Err(Failure::Broken(format!("no child does {arguments:?}"))),
    }
}

fn number(word: &str) -> Result<u64, Failure> {
    word.parse().map_err(|_| Failure::Broken(format!("{word} is no number")))
}

fn say(what: &impl Serialize) -> Result<(), Failure> {
    let line = serde_json::to_string(what).map_err(|e| Failure::Broken(e.to_string()))?;
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Opens the database in `folder` as it is opened by default, and runs `sql`, which answers with one row of numbers.
fn open(folder: &Path, sql: &str) -> Result<Opened, Failure> {
    let start = Instant::now();
    let database = Database::open(folder)?;
    let opened = Instant::now();
    let row = database.connect()?.query_row(sql, ())?;
    let answered = Instant::now();
    let answer = (0..row.values().len()).map(|at| row.get(at)).collect::<Result<_, _>>()?;
    let ms = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e3;
    Ok(Opened { open_ms: ms(start, opened), query_ms: ms(opened, answered), peak_bytes: peak_bytes(), answer })
}

/// The most memory that this process has had, where the system tells.
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

fn command(settings: &Settings, arguments: &[&str]) -> Command {
    let mut command = Command::new(&settings.program);
    // What begins with a hyphen is none of the program's options.
    command.args(["child", "--"]).args(arguments);
    command
}

fn read<T: for<'a> Deserialize<'a>>(line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(|e| Failure::Broken(format!("a process said \"{}\": {e}", line.trim())))
}

/// Lets a process write a tail of `tail_bytes` behind a table of `columns` integers in `folder`, and kills it.
pub(super) fn write_and_kill(
    settings: &Settings,
    folder: &Path,
    columns: usize,
    loaded_rows: u64,
    tail_bytes: u64,
) -> Result<Written, Failure> {
    let numbers = [columns as u64, loaded_rows, tail_bytes].map(|number| number.to_string());
    let [columns, loaded_rows, tail_bytes] = numbers.each_ref().map(String::as_str);
    let folder = folder.to_string_lossy();
    let mut process = command(settings, &["write", &folder, columns, loaded_rows, tail_bytes])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let said = match process.stdout.take() {
        Some(out) => BufReader::new(out).read_line(&mut line),
        None => Ok(0),
    };
    process.kill()?;
    process.wait()?;
    said?;
    read(&line)
}

/// Lets a process open the database in `folder`, and run `sql`.
pub(super) fn open_and_query(settings: &Settings, folder: &Path, sql: &str) -> Result<Opened, Failure> {
    let output = command(settings, &["open", &folder.to_string_lossy(), sql]).stderr(Stdio::inherit()).output()?;
    read(&String::from_utf8_lossy(&output.stdout))
}

/// Adds what openings of the same database took, the most memory of all of them. `total_ms` is to be reached from the
/// beginning to the first answer, `peak` in megabytes.
pub(super) fn report_openings(
    case: &str,
    openings: &[Opened],
    total_ms: Option<f64>,
    peak: Option<f64>,
    report: &mut Report,
) -> Result<(), Failure> {
    let mut add = |metric, unit, values: Vec<f64>, most: Option<f64>| -> Result<(), Failure> {
        let series: Series = values.into_iter().collect();
        let Some(mut figure) = Figure::of(case, metric, unit, &series) else { return Ok(()) };
        if unit == Unit::Megabytes {
            figure.value = figure.spread.1;
        }
        figure.reach = most.map(Reach::AtMost);
        Ok(report.add(figure)?)
    };
    let of = |value: fn(&Opened) -> f64| openings.iter().map(value).collect::<Vec<_>>();
    add("open", Unit::Milliseconds, of(|opened| opened.open_ms), None)?;
    add("first query", Unit::Milliseconds, of(|opened| opened.query_ms), None)?;
    add("open and first query", Unit::Milliseconds, of(|opened| opened.open_ms + opened.query_ms), total_ms)?;
    let peaks = openings.iter().filter_map(|opened| Some(opened.peak_bytes? as f64 / 1e6)).collect();
    add("peak memory", Unit::Megabytes, peaks, peak)
}
