//! One SQL value.

/// A value of one column, in the storage form of its type. Which variant a [`crate::schema::DataType`] uses:
/// Boolean → `Boolean`; SmallInt, Integer, BigInt, Date (days), Timestamp and TimestampTz (microseconds) → `Int`;
/// Decimal → `Decimal` (unscaled); Real → `Real`; Double → `Double`; Text → `Text`; Bytea → `Bytes`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL, of any type.
    Null,
    /// A truth value.
    Boolean(bool),
    /// Integers, days and microseconds.
    Int(i64),
    /// The unscaled integer of a decimal.
    Decimal(i128),
    /// A 4-byte float, normalised: no -0.0, one NaN.
    Real(f32),
    /// An 8-byte float, normalised: no -0.0, one NaN.
    Double(f64),
    /// Text, compared by bytes.
    Text(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
}

impl Value {
    /// Whether this is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}
