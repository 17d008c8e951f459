//! Parsed statements, and the stack that their trees need.

use std::collections::VecDeque;

use mainstem_storage::{Error, Result};

use super::Statement;

/// A stack for walks over deep trees. Only touched pages cost memory.
const STACK_BYTES: usize = 256 << 20;

/// Parsed statements. Trees are walked by recursion, their drop included: that happens inside [`Script::with_stack`].
#[derive(Debug)]
pub(crate) struct Script {
    statements: VecDeque<Statement>,
    deep: bool,
}

impl Script {
    pub(super) fn new(statements: VecDeque<Statement>, deep: bool) -> Self {
        Self { statements, deep }
    }

    /// Takes the next statement out.
    pub(crate) fn next(&mut self) -> Option<Statement> {
        self.statements.pop_front()
    }

    /// The only statement, if there is just one.
    pub(crate) fn only(&self) -> Option<&Statement> {
        self.statements.front().filter(|_| self.statements.len() == 1)
    }

    /// Runs `work` on a stack that is large enough for the statements.
    pub(crate) fn with_stack<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        on_stack(self.deep, || work(self))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        on_stack(self.deep, || self.statements.clear());
    }
}

/// One statement that is kept, to be run any number of times with values for its parameters.
#[derive(Debug)]
pub(crate) struct Template {
    /// Of the one statement.
    script: Script,
    parameters: usize,
}

impl Template {
    /// `statement`, which has parameters `$1` to `$parameters`; `deep` says that its tree needs a stack of its own.
    pub(super) fn new(statement: Statement, parameters: usize, deep: bool) -> Self {
        Self { script: Script::new(VecDeque::from([statement]), deep), parameters }
    }

    /// The highest number of a parameter.
    pub(crate) fn parameters(&self) -> usize {
        self.parameters
    }

    /// Runs `work` with the statement, on a stack that is large enough for its tree and copies of it.
    pub(crate) fn with_statement<T>(&self, work: impl FnOnce(&Statement) -> Result<T>) -> Result<T> {
        let statement = self.script.only().ok_or_else(|| Error::internal("a template without its statement"))?;
        on_stack(self.script.deep, || work(statement))
    }
}

/// Runs `work`, on a stack of its own if `deep` says so.
pub(in super::super) fn on_stack<T>(deep: bool, work: impl FnOnce() -> T) -> T {
    if deep { stacker::grow(STACK_BYTES, work) } else { work() }
}
