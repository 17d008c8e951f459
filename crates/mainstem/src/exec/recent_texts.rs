//! A bounded map of what is kept of the texts of statements.
//!
//! Comes in: texts, as programs give them or with parameters in the places of their literals, with what is kept of
//! them. Goes out: the same, as long as there is room for it.
//!
//! There are two generations, which take so many new texts and bytes of them each. When the young one is full it
//! becomes the old one, whose texts are forgotten but for those that were used since.

use std::collections::HashMap;

/// Longest text that is kept.
const LONGEST: usize = 32 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct RecentTexts<V> {
    entries_max: usize,
    bytes_max: usize,
    young: HashMap<Box<str>, V>,
    /// Bytes of the texts of `young`.
    bytes: usize,
    old: HashMap<Box<str>, V>,
    /// Bytes of the texts of `old`.
    old_bytes: usize,
}

impl<V> RecentTexts<V> {
    /// None yet; two generations of at most `entries_max` texts and `bytes_max` bytes each.
    pub(crate) fn new(entries_max: usize, bytes_max: usize) -> Self {
        Self { entries_max, bytes_max, young: HashMap::new(), bytes: 0, old: HashMap::new(), old_bytes: 0 }
    }

    /// What is kept of `text`.
    pub(crate) fn get(&mut self, text: &str) -> Option<&mut V> {
        if !self.young.contains_key(text) {
            let (text, kept) = self.old.remove_entry(text)?;
            // There is room: what makes some is a text that comes anew.
            self.bytes += text.len();
            self.old_bytes -= text.len();
            self.young.insert(text, kept);
        }
        self.young.get_mut(text)
    }

    /// Keeps `kept` of `text`. Gives what had to make room for it, to be dropped where nobody waits for that.
    pub(crate) fn put(&mut self, text: &str, kept: V) -> HashMap<Box<str>, V> {
        if text.len() > LONGEST {
            return HashMap::new();
        }
        if let Some(before) = self.young.get_mut(text) {
            *before = kept;
            return HashMap::new();
        }
        let mut displaced = HashMap::new();
        if self.young.len() >= self.entries_max || self.bytes + text.len() > self.bytes_max {
            displaced = self.age();
        }
        self.bytes += text.len();
        self.young.insert(text.into(), kept);
        displaced
    }

    /// Forgets the old generation; the young one is the old one now. Gives what was forgotten.
    pub(crate) fn age(&mut self) -> HashMap<Box<str>, V> {
        self.old_bytes = std::mem::take(&mut self.bytes);
        std::mem::replace(&mut self.old, std::mem::take(&mut self.young))
    }

    /// About how many bytes texts and their places take, without what is kept of them.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.young.capacity() + self.old.capacity();
        self.bytes + self.old_bytes + entries * size_of::<(Box<str>, V)>()
    }

    /// All texts, in no order, with what is kept of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        let old = self.old.iter().filter(|(text, _)| !self.young.contains_key(*text));
        self.young.iter().chain(old).map(|(text, kept)| (&**text, kept))
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, RecentTexts};

    const ENTRIES_MAX: usize = 256;
    const TEXT_BYTES_MAX: usize = 512 << 10;

    #[test]
    fn texts_that_are_used_stay_and_others_go() {
        let mut cache = RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX);
        cache.put("used", ());
        cache.put("unused", ());
        for number in 0..1_000_000 {
            cache.put(&number.to_string(), ());
            if number % 100 == 0 {
                assert!(cache.get("used").is_some(), "{number}");
            }
        }
        assert!(cache.get("unused").is_none());
        assert_eq!(cache.iter().filter(|(text, ())| *text == "used").count(), 1);
        assert!(cache.young.len() + cache.old.len() <= 2 * ENTRIES_MAX + 1);
    }

    #[test]
    fn bytes_of_texts_are_bounded() {
        let mut cache = RecentTexts::new(ENTRIES_MAX, TEXT_BYTES_MAX);
        let long = "x".repeat(LONGEST - 8);
        for number in 0..200 {
            cache.put(&format!("{long}{number}"), ());
        }
        let bytes =
            |texts: &std::collections::HashMap<Box<str>, ()>| texts.keys().map(|text| text.len()).sum::<usize>();
        assert!(bytes(&cache.young) + bytes(&cache.old) <= 2 * TEXT_BYTES_MAX);
        cache.put(&"y".repeat(LONGEST + 1), ());
        assert!(cache.get(&"y".repeat(LONGEST + 1)).is_none());
    }
}
