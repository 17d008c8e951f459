//! Short statements: they name few rows by a key, or bring them along, and run without being planned.
//!
//! Comes in: a parsed statement with the types of its parameters, once; then values for them, again and again. Goes
//! out: rows without an Arrow batch, or the number of rows written.
//!
//! 1. [`Short::compile`] looks at the statement, once for each version of the schema. What is not of one of the four
//!    shapes is not short: SELECT, UPDATE and DELETE of rows that an access path finds ([`access`]), perhaps with
//!    conditions beside it; INSERT of VALUES, also with ON CONFLICT on any key. Results and RETURNING are expressions
//!    over the row; SELECT may give aggregates of rows too, ask for one, or join two tables ([`select`]).
//! 2. [`Short::run`] evaluates keys and new values, finds rows by `storage::point`, and writes through the transaction
//!    as any statement does.
//!
//! Invariants: a short statement gives what its plan would have given. Whatever is not simple when it runs (a value of
//! another type, an overflow, anything that would be an error of evaluation) makes [`Short::run`] say so, before
//! anything is written, and the statement is planned after all: errors of evaluation have one source. But LIMIT and
//! EXISTS end at the row that is enough, before rows whose evaluation would fail; a plan may look at more.
//!
//! It does not own: transactions and runs of a write again (`session`), what constraints say (storage).

mod access;
mod compile;
mod computed;
mod condition;
mod conflict;
mod expression;
mod insert;
mod parameter_types;
mod planning;
mod run;
mod select;
mod values;

/// ON CONFLICT on the key that rows are found by, or on all.
#[derive(Debug)]
struct Conflict {
    /// Any key counts.
    any: bool,
    /// None: DO NOTHING.
    arm: Option<Arm>,
}

/// DO UPDATE.
#[derive(Debug)]
struct Arm {
    /// By position, none of the key.
    assignments: Vec<(usize, Expression)>,
    condition: Option<Condition>,
}

/// An identity column whose numbers are drawn.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    at: usize,
    column: ColumnId,
    /// So many of the rows take one.
    rows: usize,
}

#[cfg(test)]
mod tests;

use std::sync::Arc;

use mainstem_storage::ids::ColumnId;
use mainstem_storage::point::PointTable;
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

use access::{Access, Path};
use computed::Computed;
use condition::Condition;
use expression::Expression;
pub(crate) use planning::{Planning, Unplanned};
use select::{JoinSelection, Selection};

/// A compiled short statement. Belongs to one version of the schema.
#[derive(Debug)]
pub(crate) struct Short {
    table: Arc<PointTable>,
    action: Action,
    /// What a SELECT, or RETURNING, gives.
    output: Option<Output>,
    /// The positions of all columns.
    columns: Vec<usize>,
    /// It asks for the time.
    reads_clock: bool,
    /// Checks that a row it writes may break, with their names.
    checks: Vec<(String, Condition)>,
}

/// What a result shows of a row.
#[derive(Debug)]
struct Output {
    /// Name and type of each of its columns, and whether it may be NULL.
    fields: Vec<(String, DataType, bool)>,
    /// Those that are columns of the table: the positions there.
    columns: Vec<usize>,
    /// The others, ascending by place, with their types.
    computed: Vec<(usize, DataType, Computed)>,
    /// Which are CHAR(n), and the n: they are shown with blanks.
    padded: Vec<(usize, u32)>,
}

#[derive(Debug)]
enum Action {
    Select(Selection),
    Join(Box<JoinSelection>),
    /// New rows.
    Insert {
        values: Values,
        conflict: Option<Conflict>,
    },
    /// New values for columns, by position, of the rows found.
    Update {
        access: Access,
        assignments: Vec<(usize, Expression)>,
    },
    /// The rows found go.
    Delete {
        access: Access,
    },
}

/// The rows of VALUES.
#[derive(Debug)]
struct Values {
    /// An expression for each column of the table.
    rows: Vec<Vec<Expression>>,
    numbers: Vec<Numbered>,
}

/// What a short statement gave.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// The row found, if there is one.
    Row(Option<Vec<Value>>),
    /// The rows found.
    Rows(Vec<Vec<Value>>),
    /// So many rows were written; RETURNING gives these, of a statement that has it.
    Written { rows: u64, returned: Vec<Vec<Value>> },
    /// These values need a plan. Nothing was written.
    NotShort,
}

impl Short {
    /// Whether it writes.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.action, Action::Select(_) | Action::Join(_))
    }

    /// Whether it keeps others from changing the rows that it reads.
    pub(crate) fn locks(&self) -> bool {
        matches!(&self.action, Action::Select(selection) if selection.locks)
    }

    /// Whether it may have so much to write that it loads it, and waits for memory that other loads hold.
    pub(crate) fn may_load(&self) -> bool {
        match &self.action {
            Action::Select(_) | Action::Join(_) => false,
            Action::Insert { values, .. } => values.rows.len() > 1,
            Action::Update { access, .. } | Action::Delete { access } => access.key().is_none(),
        }
    }

    /// Whether it draws numbers of identity columns.
    pub(crate) fn draws_numbers(&self) -> bool {
        matches!(&self.action, Action::Insert { values, .. } if !values.numbers.is_empty())
    }

    /// Whether it gives rows.
    pub(crate) fn gives_rows(&self) -> bool {
        self.output.is_some()
    }

    /// The command tag of a write, without the count.
    pub(crate) fn tag(&self) -> &'static str {
        match self.action {
            Action::Select(_) | Action::Join(_) => "SELECT",
            Action::Insert { .. } => "INSERT 0",
            Action::Update { .. } => "UPDATE",
            Action::Delete { .. } => "DELETE",
        }
    }

    /// What it does, and by which access paths: a line for people.
    pub(crate) fn description(&self) -> String {
        let by = |path: &Path| path.description(&self.table);
        match &self.action {
            Action::Select(selection) => by(&selection.access.path),
            Action::Join(join) => join.description(&self.table),
            Action::Insert { values, .. } => format!("{} of VALUES", counted(values.rows.len(), "row")),
            Action::Update { access, .. } | Action::Delete { access } => by(&access.path),
        }
    }

    /// The table it reads or writes; of a join the outer one.
    pub(crate) fn table(&self) -> &Arc<PointTable> {
        &self.table
    }
}

/// `3 rows`, `1 row`.
fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
