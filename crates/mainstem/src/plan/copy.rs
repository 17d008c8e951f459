//! COPY between tables and files, or streams of the program that runs it.
//!
//! Reading streams: a batch of rows is in memory at a time, and storage writes large statements aside. Writing goes to
//! a file beside the target, which gets the target's name when it is whole and fsynced.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::sql::sqlparser::ast::{Ident, Statement as Ast};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_postgres::cast::check_assignment;
use mainstem_storage::error::sqlstate;
use mainstem_storage::limits;
use mainstem_storage::schema::{Column, TableSchema};
use mainstem_storage::transaction::{StatementWrites, Transaction};
use mainstem_storage::{Error, ErrorKind, Result};

use super::columns::nullable_schema;
use super::expressions::{Expressions, Source};
use super::parquet::ParquetFile;
use super::shown;
use super::write::{sources_of, table_of};
use crate::csv::parallel::{self, FileRows};
use crate::csv::{CsvReader, LineFormat, LineWriter, TextBatch, TextReader};
use crate::error::from_parquet;
use crate::exec::{Environment, Running};
use crate::provider::Names;
use crate::sql::{CopyFormat, CopyOptions, CopyPlace, CopySource, CsvOptions, TableName};

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

fn no_stream(name: &str, call: &str) -> Error {
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
const INSERTED_ROWS: usize = 2 * limits::SEGMENT_ROWS_DEFAULT as usize;
/// Chunks of a file, and their arrays, that the threads of a load hold are about 1 / this of the share of loads.
const CHUNKS_SHARE: u64 = 8;

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
        let threads = self.env.settings.threads();
        // Of rows whose number is only guessed, few more than a segment has.
        let segment_rows = u64::from(self.table.options.segment_rows) * 9 / 10;
        let chunk_bytes = self.writes.load_memory() / (CHUNKS_SHARE * (threads as u64 + 1));
        let rows = FileRows::new(file, bytes, options, &columns)
            .with_chunks_of(segment_rows, threads, chunk_bytes)
            .with_offsets(self.expressions.take_all(&self.sources));
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
            if self.expressions.take_all(&self.sources) {
                let Err(error) = self.writes.load(&self.table, columns.clone()) else { continue };
                if !is_of_values(&error) {
                    return Err(error);
                }
            }
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
        if !is_of_values(error) {
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
        if let Some(extra) = in_file.fields().iter().find(|f| !columns.iter().any(|c| c.name == *f.name())) {
            return Err(Error::invalid(
                sqlstate::BAD_COPY_FORMAT,
                format!("the file has a column \"{}\" that was not asked for", extra.name()),
            ));
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

/// Whether `error` refuses a row for its values, whatever the table has.
fn is_of_values(error: &Error) -> bool {
    let state = error.sqlstate();
    state.starts_with("22") || [sqlstate::NOT_NULL, sqlstate::CHECK].contains(&state)
}

/// The query behind COPY TO.
fn source_query(names: &Names, transaction: &Transaction, source: CopySource) -> Result<Ast> {
    let (table, columns) = match source {
        CopySource::Query(query) => return Ok(Ast::Query(query)),
        CopySource::Table { table, columns } => (table, columns),
    };
    let schema = table_of(names, transaction, &table)?;
    sources_of(&schema, &columns, schema.columns.len())?;
    let names: Vec<String> =
        if columns.is_empty() { schema.columns.iter().map(|c| c.name.clone()).collect() } else { columns };
    let names: Vec<String> = names.iter().map(|name| Ident::with_quote('"', name).to_string()).collect();
    let quoted = |name: &str| Ident::with_quote('"', name);
    let text = format!("SELECT {} FROM {}.{}", names.join(", "), quoted(&schema.namespace), quoted(&schema.name));
    let dialect = datafusion::sql::sqlparser::dialect::PostgreSqlDialect {};
    let query = Parser::new(&dialect)
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_query())
        .map_err(|e| Error::internal(format!("COPY TO made a query that does not parse: {e}")))?;
    Ok(Ast::Query(query))
}

/// Runs a COPY TO; returns the rows written.
///
/// # Errors
/// Those of the query; Io and Full of the file, which is then as it was.
pub(crate) fn copy_to(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    source: CopySource,
    options: &CopyOptions,
    client: Option<&mut dyn Write>,
) -> Result<u64> {
    let query = source_query(env.settings.names(), transaction, source)?;
    let plan = shown(env.plan(transaction, query, None)?)?;
    let running = env.start(&plan)?;
    match (&options.place, client) {
        (CopyPlace::File(path), _) => {
            let aside = Aside::create(path)?;
            let mut sink = Sink::new(aside.file()?, &options.format, &running.schema)?;
            let rows = each_batch(running, |batch| sink.write(batch))?;
            sink.finish()?;
            aside.install()?;
            Ok(rows)
        }
        (CopyPlace::Client, Some(stream)) => {
            let mut writer = LineWriter::new(stream, line_format(&options.format)?, &running.schema)?;
            let rows = each_batch(running, |batch| writer.write(batch))?;
            writer.finish()?.flush().map_err(|e| Error::io("write", "the data", e))?;
            Ok(rows)
        }
        (CopyPlace::Client, None) => Err(no_stream("STDOUT", "copy_out")),
    }
}

fn each_batch(running: Running, mut write: impl FnMut(&RecordBatch) -> Result<()>) -> Result<u64> {
    let mut rows = 0;
    for batch in running.batches {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        write(&batch)?;
    }
    Ok(rows)
}

fn line_format(format: &CopyFormat) -> Result<LineFormat> {
    match format {
        CopyFormat::Csv(options) => Ok(LineFormat::Csv(options.clone())),
        CopyFormat::Text(options) => Ok(LineFormat::Text(options.clone())),
        CopyFormat::Parquet => Err(Error::internal("FORMAT parquet written as lines")),
    }
}

enum Sink {
    Lines(LineWriter<File>),
    /// The second handle is the same file, to fsync it.
    Parquet(Box<ArrowWriter<File>>, File),
}

impl Sink {
    fn new(file: File, format: &CopyFormat, schema: &SchemaRef) -> Result<Self> {
        Ok(match format {
            CopyFormat::Csv(_) | CopyFormat::Text(_) => {
                Self::Lines(LineWriter::new(file, line_format(format)?, schema)?)
            }
            CopyFormat::Parquet => {
                let properties =
                    WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
                let same = file.try_clone().map_err(|e| Error::io("open", "the file", e))?;
                let writer =
                    ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(|e| from_parquet(&e))?;
                Self::Parquet(Box::new(writer), same)
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Lines(writer) => writer.write(batch),
            Self::Parquet(writer, _) => writer.write(batch).map_err(|e| from_parquet(&e)),
        }
    }

    fn finish(self) -> Result<()> {
        let file = match self {
            Self::Lines(writer) => writer.finish()?,
            Self::Parquet(mut writer, file) => {
                writer.finish().map_err(|e| from_parquet(&e))?;
                writer.sync().map_err(|e| Error::io("write", "the file", e))?;
                file
            }
        };
        let regular = file.metadata().is_ok_and(|found| found.is_file());
        if regular { file.sync_all().map_err(|e| Error::io("fsync", "the file", e)) } else { Ok(()) }
    }
}

/// A file beside its target; removed unless installed. What is no regular file, a pipe or a device, is written to as it
/// is.
struct Aside {
    path: PathBuf,
    target: PathBuf,
    installed: bool,
}

impl Aside {
    fn create(target: &str) -> Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        // A link stays one: what it leads to is replaced.
        let target = std::fs::canonicalize(target).unwrap_or_else(|_| PathBuf::from(target));
        match std::fs::metadata(&target) {
            Ok(found) if found.is_dir() => {
                return Err(Error::invalid("42809", format!("\"{}\" is a directory", target.display())));
            }
            Ok(found) if !found.is_file() => return Ok(Self { path: target.clone(), target, installed: true }),
            _ => {}
        }
        let mut name = target.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}-{}.tmp", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
        Ok(Self { path: target.with_file_name(name), target, installed: false })
    }

    fn file(&self) -> Result<File> {
        let opened =
            if self.installed { File::options().write(true).open(&self.path) } else { File::create_new(&self.path) };
        opened.map_err(|e| Error::io("create", format_args!("\"{}\"", self.target.display()), e))
    }

    fn install(mut self) -> Result<()> {
        if self.installed {
            return Ok(());
        }
        let target = self.target.display();
        std::fs::rename(&self.path, &self.target)
            .map_err(|e| Error::io("rename to", format_args!("\"{target}\""), e))?;
        self.installed = true;
        let folder = self.target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|e| Error::io("fsync the folder of", format_args!("\"{target}\""), e))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.installed {
            // What cannot be removed is a leftover with a telling name, not an error of the statement.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
