//! One worker of a scan: takes pieces off the shared queue and turns them into batches.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use mainstem_kernels::cast::Pod;
use mainstem_kernels::{bitmap, gather};

use crate::error::Result;
use crate::scan::Scan;
use crate::scan::piece::Piece;
use crate::version::Work;

/// Tenths of the rows of a range that are selected, from which on the range is read as a whole.
pub(super) const DENSE_TENTHS: usize = 7;

/// Iterator over batches; `None` when the queue is empty or the limit is reached.
#[derive(Debug)]
pub struct ScanWorker {
    scan: Arc<Scan>,
    current: Option<Current>,
    emitted: EmittedRows,
}

/// Rows that a worker has returned, by where they live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmittedRows {
    /// In segments.
    pub main: u64,
    /// In deltas.
    pub delta: u64,
    /// In the transaction's own buffer.
    pub own: u64,
    /// Not returned for dynamic filters, wherever they live.
    pub dropped: u64,
}

/// The piece being emitted.
#[derive(Debug)]
struct Current {
    piece: usize,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    /// All rows from here to there, in place.
    Whole { next: u32, end: u32 },
    /// These offsets from `next` on.
    Some { offsets: Vec<u32>, next: usize },
}

impl ScanWorker {
    pub(super) fn new(scan: Arc<Scan>) -> Self {
        Self { scan, current: None, emitted: EmittedRows::default() }
    }

    /// Rows returned so far.
    #[must_use]
    pub fn emitted(&self) -> EmittedRows {
        self.emitted
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(current) = &mut self.current {
                let Some(piece) = self.scan.pieces.get(current.piece) else { return Ok(None) };
                if let Some(batch) = emit(&self.scan, piece, &mut current.rows)? {
                    let rows = batch.num_rows() as u64;
                    match piece {
                        Piece::Segment { .. } => self.emitted.main += rows,
                        Piece::Delta { .. } => self.emitted.delta += rows,
                        Piece::Own { .. } => self.emitted.own += rows,
                    }
                    return Ok(Some(batch));
                }
                self.current = None;
            }
            let Some(index) = self.scan.next_index() else { return Ok(None) };
            let Some(piece) = self.scan.pieces.get(index) else { return Ok(None) };
            let rows = piece.rows();
            let (selection, dropped) = piece.select(&self.scan)?;
            self.emitted.dropped += dropped as u64;
            let rows = match selection {
                None => Rows::Whole { next: rows.start, end: rows.end },
                Some(selection) if bitmap::count_ones(&selection) == rows.len() => {
                    Rows::Whole { next: rows.start, end: rows.end }
                }
                Some(selection) => {
                    let mut offsets = Vec::new();
                    bitmap::indices(&selection, &mut offsets);
                    offsets.iter_mut().for_each(|offset| *offset += rows.start);
                    Rows::Some { offsets, next: 0 }
                }
            };
            self.current = Some(Current { piece: index, rows });
        }
    }
}

/// The next batch of a piece, or `None` when it has no more rows or the limit is reached.
fn emit(scan: &Scan, piece: &Piece, rows: &mut Rows) -> Result<Option<RecordBatch>> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(scan.columns.len() + 1);
    let count = match rows {
        Rows::Whole { next, end } => {
            let count = scan.take(scan.batch_rows.min((*end - *next) as usize));
            let range = *next..*next + count as u32;
            *next = range.end;
            if count == 0 {
                return Ok(None);
            }
            for column in &scan.columns {
                columns.push(piece.read(column, range.clone())?);
            }
            if scan.row_refs {
                columns.push(piece.row_refs(range));
            }
            count
        }
        Rows::Some { offsets, next } => {
            let count = scan.take(scan.batch_rows.min(offsets.len() - *next));
            let Some(chunk) = offsets.get(*next..*next + count).filter(|chunk| !chunk.is_empty()) else {
                return Ok(None);
            };
            *next += count;
            match dense(chunk) {
                Some((range, kept)) => {
                    for column in &scan.columns {
                        columns.push(kept.filter(&piece.read(column, range.clone())?)?);
                    }
                }
                None => {
                    for column in &scan.columns {
                        columns.push(piece.gather(column, chunk)?);
                    }
                }
            }
            if scan.row_refs {
                columns.push(piece.row_refs(chunk.iter().copied()));
            }
            count
        }
    };
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    Ok(Some(RecordBatch::try_new_with_options(scan.schema.clone(), columns, &options)?))
}

/// The range that `offsets`, ascending, lie in, and which of its rows they are, where they are so many of them that
/// reading all and leaving some out costs less than going from one to the next.
fn dense(offsets: &[u32]) -> Option<(Range<u32>, Kept)> {
    let range = *offsets.first()?..offsets.last()?.checked_add(1)?;
    if offsets.len() < range.len() / 10 * DENSE_TENTHS {
        return None;
    }
    let mut words = vec![0; bitmap::words(range.len())];
    offsets.iter().for_each(|offset| bitmap::set(&mut words, (offset - range.start) as usize));
    let kept = Kept { words, rows: range.len(), others: OnceCell::new() };
    Some((range, kept))
}

/// Rows of a range that are kept.
struct Kept {
    words: Vec<u64>,
    rows: usize,
    /// For columns that are no numbers: where runs of rows begin and end, found once for all of them.
    others: OnceCell<FilterPredicate>,
}

impl Kept {
    /// The rows of `array` that are kept.
    fn filter(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if array.null_count() > 0 {
            return self.other(array);
        }
        match array.data_type() {
            DataType::Int32 => Ok(self.numbers::<Int32Type>(array)),
            DataType::Int64 => Ok(self.numbers::<Int64Type>(array)),
            DataType::Float32 => Ok(self.numbers::<Float32Type>(array)),
            DataType::Float64 => Ok(self.numbers::<Float64Type>(array)),
            DataType::Decimal128(..) => Ok(self.numbers::<Decimal128Type>(array)),
            DataType::Date32 => Ok(self.numbers::<Date32Type>(array)),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Ok(self.numbers::<TimestampMicrosecondType>(array)),
            DataType::Time64(TimeUnit::Microsecond) => Ok(self.numbers::<Time64MicrosecondType>(array)),
            _ => self.other(array),
        }
    }

    fn numbers<T: ArrowPrimitiveType>(&self, array: &ArrayRef) -> ArrayRef
    where
        T::Native: Pod,
    {
        let mut kept = Vec::new();
        gather::filter_numbers(array.as_primitive::<T>().values(), &self.words, &mut kept);
        Arc::new(PrimitiveArray::<T>::new(kept.into(), None).with_data_type(array.data_type().clone()))
    }

    fn other(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let runs = self.others.get_or_init(|| {
            let selected = BooleanBuffer::new(Buffer::from_vec(self.words.clone()), 0, self.rows);
            FilterBuilder::new(&BooleanArray::new(selected, None)).optimize().build()
        });
        Ok(runs.filter(array.as_ref())?)
    }
}

impl Iterator for ScanWorker {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let scan = self.scan.clone();
        let _at_work = scan.view.begin(Work::Thread);
        self.next_batch().transpose()
    }
}
