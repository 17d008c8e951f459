//! The one list of functions: a row each.
//!
//! Comes in: DataFusion's functions, and the memory of queries. Goes out: the functions that statements can call
//! ([`scalar_functions`]), and what the planner asks about a function by its name ([`scalar`], [`is_aggregate`]) and
//! about an expression ([`may_fail`]). A function of DataFusion's that has no row is not there: what has none was never
//! compared with PostgreSQL.
//!
//! The rows are the source of `docs/functions.md` too (`page`).
//!
//! It does not own: what a function does (`function`, `aggregate`, `window`), nor syntax that becomes calls (`analyze`
//! of the SQL crate: EXTRACT, `mod`, operators).

mod arrays;
mod calls_of_operators;
mod failing;
mod page;
mod scalars;
mod sets;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion_execution::memory_pool::MemoryPool;
use datafusion_expr::{AggregateUDF, ScalarUDF, Volatility};

pub use failing::may_fail;
pub use page::page;
pub use sets::{AnyOrder, aggregate_fails, any_order, is_aggregate};

/// What calls of a function may end in, besides errors of types, which come when a statement is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fails {
    /// In a value, for all arguments.
    Never,
    /// In 22003 where the result does not fit: as sums and products do. Nobody guards them.
    Overflow,
    /// In 22012 where this argument, counted from 0, is zero.
    Divisor(usize),
    /// In an error for some values.
    Value,
}

/// Where a function comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// DataFusion's, as it is.
    DataFusion,
    /// DataFusion's with a change of ours around it.
    Adapted(fn(Arc<ScalarUDF>, &Arc<dyn MemoryPool>) -> ScalarUDF),
    /// Ours, by its name.
    Own(fn(&'static str) -> ScalarUDF),
    /// The SQL crate registers it, because it needs what a statement has.
    OfStatement,
    /// The planner makes calls of it, of operators and casts; no statement can.
    OfOperator,
}

/// A function: a row.
#[derive(Debug)]
pub struct Function {
    /// Its own name, under which its errors tell of it, and others.
    pub names: &'static [&'static str],
    /// Arguments in parentheses, and behind an arrow the result, as a reader of documentation knows them.
    pub signature: &'static str,
    /// Whether calls of equal arguments have equal results.
    pub volatility: Volatility,
    /// What calls may end in.
    pub fails: Fails,
    /// Arguments, counted from 0, that must be literals, or on whose being literals the type of the result depends.
    pub literals: &'static [usize],
    pub(crate) kernel: Kernel,
}

impl Function {
    pub(crate) const fn new(
        names: &'static [&'static str],
        signature: &'static str,
        fails: Fails,
        kernel: Kernel,
    ) -> Self {
        Self { names, signature, volatility: Volatility::Immutable, fails, literals: &[], kernel }
    }

    pub(crate) const fn volatility(mut self, volatility: Volatility) -> Self {
        self.volatility = volatility;
        self
    }

    pub(crate) const fn literals(mut self, literals: &'static [usize]) -> Self {
        self.literals = literals;
        self
    }

    /// Its own name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Whether statements can call it.
    #[must_use]
    pub fn is_callable(&self) -> bool {
        !matches!(self.kernel, Kernel::OfOperator)
    }
}

/// All rows of scalar functions.
pub(crate) fn rows() -> impl Iterator<Item = &'static Function> {
    scalars::GROUPS.iter().flat_map(|group| group.functions).chain(arrays::ARRAYS).chain(calls_of_operators::CALLS)
}

/// The rows of the scalar functions that statements can call.
pub fn callable() -> impl Iterator<Item = &'static Function> {
    rows().filter(|function| function.is_callable())
}

/// The row of the scalar function that calls itself `name`.
#[must_use]
pub fn scalar(name: &str) -> Option<&'static Function> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> =
        LazyLock::new(|| rows().map(|function| (function.name(), function)).collect());
    BY_NAME.get(name).copied()
}

/// What calls of `function` may end in; of one without a row, in anything.
#[must_use]
pub fn fails(function: &ScalarUDF) -> Fails {
    scalar(function.name()).map_or(Fails::Value, |row| row.fails)
}

/// Whether the argument `at` of `function` may be another value each time that an expression is evaluated, instead of a
/// literal, and nothing changes but the time that it takes.
#[must_use]
pub fn takes_columns(function: &ScalarUDF, at: usize) -> bool {
    scalar(function.name()).is_some_and(|row| !row.literals.contains(&at))
}

/// The scalar functions that statements can call, under all of their names, but for those that the SQL crate has: of
/// `theirs`, which are DataFusion's by their names, and ours. Those that make long texts ask `pool` before.
#[must_use]
pub fn scalar_functions(theirs: &HashMap<String, Arc<ScalarUDF>>, pool: &Arc<dyn MemoryPool>) -> Vec<Arc<ScalarUDF>> {
    let made = |row: &'static Function| {
        let datafusion = || row.names.iter().find_map(|name| theirs.get(*name)).cloned();
        let function = match row.kernel {
            Kernel::DataFusion => datafusion()?,
            Kernel::Adapted(adapt) => Arc::new(adapt(datafusion()?, pool)),
            Kernel::Own(make) => Arc::new(make(row.name())),
            Kernel::OfStatement | Kernel::OfOperator => return None,
        };
        let missing = missing_names(row.names, function.name(), function.aliases());
        Some(if missing.is_empty() { function } else { Arc::new(ScalarUDF::clone(&function).with_aliases(missing)) })
    };
    rows().filter_map(made).collect()
}

/// `aggregate`, under all of its names; none if it has no row.
#[must_use]
pub fn aggregate_function(aggregate: Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    let missing = missing_names(sets::names_of(aggregate.name())?, aggregate.name(), aggregate.aliases());
    Some(if missing.is_empty() { aggregate } else { Arc::new(AggregateUDF::clone(&aggregate).with_aliases(missing)) })
}

/// Those of the `names` of a row that a function called `own` does not have yet.
fn missing_names(names: &[&'static str], own: &str, aliases: &[String]) -> Vec<&'static str> {
    names.iter().copied().filter(|name| *name != own && !aliases.iter().any(|alias| alias == name)).collect()
}

/// The own name of the scalar function that statements call by `name`.
#[must_use]
pub fn own_name(name: &str) -> Option<&'static str> {
    static OWN: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
        let named = |row: &'static Function| row.names.iter().map(|name| (*name, row.name()));
        callable().flat_map(named).collect()
    });
    OWN.get(name).copied()
}
