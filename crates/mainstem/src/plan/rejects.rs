//! Rows of a COPY FROM that are left out because a text of theirs is no value of its column.
//!
//! Comes in: such rows, in the order of what is read, and where they are to be told: a table, a file of CSV, both or
//! neither. Goes out: rows of that table with the statement; a file that has its name when the statement is done; a
//! notice of how many they were.
//!
//! It does not own: which rows they are (`csv::convert`).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef};
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::{DataType, TableSchema};
use mainstem_storage::transaction::{StatementWrites, Transaction};
use mainstem_storage::{Error, ErrorKind, Result};

use super::aside::Aside;
use crate::csv::{LineFormat, Reject};
use crate::exec::{Environment, Notice};
use crate::sql::{CopyPlace, CsvOptions, Rejects};

/// Rows that are left out for their values.
#[derive(Debug)]
pub(super) struct Rejected {
    wanted: Rejects,
    count: u64,
    /// Where they are told, and what waits to be written there.
    table: Option<(Arc<TableSchema>, StatementWrites)>,
    output: Option<RejectsFile>,
    /// What is read.
    source: Arc<str>,
}

/// Names and types of the columns that a table of rejects has.
const REJECT_COLUMNS: [(&str, DataType); 6] = [
    ("file", DataType::Text { max_chars: None }),
    ("line", DataType::BigInt),
    ("byte", DataType::BigInt),
    ("column_name", DataType::Text { max_chars: None }),
    ("reason", DataType::Text { max_chars: None }),
    ("text", DataType::Text { max_chars: None }),
];

impl Rejected {
    /// None yet, of what is read from `place`. The table of rejects is made if it is not there.
    ///
    /// # Errors
    /// 42P16 for a table with other columns, 42809 for a view; those of making one, and the file.
    pub(super) fn new(
        env: &Environment<'_>,
        transaction: &mut Transaction,
        wanted: &Rejects,
        place: &CopyPlace,
    ) -> Result<Self> {
        let table = match &wanted.table {
            None => None,
            Some(name) => {
                let catalog = transaction.catalog();
                let table = match env.settings.names().find(&catalog, name) {
                    Some(_) => env.settings.names().table(&catalog, name)?,
                    None => {
                        let columns = REJECT_COLUMNS.map(|(name, of)| ColumnDefinition::new(name, of, true)).to_vec();
                        let id = transaction.create_table(TableDefinition {
                            name: env.settings.names().new_relation(&catalog, name)?,
                            options: env.settings.table_options(None, None)?,
                            ..TableDefinition::new("", columns)
                        })?;
                        let made = transaction.catalog().table(id).cloned();
                        made.ok_or_else(|| Error::internal("a table that was made is not there"))?
                    }
                };
                let columns = table.columns.iter().map(|column| (column.name.as_str(), column.data_type));
                if !columns.eq(REJECT_COLUMNS) {
                    let message = format!(
                        "table \"{}\" is no table of rejects: those have file TEXT, line BIGINT, byte BIGINT, \
                         column_name TEXT, reason TEXT, text TEXT",
                        table.name
                    );
                    return Err(Error::invalid(sqlstate::INVALID_TABLE, message));
                }
                Some((table, transaction.statement()))
            }
        };
        let source = match place {
            CopyPlace::File(path) => path.as_str(),
            CopyPlace::Client => "STDIN",
        };
        let output = wanted.file.as_deref().map(RejectsFile::create).transpose()?;
        Ok(Self { wanted: wanted.clone(), count: 0, table, output, source: source.into() })
    }

    /// Whether there may be any.
    pub(super) fn ignores(&self) -> bool {
        self.wanted.ignores
    }

    /// Some more, in the order of the file.
    ///
    /// # Errors
    /// 22P02 when there are too many; those of the table and the file that they are told in.
    pub(super) fn add(&mut self, rejects: Vec<Reject>) -> Result<()> {
        if rejects.is_empty() {
            return Ok(());
        }
        self.count += rejects.len() as u64;
        if let Some(limit) = self.wanted.limit
            && self.count > limit
        {
            let message = format!("skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility");
            let last = rejects.get((rejects.len() as u64 - (self.count - limit)) as usize);
            let last = last.map_or_else(String::new, |reject| format!("; {}", reject.reason));
            return Err(Error::new(ErrorKind::Invalid, sqlstate::INVALID_TEXT, message + &last));
        }
        if self.table.is_none() && self.output.is_none() {
            return Ok(());
        }
        let texts = |of: &dyn Fn(&Reject) -> String| -> ArrayRef {
            Arc::new(StringViewArray::from_iter_values(rejects.iter().map(of)))
        };
        let numbers = |of: &dyn Fn(&Reject) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rejects.iter().map(|reject| of(reject) as i64)))
        };
        let columns: Vec<ArrayRef> = vec![
            texts(&|_| self.source.to_string()),
            numbers(&|reject| reject.line),
            numbers(&|reject| reject.byte),
            texts(&|reject| reject.column.clone()),
            texts(&|reject| reject.reason.clone()),
            texts(&|reject| reject.text.clone()),
        ];
        if let Some(output) = &mut self.output {
            output.write(&RecordBatch::try_new(schema(), columns.clone())?)?;
        }
        let Some((table, writes)) = &mut self.table else { return Ok(()) };
        let rows = RecordBatch::try_new(super::columns::nullable_schema(table), columns)?;
        writes.insert(table, &rows)
    }

    /// Writes the rejects, and says how many they were. The file stays whatever becomes of the transaction.
    ///
    /// # Errors
    /// Those of the table and the file.
    pub(super) fn finish(self, transaction: &mut Transaction) -> Result<Option<Notice>> {
        let Self { wanted, count, table, output, .. } = self;
        if let Some((_, writes)) = table {
            transaction.apply(writes)?;
        }
        output.map_or(Ok(()), RejectsFile::install)?;
        let rows = if count == 1 { "row was" } else { "rows were" };
        let message = format!("{count} {rows} skipped due to data type incompatibility");
        Ok((count > 0 && !wanted.is_silent).then(|| Notice::new("00000", message)))
    }
}

/// The columns of [`REJECT_COLUMNS`].
fn schema() -> SchemaRef {
    let arrow = |data_type| if data_type == DataType::BigInt { ArrowType::Int64 } else { ArrowType::Utf8View };
    let fields = REJECT_COLUMNS.map(|(name, data_type)| Field::new(name, arrow(data_type), true));
    Arc::new(Schema::new(fields.to_vec()))
}

/// A file of CSV with a header, which has its name when it is whole.
struct RejectsFile {
    aside: Aside,
    out: BufWriter<File>,
}

impl RejectsFile {
    fn create(path: &str) -> Result<Self> {
        let aside = Aside::of_file(path)?;
        let out = BufWriter::new(aside.file()?);
        let mut created = Self { aside, out };
        let mut header = Vec::new();
        Self::format().header(&schema(), &mut header);
        created.append(&header)?;
        Ok(created)
    }

    fn format() -> LineFormat {
        LineFormat::Csv(CsvOptions { header: true, ..CsvOptions::default() })
    }

    fn write(&mut self, rejects: &RecordBatch) -> Result<()> {
        let mut lines = Vec::new();
        Self::format().rows(rejects, &mut lines)?;
        self.append(&lines)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|e| Error::io("write to", self.aside.shown(None), e))
    }

    fn install(self) -> Result<()> {
        let shown = self.aside.shown(None);
        let file = self.out.into_inner().map_err(|e| Error::io("write to", &shown, e.into_error()))?;
        // What is no regular file cannot be synced.
        if file.metadata().is_ok_and(|found| found.is_file()) {
            file.sync_all().map_err(|e| Error::io("fsync", &shown, e))?;
        }
        self.aside.install()
    }
}

impl std::fmt::Debug for RejectsFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RejectsFile").field(&self.aside.path()).finish()
    }
}
