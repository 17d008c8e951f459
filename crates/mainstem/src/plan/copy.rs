//! COPY from files, or streams of the program that runs it, into tables.
//!
//! Reading streams: a batch of rows is in memory at a time, and storage writes large statements aside.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use mainstem_postgres::cast::check_assignment;
use mainstem_storage::error::sqlstate;
use mainstem_storage::limits;
use mainstem_storage::schema::{Column, TableSchema};
use mainstem_storage::transaction::{StatementWrites, Transaction};
use mainstem_storage::{Error, ErrorKind, Result};

use super::columns::nullable_schema;
use super::expressions::{Expressions, Source};
use super::parquet::ParquetFile;
use super::write::{sources_of, table_of};
use crate::csv::parallel::{self, FileRows};
use crate::csv::{CsvReader, TextBatch, TextReader};
use crate::exec::Environment;
use crate::sql::{CopyFormat, CopyOptions, CopyPlace, CsvOptions, TableName};

/// Runs a COPY FROM; returns the rows read.
///
/// # Errors
/// 58P01 no such file, 22P04 malformed, 22P02 and others a value, with line and column; 23505 and others of the table.
pub(crate) fn copy_from(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    table: &TableName,
    columns: &[String],
    options: &CopyOptions,
    client: Option<&mut dyn Read>,
) -> Result<u64> {
    let table = table_of(env.settings.names(), transaction, table)?;
    let sources = sources_of(&table, columns, if columns.is_empty() { table.columns.len() } else { columns.len() })?;
    for (at, name) in columns.iter().enumerate() {
        if columns.iter().take(at).any(|before| before == name) {
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, format!("column \"{name}\" is named twice")));
        }
    }
    let takes_default = |at: usize| sources.get(at) == Some(&Source::Default);
    let expressions = Expressions::compile(env, transaction, &table, takes_default)?;
    let writes = transaction.statement();
    let mut input =
        CopyIn { table: table.clone(), columns, sources, expressions, writes, transaction: &*transaction, env };
    let read = match (&options.place, &options.format, client) {
        (CopyPlace::File(path), CopyFormat::Parquet, _) => input.parquet(ParquetFile::open(path)?),
        (_, format, Some(stream)) => input.lines(stream, format),
        (CopyPlace::File(path), format, None) => {
            let mut file = open(path)?;
            match (format, file.metadata().ok().filter(Metadata::is_file)) {
                (CopyFormat::Csv(options), Some(found)) if parallel::can_be_cut(options, input.sources.len()) => {
                    input.file(&file, found.len(), options)
                }
                _ => input.lines(&mut file, format),
            }
        }
        (CopyPlace::Client, _, None) => return Err(no_stream("STDIN", "copy_in")),
    };
    let CopyIn { writes, .. } = input;
    let inserted = writes.inserted();
    let applied = read.and_then(|()| transaction.apply(writes));
    applied.map_err(|error| error.context(format_args!("COPY \"{}\"", table.name)))?;
    Ok(inserted)
}

/// What a COPY reads, if it is named as a file and can be read but once: a pipe. Whoever runs the statement again keeps
/// what was read of it.
pub(crate) fn pipe_of(options: &CopyOptions) -> Option<Pipe> {
    match (&options.place, &options.format) {
        (CopyPlace::File(path), CopyFormat::Csv(_) | CopyFormat::Text(_)) => {
            let found = std::fs::metadata(path).ok()?;
            let is_pipe = !found.is_file() && !found.is_dir();
            is_pipe.then(|| Pipe { path: path.clone(), file: None })
        }
        _ => None,
    }
}

/// A pipe that is opened when it is first read: opening waits for who writes to it, and a statement that is refused
/// before that reads nothing.
pub(crate) struct Pipe {
    path: String,
    file: Option<File>,
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let opened = File::open(&self.path);
                let opened = opened.map_err(|e| io::Error::new(e.kind(), format!("\"{}\": {e}", self.path)))?;
                self.file.insert(opened)
            }
        };
        file.read(buffer)
    }
}

fn open(path: &str) -> Result<File> {
    File::open(path).map_err(|e| Error::io("open", format_args!("\"{path}\""), e))
}

/// The columns that the file has, in its order: those that are named, or all.
fn file_columns(table: &TableSchema, named: &[String]) -> Vec<Column> {
    if named.is_empty() {
        return table.columns.clone();
    }
    named.iter().filter_map(|name| table.column_named(name).cloned()).collect()
}

pub(super) fn no_stream(name: &str, call: &str) -> Error {
    Error::invalid(sqlstate::FEATURE_NOT_SUPPORTED, format!("COPY with {name} needs a stream: call {call}"))
}

/// Rows as lines of text.
enum Lines<'a> {
    Csv(CsvReader<&'a mut dyn Read>),
    Text(TextReader<&'a mut dyn Read>),
}

impl<'a> Lines<'a> {
    fn new(input: &'a mut dyn Read, format: &CopyFormat, names: Vec<String>) -> Result<Self> {
        Ok(match format {
            CopyFormat::Csv(options) => Self::Csv(CsvReader::new(input, options.clone(), names)),
            CopyFormat::Text(options) => Self::Text(TextReader::new(input, options.clone(), names)),
            CopyFormat::Parquet => return Err(Error::internal("FORMAT parquet read as lines")),
        })
    }

    fn next_batch(&mut self) -> Result<Option<TextBatch>> {
        match self {
            Self::Csv(reader) => reader.next_batch(limits::BATCH_ROWS),
            Self::Text(reader) => reader.next_batch(limits::BATCH_ROWS),
        }
    }
}

/// Rows that are inserted at once: what a table has beside the columns of a file takes memory, too.
const INSERTED_ROWS: usize = 65_536;

struct CopyIn<'a, 'e> {
    table: Arc<TableSchema>,
    /// The named columns; none means all.
    columns: &'a [String],
    /// Of the columns of the file, in the order of `file_columns`.
    sources: Vec<Source>,
    expressions: Expressions,
    writes: StatementWrites,
    transaction: &'a Transaction,
    env: &'a mut Environment<'e>,
}

impl CopyIn<'_, '_> {
    fn lines(&mut self, input: &mut dyn Read, format: &CopyFormat) -> Result<()> {
        let columns = file_columns(&self.table, self.columns);
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let mut lines = Lines::new(input, format, names)?;
        while let Some(batch) = lines.next_batch()? {
            self.env.cancel.check()?;
            self.insert(&parallel::typed(&columns, &batch)?, batch.lines.len(), || batch.lines.clone())?;
        }
        Ok(())
    }

    /// The rows of a file that can be read in several places at once.
    fn file(&mut self, file: &File, bytes: u64, options: &CsvOptions) -> Result<()> {
        let columns = file_columns(&self.table, self.columns);
        let rows = FileRows::new(file, bytes, options, &columns);
        let threads = self.env.settings.threads();
        rows.read(threads, |part| {
            self.env.cancel.check()?;
            self.insert(&part.columns, part.count, || rows.lines(&part))
        })
    }

    /// Inserts `count` rows, whose columns of the file are `columns`; `lines` tells where each begins.
    fn insert(&mut self, columns: &[ArrayRef], count: usize, lines: impl FnOnce() -> Vec<u64>) -> Result<()> {
        for from in (0..count).step_by(INSERTED_ROWS) {
            let rows = INSERTED_ROWS.min(count - from);
            let columns: Vec<ArrayRef> = columns.iter().map(|column| column.slice(from, rows)).collect();
            let values = self.expressions.fill(self.transaction, &columns, &self.sources, rows)?;
            let rows = RecordBatch::try_new(nullable_schema(&self.table), values)?;
            let checked = self.expressions.checked(rows.columns().to_vec());
            let Err(error) = checked.and_then(|rows| self.writes.insert(&self.table, &rows)) else { continue };
            let Some((row, error)) = self.first_refused(&error, &rows) else { return Err(error) };
            return Err(match lines().get(from + row) {
                Some(line) => error.context(format_args!("line {line}")),
                None => error,
            });
        }
        Ok(())
    }

    /// The first of `rows` that is refused for its values, and why, if `error` says that there is one.
    fn first_refused(&self, error: &Error, rows: &RecordBatch) -> Option<(usize, Error)> {
        let state = error.sqlstate();
        if !state.starts_with("22") && ![sqlstate::NOT_NULL, sqlstate::CHECK].contains(&state) {
            return None;
        }
        let refused = |from: usize, count: usize| {
            let checked = mainstem_storage::row::check_batch(&self.table, &rows.slice(from, count));
            checked.and_then(|rows| self.expressions.check(&rows)).err()
        };
        let (mut good, mut bad) = (0, rows.num_rows());
        refused(0, bad)?;
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            if refused(good, middle - good).is_some() {
                bad = middle;
            } else {
                good = middle;
            }
        }
        Some((good, refused(good, 1)?))
    }

    fn parquet(&mut self, file: ParquetFile) -> Result<()> {
        let in_file = file.schema();
        let columns = file_columns(&self.table, self.columns);
        let mut found = Vec::with_capacity(columns.len());
        for column in &columns {
            let at = in_file.fields().iter().position(|f| *f.name() == column.name).ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    sqlstate::UNDEFINED_COLUMN,
                    format!("the file has no column \"{}\"", column.name),
                )
            })?;
            check_assignment(in_file.field(at).data_type(), false, column)?;
            found.push(at);
        }
        for batch in file.read(found, limits::BATCH_ROWS)? {
            let batch = batch?;
            self.env.cancel.check()?;
            let in_order = columns.iter().map(|c| batch.column_by_name(&c.name).cloned()).collect::<Option<Vec<_>>>();
            let in_order = in_order.ok_or_else(|| Error::internal("a column of the file is lost"))?;
            let values = self.expressions.fill(self.transaction, &in_order, &self.sources, batch.num_rows())?;
            let rows = self.expressions.checked(values)?;
            self.writes.insert(&self.table, &rows)?;
        }
        Ok(())
    }
}
