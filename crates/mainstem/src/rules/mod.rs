//! What DataFusion's plans lack to mean what SQL means: arithmetic that overflows is an error (22003) where DataFusion wraps
//! silently or gives infinity, types that it coerces otherwise, types and functions that it has not got.
//!
//! Comes in: analysed logical plans, and the function registry. Goes out: plans whose arithmetic and casts call functions of
//! ours, `sum` and `avg` of ours, the blanks of CHAR(n), texts of bounded length, doubles beside decimals, VALUES of
//! one type a column, scalar subqueries and IN that may be NULL, subqueries in VALUES, guards of what may fail, INTERSECT ALL and EXCEPT ALL that count, SQL in other
//! words, shallow trees, names for select items that repeat, full names of tables
//! where columns have them, windows (frames over types that have no distance, counts, frames that move), and functions that DataFusion lacks. It does not own:
//! how values of one type become those of another (`value::convert`).

mod balance;
mod blanks;
mod coerced;
mod functions;
mod guards;
mod moments;
mod multisets;
mod numbers;
mod rows;
mod spelled;
mod subquery;
mod tree;
mod twins;
mod upstream;
mod walk;
mod windows;

pub(crate) use balance::balance;
pub(crate) use blanks::{Blanks, padded};
pub(crate) use coerced::{CoercedTypes, settled, type_literals};
pub(crate) use functions::{
    Carried, Named, SessionCatalog, bounded, coalesce, functions, of_bytes, of_decimals, ordered_sets, random_uuid,
    with_settings,
};
pub(crate) use guards::{guard_expression, guard_plan};
pub(crate) use moments::{PlannedParts, Series};
pub(crate) use multisets::Multisets;
pub(crate) use numbers::{
    BITWISE_NOT, CheckedArithmetic, Divisions, Reals, Roundings, average, checked_sum, of_floats,
};
pub(crate) use spelled::{SqlCasts, TypedLiterals, decimal_of};
pub(crate) use subquery::{NullableSubqueries, PlacedSubqueries, SubqueriesInValues, UnknownMembers};
pub(crate) use tree::{
    BesideStar, ItemNames, KnownTable, as_said, check_limits, check_rows, group_by_keys, relations_first, reword,
    rows_without_marks, spell_names, without_marks,
};
pub(crate) use twins::{name_repeated, name_twins};
pub(crate) use upstream::{guarded, keys_as_columns, limited_groups, null_safe, pushes_by_name, simplified};
pub(crate) use windows::{Frames, moving, whole_numbers};
