//! What DataFusion 55.2 does wrong about aggregates, each mended in a file of its own.
//!
//! Comes in: rules, found by their names, and optimised plans. Goes out: rules that leave wrong things alone, and plans
//! whose aggregates can be run. It does not own: what aggregates compute (`mainstem_postgres::aggregate`).

mod exact_statistics;
mod repeated_sort_keys;
mod single_distinct;

pub(crate) use exact_statistics::answers_of_scans;
pub(crate) use repeated_sort_keys::sort_keys_once;
pub(crate) use single_distinct::exact_sums_beside_distinct;
