//! What a physical plan may know of its rows: only what this module proves.
//!
//! DataFusion 55.2 derives orders, constants and equal columns above every operator (`EquivalenceProperties`), and
//! takes away sorts, keys and limits by them. Some of that is wrong: constants of the NULL side of an outer join, and
//! of grouping sets, count as constant above it (apache/datafusion 16965); a running maximum that begins with NULL
//! counts as ascending; a cast to TIME counts as monotone; branches of UNION are mistaken for one another. So nothing
//! that it derives is used.
//!
//! Comes in: a physical plan, before and after each rule over it. Goes out: the same plan, in which each operator that
//! derives properties is a [`Declared`] one: it says which orders its rows have by [`orders`], and nothing else.
//!
//! 1. [`orders::of`] derives orders from those of an operator's inputs, for plain columns only. What our scans, sorts
//!    and merge joins declare is theirs, and tested there.
//! 2. [`declaring`] stands around each rule: what it made is declared again before the next rule looks.
//! 3. [`EnsureRequirements`] adds what operators require. It has the steps of DataFusion's rule of that name, each of
//!    which sees declared operators only, but never pushes a sort below a join, a union, a window or a limit.
//! 4. Keys that are computed are in no order, however the rows below are: whoever sorts or groups by them reads an
//!    input that declares none.
//!
//! Invariants: an operator that requires an order gets it by a sort, or by a proof of [`orders`]; no sort below a limit
//! goes. With the setting `derived_properties = off` scans declare nothing either, and what optimizes by knowledge of
//! rows is left out ([`rules`]): the tester of random queries compares both (`tests/it/random_queries`).
//!
//! It does not own: keys and functional dependencies in logical plans (`optimize::unique_keys`); statistics.

mod declared;
mod orders;
mod requirements;
mod rules;
mod sorts;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::config::ConfigOptions;
use mainstem_postgres::function::{Carried, Named};

use self::declared::declared;
use self::requirements::EnsureRequirements;
pub(super) use self::rules::{DeclaredPlans, declaring, logical_rule_runs};

/// The session's `derived_properties` for the statement that is planned.
#[derive(Clone, Debug)]
pub(super) struct DerivedProperties(Arc<AtomicBool>);

impl Default for DerivedProperties {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl DerivedProperties {
    /// What the next plans go by.
    pub(super) fn set(&self, are_used: bool) {
        self.0.store(are_used, Ordering::Relaxed);
    }

    /// Whether plans may rely on what is known of their rows.
    pub(super) fn are_used(config: &ConfigOptions) -> bool {
        config.extensions.get().is_none_or(|Carried(Self(are_used))| are_used.load(Ordering::Relaxed))
    }
}

impl Named for DerivedProperties {
    const NAME: &'static str = "mainstem_derived_properties";
}
