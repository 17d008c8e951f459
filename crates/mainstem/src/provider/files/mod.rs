//! Files as tables: CSV and Parquet, one file or several of one shape.
//!
//! Comes in: what a call in FROM asks for. Goes out: a table that scans the files, of the columns that are asked for
//! alone; `count(*)` finds the rows and reads no field.
//!
//! 1. `open` finds the files: wildcards, and what cannot be read more than once is refused.
//! 2. `describe` finds out what CSV files look like, or remembers it ([`FileCache`]); `parquet` reads what Parquet
//!    files say of themselves.
//! 3. `scan` and `rows` read them: one partition in the order of the files, several as they come.
//!
//! Invariants: a file is opened at each run, and read as it is then. A column whose type was found in a sample is of
//! the type of all values: a scan that comes to another value fails and marks its files
//! ([`FileTable::has_misled`]); who runs the statement has [`FileTable::find_types`] look at all of them, and runs it
//! again. Memory is bounded, whatever the length of a file.
//!
//! It does not own: the parsing of CSV (`csv`), which statements run again (`session`), who may read files.

mod cache;
mod describe;
mod open;
mod parquet;
mod progress;
mod rows;
mod scan;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::Result as DfResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use mainstem_storage::schema::Column;
use mainstem_storage::{Error, Result};

pub(crate) use self::cache::FileCache;
use self::open::FoundFile;
pub(crate) use self::open::{compression_of, expanded, is_compressed};
use self::parquet::ParquetContent;
pub(crate) use self::parquet::ParquetFile;
pub use self::progress::Progress;
use self::scan::FileScan;
use crate::csv::detect::Detected;
use crate::sql::{FileFunction, FileRequest, RowLimit};

/// Files that a statement reads as one table.
#[derive(Debug)]
pub(crate) struct FileTable {
    request: FileRequest,
    files: Arc<[FoundFile]>,
    content: Content,
    schema: SchemaRef,
    /// Threads that may read them.
    threads: usize,
    progress: Progress,
    /// Whether a value has come that is not of the type that its column was found to have.
    has_misled: Arc<AtomicBool>,
}

/// What files have in them.
#[derive(Clone, Debug)]
enum Content {
    Csv(Arc<Detected>),
    Parquet(Arc<ParquetContent>),
    /// What was told of a CSV file.
    Told(RecordBatch),
}

impl FileTable {
    /// The table that `request` asks for, which `threads` may read, of rows that `limit` allows, counted by `progress`.
    ///
    /// # Errors
    /// 58P01 and others of files, 22P04 for files that have no columns, or not the same ones.
    pub(crate) fn open(
        request: FileRequest,
        cache: &FileCache,
        (threads, limit): (usize, RowLimit),
        progress: Progress,
    ) -> Result<Self> {
        let files: Arc<[FoundFile]> = open::find(&request)?.into();
        let content = match request.function {
            FileFunction::Parquet => Content::Parquet(Arc::new(ParquetContent::of(&files)?)),
            FileFunction::Any if files.iter().all(FoundFile::is_parquet) => {
                Content::Parquet(Arc::new(ParquetContent::of(&files)?))
            }
            FileFunction::Any if files.iter().any(FoundFile::is_parquet) => {
                return Err(Error::unsupported("reading Parquet files and others as one table"));
            }
            FileFunction::Any | FileFunction::Csv => {
                let mut found = Detected::clone(&*describe::of_files(&request, &files, cache)?);
                found.options.row_limit = limit;
                Content::Csv(Arc::new(found))
            }
            FileFunction::Sniff => {
                let found = describe::of_files(&request, &files, cache)?;
                Content::Told(describe::told(&found, &files)?)
            }
        };
        let fields = |columns: &[Column]| {
            Schema::new(columns.iter().map(|column| column.data_type.field(&column.name, true)).collect::<Vec<_>>())
        };
        let schema = match &content {
            Content::Csv(found) => Arc::new(fields(&found.columns)),
            Content::Parquet(content) => Arc::new(fields(&content.columns)),
            Content::Told(rows) => rows.schema(),
        };
        Ok(Self { request, files, content, schema, threads, progress, has_misled: Arc::default() })
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> &SchemaRef {
        &self.schema
    }

    /// Its rows, about.
    pub(crate) fn rows(&self) -> u64 {
        let bytes: u64 = self.files.iter().map(|file| file.expanded_bytes()).sum();
        match &self.content {
            Content::Csv(found) => bytes / found.row_bytes.max(1),
            Content::Parquet(content) => content.rows,
            Content::Told(rows) => rows.num_rows() as u64,
        }
    }

    /// Whether the types of its columns may turn out to be others.
    pub(crate) fn is_uncertain(&self) -> bool {
        matches!(&self.content, Content::Csv(found) if !found.is_certain)
    }

    /// Whether a run has come to a value that its column's type does not take.
    pub(crate) fn has_misled(&self) -> bool {
        self.has_misled.load(Ordering::Acquire)
    }

    /// Looks at all values for the types of its columns, which `cache` remembers. Whether they are others. `check` is
    /// asked now and then whether to go on.
    ///
    /// # Errors
    /// Those of the files and their rows, and of `check`.
    pub(crate) fn find_types(&self, cache: &FileCache, check: &(dyn Fn() -> Result<()> + Sync)) -> Result<bool> {
        let Content::Csv(found) = &self.content else { return Ok(false) };
        let certain = describe::certain(found, &self.files, self.threads, check)?;
        let differs = certain.columns != found.columns;
        cache.put(&self.request, &self.files, Arc::new(certain));
        Ok(differs)
    }

    /// What was found out about its files, for people; none if nothing had to be.
    pub(crate) fn description(&self) -> Option<String> {
        let Content::Csv(found) = &self.content else { return None };
        let name = self.files.first().map(FoundFile::name)?;
        let others = match self.files.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!("\"{name}\"{others}: {}", found.description()))
    }
}

#[async_trait]
impl TableProvider for FileTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        if let Content::Told(rows) = &self.content {
            let table = MemTable::try_new(rows.schema(), vec![vec![rows.clone()]])?;
            return table.scan(state, projection, filters, limit).await;
        }
        self.progress.add_total(self.files.iter().map(|file| file.bytes).sum());
        let partitions = state.config_options().execution.target_partitions;
        Ok(Arc::new(FileScan::new(self, projection, limit, partitions)?))
    }
}
