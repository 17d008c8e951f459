//! PARTITION_BY: which folder a row belongs to, as Hive names them: `year=2024/month=2`.
//!
//! The columns that rows are partitioned by are in the names of the folders, and in no file. What has a meaning in a
//! path stands as `%` and two hexadecimal digits; NULL is `__HIVE_DEFAULT_PARTITION__`.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StringViewArray};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, SortExpr};
use mainstem_postgres::cast::inside;
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, ErrorKind, Result};

use crate::error::from_datafusion;

/// The folder of rows that have NULL.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// How rows are partitioned.
pub(super) struct Partitions {
    /// Positions and names of the columns that are in the names of folders.
    by: Vec<(usize, String)>,
    /// Positions of all others.
    kept: Vec<usize>,
    /// The last one, and the values that make it.
    last: Option<(Arc<str>, Vec<Option<String>>)>,
}

impl Partitions {
    /// Partitions by the columns of `schema` that are called `names`.
    ///
    /// # Errors
    /// 42703, 42702, 22023.
    pub(super) fn new(schema: &Schema, names: &[String]) -> Result<Self> {
        let mut by = Vec::with_capacity(names.len());
        for name in names {
            let mut found = (0..schema.fields().len()).filter(|at| schema.field(*at).name() == name);
            let at = found.next().ok_or_else(|| {
                let message = format!("PARTITION_BY: there is no column \"{name}\" in what is copied");
                Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message)
            })?;
            if found.next().is_some() {
                let message = format!("PARTITION_BY: column \"{name}\" is there twice");
                return Err(Error::invalid("42702", message));
            }
            by.push((at, name.clone()));
        }
        let kept: Vec<usize> = (0..schema.fields().len()).filter(|at| by.iter().all(|(by, _)| by != at)).collect();
        if kept.is_empty() {
            let message = "PARTITION_BY names all columns: there is nothing left for the files";
            return Err(Error::invalid(sqlstate::INVALID_PARAMETER, message));
        }
        Ok(Self { by, kept, last: None })
    }

    /// `plan` with its rows in the order of partitions, those of one in their order as far as they have one.
    pub(super) fn in_order(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let column = |(at, _): &(usize, String)| {
            let (relation, field) = plan.schema().qualified_field(*at);
            let column = datafusion::common::Column::new(relation.cloned(), field.name());
            SortExpr::new(Expr::Column(column), true, false)
        };
        let mut order: Vec<SortExpr> = self.by.iter().map(column).collect();
        let input = match plan {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                order.extend(sort.expr);
                Arc::unwrap_or_clone(sort.input)
            }
            other => other,
        };
        LogicalPlanBuilder::from(input).sort(order).and_then(LogicalPlanBuilder::build).map_err(|e| from_datafusion(&e))
    }

    /// The columns of the files.
    pub(super) fn file_schema(&self, schema: &SchemaRef) -> Result<SchemaRef> {
        Ok(Arc::new(schema.project(&self.kept)?))
    }

    /// The rows of `batch`, by partition, in their order.
    pub(super) fn split(&mut self, batch: &RecordBatch) -> Result<Vec<(Option<Arc<str>>, RecordBatch)>> {
        let values: Vec<StringViewArray> =
            self.by.iter().filter_map(|(at, _)| batch.columns().get(*at)).map(inside).collect::<Result<_>>()?;
        let rows = batch.project(&self.kept)?;
        let mut parts = Vec::new();
        let mut from = 0;
        while from < batch.num_rows() {
            let of = |row: usize| values.iter().map(move |values| values.is_valid(row).then(|| values.value(row)));
            let to = (from + 1..batch.num_rows()).find(|row| !of(*row).eq(of(from))).unwrap_or(batch.num_rows());
            let folder = self.folder(of(from));
            parts.push((Some(folder), rows.slice(from, to - from)));
            from = to;
        }
        Ok(parts)
    }

    /// The folder of rows with these values.
    fn folder<'v>(&mut self, values: impl Iterator<Item = Option<&'v str>> + Clone) -> Arc<str> {
        let is_last = |last: &[Option<String>]| {
            let mut last = last.iter();
            values.clone().all(|value| last.next().is_some_and(|last| last.as_deref() == value))
        };
        if let Some((folder, _)) = self.last.as_ref().filter(|(_, last)| is_last(last)) {
            return folder.clone();
        }
        let mut path = String::new();
        for ((_, name), value) in self.by.iter().zip(values.clone()) {
            if !path.is_empty() {
                path.push('/');
            }
            push_name(&mut path, name);
            path.push('=');
            match value {
                None => path.push_str(NULL),
                // What looks like NULL is spelled otherwise.
                Some(NULL) => write_byte(&mut path, b'_', NULL.get(1..).unwrap_or_default()),
                Some(text) => push_name(&mut path, text),
            }
        }
        let folder: Arc<str> = path.into();
        self.last = Some((folder.clone(), values.map(|value| value.map(str::to_owned)).collect()));
        folder
    }
}

fn write_byte(path: &mut String, byte: u8, rest: &str) {
    // A String takes everything.
    let _ = write!(path, "%{byte:02X}{rest}");
}

/// Appends `text` with what is no letter, digit, `_`, `-` or `.` of ASCII by its bytes.
fn push_name(path: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"_-.".contains(&byte) {
            path.push(char::from(byte));
        } else {
            write_byte(path, byte, "");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use arrow::array::{ArrayRef, Int32Array, StringArray};

    use super::*;

    #[test]
    fn folders_are_told_apart() {
        let texts = [Some("a/b"), Some("a/b"), None, Some(NULL), Some(""), Some("."), Some("ü =%")];
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("rest", Arc::new(Int32Array::from_iter_values(0..7))),
            ("a b", Arc::new(StringArray::from(texts.to_vec()))),
            ("n", Arc::new(Int32Array::from(vec![1, 1, 1, 1, 1, -2, 3]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut partitions = Partitions::new(&batch.schema(), &["a b".to_owned(), "n".to_owned()]).unwrap();
        let parts = partitions.split(&batch).unwrap();
        let found: Vec<(&str, usize)> =
            parts.iter().map(|(folder, part)| (folder.as_deref().unwrap(), part.num_rows())).collect();
        assert_eq!(
            found,
            [
                ("a%20b=a%2Fb/n=1", 2),
                ("a%20b=__HIVE_DEFAULT_PARTITION__/n=1", 1),
                ("a%20b=%5F_HIVE_DEFAULT_PARTITION__/n=1", 1),
                ("a%20b=/n=1", 1),
                ("a%20b=./n=-2", 1),
                ("a%20b=%C3%BC%20%3D%25/n=3", 1)
            ]
        );
        assert!(parts.iter().all(|(_, part)| part.num_columns() == 1));
        for (names, state) in [(&["x"][..], "42703"), (&["rest", "a b", "n"], "22023")] {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            assert_eq!(Partitions::new(&batch.schema(), &names).err().unwrap().sqlstate(), state);
        }
    }
}
