//! Our SQL dialect: PostgreSQL's, under a name of our own, so that grammar can be added without sqlparser taking the
//! statement for another dialect's.
//!
//! Every method PostgreSQL's dialect overrides is handed on to it, with exceptions that say why; `dialect()` answers with its type, because the parser
//! asks for it by type in many places.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// PostgreSQL's dialect, as Mainstem speaks it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MainstemDialect;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

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

    delegate! {
        identifier_quote_style(identifier: &str) -> Option<char>;
        is_delimited_identifier_start(ch: char) -> bool;
        is_identifier_start(ch: char) -> bool;
        is_identifier_part(ch: char) -> bool;
        supports_unicode_string_literal() -> bool;
        is_reserved_for_identifier(kw: Keyword) -> bool;
        is_custom_operator_part(ch: char) -> bool;
        get_next_precedence(parser: &Parser) -> Option<Result<u8, ParserError>>;
        parse_prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>>;
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

    /// PostgreSQL's dialect says yes, and sqlparser then reads each argument of a function twice, once as a name: nested calls
    /// take time exponential in their depth. An argument's name is an identifier here.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }
}
