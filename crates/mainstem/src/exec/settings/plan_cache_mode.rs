//! The setting `plan_cache_mode`.

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// The setting that says when statements are kept by their texts without literals.
pub(super) const PLAN_CACHE_MODE: &str = "plan_cache_mode";

/// When a text without its literals is prepared and kept (the setting `plan_cache_mode`, as in PostgreSQL).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlanCacheMode {
    /// When it is seen for the second time.
    #[default]
    Auto,
    /// At once.
    ForceGeneric,
    /// Never.
    ForceCustom,
}

impl PlanCacheMode {
    const NAMES: [(&str, Self); 3] =
        [("auto", Self::Auto), ("force_generic_plan", Self::ForceGeneric), ("force_custom_plan", Self::ForceCustom)];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, mode)| *mode == self).map_or("auto", |(name, _)| *name)
    }

    pub(super) fn named(name: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let message = format!(
                "invalid value \"{name}\" for {PLAN_CACHE_MODE}: auto, force_generic_plan or force_custom_plan"
            );
            Error::invalid(sqlstate::INVALID_PARAMETER, message)
        })
    }
}
