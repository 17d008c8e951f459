//! Statements that the tester runs: queries, and writes with what is read after them.

use super::choices::Kind;
use super::generator::Generator;
use super::schema::{Column, Table};
use super::sources::key_of;
use super::sql::{Sql, sql};

/// A statement, and how its answer is found.
#[derive(Clone, Debug)]
pub struct Case {
    pub statement: Sql,
    /// Statements before a write, in its transaction.
    pub before: Vec<String>,
    /// The query whose answer counts, after a write.
    pub read: Option<String>,
    pub columns: Vec<Column>,
    /// The leading sort keys that are columns of the answer.
    pub sorted: Vec<usize>,
}

/// Levels of derived tables.
const DEPTH: usize = 3;

/// A statement made by the choices of `generator`.
pub fn case(generator: &mut Generator<'_>) -> Case {
    match generator.choices.weighted(&[16, 1, 1, 1, 1]) {
        0 => {
            let relation = generator.query(None, DEPTH);
            Case {
                statement: relation.sql,
                before: Vec::new(),
                read: None,
                columns: relation.columns,
                sorted: relation.sorted,
            }
        }
        1 => delete(generator),
        2 => update(generator),
        3 => create_as(generator),
        _ => insert(generator),
    }
}

/// `SELECT column, ... FROM table`.
fn contents(name: &str, columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    format!("SELECT {} FROM {name}", names.join(", "))
}

/// A column of the first or last rows of a table, by some order.
fn ranked(generator: &mut Generator<'_>, table: &Table, at: usize) -> Sql {
    let alias = generator.name("s");
    let name = |at: usize| format!("{alias}.{}", table.columns[at].name);
    let mut order = Vec::new();
    for _ in 0..generator.choices.below(2) {
        let by = generator.choices.below(table.columns.len());
        order.push(format!("{}{}", name(by), generator.direction()));
    }
    for at in key_of(table) {
        order.push(format!("{}{}", name(at), generator.direction()));
    }
    let (skipped, taken) = (generator.number(&[3, 1, 0, 5]), generator.number(&[4, 1, 2]));
    let ends = match generator.choices.below(3) {
        0 => sql("OFFSET {}", &[&skipped]),
        1 => sql("LIMIT {}", &[&taken]),
        _ => sql("LIMIT {} OFFSET {}", &[&taken, &skipped]),
    };
    let text = format!("SELECT {} FROM {} AS {alias} ORDER BY {} {{}}", name(at), table.name, order.join(", "));
    sql(&text, &[&ends])
}

fn target_condition(generator: &mut Generator<'_>, alias: &str, target: &Table) -> Sql {
    let start = generator.choices.taken.len();
    let atoms = generator.atoms(alias, &target.columns);
    let table = if generator.choices.chance(1, 4) { generator.any_table() } else { target.clone() };
    let at = generator.choices.below(table.columns.len());
    let made = match generator.atom_of(&atoms, table.columns[at].data_type) {
        Some(atom) if generator.choices.chance(1, 2) => {
            let query = ranked(generator, &table, at);
            let not = if generator.choices.chance(1, 4) { "NOT " } else { "" };
            sql(&format!("{{}} {not}IN {{}}"), &[&atom, &Sql::derived(query)])
        }
        _ => {
            let conditions = generator.conditions(&atoms, DEPTH - 1);
            if conditions.is_empty() { "true".into() } else { Sql::joined(&conditions, " AND ") }
        }
    };
    generator.choices.end(Kind::Expression, start);
    made
}

fn delete(generator: &mut Generator<'_>) -> Case {
    let table = generator.any_table();
    let alias = generator.name("s");
    let condition = target_condition(generator, &alias, &table);
    Case {
        statement: sql(&format!("DELETE FROM {} AS {alias} WHERE {{}}", table.name), &[&condition]),
        before: Vec::new(),
        read: Some(contents(&table.name, &table.columns)),
        columns: table.columns,
        sorted: Vec::new(),
    }
}

fn update(generator: &mut Generator<'_>) -> Case {
    let table = generator.any_table();
    let free = table.free_columns();
    if free.is_empty() {
        return delete(generator);
    }
    let column = table.columns[*generator.choices.pick(&free)].clone();
    let alias = generator.name("s");
    let atoms = generator.atoms(&alias, &table.columns);
    let value = generator.expression(&atoms, column.data_type, 1);
    let value = sql(&format!("CAST({{}} AS {})", column.data_type.name()), &[&value]);
    let condition = target_condition(generator, &alias, &table);
    Case {
        statement: sql(
            &format!("UPDATE {} AS {alias} SET {} = {{}} WHERE {{}}", table.name, column.name),
            &[&value, &condition],
        ),
        before: Vec::new(),
        read: Some(contents(&table.name, &table.columns)),
        columns: table.columns,
        sorted: Vec::new(),
    }
}

fn create_as(generator: &mut Generator<'_>) -> Case {
    let relation = generator.query(None, DEPTH);
    Case {
        statement: sql("CREATE TABLE sink AS {}", &[&relation.sql]),
        before: Vec::new(),
        read: Some(contents("sink", &relation.columns)),
        columns: relation.columns,
        sorted: Vec::new(),
    }
}

fn insert(generator: &mut Generator<'_>) -> Case {
    let relation = generator.query(None, DEPTH);
    let columns: Vec<String> =
        relation.columns.iter().map(|column| format!("{} {}", column.name, column.data_type.name())).collect();
    Case {
        statement: sql("INSERT INTO sink {}", &[&relation.sql]),
        before: vec![format!("CREATE TABLE sink ({})", columns.join(", "))],
        read: Some(contents("sink", &relation.columns)),
        columns: relation.columns,
        sorted: Vec::new(),
    }
}
