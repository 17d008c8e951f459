use mainstem_bench::report::Report;
use mainstem_bench::transactions::{self, Plan};

use super::tiny;

fn run(parts: &[&str], peers: bool) -> Report {
    tiny::run("transactions", parts, peers, |settings, report| transactions::run(Plan::tiny(), settings, report))
}

#[test]
fn every_part_gives_right_answers() {
    let report = run(&[], true);
    tiny::has(
        &report,
        &[
            ("transfers, 1 thread", "rate"),
            ("transfers, 4 threads", "p99"),
            ("transfers, 4 threads", "run again of 1,000"),
            ("transfers, 1 thread beside 2 that sum", "rate"),
            ("transfers, 4 threads beside 2 that sum", "sums"),
            ("mix like TPC-C's", "rate"),
            ("new order", "p50"),
            ("delivery", "p50"),
        ],
    );
    assert!(report.figures().iter().any(|figure| figure.yardstick.is_some()), "{}", report.text());
}

#[test]
fn one_part_runs_alone_and_without_peers() {
    let report = run(&["tpcc"], false);
    assert_eq!(report.figures().len(), 3 + 5, "{}", report.text());
    assert!(report.figures().iter().all(|figure| figure.yardstick.is_none()), "{}", report.text());
}
