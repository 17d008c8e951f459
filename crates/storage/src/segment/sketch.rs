//! A sketch of the distinct values of a column (Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog: the analysis of a
//! near-optimal cardinality estimation algorithm", AofA 2007): from those of several segments that of all of them is
//! made, which no counts allow. Right to about 9 % in most cases.
//!
//! Comes in: hashes of values. Goes out: how many different ones there were, about.

use mainstem_kernels::bitpack;

use crate::codec::{Decoder, Encoder};
use crate::error::Result;

/// Registers: the error of the estimate is 1.04 / sqrt(128).
const REGISTERS: usize = 128;
/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = REGISTERS.ilog2();
/// Bits of a register.
const REGISTER_BITS: u32 = 6;
/// The most that a register holds: all bits of a hash that choose no register are zeros.
const REGISTER_MAX: u32 = u64::BITS - INDEX_BITS + 1;
/// Bytes of a sketch in metadata.
const SKETCH_BYTES: usize = REGISTERS * REGISTER_BITS as usize / 8;

/// About how many different values a column has.
#[derive(Clone, PartialEq, Eq)]
pub struct DistinctSketch {
    /// For each the most zeros in front of a hash that came to it, and one.
    registers: Box<[u8; REGISTERS]>,
}

impl std::fmt::Debug for DistinctSketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DistinctSketch({})", self.estimate())
    }
}

impl Default for DistinctSketch {
    fn default() -> Self {
        Self { registers: Box::new([0; REGISTERS]) }
    }
}

impl DistinctSketch {
    /// The sketch of the values with these hashes, which must be well mixed.
    #[must_use]
    pub fn of(hashes: impl Iterator<Item = u64>) -> Self {
        let mut sketch = Self::default();
        hashes.for_each(|hash| sketch.add(hash));
        sketch
    }

    /// Takes in a value with this hash.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let rest = hash << INDEX_BITS | 1 << (INDEX_BITS - 1);
        let rank = rest.leading_zeros() as u8 + 1;
        let register = &mut self.registers[(hash >> (64 - INDEX_BITS)) as usize];
        *register = rank.max(*register);
    }

    /// Takes in what `other` has seen.
    pub fn merge(&mut self, other: &Self) {
        self.registers.iter_mut().zip(other.registers.iter()).for_each(|(own, other)| *own = (*own).max(*other));
    }

    /// About how many different hashes there were.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        let count = REGISTERS as f64;
        let sum: f64 = self.registers.iter().map(|register| 2f64.powi(-i32::from(*register))).sum();
        let alpha = 0.7213 / (1.0 + 1.079 / count);
        let estimate = alpha * count * count / sum;
        let empty = self.registers.iter().filter(|register| **register == 0).count();
        // Few values: how many registers saw none tells more.
        let estimate = match empty {
            1.. if estimate <= 2.5 * count => count * (count / empty as f64).ln(),
            _ => estimate,
        };
        estimate.round() as u64
    }

    pub(super) fn encode(&self, e: &mut Encoder) {
        let registers = self.registers.map(u64::from);
        let mut packed = Vec::with_capacity(SKETCH_BYTES);
        bitpack::pack(&registers, REGISTER_BITS, &mut packed);
        e.raw(&packed);
    }

    pub(super) fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let packed = d.raw(SKETCH_BYTES)?;
        let mut registers = [0; REGISTERS];
        bitpack::unpack_u8(packed, REGISTER_BITS, 0, &mut registers);
        if registers.iter().any(|register| u32::from(*register) > REGISTER_MAX) {
            return Err(d.corrupt("a sketch of distinct values that none has"));
        }
        Ok(Self { registers: Box::new(registers) })
    }
}

#[cfg(test)]
mod tests {
    use mainstem_kernels::hash::hash_u64;

    use super::*;

    /// Of few values and many, as they come and merged from parts that overlap.
    #[test]
    fn estimates_are_near() {
        for count in [0u64, 1, 2, 10, 100, 400, 1_000, 10_000, 300_000] {
            let mut merged = DistinctSketch::default();
            for part in 0..5 {
                let from = count * part / 8;
                merged.merge(&DistinctSketch::of((from..from + count / 2).map(hash_u64)));
            }
            let (all, whole) = (merged.estimate(), DistinctSketch::of((0..count).chain(0..count / 2).map(hash_u64)));
            assert!(all.abs_diff(whole.estimate()) <= 2 + count / 100, "{all} merged, {whole:?} together");
            assert!(whole.estimate().abs_diff(count) <= 2 + count / 5, "{whole:?} of {count}");
        }
    }

    #[test]
    fn a_sketch_is_its_bytes() {
        let sketch = DistinctSketch::of([0, u64::MAX, 1 << 57, 77].into_iter().chain((0..500).map(hash_u64)));
        let mut e = Encoder::new();
        sketch.encode(&mut e);
        let bytes = e.finish();
        assert_eq!(bytes.len(), SKETCH_BYTES);
        let mut d = Decoder::new(&bytes, "manifest", 0);
        assert_eq!(DistinctSketch::decode(&mut d).unwrap(), sketch);
        DistinctSketch::decode(&mut Decoder::new(&bytes[1..], "manifest", 0)).unwrap_err();
        let error = DistinctSketch::decode(&mut Decoder::new(&[0xff; SKETCH_BYTES], "manifest", 0)).unwrap_err();
        assert!(error.to_string().contains("a sketch of distinct values that none has"), "{error}");
    }
}
