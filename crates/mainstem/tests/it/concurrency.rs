//! Many connections at once: what snapshot isolation promises, and that single statements never show a conflict.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use mainstem::{Connection, Database, ErrorKind, OpenOptions};

use super::support::{code, rows};

/// A database that freezes and merges all the time.
fn busy() -> Database {
    let options = OpenOptions::new().delta_rows(200).segment_rows(150);
    Database::in_memory_with(options).unwrap()
}

fn one(connection: &Connection, sql: &str) -> i64 {
    let rows = rows(connection, sql);
    assert_eq!(rows.len(), 1, "{sql}");
    rows[0].parse().unwrap()
}

/// Runs `work` on `threads` threads at once, each with a connection of its own.
fn at_once(database: &Database, threads: usize, work: impl Fn(usize, &Connection) + Sync) {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        for number in 0..threads {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                let connection = database.connect().unwrap();
                start.wait();
                work(number, &connection);
            });
        }
    });
}

/// Eight connections count one counter up, each statement a transaction of its own: every one succeeds and none is
/// lost.
fn hot_counter(database: &Database, each: usize) {
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n BIGINT)").unwrap();
    connection.execute("INSERT INTO counter VALUES (1, 0), (2, 0)").unwrap();
    at_once(database, 8, |_, connection| {
        for _ in 0..each {
            let counted = connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1");
            assert_eq!(counted.unwrap_or_else(|e| panic!("{e:?}")), 1);
        }
    });
    assert_eq!(rows(&connection, "SELECT * FROM counter ORDER BY id"), [format!("1|{}", 8 * each), "2|0".into()]);
}

#[test]
fn a_hot_counter_in_memory_loses_nothing_and_never_conflicts() {
    hot_counter(&busy(), 40);
}

#[test]
fn a_hot_counter_on_disk_loses_nothing_and_never_conflicts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let database = Database::open(&path).unwrap();
    hot_counter(&database, 25);
    database.close().unwrap();
    let database = Database::open(&path).unwrap();
    assert_eq!(one(&database.connect().unwrap(), "SELECT n FROM counter WHERE id = 1"), 200);
}

/// Sixteen connections count one counter up, half of them through plans, while its row is moved all the time: each
/// statement runs twice, once more behind the closed gate, and once more at most for each other one that was past the
/// gate.
#[test]
fn statements_on_a_hot_row_run_a_bounded_number_of_times() {
    const THREADS: usize = 16;
    const EACH: usize = 20;
    let database = busy();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n BIGINT)").unwrap();
    connection.execute("INSERT INTO counter VALUES (1, 0)").unwrap();
    let table = connection.table("counter").unwrap().id;
    database.storage().take_statement_runs_max();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                database.storage().flush(table).unwrap();
                database.storage().merge(table).unwrap();
            }
        });
        let counted = thread::scope(|inner| {
            let count = || {
                at_once(&database, THREADS, |number, connection| {
                    let path = if number % 2 == 0 { "on" } else { "off" };
                    connection.execute(&format!("SET point_path = {path}")).unwrap();
                    let count = connection.prepare("UPDATE counter SET n = n + 1 WHERE id = $1").unwrap();
                    for _ in 0..EACH {
                        assert_eq!(count.execute([1]).unwrap_or_else(|e| panic!("{e:?}")), 1);
                    }
                });
            };
            inner.spawn(count).join()
        });
        done.store(true, Ordering::Relaxed);
        counted.unwrap();
    });
    assert_eq!(one(&connection, "SELECT n FROM counter"), (THREADS * EACH) as i64);
    let runs = database.storage().take_statement_runs_max();
    println!("at most {runs} runs");
    assert!(runs as usize <= 2 + THREADS, "{runs} runs of one statement");
}

/// A statement that rewrites a whole table commits although small writers change rows of it all the time.
#[test]
fn an_update_of_a_whole_table_commits_beside_small_writers() {
    let database = busy();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, whole INTEGER, small INTEGER)").unwrap();
    connection.execute("INSERT INTO t SELECT i, 0, 0 FROM generate_series(1, 3000) AS g(i)").unwrap();
    let (done, failed, small) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for writer in 0..3 {
            let (done, failed, small, database) = (&done, &failed, &small, &database);
            scope.spawn(move || {
                let connection = database.connect().unwrap();
                let mut k = writer;
                while !done.load(Ordering::Relaxed) {
                    k = (k + 701) % 3000;
                    let sql = format!("UPDATE t SET small = small + 1 WHERE k = {}", k + 1);
                    let written = connection.execute(&sql);
                    failed.fetch_or(written.is_err(), Ordering::Relaxed);
                    small.fetch_add(written.unwrap(), Ordering::Relaxed);
                }
            });
        }
        // Caught, so that the writers end before the test does.
        let whole = thread::scope(|inner| {
            let whole = inner.spawn(|| {
                let connection = database.connect().unwrap();
                let update = |_| {
                    // Writers are under way, whenever they got a core.
                    let before = small.load(Ordering::Relaxed);
                    while small.load(Ordering::Relaxed) < before + 3 && !failed.load(Ordering::Relaxed) {
                        thread::yield_now();
                    }
                    connection.execute("UPDATE t SET whole = whole + 1")
                };
                (0..3).map(update).collect::<Vec<_>>()
            });
            whole.join()
        });
        done.store(true, Ordering::Relaxed);
        for updated in whole.unwrap() {
            assert_eq!(updated.unwrap(), 3000);
        }
    });
    let small = small.load(Ordering::Relaxed);
    let sums = "SELECT count(*), min(whole), max(whole), sum(small) FROM t";
    assert_eq!(rows(&connection, sums), [format!("3000|3|3|{small}")]);
}

/// Money moves between accounts in explicit transactions, which are run again after a conflict; whoever reads, with one
/// statement or with two in a transaction, sees the same total.
#[test]
fn every_reader_sees_the_same_total_while_money_moves() {
    let database = busy();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT NOT NULL)").unwrap();
    connection.execute("INSERT INTO account SELECT i, 100 FROM generate_series(1, 10) AS g(i)").unwrap();
    let conflicts = AtomicU64::new(0);
    at_once(&database, 4, |number, connection| {
        if number == 0 {
            for _ in 0..40 {
                assert_eq!(one(connection, "SELECT sum(balance) FROM account"), 1000);
                connection.execute("BEGIN").unwrap();
                let low = one(connection, "SELECT sum(balance) FROM account WHERE id <= 5");
                let high = one(connection, "SELECT sum(balance) FROM account WHERE id > 5");
                connection.execute("COMMIT").unwrap();
                assert_eq!(low + high, 1000);
            }
            return;
        }
        for round in 0..20_usize {
            let (from, to) = ((round * 7 + number) % 10 + 1, (round * 3 + number * 5 + 1) % 10 + 1);
            while !transfer(connection, from, to) {
                conflicts.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    assert_eq!(rows(&connection, "SELECT count(*), sum(balance) FROM account"), ["10|1000"]);
}

/// Moves 1 between two accounts; false after a conflict, the only way it may fail.
fn transfer(connection: &Connection, from: usize, to: usize) -> bool {
    let transaction = connection.transaction().unwrap();
    let moved = transaction
        .execute(&format!("UPDATE account SET balance = balance - 1 WHERE id = {from}"))
        .and_then(|_| transaction.execute(&format!("UPDATE account SET balance = balance + 1 WHERE id = {to}")));
    let outcome = match moved {
        Ok(_) => transaction.commit(),
        Err(e) => {
            transaction.rollback();
            Err(e)
        }
    };
    match outcome {
        Ok(()) => true,
        Err(e) => {
            assert_eq!((e.kind(), e.sqlstate()), (ErrorKind::Conflict, "40001"), "{e:?}");
            false
        }
    }
}

/// Of many connections that insert one key, or make one table, exactly one succeeds; the others get the error a later
/// one would have got.
#[test]
fn one_of_many_inserts_of_a_key_wins() {
    let database = busy();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, who INTEGER)").unwrap();
    let (won, made) = (AtomicU64::new(0), AtomicU64::new(0));
    at_once(&database, 6, |number, connection| {
        for k in 0..15 {
            match code(connection, &format!("INSERT INTO t VALUES ({k}, {number})")) {
                "no error" => won.fetch_add(1, Ordering::Relaxed),
                other => {
                    assert_eq!(other, "23505");
                    0
                }
            };
        }
        for table in 0..5 {
            match code(connection, &format!("CREATE TABLE made_{table} (a INTEGER)")) {
                "no error" => made.fetch_add(1, Ordering::Relaxed),
                other => {
                    assert_eq!(other, "42P07");
                    0
                }
            };
        }
    });
    assert_eq!((won.into_inner(), made.into_inner()), (15, 5));
    assert_eq!(one(&connection, "SELECT count(*) FROM t"), 15);
    assert_eq!(one(&connection, "SELECT count(*) FROM mainstem.tables"), 6);
}

/// Rows that are inserted, updated and deleted by many connections at once, while tables are frozen and merged by hand.
#[test]
fn writers_of_different_rows_never_conflict_with_merges() {
    let database = busy();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER)").unwrap();
    let table = connection.table("t").unwrap().id;
    let done = Arc::new(AtomicBool::new(false));
    let merger = thread::spawn({
        let (done, database) = (done.clone(), database.clone());
        move || {
            while !done.load(Ordering::Relaxed) {
                database.storage().freeze(table).unwrap();
                database.storage().merge(table).unwrap();
            }
        }
    });
    at_once(&database, 3, |number, connection| {
        for round in 0..30 {
            let k = round * 10 + number;
            let transaction = connection.transaction().unwrap();
            let run = |sql: String| assert_eq!(transaction.execute(&sql).unwrap(), 1, "{sql}");
            run(format!("INSERT INTO t VALUES ({k}, {round})"));
            run(format!("UPDATE t SET v = v + 1 WHERE k = {k}"));
            if round > 0 {
                run(format!("UPDATE t SET v = v + 1 WHERE k = {}", k - 10));
            }
            if round > 1 {
                run(format!("DELETE FROM t WHERE k = {}", k - 20));
            }
            transaction.commit().unwrap();
        }
    });
    done.store(true, Ordering::Relaxed);
    merger.join().unwrap();
    let left: Vec<String> =
        (0..3).map(|n| format!("{}|30", 280 + n)).chain((0..3).map(|n| format!("{}|30", 290 + n))).collect();
    assert_eq!(rows(&connection, "SELECT * FROM t ORDER BY k"), left);
}

/// Connections that upsert the same few keys, each statement a transaction of its own: none conflicts, and the counts
/// are exact.
#[test]
fn upserts_of_hot_keys_lose_nothing_and_never_conflict() {
    let database = busy();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE hits (k INTEGER PRIMARY KEY, n BIGINT, first INTEGER)").unwrap();
    let inserted = AtomicU64::new(0);
    at_once(&database, 8, |number, connection| {
        for round in 0..20 {
            let sql = format!(
                "INSERT INTO hits VALUES (0, 1, {number}), ({}, 1, {number}) ON CONFLICT (k) DO UPDATE SET n = hits.n + 1",
                1 + round % 3
            );
            assert_eq!(connection.execute(&sql).unwrap_or_else(|e| panic!("{e:?}")), 2);
            let sql = format!("INSERT INTO hits VALUES ({}, 0, {number}) ON CONFLICT DO NOTHING", 100 + round);
            inserted.fetch_add(connection.execute(&sql).unwrap_or_else(|e| panic!("{e:?}")), Ordering::Relaxed);
        }
    });
    let counts = rows(&connection, "SELECT k, n FROM hits WHERE k < 100 ORDER BY k");
    assert_eq!(counts, ["0|160", "1|56", "2|56", "3|48"]);
    assert_eq!((inserted.into_inner(), one(&connection, "SELECT count(*) FROM hits WHERE k >= 100")), (20, 20));
}

/// What RETURNING gives is what was committed: no two connections are given the same number.
#[test]
fn returning_gives_each_connection_numbers_of_its_own() {
    let database = busy();
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n BIGINT)").unwrap();
    connection.execute("INSERT INTO counter VALUES (1, 0)").unwrap();
    let given = Mutex::new(Vec::new());
    at_once(&database, 6, |_, connection| {
        for _ in 0..15 {
            let n = one(connection, "UPDATE counter SET n = n + 1 WHERE id = 1 RETURNING n");
            given.lock().unwrap().push(n);
        }
    });
    let mut given = given.into_inner().unwrap();
    given.sort_unstable();
    assert_eq!(given, (1..=90).collect::<Vec<_>>());
}

/// Eight connections, through plans and through the point path, want the same values of a UNIQUE key for rows of their
/// own, and give some back: each value has one row, whoever loses is told so, and nobody sees a conflict.
#[test]
fn a_unique_key_has_one_winner_and_never_conflicts() {
    const VALUES: usize = 60;
    let database = busy();
    let connection = database.connect().unwrap();
    connection
        .execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER UNIQUE, b TEXT UNIQUE, tries INTEGER NOT NULL)")
        .unwrap();
    let (won, lost, raised) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    at_once(&database, 8, |thread, connection| {
        connection.execute(&format!("SET point_path = {}", if thread % 2 == 0 { "on" } else { "off" })).unwrap();
        let insert = connection.prepare("INSERT INTO t VALUES ($1, $2, NULL, 0)").unwrap();
        let update = connection.prepare("UPDATE t SET b = $2 WHERE a = $1").unwrap();
        let raise = "INSERT INTO t VALUES ($1, $2, NULL, 0) ON CONFLICT (a) DO UPDATE SET tries = t.tries + 1";
        let raise = connection.prepare(raise).unwrap();
        for value in 0..VALUES {
            let key = (value * 8 + thread) as i32;
            match insert.execute((key, value as i32)) {
                Ok(1) => _ = won.fetch_add(1, Ordering::Relaxed),
                Err(e) if e.sqlstate() == "23505" => {
                    assert!(e.message().contains("\"t_a_key\""), "{e}");
                    lost.fetch_add(1, Ordering::Relaxed);
                }
                other => panic!("{other:?}"),
            }
            raised.fetch_add(raise.execute((100_000 + key, value as i32)).unwrap(), Ordering::Relaxed);
            // One text for all rows: moves from row to row as it is taken away.
            match update.execute((value as i32, "the one")) {
                Ok(1) => _ = update.execute((value as i32, None::<&str>)).unwrap(),
                Err(e) if e.sqlstate() == "23505" => assert!(e.message().contains("\"t_b_key\""), "{e}"),
                other => panic!("{other:?}"),
            }
        }
    });
    let [won, lost, raised] = [won, lost, raised].map(AtomicU64::into_inner);
    assert_eq!((won, lost, raised), (VALUES as u64, 7 * VALUES as u64, 8 * VALUES as u64));
    let sums = "SELECT count(*), count(DISTINCT a), min(tries), max(tries), count(b) FROM t";
    assert_eq!(rows(&connection, sums), [format!("{VALUES}|{VALUES}|8|8|0")]);
}
