//! The driver, as a program in Rust uses it. What pandas and Polars do with it is tested in `crates/python/tests`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use adbc_core::error::{Result, Status};
use adbc_core::options::{IngestMode, ObjectDepth, OptionConnection, OptionDatabase, OptionStatement, OptionValue};
use adbc_core::{Connection, Database, Driver, Optionable, Statement};
use mainstem::arrow::array::{AsArray, Int64Array, RecordBatch, RecordBatchReader, StringArray, StringViewArray};
use mainstem::arrow::datatypes::{DataType, Int64Type};
use mainstem_adbc::{MainstemConnection, MainstemDatabase, MainstemDriver};

fn database() -> MainstemDatabase {
    MainstemDriver.new_database().unwrap()
}

fn run(connection: &mut MainstemConnection, sql: &str) -> Result<Vec<RecordBatch>> {
    let mut statement = connection.new_statement()?;
    statement.set_sql_query(sql)?;
    let rows = statement.execute()?;
    Ok(rows.collect::<std::result::Result<_, _>>().unwrap())
}

fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}

fn sqlstate(error: &adbc_core::error::Error) -> String {
    error.sqlstate.iter().map(|char| char::from(u8::try_from(*char).unwrap())).collect()
}

fn batch(keys: &[i64], texts: &[&str]) -> RecordBatch {
    let keys = Arc::new(Int64Array::from(keys.to_vec())) as _;
    let texts = Arc::new(StringArray::from(texts.to_vec())) as _;
    RecordBatch::try_from_iter([("k", keys), ("v", texts)]).unwrap()
}

#[test]
fn rows_are_bound_by_position_and_by_name() {
    let mut connection = database().new_connection().unwrap();
    run(&mut connection, "CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT)").unwrap();
    let mut statement = connection.new_statement().unwrap();
    statement.set_sql_query("INSERT INTO t (v, k) VALUES (:v, :k)").unwrap();
    statement.bind(batch(&[1, 2], &["one", "two"])).unwrap();
    assert_eq!(statement.execute_update().unwrap(), Some(2));
    let error = statement.execute_update().unwrap_err();
    assert_eq!(error.status, Status::InvalidState, "rows are used once: {error}");

    statement.set_sql_query("INSERT INTO t VALUES (?, ?)").unwrap();
    statement.prepare().unwrap();
    let types: Vec<_> =
        statement.get_parameter_schema().unwrap().fields().iter().map(|f| f.data_type().clone()).collect();
    assert_eq!(types, [DataType::Int64, DataType::Utf8]);
    statement.bind(batch(&[3, 1], &["three", "again"])).unwrap();
    let error = statement.execute_update().unwrap_err();
    assert_eq!((error.status, sqlstate(&error).as_str()), (Status::Integrity, "23505"));
    assert!(error.message.contains('1'), "{error}");
    assert_eq!(numbers(&run(&mut connection, "SELECT count(*) FROM t").unwrap()), [2], "all or none");

    statement.set_sql_query("SELECT k * $1, v FROM t ORDER BY k").unwrap();
    let factors = RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1, 10])) as _)]).unwrap();
    statement.bind(factors).unwrap();
    let rows: Vec<_> = statement.execute().unwrap().map(|batch| batch.unwrap()).collect();
    assert_eq!(numbers(&rows), [1, 2, 10, 20]);
}

#[test]
fn a_stream_outlives_statement_and_connection() {
    let database = database();
    let mut connection = database.new_connection().unwrap();
    let mut statement = connection.new_statement().unwrap();
    statement.set_sql_query("SELECT n FROM generate_series(1, 100000) n").unwrap();
    let mut rows = statement.execute().unwrap();
    let first = rows.next().unwrap().unwrap().num_rows();
    statement.set_sql_query("SELECT 1").unwrap();
    assert_eq!(statement.execute().unwrap().count(), 1);
    drop((statement, connection));
    assert_eq!(first + rows.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 100_000);
}

#[test]
fn rows_are_ingested_as_one_statement() {
    let mut connection = database().new_connection().unwrap();
    let ingest = |connection: &mut MainstemConnection, mode: IngestMode, rows: RecordBatch| {
        let mut statement = connection.new_statement()?;
        statement.set_option(OptionStatement::TargetTable, "Some \"table\"".into())?;
        statement.set_option(OptionStatement::IngestMode, mode.into())?;
        statement.bind(rows)?;
        statement.execute_update()
    };
    assert_eq!(ingest(&mut connection, IngestMode::CreateAppend, batch(&[1], &["a"])).unwrap(), Some(1));
    assert_eq!(ingest(&mut connection, IngestMode::Append, batch(&[2, 3], &["b", "c"])).unwrap(), Some(2));
    let error = ingest(&mut connection, IngestMode::Create, batch(&[4], &["d"])).unwrap_err();
    assert_eq!(error.status, Status::AlreadyExists);
    let sum = "SELECT sum(k)::bigint FROM \"Some \"\"table\"\"\"";
    assert_eq!(numbers(&run(&mut connection, sum).unwrap()), [6]);

    // Replacing is undone with the transaction that it stands in.
    connection.set_option(OptionConnection::AutoCommit, false.into()).unwrap();
    assert_eq!(ingest(&mut connection, IngestMode::Replace, batch(&[50], &["x"])).unwrap(), Some(1));
    assert_eq!(numbers(&run(&mut connection, sum).unwrap()), [50]);
    connection.rollback().unwrap();
    assert_eq!(numbers(&run(&mut connection, sum).unwrap()), [6]);
    connection.commit().unwrap();
    connection.set_option(OptionConnection::AutoCommit, true.into()).unwrap();
    assert_eq!(connection.commit().unwrap_err().status, Status::InvalidState);
}

#[test]
fn texts_are_plain_unless_views_are_wanted() {
    let mut connection = database().new_connection().unwrap();
    run(&mut connection, "CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('a text of more than twelve bytes')").unwrap();
    let mut statement = connection.new_statement().unwrap();
    statement.set_sql_query("SELECT v FROM t").unwrap();
    let schema = statement.execute_schema().unwrap();
    assert_eq!(*schema.field(0).data_type(), DataType::Utf8);
    let rows = statement.execute().unwrap();
    assert_eq!(*rows.schema(), schema);
    statement.set_option(OptionStatement::Other("mainstem.result_views".into()), true.into()).unwrap();
    let rows = statement.execute().unwrap().next().unwrap().unwrap();
    assert!(rows.column(0).as_any().is::<StringViewArray>());
}

#[test]
fn errors_say_what_they_are() {
    let mut connection = database().new_connection().unwrap();
    for (sql, status, code) in [
        ("SELECT nothing", Status::NotFound, "42703"),
        ("SELEC 1", Status::InvalidArguments, "42601"),
        ("SELECT 1 / (n - 3) FROM generate_series(1, 5) n", Status::InvalidData, "22012"),
        ("CREATE INDEX i ON t (k)", Status::NotImplemented, "0A000"),
        ("COMMIT; SELECT * FROM nowhere", Status::NotFound, "42P01"),
    ] {
        let error = run(&mut connection, sql).unwrap_err();
        assert_eq!((error.status, sqlstate(&error).as_str()), (status, code), "{sql}: {error}");
    }
    let option = |key: &str| (OptionDatabase::from(key), OptionValue::from("x"));
    for (options, status) in [
        (option("username"), Status::NotImplemented),
        (option("unknown"), Status::NotImplemented),
        (option("mainstem.read_only"), Status::InvalidArguments),
    ] {
        assert_eq!(MainstemDriver.new_database_with_opts([options.clone()]).unwrap_err().status, status, "{options:?}");
    }
    // A setting is told when a connection begins with it.
    let database = MainstemDriver.new_database_with_opts([option("mainstem.no_setting")]).unwrap();
    assert_eq!(sqlstate(&database.new_connection().unwrap_err()), "42704");
}

#[test]
fn a_folder_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop");
    let uri = || (OptionDatabase::Uri, OptionValue::from(path.to_str().unwrap()));
    let open = || MainstemDriver.new_database_with_opts([uri()]).unwrap();
    let (one, other) = (open(), open());
    run(&mut one.new_connection().unwrap(), "CREATE TABLE t AS SELECT 7::bigint AS k").unwrap();
    assert_eq!(numbers(&run(&mut other.new_connection().unwrap(), "SELECT k FROM t").unwrap()), [7]);
    drop((one, other));
    assert_eq!(numbers(&run(&mut open().new_connection().unwrap(), "SELECT k FROM t").unwrap()), [7]);
    let for_reading = [uri(), ("mainstem.read_only".into(), true.into())];
    let mut connection = MainstemDriver.new_database_with_opts(for_reading).unwrap().new_connection().unwrap();
    assert_eq!(sqlstate(&run(&mut connection, "DROP TABLE t").unwrap_err()), "25006");
}

#[test]
fn what_runs_is_canceled() {
    let mut connection = database().new_connection().unwrap();
    let mut statement = connection.new_statement().unwrap();
    let endless =
        "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x % 7 < y";
    statement.set_sql_query(endless).unwrap();
    let error = std::thread::scope(|scope| {
        let running = scope.spawn(|| statement.execute().map(|_| ()).unwrap_err());
        while !running.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            connection.cancel().unwrap();
        }
        running.join().unwrap()
    });
    assert_eq!((error.status, sqlstate(&error).as_str()), (Status::Cancelled, "57014"));
    assert_eq!(run(&mut connection, "SELECT 1").unwrap().len(), 1);
}

#[test]
fn objects_are_told_as_deep_as_wanted() {
    let mut connection = database().new_connection().unwrap();
    run(
        &mut connection,
        "CREATE TABLE t (k INT PRIMARY KEY, CHECK (k > 0)); CREATE SCHEMA s; CREATE VIEW s.v AS SELECT 1 AS x",
    )
    .unwrap();
    let told_of = |depth, schema, table, types| {
        let rows = connection.get_objects(depth, None, schema, table, types, None).unwrap();
        let batches: Vec<_> = rows.map(|batch| batch.unwrap()).collect();
        let mut text = Vec::new();
        let mut writer = mainstem::arrow::json::LineDelimitedWriter::new(&mut text);
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        String::from_utf8(text).unwrap()
    };
    let told = |depth, schema, table| told_of(depth, schema, table, None);
    let views = told_of(ObjectDepth::Tables, None, None, Some(vec!["view", "no type"]));
    assert!(views.contains("\"v\"") && !views.contains("\"t\""), "{views}");
    let catalogs = told(ObjectDepth::Catalogs, None, None);
    assert!(catalogs.contains("mainstem") && !catalogs.contains("public"), "{catalogs}");
    let schemas = told(ObjectDepth::Schemas, None, None);
    assert!(schemas.contains("public") && !schemas.contains("information_schema"), "{schemas}");
    let tables = told(ObjectDepth::Tables, Some("%"), Some("_"));
    assert!(tables.contains("\"t\"") && tables.contains("\"v\"") && !tables.contains("PRIMARY KEY"), "{tables}");
    let all = told(ObjectDepth::All, Some("public"), None);
    assert!(all.contains("PRIMARY KEY") && all.contains("CHECK") && !all.contains("\"v\""), "{all}");
    let system = told(ObjectDepth::Tables, Some("information_schema"), Some("tables"));
    assert!(system.contains("\"tables\""), "{system}");
}
