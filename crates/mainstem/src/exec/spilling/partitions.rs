//! Rows in files by the hash of their keys.
//!
//! Comes in: batches of an operator. Goes out: [`PARTITIONS`] files, of which each holds all rows of some keys.
//! Rows with a NULL among their keys are spread over all files where NULL equals nothing: they have no partner, and
//! could not be divided by a hash.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::common::{NullEquality, Result};
use datafusion::execution::SpillFile;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream, SpillManager};
use mainstem_kernels::hash::hash_u64;

/// Files of a division.
pub(in crate::exec) const PARTITIONS: usize = 16;

/// Rows that are put together before they are written: batches of a few rows take more bytes than their rows.
const ROWS_TOGETHER: usize = 1_024;
/// Bytes of rows that are written though they are fewer: those of all files wait at once.
const BYTES_TOGETHER: usize = 256 << 10;

/// A file that is written: it takes batches, and is finished by none. (DataFusion's type for it has no public name.)
type Unfinished = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send>;

/// A file while it is written.
#[derive(Default)]
struct Writer {
    /// None before the first row.
    file: Option<Unfinished>,
    waiting: Vec<RecordBatch>,
    rows_waiting: usize,
    bytes_waiting: usize,
}

impl Writer {
    /// Adds `rows` of about `width` bytes each.
    fn add(&mut self, rows: RecordBatch, width: usize, manager: &SpillManager) -> Result<()> {
        self.rows_waiting += rows.num_rows();
        self.bytes_waiting += rows.num_rows() * width;
        self.waiting.push(rows);
        let are_enough = self.rows_waiting >= ROWS_TOGETHER || self.bytes_waiting >= BYTES_TOGETHER;
        if are_enough { self.write(manager) } else { Ok(()) }
    }

    fn write(&mut self, manager: &SpillManager) -> Result<()> {
        if self.rows_waiting == 0 {
            return Ok(());
        }
        let rows = concat_batches(manager.schema(), &self.waiting)?;
        self.waiting.clear();
        self.rows_waiting = 0;
        self.bytes_waiting = 0;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = manager.create_in_progress_file("rows of some keys")?;
                self.file.insert(Box::new(move |batch| match batch {
                    Some(batch) => file.append_batch(batch).map(|_| None),
                    None => file.finish(),
                }))
            }
        };
        file(Some(&rows)).map(drop)
    }

    fn finish(mut self, manager: &SpillManager) -> Result<Partition> {
        self.write(manager)?;
        let file = self.file.as_mut().map(|file| file(None)).transpose()?.flatten();
        Ok(Partition { file, manager: manager.clone() })
    }
}

/// The files while they are written.
pub(in crate::exec) struct Partitions {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    files: [Writer; PARTITIONS],
    manager: SpillManager,
    /// Another one at each level, and none that DataFusion hashes by: rows of one partition would all be alike. Seeds
    /// that differ in a bit or two give hashes that are alike, too.
    hash: RandomState,
    nulls: NullEquality,
    /// Rows with NULLs so far.
    with_null: usize,
}

impl Partitions {
    /// Empty ones for rows with `keys`, whose NULLs are as `nulls` says, at level `depth` of division.
    pub(in crate::exec) fn new(
        manager: SpillManager,
        keys: Vec<Arc<dyn PhysicalExpr>>,
        nulls: NullEquality,
        depth: u32,
    ) -> Self {
        let hash = RandomState::with_seed(hash_u64(u64::from(depth)));
        Self { keys, files: Default::default(), manager, hash, nulls, with_null: 0 }
    }

    /// Adds the rows of `batch`, each to the file of its keys.
    ///
    /// # Errors
    /// Of the keys; when files cannot be written.
    pub(in crate::exec) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let keys = self.keys.iter().map(|key| key.evaluate(batch)?.into_array(batch.num_rows()));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let mut hashes = vec![0; batch.num_rows()];
        create_hashes(&keys, &self.hash, &mut hashes)?;
        let mut rows: [Vec<u32>; PARTITIONS] = Default::default();
        let spread = match self.nulls {
            NullEquality::NullEqualsNothing => {
                keys.iter().fold(None, |nulls, key| NullBuffer::union(nulls.as_ref(), key.logical_nulls().as_ref()))
            }
            NullEquality::NullEqualsNull => None,
        };
        for (row, hash) in hashes.into_iter().enumerate() {
            let at = if spread.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                self.with_null += 1;
                self.with_null
            } else {
                (hash >> 32) as usize
            };
            rows[at % PARTITIONS].push(row as u32);
        }
        let width = bytes_of(batch) / batch.num_rows().max(1);
        for (file, rows) in self.files.iter_mut().zip(rows) {
            if !rows.is_empty() {
                file.add(take_record_batch(batch, &UInt32Array::from(rows))?, width, &self.manager)?;
            }
        }
        Ok(())
    }

    /// Writes what waits, which may keep memory of the batches that it was part of.
    ///
    /// # Errors
    /// When files cannot be written.
    pub(in crate::exec) fn flush(&mut self) -> Result<()> {
        self.files.iter_mut().try_for_each(|file| file.write(&self.manager))
    }

    /// The files, written.
    ///
    /// # Errors
    /// When they cannot be.
    pub(in crate::exec) fn finish(self) -> Result<Vec<Partition>> {
        let Self { files, manager, .. } = self;
        files.into_iter().map(|file| file.finish(&manager)).collect()
    }
}

/// About how many bytes the rows of `batch` take, without those that its arrays hold beside them.
fn bytes_of(batch: &RecordBatch) -> usize {
    let of_array = |array: &ArrayRef| {
        let texts = match array.data_type() {
            DataType::Utf8View => array.as_string_view().total_buffer_bytes_used(),
            DataType::BinaryView => array.as_binary_view().total_buffer_bytes_used(),
            _ => 0,
        };
        array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()) + texts
    };
    batch.columns().iter().map(of_array).sum()
}

/// A written file, which goes away with this.
pub(in crate::exec) struct Partition {
    /// None without rows.
    file: Option<Arc<dyn SpillFile>>,
    manager: SpillManager,
}

impl Partition {
    /// Whether it has no rows.
    pub(in crate::exec) fn is_empty(&self) -> bool {
        self.file.is_none()
    }

    /// Its rows.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(in crate::exec) fn read(self) -> Result<SendableRecordBatchStream> {
        let schema: SchemaRef = self.manager.schema().clone();
        match self.file {
            Some(file) => self.manager.read_spill_as_stream(file, None),
            None => Ok(Box::pin(EmptyRecordBatchStream::new(schema))),
        }
    }
}
