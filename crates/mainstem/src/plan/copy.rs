//! COPY from files, or streams of the program that runs it, into tables.
//!
//! Reading: some chunks of rows are in memory at a time, and storage writes large statements aside. CSV is read by
//! several threads, as a file or as a stream, where its rows can be told apart; else, and FORMAT text, by one.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType as ArrowType;
use mainstem_postgres::cast::{assign, check_assignment};
use mainstem_storage::error::sqlstate;
use mainstem_storage::limits;
use mainstem_storage::memory::Charge;
use mainstem_storage::schema::{Column, DataType, TableSchema};
use mainstem_storage::transaction::{StatementWrites, Transaction};
use mainstem_storage::{Error, ErrorKind, Result};

use super::columns::nullable_schema;
use super::copy_from::{Condition, formed};
use super::define::all_or_nothing;
use super::duplicate_lines::{Take, with_lines};
use super::expressions::{Expressions, Source};
use super::rejects::Rejected;
use super::write::{sources_of, table_of};
use crate::csv::detect::first_line_end;
use crate::csv::parallel::{self, Begun, FileRows, Rows};
use crate::csv::{Conversion, CsvReader, Latin1, TextBatch, TextReader};
use crate::exec::{Environment, Notice};
use crate::provider::{ParquetFile, expanded, is_compressed};
use crate::sql::{CopyFormat, CopyOptions, CopyPlace, CsvOptions, LineEnd, ReadOptions, TableName, TextOptions};

/// What a COPY FROM has done.
#[derive(Debug)]
pub(crate) struct Copied {
    /// Rows that were inserted.
    pub(crate) rows: u64,
    pub(crate) notices: Vec<Notice>,
}

/// Runs a COPY FROM.
///
/// # Errors
/// 58P01 no such file, 22P04 malformed, 22P02 and others a value, with line and column; 23505, with the lines that have
/// the key, and others of the table.
pub(crate) fn copy_from(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    table: &TableName,
    columns: &[String],
    (options, read): (&CopyOptions, &ReadOptions),
    client: Option<&mut dyn Read>,
) -> Result<Copied> {
    // The table of rejects, which may be made, goes when the statement fails.
    if read.rejects.table.is_some() {
        return all_or_nothing(transaction, |transaction| {
            copied_from(env, transaction, table, columns, (options, read), client)
        });
    }
    copied_from(env, transaction, table, columns, (options, read), client)
}

fn copied_from(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    table: &TableName,
    columns: &[String],
    (options, read): (&CopyOptions, &ReadOptions),
    client: Option<&mut dyn Read>,
) -> Result<Copied> {
    let table = table_of(env.settings.names(), transaction, table)?;
    let (found, format) = formed(&table, columns, options, read)?;
    let format = format.limited(env.settings.row_limit());
    let columns = found.columns.as_deref().unwrap_or(columns);
    let sources = sources_of(&table, columns, if columns.is_empty() { table.columns.len() } else { columns.len() })?;
    for (at, name) in columns.iter().enumerate() {
        if columns.iter().take(at).any(|before| before == name) {
            return Err(Error::invalid(sqlstate::DUPLICATE_COLUMN, format!("column \"{name}\" is named twice")));
        }
    }
    let takes_default = |at: usize| sources.get(at) == Some(&Source::Default);
    let expressions = Expressions::compile(env, transaction, &table, takes_default)?;
    let condition = Condition::compile(env, transaction, &table, read.condition.as_ref())?;
    let rejected = Rejected::new(env, transaction, &read.rejects, &options.place)?;
    let writes = transaction.statement();
    // Which lines have a key can be told where all of them are rows.
    let are_all_rows = client.is_none() && condition.is_none() && !rejected.ignores();
    let of = (table.clone(), &*transaction);
    let mut input = CopyIn { of, columns, sources, expressions, condition, rejected, writes, env };
    let read = match (&options.place, &format, client) {
        (CopyPlace::File(path), CopyFormat::Parquet, _) => input.parquet(ParquetFile::open(path)?.for_load()?),
        (_, format, Some(stream)) => input.lines(stream, format),
        (CopyPlace::File(path), format, None) => input.file(path, format),
        (CopyPlace::Client, _, None) => return Err(no_stream("STDIN", "copy_in")),
    };
    let CopyIn { writes, rejected, .. } = input;
    let rows = writes.inserted();
    let mut notices = found.notices;
    let applied = read.and_then(|()| transaction.apply(writes)).map_err(|error| match &options.place {
        CopyPlace::File(path) if are_all_rows => {
            let columns = file_columns(&table, columns);
            with_lines(error, &table, &columns, |take| read_again(env, path, &format, &columns, take))
        }
        _ => error,
    });
    let applied = applied.and_then(|()| {
        notices.extend(rejected.finish(transaction)?);
        Ok(())
    });
    applied.map_err(|error| error.context(format_args!("COPY \"{}\"", table.name)))?;
    Ok(Copied { rows, notices })
}

/// Hands the rows of the file at `path`, whose columns are `columns`, to `take`, if it is one that can be read again.
fn read_again(
    env: &Environment<'_>,
    path: &str,
    format: &CopyFormat,
    columns: &[Column],
    take: Take<'_>,
) -> Result<()> {
    let file = open(path)?;
    let found = file.metadata().map_err(|e| Error::io("look at", format_args!("\"{path}\""), e))?;
    if !found.is_file() || matches!(format, CopyFormat::Parquet) || is_latin1(format) {
        return Ok(());
    }
    if let CopyFormat::Csv(options) = format
        && !is_compressed(path)
        && parallel::can_be_cut(options, columns.len())
    {
        let rows = FileRows::new(&file, found.len(), options, columns);
        return rows.read(env.settings.threads(), |part| {
            env.cancel.check()?;
            take(&part.columns, &|| rows.lines(&part))
        });
    }
    let mut stream = expanded(path, Box::new(file))?;
    let mut lines = Lines::new(&mut stream, format, columns.iter().map(|c| c.name.clone()).collect())?;
    while let Some(batch) = lines.next_batch()? {
        env.cancel.check()?;
        let (values, lines, _) = Conversion::of_all(columns).rows(batch)?;
        take(&values, &|| lines.clone())?;
    }
    Ok(())
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

/// Whether the bytes of `format` are LATIN1.
fn is_latin1(format: &CopyFormat) -> bool {
    matches!(format, CopyFormat::Csv(CsvOptions { latin1: true, .. }))
        || matches!(format, CopyFormat::Text(TextOptions { latin1: true, .. }))
}

/// Rows as lines of text.
enum Lines<'a> {
    Csv(CsvReader<&'a mut dyn Read>),
    Text(TextReader<&'a mut dyn Read>),
}

impl<'a> Lines<'a> {
    fn new(input: &'a mut dyn Read, format: &CopyFormat, names: Vec<String>) -> Result<Self> {
        Ok(match format {
            CopyFormat::Csv(options) => Self::Csv(CsvReader::new(input, options.clone(), names).finding_line_end()),
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
/// Bytes of memory that a thread which reads a file needs to be worth it.
const THREAD_BYTES_MIN: u64 = 4 << 20;

struct CopyIn<'a, 'e> {
    /// The table, and the transaction that sees it.
    of: (Arc<TableSchema>, &'a Transaction),
    /// The named columns; none means all.
    columns: &'a [String],
    /// Of the columns of the file, in the order of `file_columns`.
    sources: Vec<Source>,
    expressions: Expressions,
    condition: Option<Condition>,
    rejected: Rejected,
    writes: StatementWrites,
    env: &'a mut Environment<'e>,
}

impl CopyIn<'_, '_> {
    /// The rows of a stream, by several threads if they can be told apart.
    fn lines(&mut self, input: &mut dyn Read, format: &CopyFormat) -> Result<()> {
        let mut decoded;
        let input: &mut dyn Read = if is_latin1(format) {
            decoded = Latin1::new(input);
            &mut decoded
        } else {
            input
        };
        let CopyFormat::Csv(options) = format else { return self.one_by_one(input, format) };
        let options = CsvOptions { latin1: false, ..options.clone() };
        let mut input = Begun::new(input, parallel::SAMPLE_BYTES as u64);
        // How lines end that are longer than that, one reader finds out.
        let line_end = first_line_end(input.head(), false, options.quote);
        let has_line_feeds = matches!(line_end, Some(LineEnd::LineFeed | LineEnd::Both));
        if !has_line_feeds || !parallel::can_be_cut(&options, self.sources.len()) {
            return self.one_by_one(&mut input, format);
        }
        self.in_chunks(input, &options)
    }

    /// The rows of a stream, by one thread.
    fn one_by_one(&mut self, input: &mut dyn Read, format: &CopyFormat) -> Result<()> {
        let columns = file_columns(&self.of.0, self.columns);
        let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
        let mut lines = Lines::new(input, format, names)?;
        while let Some(batch) = lines.next_batch()? {
            self.env.cancel.check()?;
            let conversion = Conversion::of_all(&columns).ignoring(self.rejected.ignores());
            let (values, lines, rejects) = conversion.rows(batch)?;
            self.rejected.add(rejects)?;
            self.insert(&values, lines.len(), || lines.clone())?;
        }
        Ok(())
    }

    /// The rows of a stream of CSV, by several threads.
    fn in_chunks(&mut self, input: Begun<&mut dyn Read>, options: &CsvOptions) -> Result<()> {
        let columns = file_columns(&self.of.0, self.columns);
        if options.matches {
            let names = columns.iter().map(|column| column.name.clone()).collect();
            CsvReader::new(input.head(), options.clone(), names).check_first_line()?;
        }
        let mut held = self.writes.take_file_memory();
        let (segment_rows, threads) = self.chunks(&held);
        let rows = FileRows::of_stream(options, &columns)
            .converted_by(Conversion::of_all(&columns).ignoring(self.rejected.ignores()))
            .for_load(self.takes_all())
            .with_chunks_as(input.head(), segment_rows, threads, held.bytes())
            .with_chunk_bytes(self.env.settings.load_chunk_bytes());
        let threads = rows.threads_within_memory(threads);
        let cancel = self.env.cancel.clone();
        // How long the stream is shows as it comes.
        let mut hold = |chunks: usize| held.resize(to_usize(rows.held_bytes(threads, chunks)));
        hold(usize::from(input.head().len() >= parallel::SAMPLE_BYTES));
        let mut taken = 0;
        rows.read_stream(input, threads, &|| cancel.check(), |part| {
            taken += 1;
            hold(taken + threads + 1);
            self.rows(part, &rows)
        })
    }

    /// Rows of a chunk at most, as far as they can be told; threads that read chunks, which may have `held`.
    fn chunks(&self, held: &Charge) -> (u64, usize) {
        // Of rows whose number is only guessed, few more than a segment has.
        let segment_rows = u64::from(self.of.0.options.segment_rows) * 9 / 10;
        let worth = to_usize(held.bytes() / THREAD_BYTES_MIN);
        (segment_rows, self.env.settings.threads().min(worth.max(1)))
    }

    /// Inserts those of a chunk of `rows`.
    fn rows(&mut self, mut part: Rows, rows: &FileRows<'_>) -> Result<()> {
        self.env.cancel.check()?;
        self.rejected.add(std::mem::take(&mut part.rejects))?;
        self.insert(&part.columns, part.count, || rows.lines(&part))
    }

    /// The rows of a file, by several threads if they can be told apart at any place.
    fn file(&mut self, path: &str, format: &CopyFormat) -> Result<()> {
        let file = open(path)?;
        let found = file.metadata().ok().filter(Metadata::is_file);
        self.env.progress.add_total(found.as_ref().map_or(0, Metadata::len));
        let mut file = self.env.progress.of(file);
        if is_compressed(path) {
            return self.lines(&mut expanded(path, Box::new(file))?, format);
        }
        let (CopyFormat::Csv(options), Some(found)) = (format, found) else { return self.lines(&mut file, format) };
        if !parallel::can_be_cut(options, self.sources.len()) {
            return self.lines(&mut file, format);
        }
        let columns = file_columns(&self.of.0, self.columns);
        if options.matches {
            let names = columns.iter().map(|column| column.name.clone()).collect();
            CsvReader::new(open(path)?, options.clone(), names).check_first_line()?;
        }
        let mut held = self.writes.take_file_memory();
        let (segment_rows, threads) = self.chunks(&held);
        let rows = FileRows::new(&file, found.len(), options, &columns)
            .converted_by(Conversion::of_all(&columns).ignoring(self.rejected.ignores()))
            .for_load(self.takes_all())
            .with_chunks_of(&open(path)?, segment_rows, threads, held.bytes())
            .with_chunk_bytes(self.env.settings.load_chunk_bytes());
        let threads = rows.threads_within_memory(threads);
        held.resize(to_usize(rows.held_bytes(threads, rows.chunks())));
        rows.read(threads, |part| self.rows(part, &rows))
    }

    /// Whether rows are those of the table as they are read.
    fn takes_all(&self) -> bool {
        self.condition.is_none() && self.expressions.take_all(&self.sources)
    }

    /// Inserts `count` rows, whose columns of the file are `columns`; `lines` tells where each begins.
    fn insert(&mut self, columns: &[ArrayRef], count: usize, lines: impl FnOnce() -> Vec<u64>) -> Result<()> {
        for from in (0..count).step_by(INSERTED_ROWS) {
            let rows = INSERTED_ROWS.min(count - from);
            let columns: Vec<ArrayRef> = columns.iter().map(|column| column.slice(from, rows)).collect();
            let (table, transaction) = &self.of;
            if self.takes_all() {
                match self.writes.load(table, columns.clone()) {
                    Ok(()) => {
                        self.env.progress.add_rows(rows);
                        continue;
                    }
                    Err(error) if !is_of_values(&error) => return Err(error),
                    // Which row it is shows below.
                    Err(_) => {}
                }
            }
            let columns = columns.iter().map(widened).collect::<Result<Vec<_>>>()?;
            let values = self.expressions.fill(transaction, &columns, &self.sources, rows)?;
            self.env.progress.add_rows(rows);
            let rows = RecordBatch::try_new(nullable_schema(table), values)?;
            let (rows, places) = match &self.condition {
                Some(condition) => condition.fulfilled(&rows)?,
                None => (rows, None),
            };
            let checked = self.expressions.checked(rows.columns().to_vec());
            let Err(error) = checked.and_then(|rows| self.writes.insert(table, &rows)) else { continue };
            let Some((row, error)) = self.first_refused(&error, &rows) else { return Err(error) };
            let row = places.and_then(|places| places.get(row).copied()).unwrap_or(row);
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
            let checked = mainstem_storage::row::check_batch(&self.of.0, &rows.slice(from, count));
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
        let columns = file_columns(&self.of.0, self.columns);
        let is_uuid = |name: &str| columns.iter().any(|c| c.name == name && c.data_type == DataType::Uuid);
        let file = file.with_uuids(is_uuid);
        let in_file = file.schema();
        let mut found = Vec::with_capacity(columns.len());
        for column in &columns {
            let at = in_file.fields().iter().position(|f| *f.name() == column.name).ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    sqlstate::UNDEFINED_COLUMN,
                    format!("the file has no column \"{}\"", column.name),
                )
            })?;
            file.check_type(at)?;
            check_assignment(&wide_type(in_file.field(at).data_type()), false, column)?;
            found.push(at);
        }
        let convert = |batch: RecordBatch| {
            let values = columns.iter().map(|column| {
                let array = batch.column_by_name(&column.name);
                let array = array.ok_or_else(|| Error::internal("a column of the file is lost"))?;
                match (column.data_type, array.data_type()) {
                    // A load takes texts as they are, or codes of them, and decimals of 64 bits.
                    (DataType::Text { .. } | DataType::Char { .. }, ArrowType::Utf8 | ArrowType::Dictionary(..)) => {
                        Ok(array.clone())
                    }
                    (DataType::Decimal { precision, scale }, ArrowType::Decimal64(digits, point))
                        if (precision, scale) == (*digits, *point) =>
                    {
                        Ok(array.clone())
                    }
                    _ => assign(&widened(array)?, column),
                }
            });
            Ok((values.collect::<Result<Vec<_>>>()?, batch.num_rows()))
        };
        let mut held = self.writes.take_file_memory();
        let memory = (self.env.settings.threads(), held.bytes());
        let rows_max = self.of.0.options.segment_rows as usize;
        held.resize(to_usize(file.held_bytes(&found, rows_max, memory)));
        file.read(&found, rows_max, memory, convert, |(columns, rows)| {
            self.env.cancel.check()?;
            self.insert(&columns, rows, Vec::new)
        })
    }
}

/// `data_type`, decimals of 64 bits in 128, texts as such: a load alone knows these, and codes.
fn wide_type(data_type: &ArrowType) -> ArrowType {
    match data_type {
        ArrowType::Decimal64(precision, scale) => ArrowType::Decimal128(*precision, *scale),
        ArrowType::Dictionary(..) => ArrowType::Utf8View,
        other => other.clone(),
    }
}

/// `array` in the type that [`wide_type`] has for its own.
fn widened(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        ArrowType::Decimal64(..) | ArrowType::Dictionary(..) => Ok(cast(array, &wide_type(array.data_type()))?),
        _ => Ok(array.clone()),
    }
}

/// `bytes`, or the most that there can be.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Whether `error` refuses a row for its values, whatever the table has.
fn is_of_values(error: &Error) -> bool {
    let state = error.sqlstate();
    state.starts_with("22") || [sqlstate::NOT_NULL, sqlstate::CHECK].contains(&state)
}
