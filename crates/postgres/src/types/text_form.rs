//! Columns of text to columns of TIME and UUID, and back: types whose text Arrow reads or writes otherwise than
//! PostgreSQL.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, StringViewArray, StringViewBuilder};
use arrow::array::{FixedSizeBinaryBuilder, Time64MicrosecondBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Time64MicrosecondType};
use mainstem_storage::{Error, Result};

use super::{TIME, Time, UUID, Uuid};
use crate::error::from_arrow;

/// Whether `data_type` is TIME or UUID.
pub fn has_own_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Time32(_) | DataType::Time64(_)) || *data_type == UUID
}

/// The values that `texts` spell, as an array of type `wanted`: [`TIME`] or [`UUID`]. With `or_null`, NULL for text
/// that spells none.
///
/// # Errors
/// 22007, 22008, 22P02.
pub fn from_text(texts: &StringViewArray, wanted: &DataType, or_null: bool) -> Result<ArrayRef> {
    fn each<T: FromStr<Err = Error>>(
        texts: &StringViewArray,
        or_null: bool,
        mut put: impl FnMut(Option<T>) -> Result<()>,
    ) -> Result<()> {
        for text in texts {
            match text.map(T::from_str).transpose() {
                Err(_) if or_null => put(None)?,
                value => put(value?)?,
            }
        }
        Ok(())
    }
    if *wanted == UUID {
        let mut out = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
        each(texts, or_null, |value: Option<Uuid>| {
            match value {
                Some(v) => out.append_value(v.as_bytes()).map_err(|e| from_arrow(&e))?,
                None => out.append_null(),
            }
            Ok(())
        })?;
        return Ok(Arc::new(out.finish()));
    }
    let mut out = Time64MicrosecondBuilder::with_capacity(texts.len());
    each(texts, or_null, |value: Option<Time>| {
        out.append_option(value.map(Time::micros));
        Ok(())
    })?;
    Ok(Arc::new(out.finish()))
}

/// The text of each value of `array`, whose type [`has_own_text`].
///
/// # Errors
/// Internal for another type, 22008 for a time that is none.
pub fn to_text(array: &ArrayRef) -> Result<StringViewArray> {
    fn texts<T: Display>(values: impl ExactSizeIterator<Item = Result<Option<T>>>) -> Result<StringViewArray> {
        let mut out = StringViewBuilder::with_capacity(values.len());
        for value in values {
            out.append_option(value?.map(|v| v.to_string()));
        }
        Ok(out.finish())
    }
    if *array.data_type() == UUID {
        let uuids: &FixedSizeBinaryArray = array.as_fixed_size_binary();
        return texts(uuids.iter().map(|v| Ok(v.and_then(|v| <[u8; 16]>::try_from(v).ok()).map(Uuid::from))));
    }
    let times = cast(array, &TIME).map_err(|e| from_arrow(&e))?;
    let times = times
        .as_primitive_opt::<Time64MicrosecondType>()
        .ok_or_else(|| Error::internal(format!("times of type {}", array.data_type())))?;
    texts(times.iter().map(|v| v.map(Time::from_micros).transpose()))
}
