//! UNLOAD, LOAD, EXPORT and IMPORT.

use std::io::Write;

use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::attempts::Targets;
use super::{Current, Outcome, Session, ready};
use crate::exec::Notice;
use crate::plan;
use crate::sql::{
    Begin, CopyOptions, CopyStatement, CreateSequence, Passed, SetPosition, Statement, Transfer, TransferOf, parse,
};

impl Session {
    /// Runs one of them.
    pub(super) fn transfer(&mut self, transfer: &Transfer) -> Result<Outcome> {
        let tag = transfer.tag();
        self.settings.check_file_access(transfer.folder())?;
        match transfer {
            Transfer::Unload { what, folder, compression } => {
                let rows = self.read(|env, transaction| plan::unload(env, transaction, what, folder, *compression))?;
                Ok(Outcome::wrote(tag, rows))
            }
            Transfer::Load { what, folder } => {
                let targets = match what {
                    TransferOf::Database => Targets::None,
                    TransferOf::Table(name) => Targets::one(name),
                };
                let rows = self.write(targets, &mut |env, transaction| plan::load(env, transaction, what, folder))?;
                Ok(Outcome::wrote(tag, rows))
            }
            Transfer::Export { folder, format } => {
                let rows = self.read(|env, transaction| plan::export(env, transaction, folder, *format))?;
                Ok(Outcome::wrote(tag, rows))
            }
            Transfer::Import { folder } => self.import(folder).map(|rows| Outcome::wrote(tag, rows)),
        }
    }

    /// Writes the database as SQL to `out`; returns the rows.
    pub(crate) fn dump(&mut self, out: &mut dyn Write) -> Result<u64> {
        self.guarded(|session| session.read(|env, transaction| plan::dump(env, transaction, out)))
    }

    /// What a dump of PostgreSQL says that says nothing here.
    pub(super) fn pass_over(&self, passed: Passed) -> Result<Outcome> {
        let Passed { command, notice } = passed;
        self.check_restores(command)?;
        Ok(Outcome::done(command).with_notices(vec![Notice::new("00000", format!("{command}: {notice}"))]))
    }

    /// CREATE SEQUENCE.
    pub(super) fn create_sequence(&mut self, create: CreateSequence) -> Result<Outcome> {
        self.check_restores("CREATE SEQUENCE")?;
        let message =
            format!("sequence \"{}\" is kept for this session, until a column takes its numbers from it", create.name);
        self.settings.note_sequence(create.name, create.identity);
        Ok(Outcome::done("CREATE SEQUENCE").with_notices(vec![Notice::new("00000", message)]))
    }

    /// # Errors
    /// 0A000 unless a dump is being read.
    pub(super) fn check_restores(&self, command: &str) -> Result<()> {
        if self.settings.restores_dump() {
            return Ok(());
        }
        Err(Error::unsupported(format_args!("the statement {command} (SET postgres_dump = on passes over it)")))
    }

    /// `setval`: shows the value.
    pub(super) fn set_position(&mut self, set: &SetPosition) -> Result<Outcome> {
        self.write(Targets::None, &mut |env, transaction| plan::set_position(env, transaction, set))?;
        ready("SELECT", &[("setval", vec![set.value.to_string()])])
    }

    /// Runs what EXPORT has written, as one transaction.
    fn import(&mut self, folder: &str) -> Result<u64> {
        if !matches!(self.current, Current::None) {
            let message = "IMPORT DATABASE cannot run inside a transaction";
            return Err(Error::invalid(sqlstate::ACTIVE_TRANSACTION, message));
        }
        let texts = plan::import_texts(folder)?;
        self.begin(Begin::default())?;
        let mut rows = 0;
        let imported = texts.iter().try_for_each(|text| {
            let mut script = parse(text)?;
            let ran = script.with_stack(|script| {
                while let Some(statement) = script.next() {
                    rows += self.import_statement(folder, statement)?;
                }
                Ok(())
            });
            ran.map_err(|error: Error| script.with_position(error))
        });
        match imported {
            Ok(()) => self.commit().map(|_| rows),
            Err(error) => {
                self.rollback()?;
                Err(error.context(format_args!("IMPORT DATABASE \"{folder}\"")))
            }
        }
    }

    /// Runs a statement of a folder; returns the rows that it copies.
    fn import_statement(&mut self, folder: &str, statement: Statement) -> Result<u64> {
        let statement = match statement {
            Statement::Copy(CopyStatement::From { table, columns, options, read }) => {
                let options = CopyOptions { place: plan::import_place(folder, options.place.clone()), ..options };
                Statement::Copy(CopyStatement::From { table, columns, options, read })
            }
            other => other,
        };
        let copies = matches!(statement, Statement::Copy(_));
        let outcome = self.dispatch(statement)?;
        Ok(outcome.affected.filter(|_| copies).unwrap_or(0))
    }
}
