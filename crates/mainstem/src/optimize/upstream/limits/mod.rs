//! Limits that DataFusion 55.2 carries to where they leave rows out, or to other partitions.

mod group_limits;
mod sort_pushdown;
mod window_limits;
#[cfg(test)]
mod window_tests;

pub(crate) use group_limits::safe_group_limits;
pub(crate) use sort_pushdown::partition_limits;
pub(crate) use window_limits::window_limits;
