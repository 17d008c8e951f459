//! Makes a failing statement, and the tables under it, small.

use std::time::Instant;

use super::choices::{Choices, Span};
use super::generator::Generator;
use super::oracles::{Stage, Verdict, Way, compare};
use super::postgres::canonical;
use super::schema::{Setup, Step};
use super::writes::{Case, case};

/// A statement that is answered differently.
#[derive(Clone, Debug)]
pub struct Failure {
    pub way: Way,
    /// The kind of difference: the same while the statement is made smaller.
    pub class: String,
}

/// The first way in which `case` is answered otherwise than over plain tables.
pub fn failure_of(stage: &Stage, case: &Case, ways: &[Way], mut seen: impl FnMut(&Verdict)) -> Option<Failure> {
    let expected = stage.run(case, Way::Heap);
    if let Verdict::Different(text) = compare(&expected, &expected, &case.sorted) {
        return Some(Failure { way: Way::Heap, class: class_of(&text) });
    }
    for &way in ways {
        let found = stage.run(case, way);
        let verdict = match way {
            // PostgreSQL is right, and asked last.
            Way::Postgres => compare(&found, &canonical(stage.run(case, Way::Placed), case), &case.sorted),
            Way::InThree => compare(&expected, &found, &[]),
            // Tables that are made of a query have decimals of more digits.
            Way::InSteps => compare(&canonical(expected.clone(), case), &canonical(found, case), &case.sorted),
            _ => compare(&expected, &found, &case.sorted),
        };
        seen(&verdict);
        match verdict {
            Verdict::Different(text) => return Some(Failure { way, class: class_of(&text) }),
            Verdict::Unknown(_) if way == Way::Placed => return None,
            _ => {}
        }
    }
    None
}

/// The SQLSTATE and the beginning of the message, without numbers and names.
fn class_of(text: &str) -> String {
    let (state, rest) = text.split_at_checked(5).unwrap_or((text, ""));
    let plain: String = rest.chars().take(60).map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    let plain = format!("{state}{plain}");
    match plain.split_once('"') {
        Some((before, _)) => before.into(),
        None => plain,
    }
}

/// The statement that a list of choices makes, what was taken of it, and its spans.
fn made(setup: &Setup, list: &[u32]) -> (Case, Vec<u32>, Vec<Span>) {
    let mut choices = Choices::given(list.to_vec());
    let made = case(&mut Generator::new(&mut choices, &setup.tables));
    (made, choices.taken, choices.spans)
}

/// A shorter statement that fails alike, until `end`.
pub fn shrink_case(setup: &Setup, stage: &Stage, list: &[u32], failure: &Failure, end: Instant) -> Case {
    let fails = |case: &Case| {
        let found = failure_of(stage, case, &[failure.way], |_| {});
        found.is_some_and(|found| found.way == failure.way && found.class == failure.class)
    };
    let (mut best, mut list, mut spans) = made(setup, list);
    let mut size = best.statement.text().len();
    // Where one was taken the next ones are tried first: what comes before was in vain a moment ago.
    let (mut at, mut in_vain) = (0, 0);
    loop {
        let lists = candidates(&list, &spans);
        while in_vain < lists.len() {
            if Instant::now() > end {
                return best;
            }
            let (smaller, taken, its_spans) = made(setup, &lists[at % lists.len()]);
            let length = smaller.statement.text().len();
            if length < size && fails(&smaller) {
                (best, list, spans, size) = (smaller, taken, its_spans, length);
                in_vain = 0;
                break;
            }
            at += 1;
            in_vain += 1;
        }
        if in_vain >= lists.len() {
            return best;
        }
        at %= lists.len();
    }
}

/// Lists that may make smaller statements, the most promising first.
fn candidates(list: &[u32], spans: &[Span]) -> Vec<Vec<u32>> {
    let mut candidates = Vec::new();
    let mut by_length = spans.to_vec();
    by_length.sort_by_key(|span| std::cmp::Reverse(span.to - span.from));
    let splice = |from: usize, to: usize, with: &[u32]| [&list[..from], with, &list[to..]].concat();
    for span in &by_length {
        // An inner one of its kind in its place; the simplest one; nothing.
        let inner = spans.iter().filter(|inner| {
            inner.kind == span.kind
                && inner.from >= span.from
                && inner.to <= span.to
                && inner.to - inner.from < span.to - span.from
        });
        candidates.extend(inner.map(|inner| splice(span.from, span.to, &list[inner.from..inner.to])));
        candidates.push(splice(span.from, span.to, &[]));
        candidates.push(splice(span.from, span.to, &vec![0; span.to - span.from]));
        candidates.push(splice(span.from, span.to, &[0]));
    }
    for at in 0..list.len() {
        if list[at] > 0 {
            candidates.push(splice(at, at + 1, &[0]));
            candidates.push(splice(at, at + 1, &[list[at] - 1]));
        }
        candidates.push(splice(at, at + 1, &[]));
        if at + 1 < list.len() {
            candidates.push(splice(at, at + 2, &[]));
        }
    }
    candidates
}

/// A setup with fewer rows and steps on which `case` fails alike, until `end`.
pub fn shrink_setup(setup: &Setup, case: &Case, failure: &Failure, end: Instant) -> Setup {
    let fails = |setup: &Setup| {
        let Ok(stage) = Stage::new(setup) else { return false };
        let found = failure_of(&stage, case, &[failure.way], |_| {});
        found.is_some_and(|found| found.way == failure.way && found.class == failure.class)
    };
    let mut best = setup.clone();
    let text = case.statement.text();
    let unused = |table: &usize| !text.contains(&format!("{} ", setup.tables[*table].name));
    for step in &mut best.steps {
        if let Step::Insert { table, rows } = step
            && unused(table)
        {
            rows.clear();
        }
    }
    if !fails(&best) {
        best = setup.clone();
    }
    best = without_steps(best, &fails, end);
    without_rows(best, &fails, end)
}

fn without_steps(mut best: Setup, fails: &impl Fn(&Setup) -> bool, end: Instant) -> Setup {
    for at in (0..best.steps.len()).rev() {
        let mut smaller = best.clone();
        smaller.steps.remove(at);
        if Instant::now() < end && fails(&smaller) {
            best = smaller;
        }
    }
    for at in (0..best.session.len()).rev() {
        let mut smaller = best.clone();
        smaller.session.remove(at);
        if Instant::now() < end && fails(&smaller) {
            best = smaller;
        }
    }
    best
}

fn without_rows(mut best: Setup, fails: &impl Fn(&Setup) -> bool, end: Instant) -> Setup {
    for step in 0..best.steps.len() {
        let Step::Insert { rows, .. } = &best.steps[step] else { continue };
        let mut size = rows.len();
        while size > 0 {
            let mut at = 0;
            loop {
                let mut smaller = best.clone();
                let Step::Insert { rows, .. } = &mut smaller.steps[step] else { unreachable!() };
                if at >= rows.len() || Instant::now() > end {
                    break;
                }
                rows.drain(at..(at + size).min(rows.len()));
                if fails(&smaller) {
                    best = smaller;
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
    }
    best
}
