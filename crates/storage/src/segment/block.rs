//! One column of one segment, open in memory: its NULLs and its encoded values.
//!
//! Comes in: the bytes of a block, checksum already verified, with what the metadata says of it. Goes out: Arrow
//! arrays, selection bitmaps, single values.
//!
//! Invariants: opening proves that every row can be read; a block is immutable afterwards and shared by all readers.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use mainstem_kernels::bitmap;

use super::encoding::{Damage, EncodedValues, Encoding, EntrySelection, Form, Sections};
use crate::error::{Error, Result};
use crate::predicate::{Predicate, compare_values};
use crate::row::Value;
use crate::schema::DataType;

/// Which rows are NULL.
#[derive(Debug)]
enum Nulls {
    None,
    All,
    /// Those whose bit is 0.
    Some(NullBuffer),
}

/// An open column.
#[derive(Debug)]
pub(crate) struct ColumnBlock {
    data_type: DataType,
    rows: usize,
    nulls: Nulls,
    values: EncodedValues,
    /// Its values are [`Value::Int`].
    is_whole: bool,
    memory: usize,
}

impl ColumnBlock {
    /// Opens `body`, the block's bytes without its checksum.
    pub fn open(
        data_type: DataType,
        rows: u32,
        null_count: u32,
        encoding: &Encoding,
        body: Buffer,
    ) -> Result<Self, Damage> {
        let rows = rows as usize;
        let body_bytes = body.len();
        let mut sections = Sections::new(body);
        let nulls = match null_count as usize {
            0 => Nulls::None,
            n if n == rows => Nulls::All,
            n if n > rows => return Err(Damage::new(0, "more NULLs than rows")),
            n => {
                let bits = sections.take(bitmap::words(rows) * 8)?;
                let words = bits.typed_data::<u64>();
                if bitmap::count_ones(words) != rows - n || bitmap::count_range(words, 0..rows) != rows - n {
                    return Err(Damage::new(0, "the NULL bitmap disagrees with the count of NULLs"));
                }
                // Bytes that are of no use any more are not kept for them.
                let bits = if encoding.is_read_in_place() { bits } else { Buffer::from(bits.as_slice()) };
                Nulls::Some(NullBuffer::new(BooleanBuffer::new(bits, 0, rows)))
            }
        };
        let no_value = matches!(encoding, Encoding::Constant { value: Value::Null });
        if no_value != matches!(nulls, Nulls::All) {
            return Err(Damage::new(0, "a constant NULL beside values, or the other way round"));
        }
        let some = if let Nulls::Some(nulls) = &nulls { Some(nulls) } else { None };
        let values = EncodedValues::open(data_type, encoding, sections, rows, some)?;
        let kept_bytes = match &nulls {
            _ if encoding.is_read_in_place() => body_bytes,
            Nulls::Some(nulls) => nulls.buffer().len(),
            Nulls::None | Nulls::All => 0,
        };
        let memory = size_of::<Self>() + kept_bytes + values.memory(encoding);
        Ok(Self { data_type, rows, nulls, values, is_whole: data_type.is_whole(), memory })
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of memory it takes.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// Distinct values, where the encoding knows them.
    pub fn distinct(&self) -> Option<usize> {
        self.values.distinct()
    }

    fn check(&self, rows: &Range<usize>) -> Result<()> {
        if rows.start <= rows.end && rows.end <= self.rows {
            return Ok(());
        }
        Err(Error::internal(format!("rows {rows:?} of a block of {}", self.rows)))
    }

    /// Rows `rows` as an Arrow array in `form`.
    pub fn read(&self, form: Form, rows: Range<usize>) -> Result<ArrayRef> {
        let nulls = self.nulls_of(&rows)?;
        self.values.read((self.data_type, form), rows, nulls)
    }

    /// Those of `rows` that `selection` has, `count` of them; `None` where it is no better to read all and filter them.
    pub fn read_selected(
        &self,
        form: Form,
        rows: Range<usize>,
        selection: &[u64],
        count: usize,
    ) -> Result<Option<ArrayRef>> {
        self.check(&rows)?;
        match &self.nulls {
            Nulls::None => self.values.read_selected((self.data_type, form), rows, selection, count),
            Nulls::Some(_) | Nulls::All => Ok(None),
        }
    }

    fn nulls_of(&self, rows: &Range<usize>) -> Result<Option<NullBuffer>> {
        self.check(rows)?;
        Ok(match &self.nulls {
            // The constant NULL knows by itself.
            Nulls::None | Nulls::All => None,
            Nulls::Some(nulls) => Some(nulls.slice(rows.start, rows.len())).filter(|n| n.null_count() > 0),
        })
    }

    /// The rows at `offsets`, in their order, as an Arrow array in `form`.
    pub fn gather(&self, form: Form, offsets: &[u32]) -> Result<ArrayRef> {
        let nulls = self.nulls_at(offsets)?;
        self.values.gather((self.data_type, form), offsets, nulls)
    }

    fn nulls_at(&self, offsets: &[u32]) -> Result<Option<NullBuffer>> {
        if let Some(outside) = offsets.iter().find(|o| **o as usize >= self.rows) {
            return Err(Error::internal(format!("row {outside} of a block of {}", self.rows)));
        }
        Ok(match &self.nulls {
            Nulls::None | Nulls::All => None,
            Nulls::Some(nulls) => {
                let valid = BooleanBuffer::collect_bool(offsets.len(), |i| nulls.is_valid(offsets[i] as usize));
                Some(NullBuffer::new(valid)).filter(|n| n.null_count() > 0)
            }
        })
    }

    /// Row `row`, if it is a [`Value::Int`] that takes no more than a look: what most values of most rows are.
    #[inline]
    pub fn whole(&self, row: usize) -> Option<i64> {
        let is_there = row < self.rows
            && match &self.nulls {
                Nulls::None => true,
                Nulls::Some(nulls) => nulls.is_valid(row),
                Nulls::All => false,
            };
        if self.is_whole && is_there { self.values.whole(row) } else { None }
    }

    /// Row `row`.
    pub fn value(&self, row: usize) -> Result<Value> {
        self.check(&(row..row + 1))?;
        match &self.nulls {
            Nulls::All => Ok(Value::Null),
            Nulls::Some(nulls) if nulls.is_null(row) => Ok(Value::Null),
            _ => self.values.value(self.data_type, row),
        }
    }

    /// Of the ascending rows `rows`: where those equal to `value` begin and end. O(log rows). For columns without
    /// NULLs.
    pub fn equal_range(&self, value: &Value, rows: Range<usize>) -> Result<Range<usize>> {
        self.check(&rows)?;
        if !matches!(self.nulls, Nulls::None) {
            return Err(Error::internal("a search among NULLs"));
        }
        let (first, end) = self.values.equal_range(value, rows)?;
        Ok(first..end)
    }

    /// The rows of `rows` that `predicate` is true for: bit `i` of the answer is row `rows.start + i`.
    pub fn select(&self, predicate: &Predicate, rows: Range<usize>) -> Result<Vec<u64>> {
        self.check(&rows)?;
        let mut selection = match predicate {
            Predicate::IsNull { .. } => {
                let mut valid = self.valid(&rows);
                bitmap::not_in_place(&mut valid, rows.len());
                return Ok(valid);
            }
            Predicate::IsNotNull { .. } => return Ok(self.valid(&rows)),
            _ => match self.same_type(predicate) {
                Comparable::Same => self.values.select(self.data_type, predicate, rows.clone())?,
                Comparable::Filtered(predicate) => self.values.select(self.data_type, &predicate, rows.clone())?,
                Comparable::Known(true) => bitmap::full(rows.len()),
                Comparable::Known(false) => vec![0; bitmap::words(rows.len())],
            },
        };
        if !matches!(self.nulls, Nulls::None) {
            bitmap::and_in_place(&mut selection, &self.valid(&rows));
        }
        Ok(selection)
    }

    /// Of those of `rows` that `selection` has: how many values are not NULL, and their sum, if it is asked for. Bit
    /// `i` is row `rows.start + i`.
    ///
    /// # Errors
    /// Internal when values are no integers of few digits ([`DataType::has_small_sums`]).
    pub fn sum(&self, rows: Range<usize>, selection: &[u64], with_sum: bool) -> Result<(u64, i128)> {
        self.check(&rows)?;
        let of_valid = match &self.nulls {
            Nulls::All => return Ok((0, 0)),
            Nulls::None => None,
            Nulls::Some(_) => {
                let mut valid = self.valid(&rows);
                bitmap::and_in_place(&mut valid, selection);
                Some(valid)
            }
        };
        let selection = of_valid.as_deref().unwrap_or(selection);
        let count = bitmap::count_ones(selection);
        if !with_sum || count == 0 {
            return Ok((count as u64, 0));
        }
        let sum = self.data_type.has_small_sums().then(|| self.values.sum(rows, selection, count)).flatten();
        let sum = sum.ok_or_else(|| Error::internal(format!("the sum of a column of {:?}", self.data_type)))?;
        Ok((count as u64, sum))
    }

    /// The distinct values that rows are codes of, if there are at most `max` of them, and a NULL behind them.
    pub fn entries(&self, max: usize) -> Result<Option<ArrayRef>> {
        self.values.entries(self.data_type, max)
    }

    /// The rows of `rows` whose entry is in `entries`: bit `i` of the answer is row `rows.start + i`.
    pub fn select_entries(&self, entries: &EntrySelection, rows: Range<usize>) -> Result<Vec<u64>> {
        self.check(&rows)?;
        let mut selection = self.values.select_entries(entries, rows.clone());
        if !matches!(self.nulls, Nulls::None) {
            let mut valid = self.valid(&rows);
            bitmap::and_in_place(&mut selection, &valid);
            if entries.has_null() {
                bitmap::not_in_place(&mut valid, rows.len());
                bitmap::or_in_place(&mut selection, &valid);
            }
        }
        Ok(selection)
    }

    /// The rows of `rows` that are not NULL.
    fn valid(&self, rows: &Range<usize>) -> Vec<u64> {
        match &self.nulls {
            Nulls::None => bitmap::full(rows.len()),
            Nulls::All => vec![0; bitmap::words(rows.len())],
            Nulls::Some(nulls) => bitmap::copy_range(nulls.buffer().typed_data::<u64>(), rows.clone()),
        }
    }

    /// Whether the encodings, which compare values of one type, can answer `predicate`.
    fn same_type(&self, predicate: &Predicate) -> Comparable {
        let sample = sample(self.data_type);
        let same = |value: &Value| std::mem::discriminant(value) == std::mem::discriminant(&sample);
        match predicate {
            Predicate::Compare { op, value, .. } if !value.is_null() && !same(value) => {
                Comparable::Known(op.holds(compare_values(&sample, value)))
            }
            Predicate::In { column, values } if !values.iter().all(same) => Comparable::Filtered(Predicate::In {
                column: *column,
                values: values.iter().filter(|v| same(v)).cloned().collect(),
            }),
            _ => Comparable::Same,
        }
    }
}

/// A predicate, as far as its constants are of the column's type.
enum Comparable {
    /// They all are.
    Same,
    /// Those that are.
    Filtered(Predicate),
    /// The answer for every row that is not NULL: values of different types stand in a fixed order.
    Known(bool),
}

/// Some value of `data_type`.
fn sample(data_type: DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Boolean(false),
        DataType::Real => Value::Real(0.0),
        DataType::Double => Value::Double(0.0),
        DataType::Decimal { .. } => Value::Decimal(0),
        DataType::Text { .. } | DataType::Char { .. } => Value::Text("".into()),
        DataType::Bytea => Value::Bytes([].into()),
        DataType::Uuid => Value::Uuid(0),
        DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Date
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampTz => Value::Int(0),
    }
}
