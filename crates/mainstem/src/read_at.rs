//! Files that are read at any place, by any number of threads at once.
//!
//! Comes in: a file, or what stands for one. Goes out: bytes from a place on, as a stream or as many as there are.
//!
//! Invariant: no read moves a place that others share. It does not own: what the bytes mean.

use std::fs::File;
use std::io;
use std::sync::Arc;

use mainstem_storage::{Error, Result};

/// What can be read at any place by any thread.
pub(crate) trait ReadAt: Sync {
    /// Reads some bytes at `offset` into `buffer`, none at the end.
    ///
    /// # Errors
    /// Io.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }
}

/// A file from a place on, as a stream.
pub(crate) struct FromPlace {
    file: Arc<dyn ReadAt + Send + Sync>,
    at: u64,
}

impl FromPlace {
    /// Of `file`, from byte `at` on.
    pub(crate) fn new(file: Arc<dyn ReadAt + Send + Sync>, at: u64) -> Self {
        Self { file, at }
    }
}

impl io::Read for FromPlace {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads as much of `buffer` at `offset` as there is.
///
/// # Errors
/// Io.
pub(crate) fn read_full(file: &dyn ReadAt, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut read = 0;
    while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read", "the file", e)),
        }
    }
    Ok(read)
}
