//! Conversions from and to other crates' types, each behind a feature of the crate's name: none is on by default.
//!
//! Invariant: what one side cannot hold exactly is an error (22003, 22008) where there can be one; only digits of a
//! second behind the microsecond are cut, as for `SystemTime`.

#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "rust_decimal")]
mod rust_decimal;
#[cfg(feature = "uuid")]
mod uuid;
