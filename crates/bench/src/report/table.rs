//! The table a person reads.

use std::fmt::Write;

use super::{Figure, Reach, Report, Unit};

const HEAD: [&str; 8] = ["case", "metric", "ours", "spread", "yardstick", "ratio", "to reach", "met"];
/// Columns of text; the others are numbers and stand to the right.
const LEFT: [bool; 8] = [true, true, false, false, true, false, true, true];

pub(super) fn text(report: &Report) -> String {
    let rows: Vec<[String; 8]> = report.figures.iter().map(row).collect();
    let mut widths = HEAD.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = format!("{}: {}\n\n", report.experiment, report.settings.text());
    line(&mut out, &HEAD.map(String::from), &widths);
    line(&mut out, &widths.map(|width| "-".repeat(width)), &widths);
    let mut last = "";
    for (row, figure) in rows.iter().zip(&report.figures) {
        let mut row = row.clone();
        if figure.case == last {
            row[0].clear();
        }
        last = &figure.case;
        line(&mut out, &row, &widths);
    }
    closing(&mut out, report);
    out
}

fn line(out: &mut String, cells: &[String; 8], widths: &[usize; 8]) {
    let mut text = String::new();
    for ((cell, &width), left) in cells.iter().zip(widths).zip(LEFT) {
        // Writing to a string does not fail.
        let _ = if left { write!(text, "{cell:<width$}  ") } else { write!(text, "{cell:>width$}  ") };
    }
    out.push_str(text.trim_end());
    out.push('\n');
}

fn closing(out: &mut String, report: &Report) {
    let promised: Vec<bool> = report.figures.iter().filter_map(Figure::met).collect();
    let met = promised.iter().filter(|met| **met).count();
    let _ = writeln!(out, "\n{met} of {} figures reached.", promised.len());
    if !report.settings.is_release() {
        let _ = writeln!(out, "note: not a release build; its figures mean nothing.");
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    for wrong in &report.wrong {
        let _ = writeln!(out, "WRONG: {wrong}");
    }
}

fn row(figure: &Figure) -> [String; 8] {
    let shown = |value: f64| number(value, figure.unit);
    let yardstick = figure.yardstick.as_ref().map(|y| format!("{} {}", y.name, shown(y.value)));
    let reach = figure.reach.map(|reach| match reach {
        Reach::AtLeast(bound) => format!("at least {}", shown(bound)),
        Reach::AtMost(bound) => format!("at most {}", shown(bound)),
        Reach::OfYardstick(share) => format!("at least {share} x yardstick"),
        Reach::AtMostOfYardstick(share) => format!("at most {share} x yardstick"),
    });
    let met = figure.met().map(|met| if met { "yes" } else { "NO" });
    let (low, high) = figure.spread;
    let spread = if low == high { String::new() } else { format!("{} - {}", shown(low), shown(high)) };
    [
        figure.case.clone(),
        figure.metric.to_string(),
        shown(figure.value),
        spread,
        yardstick.unwrap_or_default(),
        figure.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        reach.unwrap_or_default(),
        met.unwrap_or_default().to_string(),
    ]
}

/// Three digits at least, thousands apart.
pub(super) fn number(value: f64, unit: Unit) -> String {
    let text = match value.abs() {
        large if large >= 100.0 => thousands(value),
        medium if medium >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    match unit {
        Unit::PerSecond => format!("{text}/s"),
        Unit::Count => text,
        Unit::Times => format!("{text} x"),
        Unit::Microseconds | Unit::Milliseconds | Unit::Megabytes => format!("{text} {}", unit.name()),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}
