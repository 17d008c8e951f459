//! Bytes of records and footers: little-endian numbers, varints, length-prefixed strings.
//!
//! Comes in: values (an [`Encoder`] appends them to a buffer) or bytes from a file (a [`Decoder`] reads them in the
//! same order). Goes out: bytes, or values, or a Corrupt error that names file and byte. Invariants: a decoder never
//! panics and never allocates more than the bytes it was given could fill. It does not own: checksums and framing.

use crate::error::{Error, Result};

/// Longest varint of a u64: 10 bytes of 7 bits.
const VARINT_BYTES_MAX: usize = 10;

/// Appends values to a buffer.
#[derive(Debug, Default, Clone)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer with room for `bytes` bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    /// Goes on at the end of `bytes`.
    #[must_use]
    pub fn on(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// One byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes, little-endian, two's complement.
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Sixteen bytes, little-endian, two's complement.
    pub fn i128(&mut self, value: i128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes: the bits of the number.
    pub fn f64(&mut self, value: f64) {
        self.u64(value.to_bits());
    }

    /// 1 to 10 bytes: seven bits each, low first, high bit set on all but the last.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A signed number as a varint of its zigzag form (0, -1, 1, -2, ...).
    pub fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    /// Length as varint, then the bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.raw(value);
    }

    /// As [`Encoder::bytes`], of `len` bytes that `write` appends.
    pub fn bytes_by(&mut self, len: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.varint(len as u64);
        let start = self.bytes.len();
        write(&mut self.bytes);
        debug_assert_eq!(self.bytes.len() - start, len, "as many bytes as were told");
    }

    /// Length in bytes as varint, then UTF-8.
    pub fn str(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// The bytes alone; the reader has to know how many.
    pub fn raw(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
    }

    /// 0, or 1 and what `write` appends.
    pub fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// Count as varint, then what `write` appends for each.
    pub fn list<T>(&mut self, values: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.varint(values.len() as u64);
        for value in values {
            write(self, value);
        }
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was appended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What was appended.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// What was appended, out of the encoder.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads values in the order an [`Encoder`] wrote them. Every method fails with Corrupt (XX001), naming the file and
/// the byte, when the bytes end early or make no such value.
#[derive(Debug, Clone)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    file: &'a str,
    base: u64,
}

impl<'a> Decoder<'a> {
    /// Reads `bytes`, which begin at byte `base` of `file` (both only for messages).
    #[must_use]
    pub fn new(bytes: &'a [u8], file: &'a str, base: u64) -> Self {
        Self { bytes, at: 0, file, base }
    }

    /// A Corrupt error at the current byte.
    #[must_use]
    pub fn corrupt(&self, message: impl std::fmt::Display) -> Error {
        Error::corrupt(self.file, self.base + self.at as u64, message)
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// Corrupt when there are fewer.
    pub fn raw(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(n);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += n;
                Ok(taken)
            }
            None => Err(self.corrupt(format_args!("{n} bytes expected, {} left", self.remaining()))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.raw(N)?);
        Ok(array)
    }

    /// One byte.
    ///
    /// # Errors
    /// Corrupt.
    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[b]| b)
    }

    /// One byte that is 0 or 1.
    ///
    /// # Errors
    /// Corrupt.
    pub fn bool(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.corrupt(format_args!("0 or 1 expected, {other} found"))),
        }
    }

    /// Two bytes, little-endian.
    ///
    /// # Errors
    /// Corrupt.
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// Corrupt.
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    ///
    /// # Errors
    /// Corrupt.
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Eight bytes, little-endian, two's complement.
    ///
    /// # Errors
    /// Corrupt.
    pub fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Sixteen bytes, little-endian, two's complement.
    ///
    /// # Errors
    /// Corrupt.
    pub fn i128(&mut self) -> Result<i128> {
        self.array().map(i128::from_le_bytes)
    }

    /// Eight bytes: the bits of the number.
    ///
    /// # Errors
    /// Corrupt.
    pub fn f64(&mut self) -> Result<f64> {
        self.u64().map(f64::from_bits)
    }

    /// A varint.
    ///
    /// # Errors
    /// Corrupt, also when it does not fit 64 bits.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for i in 0..VARINT_BYTES_MAX {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if i == VARINT_BYTES_MAX - 1 && bits > 1 {
                break;
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.corrupt("a varint of more than 64 bits"))
    }

    /// A varint that fits 32 bits.
    ///
    /// # Errors
    /// Corrupt.
    pub fn varint_u32(&mut self) -> Result<u32> {
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| self.corrupt(format_args!("{value} does not fit 32 bits")))
    }

    /// A signed varint in zigzag form.
    ///
    /// # Errors
    /// Corrupt.
    pub fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A count of things that take at least `bytes_each` bytes, so that a damaged count cannot make the reader allocate
    /// more than the input could fill.
    ///
    /// # Errors
    /// Corrupt, also when so many cannot follow.
    pub fn count(&mut self, bytes_each: usize) -> Result<usize> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(n) if n.checked_mul(bytes_each.max(1)).is_some_and(|bytes| bytes <= self.remaining()) => Ok(n),
            _ => Err(self.corrupt(format_args!("a count of {count}, {} bytes left", self.remaining()))),
        }
    }

    /// Length-prefixed bytes.
    ///
    /// # Errors
    /// Corrupt.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let n = self.count(1)?;
        self.raw(n)
    }

    /// Length-prefixed UTF-8.
    ///
    /// # Errors
    /// Corrupt.
    pub fn str(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt("text that is not UTF-8"))
    }

    /// What [`Encoder::option`] wrote.
    ///
    /// # Errors
    /// Corrupt, or what `read` fails with.
    pub fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    /// What [`Encoder::list`] wrote; each entry takes at least one byte.
    ///
    /// # Errors
    /// Corrupt, or what `read` fails with.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let n = self.count(1)?;
        // Entries may be larger in memory than here: growing as they come keeps a lying count harmless.
        let mut entries = Vec::with_capacity(n.min(1_024));
        for _ in 0..n {
            entries.push(read(self)?);
        }
        Ok(entries)
    }

    /// Bytes not yet read.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Bytes read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// Corrupt when bytes are left.
    pub fn finish(self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            n => Err(self.corrupt(format_args!("{n} bytes too many"))),
        }
    }
}

#[cfg(test)]
mod tests;
