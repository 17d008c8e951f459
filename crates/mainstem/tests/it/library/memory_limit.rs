//! `memory_limit` while the database is open.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mainstem::{Connection, Database, ErrorKind, OpenOptions};
use mainstem_storage::memory::MemoryKind;

use crate::support::{code, flush, rows, try_rows};

const OPENED_WITH: u64 = 64 << 20;

fn database(background: bool) -> Database {
    Database::in_memory_with(OpenOptions::new().memory_limit(OPENED_WITH).background(background)).unwrap()
}

fn shown(connection: &Connection) -> u64 {
    let shown: String = connection.query_row("SHOW memory_limit", ()).unwrap().get(0).unwrap();
    shown.parse().unwrap()
}

/// Bytes of `kind`, and its share.
fn memory(connection: &Connection, kind: &str) -> (u64, u64) {
    let sql = "SELECT bytes, bytes_max FROM mainstem.memory WHERE kind = $1";
    let row = connection.query_row(sql, [kind]).unwrap();
    (row.get(0).unwrap(), row.get(1).unwrap())
}

#[test]
fn it_has_units_and_is_shown_in_bytes() {
    let database = database(false);
    let connection = database.connect().unwrap();
    assert_eq!(shown(&connection), OPENED_WITH);
    for (set, bytes) in [
        ("'512MB'", 512_u64 << 20),
        ("'512 MiB'", 512 << 20),
        ("'65536kB'", 64 << 20),
        ("'1536 MB'", 3 << 29),
        ("'2TB'", 2 << 40),
        ("20000000", 20_000_000),
        ("'20000000'", 20_000_000),
        ("'16MB'", 16 << 20),
        ("16777216", 16 << 20),
    ] {
        for to in ["=", "TO"] {
            connection.execute(&format!("RESET memory_limit; SET memory_limit {to} {set}")).unwrap();
            assert_eq!(shown(&connection), bytes, "{set}");
        }
    }
    for (bad, part) in [
        ("'16777215'", "memory_limit is at least 16MB (16777216 bytes); 16777215 bytes are too few"),
        ("0", "at least 16MB"),
        ("'1MB'", "at least 16MB"),
        ("-1", "memory_limit: \"-1\" is no number of bytes"),
        ("'1.5GB'", "memory_limit: \"1.5GB\" is no number of bytes"),
        ("'lots'", "memory_limit: \"lots\" is no number of bytes"),
        ("''", "memory_limit: \"\" is no number of bytes"),
        ("'99999999TB'", "more bytes than 64 bits count"),
    ] {
        let error = connection.execute(&format!("SET memory_limit = {bad}")).unwrap_err();
        assert_eq!(error.sqlstate(), "22023", "{bad}");
        assert!(error.message().contains(part), "{bad}: {error}");
        assert_eq!(shown(&connection), 16 << 20, "{bad} changes nothing");
    }
}

#[test]
fn it_is_the_databases_and_no_transactions() {
    let database = database(false);
    let (first, second) = (database.connect().unwrap(), database.connect().unwrap());
    first.execute("SET SESSION memory_limit = '128MB'").unwrap();
    assert_eq!((shown(&first), shown(&second), shown(&database.connect().unwrap())), (128 << 20, 128 << 20, 128 << 20));
    let setting = "SELECT value FROM mainstem.settings WHERE name = 'memory_limit'";
    assert_eq!(rows(&second, setting), ["134217728"]);
    assert_eq!(rows(&second, "SELECT current_setting('memory_limit')"), ["134217728"]);
    assert_eq!(memory(&second, "queries").1, (128 << 20) / 32 * 10);

    // It is in force at once, and no ROLLBACK undoes it.
    first.execute_batch("BEGIN; SAVEPOINT s; SET memory_limit = '256MB'").unwrap();
    assert_eq!(shown(&second), 256 << 20);
    first.execute_batch("ROLLBACK TO s; ROLLBACK").unwrap();
    assert_eq!((shown(&first), shown(&second)), (256 << 20, 256 << 20));
    for local in ["SET LOCAL memory_limit = '64MB'", "BEGIN; SET LOCAL memory_limit = '64MB'"] {
        let error = first.execute(local).unwrap_err();
        assert_eq!(error.sqlstate(), "0A000", "{local}");
        assert!(error.message().contains("use SET"), "{error}");
    }
    assert_eq!(code(&first, "SELECT set_config('memory_limit', '64MB', true)"), "0A000");
    first.execute("ROLLBACK").unwrap();
    assert_eq!(shown(&first), 256 << 20);
    assert_eq!(rows(&first, "SELECT set_config('memory_limit', '48MB', false)"), ["50331648"]);

    // RESET ALL is about the session, RESET about the database.
    second.execute("RESET ALL").unwrap();
    assert_eq!(shown(&second), 48 << 20);
    second.execute("RESET memory_limit").unwrap();
    assert_eq!((shown(&first), shown(&second)), (OPENED_WITH, OPENED_WITH));
    first.execute("SET memory_limit = '48MB'; SET memory_limit = DEFAULT").unwrap();
    assert_eq!(shown(&first), OPENED_WITH);
    database.close().unwrap();
    assert_eq!(code(&first, "SET memory_limit = '48MB'"), "57P01");
}

#[test]
fn it_may_be_less_than_the_bound_where_it_was_opened_so() {
    let database = Database::in_memory_with(OpenOptions::new().memory_limit(1 << 20)).unwrap();
    let connection = database.connect().unwrap();
    connection.execute("SET memory_limit = '64MB'").unwrap();
    assert_eq!(code(&connection, "SET memory_limit = '1MB'"), "22023");
    assert_eq!(shown(&connection), 64 << 20);
    connection.execute("RESET memory_limit").unwrap();
    assert_eq!(shown(&connection), 1 << 20);
}

#[test]
fn what_a_query_may_take_changes_for_all_sessions() {
    let database = database(false);
    let (first, second) = (database.connect().unwrap(), database.connect().unwrap());
    let long = "SELECT length(repeat('x', 100000000))";
    assert_eq!(code(&second, long), "53200");
    first.execute("SET memory_limit = '1GB'").unwrap();
    assert_eq!(rows(&second, long), ["100000000"]);
    first.execute("SET memory_limit = '300MB'").unwrap();
    assert_eq!(code(&second, long), "53200");
}

/// What sorts, groups and joins do at the least limit there is: they spill.
#[test]
fn queries_spill_at_the_least_limit() {
    let database = database(false);
    let connection = database.connect().unwrap();
    connection.execute("CREATE TABLE t (k BIGINT, n BIGINT, s TEXT)").unwrap();
    connection
        .execute("INSERT INTO t SELECT g * 7919 % 150001, g, 'text ' || g FROM generate_series(1, 150000) g")
        .unwrap();
    let queries = [
        "SELECT count(*), sum(i), sum(i * k % 1009) FROM (SELECT row_number() OVER (ORDER BY k) AS i, k FROM t) x",
        "SELECT count(*), max(s) FROM (SELECT s FROM t ORDER BY s, n OFFSET 7) x",
        "SELECT count(*), sum(c), max(s) FROM (SELECT s, k, count(*) AS c FROM t GROUP BY s, k) x",
    ];
    let before: Vec<_> = queries.iter().map(|sql| rows(&connection, sql)).collect();
    connection.execute("SET memory_limit = '16MB'").unwrap();
    for threads in [1, 2, 4] {
        connection.execute(&format!("SET threads = {threads}")).unwrap();
        for (sql, before) in queries.iter().zip(&before) {
            assert_eq!(rows(&connection, sql), *before, "{sql}, {threads} threads");
        }
        assert_eq!(rows(&connection, "SELECT x FROM (VALUES (2), (1)) v(x) ORDER BY x"), ["1", "2"]);
    }
    let plan = rows(&connection, "EXPLAIN ANALYZE SELECT s FROM t ORDER BY s").join("\n");
    let spilled = plan.lines().any(|line| line.contains("SortExec") && !line.contains("spill_count=0"));
    assert!(spilled, "{plan}");
}

/// What reads tables in key order cannot spill: with little memory other plans answer.
#[test]
fn queries_by_keys_finish_at_the_least_limit() {
    let database = database(false);
    let connection = database.connect().unwrap();
    for name in ["a", "b"] {
        connection.execute(&format!("CREATE TABLE {name} (k BIGINT, n BIGINT, s TEXT, PRIMARY KEY (k, n))")).unwrap();
        // Runs that overlap everywhere.
        for from in 0..3 {
            let rows = format!("SELECT g / 4, g % 4 * 10 + {from}, 'text ' || g FROM generate_series(0, 100000) t(g)");
            connection.execute(&format!("INSERT INTO {name} {rows}")).unwrap();
            flush(&database, name);
        }
    }
    let queries = [
        "SELECT count(*), sum(a.n) FROM a JOIN b ON a.k = b.k AND a.n <> b.n",
        "SELECT count(*), max(s) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND a.n < b.n)",
        "SELECT count(*), sum(c), max(m) FROM (SELECT k, count(*) AS c, max(s) AS m FROM a GROUP BY k) x",
        "SELECT count(*), sum(r) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM b) x",
    ];
    let in_key_order = |sql: &str| rows(&connection, &format!("EXPLAIN {sql}")).join("\n").contains("cuts=");
    connection.execute("SET threads = 2; SET merge_join_min_rows = 1").unwrap();
    let before: Vec<_> = queries.iter().map(|sql| (rows(&connection, sql), in_key_order(sql))).collect();
    assert!(before.iter().filter(|(_, in_key_order)| *in_key_order).count() > 2, "{before:?}");
    connection.execute("SET memory_limit = '16MB'").unwrap();
    for (sql, (before, _)) in queries.iter().zip(&before) {
        assert!(!in_key_order(sql), "{sql}");
        assert_eq!(rows(&connection, sql), *before, "{sql}");
    }
}

/// Over a table of four times the limit, and thirteen times what queries may take, everything finishes with the answers
/// that it has with memory, but for what `docs/known-defects.md` names. Queries never take more than they may.
#[test]
fn queries_finish_over_a_table_several_times_the_limit() {
    let database = database(true);
    let connection = database.connect().unwrap();
    connection.execute("SET memory_limit = '1GB'; CREATE TABLE t (k BIGINT, g INTEGER, s TEXT, u TEXT)").unwrap();
    let rows_of_t = "SELECT i * 7919 % 90001, i % 7, repeat(md5(i::text), 20), md5((i % 1000)::text)";
    connection.execute(&format!("INSERT INTO t {rows_of_t} FROM generate_series(1, 100000) i")).unwrap();
    let bytes = "SELECT sum(8 + 4 + length(s) + length(u)) / 1048576 FROM t";
    assert_eq!(rows(&connection, bytes), ["65"]);
    let queries = [
        "SELECT count(*), sum(i * (k % 1009)), min(s) FROM (SELECT row_number() OVER (ORDER BY s, k) AS i, k, s FROM t) x",
        "SELECT s, k FROM t ORDER BY s DESC, k OFFSET 99990",
        "SELECT g, count(*), sum(k), min(s), max(s) FROM t GROUP BY g ORDER BY g",
        "SELECT u, count(*), avg(k), max(s) FROM t GROUP BY u ORDER BY u LIMIT 20",
        "SELECT count(*), sum(c), max(s), sum(length(m)) FROM (SELECT s, k, count(*) AS c, max(u) AS m FROM t GROUP BY s, k) x",
        "SELECT s, count(*) FROM t GROUP BY s ORDER BY s LIMIT 20",
        "SELECT count(*), sum(length(a)) FROM (SELECT k, array_to_string(array_agg(s ORDER BY s), ',') AS a FROM t GROUP BY k) x",
        "SELECT count(DISTINCT s) FROM t",
        "SELECT count(*), sum(a), sum(b) FROM (SELECT k, count(DISTINCT s) AS a, count(DISTINCT u) AS b FROM t GROUP BY k) x",
        "SELECT count(*), max(a.s), min(b.s) FROM t a JOIN t b ON a.k = b.k AND a.s <> b.u",
        "SELECT count(*), max(x.s) FROM (SELECT s, count(*) AS c FROM t GROUP BY s) x JOIN t ON t.s = x.s",
        "SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY g ORDER BY k) AS r FROM t) x",
        "SELECT count(*), max(s) FROM (SELECT DISTINCT s, u, g FROM t) x",
        "SELECT count(*), max(s) FROM (SELECT s, k FROM t UNION SELECT s, k + g FROM t) x",
        "SELECT g, u, count(*), max(s) FROM t GROUP BY ROLLUP (g, u) ORDER BY g, u LIMIT 30",
    ];
    let answers: Vec<_> = queries.iter().map(|sql| rows(&connection, sql)).collect();
    let mut failed = Vec::new();
    for (limit, threads) in [("16MB", 1), ("32MB", 2)] {
        connection.execute(&format!("SET memory_limit = '{limit}'; SET threads = {threads}")).unwrap();
        let plan = rows(&connection, &format!("EXPLAIN {}", queries[4])).join("\n");
        assert!(plan.contains("SpillingAggregateExec"), "{plan}");
        let most = Most::begin(&database);
        for (sql, answer) in queries.iter().zip(&answers) {
            match try_rows(&connection, sql) {
                Ok(found) if found == *answer => {}
                Ok(_) => failed.push(format!("{limit}, another answer: {sql}")),
                Err(error) => failed.push(format!("{limit}, {error}: {sql}")),
            }
        }
        let (most, share) = (most.end(), memory(&connection, "queries").1);
        if most <= share / 2 || share < most {
            failed.push(format!("{limit}: queries took {most} of {share}"));
        }
        assert_eq!(memory(&connection, "queries").0, 0);
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The most that queries of a database take, looked at again and again.
struct Most {
    ends: Arc<AtomicBool>,
    looks: JoinHandle<u64>,
}

impl Most {
    fn begin(database: &Database) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (database, ended) = (database.clone(), ends.clone());
        let looks = std::thread::spawn(move || {
            let mut most = 0;
            while !ended.load(Ordering::Relaxed) {
                let memory = database.storage().memory();
                let queries = memory.iter().find(|status| status.kind == MemoryKind::Queries);
                most = most.max(queries.map_or(0, |status| status.bytes));
                std::thread::sleep(Duration::from_micros(200));
            }
            most
        });
        Self { ends, looks }
    }

    fn end(self) -> u64 {
        self.ends.store(true, Ordering::Relaxed);
        self.looks.join().unwrap()
    }
}

#[test]
fn the_block_cache_gives_way_before_set_returns() {
    let database = database(false);
    let connection = database.connect().unwrap();
    connection.execute("SET memory_limit = '1GB'; CREATE TABLE t (k BIGINT PRIMARY KEY, s TEXT)").unwrap();
    connection
        .execute("INSERT INTO t SELECT g, md5(g::text) || md5((g + 1)::text) FROM generate_series(1, 300000) g")
        .unwrap();
    database.storage().flush(connection.table("t").unwrap().id).unwrap();
    let read = "SELECT count(*), sum(length(s)) FROM t";
    assert_eq!(rows(&connection, read), ["300000|19200000"]);
    let (held, _) = memory(&connection, "block cache");
    assert!(held > 16 << 20, "{held}");
    connection.execute("SET memory_limit = '16MB'").unwrap();
    let stats = database.storage().cache_stats();
    assert!(stats.bytes <= stats.bytes_max && stats.bytes_max <= (16 << 20) / 32 * 16, "{stats:?}");
    assert_eq!(rows(&connection, read), ["300000|19200000"]);
}

#[test]
fn recent_rows_and_write_sets_give_way() {
    let database = database(true);
    let connection = database.connect().unwrap();
    connection.execute("SET memory_limit = '1GB'; CREATE TABLE t (k BIGINT PRIMARY KEY, s TEXT)").unwrap();
    for first in (0..20_000).step_by(2_000) {
        let rows = format!("SELECT g, repeat(md5(g::text), 20) FROM generate_series({first}, {first} + 1999) g");
        connection.execute(&format!("INSERT INTO t {rows}")).unwrap();
    }
    let transaction = connection.transaction().unwrap();
    for first in (0..8_000).step_by(800) {
        transaction.execute(&format!("UPDATE t SET s = s || 'x' WHERE k >= {first} AND k < {first} + 800")).unwrap();
    }
    let (written, _) = memory(&connection, "write sets");
    assert!(written > 3 << 20, "{written}");
    database.connect().unwrap().execute("SET memory_limit = '16MB'").unwrap();
    // The next statement finds no room, and makes some.
    transaction.execute("UPDATE t SET s = s || 'y' WHERE k >= 19000").unwrap();
    let (written, share) = memory(&connection, "write sets");
    assert!(written <= share, "{written} of {share}");
    transaction.commit().unwrap();
    let sums = "SELECT count(*), sum(length(s)), count(*) FILTER (WHERE s LIKE '%x'), count(*) FILTER (WHERE s LIKE '%y') FROM t";
    assert_eq!(rows(&connection, sums), ["20000|12809000|8000|1000"]);
    // Deltas that nobody writes to any more, too.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let (active, frozen) = (memory(&connection, "active deltas"), memory(&connection, "frozen deltas"));
        if active.0 <= active.1 && frozen.0 <= frozen.1 {
            break;
        }
        assert!(Instant::now() < deadline, "{active:?} {frozen:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(rows(&connection, sums), ["20000|12809000|8000|1000"]);
}

/// Joins whose build sides are several times as large as what queries may take.
#[test]
fn joins_spill() {
    let database = database(false);
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE a (k BIGINT, s TEXT);
             INSERT INTO a SELECT nullif(g * 7919 % 100003, 5), md5(g::text) || md5((g + 1)::text) FROM generate_series(1, 100000) g;
             CREATE TABLE b (k BIGINT, s TEXT);
             INSERT INTO b SELECT nullif(g * 104729 % 120011, 7), md5(g::text) || md5((g + 2)::text) FROM generate_series(1, 100000) g",
        )
        .unwrap();
    let queries = [
        "SELECT count(*), min(a.s), max(b.s) FROM a JOIN b ON a.k = b.k",
        "SELECT count(*), count(a.s), count(b.s), max(a.s || b.s) FROM a FULL JOIN b ON a.k = b.k AND a.s < b.s",
        "SELECT count(*), count(b.s), max(b.s) FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT count(*), max(s) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.s > a.s)",
        "SELECT count(*), max(s) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.s <> a.s)",
        "SELECT count(*), max(a.s), min(b.s) FROM a JOIN b ON a.s = b.s",
        "SELECT count(*), max(x.s) FROM a AS x JOIN a AS y ON x.s = y.s JOIN b ON b.k = y.k",
    ];
    connection.execute("SET memory_limit = '1GB'").unwrap();
    let answers: Vec<_> = queries.iter().map(|sql| rows(&connection, sql)).collect();
    for threads in [1, 2, 4] {
        connection.execute(&format!("SET memory_limit = '16MB'; SET threads = {threads}")).unwrap();
        let plan = rows(&connection, &format!("EXPLAIN {}", queries[1])).join("\n");
        assert!(plan.contains("SpillingHashJoinExec"), "{plan}");
        for (sql, answer) in queries.iter().zip(&answers) {
            assert_eq!(rows(&connection, sql), *answer, "{threads}: {sql}");
        }
    }
}

/// Each says what wants how much of what, and what to do about it: no names of the planner's, and nothing that is cut
/// off.
#[test]
fn queries_without_memory_say_so_in_whole_sentences() {
    let database = database(false);
    let connection = database.connect().unwrap();
    connection
        .execute_batch(
            "CREATE TABLE t (k BIGINT PRIMARY KEY, s TEXT);
             INSERT INTO t SELECT g, md5(g::text) || md5((g + 1)::text) FROM generate_series(1, 100000) g;
             SET memory_limit = '16MB'",
        )
        .unwrap();
    for sql in [
        // A NULL anywhere would count: it does not spill.
        "SELECT count(*) FROM t WHERE s NOT IN (SELECT s || 'x' FROM t)",
        "SELECT count(DISTINCT s), count(DISTINCT s || k) FROM t",
        "SELECT length(repeat('x', 100000000))",
        "SELECT length(lpad(s, 20000)) FROM t",
        "UPDATE t SET s = s || 'x' RETURNING *",
        "WITH RECURSIVE r AS (SELECT 1 AS n, repeat('x', 100000) AS s UNION SELECT n + 1, s || n FROM r WHERE n < 1000) SELECT max(n) FROM r",
    ] {
        let error = connection.execute(sql).map(|_| panic!("{sql}")).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, "53200"), "{sql}: {error:?}");
        let message = error.message();
        assert!(message.starts_with("out of query memory: the query needs "), "{sql}: {message}");
        assert!(
            message.contains(" of the 5MB that queries may take are left for it; raise memory_limit, "),
            "{message}"
        );
        assert!(message.ends_with("(memory_limit is 16MB)"), "{message}");
    }
    // What helps is said.
    connection.execute("SET memory_limit = '1GB'").unwrap();
    assert_eq!(rows(&connection, "SELECT count(*) FROM t a JOIN t b ON a.s = b.s WHERE a.k <> b.k + 7"), ["100000"]);
    let error = connection.execute("SELECT length(rpad(s, 300000)) FROM t").unwrap_err();
    assert!(error.message().contains("rpad would make ") && error.message().contains("make shorter texts"), "{error}");
}

/// Rows of CSV. Asks what files take whenever some are read; once they do, `within` is run with what that is.
struct Asking<'a> {
    connection: &'a Connection,
    rows: std::ops::Range<u32>,
    most: &'a mut u64,
    within: Option<&'a mut dyn FnMut(u64)>,
    pending: VecDeque<u8>,
}

impl std::io::Read for Asking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let (bytes, _) = memory(self.connection, "files");
        *self.most = (*self.most).max(bytes);
        if let Some(within) = self.within.take_if(|_| bytes > 0) {
            within(bytes);
        }
        while self.pending.len() < buffer.len() && !self.rows.is_empty() {
            self.pending
                .extend(self.rows.by_ref().take(1_000).flat_map(|row| format!("{row},{row:>20}\n").into_bytes()));
        }
        self.pending.read(buffer)
    }
}

/// What loads hold of files is counted, and a load has what the others leave.
#[test]
fn chunks_of_files_are_counted() {
    let database = Database::in_memory_with(OpenOptions::new().memory_limit(1 << 30)).unwrap();
    let [connection, second, asked, asked_within] = [(); 4].map(|()| database.connect().unwrap());
    connection.execute("CREATE TABLE t (a INTEGER, b TEXT)").unwrap();
    connection.execute("CREATE TABLE u (a INTEGER, b TEXT)").unwrap();
    assert_eq!(memory(&asked, "files"), (0, 32 << 20));
    let (mut one, mut both, mut before) = (0, 0, 0);
    let mut within = |bytes| {
        before = bytes;
        let rows = Asking {
            connection: &asked_within,
            rows: 0..300_000,
            most: &mut both,
            within: None,
            pending: VecDeque::new(),
        };
        assert_eq!(second.copy_in("COPY u FROM STDIN (FORMAT csv)", rows).unwrap(), 300_000);
    };
    let (rows, pending) = (0..600_000, VecDeque::new());
    let rows = Asking { connection: &asked, rows, most: &mut one, within: Some(&mut within), pending };
    assert_eq!(connection.copy_in("COPY t FROM STDIN (FORMAT csv)", rows).unwrap(), 600_000);
    // How much the first load has while the second one runs, or later, depends on the number of threads.
    assert!(1 << 20 < before && before < both, "{before}, {both}");
    assert!(before <= one && one.max(both) <= 32 << 20, "{one}, {both}");
    assert_eq!(memory(&asked, "files").0, 0, "given back");
}

/// Files that are read at their places, and Parquet files, are counted as well; all is given back, also by a load that
/// fails, and short ones take little.
#[test]
fn files_of_any_kind_are_counted() {
    let database = Database::in_memory_with(OpenOptions::new().memory_limit(1 << 30)).unwrap();
    let [connection, asked] = [(); 2].map(|()| database.connect().unwrap());
    connection.execute_batch("CREATE TABLE t (a INTEGER, b TEXT); CREATE TABLE u (a INTEGER, b TEXT)").unwrap();
    connection.execute("INSERT INTO t SELECT k, 'text ' || k FROM generate_series(1, 1200000) g (k)").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (csv, parquet, wrong, short) = (path("t.csv"), path("t.parquet"), path("wrong.csv"), path("short.csv"));
    connection.execute(&format!("COPY t TO '{csv}' (FORMAT csv)")).unwrap();
    connection.execute(&format!("COPY t TO '{parquet}'")).unwrap();
    let text = std::fs::read_to_string(&csv).unwrap();
    std::fs::write(&wrong, text.clone() + "none,none\n").unwrap();
    std::fs::write(&short, text.lines().take(20).map(|line| line.to_owned() + "\n").collect::<String>()).unwrap();
    let most_of = |statement: String| {
        let (ended, mut most) = (AtomicBool::new(false), 0);
        let outcome = std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let outcome = connection.execute(&statement);
                ended.store(true, Ordering::Relaxed);
                outcome
            });
            while !ended.load(Ordering::Relaxed) {
                most = most.max(memory(&asked, "files").0);
            }
            load.join().unwrap()
        });
        assert_eq!(memory(&asked, "files").0, 0, "{statement}");
        (outcome.map_err(|error| error.sqlstate()), most)
    };
    for (file, options, outcome) in
        [(&csv, "(FORMAT csv)", Ok(1_200_000)), (&parquet, "", Ok(1_200_000)), (&wrong, "(FORMAT csv)", Err("22P02"))]
    {
        let (got, most) = most_of(format!("COPY u FROM '{file}' {options}"));
        assert_eq!(got, outcome, "{file}");
        assert!((1 << 20..=32 << 20).contains(&most), "{file}: {most}");
    }
    let (got, most) = most_of(format!("COPY u FROM '{short}' (FORMAT csv)"));
    assert!(got == Ok(20) && most <= 32 << 20, "{most}");
}
