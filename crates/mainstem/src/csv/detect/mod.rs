//! What a file without options looks like: delimiter, quote, escape, header, line end, NULL and the types of its
//! columns.
//!
//! Comes in: a sample of the file, its first bytes and some pieces from the rest of it, and what its reader knows
//! already. Goes out: options for the readers, and columns.
//!
//! 1. `dialect` counts the fields of each row of the sample by every combination of delimiter, quote and escape, and
//!    takes the one by which rows look alike.
//! 2. `value_type` tells which types each field may be of; a column is of the first type that all of its fields may
//!    be of: BOOLEAN, INTEGER, BIGINT, DECIMAL, DOUBLE PRECISION, DATE, TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE,
//!    UUID, TEXT.
//! 3. The text of NULL is the one by which most columns are of a type other than TEXT.
//! 4. `header` compares the first row with the others.
//!
//! A sample may mislead about types alone: `whole` finds them in all of the file, when a value has come that is not of
//! the type its column seemed to be of. So the types are those of all values, whatever the sample was.
//!
//! It does not own: files and their names, reading again, how options are written.

mod dialect;
mod header;
mod sample;
#[cfg(test)]
mod tests;
mod value_type;
mod whole;

use mainstem_storage::error::sqlstate;
use mainstem_storage::ids::ColumnId;
use mainstem_storage::schema::{Column, DataType};
use mainstem_storage::{Error, Result};

use crate::sql::{CsvHints as Known, CsvOptions, NO_QUOTE};
pub(crate) use sample::{Sample, first_line_end};
use value_type::ColumnTypes;
pub(crate) use value_type::{check_fits, common_type};
pub(crate) use whole::{Input, types_of_file};

/// Texts that may mean NULL; the first does unless another one explains more.
const NULL_TEXTS: &[&str] = &["", "NULL", "null", "\\N", "NA", "N/A", "n/a", "None"];

/// What a file looks like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detected {
    pub(crate) options: CsvOptions,
    /// Its columns, in its order.
    pub(crate) columns: Vec<Column>,
    /// Which of their types were found in the file: values of another form are of another type.
    pub(crate) found: Vec<bool>,
    /// Whether these types are those of all values.
    pub(crate) is_certain: bool,
    /// Bytes of a row, about.
    pub(crate) row_bytes: u64,
}

/// A field of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    text: Vec<u8>,
    /// Whether any of it stood in quotes.
    is_quoted: bool,
}

impl Field {
    fn is_null(&self, null: &str) -> bool {
        !self.is_quoted && self.text == null.as_bytes()
    }
}

/// Finds out what the file that `sample` is of looks like.
///
/// # Errors
/// 22P04 for an empty file and one with other columns than are `known`; 42703 for types of columns that it has not.
pub(crate) fn detect(sample: &Sample, known: &Known) -> Result<Detected> {
    if sample.is_empty() && known.names.is_empty() {
        return Err(Error::invalid(
            sqlstate::BAD_COPY_FORMAT,
            "the file is empty: it has no columns (name them, as in read_csv(file, columns => 'a INTEGER, b TEXT'))",
        ));
    }
    let line_end = known.line_end.unwrap_or_else(|| sample.line_end(known.quote.unwrap_or(b'"')));
    let options = dialect::find(sample, known, line_end);
    let rows = sample.rows(&options);
    let width = width(&rows, known);
    let Evidence { null, types } = evidence(&rows, width, known);
    let mut options = CsvOptions { null, ..options };
    let first = rows.first().filter(|row| row.len() == width || known.null_padding);
    options.header = match (known.header, first) {
        (Some(header), _) => header,
        (None, None) => false,
        (None, Some(first)) => header::is_header(first, &types, &options.null, &known.names),
    };
    let names = match first.filter(|_| options.header && known.names.is_empty()) {
        Some(first) => header::names(first, width),
        None if known.names.is_empty() => (0..width).map(|at| format!("column{at}")).collect(),
        None => known.names.clone(),
    };
    let mut types = types;
    if !options.header
        && let Some(first) = first
    {
        types.iter_mut().zip(first).for_each(|(of, field)| of.add_field(field, &options.null));
    }
    let (columns, found) = columns(names, &types, known)?;
    let row_bytes = sample.row_bytes(rows.len());
    let is_certain = sample.is_all() || found.iter().all(|found| !found);
    Ok(Detected { options, columns, found, is_certain, row_bytes })
}

/// How many columns there are: the most frequent number of fields, of rows that are padded the largest.
fn width(rows: &[Vec<Field>], known: &Known) -> usize {
    if !known.names.is_empty() {
        return known.names.len();
    }
    if known.null_padding {
        return rows.iter().map(Vec::len).max().unwrap_or(1);
    }
    sample::most_frequent(rows.iter().map(Vec::len)).unwrap_or(1)
}

/// What rows say of NULL and of types, the first row left out.
struct Evidence {
    null: String,
    types: Vec<ColumnTypes>,
}

fn evidence(rows: &[Vec<Field>], width: usize, known: &Known) -> Evidence {
    let rows: Vec<&Vec<Field>> = rows.iter().skip(1).filter(|row| row.len() == width || known.null_padding).collect();
    let of = |null: &str| {
        let mut types = vec![ColumnTypes::default(); width];
        for row in &rows {
            types.iter_mut().zip(*row).for_each(|(of, field)| of.add_field(field, null));
        }
        types
    };
    if let Some(null) = &known.null {
        return Evidence { null: null.clone(), types: of(null) };
    }
    let typed = |types: &[ColumnTypes]| types.iter().filter(|of| of.is_typed()).count();
    let mut best = Evidence { null: String::new(), types: of("") };
    for null in NULL_TEXTS.iter().skip(1) {
        let occurs = rows.iter().any(|row| row.iter().any(|field| field.is_null(null)));
        if occurs {
            let types = of(null);
            if typed(&types) > typed(&best.types) {
                best = Evidence { null: (*null).to_owned(), types };
            }
        }
    }
    best
}

/// The columns called `names`, and which of their types were found.
fn columns(names: Vec<String>, types: &[ColumnTypes], known: &Known) -> Result<(Vec<Column>, Vec<bool>)> {
    if names.len() != types.len() {
        let message = format!("{} names of columns for {} columns", names.len(), types.len());
        return Err(Error::invalid(sqlstate::BAD_COPY_FORMAT, message));
    }
    if let Some((name, _)) = known.types.iter().find(|(name, _)| !names.contains(name)) {
        let message = format!("the file has no column \"{name}\": it has {}", names.join(", "));
        return Err(Error::new(mainstem_storage::ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message));
    }
    let mut found = Vec::with_capacity(names.len());
    let columns = names.into_iter().zip(types).enumerate().map(|(at, (name, of))| {
        let given = known.types.iter().find(|(known, _)| *known == name).map(|(_, given)| *given);
        found.push(given.is_none() && !known.all_text);
        let text = DataType::Text { max_chars: None };
        let data_type = given.unwrap_or_else(|| if known.all_text { text } else { of.data_type() });
        Column::new(ColumnId(at as u32), name, data_type, true)
    });
    let columns = columns.collect();
    Ok((columns, found))
}

impl Detected {
    /// The options and columns as people read them.
    pub(crate) fn description(&self) -> String {
        let CsvOptions { delimiter, quote, escape, header, null, line_end, .. } = &self.options;
        let columns: Vec<String> =
            self.columns.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect();
        format!(
            "delimiter {}, quote {}, escape {}, line end {line_end}, header {}, NULL '{null}', columns ({})",
            shown(*delimiter),
            shown(*quote),
            shown(*escape),
            if *header { "yes" } else { "no" },
            columns.join(", ")
        )
    }
}

/// A byte of the options, as people read it.
pub(crate) fn shown(byte: u8) -> String {
    match byte {
        b'\t' => "'\\t'".to_owned(),
        NO_QUOTE => "none".to_owned(),
        byte => format!("'{}'", char::from(byte)),
    }
}
