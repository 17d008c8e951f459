use std::sync::Arc;

use mainstem::Database;

use super::{Completion, Mode};

fn completion(script: &str) -> Completion {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection.execute(script).unwrap();
    Completion::new(Arc::new(connection))
}

/// What a Tab at the `^` of `marked` may make of the line up to there.
fn offered(completion: &Completion, marked: &str) -> Vec<String> {
    let (line, at) = (marked.replace('^', ""), marked.find('^').unwrap());
    let (start, candidates) = completion.candidates(&line, at);
    assert_eq!(completion.completes(&line, at), !candidates.is_empty(), "{marked}");
    candidates.into_iter().map(|candidate| format!("{}{}", &line[..start], candidate.replacement)).collect()
}

const TABLES: &str = "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, amount INTEGER); \
    CREATE TABLE origins (name TEXT, \"Nation\" TEXT); \
    CREATE SCHEMA sales; CREATE TABLE sales.targets (name TEXT, target INTEGER); \
    CREATE VIEW ordered AS SELECT id AS number FROM orders";

#[test]
fn keywords_keep_their_letters() {
    let completion = completion("SELECT 1");
    assert_eq!(offered(&completion, "SELE^"), ["SELECT "]);
    assert_eq!(offered(&completion, "sele^"), ["select "]);
    assert_eq!(offered(&completion, "SELECT 1 GR^"), ["SELECT 1 GROUP", "SELECT 1 GROUPING"]);
    assert!(!completion.completes("SELECT", 6) && !completion.completes("select", 6), "there is nothing to add");
    assert!(!completion.completes("nonsens", 7));
}

#[test]
fn names_come_from_the_catalog() {
    let completion = completion(TABLES);
    assert_eq!(offered(&completion, "SELECT * FROM ord^"), ["SELECT * FROM ordered", "SELECT * FROM orders"]);
    assert_eq!(offered(&completion, "SELECT * FROM ori^"), ["SELECT * FROM origins "]);
    assert_eq!(offered(&completion, "SELECT * FROM ORI^"), ["SELECT * FROM origins "]);
    assert_eq!(offered(&completion, "SELECT * FROM sal^"), ["SELECT * FROM sales."]);
    assert_eq!(offered(&completion, "SELECT * FROM sales.^"), ["SELECT * FROM sales.targets "]);
    assert_eq!(offered(&completion, "SELECT * FROM mainstem.cont^"), ["SELECT * FROM mainstem.containers "]);
    assert_eq!(offered(&completion, "SELECT am^"), ["SELECT amount "]);
    assert_eq!(offered(&completion, "SELECT am^ FROM origins"), Vec::<String>::new());
    assert_eq!(offered(&completion, "SELECT nam^ FROM orders"), ["SELECT name "]);
    assert_eq!(offered(&completion, "SELECT o.na^ FROM orders o"), ["SELECT o.name "]);
    assert_eq!(offered(&completion, "SELECT o.^ FROM origins o"), ["SELECT o.name", "SELECT o.\"Nation\""]);
    assert_eq!(offered(&completion, "SELECT \"na^ FROM origins"), ["SELECT \"Nation\"", "SELECT \"name\""]);
    assert_eq!(offered(&completion, "SELECT numb^ FROM ordered"), ["SELECT number "]);
    assert_eq!(offered(&completion, "SELECT wal.app^ FROM mainstem.wal"), ["SELECT wal.applied "]);
    assert_eq!(offered(&completion, "UPDATE sales.targets SET tar^"), ["UPDATE sales.targets SET target "]);
    assert_eq!(offered(&completion, "SET thr^"), ["SET threads "]);
    assert_eq!(offered(&completion, "\\d sales.t^"), ["\\d sales.targets "]);
    assert_eq!(offered(&completion, "\\tim^"), ["\\timing "]);
    assert_eq!(offered(&completion, "\\x of^"), ["\\x off"]);
}

#[test]
fn names_are_read_again_when_they_have_changed() {
    let completion = completion(TABLES);
    assert_eq!(offered(&completion, "SELECT * FROM ori^"), ["SELECT * FROM origins "]);
    completion.connection.execute("ALTER TABLE origins RENAME TO originals; SET search_path = sales, public").unwrap();
    assert_eq!(offered(&completion, "SELECT * FROM ori^"), ["SELECT * FROM origins "]);
    completion.forget();
    assert_eq!(offered(&completion, "SELECT * FROM ori^"), ["SELECT * FROM originals "]);
    assert_eq!(offered(&completion, "SELECT * FROM tar^"), ["SELECT * FROM targets "]);
}

#[test]
fn an_open_transaction_is_seen_and_not_disturbed() {
    let database = Database::in_memory().unwrap();
    let (one, other) = (database.connect().unwrap(), database.connect().unwrap());
    one.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, amount INTEGER); INSERT INTO t VALUES (1, 1)").unwrap();
    let completion = Completion::new(Arc::new(one));
    let connection = &completion.connection;
    // Alone, DROP takes the state at its commit; behind a statement that has seen rows it would be a conflict.
    connection.execute("BEGIN; CREATE TEMP TABLE drafts (draft INTEGER)").unwrap();
    assert_eq!(offered(&completion, "SELECT * FROM dra^"), ["SELECT * FROM drafts "]);
    connection.execute("ROLLBACK; BEGIN").unwrap();
    completion.forget();
    assert_eq!(offered(&completion, "SELECT am^ FROM t"), ["SELECT amount "]);
    other.execute("UPDATE t SET amount = 2").unwrap();
    connection.execute("DROP TABLE t; COMMIT").unwrap();
}

#[test]
fn a_failed_transaction_is_asked_nothing() {
    let database = Database::in_memory().unwrap();
    let (one, other) = (database.connect().unwrap(), database.connect().unwrap());
    one.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, amount INTEGER); INSERT INTO t VALUES (1, 1)").unwrap();
    let completion = Completion::new(Arc::new(one));
    let connection = &completion.connection;
    connection.execute("BEGIN; SELECT * FROM t").unwrap();
    other.execute("UPDATE t SET amount = 2").unwrap();
    assert_eq!(connection.execute("UPDATE t SET amount = 3").unwrap_err().sqlstate(), "40001");
    assert_eq!(offered(&completion, "SELECT am^"), Vec::<String>::new());
    assert_eq!(offered(&completion, "ROLLB^"), ["ROLLBACK "]);
    connection.execute("ROLLBACK").unwrap();
    assert_eq!(offered(&completion, "SELECT am^"), ["SELECT amount "]);
}

#[test]
fn lines_before_belong_to_the_statement_and_data_to_nothing() {
    let completion = completion(TABLES);
    completion.expect(Mode::Sql { before: "SELECT *\nFROM origins\n".into() });
    assert_eq!(offered(&completion, "WHERE na^"), ["WHERE \"Nation\"", "WHERE name", "WHERE natural"]);
    assert_eq!(offered(&completion, "^"), Vec::<String>::new());
    assert_eq!(offered(&completion, " \t^"), Vec::<String>::new());
    assert_eq!(offered(&completion, "\\tim^"), ["\\timing "]);
    completion.expect(Mode::Sql { before: "SELECT '\n".into() });
    assert_eq!(offered(&completion, "SEL^"), Vec::<String>::new());
    completion.expect(Mode::Data);
    assert_eq!(offered(&completion, "SEL^"), Vec::<String>::new());
}

#[test]
fn files_are_completed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    for name in ["data/my rows.sql", "data/.hidden", "load.sql", "log.txt"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let completion = completion("SELECT 1");
    let folder = folder.path().to_str().unwrap();
    let relative = |marked: &str| {
        let found = offered(&completion, &format!("\\i {folder}/{marked}"));
        found.iter().map(|line| line.replace(&format!("\\i {folder}/"), "")).collect::<Vec<_>>()
    };
    assert_eq!(relative("l^"), ["load.sql", "log.txt"]);
    assert_eq!(relative("d^"), ["data/"]);
    assert_eq!(relative("data/^"), ["data/my rows.sql"]);
    assert_eq!(relative("data/my r^"), ["data/my rows.sql"]);
    assert_eq!(relative("data/.^"), ["data/.hidden"]);
    assert_eq!(relative("nothing/^"), Vec::<String>::new());
}
