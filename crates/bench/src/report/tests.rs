use std::cell::RefCell;
use std::rc::Rc;

use super::table::number;
use super::*;

/// Where a test reads what a report wrote.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn report() -> (Report, Kept) {
    let kept = Kept::default();
    (Report::new("trial", "quick", Some(Box::new(kept.clone()))), kept)
}

fn lines(kept: &Kept) -> Vec<serde_json::Value> {
    let text = String::from_utf8(kept.0.borrow().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn duel() -> Duel {
    let sample = |rate, worst_ms| Sample { rate, p99_us: 5.0, worst_ms };
    let mut duel = Duel::default();
    for (rate, worst) in [(100.0, 1.0), (300.0, 60.0), (200.0, 2.0)] {
        duel.ours(sample(rate, worst));
        duel.other("SQLite", sample(160.0, 0.0));
        duel.other("DuckDB", sample(2.0, 0.0));
    }
    duel
}

#[test]
fn figures_are_held_to_their_bounds() {
    let figure = |value| Figure::once("c", "m", Unit::PerSecond, value);
    assert_eq!(figure(10.0).met(), None);
    assert_eq!(figure(10.0).to_reach(Reach::AtLeast(10.0)).met(), Some(true));
    assert_eq!(figure(9.9).to_reach(Reach::AtLeast(10.0)).met(), Some(false));
    assert_eq!(figure(10.0).to_reach(Reach::AtMost(10.0)).met(), Some(true));
    assert_eq!(figure(10.1).to_reach(Reach::AtMost(10.0)).met(), Some(false));
    let share = figure(80.0).to_reach(Reach::OfYardstick(0.8));
    assert_eq!((share.bound(), share.met()), (None, None), "without a yardstick nothing can be said");
    let share = share.beside("disk", 100.0);
    assert_eq!((share.bound(), share.met(), share.ratio()), (Some(80.0), Some(true), Some(0.8)));
    assert_eq!(share.beside("disk", 101.0).met(), Some(false));
}

#[test]
fn a_duel_becomes_lines() {
    let (mut report, kept) = report();
    let promise = Promise { rate: Some(250.0), share: None, p99_us: Some(10.0), worst_ms: Some(50.0) };
    report.add_duel("select", &duel(), promise).unwrap();
    let seen: Vec<_> = lines(&kept)
        .iter()
        .map(|l| {
            let text = |name: &str| l[name].as_str().unwrap_or("-").to_string();
            (text("metric"), l["value"].as_f64().unwrap(), text("yardstick"), l["reach"].as_f64(), l["met"].as_bool())
        })
        .collect();
    let line = |metric: &str, value, yardstick: &str, reach, met| {
        (metric.to_string(), value, yardstick.to_string(), reach, met)
    };
    assert_eq!(
        seen,
        [
            line("rate", 200.0, "SQLite", Some(250.0), Some(false)),
            line("rate", 200.0, "DuckDB", None, None),
            line("p99", 5.0, "SQLite", Some(10.0), Some(true)),
            line("p99", 5.0, "DuckDB", None, None),
            line("worst stall", 60.0, "-", Some(50.0), Some(false)),
        ]
    );
}

#[test]
fn a_share_of_the_first_yardstick_can_be_promised() {
    let (mut report, kept) = report();
    report.add_duel("select", &duel(), Promise { share: Some(2.0), ..Promise::default() }).unwrap();
    let reach: Vec<_> = lines(&kept).iter().take(2).map(|l| (l["reach"].as_f64(), l["met"].as_bool())).collect();
    assert_eq!(reach, [(Some(320.0), Some(false)), (None, None)]);
}

#[test]
fn a_line_says_what_it_takes_to_compare_it() {
    let (mut report, kept) = report();
    report.add(Figure::once("c", "rate", Unit::PerSecond, 1.5)).unwrap();
    let line = lines(&kept).remove(0);
    for name in ["experiment", "case", "metric", "value", "unit", "yardstick", "yardstick_value", "reach", "met"] {
        assert!(line.get(name).is_some(), "{name} is missing in {line}");
    }
    assert_eq!((&line["experiment"], &line["scale"], &line["unit"]), (&"trial".into(), &"quick".into(), &"/s".into()));
    assert!(line["yardstick"].is_null() && line["reach"].is_null() && line["met"].is_null());
}

#[test]
fn the_table_is_for_people() {
    let (mut report, _) = report();
    let promise = Promise { rate: Some(250_000.0), ..Promise::default() };
    report.add_duel("SELECT by key", &duel(), promise).unwrap();
    report.note("no Python");
    report.note("no Python");
    report.wrong("12 rows instead of 13");
    let text = report.text();
    let rate = text.lines().find(|line| line.contains("250,000/s")).unwrap();
    assert!(rate.starts_with("SELECT by key  rate"), "{text}");
    for part in ["200/s", "100/s - 300/s", "SQLite 160/s", "1.25", "at least 250,000/s", "NO"] {
        assert!(rate.contains(part), "{part} in {rate}");
    }
    assert_eq!(text.matches("SELECT by key").count(), 1, "a case is named once:\n{text}");
    assert_eq!(text.matches("note: no Python").count(), 1, "{text}");
    assert!(text.contains("0 of 1 figures reached.") && text.contains("WRONG: 12 rows instead of 13"), "{text}");
}

#[test]
fn numbers_are_short() {
    assert_eq!(number(1_234_567.8, Unit::PerSecond), "1,234,568/s");
    assert_eq!(number(999.6, Unit::Count), "1,000");
    assert_eq!(number(123.4, Unit::Count), "123");
    assert_eq!(number(12.34, Unit::Microseconds), "12.3 us");
    assert_eq!(number(0.1234, Unit::Milliseconds), "0.12 ms");
    assert_eq!(number(1.5, Unit::Times), "1.50 x");
    assert_eq!(number(-1_234.0, Unit::Count), "-1,234");
}
