//! Floats that are decimals as integers (Afroozeh, Kuffo and Boncz, "ALP: Adaptive Lossless floating-Point
//! compression", SIGMOD 2023): most floats in databases are decimals of few digits, and such a one is an integer times
//! powers of ten.
//!
//! In: floats and a [`Scale`]. Out: integers, and back. A float of which the integer does not give back the same bits
//! is an exception: the caller keeps it as it is.
//!
//! 1. [`candidates`] looks at a sample of all floats for the scales that serve them best.
//! 2. [`best`] takes the one of them that serves a few floats best.
//! 3. [`encode`] and [`decode`]. A `f32` is computed as a `f64`, and rounded at the end.
//!
//! All arithmetic is that of IEEE 754 doubles, one operation after another: the same on every machine.

#[cfg(test)]
mod tests;

/// Greatest exponent of a scale: powers of ten up to it are exact doubles.
pub const EXPONENT_MAX: u8 = 18;
/// Scales that [`candidates`] gives at most.
pub const CANDIDATES_MAX: usize = 5;

const TENS: [f64; EXPONENT_MAX as usize + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const TENTHS: [f64; EXPONENT_MAX as usize + 1] = [
    1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
    1e-18,
];
/// 2^52 + 2^51: what is added to it, and is less than 2^51, loses its fraction.
const ROUNDS: f64 = 6_755_399_441_055_744.0;

/// The powers of ten between a float and its integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scale {
    /// The float is multiplied with ten to the power of this.
    pub exponent: u8,
    /// And divided by ten to the power of this: zeros at the end of all integers.
    pub factor: u8,
}

impl Scale {
    /// The scale; `None` if an exponent is too large.
    #[must_use]
    pub fn new(exponent: u8, factor: u8) -> Option<Self> {
        (exponent <= EXPONENT_MAX && factor <= exponent).then_some(Self { exponent, factor })
    }

    /// All scales; of equal ones the shorter comes first.
    fn all() -> impl Iterator<Item = Self> {
        (0..=EXPONENT_MAX).flat_map(|exponent| (0..=exponent).map(move |factor| Self { exponent, factor }))
    }
}

/// `f64` and `f32`.
pub trait Float: Copy {
    /// As a double.
    fn wide(self) -> f64;
    /// The nearest float.
    fn narrow(wide: f64) -> Self;
    /// Whether both have the same bits.
    fn is_same(self, other: Self) -> bool;
    /// Bits of a float.
    const BITS: u32;
}

impl Float for f64 {
    #[inline]
    fn wide(self) -> f64 {
        self
    }
    #[inline]
    fn narrow(wide: f64) -> Self {
        wide
    }
    #[inline]
    fn is_same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits()
    }
    const BITS: u32 = 64;
}

impl Float for f32 {
    #[inline]
    fn wide(self) -> f64 {
        f64::from(self)
    }
    #[inline]
    fn narrow(wide: f64) -> Self {
        wide as f32
    }
    #[inline]
    fn is_same(self, other: Self) -> bool {
        self.to_bits() == other.to_bits()
    }
    const BITS: u32 = 32;
}

/// The integer nearest to `value` in `scale`; any integer where there is none.
#[inline]
#[must_use]
pub fn encode<F: Float>(value: F, scale: Scale) -> i64 {
    let scaled = value.wide() * TENS[usize::from(scale.exponent)] * TENTHS[usize::from(scale.factor)];
    ((scaled + ROUNDS) - ROUNDS) as i64
}

/// The float of `integer` in `scale`.
#[inline]
#[must_use]
pub fn decode<F: Float>(integer: i64, scale: Scale) -> F {
    F::narrow(integer as f64 * TENS[usize::from(scale.factor)] * TENTHS[usize::from(scale.exponent)])
}

/// The integer of `value` in `scale`, if it gives back `value`.
#[inline]
#[must_use]
pub fn exact<F: Float>(value: F, scale: Scale) -> Option<i64> {
    let integer = encode(value, scale);
    decode::<F>(integer, scale).is_same(value).then_some(integer)
}

/// Bits that `values` take in `scale`: integers above the least one, and exceptions with their places.
fn bits<F: Float>(values: &[F], scale: Scale) -> u64 {
    let (mut least, mut greatest, mut exceptions) = (i64::MAX, i64::MIN, 0u64);
    for value in values {
        match exact(*value, scale) {
            Some(integer) => (least, greatest) = (least.min(integer), greatest.max(integer)),
            None => exceptions += 1,
        }
    }
    let width = if least <= greatest { crate::bitpack::bits_needed(greatest.abs_diff(least)) } else { 0 };
    values.len() as u64 * u64::from(width) + exceptions * u64::from(F::BITS + 16)
}

/// The scales that serve most of `samples` best, the best one first: at least one, at most [`CANDIDATES_MAX`].
#[must_use]
pub fn candidates<'a, F: Float + 'a>(samples: impl Iterator<Item = &'a [F]>) -> Vec<Scale> {
    let mut votes: Vec<(Scale, usize)> = Vec::new();
    for sample in samples {
        let Some(scale) = Scale::all().min_by_key(|scale| bits(sample, *scale)) else { continue };
        match votes.iter_mut().find(|(voted, _)| *voted == scale) {
            Some((_, count)) => *count += 1,
            None => votes.push((scale, 1)),
        }
    }
    votes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    votes.truncate(CANDIDATES_MAX);
    if votes.is_empty() {
        votes.push((Scale { exponent: 0, factor: 0 }, 0));
    }
    votes.into_iter().map(|(scale, _)| scale).collect()
}

/// The one of `candidates` that serves `values` best.
#[must_use]
pub fn best<F: Float>(values: &[F], candidates: &[Scale]) -> Scale {
    match candidates {
        [one] => *one,
        _ => {
            let best = candidates.iter().copied().min_by_key(|scale| bits(values, *scale));
            best.unwrap_or(Scale { exponent: 0, factor: 0 })
        }
    }
}
