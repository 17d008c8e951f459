//! The figures of a demo, as tables for people.

use std::path::PathBuf;
use std::time::Duration;

use super::latencies::Latencies;
use super::ledger::Totals;
use super::load::Loaded;
use super::queries::{QUERIES, QueryTimes, Together};
use crate::output::draw;

/// Everything that was measured.
#[derive(Debug)]
pub struct Report {
    /// Size of the data.
    pub scale_factor: f64,
    /// When commits returned.
    pub synchronous: String,
    /// Threads the machine runs at a time.
    pub threads: usize,
    /// How long making the CSV files took.
    pub generated: Duration,
    /// How each table was loaded.
    pub loaded: Vec<Loaded>,
    /// Queries without the writer.
    pub alone: QueryTimes,
    /// Queries and the writer.
    pub together: Together,
    /// How long closing took.
    pub closed: Duration,
    /// How long opening again took.
    pub reopened: Duration,
    /// Bytes of the database's files.
    pub bytes: u64,
    /// What the database holds now.
    pub now: Totals,
    /// What the verification found wrong.
    pub wrong: Vec<String>,
    /// Where the database stays, if it does.
    pub kept: Option<PathBuf>,
}

impl Report {
    /// The report as text.
    pub fn render(&self) -> String {
        let threads = if self.threads == 1 { "1 thread" } else { &format!("{} threads", self.threads) };
        let mut text = format!(
            "Mainstem {}: TPC-H at scale factor {}, synchronous = {}, {threads}\n",
            env!("CARGO_PKG_VERSION"),
            self.scale_factor,
            self.synchronous,
        );
        text += &format!("\nLoading (CSV files made in {})\n{}", seconds(self.generated), self.loading());
        text += &format!("\nQueries, median time\n{}", self.querying());
        text += &format!("\nWriter, beside the queries for {}\n{}", seconds(self.together.time), self.writing());
        text += &format!("\nDatabase\n{}", self.database());
        if let Some(path) = &self.kept {
            text += &format!("\nIt stays in {0}; look into it with: mainstem {0}\n", path.display());
        }
        text
    }

    fn loading(&self) -> String {
        let line = |name: &str, rows: u64, bytes: u64, time: Duration| {
            let rate = |amount: u64| amount as f64 / time.as_secs_f64().max(1e-9);
            let megabytes = format!("{:.1}", bytes as f64 / 1e6);
            let bytes_rate = format!("{:.1}", rate(bytes) / 1e6);
            vec![name.into(), grouped(rows), megabytes, seconds(time), grouped(rate(rows) as u64), bytes_rate]
        };
        let mut lines: Vec<_> = self.loaded.iter().map(|l| line(l.table.name(), l.rows, l.bytes, l.time)).collect();
        let (rows, bytes, time) = self.all_loaded();
        lines.push(line("all", rows, bytes, time));
        table(&["table", "rows", "MB of CSV", "time", "rows/s", "MB/s"], &lines)
    }

    fn all_loaded(&self) -> (u64, u64, Duration) {
        let add = |sum: (u64, u64, Duration), l: &Loaded| (sum.0 + l.rows, sum.1 + l.bytes, sum.2 + l.time);
        self.loaded.iter().fold((0, 0, Duration::ZERO), add)
    }

    fn querying(&self) -> String {
        let lines: Vec<_> = QUERIES
            .iter()
            .zip(self.alone.iter().zip(&self.together.queries))
            .map(|(query, (alone, beside))| {
                let ratio = match (alone.median(), beside.median()) {
                    (Some(alone), Some(beside)) => {
                        format!("{:.1} x", beside.as_secs_f64() / alone.as_secs_f64().max(1e-9))
                    }
                    _ => "-".into(),
                };
                let name = format!("{:3} {}", query.name, query.asks);
                vec![name, latency(alone, 0.5), latency(beside, 0.5), ratio, grouped(beside.count() as u64)]
            })
            .collect();
        table(&["query", "alone", "beside the writer", "ratio", "runs beside it"], &lines)
    }

    fn writing(&self) -> String {
        let (written, ledger) = (&self.together.written, &self.together.written.ledger);
        let rate = ledger.commits() as f64 / self.together.time.as_secs_f64().max(1e-9);
        let rows = ledger.commits() + ledger.lines_written;
        let times = |l: &Latencies| {
            let longest = l.max().map_or_else(|| "-".into(), short);
            format!("{}, {}, {longest}", latency(l, 0.5), latency(l, 0.99))
        };
        table(
            &["figure", "value"],
            &[
                vec!["commits".into(), format!("{} ({}/s)", grouped(ledger.commits()), grouped(rate as u64))],
                vec![
                    "orders inserted, updated, deleted".into(),
                    [ledger.inserts, ledger.updates, ledger.deletes].map(grouped).join(", "),
                ],
                vec!["rows written, with line items".into(), grouped(rows)],
                vec!["transactions run again after a conflict".into(), grouped(written.retries)],
                vec!["transaction: p50, p99, longest".into(), times(&written.transactions)],
                vec!["its COMMIT: p50, p99, longest".into(), times(&written.commits)],
            ],
        )
    }

    fn database(&self) -> String {
        let (_, csv, _) = self.all_loaded();
        let share = 100.0 * self.bytes as f64 / (csv as f64).max(1.0);
        let mut lines = vec![
            vec!["size on disk".into(), format!("{:.1} MB ({share:.0} % of the CSV)", self.bytes as f64 / 1e6)],
            vec!["orders, line items".into(), format!("{}, {}", counted(self.now.orders), counted(self.now.lines))],
            vec!["time to close".into(), short(self.closed)],
            vec!["time to reopen".into(), short(self.reopened)],
            vec![
                "orders held against their line items".into(),
                format!("{} times beside the writer", grouped(self.together.probes)),
            ],
        ];
        let verdict = if self.wrong.is_empty() { "OK: equals what was loaded and committed" } else { "FAILED" };
        lines.push(vec!["verification".into(), verdict.into()]);
        lines.extend(self.wrong.iter().map(|what| vec!["wrong".into(), what.clone()]));
        table(&["figure", "value"], &lines)
    }
}

/// A table whose first column stands to the left, the others to the right.
fn table(header: &[&str], lines: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|text| (*text).to_owned()).collect();
    let numeric: Vec<bool> = (0..header.len()).map(|column| column > 0).collect();
    draw(&header, &numeric, lines)
}

fn latency(latencies: &Latencies, share: f64) -> String {
    latencies.quantile(share).map_or_else(|| "-".into(), short)
}

/// A short time, in milliseconds.
fn short(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn counted(number: i64) -> String {
    u64::try_from(number).map_or_else(|_| number.to_string(), grouped)
}

/// A number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
