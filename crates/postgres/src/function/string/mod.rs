//! Functions of texts.

mod bytes;
mod format;
mod length;
mod quote;
mod regexp_split;

pub(crate) use bytes::lengths;
pub(crate) use format::format;
pub(crate) use length::bounded;
pub(crate) use quote::quoted;
pub(crate) use regexp_split::regexp_split_to_array;
