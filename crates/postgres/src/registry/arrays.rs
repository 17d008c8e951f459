//! The rows of functions of arrays and of rows, which are DataFusion's. Most have a name that begins with `list` too,
//! as in DuckDB.

use super::Fails::{Never, Value};
use super::Function;
use super::Kernel::{Adapted, DataFusion};
use crate::function::{datetime, float};

/// The rows.
pub(super) const ARRAYS: &[Function] = &[
    Function::new(
        &["array_any_value", "list_any_value"],
        "(array) -> its first value that is not NULL",
        Value,
        DataFusion,
    ),
    Function::new(
        &["array_append", "list_append", "array_push_back", "list_push_back"],
        "(array, value) -> array",
        Never,
        DataFusion,
    ),
    Function::new(&["array_avg", "list_avg"], "(array) -> double", Value, Adapted(float::in_one_form)),
    Function::new(&["array_compact", "list_compact"], "(array) -> array without NULLs", Value, DataFusion),
    Function::new(
        &["array_concat", "array_cat", "list_concat", "list_cat"],
        "(array, ...) -> array",
        Value,
        DataFusion,
    ),
    Function::new(&["array_dims", "list_dims"], "(array) -> lengths of its dimensions", Value, DataFusion),
    Function::new(&["array_distinct", "list_distinct"], "(array) -> array", Never, DataFusion),
    Function::new(
        &["array_element", "array_extract", "list_element", "list_extract"],
        "(array, n bigint) -> value",
        Value,
        DataFusion,
    ),
    Function::new(&["array_except", "list_except"], "(array, array) -> array", Value, DataFusion),
    Function::new(
        &["array_has", "list_has", "array_contains", "list_contains"],
        "(array, value) -> boolean",
        Never,
        DataFusion,
    ),
    Function::new(&["array_has_all", "list_has_all"], "(array, array) -> boolean", Never, DataFusion),
    Function::new(&["array_has_any", "list_has_any", "arrays_overlap"], "(array, array) -> boolean", Never, DataFusion),
    Function::new(&["array_intersect", "list_intersect"], "(array, array) -> array", Value, DataFusion),
    Function::new(&["array_length", "list_length"], "(array [, dimension integer]) -> bigint", Never, DataFusion),
    Function::new(&["array_max", "list_max"], "(array) -> value", Value, DataFusion),
    Function::new(&["array_min"], "(array) -> value", Value, DataFusion),
    Function::new(&["array_ndims", "list_ndims"], "(array) -> bigint", Never, DataFusion),
    Function::new(&["array_pop_back", "list_pop_back"], "(array) -> array", Value, DataFusion),
    Function::new(&["array_pop_front", "list_pop_front"], "(array) -> array", Value, DataFusion),
    Function::new(
        &["array_position", "list_position", "array_indexof", "list_indexof"],
        "(array, value [, start bigint]) -> bigint",
        Value,
        DataFusion,
    ),
    Function::new(&["array_positions", "list_positions"], "(array, value) -> bigint[]", Value, DataFusion),
    Function::new(
        &["array_prepend", "list_prepend", "array_push_front", "list_push_front"],
        "(value, array) -> array",
        Value,
        DataFusion,
    ),
    Function::new(&["array_product", "list_product"], "(array) -> double", Value, Adapted(float::in_one_form)),
    Function::new(
        &["array_remove_all", "list_remove_all", "array_remove", "list_remove"],
        "(array, value) -> array without such values",
        Value,
        DataFusion,
    ),
    Function::new(&["array_repeat", "list_repeat"], "(value, count bigint) -> array", Value, DataFusion),
    Function::new(
        &["array_replace_all", "list_replace_all", "array_replace", "list_replace"],
        "(array, from value, to value) -> array",
        Value,
        DataFusion,
    ),
    Function::new(
        &["array_resize", "list_resize"],
        "(array, length bigint [, fill value]) -> array",
        Value,
        DataFusion,
    ),
    Function::new(&["array_reverse", "list_reverse"], "(array) -> array", Value, DataFusion),
    Function::new(
        &["array_slice", "list_slice"],
        "(array, from bigint, to bigint [, step bigint]) -> array",
        Value,
        DataFusion,
    ),
    Function::new(&["array_sort", "list_sort"], "(array [, order text [, nulls text]]) -> array", Value, DataFusion)
        .literals(&[1, 2]),
    Function::new(&["array_sum", "list_sum"], "(array) -> double", Value, Adapted(float::in_one_form)),
    Function::new(
        &["array_to_string", "list_to_string", "array_join", "list_join"],
        "(array, delimiter text [, null text]) -> text",
        Never,
        DataFusion,
    ),
    Function::new(&["array_union", "list_union"], "(array, array) -> array", Value, DataFusion),
    Function::new(&["arrays_zip", "list_zip"], "(array, ...) -> rows[]", Value, DataFusion),
    Function::new(&["cardinality"], "(array) -> bigint", Never, DataFusion),
    Function::new(&["empty", "array_empty", "list_empty"], "(array) -> boolean", Never, DataFusion),
    Function::new(&["flatten"], "(array of arrays) -> array", Value, DataFusion),
    Function::new(&["generate_series"], "(start, stop [, step]) -> array", Value, Adapted(datetime::series)),
    Function::new(&["get_field"], "(row, name text) -> value", Never, DataFusion).literals(&[1]),
    Function::new(&["make_array", "make_list"], "(any, ...) -> array", Never, DataFusion),
    Function::new(&["named_struct"], "(name text, any, ...) -> row", Never, DataFusion)
        .literals(&[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]),
    Function::new(&["range"], "(start, stop [, step]) -> array", Value, Adapted(datetime::series)),
    Function::new(
        &["string_to_array", "string_to_list"],
        "(text, delimiter text [, null text]) -> text[]",
        Value,
        DataFusion,
    ),
    Function::new(&["struct", "row"], "(any, ...) -> row", Never, DataFusion),
];
