//! Bounds for metadata: long ones are shortened, so that metadata stays small, and then say so.
//!
//! A shortened lower bound is a prefix, which is below what it was cut from. A shortened upper bound is a prefix with
//! its last place raised, which is above everything that starts with the prefix.

use super::format::{KeyBounds, ZoneMap};
use crate::limits::{KEY_BOUND_BYTES_MAX, ZONE_TEXT_BYTES_MAX};
use crate::row::Value;

/// The zone map of values from `min` to `max`, both NULL without any.
pub(crate) fn zone_map(min: Value, max: Value) -> ZoneMap {
    let short_min = match &min {
        Value::Text(text) => cut_text(text, ZONE_TEXT_BYTES_MAX).map(|cut| Value::Text(cut.into())),
        Value::Bytes(bytes) => {
            bytes.get(..ZONE_TEXT_BYTES_MAX).filter(|cut| cut.len() < bytes.len()).map(|cut| Value::Bytes(cut.into()))
        }
        _ => None,
    };
    let short_max = match &max {
        Value::Text(text) => {
            cut_text(text, ZONE_TEXT_BYTES_MAX).and_then(raised_text).map(|cut| Value::Text(cut.into()))
        }
        Value::Bytes(bytes) => raised_bytes(bytes, ZONE_TEXT_BYTES_MAX).map(|cut| Value::Bytes(cut.into())),
        _ => None,
    };
    ZoneMap {
        min_exact: short_min.is_none(),
        max_exact: short_max.is_none(),
        min: short_min.unwrap_or(min),
        max: short_max.unwrap_or(max),
    }
}

/// The bounds of keys from `first` to `last`. Of keys in order, the bounds are in order too.
pub(crate) fn key_bounds(first: &[u8], last: &[u8]) -> KeyBounds {
    KeyBounds {
        min: first.get(..KEY_BOUND_BYTES_MAX).unwrap_or(first).into(),
        max: raised_bytes(last, KEY_BOUND_BYTES_MAX).unwrap_or_else(|| last.into()).into(),
    }
}

/// The longest prefix of whole characters within `bytes_max`; `None` if that is all of `text`.
fn cut_text(text: &str, bytes_max: usize) -> Option<&str> {
    if text.len() <= bytes_max {
        return None;
    }
    text.get(..text.floor_char_boundary(bytes_max))
}

/// The least text above all that start with `prefix`; `None` if there is none.
fn raised_text(prefix: &str) -> Option<String> {
    let mut raised = prefix.to_owned();
    while let Some(last) = raised.pop() {
        // Surrogates are no characters: the range steps over them.
        if let Some(next) = (last..=char::MAX).nth(1) {
            raised.push(next);
            return Some(raised);
        }
    }
    None
}

/// The least bytes above all that start with the first `bytes_max` bytes; `None` if `bytes` are no longer, or there are
/// none.
fn raised_bytes(bytes: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    if bytes.len() <= bytes_max {
        return None;
    }
    let mut raised = bytes.get(..bytes_max)?.to_vec();
    while let Some(last) = raised.pop() {
        if let Some(next) = last.checked_add(1) {
            raised.push(next);
            return Some(raised);
        }
    }
    None
}

#[cfg(test)]
mod tests;
