//! The order of rows by a sort key of several columns.
//!
//! Comes in: the columns of the key. Goes out: the numbers of the rows, in the order of the key.
//!
//! 1. Rows are sorted by their words (`key`), digit by digit (`mainstem_kernels::sort`).
//! 2. Rows of one word that are not known to be equal are sorted again, from the column on that the word did not tell
//!    in full: many of them by words of their own, a few by comparing them, and so are those that words cannot tell
//!    apart.
//!
//! Invariant: each time rows are sorted again, their words tell more of the key, or there are fewer of them, so it
//! ends.

use std::cmp::Ordering;
use std::ops::Range;

use arrow::error::ArrowError;
use arrow_ord::ord::{DynComparator, make_comparator};
use mainstem_kernels::sort::sort_by_words;

use super::key::{KeyColumn, words_of};

/// Rows of one word up to which they are compared with one another.
const COMPARED_MAX: usize = 32;

/// The first `limit` of `rows` rows, in the order of `columns`. Of rows that are equal any may come first.
///
/// # Errors
/// Of Arrow, for values that cannot be compared.
pub(super) fn ordered(columns: &[KeyColumn], rows: usize, limit: usize) -> Result<Vec<u32>, ArrowError> {
    let mut order: Vec<u32> = (0..u32::try_from(rows).unwrap_or(u32::MAX)).collect();
    let mut comparators: Option<Vec<DynComparator>> = None;
    let mut unsorted = vec![(0..order.len(), 0)];
    while let Some((range, first)) = unsorted.pop() {
        // What is behind the limit may stay as it is.
        if range.start >= limit {
            continue;
        }
        let Some(part) = order.get_mut(range.clone()) else { continue };
        if part.len() > COMPARED_MAX {
            let mut made = words_of(columns, first, part);
            sort_by_words(&mut made.words, part, made.bits);
            let Some(reached) = made.reached else { continue };
            if reached > first || made.words.first() != made.words.last() {
                unsorted.extend(runs(&made.words, range.start).map(|run| (run, reached)));
                continue;
            }
            // Texts that differ in zeros at their ends alone have one word, however often it is made.
        }
        let comparators = match &mut comparators {
            Some(made) => made,
            none => none.insert(comparators_of(columns)?),
        };
        part.sort_unstable_by(|a, b| compare(comparators, first, *a, *b));
    }
    order.truncate(limit);
    Ok(order)
}

/// Ranges of at least two equal words, counted from `start` on.
fn runs(words: &[u64], start: usize) -> impl Iterator<Item = Range<usize>> {
    let runs = words.chunk_by(|a, b| a == b).scan(start, |next, run| {
        let begin = *next;
        *next += run.len();
        Some(begin..*next)
    });
    runs.filter(|run| run.len() > 1)
}

fn comparators_of(columns: &[KeyColumn]) -> Result<Vec<DynComparator>, ArrowError> {
    columns.iter().map(|column| make_comparator(&column.values, &column.values, column.options)).collect()
}

fn compare(comparators: &[DynComparator], first: usize, a: u32, b: u32) -> Ordering {
    let mut orders = comparators.iter().skip(first).map(|compare| compare(a as usize, b as usize));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
