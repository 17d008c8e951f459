//! Statements that read files whose columns' types were found in a sample.
//!
//! A value that is of another type ends the run; then all values are looked at, and the statement runs again. So that
//! nobody has seen rows of a run that ends like this, a query hands out none until it has read everything, or has more
//! than it holds back: then all values are looked at first. A LIMIT that needs fewer rows needs no such look.

use std::collections::VecDeque;

use datafusion::sql::sqlparser::ast::Statement as Ast;
use mainstem_storage::Result;
use mainstem_storage::transaction::Transaction;

use super::Session;
use crate::exec::{Environment, Notice, Running};
use crate::plan;
use crate::sql::reads_files;

/// Bytes of rows that are held back.
const HELD_BYTES_MAX: usize = 16 << 20;

impl Session {
    /// Starts `statement`, a query.
    pub(super) fn start_query(&mut self, mut statement: Ast) -> Result<Running> {
        loop {
            let again = reads_files(&statement).then(|| statement.clone());
            let running = self.read(|env, transaction| {
                let plan = env.plan(transaction, statement, None)?;
                env.start(&plan::shown(plan)?)
            })?;
            let Some(again) = again else { return Ok(running) };
            match self.settled(running)? {
                Some(running) => return Ok(running),
                None => statement = again,
            }
        }
    }

    /// `running`, the types of whose files are those of all values; none if they are others.
    fn settled(&mut self, mut running: Running) -> Result<Option<Running>> {
        let cancel = self.interrupts.watch(self.settings.statement_timeout());
        let Self { shared, planner, .. } = self;
        if !planner.files().are_uncertain() {
            return Ok(Some(running));
        }
        let (mut held, mut bytes) = (VecDeque::new(), 0);
        loop {
            match running.batches.next() {
                None => break,
                Some(Ok(batch)) => {
                    bytes += batch.get_array_memory_size();
                    held.push_back(batch);
                    if bytes > HELD_BYTES_MAX {
                        if planner.files().turn_out_otherwise(&shared.files, &cancel)? {
                            return Ok(None);
                        }
                        break;
                    }
                }
                Some(Err(_)) if planner.files().has_found_types(&shared.files, &cancel)? => return Ok(None),
                Some(Err(error)) => return Err(error),
            }
        }
        running.batches.put_before(held);
        Ok(Some(running))
    }

    /// What was found out about the files of the running statement.
    pub(super) fn file_notices(&mut self) -> Vec<Notice> {
        let found = self.planner.files().descriptions();
        found.into_iter().map(|description| Notice::new("00000", description)).collect()
    }
}

/// Runs `write`, again if it has failed for a type that was found in a sample.
pub(super) fn with_types<T>(
    env: &mut Environment<'_>,
    transaction: &mut Transaction,
    write: &mut dyn FnMut(&mut Environment<'_>, &mut Transaction) -> Result<T>,
) -> Result<T> {
    loop {
        match write(env, transaction) {
            Err(error) => {
                if !env.has_found_types()? {
                    return Err(error);
                }
            }
            written => return written,
        }
    }
}
