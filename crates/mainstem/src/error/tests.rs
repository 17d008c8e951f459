//! Errors of queries that use up memory or disk space, from the operators themselves and by the ways they come here.

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
        assert!(error.message().contains("TMPDIR"), "{sql}: {error}");
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
