//! Queries made by choices: what is selected, grouped, ordered and limited. Each is valid, and has one right answer but
//! for the order of rows.

use super::choices::{Choices, Kind};
use super::schema::{Column, Table};
use super::sql::{Sql, sql};
use super::types::{OF_COLUMNS, Type};

/// What expressions are made of: a column, a group key, an aggregate.
#[derive(Clone, Debug)]
pub struct Atom {
    pub sql: Sql,
    pub data_type: Type,
}

/// A query.
#[derive(Clone, Debug)]
pub struct Relation {
    pub sql: Sql,
    pub columns: Vec<Column>,
    /// Columns that are equal in equal rows only.
    pub key: Vec<usize>,
    /// Whether no two rows are equal in the key.
    pub is_unique: bool,
    /// About so many rows.
    pub rows: u64,
    /// The leading sort keys that are columns of the answer.
    pub sorted: Vec<usize>,
    /// Whether its order leaves no two different rows equal.
    pub is_ordered: bool,
}

/// What stands in FROM.
pub struct Scope {
    pub text: Sql,
    pub atoms: Vec<Atom>,
    /// Names of the atoms.
    pub names: Vec<String>,
    pub key: Vec<usize>,
    pub is_unique: bool,
    pub rows: u64,
    pub is_join: bool,
    /// Whether it is a derived table whose order counts.
    pub is_ordered: bool,
}

/// A query that is called by a name in WITH.
#[derive(Clone)]
pub struct Named {
    pub name: String,
    pub columns: Vec<Column>,
    pub key: Vec<usize>,
    pub is_unique: bool,
    pub rows: u64,
}

pub struct Generator<'a> {
    pub choices: &'a mut Choices,
    pub tables: &'a [Table],
    pub named: Vec<Named>,
    next: usize,
    /// How many more SELECTs there may be.
    pub budget: usize,
}

/// A select item.
struct Item {
    sql: Sql,
    data_type: Type,
    /// The atom that it is.
    atom: Option<usize>,
    is_window: bool,
}

/// What GROUP BY makes of a scope.
struct Grouped {
    clause: Sql,
    atoms: Vec<Atom>,
    /// None: rows may be equal.
    key: Option<Vec<usize>>,
    rows: u64,
}

impl<'a> Generator<'a> {
    pub fn new(choices: &'a mut Choices, tables: &'a [Table]) -> Self {
        let budget = [1, 2, 3, 4, 6, 8][choices.weighted(&[5, 5, 4, 3, 2, 1])];
        Self { choices, tables, named: Vec::new(), next: 0, budget }
    }

    /// A name that nothing else has.
    pub fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    /// A query, whose columns have types `want` if these are given.
    pub fn query(&mut self, want: Option<&[Type]>, depth: usize) -> Relation {
        let from = self.choices.taken.len();
        let known = self.named.len();
        let mut with = None;
        if depth > 0 && self.budget > 1 && self.choices.chance(1, 9) {
            self.budget -= 1;
            let inner = self.query(None, depth - 1);
            let name = self.name("w");
            with = Some(Sql::with(&name, inner.sql));
            self.named.push(Named {
                name,
                columns: inner.columns,
                key: inner.key,
                is_unique: inner.is_unique,
                rows: inner.rows,
            });
        }
        let mut made = if depth > 0 && self.budget > 1 && self.choices.chance(1, 7) {
            self.set_operation(want, depth)
        } else {
            self.select(want, depth)
        };
        self.named.truncate(known);
        if let Some(with) = with {
            made.sql = sql("{}{}", &[&with, &made.sql]);
        }
        self.choices.end(Kind::Relation, from);
        made
    }

    fn set_operation(&mut self, want: Option<&[Type]>, depth: usize) -> Relation {
        let types: Vec<Type> = match want {
            Some(want) => want.to_vec(),
            None => (0..1 + self.choices.below(3)).map(|_| *self.choices.pick(OF_COLUMNS)).collect(),
        };
        let operator =
            *self.choices.pick(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
        self.budget -= 1;
        let left = self.select(Some(&types), depth - 1);
        let right = self.select(Some(&types), depth - 1);
        let mut made = Relation {
            sql: sql(&format!("({{}}) {operator} ({{}})"), &[&left.sql, &right.sql]),
            key: (0..types.len()).collect(),
            is_unique: !operator.ends_with("ALL"),
            columns: left.columns,
            rows: left.rows + right.rows,
            sorted: Vec::new(),
            is_ordered: false,
        };
        if self.choices.chance(1, 2) {
            let names: Vec<Sql> = made.columns.iter().map(|column| column.name.as_str().into()).collect();
            self.order(&mut made, &names);
        }
        made
    }

    /// SELECT ... FROM ... WHERE ... GROUP BY ... ORDER BY ... LIMIT.
    pub fn select(&mut self, want: Option<&[Type]>, depth: usize) -> Relation {
        self.budget = self.budget.saturating_sub(1);
        let mut from = self.from(depth);
        let mut text = sql(" FROM {}", &[&from.text]);
        let conditions = self.conditions(&from.atoms, depth);
        if !conditions.is_empty() {
            from.is_ordered &= conditions.iter().all(|condition| !condition.text().contains("SELECT"));
            text = sql("{} WHERE {}", &[&text, &Sql::joined(&conditions, " AND ")]);
        }
        let grouped = match self.choices.weighted(&[6, 3, 1]) {
            0 => None,
            1 => Some(self.group_by(&from)),
            _ => Some(self.one_group(&from)),
        };
        let is_grouped = grouped.is_some();
        if let Some(grouped) = grouped {
            text.append(&grouped.clause);
            from.rows = grouped.rows;
            from.is_unique = grouped.key.is_some();
            from.key = grouped.key.unwrap_or_else(|| (0..grouped.atoms.len()).collect());
            from.atoms = grouped.atoms;
            from.names = vec![String::new(); from.atoms.len()];
            from.is_ordered = false;
        }
        let (items, columns) = self.items(&from, want, is_grouped, depth);
        self.finish(&from, &text, &items, columns)
    }

    /// Puts DISTINCT, ORDER BY and LIMIT around.
    fn finish(&mut self, from: &Scope, text: &Sql, items: &[Item], columns: Vec<Column>) -> Relation {
        let listed: Vec<Sql> = items
            .iter()
            .zip(&columns)
            .map(|(item, column)| sql(&format!("{{}} AS {}", column.name), &[&item.sql]))
            .collect();
        let listed = Sql::joined(&listed, ", ");
        let all: Vec<usize> = (0..items.len()).collect();
        let place = |atom: &usize| items.iter().position(|item| item.atom == Some(*atom));
        // A window may tell rows apart that are equal else.
        let is_ranked = items.iter().any(|item| item.is_window);
        let key: Option<Vec<usize>> = from.key.iter().map(place).collect();
        let is_unique = from.is_unique && key.is_some();
        let key = key.filter(|_| !is_ranked);
        let mut made = Relation {
            sql: sql("SELECT {}{}", &[&listed, text]),
            key: key.unwrap_or_else(|| all.clone()),
            is_unique,
            columns,
            rows: from.rows,
            sorted: Vec::new(),
            is_ordered: false,
        };
        let is_projection = items.iter().all(|item| !item.is_window && !item.sql.text().contains("SELECT"));
        match self.choices.weighted(&[10, 3, 1]) {
            // A projection keeps the order of a derived table.
            0 if from.is_ordered && is_projection && self.choices.chance(1, 2) => self.limit(&mut made),
            0 => {
                if self.choices.chance(1, 2) {
                    let texts: Vec<Sql> = self.sort_texts(&made.columns, items);
                    self.order(&mut made, &texts);
                }
            }
            1 => {
                made.sql = sql("SELECT DISTINCT {}{}", &[&listed, text]);
                made.key = all;
                made.is_unique = true;
                if self.choices.chance(1, 3) {
                    let names: Vec<Sql> = made.columns.iter().map(|column| column.name.as_str().into()).collect();
                    self.order(&mut made, &names);
                }
            }
            _ => self.distinct_on(from, &listed, text, &mut made),
        }
        made
    }

    /// How ORDER BY may name each item.
    fn sort_texts(&mut self, columns: &[Column], items: &[Item]) -> Vec<Sql> {
        let text = |(at, (column, item)): (usize, (&Column, &Item))| match self.choices.below(3) {
            0 => column.name.as_str().into(),
            1 => format!("{}", at + 1).into(),
            _ if item.atom.is_some() => item.sql.clone(),
            _ => column.name.as_str().into(),
        };
        columns.iter().zip(items).enumerate().map(text).collect()
    }

    /// ORDER BY some columns, or by all that it takes for LIMIT and OFFSET.
    fn order(&mut self, made: &mut Relation, texts: &[Sql]) {
        let mut keys: Vec<usize> =
            (0..self.choices.weighted(&[1, 3, 2])).map(|_| self.choices.below(texts.len())).collect();
        let limits = self.choices.chance(1, 2);
        if limits {
            let missing: Vec<usize> = made.key.iter().copied().filter(|at| !keys.contains(at)).collect();
            keys.extend(missing);
        }
        if !keys.is_empty() {
            let list: Vec<Sql> =
                keys.iter().map(|&at| sql(&format!("{{}}{}", self.direction()), &[&texts[at]])).collect();
            made.sql = sql("{} ORDER BY {}", &[&made.sql, &Sql::joined(&list, ", ")]);
        }
        // Without a key there is at most one row.
        made.is_ordered = made.key.iter().all(|at| keys.contains(at));
        made.sorted = keys;
        if limits {
            self.limit(made);
        }
    }

    /// LIMIT, OFFSET or both.
    fn limit(&mut self, made: &mut Relation) {
        let (limit, offset) = (self.number(&[3, 1, 2, 5, 10, 0]), self.number(&[1, 2, 3, 5, 0]));
        made.sql = match self.choices.below(3) {
            0 => sql("{} LIMIT {}", &[&made.sql, &limit]),
            1 => sql("{} LIMIT {} OFFSET {}", &[&made.sql, &limit, &offset]),
            _ => sql("{} OFFSET {}", &[&made.sql, &offset]),
        };
    }

    /// DISTINCT ON: of rows that its order leaves equal all columns are equal.
    fn distinct_on(&mut self, from: &Scope, listed: &Sql, text: &Sql, made: &mut Relation) {
        let on: Vec<Atom> = (0..1 + self.choices.below(2)).map(|_| self.any_atom(&from.atoms)).collect();
        let mut order: Vec<Sql> =
            on.iter().map(|atom| sql(&format!("{{}}{}", self.direction()), &[&atom.sql])).collect();
        for _ in 0..self.choices.below(3) {
            let atom = self.any_atom(&from.atoms);
            order.push(sql(&format!("{{}}{}", self.direction()), &[&atom.sql]));
        }
        order.extend((1..=made.columns.len()).map(|at| Sql::from(format!("{at}{}", self.direction()))));
        let on: Vec<Sql> = on.into_iter().map(|atom| atom.sql).collect();
        made.sql = sql(
            "SELECT DISTINCT ON ({}) {}{} ORDER BY {}",
            &[&Sql::joined(&on, ", "), listed, text, &Sql::joined(&order, ", ")],
        );
        if self.choices.chance(1, 3) {
            self.limit(made);
        }
    }

    /// Select items with their names.
    fn items(
        &mut self,
        from: &Scope,
        want: Option<&[Type]>,
        is_grouped: bool,
        depth: usize,
    ) -> (Vec<Item>, Vec<Column>) {
        let count = want.map_or_else(|| 1 + self.choices.below(4), <[Type]>::len);
        let (mut items, mut columns) = (Vec::<Item>::new(), Vec::<Column>::new());
        for at in 0..count {
            let start = self.choices.taken.len();
            let item = match want {
                Some(want) => self.item_of(from, want[at]),
                None => self.item(from, &items, is_grouped, depth),
            };
            self.choices.end(Kind::Item, start);
            let of_column = item.atom.map(|atom| from.names[atom].as_str()).filter(|name| !name.is_empty());
            let same = of_column.or_else(|| from.names.iter().map(String::as_str).find(|name| !name.is_empty()));
            let is_free = |name: &&str| columns.iter().all(|column| column.name != **name);
            let name = match same.filter(is_free) {
                Some(name) if self.choices.chance(1, 3) => name.to_string(),
                _ => self.name("x"),
            };
            columns.push(Column { name, data_type: item.data_type });
            items.push(item);
        }
        (items, columns)
    }

    fn item(&mut self, from: &Scope, before: &[Item], is_grouped: bool, depth: usize) -> Item {
        let of = |atom: Atom| Item { sql: atom.sql, data_type: atom.data_type, atom: None, is_window: false };
        match self.choices.weighted(&[10, 3, 3, 3, if before.is_empty() { 0 } else { 1 }, 1]) {
            0 => {
                let at = self.choices.below(from.atoms.len());
                Item {
                    sql: from.atoms[at].sql.clone(),
                    data_type: from.atoms[at].data_type,
                    atom: Some(at),
                    is_window: false,
                }
            }
            1 => {
                let data_type = self.any_atom(&from.atoms).data_type;
                Item { sql: self.expression(&from.atoms, data_type, 2), data_type, atom: None, is_window: false }
            }
            2 => {
                // Of rows that are equal two windows may each find another the first.
                let by_place = from.is_unique || before.iter().all(|item| !item.is_window);
                Item { is_window: true, ..of(self.window(&from.atoms, &from.key, by_place)) }
            }
            3 => {
                let data_type = *self.choices.pick(OF_COLUMNS);
                let literal = self.literal(data_type);
                let typed = sql(&format!("CAST({{}} AS {})", data_type.name()), &[&literal]);
                Item { sql: typed, data_type, atom: None, is_window: false }
            }
            4 => {
                let twin = self.choices.pick(before);
                Item { sql: twin.sql.clone(), data_type: twin.data_type, atom: twin.atom, is_window: twin.is_window }
            }
            _ if is_grouped || depth == 0 || self.budget == 0 => {
                Item { sql: "CAST(NULL AS integer)".into(), data_type: Type::Integer, atom: None, is_window: false }
            }
            _ => of(self.scalar_subquery(&from.atoms, None, depth - 1)),
        }
    }

    fn item_of(&mut self, from: &Scope, data_type: Type) -> Item {
        let fitting: Vec<usize> = (0..from.atoms.len()).filter(|&at| from.atoms[at].data_type == data_type).collect();
        // Which digits a decimal has may depend on the branch of a set operation otherwise.
        if !fitting.is_empty() && data_type != Type::Numeric && !self.choices.chance(1, 4) {
            let at = *self.choices.pick(&fitting);
            return Item { sql: from.atoms[at].sql.clone(), data_type, atom: Some(at), is_window: false };
        }
        let made = self.expression(&from.atoms, data_type, 1);
        Item {
            sql: sql(&format!("CAST({{}} AS {})", data_type.name()), &[&made]),
            data_type,
            atom: None,
            is_window: false,
        }
    }

    /// GROUP BY keys, perhaps in grouping sets, and HAVING.
    fn group_by(&mut self, from: &Scope) -> Grouped {
        let mut keys: Vec<Atom> = Vec::new();
        for _ in 0..1 + self.choices.below(3) {
            let mut atom = self.any_atom(&from.atoms);
            if self.choices.chance(1, 5) {
                let made = self.computed(&from.atoms, atom.data_type, 0);
                // A constant would name a position.
                if from.atoms.iter().any(|atom| made.text().contains(&atom.sql.text())) {
                    atom.sql = made;
                }
            }
            keys.push(atom);
        }
        let texts: Vec<Sql> = keys.iter().map(|atom| atom.sql.clone()).collect();
        let all = Sql::joined(&texts, ", ");
        let (clause, is_plain) = match self.choices.weighted(&[6, 1, 1, 1, 1]) {
            0 => (sql(" GROUP BY {}", &[&all]), true),
            1 => (sql(" GROUP BY ROLLUP ({})", &[&all]), false),
            2 => (sql(" GROUP BY CUBE ({})", &[&all]), false),
            3 => (sql(" GROUP BY GROUPING SETS (({}), ({}), ())", &[&all, &texts[0]]), false),
            _ if texts.len() > 1 => {
                (sql(" GROUP BY {}, ROLLUP ({})", &[&texts[0], &Sql::joined(&texts[1..], ", ")]), false)
            }
            _ => (sql(" GROUP BY GROUPING SETS (({}), ())", &[&all]), false),
        };
        let key_count = keys.len();
        let mut atoms = keys;
        if !is_plain && self.choices.chance(1, 3) {
            atoms.push(Atom { sql: sql("grouping({})", &[&texts[0]]), data_type: Type::Integer });
        }
        for _ in 0..self.choices.below(3) {
            let aggregate = self.aggregate(&from.atoms);
            atoms.push(aggregate);
        }
        let mut made = Grouped { clause, atoms, key: is_plain.then(|| (0..key_count).collect()), rows: from.rows };
        self.having(&mut made);
        made
    }

    /// Aggregates without GROUP BY: one row.
    fn one_group(&mut self, from: &Scope) -> Grouped {
        let atoms = (0..1 + self.choices.below(3)).map(|_| self.aggregate(&from.atoms)).collect();
        let mut made = Grouped { clause: Sql::default(), atoms, key: Some(Vec::new()), rows: 1 };
        self.having(&mut made);
        made
    }

    fn having(&mut self, grouped: &mut Grouped) {
        if self.choices.chance(1, 5) {
            let condition = self.condition(&grouped.atoms, 1);
            grouped.clause = sql("{} HAVING {}", &[&grouped.clause, &condition]);
        }
    }
}
