//! Tables, their rows, and where these are put.

use std::fmt::Write as _;

use super::choices::Choices;
use super::types::{OF_COLUMNS, Type};

/// A column of a table or of a query.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub data_type: Type,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    not_null: Vec<bool>,
    unique: Vec<bool>,
    /// Positions.
    pub primary_key: Vec<usize>,
    sort_key: Vec<usize>,
    segment_rows: u32,
    /// About so many rows.
    pub rows: u64,
}

/// What is done to the database before queries run.
#[derive(Clone, Debug)]
pub enum Step {
    Insert {
        table: usize,
        rows: Vec<Vec<String>>,
    },
    Sql(String),
    /// Gives the table an empty delta.
    Freeze(usize),
    /// Writes the deltas as a run.
    Flush(usize),
    /// Makes one run of all.
    Merge(usize),
    /// Closes the database and opens it again.
    Restart,
}

#[derive(Clone, Debug)]
pub struct Setup {
    pub tables: Vec<Table>,
    pub steps: Vec<Step>,
    /// SET statements.
    pub session: Vec<String>,
    pub on_disk: bool,
}

/// Which system a script is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Keys and orders as they are.
    Mainstem,
    /// No key, no order, no constraint.
    Heap,
    /// Without what PostgreSQL does not know.
    Postgres,
}

impl Table {
    pub fn create(&self, system: System) -> String {
        let mut text = format!("CREATE TABLE {} (", self.name);
        for (at, column) in self.columns.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(text, "{comma}{} {}", column.name, column.data_type.name()).unwrap();
            if system != System::Heap {
                text += if self.not_null[at] { " NOT NULL" } else { "" };
                text += if self.unique[at] { " UNIQUE" } else { "" };
            }
        }
        if system != System::Heap && !self.primary_key.is_empty() {
            write!(text, ", PRIMARY KEY ({})", self.names_of(&self.primary_key)).unwrap();
        }
        text.push(')');
        if system == System::Mainstem {
            if !self.sort_key.is_empty() {
                write!(text, " ORDER BY ({})", self.names_of(&self.sort_key)).unwrap();
            }
            write!(text, " WITH (segment_rows = {})", self.segment_rows).unwrap();
        }
        text
    }

    fn names_of(&self, positions: &[usize]) -> String {
        let names: Vec<&str> = positions.iter().map(|&at| self.columns[at].name.as_str()).collect();
        names.join(", ")
    }

    /// Columns that may be changed without a thought for keys.
    pub fn free_columns(&self) -> Vec<usize> {
        let is_free = |at: &usize| !self.not_null[*at] && !self.unique[*at] && !self.primary_key.contains(at);
        (0..self.columns.len()).filter(is_free).collect()
    }
}

/// `INSERT INTO table VALUES ...`.
pub fn insert(table: &Table, rows: &[Vec<String>]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
    format!("INSERT INTO {} VALUES {}", table.name, rows.join(", "))
}

/// How the values of a column are made.
#[derive(Clone, Copy, Debug)]
enum Fill {
    /// One of few; so many of 16 are NULL.
    Few { distinct: usize, nulls: usize, extremes: bool },
    /// Ascending, each `repeat` times.
    Series { repeat: i64 },
    /// The remainder of the row's number.
    Cycle { length: i64 },
    /// Each value once, in no order; perhaps some are NULL.
    Once { nulls: usize },
}

/// Makes tables.
struct Maker<'a> {
    choices: &'a mut Choices,
}

impl Maker<'_> {
    fn table(&mut self, number: usize) -> (Table, Vec<Fill>) {
        let count = 1 + self.choices.below(6);
        let extremes = self.choices.chance(1, 5);
        let mut table = Table {
            name: format!("t{number}"),
            columns: Vec::new(),
            not_null: Vec::new(),
            unique: Vec::new(),
            primary_key: Vec::new(),
            sort_key: Vec::new(),
            segment_rows: *self.choices.pick(&[131_072, 7, 4, 30, 100]),
            rows: 0,
        };
        let mut fills = Vec::new();
        for at in 0..count {
            let name = char::from(b'a' + u8::try_from(at).unwrap()).to_string();
            table.columns.push(Column { name, data_type: *self.choices.pick(OF_COLUMNS) });
            let nulls = *self.choices.pick(&[0, 2, 4, 8, 16]);
            let few = Fill::Few { distinct: 1 + self.choices.below(9), nulls, extremes };
            let is_series = self.choices.chance(1, 8) && table.columns[at].data_type != Type::Boolean;
            let fill = if is_series { Fill::Series { repeat: 1 + self.choices.below(5) as i64 } } else { few };
            table.not_null.push(
                matches!(fill, Fill::Series { .. }) && self.choices.chance(1, 2)
                    || nulls == 0 && self.choices.chance(1, 2),
            );
            table.unique.push(false);
            fills.push(fill);
        }
        self.keys(&mut table, &mut fills);
        (table, fills)
    }

    fn keys(&mut self, table: &mut Table, fills: &mut [Fill]) {
        let count = table.columns.len();
        match self.choices.weighted(&[3, 4, if count > 1 { 2 } else { 0 }]) {
            0 => {}
            1 => {
                table.columns[0].data_type = *self.choices.pick(&[
                    Type::Integer,
                    Type::BigInt,
                    Type::Text,
                    Type::Date,
                    Type::Timestamp,
                    Type::Numeric,
                    Type::SmallInt,
                ]);
                if self.choices.chance(1, 2) {
                    table.columns[0].name = "id".into();
                }
                fills[0] = if self.choices.chance(1, 3) { Fill::Once { nulls: 0 } } else { Fill::Series { repeat: 1 } };
                table.primary_key = vec![0];
            }
            _ => {
                table.columns[0].data_type = *self.choices.pick(&[Type::Integer, Type::Text, Type::BigInt]);
                table.columns[1].data_type = *self.choices.pick(&[Type::Integer, Type::Date, Type::Text]);
                let length = 2 + self.choices.below(4) as i64;
                fills[0] = Fill::Series { repeat: length };
                fills[1] = Fill::Cycle { length };
                table.primary_key = if self.choices.chance(1, 3) { vec![1, 0] } else { vec![0, 1] };
            }
        }
        let first = table.primary_key.len();
        if first < count && self.choices.chance(1, 3) {
            let at = first + self.choices.below(count - first);
            if table.columns[at].data_type != Type::Boolean && !table.columns[at].data_type.is_float() {
                fills[at] = Fill::Once { nulls: *self.choices.pick(&[0, 4, 8]) };
                table.unique[at] = true;
                table.not_null[at] = false;
            }
        }
        let may_sort = |at: &usize| !matches!(table.columns[*at].data_type, Type::Boolean | Type::Double | Type::Real);
        if table.primary_key.is_empty() && may_sort(&0) && self.choices.chance(1, 2) {
            table.sort_key = vec![0];
            if count > 1 && may_sort(&1) && self.choices.chance(1, 3) {
                table.sort_key = vec![1, 0];
            }
        }
    }

    fn row(&mut self, table: &Table, fills: &[Fill], index: i64) -> Vec<String> {
        let cell = |(at, fill): (usize, &Fill)| {
            let data_type = table.columns[at].data_type;
            let is_null = |choices: &mut Choices, nulls: usize| nulls > 0 && choices.chance(nulls, 16);
            match *fill {
                Fill::Few { nulls, .. } | Fill::Once { nulls } if is_null(self.choices, nulls) => "NULL".into(),
                Fill::Few { distinct, extremes, .. } => data_type.value(self.choices, extremes, distinct).into(),
                Fill::Series { repeat } => data_type.nth(index / repeat),
                Fill::Cycle { length } => data_type.nth(index % length),
                // 1,009 is prime: no number comes twice among so many.
                Fill::Once { .. } => data_type.nth(index * 367 % 1_009),
            }
        };
        fills.iter().enumerate().map(cell).collect()
    }
}

/// A database made by `choices`.
pub fn setup(choices: &mut Choices) -> Setup {
    let mut maker = Maker { choices };
    let count = 2 + maker.choices.below(3);
    let made: Vec<(Table, Vec<Fill>)> = (0..count).map(|number| maker.table(number)).collect();
    let on_disk = maker.choices.chance(1, 8);
    let mut setup = Setup { tables: Vec::new(), steps: Vec::new(), session: session(maker.choices), on_disk };
    let large = maker.choices.chance(1, 40);
    for (at, (mut table, fills)) in made.into_iter().enumerate() {
        let sizes = [3 + maker.choices.below(9), 1, 0, 10 + maker.choices.below(40), 60 + maker.choices.below(300)];
        let rows = sizes[maker.choices.weighted(&[8, 1, 1, 4, 2])];
        let rows: Vec<Vec<String>> = (0..rows).map(|row| maker.row(&table, &fills, row as i64)).collect();
        table.rows = rows.len() as u64;
        let placement = maker.choices.below(5);
        fill(&mut maker, at, placement, rows, &mut setup.steps);
        if large && at == 0 && table.primary_key.is_empty() && !table.unique.contains(&true) {
            table.rows += 9_000;
            setup.steps.push(Step::Sql(series(maker.choices, &table)));
        }
        changes(maker.choices, &table, &mut setup.steps);
        match placement {
            1 | 3 => setup.steps.extend([Step::Freeze(at), Step::Flush(at), Step::Merge(at)]),
            2 => setup.steps.extend([Step::Freeze(at), Step::Flush(at)]),
            _ => {}
        }
        setup.tables.push(table);
    }
    if on_disk && maker.choices.chance(1, 2) {
        setup.steps.push(Step::Restart);
    }
    setup
}

fn session(choices: &mut Choices) -> Vec<String> {
    let mut session = vec![format!("SET threads = {}", choices.pick(&[2, 1, 3, 4]))];
    for (setting, times) in [
        ("point_path = off", 3),
        ("merge_join_min_rows = 1", 2),
        ("dynamic_filter_min_rows = 1", 3),
        ("plan_cache_mode = force_generic_plan", 4),
    ] {
        if choices.chance(1, times) {
            session.push(format!("SET {setting}"));
        }
    }
    session
}

/// Puts `rows` into the table: placement 0 leaves all in a delta, 1 makes one run at the end, 2 a run of each part,
/// 3 merges after each part, 4 does something else after each.
fn fill(maker: &mut Maker<'_>, table: usize, placement: usize, rows: Vec<Vec<String>>, steps: &mut Vec<Step>) {
    let parts = 1 + maker.choices.below(4);
    let size = rows.len().div_ceil(parts).max(1);
    for part in rows.chunks(size) {
        steps.push(Step::Insert { table, rows: part.to_vec() });
        match placement {
            2 => steps.extend([Step::Freeze(table), Step::Flush(table)]),
            3 => steps.extend([Step::Freeze(table), Step::Flush(table), Step::Merge(table)]),
            4 => match maker.choices.below(4) {
                0 => {}
                1 => steps.push(Step::Freeze(table)),
                2 => steps.extend([Step::Freeze(table), Step::Flush(table)]),
                _ => steps.extend([Step::Freeze(table), Step::Flush(table), Step::Merge(table)]),
            },
            _ => {}
        }
    }
}

/// An INSERT of 9,000 rows.
fn series(choices: &mut Choices, table: &Table) -> String {
    let item = |column: &Column| column.data_type.of_series(*choices.pick(&[7, 2, 100, 1_000]));
    let items: Vec<String> = table.columns.iter().map(item).collect();
    format!("INSERT INTO {} SELECT {} FROM generate_series(1, 9000) AS s (g)", table.name, items.join(", "))
}

/// Some rows are updated and deleted.
fn changes(choices: &mut Choices, table: &Table, steps: &mut Vec<Step>) {
    for _ in 0..choices.weighted(&[2, 2, 1]) {
        let of = &table.columns[choices.below(table.columns.len())];
        let condition = if choices.chance(1, 4) {
            format!("{} IS NULL", of.name)
        } else {
            let value = if of.data_type == Type::Boolean || choices.chance(1, 2) {
                of.data_type.literal(choices)
            } else {
                of.data_type.nth(choices.below(12) as i64)
            };
            format!("{} = {value}", of.name)
        };
        let free = table.free_columns();
        if free.is_empty() || choices.chance(1, 2) {
            steps.push(Step::Sql(format!("DELETE FROM {} WHERE {condition}", table.name)));
        } else {
            let column = &table.columns[*choices.pick(&free)];
            let value = if choices.chance(1, 4) { "NULL".into() } else { column.data_type.literal(choices) };
            steps.push(Step::Sql(format!("UPDATE {} SET {} = {value} WHERE {condition}", table.name, column.name)));
        }
    }
}
