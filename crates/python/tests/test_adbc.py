"""The driver, as pandas, Polars and the driver manager use it."""

from __future__ import annotations

import datetime
import decimal
import os
import subprocess
import sys
import threading
import time

import pytest

import mainstem
import mainstem.adbc

dbapi = pytest.importorskip("adbc_driver_manager.dbapi")
pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def con():
    with mainstem.adbc.connect(autocommit=True) as con:
        yield con


def rows(con, sql, params=None):
    with con.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def test_types_both_ways(con):
    values = [
        (
            True,
            7,
            1.5,
            "text",
            b"\x00\xff",
            decimal.Decimal("12.50"),
            datetime.date(2026, 11, 28),
            datetime.time(1, 2, 3, 4),
            datetime.datetime(2026, 11, 28, 1, 2, 3, 4),
            datetime.datetime(2026, 11, 28, 1, 2, 3, tzinfo=datetime.timezone.utc),
        ),
        (None,) * 10,
    ]
    with con.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE t (b BOOLEAN, i BIGINT, d DOUBLE PRECISION, t TEXT, y BYTEA, n NUMERIC(10,2), a DATE, "
            "o TIME, s TIMESTAMP, z TIMESTAMPTZ)"
        )
        assert cursor.executemany("INSERT INTO t VALUES (?,?,?,?,?,?,?,?,?,?)", values) is None
        assert cursor.rowcount == 2
    assert rows(con, "SELECT * FROM t") == values
    schema = con.adbc_get_table_schema("t")
    assert str(schema.field("t").type) == "string" and str(schema.field("n").type) == "decimal128(10, 2)"


def test_a_query_runs_for_each_row_that_is_bound(con):
    with con.cursor() as cursor:
        cursor.execute("SELECT ? AS v, ? * 2 AS w", pyarrow.table({"a": ["x", None, "y"], "b": [1, 2, 3]}))
        assert cursor.fetchall() == [("x", 2), (None, 4), ("y", 6)]
        cursor.execute("SELECT :b - :a", pyarrow.table({"a": [1, 2], "b": [10, 20]}))
        assert cursor.fetchall() == [(9,), (18,)]


def test_many_rows_are_all_or_none(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (k INT PRIMARY KEY)")
        with pytest.raises(dbapi.IntegrityError) as raised:
            cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (1,)])
        assert raised.value.sqlstate == "23505"
        assert rows(con, "SELECT count(*) FROM t") == [(0,)]
        cursor.execute("INSERT INTO t VALUES (7)")
        with pytest.raises(dbapi.DataError) as raised:
            cursor.executemany("UPDATE t SET k = 10 / ?", [(1,), (0,)])
        assert raised.value.sqlstate == "22012"
        assert rows(con, "SELECT k FROM t") == [(7,)]


@pytest.mark.parametrize("mode", ["create", "append", "replace", "create_append"])
def test_ingestion(con, mode):
    data = pyarrow.table({"k": [1, 2, 3], "v": ["a", None, "c"]})
    with con.cursor() as cursor:
        if mode != "create":
            cursor.execute("CREATE TABLE t (k BIGINT, v TEXT, extra INT DEFAULT 9)")
            cursor.execute("INSERT INTO t VALUES (0, 'old')")
        assert cursor.adbc_ingest("t", data, mode=mode) == 3
        before = [(0, "old")] if mode.endswith("append") else []
        assert rows(con, "SELECT k, v FROM t ORDER BY k") == [*before, (1, "a"), (2, None), (3, "c")]
        with pytest.raises(dbapi.ProgrammingError) as raised:
            cursor.adbc_ingest("t", data, mode="create")
        assert raised.value.sqlstate == "42P07"
        with pytest.raises(dbapi.ProgrammingError) as raised:
            cursor.adbc_ingest("nowhere", data, mode="append")
        assert raised.value.sqlstate == "42P01"
        with pytest.raises(dbapi.ProgrammingError) as raised:
            cursor.adbc_ingest("t", pyarrow.table({"unknown": [1]}), mode="append")
        assert raised.value.sqlstate == "42703"


def test_a_temporary_table_never_replaces_another(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t AS SELECT 1 AS k")
        with pytest.raises(dbapi.ProgrammingError):
            cursor.adbc_ingest("t", pyarrow.table({"k": [2]}), mode="append", temporary=True)
        cursor.adbc_ingest("t", pyarrow.table({"k": [2]}), mode="replace", temporary=True)
        assert rows(con, "SELECT k FROM t") == [(2,)]
        assert rows(con, "SELECT k FROM public.t") == [(1,)]
        cursor.adbc_ingest("t", pyarrow.table({"k": [3]}), mode="append")
        assert rows(con, "SELECT k FROM public.t ORDER BY k") == [(1,), (3,)]
        cursor.adbc_ingest("t", pyarrow.table({"k": [4]}), mode="replace", temporary=True)
        assert rows(con, "SELECT k FROM t") == [(4,)]
        assert rows(con, "SELECT count(*) FROM public.t") == [(2,)]


def test_a_stream_that_fails_leaves_nothing(con):
    def batches():
        yield pyarrow.record_batch({"k": [1]})
        raise ValueError("broken")

    schema = pyarrow.schema({"k": pyarrow.int64()})
    with con.cursor() as cursor:
        with pytest.raises(dbapi.Error, match="broken"):
            cursor.adbc_ingest("t", pyarrow.RecordBatchReader.from_batches(schema, batches()))
        assert rows(con, "SELECT count(*) FROM information_schema.tables WHERE table_name = 't'") == [(0,)]


def test_transactions():
    with mainstem.adbc.connect() as con:
        with con.cursor() as cursor:
            cursor.execute("CREATE TABLE t (k INT)")
            con.commit()
            cursor.execute("INSERT INTO t VALUES (1)")
            cursor.adbc_ingest("t", pyarrow.table({"k": [2]}), mode="append")
            con.rollback()
            cursor.execute("SELECT count(*) FROM t")
            assert cursor.fetchone() == (0,)


def test_a_folder_is_shared_with_the_module(tmp_path):
    with mainstem.connect(tmp_path / "shop") as module:
        module.execute("CREATE TABLE t AS SELECT 1 AS k")
        with mainstem.adbc.connect(tmp_path / "shop", autocommit=True) as con:
            assert rows(con, "SELECT k FROM t") == [(1,)]
            con.cursor().execute("INSERT INTO t VALUES (2)").close()
        assert module.execute("SELECT count(*) FROM t").fetchone() == (2,)
    with mainstem.adbc.connect(tmp_path / "shop", read_only=True) as con:
        assert rows(con, "SELECT count(*) FROM t") == [(2,)]
        with pytest.raises(dbapi.Error) as raised:
            rows(con, "INSERT INTO t VALUES (3)")
        assert raised.value.sqlstate == "25006"


def test_errors_have_their_sqlstate_and_place(con):
    with con.cursor() as cursor:
        with pytest.raises(dbapi.ProgrammingError) as raised:
            cursor.execute("SELECT nothing FROM (SELECT 1 AS x) t")
        assert raised.value.sqlstate == "42703"
        assert (b"mainstem.position", b"8") in raised.value.details
        with pytest.raises(dbapi.DataError) as raised:
            cursor.execute("SELECT 1 / (n - 3) FROM generate_series(1, 5) n")
        assert raised.value.sqlstate == "22012"
        with pytest.raises(dbapi.NotSupportedError):
            cursor.execute("CREATE TABLE f (k INT REFERENCES t (k))")
        with pytest.raises(dbapi.Error, match="bound"):
            cursor.adbc_statement.set_sql_query("SELECT ?")
            cursor.adbc_statement.execute_query()
    with pytest.raises(dbapi.Error, match="no option"):
        con.adbc_connection.set_options(**{"unknown.option": "1"})
    with pytest.raises(dbapi.Error, match="host"):
        mainstem.adbc.connect("mainstem://host/shop")


def test_cancel(con):
    with con.cursor() as cursor:
        timer = threading.Timer(0.2, cursor.adbc_cancel)
        timer.start()
        begun = time.monotonic()
        with pytest.raises(dbapi.Error) as raised:
            cursor.execute(
                "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x % 7 < y"
            )
        assert raised.value.sqlstate == "57014"
        assert time.monotonic() - begun < 5
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_objects(con):
    with con.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE, n NUMERIC(8,2) NOT NULL DEFAULT 1, CHECK (n > 0))"
        )
        cursor.execute("CREATE VIEW v AS SELECT id FROM t")
        cursor.execute("CREATE SCHEMA other")
        cursor.execute("CREATE TEMPORARY TABLE fleeting (k INT)")
    (catalog,) = con.adbc_get_objects().read_all().to_pylist()
    assert catalog["catalog_name"] == "mainstem"
    schemas = {schema["db_schema_name"]: schema["db_schema_tables"] for schema in catalog["catalog_db_schemas"]}
    assert {"public", "other"} <= set(schemas) and "information_schema" not in schemas
    tables = {table["table_name"]: table for table in schemas["public"]}
    assert (tables["t"]["table_type"], tables["v"]["table_type"]) == ("table", "view")
    columns = {column["column_name"]: column for column in tables["t"]["table_columns"]}
    assert columns["name"]["xdbc_column_size"] == 20 and columns["name"]["xdbc_type_name"] == "character varying"
    assert (columns["n"]["xdbc_nullable"], columns["n"]["xdbc_column_def"]) == (0, "1")
    constraints = {c["constraint_type"]: c["constraint_column_names"] for c in tables["t"]["table_constraints"]}
    assert constraints == {"PRIMARY KEY": ["id"], "UNIQUE": ["name"], "CHECK": ["n"]}
    assert con.adbc_get_objects(catalog_filter="other%").read_all().num_rows == 0
    assert con.adbc_get_table_types() == ["table", "temporary table", "view"]
    assert con.adbc_get_info()["vendor_name"] == "Mainstem"
    assert not con.adbc_get_table_schema("t").field("n").nullable


def test_settings_and_options(con):
    options = con.adbc_connection
    assert options.get_option("adbc.connection.catalog") == "mainstem"
    assert options.get_option("adbc.connection.db_schema") == "public"
    con.cursor().execute("CREATE SCHEMA s").close()
    options.set_options(**{"adbc.connection.db_schema": "s", "mainstem.statement_timeout": "5s"})
    assert options.get_option("adbc.connection.db_schema") == "s"
    assert options.get_option("mainstem.statement_timeout") == "5s"
    with con.cursor() as cursor:
        cursor.adbc_statement.set_options(**{"mainstem.result_views": "true"})
        cursor.execute("CREATE TABLE t (t TEXT)")
        cursor.execute("SELECT t FROM t")
        assert str(cursor.fetch_arrow_table().schema.field("t").type) == "string_view"


def test_pandas(con):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"k": range(1000), "v": [f"row {k}" for k in range(1000)], "x": [k / 7 for k in range(1000)]})
    assert frame.to_sql("t", con, index=False) == 1000
    again = pandas.read_sql("SELECT * FROM t ORDER BY k", con)
    pandas.testing.assert_frame_equal(frame, again, check_dtype=False)
    assert frame.to_sql("t", con, index=False, if_exists="append") == 1000
    assert frame.to_sql("t", con, index=False, if_exists="replace") == 1000
    assert pandas.read_sql_table("t", con).shape == (1000, 3)
    assert pandas.read_sql_query("SELECT sum(k) AS s FROM t", con)["s"][0] == 499500
    with pytest.raises(ValueError, match="exists"):
        frame.to_sql("t", con, index=False)


def test_polars(con):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"k": range(1000), "v": [f"row {k}" for k in range(1000)]})
    assert frame.write_database("t", con) == 1000
    assert polars.read_database("SELECT * FROM t ORDER BY k", con).equals(frame)
    batches = polars.read_database("SELECT * FROM t", con, iter_batches=True, batch_size=100)
    assert sum(batch.height for batch in batches) == 1000


def test_a_manifest_names_the_driver(tmp_path):
    path = mainstem.adbc.install_manifest(tmp_path)
    script = (
        "from adbc_driver_manager import dbapi\n"
        "con = dbapi.connect(driver='mainstem')\n"
        "print(con.execute('SELECT 6 * 7').fetchone())\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], env={"ADBC_DRIVER_PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert path.name == "mainstem.toml" and "(42,)" in out.stdout, out.stderr


# What a second reader found, once mended.


def stream(batches, of_type=None):
    schema = pyarrow.schema({"k": of_type or pyarrow.int64()})
    return pyarrow.RecordBatchReader.from_batches(schema, batches)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_cannot_use_the_connection(tmp_path):
    con = mainstem.adbc.connect(tmp_path / "db", autocommit=True)
    con.cursor().execute("CREATE TABLE t (k INT)").close()
    child = os.fork()
    if child == 0:
        try:
            rows(con, "INSERT INTO t VALUES (1)")
        except dbapi.Error as error:
            os._exit(0 if error.sqlstate == "08003" else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    rows(con, "INSERT INTO t VALUES (2)")
    con.close()
    with mainstem.connect(tmp_path / "db") as again:
        assert again.execute("SELECT k FROM t").fetchall() == [(2,)]


def test_texts_that_are_no_utf8_are_refused(con):
    bad = pyarrow.Array.from_buffers(
        pyarrow.string(), 1, [None, pyarrow.py_buffer(b"\0\0\0\0\2\0\0\0"), pyarrow.py_buffer(b"\xff\xfe")]
    )
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (v TEXT)")
        for work in (
            lambda: cursor.adbc_ingest("t", pyarrow.table({"v": bad}), mode="append"),
            lambda: cursor.execute("INSERT INTO t VALUES (?)", pyarrow.table({"v": bad})),
        ):
            with pytest.raises(dbapi.Error) as raised:
                work()
            assert raised.value.sqlstate == "22021"
    assert rows(con, "SELECT count(*) FROM t") == [(0,)]


def test_a_script_stops_at_rows_that_fail(con):
    with con.cursor() as cursor:
        cursor.executescript("CREATE TABLE u (k INT); INSERT INTO u VALUES (2)")
        for script in ("SELECT 1 / (k - 2) FROM u; DROP TABLE u", "BEGIN; INSERT INTO u VALUES (3); SELECT 1/0; COMMIT"):
            with pytest.raises(dbapi.DataError):
                cursor.executescript(script)
        cursor.executescript("ROLLBACK")
    assert rows(con, "SELECT k FROM u") == [(2,)]


def test_returning_with_rows_bound_writes_all_or_none(con):
    keys = lambda *k: pyarrow.table({"k": pyarrow.array(k, pyarrow.int32())})
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (k INT PRIMARY KEY)")
        cursor.execute("INSERT INTO t VALUES (?) RETURNING k", keys(1, 2, 3))
        assert rows(con, "SELECT count(*) FROM t") == [(3,)]
        assert cursor.fetchall() == [(1,), (2,), (3,)]
        with pytest.raises(dbapi.IntegrityError):
            cursor.execute("INSERT INTO t VALUES (?) RETURNING k", keys(7, 8, 7))
        assert rows(con, "SELECT count(*) FROM t") == [(3,)]


def test_with_autocommit_off_each_statement_of_a_script_is_in_a_transaction():
    with mainstem.adbc.connect() as con, con.cursor() as cursor:
        cursor.executescript("CREATE TABLE t (k INT); COMMIT; INSERT INTO t VALUES (1)")
        con.rollback()
        assert rows(con, "SELECT count(*) FROM t") == [(0,)]


def test_a_stream_may_not_ask_its_own_connection(con):
    def produce():
        yield pyarrow.record_batch({"k": [1]})
        rows(con, "SELECT 1")
        yield pyarrow.record_batch({"k": [2]})

    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (k BIGINT)")
        for work in (
            lambda: cursor.executemany("INSERT INTO t VALUES (?)", stream(produce())),
            lambda: cursor.adbc_ingest("t", stream(produce()), mode="append"),
        ):
            with pytest.raises(dbapi.Error, match="55006|use another one"):
                work()
        cursor.execute("CREATE TABLE src AS SELECT n AS k FROM generate_series(1, 30) n")
        cursor.execute("SELECT k FROM src WHERE k > ?", pyarrow.table({"x": [10, 20]}))
        with con.cursor() as other, pytest.raises(dbapi.Error, match="use another one"):
            other.adbc_ingest("t", cursor.fetch_record_batch(), mode="append")
    assert rows(con, "SELECT count(*) FROM t") == [(0,)]


def test_rows_that_are_bound_can_be_canceled(con):
    with con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (k BIGINT)")

        def produce():
            for at in range(1000):
                if at == 5:
                    cursor.adbc_cancel()
                yield pyarrow.record_batch({"k": [at]})

        with pytest.raises(dbapi.Error) as raised:
            cursor.executemany("INSERT INTO t VALUES (?)", stream(produce()))
        assert raised.value.sqlstate == "57014"
    assert rows(con, "SELECT count(*) FROM t") == [(0,)]


def test_replace_leaves_tables_of_other_schemas_alone(con):
    with con.cursor() as cursor:
        cursor.executescript(
            "CREATE SCHEMA s1; CREATE SCHEMA s2; CREATE TABLE s2.t AS SELECT 1 AS k; SET search_path = s1, s2"
        )
        cursor.adbc_ingest("t", pyarrow.table({"k": [9]}), mode="replace")
    assert (rows(con, "SELECT k FROM s1.t"), rows(con, "SELECT k FROM s2.t")) == ([(9,)], [(1,)])


def test_values_of_dictionaries_and_of_names(con):
    with_null = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1]), pyarrow.array(["a", None]))
    fine = pyarrow.array([1, 1001], pyarrow.timestamp("ns")).dictionary_encode()
    with con.cursor() as cursor:
        cursor.adbc_ingest("t", pyarrow.table({"v": with_null}))
        assert rows(con, "SELECT v FROM t") == [("a",), (None,)]
        for of_time in (fine, pyarrow.array([1], pyarrow.duration("ns")), pyarrow.array([1], pyarrow.date64())):
            with pytest.raises(dbapi.DataError) as raised:
                cursor.execute("SELECT ?", pyarrow.table({"v": of_time}))
            assert raised.value.sqlstate == "22008"
        cursor.execute("SELECT :b AS b, :a AS a", pyarrow.table({"a": [1.5], "b": [5]}))
        assert cursor.fetchall() == [(5, 1.5)]
        cursor.adbc_statement.set_options(**{"adbc.statement.bind_by_name": "false"})
        cursor.execute("SELECT :b AS b, :a AS a", pyarrow.table({"a": [1], "b": [5]}))
        assert cursor.fetchall() == [(1, 5)]
        cursor.execute("SELECT :a::int", {"a": 7})
        assert cursor.fetchall() == [(7,)]
        cursor.execute("SELECT :a::int", (8,))
        assert cursor.fetchall() == [(8,)]
        cursor.adbc_statement.set_options(**{"adbc.statement.bind_by_name": "true"})
        with pytest.raises(dbapi.Error) as raised:
            cursor.execute("SELECT :k", pyarrow.table({"kk": [1]}))
        assert raised.value.sqlstate == "08P01"


def test_the_process_ends_well_after_a_failed_ingestion():
    script = """
import mainstem.adbc, pyarrow as pa, time
con = mainstem.adbc.connect(autocommit=True)
cursor = con.cursor()
cursor.execute("CREATE TABLE t (k BIGINT CHECK (k < 5))")
def produce():
    for i in range(1000):
        time.sleep(0.01)
        yield pa.record_batch({"k": [i]})
try:
    cursor.adbc_ingest("t", pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64()}), produce()), mode="append")
except Exception as error:
    print(error.sqlstate)
cursor.close()
con.close()
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)
    assert (out.returncode, out.stdout.strip()) == (0, "23514"), out.stderr


def test_two_names_of_a_database_are_refused(tmp_path):
    with pytest.raises(dbapi.Error, match="two databases"):
        mainstem.adbc.connect(tmp_path / "a", options={"path": str(tmp_path / "b")})
    with mainstem.adbc.connect() as con, pytest.raises(dbapi.Error) as raised:
        con.adbc_connection.set_options(**{"adbc.connection.db_schema": "nowhere"})
    assert raised.value.sqlstate == "3F000"
