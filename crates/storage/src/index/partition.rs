//! Entries of several chunks, moved next to those that go to the same part of an index. Threads then build parts, which
//! have nothing in common, so that there is nothing left to merge (as the partition buffers of Instant Loading, section
//! 3.5).
//!
//! 1. The entries of each chunk are counted by their parts, and moved to them in the order they have (one step of a
//!    radix sort), by a thread.
//! 2. A part is the entries that each chunk has of it, the first chunk's first.

use crate::error::{Error, Result};
use crate::threads::in_parallel;

/// Parts that there are at most: one for each byte, and one for keys that have none.
pub(super) const PARTS: usize = 257;

/// The entries of chunks by their parts.
#[derive(Debug)]
pub(super) struct Partitions<E> {
    chunks: Vec<Chunk<E>>,
}

/// Those of one chunk.
#[derive(Debug)]
struct Chunk<E> {
    entries: Vec<E>,
    /// Where each part ends.
    ends: [u32; PARTS],
}

impl<E: Copy + Send + Sync> Partitions<E> {
    /// Those of `chunks`, each entry in the part that `part` says, by `threads` threads.
    ///
    /// # Errors
    /// None but internal ones.
    pub fn of(chunks: &[Vec<E>], threads: usize, part: impl Fn(&E) -> usize + Sync) -> Result<Self> {
        let chunks = in_parallel(threads, chunks.len(), |at| {
            let chunk = chunks.get(at).ok_or_else(|| Error::internal("a chunk that is not there"))?;
            Ok(Chunk::of(chunk, &part))
        })?;
        Ok(Self { chunks })
    }

    /// The entries of `part`, chunk by chunk.
    pub fn part(&self, part: usize) -> impl Iterator<Item = &[E]> {
        self.chunks.iter().map(move |chunk| {
            let start = part.checked_sub(1).map_or(0, |before| chunk.ends[before]);
            &chunk.entries[start as usize..chunk.ends[part] as usize]
        })
    }
}

impl<E: Copy> Chunk<E> {
    fn of(entries: &[E], part: impl Fn(&E) -> usize) -> Self {
        let mut moved = Vec::with_capacity(entries.len());
        mainstem_kernels::memory::advise_huge_pages(&mut moved);
        moved.extend_from_slice(entries);
        let ends = move_to_parts(entries, &mut moved, part);
        Self { entries: moved, ends }
    }
}

/// Moves `from` to `to`, which is as long, part by part in the order they have. Returns where each part ends.
pub(super) fn move_to_parts<E: Copy>(from: &[E], to: &mut [E], part: impl Fn(&E) -> usize) -> [u32; PARTS] {
    move_counted(from, to, count_parts(from, &part), part)
}

/// How many of `entries` are of each part.
pub(super) fn count_parts<E>(entries: &[E], part: impl Fn(&E) -> usize) -> [u32; PARTS] {
    let mut counts = [0; PARTS];
    entries.iter().for_each(|entry| counts[part(entry)] += 1);
    counts
}

/// As [`move_to_parts`], of entries that were counted.
pub(super) fn move_counted<E: Copy>(
    from: &[E],
    to: &mut [E],
    counts: [u32; PARTS],
    part: impl Fn(&E) -> usize,
) -> [u32; PARTS] {
    let (mut ends, mut at) = (counts, 0);
    for end in &mut ends {
        at += std::mem::replace(end, at);
    }
    for entry in from {
        let place = &mut ends[part(entry)];
        to[*place as usize] = *entry;
        *place += 1;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_the_order_of_chunks() {
        let chunks = [vec![(3_usize, 'a'), (0, 'b'), (3, 'c')], vec![], vec![(3, 'd'), (256, 'e')]];
        let partitions = Partitions::of(&chunks, 2, |entry| entry.0).unwrap();
        let of = |part| partitions.part(part).flatten().map(|entry| entry.1).collect::<String>();
        assert_eq!([0, 1, 3, 256].map(of), ["b", "", "acd", "e"]);
    }
}
