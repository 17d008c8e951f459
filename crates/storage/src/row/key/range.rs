//! A range of keys: those that begin with given values, and whose next column lies between bounds.

use std::ops::Bound;

use super::KeyCodec;
use crate::error::Result;
use crate::row::Value;

/// The keys whose first columns equal given values, and whose next column lies between two bounds; as values, and as a
/// range of encoded keys.
#[derive(Clone, Debug)]
pub struct KeyRange {
    equal: Vec<Value>,
    low: Bound<Value>,
    high: Bound<Value>,
    from: Vec<u8>,
    upto: Option<Vec<u8>>,
}

impl KeyRange {
    /// The keys of `codec` that have the values `equal` in their first columns, and in the column behind them one
    /// between `low` and `high`, both of which are open when `equal` has all columns.
    ///
    /// # Errors
    /// Those of [`KeyCodec::encode_values`]: no key has NULL, or a value of another type.
    pub fn new(codec: &KeyCodec, equal: Vec<Value>, low: Bound<Value>, high: Bound<Value>) -> Result<Self> {
        let encoded = |last: Option<&Value>| {
            let mut key = Vec::with_capacity(16);
            let values: Vec<Value> = equal.iter().chain(last).cloned().collect();
            codec.encode_prefix(&values, &mut key).map(|()| key)
        };
        // No key lies below nothing.
        let (mut nothing, mut from) = (false, Vec::new());
        match &low {
            Bound::Unbounded => from = encoded(None)?,
            Bound::Included(value) => from = encoded(Some(value))?,
            Bound::Excluded(value) => match successor(encoded(Some(value))?) {
                Some(next) => from = next,
                None => nothing = true,
            },
        }
        let upto = match &high {
            _ if nothing => Some(Vec::new()),
            Bound::Unbounded => successor(encoded(None)?),
            Bound::Included(value) => successor(encoded(Some(value))?),
            Bound::Excluded(value) => Some(encoded(Some(value))?),
        };
        Ok(Self { equal, low, high, from, upto })
    }

    /// The values of the first columns.
    #[must_use]
    pub fn equal(&self) -> &[Value] {
        &self.equal
    }

    /// Where the column behind them begins.
    #[must_use]
    pub fn low(&self) -> Bound<&Value> {
        self.low.as_ref()
    }

    /// Where it ends.
    #[must_use]
    pub fn high(&self) -> Bound<&Value> {
        self.high.as_ref()
    }

    /// The least that an encoded key may be; not always a whole key.
    #[must_use]
    pub fn from(&self) -> &[u8] {
        &self.from
    }

    /// What an encoded key must be below; `None` without such a bound.
    #[must_use]
    pub fn upto(&self) -> Option<&[u8]> {
        self.upto.as_deref()
    }

    /// Whether the encoded `key` is one of them.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.upto.as_deref().is_none_or(|upto| key < upto)
    }
}

/// The least bytes above all that begin with `bytes`; `None` if there are none.
fn successor(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = bytes.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(bytes);
        }
        bytes.pop();
    }
    None
}
