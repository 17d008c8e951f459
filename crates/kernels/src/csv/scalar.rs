//! The scalar twins: a byte at a time.

use super::{Marks, Structure, Summary};

/// See [`super::summarise`].
#[must_use]
pub fn summarise(bytes: &[u8], quote: u8) -> Summary {
    let count = |wanted: u8| bytes.iter().filter(|byte| **byte == wanted).count() as u64;
    Summary { quotes: count(quote), line_feeds: count(b'\n') }
}

/// See [`super::find_separators`].
pub fn find_separators(bytes: &[u8], marks: Marks, in_quotes: bool, separators: &mut Vec<u32>) -> Structure {
    let mut found = Structure { in_quotes, ..Structure::default() };
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == marks.quote {
            found.in_quotes = !found.in_quotes;
            found.has_quotes = true;
        } else if found.in_quotes {
        } else if *byte == marks.delimiter {
            separators.push(at as u32);
        } else if *byte == b'\n' {
            separators.push(at as u32);
            found.line_feeds += 1;
        } else if *byte == b'\r' {
            found.carriage_returns += 1;
        }
    }
    found
}
