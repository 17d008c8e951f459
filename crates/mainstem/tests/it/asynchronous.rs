//! The async twins: the same answers, no blocked thread, futures that cancel when they are dropped.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use mainstem::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use mainstem::{AsyncConnection, AsyncStatement, AsyncTransaction, Database};

use super::support::{quiet, rows};

/// A query that runs for hours unless it is stopped.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 1000000) AS a(x) CROSS JOIN generate_series(1, 1000000) AS b(y) \
                       WHERE x * 7 % 1000003 < y * 11 % 1000033";

/// A runtime with one thread: a call that blocked it would stop everything else.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn with_table() -> (Database, AsyncConnection) {
    let database = quiet();
    let connection = database.connect_async().unwrap();
    connection.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)").await.unwrap();
    (database, connection)
}

#[test]
fn what_tasks_may_do() {
    fn share<T: Send + Sync + 'static>() {}
    share::<AsyncConnection>();
    share::<AsyncStatement>();
    share::<AsyncTransaction>();
    fn send<T: Send>(_: T) {}
    let connection = quiet().connect_async().unwrap();
    send(connection.execute("SELECT 1"));
    send(connection.query_row("SELECT $1", ["text"]));
    send(connection.transaction());
}

#[test]
fn every_call_has_an_asynchronous_form() {
    block_on(async {
        let (_database, connection) = with_table().await;
        let insert = connection.prepare("INSERT INTO t VALUES ($1, $2)").await.unwrap();
        assert_eq!(insert.parameter_count(), 2);
        for k in 0..3 {
            // Parameters are the caller's; they need not live as long as the statement runs.
            let text = format!("row {k}");
            assert_eq!(insert.execute((k, &text)).await.unwrap(), 1);
        }
        assert_eq!(connection.execute_with("UPDATE t SET v = $1 WHERE k > $2", (None::<&str>, 1)).await.unwrap(), 1);
        let row = connection.query_row("SELECT v FROM t WHERE k = $1", [1]).await.unwrap();
        assert_eq!(row.get::<&str>(0).unwrap(), "row 1");
        let select = connection.prepare("SELECT k, v FROM t WHERE k >= $1 ORDER BY k").await.unwrap();
        assert_eq!(select.columns().await.unwrap()[1].name(), "v");
        let mut found = select.query([1]).await.unwrap();
        assert_eq!(found.next_row().await.unwrap().unwrap().get::<i32>(0).unwrap(), 1);
        assert_eq!(found.next().await.unwrap().unwrap().get::<Option<String>>(1).unwrap(), None);
        assert!(found.next_row().await.unwrap().is_none());
        assert!(select.query_optional([9]).await.unwrap().is_none());
        assert_eq!(select.query_row([9]).await.unwrap_err().sqlstate(), "02000");
        assert_eq!(select.query_batches([0]).await.unwrap().collect_batches().await.unwrap()[0].num_rows(), 3);
        assert_eq!(connection.query("SHOW threads").await.unwrap().collect_batches().await.unwrap().len(), 1);
        let columns: [(&str, ArrayRef); 2] = [
            ("k", std::sync::Arc::new(Int32Array::from(vec![10, 11]))),
            ("v", std::sync::Arc::new(StringArray::from(vec!["a", "b"]))),
        ];
        assert_eq!(connection.append("t", vec![RecordBatch::try_from_iter(columns).unwrap()]).await.unwrap(), 2);
        assert_eq!(connection.copy_in("COPY t FROM STDIN", &b"20\tcopied\n"[..]).await.unwrap(), 1);
        let (count, data) =
            connection.copy_out("COPY (SELECT * FROM t WHERE k > 10) TO STDOUT", Vec::new()).await.unwrap();
        assert_eq!((count, data.len()), (2, "11\tb\n20\tcopied\n".len()));
        assert_eq!(connection.table("t").await.unwrap().columns.len(), 2);
        assert_eq!(connection.execute("SELECT 1 / 0").await.unwrap_err().sqlstate(), "22012");
        assert_eq!(connection.prepare("SELEC").await.unwrap_err().sqlstate(), "42601");
    });
}

/// The names of the public functions of the type that `source` implements last before `end`.
fn public_functions(source: &str, of: &str) -> BTreeSet<String> {
    let blocks = source.match_indices(of).map(|(from, _)| source[from..].split("\n}\n").next().unwrap());
    let name = |line: &str| {
        let rest = line.trim().strip_prefix("pub fn ").or_else(|| line.trim().strip_prefix("pub async fn "))?;
        Some(rest[..rest.find(['(', '<'])?].to_owned())
    };
    blocks.flat_map(str::lines).filter_map(name).collect()
}

#[test]
fn no_call_lacks_its_asynchronous_form() {
    macro_rules! api {
        ($file:literal) => {
            include_str!(concat!("../../src/api/", $file))
        };
    }
    // A connection's calls stand beside what they give.
    let asynchronous = [
        api!("asynchronous/connection.rs"),
        api!("asynchronous/appender.rs"),
        api!("asynchronous/retry.rs"),
        api!("asynchronous/transaction.rs"),
    ]
    .concat();
    // What only counts for the tests of others, what iterates over a script, for a future cannot lend, and what is for
    // who cannot wait.
    let only_here = ["run", "run_if_short", "short_statements", "kept_plan_runs", "kept_plan_key_reads"];
    for (here, of, twin) in [
        (api!("connection.rs"), "impl Connection {", "impl AsyncConnection {"),
        (api!("statement.rs"), "impl<'a> Statement<'a> {", "impl AsyncStatement {"),
        (api!("transaction.rs"), "impl<'a> Transaction<'a> {", "impl AsyncTransaction {"),
        (api!("appender.rs"), "impl<'a> Appender<'a> {", "impl AsyncAppender {"),
    ] {
        let (calls, twins) = (public_functions(here, of), public_functions(&asynchronous, twin));
        let missing: Vec<_> = calls.difference(&twins).filter(|call| !only_here.contains(&call.as_str())).collect();
        assert!(calls.len() > 4 && missing.is_empty(), "{twin} lacks {missing:?}");
    }
}

#[test]
fn a_transaction_and_an_appender_are_awaited() {
    block_on(async {
        let (_database, connection) = with_table().await;
        let mut appender = connection.appender("t").await.unwrap();
        for k in 0..10_000 {
            appender.append_row((k, "kept")).await.unwrap();
        }
        assert_eq!(appender.append_row((1,)).await.unwrap_err().sqlstate(), "42804");
        assert_eq!(appender.pending_rows(), 10_000);
        assert_eq!(appender.flush().await.unwrap(), 10_000);
        appender.append_row((5, "again")).await.unwrap();
        assert_eq!(appender.flush().await.unwrap_err().sqlstate(), "23505");
        assert_eq!((appender.pending_rows(), appender.finish().await.unwrap()), (0, 0));

        let transaction = connection.transaction().await.unwrap();
        assert_eq!(connection.status().await.unwrap(), mainstem::TransactionStatus::Open);
        transaction.execute_batch("DELETE FROM t WHERE k >= 10; UPDATE t SET v = 'x' WHERE k = 3").await.unwrap();
        let mut some = transaction.appender_to_columns("t", &["k"]).await.unwrap();
        some.append_row([77]).await.unwrap();
        some.finish().await.unwrap();
        assert_eq!(transaction.copy_in("COPY t FROM STDIN", &b"88\tcopied\n"[..]).await.unwrap(), 1);
        let mut rows = transaction.query_with("SELECT k, v FROM t WHERE k > $1 ORDER BY k", [8]).await.unwrap();
        let mut keys = Vec::new();
        while let Some(row) = rows.next_row().await.unwrap() {
            keys.push(row.get::<i32>(0).unwrap());
        }
        assert_eq!(keys, [9, 77, 88]);
        let (count, data) =
            transaction.copy_out("COPY (SELECT v FROM t WHERE k = 3) TO STDOUT", Vec::new()).await.unwrap();
        assert_eq!((count, data.as_slice()), (1, &b"x\n"[..]));
        transaction.rollback().await.unwrap();
        let count = connection.query_row("SELECT count(*) FROM t", ()).await.unwrap();
        assert_eq!(count.get::<i64>(0).unwrap(), 10_000);
        let types = connection.prepare("SELECT v FROM t WHERE k = $1").await.unwrap().parameter_types().await.unwrap();
        assert_eq!(types.len(), 1);
    });
}

#[test]
fn a_thread_of_the_callers_runtime_is_not_blocked() {
    block_on(async {
        let (_database, connection) = with_table().await;
        let running = tokio::spawn({
            let connection = connection.clone();
            async move { connection.execute(&format!("INSERT INTO t (k) {ENDLESS}")).await }
        });
        // The only thread of the runtime goes on while the statement runs.
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!running.is_finished());
        // Again and again: the statement may not have begun yet.
        while !running.is_finished() {
            connection.interrupt_handle().interrupt();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(running.await.unwrap().unwrap_err().sqlstate(), "57014");
        // Without any runtime of tokio, too.
        let row = futures::executor::block_on(connection.query_row("SELECT count(*) FROM t", ())).unwrap();
        assert_eq!(row.get::<i64>(0).unwrap(), 0);
    });
}

#[test]
fn a_dropped_future_cancels_its_statement_and_no_other() {
    block_on(async {
        let (database, connection) = with_table().await;
        // A statement that was not canceled would take hours.
        for round in 0..5_u64 {
            // Dropped at several moments: before it started, or while it runs.
            let statement = format!("INSERT INTO t (k) {ENDLESS}");
            let late =
                tokio::time::timeout(Duration::from_millis(round * round * 4), connection.execute(&statement)).await;
            assert!(late.is_err());
            // The next call runs, and gets its own answer.
            let sql = "INSERT INTO t VALUES ($1, 'after')";
            assert_eq!(connection.execute_with(sql, [i32::try_from(round).unwrap()]).await.unwrap(), 1);
        }
        // A call that waits for its turn can be dropped without harm to the one that runs, which does not come to its
        // end before.
        let table = database.connect().unwrap().table("t").unwrap().id;
        let gate = database.storage().close_write_gate(table, || Ok(())).unwrap();
        let first = connection.execute("INSERT INTO t SELECT 100 + i, 'x' FROM generate_series(1, 50000) i");
        let mut first = Box::pin(first);
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(connection.execute("DELETE FROM t"));
        assert!(futures::poll!(&mut second).is_pending());
        drop(second);
        drop(gate);
        assert_eq!(first.await.unwrap(), 50_000);
        let row = connection.query_row("SELECT count(*) FROM t WHERE k < 100", ()).await.unwrap();
        assert_eq!(row.get::<i64>(0).unwrap(), 5);
    });
}

#[test]
fn a_result_that_is_dropped_ends_its_query() {
    block_on(async {
        let (_database, connection) = with_table().await;
        let mut endless =
            connection.query("SELECT x FROM generate_series(1, 1000000000000) AS a(x)").await.unwrap().rows();
        for _ in 0..10_000 {
            endless.next_row().await.unwrap().unwrap();
        }
        // Another statement of the same connection runs meanwhile.
        assert_eq!(connection.execute("INSERT INTO t VALUES (1, 'x')").await.unwrap(), 1);
        drop(endless);
    });
}

#[test]
fn transactions_end_with_their_guard() {
    block_on(async {
        let (database, connection) = with_table().await;
        let transaction = connection.transaction().await.unwrap();
        assert_eq!(connection.transaction().await.map(|_| ()).unwrap_err().sqlstate(), "25001");
        transaction.execute("INSERT INTO t VALUES (1, 'kept')").await.unwrap();
        transaction.commit().await.unwrap();

        let transaction = connection.transaction().await.unwrap();
        transaction.execute_with("INSERT INTO t VALUES ($1, 'lost')", [2]).await.unwrap();
        drop(transaction);
        // Nothing runs inside what was dropped.
        connection.execute("INSERT INTO t VALUES (3, 'kept')").await.unwrap();

        let transaction = connection.transaction().await.unwrap();
        let insert = transaction.prepare("INSERT INTO t VALUES ($1, 'lost')").await.unwrap();
        insert.execute([4]).await.unwrap();
        assert_eq!(transaction.query_row("SELECT count(*) FROM t", ()).await.unwrap().get::<i64>(0).unwrap(), 3);
        transaction.rollback().await.unwrap();

        // One that was dropped while it began; and one that is the user's own and stays.
        let mut begins = Box::pin(connection.transaction());
        // Mostly it has not begun by then.
        let _ = futures::poll!(&mut begins).map(|begun| begun.map(|_| ()));
        drop(begins);
        connection.execute("INSERT INTO t VALUES (5, 'kept')").await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        let mut begins = Box::pin(connection.transaction());
        // Mostly it has not begun by then.
        let _ = futures::poll!(&mut begins).map(|begun| begun.map(|_| ()));
        drop(begins);
        connection.execute("INSERT INTO t VALUES (6, 'kept'); COMMIT").await.unwrap();

        let other = database.connect_async().unwrap();
        let transaction = connection.transaction().await.unwrap();
        transaction.execute("UPDATE t SET v = 'mine' WHERE k = 1").await.unwrap();
        other.execute("UPDATE t SET v = 'theirs' WHERE k = 1").await.unwrap();
        assert_eq!(transaction.commit().await.unwrap_err().sqlstate(), "40001");

        let sync = database.connect().unwrap();
        assert_eq!(rows(&sync, "SELECT * FROM t ORDER BY k"), ["1|theirs", "3|kept", "5|kept", "6|kept"]);
    });
}

#[test]
fn many_tasks_share_connections() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (database, shared) = with_table().await;
        let insert = shared.prepare("INSERT INTO t VALUES ($1, $2)").await.unwrap();
        let tasks = (0..8).map(|task| {
            let (insert, own) = (insert.clone(), database.connect_async().unwrap());
            tokio::spawn(async move {
                for i in 0..10 {
                    insert.execute((task * 100 + i, "shared")).await.unwrap();
                    let sql = "INSERT INTO t VALUES ($1, 'own')";
                    own.execute_with(sql, [task * 100 + 50 + i]).await.unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let row = shared.query_row("SELECT count(*), count(DISTINCT k) FROM t", ()).await.unwrap();
        assert_eq!((row.get::<i64>(0).unwrap(), row.get::<i64>(1).unwrap()), (160, 160));
    });
}
