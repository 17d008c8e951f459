//! Which lines of a file have a key that a COPY may not bring: one that it brings twice, or that the table has.
//!
//! Comes in: the error, which tells the key, and somebody who reads the file once more. Goes out: the same error with
//! the first two lines that have the key.
//!
//! A load notes no line of a row: rows are found to have the same key after they were sorted, or in an index whose
//! entries are rows. So the lines are looked for, as the key is known, once a load has failed; one that does not pays
//! nothing. Nothing is told about what cannot be read once more, or is another file by then.

use arrow::array::{ArrayRef, RecordBatch};
use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::row::check_batch;
use mainstem_storage::row::key::TableKey;
use mainstem_storage::schema::{Column, TableSchema};
use mainstem_storage::{Error, Result};

use super::columns::nullable_schema;

/// Takes rows of the file: its columns, and what tells the line of each row.
pub(super) type Take<'a> = &'a mut dyn FnMut(&[ArrayRef], &dyn Fn() -> Vec<u64>) -> Result<()>;

/// `error` with the lines that have its key, if it is one of a key of `table`. `read` hands over the rows of the file,
/// whose columns are `columns`, as long as its argument returns no error.
pub(super) fn with_lines(
    error: Error,
    table: &TableSchema,
    columns: &[Column],
    read: impl FnOnce(Take<'_>) -> Result<()>,
) -> Error {
    let Some(mut search) = Search::of(&error, table, columns) else { return error };
    // It ends with an error when it has found enough. Any other one does not matter beside that of the statement.
    let _ = read(&mut |columns, lines| search.go_on(columns, lines));
    match search.lines.as_slice() {
        [] => error,
        [line] => error.context(format_args!("line {line}")),
        [first, second, ..] => error.context(format_args!("line {second} and line {first}")),
    }
}

/// A key that is looked for.
struct Search {
    key: TableKey,
    bytes: Vec<u8>,
    /// Its columns alone, of which rows may be without values.
    schema: TableSchema,
    /// Where they are in the file.
    positions: Vec<usize>,
    lines: Vec<u64>,
}

impl Search {
    /// None if the error is not about a key, or if the file has not all of its columns.
    fn of(error: &Error, table: &TableSchema, columns: &[Column]) -> Option<Self> {
        let (id, bytes) = error.key().filter(|_| error.sqlstate() == sqlstate::UNIQUE)?;
        let key = TableKey::of(table, id)?;
        let position = |id: &ColumnId| columns.iter().position(|column| column.id == *id);
        let positions = key.columns().iter().map(position).collect::<Option<Vec<_>>>()?;
        let column = |at: &usize| Some(Column { nullable: true, ..columns.get(*at)?.clone() });
        let of_key = positions.iter().map(column).collect::<Option<Vec<_>>>()?;
        let schema = TableSchema::new(table.id, table.name.as_str(), of_key);
        Some(Self { key, bytes: bytes.to_vec(), schema, positions, lines: Vec::new() })
    }

    /// Looks at more rows.
    ///
    /// # Errors
    /// Those of values; Internal when there is no need to go on.
    fn go_on(&mut self, columns: &[ArrayRef], lines: &dyn Fn() -> Vec<u64>) -> Result<()> {
        let of_key = self.positions.iter().filter_map(|at| columns.get(*at).cloned()).collect();
        let rows = check_batch(&self.schema, &RecordBatch::try_new(nullable_schema(&self.schema), of_key)?)?;
        let (keys, with_key) = self.key.encode_arrays(rows.columns())?;
        let same = keys.iter().zip(0..).filter(|(key, _)| *key == self.bytes).map(|(_, nth)| with_key.row(nth));
        let found: Vec<u32> = same.take(2 - self.lines.len().min(2)).collect();
        if !found.is_empty() {
            let lines = lines();
            self.lines.extend(found.iter().filter_map(|row| lines.get(*row as usize)));
        }
        if self.lines.len() < 2 { Ok(()) } else { Err(Error::internal("both lines are found")) }
    }
}
