//! Floats as integers (Afroozeh, Kuffo and Boncz, "ALP: Adaptive Lossless floating-Point compression", SIGMOD 2023):
//! each [`VECTOR_ROWS`] rows have a scale, and a frame of reference for the integers. What is no integer in the scale
//! of its vector is an exception.
//!
//! Sections: an entry for each vector, the packed codes, the rows of exceptions in their vectors (u16), their values.
//! NULL slots and exceptions have some code. In memory the values stand as they do in plain.

use mainstem_kernels::alp::{self, Float, Scale};
use mainstem_kernels::{bitpack, cast};

use super::frame::{VECTOR_ROWS, rows_of_vector, vectors_of};
use super::native::Native;
use super::plain::{Plain, number_bytes};
use super::sections::{Damage, Sections, begin_section, padded};
use crate::schema::DataType;

/// Bytes of an entry: the reference (i64), where among the codes its own begin, in words of 8 bytes (u32), exceptions
/// of the vectors before (u32), bits of a code, exponent and factor (a byte each), 5 zeros.
pub(crate) const ENTRY_BYTES: usize = 24;
/// Vectors that are looked at to find good scales, and rows of each.
const SAMPLE_VECTORS: usize = 8;
const SAMPLE_ROWS: usize = 32;

/// A vector's part of the sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector {
    reference: i64,
    /// Where its codes begin.
    at: usize,
    width: u32,
    scale: Scale,
    /// Its first exception, of those of all vectors.
    exception: usize,
}

/// A column that is encoded.
pub(crate) struct Coded<N> {
    entries: Vec<u8>,
    codes: Vec<u8>,
    places: Vec<u16>,
    values: Vec<N>,
}

/// Some of `values` from each of a few vectors.
fn samples<N: Native>(values: &[N]) -> Vec<Vec<N>> {
    let vectors = values.chunks(VECTOR_ROWS);
    let step = vectors.len().div_ceil(SAMPLE_VECTORS).max(1);
    vectors.step_by(step).map(|vector| spread(vector)).collect()
}

/// Some of `values`, evenly spread.
fn spread<N: Native>(values: &[N]) -> Vec<N> {
    values.iter().step_by(values.len().div_ceil(SAMPLE_ROWS).max(1)).copied().collect()
}

/// The scales that serve `values` best.
pub(crate) fn candidates<N: Native + Float>(values: &[N]) -> Vec<Scale> {
    alp::candidates(samples(values).iter().map(Vec::as_slice))
}

/// Whether at least half of a sample of `values` are integers in one of `candidates`.
pub(crate) fn is_promising<N: Native + Float>(values: &[N], candidates: &[Scale]) -> bool {
    let samples = samples(values);
    let looked_at: usize = samples.iter().map(Vec::len).sum();
    let exact = |sample: &Vec<N>| {
        let scale = alp::best(sample, candidates);
        sample.iter().filter(|value| alp::exact(**value, scale).is_some()).count()
    };
    samples.iter().map(exact).sum::<usize>() * 2 >= looked_at
}

impl<N: Native + Float> Coded<N> {
    /// Encodes `values`, each vector in one of `candidates`; those of NULL slots, which `valid` denies, get code 0.
    pub fn of(values: &[N], valid: impl Fn(usize) -> bool, candidates: &[Scale]) -> Self {
        let mut coded = Self { entries: Vec::new(), codes: Vec::new(), places: Vec::new(), values: Vec::new() };
        for (number, vector) in values.chunks(VECTOR_ROWS).enumerate() {
            let scale = alp::best(&spread(vector), candidates);
            coded.push(vector, |row| valid(number * VECTOR_ROWS + row), scale);
        }
        coded
    }

    fn push(&mut self, vector: &[N], valid: impl Fn(usize) -> bool, scale: Scale) {
        let first = self.values.len();
        let integers: Vec<Option<i64>> = vector.iter().map(|value| alp::exact(*value, scale)).collect();
        let present = integers.iter().enumerate().filter(|(row, _)| valid(*row)).filter_map(|(_, integer)| *integer);
        let (least, greatest) =
            present.fold((i64::MAX, i64::MIN), |(least, greatest), v| (least.min(v), greatest.max(v)));
        let (reference, spread) = if least <= greatest { (least, greatest.abs_diff(least)) } else { (0, 0) };
        let mut codes = Vec::with_capacity(vector.len());
        for ((place, value), integer) in (0u16..).zip(vector).zip(integers) {
            let is_valid = valid(usize::from(place));
            let integer = integer.filter(|_| is_valid);
            codes.push(integer.map_or(0, |v| v.wrapping_sub(reference).cast_unsigned()));
            if integer.is_none() && is_valid {
                self.places.push(place);
                self.values.push(*value);
            }
        }
        let width = bitpack::bits_needed(spread);
        cast::to_le_bytes(&[reference], &mut self.entries);
        cast::to_le_bytes(&[(self.codes.len() / 8) as u32, first as u32], &mut self.entries);
        self.entries.extend([width as u8, scale.exponent, scale.factor, 0, 0, 0, 0, 0]);
        bitpack::pack(&codes, width, &mut self.codes);
    }

    /// Bytes of its sections.
    pub fn bytes(&self) -> usize {
        padded(self.entries.len())
            + padded(self.codes.len())
            + padded(self.places.len() * 2)
            + number_bytes::<N>(self.values.len())
    }

    /// Appends its sections, and returns the bytes of all codes and the number of exceptions.
    pub fn write(&self, body: &mut Vec<u8>) -> (u32, u32) {
        begin_section(body);
        body.extend_from_slice(&self.entries);
        begin_section(body);
        body.extend_from_slice(&self.codes);
        begin_section(body);
        cast::to_le_bytes(&self.places, body);
        begin_section(body);
        cast::to_le_bytes(&self.values, body);
        (self.codes.len() as u32, self.values.len() as u32)
    }
}

impl Vector {
    /// Takes the entry of vector `number` of `rows` rows, and proves that its codes lie within `code_bytes` and its
    /// exceptions begin within `exceptions`.
    pub fn of_entry(
        entry: &[u8],
        number: usize,
        rows: usize,
        code_bytes: usize,
        exceptions: usize,
    ) -> Result<Self, &'static str> {
        let (&[reference], &[word, exception], &[width, exponent, factor, 0, 0, 0, 0, 0]) = (
            cast::from_le_bytes::<i64>(entry.get(..8).unwrap_or_default()).as_slice(),
            cast::from_le_bytes::<u32>(entry.get(8..16).unwrap_or_default()).as_slice(),
            entry.get(16..).unwrap_or_default(),
        ) else {
            return Err("an entry of a vector that is cut off, or has no zeros at its end");
        };
        let (Some(scale), width, exception) = (Scale::new(exponent, factor), u32::from(width), exception as usize)
        else {
            return Err("a scale with an exponent that is too large");
        };
        let at = word as usize * 8;
        if width > 64 || exception > exceptions {
            return Err("a vector with codes of more than 64 bits, or exceptions behind all exceptions");
        }
        if at + bitpack::packed_bytes(rows_of_vector(number, rows), width) > code_bytes {
            return Err("a vector whose codes end behind all codes");
        }
        Ok(Self { reference, at, width, scale, exception })
    }

    /// Where its codes begin, and their width.
    pub fn codes(&self) -> (usize, u32) {
        (self.at, self.width)
    }

    /// Its first exception.
    pub fn exception(&self) -> usize {
        self.exception
    }

    /// The value of `code`.
    pub fn value<N: Float>(&self, code: u64) -> N {
        alp::decode(self.reference.wrapping_add(code.cast_signed()), self.scale)
    }
}

/// Where sections of a block begin, behind that of the entries, at `start`.
pub(crate) struct Places {
    /// The codes.
    pub codes: usize,
    /// The rows of exceptions.
    pub places: usize,
    /// Their values.
    pub values: usize,
}

impl Places {
    /// Of `rows` rows.
    pub fn of(start: usize, rows: usize, code_bytes: usize, exceptions: usize) -> Self {
        let codes = padded(start + vectors_of(rows) * ENTRY_BYTES);
        let places = padded(codes + code_bytes);
        Self { codes, places, values: padded(places + exceptions * 2) }
    }
}

/// Opens the sections of `rows` rows; in memory they are plain.
pub(crate) fn open(
    data_type: DataType,
    sections: &mut Sections,
    rows: usize,
    code_bytes: u32,
    exceptions: u32,
) -> Result<Plain, Damage> {
    match data_type {
        DataType::Real => Ok(Plain::Real(decoded(sections, rows, code_bytes, exceptions)?.into())),
        DataType::Double => Ok(Plain::Double(decoded(sections, rows, code_bytes, exceptions)?.into())),
        _ => Err(Damage::new(sections.position(), "scaled floats that are none")),
    }
}

/// The values of `rows` rows, from the remaining sections of a block.
fn decoded<N: Native + Float>(
    sections: &mut Sections,
    rows: usize,
    code_bytes: u32,
    exceptions: u32,
) -> Result<Vec<N>, Damage> {
    let at = sections.position();
    let (code_bytes, exceptions) = (code_bytes as usize, exceptions as usize);
    let entries = sections.take(vectors_of(rows) * ENTRY_BYTES)?;
    let codes = sections.take(code_bytes)?;
    let places = cast::from_le_bytes::<u16>(&sections.take(exceptions * 2)?);
    let values = cast::from_le_bytes::<N>(&sections.take(exceptions * size_of::<N>())?);
    let mut out = vec![N::default(); rows];
    let mut vectors = Vec::with_capacity(entries.len() / ENTRY_BYTES);
    let mut next = 0;
    for (number, entry) in entries.chunks_exact(ENTRY_BYTES).enumerate() {
        let damaged = |what| Damage::new(at + number * ENTRY_BYTES, what);
        let vector = Vector::of_entry(entry, number, rows, code_bytes, exceptions).map_err(damaged)?;
        if vector.at != next {
            return Err(damaged("vectors that do not stand one behind another"));
        }
        next += bitpack::packed_bytes(rows_of_vector(number, rows), vector.width);
        vectors.push(vector);
    }
    if next != code_bytes {
        return Err(Damage::new(at, "bytes behind the codes of all vectors"));
    }
    let ends = vectors.iter().skip(1).map(|vector| vector.exception).chain([exceptions]);
    let mut integers = [0i64; VECTOR_ROWS];
    let mut exception = 0;
    for ((vector, end), out) in vectors.iter().zip(ends).zip(out.chunks_mut(VECTOR_ROWS)) {
        let integers = integers.get_mut(..out.len()).unwrap_or_default();
        let codes = codes.get(vector.at..).unwrap_or_default();
        bitpack::unpack_for_i64(codes, vector.width, 0, vector.reference, integers);
        out.iter_mut().zip(integers).for_each(|(to, integer)| *to = alp::decode(*integer, vector.scale));
        let (Some(places), Some(values)) = (places.get(exception..end), values.get(exception..end)) else {
            return Err(Damage::new(at, "exceptions out of order"));
        };
        if vector.exception != exception || !places.is_sorted_by(|a, b| a < b) {
            return Err(Damage::new(at, "exceptions out of order"));
        }
        for (place, value) in places.iter().zip(values) {
            *out.get_mut(usize::from(*place)).ok_or_else(|| Damage::new(at, "an exception outside its vector"))? =
                *value;
        }
        exception = end;
    }
    if exception != exceptions {
        return Err(Damage::new(at, "exceptions of no vector"));
    }
    Ok(out)
}
