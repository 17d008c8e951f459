//! Parquet files that a user names.
//!
//! Comes in: a path. Goes out: the columns of the file, then its rows. Arrow's reader fails on damaged files in many
//! ways, panics among them; whatever it is, it is an error about the file here, which names the file.

use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// A file whose end, which says what is in it, has been read.
pub(super) struct ParquetFile {
    path: String,
    builder: ParquetRecordBatchReaderBuilder<File>,
}

impl ParquetFile {
    /// Opens the file.
    ///
    /// # Errors
    /// 58P01 and others where there is none, 22P04 when it is no Parquet file.
    pub(super) fn open(path: &str) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open", format_args!("\"{path}\""), e))?;
        let builder = step(path, || ParquetRecordBatchReaderBuilder::try_new(file))?;
        Ok(Self { path: path.to_owned(), builder })
    }

    /// Its columns.
    pub(super) fn schema(&self) -> SchemaRef {
        self.builder.schema().clone()
    }

    /// Its rows, of the columns at the positions `columns`, in the file's order, `batch_rows` at a time.
    ///
    /// # Errors
    /// 22P04, as each batch.
    pub(super) fn read(self, columns: Vec<usize>, batch_rows: usize) -> Result<ParquetRows> {
        let Self { path, builder } = self;
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
        let reader = step(&path, || builder.with_projection(mask).with_batch_size(batch_rows).build())?;
        Ok(ParquetRows { path, reader })
    }
}

/// Rows of a file. What comes behind an error says nothing.
pub(super) struct ParquetRows {
    path: String,
    reader: ParquetRecordBatchReader,
}

impl Iterator for ParquetRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let Self { path, reader } = self;
        step(path, || reader.next().transpose()).transpose()
    }
}

/// Runs a step of the reader, which is not used again when it fails.
fn step<T, E: Display>(path: &str, run: impl FnOnce() -> std::result::Result<T, E>) -> Result<T> {
    let what = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it is damaged".to_owned(),
    };
    let what = what.lines().next().unwrap_or_default();
    Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, format!("could not read \"{path}\" as a Parquet file: {what}")))
}
