//! How far a statement has come with its files.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::read_at::ReadAt;

/// How far the running statement of a connection has come with the files that it reads, by COPY or in FROM: to be asked
/// from another thread while it runs.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// let progress = connection.progress();
/// let file = std::env::temp_dir().join(format!("progress-{}.csv", std::process::id()));
/// std::fs::write(&file, "1\n2\n")?;
/// connection.execute("CREATE TABLE t (k BIGINT)")?;
/// connection.execute(&format!("COPY t FROM '{}' (FORMAT csv)", file.display()))?;
/// assert_eq!((progress.bytes(), progress.bytes_total(), progress.rows()), (4, 4, 2));
/// # std::fs::remove_file(&file)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    total: AtomicU64,
    rows: AtomicU64,
}

impl Progress {
    /// Bytes that were read of its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let (bytes, total) = (self.0.bytes.load(Ordering::Relaxed), self.bytes_total());
        // What is not plain is read twice. Of streams no total is known.
        if total > 0 { bytes.min(total) } else { bytes }
    }

    /// Bytes that they have, as far as they were opened; 0 if that is not known.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Rows that were read.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.0.rows.load(Ordering::Relaxed)
    }

    /// A statement begins, or begins again.
    pub(crate) fn begin(&self) {
        for count in [&self.0.bytes, &self.0.total, &self.0.rows] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// It is going to read `bytes` more.
    pub(crate) fn add_total(&self, bytes: u64) {
        self.0.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_rows(&self, rows: usize) {
        self.0.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// `input`, whose bytes are counted as they are read.
    pub(crate) fn of<T>(&self, input: T) -> Counted<T> {
        Counted { input, progress: self.clone() }
    }
}

/// Counts what is read.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    input: T,
    progress: Progress,
}

impl<T> Counted<T> {
    fn count(&self, read: usize) -> usize {
        self.progress.0.bytes.fetch_add(read as u64, Ordering::Relaxed);
        read
    }
}

impl<T: Read> Read for Counted<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        Ok(self.count(read))
    }
}

impl<T: ReadAt> ReadAt for Counted<T> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.input.read_at(buffer, offset)?;
        Ok(self.count(read))
    }
}
