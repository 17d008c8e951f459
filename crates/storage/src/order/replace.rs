//! Updated rows in the place of what they were: which rows of a delta have the key of a dead row of a segment.
//!
//! Comes in: the keys of a segment's rows and of a delta's, both in order, and which rows are dead. Goes out: pairs of
//! a dead row and a live one of the delta, each row in one pair at most.
//!
//! An update writes a new version into a delta, and the old one dies where it stands. Under the same key the new one
//! may come where the old one stood, so that rows before and behind it are copied as one stretch.

use std::ops::Range;

use mainstem_kernels::bitmap;

use super::part::{LoadedPart, Part};
use super::replacements::{Replacement, Replacements};

/// Rows of a delta, its index, and the position that its stream stands at.
pub(super) struct Updated<'a> {
    pub part: &'a mut Part,
    pub index: u32,
    pub rows: &'a LoadedPart,
    pub position: u32,
}

/// Those of `offsets` whose bit is on.
fn dead_rows(dead: &[u64], offsets: Range<u32>) -> impl Iterator<Item = u32> + '_ {
    let words = offsets.start / 64..offsets.end.div_ceil(64);
    words
        .flat_map(move |number| {
            let mut word = dead.get(number as usize).copied().unwrap_or(0);
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(64 * number + bit)
            })
        })
        .filter(move |offset| offsets.contains(offset))
}

/// Puts rows of `updated` in the place of dead rows of `part` that have their keys. Those rows are passed over in their
/// own part from then on, and no longer dead in `part`. Returns the bytes that this takes until the end; 0 without any.
pub(super) fn replace_dead(part: &mut Part, rows: &LoadedPart, updated: Updated<'_>) -> usize {
    let (Some(dead), Some(first), true) = (part.dead.clone(), rows.first_in_order(), rows.len > 0) else {
        return 0;
    };
    let from = updated.rows.seek(updated.position, &rows.key(0));
    let end = updated.rows.seek_behind(from, &rows.key(rows.len - 1));
    if from == end {
        return 0;
    }
    let mut found: Vec<Replacement> = Vec::new();
    let mut position = from;
    for dead_row in dead_rows(&dead, first..first + rows.len) {
        let key = rows.key(dead_row - first);
        let is_before = |position: u32| {
            let other = updated.rows.key(position);
            *other < *key || (other == key && updated.part.is_dead(updated.rows.offset(position)))
        };
        while position < end && is_before(position) {
            position += 1;
        }
        if position == end {
            break;
        }
        if updated.rows.key(position) == key {
            let row = updated.rows.offset(position);
            found.push(Replacement { offset: dead_row, part: updated.index, row });
            position += 1;
        }
    }
    if found.is_empty() {
        return 0;
    }
    let mut left = dead.to_vec();
    found.iter().for_each(|replacement| bitmap::clear(&mut left, replacement.offset as usize));
    part.dead = Some(left.into());
    let mut passed = updated.part.dead.as_ref().map_or_else(Vec::new, |dead| dead.to_vec());
    passed.resize(passed.len().max(bitmap::words(updated.part.range().end as usize)), 0);
    found.iter().for_each(|replacement| bitmap::set(&mut passed, replacement.row as usize));
    updated.part.dead = Some(passed.into());
    if !part.replacements.all().is_empty() {
        found.extend_from_slice(part.replacements.all());
        found.sort_unstable_by_key(|replacement| replacement.offset);
    }
    let bytes = size_of_val::<[Replacement]>(&found) + size_of_val::<[u64]>(&dead);
    part.replacements = Replacements::new(found);
    bytes
}
