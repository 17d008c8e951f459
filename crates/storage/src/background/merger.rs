//! Runs merges (being written).
use crate::commit::Engine;
use crate::error::Result;
use crate::ids::TableId;

/// What became of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeState {
    /// It runs.
    Running,
}

/// A merge, for `mainstem.merges`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeStatus {
    /// What became of it.
    pub state: MergeState,
}

/// One merge at a time.
#[derive(Debug, Default)]
pub struct Merger;

impl Merger {
    pub fn cancel(&self) {}
    pub fn flush(&self, _: &Engine, _: TableId) -> Result<()> {
        Ok(())
    }
    pub fn merge_all(&self, _: &Engine, _: TableId) -> Result<()> {
        Ok(())
    }
    pub fn history(&self) -> Vec<MergeStatus> {
        Vec::new()
    }
    pub fn step(&self, _: &Engine) -> Result<bool> {
        Ok(false)
    }
}
