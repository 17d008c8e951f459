//! What is to be run of a text, and by what: a statement that is kept of it, or its tree.
//!
//! Comes in: a text. Goes out: the outcomes of its statements, one after the other.
//!
//! 1. A text that differs from an earlier one in literals alone runs as a prepared statement with these for values.
//! 2. A text that was seen before runs by what is kept of it. Of several statements each is a text of its own, whether
//!    their text was seen or not: what is kept of it is asked for when it is its turn, for those in front of it may
//!    change what it means.
//! 3. All others are parsed, all of their statements before the first one runs.
//!
//! Invariant: what is wrong with a statement is told as if it were parsed and planned with the text that it stands in.

use std::sync::Arc;

use mainstem_storage::Result;
use parking_lot::Mutex;

use super::{Connection, StatementOutcome};
use crate::session::{Kept, KeptSeveral, Outcome, Prepared};
use crate::sql::{self, Parameterized, Script, Several};
use crate::value::ValueRef;

/// Runs statements as it is advanced. After an error it goes on with the next statement if it is advanced again.
#[derive(Debug)]
pub struct Statements<'a> {
    connection: &'a Connection,
    pending: Pending,
}

/// What has not run yet.
#[derive(Debug)]
pub(super) enum Pending {
    Script(Script),
    /// One statement, with its text.
    Kept {
        text: Box<str>,
        parameterized: Option<Parameterized>,
        prepared: Arc<Mutex<Prepared>>,
    },
    /// The statements of a text from number `next` on.
    Several {
        several: Arc<KeptSeveral>,
        next: usize,
    },
    Nothing,
}

impl<'a> Statements<'a> {
    pub(super) fn new(connection: &'a Connection, sql: &str) -> Result<Self> {
        Ok(Self { connection, pending: connection.pending(sql)? })
    }
}

impl Statements<'_> {
    /// The outcome of the next statement, if it is short: if no plan has to be made for it. `None` if it is not, or
    /// there is none; then nothing has happened, and it is the next one still.
    pub fn next_if_short(&mut self) -> Option<Result<StatementOutcome>> {
        self.connection.advance_if_short(&mut self.pending)
    }

    /// Whether a statement is left.
    #[must_use]
    pub fn has_next(&self) -> bool {
        match &self.pending {
            Pending::Script(script) => script.has_next(),
            Pending::Kept { .. } => true,
            Pending::Several { several, next } => several.several.statement(*next).is_some(),
            Pending::Nothing => false,
        }
    }

    /// Runs them all and gives what the last one gave; the rows of those in front of it are read to their end before
    /// the next one runs. Without `autocommit` each begins a transaction as [`Connection::begin_implicitly`] does;
    /// `sql` is their text.
    ///
    /// # Errors
    /// That of the first statement that fails; none after it runs.
    pub fn run_to_last(mut self, sql: &str, autocommit: bool) -> Result<Option<StatementOutcome>> {
        let mut texts = sql::statement_texts(sql).into_iter();
        loop {
            let text = texts.next();
            if !autocommit && self.has_next() {
                self.connection.begin_implicitly(text.unwrap_or(sql))?;
            }
            let Some(outcome) = self.next().transpose()? else { return Ok(None) };
            if !self.has_next() {
                return Ok(Some(outcome));
            }
            outcome.finish()?;
        }
    }
}

impl Iterator for Statements<'_> {
    type Item = Result<StatementOutcome>;

    fn next(&mut self) -> Option<Self::Item> {
        self.connection.advance(&mut self.pending)
    }
}

impl Connection {
    /// `sql` as it is to be run: by a statement that differs from it in literals alone, or by the plan of the same
    /// text, if one is kept, or one statement of it after the other.
    pub(super) fn pending(&self, sql: &str) -> Result<Pending> {
        let parameterized = match sql::parameterize(sql) {
            Some(parameterized) => {
                // What is wrong with it is told of the text itself.
                let prepare = |text: &str| {
                    let template = sql::parse_template(text).ok()?;
                    self.prepare_template(Arc::new(template)).ok()
                };
                self.kept(&parameterized.text, prepare).map(|prepared| (parameterized, prepared))
            }
            None => None,
        };
        if let Some((parameterized, prepared)) = parameterized {
            return Ok(Pending::Kept { text: sql.into(), parameterized: Some(parameterized), prepared });
        }
        match self.kept_whole(sql) {
            Some(pending) => Ok(pending),
            None => sql::parse(sql).map(Pending::Script),
        }
    }

    /// What is kept of `sql` as it is.
    fn kept_whole(&self, sql: &str) -> Option<Pending> {
        let may_be_several = sql::may_be_several(sql);
        if !may_be_several && !sql::may_have_query(sql) {
            return None;
        }
        let kept = self.session.lock().kept_generic(sql);
        if let Kept::Several(several) = kept {
            return Some(Pending::Several { several, next: 0 });
        }
        if may_be_several
            && matches!(kept, Kept::New | Kept::Seen)
            && let Some(several) = Several::of(sql)
        {
            let several = self.session.lock().keep_several(sql, several, matches!(kept, Kept::Seen));
            return Some(Pending::Several { several, next: 0 });
        }
        // Semicolons may stand in its literals.
        let prepared = self.prepared_of(sql, kept, |text| Prepared::of_text(sql::parse_template(text).ok()?));
        // Prepared as it is, by a call with values, the text has parameters.
        let prepared = prepared.filter(|prepared| prepared.lock().parameters() == 0)?;
        Some(Pending::Kept { text: sql.into(), parameterized: None, prepared })
    }

    /// Runs the next statement of `pending`, if it is short.
    fn advance_if_short(&self, pending: &mut Pending) -> Option<Result<StatementOutcome>> {
        let Pending::Kept { parameterized: Some(parameterized), prepared, .. } = &*pending else { return None };
        let values = parameterized.values();
        let outcome = {
            let mut prepared = prepared.lock();
            self.session.lock().run_parameterized(&mut prepared, &values)
        };
        let outcome = match outcome {
            Ok(outcome) => outcome.filter(|outcome| !was_looked_at_for_nothing(outcome))?,
            Err(error) if sql::is_of_values(&error) && !prepared.lock().draws_numbers() => return None,
            Err(error) => {
                *pending = Pending::Nothing;
                return Some(Err(error));
            }
        };
        *pending = Pending::Nothing;
        Some(Ok(StatementOutcome::new(outcome, &self.shared)))
    }

    /// Runs the next statement of `pending`.
    fn advance(&self, pending: &mut Pending) -> Option<Result<StatementOutcome>> {
        if let Pending::Several { several, next } = pending {
            let (text, before) = several.several.statement(*next)?;
            *next += 1;
            let outcome = self.pending(text).map(|mut statement| self.advance(&mut statement)).transpose()?;
            return Some(outcome.flatten().map_err(|error| {
                let position = error.position().map(|position| position + before);
                error.with_position(position)
            }));
        }
        if let Pending::Kept { text, parameterized, prepared } = pending {
            let outcome = self.run_kept(parameterized.as_ref(), prepared);
            if outcome.is_some() {
                *pending = Pending::Nothing;
                return outcome;
            }
            match sql::parse(text) {
                Ok(script) => *pending = Pending::Script(script),
                Err(error) => {
                    *pending = Pending::Nothing;
                    return Some(Err(error));
                }
            }
        }
        match pending {
            Pending::Script(script) => self.run_next(script),
            _ => None,
        }
    }

    /// What is kept of `text`, which `prepare` prepares if it was seen before.
    fn kept(&self, text: &str, prepare: impl FnOnce(&str) -> Option<Prepared>) -> Option<Arc<Mutex<Prepared>>> {
        let kept = self.session.lock().kept_generic(text);
        self.prepared_of(text, kept, prepare)
    }

    /// As [`Connection::kept`], where `kept` is what is kept.
    fn prepared_of(
        &self,
        text: &str,
        kept: Kept,
        prepare: impl FnOnce(&str) -> Option<Prepared>,
    ) -> Option<Arc<Mutex<Prepared>>> {
        match kept {
            Kept::Prepared(prepared) => Some(prepared),
            Kept::New | Kept::Useless | Kept::Several(_) => None,
            Kept::Seen => {
                let prepared = prepare(text);
                let mut session = self.session.lock();
                match prepared {
                    Some(prepared) => Some(session.keep(text, prepared)),
                    None => {
                        session.keep_nothing(text);
                        None
                    }
                }
            }
        }
    }

    /// The outcome of `prepared`, perhaps with the literals of a text as its parameters; `None` if the text is to be
    /// run itself.
    pub(super) fn run_kept(
        &self,
        parameterized: Option<&Parameterized>,
        prepared: &Arc<Mutex<Prepared>>,
    ) -> Option<Result<StatementOutcome>> {
        let Some(parameterized) = parameterized else { return self.run_kept_query(&mut prepared.lock()).transpose() };
        let values = parameterized.values();
        let outcome = {
            let mut prepared = prepared.lock();
            self.session.lock().run_parameterized(&mut prepared, &values)
        };
        match outcome {
            Ok(None) if prepared.lock().is_planned() => {
                let changes_rows = prepared.lock().changes_rows();
                let outcome = if changes_rows { self.run_planned_write(prepared, &values) } else { None };
                // Then the text itself may have a plan, with its literals in it.
                if !changes_rows || prepared.lock().keeps_no_plan() {
                    self.session.lock().keep_nothing(&parameterized.text);
                }
                outcome
            }
            // What is wrong with a new value is an error of the text, also if no row gets it.
            Ok(Some(outcome)) if was_looked_at_for_nothing(&outcome) => None,
            Ok(outcome) => outcome.map(|outcome| Ok(StatementOutcome::new(outcome, &self.shared))),
            // Run again, it would draw numbers again.
            Err(error) if sql::is_of_values(&error) && !prepared.lock().draws_numbers() => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The outcome of `prepared`, an UPDATE or DELETE that is not short, by the plan that it keeps; `None` if the text
    /// itself has to tell what is wrong: nothing has happened then.
    fn run_planned_write(
        &self,
        prepared: &Mutex<Prepared>,
        values: &[ValueRef<'_>],
    ) -> Option<Result<StatementOutcome>> {
        match self.run_prepared(&mut prepared.lock(), values) {
            // Constraints have one message, and rows may have been looked at for long.
            Err(error) if sql::is_of_values(&error) && !error.sqlstate().starts_with("23") => None,
            outcome => Some(outcome),
        }
    }

    /// The outcome of a kept query, or write, without parameters.
    fn run_kept_query(&self, prepared: &mut Prepared) -> Result<Option<StatementOutcome>> {
        let short = self.session.lock().run_parameterized(prepared, &[]).map_err(|e| prepared.with_position(e))?;
        match short {
            Some(outcome) => Ok(Some(StatementOutcome::new(outcome, &self.shared))),
            None => self.run_prepared(prepared, &[]).map(Some),
        }
    }

    /// Runs the next statement of `script`.
    pub(super) fn run_next(&self, script: &mut Script) -> Option<Result<StatementOutcome>> {
        let outcome = script.with_stack(|script| Some(self.session.lock().run(script.next()?)))?;
        let outcome = outcome.map_err(|e| script.with_position(e));
        Some(outcome.map(|outcome| StatementOutcome::new(outcome, &self.shared)))
    }
}

/// Whether it is an UPDATE of no row: the text itself may have something to tell.
fn was_looked_at_for_nothing(outcome: &Outcome) -> bool {
    outcome.affected == Some(0) && outcome.tag.starts_with("UPDATE")
}
