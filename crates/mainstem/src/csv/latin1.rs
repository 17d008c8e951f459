//! Bytes of a file in LATIN1 (ISO 8859-1) as UTF-8.

use std::io::{self, Read};

/// Bytes that are read at once.
const BYTES: usize = 64 << 10;

/// `input`, each byte of which is a character, as UTF-8.
#[derive(Debug)]
pub(crate) struct Latin1<R> {
    input: R,
    buffer: Vec<u8>,
    /// Bytes of it that are still to be read.
    rest: std::ops::Range<usize>,
    /// The second byte of a character for which there was no room.
    second: Option<u8>,
}

impl<R: Read> Latin1<R> {
    /// See the type.
    pub(crate) fn new(input: R) -> Self {
        Self { input, buffer: vec![0; BYTES], rest: 0..0, second: None }
    }
}

impl<R: Read> Read for Latin1<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && self.second.is_none() {
            self.rest = 0..self.input.read(&mut self.buffer)?;
        }
        let mut written = 0;
        for slot in buffer {
            let byte = match self.second.take() {
                Some(second) => second,
                None => {
                    let Some(byte) = self.rest.next().and_then(|at| self.buffer.get(at)).copied() else { break };
                    if byte >= 0x80 {
                        self.second = Some(0x80 | (byte & 0x3F));
                        0xC0 | (byte >> 6)
                    } else {
                        byte
                    }
                }
            };
            *slot = byte;
            written += 1;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn every_byte_is_its_character() {
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let expected: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        for room in [1, 2, 3, 7, 4_096] {
            let (mut reader, mut found) = (Latin1::new(bytes.as_slice()), Vec::new());
            let mut buffer = vec![0; room];
            loop {
                match reader.read(&mut buffer).unwrap() {
                    0 => break,
                    read => found.extend_from_slice(&buffer[..read]),
                }
            }
            assert!(String::from_utf8(found).unwrap() == expected, "{room}");
        }
    }
}
