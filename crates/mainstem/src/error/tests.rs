//! Errors of queries that use up memory or disk space, from the operators themselves and by the ways they come here.
//! Texts that errors are told apart by, from DataFusion itself.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionStateBuilder, SpillFile, SpillWriter, TempFileFactory};
use datafusion::prelude::SessionContext;
use futures::Stream;
use mainstem_storage::database::Database;
use mainstem_storage::settings::OpenOptions;
use mainstem_storage::{Error, ErrorKind};

use super::texts::{Of, TEXTS, Text};
use super::{from_arrow, from_datafusion};
use crate::exec::template;

/// Files that take nothing any more, as DataFusion's own say it.
#[derive(Debug)]
struct FullDisk;

impl TempFileFactory for FullDisk {
    fn create_temp_file(&self, _: &str) -> datafusion::common::Result<Arc<dyn SpillFile>> {
        Ok(Arc::new(Self))
    }
}

impl SpillFile for FullDisk {
    fn size(&self) -> Option<u64> {
        None
    }

    fn read_stream(
        &self,
    ) -> datafusion::common::Result<Pin<Box<dyn Stream<Item = datafusion::common::Result<bytes::Bytes>> + Send>>> {
        Ok(Box::pin(futures::stream::empty()))
    }

    fn open_writer(&self) -> datafusion::common::Result<Box<dyn SpillWriter>> {
        Ok(Box::new(Self))
    }
}

impl SpillWriter for FullDisk {
    fn finish(&mut self) -> datafusion::common::Result<()> {
        Ok(())
    }
}

impl io::Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(DataFusionError::IoError(io::ErrorKind::StorageFull.into()).into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What each of several spilling queries ends with, when `disk` is where they spill.
fn errors_of_spilling(disk: DiskManagerBuilder) -> Vec<(&'static str, Error)> {
    let storage = Database::in_memory(OpenOptions::new().memory_limit(16 << 20).background(false)).unwrap();
    let state = template(&storage, 1).unwrap();
    let pool = state.runtime_env().memory_pool.clone();
    let env = RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(disk).build_arc().unwrap();
    let mut state = SessionStateBuilder::new_from_existing(state).with_runtime_env(env).build();
    state.config_mut().options_mut().execution.sort_spill_reservation_bytes = 256 << 10;
    let context = SessionContext::new_with_state(state);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let queries = [
        "SELECT value FROM generate_series(1, 2000000) ORDER BY value % 1009",
        "SELECT value % 1999993 AS x, count(*) FROM generate_series(1, 2000000) GROUP BY x",
        "SELECT value, row_number() OVER (ORDER BY value % 1009) FROM generate_series(1, 2000000)",
    ];
    let run = |sql: &'static str| {
        let result = runtime.block_on(async { context.sql(sql).await?.collect().await });
        (sql, from_datafusion(&result.map(|_| panic!("{sql} has not spilled")).unwrap_err()))
    };
    queries.into_iter().map(run).collect()
}

fn is_sentence_of_ours(error: &Error) {
    let message = error.message();
    for word in
        ["DataFusion", "datafusion", "Resources exhausted", "consumer", "Exec", "[0]", "reservation", "caused by"]
    {
        assert!(!message.contains(word), "{word}: {message}");
    }
    assert!(message.contains("raise memory_limit") && !message.contains('\n'), "{message}");
}

#[test]
fn a_full_disk_is_53100_where_operators_spill() {
    for (sql, error) in errors_of_spilling(DiskManagerBuilder::default().with_temp_file_factory(Arc::new(FullDisk))) {
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, "53100"), "{sql}: {error:?}");
        assert!(error.message().contains("folder temp"), "{sql}: {error}");
        is_sentence_of_ours(&error);
    }
    for (sql, error) in errors_of_spilling(DiskManagerBuilder::default().with_max_temp_directory_size(100 << 10)) {
        assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Full, "53100"), "{sql}: {error:?}");
        assert!(error.message().contains("as much on disk as they may"), "{sql}: {error}");
        is_sentence_of_ours(&error);
    }
}

#[test]
fn what_is_wrapped_is_found_again() {
    let full = || io::Error::from(io::ErrorKind::StorageFull);
    let exhausted = || {
        DataFusionError::ResourcesExhausted(
            "Failed to reserve: out of query memory: a sort needs 1MB; raise memory_limit".into(),
        )
    };
    let wide = "Cannot merge sorted runs: a single record batch of 2097152 bytes exceeds the available merge memory and cannot be split further";
    let none = "Partial hash aggregate ran out of memory with no aggregated groups";
    for (error, code, message) in [
        (DataFusionError::IoError(full()), "53100", "free disk space"),
        (DataFusionError::External(Box::new(full())), "53100", "free disk space"),
        (DataFusionError::IoError(io::Error::other(DataFusionError::IoError(full()))), "53100", "free disk space"),
        (DataFusionError::IoError(io::Error::other(io::Error::other(full()))), "53100", "free disk space"),
        (
            DataFusionError::from(ArrowError::IoError(
                "write".into(),
                io::Error::other(DataFusionError::IoError(full())),
            )),
            "53100",
            "free disk space",
        ),
        (DataFusionError::from(ArrowError::ExternalError(Box::new(full()))), "53100", "free disk space"),
        (
            DataFusionError::IoError(io::ErrorKind::PermissionDenied.into()),
            "58030",
            "could not use a temporary file of a query",
        ),
        (exhausted(), "53200", "out of query memory: a sort needs 1MB; raise memory_limit"),
        (
            exhausted().context("Not enough memory to continue external sort"),
            "53200",
            "out of query memory: a sort needs 1MB",
        ),
        (DataFusionError::ResourcesExhausted(wide.into()), "53200", "a sort has to hold rows of 2MB at once"),
        (
            DataFusionError::ResourcesExhausted("whatever\nelse".into()),
            "53200",
            "out of query memory: the query needs more",
        ),
        (DataFusionError::Internal(none.into()), "53200", "out of query memory: the query needs more"),
        (
            DataFusionError::from(ArrowError::MemoryError("Arrow data not aligned".into())),
            "53200",
            "the query needs more",
        ),
    ] {
        let shown = format!("{error:?}");
        let error = from_datafusion(&error);
        assert_eq!(error.sqlstate(), code, "{shown}: {error:?}");
        assert!(error.message().contains(message), "{shown}: {error}");
    }
    assert_eq!(from_arrow(&ArrowError::IoError("write".into(), full())).sqlstate(), "53100");
}

/// Texts that no statement alone brings about: memory and disk that are used up (other tests of this file), and what
/// DataFusion says of its own mistakes.
const NOT_BY_STATEMENTS: &[&str] =
    &["ran out of memory with no aggregated groups", "exceeded the allowable limit", "(internal) not supported"];

/// For each other row of the table, in its order: what its text begins with, a statement that DataFusion refuses with
/// it, and our SQLSTATE.
const REFUSED: &[(&str, &str, &str)] = &[
    ("no function matches", "SELECT sum('x', 1) FROM t", "42883"),
    ("coerce arguments", "SELECT stddev('x', 1) FROM t", "42883"),
    ("function '", "SELECT avg(true) FROM t", "42883"),
    ("function '", "SELECT gcd(1)", "42883"),
    ("function '", "SELECT abs('x', 1)", "42883"),
    ("the function '", "SELECT pi(1)", "42883"),
    ("invalid function '", "SELECT nope(1)", "42883"),
    ("for select distinct", "SELECT DISTINCT a FROM t ORDER BY b", "42P10"),
    ("select distinct on", "SELECT DISTINCT ON (a) a FROM t ORDER BY b", "42P10"),
    ("while expanding", "SELECT * FROM t GROUP BY a", "42803"),
    ("with non-boolean", "SELECT a FROM t WHERE a + 1", "42804"),
    ("expected ", "SELECT a FROM t LIMIT true", "42804"),
    ("there is only", "SELECT lag(a, a) OVER (ORDER BY a) FROM t", "0A000"),
    ("the subquery", "SELECT (SELECT a, b FROM t)", "42601"),
    ("in/exist/", "SELECT a FROM t ORDER BY EXISTS (SELECT 1)", "0A000"),
    ("the window ", "SELECT sum(a) OVER w FROM t", "42704"),
    ("with query name", "WITH x AS (SELECT 1), x AS (SELECT 2) SELECT * FROM x", "42712"),
    ("invalid qualifier", "SELECT nope.* FROM t", "42P01"),
    ("cannot access field", "SELECT get_field(a, 'x') FROM t", "42809"),
    ("logical expression", "SELECT a FROM t WHERE row_number() OVER () = 1", "42P20"),
    ("regular expression", "SELECT s ~ s FROM t", "2201B"),
    ("order by index", "SELECT a FROM t ORDER BY 0", "42P10"),
    ("order by column", "SELECT a FROM t ORDER BY 9", "42P10"),
    ("find column", "SELECT a FROM t GROUP BY 9", "42P10"),
    ("limit must", "SELECT a FROM t LIMIT -1", "2201W"),
    ("offset must", "SELECT a FROM t OFFSET -1", "2201X"),
    ("requires a boolean", "SELECT NOT DATE '2020-01-01'", "42804"),
    ("does not support", "SELECT row_number(x => 1) OVER () FROM t", "42883"),
    ("group by", "SELECT a, sum(b) FROM t", "42803"),
    ("aggregate", "SELECT a FROM t WHERE sum(a) = 1", "42803"),
    ("aggregate", "SELECT sum(sum(a)) FROM t", "42803"),
    ("correlated", "SELECT (SELECT u.a FROM t AS u WHERE u.b = t.b) FROM t", "0A000"),
    ("correlated", "SELECT a FROM t ORDER BY (SELECT max(u.a) FROM t AS u WHERE u.b = t.b)", "0A000"),
    ("inconsistent", "VALUES (1), (1, 2)", "42601"),
    ("as column alias", "SELECT * FROM (SELECT 1) AS x(a, b)", "42601"),
    ("different number", "SELECT 1 UNION SELECT 1, 2", "42601"),
    ("coerc", "SELECT CASE WHEN true THEN DATE '2020-01-01' ELSE true END", "42804"),
    ("type", "SELECT DATE '2020-01-01' * 2", "42804"),
    ("not supported", "INSERT INTO t VALUES (1, 2, 'x') RETURNING a", "0A000"),
    ("unsupported", "SELECT B'01'", "0A000"),
    (
        "invalid window",
        "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM t",
        "42P20",
    ),
    ("unique expression", "SELECT a, a FROM t", "42701"),
    ("more than one", "SELECT (SELECT * FROM generate_series(1, 2))", "21000"),
    ("overflow", "SELECT repeat(s, 9223372036854775807) FROM t", "22003"),
    ("out of range", "SELECT make_date(2020, 13, 1)", "22003"),
    ("too large", "SELECT lpad(s, 9223372036854775807) FROM t", "22003"),
    ("parse", "SELECT to_timestamp(s) FROM t", "22P02"),
    ("invalid", "SELECT chr(-a) FROM t", "22P02"),
    ("exceeds", "SELECT arrow_cast(9223372036854775807, 'Timestamp(s)')::TIMESTAMP", "22003"),
    ("not supported", "SELECT date_part('nope', DATE '2020-01-01')", "0A000"),
    ("unsupported", "SELECT date_trunc('nope', now())", "0A000"),
    ("failed to coerce", "SELECT a BETWEEN DATE '2020-01-01' AND true FROM t", "42804"),
    ("cannot run range", "SELECT sum(a) OVER (ORDER BY arrow_cast(s, 'Binary') RANGE 1 PRECEDING) FROM t", "42804"),
];

#[test]
fn every_text_is_what_datafusion_says() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let context = SessionContext::new();
    let run = |sql: &str| runtime.block_on(async { context.sql(sql).await?.collect().await });
    run("CREATE TABLE t AS SELECT 1 AS a, 2 AS b, '(' AS s").unwrap();
    let mut wrong = vec![];
    let by_statements = |text: &&Text| {
        let part = text.parts[0];
        let shown = if text.of == Of::Internal && part == "not supported" { "(internal) not supported" } else { part };
        !NOT_BY_STATEMENTS.contains(&shown)
    };
    let texts: Vec<&Text> = TEXTS.iter().filter(by_statements).collect();
    for (text, (begins, sql, code)) in texts.iter().zip(REFUSED) {
        let Err(error) = run(sql) else {
            wrong.push(format!("{begins}: {sql} is not refused"));
            continue;
        };
        let says = error.to_string().to_lowercase();
        let ours = from_datafusion(&error);
        if !text.parts[0].starts_with(begins) || !text.parts.iter().all(|part| says.contains(part)) {
            wrong.push(format!("{:?} ({}): {sql}: {error}", text.parts, text.from));
        } else if ours.sqlstate() != *code {
            wrong.push(format!("{:?}: {sql}: {ours:?} of {error}", text.parts));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(texts.len(), REFUSED.len());
}

#[test]
fn the_texts_are_those_of_this_datafusion() {
    assert_eq!(datafusion::DATAFUSION_VERSION, "55.2.0", "see whether the table still holds, and what has a kind now");
}
