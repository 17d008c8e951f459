//! Windows below limits, against what the words of the standard say: every function that reads one row of its frame or
//! partition, with NULLs and without, over frames in ROWS, in windows above one another.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::datasource::MemTable;
use datafusion::execution::{FunctionRegistry as _, SessionStateBuilder};
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use mainstem_postgres::window::shifts;
use tokio::runtime::Runtime;

use super::window_limits;

type Values = Vec<Option<i64>>;

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// With batches of few rows; with our functions and our rule, or as DataFusion has both.
fn context(ours: bool, partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(3);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    if !ours {
        return SessionContext::new_with_state(state);
    }
    let rules = state.physical_optimizers().iter().cloned().map(window_limits).collect();
    let mut state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build();
    for name in ["lag", "lead"] {
        let theirs = state.window_functions().get(name).cloned().unwrap();
        state.register_udwf(shifts(theirs)).unwrap();
    }
    SessionContext::new_with_state(state)
}

/// Registers `t (p, id, v)`, whose partitions are `parts`.
fn register(context: &SessionContext, parts: &[Values]) {
    let fields = ["p", "id", "v"].map(|name| Field::new(name, DataType::Int64, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let mut rows: Vec<(i64, i64, Option<i64>)> = Vec::new();
    for (part, values) in parts.iter().enumerate() {
        rows.extend(values.iter().enumerate().map(|(id, value)| (part as i64, id as i64, *value)));
    }
    // Not in the order of the windows.
    rows.sort_by_key(|(part, id, _)| (id * 7 + part * 3) % 11);
    let batches = rows.chunks(4).map(|rows| {
        let columns: [Int64Array; 3] = [
            rows.iter().map(|row| Some(row.0)).collect(),
            rows.iter().map(|row| Some(row.1)).collect(),
            rows.iter().map(|row| row.2).collect(),
        ];
        RecordBatch::try_new(schema.clone(), columns.map(|column| Arc::new(column) as _).to_vec()).unwrap()
    });
    let table = MemTable::try_new(schema.clone(), vec![batches.collect()]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
}

async fn last_column(context: &SessionContext, sql: &str) -> Values {
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    let column = |batch: &RecordBatch| {
        let last = batch.columns().last().unwrap();
        last.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
    };
    batches.iter().flat_map(column).collect()
}

/// A function over a frame.
#[derive(Clone, Copy, Debug)]
struct Call {
    name: &'static str,
    number: i64,
    ignore_nulls: bool,
    descending: bool,
    /// Rows from the own one, the beginning and the end of the frame; none: as far as the partition goes.
    frame: (Option<i64>, Option<i64>),
}

impl Call {
    fn any(numbers: &mut Numbers) -> Self {
        let name = numbers.one_of(&["lag", "lead", "first_value", "last_value", "nth_value", "sum", "max"]);
        let number = match name {
            "nth_value" => 1 + numbers.below(3) as i64,
            _ => numbers.below(9) as i64 - 4,
        };
        let bound = |numbers: &mut Numbers| (numbers.below(4) > 0).then(|| numbers.below(7) as i64 - 3);
        let (from, to) = (bound(numbers), bound(numbers));
        let frame = match (from, to) {
            (Some(from), Some(to)) => (Some(from.min(to)), Some(from.max(to))),
            open => open,
        };
        let ignore_nulls = numbers.below(2) == 0 && !matches!(name, "sum" | "max");
        Self { name, number, ignore_nulls, descending: numbers.below(4) == 0, frame }
    }

    /// Over the column `column`.
    fn sql(&self, column: &str) -> String {
        let mut sql = format!("{}({column}", self.name);
        if matches!(self.name, "lag" | "lead" | "nth_value") {
            write!(sql, ", {}", self.number).unwrap();
        }
        sql.push(')');
        if self.ignore_nulls {
            sql.push_str(" IGNORE NULLS");
        }
        let bound = |rows: Option<i64>, open: &str| match rows {
            None => format!("UNBOUNDED {open}"),
            Some(0) => "CURRENT ROW".to_owned(),
            Some(rows) if rows < 0 => format!("{} PRECEDING", -rows),
            Some(rows) => format!("{rows} FOLLOWING"),
        };
        let (from, to) = (bound(self.frame.0, "PRECEDING"), bound(self.frame.1, "FOLLOWING"));
        let order = if self.descending { "id DESC" } else { "id" };
        write!(sql, " OVER (PARTITION BY p ORDER BY {order} ROWS BETWEEN {from} AND {to})").unwrap();
        sql
    }

    /// For the rows of a partition that have `values`.
    fn of(&self, values: &Values) -> Values {
        if self.descending {
            let mut values: Values = values.iter().rev().copied().collect();
            values = Self { descending: false, ..*self }.of(&values);
            values.reverse();
            return values;
        }
        (0..values.len()).map(|row| self.of_row(values, row)).collect()
    }

    fn of_row(&self, values: &Values, row: usize) -> Option<i64> {
        let counts = |value: &&Option<i64>| !self.ignore_nulls || value.is_some();
        let back = match self.name {
            "lag" => Some(self.number),
            "lead" => Some(-self.number),
            _ => None,
        };
        if let Some(back) = back {
            let (before, after) = (&values[..row], &values[row + 1..]);
            let steps = back.unsigned_abs() as usize;
            return match back {
                0 => values[row],
                1.. => before.iter().rev().filter(counts).nth(steps - 1).copied().flatten(),
                _ => after.iter().filter(counts).nth(steps - 1).copied().flatten(),
            };
        }
        let at = |rows: Option<i64>, open: i64, more: i64| {
            let at = rows.map_or(open, |rows| row as i64 + rows + more);
            at.clamp(0, values.len() as i64) as usize
        };
        let (from, to) = (at(self.frame.0, 0, 0), at(self.frame.1, values.len() as i64, 1));
        let frame = values.get(from..to).unwrap_or_default();
        let mut counted = frame.iter().filter(counts);
        match self.name {
            "first_value" => counted.next().copied().flatten(),
            "last_value" => counted.next_back().copied().flatten(),
            "nth_value" => counted.nth(self.number as usize - 1).copied().flatten(),
            "sum" => frame.iter().flatten().copied().reduce(|sum, value| sum + value),
            _ => frame.iter().flatten().copied().max(),
        }
    }
}

#[test]
fn values_above_a_limit_are_those_of_all_rows() {
    let (runtime, mut numbers) = (runtime(), Numbers(25_471));
    let mut pushed = 0;
    for _ in 0..200 {
        let parts: Vec<Values> = (0..1 + numbers.below(3))
            .map(|_| (0..numbers.below(14)).map(|_| (numbers.below(3) > 0).then(|| numbers.below(90) as i64)).collect())
            .collect();
        let (inner, outer) = (Call::any(&mut numbers), Call::any(&mut numbers));
        let (limit, offset, partitions) = (numbers.below(9), numbers.below(3), 1 + numbers.below(2) as usize);
        let order = numbers.one_of(&["ORDER BY p, id", "ORDER BY p, id DESC"]);
        let sql = format!(
            "SELECT p, id, {} AS b FROM (SELECT p, id, {} AS a FROM t) x {order} LIMIT {limit} OFFSET {offset}",
            outer.sql("a"),
            inner.sql("v")
        );
        let expected: Values = parts
            .iter()
            .flat_map(|values| {
                let mut values = outer.of(&inner.of(values));
                if order.ends_with("DESC") {
                    values.reverse();
                }
                values
            })
            .skip(offset as usize)
            .take(limit as usize)
            .collect();
        let context = context(true, partitions);
        register(&context, &parts);
        let found = runtime.block_on(async {
            let plan = context.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
            pushed += usize::from(displayable(&*plan).indent(false).to_string().contains("TopK"));
            last_column(&context, &sql).await
        });
        assert_eq!(found, expected, "{sql}\n{parts:?}, {partitions} partitions");
    }
    assert!(pushed > 10, "limits reach sorts below windows: {pushed}");
}

/// The first table of the public issue, and its table for limits.
const ISSUE: [&[Option<i64>]; 2] = [
    &[Some(10), Some(20), Some(30), Some(40), None, None, Some(70), Some(80), None],
    &[Some(10), None, None, Some(40)],
];

fn of_issue(ours: bool, table: usize, sql: &str) -> Values {
    let context = context(ours, 1);
    register(&context, &[ISSUE[table].to_vec()]);
    runtime().block_on(last_column(&context, sql))
}

/// [Issue 25471](https://github.com/apache/datafusion/issues/25471): `mainstem_postgres::window::shifts`.
#[test]
fn canary_lead_without_nulls_forgets_to_look_on() {
    let sql = "SELECT lead(v, 2) IGNORE NULLS OVER (ORDER BY id) FROM t ORDER BY id";
    assert_eq!(of_issue(true, 0, sql)[2], Some(70));
    assert_eq!(of_issue(false, 0, sql)[2], None, "lead is right now");
}

/// The same issue: this file.
#[test]
fn canary_limits_below_windows_leave_rows_out() {
    let over = "OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t ORDER BY id LIMIT 1";
    for function in ["lead(v) IGNORE NULLS", "lag(v, -3)"] {
        let sql = format!("SELECT id, {function} {over}");
        assert_eq!(of_issue(true, 1, &sql), [Some(40)], "{function}");
        assert_eq!(of_issue(false, 1, &sql), [None], "{function} is right now");
    }
    let frame = |rows: usize| format!("OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND {rows} FOLLOWING)");
    let sql = format!(
        "SELECT id, sum(a) {} FROM (SELECT id, last_value(v) {} AS a FROM t) x ORDER BY id LIMIT 1",
        frame(1),
        frame(2)
    );
    assert_eq!((of_issue(true, 1, &sql), of_issue(false, 1, &sql)), (vec![Some(40)], vec![None]), "{sql}");
}
