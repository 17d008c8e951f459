//! Expressions of a statement's tree, and the select items that they are: made, and looked at.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SetExpr,
};

use crate::sql::fold;

/// `name(args)`.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The name of the function that `expr` calls, with its arguments: if it does nothing else.
pub(crate) fn called(expr: &Expr) -> Option<(String, Vec<&Expr>)> {
    let Expr::Function(function) = expr else { return None };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_plain = list.duplicate_treatment.is_none()
        && list.clauses.is_empty()
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
        && matches!(function.parameters, FunctionArguments::None);
    let argument = |arg: &'_ FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(_)));
    if !is_plain || !list.args.iter().all(argument) {
        return None;
    }
    let args = list.args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    Some((fold(name), args.collect()))
}

/// `expr` without the parentheses around it.
pub(crate) fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        _ => expr,
    }
}

/// `CAST(expr AS data_type)`.
pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

/// `left op right`.
pub(crate) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

pub(crate) fn case(conditions: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    let conditions = conditions.into_iter().map(|(condition, result)| CaseWhen { condition, result }).collect();
    let else_result = Some(Box::new(otherwise));
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result,
    }
}

/// Whether `item` stands for several columns.
pub(crate) fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// The name that `item` is given.
pub(crate) fn alias(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

/// The SELECT whose items name the columns of a query.
pub(crate) fn first_select(body: &mut SetExpr) -> Option<&mut Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&mut query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}
