//! From a statement's tree to a short statement, or to the answer that it is none.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SelectItem, UnaryOperator,
    Value as Literal, WildcardAdditionalOptions,
};
use mainstem_postgres::cast::assign;
use mainstem_storage::ids::{ColumnId, KeyId};
use mainstem_storage::point::PointTable;
use mainstem_storage::row::{Value, value_of, without_padding};
use mainstem_storage::schema::{DataType, Identity, TableSchema};

use super::access::{Reach, keys_for_ranges};
use super::computed::Computed;
use super::condition::Condition;
use super::conflict::key_of;
use super::expression::{Expression, Node, Operator, StoredAs, is_assignable};
use super::planning::{Compiler, Planning, unnested};
use super::select::{PlainSelect, join, locked};
use super::values::{Given, is_integer, parsed, same_kind};
use super::{Action, Output, Short};
use crate::analyze::name_repeated;
use crate::sql::{
    Assignments, EXCLUDED, Insert, Statement, TableName, Target, Update, columns_in, expression_of, fold, is_default,
};

impl Short {
    /// What the tables that `statement` works on are called, one or the two of a join, if it may be short.
    pub(crate) fn tables_of(statement: &Statement) -> Option<Vec<TableName>> {
        match statement {
            Statement::Query(query) => PlainSelect::of(query).map(PlainSelect::into_tables),
            Statement::Lock(lock) => locked(lock).map(PlainSelect::into_tables),
            Statement::Insert(insert) => Some(vec![insert.target.table.clone()]),
            Statement::Update(update) => Some(vec![update.target.table.clone()]),
            Statement::Delete(delete) => Some(vec![delete.target.table.clone()]),
            _ => None,
        }
    }

    /// Compiles `statement`, which [`Short::tables_of`] says is on the tables of `schemas`. `parameters` are the types
    /// that the context gives to its parameters. `None` if it is not short by any key.
    pub(crate) fn compile(
        statement: &Statement,
        schemas: &[Arc<TableSchema>],
        parameters: &[Option<DataType>],
        planning: &dyn Planning,
    ) -> Option<Self> {
        let schema = match schemas {
            [schema] => schema,
            [left, right] => return join::compile(statement, [left, right], parameters),
            _ => return None,
        };
        let of_insert = match statement {
            Statement::Insert(insert) if insert.conflict.is_none() && schema.keys().next().is_none() => {
                return Self::compile_by(None, &[], false, statement, schema, parameters, planning);
            }
            Statement::Insert(insert) => Some(key_of(insert, schema)?),
            _ => None,
        };
        let mut keys = schema.keys().filter(|(key, _)| of_insert.is_none_or(|of_insert| of_insert == *key));
        let by_key = keys.find_map(|(key, columns)| {
            Self::compile_by(Some(key), columns, false, statement, schema, parameters, planning)
        });
        by_key.or_else(|| {
            let mut keys = keys_for_ranges(schema).filter(|_| of_insert.is_none());
            keys.find_map(|key| {
                Self::compile_by(Some(key), schema.key_columns(key), true, statement, schema, parameters, planning)
            })
        })
    }

    /// Compiles it by a key, or by a range of that; by none if the table has none.
    fn compile_by(
        key: Option<KeyId>,
        key_columns: &[ColumnId],
        range: bool,
        statement: &Statement,
        schema: &Arc<TableSchema>,
        parameters: &[Option<DataType>],
        planning: &dyn Planning,
    ) -> Option<Self> {
        let reads_clock = Cell::new(false);
        let plain = Compiler {
            schema,
            key_columns,
            qualifier: &schema.name,
            inner: None,
            known: 0,
            parameters,
            planning,
            reads_clock: &reads_clock,
            in_arm: false,
        };
        let reach = if range { Reach::Range { all: false } } else { Reach::Keys };
        let (action, output) = match statement {
            Statement::Query(query) => {
                let (action, output) = PlainSelect::of(query)?.compile(plain, range, false)?;
                (action, Some(output))
            }
            Statement::Lock(lock) => {
                let (action, output) = locked(lock)?.compile(plain, range, true)?;
                (action, Some(output))
            }
            Statement::Insert(insert) => {
                let qualifier = insert.target.qualifier_name();
                let compiler = Compiler { qualifier: &qualifier, ..plain };
                (compiler.insert(insert)?, compiler.returned(&insert.target)?)
            }
            Statement::Update(update) => {
                let qualifier = update.target.qualifier_name();
                let compiler = Compiler { qualifier: &qualifier, ..plain };
                (compiler.update(update, reach)?, compiler.returned(&update.target)?)
            }
            Statement::Delete(delete) => {
                let qualifier = delete.target.qualifier_name();
                let compiler = Compiler { qualifier: &qualifier, ..plain };
                let access = compiler.access(delete.plain_selection()?, reach)?;
                (Action::Delete { access }, compiler.returned(&delete.target)?)
            }
            _ => return None,
        };
        let table = match key {
            Some(key) => PointTable::by(schema, key)?,
            None => PointTable::without_key(schema)?,
        };
        let checks = plain.checks(&action)?;
        let columns = (0..schema.columns.len()).collect();
        Some(Self { table: Arc::new(table), action, output, columns, reads_clock: reads_clock.get(), checks })
    }
}

impl Output {
    /// One column of `data_type` that is never NULL, and none of the table's.
    pub(super) fn of_one(name: &str, data_type: DataType) -> Self {
        Self {
            fields: vec![(name.to_owned(), data_type, false)],
            columns: Vec::new(),
            computed: Vec::new(),
            padded: Vec::new(),
        }
    }
}

impl Compiler<'_> {
    /// The columns that RETURNING gives. None of both if it is more than that.
    fn returned(&self, target: &Target) -> Option<Option<Output>> {
        match target.returned_items() {
            Some(items) => self.output(items, true).map(Some),
            None => Some(None),
        }
    }

    /// `is_named` says that a plan would call expressions without a name as the planner calls them over the qualifier.
    pub(super) fn output(&self, items: &[SelectItem], is_named: bool) -> Option<Output> {
        let mut output = Output { fields: Vec::new(), columns: Vec::new(), computed: Vec::new(), padded: Vec::new() };
        let mut items = items.to_vec();
        let starred = match items.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) {
            true => self.schema.columns.iter().map(|column| column.name.clone()).collect(),
            false => HashSet::new(),
        };
        name_repeated(&mut items, &starred);
        for item in &items {
            let (column, name) = match item {
                SelectItem::UnnamedExpr(expr) => (self.column(expr), None),
                SelectItem::ExprWithAlias { expr, alias } => (self.column(expr), Some(fold(alias))),
                SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                    (0..self.schema.columns.len()).try_for_each(|at| self.show(&mut output, at, None))?;
                    continue;
                }
                _ => return None,
            };
            match column {
                Some(at) => self.show(&mut output, at, name)?,
                None if name.is_some() || is_named => {
                    let computed = self.computed(item.clone(), true)?;
                    let (field, data_type) = (computed.field(), computed.data_type()?);
                    output.fields.push((field.name().clone(), data_type, field.is_nullable()));
                    output.computed.push((output.fields.len() - 1, data_type, computed));
                }
                None => return None,
            }
        }
        // Which of them a plan would not take, or call otherwise, it knows itself.
        let names: BTreeSet<&str> = output.fields.iter().map(|(name, ..)| name.as_str()).collect();
        if names.len() < output.fields.len() {
            return None;
        }
        for (at, (_, data_type, _)) in output.fields.iter().enumerate() {
            if let DataType::Char { chars } = data_type {
                output.padded.push((at, *chars));
            }
        }
        Some(output)
    }

    /// Shows the column at `at`, under its own name if it is given none.
    fn show(&self, output: &mut Output, at: usize, name: Option<String>) -> Option<()> {
        let column = self.schema.columns.get(at)?;
        output.columns.push(at);
        let name = name.unwrap_or_else(|| column.name.clone());
        output.fields.push((name, column.data_type, column.nullable));
        Some(())
    }

    fn insert(&self, insert: &Insert) -> Option<Action> {
        Some(Action::Insert { values: self.values(insert)?, conflict: self.conflict(insert)? })
    }

    fn update(&self, update: &Update, reach: Reach) -> Option<Action> {
        let (assignments, selection) = update.plain()?;
        let access = self.access(selection, reach)?;
        Some(Action::Update { access, assignments: self.assignments(assignments)? })
    }

    /// The checks that a row written by `action` may break.
    fn checks(&self, action: &Action) -> Option<Vec<(String, Condition)>> {
        let changed: Option<Vec<&str>> = match action {
            Action::Select(_) | Action::Join(_) | Action::Delete { .. } => return Some(Vec::new()),
            Action::Insert { .. } => None,
            Action::Update { assignments, .. } => {
                let name = |(at, _): &(usize, Expression)| self.schema.columns.get(*at).map(|c| c.name.as_str());
                Some(assignments.iter().filter_map(name).collect())
            }
        };
        let mut checks = Vec::with_capacity(self.schema.checks.len());
        for check in &self.schema.checks {
            let expr = expression_of(&check.expression).ok()?;
            // A row that is there fulfils them all.
            if changed.as_ref().is_none_or(|changed| columns_in(&expr).iter().any(|c| changed.contains(&c.as_str()))) {
                checks.push((check.name.clone(), self.condition(&expr)?));
            }
        }
        Some(checks)
    }

    /// New values for columns, none of them of the key that the row is found by.
    pub(super) fn assignments(&self, assignments: &Assignments) -> Option<Vec<(usize, Expression)>> {
        let mut compiled = Vec::with_capacity(assignments.pairs().len());
        for (name, expr) in assignments.pairs() {
            let target = self.schema.columns.iter().position(|c| c.name == *name)?;
            // A row that gets another one moves; where it collides is for the end of the statement.
            let column = self.schema.columns.get(target)?;
            if self.key_columns.contains(&column.id) {
                return None;
            }
            let value = match (column.identity, &column.default) {
                (Some(Identity { always: true, .. }), _) => return None,
                (Some(_), _) if is_default(expr) => return None,
                (None, Some(text)) if is_default(expr) => self.assigned(&expression_of(text).ok()?, target, false)?,
                (None, None) if is_default(expr) => {
                    Expression { node: Node::Literal(Value::Null), data_type: column.data_type }
                }
                _ => self.assigned(expr, target, true)?,
            };
            compiled.push((target, value));
        }
        Some(compiled)
    }

    /// A parameter, a literal or a known column, compared with a column of type `data_type`.
    pub(super) fn constant(&self, expr: &Expr, data_type: DataType) -> Option<Expression> {
        if let Some(at) = self.column(expr) {
            return self.known_column(at, data_type);
        }
        self.simple_constant(expr, data_type).or_else(|| self.computed_constant(expr, data_type))
    }

    /// The column at `at` of the outer side of a join, compared with a column of type `data_type`.
    fn known_column(&self, at: usize, data_type: DataType) -> Option<Expression> {
        let column = Expression { node: Node::Column(at), data_type: self.column_type(at)? };
        match column.data_type {
            _ if at >= self.known => None,
            of if of == data_type => Some(column),
            of if is_integer(of) && is_integer(data_type) => {
                Some(Expression { node: Node::Assigned(Box::new(column)), data_type })
            }
            of if of.is_text() && data_type.is_text() => {
                let blanks = |text| matches!(text, DataType::Char { .. });
                (!blanks(of) && !blanks(data_type)).then_some(Expression { data_type, ..column })
            }
            _ => None,
        }
    }

    /// A constant as a plan compares it with a column of type `data_type`: it is one of that type, too, then.
    fn computed_constant(&self, expr: &Expr, data_type: DataType) -> Option<Expression> {
        let computed = self.computed(SelectItem::UnnamedExpr(expr.clone()), false).filter(Computed::is_constant)?;
        let value = (computed.data_type()? == data_type)
            .then(|| computed.value(Given { parameters: &[], clock: 0 }.scope(), data_type))??;
        Some(Expression { node: Node::Literal(value), data_type })
    }

    fn simple_constant(&self, expr: &Expr, data_type: DataType) -> Option<Expression> {
        let node = match unnested(expr) {
            Expr::Value(value) => match &value.value {
                Literal::Placeholder(text) => {
                    let at = text.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
                    if same_kind((*self.parameters.get(at)?)?, data_type) { Node::Parameter(at) } else { return None }
                }
                Literal::SingleQuotedString(text) => {
                    return Some(Expression { node: Node::Literal(parsed(text, data_type)?), data_type });
                }
                _ => Node::Literal(self.integer(expr)?),
            },
            _ => Node::Literal(self.integer(expr)?),
        };
        match node {
            Node::Literal(Value::Int(_)) if is_integer(data_type) => {
                // Out of the type's range it is no value of the column: a plan says what comes of it.
                let literal = Expression { node, data_type: DataType::BigInt };
                Some(Expression { node: Node::Assigned(Box::new(literal)), data_type })
            }
            Node::Literal(Value::Int(_)) => None,
            node => Some(Expression { node, data_type }),
        }
    }

    /// An integer literal, perhaps with a sign.
    pub(super) fn integer(&self, expr: &Expr) -> Option<Value> {
        match unnested(expr) {
            Expr::Value(value) => match &value.value {
                Literal::Number(digits, false) => digits.parse().ok().map(Value::Int),
                _ => None,
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
                Expr::Value(value) => match &value.value {
                    Literal::Number(digits, false) => format!("-{digits}").parse().ok().map(Value::Int),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// The position of the column that `expr` names.
    pub(super) fn column(&self, expr: &Expr) -> Option<usize> {
        match self.place(expr)? {
            Node::Column(at) => Some(at),
            _ => None,
        }
    }

    /// The column that `expr` names, of the row that is there or of the one that was to come.
    fn place(&self, expr: &Expr) -> Option<Node> {
        match unnested(expr) {
            Expr::Identifier(name) if !self.in_arm => self.named(name, 0..self.schema.columns.len()).map(Node::Column),
            Expr::CompoundIdentifier(names) => {
                let [qualifier, name] = names.as_slice() else { return None };
                let (qualifier, width) = (fold(qualifier), self.schema.columns.len());
                match self.inner {
                    Some((inner, outer_width)) if qualifier == inner => {
                        self.named(name, outer_width..width).map(Node::Column)
                    }
                    _ if qualifier == self.qualifier => {
                        self.named(name, 0..self.inner.map_or(width, |(_, width)| width)).map(Node::Column)
                    }
                    _ if self.in_arm && qualifier == EXCLUDED => self.named(name, 0..width).map(Node::Coming),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The type of the column at `at`.
    fn column_type(&self, at: usize) -> Option<DataType> {
        self.schema.columns.get(at).map(|column| column.data_type)
    }

    /// The one of the columns at `places` that is called `name`.
    fn named(&self, name: &Ident, places: Range<usize>) -> Option<usize> {
        let name = fold(name);
        let columns = self.schema.columns.get(places.clone())?;
        let mut found = columns.iter().zip(places).filter(|(column, _)| column.name == name).map(|(_, at)| at);
        // Which of two is meant nobody knows.
        found.next().filter(|_| found.next().is_none())
    }

    /// `expr` as a value of the column at `target`; `of_row` says that it may name columns.
    pub(super) fn assigned(&self, expr: &Expr, target: usize, of_row: bool) -> Option<Expression> {
        let column = self.schema.columns.get(target)?;
        let data_type = column.data_type;
        if let Expr::Value(value) = unnested(expr) {
            match &value.value {
                Literal::Null => return Some(Expression { node: Node::Literal(Value::Null), data_type }),
                Literal::Boolean(v) if data_type == DataType::Boolean => {
                    return Some(Expression { node: Node::Literal(Value::Boolean(*v)), data_type });
                }
                Literal::SingleQuotedString(text) => {
                    // A string literal may spell a value of any type: read as the plan would, once.
                    let array: ArrayRef = Arc::new(StringViewArray::from_iter_values([text.as_str()]));
                    let value = value_of(assign(&array, column).ok()?.as_ref(), data_type, 0).ok()?;
                    if is_too_long(text, data_type) {
                        return None;
                    }
                    return Some(Expression { node: Node::Literal(value), data_type });
                }
                Literal::Placeholder(text) => {
                    let at = text.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
                    let bound_as = (*self.parameters.get(at)?)?;
                    let node = Node::Stored(at, Box::new(StoredAs::new(bound_as, column)));
                    return Some(Expression { node, data_type });
                }
                _ => {}
            }
        }
        let simple = self.expression(expr).filter(|_| of_row || self.integer(expr).is_some());
        if let Some(inner) = simple.filter(|inner| is_assignable(inner.data_type, data_type)) {
            // A constant that is wrong for the column is an error, whether or not a row gets it: the plan's.
            if matches!(inner.node, Node::Literal(Value::Int(value)) if !is_in_range(value, data_type)) {
                return None;
            }
            return Some(Expression { node: Node::Assigned(Box::new(inner)), data_type });
        }
        if reads_clock(expr, data_type) {
            self.reads_clock.set(true);
            return Some(Expression { node: Node::Clock, data_type });
        }
        let computed = self.computed(SelectItem::UnnamedExpr(expr.clone()), of_row)?;
        if !computed.is_assignable(column) {
            return None;
        }
        let node = if computed.is_constant() {
            Node::Literal(computed.assigned(Given { parameters: &[], clock: 0 }.scope(), column)?)
        } else {
            Node::Computed(Box::new((computed, column.clone())))
        };
        Some(Expression { node, data_type })
    }

    /// A column, an integer literal, or arithmetic of integers.
    pub(super) fn expression(&self, expr: &Expr) -> Option<Expression> {
        let expr = unnested(expr);
        if let Some(node) = self.place(expr) {
            let (Node::Column(at) | Node::Coming(at)) = node else { return None };
            return Some(Expression { node, data_type: self.column_type(at)? });
        }
        if let Some(value) = self.integer(expr) {
            return Some(Expression { node: Node::Literal(value), data_type: DataType::BigInt });
        }
        match expr {
            Expr::Value(value) => match &value.value {
                Literal::Placeholder(text) => {
                    let at = text.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
                    let data_type = (*self.parameters.get(at)?)?;
                    is_integer(data_type).then_some(Expression { node: Node::Parameter(at), data_type })
                }
                _ => None,
            },
            Expr::Function(call) => {
                let inner = self.expression(length_of(call)?).filter(|inner| inner.data_type.is_text())?;
                Some(Expression { node: Node::Length(Box::new(inner)), data_type: DataType::Integer })
            }
            Expr::BinaryOp { left, op, right } => {
                let operator = match op {
                    BinaryOperator::Plus => Operator::Add,
                    BinaryOperator::Minus => Operator::Subtract,
                    BinaryOperator::Multiply => Operator::Multiply,
                    _ => return None,
                };
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                let data_type = wider(left.data_type, right.data_type)?;
                let node = Node::Arithmetic(operator, Box::new(left), Box::new(right));
                Some(Expression { node, data_type })
            }
            _ => None,
        }
    }
}

/// Whether storage would refuse `text` for its length, or cut it.
fn is_too_long(text: &str, data_type: DataType) -> bool {
    match data_type {
        DataType::Text { max_chars: Some(chars) } => text.chars().count() > chars as usize,
        DataType::Char { chars } => without_padding(text).chars().count() > chars as usize,
        _ => false,
    }
}

/// Whether an integer is one of `data_type`, if that is an integer type.
fn is_in_range(value: i64, data_type: DataType) -> bool {
    match data_type {
        DataType::SmallInt => i16::try_from(value).is_ok(),
        DataType::Integer => i32::try_from(value).is_ok(),
        _ => true,
    }
}

/// Whether `expr` is the time at which the statement began, which a column of type `data_type` takes.
fn reads_clock(expr: &Expr, data_type: DataType) -> bool {
    let Expr::Function(call) = unnested(expr) else { return false };
    let name = call.to_string().to_ascii_lowercase();
    match data_type {
        DataType::Timestamp | DataType::TimestampTz => matches!(name.as_str(), "now()" | "current_timestamp"),
        DataType::Date => matches!(name.as_str(), "now()" | "current_timestamp" | "current_date"),
        _ => false,
    }
}

/// The argument of `length(text)`, if `call` is that.
fn length_of(call: &Function) -> Option<&Expr> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = list.args.as_slice() else { return None };
    let plain = ["length", "char_length", "character_length"].iter().any(|name| {
        call.to_string()
            .strip_suffix(')')
            .and_then(|text| text.split_once('('))
            .is_some_and(|(called, inner)| called.eq_ignore_ascii_case(name) && inner == argument.to_string())
    });
    plain.then_some(argument)
}

/// The larger of two integer types.
fn wider(a: DataType, b: DataType) -> Option<DataType> {
    let rank = |t| match t {
        DataType::SmallInt => Some(0),
        DataType::Integer => Some(1),
        DataType::BigInt => Some(2),
        _ => None,
    };
    Some(if rank(a)? >= rank(b)? { a } else { b })
}
