//! What a session hands to its rules and functions, with the options that DataFusion gives to all of them.
//!
//! Comes in: a value of the session's. Goes out: an extension of the options, which can be asked for it. No SET reaches
//! it.

use std::any::Any;
use std::fmt::Debug;

use datafusion_common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion_common::{DataFusionError, Result};

/// The name of a value among the extensions.
pub trait Named: Clone + Debug + Send + Sync + 'static {
    /// Unlike any other's.
    const NAME: &'static str;
}

/// A value as an extension.
#[derive(Clone, Debug)]
pub struct Carried<T>(pub T);

impl<T: Named> ConfigExtension for Carried<T> {
    const PREFIX: &'static str = T::NAME;
}

impl<T: Named> ExtensionOptions for Carried<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("there is no setting {key}")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
