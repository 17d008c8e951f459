//! Which statements are short. What they answer is tested through connections (`tests/it/short.rs`).

use std::cell::Cell;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::physical_expr::expressions::lit;
use datafusion::sql::sqlparser::ast::Query;
use mainstem_storage::catalog::{ColumnDefinition, TableDefinition};
use mainstem_storage::ids::TableId;
use mainstem_storage::schema::{Check, DataType, TableSchema};

use super::{Planning, Short, Unplanned};
use crate::exec::PlannedExpression;
use crate::sql::{Statement, parse_template};

fn table(primary_key: &[&str]) -> Arc<TableSchema> {
    let column = |name: &str, data_type| ColumnDefinition::new(name, data_type, true);
    let definition = TableDefinition {
        primary_key: primary_key.iter().map(|name| (*name).to_owned()).collect(),
        ..TableDefinition::new(
            "t",
            vec![
                column("k", DataType::BigInt),
                column("a", DataType::Integer),
                column("s", DataType::Text { max_chars: Some(5) }),
                column("d", DataType::Date),
            ],
        )
    };
    Arc::new(definition.into_schema(TableId(7)).unwrap())
}

fn compiled(sql: &str, schema: &Arc<TableSchema>, parameters: &[Option<DataType>]) -> Option<Short> {
    let template = parse_template(sql).unwrap();
    template
        .with_statement(|statement: &Statement| {
            Ok(Short::tables_of(statement)
                .filter(|names| matches!(names.as_slice(), [name] if name.name == "t"))
                .and_then(|_| {
                    Short::compile(statement, std::slice::from_ref(schema), parameters, &Unplanned::default())
                }))
        })
        .unwrap()
}

#[test]
fn statements_on_a_whole_key_are_short() {
    let schema = table(&["k"]);
    let text = DataType::Text { max_chars: None };
    let parameters = [DataType::BigInt, DataType::Integer, text].map(Some);
    for sql in [
        "SELECT * FROM t WHERE k = 1",
        "SELECT * FROM t WHERE k > 1",
        "SELECT count(*) FROM t WHERE k = 1",
        "SELECT count(a), count(*), CAST(sum(a) AS BIGINT) AS total, max(d) FROM t WHERE k = 1",
        "SELECT sum(a)::BIGINT, count(DISTINCT t.d) FROM t WHERE k BETWEEN 1 AND $1 AND s = 'x'",
        "SELECT max(k) FROM t",
        "SELECT a FROM t WHERE k = 1 ORDER BY a",
        "SELECT a FROM t WHERE k = 1 LIMIT 0",
        "SELECT a FROM t ORDER BY k DESC LIMIT 3",
        "SELECT EXISTS (SELECT * FROM t WHERE k < $1)",
        "INSERT INTO t SELECT 1, 2, 'x', NULL",
        "DELETE FROM t WHERE k IN (1)",
        "SELECT a, t.s AS other, a FROM t WHERE $1 = t.k",
        "SELECT x.s FROM t AS x WHERE (x.k = -5)",
        "SELECT k FROM public.t WHERE k = $1",
        "INSERT INTO t VALUES (1, 2, 'x', '2020-01-01'), ($1, $2, $3, NULL)",
        "SELECT * FROM t WHERE k = 1 AND k = 2",
        "SELECT * FROM t WHERE k = 1 AND a = 2",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.a IN (1)",
        "UPDATE t SET a = 1 WHERE a BETWEEN 2 AND $2 AND s NOT IN ('x', $3) AND k = 1 AND length(s) > 2",
        "INSERT INTO t (s, k) VALUES ('x', -1)",
        "INSERT INTO t VALUES (1, 2, 'x'), (2, DEFAULT, DEFAULT)",
        "INSERT INTO t DEFAULT VALUES",
        "UPDATE t SET d = DEFAULT, a = 1 WHERE k = 7",
        "UPDATE t SET a = a + $2, s = $3 WHERE k = $1",
        "UPDATE t AS x SET a = 2 * x.a - 1 WHERE x.k = 7",
        "UPDATE t SET d = '2021-02-03', s = NULL WHERE k = 7",
        "DELETE FROM t WHERE k = $1",
        "INSERT INTO t (k, a) VALUES (1, $1) RETURNING *",
        "UPDATE t SET a = 1 WHERE k = 1 RETURNING t.a, s AS x",
        "DELETE FROM t WHERE k = 1 RETURNING k",
        "INSERT INTO t (k, a) VALUES ($1, 1), (2, $2) ON CONFLICT DO NOTHING",
        "INSERT INTO t (k, a) VALUES ($1, 1), (2, $2) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING",
        "INSERT INTO t VALUES (1, 2, 'x', NULL) ON CONFLICT (k) DO UPDATE SET a = excluded.a, s = 'x', d = '2020-01-01'",
        "INSERT INTO t AS o (k, a) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET a = o.a + excluded.a * $2 RETURNING *",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.a < excluded.a AND NOT t.s = 'x'",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.d IS NULL OR t.s <> $3 OR false",
    ] {
        assert!(compiled(sql, &schema, &parameters).is_some(), "{sql}");
    }
    let two = table(&["k", "s"]);
    for sql in [
        "SELECT a FROM t WHERE s = $3 AND k = 1",
        "DELETE FROM t WHERE (k = $1) AND ('x' = s)",
        "INSERT INTO t (k, s) VALUES (1, 'x') ON CONFLICT (s, k) DO UPDATE SET a = 1",
    ] {
        assert!(compiled(sql, &two, &parameters).is_some(), "{sql}");
    }
}

#[test]
fn defaults_and_checks_are_compiled() {
    let mut schema = TableSchema::clone(&table(&["k"]));
    schema.columns[1].default = Some("7".into());
    schema.columns[3].default = Some("'2020-01-01'".into());
    let check = |name: &str, expression: &str| Check { name: name.into(), expression: expression.into() };
    schema.checks = vec![check("a", "a > 0 AND a <> 13"), check("s", "s IS NULL OR s < 'x'")];
    let parameters = [DataType::BigInt, DataType::Integer].map(Some);
    let simple = Arc::new(schema.clone());
    for sql in [
        "INSERT INTO t (k) VALUES ($1)",
        "INSERT INTO t (k, s) VALUES (1, 'a'), (2, NULL)",
        "INSERT INTO t (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET a = 3",
        "UPDATE t SET a = $2 WHERE k = 1",
    ] {
        assert!(compiled(sql, &simple, &parameters).is_some(), "{sql}");
    }
    // A check that only a plan knows, of one column.
    schema.checks.push(check("d", "extract(year FROM d) > 2000"));
    let other = Arc::new(schema.clone());
    assert!(compiled("UPDATE t SET a = 1 WHERE k = 1", &other, &parameters).is_some());
    for sql in ["UPDATE t SET d = NULL WHERE k = 1", "INSERT INTO t (k) VALUES (1)"] {
        assert!(compiled(sql, &other, &parameters).is_none(), "{sql}");
    }
    schema.checks.clear();
    schema.columns[3].default = Some("CURRENT_DATE".into());
    assert!(compiled("INSERT INTO t (k) VALUES (1)", &Arc::new(schema.clone()), &parameters).is_some());
    schema.columns[3].default = Some("CURRENT_DATE + 1".into());
    let volatile = Arc::new(schema);
    assert!(compiled("INSERT INTO t (k) VALUES (1)", &volatile, &parameters).is_none());
    assert!(compiled("INSERT INTO t VALUES (1, 2, 'a', NULL)", &volatile, &parameters).is_some());
}

/// But for those that the planner compiles: none of them, here.
#[test]
fn all_others_are_not() {
    let schema = table(&["k"]);
    let parameters = [DataType::BigInt, DataType::Double, DataType::Text { max_chars: None }].map(Some);
    for sql in [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE a > 1",
        "SELECT * FROM t WHERE k = 1 OR k = 2",
        "SELECT * FROM t WHERE k = a",
        "SELECT * FROM t WHERE k = 1.5",
        "SELECT * FROM t WHERE k = '1'",
        "SELECT * FROM t WHERE k = $3",
        "SELECT a + 1 FROM t WHERE k = 1",
        "SELECT avg(a) FROM t WHERE k = 1",
        "SELECT sum(d) FROM t WHERE k = 1",
        "SELECT sum(DISTINCT a) FROM t WHERE k = 1",
        "SELECT sum(a) FILTER (WHERE a > 1) FROM t WHERE k = 1",
        "SELECT sum(a), k FROM t WHERE k = 1",
        "SELECT sum(a) FROM t",
        "SELECT DISTINCT a FROM t WHERE k = 1",
        "SELECT a FROM t WHERE k > 1 ORDER BY a",
        "SELECT a FROM t WHERE k = 1 OFFSET 1",
        "SELECT a FROM t WHERE k = 1 GROUP BY a",
        "SELECT a FROM t WHERE k = 1 UNION ALL SELECT 1",
        "WITH t AS (SELECT 1 AS k) SELECT k FROM t WHERE k = 1",
        "SELECT t.a FROM t AS x WHERE k = 1",
        "SELECT a FROM t AS x (a, b) WHERE a = 1",
        "SELECT a FROM t, t AS u WHERE k = 1",
        "SELECT nothing FROM t WHERE k = 1",
        "INSERT INTO t SELECT 1, 2, 'x', NULL WHERE true",
        "INSERT INTO t VALUES (1, 2 + 3, 'x', NULL)",
        "INSERT INTO t (k, a) VALUES (1, 2) RETURNING a + 1",
        "INSERT INTO t (k, a) VALUES (1, 2) RETURNING excluded.a",
        "WITH x AS (SELECT 1) INSERT INTO t (k, a) VALUES (1, 2) RETURNING a",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (a) DO NOTHING",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k, a) DO NOTHING",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT ON CONSTRAINT t_key DO NOTHING",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET k = 3",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = a + 1",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = excluded.s",
        "INSERT INTO t AS o (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = t.a",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.a = '1'",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.a",
        "INSERT INTO t (k, a) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET a = 1 WHERE t.d = 1",
        "INSERT INTO t VALUES (1, 2, 'x', '2020-99-01')",
        "UPDATE t SET k = 2 WHERE k = 1",
        "UPDATE t SET a = a / 2 WHERE k = 1",
        "UPDATE t SET a = s WHERE k = 1",
        "UPDATE t SET a = (SELECT 1) WHERE k = 1",
        "UPDATE t SET a = 1",
        "DELETE FROM t",
        "DELETE FROM t WHERE a IN (1)",
    ] {
        assert!(compiled(sql, &schema, &parameters).is_none(), "{sql}");
    }
    assert!(compiled("SELECT a FROM t WHERE k = 1", &table(&[]), &[]).is_none());
    assert!(compiled("SELECT a FROM t WHERE k = 1", &table(&["s", "k"]), &[]).is_none());
}

/// Plans nothing but `true`, and counts how often it is asked to.
#[derive(Default)]
struct Counting(Cell<usize>);

impl Planning for Counting {
    fn expressions(&self, _: Query, _: &[Option<DataType>]) -> Option<Vec<PlannedExpression>> {
        self.0.set(self.0.get() + 1);
        let field = Arc::new(Field::new("true", ArrowType::Boolean, false));
        Some(vec![PlannedExpression { field, expression: lit(true), is_volatile: false, columns: 4 }])
    }
}

#[test]
fn what_stands_beside_a_list_of_keys_is_compiled_once() {
    let planning = Counting::default();
    let template = parse_template("SELECT a FROM t WHERE s LIKE '%x%' AND k IN (1, 2, 3, 4)").unwrap();
    let compile = |statement: &Statement| Ok(Short::compile(statement, &[table(&["k"])], &[], &planning).is_some());
    assert!(template.with_statement(compile).unwrap());
    assert_eq!(planning.0.get(), 1);
}
