//! Bytes to text columns.

use std::io::Read;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use crate::sql::{CsvOptions, LineEnd};

/// What a file may begin with, and is no part of its first row.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Bytes read from the file at once.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of text after which a batch ends early: bounds memory when rows are wide.
pub(super) const BATCH_BYTES: usize = 4 << 20;

/// Some rows, as text.
#[derive(Clone)]
pub(crate) struct TextBatch {
    /// One StringArray a column.
    pub(crate) columns: Vec<ArrayRef>,
    /// The line each row began on, from 1.
    pub(crate) lines: Vec<u64>,
    /// Where each row began: the bytes before it.
    pub(crate) starts: Vec<u64>,
}

impl TextBatch {
    /// The fields of the rows that began on `lines` and at `starts`, in columns called `names`; None without lines.
    ///
    /// # Errors
    /// 22021.
    pub(super) fn of(
        columns: Vec<Fields>,
        lines: Vec<u64>,
        starts: Vec<u64>,
        names: &[String],
    ) -> Result<Option<Self>> {
        if lines.is_empty() {
            return Ok(None);
        }
        let columns = columns.into_iter().zip(names).map(|(fields, name)| fields.into_array(&lines, name));
        Ok(Some(Self { columns: columns.collect::<Result<Vec<_>>>()?, lines, starts }))
    }
}

/// Reads records of a fixed number of fields.
pub(crate) struct CsvReader<R> {
    input: R,
    options: CsvOptions,
    names: Vec<String>,
    chunk: Vec<u8>,
    at: usize,
    end: usize,
    eof: bool,
    line: u64,
    /// Bytes before the chunk.
    before: u64,
    /// Whether nothing was read of a file, which may begin with a mark of its byte order.
    at_start: bool,
    header_pending: bool,
    /// Whether the end of the first line tells how the others end.
    finds_line_end: bool,
}

/// The fields of one column.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) text: Vec<u8>,
    ends: Vec<i32>,
    valid: Vec<bool>,
}

/// What stands behind a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Field,
    Record,
    /// The file ended before the field began.
    Nothing,
}

impl<R: Read> CsvReader<R> {
    /// A reader of `input` for columns called `names`.
    pub(crate) fn new(input: R, options: CsvOptions, names: Vec<String>) -> Self {
        let header_pending = options.header;
        let chunk = vec![0; CHUNK_BYTES];
        let (at, end, eof, line, before, at_start, finds_line_end) = (0, 0, false, 1, 0, true, false);
        Self { input, options, names, chunk, at, end, eof, line, before, at_start, header_pending, finds_line_end }
    }

    /// The same, whose lines end in carriage returns if the first one does.
    pub(crate) fn finding_line_end(mut self) -> Self {
        self.finds_line_end = true;
        self
    }

    /// The same, of an input that begins with a row on line `line` of a file.
    pub(super) fn at_line(mut self, line: u64) -> Self {
        self.line = line;
        self.at_start = false;
        self.header_pending = false;
        self
    }

    /// The same, of an input that has `bytes` before it.
    pub(super) fn behind(mut self, bytes: u64) -> Self {
        self.before = bytes;
        self
    }

    /// Up to `rows` more rows; None at the end.
    ///
    /// # Errors
    /// 22P04 for a malformed record, 53200 for one that is too long, 22021 for bytes that are no UTF-8, with line and
    /// column; Io.
    pub(crate) fn next_batch(&mut self, rows: usize) -> Result<Option<TextBatch>> {
        if std::mem::take(&mut self.at_start) {
            self.skip_byte_order_mark()?;
        }
        if self.header_pending {
            self.header_pending = false;
            self.header()?;
        }
        let mut columns: Vec<Fields> = self.names.iter().map(|_| Fields::default()).collect();
        let (mut lines, mut starts) = (Vec::new(), Vec::new());
        while lines.len() < rows && columns.iter().map(|c| c.text.len()).sum::<usize>() < BATCH_BYTES {
            let (line, start) = (self.line, self.place());
            if !self.record(&mut columns)? {
                break;
            }
            lines.push(line);
            starts.push(start);
        }
        TextBatch::of(columns, lines, starts, &self.names)
    }

    /// Bytes before the next record, once the first was read.
    pub(super) fn place(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Reads a record; false at the end of the file.
    fn record(&mut self, columns: &mut [Fields]) -> Result<bool> {
        let line = self.line;
        let count = columns.len();
        let (mut after, mut bytes) = (After::Field, 0);
        for (at, fields) in columns.iter_mut().enumerate() {
            if after == After::Record {
                if self.options.padding {
                    fields.end_field(true)?;
                    continue;
                }
                return Err(self.malformed(line, format!("missing data for column \"{}\"", self.name(at))));
            }
            let start = fields.text.len();
            let (quoted, behind) = self.field(&mut fields.text, line, at)?;
            if behind == After::Nothing && at == 0 && !quoted {
                return Ok(false);
            }
            bytes += fields.text.len() - start;
            if bytes > self.options.row_limit.bytes() {
                return Err(self.options.row_limit.error(format_args!("line {line}: a row")));
            }
            let is_null = !quoted && fields.text.get(start..) == Some(self.options.null.as_bytes());
            fields.end_field(is_null)?;
            after = if behind == After::Nothing { After::Record } else { behind };
        }
        if after == After::Field && count > 0 {
            return Err(self.malformed(line, "extra data after last expected column".into()));
        }
        Ok(true)
    }

    fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("?", String::as_str)
    }

    fn malformed(&self, line: u64, what: String) -> Error {
        Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("line {line}: {what}"))
    }

    /// Appends a field's text to `out`. Returns whether any of it was quoted, and what stands behind it.
    fn field(&mut self, out: &mut Vec<u8>, line: u64, column: usize) -> Result<(bool, After)> {
        let start = out.len();
        let (mut quoted, mut any) = (false, false);
        loop {
            self.check_length(out.len() - start, line, column)?;
            let CsvOptions { delimiter, quote, .. } = self.options;
            let window = self.window()?;
            if window.is_empty() {
                return Ok((quoted, if any || quoted || column > 0 { After::Record } else { After::Nothing }));
            }
            any = true;
            let special = |b: u8| b == delimiter || b == quote || b == b'\n' || b == b'\r';
            let plain = window.iter().position(|b| special(*b)).unwrap_or(window.len());
            let stopped_at = window.get(plain).copied();
            out.extend_from_slice(window.get(..plain).unwrap_or_default());
            self.at += plain;
            let Some(byte) = stopped_at else { continue };
            self.at += 1;
            if byte == delimiter {
                return Ok((quoted, After::Field));
            }
            if byte == quote {
                quoted = true;
                self.quoted(out, start, line, column)?;
                continue;
            }
            if self.options.line_end == LineEnd::CarriageReturn {
                if byte == b'\n' {
                    return Err(self.malformed(line, "unquoted newline found in data".into()));
                }
            } else if byte == b'\r' {
                if self.peek()? == Some(b'\n') {
                    self.at += 1;
                } else if self.finds_line_end {
                    self.options.line_end = LineEnd::CarriageReturn;
                } else {
                    return Err(self.malformed(line, "unquoted carriage return found in data".into()));
                }
            }
            self.finds_line_end = false;
            self.line += 1;
            return Ok((quoted, After::Record));
        }
    }

    /// Refuses a field of `bytes` that is too long.
    fn check_length(&self, bytes: usize, line: u64, column: usize) -> Result<()> {
        let limit = self.options.row_limit;
        if bytes <= limit.bytes() {
            return Ok(());
        }
        Err(limit.error(format_args!("line {line}: column \"{}\"", self.name(column))))
    }

    /// Appends what stands in quotes, up to and without the closing one, to a field that begins at `start` of `out`.
    fn quoted(&mut self, out: &mut Vec<u8>, start: usize, line: u64, column: usize) -> Result<()> {
        let CsvOptions { quote, escape, line_end, .. } = self.options;
        loop {
            self.check_length(out.len() - start, line, column)?;
            let window = self.window()?;
            if window.is_empty() {
                return Err(
                    self.malformed(line, format!("unterminated quoted field in column \"{}\"", self.name(column)))
                );
            }
            let plain = window.iter().position(|b| *b == quote || *b == escape).unwrap_or(window.len());
            let stopped_at = window.get(plain).copied();
            let text = window.get(..plain).unwrap_or_default();
            let breaks = text.iter().filter(|b| **b == line_end.byte()).count() as u64;
            out.extend_from_slice(text);
            self.line += breaks;
            self.at += plain;
            let Some(byte) = stopped_at else { continue };
            self.at += 1;
            if byte == escape {
                match self.peek()? {
                    Some(next) if next == quote || next == escape => {
                        out.push(next);
                        self.at += 1;
                        continue;
                    }
                    _ if byte != quote => {
                        out.push(byte);
                        continue;
                    }
                    _ => {}
                }
            }
            return Ok(());
        }
    }

    /// Unread bytes; empty at the end of the file.
    fn window(&mut self) -> Result<&[u8]> {
        while self.at == self.end && !self.eof {
            let read = self.read_behind(0)?;
            self.before += self.end as u64;
            self.at = 0;
            self.end = read;
            self.eof = read == 0;
        }
        Ok(self.chunk.get(self.at..self.end).unwrap_or_default())
    }

    fn peek(&mut self) -> Result<Option<u8>> {
        Ok(self.window()?.first().copied())
    }

    fn skip_byte_order_mark(&mut self) -> Result<()> {
        // A stream may give it byte by byte.
        while self.end < BYTE_ORDER_MARK.len() && !self.eof {
            let read = self.read_behind(self.end)?;
            self.end += read;
            self.eof = read == 0;
        }
        if self.chunk.get(..self.end).unwrap_or_default().starts_with(BYTE_ORDER_MARK) {
            self.at = BYTE_ORDER_MARK.len();
        }
        Ok(())
    }

    /// Reads into the chunk behind its first `from` bytes; 0 at the end of the file.
    fn read_behind(&mut self, from: usize) -> Result<usize> {
        loop {
            match self.input.read(self.chunk.get_mut(from..).unwrap_or_default()) {
                Ok(read) => return Ok(read),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io("read", "the file", e)),
            }
        }
    }

    /// Passes over the first line, whose names may have to be those of the columns.
    fn header(&mut self) -> Result<()> {
        let line = self.line;
        let mut found = Vec::new();
        loop {
            let mut name = Vec::new();
            let (_, after) = self.field(&mut name, line, 0)?;
            found.push(String::from_utf8_lossy(&name).into_owned());
            if after != After::Field {
                break;
            }
        }
        if self.options.matches { self.check_header(&found) } else { Ok(()) }
    }

    fn check_header(&self, found: &[String]) -> Result<()> {
        let wrong = |what: String| Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("line 1: {what}")));
        if found.len() != self.names.len() {
            return wrong(format!(
                "wrong number of fields in header line: got {}, expected {}",
                found.len(),
                self.names.len()
            ));
        }
        match found.iter().zip(&self.names).enumerate().find(|(_, (found, name))| found != name) {
            None => Ok(()),
            Some((at, (found, name))) => wrong(format!(
                "column name mismatch in header line field {}: got \"{found}\", expected \"{name}\"",
                at + 1
            )),
        }
    }

    /// Looks at the first line alone.
    ///
    /// # Errors
    /// 22P04 for one whose names have to be those of the columns, and are not.
    pub(crate) fn check_first_line(mut self) -> Result<()> {
        self.skip_byte_order_mark()?;
        if self.header_pending { self.header() } else { Ok(()) }
    }
}

impl Fields {
    pub(super) fn end_field(&mut self, is_null: bool) -> Result<()> {
        if is_null {
            self.text.truncate(self.ends.last().map_or(0, |end| *end as usize));
        }
        let end = i32::try_from(self.text.len())
            .map_err(|_| Error::invalid(sqlstate::BAD_COPY_FORMAT, "a batch of rows is longer than 2 GiB"))?;
        self.ends.push(end);
        self.valid.push(!is_null);
        Ok(())
    }

    fn into_array(self, lines: &[u64], name: &str) -> Result<ArrayRef> {
        if let Some(row) = self.first_that_is_no_text() {
            let line = lines.get(row).copied().unwrap_or_default();
            return Err(Error::invalid(
                "22021",
                format!("line {line}, column \"{name}\": the bytes are no valid UTF-8"),
            ));
        }
        let mut offsets = Vec::with_capacity(self.ends.len() + 1);
        offsets.push(0);
        offsets.extend_from_slice(&self.ends);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let nulls = NullBuffer::from(self.valid);
        Ok(Arc::new(StringArray::try_new(offsets, Buffer::from_vec(self.text), Some(nulls))?))
    }

    /// The first field whose bytes are no UTF-8: all together may be, where fields end within a character.
    fn first_that_is_no_text(&self) -> Option<usize> {
        let (text, invalid) = match std::str::from_utf8(&self.text) {
            Ok(text) => (text, None),
            Err(e) => {
                let (valid, _) = self.text.split_at(e.valid_up_to());
                (std::str::from_utf8(valid).unwrap_or_default(), Some(e.valid_up_to()))
            }
        };
        let ends = || self.ends.iter().map(|end| *end as usize);
        let cuts = ends().position(|end| end < text.len() && !text.is_char_boundary(end));
        cuts.or_else(|| invalid.map(|at| ends().take_while(|end| *end <= at).count()))
    }
}
