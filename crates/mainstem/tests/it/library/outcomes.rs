//! One call for any statement: what it gives, without a plan and with one.

use arrow::array::RecordBatchReader;
use mainstem::{DataType, Database, Value};

#[test]
fn outcomes_are_the_same_without_a_plan() {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT, n NUMERIC(5,2))").unwrap();
    for point_path in ["on", "off"] {
        connection.execute(&format!("DELETE FROM t; SET point_path = {point_path}")).unwrap();
        let before = connection.short_statements();
        let insert = connection.run_with("INSERT INTO t VALUES ($1, $2, 1.5)", (1, "one")).unwrap();
        assert_eq!((&*insert.tag, insert.rows_affected, insert.rows.is_none()), ("INSERT 0 1", Some(1), true));
        let insert = connection.run_with("INSERT INTO t VALUES ($1, $2) RETURNING v, k", (2, "two")).unwrap();
        assert_eq!((&*insert.tag, insert.rows_affected), ("INSERT 0 1", Some(1)));
        let row = insert.rows.unwrap().rows().next().unwrap().unwrap();
        assert_eq!(row.values(), [Value::Text("two".into()), Value::Int(2)]);
        let select = connection.run_with("SELECT n, v FROM t WHERE k = $1", [1]).unwrap();
        assert_eq!((&*select.tag, select.rows_affected), ("SELECT", None));
        // The same result as batches.
        let reader = select.rows.unwrap().into_reader();
        let schema = reader.schema();
        assert_eq!(schema.field(0).data_type(), &arrow::datatypes::DataType::Decimal128(5, 2));
        let batches: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
        assert_eq!(batches[0].schema(), schema);
        let none = connection.run_with("SELECT n, v FROM t WHERE k = $1", [9]).unwrap().rows.unwrap();
        assert_eq!(none.rows().count(), 0);
        let none = connection.run_with("SELECT n, v FROM t WHERE k = $1", [9]).unwrap().rows.unwrap();
        assert_eq!(none.into_reader().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 0);
        let update = connection.run_with("UPDATE t SET v = $2 WHERE k = $1", (1, "new")).unwrap();
        assert_eq!((&*update.tag, update.rows_affected), ("UPDATE 1", Some(1)));
        let delete = connection.run_with("DELETE FROM t WHERE k = $1", [1]).unwrap();
        assert_eq!((&*delete.tag, delete.rows_affected), ("DELETE 1", Some(1)));
        assert_eq!(connection.run_with("BEGIN", ()).unwrap().tag, "BEGIN");
        assert_eq!(connection.run_with("COMMIT", ()).unwrap().tag, "COMMIT");
        let short = connection.short_statements() - before;
        assert_eq!(short > 0, point_path == "on", "{short}");
        assert_eq!(connection.run_with("SELECT $1 FROM t", (1, 2)).unwrap_err().sqlstate(), "08P01");
    }
}

#[test]
fn statements_that_own_their_connection_and_declared_types() {
    let connection = std::sync::Arc::new(Database::in_memory().unwrap().connect().unwrap());
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").unwrap();
    let insert = connection.prepare_owned("INSERT INTO t VALUES ($1)").unwrap();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let insert = insert.clone();
            std::thread::spawn(move || {
                for n in 0..25 {
                    assert_eq!(insert.statement().execute([thread * 25 + n]).unwrap(), 1);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(connection.query_row("SELECT count(*) FROM t", ()).unwrap().get::<i64>(0).unwrap(), 100);
    let typed = connection.prepare_with_types("SELECT $1 + $2 AS sum, $3", &[DataType::SmallInt, DataType::Integer]);
    let typed = typed.unwrap();
    assert_eq!(typed.parameter_types().unwrap()[..2], [Some(DataType::SmallInt), Some(DataType::Integer)]);
    assert_eq!(typed.columns().unwrap()[0].data_type(), DataType::Integer);
    let row = typed.query_row(("3", 4, "x")).unwrap();
    assert_eq!(row.get::<i32>(0).unwrap(), 7);
    assert_eq!(typed.query_row((40_000, 4, "x")).unwrap_err().sqlstate(), "22003");
    assert_eq!(connection.prepare_with_types("SELECT $1 || 1 FROM missing", &[]).unwrap_err().sqlstate(), "42P01");
}
