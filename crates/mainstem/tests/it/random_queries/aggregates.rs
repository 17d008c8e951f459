//! Aggregates and windows whose answers do not depend on the order of equal rows.

use super::generator::{Atom, Generator};
use super::sql::{Sql, sql};
use super::types::Type;

/// Directions of a sort key.
const DIRECTIONS: &[&str] = &["", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST"];

impl Generator<'_> {
    /// An aggregate over `atoms`.
    pub fn aggregate(&mut self, atoms: &[Atom]) -> Atom {
        let atom = self.any_atom(atoms);
        let (x, data_type) = if self.choices.chance(1, 5) {
            (self.expression(atoms, atom.data_type, 1), atom.data_type)
        } else {
            (atom.sql, atom.data_type)
        };
        let (mut made, result) = match self.choices.below(9) {
            0 => ("count(*)".into(), Type::BigInt),
            1 => (sql("count({})", &[&x]), Type::BigInt),
            2 if data_type != Type::Boolean => (sql("max({})", &[&x]), data_type),
            3 if data_type != Type::Boolean => (sql("min({})", &[&x]), data_type),
            4 => (sql("count(DISTINCT {})", &[&x]), Type::BigInt),
            5 if data_type.is_integer() || data_type == Type::Numeric => (sql("avg({})", &[&x]), Type::Numeric),
            6 if data_type == Type::Text => (sql("string_agg({}, ',' ORDER BY {})", &[&x, &x]), Type::Text),
            6 | 7 if data_type.is_number() => {
                let distinct = if self.choices.chance(1, 6) { "DISTINCT " } else { "" };
                sum(distinct, &x, data_type)
            }
            8 => {
                let condition = self.condition(atoms, 1);
                let function = if self.choices.chance(1, 2) { "bool_or" } else { "bool_and" };
                (sql(&format!("{function}({{}})"), &[&condition]), Type::Boolean)
            }
            _ => (sql("count({})", &[&x]), Type::BigInt),
        };
        if self.choices.chance(1, 7) && !made.text().starts_with("CAST") {
            made = sql("{} FILTER (WHERE {})", &[&made, &self.condition(atoms, 1)]);
        }
        Atom { sql: made, data_type: result }
    }

    /// A sort key: a column or an expression of one, with a direction.
    fn sort_key(&mut self, atoms: &[Atom]) -> Sql {
        let atom = self.any_atom(atoms);
        let key = if self.choices.chance(1, 6) { self.computed(atoms, atom.data_type, 0) } else { atom.sql };
        sql(&format!("{{}}{}", self.choices.pick(DIRECTIONS)), &[&key])
    }

    pub fn direction(&mut self) -> &'static str {
        self.choices.pick::<&str>(DIRECTIONS)
    }

    /// A window function. `key` has the positions of columns that leave no two different rows equal; `by_place`: it may
    /// depend on the place of a row among others.
    pub fn window(&mut self, atoms: &[Atom], key: &[usize], by_place: bool) -> Atom {
        let partition: Vec<Sql> = (0..self.choices.weighted(&[4, 4, 1]))
            .map(|_| {
                let atom = self.any_atom(atoms);
                if self.choices.chance(1, 8) { self.computed(atoms, atom.data_type, 0) } else { atom.sql }
            })
            .collect();
        let mut order: Vec<Sql> = (0..self.choices.weighted(&[2, 5, 2])).map(|_| self.sort_key(atoms)).collect();
        let needs_total = by_place && key.len() <= 6 && self.choices.chance(1, 2);
        let function = if needs_total {
            for &at in key {
                order.push(sql(&format!("{{}}{}", self.direction()), &[&atoms[at].sql]));
            }
            self.by_position(atoms)
        } else {
            self.by_peers(atoms, !order.is_empty())
        };
        let mut over = Sql::default();
        if !partition.is_empty() {
            over = sql("PARTITION BY {}", &[&Sql::joined(&partition, ", ")]);
        }
        if !order.is_empty() {
            over = sql("{} ORDER BY {}", &[&over, &Sql::joined(&order, ", ")]);
        }
        let frame = if function.1 { self.frame(needs_total, !order.is_empty()) } else { "" };
        let made = sql(&format!("{{}} OVER ({{}}{frame})"), &[&function.0.sql, &over]);
        match function.0.data_type {
            // Quotients, whose sums depend on the order of rows.
            Type::Double if !function.1 && !function.0.sql.text().contains('.') => {
                Atom { sql: sql("CAST({} AS numeric(12, 2))", &[&made]), data_type: Type::Numeric }
            }
            data_type => Atom { sql: made, data_type },
        }
    }

    /// A function whose value depends on the place of a row, and whether it takes a frame.
    fn by_position(&mut self, atoms: &[Atom]) -> (Atom, bool) {
        let atom = self.any_atom(atoms);
        let of = |text: Sql, data_type| Atom { sql: text, data_type };
        match self.choices.below(9) {
            0 => (of("row_number()".into(), Type::BigInt), false),
            1 => (of(sql("lag({})", &[&atom.sql]), atom.data_type), false),
            2 => (of(sql("lead({}, 2)", &[&atom.sql]), atom.data_type), false),
            3 => {
                let default = self.literal(atom.data_type);
                let pattern = if self.choices.chance(1, 2) { "lead({}, 1, {})" } else { "lag({}, 1, {})" };
                let typed = sql(&format!("CAST({{}} AS {})", atom.data_type.name()), &[&default]);
                (of(sql(pattern, &[&atom.sql, &typed]), atom.data_type), false)
            }
            4 => (of(sql("first_value({})", &[&atom.sql]), atom.data_type), true),
            5 => (of(sql("last_value({})", &[&atom.sql]), atom.data_type), true),
            6 => (of(sql("nth_value({}, 2)", &[&atom.sql]), atom.data_type), true),
            7 => (of("ntile(3)".into(), Type::Integer), false),
            _ => (self.running(atoms), true),
        }
    }

    /// A function whose value is the same for all rows that the order leaves equal.
    fn by_peers(&mut self, atoms: &[Atom], ordered: bool) -> (Atom, bool) {
        let of = |text: &str, data_type| (Atom { sql: text.into(), data_type }, false);
        if !ordered {
            return (self.running(atoms), false);
        }
        match self.choices.below(8) {
            0 => of("rank()", Type::BigInt),
            1 => of("dense_rank()", Type::BigInt),
            2 => of("cume_dist()", Type::Double),
            3 => of("percent_rank()", Type::Double),
            _ => (self.running(atoms), true),
        }
    }

    fn running(&mut self, atoms: &[Atom]) -> Atom {
        let Atom { sql: x, data_type } = self.any_atom(atoms);
        let (made, result) = match self.choices.below(6) {
            0 => ("count(*)".into(), Type::BigInt),
            1 | 2 if data_type != Type::Boolean => {
                let function = if self.choices.chance(1, 2) { "max" } else { "min" };
                (sql(&format!("{function}({{}})"), &[&x]), data_type)
            }
            3 | 4 if data_type == Type::SmallInt || data_type == Type::Integer => (sql("sum({})", &[&x]), Type::BigInt),
            3 | 4 if data_type == Type::Numeric || data_type == Type::Double => (sql("sum({})", &[&x]), data_type),
            5 if data_type.is_integer() => (sql("avg({})", &[&x]), Type::Numeric),
            _ => (sql("count({})", &[&x]), Type::BigInt),
        };
        Atom { sql: made, data_type: result }
    }

    /// A frame; `total`: no two different rows are equal by the order.
    fn frame(&mut self, total: bool, ordered: bool) -> &'static str {
        let of_peers: &[&str] = &[
            "",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
        ];
        let of_rows: &[&str] = &[
            "",
            " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " ROWS UNBOUNDED PRECEDING",
            " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
            " ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        ];
        match (ordered, total) {
            (false, _) => "",
            (true, true) => self.choices.pick::<&str>(of_rows),
            (true, false) => self.choices.pick::<&str>(of_peers),
        }
    }
}

/// `sum(x)` and its type here, which a cast gives it elsewhere too.
fn sum(distinct: &str, x: &Sql, data_type: Type) -> (Sql, Type) {
    match data_type {
        Type::BigInt => (sql(&format!("CAST(sum({distinct}{{}}) AS bigint)"), &[x]), Type::BigInt),
        Type::Real => (sql(&format!("sum({distinct}CAST({{}} AS double precision))"), &[x]), Type::Double),
        Type::Integer | Type::SmallInt => (sql(&format!("sum({distinct}{{}})"), &[x]), Type::BigInt),
        other => (sql(&format!("sum({distinct}{{}})"), &[x]), other),
    }
}
