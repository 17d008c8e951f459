//! What a scan of a kept physical plan reads: bound anew at each run.
//!
//! Comes in: a snapshot and predicates, before a run, and the rows that they leave where those were found by their keys
//! already. Goes out: the same, to the sources that are opened in it. A plan is made for predicates of certain columns
//! and operators, and perhaps for a snapshot that has an order: others do not fit. Between runs nothing is bound, so
//! that a plan that is kept holds no snapshot.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{Result, internal_datafusion_err};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::scan::KeyRows;
use mainstem_storage::version::TableView;
use parking_lot::Mutex;

/// See the module.
#[derive(Debug)]
pub(crate) struct ScanSlot {
    /// Of the predicates that the plan was made for.
    shapes: Vec<Shape>,
    needs_order: AtomicBool,
    bound: Mutex<Option<ScanInput>>,
}

/// What a scan reads in one run.
#[derive(Clone, Debug)]
pub(crate) struct ScanInput {
    pub(crate) view: Arc<TableView>,
    pub(crate) predicates: Vec<Predicate>,
    /// The rows of a range of a key outside of which no row fulfils the predicates, in its order; `None` if the scan
    /// has to look for them.
    pub(crate) found: Option<KeyRows>,
}

impl ScanInput {
    /// Whether the rows can be read in the order that main is in.
    pub(super) fn has_order(&self) -> bool {
        self.found.as_ref().map_or_else(|| self.view.has_order(), |found| found.in_order)
    }
}

/// A predicate without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    column: ColumnId,
    kind: Discriminant<Predicate>,
    op: Option<CompareOp>,
}

impl Shape {
    fn of(predicate: &Predicate) -> Self {
        let op = match predicate {
            Predicate::Compare { op, .. } => Some(*op),
            _ => None,
        };
        Self { column: predicate.column(), kind: discriminant(predicate), op }
    }
}

impl ScanSlot {
    /// A slot that a plan is made with, and whose first run reads `input`.
    pub(crate) fn new(input: ScanInput) -> Self {
        let shapes = input.predicates.iter().map(Shape::of).collect();
        Self { shapes, needs_order: AtomicBool::new(false), bound: Mutex::new(Some(input)) }
    }

    /// What the next run reads; false if the plan was made for something else.
    pub(crate) fn bind(&self, input: ScanInput) -> bool {
        let fits = self.shapes.len() == input.predicates.len()
            && self.shapes.iter().zip(&input.predicates).all(|(shape, predicate)| *shape == Shape::of(predicate))
            && (input.has_order() || !self.needs_order.load(Ordering::Relaxed));
        if fits {
            *self.bound.lock() = Some(input);
        }
        fits
    }

    /// Lets go of what a run has read.
    pub(crate) fn release(&self) {
        *self.bound.lock() = None;
    }

    /// What the run reads.
    pub(super) fn bound(&self) -> Result<ScanInput> {
        self.bound.lock().clone().ok_or_else(|| internal_datafusion_err!("a kept plan is run without its snapshots"))
    }

    /// So many rows were found already.
    pub(crate) fn found(&self) -> Option<usize> {
        self.bound.lock().as_ref().and_then(|input| input.found.as_ref()).map(|found| found.rows.len())
    }

    /// The plan has no sort where it relies on the order of the snapshot.
    pub(super) fn set_needs_order(&self) {
        self.needs_order.store(true, Ordering::Relaxed);
    }
}
