//! Many keys back to back, and their order.

use std::cmp::Ordering;

/// Keys of one codec, contiguous.
#[derive(Clone, Debug)]
pub struct Keys {
    data: Vec<u8>,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// `len` keys of `width` bytes.
    Fixed { width: usize, len: usize },
    /// End of each key in the data.
    Variable { ends: Vec<usize> },
}

/// The order of some keys.
#[derive(Debug)]
pub struct Sorted {
    /// Row numbers in key order; equal keys in row order.
    pub order: Vec<u32>,
    /// The first place of the order whose row has the key of the row before it.
    pub first_repeated: Option<usize>,
}

impl Sorted {
    /// Of numbers that are equal where keys are, in their order, with their rows.
    fn of<T: PartialEq>(numbered: &[(T, u32)]) -> Self {
        let first_repeated = numbered.windows(2).position(|pair| pair[0].0 == pair[1].0).map(|at| at + 1);
        Self { order: rows_of(numbered), first_repeated }
    }
}

/// Keys below which sorting by comparison beats counting digits.
const RADIX_KEYS_MIN: usize = 256;

impl Keys {
    pub(super) fn fixed(data: Vec<u8>, width: usize, len: usize) -> Self {
        debug_assert_eq!(data.len(), width * len);
        Self { data, shape: Shape::Fixed { width, len } }
    }

    pub(super) fn variable(data: Vec<u8>, ends: Vec<usize>) -> Self {
        debug_assert_eq!(ends.last().copied().unwrap_or(0), data.len());
        Self { data, shape: Shape::Variable { ends } }
    }

    /// Appends `others`, of the same codec.
    pub fn append(&mut self, others: &Self) {
        match (&mut self.shape, &others.shape) {
            (Shape::Fixed { len, .. }, Shape::Fixed { len: more, .. }) => *len += more,
            (Shape::Variable { ends }, Shape::Variable { ends: more }) => {
                let before = self.data.len();
                ends.extend(more.iter().map(|end| before + end));
            }
            (Shape::Fixed { .. }, Shape::Variable { .. }) | (Shape::Variable { .. }, Shape::Fixed { .. }) => return,
        }
        self.data.extend_from_slice(&others.data);
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.shape {
            Shape::Fixed { len, .. } => *len,
            Shape::Variable { ends } => ends.len(),
        }
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all keys.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Bytes of memory that they take.
    #[must_use]
    pub fn memory(&self) -> usize {
        let ends = match &self.shape {
            Shape::Fixed { .. } => 0,
            Shape::Variable { ends } => ends.capacity() * size_of::<usize>(),
        };
        self.data.capacity() + ends
    }

    /// Key `i`. Panics if `i` is not below [`Keys::len`].
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize) -> &[u8] {
        match &self.shape {
            Shape::Fixed { width, len } => {
                assert!(i < *len, "key {i} of {len}");
                &self.data[i * width..(i + 1) * width]
            }
            Shape::Variable { ends } => {
                let start = i.checked_sub(1).map_or(0, |before| ends[before]);
                &self.data[start..ends[i]]
            }
        }
    }

    /// The keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i))
    }

    /// How many keys, which are sorted, come before the first that is not `below`.
    #[must_use]
    pub fn partition_point(&self, below: impl Fn(&[u8]) -> bool) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if below(self.get(middle)) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// Whether each key is at or above the one before it.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        match &self.shape {
            Shape::Fixed { width: 8, .. } => self.words().is_sorted(),
            _ => (1..self.len()).all(|i| self.get(i - 1) <= self.get(i)),
        }
    }

    /// Whether keys `i` and `j` are the same. Panics if one of them is not below [`Keys::len`].
    #[inline]
    #[must_use]
    pub fn same(&self, i: usize, j: usize) -> bool {
        let (left, right) = (self.get(i), self.get(j));
        match (<&[u8; 8]>::try_from(left), <&[u8; 8]>::try_from(right)) {
            (Ok(left), Ok(right)) => left == right,
            _ => left == right,
        }
    }

    /// Keys of 8 bytes as numbers that order as they do.
    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.data.as_chunks().0.iter().map(|key| u64::from_be_bytes(*key))
    }

    /// The row numbers in key order; equal keys stay in row order.
    #[must_use]
    pub fn sorted_permutation(&self) -> Vec<u32> {
        self.sorted().order
    }

    /// The row numbers in key order, as [`Keys::sorted_permutation`], and whether a key is there twice.
    #[must_use]
    pub fn sorted(&self) -> Sorted {
        if self.is_sorted() {
            let first_repeated = (1..self.len()).find(|at| self.same(at - 1, *at));
            return Sorted { order: (0..self.len() as u32).collect(), first_repeated };
        }
        match self.shape {
            Shape::Fixed { width: 8, .. } => radix_sorted(self.words().zip(0..).collect()),
            Shape::Fixed { width, .. } if width <= 8 => radix_sorted(self.numbered(prefix)),
            Shape::Fixed { width, .. } => {
                let varying = self.varying_bytes(width);
                if varying.len() <= 8 {
                    let number = |key: &[u8]| varying.iter().fold(0, |number, at| number << 8 | u64::from(key[*at]));
                    return radix_sorted(self.numbered(number));
                }
                if width > 16 {
                    return self.sorted_by_prefix();
                }
                let mut numbered = self.numbered(wide_prefix);
                numbered.sort_unstable();
                Sorted::of(&numbered)
            }
            Shape::Variable { .. } => self.sorted_by_prefix(),
        }
    }

    fn sorted_by_prefix(&self) -> Sorted {
        let mut numbered = self.numbered(prefix);
        numbered.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.compare_rows(a.1, b.1)));
        let repeats = |(a, b): (&(u64, u32), &(u64, u32))| a.0 == b.0 && self.same(a.1 as usize, b.1 as usize);
        let first_repeated = numbered.iter().zip(numbered.iter().skip(1)).position(repeats).map(|at| at + 1);
        Sorted { order: rows_of(&numbered), first_repeated }
    }

    /// Places of the bytes that are not the same in all keys, which are of `width` bytes: these alone order them.
    fn varying_bytes(&self, width: usize) -> Vec<usize> {
        let Some(first) = self.data.get(..width) else { return Vec::new() };
        let mut differ = vec![0; width];
        for key in self.data.chunks_exact(width) {
            for ((differ, byte), first) in differ.iter_mut().zip(key).zip(first) {
                *differ |= byte ^ first;
            }
        }
        (0..width).filter(|at| differ[*at] != 0).collect()
    }

    fn compare_rows(&self, a: u32, b: u32) -> Ordering {
        self.get(a as usize).cmp(self.get(b as usize)).then(a.cmp(&b))
    }

    /// Each key's first bytes as a number, with its row.
    fn numbered<T>(&self, number: impl Fn(&[u8]) -> T) -> Vec<(T, u32)> {
        self.iter().zip(0..).map(|(key, row)| (number(key), row)).collect()
    }
}

/// The first 8 bytes as a number that orders as they do.
#[inline]
fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => u64::from_be_bytes(padded(key)),
    }
}

/// The first 16 bytes as a number that orders as they do.
#[inline]
fn wide_prefix(key: &[u8]) -> u128 {
    match key.first_chunk() {
        Some(head) => u128::from_be_bytes(*head),
        None => u128::from_be_bytes(padded(key)),
    }
}

fn padded<const W: usize>(key: &[u8]) -> [u8; W] {
    let mut bytes = [0; W];
    bytes.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    bytes
}

fn rows_of<T>(numbered: &[(T, u32)]) -> Vec<u32> {
    numbered.iter().map(|(_, row)| *row).collect()
}

/// Rows by number, then row: least significant byte first, leaving out bytes that are the same in all numbers.
fn radix_sorted(mut numbered: Vec<(u64, u32)>) -> Sorted {
    if numbered.len() < RADIX_KEYS_MIN {
        numbered.sort_unstable();
        return Sorted::of(&numbered);
    }
    let mut counts = vec![[0u32; 256]; 8];
    for (number, _) in &numbered {
        for (counts, digit) in counts.iter_mut().zip(number.to_le_bytes()) {
            counts[digit as usize] += 1;
        }
    }
    let mut other = vec![(0, 0); numbered.len()];
    for (byte, counts) in counts.iter_mut().enumerate() {
        if counts.iter().any(|count| *count as usize == numbered.len()) {
            continue;
        }
        let mut next = 0;
        for count in counts.iter_mut() {
            next += std::mem::replace(count, next);
        }
        for &entry in &numbered {
            let slot = &mut counts[(entry.0 >> (8 * byte)) as usize & 255];
            other[*slot as usize] = entry;
            *slot += 1;
        }
        std::mem::swap(&mut numbered, &mut other);
    }
    Sorted::of(&numbered)
}
