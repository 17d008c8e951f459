//! What a scan of a kept physical plan reads: bound anew at each run.
//!
//! Comes in: a snapshot and predicates, before a run. Goes out: both, to the sources that are opened in it. A plan is
//! made for predicates of certain columns and operators, and perhaps for a snapshot that has an order: others do not
//! fit. Between runs nothing is bound, so that a plan that is kept holds no snapshot.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{Result, internal_datafusion_err};
use mainstem_storage::ids::ColumnId;
use mainstem_storage::predicate::{CompareOp, Predicate};
use mainstem_storage::version::TableView;
use parking_lot::Mutex;

/// See the module.
#[derive(Debug)]
pub(crate) struct ScanSlot {
    /// Of the predicates that the plan was made for.
    shapes: Vec<Shape>,
    needs_order: AtomicBool,
    bound: Mutex<Option<(Arc<TableView>, Vec<Predicate>)>>,
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
    /// A slot that a plan is made with, and whose first run reads `view` with `predicates`.
    pub(crate) fn new(view: Arc<TableView>, predicates: Vec<Predicate>) -> Self {
        let shapes = predicates.iter().map(Shape::of).collect();
        Self { shapes, needs_order: AtomicBool::new(false), bound: Mutex::new(Some((view, predicates))) }
    }

    /// What the next run reads; false if the plan was made for something else.
    pub(crate) fn bind(&self, view: Arc<TableView>, predicates: Vec<Predicate>) -> bool {
        let fits = self.shapes.len() == predicates.len()
            && self.shapes.iter().zip(&predicates).all(|(shape, predicate)| *shape == Shape::of(predicate))
            && (view.has_order() || !self.needs_order.load(Ordering::Relaxed));
        if fits {
            *self.bound.lock() = Some((view, predicates));
        }
        fits
    }

    /// Lets go of what a run has read.
    pub(crate) fn release(&self) {
        *self.bound.lock() = None;
    }

    /// What the run reads.
    pub(super) fn bound(&self) -> Result<(Arc<TableView>, Vec<Predicate>)> {
        self.bound.lock().clone().ok_or_else(|| internal_datafusion_err!("a kept plan is run without its snapshots"))
    }

    /// The plan has no sort where it relies on the order of the snapshot.
    pub(super) fn set_needs_order(&self) {
        self.needs_order.store(true, Ordering::Relaxed);
    }
}
