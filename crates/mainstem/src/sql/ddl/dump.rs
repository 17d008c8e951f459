//! Statements of dumps that PostgreSQL makes, for what there is none of here: owners, privileges, comments, indexes.
//!
//! What says nothing about rows is read, and answered by a notice that names what is passed over. What would say
//! something is refused, or is something else here: a unique index is a UNIQUE constraint.

use datafusion::sql::sqlparser::ast::{self, CreateIndex, Expr, Ident, IndexColumn, IndexType, UniqueConstraint};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::{Error, Result};

use super::super::{Statement, fold, table_name};
use super::{AlterAction, AlterTable, Constraints};

/// A statement that is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Its command, as its tag names it.
    pub(crate) command: &'static str,
    /// Why.
    pub(crate) notice: &'static str,
}

/// Of statements that name an owner.
pub(crate) const NO_OWNERS: &str = "there are no owners: whoever opens the database owns all of it";
const NO_PRIVILEGES: &str = "there are no privileges: whoever opens the database may do everything";
const NO_COMMENTS: &str = "comments are not kept";
const NO_INDEXES: &str = "an index that is not unique is not needed: zone maps and the order of a table serve";
const PLPGSQL: &str = "there is no PL/pgSQL";
const OWNED: &str = "a sequence belongs to the IDENTITY column that counts by it";

/// Reads a statement that is passed over; None for others.
///
/// # Errors
/// 0A000 for an extension that would do something.
pub(in super::super) fn passed(parser: &mut Parser<'_>) -> Result<Option<Passed>> {
    let words: Vec<String> = (0..6).map(|nth| word(parser, nth)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let passed = match words.as_slice() {
        ["comment", "on", ..] => Passed { command: "COMMENT", notice: NO_COMMENTS },
        ["grant", ..] => Passed { command: "GRANT", notice: NO_PRIVILEGES },
        ["revoke", ..] => Passed { command: "REVOKE", notice: NO_PRIVILEGES },
        ["alter", "default", "privileges", ..] => Passed { command: "ALTER DEFAULT PRIVILEGES", notice: NO_PRIVILEGES },
        ["alter", "schema", ..] if says_owner(parser) => Passed { command: "ALTER SCHEMA", notice: NO_OWNERS },
        ["alter", "view", ..] if says_owner(parser) => Passed { command: "ALTER VIEW", notice: NO_OWNERS },
        ["alter", "sequence", ..] if says_owner(parser) => Passed { command: "ALTER SEQUENCE", notice: NO_OWNERS },
        ["alter", "sequence", ..] if says(parser, "owned", "by") => Passed { command: "ALTER SEQUENCE", notice: OWNED },
        ["create", "extension", rest @ ..] => {
            let name = rest.iter().find(|word| !["if", "not", "exists"].contains(*word)).copied().unwrap_or_default();
            if name != "plpgsql" {
                return Err(Error::unsupported(format_args!("CREATE EXTENSION {name}")));
            }
            Passed { command: "CREATE EXTENSION", notice: PLPGSQL }
        }
        _ => return Ok(None),
    };
    while parser.peek_token_ref().token != Token::EOF {
        parser.advance_token();
    }
    Ok(Some(passed))
}

/// The word at the `nth` place from here, in small letters.
fn word(parser: &Parser<'_>, nth: usize) -> String {
    match parser.peek_nth_token_ref(nth).token {
        Token::Word(ref word) => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

fn says_owner(parser: &Parser<'_>) -> bool {
    says(parser, "owner", "to")
}

/// Whether `first` and `second` stand behind one another in the statement.
fn says(parser: &Parser<'_>, first: &str, second: &str) -> bool {
    let until = (0..).take_while(|nth| parser.peek_nth_token_ref(*nth).token != Token::EOF);
    until.into_iter().any(|nth| word(parser, nth) == first && word(parser, nth + 1) == second)
}

/// Reads a CREATE INDEX.
///
/// # Errors
/// 0A000 for a unique index that is no UNIQUE constraint.
pub(in super::super) fn create_index(index: CreateIndex) -> Result<Statement> {
    if !index.unique {
        return Ok(Statement::Passed(Passed { command: "CREATE INDEX", notice: NO_INDEXES }));
    }
    let is_plain = index.predicate.is_none()
        && index.include.is_empty()
        && index.nulls_distinct != Some(false)
        && matches!(index.using, None | Some(IndexType::BTree))
        && index.columns.iter().all(is_column);
    let (true, Some(name)) = (is_plain, &index.name) else {
        return Err(Error::unsupported("a unique index over expressions or of some rows"));
    };
    let name = name.0.last().and_then(|part| part.as_ident()).cloned();
    let unique = UniqueConstraint {
        name: name.map(|name| Ident::with_quote('"', fold(&name))),
        index_name: None,
        index_type_display: ast::KeyOrIndexDisplay::None,
        index_type: None,
        columns: index.columns,
        index_options: Vec::new(),
        characteristics: None,
        nulls_distinct: ast::NullsDistinctOption::None,
    };
    let mut constraints = Constraints::default();
    constraints.add(ast::TableConstraint::Unique(unique))?;
    let actions = vec![AlterAction::AddConstraint(constraints)];
    Ok(Statement::UniqueIndex(AlterTable { name: table_name(&index.table_name)?, if_exists: false, actions }))
}

fn is_column(column: &IndexColumn) -> bool {
    column.operator_class.is_none()
        && column.column.options.asc.is_none()
        && column.column.options.nulls_first.is_none()
        && matches!(column.column.expr, Expr::Identifier(_))
}
