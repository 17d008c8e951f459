//! Texts as codes of one byte, each for a symbol of one to eight bytes (Boncz, Neumann and Leis, "FSST: Fast Random
//! Access String Compression", VLDB 2020): any text is decoded without its neighbours.
//!
//! In: a table of at most 255 symbols, and codes. Out: texts, appended to the caller's vector. Code 255 is an escape:
//! the byte behind it stands for itself. [`Encoder`] makes codes of texts. Who finds the symbols stands outside.
//!
//! Nothing is believed of a table or of codes: a code without a symbol, or an escape without a byte behind it, is told.

mod encoder;
mod fast;
pub mod scalar;

#[cfg(test)]
mod tests;

pub use encoder::Encoder;

/// Most symbols of a table.
pub const SYMBOLS_MAX: usize = 255;
/// Most bytes of a symbol.
pub const SYMBOL_BYTES_MAX: usize = 8;
/// Most bytes of all texts that are decoded at once: what 31 bits count.
pub const TEXT_BYTES_MAX: usize = i32::MAX as usize;
/// The code in front of a byte that stands for itself.
pub const ESCAPE: u8 = 255;

/// A table of symbols.
#[derive(Clone)]
pub struct Symbols {
    /// The bytes of a symbol, the first one lowest, zeros above.
    words: [u64; 256],
    /// 0 where there is no symbol.
    lengths: [u8; 256],
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Symbols({})", self.lengths.iter().filter(|length| **length > 0).count())
    }
}

impl Symbols {
    /// The table with `symbols`, in the order of their codes; `None` if they are too many, or one is empty or too long.
    #[must_use]
    pub fn new<'a>(symbols: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut table = Self { words: [0; 256], lengths: [0; 256] };
        for (code, symbol) in symbols.into_iter().enumerate() {
            if code >= SYMBOLS_MAX || symbol.is_empty() || symbol.len() > SYMBOL_BYTES_MAX {
                return None;
            }
            let mut word = [0; 8];
            word[..symbol.len()].copy_from_slice(symbol);
            table.words[code] = u64::from_le_bytes(word);
            table.lengths[code] = symbol.len() as u8;
        }
        Some(table)
    }

    /// Takes the table from `bytes`: the number of symbols, their lengths, their bytes. `None` if they are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first()?;
        let (lengths, mut rest) = rest.split_at_checked(usize::from(*count))?;
        let mut symbols = Vec::with_capacity(lengths.len());
        for length in lengths {
            let (symbol, behind) = rest.split_at_checked(usize::from(*length))?;
            symbols.push(symbol);
            rest = behind;
        }
        if rest.is_empty() { Self::new(symbols) } else { None }
    }

    /// Appends the table to `out`, as [`Symbols::from_bytes`] takes it.
    pub fn to_bytes(&self, out: &mut Vec<u8>) {
        let count = self.lengths.iter().take_while(|length| **length > 0).count();
        out.push(count as u8);
        out.extend_from_slice(&self.lengths[..count]);
        for (word, length) in self.words.iter().zip(&self.lengths[..count]) {
            out.extend_from_slice(&word.to_le_bytes()[..usize::from(*length)]);
        }
    }

    /// Appends the text of `codes` to `out`; false if they are damaged or
    /// `out` becomes longer than [`TEXT_BYTES_MAX`], with something or nothing appended.
    pub fn decode(&self, codes: &[u8], out: &mut Vec<u8>) -> bool {
        scalar::decode(self, codes, out)
    }

    /// Decodes texts that stand one behind another in `codes`: the first has the first one of `lengths` bytes there,
    /// and so on. Appends the texts to `out`, and the length of `out` behind each to `ends`. False if `lengths` are not
    /// those of `codes`, codes are damaged, or an end exceeds [`TEXT_BYTES_MAX`], with something or nothing appended.
    pub fn decode_all(&self, codes: &[u8], lengths: &[u32], out: &mut Vec<u8>, ends: &mut Vec<i32>) -> bool {
        fast::decode_all(self, codes, lengths, out, ends)
    }
}
