//! A database as one text of SQL: what `mainstem dump` writes, and a shell reads.
//!
//! Schemas and tables, a COPY with its data for each table, positions of IDENTITY columns, views: of one snapshot.

use std::io::Write;

use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::super::copy_to::copy_to;
use super::export::positions_text;
use super::schema_text::{full_name, quoted, tables, tables_text, views_text};
use crate::exec::Environment;
use crate::sql::{CopyFormat, CopyOptions, CopyPlace, CopySource, TableName, TextOptions, Written};

/// Writes the database to `out`; returns the rows.
///
/// # Errors
/// Those of `out`, and of reading.
pub(crate) fn dump(env: &mut Environment<'_>, transaction: &Transaction, out: &mut dyn Write) -> Result<u64> {
    let failed = |e| Error::io("write", "the dump", e);
    let catalog = transaction.catalog();
    writeln!(out, "-- Written by Mainstem {}.", env!("CARGO_PKG_VERSION")).map_err(failed)?;
    writeln!(out, "BEGIN;").map_err(failed)?;
    out.write_all(tables_text(&catalog).as_bytes()).map_err(failed)?;
    let mut rows = 0;
    for table in tables(&catalog) {
        let columns: Vec<String> = table.columns.iter().map(|column| quoted(&column.name)).collect();
        let name = full_name(&table.relation_name());
        writeln!(out, "COPY {name} ({}) FROM stdin;", columns.join(", ")).map_err(failed)?;
        let source = CopySource::Table {
            table: TableName { schema: Some(table.namespace.clone()), name: table.name.clone() },
            columns: Vec::new(),
        };
        let options = CopyOptions {
            place: CopyPlace::Client,
            format: CopyFormat::Text(TextOptions::default()),
            written: Written::default(),
        };
        rows += copy_to(env, transaction, source, &options, Some(out))?;
        writeln!(out, "\\.").map_err(failed)?;
    }
    out.write_all(positions_text(transaction)?.as_bytes()).map_err(failed)?;
    out.write_all(views_text(&catalog)?.as_bytes()).map_err(failed)?;
    writeln!(out, "COMMIT;").map_err(failed)?;
    out.flush().map_err(failed)?;
    Ok(rows)
}
