//! A published prefix as bytes.

use super::AppendBuffer;
use crate::cast::{Pod, as_bytes};
use std::fmt;
use std::sync::Arc;

/// The prefix of an [`AppendBuffer`] that was published when this was made, as bytes in native order. Keeps the buffer
/// alive; later appends do not show. Hand it to `bytes::Bytes::from_owner` for an Arrow buffer without a copy.
#[derive(Clone)]
pub struct PublishedBytes<T: Pod> {
    buffer: Arc<AppendBuffer<T>>,
    len: usize,
}

impl<T: Pod> PublishedBytes<T> {
    /// `len` values of `buffer`, which the caller has seen published.
    pub(super) fn new(buffer: Arc<AppendBuffer<T>>, len: usize) -> Self {
        Self { buffer, len }
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[T] {
        self.buffer.prefix(self.len)
    }
}

impl<T: Pod> AsRef<[u8]> for PublishedBytes<T> {
    fn as_ref(&self) -> &[u8] {
        as_bytes(self.values())
    }
}

impl<T: Pod> fmt::Debug for PublishedBytes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishedBytes").field("values", &self.len).finish()
    }
}
