//! The rows of functions of sets of rows: aggregates, and window functions.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Fails::{self, Never, Overflow, Value};

/// Whether a result is the same for every order of rows that the statement leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyOrder {
    /// It is.
    Yes,
    /// Where the values are no floats, whose sums round.
    OfExactValues,
    /// It is not.
    No,
}

/// A function of rows: a row.
#[derive(Debug)]
pub struct SetFunction {
    /// Its own name, and others.
    pub names: &'static [&'static str],
    /// Arguments in parentheses, and behind an arrow the result.
    pub signature: &'static str,
    /// What calls may end in.
    pub fails: Fails,
    /// Whether the order of rows matters.
    pub any_order: AnyOrder,
}

const fn set(
    names: &'static [&'static str],
    signature: &'static str,
    fails: Fails,
    any_order: AnyOrder,
) -> SetFunction {
    SetFunction { names, signature, fails, any_order }
}

/// Aggregates. Each is a window function too.
pub(super) const AGGREGATES: &[SetFunction] = &[
    set(&["any_value"], "(any) -> a value of the group", Never, AnyOrder::No),
    set(&["approx_distinct"], "(any) -> bigint", Never, AnyOrder::No),
    set(&["approx_median"], "(number) -> double", Never, AnyOrder::No),
    set(&["approx_percentile_cont"], "(share double) WITHIN GROUP (ORDER BY number) -> double", Value, AnyOrder::No),
    set(&["array_agg"], "(any [ORDER BY ...]) -> array", Never, AnyOrder::No),
    set(&["avg", "mean"], "(number) -> numeric or double", Overflow, AnyOrder::OfExactValues),
    set(&["bit_and"], "(integer) -> integer", Never, AnyOrder::Yes),
    set(&["bit_or"], "(integer) -> integer", Never, AnyOrder::Yes),
    set(&["bit_xor"], "(integer) -> integer", Never, AnyOrder::Yes),
    set(&["bool_and", "every"], "(boolean) -> boolean", Never, AnyOrder::Yes),
    set(&["bool_or"], "(boolean) -> boolean", Never, AnyOrder::Yes),
    set(&["corr"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["count"], "(any) -> bigint", Never, AnyOrder::Yes),
    set(&["covar_pop"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["covar_samp", "covar"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["first_value"], "(any) -> its type", Never, AnyOrder::No),
    set(&["grouping"], "(any, ...) -> integer", Never, AnyOrder::No),
    set(&["last_value"], "(any) -> its type", Never, AnyOrder::No),
    set(&["max"], "(any) -> its type", Never, AnyOrder::Yes),
    set(&["median"], "(number) -> its type", Never, AnyOrder::Yes),
    set(&["min"], "(any) -> its type", Never, AnyOrder::Yes),
    set(&["mode"], "() WITHIN GROUP (ORDER BY any) -> its type", Never, AnyOrder::Yes),
    set(
        &["percentile_cont", "quantile_cont"],
        "(share double) WITHIN GROUP (ORDER BY number) -> double",
        Value,
        AnyOrder::Yes,
    ),
    set(&["percentile_disc"], "(share double) WITHIN GROUP (ORDER BY any) -> its type", Value, AnyOrder::Yes),
    set(&["regr_avgx"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["regr_avgy"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["regr_count"], "(double, double) -> bigint", Never, AnyOrder::Yes),
    set(&["regr_intercept"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["regr_r2"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["regr_slope"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["regr_sxx"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["regr_sxy"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["regr_syy"], "(double, double) -> double", Never, AnyOrder::No),
    set(&["stddev", "stddev_samp"], "(number) -> double", Never, AnyOrder::No),
    set(&["stddev_pop"], "(number) -> double", Never, AnyOrder::No),
    set(&["string_agg"], "(text, delimiter text [ORDER BY ...]) -> text", Never, AnyOrder::No),
    set(&["sum"], "(number) -> bigint, numeric or double", Overflow, AnyOrder::OfExactValues),
    set(&["var", "var_sample", "var_samp", "variance"], "(number) -> double", Never, AnyOrder::No),
    set(&["var_pop", "var_population"], "(number) -> double", Never, AnyOrder::No),
];

/// Functions that stand in front of OVER alone.
pub(super) const WINDOWS: &[SetFunction] = &[
    set(&["cume_dist"], "() -> double", Value, AnyOrder::Yes),
    set(&["dense_rank"], "() -> bigint", Value, AnyOrder::Yes),
    set(&["first_value"], "(any) -> its type", Value, AnyOrder::No),
    set(&["lag"], "(any [, offset integer [, otherwise any]]) -> its type", Value, AnyOrder::No),
    set(&["last_value"], "(any) -> its type", Value, AnyOrder::No),
    set(&["lead"], "(any [, offset integer [, otherwise any]]) -> its type", Value, AnyOrder::No),
    set(&["nth_value"], "(any, n integer) -> its type", Value, AnyOrder::No),
    set(&["ntile"], "(buckets integer) -> bigint", Value, AnyOrder::No),
    set(&["percent_rank"], "() -> double", Value, AnyOrder::Yes),
    set(&["rank"], "() -> bigint", Value, AnyOrder::Yes),
    set(&["row_number"], "() -> bigint", Value, AnyOrder::No),
];

fn aggregates() -> &'static HashMap<&'static str, &'static SetFunction> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static SetFunction>> = LazyLock::new(|| {
        let named = |function: &'static SetFunction| function.names.iter().map(move |name| (*name, function));
        AGGREGATES.iter().flat_map(named).collect()
    });
    &BY_NAME
}

/// Whether statements call an aggregate by `name`.
#[must_use]
pub fn is_aggregate(name: &str) -> bool {
    aggregates().contains_key(name)
}

/// What calls of the aggregate `name` may end in.
#[must_use]
pub fn aggregate_fails(name: &str) -> Fails {
    aggregates().get(name).map_or(Value, |function| function.fails)
}

/// Whether the order of rows matters to the aggregate or window function `name`.
#[must_use]
pub fn any_order(name: &str) -> AnyOrder {
    let window = || WINDOWS.iter().find(|function| function.names.contains(&name));
    aggregates().get(name).copied().or_else(window).map_or(AnyOrder::No, |function| function.any_order)
}

/// The names of aggregates that DataFusion does not know them by: its own name of each, and ours.
pub(super) fn names_of(name: &str) -> Option<&'static [&'static str]> {
    aggregates().get(name).map(|function| function.names)
}
