//! Texts of writes that are not short: planned once, and run by the plan that is kept, which sees whatever it must.

use mainstem::{Connection, Database};

use crate::support::{code, rows};

const SETUP: &str = "
    CREATE TABLE w (k INTEGER PRIMARY KEY, g INTEGER, n INTEGER, t TEXT, d DATE, c CHAR(4), m DECIMAL(8, 2),
                    v VARCHAR(5));
    INSERT INTO w SELECT x, x % 5, x, 't' || x, DATE '2024-01-01' + (x % 30), 'c' || x % 3, x + 0.25
        FROM generate_series(1, 300) AS g (x);
    CREATE TABLE source (a INTEGER, b TEXT);
    INSERT INTO source SELECT x, 'source ' || x FROM generate_series(1, 20) AS g (x);
    CREATE VIEW some AS SELECT a, b FROM source WHERE a > 10";

fn connection(mode: &str) -> (Database, Connection) {
    let database = Database::in_memory().unwrap();
    let connection = database.connect().unwrap();
    connection.execute_batch(SETUP).unwrap();
    connection.execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
    (database, connection)
}

/// How many of the runs of `sql`, so many, are by a plan that is kept.
fn kept(connection: &Connection, sql: &str, runs: usize) -> u64 {
    let before = connection.kept_plan_runs();
    (0..runs).for_each(|_| _ = connection.execute(sql).unwrap());
    connection.kept_plan_runs() - before
}

/// Texts with `#` in the place of a number that is another one at each run.
const WRITES: &[&str] = &[
    "UPDATE w SET n = n + 1 WHERE g = #",
    "UPDATE w SET n = #, t = 'text #' WHERE g = 3 AND n > 20",
    "UPDATE w SET d = '2024-02-0#' WHERE g = #",
    "UPDATE w SET d = DATE '2024-02-0#' WHERE c = 'c# '",
    "UPDATE w SET c = 'x#', m = #.#5 WHERE t = 't1#'",
    "UPDATE w SET m = m * 1.5 WHERE n < 10#",
    "UPDATE w SET n = 1.5 WHERE g = #",
    "UPDATE w SET n = 'no' WHERE g = #",
    "UPDATE w SET n = 3000000000 WHERE g = #",
    "UPDATE w SET c = 'longer #' WHERE g = #",
    "UPDATE w SET v = 'v#' WHERE g = #",
    "UPDATE w SET v = 'longer #' WHERE g = #",
    "UPDATE w SET v = 'longer #' WHERE g = 9#",
    "UPDATE w SET v = 'v   #      ', t = 'a text' WHERE g = 1 AND c = 'c1'",
    "UPDATE w SET k = 7 WHERE g = #",
    "UPDATE w SET nothing = 1 WHERE g = #",
    "UPDATE w SET n = 100 / (n - #) WHERE g = 2",
    "UPDATE w SET t = source.b FROM source WHERE source.a = w.n AND w.g = #",
    "UPDATE w SET t = upper(t) WHERE g = # RETURNING k, t",
    "DELETE FROM w WHERE n = 9#",
    "DELETE FROM w WHERE g = 4 AND t = 't#9'",
    "DELETE FROM w WHERE d = '2024-01-1#' AND n > 200",
    "DELETE FROM w WHERE g = 'no#'",
    "DELETE FROM w USING source WHERE source.a = w.n AND w.g = #",
    "INSERT INTO w (k, n) SELECT max(k) + 1, # FROM w",
    "INSERT INTO w (k, t) SELECT max(k) + a, b FROM w, some GROUP BY a, b",
    "INSERT INTO w (k, g) VALUES ((SELECT max(k) FROM w) + 1, #)",
    "UPDATE w SET n = n - 1",
];

fn outcome(connection: &Connection, sql: &str) -> String {
    let run = || -> mainstem::Result<String> {
        let outcome = connection.run(sql)?.next().expect("one statement")?;
        let Some(rows) = outcome.rows else { return Ok(format!("{} {:?}", outcome.tag, outcome.rows_affected)) };
        let mut rows: Vec<String> =
            rows.rows().map(|row| Ok(format!("{:?}", row?.values()))).collect::<mainstem::Result<_>>()?;
        rows.sort();
        Ok(rows.join("\n"))
    };
    run().unwrap_or_else(|e| format!("{} {e}", e.sqlstate()))
}

#[test]
fn texts_of_writes_do_what_their_plans_do() {
    let sides = ["auto", "force_custom_plan"].map(connection);
    let [(_, kept), (_, planned)] = &sides;
    for round in 0..6 {
        for text in WRITES {
            let sql = text.replace('#', &(round % 5).to_string());
            assert_eq!(outcome(kept, &sql), outcome(planned, &sql), "{sql}");
        }
        let table = "SELECT * FROM w ORDER BY k";
        assert_eq!(rows(kept, table), rows(planned, table), "round {round}");
    }
    // Those that are wrong, and RETURNING of changes, have no plan; each other one has run by one at least twice.
    assert!(kept.kept_plan_runs() >= 2 * 15, "{}", kept.kept_plan_runs());
    assert_eq!(planned.kept_plan_runs(), 0);
}

#[test]
fn a_text_is_planned_at_most_twice_and_then_kept() {
    let (_database, connection) = connection("auto");
    for sql in [
        "UPDATE w SET n = n + 1 WHERE n > 5",
        "DELETE FROM w WHERE n BETWEEN 20 AND 25",
        "INSERT INTO w (k, n) SELECT max(k) + 1, 0 FROM w",
        "UPDATE w SET t = t || 'x' -- with a comment",
    ] {
        assert_eq!(kept(&connection, sql, 6), 4, "{sql}");
        let last = rows(&connection, &format!("EXPLAIN {sql}")).pop().unwrap();
        assert_eq!(last, "execution|kept plan", "{sql}");
    }
    // Values that differ at each run are one text.
    let before = connection.kept_plan_runs();
    for group in 0..6 {
        assert!(connection.execute(&format!("UPDATE w SET n = {group} WHERE g = {}", group % 5)).unwrap() > 0);
    }
    assert_eq!(connection.kept_plan_runs() - before, 4);
    let short = connection.short_statements();
    connection.execute("UPDATE w SET n = 1 WHERE k = 1").unwrap();
    assert_eq!(connection.short_statements() - short, 1, "what is short stays short");
}

#[test]
fn definitions_of_all_sessions_are_seen() {
    let (database, first) = connection("auto");
    let second = database.connect().unwrap();
    let text = "UPDATE w SET n = n + 1 WHERE g = 1";
    let sum = || rows(&first, "SELECT sum(n) FROM w WHERE g = 1");
    assert!(kept(&first, text, 5) > 0);
    let before: i64 = sum()[0].parse().unwrap();
    // Another session gives the table a CHECK by making it anew, with other columns.
    second.execute_batch("DROP TABLE w; CREATE TABLE w (g BIGINT, n TEXT)").unwrap();
    assert_eq!(code(&first, text), "42804");
    second
        .execute_batch("DROP TABLE w; CREATE TABLE w (g INTEGER, n INTEGER CHECK (n < 3)); INSERT INTO w VALUES (1, 1)")
        .unwrap();
    assert_eq!(first.execute(text).unwrap(), 1);
    assert_eq!(code(&first, text), "23514");
    assert_eq!(sum(), ["2"]);
    assert!(before > 2);
    // Its own session adds a column with a default, and takes one away.
    first.execute("ALTER TABLE w ADD COLUMN extra INTEGER DEFAULT 5").unwrap();
    let insert = "INSERT INTO w (g, n) SELECT g + 1, 0 FROM w WHERE g = 1";
    (0..4).for_each(|_| _ = first.execute(insert).unwrap());
    assert_eq!(rows(&first, "SELECT count(*), min(extra) FROM w"), ["5|5"]);
    first.execute("ALTER TABLE w DROP COLUMN n").unwrap();
    assert_eq!(code(&first, insert), "42703");
    assert_eq!(code(&first, text), "42703");
}

#[test]
fn views_settings_and_temporary_tables_are_seen() {
    let (database, connection) = connection("auto");
    let text = "INSERT INTO w (k, t) SELECT 1000 + max(w.k) + min(a), min(b) FROM w, some";
    assert!(kept(&connection, text, 4) > 0);
    assert_eq!(rows(&connection, "SELECT t FROM w ORDER BY k DESC LIMIT 1"), ["source 11"]);
    connection.execute("DROP VIEW some").unwrap();
    assert_eq!(code(&connection, text), "42P01");
    connection.execute("CREATE VIEW some AS SELECT a, 'another' AS b FROM source WHERE a = 20").unwrap();
    connection.execute(text).unwrap();
    assert_eq!(rows(&connection, "SELECT t FROM w ORDER BY k DESC LIMIT 1"), ["another"]);

    let update = "UPDATE w SET t = 'seen' WHERE n > 298";
    assert!(kept(&connection, update, 8) > 0);
    // A temporary table that hides the other one, of this session only.
    let other = database.connect().unwrap();
    connection.execute_batch("CREATE TEMP TABLE w (n INTEGER, t TEXT); INSERT INTO w VALUES (299, 'own')").unwrap();
    assert_eq!(connection.execute(update).unwrap(), 1);
    assert_eq!(rows(&connection, "SELECT t FROM w"), ["seen"]);
    assert_eq!(other.execute(update).unwrap(), 2);
    connection.execute("DROP TABLE w").unwrap();
    assert_eq!(connection.execute(update).unwrap(), 2);
    // Another search path, and settings that turn it off.
    connection.execute_batch("CREATE SCHEMA s; CREATE TABLE s.w (n INTEGER, t TEXT)").unwrap();
    connection.execute("SET search_path = s").unwrap();
    assert_eq!(connection.execute(update).unwrap(), 0);
    connection.execute("RESET search_path").unwrap();
    assert_eq!(connection.execute(update).unwrap(), 2);
    connection.execute("SET plan_cache_mode = force_custom_plan").unwrap();
    assert_eq!(kept(&connection, update, 4), 0);
    connection.execute("SET plan_cache_mode = auto").unwrap();
    assert!(kept(&connection, update, 8) > 0);
    connection.execute("BEGIN READ ONLY").unwrap();
    assert_eq!(code(&connection, update), "25006");
    connection.execute("ROLLBACK").unwrap();
}

#[test]
fn what_the_transaction_wrote_and_others_committed_is_seen() {
    let (database, first) = connection("auto");
    let second = database.connect().unwrap();
    let text = "UPDATE w SET n = 0 WHERE g = 7";
    assert!(kept(&first, text, 4) > 0);
    second.execute("UPDATE w SET g = 7 WHERE n BETWEEN 100 AND 104").unwrap();
    assert_eq!(first.execute(text).unwrap(), 5);
    first.execute("BEGIN").unwrap();
    first.execute("UPDATE w SET g = 7 WHERE n BETWEEN 200 AND 202").unwrap();
    assert_eq!(first.execute(text).unwrap(), 8);
    first.execute("ROLLBACK").unwrap();
    assert_eq!(first.execute(text).unwrap(), 5);
    // A conflict ends the transaction, whose text runs again once it is over.
    first.execute("BEGIN").unwrap();
    rows(&first, "SELECT 1");
    second.execute("UPDATE w SET n = 1 WHERE g = 7").unwrap();
    assert_eq!(code(&first, text), "40001");
    first.execute("ROLLBACK").unwrap();
    assert_eq!(first.execute(text).unwrap(), 5);
}

/// Texts of several statements, with `#` in the place of a number that is another one at each run.
const SEVERAL: &[&str] = &[
    "BEGIN; UPDATE w SET n = n + # WHERE k = 7; UPDATE w SET t = 'x;#' WHERE g = 1; COMMIT",
    "BEGIN; DELETE FROM w WHERE g = 1; SELECT count(*) FROM w; ROLLBACK; SELECT count(*) FROM w",
    "SELECT sum(n) FROM w WHERE g = 2; -- not; one\nSELECT n, t FROM w WHERE k = 2#;;",
    "CREATE TABLE mid (a INTEGER PRIMARY KEY, b TEXT); INSERT INTO mid VALUES (#, 'one'); SELECT * FROM mid; DROP TABLE mid",
    "CREATE TABLE mid (b TEXT, a INTEGER); INSERT INTO mid VALUES ('two', #); SELECT * FROM mid; DROP TABLE mid",
    "ALTER TABLE source ADD COLUMN c INTEGER DEFAULT #; SELECT * FROM source WHERE a = 3; ALTER TABLE source DROP COLUMN c; \
     SELECT * FROM source WHERE a = 3",
    "INSERT INTO source VALUES (5#, 'kept'); INSERT INTO w (k) VALUES (1); SELECT count(*) FROM source; DELETE FROM source WHERE a > 49",
    "SELECT 1; SELECT n / (g - g) FROM w WHERE k = 1; SELECT 2",
    "UPDATE w SET n = 1 WHERE k = 3; SELECT é, nothing FROM w WHERE g = #; SELECT k FROM w WHERE nowhere = 1; SELECT 3",
    "BEGIN; INSERT INTO w (k) VALUES (1); SAVEPOINT s; UPDATE w SET n = 0; ROLLBACK TO s; SELECT sum(n) FROM w; COMMIT",
    "SET search_path = s2; SELECT * FROM w; RESET search_path; SELECT count(*) FROM w",
    "PREPARE p (INTEGER) AS SELECT t FROM w WHERE k = $1; EXECUTE p (2#); DEALLOCATE p",
    "SELECT 1; SELECT $1",
    "UPDATE w SET n = n + 1 WHERE g = 1; SELECT 1 FROM (",
    "SELECT count(*) FROM w, some; SHOW search_path",
    "SELECT k, n FROM w WHERE g = # ORDER BY n DESC, k; SELECT t FROM w ORDER BY k DESC LIMIT 5 OFFSET #",
];

/// Outcomes of the statements of `sql`, with the places of errors.
fn outcomes(connection: &Connection, sql: &str) -> Vec<String> {
    let text = |e: mainstem::Error| format!("{} {e} at {:?}", e.sqlstate(), e.position());
    let statements = match connection.run(sql) {
        Ok(statements) => statements,
        Err(e) => return vec![text(e)],
    };
    let one = |outcome: mainstem::Result<mainstem::StatementOutcome>| {
        let outcome = outcome?;
        let mut lines = vec![format!("{} {:?} {:?}", outcome.tag, outcome.rows_affected, outcome.notices)];
        for row in outcome.rows.into_iter().flat_map(|rows| rows.rows()) {
            lines.push(format!("{:?}", row?.values()));
        }
        if !sql.contains("ORDER BY") {
            lines[1..].sort();
        }
        Ok(lines.join("\n"))
    };
    statements.map(|outcome| one(outcome).unwrap_or_else(text)).collect()
}

#[test]
fn texts_of_several_statements_do_what_they_do_parsed_anew() {
    let sides = ["auto", "force_custom_plan"].map(connection);
    let [(_, kept), (_, parsed)] = &sides;
    for side in [kept, parsed] {
        side.execute_batch("CREATE SCHEMA s2; CREATE TABLE s2.w (here TEXT); INSERT INTO s2.w VALUES ('s2')").unwrap();
    }
    for round in 0..12 {
        for text in SEVERAL {
            let sql = text.replace('#', &(round % 2).to_string());
            assert_eq!(outcomes(kept, &sql), outcomes(parsed, &sql), "{sql} in round {round}");
        }
        let table = "SELECT * FROM w ORDER BY k";
        assert_eq!(rows(kept, table), rows(parsed, table), "round {round}");
    }
}

#[test]
fn statements_of_a_text_are_kept_each() {
    let (database, connection) = connection("auto");
    let text = "BEGIN; UPDATE w SET n = n + 1 WHERE k = 7; SELECT g, sum(n) FROM w GROUP BY g; COMMIT";
    let (short, plans) = (connection.short_statements(), connection.kept_plan_runs());
    (0..8).for_each(|_| _ = connection.execute(text).unwrap());
    assert_eq!(connection.short_statements() - short, 8);
    assert!(connection.kept_plan_runs() - plans >= 4, "{}", connection.kept_plan_runs() - plans);
    let kept = rows(&connection, "SELECT execution FROM mainstem.plans WHERE statement LIKE '%GROUP BY g'");
    assert_eq!(kept, ["kept plan"]);
    // So are those of texts that never come back, where they differ in literals alone.
    let short = connection.short_statements();
    for n in 0..8 {
        let text = format!("BEGIN; UPDATE w SET n = {n} WHERE k = {}; COMMIT", n % 5);
        connection.execute(&text).unwrap();
    }
    assert!(connection.short_statements() - short >= 6, "{}", connection.short_statements() - short);
    // What another session makes of the table is seen by the next run.
    let second = database.connect().unwrap();
    second.execute_batch("DROP TABLE w; CREATE TABLE w (k INTEGER, n TEXT, g INTEGER)").unwrap();
    assert_eq!(code(&connection, text), "42804");
    connection.execute("ROLLBACK").unwrap();
    second
        .execute_batch("DROP TABLE w; CREATE TABLE w (k INTEGER, n INTEGER, g TEXT); INSERT INTO w VALUES (7, 1, 'x')")
        .unwrap();
    assert_eq!(connection.execute(text).unwrap(), 1);
    assert_eq!(rows(&connection, "SELECT * FROM w"), ["7|2|x"]);
    // Of a text with a statement that is wrong nothing runs, however often.
    for _ in 0..4 {
        assert_eq!(code(&connection, "UPDATE w SET n = 9; SELECT 1 FROM ("), "42601");
    }
    assert_eq!(rows(&connection, "SELECT n FROM w"), ["2"]);
}
