//! Which rows of a segment are others': rows of deltas that came in the place of dead ones (`replace` finds them).

use std::ops::Range;
use std::sync::Arc;

/// A row that stands in the place of a dead one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    /// Offset of the dead row.
    pub offset: u32,
    /// Index of the part that the row is of, and its offset there.
    pub part: u32,
    pub row: u32,
}

/// Replacements by the offset of the dead row, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Replacements(Option<Arc<[Replacement]>>);

impl Replacements {
    /// Those of `all`, which are in their order.
    pub fn new(all: Vec<Replacement>) -> Self {
        Self(Some(all.into()))
    }

    /// All of them.
    pub fn all(&self) -> &[Replacement] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Those of rows of `offsets`, and how many stand before the end of these. The first `passed` of all are known to
    /// stand before their begin.
    pub fn of(&self, offsets: Range<u32>, passed: usize) -> (&[Replacement], usize) {
        let Some(behind) = self.0.as_ref().and_then(|all| all.get(passed..)) else { return (&[], passed) };
        let first = match passed {
            0 => behind.partition_point(|replacement| replacement.offset < offsets.start),
            _ => behind.iter().take_while(|replacement| replacement.offset < offsets.start).count(),
        };
        let within = behind[first..].iter().take_while(|replacement| replacement.offset < offsets.end).count();
        (&behind[first..first + within], passed + first + within)
    }
}
