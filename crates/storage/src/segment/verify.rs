//! Checking a segment against itself, for `mainstem check`.
//!
//! Reads every block past the cache, one column at a time: checksums, then everything that opening proves, then what
//! the metadata claims: bounds, counts, sums, key order, key bounds, key filter.

use arrow_array::{Array, ArrayRef};

use super::block::ColumnBlock;
use super::encoding::{Damage, Form};
use super::format::{BlockRef, ColumnMeta};
use super::reader::Segment;
use crate::error::{Error, Result};
use crate::ids::ColumnId;
use crate::predicate::ValueRange;
use crate::row::Value;
use crate::row::key::{KeyCodec, hash_key};
use crate::schema::TableSchema;

impl Segment {
    /// Proves that the segment's files are whole and hold what its metadata says. `schema` is its table's.
    ///
    /// # Errors
    /// Corrupt, naming file and byte; Io.
    pub fn verify(&self, schema: &TableSchema) -> Result<()> {
        for (_, file) in self.files() {
            let meta = file.read_meta()?;
            // A file of an older segment may serve this one too; its own one says the same as the manifest.
            if meta.id == self.id() && meta != *self.meta() {
                return Err(Error::corrupt(file.path(), 0, "the footer differs from what the database has on record"));
            }
        }
        for column in &self.meta().columns {
            let block = self.fresh_block(column)?;
            self.verify_column(column, &block)?;
        }
        self.verify_keys(schema)
    }

    fn fresh_block(&self, column: &ColumnMeta) -> Result<ColumnBlock> {
        match &column.block {
            Some(at) => self.load_column(column, at),
            None => self.open_block(column, Vec::<u8>::new().into()),
        }
    }

    fn damage(&self, block: Option<&BlockRef>, what: String) -> Error {
        match block.or(self.meta().blocks().next()) {
            Some(at) => self.corrupt(at, Damage::new(0, what)),
            None => Error::internal(format!("segment {}: {what}", self.id())),
        }
    }

    fn verify_column(&self, column: &ColumnMeta, block: &ColumnBlock) -> Result<()> {
        let damage = |what: &str| Err(self.damage(column.block.as_ref(), format!("column {}: {what}", column.id)));
        let array = block.read(Form::Values, 0..block.rows())?;
        if array.null_count() != column.null_count as usize {
            return damage("count of NULLs");
        }
        let range = ValueRange::of_array(array.as_ref(), column.data_type)?;
        let zone = &column.zone;
        if !range.all_null
            && (zone.min > range.min
                || zone.max < range.max
                || (zone.min_exact && zone.min != range.min)
                || (zone.max_exact && zone.max != range.max))
        {
            return damage("bounds");
        }
        if block.distinct().is_some_and(|n| column.distinct.is_some_and(|claimed| claimed as usize != n)) {
            return damage("count of distinct values");
        }
        if let Some(claimed) = column.sum {
            let mut sum = Some(0i128);
            for row in 0..block.rows() {
                sum = match block.value(row)? {
                    Value::Int(v) => sum.and_then(|sum| sum.checked_add(i128::from(v))),
                    Value::Decimal(v) => sum.and_then(|sum| sum.checked_add(v)),
                    _ => sum,
                };
            }
            if sum != Some(claimed) {
                return damage("sum");
            }
        }
        Ok(())
    }

    fn verify_keys(&self, schema: &TableSchema) -> Result<()> {
        let meta = self.meta();
        if let Some(bounds) = &meta.key_bounds {
            let keys =
                KeyCodec::new(schema, &schema.sort_key).encode_arrays(&self.key_columns(schema, &schema.sort_key)?)?;
            let damage = |what: &str| Err(self.damage(None, what.to_owned()));
            if !keys.is_sorted() {
                return damage("rows out of key order");
            }
            if keys.is_empty() || *keys.get(0) < *bounds.min || *keys.get(keys.len() - 1) > *bounds.max {
                return damage("bounds of keys");
            }
        }
        if let Some(at) = &meta.key_filter {
            let filter = self.load_filter(at)?;
            let key = &schema.sort_key;
            let keys = KeyCodec::new(schema, key).encode_arrays(&self.key_columns(schema, key)?)?;
            if !keys.iter().all(|key| filter.may_contain(hash_key(key))) {
                return Err(self.damage(Some(at), "the key filter denies a key".to_owned()));
            }
        }
        Ok(())
    }

    fn key_columns(&self, schema: &TableSchema, key: &[ColumnId]) -> Result<Vec<ArrayRef>> {
        key.iter()
            .map(|id| match (self.meta().column(*id), schema.column(*id)) {
                (Some(column), Some(defined)) => {
                    let array = self.fresh_block(column).and_then(|block| block.read(Form::Values, 0..block.rows()))?;
                    if !defined.nullable && array.null_count() > 0 {
                        return Err(self.damage(column.block.as_ref(), format!("column {id}: NULL in a key")));
                    }
                    Ok(array)
                }
                _ => Err(self.damage(None, format!("key column {id} is missing"))),
            })
            .collect()
    }
}
