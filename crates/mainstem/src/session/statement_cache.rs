//! Statements that a connection keeps by their texts, so that a text that was seen before is neither parsed nor
//! planned.
//!
//! Comes in: texts, as programs give them or with parameters in the places of their literals. Goes out: the prepared
//! statement of a text, if it is kept. What a prepared statement knows of a version of the schema it checks itself.
//!
//! There are two generations, of at most [`ENTRIES_MAX`] texts and [`TEXT_BYTES_MAX`] bytes each. When the young one is
//! full it becomes the old one, whose texts are forgotten but for those that were used since.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::prepared::Prepared;

/// Texts of a generation.
const ENTRIES_MAX: usize = 256;
/// Bytes of the texts of a generation.
const TEXT_BYTES_MAX: usize = 512 << 10;
/// Longest text that is kept.
const LONGEST: usize = 32 << 10;

/// What is kept of a text.
#[derive(Clone, Debug)]
pub(crate) enum Kept {
    /// It was seen once: texts that never come back are not prepared.
    Seen,
    /// It is no statement for which this is of use.
    Useless,
    /// It is prepared.
    Prepared(Arc<Mutex<Prepared>>),
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct StatementCache {
    young: HashMap<Box<str>, Kept>,
    /// Bytes of the texts of `young`.
    bytes: usize,
    old: HashMap<Box<str>, Kept>,
}

impl StatementCache {
    /// What is kept of `text`.
    pub(super) fn get(&mut self, text: &str) -> Option<Kept> {
        if let Some(kept) = self.young.get(text) {
            return Some(kept.clone());
        }
        let (text, kept) = self.old.remove_entry(text)?;
        self.insert(text, kept.clone());
        Some(kept)
    }

    /// Keeps `kept` of `text`.
    pub(super) fn put(&mut self, text: &str, kept: Kept) {
        if text.len() <= LONGEST {
            self.insert(text.into(), kept);
        }
    }

    fn insert(&mut self, text: Box<str>, kept: Kept) {
        if self.young.len() >= ENTRIES_MAX || self.bytes + text.len() > TEXT_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        let bytes = text.len();
        if self.young.insert(text, kept).is_none() {
            self.bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES_MAX, Kept, LONGEST, StatementCache, TEXT_BYTES_MAX};

    #[test]
    fn texts_that_are_used_stay_and_others_go() {
        let mut cache = StatementCache::default();
        cache.put("used", Kept::Seen);
        cache.put("unused", Kept::Seen);
        for number in 0..1_000_000 {
            cache.put(&number.to_string(), Kept::Seen);
            if number % 100 == 0 {
                assert!(cache.get("used").is_some(), "{number}");
            }
        }
        assert!(cache.get("unused").is_none());
        assert!(cache.young.len() + cache.old.len() <= 2 * ENTRIES_MAX);
    }

    #[test]
    fn bytes_of_texts_are_bounded() {
        let mut cache = StatementCache::default();
        let long = "x".repeat(LONGEST - 8);
        for number in 0..200 {
            cache.put(&format!("{long}{number}"), Kept::Seen);
        }
        let bytes =
            |texts: &std::collections::HashMap<Box<str>, Kept>| texts.keys().map(|text| text.len()).sum::<usize>();
        assert!(bytes(&cache.young) + bytes(&cache.old) <= 2 * TEXT_BYTES_MAX);
        cache.put(&"y".repeat(LONGEST + 1), Kept::Seen);
        assert!(cache.get(&"y".repeat(LONGEST + 1)).is_none());
    }
}
