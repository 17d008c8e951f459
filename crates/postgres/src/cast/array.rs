//! The text of arrays and rows, as PostgreSQL writes them: `{1,NULL,"a b"}`, `(1,,"a b")`.
//!
//! 1. What is inside becomes text as it does by itself, arrays and rows in them first; truth values are `t` and `f`
//!    there.
//! 2. Of an array, the word NULL stands for NULL; texts that would be read as something else stand in quotes, in which
//!    a backslash stands before a quote and a backslash. Arrays in arrays are its dimensions, and stand as they are;
//!    one of empty arrays is empty.
//! 3. Of a row, nothing stands for NULL, and in quotes a quote and a backslash are written twice.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringViewArray, StringViewBuilder};
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use mainstem_storage::schema::DataType;
use mainstem_storage::{Error, Result};

use super::{convert, plain};
use crate::error::from_arrow;

/// Whether `data_type` is that of arrays or rows.
pub fn is_composed(data_type: &ArrowType) -> bool {
    is_list(data_type) || matches!(data_type, ArrowType::Struct(_))
}

fn is_list(data_type: &ArrowType) -> bool {
    matches!(data_type, ArrowType::List(_) | ArrowType::LargeList(_) | ArrowType::FixedSizeList(..))
}

/// The text of each value of `array`, which are arrays or rows.
///
/// # Errors
/// Those of what is inside; Internal for other types.
pub fn composed_text(array: &ArrayRef) -> Result<StringViewArray> {
    match array.data_type() {
        ArrowType::Struct(_) => rows(array),
        ArrowType::List(_) => lists(array),
        ArrowType::LargeList(item) | ArrowType::FixedSizeList(item, _) => {
            lists(&plain(array, &ArrowType::List(item.clone()))?)
        }
        other => Err(Error::internal(format!("arrays of type {other}"))),
    }
}

/// `batch` with its arrays and rows as text, the way PostgreSQL writes them.
///
/// # Errors
/// Those of values that have no text.
pub fn with_composed_as_text(batch: RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    if !schema.fields().iter().any(|field| is_composed(field.data_type())) {
        return Ok(batch);
    }
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if is_composed(field.data_type()) {
            columns.push(Arc::new(composed_text(column)?));
            fields.push(Arc::new(Field::new(field.name(), ArrowType::Utf8View, field.is_nullable())));
        } else {
            columns.push(column.clone());
            fields.push(field.clone());
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(|e| from_arrow(&e))
}

/// The texts of what stands inside arrays and rows, and in files of COPY, without quotes.
///
/// # Errors
/// Those of values that have no text.
pub fn inside(values: &ArrayRef) -> Result<StringViewArray> {
    if let Some(flags) = values.as_boolean_opt() {
        return Ok(flags.iter().map(|flag| flag.map(|flag| if flag { "t" } else { "f" })).collect());
    }
    Ok(convert(values, DataType::Text { max_chars: None })?.as_string_view().clone())
}

fn lists(array: &ArrayRef) -> Result<StringViewArray> {
    let lists = array.as_list::<i32>();
    let texts = inside(lists.values())?;
    let has_dimensions = is_list(lists.values().data_type());
    let mut out = StringViewBuilder::with_capacity(lists.len());
    let mut text = String::new();
    for (row, bounds) in lists.value_offsets().windows(2).enumerate() {
        let &[start, end] = bounds else { continue };
        if lists.is_null(row) {
            out.append_null();
            continue;
        }
        text.clear();
        let items = || (start..end).filter_map(|at| usize::try_from(at).ok());
        if has_dimensions && items().all(|at| texts.is_valid(at) && texts.value(at) == "{}") {
            out.append_value("{}");
            continue;
        }
        text.push('{');
        for (position, at) in items().enumerate() {
            if position > 0 {
                text.push(',');
            }
            match texts.is_valid(at).then(|| texts.value(at)) {
                None => text.push_str("NULL"),
                Some(item) if has_dimensions => text.push_str(item),
                Some(item) => push_item(&mut text, item),
            }
        }
        text.push('}');
        out.append_value(&text);
    }
    Ok(out.finish())
}

fn rows(array: &ArrayRef) -> Result<StringViewArray> {
    let rows = array.as_struct();
    let columns = rows.columns().iter().map(inside).collect::<Result<Vec<_>>>()?;
    let mut out = StringViewBuilder::with_capacity(rows.len());
    let mut text = String::new();
    for row in 0..rows.len() {
        if rows.is_null(row) {
            out.append_null();
            continue;
        }
        text.clear();
        text.push('(');
        for (position, column) in columns.iter().enumerate() {
            if position > 0 {
                text.push(',');
            }
            if column.is_valid(row) {
                push_field(&mut text, column.value(row));
            }
        }
        text.push(')');
        out.append_value(&text);
    }
    Ok(out.finish())
}

/// Whether SQL's arrays and rows pass over `c` outside quotes.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

fn push_item(text: &mut String, item: &str) {
    let special = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || is_blank(c);
    if !item.is_empty() && !item.eq_ignore_ascii_case("null") && !item.contains(special) {
        text.push_str(item);
        return;
    }
    text.push('"');
    for c in item.chars() {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
}

fn push_field(text: &mut String, field: &str) {
    let special = |c: char| matches!(c, '(' | ')' | ',' | '"' | '\\') || is_blank(c);
    if !field.is_empty() && !field.contains(special) {
        text.push_str(field);
        return;
    }
    text.push('"');
    for c in field.chars() {
        if matches!(c, '"' | '\\') {
            text.push(c);
        }
        text.push(c);
    }
    text.push('"');
}
