//! Text to statements.

use std::collections::VecDeque;

use datafusion::sql::sqlparser::ast::{self, Query};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::copy::{self, CopyStatement};
use super::dialect::MainstemDialect;
use super::settings::{self, SettingStatement};
use super::transaction::{self, Begin};
use super::{CreateTable, Delete, DropTable, Insert, Update, check_query, ddl, dml, state};

/// Operators of one expression without a comma or parenthesis between them. Each makes the tree one level deeper, and every
/// walk over the tree, its drop included, takes a stack frame a level.
const OPERATORS_MAX: usize = 3_000;
/// Nesting the parser follows; deeper text is refused.
const NESTING_MAX: usize = 100;

/// One statement.
#[derive(Debug)]
pub(crate) enum Statement {
    /// SELECT, VALUES, WITH, TABLE.
    Query(Box<Query>),
    /// EXPLAIN [ANALYZE] of a query or of the query that feeds a write.
    Explain { statement: Box<Statement>, analyze: bool, verbose: bool },
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// DROP TABLE.
    DropTable(DropTable),
    /// INSERT.
    Insert(Insert),
    /// UPDATE.
    Update(Update),
    /// DELETE.
    Delete(Delete),
    /// COPY FROM and COPY TO a file.
    Copy(CopyStatement),
    /// BEGIN, START TRANSACTION.
    Begin(Begin),
    /// COMMIT, END.
    Commit,
    /// ROLLBACK, ABORT.
    Rollback,
    /// SET, SHOW, RESET.
    Setting(SettingStatement),
    /// CHECKPOINT.
    Checkpoint,
}

/// Depth from which walks over the tree get a stack of their own.
const DEPTH_OF_SMALL: usize = 20;
/// Tokens from which they do, whatever they are: commas between tables and queries in WITH make a tree deep too.
const TOKENS_OF_SMALL: usize = 600;
/// That stack. Only touched pages cost memory.
const STACK_BYTES: usize = 256 << 20;

/// Parsed statements. Trees are walked by recursion, their drop included: that happens inside [`Script::with_stack`].
#[derive(Debug)]
pub(crate) struct Script {
    statements: VecDeque<Statement>,
    deep: bool,
}

impl Script {
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

fn on_stack<T>(deep: bool, work: impl FnOnce() -> T) -> T {
    if deep { stacker::grow(STACK_BYTES, work) } else { work() }
}

/// The statements of `text`, in order. Empty ones are left out.
///
/// # Errors
/// 42601 with line and column, 54001 for text nested too deep, 0A000 for what Mainstem does not do.
pub(crate) fn parse(text: &str) -> Result<Script> {
    let dialect = MainstemDialect;
    let tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|e| Error::invalid(sqlstate::SYNTAX, format!("syntax error: {e}")))?;
    let mut deep = false;
    for part in tokens.split(|t| t.token == Token::SemiColon) {
        deep |= check_depth(part)? > DEPTH_OF_SMALL || part.len() > TOKENS_OF_SMALL;
    }
    let statements = on_stack(deep, || {
        tokens
            .split(|t| t.token == Token::SemiColon)
            .filter(|part| !part.iter().all(|t| matches!(t.token, Token::Whitespace(_) | Token::EOF)))
            .map(|part| parse_one(part.to_vec()))
            .collect::<Result<VecDeque<_>>>()
    })?;
    Ok(Script { statements, deep })
}

/// Refuses expressions whose tree would be too deep to walk. Returns about how deep it is.
fn check_depth(tokens: &[TokenWithSpan]) -> Result<usize> {
    let mut counts = vec![0_usize];
    let mut deepest = 0;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket => {
                counts.push(0);
                deepest = deepest.max(counts.len() * 4);
            }
            Token::RParen | Token::RBracket => {
                if counts.len() > 1 {
                    counts.pop();
                }
            }
            Token::Comma => {
                if let Some(last) = counts.last_mut() {
                    *last = 0;
                }
            }
            Token::Whitespace(_) => {}
            Token::Word(word) if !counts_as_level(word.keyword) => {}
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Period | Token::EOF => {}
            _ => {
                if let Some(last) = counts.last_mut() {
                    *last += 1;
                    deepest = deepest.max(*last);
                    if *last > OPERATORS_MAX {
                        return Err(Error::invalid(
                            state::TOO_COMPLEX,
                            format!(
                                "an expression has more than {OPERATORS_MAX} operators in a row (near line {}); use IN, a \
                                 join with VALUES, or parentheses",
                                token.span.start.line
                            ),
                        ));
                    }
                }
            }
        }
    }
    Ok(deepest)
}

fn counts_as_level(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::AND
            | Keyword::OR
            | Keyword::NOT
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::BETWEEN
            | Keyword::IN
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::JOIN
            | Keyword::CASE
            | Keyword::COLLATE
    )
}

fn parse_one(tokens: Vec<TokenWithSpan>) -> Result<Statement> {
    let dialect = MainstemDialect;
    let mut parser = Parser::new(&dialect).with_recursion_limit(NESTING_MAX).with_tokens_with_locations(tokens);
    let statement = parse_statement(&mut parser)?;
    let next = parser.peek_token_ref();
    if next.token != Token::EOF {
        return Err(Error::invalid(sqlstate::SYNTAX, format!("syntax error at \"{}\"{}", next.token, next.span.start)));
    }
    Ok(statement)
}

fn parse_statement(parser: &mut Parser<'_>) -> Result<Statement> {
    if parser.peek_keyword(Keyword::COPY) {
        return copy::parse_copy(parser).map(Statement::Copy);
    }
    if is_word(parser, "checkpoint") {
        parser.advance_token();
        return Ok(Statement::Checkpoint);
    }
    if is_word(parser, "abort") {
        parser.advance_token();
        let _ = parser.parse_one_of_keywords(&[Keyword::WORK, Keyword::TRANSACTION]);
        return Ok(Statement::Rollback);
    }
    if parser.peek_keyword(Keyword::BEGIN) {
        parser.advance_token();
        return transaction::begin(parser.parse_begin().map_err(|e| syntax(&e))?).map(Statement::Begin);
    }
    let creates = parser.peek_keyword(Keyword::CREATE);
    let statement = match parser.parse_statement() {
        // sqlparser reads no direction there.
        Err(ParserError::ParserError(m))
            if creates && ["found: DESC ", "found: ASC ", "found: NULLS "].iter().any(|found| m.contains(found)) =>
        {
            return Err(Error::unsupported("a direction in the ORDER BY of a table (it is ascending, NULLs last)"));
        }
        parsed => parsed.map_err(|e| syntax(&e))?,
    };
    let options_behind = match &statement {
        // sqlparser wants WITH before ORDER BY; either order says the same.
        ast::Statement::CreateTable(_) => parser.parse_options(Keyword::WITH).map_err(|e| syntax(&e))?,
        _ => Vec::new(),
    };
    convert(statement, options_behind)
}

/// Whether the next token is the bare word `word`.
fn is_word(parser: &Parser<'_>, word: &str) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// A parser's error as ours.
pub(super) fn syntax(error: &ParserError) -> Error {
    match error {
        ParserError::TokenizerError(m) | ParserError::ParserError(m) => {
            Error::invalid(sqlstate::SYNTAX, format!("syntax error: {m}"))
        }
        ParserError::RecursionLimitExceeded => {
            Error::invalid(state::TOO_COMPLEX, format!("the statement is nested more than {NESTING_MAX} levels deep"))
        }
    }
}

fn convert(statement: ast::Statement, options_behind: Vec<ast::SqlOption>) -> Result<Statement> {
    Ok(match statement {
        ast::Statement::Query(query) => {
            check_query(&query)?;
            Statement::Query(query)
        }
        ast::Statement::Explain {
            describe_alias: ast::DescribeAlias::Explain,
            analyze,
            verbose,
            query_plan: false,
            estimate: false,
            statement,
            format: None,
            options: None,
        } => {
            let statement = Box::new(convert(*statement, Vec::new())?);
            match (&*statement, analyze) {
                (Statement::Query(_), _)
                | (Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_), false) => {
                    Statement::Explain { statement, analyze, verbose }
                }
                (_, true) => return Err(Error::unsupported("EXPLAIN ANALYZE of anything but a query")),
                (_, false) => return Err(Error::unsupported("EXPLAIN of this statement")),
            }
        }
        ast::Statement::CreateTable(table) => Statement::CreateTable(ddl::create_table(table, options_behind)?),
        ast::Statement::Drop { .. } => Statement::DropTable(ddl::drop_table(statement)?),
        ast::Statement::Insert(insert) => Statement::Insert(dml::insert(insert)?),
        ast::Statement::Update(update) => Statement::Update(dml::update(update)?),
        ast::Statement::Delete(delete) => Statement::Delete(dml::delete(delete)?),
        ast::Statement::StartTransaction { .. } => Statement::Begin(transaction::begin(statement)?),
        ast::Statement::Commit { chain: false, end: _, modifier: None } => Statement::Commit,
        ast::Statement::Rollback { chain: false, savepoint: None } => Statement::Rollback,
        ast::Statement::Commit { .. } => return Err(Error::unsupported("COMMIT AND CHAIN")),
        ast::Statement::Rollback { .. } => return Err(Error::unsupported("ROLLBACK TO SAVEPOINT and AND CHAIN")),
        ast::Statement::Set(set) => Statement::Setting(settings::set(set)?),
        ast::Statement::Reset(reset) => Statement::Setting(settings::reset(reset)?),
        ast::Statement::ShowVariable { variable } => Statement::Setting(settings::show(&variable)?),
        other => return Err(Error::unsupported(format_args!("the statement {}", first_words(&other)))),
    })
}

/// The first two words of a statement, enough to say which kind it is.
fn first_words(statement: &ast::Statement) -> String {
    statement.to_string().split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}
