//! How a table's schema is written in log records and the manifest. Byte table: `docs/formats/catalog.md`.

use crate::codec::{Decoder, Encoder};
use crate::error::Result;
use crate::ids::{ColumnId, KeyId, SchemaVersion, TableId};
use crate::row::Value;
use crate::schema::{
    Check, Column, DataType, Identity, Layout, RelationName, TableOptions, TableSchema, UniqueKey, View,
};

/// Writes `schema`.
pub fn encode_schema(out: &mut Encoder, schema: &TableSchema) {
    out.u64(schema.id.0);
    out.u64(schema.version.0);
    out.str(&schema.namespace);
    out.str(&schema.name);
    out.u32(schema.next_column.0);
    out.list(schema.columns.iter(), |out, column| {
        out.u32(column.id.0);
        out.str(&column.name);
        encode_type(out, column.data_type);
        out.bool(column.nullable);
        encode_value(out, &column.missing_value);
        out.option(column.default.as_deref(), Encoder::str);
        out.option(column.identity, |out, identity| {
            out.bool(identity.always);
            out.i64(identity.start);
            out.i64(identity.increment);
        });
    });
    out.u32(schema.next_key.0);
    out.list(schema.primary_key.iter(), |out, id| out.u32(id.0));
    out.option(schema.primary_key_name.as_deref(), Encoder::str);
    out.list(schema.unique_keys.iter(), |out, key| {
        out.u32(key.id.0);
        out.str(&key.name);
        out.list(key.columns.iter(), |out, id| out.u32(id.0));
    });
    out.list(schema.checks.iter(), |out, check| {
        out.str(&check.name);
        out.str(&check.expression);
    });
    out.list(schema.sort_key.iter(), |out, id| out.u32(id.0));
    out.u8(match schema.layout {
        Layout::Insertion => 0,
        Layout::Sorted => 1,
    });
    out.u32(schema.options.segment_rows);
    out.u32(schema.options.delta_rows);
}

/// Reads what [`encode_schema`] wrote.
///
/// # Errors
/// Corrupt.
pub fn decode_schema(input: &mut Decoder<'_>) -> Result<TableSchema> {
    let id = TableId(input.u64()?);
    let version = SchemaVersion(input.u64()?);
    let namespace = input.str()?.to_owned();
    let name = input.str()?.to_owned();
    let next_column = ColumnId(input.u32()?);
    let columns = input.list(|input| {
        Ok(Column {
            id: ColumnId(input.u32()?),
            name: input.str()?.to_owned(),
            data_type: decode_type(input)?,
            nullable: input.bool()?,
            missing_value: decode_value(input)?,
            default: input.option(Decoder::str)?.map(Into::into),
            identity: input
                .option(|input| Ok(Identity { always: input.bool()?, start: input.i64()?, increment: input.i64()? }))?,
        })
    })?;
    let next_key = KeyId(input.u32()?);
    let primary_key = input.list(|input| Ok(ColumnId(input.u32()?)))?;
    let primary_key_name = input.option(Decoder::str)?.map(str::to_owned);
    let unique_keys = input.list(|input| {
        let id = KeyId(input.u32()?);
        let name = input.str()?.to_owned();
        Ok(UniqueKey { id, name, columns: input.list(|input| Ok(ColumnId(input.u32()?)))? })
    })?;
    let checks =
        input.list(|input| Ok(Check { name: input.str()?.to_owned(), expression: input.str()?.to_owned() }))?;
    let sort_key = input.list(|input| Ok(ColumnId(input.u32()?)))?;
    let layout = match input.u8()? {
        0 => Layout::Insertion,
        1 => Layout::Sorted,
        other => return Err(input.corrupt(format!("unknown layout {other}"))),
    };
    let options = TableOptions { segment_rows: input.u32()?, delta_rows: input.u32()? };
    let known = |id: &ColumnId| columns.iter().any(|c: &Column| c.id == *id);
    let unique = unique_keys.iter().flat_map(|key| &key.columns);
    if !primary_key.iter().chain(&sort_key).chain(unique).all(known) {
        return Err(input.corrupt("a key names a column the table does not have"));
    }
    let ids = unique_keys.iter().map(|key| key.id);
    if ids
        .clone()
        .any(|id| id == KeyId::PRIMARY || id >= next_key || ids.clone().filter(|other| *other == id).count() > 1)
    {
        return Err(input.corrupt("a key has an id that is not its own"));
    }
    Ok(TableSchema {
        id,
        version,
        namespace,
        name,
        columns,
        next_column,
        next_key,
        primary_key,
        primary_key_name,
        unique_keys,
        checks,
        sort_key,
        layout,
        options,
    })
}

/// Writes a view.
pub fn encode_view(out: &mut Encoder, view: &View) {
    out.str(&view.name.namespace);
    out.str(&view.name.name);
    out.list(view.columns.iter(), |out, name| out.str(name));
    out.str(&view.query);
}

/// Reads what [`encode_view`] wrote.
///
/// # Errors
/// Corrupt.
pub fn decode_view(input: &mut Decoder<'_>) -> Result<View> {
    let name = RelationName::new(input.str()?, input.str()?);
    let columns = input.list(|input| Ok(input.str()?.to_owned()))?;
    Ok(View { name, columns, query: input.str()?.to_owned() })
}

/// Writes a type: tag, then its parameters.
pub fn encode_type(out: &mut Encoder, data_type: DataType) {
    let tag = |out: &mut Encoder, tag: u8| out.u8(tag);
    match data_type {
        DataType::Boolean => tag(out, 0),
        DataType::SmallInt => tag(out, 1),
        DataType::Integer => tag(out, 2),
        DataType::BigInt => tag(out, 3),
        DataType::Real => tag(out, 4),
        DataType::Double => tag(out, 5),
        DataType::Decimal { precision, scale } => {
            tag(out, 6);
            out.u8(precision);
            out.u8(scale as u8);
        }
        DataType::Date => tag(out, 7),
        DataType::Timestamp => tag(out, 8),
        DataType::TimestampTz => tag(out, 9),
        DataType::Text { max_chars } => {
            tag(out, 10);
            out.option(max_chars, Encoder::u32);
        }
        DataType::Bytea => tag(out, 11),
        DataType::Time => tag(out, 12),
        DataType::Uuid => tag(out, 13),
        DataType::Char { chars } => {
            tag(out, 14);
            out.u32(chars);
        }
    }
}

/// Reads a type.
///
/// # Errors
/// Corrupt.
pub fn decode_type(input: &mut Decoder<'_>) -> Result<DataType> {
    Ok(match input.u8()? {
        0 => DataType::Boolean,
        1 => DataType::SmallInt,
        2 => DataType::Integer,
        3 => DataType::BigInt,
        4 => DataType::Real,
        5 => DataType::Double,
        6 => {
            let (precision, scale) = (input.u8()?, input.u8()? as i8);
            if !(1..=38).contains(&precision) || scale.unsigned_abs() > 38 {
                return Err(input.corrupt(format!("DECIMAL({precision}, {scale})")));
            }
            DataType::Decimal { precision, scale }
        }
        7 => DataType::Date,
        8 => DataType::Timestamp,
        9 => DataType::TimestampTz,
        10 => DataType::Text { max_chars: input.option(Decoder::u32)? },
        11 => DataType::Bytea,
        12 => DataType::Time,
        13 => DataType::Uuid,
        14 => match input.u32()? {
            0 => return Err(input.corrupt("CHAR(0)")),
            chars => DataType::Char { chars },
        },
        other => return Err(input.corrupt(format!("unknown type {other}"))),
    })
}

/// Writes a value: tag, then its bytes.
pub fn encode_value(out: &mut Encoder, value: &Value) {
    match value {
        Value::Null => out.u8(0),
        Value::Boolean(v) => {
            out.u8(1);
            out.bool(*v);
        }
        Value::Int(v) => {
            out.u8(2);
            out.i64(*v);
        }
        Value::Decimal(v) => {
            out.u8(3);
            out.i128(*v);
        }
        Value::Real(v) => {
            out.u8(4);
            out.u32(v.to_bits());
        }
        Value::Double(v) => {
            out.u8(5);
            out.u64(v.to_bits());
        }
        Value::Text(v) => {
            out.u8(6);
            out.str(v);
        }
        Value::Bytes(v) => {
            out.u8(7);
            out.bytes(v);
        }
        Value::Uuid(v) => {
            out.u8(8);
            out.i128(*v as i128);
        }
    }
}

/// Reads a value.
///
/// # Errors
/// Corrupt.
pub fn decode_value(input: &mut Decoder<'_>) -> Result<Value> {
    Ok(match input.u8()? {
        0 => Value::Null,
        1 => Value::Boolean(input.bool()?),
        2 => Value::Int(input.i64()?),
        3 => Value::Decimal(input.i128()?),
        4 => Value::Real(f32::from_bits(input.u32()?)),
        5 => Value::Double(f64::from_bits(input.u64()?)),
        6 => Value::Text(input.str()?.into()),
        7 => Value::Bytes(input.bytes()?.into()),
        8 => Value::Uuid(input.i128()? as u128),
        other => return Err(input.corrupt(format!("unknown value tag {other}"))),
    })
}
