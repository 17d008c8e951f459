//! The data of COPY FROM STDIN.

use std::io::{BufRead, Read};

/// Lines of data between statements, up to one that is `\.`, which is read and left out.
pub struct DataLines<'a, R> {
    reader: R,
    /// Counts them.
    lines: &'a mut usize,
    line: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<'a, R: BufRead> DataLines<'a, R> {
    /// The lines that `reader` gives next.
    pub fn new(reader: R, lines: &'a mut usize) -> Self {
        Self { reader, lines, line: Vec::new(), at: 0, ended: false }
    }
}

impl<R: BufRead> Read for DataLines<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.line.len() && !self.ended {
            self.line.clear();
            self.at = 0;
            self.ended = self.reader.read_until(b'\n', &mut self.line)? == 0;
            *self.lines += usize::from(!self.ended);
            if self.line.trim_ascii_end() == b"\\." {
                self.line.clear();
                self.ended = true;
            }
        }
        let mut rest = self.line.get(self.at..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.at += read;
        Ok(read)
    }
}
