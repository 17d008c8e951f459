//! What stands in FROM: tables, derived tables, joins; and subqueries in WHERE and among the select items.

use super::choices::Kind;
use super::generator::{Atom, Generator, Scope};
use super::schema::{Column, Table};
use super::sql::{Sql, sql};
use super::types::Type;

/// Pairs of rows that a join may have to look at.
const PAIRS_MAX: u64 = 40_000;

impl Generator<'_> {
    /// A table, or a join.
    pub fn from(&mut self, depth: usize) -> Scope {
        let mut made = self.source(depth);
        for _ in 0..self.choices.weighted(&[5, 4, 2]) {
            made = self.join(made, depth);
        }
        made
    }

    fn source(&mut self, depth: usize) -> Scope {
        let start = self.choices.taken.len();
        let may_nest = depth > 0 && self.budget > 0;
        let weights = [5, if may_nest { 5 } else { 0 }, if self.named.is_empty() { 0 } else { 4 }, 1];
        let made = match self.choices.weighted(&weights) {
            0 => {
                let table = self.any_table();
                let alias = self.name("s");
                let text = format!("{} AS {alias}", table.name).into();
                let made = self.named_source(text, &alias, &table.columns, key_of(&table), table.rows);
                Scope { is_unique: !table.primary_key.is_empty(), ..made }
            }
            1 => {
                let relation = self.query(None, depth - 1);
                let alias = self.name("d");
                let is_unique = relation.is_unique;
                let is_ordered = relation.is_ordered && self.choices.chance(1, 4);
                let derived = if is_ordered { Sql::ordered(relation.sql) } else { Sql::derived(relation.sql) };
                let made = if self.choices.chance(1, 6) {
                    // Other names than those of the query.
                    let renamed: Vec<Column> = (relation.columns.iter())
                        .map(|column| Column { name: self.name("y"), data_type: column.data_type })
                        .collect();
                    let list: Vec<&str> = renamed.iter().map(|column| column.name.as_str()).collect();
                    let text = sql(&format!("{{}} AS {alias} ({})", list.join(", ")), &[&derived]);
                    self.named_source(text, &alias, &renamed, relation.key, relation.rows)
                } else {
                    let text = sql(&format!("{{}} AS {alias}"), &[&derived]);
                    self.named_source(text, &alias, &relation.columns, relation.key, relation.rows)
                };
                Scope { is_ordered, is_unique, ..made }
            }
            2 => {
                let of = self.choices.pick(&self.named.clone()).clone();
                let alias = self.name("n");
                let text = format!("{} AS {alias}", of.name).into();
                Scope { is_unique: of.is_unique, ..self.named_source(text, &alias, &of.columns, of.key, of.rows) }
            }
            _ => self.values(),
        };
        self.choices.end(Kind::Relation, start);
        made
    }

    pub fn any_table(&mut self) -> Table {
        self.choices.pick(self.tables).clone()
    }

    /// The columns of what is called `alias`.
    pub fn atoms(&self, alias: &str, columns: &[Column]) -> Vec<Atom> {
        let atom =
            |column: &Column| Atom { sql: format!("{alias}.{}", column.name).into(), data_type: column.data_type };
        columns.iter().map(atom).collect()
    }

    fn named_source(&self, text: Sql, alias: &str, columns: &[Column], key: Vec<usize>, rows: u64) -> Scope {
        Scope {
            text,
            atoms: self.atoms(alias, columns),
            names: columns.iter().map(|column| column.name.clone()).collect(),
            key,
            is_unique: false,
            rows,
            is_join: false,
            is_ordered: false,
        }
    }

    fn values(&mut self) -> Scope {
        let types: Vec<Type> = (0..1 + self.choices.below(2))
            .map(|_| *self.choices.pick(&[Type::Integer, Type::Text, Type::Double, Type::Date]))
            .collect();
        let rows: Vec<Sql> = (0..1 + self.choices.below(4))
            .map(|_| {
                let cell = |data_type: &Type| {
                    let value = if self.choices.chance(1, 5) { "NULL".into() } else { self.literal(*data_type) };
                    sql(&format!("CAST({{}} AS {})", data_type.name()), &[&value])
                };
                sql("({})", &[&Sql::joined(&types.iter().map(cell).collect::<Vec<_>>(), ", ")])
            })
            .collect();
        let alias = self.name("v");
        let columns: Vec<Column> = types.iter().map(|&data_type| Column { name: self.name("z"), data_type }).collect();
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let text = sql(&format!("(VALUES {{}}) AS {alias} ({})", names.join(", ")), &[&Sql::joined(&rows, ", ")]);
        self.named_source(text, &alias, &columns, (0..columns.len()).collect(), rows.len() as u64)
    }

    fn join(&mut self, left: Scope, depth: usize) -> Scope {
        let kind = self.choices.weighted(&[4, 4, 2, 2, 2, 1]);
        if kind == 5 {
            return self.lateral(left);
        }
        let right = if depth > 0 && self.budget > 1 && self.choices.chance(1, 10) {
            let inner = self.from(depth - 1);
            // Parentheses are for joins only.
            if inner.is_join { Scope { text: sql("({})", &[&inner.text]), ..inner } } else { inner }
        } else {
            self.source(depth)
        };
        if left.rows.saturating_mul(right.rows) > PAIRS_MAX * 25 {
            return left;
        }
        let is_many = left.rows.saturating_mul(right.rows) > PAIRS_MAX;
        let shift = left.atoms.len();
        let mut both = Scope {
            text: Sql::default(),
            atoms: left.atoms.iter().chain(&right.atoms).cloned().collect(),
            names: left.names.iter().chain(&right.names).cloned().collect(),
            key: left.key.iter().copied().chain(right.key.iter().map(|at| at + shift)).collect(),
            is_unique: left.is_unique && right.is_unique,
            rows: left.rows * right.rows,
            is_join: true,
            is_ordered: false,
        };
        let equality = self.equality(&left.atoms, &right.atoms);
        if is_many && (kind == 4 || equality.is_none()) {
            return left;
        }
        if kind == 4 {
            both.text = sql("{} CROSS JOIN {}", &[&left.text, &right.text]);
            return both;
        }
        both.rows = (left.rows * right.rows / 4).max(left.rows + right.rows);
        let on = match (equality, kind) {
            (Some(equality), _) if is_many || !self.choices.chance(1, 6) => {
                if self.choices.chance(1, 5) {
                    sql("{} AND {}", &[&equality, &self.condition(&both.atoms, 1)])
                } else {
                    equality
                }
            }
            // PostgreSQL does not do other FULL JOINs.
            (_, 3) => "true".into(),
            _ if self.choices.chance(1, 5) => (*self.choices.pick(&["true", "false"])).into(),
            _ => self.condition(&both.atoms, 1),
        };
        let word = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][kind];
        both.text = sql(&format!("{{}} {word} {{}} ON {{}}"), &[&left.text, &right.text, &on]);
        both
    }

    /// An equality between the two sides.
    fn equality(&mut self, left: &[Atom], right: &[Atom]) -> Option<Sql> {
        let fits = |l: &Atom, r: &Atom| {
            l.data_type == r.data_type || l.data_type.is_number() && r.data_type.is_number() && !l.data_type.is_float()
        };
        let pairs: Vec<(&Atom, &Atom)> = left
            .iter()
            .flat_map(|l| right.iter().map(move |r| (l, r)))
            .filter(|(l, r)| fits(l, r) && l.data_type != Type::Boolean)
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let (l, r) = *self.choices.pick(&pairs);
        Some(sql("{} = {}", &[&l.sql, &r.sql]))
    }

    /// A query for each row of `left`.
    fn lateral(&mut self, left: Scope) -> Scope {
        let table = self.any_table();
        if left.rows * table.rows > PAIRS_MAX {
            return left;
        }
        let (inner, outer_alias) = (self.name("s"), self.name("l"));
        let source: Sql = format!("{} AS {inner}", table.name).into();
        let of = self.named_source(source, &inner, &table.columns, key_of(&table), table.rows);
        let condition = self.correlation(&of.atoms, &left.atoms);
        let mut columns = Vec::new();
        let is_aggregate = self.choices.chance(1, 3);
        let (text, key, rows) = if is_aggregate {
            let aggregate = self.aggregate(&of.atoms);
            columns.push(Column { name: self.name("x"), data_type: aggregate.data_type });
            let text = sql(
                &format!("SELECT {{}} AS {} FROM {{}} WHERE {{}}", columns[0].name),
                &[&aggregate.sql, &of.text, &condition],
            );
            (text, vec![], 1)
        } else {
            let mut items = Vec::new();
            for atom in &of.atoms {
                let name = self.name("x");
                items.push(sql(&format!("{{}} AS {name}"), &[&atom.sql]));
                columns.push(Column { name, data_type: atom.data_type });
            }
            let mut text = sql("SELECT {} FROM {} WHERE {}", &[&Sql::joined(&items, ", "), &of.text, &condition]);
            if self.choices.chance(1, 2) {
                let keys: Vec<Sql> =
                    of.key.iter().map(|&at| sql(&format!("{{}}{}", self.direction()), &[&of.atoms[at].sql])).collect();
                let limit = self.number(&[1, 2, 3]);
                text = sql("{} ORDER BY {} LIMIT {}", &[&text, &Sql::joined(&keys, ", "), &limit]);
            }
            (text, of.key, table.rows)
        };
        let right = self.named_source(Sql::default(), &outer_alias, &columns, key, rows);
        let shift = left.atoms.len();
        let pattern =
            *self.choices.pick(&["CROSS JOIN LATERAL ({}) AS NAME", "LEFT JOIN LATERAL ({}) AS NAME ON true"]);
        let lateral = sql(&pattern.replace("NAME", &outer_alias), &[&text]);
        Scope {
            text: sql("{} {}", &[&left.text, &lateral]),
            key: left.key.iter().copied().chain(right.key.iter().map(|at| at + shift)).collect(),
            is_unique: left.is_unique && (is_aggregate || !table.primary_key.is_empty()),
            rows: left.rows * rows.max(1),
            atoms: left.atoms.into_iter().chain(right.atoms).collect(),
            names: left.names.into_iter().chain(right.names).collect(),
            is_join: true,
            is_ordered: false,
        }
    }

    /// A condition of a correlated query.
    fn correlation(&mut self, inner: &[Atom], outer: &[Atom]) -> Sql {
        let equality = self.equality(inner, outer);
        match equality {
            Some(equality) if self.choices.chance(2, 3) => equality,
            Some(equality) => sql("{} AND {}", &[&equality, &self.condition(inner, 1)]),
            None => self.condition(inner, 1),
        }
    }

    /// The conditions of WHERE.
    pub fn conditions(&mut self, atoms: &[Atom], depth: usize) -> Vec<Sql> {
        let mut list = Vec::new();
        for _ in 0..self.choices.weighted(&[5, 4, 2]) {
            let start = self.choices.taken.len();
            let condition = if depth > 0 && self.budget > 0 && self.choices.chance(1, 5) {
                self.subquery_condition(atoms, depth - 1)
            } else {
                self.condition(atoms, 2)
            };
            self.choices.end(Kind::Expression, start);
            list.push(sql("({})", &[&condition]));
        }
        list
    }

    fn subquery_condition(&mut self, atoms: &[Atom], depth: usize) -> Sql {
        let atom = self.any_atom(atoms);
        match self.choices.below(6) {
            0 | 1 => {
                let query = self.query(Some(&[atom.data_type]), depth);
                let not = if self.choices.chance(1, 3) { "NOT " } else { "" };
                sql(&format!("{{}} {not}IN {{}}"), &[&atom.sql, &Sql::derived(query.sql)])
            }
            2 | 3 => {
                self.budget = self.budget.saturating_sub(1);
                let table = self.any_table();
                let alias = self.name("s");
                let source: Sql = format!("{} AS {alias}", table.name).into();
                let of = self.named_source(source, &alias, &table.columns, vec![], table.rows);
                let condition = self.correlation(&of.atoms, atoms);
                let not = if self.choices.chance(1, 3) { "NOT " } else { "" };
                sql(&format!("{not}EXISTS (SELECT 1 FROM {{}} WHERE {{}})"), &[&of.text, &condition])
            }
            4 => {
                let value = self.scalar_subquery(atoms, Some(atom.data_type), depth);
                let operator = *self.choices.pick(&["=", "<", ">=", "<>"]);
                let typed = sql(&format!("CAST({{}} AS {})", atom.data_type.name()), &[&value.sql]);
                sql(&format!("{{}} {operator} {{}}"), &[&atom.sql, &typed])
            }
            _ => {
                let query = self.query(Some(&[atom.data_type]), depth);
                let operator = *self.choices.pick(&["= ANY", "<> ALL", "<= ALL", "> ANY"]);
                // A set operation may not stand there.
                let plain = sql("SELECT * FROM {} AS d", &[&Sql::derived(query.sql)]);
                sql(&format!("{{}} {operator} {{}}"), &[&atom.sql, &Sql::derived(plain)])
            }
        }
    }

    /// A query of at most one row, of type `want` if that is given.
    pub fn scalar_subquery(&mut self, outer: &[Atom], want: Option<Type>, depth: usize) -> Atom {
        self.budget = self.budget.saturating_sub(1);
        let table = self.any_table();
        let alias = self.name("s");
        let source: Sql = format!("{} AS {alias}", table.name).into();
        let of = self.named_source(source, &alias, &table.columns, vec![], table.rows);
        if self.choices.chance(1, 3) && depth > 0 {
            // A key of one value: all rows of the answer are equal.
            let data_type = want.unwrap_or(of.atoms[0].data_type);
            let query = self.query(Some(&[data_type]), depth);
            let name = &query.columns[0].name;
            let first = sql(
                &format!("SELECT d.{name} FROM {{}} AS d ORDER BY d.{name}{} LIMIT 1", self.direction()),
                &[&Sql::derived(query.sql)],
            );
            return Atom { sql: Sql::derived(first), data_type };
        }
        let correlated = self.choices.chance(1, 2).then(|| self.correlation(&of.atoms, outer));
        let aggregate = match want.map(|data_type| (data_type, self.atom_of(&of.atoms, data_type))) {
            Some((data_type, Some(atom))) if data_type != Type::Boolean => {
                let function = *self.choices.pick(&["max", "min"]);
                Atom { sql: sql(&format!("{function}({{}})"), &[&atom]), data_type }
            }
            Some((data_type, _)) => {
                let literal = self.literal(data_type);
                let text = sql("CASE WHEN count(*) > 2 THEN {} END", &[&literal]);
                Atom { sql: text, data_type }
            }
            None => self.aggregate(&of.atoms),
        };
        let text = match correlated {
            Some(condition) => sql("(SELECT {} FROM {} WHERE {})", &[&aggregate.sql, &of.text, &condition]),
            None => Sql::derived(sql("SELECT {} FROM {}", &[&aggregate.sql, &of.text])),
        };
        Atom { sql: text, data_type: aggregate.data_type }
    }
}

/// Columns that are equal in equal rows only.
pub fn key_of(table: &Table) -> Vec<usize> {
    if table.primary_key.is_empty() { (0..table.columns.len()).collect() } else { table.primary_key.clone() }
}
