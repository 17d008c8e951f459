//! Patterns. `a LIKE b ESCAPE c` is `a LIKE like_escape(b, c)`, as in PostgreSQL; a literal pattern loses the
//! backslashes that mean nothing, which DataFusion takes for themselves.
//!
//! Patterns that SQL calls similar: `a SIMILAR TO b` is `a ~ similar_to_escape(b)`, as in PostgreSQL. `substring(a FROM
//! 'pattern')` is the first group of `regexp_match`, which has the whole match where there is no group. DataFusion
//! takes `a ~ '.*'`, and no other pattern, for `a IS NOT NULL`, which is false where it should be NULL.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, DollarQuotedString, Expr, Subscript, Value, ValueWithSpan,
};

use super::expr::{bare, call};

/// See the module; other expressions stay.
pub(crate) fn as_regex(expr: &mut Expr) {
    match expr {
        Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
            if let Some(escape) = escape_char.take() {
                **pattern = call("like_escape", vec![(**pattern).clone(), Expr::Value(escape)]);
            } else if let Expr::Value(ValueWithSpan {
                value:
                    Value::SingleQuotedString(text)
                    | Value::EscapedStringLiteral(text)
                    | Value::DollarQuotedString(DollarQuotedString { value: text, .. }),
                ..
            }) = &mut **pattern
                && text.contains('\\')
            {
                *text = plain_escapes(text);
            }
        }
        Expr::SimilarTo { negated, expr: text, pattern, escape_char } => {
            let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
            let mut args = vec![(**pattern).clone()];
            args.extend(escape_char.take().map(Expr::Value));
            let left = Box::new(Expr::Nested(text.clone()));
            let comparison = Expr::BinaryOp { left, op, right: Box::new(call("similar_to_escape", args)) };
            *expr = Expr::Nested(Box::new(comparison));
        }
        Expr::BinaryOp {
            op:
                BinaryOperator::PGRegexMatch
                | BinaryOperator::PGRegexNotMatch
                | BinaryOperator::PGRegexIMatch
                | BinaryOperator::PGRegexNotIMatch,
            right,
            ..
        } => {
            if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(pattern), .. }) = &mut **right
                && pattern == ".*"
            {
                *pattern = "(.*)".to_owned();
            }
        }
        Expr::Substring { expr: text, substring_from: Some(from), substring_for: None, .. } if is_text(from) => {
            let matched = call("regexp_match", vec![(**text).clone(), (**from).clone()]);
            let first = Expr::Value(Value::Number("1".to_owned(), false).into());
            *expr = Expr::CompoundFieldAccess {
                root: Box::new(matched),
                access_chain: vec![AccessExpr::Subscript(Subscript::Index { index: first })],
            };
        }
        _ => {}
    }
}

/// `pattern` of LIKE without the backslashes in front of characters that mean themselves anyway.
fn plain_escapes(pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some(escaped @ ('%' | '_' | '\\'))) => plain.extend([c, escaped]),
            ('\\', Some(escaped)) => plain.push(escaped),
            _ => plain.push(c),
        }
    }
    plain
}

fn is_text(expr: &Expr) -> bool {
    use Value::{DollarQuotedString, EscapedStringLiteral, SingleQuotedString};
    matches!(
        bare(expr),
        Expr::Value(ValueWithSpan {
            value: SingleQuotedString(_) | EscapedStringLiteral(_) | DollarQuotedString(_),
            ..
        })
    )
}
