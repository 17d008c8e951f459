//! Expressions and conditions over the columns of a scope.

use super::choices::Kind;
use super::generator::{Atom, Generator};
use super::sql::{Literal, Sql, sql};
use super::types::Type;

const COMPARISONS: &[&str] = &["=", "<", ">", "<=", ">=", "<>"];

impl Generator<'_> {
    /// A constant, which may be a parameter.
    pub fn literal(&mut self, data_type: Type) -> Sql {
        let text = data_type.literal(self.choices);
        // Any other value will do: what it gives is not looked at.
        let other = data_type.nth(i64::try_from(text.len()).unwrap() % 5);
        Literal { text, data_type, other }.into()
    }

    /// A whole number as it is, perhaps a parameter.
    pub fn number(&mut self, list: &[u32]) -> Sql {
        let number = *self.choices.pick(list);
        let other = list[(number as usize + 1) % list.len()].to_string();
        Literal { text: number.to_string(), data_type: Type::BigInt, other }.into()
    }

    /// A column of `data_type`, if there is one.
    pub fn atom_of(&mut self, atoms: &[Atom], data_type: Type) -> Option<Sql> {
        let fitting: Vec<&Atom> = atoms.iter().filter(|atom| atom.data_type == data_type).collect();
        if fitting.is_empty() {
            return None;
        }
        Some(self.choices.pick(&fitting).sql.clone())
    }

    /// An expression of `data_type`.
    pub fn expression(&mut self, atoms: &[Atom], data_type: Type, depth: usize) -> Sql {
        let from = self.choices.taken.len();
        let made = match self.choices.weighted(&[6, if depth > 0 { 4 } else { 0 }, if depth > 0 { 1 } else { 0 }]) {
            0 => self.leaf(atoms, data_type),
            1 => self.computed(atoms, data_type, depth - 1),
            _ => self.conditional(atoms, data_type, depth - 1),
        };
        self.choices.end(Kind::Expression, from);
        made
    }

    fn leaf(&mut self, atoms: &[Atom], data_type: Type) -> Sql {
        if let Some(atom) = self.atom_of(atoms, data_type) {
            return match self.choices.weighted(&[12, 4, 1]) {
                0 => atom,
                1 => self.literal(data_type),
                _ => format!("CAST(NULL AS {})", data_type.name()).into(),
            };
        }
        if data_type.is_number() {
            let fitting: Vec<Atom> = atoms.iter().filter(|a| a.data_type.is_number()).cloned().collect();
            if !fitting.is_empty() && self.choices.chance(1, 2) {
                let atom = self.choices.pick(&fitting).sql.clone();
                return sql(&format!("CAST({{}} AS {})", data_type.name()), &[&atom]);
            }
        }
        self.literal(data_type)
    }

    /// An operator or a function over smaller expressions.
    pub fn computed(&mut self, atoms: &[Atom], data_type: Type, depth: usize) -> Sql {
        match data_type {
            Type::Integer | Type::BigInt | Type::SmallInt => self.of_integers(atoms, data_type, depth),
            Type::Text => self.of_texts(atoms, depth),
            Type::Numeric => self.of_numerics(atoms, depth),
            Type::Double | Type::Real => self.of_floats(atoms, data_type, depth),
            Type::Boolean => {
                let condition = self.condition(atoms, depth);
                sql("({})", &[&condition])
            }
            Type::Date => {
                let other = self.expression(atoms, Type::Timestamp, depth);
                let (date, days) = (self.expression(atoms, Type::Date, depth), self.number(&[1, 0, 30, 365]));
                match self.choices.below(3) {
                    0 => sql("({} + CAST({} AS integer))", &[&date, &days]),
                    1 => sql("CAST({} AS date)", &[&other]),
                    _ => sql("({} - CAST({} AS integer))", &[&date, &days]),
                }
            }
            Type::Timestamp => {
                let date = self.expression(atoms, Type::Date, depth);
                let time = self.expression(atoms, Type::Timestamp, depth);
                let unit = *self.choices.pick(&["month", "day", "hour", "year", "week", "quarter"]);
                match self.choices.below(4) {
                    0 => sql(&format!("date_trunc('{unit}', {{}})"), &[&time]),
                    1 => sql("CAST({} AS timestamp)", &[&date]),
                    2 => sql("({} + INTERVAL '1 day')", &[&time]),
                    _ => sql("({} - INTERVAL '1 month')", &[&time]),
                }
            }
        }
    }

    fn of_integers(&mut self, atoms: &[Atom], data_type: Type, depth: usize) -> Sql {
        let x = self.expression(atoms, data_type, depth);
        let made = match self.choices.below(9) {
            0 => sql("({} + {})", &[&x, &self.number(&[1, 0, 2, 10])]),
            1 => sql("(- {})", &[&x]),
            2 => sql("({} - {})", &[&x, &self.expression(atoms, data_type, depth)]),
            3 => sql("({} * {})", &[&x, &self.number(&[2, 0, 1, 3])]),
            4 => sql("abs({})", &[&x]),
            5 => sql("({} % {})", &[&x, &self.number(&[2, 3, 10])]),
            6 => sql("({} + {})", &[&x, &self.expression(atoms, data_type, depth)]),
            7 => {
                let text = self.expression(atoms, Type::Text, depth);
                sql("length({})", &[&text])
            }
            _ => {
                let of = *self.choices.pick(&[
                    Type::Integer,
                    Type::BigInt,
                    Type::SmallInt,
                    Type::Numeric,
                    Type::Double,
                    Type::Real,
                ]);
                self.expression(atoms, of, depth)
            }
        };
        sql(&format!("CAST({{}} AS {})", data_type.name()), &[&made])
    }

    fn of_texts(&mut self, atoms: &[Atom], depth: usize) -> Sql {
        let x = self.expression(atoms, Type::Text, depth);
        match self.choices.below(6) {
            0 => sql("upper({})", &[&x]),
            1 => sql("({} || {})", &[&x, &self.expression(atoms, Type::Text, depth)]),
            2 => sql("substr({}, 1, 1)", &[&x]),
            3 => sql("lower({})", &[&x]),
            4 => sql("reverse({})", &[&x]),
            _ => {
                let of = *self.choices.pick(&[Type::Integer, Type::Date, Type::BigInt, Type::SmallInt]);
                sql("CAST({} AS text)", &[&self.expression(atoms, of, depth)])
            }
        }
    }

    fn of_numerics(&mut self, atoms: &[Atom], depth: usize) -> Sql {
        let x = self.expression(atoms, Type::Numeric, depth);
        match self.choices.below(9) {
            0 => sql("round({})", &[&x]),
            1 => sql("({} + {})", &[&x, &self.expression(atoms, Type::Numeric, depth)]),
            2 => sql("(- {})", &[&x]),
            3 => sql("({} * {})", &[&x, &self.number(&[2, 0, 3])]),
            4 => sql("floor({})", &[&x]),
            5 => sql("ceil({})", &[&x]),
            6 => sql("round({}, 1)", &[&x]),
            7 => sql("abs({})", &[&x]),
            _ => {
                let of = *self.choices.pick(&[Type::Integer, Type::BigInt, Type::SmallInt]);
                sql("CAST({} AS numeric(12, 2))", &[&self.expression(atoms, of, depth)])
            }
        }
    }

    fn of_floats(&mut self, atoms: &[Atom], data_type: Type, depth: usize) -> Sql {
        let x = self.expression(atoms, data_type, depth);
        let made = match self.choices.below(9) {
            0 => sql("round({})", &[&x]),
            1 => sql("(- {})", &[&x]),
            2 => sql("({} + {})", &[&x, &self.expression(atoms, data_type, depth)]),
            3 => sql("({} * {})", &[&x, &self.literal(data_type)]),
            4 => sql("floor({})", &[&x]),
            5 => sql("ceil({})", &[&x]),
            6 => sql("abs({})", &[&x]),
            7 => sql("({} - {})", &[&x, &self.expression(atoms, data_type, depth)]),
            _ => {
                let of = *self.choices.pick(&[Type::Integer, Type::Numeric, Type::Double, Type::Real, Type::BigInt]);
                self.expression(atoms, of, depth)
            }
        };
        sql(&format!("CAST({{}} AS {})", data_type.name()), &[&made])
    }

    fn conditional(&mut self, atoms: &[Atom], data_type: Type, depth: usize) -> Sql {
        let x = self.expression(atoms, data_type, depth);
        let y = self.expression(atoms, data_type, depth);
        match self.choices.below(5) {
            0 => sql("coalesce({}, {})", &[&x, &y]),
            1 => sql("CASE WHEN {} THEN {} ELSE {} END", &[&self.condition(atoms, depth), &x, &y]),
            2 => sql("nullif({}, {})", &[&x, &y]),
            3 if data_type != Type::Boolean => sql("greatest({}, {})", &[&x, &y]),
            4 if data_type != Type::Boolean => sql("least({}, {})", &[&x, &y]),
            _ => sql("CASE WHEN {} THEN {} END", &[&self.condition(atoms, depth), &x]),
        }
    }

    /// A condition over `atoms`.
    pub fn condition(&mut self, atoms: &[Atom], depth: usize) -> Sql {
        let from = self.choices.taken.len();
        let deep = usize::from(depth > 0);
        let made = match self.choices.weighted(&[8, 4, 4, 3 * deep, 2, 2, 4 * deep, 2, 1, 1, deep, 1, 1]) {
            0 => {
                let atom = self.any_atom(atoms);
                let literal = self.literal(atom.data_type);
                sql(&format!("{{}} {} {{}}", self.choices.pick(COMPARISONS)), &[&atom.sql, &literal])
            }
            1 => {
                let atom = self.any_atom(atoms);
                sql(if self.choices.chance(1, 2) { "{} IS NOT NULL" } else { "{} IS NULL" }, &[&atom.sql])
            }
            2 => self.equal_columns(atoms),
            3 => {
                let data_type = self.any_atom(atoms).data_type;
                let (x, y) =
                    (self.expression(atoms, data_type, depth - 1), self.expression(atoms, data_type, depth - 1));
                sql(&format!("{{}} {} {{}}", self.choices.pick(COMPARISONS)), &[&x, &y])
            }
            4 => self.in_list(atoms, depth),
            5 => {
                let atom = self.any_atom(atoms);
                let (low, high) = (self.literal(atom.data_type), self.literal(atom.data_type));
                let not = if self.choices.chance(1, 3) { "NOT " } else { "" };
                sql(&format!("{{}} {not}BETWEEN {{}} AND {{}}"), &[&atom.sql, &low, &high])
            }
            6 => {
                let (x, y) = (self.condition(atoms, depth - 1), self.condition(atoms, depth - 1));
                let pattern = *self.choices.pick(&["({} AND {})", "({} OR {})", "NOT ({} AND {})", "NOT ({} OR {})"]);
                sql(pattern, &[&x, &y])
            }
            7 => {
                let atom = self.any_atom(atoms);
                let other = self.expression(atoms, atom.data_type, 0);
                let not = if self.choices.chance(1, 2) { "NOT " } else { "" };
                sql(&format!("{{}} IS {not}DISTINCT FROM {{}}"), &[&atom.sql, &other])
            }
            8 => match self.atom_of(atoms, Type::Text) {
                Some(text) => {
                    let pattern = *self.choices.pick(&["'a%'", "'%b%'", "'_'", "'%'", "'k00%'"]);
                    sql(&format!("{{}} LIKE {pattern}"), &[&text])
                }
                None => "true".into(),
            },
            9 => self.expression(atoms, Type::Boolean, 0),
            10 => {
                let (x, y) = (self.condition(atoms, depth - 1), self.condition(atoms, depth - 1));
                sql("(({}) = ({}))", &[&x, &y])
            }
            11 => {
                let x = self.condition(atoms, 0);
                let suffix = *self.choices.pick(&["IS NOT TRUE", "IS TRUE", "IS FALSE", "IS UNKNOWN"]);
                sql(&format!("({{}}) {suffix}"), &[&x])
            }
            _ => (*self.choices.pick(&["true", "false", "CAST(NULL AS boolean)"])).into(),
        };
        self.choices.end(Kind::Expression, from);
        made
    }

    fn in_list(&mut self, atoms: &[Atom], depth: usize) -> Sql {
        let atom = self.any_atom(atoms);
        let mut list: Vec<Sql> = (0..1 + self.choices.below(3)).map(|_| self.literal(atom.data_type)).collect();
        if self.choices.chance(1, 8) {
            list.push("NULL".into());
        }
        let subject =
            if self.choices.chance(1, 3) { self.expression(atoms, atom.data_type, depth.min(1)) } else { atom.sql };
        let not = if self.choices.chance(1, 3) { "NOT " } else { "" };
        sql(&format!("{{}} {not}IN ({{}})"), &[&subject, &Sql::joined(&list, ", ")])
    }

    /// `a = b`, of one type if there are two such columns.
    fn equal_columns(&mut self, atoms: &[Atom]) -> Sql {
        let first = self.any_atom(atoms);
        let second = self.atom_of(atoms, first.data_type).unwrap();
        let operator = if self.choices.chance(1, 4) { *self.choices.pick(COMPARISONS) } else { "=" };
        sql(&format!("{{}} {operator} {{}}"), &[&first.sql, &second])
    }

    pub fn any_atom(&mut self, atoms: &[Atom]) -> Atom {
        self.choices.pick(atoms).clone()
    }
}
