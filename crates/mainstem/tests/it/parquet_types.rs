//! Units and logical types of Parquet files: what other programs write is what it says it is, and what is written here
//! says what it is.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Date64Array, Decimal256Array, DictionaryArray, DurationNanosecondArray, Int32Array, Int64Array,
    LargeBinaryArray, LargeStringArray, RecordBatch, StringViewArray, Time32SecondArray, TimestampNanosecondArray,
    TimestampSecondArray,
};
use arrow::datatypes::{Int32Type, i256};
use mainstem::{Connection, Database};
use parquet::arrow::ArrowWriter;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, FixedLenByteArrayType, FloatType, Int32Type as ParquetInt32, Int64Type, Int96,
    Int96Type,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::support::{code, quiet, rows};

/// Values of a column, as they stand in a file.
enum Values {
    Bool(Vec<Option<bool>>),
    Int32(Vec<Option<i32>>),
    Int64(Vec<Option<i64>>),
    Int96(Vec<Option<(u64, u32)>>),
    Float(Vec<Option<f32>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Fixed(Vec<Option<Vec<u8>>>),
}

use Values::{Bytes, Fixed, Int32, Int64};

/// A file with the column `x`, `column` of Parquet's own notation, of `values` in two row groups: they, and they
/// again.
fn write(path: &Path, column: &str, values: &Values) {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {column}; }}")).unwrap());
    let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, Arc::default()).unwrap();
    for _ in 0..2 {
        fn put<T: DataType>(writer: &mut SerializedFileWriter<File>, values: Vec<Option<T::T>>) {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
            let there: Vec<T::T> = values.into_iter().flatten().collect();
            column.typed::<T>().write_batch(&there, Some(&levels), None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        let writer = &mut writer;
        match values {
            Values::Bool(values) => put::<BoolType>(writer, values.clone()),
            Int32(values) => put::<ParquetInt32>(writer, values.clone()),
            Int64(values) => put::<Int64Type>(writer, values.clone()),
            Values::Float(values) => put::<FloatType>(writer, values.clone()),
            Values::Int96(values) => {
                let value = |(nanos, day): (u64, u32)| {
                    let mut value = Int96::new();
                    value.set_data(nanos as u32, (nanos >> 32) as u32, day);
                    value
                };
                put::<Int96Type>(writer, values.iter().map(|v| v.map(value)).collect());
            }
            Bytes(values) => {
                put::<ByteArrayType>(writer, values.iter().map(|v| v.clone().map(Into::into)).collect());
            }
            Fixed(values) => {
                let value = |v: &Option<Vec<u8>>| v.clone().map(|v| parquet::data_type::ByteArray::from(v).into());
                put::<FixedLenByteArrayType>(writer, values.iter().map(value).collect());
            }
        }
    }
    writer.close().unwrap();
}

struct Reader {
    _database: Database,
    connection: Connection,
    folder: tempfile::TempDir,
}

impl Reader {
    fn new() -> Self {
        let database = quiet();
        let connection = database.connect().unwrap();
        Self { _database: database, connection, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("x.parquet")
    }

    fn name(&self) -> String {
        format!("'{}'", self.path().display())
    }

    fn texts(&self, sql: &str) -> Vec<String> {
        rows(&self.connection, &sql.replace("FILE", &self.name()))
    }

    fn code(&self, sql: &str) -> &'static str {
        code(&self.connection, &sql.replace("FILE", &self.name()))
    }

    fn execute(&self, sql: &str) {
        self.connection.execute_batch(&sql.replace("FILE", &self.name())).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }

    /// The column `x` of the file has the type `data_type` and the values `expected`, twice, in every way to read it.
    fn assert_is(&self, what: &str, data_type: &str, expected: &[&str]) {
        let twice: Vec<&str> = expected.iter().chain(expected).copied().collect();
        assert_eq!(self.texts("SELECT x::text FROM FILE"), twice, "{what}");
        assert_eq!(self.texts("SELECT pg_typeof(x) FROM FILE LIMIT 1"), [data_type], "{what}");
        assert_eq!(self.texts("SELECT count(*) FROM FILE"), [twice.len().to_string()], "{what}");
        self.execute("DROP TABLE IF EXISTS made; CREATE TABLE made AS SELECT x FROM FILE");
        self.execute("DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT x FROM made WHERE false");
        self.execute("COPY t FROM FILE (FORMAT parquet); INSERT INTO t SELECT x FROM FILE");
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        let all = |times: usize| sorted(twice.repeat(times).into_iter().map(String::from).collect());
        assert_eq!(sorted(self.texts("SELECT x::text FROM made")), all(1), "{what}");
        assert_eq!(sorted(self.texts("SELECT x::text FROM t")), all(2), "{what}");
        // A table of texts has the text of the value.
        self.execute("DROP TABLE t; CREATE TABLE t (x TEXT)");
        if data_type != "bytea" {
            self.execute("COPY t FROM FILE (FORMAT parquet)");
            assert_eq!(sorted(self.texts("SELECT x FROM t")), all(1), "{what}");
        }
        // No row is lost to a predicate, whatever the file says of least and greatest values.
        let mut values: Vec<&str> = expected.iter().copied().filter(|value| *value != "NULL").collect();
        values.sort_unstable();
        values.dedup();
        for value in values {
            let typed = format!("'{value}'::{data_type}");
            let of_value = expected.iter().filter(|other| **other == value).count() * 2;
            for condition in
                [format!("x = {typed}"), format!("x >= {typed} AND x <= {typed}"), format!("x IN ({typed})")]
            {
                let counted = self.texts(&format!("SELECT count(*) FROM FILE WHERE {condition}"));
                assert_eq!(counted, [of_value.to_string()], "{what}: {condition}");
            }
            let sides = format!(
                "SELECT count(*) FILTER (WHERE x < {typed}) + count(*) FILTER (WHERE NOT x < {typed}), count(x) FROM FILE"
            );
            let there = 2 * expected.iter().filter(|value| **value != "NULL").count();
            assert_eq!(self.texts(&sides), [format!("{there}|{there}")], "{what}");
        }
        let nulls = 2 * expected.iter().filter(|value| **value == "NULL").count();
        assert_eq!(self.texts("SELECT count(*) FROM FILE WHERE x IS NULL"), [nulls.to_string()], "{what}");
    }

    fn assert_file(&self, column: &str, values: &Values, data_type: &str, expected: &[&str]) {
        write(&self.path(), column, values);
        self.assert_is(column, data_type, expected);
    }

    /// Of a file that Arrow writes, with its own schema beside Parquet's.
    fn write_arrow(&self, array: ArrayRef) {
        let batch = RecordBatch::try_from_iter_with_nullable([("x", array, true)]).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(self.path()).unwrap(), batch.schema(), None).unwrap();
        for _ in 0..2 {
            writer.write(&batch).unwrap();
            writer.flush().unwrap();
        }
        writer.close().unwrap();
    }

    fn assert_arrow(&self, array: impl Array + 'static, data_type: &str, expected: &[&str]) {
        let what = array.data_type().to_string();
        self.write_arrow(Arc::new(array));
        self.assert_is(&what, data_type, expected);
    }
}

fn bytes(values: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    values.iter().map(|value| Some(value.to_vec())).chain([None]).collect()
}

const BEFORE: &str = "1969-12-31 23:59:59.999999";

#[test]
fn moments_of_every_unit_are_cut_toward_the_past() {
    let reader = Reader::new();
    let nanos = vec![Some(-1), None, Some(0), Some(999), Some(-1_000), Some(-1_001), Some(1_500)];
    let texts = [
        BEFORE,
        "NULL",
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00",
        BEFORE,
        "1969-12-31 23:59:59.999998",
        "1970-01-01 00:00:00.000001",
    ];
    let zoned = texts.map(|text| if text == "NULL" { text.to_owned() } else { format!("{text}+00") });
    let zoned = zoned.each_ref().map(String::as_str);
    let file = |column: &str, values: &Values, data_type: &str, expected: &[&str]| {
        reader.assert_file(column, values, data_type, expected);
    };
    let (plain, with_zone) = ("timestamp without time zone", "timestamp with time zone");
    file("optional int64 x (TIMESTAMP(NANOS,false))", &Int64(nanos.clone()), plain, &texts);
    file("optional int64 x (TIMESTAMP(NANOS,true))", &Int64(nanos.clone()), with_zone, &zoned);
    reader.assert_arrow(TimestampNanosecondArray::from(nanos.clone()), plain, &texts);
    reader.assert_arrow(
        TimestampNanosecondArray::from(nanos.clone()).with_timezone("Europe/Berlin"),
        with_zone,
        &zoned,
    );

    let few = Int64(vec![Some(-1), None, Some(1_700_000_000_123)]);
    let millis = ["1969-12-31 23:59:59.999", "NULL", "2023-11-14 22:13:20.123"];
    let zoned = ["1969-12-31 23:59:59.999+00", "NULL", "2023-11-14 22:13:20.123+00"];
    file("optional int64 x (TIMESTAMP(MILLIS,false))", &few, plain, &millis);
    file("optional int64 x (TIMESTAMP(MILLIS,true))", &few, with_zone, &zoned);
    // Of files from before logical types.
    file("optional int64 x (TIMESTAMP_MILLIS)", &few, with_zone, &zoned);
    let few = Int64(vec![Some(-1), None]);
    file("optional int64 x (TIMESTAMP(MICROS,false))", &few, plain, &[BEFORE, "NULL"]);
    file("optional int64 x (TIMESTAMP_MICROS)", &few, with_zone, &[&format!("{BEFORE}+00"), "NULL"]);
    reader.assert_arrow(TimestampSecondArray::from(vec![Some(-1), None]), plain, &["1969-12-31 23:59:59", "NULL"]);

    // Days of the Julian calendar, and nanoseconds of the day: further than 64 bits of nanoseconds reach.
    let days = vec![Some((86_399_999_999_999, 2_440_587)), None, Some((1_999, 5_373_484)), Some((0, 1_721_426))];
    let texts = [BEFORE, "NULL", "9999-12-31 00:00:00.000001", "0001-01-01 00:00:00"];
    file("optional int96 x", &Values::Int96(days), plain, &texts);

    // What is beyond microseconds is told.
    for column in ["TIMESTAMP(MILLIS,false)", "TIMESTAMP(MILLIS,true)"] {
        write(&reader.path(), &format!("optional int64 x ({column})"), &Int64(vec![Some(i64::MAX)]));
        assert_eq!(reader.code("SELECT x FROM FILE"), "22008");
        assert_eq!(reader.code("CREATE TABLE never AS SELECT x FROM FILE"), "22008");
    }
}

#[test]
fn days_and_times_of_every_unit() {
    let reader = Reader::new();
    let times = ["00:00:00", "NULL", "23:59:59.999999"];
    let time = "time without time zone";
    let day = 86_400_000_000_000;
    for adjusted in [false, true] {
        let nanos = Int64(vec![Some(999), None, Some(day - 1)]);
        reader.assert_file(&format!("optional int64 x (TIME(NANOS,{adjusted}))"), &nanos, time, &times);
        let micros = Int64(vec![Some(0), None, Some(day / 1_000 - 1)]);
        reader.assert_file(&format!("optional int64 x (TIME(MICROS,{adjusted}))"), &micros, time, &times);
        let millis = Int32(vec![Some(1), None, Some(86_399_999)]);
        let texts = ["00:00:00.001", "NULL", "23:59:59.999"];
        reader.assert_file(&format!("optional int32 x (TIME(MILLIS,{adjusted}))"), &millis, time, &texts);
    }
    reader.assert_arrow(Time32SecondArray::from(vec![Some(61), None]), time, &["00:01:01", "NULL"]);
    let days = ["1969-12-31", "NULL", "1970-01-02"];
    reader.assert_file("optional int32 x (DATE)", &Int32(vec![Some(-1), None, Some(1)]), "date", &days);
    reader.assert_arrow(Date64Array::from(vec![Some(-1), None, Some(86_400_000)]), "date", &days);
    let days = ["1969-12-31", "1970-01-01", "1969-12-30"];
    reader.assert_arrow(Date64Array::from(vec![-86_400_000, 86_399_999, -86_400_001]), "date", &days);
    let spans = DurationNanosecondArray::from(vec![1]);
    reader.write_arrow(Arc::new(spans));
    assert_eq!(reader.code("SELECT x FROM FILE"), "0A000");
}

#[test]
fn bytes_are_uuids_where_the_file_says_so() {
    let reader = Reader::new();
    let uuids = bytes(&[&[0xab; 16], &[0; 16]]);
    let texts = ["abababab-abab-abab-abab-abababababab", "00000000-0000-0000-0000-000000000000", "NULL"];
    reader.assert_file("optional fixed_len_byte_array(16) x (UUID)", &Fixed(uuids.clone()), "uuid", &texts);
    let hex = [format!("\\x{}", "ab".repeat(16)), format!("\\x{}", "00".repeat(16))];
    reader.assert_file(
        "optional fixed_len_byte_array(16) x",
        &Fixed(uuids.clone()),
        "bytea",
        &[&hex[0], &hex[1], "NULL"],
    );
    // A table says it, too, as files of an older version do not.
    reader.execute("CREATE TABLE u (x UUID); COPY u FROM FILE (FORMAT parquet)");
    assert_eq!(reader.texts("SELECT count(*) FROM u WHERE x = 'abababab-abab-abab-abab-abababababab'"), ["2"]);
    for length in [1, 5, 12, 15, 17, 40] {
        let values = bytes(&[&vec![0xab; length]]);
        let hex = format!("\\x{}", "ab".repeat(length));
        reader.assert_file(
            &format!("optional fixed_len_byte_array({length}) x"),
            &Fixed(values),
            "bytea",
            &[&hex, "NULL"],
        );
        assert_eq!(reader.code("COPY u FROM FILE (FORMAT parquet)"), "42804");
    }
    reader.assert_file("optional binary x", &Bytes(bytes(&[b"\x00\xff", b""])), "bytea", &["\\x00ff", "\\x", "NULL"]);
    assert_eq!(reader.code("COPY u FROM FILE (FORMAT parquet)"), "42804");
    reader.assert_file("optional binary x (BSON)", &Bytes(bytes(&[b"\x05\x00"])), "bytea", &["\\x0500", "NULL"]);
    for column in [
        "optional binary x (UTF8)",
        "optional binary x (STRING)",
        "optional binary x (ENUM)",
        "optional binary x (JSON)",
    ] {
        let values = Bytes(bytes(&["\"ä\"".as_bytes(), b"", b"b"]));
        reader.assert_file(column, &values, "text", &["\"ä\"", "", "b", "NULL"]);
        write(&reader.path(), column, &Bytes(bytes(&[b"a", b"\xff"])));
        reader.execute("DROP TABLE IF EXISTS texts; CREATE TABLE texts (x TEXT)");
        for sql in ["SELECT x FROM FILE", "COPY texts FROM FILE (FORMAT parquet)"] {
            let code = reader.code(sql);
            assert!(["22021", "22P04"].contains(&code), "{column}: {sql}: {code}");
        }
    }
    // Months, days and milliseconds, of which Arrow's reader leaves something out.
    write(&reader.path(), "optional fixed_len_byte_array(12) x (INTERVAL)", &Fixed(bytes(&[&[1; 12]])));
    assert_eq!(reader.code("SELECT x FROM FILE"), "0A000");
    assert_eq!(reader.code("COPY texts FROM FILE (FORMAT parquet)"), "0A000");
}

#[test]
fn numbers_of_every_width() {
    let reader = Reader::new();
    let small = || Int32(vec![Some(-1), None, Some(7)]);
    let file = |column: &str, values: &Values, data_type: &str, expected: &[&str]| {
        reader.assert_file(column, values, data_type, expected);
    };
    file("optional int32 x", &small(), "integer", &["-1", "NULL", "7"]);
    file("optional int32 x (INTEGER(8,true))", &small(), "smallint", &["-1", "NULL", "7"]);
    file("optional int32 x (INTEGER(16,true))", &small(), "smallint", &["-1", "NULL", "7"]);
    file("optional int32 x (INTEGER(8,false))", &Int32(vec![Some(255), None]), "smallint", &["255", "NULL"]);
    file("optional int32 x (INTEGER(16,false))", &Int32(vec![Some(65_535), None]), "integer", &["65535", "NULL"]);
    file("optional int32 x (INTEGER(32,false))", &small(), "bigint", &["4294967295", "NULL", "7"]);
    file("optional int32 x (UINT_32)", &small(), "bigint", &["4294967295", "NULL", "7"]);
    reader.execute("CREATE TABLE narrow (x INTEGER)");
    assert_eq!(reader.code("COPY narrow FROM FILE (FORMAT parquet)"), "22003");
    for column in ["optional int64 x (INTEGER(64,false))", "optional int64 x (UINT_64)"] {
        file(column, &Int64(vec![Some(-1), None, Some(7)]), "numeric", &["18446744073709551615", "NULL", "7"]);
        reader.execute("DROP TABLE IF EXISTS wide; CREATE TABLE wide (x BIGINT)");
        assert_eq!(reader.code("COPY wide FROM FILE (FORMAT parquet)"), "22003");
        assert_eq!(reader.code("SELECT x::bigint FROM FILE"), "22003");
        file(column, &Int64(vec![Some(i64::MAX)]), "numeric", &["9223372036854775807"]);
        reader.execute("COPY wide FROM FILE (FORMAT parquet)");
    }
    file(
        "optional boolean x",
        &Values::Bool(vec![Some(true), None, Some(false)]),
        "boolean",
        &["true", "NULL", "false"],
    );
    file("optional float x", &Values::Float(vec![Some(1.5), None]), "real", &["1.5", "NULL"]);
    // 1.5, -2 and the smallest one.
    let halves = Fixed(bytes(&[&[0x00, 0x3e], &[0x00, 0xc0], &[0x01, 0x00]]));
    file("optional fixed_len_byte_array(2) x (FLOAT16)", &halves, "real", &["1.5", "-2", "5.9604645e-08", "NULL"]);

    let texts = ["-0.01", "NULL", "0.07"];
    file("optional int32 x (DECIMAL(9,2))", &small(), "numeric", &texts);
    file("optional int64 x (DECIMAL(18,2))", &Int64(vec![Some(-1), None, Some(7)]), "numeric", &texts);
    let texts = ["-0.01", "0.07", "655.37", "NULL"];
    for length in [3, 9, 16, 17, 32] {
        let wide = |value: i32| {
            let sign = if value < 0 { 0xff } else { 0 };
            [vec![sign; length - 3], value.to_be_bytes()[1..].to_vec()].concat()
        };
        let values = Fixed(bytes(&[&wide(-1), &wide(7), &wide(65_537)]));
        let digits = [6, 20, 38, 38, 38][[3, 9, 16, 17, 32].iter().position(|l| *l == length).unwrap()];
        file(&format!("optional fixed_len_byte_array({length}) x (DECIMAL({digits},2))"), &values, "numeric", &texts);
    }
    let values = Bytes(bytes(&[&[0xff], &[0x00, 0x07], &[0x01, 0x00, 0x01]]));
    file("optional binary x (DECIMAL(12,2))", &values, "numeric", &texts);
    let wide = Decimal256Array::from(vec![Some(i256::from_i128(-1)), None]).with_precision_and_scale(38, 3).unwrap();
    reader.assert_arrow(wide, "numeric", &["-0.001", "NULL"]);
    let wide = Decimal256Array::from(vec![i256::from_i128(5)]).with_precision_and_scale(40, 3).unwrap();
    reader.write_arrow(Arc::new(wide));
    assert_eq!(reader.code("SELECT x FROM FILE"), "0A000");
}

/// Arrow's schema, where a file has it, says more than Parquet's types can.
#[test]
fn types_of_arrow_are_read() {
    let reader = Reader::new();
    let codes = DictionaryArray::<Int32Type>::try_new(
        Int32Array::from(vec![Some(1), None, Some(0)]),
        Arc::new(Int64Array::from(vec![70, 80])),
    );
    reader.assert_arrow(codes.unwrap(), "bigint", &["80", "NULL", "70"]);
    let codes: DictionaryArray<Int32Type> = [Some("a"), None, Some("b")].into_iter().collect();
    reader.assert_arrow(codes, "text", &["a", "NULL", "b"]);
    let moments = DictionaryArray::<Int32Type>::try_new(
        Int32Array::from(vec![Some(0), None]),
        Arc::new(TimestampNanosecondArray::from(vec![-1])),
    );
    reader.assert_arrow(moments.unwrap(), "timestamp without time zone", &[BEFORE, "NULL"]);
    reader.assert_arrow(LargeStringArray::from(vec![Some("a"), None]), "text", &["a", "NULL"]);
    reader.assert_arrow(StringViewArray::from(vec![Some("a"), None]), "text", &["a", "NULL"]);
    reader.assert_arrow(LargeBinaryArray::from_opt_vec(vec![Some(b"a"), None]), "bytea", &["\\x61", "NULL"]);
    reader.assert_arrow(arrow::array::NullArray::new(2), "text", &["NULL", "NULL"]);
}

/// The logical types of the leaves of a file.
fn leaves(path: &Path) -> Vec<(String, PhysicalType, Option<LogicalType>)> {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let columns = file.metadata().file_metadata().schema_descr().columns().to_vec();
    let leaf = |c: &Arc<parquet::schema::types::ColumnDescriptor>| {
        (c.path().string(), c.physical_type(), c.logical_type_ref().cloned())
    };
    columns.iter().map(leaf).collect()
}

#[test]
fn what_is_written_says_what_it_is() {
    let reader = Reader::new();
    reader.execute(
        "CREATE TABLE all_types (u UUID, b BYTEA, t TEXT, c CHAR(3), s SMALLINT, i INTEGER, l BIGINT, d DATE, h TIME,
             ts TIMESTAMP, tz TIMESTAMPTZ, n NUMERIC(9, 2), w NUMERIC(38, 2), r REAL, f DOUBLE PRECISION, o BOOLEAN);
         INSERT INTO all_types VALUES ('abababab-abab-abab-abab-abababababab', '\\x00112233445566778899aabbccddeeff',
             'a', 'b', 1, 2, 3, '1969-12-31', '23:59:59.999999', '1969-12-31 23:59:59.999999',
             '1969-12-31 23:59:59.999999+00', -0.01, 12345678901234567890.12, 1.5, 2.5, true);
         INSERT INTO all_types (i) VALUES (NULL)",
    );
    let types = [
        ("u", "uuid"),
        ("b", "bytea"),
        ("t", "text"),
        ("s", "smallint"),
        ("i", "integer"),
        ("l", "bigint"),
        ("d", "date"),
        ("h", "time without time zone"),
        ("ts", "timestamp without time zone"),
        ("tz", "timestamp with time zone"),
        ("n", "numeric"),
        ("w", "numeric"),
        ("r", "real"),
        ("f", "double precision"),
        ("o", "boolean"),
    ];
    let folder = reader.folder.path().join("exported");
    reader.execute(&format!("EXPORT DATABASE '{}'", folder.display()));
    reader.execute("COPY all_types TO FILE (FORMAT parquet)");
    for path in [reader.path(), folder.join("data/public.all_types.parquet")] {
        let logical: Vec<_> = leaves(&path).into_iter().filter(|leaf| leaf.2 == Some(LogicalType::Uuid)).collect();
        assert_eq!(logical, [("u".to_owned(), PhysicalType::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid))]);
        let file = format!("'{}'", path.display());
        for (name, data_type) in types {
            let typed = rows(&reader.connection, &format!("SELECT DISTINCT pg_typeof({name}) FROM {file}"));
            assert_eq!(typed, [data_type], "{name}");
        }
        let names = types.map(|(name, _)| name).join(", ");
        let differs =
            format!("SELECT count(*) FROM (SELECT {names} FROM {file} EXCEPT SELECT {names} FROM all_types) x");
        assert_eq!(rows(&reader.connection, &differs), ["0"]);
    }
    let copied = quiet();
    let copy = copied.connect().unwrap();
    copy.execute(&format!("IMPORT DATABASE '{}'", folder.display())).unwrap();
    let all = "SELECT * FROM all_types ORDER BY i";
    assert_eq!(rows(&copy, all), rows(&reader.connection, all));
    // Within arrays, and where all of them are NULL.
    reader.execute("COPY (SELECT array_agg(u) AS a, NULL::uuid AS n FROM all_types) TO FILE (FORMAT parquet)");
    let leaves = leaves(&reader.path());
    assert!(leaves.len() == 2 && leaves.iter().all(|leaf| leaf.2 == Some(LogicalType::Uuid)), "{leaves:?}");
}
