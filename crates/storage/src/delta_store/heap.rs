//! The long strings of one column of one block, in append-only chunks that Arrow view arrays point into.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_buffer::Buffer;
use bytes::Bytes;
use mainstem_kernels::append_buffer::AppendBuffer;

use super::directory::Directory;
use crate::limits;

/// Longest string that stands in its view (Arrow columnar format, variable-size binary view layout).
const INLINE_BYTES_MAX: u32 = 12;

/// See the module.
pub(super) struct Heap {
    chunks: Directory<Arc<AppendBuffer<u8>>>,
}

impl Heap {
    pub(super) fn new() -> Self {
        Self { chunks: Directory::new() }
    }

    /// Stores `value` and returns its Arrow view; `None` if there is no room. For the one writer.
    pub(super) fn view_of(&self, value: &[u8]) -> Option<u128> {
        if value.len() <= INLINE_BYTES_MAX as usize {
            return Some(make_view(value, 0, 0));
        }
        let has_room = |chunk: &Arc<AppendBuffer<u8>>| chunk.capacity() - chunk.len() >= value.len();
        if !self.chunks.last().is_some_and(has_room) && !self.chunks.push(self.next_chunk(value.len())) {
            return None;
        }
        let chunk = self.chunks.last()?;
        let offset = u32::try_from(chunk.len()).ok()?;
        chunk.extend_from_slice(value).ok()?;
        Some(make_view(value, (self.chunks.len() - 1) as u32, offset))
    }

    /// Chunks double from the smallest to the largest size; a longer value gets a chunk of its own.
    fn next_chunk(&self, value_bytes: usize) -> Arc<AppendBuffer<u8>> {
        let doublings = self.chunks.len().min(usize::BITS as usize / 2);
        let bytes = (limits::DELTA_HEAP_CHUNK_BYTES_MIN << doublings).min(limits::DELTA_HEAP_CHUNK_BYTES_MAX);
        Arc::new(AppendBuffer::with_capacity(bytes.max(value_bytes)))
    }

    /// The bytes of the value whose view stands at `index` of `views`.
    pub(super) fn value<'a>(&'a self, views: &'a [u128], index: usize) -> Option<&'a [u8]> {
        let (range, chunk) = match locate(*views.get(index)?) {
            Place::Inline(range) => {
                let start = index * size_of::<u128>();
                return mainstem_kernels::cast::as_bytes(views).get(start + range.start..start + range.end);
            }
            Place::Chunk(chunk, range) => (range, chunk),
        };
        self.chunks.get(chunk)?.as_slice().get(range)
    }

    /// The chunks as Arrow buffers, with what is published of them.
    pub(super) fn buffers(&self) -> Vec<Buffer> {
        self.chunks.iter().map(|chunk| Buffer::from(Bytes::from_owner(chunk.bytes()))).collect()
    }

    /// Bytes reserved.
    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.capacity()).sum()
    }
}

enum Place {
    /// These bytes of the view itself.
    Inline(Range<usize>),
    /// These bytes of this chunk.
    Chunk(usize, Range<usize>),
}

/// Takes a view apart: length in the low 32 bits; behind it 12 bytes of value, or prefix, buffer and offset.
fn locate(view: u128) -> Place {
    let bytes = view as u32;
    if bytes <= INLINE_BYTES_MAX {
        return Place::Inline(4..4 + bytes as usize);
    }
    let (chunk, offset) = ((view >> 64) as u32 as usize, (view >> 96) as usize);
    Place::Chunk(chunk, offset..offset + bytes as usize)
}

const _: () = assert!(cfg!(target_endian = "little"), "the bytes of a short string are read in place");
