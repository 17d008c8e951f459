//! The scalar twins: a byte at a time.

use super::{Marks, Structure, Summary};

/// See [`super::summarise`].
#[must_use]
pub fn summarise(bytes: &[u8], quote: u8) -> Summary {
    let count = |wanted: u8| bytes.iter().filter(|byte| **byte == wanted).count() as u64;
    Summary { quotes: count(quote), line_feeds: count(b'\n') }
}

/// What a byte is.
const PLAIN: u8 = 0;
const QUOTE: u8 = 1;
const DELIMITER: u8 = 2;
const LINE_FEED: u8 = 3;
const CARRIAGE_RETURN: u8 = 4;

/// See [`super::find_separators`].
pub fn find_separators(bytes: &[u8], marks: Marks, in_quotes: bool, separators: &mut Vec<u32>) -> Structure {
    let mut kinds = [PLAIN; 256];
    kinds[usize::from(b'\r')] = CARRIAGE_RETURN;
    kinds[usize::from(b'\n')] = LINE_FEED;
    kinds[usize::from(marks.delimiter)] = DELIMITER;
    kinds[usize::from(marks.quote)] = QUOTE;
    let mut found = Structure { in_quotes, ..Structure::default() };
    for (at, byte) in bytes.iter().enumerate() {
        let kind = kinds[usize::from(*byte)];
        if kind == PLAIN {
            continue;
        }
        match (kind, found.in_quotes) {
            (QUOTE, _) => {
                found.in_quotes = !found.in_quotes;
                found.has_quotes = true;
            }
            (LINE_FEED, true) => found.quoted_line_feeds += 1,
            (_, true) => {}
            (CARRIAGE_RETURN, false) => found.carriage_returns += 1,
            (_, false) => {
                separators.push(at as u32);
                found.line_feeds += usize::from(kind == LINE_FEED);
            }
        }
    }
    found
}
