//! The experiments there are.

use crate::experiment::Experiment;

/// All experiments of this build.
#[must_use]
pub fn all() -> &'static [Experiment] {
    &[
        #[cfg(feature = "sql")]
        crate::hybrid::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::statements::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::transactions::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::tpch::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::tpch::SHAPES,
        #[cfg(feature = "sql")]
        crate::tpch::LARGE,
        #[cfg(feature = "sql")]
        crate::scan::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::load::EXPERIMENT,
        crate::index::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::load::parse::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::load::unload::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::load::buffers::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::load::chunk_size::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::load::online::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::load::scale::EXPERIMENT,
        #[cfg(feature = "sql")]
        crate::recovery::EXPERIMENT,
    ]
}

/// The experiment of that name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Experiment> {
    all().iter().find(|experiment| experiment.name == name)
}
