#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use mainstem_storage::schema::{DataType, Layout};

use super::*;

fn one(sql: &str) -> Statement {
    let mut script = parse(sql).unwrap();
    let statement = script.next().unwrap();
    assert!(script.next().is_none(), "{sql}");
    statement
}

fn code(sql: &str) -> &'static str {
    match parse(sql) {
        Ok(_) => "no error",
        Err(e) => e.sqlstate(),
    }
}

#[test]
fn semicolons_part_statements_unless_they_are_text() {
    let mut script = parse("SELECT 'a;b'; -- c;d\n ; /* e; */ SELECT \"f;g\";").unwrap();
    assert!(script.only().is_none());
    assert!(matches!(script.next(), Some(Statement::Query(_))));
    assert!(matches!(script.next(), Some(Statement::Query(_))));
    assert!(script.next().is_none());
    assert!(parse("  -- nothing\n;;").unwrap().next().is_none());
}

#[test]
fn complete_statements_are_split_off() {
    for (text, done, rest) in [
        ("SELECT 1; SELECT", vec!["SELECT 1"], " SELECT"),
        ("a 'x;''y' ; b", vec!["a 'x;''y' "], " b"),
        ("a E'\\';' ; b", vec!["a E'\\';' "], " b"),
        ("a e ';' ; b", vec!["a e ';' "], " b"),
        ("\";\";", vec!["\";\""], ""),
        ("/* ; /* ; */ ; */ a; b", vec!["/* ; /* ; */ ; */ a"], " b"),
        ("$$ ; $$; c", vec!["$$ ; $$"], " c"),
        ("$x$ ; $$ ; $x$; c", vec!["$x$ ; $$ ; $x$"], " c"),
        ("a$b;c$d", vec!["a$b"], "c$d"),
        ("$1;$2", vec!["$1"], "$2"),
        ("'open ;", vec![], "'open ;"),
        ("-- ;", vec![], "-- ;"),
    ] {
        assert_eq!(split_statements(text), (done, rest), "{text}");
    }
}

#[test]
fn create_table_is_read_whole() {
    let sql = "CREATE TABLE IF NOT EXISTS \"T\" (A INTEGER, b VARCHAR(5) NOT NULL, c DECIMAL(6,2), PRIMARY KEY (a)) \
               ORDER BY (a) WITH (segment_rows = 7, layout = 'sorted')";
    let Statement::CreateTable(create) = one(sql) else { panic!("no CREATE TABLE") };
    assert_eq!((create.name.name.as_str(), create.if_not_exists), ("T", true));
    let columns: Vec<_> = create.columns.iter().map(|c| (c.name.as_str(), c.data_type, c.nullable)).collect();
    assert_eq!(
        columns,
        [
            ("a", DataType::Integer, false),
            ("b", DataType::Text { max_chars: Some(5) }, false),
            ("c", DataType::Decimal { precision: 6, scale: 2 }, true),
        ]
    );
    assert_eq!((create.primary_key, create.sort_key), (vec!["a".into()], Some(vec!["a".into()])));
    assert_eq!((create.layout, create.segment_rows, create.delta_rows), (Some(Layout::Sorted), Some(7), None));
    let other_order = one("CREATE TABLE t (a INTEGER) WITH (delta_rows = 3) ORDER BY (a)");
    assert!(matches!(other_order, Statement::CreateTable(c) if c.delta_rows == Some(3) && c.sort_key.is_some()));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn what_is_not_understood_is_refused() {
    for (sql, expected) in [
        ("CREATE TABLE t (a INTEGER) ORDER BY (a DESC)", "0A000"),
        ("CREATE TABLE t (a INTEGER) ORDER BY (lower(a))", "0A000"),
        ("CREATE TABLE t (a INTEGER) WITH (fillfactor = 3)", "22023"),
        ("CREATE TABLE t (a INTEGER) WITH (segment_rows = 0)", "22023"),
        ("CREATE TABLE t (a INTEGER) WITH (segment_rows = 1) WITH (segment_rows = 2)", "22023"),
        ("CREATE TABLE t (a INTEGER REFERENCES u)", "0A000"),
        ("CREATE TABLE t (a INTEGER GENERATED ALWAYS AS IDENTITY (CACHE 5))", "0A000"),
        ("CREATE TABLE t (a INTEGER GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 0))", "22023"),
        ("CREATE TABLE t (a INTEGER DEFAULT b)", "0A000"),
        ("CREATE TABLE t (a INTEGER CHECK (a IN (SELECT 1)))", "0A000"),
        ("CREATE TABLE t (a INTEGER) ON COMMIT DROP", "42P16"),
        ("CREATE SCHEMA s AUTHORIZATION x", "0A000"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "0A000"),
        ("CREATE TEMP VIEW v AS SELECT 1", "0A000"),
        ("CREATE VIEW v AS SELECT 1 WITH CHECK OPTION", "42601"),
        ("DROP INDEX i", "0A000"),
        ("ALTER TABLE t ALTER COLUMN a TYPE TEXT", "0A000"),
        ("ALTER TABLE t RENAME CONSTRAINT a TO b", "0A000"),
        ("ALTER TABLE t RENAME TO s.u", "42601"),
        ("TRUNCATE TABLE t PARTITION (a)", "42601"),
        ("SELECT 1 OVERRIDING SYSTEM VALUE VALUES (1)", "42601"),
        ("UPDATE t OVERRIDING SYSTEM VALUE SELECT 1", "42601"),
        ("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY)", "42P16"),
        ("CREATE TABLE t (a TIME(3))", "0A000"),
        ("CREATE TABLE t (a NUMERIC)", "0A000"),
        ("CREATE TABLE t (a DECIMAL(39,2))", "22023"),
        ("CREATE TABLE t (a TIMESTAMP(3))", "0A000"),
        ("CREATE TABLE t (a INTEGER) PARTITION BY (a)", "0A000"),
        ("CREATE TABLE t (a INTEGER) TABLESPACE x", "0A000"),
        ("CREATE TABLE t (_row_ref INTEGER)", "0A000"),
        ("UPDATE t SET (a, b) = 1", "0A000"),
        ("UPDATE t SET (a, b) = (1, 2, 3)", "42601"),
        ("UPDATE t SET (a, b) = (1, 2), b = 3", "42701"),
        ("UPDATE t FROM u SET a = 1", "0A000"),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1", "42601"),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1", "0A000"),
        ("INSERT OR REPLACE INTO t VALUES (1)", "0A000"),
        ("WITH x AS (SELECT 1) INSERT INTO t WITH X AS (SELECT 2) SELECT * FROM x", "0A000"),
        ("WITH x AS (SELECT a FROM u FOR UPDATE) DELETE FROM t", "0A000"),
        ("DELETE FROM t RETURNING (SELECT 1 FETCH FIRST 1 ROW WITH TIES)", "0A000"),
        ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", "0A000"),
        ("UPDATE t SET a = 1, a = 2", "42701"),
        ("DELETE FROM t LIMIT 1", "42601"),
        ("WITH x AS (DELETE FROM t) SELECT 1", "42601"),
        ("SELECT * FROM t TABLESAMPLE SYSTEM (10)", "0A000"),
        ("SELECT * INTO u FROM t", "0A000"),
        ("SELECT * FROM t FETCH FIRST 1 ROWS WITH TIES", "0A000"),
        ("SELECT * FROM t FETCH FIRST 10 PERCENT ROWS ONLY", "0A000"),
        ("COPY t FROM 'x' WITH", "42601"),
        ("COPY t FROM 'x' CSV CSV", "42601"),
        ("COPY t FROM 'x' CSV HEADER LOUD", "42601"),
        ("COPY t FROM 'x' CSV DELIMITER 'ab'", "22023"),
        ("COPY mainstem.wal FROM 'x'", "42501"),
        ("COMMIT AND CHAIN", "0A000"),
        ("ROLLBACK AND CHAIN", "0A000"),
        ("SET GLOBAL synchronous = off", "0A000"),
        ("COPY t FROM STDOUT", "42601"),
        ("COPY t TO STDIN", "42601"),
        ("COPY t TO STDOUT (FORMAT parquet)", "0A000"),
        ("COPY t FROM STDIN (FORMAT binary)", "0A000"),
        ("COPY t FROM STDIN (QUOTE 'q')", "22023"),
        ("COPY t FROM STDIN (DELIMITER 'n')", "22023"),
        ("COPY t FROM STDIN (NULL 'a|', DELIMITER '|')", "22023"),
        ("COPY t FROM PROGRAM 'x'", "0A000"),
        ("COPY t FROM 'a.csv' (DELIMITER 'ab')", "22023"),
        ("COPY t FROM 'a.csv' (QUOTE ',')", "22023"),
        ("COPY t FROM 'a.parquet' (HEADER)", "22023"),
        ("COPY t FROM 'a.csv' (HEADER, HEADER)", "42601"),
        ("COPY (SELECT 1) FROM 'a.csv'", "42601"),
        ("EXPLAIN ANALYZE DELETE FROM t", "0A000"),
    ] {
        let got = code(sql);
        assert!(got == expected || (expected == "42601" && got == "0A000"), "{sql}: {got}, not {expected}");
    }
}

#[test]
fn copy_has_a_grammar_of_its_own() {
    let sql =
        "COPY t (a, \"B\") FROM 'x.csv' WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'NULL', QUOTE '''', ESCAPE '\\')";
    let expected = CopyStatement::From {
        table: TableName::bare("t"),
        columns: vec!["a".into(), "B".into()],
        options: CopyOptions {
            place: CopyPlace::File("x.csv".into()),
            format: CopyFormat::Csv(CsvOptions {
                header: true,
                delimiter: b';',
                quote: b'\'',
                escape: b'\\',
                null: "NULL".into(),
                ..CsvOptions::default()
            }),
            written: Written::default(),
        },
        read: Box::default(),
    };
    assert!(matches!(one(sql), Statement::Copy(copy) if copy == expected));
    let old = "COPY t (a, \"B\") FROM 'x.csv' WITH CSV HEADER DELIMITER AS ';' NULL 'NULL' QUOTE '''' ESCAPE AS '\\'";
    assert!(matches!(one(old), Statement::Copy(copy) if copy == expected));
    assert!(matches!(
        one("COPY mainstem.wal TO STDOUT CSV HEADER"),
        Statement::Copy(CopyStatement::To { source: CopySource::Query(_), .. })
    ));
    assert!(matches!(one("COPY (SELECT 1) TO 'x.parquet'"),
        Statement::Copy(CopyStatement::To { source: CopySource::Query(_), options })
            if options.format == CopyFormat::Parquet));
}

/// What a write is planned as (contract 6).
#[test]
fn writes_are_planned_as_selects() {
    let database = crate::Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)").unwrap();
    let table = connection.table("t").unwrap();
    let Statement::Update(update) = one("WITH q AS (SELECT 1) UPDATE t AS x SET (b) = (2) FROM q WHERE x.a = 1") else {
        panic!()
    };
    assert_eq!(
        update.to_select(&table, Vec::new()).unwrap().to_string(),
        "WITH q AS (SELECT 1) SELECT \"x\".\"_row_ref\" AS \"_row_ref\", \"x\".\"a\" AS \"value_0\", 2 AS \"value_1\" \
         FROM \"write_target\".\"t\" AS \"x\", q WHERE x.a = 1 ORDER BY 1, 2, 3"
    );
    let Statement::Delete(delete) = one("DELETE FROM t USING u WHERE t.a = u.a RETURNING u.*") else { panic!() };
    assert!(delete.target.gives_rows() && delete.target.has_others());
    assert_eq!(
        delete.to_select(Vec::new()).unwrap().to_string(),
        "SELECT \"t\".\"_row_ref\" AS \"_row_ref\" FROM \"write_target\".\"t\" AS \"t\", u WHERE t.a = u.a"
    );
    let returning = delete.target.returning(&table).unwrap().unwrap();
    assert_eq!(returning.to_string(), "SELECT u.* FROM \"public\".\"t\" AS \"t\", u");
    let Statement::Insert(insert) =
        one("INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.a WHERE t.b = 3")
    else {
        panic!()
    };
    assert_eq!(
        insert.update_arm(&table).unwrap().unwrap().to_string(),
        "SELECT \"t\".\"_row_ref\" AS \"_row_ref\", \"t\".\"a\" AS \"value_0\", excluded.a AS \"value_1\" \
         FROM \"write_target\".\"t\" AS \"t\", \"public\".\"t\" AS \"excluded\" WHERE t.b = 3"
    );
}

#[test]
fn distinct_from_binds_tighter_than_and() {
    let Statement::Query(query) = one("SELECT a IS NOT DISTINCT FROM b AND c IS DISTINCT FROM d OR e") else {
        panic!()
    };
    assert_eq!(shape(&query), "or(and(nd, d), id)");
}

/// The operators of the first select item, as nested calls.
fn shape(query: &datafusion::sql::sqlparser::ast::Query) -> String {
    use datafusion::sql::sqlparser::ast::{BinaryOperator as Op, Expr, SelectItem, SetExpr};
    fn of(expr: &Expr) -> String {
        match expr {
            Expr::BinaryOp { left, op: Op::Or, right } => format!("or({}, {})", of(left), of(right)),
            Expr::BinaryOp { left, op: Op::And, right } => format!("and({}, {})", of(left), of(right)),
            Expr::IsNotDistinctFrom(..) => "nd".into(),
            Expr::IsDistinctFrom(..) => "d".into(),
            Expr::Identifier(_) => "id".into(),
            other => other.to_string(),
        }
    }
    let SetExpr::Select(select) = &*query.body else { panic!() };
    let SelectItem::UnnamedExpr(expr) = &select.projection[0] else { panic!() };
    of(expr)
}

#[test]
fn depth_is_bounded() {
    assert_eq!(code(&format!("SELECT {}", vec!["1"; 4_000].join("+"))), "54001");
    assert_eq!(code(&format!("SELECT {}", vec!["1"; 1_100].join(" * "))), "54001");
    assert_eq!(code(&format!("SELECT {}", vec!["1"; 900].join(" * "))), "no error");
    assert_eq!(code(&format!("SELECT 1 WHERE {}", vec!["a = 1"; 1_400].join(" OR "))), "no error");
    assert_eq!(code(&format!("SELECT CASE {} END", "WHEN a = 1 THEN 2 ".repeat(2_000))), "no error");
    assert_eq!(code(&format!("SELECT {}1{}", "(".repeat(500), ")".repeat(500))), "54001");
    assert_eq!(code(&format!("SELECT {}", vec!["1+1"; 4_000].join(", "))), "no error");
}

/// What can stand around itself: in front, in the middle, behind.
const NESTED: &[(&str, &str, &str)] = &[
    ("array[", "1", "]"),
    ("cast(", "1", " as int)"),
    ("try_cast(", "1", " as int)"),
    ("case when true then ", "1", " end"),
    ("case ", "1", " when 1 then 1 end"),
    ("exists (select ", "1", ")"),
    ("not exists (select 1 where ", "true", ")"),
    ("not (", "true", ")"),
    ("(select ", "1", ")"),
    ("array[(select ", "1", ")]"),
    ("(select 1 from (select ", "1", ") x)"),
    ("row(", "1", ")"),
    ("interval (", "'1 day'", ")"),
    ("abs(", "1", ")"),
    ("coalesce(1, ", "1", ")"),
    ("substring(", "'a'", " from 1 for 2)"),
    ("overlay(", "'a'", " placing 'b' from 1)"),
    ("trim(both 'a' from ", "'a'", ")"),
    ("position('a' in ", "'a'", ")"),
    ("extract(year from ", "now()", ")"),
    ("ceil(", "1", ")"),
    ("floor(", "1", ")"),
    ("convert(", "1", ", int)"),
    ("1 in (", "1", ")"),
    ("1 in (select ", "1", ")"),
    ("1 = any (select ", "1", ")"),
    ("true = any (array[", "true", "])"),
    ("1 between 0 and (", "1", ")"),
    ("sum(1) over (partition by ", "1", ")"),
    ("sum(1) filter (where ", "true", ")"),
    ("max(1) within group (order by ", "1", ")"),
    ("f(a => ", "1", ")"),
    ("- ", "1", ""),
    ("(", "1", ")::int"),
];

/// The code of `sql`, which fails the test where reading does not end.
fn code_in_time(sql: &str) -> &'static str {
    let (told, told_by) = std::sync::mpsc::channel();
    let text = sql.to_owned();
    std::thread::spawn(move || told.send(code(&text)));
    let time = std::time::Duration::from_secs(600);
    told_by.recv_timeout(time).unwrap_or_else(|_| panic!("no end: {}", &sql[..sql.len().min(300)]))
}

#[test]
fn nested_text_is_read_or_refused_in_time() {
    for (front, middle, behind) in NESTED {
        for depth in [40, 97, 2_000] {
            let nested = format!("{}{middle}{}", front.repeat(depth), behind.repeat(depth));
            for statement in [
                format!("SELECT {nested}"),
                format!("UPDATE t SET a = {nested} WHERE {nested}"),
                format!("CREATE TABLE t (a INT DEFAULT {nested}, CHECK ({nested}))"),
            ] {
                let code = code_in_time(&statement);
                assert!(matches!(code, "no error" | "54001" | "42601" | "0A000"), "{code}: {statement}");
                assert!(depth < 2_000 || code != "no error", "{statement}");
            }
            // What never ends, and what ends in a place where nothing does.
            assert_ne!(code_in_time(&format!("SELECT {}", front.repeat(depth))), "no error");
            assert_ne!(code_in_time(&format!("SELECT {nested} FROM ) {nested}")), "no error");
        }
    }
    let ctes = |depth: usize| format!("{}SELECT 1{}", "WITH a AS (".repeat(depth), ") SELECT 1".repeat(depth));
    let joins = |depth: usize| {
        format!("SELECT * FROM {}(SELECT 1) x{}", "(".repeat(depth), " CROSS JOIN (SELECT 2) y)".repeat(depth))
    };
    for depth in [30, 60, 97, 2_000] {
        for statement in [ctes(depth), joins(depth)] {
            assert!(matches!(code_in_time(&statement), "no error" | "54001"), "{statement}");
        }
    }
}

#[test]
fn words_that_begin_something_are_names_too_where_postgresql_has_them_so() {
    for text in ["SELECT substring, position, overlay, ceil FROM t", "SELECT t.trim, t.exists, t.interval FROM t"] {
        assert_eq!(code(text), "no error", "{text}");
    }
    for text in ["SELECT cast FROM t", "SELECT case FROM t"] {
        assert_eq!(code(text), "42601", "{text}");
    }
}
