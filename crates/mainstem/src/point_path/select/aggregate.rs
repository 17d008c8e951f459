//! Aggregates over all rows that a SELECT without GROUP BY finds: `count`, `sum`, `min` and `max` of columns.
//!
//! Comes in: the items of a SELECT, once; then rows. Goes out: one row. Types are those of the registry's aggregates
//! (`mainstem_postgres::aggregate`): a sum of integers is a BIGINT, one of decimals has ten digits more than they.
//!
//! Invariant: a total that does not fit its type is the plan's to tell. It does not own: aggregates of expressions, of
//! floats and of texts, FILTER, and all others.

use std::cmp::Ordering;
use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as AstType, DuplicateTreatment, Expr, Function as Call, FunctionArg, FunctionArgExpr,
    FunctionArguments, Select, SelectItem,
};
use mainstem_storage::Result;
use mainstem_storage::ids::RowRef;
use mainstem_storage::row::Value;
use mainstem_storage::schema::DataType;
use mainstem_storage::version::TableView;

use super::{Selection, named};
use crate::point_path::access::{Rows, each};
use crate::point_path::condition::{NeedsPlan, holds};
use crate::point_path::planning::{Compiler, unnested};
use crate::point_path::values::Given;
use crate::point_path::{Answer, Output, Short};

/// Digits that a sum of decimals has more than they.
const SUM_DIGITS: u8 = 10;
/// Digits of a decimal.
const DIGITS_MAX: u8 = 38;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Count,
    CountDistinct,
    Sum,
    Min,
    Max,
}

/// An aggregate of a column, or of rows.
#[derive(Clone, Copy, Debug)]
pub(in crate::point_path) struct Aggregate {
    function: Function,
    /// The position of the column; None: rows are counted.
    argument: Option<usize>,
    result: DataType,
}

/// An item of a SELECT that is an aggregate.
struct Item<'e> {
    function: Function,
    argument: Option<&'e Expr>,
    /// What it gives is cast to BIGINT.
    is_cast: bool,
    name: String,
    /// It was given the name.
    is_named: bool,
}

impl<'e> Item<'e> {
    fn of(item: &'e SelectItem) -> Option<Self> {
        let (expr, alias) = named(item)?;
        let (expr, is_cast) = match unnested(expr) {
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type: AstType::BigInt(None) | AstType::Int8(None),
                format: None,
                array: false,
            } => (unnested(expr), true),
            other => (other, false),
        };
        let Expr::Function(call) = expr else { return None };
        let FunctionArguments::List(list) = &call.args else { return None };
        let [FunctionArg::Unnamed(argument)] = list.args.as_slice() else { return None };
        let argument = match argument {
            FunctionArgExpr::Expr(argument) => Some(argument),
            FunctionArgExpr::Wildcard => None,
            _ => return None,
        };
        let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        let (name, function) = match call.name.to_string().to_ascii_lowercase().as_str() {
            "count" if is_distinct => ("count", Function::CountDistinct),
            "count" => ("count", Function::Count),
            "sum" if !is_distinct => ("sum", Function::Sum),
            "min" if !is_distinct => ("min", Function::Min),
            "max" if !is_distinct => ("max", Function::Max),
            _ => return None,
        };
        if !is_plain(call, name, argument, is_distinct) || (argument.is_none() && function != Function::Count) {
            return None;
        }
        let is_named = alias.is_some();
        Some(Self { function, argument, is_cast, name: alias.unwrap_or_else(|| name.to_owned()), is_named })
    }
}

/// Whether `call` says no more than `name` and `argument`: no FILTER, no OVER, no order.
fn is_plain(call: &Call, name: &str, argument: Option<&Expr>, is_distinct: bool) -> bool {
    let distinct = if is_distinct { "DISTINCT " } else { "" };
    let argument = argument.map_or_else(|| "*".to_owned(), ToString::to_string);
    call.to_string().eq_ignore_ascii_case(&format!("{name}({distinct}{argument})"))
}

/// Whether all that `select` gives are aggregates.
pub(super) fn has_only(select: &Select) -> bool {
    !select.projection.is_empty() && select.projection.iter().all(|item| Item::of(item).is_some())
}

/// The aggregates of `items`, and what they give; `None` for items that are none, or have types that only a plan adds
/// up.
pub(super) fn compile(compiler: Compiler<'_>, items: &[SelectItem]) -> Option<(Vec<Aggregate>, Output)> {
    let mut output = Output { fields: Vec::new(), columns: Vec::new(), computed: Vec::new(), padded: Vec::new() };
    let mut aggregates = Vec::with_capacity(items.len());
    for (position, item) in (1..).zip(items) {
        let mut item = Item::of(item)?;
        let argument = item.argument.map(|argument| compiler.column(argument).ok_or(())).transpose().ok()?;
        let of_column = argument.and_then(|at| compiler.schema.columns.get(at)).map(|column| column.data_type);
        let result = result(item.function, of_column)?;
        if item.is_cast && result != DataType::BigInt {
            return None;
        }
        let is_taken = |name: &str| output.fields.iter().any(|(other, ..)| other == name);
        if is_taken(&item.name) && !item.is_named {
            item.name = format!("{}_{position}", item.name);
        }
        // How names that were given twice are told apart, and whether an item may come twice, the plan knows.
        let same = |other: &Aggregate| other.function == item.function && other.argument == argument;
        if is_taken(&item.name) || aggregates.iter().any(same) {
            return None;
        }
        let is_count = matches!(item.function, Function::Count | Function::CountDistinct);
        output.fields.push((item.name, result, !is_count));
        aggregates.push(Aggregate { function: item.function, argument, result });
    }
    Some((aggregates, output))
}

/// The type of what `function` gives of a column of type `of_column`.
fn result(function: Function, of_column: Option<DataType>) -> Option<DataType> {
    let is_whole = |data_type| {
        let integers = matches!(data_type, DataType::SmallInt | DataType::Integer | DataType::BigInt);
        integers || matches!(data_type, DataType::Date | DataType::Timestamp)
    };
    match (function, of_column) {
        (Function::Count, _) => Some(DataType::BigInt),
        (Function::CountDistinct, Some(of)) if is_whole(of) => Some(DataType::BigInt),
        (Function::Sum, Some(DataType::SmallInt | DataType::Integer | DataType::BigInt)) => Some(DataType::BigInt),
        (Function::Sum, Some(DataType::Decimal { precision, scale })) => {
            Some(DataType::Decimal { precision: (precision + SUM_DIGITS).min(DIGITS_MAX), scale })
        }
        (Function::Min | Function::Max, Some(of)) if is_whole(of) || matches!(of, DataType::Decimal { .. }) => Some(of),
        _ => None,
    }
}

impl Aggregate {
    /// That counts rows.
    pub(super) const ROWS: Self = Self { function: Function::Count, argument: None, result: DataType::BigInt };

    /// The column that it reads.
    pub(in crate::point_path) fn argument(&self) -> Option<usize> {
        self.argument
    }

    pub(super) fn argument_mut(&mut self) -> Option<&mut usize> {
        self.argument.as_mut()
    }

    /// Whether it gives the greatest value of its column, or the least one; `None`: neither.
    pub(super) fn is_greatest(&self) -> Option<bool> {
        match self.function {
            Function::Max => Some(true),
            Function::Min => Some(false),
            _ => None,
        }
    }
}

/// What aggregates have seen so far.
pub(in crate::point_path) struct Totals<'a> {
    aggregates: &'a [Aggregate],
    states: Vec<State>,
}

enum State {
    Count(i64),
    Distinct(HashSet<i64>),
    Sum(Option<i128>),
    /// The value that orders before all others the one way or the other.
    First(Ordering, Option<Value>),
}

impl<'a> Totals<'a> {
    pub(in crate::point_path) fn new(aggregates: &'a [Aggregate]) -> Self {
        let state = |aggregate: &Aggregate| match aggregate.function {
            Function::Count => State::Count(0),
            Function::CountDistinct => State::Distinct(HashSet::new()),
            Function::Sum => State::Sum(None),
            Function::Min => State::First(Ordering::Less, None),
            Function::Max => State::First(Ordering::Greater, None),
        };
        Self { aggregates, states: aggregates.iter().map(state).collect() }
    }

    /// Adds a row, of which `value` gives the column at a position.
    pub(in crate::point_path) fn add<'v>(
        &mut self,
        value: impl Fn(usize) -> Option<&'v Value>,
    ) -> std::result::Result<(), NeedsPlan> {
        for (aggregate, state) in self.aggregates.iter().zip(&mut self.states) {
            let value = match aggregate.argument {
                Some(at) => value(at).ok_or(NeedsPlan)?,
                None => &Value::Boolean(true),
            };
            if !value.is_null() {
                state.add(value)?;
            }
        }
        Ok(())
    }

    /// The values of the one row that they give.
    pub(in crate::point_path) fn finish(self) -> std::result::Result<Vec<Value>, NeedsPlan> {
        let value = |(aggregate, state): (&Aggregate, State)| match state {
            State::Count(count) => Ok(Value::Int(count)),
            State::Distinct(values) => Ok(Value::Int(values.len() as i64)),
            State::First(_, value) => Ok(value.unwrap_or(Value::Null)),
            State::Sum(None) => Ok(Value::Null),
            State::Sum(Some(total)) => match aggregate.result {
                DataType::Decimal { precision, .. } if total.unsigned_abs() < 10_u128.pow(precision.into()) => {
                    Ok(Value::Decimal(total))
                }
                DataType::BigInt => i64::try_from(total).map(Value::Int).map_err(|_| NeedsPlan),
                _ => Err(NeedsPlan),
            },
        };
        self.aggregates.iter().zip(self.states).map(value).collect()
    }
}

impl State {
    /// Adds `value`, which is not NULL.
    fn add(&mut self, value: &Value) -> std::result::Result<(), NeedsPlan> {
        match (self, value) {
            (Self::Count(count), _) => *count += 1,
            (Self::Distinct(values), Value::Int(value)) => _ = values.insert(*value),
            (Self::Sum(total), Value::Int(value)) => {
                *total = Some(total.unwrap_or(0).checked_add(i128::from(*value)).ok_or(NeedsPlan)?);
            }
            (Self::Sum(total), Value::Decimal(value)) => {
                *total = Some(total.unwrap_or(0).checked_add(*value).ok_or(NeedsPlan)?);
            }
            (Self::First(order, first), value) => {
                let is_first = match (&*first, value) {
                    (None, _) => true,
                    (Some(Value::Int(first)), Value::Int(value)) => value.cmp(first) == *order,
                    (Some(Value::Decimal(first)), Value::Decimal(value)) => value.cmp(first) == *order,
                    _ => return Err(NeedsPlan),
                };
                if is_first {
                    *first = Some(value.clone());
                }
            }
            _ => return Err(NeedsPlan),
        }
        Ok(())
    }
}

impl Short {
    /// What the aggregates of `selection` give of `rows`.
    pub(in crate::point_path) fn aggregated(
        &self,
        view: &TableView,
        selection: &Selection,
        rows: Rows<'_>,
        given: Given<'_>,
        find: impl Fn(&[u8]) -> Result<Option<RowRef>>,
    ) -> Result<Answer> {
        let (beside, aggregates) = (selection.access.beside.as_ref(), selection.aggregates.as_slice());
        let mut totals = Totals::new(aggregates);
        let read: Vec<usize> = match beside {
            Some(_) => self.columns.clone(),
            None => aggregates.iter().filter_map(Aggregate::argument).collect(),
        };
        let mut values = Vec::with_capacity(read.len());
        let found = each(rows, given.scope(), find, |row| {
            values.clear();
            view.read_row(row, &read, &mut values)?;
            let of_row = holds(beside, &values, given).and_then(|holds| {
                if holds {
                    totals.add(|at| values.get(read.iter().position(|column| *column == at)?))?;
                }
                Ok(holds.then_some(()))
            });
            Ok(of_row)
        })?;
        let (Some(found), Ok(values)) = (found, totals.finish()) else { return Ok(Answer::NotShort) };
        let answer = Answer::Row(Some(values));
        Ok(if found.is_empty() { self.without_row(answer, beside, &[], given) } else { answer })
    }
}
