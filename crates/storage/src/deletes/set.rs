//! A set of row offsets of one container.

use std::ops::Range;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::latest::{CHUNK_ROWS, CHUNK_WORDS};
use crate::codec::{Decoder, Encoder};
use crate::error::Result;
use crate::ids::RowRef;
use crate::limits;

/// Offsets of one container, immutable and cheap to clone. The form follows from the size, so equal sets are equal
/// values: build one with `collect`, [`DeleteSet::from_sorted`], [`DeleteSet::range`] or [`DeleteSet::from_words`].
#[derive(Clone, Debug, PartialEq)]
pub enum DeleteSet {
    /// One row.
    One(u32),
    /// No row, or up to [`limits::DELETE_SET_FEW_MAX`] of them, ascending.
    Few(Arc<[u32]>),
    /// Many rows, compressed.
    Bitmap(Arc<RoaringBitmap>),
}

impl DeleteSet {
    /// The set without rows.
    #[must_use]
    pub fn empty() -> Self {
        Self::Few(Arc::from([]))
    }

    /// The set of `offsets`, which ascend without repeats.
    #[must_use]
    pub fn from_sorted(offsets: &[u32]) -> Self {
        debug_assert!(offsets.is_sorted_by(|a, b| a < b));
        match offsets {
            [one] => Self::One(*one),
            few if few.len() <= limits::DELETE_SET_FEW_MAX => Self::Few(few.into()),
            many => Self::Bitmap(Arc::new(many.iter().copied().collect())),
        }
    }

    /// All rows of `range`: cheap, however long it is.
    #[must_use]
    pub fn range(range: Range<u32>) -> Self {
        if range.len() <= limits::DELETE_SET_FEW_MAX {
            return Self::from_sorted(&range.collect::<Vec<_>>());
        }
        let mut bitmap = RoaringBitmap::new();
        bitmap.insert_range(range);
        Self::Bitmap(Arc::new(bitmap))
    }

    /// The rows whose bit is on in `words`; row 0 is the lowest bit of the first word.
    #[must_use]
    pub fn from_words(words: &[u64]) -> Self {
        if mainstem_kernels::bitmap::count_ones(words) <= limits::DELETE_SET_FEW_MAX {
            let mut offsets = Vec::new();
            mainstem_kernels::bitmap::indices(words, &mut offsets);
            return Self::from_sorted(&offsets);
        }
        let mut bytes = Vec::new();
        mainstem_kernels::cast::to_le_bytes(words, &mut bytes);
        Self::from_bitmap(RoaringBitmap::from_lsb0_bytes(0, &bytes))
    }

    /// The set of `bitmap`'s rows.
    #[must_use]
    pub fn from_bitmap(mut bitmap: RoaringBitmap) -> Self {
        if bitmap.len() <= limits::DELETE_SET_FEW_MAX as u64 {
            return Self::from_sorted(&bitmap.iter().collect::<Vec<_>>());
        }
        // Neighbours are what is deleted most: a range takes a few bytes, in memory and in a record.
        bitmap.optimize();
        Self::Bitmap(Arc::new(bitmap))
    }

    /// The rows of any of `sets`.
    #[must_use]
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a DeleteSet>) -> Self {
        let mut few = Vec::new();
        let mut many = RoaringBitmap::new();
        for set in sets {
            match set {
                Self::One(offset) => few.push(*offset),
                Self::Few(offsets) => few.extend_from_slice(offsets),
                Self::Bitmap(bitmap) => many |= bitmap.as_ref(),
            }
        }
        if many.is_empty() {
            return few.into_iter().collect();
        }
        many.extend(few);
        Self::from_bitmap(many)
    }

    /// Whether row `offset` is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, offset: u32) -> bool {
        match self {
            Self::One(one) => *one == offset,
            Self::Few(few) => few.binary_search(&offset).is_ok(),
            Self::Bitmap(bitmap) => bitmap.contains(offset),
        }
    }

    /// Rows in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Few(few) => few.len(),
            Self::Bitmap(bitmap) => bitmap.len() as usize,
        }
    }

    /// Whether no row is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest offset.
    #[must_use]
    pub fn max(&self) -> Option<u32> {
        match self {
            Self::One(one) => Some(*one),
            Self::Few(few) => few.last().copied(),
            Self::Bitmap(bitmap) => bitmap.max(),
        }
    }

    /// The offsets, ascending.
    #[must_use]
    pub fn iter(&self) -> Offsets<'_> {
        Offsets(match self {
            Self::One(one) => Inner::Few(std::slice::from_ref(one).iter()),
            Self::Few(few) => Inner::Few(few.iter()),
            Self::Bitmap(bitmap) => Inner::Bitmap(bitmap.iter()),
        })
    }

    /// The set as one unbroken range, if it is one with more than [`limits::DELETE_SET_FEW_MAX`] rows: what a delete of
    /// a whole container looks like.
    #[must_use]
    pub(super) fn as_long_range(&self) -> Option<Range<u32>> {
        let Self::Bitmap(bitmap) = self else { return None };
        let (min, max) = (bitmap.min()?, bitmap.max()?);
        (u64::from(max - min) + 1 == bitmap.len()).then_some(min..max + 1)
    }

    /// Some row of both sets, if there is one.
    #[must_use]
    pub fn first_common(&self, other: &Self) -> Option<u32> {
        if let (Self::Bitmap(a), Self::Bitmap(b)) = (self, other) {
            return if a.is_disjoint(b) { None } else { (a.as_ref() & b.as_ref()).min() };
        }
        let (small, large) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        small.iter().find(|&offset| large.contains(offset))
    }

    /// What [`DeleteSet::first_common`] with `other` costs, in look-ups of one row each: 10 to 20 ns.
    #[must_use]
    pub(super) fn lookups_with(&self, other: &Self) -> usize {
        /// Two bitmaps are compared by words: 65,536 rows take as long as this many look-ups.
        const OF_CHUNK: usize = 16;
        match (self, other) {
            (Self::Bitmap(_), Self::Bitmap(_)) => {
                let rows = self.max().min(other.max()).unwrap_or(0) as usize;
                (rows / CHUNK_ROWS as usize + 1) * OF_CHUNK
            }
            _ => self.len().min(other.len()),
        }
    }

    /// Gives `take` the set as bits, [`CHUNK_ROWS`] rows at a time: the number of the chunk and its words. Chunks
    /// without a row are left out.
    pub(super) fn for_each_chunk(&self, mut take: impl FnMut(u32, &[u64; CHUNK_WORDS])) {
        let mut words = [0; CHUNK_WORDS];
        let mut chunk = None;
        for offset in self {
            if chunk != Some(offset / CHUNK_ROWS)
                && let Some(full) = chunk.replace(offset / CHUNK_ROWS)
            {
                take(full, &words);
                words = [0; CHUNK_WORDS];
            }
            mainstem_kernels::bitmap::set(&mut words, (offset % CHUNK_ROWS) as usize);
        }
        if let Some(last) = chunk {
            take(last, &words);
        }
    }

    /// Bytes that [`DeleteSet::encode`] appends, or a few more.
    #[must_use]
    pub fn encoded_bytes(&self) -> usize {
        /// Longest varint of an offset or a count below 2^28.
        const VARINT: usize = 4;
        match self {
            Self::Bitmap(bitmap) => 1 + VARINT + bitmap.serialized_size(),
            _ => 1 + VARINT + self.len() * VARINT,
        }
    }

    /// Appends the set to `out`. Few rows: false, their count, and the distance of each from the one before (varints).
    /// Many: true, then a length and the portable Roaring format.
    pub fn encode(&self, out: &mut Encoder) {
        out.bool(matches!(self, Self::Bitmap(_)));
        if let Self::Bitmap(bitmap) = self {
            let mut bytes = Vec::with_capacity(bitmap.serialized_size());
            #[expect(clippy::expect_used, reason = "writing to a Vec does not fail")]
            bitmap.serialize_into(&mut bytes).expect("a Vec takes all bytes");
            return out.bytes(&bytes);
        }
        out.varint(self.len() as u64);
        let mut next = 0;
        for offset in self {
            out.varint(u64::from(offset - next));
            next = offset + 1;
        }
    }

    /// Reads what [`DeleteSet::encode`] wrote. Errors: Corrupt, also for offsets that no row can have.
    pub fn decode(input: &mut Decoder<'_>) -> Result<Self> {
        let set = if input.bool()? {
            let bytes = input.bytes()?;
            let bitmap = RoaringBitmap::deserialize_from(bytes).map_err(|e| input.corrupt(e))?;
            Self::from_bitmap(bitmap)
        } else {
            let count = input.count(1)?;
            let mut offsets = Vec::with_capacity(count);
            let mut next = 0u32;
            for _ in 0..count {
                let offset = next.checked_add(input.varint_u32()?).filter(|&offset| offset < RowRef::OFFSETS);
                let offset = offset.ok_or_else(|| input.corrupt("an offset beyond the rows of a container"))?;
                offsets.push(offset);
                next = offset + 1;
            }
            Self::from_sorted(&offsets)
        };
        match set.max() {
            Some(max) if max >= RowRef::OFFSETS => Err(input.corrupt(format_args!("row {max} in a set of deletes"))),
            _ => Ok(set),
        }
    }

    /// Bytes behind the value itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Few(few) => size_of_val(few.as_ref()) + 2 * size_of::<usize>(),
            Self::Bitmap(bitmap) => bitmap.serialized_size() + size_of::<RoaringBitmap>(),
        }
    }
}

impl FromIterator<u32> for DeleteSet {
    fn from_iter<I: IntoIterator<Item = u32>>(offsets: I) -> Self {
        let mut offsets = offsets.into_iter();
        let (Some(first), second) = (offsets.next(), offsets.next()) else { return Self::empty() };
        let Some(second) = second else { return Self::One(first) };
        let mut all = vec![first, second];
        all.extend(offsets);
        if !all.is_sorted_by(|a, b| a < b) {
            all.sort_unstable();
            all.dedup();
        }
        Self::from_sorted(&all)
    }
}

impl<'a> IntoIterator for &'a DeleteSet {
    type Item = u32;
    type IntoIter = Offsets<'a>;

    fn into_iter(self) -> Offsets<'a> {
        self.iter()
    }
}

/// The offsets of a [`DeleteSet`], ascending.
pub struct Offsets<'a>(Inner<'a>);

enum Inner<'a> {
    Few(std::slice::Iter<'a, u32>),
    Bitmap(roaring::bitmap::Iter<'a>),
}

impl Iterator for Offsets<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match &mut self.0 {
            Inner::Few(few) => few.next().copied(),
            Inner::Bitmap(bitmap) => bitmap.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Inner::Few(few) => few.size_hint(),
            Inner::Bitmap(bitmap) => bitmap.size_hint(),
        }
    }
}
