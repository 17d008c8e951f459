//! Texts of fields as values of columns: which of them, how strictly, and what becomes of rows with others.

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::compute::filter;
use mainstem_postgres::cast::assign;
use mainstem_storage::schema::Column;
use mainstem_storage::{Error, Result};

use super::TextBatch;
use super::detect::check_fits;

/// Most characters of a text that a reject shows.
const REJECT_CHARS_MAX: usize = 1_000;

/// How the texts of a file become values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion<'a> {
    /// The columns of the file.
    columns: &'a [Column],
    /// Which of them are read, in this order; none: all.
    wanted: Option<&'a [usize]>,
    /// Of each column whether its type was found in the file: then no text of another form may be cast to it. Empty: no
    /// column's was.
    found: &'a [bool],
    /// Whether rows with a text that is no value of its column are left out, and told.
    ignores: bool,
}

/// A row that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reject {
    /// Where it begins: its line, from 1, and the bytes before it.
    pub(crate) line: u64,
    pub(crate) byte: u64,
    pub(crate) column: String,
    /// What is wrong with its text.
    pub(crate) reason: String,
    /// The text of the column, or its beginning.
    pub(crate) text: String,
}

/// Arrays of the wanted columns, the lines of their rows, and the rows left out.
pub(crate) type Converted = (Vec<ArrayRef>, Vec<u64>, Vec<Reject>);

impl<'a> Conversion<'a> {
    /// All texts become values of `columns` as assignment casts them.
    pub(crate) fn of_all(columns: &'a [Column]) -> Self {
        Self { columns, wanted: None, found: &[], ignores: false }
    }

    /// Those of the columns at `wanted` alone.
    pub(crate) fn of_some(mut self, wanted: &'a [usize]) -> Self {
        self.wanted = Some(wanted);
        self
    }

    /// The types of the columns that are `found` so are taken strictly.
    pub(crate) fn strict(mut self, found: &'a [bool]) -> Self {
        self.found = found;
        self
    }

    /// Rows with texts that are no values are left out.
    pub(crate) fn ignoring(mut self, ignores: bool) -> Self {
        self.ignores = ignores;
        self
    }

    /// Whether rows with texts that are no values are left out.
    pub(super) fn ignores_rows(&self) -> bool {
        self.ignores
    }

    /// The columns that are read, with their places in the file.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (usize, &'a Column)> {
        let all = self.columns;
        let count = self.wanted.map_or(all.len(), <[usize]>::len);
        let wanted = self.wanted;
        (0..count).filter_map(move |number| {
            let at = wanted.map_or(Some(number), |wanted| wanted.get(number).copied())?;
            all.get(at).map(|column| (at, column))
        })
    }

    /// Whether no text with zeros in front is a value of column `at`: it has numbers, as far as was found.
    pub(super) fn wants_no_zeros(&self, at: usize) -> bool {
        use mainstem_storage::schema::DataType as T;
        let of = self.columns.get(at).filter(|_| self.found.get(at) == Some(&true)).map(|column| column.data_type);
        matches!(of, Some(T::Integer | T::BigInt | T::Decimal { .. } | T::Double))
    }

    /// The values of column `at`, whose texts are `text`.
    ///
    /// # Errors
    /// Those of assignment; 22P02 for another form than that of a type that was found.
    pub(super) fn column(&self, at: usize, text: &ArrayRef) -> Result<ArrayRef> {
        let Some(column) = self.columns.get(at) else { return Err(Error::internal("a column of a file is lost")) };
        if self.found.get(at) == Some(&true) {
            let texts = text.as_string_opt::<i32>().into_iter().flatten();
            check_fits(texts, column.data_type)
                .map_err(|error| error.context(format_args!("column \"{}\"", column.name)))?;
        }
        assign(text, column)
    }

    /// The rows of `batch`.
    ///
    /// # Errors
    /// As [`Conversion::column`], with the line, unless rows are left out.
    pub(crate) fn rows(&self, batch: TextBatch) -> Result<Converted> {
        match self.typed(&batch) {
            Ok(columns) => Ok((columns, batch.lines, Vec::new())),
            Err(_) if self.ignores => self.good_rows(batch),
            Err(error) => Err(error),
        }
    }

    /// The texts of `batch` as values.
    fn typed(&self, batch: &TextBatch) -> Result<Vec<ArrayRef>> {
        let one = |(at, _): (usize, &Column)| {
            let Some(text) = batch.columns.get(at) else { return Err(Error::internal("a column of a batch is lost")) };
            self.column(at, text).map_err(|error| self.at_line(&error, at, text, &batch.lines))
        };
        self.wanted().map(one).collect()
    }

    /// Names the line of the first value of column `at` that cannot be assigned.
    fn at_line(&self, error: &Error, at: usize, text: &ArrayRef, lines: &[u64]) -> Error {
        let bad = self.first_bad(at, text);
        // Said again for the one value, so that the message names that.
        let error = self.column(at, &text.slice(bad, 1.min(text.len()))).err().unwrap_or_else(|| error.clone());
        match lines.get(bad) {
            Some(line) => error.context(format_args!("line {line}")),
            None => error,
        }
    }

    /// The place of the first of `text`, of which one is no value of column `at`.
    fn first_bad(&self, at: usize, text: &ArrayRef) -> usize {
        let (mut good, mut bad) = (0, text.len());
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            if self.column(at, &text.slice(good, middle - good)).is_err() {
                bad = middle;
            } else {
                good = middle;
            }
        }
        good
    }

    /// The rows of `batch` all texts of which are values.
    fn good_rows(&self, batch: TextBatch) -> Result<Converted> {
        let TextBatch { columns, lines, starts } = batch;
        let mut is_good = vec![true; lines.len()];
        let mut rejects = Vec::new();
        for (at, column) in self.wanted() {
            let Some(text) = columns.get(at) else { return Err(Error::internal("a column of a batch is lost")) };
            let mut from = 0;
            while from < text.len() && self.column(at, &text.slice(from, text.len() - from)).is_err() {
                let bad = from + self.first_bad(at, &text.slice(from, text.len() - from));
                if let Some(good) = is_good.get_mut(bad)
                    && std::mem::take(good)
                {
                    let place = (lines.get(bad).copied(), starts.get(bad).copied());
                    rejects.push(self.reject(at, column, text, bad, place));
                }
                from = bad + 1;
            }
        }
        rejects.sort_by_key(|reject| reject.line);
        let mask = BooleanArray::from(is_good.clone());
        let columns = columns.iter().map(|column| filter(column, &mask)).collect::<std::result::Result<Vec<_>, _>>()?;
        let good = |places: Vec<u64>| -> Vec<u64> {
            places.into_iter().zip(&is_good).filter(|(_, good)| **good).map(|(place, _)| place).collect()
        };
        let rest = TextBatch { columns, lines: good(lines), starts: good(starts) };
        Ok((self.typed(&rest)?, rest.lines, rejects))
    }

    fn reject(
        &self,
        at: usize,
        column: &Column,
        text: &ArrayRef,
        row: usize,
        (line, byte): (Option<u64>, Option<u64>),
    ) -> Reject {
        let one = text.slice(row, 1);
        let shown = one.as_string_opt::<i32>().and_then(|texts| texts.iter().next().flatten()).unwrap_or_default();
        Reject {
            line: line.unwrap_or_default(),
            byte: byte.unwrap_or_default(),
            column: column.name.clone(),
            reason: self.column(at, &one).err().map(|error| error.to_string()).unwrap_or_default(),
            text: shown.chars().take(REJECT_CHARS_MAX).collect(),
        }
    }
}
