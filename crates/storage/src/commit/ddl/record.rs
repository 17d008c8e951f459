//! Schema changes in a commit's log record. Byte table: `docs/formats/records.md`.
//!
//! A [`DdlChange`] says in addition what it stands on: the definition it drops, empties or alters, and whether rows
//! were looked at. A commit validates by that, and tells by name what is in the way. A [`DdlRecord`] is redo alone:
//! replay has the definitions by then, and there is nothing to validate. So there are two types, and a record that
//! named what was before could only contradict the state it is replayed into.

use std::sync::Arc;

use crate::catalog::format::{decode_schema, decode_view, encode_schema, encode_view};
use crate::codec::{Decoder, Encoder};
use crate::error::Result;
use crate::ids::{ColumnId, TableId};
use crate::schema::{RelationName, TableSchema, View};
use crate::write_set::DdlChange;

/// A schema change in a commit record.
#[derive(Clone, Debug, PartialEq)]
pub enum DdlRecord {
    /// CREATE TABLE.
    Create(Arc<TableSchema>),
    /// DROP TABLE.
    Drop(TableId),
    /// ALTER TABLE: the next version of the definition.
    Alter(Arc<TableSchema>),
    /// TRUNCATE.
    Truncate {
        /// The table.
        table: TableId,
        /// RESTART IDENTITY.
        restart_identity: bool,
    },
    /// CREATE VIEW.
    CreateView(Arc<View>),
    /// DROP VIEW.
    DropView(RelationName),
    /// CREATE SCHEMA.
    CreateNamespace(String),
    /// DROP SCHEMA.
    DropNamespace(String),
    /// So many numbers of an IDENTITY column are taken.
    TakeNumbers {
        /// The table.
        table: TableId,
        /// The column.
        column: ColumnId,
        /// Numbers from the first one on.
        taken: u64,
    },
}

/// Writes a change: tag, then what it is about.
pub(in crate::commit) fn encode_change(out: &mut Encoder, change: &DdlChange) {
    match change {
        DdlChange::Create(schema) => {
            out.u8(1);
            encode_schema(out, schema);
        }
        DdlChange::Drop(schema) => {
            out.u8(2);
            out.u64(schema.id.0);
        }
        DdlChange::Alter { after, .. } => {
            out.u8(3);
            encode_schema(out, after);
        }
        DdlChange::Truncate { schema, restart_identity } => {
            out.u8(4);
            out.u64(schema.id.0);
            out.bool(*restart_identity);
        }
        DdlChange::CreateView(view) => {
            out.u8(5);
            encode_view(out, view);
        }
        DdlChange::DropView(name) => {
            out.u8(6);
            out.str(&name.namespace);
            out.str(&name.name);
        }
        DdlChange::CreateNamespace(name) => {
            out.u8(7);
            out.str(name);
        }
        DdlChange::DropNamespace(name) => {
            out.u8(8);
            out.str(name);
        }
        DdlChange::TakeNumbers { table, column, taken } => {
            out.u8(9);
            out.u64(table.0);
            out.u32(column.0);
            out.u64(*taken);
        }
    }
}

/// Reads what [`encode_change`] wrote.
///
/// # Errors
/// Corrupt.
pub(in crate::commit) fn decode_change(input: &mut Decoder<'_>) -> Result<DdlRecord> {
    Ok(match input.u8()? {
        1 => DdlRecord::Create(Arc::new(decode_schema(input)?)),
        2 => DdlRecord::Drop(TableId(input.u64()?)),
        3 => DdlRecord::Alter(Arc::new(decode_schema(input)?)),
        4 => DdlRecord::Truncate { table: TableId(input.u64()?), restart_identity: input.bool()? },
        5 => DdlRecord::CreateView(Arc::new(decode_view(input)?)),
        6 => DdlRecord::DropView(RelationName::new(input.str()?, input.str()?)),
        7 => DdlRecord::CreateNamespace(input.str()?.to_owned()),
        8 => DdlRecord::DropNamespace(input.str()?.to_owned()),
        9 => {
            DdlRecord::TakeNumbers { table: TableId(input.u64()?), column: ColumnId(input.u32()?), taken: input.u64()? }
        }
        other => return Err(input.corrupt(format!("unknown schema change {other}"))),
    })
}
