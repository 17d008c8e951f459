//! CHAR(n): text that is held without the blanks at its end, which do not count, and shown with as many as make n
//! characters.
//!
//! A column of type CHAR(n) is text with a mark in its field (`mainstem_storage::schema::DataType::field`), which
//! columns carry through subqueries, joins and groups, and which casts, functions, CASE and aggregates lose: their
//! values are text without blanks.
//!
//! 1. A rule before type coercion ([`bpchar`]): a string literal compared with a marked expression (`=`, `<`, IN,
//!    BETWEEN, CASE, IS DISTINCT FROM) loses the blanks at its end; LIKE and regular expressions see the value with all
//!    its blanks, as in PostgreSQL; casts to CHAR(n) cut the text, casts from it to text drop the mark.
//! 2. What a statement gives to its caller is padded at the top of its plan ([`padded`]).
//!
//! It does not own: blanks of stored values (storage drops them), of parameters (`plan`).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList, Like, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};
use mainstem_storage::row::without_padding;
use mainstem_storage::schema::DataType;

use crate::analyze::plan_walk::rewrite_plan;

/// The n of a CHAR(n) that `expr` is.
fn chars_of(expr: &Expr, schema: &DFSchema) -> Option<u32> {
    // Only these carry a mark; asking others would cost time that grows with their depth.
    let marked = matches!(
        expr,
        Expr::Column(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::ScalarFunction(_)
            | Expr::ScalarSubquery(_)
            | Expr::Alias(_)
    );
    if !marked {
        return None;
    }
    expr.to_field(schema).ok().and_then(|(_, field)| DataType::chars_of(&field))
}

/// A string literal without the blanks at its end; other expressions as they are.
fn trimmed(expr: Expr) -> Expr {
    use ScalarValue as S;
    match expr {
        Expr::Literal(S::Utf8(Some(v)), m) => Expr::Literal(S::Utf8(Some(without_padding(&v).into())), m),
        Expr::Literal(S::LargeUtf8(Some(v)), m) => Expr::Literal(S::LargeUtf8(Some(without_padding(&v).into())), m),
        Expr::Literal(S::Utf8View(Some(v)), m) => Expr::Literal(S::Utf8View(Some(without_padding(&v).into())), m),
        other => other,
    }
}

fn call(to: To, argument: Expr) -> Expr {
    let function = ScalarUDF::new_from_impl(CharFunction { to, signature: Signature::any(1, Volatility::Immutable) });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![argument]))
}

/// `expr`, of type CHAR(n), as a text, which is none any more.
pub(super) fn as_text(expr: Expr) -> Expr {
    call(To::Text, expr)
}

/// `plan` with its columns of type CHAR(n) padded.
///
/// # Errors
/// Internal.
pub(crate) fn padded(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = plan.schema().clone();
    if !schema.fields().iter().any(|field| DataType::chars_of(field).is_some()) {
        return Ok(plan);
    }
    let column = |(at, field): (usize, &FieldRef)| {
        let (relation, _) = schema.qualified_field(at);
        let column = Expr::Column(Column::from(schema.qualified_field(at)));
        match DataType::chars_of(field) {
            Some(chars) => call(To::Padded(chars), column).alias_qualified(relation.cloned(), field.name()),
            None => column,
        }
    };
    LogicalPlanBuilder::from(plan).project(schema.fields().iter().enumerate().map(column).collect::<Vec<_>>())?.build()
}

/// The rule.
pub(crate) fn bpchar(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_plan(plan, &rewrite)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => Ok(binary(*left, op, *right, schema)),
        Expr::InList(InList { expr, list, negated }) if chars_of(&expr, schema).is_some() => {
            let list = list.into_iter().map(trimmed).collect();
            Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) if chars_of(&expr, schema).is_some() => {
            let (low, high) = (Box::new(trimmed(*low)), Box::new(trimmed(*high)));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr }) if chars_of(&expr, schema).is_some() => {
            let when_then_expr =
                when_then_expr.into_iter().map(|(when, then)| (Box::new(trimmed(*when)), then)).collect();
            Ok(Transformed::yes(Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr })))
        }
        Expr::Like(like) => Ok(match chars_of(&like.expr, schema) {
            Some(chars) => Transformed::yes(Expr::Like(padded_subject(like, chars))),
            None => Transformed::no(Expr::Like(like)),
        }),
        Expr::SimilarTo(like) => Ok(match chars_of(&like.expr, schema) {
            Some(chars) => Transformed::yes(Expr::SimilarTo(padded_subject(like, chars))),
            None => Transformed::no(Expr::SimilarTo(like)),
        }),
        Expr::Cast(Cast { expr, field }) => {
            Ok(converted(expr, field, schema, |expr, field| Expr::Cast(Cast::new_from_field(expr, field))))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            Ok(converted(expr, field, schema, |expr, field| Expr::TryCast(TryCast::new_from_field(expr, field))))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn binary(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Transformed<Expr> {
    use Operator::{
        Eq, Gt, GtEq, ILikeMatch, IsDistinctFrom, IsNotDistinctFrom, LikeMatch, Lt, LtEq, NotEq, NotILikeMatch,
        NotLikeMatch, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch,
    };
    let whole = |left: Expr, right: Expr| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    match op {
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom => match (&left, &right) {
            (Expr::Literal(..), other) if chars_of(other, schema).is_some() => {
                Transformed::yes(whole(trimmed(left), right))
            }
            (other, Expr::Literal(..)) if chars_of(other, schema).is_some() => {
                Transformed::yes(whole(left, trimmed(right)))
            }
            _ => Transformed::no(whole(left, right)),
        },
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch | LikeMatch | ILikeMatch | NotLikeMatch
        | NotILikeMatch => match chars_of(&left, schema) {
            Some(chars) => Transformed::yes(whole(call(To::Padded(chars), left), right)),
            None => Transformed::no(whole(left, right)),
        },
        _ => Transformed::no(whole(left, right)),
    }
}

fn padded_subject(like: Like, chars: u32) -> Like {
    Like { expr: Box::new(call(To::Padded(chars), *like.expr)), ..like }
}

/// A cast to or from CHAR(n).
fn converted(
    expr: Box<Expr>,
    field: FieldRef,
    schema: &DFSchema,
    again: impl Fn(Box<Expr>, FieldRef) -> Expr,
) -> Transformed<Expr> {
    if let Some(chars) = DataType::chars_of(&field) {
        let text = Expr::Cast(Cast::new(expr, ArrowType::Utf8View));
        return Transformed::yes(call(To::Char(chars), text));
    }
    if field.data_type().is_string() && chars_of(&expr, schema).is_some() {
        return Transformed::yes(again(Box::new(call(To::Text, *expr)), field));
    }
    Transformed::no(again(expr, field))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum To {
    /// At most so many characters, no blanks at the end.
    Char(u32),
    /// So many characters, with blanks at the end.
    Padded(u32),
    /// The same text, which is no CHAR(n) any more.
    Text,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CharFunction {
    to: To,
    signature: Signature,
}

impl CharFunction {
    fn convert(&self, texts: &StringViewArray) -> ArrayRef {
        let mut out = StringViewBuilder::with_capacity(texts.len());
        let mut line = String::new();
        for text in texts {
            let Some(text) = text else {
                out.append_null();
                continue;
            };
            match self.to {
                To::Text => out.append_value(text),
                To::Char(chars) => {
                    let end = text.char_indices().nth(chars as usize).map_or(text.len(), |(at, _)| at);
                    out.append_value(without_padding(text.split_at(end).0));
                }
                To::Padded(chars) => {
                    line.clear();
                    line.push_str(text);
                    let missing = (chars as usize).saturating_sub(text.chars().count());
                    line.extend(std::iter::repeat_n(' ', missing));
                    out.append_value(&line);
                }
            }
        }
        Arc::new(out.finish())
    }
}

impl ScalarUDFImpl for CharFunction {
    fn name(&self) -> &str {
        match self.to {
            To::Char(_) => "char_of",
            To::Padded(_) => "padded",
            To::Text => "text_of_char",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8View)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        let of = match self.to {
            To::Char(chars) | To::Padded(chars) => DataType::Char { chars },
            To::Text => DataType::Text { max_chars: None },
        };
        Ok(Arc::new(of.field(self.name(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = args.args.as_slice() else {
            return Err(DataFusionError::Internal(format!("{} with {} arguments", self.name(), args.args.len())));
        };
        let convert = |array: &ArrayRef| -> Result<ArrayRef> {
            Ok(self.convert(cast(array, &ArrowType::Utf8View)?.as_string_view()))
        };
        Ok(match argument {
            ColumnarValue::Array(array) => ColumnarValue::Array(convert(array)?),
            ColumnarValue::Scalar(value) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&convert(&value.to_array()?)?, 0)?)
            }
        })
    }
}
