//! Tables that the program has, in queries of all kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{
    ArrayRef, DictionaryArray, Int64Array, LargeStringArray, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow::datatypes::{Int32Type, SchemaRef};
use mainstem::{Connection, Database, Error, ExternalBatches, ExternalTable, Result, TableResolver};
use parking_lot::Mutex;

/// Batches, and which columns were asked for.
#[derive(Debug)]
struct Batches {
    batches: Vec<RecordBatch>,
    asked: Arc<Mutex<Vec<Vec<usize>>>>,
}

impl Batches {
    fn new(batches: Vec<RecordBatch>) -> Arc<Self> {
        Arc::new(Self { batches, asked: Arc::default() })
    }
}

impl ExternalTable for Batches {
    fn schema(&self) -> SchemaRef {
        self.batches[0].schema()
    }

    fn rows(&self) -> Option<usize> {
        Some(self.batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn scan(&self, columns: &[usize]) -> Result<ExternalBatches> {
        self.asked.lock().push(columns.to_vec());
        let batches: Vec<_> = self.batches.iter().map(|batch| Ok(batch.project(columns)?)).collect();
        Ok(Box::new(batches.into_iter()))
    }
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn numbers(rows: std::ops::Range<i64>) -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone()));
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(rows.map(|n| format!("t{}", n % 3))));
    batch([("n", n), ("text", text)])
}

fn connect() -> Connection {
    Database::in_memory().unwrap().connect().unwrap()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, ()).unwrap().get(0).unwrap()
}

#[test]
fn queries_of_all_kinds_read_them() {
    let connection = connect();
    let table = Batches::new((0..4).map(|n| numbers(n * 100_000..(n + 1) * 100_000)).collect());
    connection.register("numbers", table.clone()).unwrap();
    assert_eq!(number(&connection, "SELECT sum(n) FROM numbers"), (0..400_000).sum::<i64>());
    assert_eq!(*table.asked.lock(), [vec![0]], "one scan, of the column that is named alone");
    assert_eq!(number(&connection, "SELECT count(*) FROM numbers"), 400_000);
    assert_eq!(number(&connection, "SELECT count(*) FROM numbers a JOIN numbers b USING (n)"), 400_000);
    assert_eq!(number(&connection, "SELECT n FROM numbers WHERE text = 't1' ORDER BY n DESC LIMIT 1"), 399_997);
    connection.execute("CREATE TABLE t (n BIGINT PRIMARY KEY, text TEXT)").unwrap();
    assert_eq!(connection.execute("INSERT INTO t SELECT * FROM numbers WHERE n < 10").unwrap(), 10);
    assert_eq!(connection.execute("UPDATE t SET text = x.text FROM numbers x WHERE t.n = x.n - 1").unwrap(), 10);
    assert_eq!(connection.execute("DELETE FROM t WHERE n IN (SELECT n FROM numbers WHERE n > 4)").unwrap(), 5);
    assert_eq!(connection.execute("CREATE TABLE u AS SELECT DISTINCT text FROM numbers").unwrap(), 3);
    // Kept, prepared, and after it is another.
    let sum = connection.prepare("SELECT sum(n) FROM numbers WHERE n < $1").unwrap();
    for _ in 0..3 {
        assert_eq!(sum.query_row([10]).unwrap().get::<i64>(0).unwrap(), 45);
        assert_eq!(number(&connection, "SELECT sum(n) FROM numbers WHERE n < 3"), 3);
    }
    connection.register("numbers", Batches::new(vec![numbers(2..4)])).unwrap();
    assert_eq!(sum.query_row([10]).unwrap().get::<i64>(0).unwrap(), 5);
    assert_eq!(number(&connection, "SELECT sum(n) FROM numbers WHERE n < 3"), 2);
    assert!(connection.unregister("numbers").is_some());
    assert_eq!(sum.query_row([10]).unwrap_err().sqlstate(), "42P01");
    assert_eq!(connection.query("SELECT sum(n) FROM numbers WHERE n < 3").unwrap_err().sqlstate(), "42P01");
}

#[test]
fn tables_of_the_database_win_and_views_do_not_see_them() {
    let connection = connect();
    connection.register("x", Batches::new(vec![numbers(0..5)])).unwrap();
    assert_eq!(number(&connection, "SELECT count(*) FROM x"), 5);
    assert_eq!(number(&connection, "WITH x AS (SELECT 1) SELECT count(*) FROM x"), 1);
    assert_eq!(connection.execute("CREATE VIEW v AS SELECT n FROM x").unwrap_err().sqlstate(), "42P01");
    connection.execute("CREATE TABLE x (n INTEGER)").unwrap();
    assert_eq!(number(&connection, "SELECT count(*) FROM x"), 0);
    connection.execute("DROP TABLE x").unwrap();
    assert_eq!(number(&connection, "SELECT count(*) FROM x"), 5);
    for refused in ["INSERT INTO x VALUES (1, 'a')", "DELETE FROM x", "DROP TABLE x", "SELECT * FROM public.x"] {
        assert_eq!(connection.execute(refused).unwrap_err().sqlstate(), "42P01", "{refused}");
    }
    let other = connect();
    assert_eq!(other.query("SELECT * FROM x").unwrap_err().sqlstate(), "42P01");
    assert_eq!(connection.register("", Batches::new(vec![numbers(0..5)])).unwrap_err().sqlstate(), "42602");
}

#[test]
fn types_are_those_of_tables() {
    let connection = connect();
    let coded: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
    let table = batch([
        ("large", Arc::new(LargeStringArray::from(vec![Some("x"), None, Some("z")])) as ArrayRef),
        ("coded", Arc::new(coded) as ArrayRef),
        ("unsigned", Arc::new(UInt64Array::from(vec![u64::MAX, 0, 7])) as ArrayRef),
        ("at", Arc::new(TimestampNanosecondArray::from(vec![-1_000, 0, 1_700_000_000_000_000_000])) as ArrayRef),
        ("Upper", Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef),
    ]);
    connection.register("typed", Batches::new(vec![table])).unwrap();
    let row = "SELECT large || coded, unsigned::text, at::text, \"Upper\" FROM typed ORDER BY at LIMIT 1";
    let row = connection.query_row(row, ()).unwrap();
    assert_eq!(row.get::<&str>(0).unwrap(), "xa");
    assert_eq!(row.get::<&str>(1).unwrap(), "18446744073709551615");
    assert_eq!(row.get::<&str>(2).unwrap(), "1969-12-31 23:59:59.999999");
    connection.execute("CREATE TABLE kept AS SELECT * FROM typed").unwrap();
    let fine = batch([("at", Arc::new(TimestampNanosecondArray::from(vec![1])) as ArrayRef)]);
    connection.register("fine", Batches::new(vec![fine])).unwrap();
    let error = connection.query_row("SELECT max(at) FROM fine", ()).unwrap_err();
    assert_eq!(error.sqlstate(), "22008", "{error}");
    assert!(error.message().contains("\"at\""), "{error}");
}

#[derive(Debug)]
struct Resolver(AtomicUsize);

impl TableResolver for Resolver {
    fn resolve(&self, name: &str) -> Result<Option<Arc<dyn ExternalTable>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match name {
            "broken" => Err(Error::new(mainstem::ErrorKind::Invalid, "22023", "no table can be made of it")),
            "found" => Ok(Some(Batches::new(vec![numbers(0..7)]))),
            _ => Ok(None),
        }
    }
}

#[test]
fn a_resolver_is_asked_for_names_that_nothing_else_has() {
    let connection = connect();
    let resolver = Arc::new(Resolver(AtomicUsize::new(0)));
    connection.set_table_resolver(Some(resolver.clone()));
    connection.execute("CREATE TABLE t (n INTEGER)").unwrap();
    assert_eq!(number(&connection, "SELECT count(*) FROM t"), 0);
    assert_eq!(resolver.0.load(Ordering::SeqCst), 0);
    assert_eq!(number(&connection, "SELECT count(*) FROM found a, found b"), 49);
    assert_eq!(connection.query("SELECT * FROM missing").unwrap_err().sqlstate(), "42P01");
    assert_eq!(connection.query("SELECT * FROM broken").unwrap_err().sqlstate(), "22023");
    connection.set_table_resolver(None);
    assert_eq!(connection.query("SELECT * FROM found").unwrap_err().sqlstate(), "42P01");
}

#[derive(Debug)]
struct Failing;

impl ExternalTable for Failing {
    fn schema(&self) -> SchemaRef {
        numbers(0..1).schema()
    }

    fn scan(&self, columns: &[usize]) -> Result<ExternalBatches> {
        let first = numbers(0..1_000).project(columns)?;
        let failure = Error::new(mainstem::ErrorKind::Invalid, "38000", "the program has no more rows");
        Ok(Box::new([Ok(first), Err(failure)].into_iter()))
    }
}

#[test]
fn a_failure_while_they_are_read_is_the_statement_s() {
    let connection = connect();
    connection.register("failing", Arc::new(Failing)).unwrap();
    connection.execute("CREATE TABLE t (n BIGINT)").unwrap();
    let error = connection.execute("INSERT INTO t SELECT n FROM failing").unwrap_err();
    assert_eq!((error.sqlstate(), error.message()), ("38000", "the program has no more rows"));
    assert_eq!(number(&connection, "SELECT count(*) FROM t"), 0);
}
