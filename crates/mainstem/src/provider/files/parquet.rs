//! Parquet files that a user names.
//!
//! Comes in: a path. Goes out: the columns of the file, then its rows. Arrow's reader fails on damaged files in many
//! ways, panics among them; whatever it is, it is an error about the file here, which names the file.

use std::fmt::Display;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType as ArrowType, FieldRef, Schema, SchemaRef};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use mainstem_postgres::types::sql_type;
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::{Error, Result};

use super::open::FoundFile;

/// A file whose end, which says what is in it, has been read.
pub(crate) struct ParquetFile {
    path: String,
    builder: ParquetRecordBatchReaderBuilder<File>,
}

impl ParquetFile {
    /// Opens the file.
    ///
    /// # Errors
    /// 58P01 and others where there is none, 22P04 when it is no Parquet file.
    pub(crate) fn open(path: &str) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io("open", format_args!("\"{path}\""), e))?;
        let builder = step(path, || ParquetRecordBatchReaderBuilder::try_new(file))?;
        Ok(Self { path: path.to_owned(), builder })
    }

    /// Its columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.builder.schema().clone()
    }

    /// Its rows, of the columns at the positions `columns`, in the file's order, `batch_rows` at a time.
    ///
    /// # Errors
    /// 22P04, as each batch.
    pub(crate) fn read(self, columns: Vec<usize>, batch_rows: usize) -> Result<ParquetRows> {
        self.read_group(columns, batch_rows, None)
    }

    /// As [`ParquetFile::read`], of the row group `group` alone if there is one.
    pub(super) fn read_group(
        self,
        columns: Vec<usize>,
        batch_rows: usize,
        group: Option<usize>,
    ) -> Result<ParquetRows> {
        let Self { path, builder } = self;
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
        let reader = step(&path, || {
            let builder = builder.with_projection(mask).with_batch_size(batch_rows);
            match group {
                Some(group) => builder.with_row_groups(vec![group]).build(),
                None => builder.build(),
            }
        })?;
        Ok(ParquetRows { path, reader })
    }
}

/// Rows of a file. What comes behind an error says nothing.
pub(crate) struct ParquetRows {
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

/// What Parquet files say of themselves.
#[derive(Debug)]
pub(super) struct ParquetContent {
    pub(super) columns: Vec<Column>,
    pub(super) rows: u64,
    /// The row groups of each file.
    pub(super) groups: Vec<usize>,
}

impl ParquetContent {
    /// That of `files`, whose columns are those of the first one, perhaps in another order.
    ///
    /// # Errors
    /// Io; 22P04 for a file that is none, or has other columns; 0A000 for a column of a type that tables have not.
    pub(super) fn of(files: &[FoundFile]) -> Result<Self> {
        let mut content = Self { columns: Vec::new(), rows: 0, groups: Vec::new() };
        for (number, file) in files.iter().enumerate() {
            let opened = ParquetFile::open(&file.name())?;
            let metadata = opened.builder.metadata();
            content.groups.push(metadata.num_row_groups());
            content.rows += u64::try_from(metadata.file_metadata().num_rows()).unwrap_or_default();
            let columns = columns_of(&opened.schema(), &file.name())?;
            if number == 0 {
                content.columns = columns;
            } else if let Some(differs) = content.difference(&columns) {
                let message = format!("\"{}\" {differs}, unlike the first file of the table", file.name());
                return Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, message));
            }
        }
        Ok(content)
    }

    /// What distinguishes `columns`.
    fn difference(&self, columns: &[Column]) -> Option<String> {
        let named = |columns: &[Column], name: &str| columns.iter().find(|column| column.name == name).cloned();
        for column in &self.columns {
            match named(columns, &column.name) {
                None => return Some(format!("has no column \"{}\"", column.name)),
                Some(other) if other.data_type != column.data_type => {
                    return Some(format!("has a column \"{}\" of type {}", other.name, other.data_type));
                }
                Some(_) => {}
            }
        }
        let extra = columns.iter().find(|column| named(&self.columns, &column.name).is_none())?;
        Some(format!("has a column \"{}\"", extra.name))
    }
}

fn columns_of(schema: &Schema, path: &str) -> Result<Vec<Column>> {
    let column = |(at, field): (usize, &FieldRef)| {
        let data_type = match field.data_type() {
            ArrowType::Null => Some(DataType::Text { max_chars: None }),
            ArrowType::Dictionary(_, values) => sql_type(values),
            of => sql_type(of),
        };
        let data_type = data_type.ok_or_else(|| {
            Error::unsupported(format_args!(
                "\"{path}\": the column \"{}\" of type {}",
                field.name(),
                field.data_type().to_string().to_lowercase()
            ))
        })?;
        Ok(Column::new(ColumnId(at as u32), field.name(), data_type, true))
    };
    schema.fields().iter().enumerate().map(column).collect()
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
