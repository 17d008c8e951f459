//! Clauses of queries that DataFusion's planner reads past without a word. Each is refused here, so that nothing a user
//! wrote is ignored.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Join,
    JoinConstraint, JoinOperator, NamedWindowDefinition, NamedWindowExpr, ObjectNamePart, OrderByKind, Query, Select,
    SelectFlavor, SetExpr, SetQuantifier, TableAlias, TableFactor, TableWithJoins, UnaryOperator, Value, ValueWithSpan,
    Visit, Visitor, WindowSpec, WindowType,
};
use mainstem_storage::error::sqlstate;
use mainstem_storage::{Error, Result};

use super::{fold, state};
use crate::walk::walk;

/// Tables and SELECTs of one statement. Planning walks them by recursion, in time that grows with the square.
pub(crate) const RELATIONS_MAX: usize = 1_000;

/// Levels of what DataFusion looks at twice at each of them: the names in a WITH, the fields of a ROW, the arguments of
/// an ordered-set aggregate. Each level doubles the time.
const DOUBLING_MAX: usize = 12;

/// Refuses the first clause of `refusals` that is there.
///
/// # Errors
/// 0A000.
pub(super) fn refuse(refusals: &[(bool, &str)]) -> Result<()> {
    match refusals.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(Error::unsupported(what)),
        None => Ok(()),
    }
}

/// Looks through `query` and everything in it.
///
/// # Errors
/// 0A000 that names the clause; 42601 and 42P10 for constants in ORDER BY and GROUP BY that are no positions; 54001 for
/// too many tables.
pub(crate) fn check_query<T: Visit>(query: &T) -> Result<()> {
    if let ControlFlow::Break(what) = walk(query, &mut Refusals) {
        return Err(Error::unsupported(what));
    }
    if let ControlFlow::Break(error) = walk(query, &mut Positions) {
        return Err(error);
    }
    let size = walk(query, &mut Size::default()).break_value();
    size.map_or(Ok(()), |what| Err(Error::invalid(state::TOO_COMPLEX, format!("the statement has more than {what}"))))
}

/// Looks at the joins of what stands beside the table of a write; [`check_query`] does for a SELECT.
///
/// # Errors
/// 0A000 that names the clause.
pub(crate) fn check_tables(tables: &[TableWithJoins]) -> Result<()> {
    let checked = tables.iter().try_for_each(|table| check_joins(&table.joins)).break_value();
    checked.map_or(Ok(()), |what| Err(Error::unsupported(what)))
}

/// Counts what planning takes more than its share of time for.
#[derive(Default)]
struct Size {
    /// Tables and SELECTs.
    relations: usize,
    /// How many of what [`DOUBLING_MAX`] is about stand around what is looked at.
    doubling: usize,
}

impl Size {
    fn one_more(&mut self) -> ControlFlow<String> {
        self.relations += 1;
        match self.relations {
            0..=RELATIONS_MAX => ControlFlow::Continue(()),
            _ => ControlFlow::Break(format!("{RELATIONS_MAX} tables and SELECTs")),
        }
    }

    fn enter(&mut self, doubles: bool) -> ControlFlow<String> {
        self.doubling += usize::from(doubles);
        match self.doubling {
            0..=DOUBLING_MAX => ControlFlow::Continue(()),
            _ => ControlFlow::Break(format!("{DOUBLING_MAX} levels of WITH, ROW and WITHIN GROUP inside one another")),
        }
    }

    fn leave(&mut self, doubles: bool) {
        self.doubling = self.doubling.saturating_sub(usize::from(doubles));
    }
}

fn doubles(expr: &Expr) -> bool {
    let Expr::Function(call) = expr else { return false };
    let is_row = match call.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => matches!(fold(name).as_str(), "row" | "struct" | "named_struct"),
        _ => false,
    };
    is_row || !call.within_group.is_empty()
}

impl Visitor for Size {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.enter(query.with.is_some())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.leave(query.with.is_some());
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        self.enter(doubles(expr))
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        self.leave(doubles(expr));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<String> {
        self.one_more()
    }

    fn pre_visit_table_factor(&mut self, _: &TableFactor) -> ControlFlow<String> {
        self.one_more()
    }
}

/// Constants where ORDER BY and GROUP BY take positions.
struct Positions;

impl Visitor for Positions {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        if let Some(OrderByKind::Expressions(keys)) = query.order_by.as_ref().map(|order_by| &order_by.kind) {
            keys.iter().try_for_each(|key| check_position(&key.expr, "ORDER BY"))?;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            keys.iter().try_for_each(|key| check_position(key, "GROUP BY"))?;
        }
        ControlFlow::Continue(())
    }
}

fn check_position(key: &Expr, clause: &str) -> ControlFlow<Error> {
    let is_whole = |number: &str| number.bytes().all(|b| b.is_ascii_digit());
    match key {
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) if is_whole(number) => {
            ControlFlow::Continue(())
        }
        Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }) => ControlFlow::Continue(()),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) if is_whole(number) => {
                let message = format!("{clause} position -{number} is not in select list");
                ControlFlow::Break(Error::invalid(state::INVALID_REFERENCE, message))
            }
            _ => ControlFlow::Continue(()),
        },
        Expr::Value(_) => {
            ControlFlow::Break(Error::invalid(sqlstate::SYNTAX, format!("non-integer constant in {clause}")))
        }
        Expr::Nested(inner) => check_position(inner, clause),
        _ => ControlFlow::Continue(()),
    }
}

struct Refusals;

fn refuse_if(condition: bool, what: &'static str) -> ControlFlow<&'static str> {
    if condition { ControlFlow::Break(what) } else { ControlFlow::Continue(()) }
}

impl Visitor for Refusals {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<&'static str> {
        let Query {
            with: _,
            body,
            order_by,
            limit_clause: _,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        refuse_if(!locks.is_empty(), "FOR UPDATE, FOR SHARE")?;
        // The plain one has become LIMIT (`parse::fetch`).
        refuse_if(fetch.is_some(), "FETCH ... WITH TIES, and FETCH ... PERCENT")?;
        check_body(body)?;
        // Both have been rewritten (`parse::extensions`): the planner reads past what is left.
        let by_all = order_by.as_ref().is_some_and(|order_by| matches!(order_by.kind, OrderByKind::All(_)));
        refuse_if(by_all && !matches!(**body, SetExpr::Select(_)), "ORDER BY ALL of anything but a SELECT")?;
        refuse_if(for_clause.is_some(), "a FOR clause")?;
        refuse_if(settings.is_some(), "a SETTINGS clause")?;
        refuse_if(format_clause.is_some(), "a FORMAT clause")?;
        refuse_if(!pipe_operators.is_empty(), "a pipe operator")?;
        refuse_if(
            matches!(**body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)),
            "a write inside a query",
        )
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<&'static str> {
        refuse_if(select.flavor == SelectFlavor::FromFirstNoSelect, "FROM without SELECT")?;
        refuse_if(select.into.is_some(), "SELECT INTO (use CREATE TABLE and INSERT)")?;
        refuse_if(select.top.is_some(), "TOP (use LIMIT)")?;
        refuse_if(select.prewhere.is_some(), "PREWHERE")?;
        refuse_if(!select.connect_by.is_empty(), "CONNECT BY")?;
        refuse_if(!select.lateral_views.is_empty(), "LATERAL VIEW")?;
        refuse_if(!select.cluster_by.is_empty(), "CLUSTER BY")?;
        refuse_if(!select.distribute_by.is_empty(), "DISTRIBUTE BY")?;
        refuse_if(!select.sort_by.is_empty(), "SORT BY")?;
        refuse_if(select.value_table_mode.is_some(), "SELECT AS VALUE, AS STRUCT")?;
        refuse_if(select.select_modifiers.is_some(), "this modifier of SELECT")?;
        refuse_if(select.exclude.is_some(), "EXCLUDE")?;
        select.from.iter().try_for_each(|table| check_joins(&table.joins))?;
        select.named_window.iter().try_for_each(|NamedWindowDefinition(_, window)| match window {
            NamedWindowExpr::WindowSpec(window) => check_window(window),
            NamedWindowExpr::NamedWindow(_) => ControlFlow::Continue(()),
        })
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
        match expr {
            Expr::InSubquery { expr, .. } if matches!(&**expr, Expr::Tuple(_)) => {
                ControlFlow::Break("(a, b) IN of a query (use EXISTS)")
            }
            Expr::Subquery(query) | Expr::InSubquery { subquery: query, .. } => refuse_if(
                matches!(&*query.body, SetExpr::Select(select) if select.projection.is_empty()),
                "a subquery without columns as an expression",
            ),
            Expr::Function(Function { args: FunctionArguments::Subquery(_), .. }) => {
                ControlFlow::Break("ARRAY of a query (use array_agg)")
            }
            Expr::Function(Function { args, over, .. }) => {
                if let Some(WindowType::WindowSpec(window)) = over {
                    check_window(window)?;
                }
                let FunctionArguments::List(list) = args else { return ControlFlow::Continue(()) };
                let is_all = list.args.iter().any(|arg| {
                    matches!(
                        arg,
                        FunctionArg::Unnamed(FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_))
                    )
                });
                let has_options = list
                    .args
                    .iter()
                    .any(|arg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::WildcardWithOptions(_))));
                let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
                refuse_if(over.is_some() && is_distinct, "DISTINCT of a window function")?;
                refuse_if(has_options, "EXCLUDE in the argument of a function")?;
                refuse_if(is_all && list.duplicate_treatment.is_some(), "DISTINCT of *")
            }
            Expr::Cast { data_type, .. } => refuse_if(is_modified_integer(data_type), "a length of an integer type"),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<&'static str> {
        match table {
            TableFactor::Table {
                name: _,
                alias,
                args: _,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                check_alias(alias.as_ref())?;
                refuse_if(!with_hints.is_empty() || !index_hints.is_empty(), "a hint on a table")?;
                refuse_if(version.is_some(), "a version of a table")?;
                refuse_if(*with_ordinality, "WITH ORDINALITY")?;
                refuse_if(!partitions.is_empty(), "PARTITION of a table")?;
                refuse_if(json_path.is_some(), "a JSON path on a table")?;
                refuse_if(sample.is_some(), "TABLESAMPLE")
            }
            TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
                check_alias(alias.as_ref())?;
                refuse_if(sample.is_some(), "TABLESAMPLE")
            }
            TableFactor::Function { lateral: _, name: _, args: _, with_ordinality, alias } => {
                check_alias(alias.as_ref())?;
                refuse_if(*with_ordinality, "WITH ORDINALITY")
            }
            TableFactor::NestedJoin { table_with_joins, alias: _ } => check_joins(&table_with_joins.joins),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Looks at what has no hook: VALUES of a query and of what it puts together.
fn check_body(body: &SetExpr) -> ControlFlow<&'static str> {
    match body {
        SetExpr::Values(values) => refuse_if(values.explicit_row || values.value_keyword, "VALUES ROW (use VALUES)"),
        SetExpr::Table(_) => refuse_if(true, "TABLE in a query (use SELECT * FROM)"),
        SetExpr::SetOperation { left, right, op: _, set_quantifier } => {
            let by_name = matches!(
                set_quantifier,
                SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName
            );
            refuse_if(by_name, "UNION BY NAME (select the columns in one order)")?;
            check_body(left)?;
            check_body(right)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn check_joins(joins: &[Join]) -> ControlFlow<&'static str> {
    joins.iter().try_for_each(|Join { relation: _, global, join_operator }| {
        refuse_if(*global, "GLOBAL JOIN")?;
        let bare = matches!(
            join_operator,
            JoinOperator::Join(JoinConstraint::None) | JoinOperator::Inner(JoinConstraint::None)
        );
        refuse_if(bare, "JOIN without ON or USING (use CROSS JOIN)")
    })
}

/// DataFusion would take the new part alone.
fn check_window(window: &WindowSpec) -> ControlFlow<&'static str> {
    let WindowSpec { window_name, partition_by: _, order_by: _, window_frame: _ } = window;
    refuse_if(window_name.is_some(), "a window that begins with the name of another (write OVER name, or all of it)")
}

fn is_modified_integer(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::SmallInt(Some(_))
            | T::Int2(Some(_))
            | T::Int(Some(_))
            | T::Integer(Some(_))
            | T::Int4(Some(_))
            | T::BigInt(Some(_))
            | T::Int8(Some(_))
    )
}

fn check_alias(alias: Option<&TableAlias>) -> ControlFlow<&'static str> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return ControlFlow::Continue(()) };
    refuse_if(at.is_some(), "AT behind a table alias")?;
    refuse_if(columns.iter().any(|c| c.data_type.is_some()), "types of columns in a table alias")
}

/// Whether `query` is but the WITH of a write.
pub(super) fn is_write(query: &Query) -> bool {
    matches!(*query.body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
}
