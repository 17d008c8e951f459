//! TIME, UUID and CHAR(n) through the library: values of Rust types, parameters, appenders, COPY, both paths of short
//! statements.

use std::io::Read;

use mainstem::{Connection, DataType, Database, Time, Uuid, ValueRef};

/// How `result` ended.
fn state<T>(result: mainstem::Result<T>) -> &'static str {
    result.map_or_else(|e| e.sqlstate(), |_| "ok")
}

const ID: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";

fn connection() -> Connection {
    let connection = Database::in_memory().unwrap().connect().unwrap();
    connection.execute("CREATE TABLE t (id UUID PRIMARY KEY, at TIME, c CHAR(4), n INTEGER)").unwrap();
    connection
}

/// `(at, c, n)` of the row with this id.
fn row(connection: &Connection, id: Uuid) -> Option<(Option<Time>, Option<String>, Option<i32>)> {
    let select = connection.prepare("SELECT at, c, n FROM t WHERE id = $1").unwrap();
    let rows: Vec<_> = select.query((id,)).unwrap().collect::<Result<_, _>>().unwrap();
    let row = rows.first()?;
    Some((row.get("at").unwrap(), row.get("c").unwrap(), row.get("n").unwrap()))
}

#[test]
fn parameters_and_rows_have_rust_types() {
    for point_path in ["on", "off"] {
        let connection = connection();
        connection.execute(&format!("SET point_path = {point_path}")).unwrap();
        let (id, at): (Uuid, Time) = (ID.parse().unwrap(), "12:30:00.25".parse().unwrap());
        let insert = connection.prepare("INSERT INTO t VALUES ($1, $2, $3, $4)").unwrap();
        insert.execute((id, at, "ab  ", 1)).unwrap();
        // Text spells them, and 16 bytes are a UUID.
        insert.execute(("{B0EEBC999C0B4EF8BB6D6BB9BD380A11}", "13:02", "x", 2)).unwrap();
        insert.execute(([7_u8; 16], None::<Time>, None::<&str>, 3)).unwrap();
        assert_eq!(row(&connection, id), Some((Some(at), Some("ab  ".into()), Some(1))));
        let other: Uuid = "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11".parse().unwrap();
        assert_eq!(row(&connection, other), Some((Some("13:02".parse().unwrap()), Some("x   ".into()), Some(2))));
        assert_eq!(row(&connection, Uuid::from([7; 16])), Some((None, None, Some(3))));
        assert_eq!(row(&connection, Uuid::from(0)), None);

        assert_eq!(state(insert.execute((id, at, "a", 1))), "23505");
        assert_eq!(state(insert.execute(("nonsense", at, "a", 1))), "22P02");
        assert_eq!(state(insert.execute((5, at, "a", 1))), "42804");
        assert_eq!(state(insert.execute((Uuid::from(9), id, "a", 1))), "42804");
        assert_eq!(state(insert.execute((Uuid::from(9), "25:00", "a", 1))), "22008");
        assert_eq!(state(insert.execute((Uuid::from(9), at, "abcde", 1))), "22001");

        let update = connection.prepare("UPDATE t SET at = $2, c = $3 WHERE id = $1").unwrap();
        assert_eq!(update.execute((ID, "00:00", "  ")).unwrap(), 1);
        assert_eq!(row(&connection, id), Some((Some(Time::from_micros(0).unwrap()), Some("    ".into()), Some(1))));
        let by_text = connection.prepare("SELECT n FROM t WHERE c = $1").unwrap();
        assert_eq!(by_text.query_row(("x      ",)).unwrap().get::<i32>(0).unwrap(), 2);
        let delete = connection.prepare("DELETE FROM t WHERE id = $1").unwrap();
        assert_eq!(delete.execute((id,)).unwrap(), 1);
        assert_eq!(row(&connection, id), None);
    }
}

#[test]
fn results_say_their_types() {
    let connection = connection();
    connection.execute(&format!("INSERT INTO t VALUES ('{ID}', '1:00', 'ab', 1)")).unwrap();
    let select = connection.prepare("SELECT id, at, c, c::text AS s, gen_random_uuid() AS r FROM t").unwrap();
    let columns: Vec<DataType> = select.columns().unwrap().iter().map(|c| c.data_type()).collect();
    let (uuid, text) = (DataType::Uuid, DataType::Text { max_chars: None });
    assert_eq!(columns, [uuid, DataType::Time, DataType::Char { chars: 4 }, text, uuid]);
    let row = select.query_row(()).unwrap();
    assert_eq!(row.get::<Uuid>(0).unwrap().to_string(), ID);
    assert_eq!(row.get::<[u8; 16]>(0).unwrap(), *ID.parse::<Uuid>().unwrap().as_bytes());
    assert_eq!(row.get::<ValueRef<'_>>(2).unwrap(), ValueRef::Text("ab  "));
    assert_eq!(row.get::<String>(3).unwrap(), "ab");
    let random = row.get::<Uuid>(4).unwrap();
    assert_eq!(random.as_bytes()[6] >> 4, 4, "{random}");
    // What a statement returns is padded as what a query gives.
    let returned = connection.prepare("UPDATE t SET c = 'x' RETURNING c").unwrap().query_row(()).unwrap();
    assert_eq!(returned.get::<String>(0).unwrap(), "x   ");
}

#[test]
fn appenders_take_them() {
    let connection = connection();
    let mut appender = connection.appender("t").unwrap();
    let at: Time = "23:59:59.999999".parse().unwrap();
    appender.append_row((Uuid::from(1), at, "ab   ", 1)).unwrap();
    appender.append_row((Uuid::from(2), None::<Time>, None::<&str>, 2)).unwrap();
    appender.finish().unwrap();
    assert_eq!(row(&connection, Uuid::from(1)), Some((Some(at), Some("ab  ".into()), Some(1))));
    let mut appender = connection.appender("t").unwrap();
    let refused = appender.append_row((Uuid::from(3), at, "abcde", 1)).and_then(|()| appender.finish().map(drop));
    assert_eq!(state(refused), "22001");
    assert_eq!(row(&connection, Uuid::from(3)), None);
}

#[test]
fn copies_come_back() {
    let connection = connection();
    let rows = format!("('{ID}', '01:02:03.5', 'ab', 1), ('ffffffffffffffffffffffffffffffff', NULL, '', 2)");
    connection.execute(&format!("INSERT INTO t VALUES {rows}")).unwrap();
    connection.execute("CREATE TABLE u (id UUID PRIMARY KEY, at TIME, c CHAR(4), n INTEGER)").unwrap();
    let mut csv = Vec::new();
    connection.copy_out("COPY t TO STDOUT (FORMAT csv)", &mut csv).unwrap();
    let expected = format!("{ID},01:02:03.5,ab  ,1\nffffffff-ffff-ffff-ffff-ffffffffffff,,    ,2\n");
    assert_eq!(String::from_utf8(csv.clone()).unwrap(), expected);
    connection.copy_in("COPY u FROM STDIN (FORMAT csv)", &mut csv.as_slice()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.parquet");
    connection.execute(&format!("COPY t TO '{}' (FORMAT parquet)", file.display())).unwrap();
    connection.execute("CREATE TABLE v (id UUID PRIMARY KEY, at TIME, c CHAR(4), n INTEGER)").unwrap();
    connection.execute(&format!("COPY v FROM '{}' (FORMAT parquet)", file.display())).unwrap();
    for copy in ["u", "v"] {
        let sql = format!("SELECT count(*) FROM t JOIN {copy} AS x ON t.id = x.id AND t.c = x.c AND t.n = x.n");
        assert_eq!(connection.prepare(&sql).unwrap().query_row(()).unwrap().get::<i64>(0).unwrap(), 2, "{copy}");
        let sql = format!("SELECT at FROM {copy} WHERE id = '{ID}'");
        let at: Time = connection.prepare(&sql).unwrap().query_row(()).unwrap().get(0).unwrap();
        assert_eq!(at.to_string(), "01:02:03.5");
    }
    for (line, code) in [("x,,,1", "22P02"), (&format!("{ID},9:99,,1"), "22008"), (&format!("{ID},,abcde,1"), "22001")]
    {
        connection.execute("DELETE FROM u").unwrap();
        let mut data: Box<dyn Read> = Box::new(line.as_bytes());
        assert_eq!(state(connection.copy_in("COPY u FROM STDIN (FORMAT csv)", &mut data)), code, "{line}");
    }
}
