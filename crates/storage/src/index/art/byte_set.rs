//! A set of bytes.

/// A bit for each byte that is in the set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ByteSet(pub [u64; 4]);

impl ByteSet {
    #[inline]
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }
}

impl IntoIterator for ByteSet {
    type Item = u8;
    type IntoIter = InOrder;

    fn into_iter(self) -> InOrder {
        InOrder { words: self.0, word: 0 }
    }
}

/// The bytes of a set, in order.
#[derive(Debug)]
pub(super) struct InOrder {
    words: [u64; 4],
    word: u8,
}

impl Iterator for InOrder {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            let word = self.words.get_mut(usize::from(self.word))?;
            if *word > 0 {
                let byte = 64 * self.word + word.trailing_zeros() as u8;
                *word &= *word - 1;
                return Some(byte);
            }
            self.word += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_order() {
        let of = |bytes: &[u8]| {
            let mut set = ByteSet::default();
            bytes.iter().for_each(|byte| set.insert(*byte));
            set.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&[255, 64, 0, 63, 64, 128]), [0, 63, 64, 128, 255]);
        assert!(of(&[]).is_empty());
        assert_eq!(of(&(0..=255).rev().collect::<Vec<_>>()), (0..=255).collect::<Vec<_>>());
    }
}
