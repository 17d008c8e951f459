//! Sorts rows by unsigned words: least significant digit first, one counting pass a digit.
//!
//! In: a word a row, the number of bits that words may have set, and an identifier a row. Out: both in the order of the
//! words; rows of equal words in the order in which they came.
//!
//! 1. What is in order is left alone; few rows are compared with one another.
//! 2. Where word and position fit 64 bits together, one number a row is moved, else a pair.
//! 3. All digits are counted in one pass; a digit that is the same everywhere takes no pass of its own.
//!
//! It does not own: how keys become words.

/// Bits of a digit at most: more lists to write to at once would miss the caches.
const DIGIT_BITS_MAX: u32 = 10;
/// Rows up to which comparing costs less than counting.
const COMPARED_MAX: usize = 512;

/// Sorts `words`, of which only the lowest `bits` bits are set, and `ids` along with them.
///
/// # Panics
/// When there are not as many `ids` as `words`, or more than 2^32.
pub fn sort_by_words(words: &mut [u64], ids: &mut [u32], bits: u32) {
    assert_eq!(words.len(), ids.len(), "a word for each row");
    assert!(u32::try_from(words.len()).is_ok(), "rows are numbered with 32 bits");
    if bits == 0 || words.is_sorted() {
        return;
    }
    if words.len() <= COMPARED_MAX {
        return compare(words, ids);
    }
    let position_bits = usize::BITS - (words.len() - 1).leading_zeros();
    if bits + position_bits <= u64::BITS {
        let packed = words.iter().enumerate().map(|(at, word)| word << position_bits | at as u64).collect();
        let packed = by_digits(packed, bits, |packed: &u64| packed >> position_bits);
        let before = ids.to_vec();
        let mask = (1_u64 << position_bits) - 1;
        for ((word, id), packed) in words.iter_mut().zip(ids).zip(packed) {
            *word = packed >> position_bits;
            *id = before[(packed & mask) as usize];
        }
    } else {
        let pairs = words.iter().copied().zip(ids.iter().copied()).collect();
        let pairs = by_digits(pairs, bits, |pair: &(u64, u32)| pair.0);
        put_back(words, ids, &pairs);
    }
}

fn compare(words: &mut [u64], ids: &mut [u32]) {
    let mut pairs: Vec<(u64, u32)> = words.iter().copied().zip(ids.iter().copied()).collect();
    pairs.sort_by_key(|pair| pair.0);
    put_back(words, ids, &pairs);
}

fn put_back(words: &mut [u64], ids: &mut [u32], pairs: &[(u64, u32)]) {
    for ((word, id), pair) in words.iter_mut().zip(ids).zip(pairs) {
        (*word, *id) = *pair;
    }
}

/// `entries` in the order of the lowest `bits` bits of their words.
fn by_digits<E: Copy>(mut entries: Vec<E>, bits: u32, word: impl Fn(&E) -> u64) -> Vec<E> {
    let passes = bits.div_ceil(DIGIT_BITS_MAX);
    let digit_bits = bits.div_ceil(passes);
    let mask = (1_u64 << digit_bits) - 1;
    let digit = |entry: &E, pass: u32| ((word(entry) >> (pass * digit_bits)) & mask) as usize;
    let mut counts = vec![vec![0_u32; 1 << digit_bits]; passes as usize];
    for entry in &entries {
        for (pass, counts) in (0..).zip(&mut counts) {
            counts[digit(entry, pass)] += 1;
        }
    }
    let mut sorted = entries.clone();
    for (pass, counts) in (0..).zip(&mut counts) {
        if counts.iter().any(|count| *count as usize == entries.len()) {
            continue;
        }
        let mut next = 0;
        for count in counts.iter_mut() {
            next += std::mem::replace(count, next);
        }
        for entry in &entries {
            let place = &mut counts[digit(entry, pass)];
            sorted[*place as usize] = *entry;
            *place += 1;
        }
        std::mem::swap(&mut entries, &mut sorted);
    }
    entries
}

#[cfg(test)]
mod tests;
