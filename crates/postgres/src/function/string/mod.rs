//! Functions of texts.

mod bytes;
mod length;
mod quote;

pub(crate) use bytes::lengths;
pub(crate) use length::bounded;
pub(crate) use quote::quoted;
