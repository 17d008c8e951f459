//! Rows in files by the hash of their keys.
//!
//! Comes in: batches of one side of a join. Goes out: [`PARTITIONS`] files, of which each holds all rows of some keys.
//! Rows with a NULL among their keys are spread over all files where NULL equals nothing: they have no partner, and
//! could not be divided by a hash.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::common::{NullEquality, Result};
use datafusion::execution::SpillFile;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream, SpillManager};
use mainstem_kernels::hash::hash_u64;

/// Files of a side.
pub(super) const PARTITIONS: usize = 16;

/// Rows that are put together before they are written: batches of a few rows take more bytes than their rows.
const ROWS_TOGETHER: usize = 1_024;

/// A file that is written: it takes batches, and is finished by none. (DataFusion's type for it has no public name.)
type Unfinished = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<Arc<dyn SpillFile>>> + Send>;

/// A file of one side while it is written.
#[derive(Default)]
struct Writer {
    /// None before the first row.
    file: Option<Unfinished>,
    waiting: Vec<RecordBatch>,
    rows_waiting: usize,
}

impl Writer {
    fn add(&mut self, rows: RecordBatch, manager: &SpillManager) -> Result<()> {
        self.rows_waiting += rows.num_rows();
        self.waiting.push(rows);
        if self.rows_waiting >= ROWS_TOGETHER { self.write(manager) } else { Ok(()) }
    }

    fn write(&mut self, manager: &SpillManager) -> Result<()> {
        if self.rows_waiting == 0 {
            return Ok(());
        }
        let rows = concat_batches(manager.schema(), &self.waiting)?;
        self.waiting.clear();
        self.rows_waiting = 0;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = manager.create_in_progress_file("a join")?;
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

/// The files of one side while they are written.
pub(super) struct Partitions {
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
    pub(super) fn new(
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
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
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
        for (file, rows) in self.files.iter_mut().zip(rows) {
            if !rows.is_empty() {
                file.add(take_record_batch(batch, &UInt32Array::from(rows))?, &self.manager)?;
            }
        }
        Ok(())
    }

    /// The files, written.
    ///
    /// # Errors
    /// When they cannot be.
    pub(super) fn finish(self) -> Result<Vec<Partition>> {
        let Self { files, manager, .. } = self;
        files.into_iter().map(|file| file.finish(&manager)).collect()
    }
}

/// A file of one side, which goes away with this.
pub(super) struct Partition {
    /// None without rows.
    file: Option<Arc<dyn SpillFile>>,
    manager: SpillManager,
}

impl Partition {
    /// Its rows.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn read(self) -> Result<SendableRecordBatchStream> {
        let schema: SchemaRef = self.manager.schema().clone();
        match self.file {
            Some(file) => self.manager.read_spill_as_stream(file, None),
            None => Ok(Box::pin(EmptyRecordBatchStream::new(schema))),
        }
    }
}
