//! The key of one table: its columns, and the encoding of single rows and values.

use crate::error::{Error, ErrorKind, Result, sqlstate};
use crate::ids::ColumnId;
use crate::row::layout::{int_limits, is_wide};
use crate::row::value::{normal_f32, normal_f64};
use crate::row::{RowView, Value, without_padding};
use crate::schema::{DataType, TableSchema};

/// Marker of a value in a column that may be NULL.
pub(super) const VALUE: u8 = 0;
/// Marker of NULL: last.
pub(super) const NULL: u8 = 1;

/// Ends a text; below every escaped byte.
const END: u8 = 0;
/// Comes before the escaped form of the bytes 0 and 1.
const ESCAPE: u8 = 1;

/// One column of a key.
#[derive(Clone, Debug)]
pub(super) struct Part {
    id: ColumnId,
    /// Where rows of the codec's own schema version have it.
    position: usize,
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
    missing_value: Value,
    /// BIGINT without NULLs: a key of it alone is the number and nothing else.
    pub(super) is_plain_bigint: bool,
}

/// Encodes the key columns of one table, order preserved.
#[derive(Clone, Debug)]
pub struct KeyCodec {
    parts: Vec<Part>,
    fixed_width: Option<usize>,
}

impl KeyCodec {
    /// The key of `columns`, in that order. Panics if one of them is not in `schema`.
    #[must_use]
    pub fn new(schema: &TableSchema, columns: &[ColumnId]) -> Self {
        let part = |id: &ColumnId| {
            #[expect(
                clippy::expect_used,
                reason = "the catalog makes and reads only keys over the table's own columns"
            )]
            let position = schema.position(*id).expect("a key column of the table");
            let column = &schema.columns[position];
            Part {
                id: *id,
                position,
                data_type: column.data_type,
                nullable: column.nullable,
                missing_value: column.missing_value.clone(),
                is_plain_bigint: column.data_type == DataType::BigInt && !column.nullable,
            }
        };
        Self::of_parts(columns.iter().map(part).collect())
    }

    /// As [`KeyCodec::new`], for keys without NULLs only: as if all columns were NOT NULL.
    #[must_use]
    pub fn of_values(schema: &TableSchema, columns: &[ColumnId]) -> Self {
        let parts = Self::new(schema, columns).parts.into_iter();
        Self::of_parts(
            parts
                .map(|part| Part { nullable: false, is_plain_bigint: part.data_type == DataType::BigInt, ..part })
                .collect(),
        )
    }

    fn of_parts(parts: Vec<Part>) -> Self {
        let fixed_width = parts.iter().map(Part::width).sum();
        Self { parts, fixed_width }
    }

    /// Whether keys are of one BIGINT column without NULLs: see [`KeyCodec::key_of_bigint`].
    #[must_use]
    pub fn is_plain_bigint(&self) -> bool {
        matches!(self.parts.as_slice(), [part] if part.is_plain_bigint)
    }

    /// The key of a value of such a column.
    #[inline]
    #[must_use]
    pub fn key_of_bigint(value: i64) -> [u8; 8] {
        flip_i64(value)
    }

    /// The value that such a key is of; `None` where it has another length.
    #[inline]
    #[must_use]
    pub fn bigint_of_key(key: &[u8]) -> Option<i64> {
        Some(i64::from_be_bytes(key.try_into().ok()?) ^ i64::MIN)
    }

    /// Number of key columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of every key, if all keys have the same size.
    #[must_use]
    pub fn fixed_width(&self) -> Option<usize> {
        self.fixed_width
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether one of the key columns is NULL in `row`, which may be of another schema version.
    #[must_use]
    pub fn is_null_in(&self, row: RowView<'_>) -> bool {
        let columns = &row.schema().columns;
        self.parts.iter().any(|part| {
            let here = columns.get(part.position).is_some_and(|c| c.id == part.id);
            match if here { Some(part.position) } else { row.schema().position(part.id) } {
                Some(position) => row.is_null(position),
                None => part.missing_value.is_null(),
            }
        })
    }

    /// Appends the key of `row` to `out`. The row may be of another schema version of the table; a column that it lacks
    /// counts with its missing value.
    pub fn encode_row(&self, row: RowView<'_>, out: &mut Vec<u8>) {
        let columns = &row.schema().columns;
        if let [part] = self.parts.as_slice()
            && part.is_plain_bigint
            && columns.get(part.position).is_some_and(|c| c.id == part.id)
            && !row.is_null(part.position)
        {
            return out.extend_from_slice(&flip_i64(row.get_i64(part.position)));
        }
        for part in &self.parts {
            let here = columns.get(part.position).is_some_and(|c| c.id == part.id);
            match if here { Some(part.position) } else { row.schema().position(part.id) } {
                Some(position) => part.put_field(row, position, out),
                None => part.put(&part.missing_value, out),
            }
        }
    }

    /// Appends the key of `values`, one for each key column, to `out`. A value of another type is 42804, an integer
    /// outside the column's type 22003, NULL in a column that has none 23502; `out` is then as it was.
    pub fn encode_values(&self, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
        if values.len() != self.parts.len() {
            return Err(Error::internal(format!("{} values for a key of {} columns", values.len(), self.parts.len())));
        }
        self.encode_prefix(values, out)
    }

    /// As [`KeyCodec::encode_values`], for the first few columns: every key that has these values starts with these
    /// bytes, and no other key does.
    pub fn encode_prefix(&self, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
        for (part, value) in self.parts.iter().zip(values) {
            part.check(value)?;
        }
        for (part, value) in self.parts.iter().zip(values) {
            part.put(value, out);
        }
        Ok(())
    }

    /// The value of a key of one BIGINT NOT NULL, as most are: no codec has to be made for it. `None` for other columns
    /// and keys.
    #[must_use]
    pub fn plain_bigint(schema: &TableSchema, columns: &[ColumnId], key: &[u8]) -> Option<Value> {
        let [id] = columns else { return None };
        let column = schema.column(*id)?;
        let is_plain = column.data_type == DataType::BigInt && !column.nullable;
        let bytes = <[u8; 8]>::try_from(key).ok().filter(|_| is_plain)?;
        Some(Value::Int(i64::from_be_bytes(bytes) ^ i64::MIN))
    }

    /// The values of a key. Bytes that are no key of this codec are a Corrupt error.
    pub fn decode(&self, key: &[u8]) -> Result<Vec<Value>> {
        let mut rest = key;
        let values = self.parts.iter().map(|part| part.take(&mut rest)).collect::<Option<Vec<_>>>();
        match values {
            Some(values) if rest.is_empty() => Ok(values),
            _ => Err(Error::new(
                ErrorKind::Corrupt,
                sqlstate::CORRUPT,
                format!("a stored key of {} bytes is damaged", key.len()),
            )),
        }
    }
}

impl Part {
    /// Bytes of the value without marker, if they are always as many.
    pub(super) fn value_width(&self) -> Option<usize> {
        Some(match self.data_type {
            DataType::Boolean => 1,
            DataType::SmallInt => 2,
            DataType::Integer | DataType::Date | DataType::Real => 4,
            DataType::BigInt | DataType::Time | DataType::Timestamp | DataType::TimestampTz | DataType::Double => 8,
            DataType::Uuid => 16,
            DataType::Decimal { .. } => {
                if is_wide(self.data_type) {
                    16
                } else {
                    8
                }
            }
            DataType::Text { .. } | DataType::Char { .. } | DataType::Bytea => return None,
        })
    }

    /// Bytes of the column in every key, if they are always as many.
    fn width(&self) -> Option<usize> {
        self.value_width().map(|width| width + usize::from(self.nullable))
    }

    /// Whether the value is one of the column.
    fn check(&self, value: &Value) -> Result<()> {
        let fits = match (self.data_type, value) {
            (_, Value::Null) if self.nullable => true,
            (_, Value::Null) => return Err(Error::constraint(sqlstate::NOT_NULL, "null value in a key column")),
            (DataType::Boolean, Value::Boolean(_))
            | (DataType::Real, Value::Real(_))
            | (DataType::Double, Value::Double(_))
            | (DataType::Text { .. } | DataType::Char { .. }, Value::Text(_))
            | (DataType::Bytea, Value::Bytes(_))
            | (DataType::Uuid, Value::Uuid(_)) => true,
            (DataType::Decimal { .. }, Value::Decimal(v)) => is_wide(self.data_type) || i64::try_from(*v).is_ok(),
            (
                DataType::SmallInt
                | DataType::Integer
                | DataType::BigInt
                | DataType::Date
                | DataType::Time
                | DataType::Timestamp
                | DataType::TimestampTz,
                Value::Int(v),
            ) => {
                let (lo, hi) = int_limits(self.data_type);
                (lo..=hi).contains(v)
            }
            _ => {
                return Err(Error::invalid(
                    sqlstate::TYPE_MISMATCH,
                    format!("key value {value:?} is not of type {}", self.data_type),
                ));
            }
        };
        if fits {
            return Ok(());
        }
        Err(Error::invalid(
            sqlstate::OUT_OF_RANGE,
            format!("key value {value:?} is out of range for type {}", self.data_type),
        ))
    }

    /// Appends a checked value.
    fn put(&self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Null => return self.put_null(out),
            _ if self.nullable => out.push(VALUE),
            _ => {}
        }
        match value {
            Value::Null => {}
            Value::Boolean(v) => out.push(u8::from(*v)),
            Value::Int(v) => self.put_int(*v, out),
            Value::Decimal(v) if is_wide(self.data_type) => out.extend_from_slice(&flip_i128(*v)),
            Value::Decimal(v) => out.extend_from_slice(&flip_i64(*v as i64)),
            Value::Real(v) => out.extend_from_slice(&flip_f32(*v)),
            Value::Double(v) => out.extend_from_slice(&flip_f64(*v)),
            Value::Text(v) if matches!(self.data_type, DataType::Char { .. }) => {
                put_text(without_padding(v).as_bytes(), out);
            }
            Value::Text(v) => put_text(v.as_bytes(), out),
            Value::Bytes(v) => put_text(v, out),
            Value::Uuid(v) => out.extend_from_slice(&v.to_be_bytes()),
        }
    }

    /// Appends the field at `position` of `row` without making a value of it.
    fn put_field(&self, row: RowView<'_>, position: usize, out: &mut Vec<u8>) {
        if row.is_null(position) {
            return self.put_null(out);
        }
        if self.nullable {
            out.push(VALUE);
        }
        match self.data_type {
            DataType::Boolean => out.push(row.get_i64(position) as u8),
            DataType::Real => out.extend_from_slice(&flip_f32(row.get_f32(position))),
            DataType::Double => out.extend_from_slice(&flip_f64(row.get_f64(position))),
            DataType::Decimal { .. } if is_wide(self.data_type) => {
                out.extend_from_slice(&flip_i128(row.get_i128(position)));
            }
            DataType::Text { .. } | DataType::Char { .. } | DataType::Bytea => put_text(row.get_bytes(position), out),
            DataType::Uuid => out.extend_from_slice(&row.get_uuid(position).to_be_bytes()),
            _ => self.put_int(row.get_i64(position), out),
        }
    }

    fn put_null(&self, out: &mut Vec<u8>) {
        debug_assert!(self.nullable, "NULL in key column {}, which is NOT NULL", self.id);
        if self.nullable {
            out.push(NULL);
        }
        // Keys of fixed-width columns keep their width.
        out.resize(out.len() + self.value_width().unwrap_or(0), 0);
    }

    fn put_int(&self, v: i64, out: &mut Vec<u8>) {
        match self.value_width() {
            Some(2) => out.extend_from_slice(&flip_i16(v as i16)),
            Some(4) => out.extend_from_slice(&flip_i32(v as i32)),
            _ => out.extend_from_slice(&flip_i64(v)),
        }
    }

    /// Takes this column off the front of `rest`.
    fn take(&self, rest: &mut &[u8]) -> Option<Value> {
        if self.nullable {
            match chunk::<1>(rest)? {
                [VALUE] => {}
                [NULL] => {
                    let padding = rest.split_off(..self.value_width().unwrap_or(0))?;
                    return padding.iter().all(|b| *b == 0).then_some(Value::Null);
                }
                _ => return None,
            }
        }
        Some(match self.data_type {
            DataType::Boolean => match chunk(rest)? {
                [b @ (0 | 1)] => Value::Boolean(b == 1),
                _ => return None,
            },
            DataType::SmallInt => Value::Int(i64::from(i16::from_be_bytes(chunk(rest)?) ^ i16::MIN)),
            DataType::Integer | DataType::Date => Value::Int(i64::from(i32::from_be_bytes(chunk(rest)?) ^ i32::MIN)),
            DataType::BigInt | DataType::Time | DataType::Timestamp | DataType::TimestampTz => {
                Value::Int(i64::from_be_bytes(chunk(rest)?) ^ i64::MIN)
            }
            DataType::Real => Value::Real(unflip_f32(chunk(rest)?)),
            DataType::Double => Value::Double(unflip_f64(chunk(rest)?)),
            DataType::Decimal { .. } if is_wide(self.data_type) => {
                Value::Decimal(i128::from_be_bytes(chunk(rest)?) ^ i128::MIN)
            }
            DataType::Decimal { .. } => Value::Decimal(i128::from(i64::from_be_bytes(chunk(rest)?) ^ i64::MIN)),
            DataType::Text { .. } | DataType::Char { .. } => {
                Value::Text(String::from_utf8(take_text(rest)?).ok()?.into())
            }
            DataType::Bytea => Value::Bytes(take_text(rest)?.into()),
            DataType::Uuid => Value::Uuid(u128::from_be_bytes(chunk(rest)?)),
        })
    }
}

fn chunk<const W: usize>(rest: &mut &[u8]) -> Option<[u8; W]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

#[inline]
pub(super) fn flip_i16(v: i16) -> [u8; 2] {
    (v ^ i16::MIN).to_be_bytes()
}

#[inline]
pub(super) fn flip_i32(v: i32) -> [u8; 4] {
    (v ^ i32::MIN).to_be_bytes()
}

#[inline]
pub(super) fn flip_i64(v: i64) -> [u8; 8] {
    (v ^ i64::MIN).to_be_bytes()
}

#[inline]
pub(super) fn flip_i128(v: i128) -> [u8; 16] {
    (v ^ i128::MIN).to_be_bytes()
}

/// Negative floats grow with their bits the wrong way round: all their bits are flipped, else only the sign.
#[inline]
pub(super) fn flip_f32(v: f32) -> [u8; 4] {
    let bits = normal_f32(v).to_bits() as i32;
    (bits ^ (bits >> 31 | i32::MIN)).to_be_bytes()
}

/// As [`flip_f32`].
#[inline]
pub(super) fn flip_f64(v: f64) -> [u8; 8] {
    let bits = normal_f64(v).to_bits() as i64;
    (bits ^ (bits >> 63 | i64::MIN)).to_be_bytes()
}

fn unflip_f32(bytes: [u8; 4]) -> f32 {
    let bits = i32::from_be_bytes(bytes);
    f32::from_bits((bits ^ (!bits >> 31 | i32::MIN)) as u32)
}

fn unflip_f64(bytes: [u8; 8]) -> f64 {
    let bits = i64::from_be_bytes(bytes);
    f64::from_bits((bits ^ (!bits >> 63 | i64::MIN)) as u64)
}

/// Bytes that [`write_text`] takes for `text`.
pub(super) fn text_width(text: &[u8]) -> usize {
    text.len() + text.iter().filter(|b| **b <= ESCAPE).count() + 1
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + text_width(text), 0);
    write_text(text, &mut out[start..]);
}

/// Fills `out`, [`text_width`] bytes, with the escaped text and its end.
pub(super) fn write_text(text: &[u8], out: &mut [u8]) {
    let Some((end, body)) = out.split_last_mut() else { return };
    *end = END;
    if body.len() == text.len() {
        return body.copy_from_slice(text);
    }
    let mut at = 0;
    for &byte in text {
        if byte <= ESCAPE {
            body[at] = ESCAPE;
            body[at + 1] = byte + 1;
            at += 2;
        } else {
            body[at] = byte;
            at += 1;
        }
    }
}

/// Takes a text off the front of `rest`.
fn take_text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match chunk::<1>(rest)? {
            [END] => return Some(text),
            [ESCAPE] => match chunk::<1>(rest)? {
                [byte @ (1 | 2)] => text.push(byte - 1),
                _ => return None,
            },
            [byte] => text.push(byte),
        }
    }
}
