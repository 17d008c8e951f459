//! What keys are: numbers that lie in the entries, or bytes of any length beside them.

use std::cmp::Ordering;
use std::fmt::Debug;

use super::pages::{IndexSpace, no_names};
use crate::error::Result;
use crate::limits;
use crate::row::key::hash_key;

/// A kind of keys, and how an index keeps them.
pub trait KeyKind: Debug {
    /// As they come and go: some bytes, whose order is that of the keys.
    type Key<'k>: Copy + Debug + Send + Sync;
    /// As they lie in an entry.
    type Stored: Copy + Debug + Send + Sync;
    /// What lies beside the entries.
    type Heap: Debug + Send + Sync;

    /// A place for keys of an index in `space`.
    fn heap(space: &IndexSpace) -> Self::Heap;

    /// Takes over what `other` holds.
    fn adopt(heap: &mut Self::Heap, other: Self::Heap);

    /// Bytes of memory beside the entries.
    fn bytes(heap: &Self::Heap) -> usize;

    /// Keeps `key`.
    ///
    /// # Errors
    /// Full (54000) when there is no place left.
    fn store(heap: &mut Self::Heap, key: Self::Key<'_>) -> Result<Self::Stored>;

    /// The key again.
    fn load(heap: &Self::Heap, stored: Self::Stored) -> Self::Key<'_>;

    /// How many bytes it has.
    fn len(key: Self::Key<'_>) -> usize;

    /// The byte at `at`, if the key does not end before.
    fn byte(key: Self::Key<'_>, at: usize) -> Option<u8>;

    /// How many first bytes both have in common, of which `from` are known to be equal.
    fn shared(a: Self::Key<'_>, b: Self::Key<'_>, from: usize) -> usize;

    /// Their order.
    fn compare(a: Self::Key<'_>, b: Self::Key<'_>) -> Ordering;

    /// 64 bits that look random, the upper ones above all.
    fn hash(key: Self::Key<'_>) -> u64;
}

macro_rules! number_keys {
    ($(#[$about:meta])* $kind:ident, $number:ty) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $kind;

        impl KeyKind for $kind {
            type Key<'k> = $number;
            type Stored = $number;
            type Heap = ();

            fn heap(_: &IndexSpace) {}

            fn adopt((): &mut (), (): ()) {}

            fn bytes((): &()) -> usize {
                0
            }

            #[inline]
            fn store((): &mut (), key: $number) -> Result<$number> {
                Ok(key)
            }

            #[inline]
            fn load((): &(), stored: $number) -> $number {
                stored
            }

            #[inline]
            fn len(_: $number) -> usize {
                size_of::<$number>()
            }

            #[inline]
            fn byte(key: $number, at: usize) -> Option<u8> {
                let below = (size_of::<$number>() - 1).checked_sub(at)?;
                Some((key >> (8 * below)) as u8)
            }

            #[inline]
            fn shared(a: $number, b: $number, _from: usize) -> usize {
                (a ^ b).leading_zeros() as usize / 8
            }

            #[inline]
            fn compare(a: $number, b: $number) -> Ordering {
                a.cmp(&b)
            }

            /// The upper half of what the golden section makes of the number: neighbours lie far apart.
            #[inline]
            fn hash(key: $number) -> u64 {
                let wide = u64::from(key);
                (wide ^ wide >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            }
        }
    };
}

number_keys!(
    /// Keys of 4 bytes: numbers without sign, in their order.
    U32Keys,
    u32
);
number_keys!(
    /// Keys of 8 bytes: numbers without sign, in their order.
    U64Keys,
    u64
);

/// Keys of any length, compared byte by byte; one may be the beginning of another one, or empty.
#[derive(Clone, Copy, Debug)]
pub struct ByteKeys;

/// Where a key lies.
#[derive(Clone, Copy, Debug)]
pub struct StoredBytes {
    /// The page, and where it begins there.
    at: u32,
    len: u32,
}

/// The bytes of keys, one behind the other in pages. A key lies in one page, which is as long as it has to be.
#[derive(Debug)]
pub struct ByteHeap {
    space: IndexSpace,
    /// By number; those of others are empty.
    pages: Vec<Vec<u8>>,
    open: usize,
}

/// Which of the counters of a space the pages of bytes are numbered by.
const PAGES_OF_BYTES: usize = 5;
/// Where in its page a key may begin at most.
const BEGINS_BELOW: usize = 1 << limits::INDEX_KEY_PAGE_BITS;

impl ByteHeap {
    fn push(&mut self, key: &[u8]) -> Result<StoredBytes> {
        let len = u32::try_from(key.len()).map_err(|_| no_names())?;
        let fits = |page: &Vec<u8>| page.len() + key.len() <= BEGINS_BELOW && page.len() < BEGINS_BELOW;
        if self.pages.get(self.open).is_none_or(|page| !fits(page)) {
            self.open_page(key.len())?;
        }
        let page = &mut self.pages[self.open];
        let at = (self.open << limits::INDEX_KEY_PAGE_BITS | page.len()) as u32;
        page.extend_from_slice(key);
        Ok(StoredBytes { at, len })
    }

    fn open_page(&mut self, key: usize) -> Result<()> {
        let number = self.space.next(PAGES_OF_BYTES) as usize;
        if number >> (u32::BITS - limits::INDEX_KEY_PAGE_BITS) > 0 {
            return Err(no_names());
        }
        if self.pages.len() <= number {
            self.pages.resize_with(number + 1, Vec::new);
        }
        // The first page grows, for many indexes are small.
        let is_first = self.open == usize::MAX;
        self.pages[number].reserve_exact(if is_first { key } else { key.max(BEGINS_BELOW) });
        self.open = number;
        Ok(())
    }
}

impl KeyKind for ByteKeys {
    type Key<'k> = &'k [u8];
    type Stored = StoredBytes;
    type Heap = ByteHeap;

    fn heap(space: &IndexSpace) -> ByteHeap {
        ByteHeap { space: space.clone(), pages: Vec::new(), open: usize::MAX }
    }

    fn adopt(heap: &mut ByteHeap, other: ByteHeap) {
        if heap.pages.len() < other.pages.len() {
            heap.pages.resize_with(other.pages.len(), Vec::new);
        }
        for (number, page) in other.pages.into_iter().enumerate().filter(|(_, page)| page.capacity() > 0) {
            heap.pages[number] = page;
        }
        if heap.open == usize::MAX {
            heap.open = other.open;
        }
    }

    fn bytes(heap: &ByteHeap) -> usize {
        let bytes: usize = heap.pages.iter().map(Vec::capacity).sum();
        bytes + heap.pages.capacity() * size_of::<Vec<u8>>()
    }

    fn store(heap: &mut ByteHeap, key: &[u8]) -> Result<StoredBytes> {
        heap.push(key)
    }

    #[inline]
    fn load(heap: &ByteHeap, stored: StoredBytes) -> &[u8] {
        let page = &heap.pages[(stored.at >> limits::INDEX_KEY_PAGE_BITS) as usize];
        let start = stored.at as usize & (BEGINS_BELOW - 1);
        &page[start..start + stored.len as usize]
    }

    #[inline]
    fn len(key: &[u8]) -> usize {
        key.len()
    }

    #[inline]
    fn byte(key: &[u8], at: usize) -> Option<u8> {
        key.get(at).copied()
    }

    #[inline]
    fn shared(a: &[u8], b: &[u8], from: usize) -> usize {
        let (a, b) = (a.get(from..).unwrap_or_default(), b.get(from..).unwrap_or_default());
        let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0).take_while(|(a, b)| a == b).count();
        let whole = 8 * words;
        from + whole + a.iter().zip(b).skip(whole).take_while(|(a, b)| a == b).count()
    }

    #[inline]
    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }

    #[inline]
    fn hash(key: &[u8]) -> u64 {
        hash_key(key)
    }
}
