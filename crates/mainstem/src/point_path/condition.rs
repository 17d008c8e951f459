//! Conditions of short statements, in the three truth values of SQL: WHERE beside the key and of an update arm, and
//! CHECKs.
//!
//! Compared are values of one type, so that nothing has to be converted; all else is compiled by the planner.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, SelectItem, UnaryOperator, Value as Literal};
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;

use super::expression::{Expression, Node};
use super::planning::{Compiler, unnested};
use super::values::{Given, Scope, is_integer, parsed};

/// Values of an IN that are compared one by one.
const LISTED_MAX: usize = 16;

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// A Boolean.
    Value(Expression),
    Compare(Comparison, Expression, Expression),
    IsNull(Expression),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// How two values are compared; the other ways are these, turned round or negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    /// IS DISTINCT FROM: never unknown.
    Distinct,
}

/// Only a plan knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeedsPlan;

impl Condition {
    /// As [`Expression::columns_mut`].
    pub(super) fn columns_mut(&mut self, visit: &mut dyn FnMut(&mut usize)) -> Option<()> {
        match self {
            Self::Value(expression) | Self::IsNull(expression) => expression.columns_mut(visit),
            Self::Compare(_, left, right) => {
                left.columns_mut(visit)?;
                right.columns_mut(visit)
            }
            Self::Not(inner) => inner.columns_mut(visit),
            Self::And(left, right) | Self::Or(left, right) => {
                left.columns_mut(visit)?;
                right.columns_mut(visit)
            }
        }
    }

    /// True, false, or unknown (`None`) in `scope`. Every part is evaluated: what a plan would have made of an error in
    /// one that does not count is the plan's to say.
    pub(super) fn evaluate(&self, scope: Scope<'_>) -> Result<Option<bool>, NeedsPlan> {
        let value = |expression: &Expression| expression.evaluate(scope).ok_or(NeedsPlan);
        Ok(match self {
            Self::Value(expression) => match value(expression)? {
                Value::Boolean(truth) => Some(truth),
                Value::Null => None,
                _ => return Err(NeedsPlan),
            },
            Self::Compare(comparison, left, right) => compare(*comparison, &value(left)?, &value(right)?),
            Self::IsNull(expression) => Some(value(expression)?.is_null()),
            Self::Not(inner) => inner.evaluate(scope)?.map(|truth| !truth),
            Self::And(left, right) => match (left.evaluate(scope)?, right.evaluate(scope)?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(left, right) => match (left.evaluate(scope)?, right.evaluate(scope)?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        })
    }
}

/// Whether a row with `values` fulfils what stands beside the key.
pub(super) fn holds(beside: Option<&Condition>, values: &[Value], given: Given<'_>) -> Result<bool, NeedsPlan> {
    match beside {
        None => Ok(true),
        Some(condition) => Ok(condition.evaluate(given.over(values, None))? == Some(true)),
    }
}

/// Values of one type compare as they are ordered in storage.
fn compare(comparison: Comparison, left: &Value, right: &Value) -> Option<bool> {
    let unknown = left.is_null() || right.is_null();
    match comparison {
        Comparison::Distinct => Some(left != right),
        _ if unknown => None,
        Comparison::Equal => Some(left == right),
        Comparison::Less => Some(left < right),
        Comparison::LessOrEqual => Some(left <= right),
    }
}

impl Compiler<'_> {
    /// `expr` as a condition.
    pub(super) fn condition(&self, expr: &Expr) -> Option<Condition> {
        self.simple_condition(expr).or_else(|| {
            let computed = self.computed(SelectItem::UnnamedExpr(expr.clone()), true)?;
            let is_plain = !computed.is_volatile() && computed.data_type() == Some(DataType::Boolean);
            let node = Node::Evaluated(Box::new(computed));
            is_plain.then(|| Condition::Value(Expression { node, data_type: DataType::Boolean }))
        })
    }

    fn simple_condition(&self, expr: &Expr) -> Option<Condition> {
        let not = |condition| Condition::Not(Box::new(condition));
        match unnested(expr) {
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And | BinaryOperator::Or => {
                    let (left, right) = (Box::new(self.condition(left)?), Box::new(self.condition(right)?));
                    let is_and = *op == BinaryOperator::And;
                    Some(if is_and { Condition::And(left, right) } else { Condition::Or(left, right) })
                }
                BinaryOperator::Eq => self.compared(Comparison::Equal, left, right),
                BinaryOperator::NotEq => self.compared(Comparison::Equal, left, right).map(not),
                BinaryOperator::Lt => self.compared(Comparison::Less, left, right),
                BinaryOperator::LtEq => self.compared(Comparison::LessOrEqual, left, right),
                BinaryOperator::Gt => self.compared(Comparison::Less, right, left),
                BinaryOperator::GtEq => self.compared(Comparison::LessOrEqual, right, left),
                _ => None,
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => self.condition(expr).map(not),
            Expr::IsNull(expr) => self.expression(expr).map(Condition::IsNull),
            Expr::IsNotNull(expr) => self.expression(expr).map(Condition::IsNull).map(not),
            Expr::IsDistinctFrom(left, right) => self.compared(Comparison::Distinct, left, right),
            Expr::IsNotDistinctFrom(left, right) => self.compared(Comparison::Distinct, left, right).map(not),
            Expr::InList { expr, list, negated } if list.len() <= LISTED_MAX => {
                let mut equal = list.iter().map(|item| self.compared(Comparison::Equal, expr, item));
                let first = equal.next()??;
                let any = equal.try_fold(first, |any, one| Some(Condition::Or(Box::new(any), Box::new(one?))))?;
                Some(if *negated { not(any) } else { any })
            }
            Expr::Between { expr, negated, low, high } => {
                let low = self.compared(Comparison::LessOrEqual, low, expr)?;
                let high = self.compared(Comparison::LessOrEqual, expr, high)?;
                let between = Condition::And(Box::new(low), Box::new(high));
                Some(if *negated { not(between) } else { between })
            }
            Expr::Value(value) => {
                let value = match value.value {
                    Literal::Boolean(truth) => Value::Boolean(truth),
                    Literal::Null => Value::Null,
                    _ => return None,
                };
                Some(Condition::Value(Expression { node: Node::Literal(value), data_type: DataType::Boolean }))
            }
            other => self.expression(other).filter(|value| value.data_type == DataType::Boolean).map(Condition::Value),
        }
    }

    fn compared(&self, comparison: Comparison, left: &Expr, right: &Expr) -> Option<Condition> {
        let (left, right) = match (self.operand(left), self.operand(right)) {
            (Some(left), Some(right)) => (left, right),
            (Some(left), None) => {
                let right = self.text(right, left.data_type)?;
                (left, right)
            }
            (None, Some(right)) => (self.text(left, right.data_type)?, right),
            (None, None) => return None,
        };
        let (of_left, of_right) = (left.data_type, right.data_type);
        let (left, right) = (beside(left, of_right), beside(right, of_left));
        let comparable = match (left.data_type, right.data_type) {
            (a, b) if a.is_text() && b.is_text() => true,
            (
                a @ (DataType::Boolean
                | DataType::Real
                | DataType::Double
                | DataType::Decimal { .. }
                | DataType::Date
                | DataType::Time
                | DataType::Uuid
                | DataType::Timestamp
                | DataType::TimestampTz
                | DataType::Bytea),
                b,
            ) => a == b,
            (a, b) => is_integer(a) && is_integer(b),
        };
        comparable.then_some(Condition::Compare(comparison, left, right))
    }

    /// One side of a comparison: an expression, or a parameter of a type that the context gives it.
    fn operand(&self, expr: &Expr) -> Option<Expression> {
        self.expression(expr).or_else(|| {
            let Expr::Value(value) = unnested(expr) else { return None };
            let Literal::Placeholder(text) = &value.value else { return None };
            let at = text.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
            Some(Expression { node: Node::Parameter(at), data_type: (*self.parameters.get(at)?)? })
        })
    }

    /// A string literal beside a value of type `beside`.
    fn text(&self, expr: &Expr, beside: DataType) -> Option<Expression> {
        let Expr::Value(value) = unnested(expr) else { return None };
        let Literal::SingleQuotedString(text) = &value.value else { return None };
        Some(Expression { node: Node::Literal(parsed(text, beside)?), data_type: beside })
    }
}

/// `operand` beside a value of type `other`: a text bound to a parameter loses its blanks beside CHAR(n).
fn beside(operand: Expression, other: DataType) -> Expression {
    match (&operand.node, operand.data_type, other) {
        (Node::Parameter(_), DataType::Text { .. }, DataType::Char { .. }) => {
            Expression { data_type: other, ..operand }
        }
        _ => operand,
    }
}
