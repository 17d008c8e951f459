//! From a statement's tree to a short statement, or to the answer that it is none.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, TableAlias, TableFactor, UnaryOperator,
    Value as Literal, WildcardAdditionalOptions,
};
use mainstem_storage::ids::{ColumnId, KeyId};
use mainstem_storage::point::KeyedTable;
use mainstem_storage::row::{Value, value_of, without_blanks};
use mainstem_storage::schema::{Column, DataType, Identity, TableSchema};

use super::condition::Condition;
use super::expression::{Expression, Node, Operator, StoredAs, is_assignable, is_integer, same_kind};
use super::{Action, Key, Output, Short};
use crate::plan::assign;
use crate::sql::{
    Assignments, EXCLUDED, Insert, Statement, TableName, Target, Update, columns_in, expression_of, fold, is_default,
    query_of, table_name,
};
use crate::value::{Time, Uuid};

/// What a compiler knows: the table, how the statement calls it, and the types of its parameters.
#[derive(Clone, Copy)]
pub(super) struct Compiler<'a> {
    pub(super) schema: &'a TableSchema,
    /// The columns of the key that rows are found by.
    pub(super) key_columns: &'a [ColumnId],
    /// The alias, or the table's name.
    pub(super) qualifier: &'a str,
    pub(super) parameters: &'a [Option<DataType>],
    /// In the update arm of ON CONFLICT, where the row that was to come stands beside the one that is there, so that names need a
    /// qualifier.
    pub(super) in_arm: bool,
}

impl Short {
    /// What the one table that `statement` works on is called, if it may be short.
    pub(crate) fn table_of(statement: &Statement) -> Option<TableName> {
        match statement {
            Statement::Query(query) => plain_select(query).map(|(_, name, _)| name),
            Statement::Insert(insert) => Some(insert.target.table.clone()),
            Statement::Update(update) => Some(update.target.table.clone()),
            Statement::Delete(delete) => Some(delete.target.table.clone()),
            _ => None,
        }
    }

    /// Compiles `statement`, which [`Short::table_of`] says is on `schema`'s table. `parameters` are the types that the context
    /// gives to its parameters. `None` if it is not short by any key.
    pub(crate) fn compile(
        statement: &Statement,
        schema: &Arc<TableSchema>,
        parameters: &[Option<DataType>],
    ) -> Option<Self> {
        schema.keys().find_map(|(key, columns)| Self::compile_by(key, columns, statement, schema, parameters))
    }

    fn compile_by(
        key: KeyId,
        key_columns: &[ColumnId],
        statement: &Statement,
        schema: &Arc<TableSchema>,
        parameters: &[Option<DataType>],
    ) -> Option<Self> {
        let compiler = |qualifier| Compiler { schema, key_columns, qualifier, parameters, in_arm: false };
        let (action, output) = match statement {
            Statement::Query(query) => {
                let (select, _, alias) = plain_select(query)?;
                let compiler = compiler(alias.as_deref().unwrap_or(&schema.name));
                let key = compiler.key(select.selection.as_ref())?;
                (Action::Select { key }, Some(compiler.output(&select.projection)?))
            }
            // Every row has the primary key.
            Statement::Insert(insert) if key == KeyId::PRIMARY => {
                let qualifier = insert.target.qualifier_name();
                let compiler = compiler(&qualifier);
                (compiler.insert(insert)?, compiler.returned(&insert.target)?)
            }
            Statement::Update(update) => {
                let qualifier = update.target.qualifier_name();
                let compiler = compiler(&qualifier);
                (compiler.update(update)?, compiler.returned(&update.target)?)
            }
            Statement::Delete(delete) => {
                let qualifier = delete.target.qualifier_name();
                let compiler = compiler(&qualifier);
                let key = compiler.key(delete.plain_selection()?)?;
                (Action::Delete { key }, compiler.returned(&delete.target)?)
            }
            _ => return None,
        };
        let table = Arc::new(KeyedTable::by(schema, key)?);
        let plain = Compiler { schema, key_columns, qualifier: &schema.name, parameters, in_arm: false };
        let checks = plain.checks(&action)?;
        Some(Self { table, action, output, columns: (0..schema.columns.len()).collect(), checks })
    }
}

/// The SELECT of a query that is nothing but `SELECT ... FROM table [alias] [WHERE ...]`, with the name and the alias.
fn plain_select(query: &Query) -> Option<(&Select, TableName, Option<String>)> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, alias, .. } = &from.relation else { return None };
    // Whatever else a SELECT may say would make this differ: compare it with the shortest one.
    let mut plain = query_of("SELECT 1 FROM a").ok()?;
    let SetExpr::Select(body) = &mut *plain.body else { return None };
    body.projection.clone_from(&select.projection);
    body.selection.clone_from(&select.selection);
    if let [plain_from] = body.from.as_mut_slice()
        && let TableFactor::Table { name: plain_name, alias: plain_alias, .. } = &mut plain_from.relation
    {
        plain_name.clone_from(name);
        plain_alias.clone_from(alias);
    }
    if *plain != *query {
        return None;
    }
    let alias = match alias {
        None => None,
        Some(TableAlias { name, columns, .. }) if columns.is_empty() => Some(fold(name)),
        Some(_) => return None,
    };
    Some((select, table_name(name).ok()?, alias))
}

impl Compiler<'_> {
    /// The columns that RETURNING gives. None of both if it is more than that.
    fn returned(&self, target: &Target) -> Option<Option<Output>> {
        match target.returned_items() {
            Some(items) => self.output(items).map(Some),
            None => Some(None),
        }
    }

    fn output(&self, items: &[SelectItem]) -> Option<Output> {
        let (mut columns, mut names) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let at = self.column(expr)?;
                    columns.push(at);
                    names.push(self.schema.columns.get(at)?.name.clone());
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    columns.push(self.column(expr)?);
                    names.push(fold(alias));
                }
                SelectItem::Wildcard(options) if *options == WildcardAdditionalOptions::default() => {
                    columns.extend(0..self.schema.columns.len());
                    names.extend(self.schema.columns.iter().map(|c| c.name.clone()));
                }
                _ => return None,
            }
        }
        let chars = |(place, at): (usize, &usize)| match self.column_type(*at) {
            Some(DataType::Char { chars }) => Some((place, chars)),
            _ => None,
        };
        let padded = columns.iter().enumerate().filter_map(chars).collect();
        Some(Output { columns, names, padded })
    }

    fn insert(&self, insert: &Insert) -> Option<Action> {
        Some(Action::Insert { values: self.values(insert)?, conflict: self.conflict(insert)? })
    }

    fn update(&self, update: &Update) -> Option<Action> {
        let (assignments, selection) = update.plain()?;
        Some(Action::Update { key: self.key(selection)?, assignments: self.assignments(assignments)? })
    }

    /// The checks that a row written by `action` may break.
    fn checks(&self, action: &Action) -> Option<Vec<(String, Condition)>> {
        let changed: Option<Vec<&str>> = match action {
            Action::Select { .. } | Action::Delete { .. } => return Some(Vec::new()),
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

    /// The key that `selection` asks for: one equation for each of its columns, and nothing else.
    fn key(&self, selection: Option<&Expr>) -> Option<Key> {
        let mut equations = Vec::new();
        conjuncts(selection?, &mut equations);
        if equations.len() != self.key_columns.len() {
            return None;
        }
        let mut key: Vec<Option<Expression>> = vec![None; equations.len()];
        for equation in equations {
            let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = equation else { return None };
            let (column, value) = match (self.column(left), self.column(right)) {
                (Some(column), None) => (column, right),
                (None, Some(column)) => (column, left),
                _ => return None,
            };
            let column = self.schema.columns.get(column)?;
            let place = self.key_columns.iter().position(|id| *id == column.id)?;
            let slot = key.get_mut(place).filter(|slot| slot.is_none())?;
            *slot = Some(self.constant(value, column.data_type)?);
        }
        key.into_iter().collect()
    }

    /// A parameter or literal compared with a column of type `data_type`.
    fn constant(&self, expr: &Expr, data_type: DataType) -> Option<Expression> {
        let node = match unnested(expr) {
            Expr::Value(value) => match &value.value {
                Literal::Placeholder(text) => {
                    let at = text.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
                    if same_kind((*self.parameters.get(at)?)?, data_type) { Node::Parameter(at) } else { return None }
                }
                Literal::SingleQuotedString(text) => {
                    return Some(Expression { node: Node::Literal(spelled(text, data_type)?), data_type });
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
    fn column(&self, expr: &Expr) -> Option<usize> {
        match self.place(expr)? {
            Node::Column(at) => Some(at),
            _ => None,
        }
    }

    /// The column that `expr` names, of the row that is there or of the one that was to come.
    fn place(&self, expr: &Expr) -> Option<Node> {
        match unnested(expr) {
            Expr::Identifier(name) if !self.in_arm => self.named(name).map(Node::Column),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [qualifier, name] if fold(qualifier) == self.qualifier => self.named(name).map(Node::Column),
                [qualifier, name] if self.in_arm && fold(qualifier) == EXCLUDED => self.named(name).map(Node::Coming),
                _ => None,
            },
            _ => None,
        }
    }

    /// The type of the column at `at`.
    fn column_type(&self, at: usize) -> Option<DataType> {
        self.schema.columns.get(at).map(|column| column.data_type)
    }

    fn named(&self, name: &Ident) -> Option<usize> {
        let name = fold(name);
        self.schema.columns.iter().position(|c| c.name == name)
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
        let inner = self.expression(expr).filter(|_| of_row || self.integer(expr).is_some())?;
        is_assignable(inner.data_type, data_type)
            .then(|| Expression { node: Node::Assigned(Box::new(inner)), data_type })
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

/// What a string literal beside a column of type `data_type` is there, as far as plans read it as an assignment would.
pub(super) fn spelled(text: &str, data_type: DataType) -> Option<Value> {
    match data_type {
        DataType::Text { .. } => Some(Value::Text(text.into())),
        DataType::Char { .. } => Some(Value::Text(without_blanks(text).into())),
        DataType::Uuid => text.parse::<Uuid>().ok().map(|uuid| Value::Uuid(uuid.into())),
        DataType::Time => text.parse::<Time>().ok().map(|time| Value::Int(time.micros())),
        // Only in the plain form: a plan compares finer parts of seconds, and knows no years that are far away.
        DataType::Date | DataType::Timestamp | DataType::TimestampTz if is_plain_date(text, data_type) => {
            let column = Column::new(ColumnId(0), "", data_type, true);
            let array: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
            value_of(assign(&array, &column).ok()?.as_ref(), data_type, 0).ok()
        }
        _ => None,
    }
}

/// Whether `text` is a date of the years 1700 to 2199, for timestamps perhaps with hours, minutes and seconds behind it.
fn is_plain_date(text: &str, data_type: DataType) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let is_plain = matches!(
        (shape.as_str(), data_type),
        ("0000-00-00", _) | ("0000-00-00 00:00:00", DataType::Timestamp | DataType::TimestampTz)
    );
    is_plain && ("17".."22").contains(&text.get(..2).unwrap_or(""))
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

/// The parts of `expr` that AND connects.
fn conjuncts<'e>(expr: &'e Expr, out: &mut Vec<&'e Expr>) {
    match unnested(expr) {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, out);
            conjuncts(right, out);
        }
        other => out.push(other),
    }
}

/// `expr` without the parentheses around it.
pub(super) fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}
