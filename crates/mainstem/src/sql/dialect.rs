//! Our SQL dialect: PostgreSQL's, under a name of our own, so that grammar can be added without sqlparser taking the
//! statement for another dialect's.
//!
//! Every method PostgreSQL's dialect overrides is handed on to it, with exceptions that say why; `dialect()` answers
//! with its type, because the parser asks for it by type in many places.

//!
//! sqlparser reads some things twice: where a construct with a word in front (`CAST (`, `SUBSTRING (`) cannot be read,
//! its text is read again as a call or a name, and so is everything inside. Nested, that takes time exponential in the
//! depth. Two measures: words that are no names in PostgreSQL are never read as names, and a dialect is good for a
//! bounded number of operands, after which its parser fails at once, wherever it is.
//!
//! Beside it stands what every reader asks of a parser: how deep it goes, the stack that walks over deep trees need,
//! and its errors as ours.

use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::{ColumnOption, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use mainstem_storage::Error;
use mainstem_storage::error::sqlstate;

use super::state;

/// Operands that may be read beyond [`OPERANDS_PER_TOKEN`]: some 20 ms of work.
const OPERANDS_MIN: usize = 20_000;
/// Operands that may be read for each token. A parser that does not step back reads one at most.
const OPERANDS_PER_TOKEN: usize = 8;

/// PostgreSQL's dialect, as Mainstem speaks it, for one statement.
#[derive(Debug)]
pub(crate) struct MainstemDialect {
    /// How many more operands may be read.
    operands_left: Cell<usize>,
}

impl MainstemDialect {
    /// The dialect for a text of at most `tokens` tokens.
    pub(crate) fn new(tokens: usize) -> Self {
        let operands = tokens.saturating_mul(OPERANDS_PER_TOKEN).saturating_add(OPERANDS_MIN);
        Self { operands_left: Cell::new(operands) }
    }

    /// Whether reading was given up because too much was read twice.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.operands_left.get() == 0
    }
}

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// Words that name a select item behind AS only (the SQL standard's, as PostgreSQL reads them).
const AFTER_AS_ONLY: &[Keyword] = &[
    Keyword::ARRAY,
    Keyword::AS,
    Keyword::CHAR,
    Keyword::CHARACTER,
    Keyword::CREATE,
    Keyword::DAY,
    Keyword::FILTER,
    Keyword::FOR,
    Keyword::GRANT,
    Keyword::HOUR,
    Keyword::MINUTE,
    Keyword::MONTH,
    Keyword::NOTNULL,
    Keyword::ON,
    Keyword::OVER,
    Keyword::OVERLAPS,
    Keyword::PRECISION,
    Keyword::SECOND,
    Keyword::TO,
    Keyword::VARYING,
    Keyword::WINDOW,
    Keyword::WITHIN,
    Keyword::WITHOUT,
    Keyword::YEAR,
];
/// Words that name one without AS, too, and mean something else behind one in other dialects than ours.
const NAMES_OF_ITEMS: &[Keyword] = &[
    Keyword::CLUSTER,
    Keyword::DISTRIBUTE,
    Keyword::EXCLUDE,
    Keyword::EXPLAIN,
    Keyword::SORT,
    Keyword::TOP,
    Keyword::VALUES,
    Keyword::VIEW,
];

/// A sign, which PostgreSQL takes with its operand before `^`, or `~`, which it takes behind `+` and the like:
/// sqlparser has them the other way round.
fn signed(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let (op, operand) = match parser.peek_token_ref().token {
        Token::Minus => (UnaryOperator::Minus, Precedence::Caret),
        Token::Plus => (UnaryOperator::Plus, Precedence::Caret),
        Token::Tilde => (UnaryOperator::BitwiseNot, Precedence::PgOther),
        _ => return None,
    };
    parser.advance_token();
    let operand = parser.parse_subexpr(POSTGRES.prec_value(operand));
    Some(operand.map(|operand| Expr::UnaryOp { op, expr: Box::new(operand) }))
}

macro_rules! delegate {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self $(, $arg: $ty)*) -> $out {
            POSTGRES.$name($($arg),*)
        })*
    };
}

impl Dialect for MainstemDialect {
    fn dialect(&self) -> TypeId {
        POSTGRES.dialect()
    }

    /// `a IS [NOT] DISTINCT FROM b AND c`: sqlparser takes everything behind FROM as the right side.
    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        // Such comparisons have no sides in a row, so that none is grouped in a way that nobody meant.
        if matches!(expr, Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..)) && parser.peek_keyword(Keyword::IS) {
            let next = parser.peek_token_ref();
            return Some(parser.expected_ref("parentheses around what is compared with DISTINCT FROM", next));
        }
        let is = POSTGRES.prec_value(Precedence::Is);
        if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            let right = parser.parse_subexpr(is);
            return Some(right.map(|right| Expr::IsDistinctFrom(Box::new(expr.clone()), Box::new(right))));
        }
        if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            let right = parser.parse_subexpr(is);
            return Some(right.map(|right| Expr::IsNotDistinctFrom(Box::new(expr.clone()), Box::new(right))));
        }
        POSTGRES.parse_infix(parser, expr, precedence)
    }

    /// Counts operands; see the module.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match self.operands_left.get().checked_sub(1) {
            Some(left) => self.operands_left.set(left),
            None => return Some(Err(ParserError::RecursionLimitExceeded)),
        }
        if let Some(signed) = signed(parser) {
            return Some(signed);
        }
        // What stands between INTERVAL and its text would be read past.
        if parser.peek_keyword(Keyword::INTERVAL) {
            let next = parser.peek_nth_token_ref(1);
            let text = |at| matches!(parser.peek_nth_token_ref(at).token, Token::SingleQuotedString(_));
            let skipped = match &next.token {
                Token::LParen => matches!(parser.peek_nth_token_ref(2).token, Token::Number(..)),
                Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                    Keyword::YEAR
                    | Keyword::MONTH
                    | Keyword::DAY
                    | Keyword::HOUR
                    | Keyword::MINUTE
                    | Keyword::SECOND => text(2) || text(4),
                    _ => false,
                },
                _ => false,
            };
            if skipped {
                return Some(parser.expected_ref("the text of an interval, in quotes", next));
            }
        }
        POSTGRES.parse_prefix(parser)
    }

    /// PostgreSQL's reserved words besides: sqlparser takes them for names where what they begin cannot be read.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        matches!(keyword, Keyword::ARRAY | Keyword::CASE | Keyword::CAST | Keyword::NOT)
            || POSTGRES.is_reserved_for_identifier(keyword)
    }

    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        NAMES_OF_ITEMS.contains(keyword)
            || !AFTER_AS_ONLY.contains(keyword) && POSTGRES.is_column_alias(keyword, parser)
    }

    /// Words behind a column that sqlparser reads, for other dialects, and then forgets in ours.
    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        let forgotten = match parser.peek_token_ref().token {
            Token::Word(ref word) if word.quote_style.is_none() => matches!(
                word.keyword,
                Keyword::AUTO_INCREMENT
                    | Keyword::AUTOINCREMENT
                    | Keyword::ASC
                    | Keyword::DESC
                    | Keyword::AS
                    | Keyword::SRID
                    | Keyword::IDENTITY
                    | Keyword::ON
            ),
            _ => false,
        };
        if forgotten {
            let token = parser.next_token().token;
            return Ok(Some(Ok(Some(ColumnOption::DialectSpecific(vec![token])))));
        }
        POSTGRES.parse_column_option(parser)
    }

    delegate! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        supports_unicode_string_literal() -> bool;
        is_custom_operator_part(ch: char) -> bool;
        get_next_precedence(parser: &Parser) -> Option<Result<u8, ParserError>>;
        supports_filter_during_aggregation() -> bool;
        supports_group_by_expr() -> bool;
        prec_value(prec: Precedence) -> u8;
        prec_unknown() -> u8;
        allow_extract_custom() -> bool;
        allow_extract_single_quotes() -> bool;
        supports_create_index_with_clause() -> bool;
        supports_explain_with_utility_options() -> bool;
        supports_listen_notify() -> bool;
        supports_factorial_operator() -> bool;
        supports_bitwise_shift_operators() -> bool;
        supports_comment_on() -> bool;
        supports_load_extension() -> bool;
        supports_named_fn_args_with_colon_operator() -> bool;
        supports_empty_projections() -> bool;
        supports_nested_comments() -> bool;
        supports_string_escape_constant() -> bool;
        supports_numeric_literal_underscores() -> bool;
        supports_array_typedef_with_brackets() -> bool;
        supports_geometric_types() -> bool;
        supports_set_names() -> bool;
        supports_alter_column_type_using() -> bool;
        supports_notnull_operator() -> bool;
        supports_interval_options() -> bool;
        supports_insert_table_alias() -> bool;
        supports_create_table_like_parenthesized() -> bool;
        supports_select_wildcard_with_alias() -> bool;
        supports_comma_separated_trim() -> bool;
        supports_xml_expressions() -> bool;
        supports_comment_optimizer_hint() -> bool;
    }

    /// `ORDER BY ALL`, DuckDB's.
    fn supports_order_by_all(&self) -> bool {
        true
    }

    /// `SELECT * EXCLUDE (a)`, DuckDB's.
    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    /// `FROM t`, `FROM t SELECT a`, DuckDB's.
    fn supports_from_first_select(&self) -> bool {
        true
    }

    /// PostgreSQL's dialect says yes, and sqlparser then reads each argument of a function twice, once as a name:
    /// nested calls take time exponential in their depth. An argument's name is an identifier here.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }
}

/// Nesting the parser follows; deeper text is refused.
pub(super) const NESTING_MAX: usize = 100;

/// Nesting it follows in text that was such a statement: parentheses may have been added.
pub(super) const STORED_NESTING_MAX: usize = 3 * NESTING_MAX;

/// A stack for walks over deep trees. Only touched pages cost memory.
const STACK_BYTES: usize = 256 << 20;

/// Runs `work`, on a stack of its own if `deep` says so.
pub(super) fn on_stack<T>(deep: bool, work: impl FnOnce() -> T) -> T {
    if deep { stacker::grow(STACK_BYTES, work) } else { work() }
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

/// Whether the next token is the bare word `word`.
pub(super) fn is_word(parser: &Parser<'_>, word: &str) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}
