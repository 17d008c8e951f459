//! What the scans of a kept plan read in one run.
//!
//! Comes in: an optimised plan, and for each run values and snapshots. Goes out: the plan without snapshots, and its
//! scans; for each run predicates of the store with its values, and the rows themselves where the predicates leave a
//! short range of keys: they are found here, and make a query small however large its table is.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use mainstem_storage::ids::TableId;
use mainstem_storage::predicate::Predicate;
use mainstem_storage::scan::compares_key;
use mainstem_storage::version::TableView;

use super::logical::{Views, schema_of, with_constants, with_literals, with_table};
use super::parameters::has_parameter;
use crate::exec::parameters::Parameters;
use crate::exec::planner::size::{are_kept, are_tiny};
use crate::provider::{ScanInput, UserTable};

/// Most rows of a range of keys that are found one by one.
const FOUND_MAX: usize = 4_096;

/// A scan of a kept plan.
#[derive(Clone, Debug)]
pub(super) struct KeptScan {
    table: UserTable,
    /// What its filters name.
    schema: Arc<DFSchema>,
    /// With parameters in them.
    filters: Vec<Expr>,
    /// Whether they may leave a short range of keys: for a value of a column of the key.
    fixes_key: bool,
    /// The same, for a bound of one.
    bounds_key: bool,
}

impl KeptScan {
    /// The scan of `table`, which has no snapshot, with `filters` over `schema`.
    pub(super) fn new(table: UserTable, schema: Arc<DFSchema>, filters: Vec<Expr>) -> Self {
        let is_column = |expr: &Expr, name: &str| matches!(expr, Expr::Column(column) if column.name == name);
        let compares = |name: &str, wanted: &[Operator]| {
            filters.iter().any(|filter| {
                matches!(filter, Expr::BinaryExpr(BinaryExpr { left, op, right })
                    if wanted.contains(op) && (is_column(left, name) || is_column(right, name)))
            })
        };
        let of = table.table();
        let of_key =
            |wanted: &[Operator]| compares_key(of, |id| of.column(id).is_some_and(|c| compares(&c.name, wanted)));
        let fixes_key = of_key(&[Operator::Eq]);
        let bounds_key = of_key(&[Operator::Lt, Operator::LtEq, Operator::Gt, Operator::GtEq]);
        Self { table, schema, filters, fixes_key, bounds_key }
    }

    /// What its filters ask of the store with the values of a run; `None` if the store cannot be asked for it.
    fn predicates(&self, parameters: &Parameters, options: &Arc<ConfigOptions>) -> Result<Option<Vec<Predicate>>> {
        let Self { table, schema, filters, .. } = self;
        let mut all = Vec::new();
        for filter in filters {
            let translated = if has_parameter(filter) {
                let filter = with_literals(filter.clone(), parameters)?;
                let is_null = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.is_null());
                // Most are a column beside a value already.
                let plain = if filter.exists(|expr| Ok(is_null(expr)))? { None } else { table.predicates(&filter) };
                match plain {
                    Some(plain) => Some(plain),
                    None => table.predicates(&with_constants(filter, schema, options)?),
                }
            } else {
                table.predicates(filter)
            };
            let Some(translated) = translated else { return Ok(None) };
            all.extend(translated);
        }
        Ok(Some(all))
    }

    pub(super) fn table_id(&self) -> TableId {
        self.table.id()
    }
}

/// `plan`, optimised, without the snapshots of its tables, and its scans in the order in which
/// [`LogicalPlan::transform_up_with_subqueries`] comes to them; `None` if it reads what has no snapshots.
///
/// # Errors
/// Internal.
pub(super) fn without_views(plan: LogicalPlan) -> Result<Option<(LogicalPlan, Vec<KeptScan>)>> {
    let (mut only_users, mut scans) = (true, Vec::new());
    let plan = plan.transform_up_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = &node {
            let provider = source_as_provider(&scan.source)?;
            match provider.downcast_ref::<UserTable>() {
                Some(table) => {
                    scans.push(KeptScan::new(table.without_view(), schema_of(scan)?, scan.filters.clone()));
                }
                None => only_users = false,
            }
        }
        with_table(node, &mut |table| Ok(table.map(UserTable::without_view)))
    })?;
    Ok(only_users.then_some((plan.data, scans)))
}

/// What one scan reads.
pub(super) struct Read {
    pub(super) input: ScanInput,
    /// Rows of its table; `None` if those that it reads were found already.
    pub(super) rows: Option<u64>,
}

/// What the scans of a plan read in a run.
pub(super) enum Reads {
    Few(Vec<Read>),
    /// More than one thread, the caller's, should look at alone.
    Many,
    /// Not known from predicates alone.
    Unfit,
}

/// What `scans` read with the values of `parameters`, over the snapshots that `views` gives.
///
/// # Errors
/// Those of snapshots; Io or Corrupt when key blocks cannot be read; of constants that cannot be computed.
pub(super) fn reads(
    scans: &[KeptScan],
    parameters: &Parameters,
    views: &Views<'_>,
    options: &Arc<ConfigOptions>,
) -> Result<Reads> {
    let count = |view: &Arc<TableView>| view.statistics_of(&[]).rows;
    let mut inputs = Vec::with_capacity(scans.len());
    for scan in scans {
        let view = views(scan.table_id())?;
        // Of few rows all are looked at sooner than some of them are found.
        let is_sought = scan.fixes_key || scan.bounds_key && !are_tiny(std::iter::once(count(&view)));
        let rows = (!is_sought).then(|| count(&view));
        inputs.push((scan, view, rows));
    }
    // Nothing is looked for beside a table that is large anyway.
    let known = inputs.iter().map(|(_, _, rows)| rows.unwrap_or(0));
    if !are_kept(known) {
        return Ok(Reads::Many);
    }
    let mut reads = Vec::with_capacity(scans.len());
    for (scan, view, rows) in inputs {
        let Some(predicates) = scan.predicates(parameters, options)? else { return Ok(Reads::Unfit) };
        reads.push(Read { input: ScanInput { view, predicates, found: None }, rows });
    }
    let mut sizes = Vec::with_capacity(scans.len());
    for Read { input, rows } in &mut reads {
        if rows.is_none() {
            let found = input.view.rows_of_key_range(&input.predicates, FOUND_MAX);
            input.found = found.map_err(|e| DataFusionError::External(Box::new(e)))?;
            if input.found.is_none() {
                *rows = Some(count(&input.view));
            }
        }
        sizes.push(input.found.as_ref().map_or(rows.unwrap_or(0), |found| found.rows.len() as u64));
    }
    Ok(if are_kept(sizes.into_iter()) { Reads::Few(reads) } else { Reads::Many })
}
