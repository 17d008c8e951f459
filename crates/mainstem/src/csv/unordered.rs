//! A file that several threads read, each the next chunk that none has taken: they take rows as they come.

use std::sync::Arc;

use mainstem_storage::Result;
use mainstem_storage::schema::Column;

use super::convert::Conversion;
use super::parallel::{FileRows, Queue, ReadAt, Rows, StopAtPanic};
use crate::sql::CsvOptions;

/// See the module. Invariant: between taking a chunk and telling what the chunks behind it have to know, a reader waits
/// for nothing but its reads; so a thread may have several readers.
pub(crate) struct SharedRows {
    file: Arc<dyn ReadAt + Send + Sync>,
    bytes: u64,
    options: CsvOptions,
    columns: Arc<[Column]>,
    found: Arc<[bool]>,
    wanted: Option<Vec<usize>>,
    queue: Queue,
}

impl SharedRows {
    /// The rows of `file`, of `bytes` bytes, which looks like `options`, for `columns`, of which types were `found`;
    /// with the columns at `wanted`, or all.
    pub(crate) fn new(
        (file, bytes): (Arc<dyn ReadAt + Send + Sync>, u64),
        options: CsvOptions,
        (columns, found): (Arc<[Column]>, Arc<[bool]>),
        wanted: Option<Vec<usize>>,
    ) -> Self {
        let chunks = FileRows::new(&*file, bytes, &options, &columns).chunks();
        Self { file, bytes, options, columns, found, wanted, queue: Queue::new(chunks, usize::MAX >> 1) }
    }

    /// The rows of the next chunk, which are none where no row begins in it, by way of `buffer`; none at the end of the
    /// file, and when another reader had an error.
    ///
    /// # Errors
    /// As [`FileRows::read`]; of several chunks it is not always that of the first.
    pub(crate) fn next(&self, buffer: &mut Vec<u8>) -> Result<Option<Vec<Rows>>> {
        let conversion = Conversion::of_all(&self.columns).strict(&self.found);
        let conversion = match &self.wanted {
            Some(wanted) => conversion.of_some(wanted),
            None => conversion,
        };
        let rows = FileRows::new(&*self.file, self.bytes, &self.options, &self.columns).converted_by(conversion);
        // A panic must not leave others waiting.
        let _stop = StopAtPanic(&self.queue);
        match rows.step(&self.queue, buffer) {
            None => Ok(None),
            Some((_, Ok(rows))) => Ok(Some(rows)),
            Some((_, Err(error))) => {
                self.queue.stop();
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for SharedRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedRows").field("bytes", &self.bytes).field("columns", &self.columns).finish_non_exhaustive()
    }
}
