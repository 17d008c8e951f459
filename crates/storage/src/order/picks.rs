//! Rows that were picked, as stretches: where few rows were changed, most follow one another in their part.

use std::ops::Range;

/// A row, as the cursor names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Index of its part, see [`super::Cursor::part`].
    pub part: u32,
    /// Offset in its container.
    pub offset: u32,
}

/// Rows of one part that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the part, see [`super::Cursor::part`].
    pub part: u32,
    /// Offset of the first row in its container.
    pub first: u32,
    /// How many rows.
    pub rows: u32,
}

impl Stretch {
    /// The offsets of its rows.
    #[must_use]
    pub fn offsets(self) -> Range<u32> {
        self.first..self.first + self.rows
    }
}

/// Rows in the order in which they were picked.
#[derive(Debug, Default)]
pub struct Picks {
    stretches: Vec<Stretch>,
    rows: usize,
}

impl Picks {
    /// How many rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.stretches.clear();
        self.rows = 0;
    }

    /// The rows as stretches.
    #[must_use]
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The rows one by one.
    pub fn iter(&self) -> impl Iterator<Item = Pick> + '_ {
        let rows = |stretch: &Stretch| {
            let part = stretch.part;
            stretch.offsets().map(move |offset| Pick { part, offset })
        };
        self.stretches.iter().flat_map(rows)
    }

    /// Adds one row.
    #[inline]
    pub fn push(&mut self, pick: Pick) {
        self.push_rows(pick.part, pick.offset..pick.offset + 1);
    }

    /// Adds rows `offsets` of `part`.
    #[inline]
    pub fn push_rows(&mut self, part: u32, offsets: Range<u32>) {
        let rows = offsets.len();
        self.rows += rows;
        match self.stretches.last_mut() {
            Some(last) if last.part == part && last.first + last.rows == offsets.start => last.rows += rows as u32,
            _ if rows > 0 => self.stretches.push(Stretch { part, first: offsets.start, rows: rows as u32 }),
            _ => {}
        }
    }
}

impl FromIterator<Pick> for Picks {
    fn from_iter<T: IntoIterator<Item = Pick>>(picks: T) -> Self {
        let mut all = Self::default();
        picks.into_iter().for_each(|pick| all.push(pick));
        all
    }
}
