//! Batches of a query, put together to pieces that are worth being encoded by themselves.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use mainstem_storage::Result;

use super::partitions::Partitions;

/// When a piece is large enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) rows: usize,
    /// Of the values.
    pub(super) bytes: usize,
}

/// Rows that stand behind one another in a file.
pub(super) struct Piece {
    /// The folder of their partition.
    pub(super) partition: Option<Arc<str>>,
    pub(super) batches: Vec<RecordBatch>,
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

/// The pieces of batches.
pub(super) struct Pieces<I> {
    batches: I,
    limits: Limits,
    partitions: Option<Partitions>,
    /// Parts of a batch that was read: each of one partition, and not above the limit.
    parts: VecDeque<(Option<Arc<str>>, RecordBatch)>,
    ended: bool,
}

impl<I: Iterator<Item = Result<RecordBatch>>> Pieces<I> {
    pub(super) fn new(batches: I, limits: Limits, partitions: Option<Partitions>) -> Self {
        Self { batches, limits, partitions, parts: VecDeque::new(), ended: false }
    }

    /// Has a part, unless there is none left.
    fn fill(&mut self) -> Result<()> {
        while self.parts.is_empty() && !self.ended {
            let Some(batch) = self.batches.next().transpose()? else {
                self.ended = true;
                break;
            };
            let parts = match &mut self.partitions {
                Some(partitions) => partitions.split(&batch)?,
                None => vec![(None, batch)],
            };
            for (partition, part) in parts {
                let rows = part.num_rows();
                for from in (0..rows).step_by(self.limits.rows) {
                    let part = part.slice(from, self.limits.rows.min(rows - from));
                    self.parts.push_back((partition.clone(), part));
                }
            }
        }
        Ok(())
    }

    fn next_piece(&mut self) -> Result<Option<Piece>> {
        self.fill()?;
        let Some((partition, first)) = self.parts.pop_front() else { return Ok(None) };
        let (rows, bytes) = (first.num_rows(), bytes_of(&first));
        let mut piece = Piece { partition, batches: vec![first], rows, bytes };
        while piece.rows < self.limits.rows && piece.bytes < self.limits.bytes {
            self.fill()?;
            let fits = |(partition, part): &(Option<Arc<str>>, RecordBatch)| {
                *partition == piece.partition && piece.rows + part.num_rows() <= self.limits.rows
            };
            let Some((_, part)) = self.parts.pop_front_if(|part| fits(part)) else { break };
            piece.rows += part.num_rows();
            piece.bytes += bytes_of(&part);
            piece.batches.push(part);
        }
        Ok(Some(piece))
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for Pieces<I> {
    type Item = Result<Piece>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_piece().transpose()
    }
}

/// Bytes of the values of `batch`, about.
fn bytes_of(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(bytes_of_array).sum()
}

fn bytes_of_array(array: &ArrayRef) -> usize {
    // A view begins with the length of its value; values of others may stand in the same buffers.
    let views = array.as_string_view_opt().map(|texts| texts.views());
    match views.or_else(|| array.as_binary_view_opt().map(|values| values.views())) {
        Some(views) => views.iter().map(|view| 16 + (*view & 0xFFFF_FFFF) as usize).sum(),
        None => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}
