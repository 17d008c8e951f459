//! Names of a result's columns that the statement does not name: PostgreSQL's, not the plan's texts.
//!
//! A column has its own name, a call its function's, a cast of neither its type's, and so on; all else is `?column?`.
//! Comes in: the statement's tree as it was read, and later its plan. Goes out: the plan, whose outermost select items
//! are called so. What else in the statement refers to such names it finds by `columns`, so that these change no
//! meaning. Names are distinguished by the item's position: `count`, `count_2`.

use std::collections::HashSet;

use datafusion::common::{Column, Result};
use datafusion::logical_expr::logical_plan::Projection;
use datafusion::logical_expr::{self, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, CeilFloorKind, DataType, Expr, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    Statement, TrimWhereField, TypedString,
};

use crate::names::without_marks;
use crate::sql::fold;

/// What the outermost select items of a statement are called.
#[derive(Debug, Default)]
pub(crate) struct OutputNames {
    /// From the first one on, up to a `*`.
    front: Vec<Option<String>>,
    /// Up to the last one, behind the last `*`.
    back: Vec<Option<String>>,
}

impl OutputNames {
    /// Those of `statement`.
    pub(crate) fn of(statement: &Statement) -> Self {
        let Statement::Query(query) = statement else { return Self::default() };
        let Some(select) = outermost(query) else { return Self::default() };
        let is_one = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
        let items = select.projection.as_slice();
        let front: Vec<_> = items.iter().take_while(|item| is_one(item)).map(item_name).collect();
        let mut back: Vec<_> = match front.len() == items.len() {
            true => Vec::new(),
            false => items.iter().rev().take_while(|item| is_one(item)).map(item_name).collect(),
        };
        back.reverse();
        Self { front, back }
    }

    /// `plan`, whose columns are called so.
    ///
    /// # Errors
    /// Internal.
    pub(crate) fn name(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let fields = plan.schema().fields();
        let behind = fields.len().saturating_sub(self.back.len());
        let of_item = |at: usize| match at.checked_sub(behind) {
            Some(at) => self.back.get(at)?.clone(),
            None => self.front.get(at)?.clone(),
        };
        // Between two `*` a text of the plan, which names tables as they are called there.
        let of_plan = |name: &String| Some(without_marks(name)).filter(|plain| plain != name);
        let said: Vec<Option<String>> =
            fields.iter().enumerate().map(|(at, field)| of_item(at).or_else(|| of_plan(field.name()))).collect();
        if said.iter().all(Option::is_none) {
            return Ok(plan);
        }
        let kept = fields.iter().zip(&said).filter(|(_, said)| said.is_none());
        let mut taken: HashSet<String> = kept.map(|(field, _)| field.name().clone()).collect();
        let names = (1..).zip(said).map(|(position, said)| {
            let said = said?;
            let mut name = said.clone();
            if taken.contains(&name) {
                name = format!("{said}_{position}");
            }
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            Some(name)
        });
        let mut names: Vec<Option<String>> = names.collect();
        // A name may be what DataFusion calls a column with its table.
        for (name, (table, field)) in names.iter_mut().zip(plan.schema().iter()) {
            if name.is_none()
                && let Some(table) = table
                && taken.contains(&format!("{table}.{}", field.name()))
            {
                *name = Some(field.name().clone());
            }
        }
        match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let named = expr.into_iter().zip(names).map(|(expr, name)| match name {
                    Some(name) => expr.unalias().alias(name),
                    None => expr,
                });
                Projection::try_new(named.collect(), input).map(LogicalPlan::Projection)
            }
            other => {
                let columns: Vec<Column> = other.schema().columns();
                let named = columns.into_iter().zip(names).map(|(column, name)| match name {
                    Some(name) => logical_expr::Expr::Column(column).alias(name),
                    None => logical_expr::Expr::Column(column),
                });
                let named: Vec<_> = named.collect();
                LogicalPlanBuilder::from(other).project(named)?.build()
            }
        }
    }
}

/// The SELECT whose items name the columns of `query`.
pub(crate) fn outermost(query: &Query) -> Option<&Select> {
    let mut body = &*query.body;
    loop {
        body = match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            _ => return None,
        };
    }
}

/// The name of an item that has none of its own.
pub(crate) fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => match without_parentheses(expr) {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => None,
            expr => Some(title(expr)),
        },
        _ => None,
    }
}

/// What `expr` is called, as a column of a result.
pub(crate) fn title(expr: &Expr) -> String {
    figured(expr).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

fn without_parentheses(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => without_parentheses(inner),
        other => other,
    }
}

/// The name of `expr`, and whether it is better than that of a type around it.
fn figured(expr: &Expr) -> Option<(String, bool)> {
    let good = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Nested(inner) => figured(inner),
        Expr::Identifier(ident) => good(&fold(ident)),
        Expr::CompoundIdentifier(idents) => good(&idents.last().map(fold)?),
        Expr::CompoundFieldAccess { root, access_chain } => match access_chain.last() {
            Some(AccessExpr::Dot(Expr::Identifier(ident))) => good(&fold(ident)),
            _ => figured(root),
        },
        Expr::Function(function) => match function.name.0.last()? {
            ObjectNamePart::Identifier(ident) => good(&fold(ident)),
            ObjectNamePart::Function(_) => None,
        },
        Expr::Cast { expr, data_type, .. } => typed(figured(expr), data_type),
        Expr::TypedString(TypedString { data_type, .. }) => typed(None, data_type),
        Expr::Interval(_) => Some(("interval".to_owned(), false)),
        Expr::Collate { expr, .. } => figured(expr),
        Expr::Exists { .. } => good("exists"),
        Expr::Subquery(query) => {
            let item = outermost(query)?.projection.first()?;
            match item {
                SelectItem::ExprWithAlias { alias, .. } => good(&fold(alias)),
                SelectItem::UnnamedExpr(expr) => {
                    Some((figured(expr).map_or_else(|| "?column?".to_owned(), |(name, _)| name), true))
                }
                _ => None,
            }
        }
        Expr::Case { else_result, .. } => {
            let of_else = else_result.as_ref().and_then(|expr| figured(expr));
            of_else.filter(|(_, is_good)| *is_good).or_else(|| Some(("case".to_owned(), false)))
        }
        Expr::Array(_) => good("array"),
        Expr::Tuple(_) => good("row"),
        Expr::AtTimeZone { .. } => good("timezone"),
        Expr::Extract { .. } => good("extract"),
        Expr::Position { .. } => good("position"),
        Expr::Substring { .. } => good("substring"),
        Expr::Overlay { .. } => good("overlay"),
        Expr::Trim { trim_where, .. } => good(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        Expr::Ceil { field: CeilFloorKind::Scale(_), .. } => None,
        Expr::Ceil { .. } => good("ceil"),
        Expr::Floor { .. } => good("floor"),
        _ => None,
    }
}

/// The name of a cast to `data_type` of what is called `inner`.
fn typed(inner: Option<(String, bool)>, data_type: &DataType) -> Option<(String, bool)> {
    inner.filter(|(_, is_good)| *is_good).or_else(|| Some((type_name(data_type), false)))
}

/// A type as PostgreSQL's catalog calls it.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::Real | DataType::Float4 => "float4",
        DataType::DoublePrecision | DataType::Float8 | DataType::Double(_) | DataType::Float(_) => "float8",
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Boolean | DataType::Bool => "bool",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "varchar",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Date => "date",
        DataType::Time(..) => "time",
        DataType::Timestamp(_, zone) => match zone.to_string().as_str() {
            "" | "WITHOUT TIME ZONE" => "timestamp",
            _ => "timestamptz",
        },
        DataType::Array(ArrayElemTypeDef::SquareBracket(of, _) | ArrayElemTypeDef::AngleBracket(of)) => {
            return type_name(of);
        }
        other => return other.to_string().split(['(', ' ']).next().unwrap_or_default().to_ascii_lowercase(),
    }
    .to_owned()
}
