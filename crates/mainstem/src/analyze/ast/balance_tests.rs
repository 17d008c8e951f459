#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::*;

fn depth(expr: &Expr) -> usize {
    match expr {
        Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
        _ => 0,
    }
}

fn balanced(sql: &str) -> (Statement, usize) {
    let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap().remove(0);
    balance(&mut statement);
    let Statement::Query(query) = &statement else { panic!() };
    let depth = depth(query.body.as_select().unwrap().selection.as_ref().unwrap());
    (statement, depth)
}

#[test]
fn chains_keep_their_operands_in_order() {
    for (op, shallow) in [("OR", true), ("AND", true), ("||", true), ("+", false), ("-", false)] {
        let operands: Vec<String> = (0..1000).map(|i| format!("c{i}")).collect();
        let sql = format!("SELECT 1 WHERE {}", operands.join(&format!(" {op} ")));
        let (statement, depth) = balanced(&sql);
        assert_eq!(statement.to_string(), sql);
        assert_eq!(depth == 10, shallow, "{op}: {depth}");
    }
}

#[test]
fn a_chain_of_two_kinds_is_regrouped_kind_by_kind() {
    let sql = "SELECT 1 WHERE a0".to_string() + &" AND b AND c OR d".repeat(100);
    let (statement, depth) = balanced(&sql);
    assert_eq!(statement.to_string(), sql);
    assert!(depth < 12, "{depth}");
    let (_, short) = balanced("SELECT 1 WHERE a OR b OR c OR d");
    assert_eq!(short, 3, "left as it is written");
}
