//! How large the inputs of a plan are: small ones are not worth a second partition, whose tasks, channels and
//! repartitions cost more than the rows.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;

use crate::provider::UserTable;

/// Rows of all tables together up to which one partition is enough: a scan has no second one for so few.
const ROWS_MAX: u64 = 32_768;
/// Combinations of rows up to which one partition is enough: what a join without keys would look at.
const COMBINATIONS_MAX: u64 = 1 << 20;
/// Combinations of rows up to which a plan is run on the caller's thread.
const TINY_MAX: u64 = 8_192;
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

/// Whether a plan over tables of so `rows` may be [`Size::Tiny`].
pub(super) fn are_tiny(rows: impl ExactSizeIterator<Item = u64>) -> bool {
    rows.len() <= TABLES_MAX && rows.fold(1, |all: u64, rows| all.saturating_mul(rows.max(1))) <= TINY_MAX
}

/// How much `plan` reads: of a few small tables, and nothing whose size is not known. What waits, or has side effects,
/// is not tiny.
///
/// # Errors
/// Internal.
pub(super) fn size_of(plan: &LogicalPlan) -> Result<Size> {
    let (mut tables, mut total, mut combinations, mut is_known) = (0, 0_u64, 1_u64, true);
    let mut is_tiny = true;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                tables += 1;
                let provider = source_as_provider(&scan.source)?;
                let table = provider.downcast_ref::<UserTable>().filter(|_| tables <= TABLES_MAX);
                match table.and_then(UserTable::rows) {
                    Some(rows) => {
                        total = total.saturating_add(rows);
                        combinations = combinations.saturating_mul(rows.max(1));
                    }
                    None => is_known = false,
                }
            }
            LogicalPlan::RecursiveQuery(_) | LogicalPlan::Unnest(_) | LogicalPlan::Extension(_) => is_known = false,
            _ => {}
        }
        node.apply_expressions(|expr| {
            is_tiny &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        is_known &= total <= ROWS_MAX && combinations <= COMBINATIONS_MAX;
        Ok(if is_known { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(match is_known {
        true if is_tiny && combinations <= TINY_MAX => Size::Tiny,
        true => Size::Small,
        false => Size::Large,
    })
}
