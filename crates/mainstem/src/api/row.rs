//! Rows of a result, one by one.

use std::sync::Arc;

use mainstem_storage::error::sqlstate;
use mainstem_storage::row::Value;
use mainstem_storage::{Error, ErrorKind, Result};

use super::QueryResult;
use crate::names::{did_you_mean, similar};
use crate::value::{BatchRows, FromValue, ResultColumn, ValueRef};

/// One row of a result: values, and the columns they belong to.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// let row = connection.query_row("SELECT 'Ulm' AS name, CAST(NULL AS INTEGER) AS people", ())?;
/// assert_eq!(row.get::<&str>("name")?, "Ulm");
/// assert_eq!(row.get::<Option<i32>>(1)?, None);
/// assert_eq!(row.get::<i32>(1).unwrap_err().sqlstate(), "22004");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Row {
    columns: Arc<[ResultColumn]>,
    values: Vec<Value>,
}

impl Row {
    pub(crate) fn new(columns: Arc<[ResultColumn]>, values: Vec<Value>) -> Self {
        Self { columns, values }
    }

    /// The value of a column, by its position from 0 or its name (the first one of that name).
    ///
    /// # Errors
    /// 42703 when there is no such column; those of [`FromValue`], which name the column.
    pub fn get<'r, T: FromValue<'r>>(&'r self, column: impl ColumnIndex) -> Result<T> {
        let at = column.position(&self.columns)?;
        T::from_value(self.value_at(at)).map_err(|e| {
            let name = self.columns.get(at).map_or("?", ResultColumn::name);
            e.context(format_args!("column \"{name}\""))
        })
    }

    fn value_at(&self, at: usize) -> ValueRef<'_> {
        match (self.values.get(at), self.columns.get(at)) {
            (Some(value), Some(column)) => column.value_of(value),
            _ => ValueRef::Null,
        }
    }

    /// The row as an object of JSON: the names of the columns and their values, each as `serde_json::Value` is read.
    /// Columns of one name, which would be one key, are distinguished by their positions, as in the shell: `id`,
    /// `id_3`.
    ///
    /// ```
    /// # fn main() -> mainstem::Result<()> {
    /// let connection = mainstem::Database::in_memory()?.connect()?;
    /// let row = connection.query_row("SELECT 'Ulm' AS name, 128928 AS people, NULL AS mayor", ())?;
    /// assert_eq!(row.to_json_object(), serde_json::json!({ "name": "Ulm", "people": 128_928, "mayor": null }));
    /// assert_eq!(row.to_json_array(), serde_json::json!(["Ulm", 128_928, null]));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "serde_json")]
    #[must_use]
    pub fn to_json_object(&self) -> serde_json::Value {
        let mut object = serde_json::Map::new();
        for (at, column) in self.columns.iter().enumerate() {
            let is_taken = |name: &str| self.columns.iter().any(|other| other.name() == name);
            let mut name = column.name().to_owned();
            if object.contains_key(&name) {
                name = format!("{name}_{}", at + 1);
                while object.contains_key(&name) || is_taken(&name) {
                    name.push('_');
                }
            }
            object.insert(name, self.value_at(at).into());
        }
        serde_json::Value::Object(object)
    }

    /// The row as an array of JSON: the values in the order of the columns.
    #[cfg(feature = "serde_json")]
    #[must_use]
    pub fn to_json_array(&self) -> serde_json::Value {
        (0..self.columns.len()).map(|at| serde_json::Value::from(self.value_at(at))).collect()
    }

    /// Name and type of each column.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// The values in storage form, in the order of the columns.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The values in storage form, without the row.
    #[must_use]
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }
}

/// What names a column of a row: its position from 0, or its name.
pub trait ColumnIndex: sealed::Sealed {
    /// Its position among `columns`.
    ///
    /// # Errors
    /// 42703.
    fn position(&self, columns: &[ResultColumn]) -> Result<usize>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl Sealed for &str {}
    impl Sealed for &String {}
}

impl ColumnIndex for usize {
    fn position(&self, columns: &[ResultColumn]) -> Result<usize> {
        if *self < columns.len() {
            return Ok(*self);
        }
        Err(no_column(format!("there is no column {self}; the row has {}, counted from 0", columns.len())))
    }
}

impl ColumnIndex for &str {
    fn position(&self, columns: &[ResultColumn]) -> Result<usize> {
        columns.iter().position(|column| column.name() == *self).ok_or_else(|| {
            let names: Vec<&str> = columns.iter().map(ResultColumn::name).collect();
            let near = similar(self, names.iter().copied());
            let hint =
                if near.is_empty() { format!("; the row has {}", names.join(", ")) } else { did_you_mean(&near) };
            no_column(format!("there is no column \"{self}\"{hint}"))
        })
    }
}

impl ColumnIndex for &String {
    fn position(&self, columns: &[ResultColumn]) -> Result<usize> {
        self.as_str().position(columns)
    }
}

fn no_column(message: String) -> Error {
    Error::new(ErrorKind::NotFound, sqlstate::UNDEFINED_COLUMN, message)
}

/// Rows of a query, one by one; the query runs while they are read. Dropping it ends the query.
///
/// ```
/// # fn main() -> mainstem::Result<()> {
/// let connection = mainstem::Database::in_memory()?.connect()?;
/// let mut sum = 0;
/// for row in connection.query("SELECT n FROM generate_series(1, 4) n")?.rows() {
///     sum += row?.get::<i64>(0)?;
/// }
/// assert_eq!(sum, 10);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Rows {
    columns: Arc<[ResultColumn]>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A running query, and what is left of its last batch.
    Running(Box<QueryResult>, Option<BatchRows>),
    /// The one row there may be, without a batch.
    Found(Option<Vec<Value>>),
    /// Those of a statement that ran without a plan.
    Values(std::vec::IntoIter<Vec<Value>>),
}

impl QueryResult {
    /// The rows one by one, as values.
    #[must_use]
    pub fn rows(self) -> Rows {
        Rows::new(self)
    }
}

impl Rows {
    fn new(result: QueryResult) -> Self {
        match result.into_values() {
            Ok((columns, rows)) => Self::of_values(columns, rows),
            Err(result) => {
                Self { columns: ResultColumn::of(&result.schema()), source: Source::Running(Box::new(result), None) }
            }
        }
    }

    /// The row of a short statement.
    pub(super) fn found(columns: Arc<[ResultColumn]>, row: Option<Vec<Value>>) -> Self {
        Self { columns, source: Source::Found(row) }
    }

    /// The rows of a short statement.
    pub(super) fn of_values(columns: Arc<[ResultColumn]>, rows: Vec<Vec<Value>>) -> Self {
        Self { columns, source: Source::Values(rows.into_iter()) }
    }

    /// Name and type of each column; known before the first row is.
    #[must_use]
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// The only row, if there is one.
    pub(super) fn at_most_one(mut self) -> Result<Option<Row>> {
        let first = self.next().transpose()?;
        if first.is_some() && self.next().transpose()?.is_some() {
            return Err(Error::invalid(sqlstate::ROW_TWICE, "the query gave more than one row"));
        }
        Ok(first)
    }

    /// The only row.
    pub(super) fn exactly_one(self) -> Result<Row> {
        self.at_most_one()?.ok_or_else(|| Error::new(ErrorKind::NotFound, "02000", "the query gave no row"))
    }
}

impl Iterator for Rows {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let (result, rest) = match &mut self.source {
            Source::Found(row) => return row.take().map(|values| Ok(Row::new(self.columns.clone(), values))),
            Source::Values(rows) => return rows.next().map(|values| Ok(Row::new(self.columns.clone(), values))),
            Source::Running(result, rest) => (result, rest),
        };
        loop {
            if let Some(values) = rest.as_mut().and_then(BatchRows::next) {
                return Some(values.map(|values| Row::new(self.columns.clone(), values)));
            }
            *rest = match result.next()?.and_then(|batch| BatchRows::new(&batch, &self.columns)) {
                Ok(batch) => Some(batch),
                Err(e) => return Some(Err(e)),
            };
        }
    }
}
