//! A file that several threads read, each the next chunk that none has taken: they take rows as they come. Of one that
//! is a stream, as a compressed file is, whoever wants a chunk reads it while the others wait.

use std::io::Read;
use std::sync::Arc;

use mainstem_storage::Result;
use mainstem_storage::schema::Column;
use parking_lot::Mutex;

use super::convert::Conversion;
use super::parallel::{Cutter, FileRows, Queue, Rows, StopAtPanic};
use crate::read_at::ReadAt;
use crate::sql::CsvOptions;

/// See the module. Invariant: between taking a chunk and telling what the chunks behind it have to know, a reader waits
/// for nothing but its reads; so a thread may have several readers.
pub(crate) struct SharedRows {
    source: Source,
    options: CsvOptions,
    columns: Arc<[Column]>,
    found: Arc<[bool]>,
    wanted: Option<Vec<usize>>,
}

enum Source {
    /// A file, its length, and its chunks.
    File(Arc<dyn ReadAt + Send + Sync>, u64, Queue),
    /// A stream; none when a reader had an error.
    Stream(Mutex<Option<Cutter<Box<dyn Read + Send>>>>),
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
        let source = Source::File(file, bytes, Queue::new(chunks, usize::MAX >> 1));
        Self { source, options, columns, found, wanted }
    }

    /// Those of `stream`, as of a file.
    pub(crate) fn of_stream(
        stream: Box<dyn Read + Send>,
        options: CsvOptions,
        (columns, found): (Arc<[Column]>, Arc<[bool]>),
        wanted: Option<Vec<usize>>,
    ) -> Self {
        let cutter = FileRows::of_stream(&options, &columns).cut(stream);
        Self { source: Source::Stream(Mutex::new(Some(cutter))), options, columns, found, wanted }
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
        let (file, bytes, queue) = match &self.source {
            Source::File(file, bytes, queue) => (file, *bytes, queue),
            Source::Stream(cutter) => {
                let rows = FileRows::of_stream(&self.options, &self.columns).converted_by(conversion);
                return rows.next_of(cutter, buffer);
            }
        };
        let rows = FileRows::new(&**file, bytes, &self.options, &self.columns).converted_by(conversion);
        // A panic must not leave others waiting.
        let _stop = StopAtPanic(queue);
        match rows.step(queue, buffer) {
            None => Ok(None),
            Some((_, Ok(rows))) => Ok(Some(rows)),
            Some((_, Err(error))) => {
                queue.stop();
                Err(error)
            }
        }
    }
}

impl std::fmt::Debug for SharedRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedRows").field("columns", &self.columns).finish_non_exhaustive()
    }
}
