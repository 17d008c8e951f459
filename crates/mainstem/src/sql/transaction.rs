//! BEGIN and START TRANSACTION.

use datafusion::sql::sqlparser::ast::{
    Statement as Ast, TransactionAccessMode, TransactionIsolationLevel, TransactionMode,
};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

/// How a transaction begins. READ UNCOMMITTED, READ COMMITTED and REPEATABLE READ all run as snapshot isolation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begin {
    /// READ ONLY was asked for.
    pub(crate) read_only: bool,
}

/// Reads a BEGIN or START TRANSACTION.
pub(super) fn begin(statement: Ast) -> Result<Begin> {
    let Ast::StartTransaction { modes, begin: _, transaction: _, modifier, statements, exception, has_end_keyword } =
        statement
    else {
        return Err(Error::internal("not a START TRANSACTION"));
    };
    if modifier.is_some() || !statements.is_empty() || exception.is_some() || has_end_keyword {
        return Err(Error::unsupported("BEGIN with a modifier or a block of statements"));
    }
    modes_of(&modes)
}

/// What a list of transaction modes asks for.
pub(super) fn modes_of(modes: &[TransactionMode]) -> Result<Begin> {
    let mut begin = Begin::default();
    let mut access = None;
    for mode in modes {
        match mode {
            TransactionMode::AccessMode(mode) => {
                if access.replace(*mode).is_some_and(|before| before != *mode) {
                    return Err(Error::invalid(sqlstate::SYNTAX, "READ ONLY and READ WRITE exclude one another"));
                }
                begin.read_only = *mode == TransactionAccessMode::ReadOnly;
            }
            TransactionMode::IsolationLevel(level) => match level {
                TransactionIsolationLevel::ReadUncommitted
                | TransactionIsolationLevel::ReadCommitted
                | TransactionIsolationLevel::RepeatableRead
                | TransactionIsolationLevel::Snapshot => {}
                TransactionIsolationLevel::Serializable => {
                    return Err(Error::unsupported(
                        "ISOLATION LEVEL SERIALIZABLE (transactions run at snapshot isolation: REPEATABLE READ)",
                    ));
                }
            },
        }
    }
    Ok(begin)
}
