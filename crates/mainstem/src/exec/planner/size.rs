//! How large the inputs of a plan are: small ones are not worth a second partition, whose tasks, channels and
//! repartitions cost more than the rows.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;

use crate::provider::{FileTable, UserTable};

/// Rows of all tables together up to which one partition is enough: a scan has no second one for so few.
const ROWS_MAX: u64 = 32_768;
/// Combinations of rows up to which one partition is enough: what a join without keys would look at.
const COMBINATIONS_MAX: u64 = 1 << 20;
/// Rows of all tables together up to which a plan is run on the caller's thread, if it is small otherwise.
const TINY_MAX: u64 = 8_192;
/// Rows of all tables together up to which a query that comes again has its physical plan kept, and is run by the
/// caller: one thread reads so many in less time than a plan for several takes.
const KEPT_MAX: u64 = 131_072;
/// Most tables of a plan that is looked at.
const TABLES_MAX: usize = 4;

/// What a plan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// So few rows that they are there before another thread has begun to look for them.
    Tiny,
    /// So few that one partition is enough.
    Small,
    /// More, or nobody knows.
    Large,
}

/// Rows of tables, and combinations of them, as far as they are known.
#[derive(Clone, Copy, Debug)]
struct Rows {
    tables: usize,
    total: u64,
    combinations: u64,
}

impl Rows {
    const NONE: Self = Self { tables: 0, total: 0, combinations: 1 };

    fn and(self, rows: u64) -> Self {
        Self {
            tables: self.tables + 1,
            total: self.total.saturating_add(rows),
            combinations: self.combinations.saturating_mul(rows.max(1)),
        }
    }

    fn are_at_most(self, total: u64) -> bool {
        self.tables <= TABLES_MAX && self.total <= total
    }

    fn have_few_combinations(self) -> bool {
        self.combinations <= COMBINATIONS_MAX
    }
}

/// Whether the physical plan of a query over tables of so many rows each is worth keeping.
pub(super) fn are_kept(rows: impl Iterator<Item = u64>) -> bool {
    rows.fold(Rows::NONE, Rows::and).are_at_most(KEPT_MAX)
}

/// Whether a plan over tables of so many rows each may be [`Size::Tiny`].
pub(super) fn are_tiny(rows: impl Iterator<Item = u64>) -> bool {
    let rows = rows.fold(Rows::NONE, Rows::and);
    rows.are_at_most(TINY_MAX) && rows.have_few_combinations()
}

/// Whether `plan` gives rows of a file one by one, in the order in which they are read: that of the file, if there is
/// one partition.
///
/// # Errors
/// Internal.
pub(super) fn is_in_file_order(plan: &LogicalPlan) -> Result<bool> {
    let mut node = plan;
    loop {
        match node {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_) => {}
            LogicalPlan::TableScan(scan) => {
                return Ok(source_as_provider(&scan.source)?.downcast_ref::<FileTable>().is_some());
            }
            _ => return Ok(false),
        }
        let Some(input) = node.inputs().first().copied() else { return Ok(false) };
        node = input;
    }
}

/// How much `plan` reads: of a few small tables, and nothing whose size is not known. What waits, or has side effects,
/// is not tiny.
///
/// # Errors
/// Internal.
pub(super) fn size_of(plan: &LogicalPlan) -> Result<Size> {
    let (rows, is_tiny) = rows_of(plan, ROWS_MAX)?;
    Ok(match rows.filter(|rows| rows.have_few_combinations()) {
        Some(rows) if is_tiny && rows.are_at_most(TINY_MAX) => Size::Tiny,
        Some(_) => Size::Small,
        None => Size::Large,
    })
}

/// What of a query's physical plan is worth keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    All,
    /// A plan without joins that look at all combinations of rows.
    JoinsByKey,
    Nothing,
}

/// What of a physical plan of `plan` is worth keeping, as [`are_kept`]: nothing that waits or has side effects.
///
/// # Errors
/// Internal.
pub(super) fn keeps(plan: &LogicalPlan) -> Result<Keeps> {
    let (rows, runs_here) = rows_of(plan, KEPT_MAX)?;
    Ok(match rows.filter(|_| runs_here) {
        Some(rows) if rows.have_few_combinations() => Keeps::All,
        Some(_) => Keeps::JoinsByKey,
        None => Keeps::Nothing,
    })
}

/// The rows that `plan` reads, unless they are more than `rows_max` or not known, and whether the caller may run it.
fn rows_of(plan: &LogicalPlan, rows_max: u64) -> Result<(Option<Rows>, bool)> {
    let (mut rows, mut is_known, mut runs_here) = (Rows::NONE, true, true);
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source)?;
                let of_table = provider.downcast_ref::<UserTable>().and_then(UserTable::rows);
                match of_table.or_else(|| provider.downcast_ref::<FileTable>().map(FileTable::rows)) {
                    Some(more) => rows = rows.and(more),
                    None => is_known = false,
                }
            }
            LogicalPlan::RecursiveQuery(_) | LogicalPlan::Unnest(_) | LogicalPlan::Extension(_) => is_known = false,
            _ => {}
        }
        node.apply_expressions(|expr| {
            runs_here &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        is_known &= rows.are_at_most(rows_max);
        Ok(if is_known { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok((is_known.then_some(rows), runs_here))
}
