//! What CSV files look like: the first one tells options and names, all of them the types.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::Column;
use mainstem_storage::{Error, Result};

use super::cache::FileCache;
use super::open::FoundFile;
use crate::csv::detect::{Detected, Input, Sample, common_type, detect, shown, types_of_file};
use crate::sql::{CsvHints, FileCompression, FileRequest};

/// What `files` look like, by what `request` says of them and `cache` remembers.
///
/// # Errors
/// Io; 22P04 for files without columns, or with others than the first one, each with the name of the file.
pub(super) fn of_files(request: &FileRequest, files: &Arc<[FoundFile]>, cache: &FileCache) -> Result<Arc<Detected>> {
    if let Some(found) = cache.get(request, files) {
        return Ok(found);
    }
    let of = |file: &FoundFile, hints: &CsvHints| {
        let found = sample(file, hints.latin1).and_then(|sample| detect(&sample, hints));
        found.map_err(|error| error.context(format_args!("\"{}\"", file.name())))
    };
    // Empty files beside others have no rows.
    let mut with_bytes = files.iter().filter(|file| file.bytes > 0);
    let Some(first) = with_bytes.next().or(files.first()) else { return Err(Error::internal("no file to look at")) };
    let mut found = of(first, &request.hints)?;
    let hints = CsvHints {
        delimiter: Some(found.options.delimiter),
        quote: Some(found.options.quote),
        escape: Some(found.options.escape),
        header: Some(found.options.header),
        null: Some(found.options.null.clone()),
        line_end: Some(found.options.line_end),
        ..request.hints.clone()
    };
    for file in with_bytes {
        let other = of(file, &hints)?;
        check_same(&found, first, &other, file)?;
        for (column, other) in found.columns.iter_mut().zip(&other.columns) {
            column.data_type = common_type(column.data_type, other.data_type);
        }
        found.is_certain &= other.is_certain;
    }
    let found = Arc::new(found);
    cache.put(request, files, found.clone());
    Ok(found)
}

fn check_same(one: &Detected, first: &FoundFile, two: &Detected, file: &FoundFile) -> Result<()> {
    let names = |found: &Detected| found.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    if names(one) == names(two) {
        return Ok(());
    }
    let message = format!(
        "the files have different columns: \"{}\" has {} ({}), \"{}\" has {} ({})",
        first.name(),
        one.columns.len(),
        names(one).join(", "),
        file.name(),
        two.columns.len(),
        names(two).join(", ")
    );
    Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, message))
}

fn sample(file: &FoundFile, latin1: bool) -> Result<Sample> {
    if file.compression == FileCompression::None && !latin1 {
        return Sample::of_file(&file.open()?, file.bytes);
    }
    Sample::of_stream(&mut *file.stream(latin1, None)?)
}

/// `found` with the types of all values of `files`.
///
/// # Errors
/// Those of the files and their rows, with the name of the file; those of `check`.
pub(super) fn certain(
    found: &Detected,
    files: &[FoundFile],
    threads: usize,
    check: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Detected> {
    let mut all: Option<Vec<_>> = None;
    for file in files.iter().filter(|file| file.bytes > 0) {
        let input = if file.compression == FileCompression::None && !found.options.latin1 {
            Input::File(Arc::new(file.open()?), file.bytes)
        } else {
            Input::Stream(file.stream(found.options.latin1, None)?)
        };
        let types = types_of_file(input, found, threads, check);
        let types = types.map_err(|error| error.context(format_args!("\"{}\"", file.name())))?;
        all = Some(match all {
            None => types,
            Some(before) => before.into_iter().zip(types).map(|(one, two)| common_type(one, two)).collect(),
        });
    }
    let mut certain = Detected { is_certain: true, ..found.clone() };
    for (column, data_type) in certain.columns.iter_mut().zip(all.into_iter().flatten()) {
        column.data_type = data_type;
    }
    Ok(certain)
}

/// What was found, as a row.
///
/// # Errors
/// Internal.
pub(super) fn told(found: &Detected, files: &[FoundFile]) -> Result<RecordBatch> {
    let columns: Vec<String> =
        found.columns.iter().map(|column: &Column| format!("{} {}", quoted(&column.name), column.data_type)).collect();
    let columns = columns.join(", ");
    let options = &found.options;
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let byte = |byte: u8| if byte == crate::sql::NO_QUOTE { "''".to_owned() } else { byte_literal(byte) };
    let name = files.first().map(FoundFile::name).unwrap_or_default();
    let call = format!(
        "FROM read_csv({}, delim => {}, quote => {}, escape => {}, new_line => '{}', header => {}, nullstr => {}, \
         columns => {})",
        literal(&name),
        byte(options.delimiter),
        byte(options.quote),
        byte(options.escape),
        options.line_end,
        options.header,
        literal(&options.null),
        literal(&columns)
    );
    let texts = [
        ("delimiter", shown(options.delimiter)),
        ("quote", shown(options.quote)),
        ("escape", shown(options.escape)),
        ("new_line", options.line_end.to_string()),
        ("null_text", options.null.clone()),
        ("columns", columns),
        ("prompt", call),
    ];
    let flags = [("has_header", options.header), ("whole_file", found.is_certain)];
    let text_fields = texts.iter().map(|(name, _)| Field::new(*name, ArrowType::Utf8View, true));
    let flag_fields = flags.iter().map(|(name, _)| Field::new(*name, ArrowType::Boolean, true));
    let schema = Arc::new(Schema::new(text_fields.chain(flag_fields).collect::<Vec<_>>()));
    let text_arrays = texts.iter().map(|(_, text)| Arc::new(StringViewArray::from_iter_values([text])) as ArrayRef);
    let flag_arrays = flags.iter().map(|(_, flag)| Arc::new(BooleanArray::from(vec![*flag])) as ArrayRef);
    Ok(RecordBatch::try_new(schema, text_arrays.chain(flag_arrays).collect())?)
}

fn byte_literal(byte: u8) -> String {
    match byte {
        b'\'' => "''''".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        byte => format!("'{}'", char::from(byte)),
    }
}

/// `name` as a statement writes it.
fn quoted(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
