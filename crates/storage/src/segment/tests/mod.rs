//! Segments against the naive implementation: a `Vec<Value>` per column.

mod cache;
mod conformance;
mod corruption;
mod encodings;
mod keys;
mod lifetime;
mod pages;
mod versions;

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::cast;
use arrow_schema::{DECIMAL64_MAX_PRECISION, DataType as ArrowType};

use super::{BlockCache, Segment, SegmentMeta, SegmentPlace, write_segment};
use crate::disk::{DATA_DIR, Disk, MemDisk};
use crate::ids::{ColumnId, ContainerId, FileId, TableId};
use crate::row::{Value, array_of};
use crate::schema::{Column, DataType, Layout, TableSchema};
use crate::settings::Encodings;

/// A table of `types`, columns 1, 2, ..., with the first `key` of them as primary and sort key.
pub(crate) fn schema(types: &[DataType], key: usize) -> TableSchema {
    let id = |i: usize| ColumnId(i as u32 + 1);
    let key: Vec<ColumnId> = (0..key).map(id).collect();
    let column =
        |(i, data_type): (usize, &DataType)| Column::new(id(i), format!("c{i}"), *data_type, !key.contains(&id(i)));
    let columns = types.iter().enumerate().map(column).collect();
    TableSchema {
        primary_key: key.clone(),
        layout: if key.is_empty() { Layout::Insertion } else { Layout::Sorted },
        sort_key: key,
        ..TableSchema::new(TableId(1), "t", columns)
    }
}

/// An empty disk with the folder of segments.
pub(crate) fn disk() -> (MemDisk, Arc<dyn Disk>) {
    let memory = MemDisk::new();
    memory.create_dir(DATA_DIR).unwrap();
    (memory.clone(), Arc::new(memory))
}

/// Arrays of `columns`, values in the types of `schema`.
pub(crate) fn arrays(schema: &TableSchema, columns: &[Vec<Value>]) -> Vec<ArrayRef> {
    schema.columns.iter().zip(columns).map(|(c, values)| array_of(values.iter(), c.data_type).unwrap()).collect()
}

/// All that segments may be written with.
pub(crate) const ENCODINGS: [Encodings; 3] = [Encodings::Smallest, Encodings::Decoded, Encodings::DecodedDictionaries];

/// Writes `columns` as segment and file `id`.
pub(crate) fn write(disk: &Arc<dyn Disk>, id: u64, schema: &TableSchema, columns: &[Vec<Value>]) -> SegmentMeta {
    write_with(Encodings::Smallest, disk, id, schema, columns)
}

/// The same with certain encodings.
pub(crate) fn write_with(
    encodings: Encodings,
    disk: &Arc<dyn Disk>,
    id: u64,
    schema: &TableSchema,
    columns: &[Vec<Value>],
) -> SegmentMeta {
    let place = SegmentPlace { disk, id: ContainerId(id), file: FileId(id), threads: 1, encodings, symbols: None };
    let columns = arrays(schema, columns);
    let meta = write_segment(place, schema, &columns).unwrap();
    // The same blocks, by their checksums, from columns in the forms of a load.
    let coded = ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8));
    for texts in [ArrowType::Utf8, coded] {
        let (_, other) = self::disk();
        let place = SegmentPlace { disk: &other, ..place };
        let of_load = schema.columns.iter().zip(&columns).map(|(c, array)| load_form(schema, c, array, &texts));
        assert_eq!(write_segment(place, schema, &of_load.collect::<Vec<_>>()).unwrap(), meta, "{texts}");
    }
    meta
}

/// `array` as a load may have it, if `column` is in no key: texts as `texts`, decimals in 64 bits.
fn load_form(schema: &TableSchema, column: &Column, array: &ArrayRef, texts: &ArrowType) -> ArrayRef {
    let form = match column.data_type {
        DataType::Text { .. } | DataType::Char { .. } => texts.clone(),
        DataType::Decimal { precision, scale } if precision <= DECIMAL64_MAX_PRECISION => {
            ArrowType::Decimal64(precision, scale)
        }
        _ => return array.clone(),
    };
    if schema.sort_key.contains(&column.id) { array.clone() } else { cast(array, &form).unwrap() }
}

/// Writes and opens.
pub(crate) fn segment(disk: &Arc<dyn Disk>, id: u64, schema: &TableSchema, columns: &[Vec<Value>]) -> Arc<Segment> {
    Segment::open(write(disk, id, schema, columns), Arc::clone(disk), BlockCache::new(64 << 20))
}
