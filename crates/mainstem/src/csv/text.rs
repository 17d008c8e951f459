//! Bytes of FORMAT text to text columns: a line a row, special characters behind a backslash.

use std::io::{BufRead, BufReader, Read};

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::reader::{BATCH_BYTES, CHUNK_BYTES, Fields, TextBatch};
use crate::sql::TextOptions;

/// Reads lines of a fixed number of fields, up to the end or a line `\.`.
pub(crate) struct TextReader<R> {
    input: BufReader<R>,
    options: TextOptions,
    names: Vec<String>,
    /// The line being read, without its end.
    record: Vec<u8>,
    /// Its number, from 1.
    line: u64,
    /// How many lines it took: line breaks may stand behind a backslash.
    lines: u64,
    /// Bytes before it, and of it with its end.
    start: u64,
    bytes: u64,
    header_pending: bool,
    ended: bool,
}

impl<R: Read> TextReader<R> {
    /// A reader of `input` for columns called `names`.
    pub(crate) fn new(input: R, options: TextOptions, names: Vec<String>) -> Self {
        let input = BufReader::with_capacity(CHUNK_BYTES, input);
        let header_pending = options.header;
        Self {
            input,
            options,
            names,
            record: Vec::new(),
            line: 1,
            lines: 0,
            start: 0,
            bytes: 0,
            header_pending,
            ended: false,
        }
    }

    /// Up to `rows` more rows; None at the end.
    ///
    /// # Errors
    /// 22P04 for a malformed line, 53200 for one that is too long, 22021 for bytes that are no UTF-8, with line and
    /// column; Io.
    pub(crate) fn next_batch(&mut self, rows: usize) -> Result<Option<TextBatch>> {
        if std::mem::take(&mut self.header_pending) {
            self.next_record()?;
        }
        let mut columns: Vec<Fields> = self.names.iter().map(|_| Fields::default()).collect();
        let (mut lines, mut starts) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while lines.len() < rows && bytes < BATCH_BYTES && self.next_record()? {
            bytes += self.record.len();
            self.split(&mut columns)?;
            lines.push(self.line);
            starts.push(self.start);
        }
        TextBatch::of(columns, lines, starts, &self.names)
    }

    /// Reads the next line, and those that follow it because its end stands behind a backslash; false at the end of the
    /// data.
    fn next_record(&mut self) -> Result<bool> {
        self.line += self.lines;
        self.lines = 0;
        self.start += std::mem::take(&mut self.bytes);
        self.record.clear();
        while !self.ended {
            let limit = self.options.row_limit;
            let left = (limit.bytes() + 1 - self.record.len()) as u64;
            let read = (&mut self.input).take(left).read_until(b'\n', &mut self.record);
            let read = read.map_err(|e| Error::io("read", "the data", e))?;
            self.bytes += read as u64;
            if self.record.len() > limit.bytes() {
                return Err(limit.error(format_args!("line {}: a row", self.line)));
            }
            if read == 0 {
                self.ended = true;
                break;
            }
            self.lines += 1;
            if self.record.pop_if(|byte| *byte == b'\n').is_none() {
                self.ended = true;
            } else if self.record.last() == Some(&b'\r') {
                self.record.pop();
            }
            if self.record == b"\\." {
                self.ended = true;
                self.record.clear();
                return Ok(false);
            }
            let backslashes = self.record.iter().rev().take_while(|byte| **byte == b'\\').count();
            if backslashes % 2 == 0 || self.ended {
                return Ok(true);
            }
            self.record.push(b'\n');
        }
        Ok(!self.record.is_empty())
    }

    fn malformed(&self, what: String) -> Error {
        Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("line {}: {what}", self.line))
    }

    /// Puts the fields of the line into `columns`.
    fn split(&self, columns: &mut [Fields]) -> Result<()> {
        let mut rest = Some(self.record.as_slice());
        for (fields, name) in columns.iter_mut().zip(&self.names) {
            let Some(text) = rest else {
                return Err(self.malformed(format!("missing data for column \"{name}\"")));
            };
            let end = field_end(text, self.options.delimiter);
            let field = text.get(..end).unwrap_or_default();
            rest = text.get(end + 1..);
            let is_null = field == self.options.null.as_bytes();
            if !is_null {
                unescape(field, &mut fields.text);
            }
            fields.end_field(is_null)?;
        }
        match rest {
            Some(_) => Err(self.malformed("extra data after last expected column".into())),
            None => Ok(()),
        }
    }
}

/// Where the first field of `text` ends: at a delimiter that stands behind no backslash, or at the end.
fn field_end(text: &[u8], delimiter: u8) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == delimiter => return at,
            _ => at += 1,
        }
    }
    text.len()
}

/// Appends what `field` means to `out`.
fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        let behind = rest.get(at + 1..).unwrap_or_default();
        let (byte, used) = match behind {
            // With nothing behind it, it stands for itself.
            [] => (b'\\', 0),
            [b'b', ..] => (8, 1),
            [b'f', ..] => (12, 1),
            [b'n', ..] => (b'\n', 1),
            [b'r', ..] => (b'\r', 1),
            [b't', ..] => (b'\t', 1),
            [b'v', ..] => (11, 1),
            [b'0'..=b'7', ..] => number(behind, 8, 3),
            [b'x', digits @ ..] if digits.first().is_some_and(u8::is_ascii_hexdigit) => {
                let (byte, used) = number(digits, 16, 2);
                (byte, used + 1)
            }
            [other, ..] => (*other, 1),
        };
        out.push(byte);
        rest = behind.get(used..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

/// The byte that the first digits of `text` spell, and how many they are, at most `most`. Higher bits are lost, as in
/// PostgreSQL.
fn number(text: &[u8], radix: u32, most: usize) -> (u8, usize) {
    let digits = text.iter().take(most).map_while(|byte| char::from(*byte).to_digit(radix));
    let (value, used) = digits.fold((0, 0), |(value, used), digit| (value * radix + digit, used + 1));
    ((value & 0xFF) as u8, used)
}

/// Appends the text of a value, with what would be taken for something else behind backslashes.
pub(super) fn escape(text: &str, options: &TextOptions, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        let letter = match byte {
            b'\\' => b'\\',
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            byte if byte == options.delimiter => byte,
            byte => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}
