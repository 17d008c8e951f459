//! EXPORT DATABASE: SQL that makes the database again, and a file of rows for each table.
//!
//! The folder has `schema.sql` with schemas, tables and views, `load.sql` with a COPY for each table and the positions
//! of IDENTITY columns, and the files below `data`. All of it is of one snapshot.

use std::path::{Path, PathBuf};

use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::super::aside::Aside;
use super::super::copy_to::copy_to;
use super::schema_text::{full_name, literal, quoted, tables, tables_text, views_text};
use crate::exec::Environment;
use crate::sql::{
    Compression, CopyFormat, CopyOptions, CopyPlace, CopySource, CsvOptions, ExportFormat, TableName, Written,
};

/// The file with what makes tables.
const SCHEMA_FILE: &str = "schema.sql";
/// The file with what fills them.
const LOAD_FILE: &str = "load.sql";
/// The folder of rows.
const DATA_FOLDER: &str = "data";
/// Bytes that a name of a file may have of a table's.
const NAME_BYTES_MAX: usize = 180;

/// Runs an EXPORT DATABASE; returns the rows written.
///
/// # Errors
/// 58P02 for a folder with something in it; 25001 in a transaction that has written something; Io and Full: there is no
/// folder then.
pub(crate) fn export(
    env: &mut Environment<'_>,
    transaction: &Transaction,
    folder: &str,
    format: ExportFormat,
) -> Result<u64> {
    let aside = Aside::of_folder(folder)?;
    let catalog = transaction.catalog();
    let data = aside.path().join(DATA_FOLDER);
    std::fs::create_dir(&data).map_err(|e| Error::io("create", data.display(), e))?;
    let schema = format!(
        "-- Written by EXPORT DATABASE of Mainstem {}.\n{}{}",
        env!("CARGO_PKG_VERSION"),
        tables_text(&catalog),
        views_text(&catalog)?
    );
    let mut load = String::new();
    let mut rows = 0;
    for (number, table) in tables(&catalog).iter().enumerate() {
        let name = file_name(table, number, format);
        let file = data.join(&name);
        let options = CopyOptions {
            place: CopyPlace::File(file.display().to_string()),
            format: match format {
                ExportFormat::Parquet => CopyFormat::Parquet,
                ExportFormat::Csv => CopyFormat::Csv(CsvOptions { header: true, ..CsvOptions::default() }),
            },
            written: Written { compression: Compression::Zstd, ..Written::default() },
        };
        let source = CopySource::Table {
            table: TableName { schema: Some(table.namespace.clone()), name: table.name.clone() },
            columns: Vec::new(),
        };
        rows += copy_to(env, transaction, source, &options, None)?;
        let columns: Vec<String> = table.columns.iter().map(|column| quoted(&column.name)).collect();
        let options = match format {
            ExportFormat::Parquet => "FORMAT parquet",
            ExportFormat::Csv => "FORMAT csv, HEADER true",
        };
        load.push_str(&format!(
            "COPY {} ({}) FROM {} ({options});\n",
            full_name(&table.relation_name()),
            columns.join(", "),
            literal(&format!("{DATA_FOLDER}/{name}")),
        ));
    }
    load.push_str(&positions_text(transaction)?);
    for (name, text) in [(SCHEMA_FILE, schema), (LOAD_FILE, load)] {
        write(&aside.path().join(name), &text)?;
    }
    aside.install()?;
    Ok(rows)
}

/// Statements that set IDENTITY columns to where they are.
///
/// # Errors
/// 25001, Closed.
pub(crate) fn positions_text(transaction: &Transaction) -> Result<String> {
    let mut text = String::new();
    let taken = transaction.numbers_taken()?;
    for table in tables(&transaction.catalog()) {
        for column in &table.columns {
            let Some(identity) = column.identity else { continue };
            let Some(taken) = taken.get(&(table.id, column.id)).filter(|taken| **taken > 0) else { continue };
            let last = i128::from(identity.start) + i128::from(taken - 1) * i128::from(identity.increment);
            let name = format!("{}.{}", quoted(&table.namespace), quoted(&table.name));
            let sequence = format!("pg_get_serial_sequence({}, {})", literal(&name), literal(&column.name));
            text.push_str(&format!("SELECT pg_catalog.setval({sequence}, {last}, true);\n"));
        }
    }
    Ok(text)
}

fn file_name(table: &TableSchema, number: usize, format: ExportFormat) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let name = format!("{}.{}", table.namespace, table.name);
    let is_plain =
        name.len() <= NAME_BYTES_MAX && [&table.namespace, &table.name].iter().all(|n| n.bytes().all(is_plain));
    // What no plain name is.
    let name = if is_plain { name } else { format!("table-{number}") };
    format!("{name}.{}", format.name())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let run = || {
        std::fs::write(path, text)?;
        std::fs::File::open(path)?.sync_all()
    };
    run().map_err(|e| Error::io("write", path.display(), e))
}

/// What IMPORT DATABASE runs: the texts of `folder`.
///
/// # Errors
/// 58P01, Io.
pub(crate) fn import_texts(folder: &str) -> Result<[String; 2]> {
    let read = |name: &str| {
        let path = Path::new(folder).join(name);
        std::fs::read_to_string(&path).map_err(|e| Error::io("read", format_args!("\"{}\"", path.display()), e))
    };
    Ok([read(SCHEMA_FILE)?, read(LOAD_FILE)?])
}

/// The file that a COPY of `folder` names.
pub(crate) fn import_place(folder: &str, place: CopyPlace) -> CopyPlace {
    match place {
        CopyPlace::File(path) => CopyPlace::File(PathBuf::from(folder).join(path).display().to_string()),
        CopyPlace::Client => CopyPlace::Client,
    }
}
