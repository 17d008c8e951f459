//! What COPY FROM does beside reading and inserting: it finds a file's options, and leaves rows out.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{filter_record_batch, prep_null_mask_filter};
use arrow::datatypes::DataType as ArrowType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{Expr, Statement as Ast};
use mainstem_postgres::types::sql_words;
use mainstem_storage::error::sqlstate;
use mainstem_storage::schema::TableSchema;
use mainstem_storage::transaction::Transaction;
use mainstem_storage::{Error, Result};

use super::row_wise::check_projection;
use crate::csv::detect::{Sample, detect};
use crate::error::from_datafusion;
use crate::exec::{Environment, Notice};
use crate::provider::{expanded, is_compressed};
use crate::sql::{CopyFormat, CopyOptions, CopyPlace, CsvOptions, LineEnd, ReadOptions, has_query, select_of};

/// What was found out about a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The columns of the table that its header names.
    pub(super) columns: Option<Vec<String>>,
    pub(super) notices: Vec<Notice>,
}

/// The format of what is read for `columns` of `table`: with the options that the file tells.
///
/// # Errors
/// Io; 22P04 for a file without columns, and for a header with other columns than those of the table.
pub(super) fn formed(
    table: &TableSchema,
    columns: &[String],
    options: &CopyOptions,
    read: &ReadOptions,
) -> Result<(Found, CopyFormat)> {
    let (CopyPlace::File(path), CopyFormat::Csv(csv)) = (&options.place, &options.format) else {
        return Ok((Found::default(), options.format.clone()));
    };
    let metadata = std::fs::metadata(path).map_err(|e| Error::io("open", format_args!("\"{path}\""), e))?;
    if metadata.is_dir() {
        return Err(Error::invalid(sqlstate::WRONG_OBJECT_TYPE, format!("\"{path}\" is a directory")));
    }
    // A pipe has one reading, which is not this one.
    if !metadata.is_file() {
        return match read.hints {
            Some(_) => Err(Error::unsupported("COPY ... AUTO_DETECT of what is no regular file")),
            None => Ok((Found::default(), options.format.clone())),
        };
    }
    let file = File::open(path).map_err(|e| Error::io("open", format_args!("\"{path}\""), e))?;
    let Some(hints) = &read.hints else {
        // How the lines of a stream end, whoever reads it finds out.
        if is_compressed(path) {
            return Ok((Found::default(), options.format.clone()));
        }
        let line_end = match Sample::first_of_file(&file)?.line_end(csv.quote) {
            LineEnd::CarriageReturn => LineEnd::CarriageReturn,
            _ => LineEnd::LineFeed,
        };
        return Ok((Found::default(), CopyFormat::Csv(CsvOptions { line_end, ..csv.clone() })));
    };
    let sample = match is_compressed(path) {
        true => expanded(path, Box::new(file)).and_then(|mut stream| Sample::of_stream(&mut *stream)),
        false => Sample::of_file(&file, metadata.len()),
    };
    let found = sample.and_then(|sample| detect(&sample, hints));
    let found = found.map_err(|error| error.context(format_args!("\"{path}\"")))?;
    let notices = vec![Notice::new("00000", format!("\"{path}\": {}", found.description()))];
    let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
    let columns = if found.options.header && columns.is_empty() { Some(of_table(table, &names)?) } else { None };
    Ok((Found { columns, notices }, CopyFormat::Csv(CsvOptions { matches: false, ..found.options })))
}

/// The columns of `table` that a header names.
fn of_table(table: &TableSchema, names: &[&str]) -> Result<Vec<String>> {
    let one = |name: &&str| {
        let mut alike = table.columns.iter().filter(|column| column.name.eq_ignore_ascii_case(name));
        let column = match (table.column_named(name), alike.next(), alike.next()) {
            (Some(column), ..) | (None, Some(column), None) => Some(column.name.clone()),
            _ => None,
        };
        column.ok_or_else(|| {
            let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
            let message = format!(
                "line 1: the header names a column \"{name}\", which table \"{}\" has not: it has {}",
                table.name,
                columns.join(", ")
            );
            Error::invalid(sqlstate::BAD_COPY_FORMAT, message)
        })
    };
    names.iter().map(one).collect()
}

/// The condition of a COPY.
#[derive(Debug)]
pub(super) struct Condition(Arc<dyn PhysicalExpr>);

impl Condition {
    /// `condition` over rows of `table`.
    ///
    /// # Errors
    /// What is wrong with it; 42804 if it is no truth value, 0A000 and others for what a condition on a row cannot
    /// have.
    pub(super) fn compile(
        env: &mut Environment<'_>,
        transaction: &Transaction,
        table: &Arc<TableSchema>,
        condition: Option<&Expr>,
    ) -> Result<Option<Self>> {
        let Some(condition) = condition else { return Ok(None) };
        if has_query(condition) {
            return Err(Error::unsupported("a subquery in COPY FROM ... WHERE"));
        }
        let query = select_of(vec![condition.clone()], Some(&**table))?;
        let plan = env.plan(transaction, Ast::Query(Box::new(query)), None)?;
        check_projection(&plan, "COPY FROM WHERE conditions")?;
        let of = plan.schema().field(0).data_type().clone();
        if !matches!(of, ArrowType::Boolean | ArrowType::Null) {
            let message = format!(
                "argument of COPY FROM WHERE must be type boolean, not type {}",
                sql_words(&of.to_string()).to_lowercase()
            );
            return Err(Error::invalid(sqlstate::TYPE_MISMATCH, message));
        }
        let expression = env.expressions(plan)?.into_iter().next();
        expression.map(|expression| Some(Self(expression))).ok_or_else(|| Error::internal("a condition is lost"))
    }

    /// The rows of `rows` for which it is true, and their places, if there are others.
    ///
    /// # Errors
    /// Those of evaluation.
    pub(super) fn fulfilled(&self, rows: &RecordBatch) -> Result<(RecordBatch, Option<Vec<usize>>)> {
        let value = self.0.evaluate(rows).and_then(|value| value.into_array(rows.num_rows()));
        let value = value.map_err(|e| from_datafusion(&e))?;
        let Some(value) = value.as_boolean_opt() else { return Ok((rows.slice(0, 0), Some(Vec::new()))) };
        let is_true = if value.null_count() > 0 { prep_null_mask_filter(value) } else { value.clone() };
        let places = is_true.values().set_indices().collect();
        Ok((filter_record_batch(rows, &is_true)?, Some(places)))
    }
}
