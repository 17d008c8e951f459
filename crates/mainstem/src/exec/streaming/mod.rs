//! Operators that use the order in which rows come, and hold little of them.
//!
//! Comes in: a physical plan. Goes out: the same plan with aggregations ([`aggregates`], [`operator`]), windows
//! ([`windows`]) and ranking functions ([`rankings`]) that read rows in order.
//!
//! It does not own: how rows get their order (`sort`, `storage::scan::OrderedScan`).

mod aggregates;
mod groups;
mod operator;
mod rankings;
mod ranges;
mod windows;

pub(super) use aggregates::{StreamingAggregates, leaves_free};
pub(super) use operator::{OrderedGroupBy, StreamingAggregateExec};
pub(super) use rankings::{RankingWindow, RankingWindows};
pub(super) use windows::StreamingWindows;
