//! Text to statements.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{self, Query, SetExpr};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::copy::{self, CopyPlace, CopyStatement, CopyStream};
use super::dialect::{MainstemDialect, NESTING_MAX, is_word, on_stack, syntax};
use super::extensions::rewrite_extensions;
use super::refuse::is_write;
use super::{Overriding, check_query, ddl, dml, fold, settings, state, transaction};
use depth::check_depth;
use parameters::Part;

mod depth;
mod fetch;
mod numbers;
mod parameterize;
mod parameters;
mod position;
mod prepare;
mod script;
mod several;
mod split;
mod token_rewrites;
mod utility;

pub(crate) use parameterize::{Parameterized, is_of_values, may_have_query, parameterize};
pub(crate) use script::{PreparedStatement, Script, Statement, Template};
pub(crate) use several::{Several, may_be_several};
pub(crate) use split::{begins_transaction, statement_texts};
pub use split::{number_placeholders, split_statements};
pub(crate) use utility::describe::Describe;
pub(crate) use utility::maintenance::Maintenance;
pub(crate) use utility::transfer::{ExportFormat, Transfer, TransferOf};
use utility::{describe, maintenance, transfer};

/// Depth from which walks over the tree get a stack of their own.
const DEPTH_OF_SMALL: usize = 20;
/// Tokens from which they do, whatever they are: commas between tables and queries in WITH make a tree deep too.
const TOKENS_OF_SMALL: usize = 600;

/// The statements of `text`, in order. Empty ones are left out.
///
/// # Errors
/// 42601 with line and column, 54001 for text nested too deep, 0A000 for what Mainstem does not do, 42P02 for
/// parameters.
pub(crate) fn parse(text: &str) -> Result<Script> {
    let parts = parts(text)?;
    let deep = parts.iter().any(|(part, _)| part.deep);
    let statements = on_stack(deep, || {
        let one = |(number, (part, tokens)): (usize, (Part, Vec<TokenWithSpan>))| match parse_one(
            text, number, tokens, &part,
        )? {
            prepare @ Statement::Prepared(PreparedStatement::Prepare { .. }) => Ok(prepare),
            _ if part.parameters > 0 => Err(position::of_name(parameters::without_values(&part), text, number)),
            statement => Ok(statement),
        };
        parts.into_iter().enumerate().map(one).collect::<Result<VecDeque<_>>>()
    })?;
    Ok(Script::new(text, statements, deep))
}

/// The one statement of `text`, which may have parameters.
///
/// # Errors
/// As [`parse`]; 42601 when there is not one statement.
pub(crate) fn parse_template(text: &str) -> Result<Template> {
    let mut parts = parts(text)?;
    let (Some((part, tokens)), None) = (parts.pop(), parts.pop()) else {
        return Err(Error::invalid(
            sqlstate::SYNTAX,
            "a prepared statement is one statement; use execute_batch for more",
        ));
    };
    let statement = on_stack(part.deep, || parse_one(text, 0, tokens, &part))?;
    let parameters = match &statement {
        // They are those of the statement inside.
        Statement::Prepared(PreparedStatement::Prepare { .. }) => 0,
        statement if part.parameters > 0 && !prepare::takes_parameters(statement) => {
            return Err(parameters::without_values(&part));
        }
        _ => part.parameters,
    };
    let names = if parameters == 0 { Arc::default() } else { part.names };
    Ok(Template::new(text, statement, parameters, names, part.deep))
}

/// The tokens of each statement that is not blank.
fn parts(text: &str) -> Result<Vec<(Part, Vec<TokenWithSpan>)>> {
    let dialect = MainstemDialect::new(0);
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location().map_err(|e| {
        let error = Error::invalid(sqlstate::SYNTAX, format!("syntax error: {e}"));
        position::of_syntax_error(error, text, None)
    })?;
    tokens
        .split(|t| t.token == Token::SemiColon)
        .filter(|part| !part.iter().all(|t| matches!(t.token, Token::Whitespace(_) | Token::EOF)))
        .map(|part| {
            let deep = check_depth(part)? > DEPTH_OF_SMALL || part.len() > TOKENS_OF_SMALL;
            let mut tokens = part.to_vec();
            let parameters::Parameters { count, names } =
                parameters::take(&mut tokens).map_err(|e| position::of_syntax_error(e, text, None))?;
            Ok((Part { parameters: count, names: names.into(), deep }, tokens))
        })
        .collect()
}

/// The statement of `tokens`, number `number` of `text`. Its errors have their positions there.
fn parse_one(text: &str, number: usize, tokens: Vec<TokenWithSpan>, part: &Part) -> Result<Statement> {
    let end = position::end_of(&tokens);
    read_one(tokens, part).map_err(|error| {
        let error = parameters::with_names(error, &part.names);
        position::of_name(position::of_syntax_error(error, text, end), text, number)
    })
}

fn read_one(mut tokens: Vec<TokenWithSpan>, part: &Part) -> Result<Statement> {
    token_rewrites::check(&tokens)?;
    numbers::write_exponents(&mut tokens);
    numbers::split_signs(&mut tokens);
    let overriding = take_overriding(&mut tokens);
    token_rewrites::rewrite(&mut tokens);
    fetch::fetch_as_limit(&mut tokens);
    ddl::order_options(&mut tokens);
    let mut statement = parse_tokens(tokens, part)?;
    match (&mut statement, overriding) {
        (_, None) => {}
        (Statement::Insert(insert), overriding) => insert.overriding = overriding,
        (Statement::Explain { statement, .. }, overriding) => match &mut **statement {
            Statement::Insert(insert) => insert.overriding = overriding,
            _ => return Err(misplaced_overriding()),
        },
        (Statement::Prepared(PreparedStatement::Prepare { .. }), _) => {
            return Err(Error::unsupported("OVERRIDING in PREPARE"));
        }
        _ => return Err(misplaced_overriding()),
    }
    Ok(statement)
}

fn misplaced_overriding() -> Error {
    Error::invalid(sqlstate::SYNTAX, "syntax error at \"OVERRIDING\": it stands in INSERT, in front of the values")
}

/// Takes `OVERRIDING { SYSTEM | USER } VALUE` out, which sqlparser does not know.
fn take_overriding(tokens: &mut Vec<TokenWithSpan>) -> Option<Overriding> {
    let word = |token: &Token, word: &str| matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word));
    let solid: Vec<usize> = (0..tokens.len())
        .filter(|at| !tokens.get(*at).is_some_and(|t| matches!(t.token, Token::Whitespace(_))))
        .collect();
    let mut depth = 0_i32;
    for window in solid.windows(4) {
        let [first, which, value, next] = window else { continue };
        match &tokens.get(*first)?.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let found = depth == 0
            && word(&tokens.get(*first)?.token, "overriding")
            && word(&tokens.get(*value)?.token, "value")
            && match &tokens.get(*next)?.token {
                Token::LParen => true,
                token => ["values", "select", "with"].iter().any(|w| word(token, w)),
            };
        let overriding = match &tokens.get(*which)?.token {
            token if word(token, "system") => Overriding::System,
            token if word(token, "user") => Overriding::User,
            _ => continue,
        };
        if found {
            tokens.drain(*first..=*value);
            return Some(overriding);
        }
    }
    None
}

fn parse_tokens(tokens: Vec<TokenWithSpan>, part: &Part) -> Result<Statement> {
    let dialect = MainstemDialect::new(tokens.len());
    let mut parser = Parser::new(&dialect).with_recursion_limit(NESTING_MAX).with_tokens_with_locations(tokens);
    let parsed = parse_statement(&mut parser, part).and_then(|statement| {
        let next = parser.peek_token_ref();
        if next.token == Token::EOF {
            return Ok(statement);
        }
        Err(Error::invalid(sqlstate::SYNTAX, format!("syntax error at \"{}\"{}", next.token, next.span.start)))
    });
    match parsed {
        Err(_) if dialect.is_exhausted() => Err(Error::invalid(
            state::TOO_COMPLEX,
            "the statement is nested too deep, or has a syntax error in something that is nested deep",
        )),
        parsed => parsed,
    }
}

fn parse_statement(parser: &mut Parser<'_>, part: &Part) -> Result<Statement> {
    if parser.peek_keyword(Keyword::COPY) {
        return copy::parse_copy(parser).map(Statement::Copy);
    }
    if is_word(parser, "checkpoint") {
        parser.advance_token();
        return Ok(Statement::Checkpoint);
    }
    if let Some(maintenance) = maintenance::maintenance(parser)? {
        return Ok(Statement::Maintenance(maintenance));
    }
    if let Some(describe) = describe::describe(parser)? {
        return Ok(describe);
    }
    if let Some(passed) = ddl::passed(parser)? {
        return Ok(Statement::Passed(passed));
    }
    if let Some(transfer) = transfer::transfer(parser)? {
        return Ok(Statement::Transfer(transfer));
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
    if creates && let Some(create) = ddl::create_table_as(parser)? {
        return Ok(Statement::CreateTableAs(create));
    }
    let mut statement = match parser.parse_statement() {
        // sqlparser reads no direction there.
        Err(ParserError::ParserError(m))
            if creates && ["found: DESC ", "found: ASC ", "found: NULLS "].iter().any(|found| m.contains(found)) =>
        {
            return Err(Error::unsupported("a direction in the ORDER BY of a table (it is ascending, NULLs last)"));
        }
        parsed => parsed.map_err(|e| syntax(&e))?,
    };
    rewrite_extensions(&mut statement)?;
    if let ast::Statement::Prepare { name, data_types, statement } = statement {
        let statement = convert(*statement, Vec::new())?;
        return prepare::prepare(&name, &data_types, statement, part).map(Statement::Prepared);
    }
    let options_behind = match &statement {
        // sqlparser wants WITH before ORDER BY; either order says the same.
        ast::Statement::CreateTable(_) => parser.parse_options(Keyword::WITH).map_err(|e| syntax(&e))?,
        _ => Vec::new(),
    };
    convert(statement, options_behind)
}

fn convert(statement: ast::Statement, options_behind: Vec<ast::SqlOption>) -> Result<Statement> {
    Ok(match statement {
        ast::Statement::Query(query) => read_query(query)?,
        ast::Statement::Explain {
            describe_alias: ast::DescribeAlias::Explain,
            analyze,
            verbose,
            query_plan: false,
            estimate: false,
            statement,
            format: None,
            options,
        } => {
            use ast::Statement as S;
            if !matches!(*statement, S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_)) {
                return Err(Error::unsupported("EXPLAIN of anything but a query or a write"));
            }
            let (analyze, verbose) = explain_options(options.unwrap_or_default(), analyze, verbose)?;
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
        ast::Statement::CreateSchema { .. } => Statement::CreateSchema(ddl::create_schema(statement)?),
        ast::Statement::CreateView(view) => Statement::CreateView(ddl::create_view(view)?),
        ast::Statement::Drop { .. } => Statement::Drop(ddl::drop_of(statement)?),
        ast::Statement::CreateIndex(index) => ddl::create_index(index)?,
        ast::Statement::CreateSequence {
            temporary: false,
            if_not_exists: false,
            name,
            data_type: _,
            sequence_options,
            owned_by: _,
        } => Statement::CreateSequence(ddl::create_sequence(&name, &sequence_options)?),
        ast::Statement::AlterTable(alter) => Statement::AlterTable(ddl::alter_table(alter)?),
        ast::Statement::Truncate(truncate) => Statement::Truncate(ddl::truncate(truncate)?),
        ast::Statement::Insert(insert) => Statement::Insert(dml::insert(insert, None)?),
        ast::Statement::Update(update) => Statement::Update(dml::update(update, None)?),
        ast::Statement::Delete(delete) => Statement::Delete(dml::delete(delete, None)?),
        ast::Statement::StartTransaction { .. } => Statement::Begin(transaction::begin(statement)?),
        ast::Statement::Commit { chain: false, end: _, modifier: None } => Statement::Commit,
        ast::Statement::Rollback { chain: false, savepoint: None } => Statement::Rollback,
        ast::Statement::Commit { .. } => return Err(Error::unsupported("COMMIT AND CHAIN")),
        ast::Statement::Rollback { chain: false, savepoint: Some(name) } => Statement::RollbackTo(fold(&name)),
        ast::Statement::Rollback { .. } => return Err(Error::unsupported("ROLLBACK AND CHAIN")),
        ast::Statement::Savepoint { name } => Statement::Savepoint(fold(&name)),
        ast::Statement::ReleaseSavepoint { name } => Statement::Release(fold(&name)),
        ast::Statement::Set(set) => Statement::Setting(settings::set(set)?),
        ast::Statement::Reset(reset) => Statement::Setting(settings::reset(reset)?),
        ast::Statement::Execute {
            name: Some(name),
            parameters,
            has_parentheses: _,
            immediate: false,
            into,
            using,
            output: false,
            default: false,
        } if into.is_empty() && using.is_empty() => Statement::Prepared(prepare::execute(&name, parameters)?),
        ast::Statement::Deallocate { name, prepare: _ } => Statement::Prepared(prepare::deallocate(&name)),
        ast::Statement::ShowTables { .. } if describe::is_plain(&statement) => describe::tables()?,
        ast::Statement::ShowVariable { variable } => Statement::Setting(settings::show(&variable)?),
        other => return Err(Error::unsupported(format_args!("the statement {}", first_words(&other)))),
    })
}

/// A query, and what else is written as one.
fn read_query(query: Box<Query>) -> Result<Statement> {
    if is_write(&query) {
        return with_in_front(*query);
    }
    if !query.locks.is_empty() {
        return dml::lock(*query).map(Statement::Lock);
    }
    if let Some(setting) = settings::set_config(&query) {
        return Ok(Statement::Setting(setting));
    }
    if let Some(set) = ddl::setval(&query)? {
        return Ok(Statement::SetPosition(set));
    }
    check_query(&query)?;
    Ok(Statement::Query(query))
}

/// ANALYZE and VERBOSE with what the list in parentheses says of them.
fn explain_options(options: Vec<ast::UtilityOption>, mut analyze: bool, mut verbose: bool) -> Result<(bool, bool)> {
    for ast::UtilityOption { name, arg } in options {
        let name = fold(&name);
        let argument = arg.as_ref().map(|arg| arg.to_string().trim_matches('\'').to_ascii_lowercase());
        let flag = || match argument.as_deref() {
            None | Some("true" | "on" | "1") => Ok(true),
            Some("false" | "off" | "0") => Ok(false),
            Some(_) => Err(Error::invalid(sqlstate::SYNTAX, format!("{name} requires a Boolean value"))),
        };
        match name.as_str() {
            "analyze" => analyze = flag()?,
            "verbose" => verbose = flag()?,
            "format" if argument.as_deref() == Some("text") => {}
            "format" => {
                let format = argument.unwrap_or_default().to_uppercase();
                return Err(Error::unsupported(format_args!("EXPLAIN (FORMAT {format}) (it is text)")));
            }
            "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" | "generic_plan" => {
                return Err(Error::unsupported(format_args!(
                    "EXPLAIN ({}) (there are ANALYZE, VERBOSE and FORMAT TEXT)",
                    name.to_uppercase()
                )));
            }
            _ => {
                return Err(Error::invalid(sqlstate::SYNTAX, format!("unrecognized EXPLAIN option \"{name}\"")));
            }
        }
    }
    Ok((analyze, verbose))
}

/// The first two words of a statement, enough to say which kind it is.
fn first_words(statement: &ast::Statement) -> String {
    statement.to_string().split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// `WITH ... INSERT`, `UPDATE` or `DELETE`, which sqlparser reads as an outer query the write.
fn with_in_front(query: Query) -> Result<Statement> {
    let Query {
        with,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: _,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: _,
    } = query
    else {
        return Err(Error::invalid(sqlstate::SYNTAX, "syntax error: a clause of a query behind a write"));
    };
    match *body {
        SetExpr::Insert(ast::Statement::Insert(write)) => dml::insert(write, with).map(Statement::Insert),
        SetExpr::Update(ast::Statement::Update(write)) => dml::update(write, with).map(Statement::Update),
        SetExpr::Delete(ast::Statement::Delete(write)) => dml::delete(write, with).map(Statement::Delete),
        SetExpr::Merge(_) => Err(Error::unsupported("MERGE")),
        _ => Err(Error::internal("a write around no write")),
    }
}

/// Which stream `statement` needs, if it is one statement and a COPY that needs one: what a shell has to know.
///
/// ```
/// use mainstem::{CopyStream, copy_stream};
/// assert_eq!(copy_stream("COPY t FROM STDIN"), Some(CopyStream::Stdin));
/// assert_eq!(copy_stream("COPY t TO 'file.csv'"), None);
/// ```
#[must_use]
pub fn copy_stream(statement: &str) -> Option<CopyStream> {
    let start = statement.trim_start();
    let word = start.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("copy"));
    if !word && !start.starts_with("--") && !start.starts_with("/*") {
        return None;
    }
    match parse(statement).ok()?.only()? {
        Statement::Copy(CopyStatement::From { options, .. }) if options.place == CopyPlace::Client => {
            Some(CopyStream::Stdin)
        }
        Statement::Copy(CopyStatement::To { options, .. }) if options.place == CopyPlace::Client => {
            Some(CopyStream::Stdout)
        }
        _ => None,
    }
}
