//! COPY TO: the rows of a table or a query as files, or to a stream of the program that runs it.
//!
//! Comes in: a table or a query, a format, and where to. Goes out: how many rows were written.
//!
//! 1. The query runs on its own threads. What comes of it is put together to pieces (`piece`): so many rows, of one
//!    partition. With PARTITION_BY the query is in the order of the partitions, so that one file is open at a time.
//! 2. Threads encode the pieces (`encode`), each by itself, some ahead of what is written.
//! 3. The calling thread writes what they made, in the order in which the pieces came (`place`): to a file, or a
//!    folder of files, beside the target, which gets the target's name when all of it is whole and fsynced.
//!
//! Invariants: memory is bounded by the pieces ahead, whatever the rows; a COPY that fails leaves the target as it was,
//! and nothing beside it. It does not own: the text of a value (`csv`), what a query means.

mod piece;
mod partitions;
mod encode;
mod place;

use std::io::Write;

use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::sql::sqlparser::ast::{Ident, Statement as Ast};
use datafusion::sql::sqlparser::parser::Parser;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::threads::in_order;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::copy::no_stream;
use super::shown;
use super::write::{sources_of, table_of};
use crate::exec::{Environment, Running};
use crate::provider::Names;
use crate::sql::{CopyFormat, CopyOptions, CopyPlace, CopySource};
use encode::{Encoded, Encoder};
use partitions::Partitions;
use piece::Pieces;
use place::Files;

/// Pieces for each thread that are encoded or wait to be written.
const PIECES_AHEAD: usize = 2;
/// Threads beyond which one that writes has enough to do, and memory better uses.
const THREADS_MAX: usize = 16;

/// The query behind COPY TO.
fn source_query(names: &Names, transaction: &Transaction, source: CopySource) -> Result<Ast> {
    let (table, columns) = match source {
        CopySource::Query(query) => return Ok(Ast::Query(query)),
        CopySource::Table { table, columns } => (table, columns),
    };
    let schema = table_of(names, transaction, &table)?;
    sources_of(&schema, &columns, schema.columns.len())?;
    table_query(&schema, columns)
}

/// The rows of a table, as they are stored.
///
/// # Errors
/// Those of a query.
pub(super) fn rows_of(env: &mut Environment<'_>, transaction: &Transaction, table: &TableSchema) -> Result<Running> {
    let plan = env.plan(transaction, table_query(table, Vec::new())?, None)?;
    env.start(&plan)
}

/// The query of some columns, or all, of a table.
fn table_query(schema: &TableSchema, columns: Vec<String>) -> Result<Ast> {
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
/// Those of the query; Io and Full of the file, which is then as it was. 42703 and others for PARTITION_BY.
pub(crate) fn copy_to(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    source: CopySource,
    options: &CopyOptions,
    client: Option<&mut dyn Write>,
) -> Result<u64> {
    let query = source_query(env.settings.names(), transaction, source)?;
    let mut plan = env.plan(transaction, query, None)?;
    let partition_by = &options.written.partition_by;
    let partitions = match partition_by.is_empty() {
        true => None,
        false => {
            let partitions = Partitions::new(plan.schema().as_arrow(), partition_by)?;
            plan = partitions.in_order(plan)?;
            Some(partitions)
        }
    };
    let running = env.start(&shown(plan)?)?;
    let schema = match &partitions {
        Some(partitions) => partitions.file_schema(&running.schema)?,
        None => running.schema.clone(),
    };
    let encoder = Encoder::new(&options.format, options.written.compression, schema)?;
    let copy = CopyOut {
        encoder: &encoder,
        threads: env.settings.threads().min(THREADS_MAX),
        reservation: env.reservation("COPY TO"),
        cancel: &|| env.cancel.check(),
    };
    match (&options.place, client) {
        (CopyPlace::File(path), _) => {
            let mut files = match &partitions {
                Some(_) => Files::folder(path, options.format == CopyFormat::Parquet)?,
                None => Files::single(path)?,
            };
            let rows = copy.run(running, partitions, |piece| files.write(&encoder, piece))?;
            // A whole file of no rows, too.
            files.finish(&encoder)?;
            Ok(rows)
        }
        (CopyPlace::Client, Some(stream)) => {
            let failed = |e| Error::io("write", "the data", e);
            stream.write_all(encoder.header()).map_err(failed)?;
            let rows = copy.run(running, None, |piece| match piece.encoded {
                Encoded::Lines(lines) => stream.write_all(&lines).map_err(failed),
                Encoded::RowGroup(_) => Err(Error::internal("FORMAT parquet written to a stream")),
            })?;
            stream.flush().map_err(failed)?;
            Ok(rows)
        }
        (CopyPlace::Client, None) => Err(no_stream("STDOUT", "copy_out")),
    }
}

/// What a piece became.
struct Done {
    partition: Option<std::sync::Arc<str>>,
    encoded: Encoded,
    rows: u64,
    bytes: usize,
}

struct CopyOut<'a> {
    encoder: &'a Encoder,
    threads: usize,
    /// Of the pieces that are not written yet.
    reservation: MemoryReservation,
    cancel: &'a dyn Fn() -> Result<()>,
}

impl CopyOut<'_> {
    /// Hands what the rows become to `write`, in order; returns how many rows that were.
    fn run(
        self,
        running: Running,
        partitions: Option<Partitions>,
        mut write: impl FnMut(Done) -> Result<()>,
    ) -> Result<u64> {
        let Self { encoder, threads, reservation, cancel } = self;
        let mut rows = 0;
        let pieces = Pieces::new(running.batches, encoder.piece_limits(), partitions).map(|piece| {
            let piece = piece?;
            reservation.grow(piece.bytes);
            Ok(piece)
        });
        let encode = |piece: piece::Piece| {
            let encoded = encoder.encode(&piece.batches)?;
            Ok(Done { encoded, rows: piece.rows as u64, bytes: piece.bytes, partition: piece.partition })
        };
        in_order(threads, threads * PIECES_AHEAD, pieces, encode, |done| {
            cancel()?;
            rows += done.rows;
            let bytes = done.bytes;
            write(done)?;
            reservation.shrink(bytes);
            Ok(())
        })?;
        Ok(rows)
    }
}
