"""Frames and Arrow: into tables, into queries, and out of them."""

from __future__ import annotations

import datetime as dt

import pytest

import mainstem

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
np = pytest.importorskip("numpy")


def frames():
    data = {"city": ["Ulm", "Jena", None], "people": [128928, 111343, 7], "rate": [0.5, float("nan"), 1.5]}
    return {
        "pandas": pd.DataFrame(data),
        "polars": pl.DataFrame({**data, "rate": [0.5, None, 1.5]}),
        "lazy": pl.DataFrame({**data, "rate": [0.5, None, 1.5]}).lazy(),
        "arrow": pa.table({**data, "rate": [0.5, None, 1.5]}),
        "batch": pa.table({**data, "rate": [0.5, None, 1.5]}).to_batches()[0],
        "rows": [dict(zip(data, row)) for row in zip(data["city"], data["people"], [0.5, None, 1.5])],
        "columns": {**data, "rate": [0.5, None, 1.5]},
    }


@pytest.mark.parametrize("kind", list(frames()))
def test_variables_are_tables(con, kind):
    frame = frames()[kind]
    assert con.sql("SELECT city, people, rate FROM frame WHERE people > 100 ORDER BY city").fetchall() == [
        ("Jena", 111343, None), ("Ulm", 128928, 0.5),
    ]
    assert con.execute("SELECT count(*) FROM frame").fetchone() == (3,)
    assert con.execute("SELECT sum(people) FROM frame WHERE city = ?", ("Ulm",)).fetchone() == (128928,)
    assert con.execute("CREATE TABLE t AS SELECT * FROM frame").rowcount == 3
    con.register("again", frame)
    assert con.execute("SELECT max(people) FROM again").fetchone() == (128928,)
    assert con.unregister("again") and not con.unregister("again")
    if kind != "lazy":
        assert con.append("t", frame) == 3
        assert con.execute("SELECT count(*) FROM t").fetchone() == (6,)
    del frame


def test_variables_of_callers_and_of_the_module(con):
    mine = [{"a": 1}]

    def inner():
        return con.sql("SELECT a FROM mine").fetchone()

    assert inner() == (1,)
    con.execute("CREATE TABLE mine (a INT)")
    assert inner() is None, "tables win over variables"
    con.execute("DROP TABLE mine")
    Upper = [{"a": 2}]
    assert con.sql("SELECT a FROM Upper").fetchone() == (2,)
    number = 5
    with pytest.raises(mainstem.ProgrammingError, match="variable number is of type int") as raised:
        con.sql("SELECT * FROM number")
    assert raised.value.sqlstate == "42P01"
    with pytest.raises(mainstem.ProgrammingError):
        con.sql("SELECT * FROM nowhere")
    off = mainstem.connect(replacement_scans=False)
    with pytest.raises(mainstem.ProgrammingError):
        off.sql("SELECT a FROM mine")
    del mine, Upper, number


def test_streams_are_read_once(con):
    table = pa.table({"a": [1, 2, 3]})
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert con.sql("SELECT sum(a) FROM stream").fetchone() == (6,)

    def endless():
        while True:
            yield table.to_batches()[0]

    numbers = pa.RecordBatchReader.from_batches(table.schema, endless())
    assert con.sql("SELECT a FROM numbers LIMIT 2").fetchall() == [(1,), (2,)]
    con.register("once", pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    assert con.execute("SELECT count(*) FROM once").fetchone() == (3,)
    with pytest.raises(mainstem.Error) as spent:
        con.execute("SELECT count(*) FROM once").fetchone()
    assert spent.value.sqlstate == "55000"

    def broken():
        yield table.to_batches()[0]
        raise LookupError("the well is dry")

    failing = pa.RecordBatchReader.from_batches(table.schema, broken())
    with pytest.raises(mainstem.Error, match="the well is dry"):
        con.sql("SELECT count(*) FROM failing").fetchone()
    del stream, numbers, failing


def test_appended_rows_keep_their_order_and_are_all_or_none(con):
    table = pa.table({"x": [float(k) for k in range(300_000)], "k": range(300_000)})
    con.execute("CREATE TABLE t (k INTEGER, x DOUBLE PRECISION)")
    assert con.append("t", table) == 300_000
    assert con.execute("SELECT k FROM t LIMIT 3").fetchall() == [(0,), (1,), (2,)]
    assert con.append("t", table.select(["k"]), by="position") == 300_000
    con.execute("CREATE TABLE u (k INTEGER PRIMARY KEY)")
    with pytest.raises(mainstem.errors.UniqueViolation):
        con.append("u", pa.table({"k": [1, 2, 1]}))
    for wrong in [{"nothing": [1]}, {"k": ["x"]}]:
        with pytest.raises(mainstem.Error):
            con.append("u", pa.table(wrong))
    assert con.execute("SELECT count(*) FROM u").fetchone() == (0,)
    with pytest.raises(mainstem.ProgrammingError):
        con.append("u", 5)


def test_a_table_does_not_use_the_connection_that_reads_it(con):
    con.execute("CREATE TABLE t (a BIGINT)")
    schema = pa.schema([("a", pa.int64())])

    def batches(source):
        yield pa.record_batch({"a": [source.execute("SELECT 1").fetchone()[0]]}, schema)

    same = pa.RecordBatchReader.from_batches(schema, batches(con))
    with pytest.raises(mainstem.Error, match="use another one"):
        con.execute("INSERT INTO t SELECT a FROM same")
    other = pa.RecordBatchReader.from_batches(schema, batches(con.session()))
    assert con.execute("INSERT INTO t SELECT a FROM other").rowcount == 1
    del same, other


def test_results_of_the_same_database_are_tables(con):
    running = con.sql("SELECT n FROM generate_series(1, 3000000) n")
    assert con.sql("SELECT count(*), sum(n) FROM running").fetchone() == (3000000, 4500001500000)
    reader = con.sql("SELECT n FROM generate_series(1, 3000000) n").reader()
    assert con.sql("SELECT max(n) FROM reader").fetchone() == (3000000,)
    del running, reader


def test_rows_of_dictionaries_have_all_their_keys(con):
    rows = [{"a": 1}, {"a": 2, "b": "x"}]
    assert con.sql("SELECT a, b FROM rows ORDER BY a").fetchall() == [(1, None), (2, "x")]
    del rows


def test_an_open_result_over_a_generator_does_not_keep_the_interpreter(tmp_path):
    import subprocess
    import sys

    code = """
import mainstem, pyarrow as pa
schema = pa.schema([("a", pa.int64())])
def endless():
    while True:
        yield pa.record_batch({"a": [1] * 1000}, schema)
numbers = pa.RecordBatchReader.from_batches(schema, endless())
con = mainstem.connect()
cur = con.sql("SELECT a FROM numbers")
assert cur.fetchone() == (1,)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_frames_without_rows_and_columns_of_nulls(con):
    nothing = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    assert con.sql("SELECT count(*), sum(a), max(b) FROM nothing").fetchone() == (0, None, None)
    assert con.sql("SELECT * FROM nothing").fetchall() == []
    nulls = pl.DataFrame({"a": [1, 2], "n": [None, None]})
    assert con.sql("SELECT a, n, n || 'x' FROM nulls ORDER BY a").fetchall() == [(1, None, None), (2, None, None)]
    assert con.execute("CREATE TABLE t AS SELECT * FROM nulls").rowcount == 2
    assert con.append("t", nothing.select(["a"])) == 0
    del nothing, nulls


def test_odd_frames(con):
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    numbered = pd.DataFrame([[1, 2]])
    mixed = pd.DataFrame({"a": [1, "x"]})
    for name in ("twice", "numbered"):
        with pytest.raises(mainstem.NotSupportedError):
            con.sql(f"SELECT * FROM {name}")
    with pytest.raises(mainstem.Error):
        con.sql("SELECT * FROM mixed").fetchall()
    fine = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(mainstem.DataError) as raised:
        con.sql("SELECT * FROM fine").fetchall()
    assert raised.value.sqlstate == "22008"
    coded = pd.DataFrame({"c": pd.Categorical(["x", "y", "x"]), "at": pd.to_datetime(["2026-01-01"] * 3)})
    assert con.sql("SELECT c, count(*), min(at) FROM coded GROUP BY c ORDER BY c").fetchall() == [
        ("x", 2, dt.datetime(2026, 1, 1)), ("y", 1, dt.datetime(2026, 1, 1)),
    ]
    structured = np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])
    assert con.sql("SELECT a, b FROM structured").fetchone() == (1, 2.5)
    del twice, numbered, mixed, fine, coded, structured


def test_results_become_frames(t):
    query = "SELECT k, v, n FROM t ORDER BY k"
    table = t.sql(query).arrow()
    assert table.column_names == ["k", "v", "n"] and table.num_rows == 3
    assert table.schema.field("n").type == pa.decimal128(10, 2)
    assert [batch.num_rows for batch in t.sql(query).reader(rows=2)] == [2, 1]
    assert t.sql(query).pl().shape == (3, 3)
    frame = t.sql(query).df()
    assert list(frame.columns) == ["k", "v", "n"] and len(frame) == 3
    arrays = t.sql("SELECT k, n::float8 AS x FROM t ORDER BY k").numpy()
    assert arrays["k"].tolist() == [1, 2, 3] and arrays["x"].tolist() == [1.5, None, -2.25]
    assert t.sql(query).dicts()[0] == {"k": 1, "v": "a", "n": __import__("decimal").Decimal("1.50")}
    assert pa.table(t.sql("SELECT v FROM t WHERE k = 1"))["v"].to_pylist() == ["a"]
    for name in ("fetchdf", "fetch_df", "to_df", "fetch_arrow_table", "to_arrow_table", "fetchnumpy"):
        assert getattr(t.sql(query), name)() is not None
    assert sum(batch.num_rows for batch in t.sql(query).fetch_record_batch()) == 3
    reader = t.sql("SELECT n FROM generate_series(1, 1000000) n").reader()
    assert reader.read_next_batch().num_rows > 0
    assert pa.table(t.sql("SELECT k FROM t WHERE false")).num_rows == 0
