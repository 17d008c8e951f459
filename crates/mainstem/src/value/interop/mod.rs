//! Values of other crates' types, each behind a feature of the crate's name: none is on by default.
//!
//! Comes in: dates and times of `chrono`, `uuid::Uuid`, `rust_decimal::Decimal`, `serde_json::Value`. Goes out: the
//! same SQL values that this crate's own types are, and back. Invariant: what one side cannot hold exactly is an error
//! (22003, 22008) where there can be one; only digits of a second behind the microsecond are cut, as for `SystemTime`.
//! Spans of time (`chrono::Duration`) are none of them, for intervals are no values of the library. It does not own:
//! rules of SQL between types.

#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;
#[cfg(feature = "serde_json")]
mod serde_json;
#[cfg(feature = "uuid")]
mod uuid;
