"""Values of all types, both ways."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import uuid
from decimal import Decimal

import pytest
from hypothesis import given, settings, strategies as st

import mainstem

UTC = dt.timezone.utc


def one(con, sql, *params):
    return con.execute(sql, params).fetchone()[0]


@pytest.mark.parametrize(
    "sql, value",
    [
        ("true", True), ("1::smallint", 1), ("1::int", 1), ("9223372036854775807", 2**63 - 1), ("1.5::real", 1.5),
        ("'x'", "x"), ("''", ""), ("1.50::numeric(5,2)", Decimal("1.50")), ("'\\x00ff'::bytea", b"\x00\xff"),
        ("date '2026-11-28'", dt.date(2026, 11, 28)), ("time '12:34:56.789'", dt.time(12, 34, 56, 789000)),
        ("timestamp '2026-11-28 12:00:00.000001'", dt.datetime(2026, 11, 28, 12, 0, 0, 1)),
        ("timestamptz '2026-11-28 12:00:00+02'", dt.datetime(2026, 11, 28, 10, tzinfo=UTC)),
        ("timestamp '1900-01-01 23:59:59.999999'", dt.datetime(1900, 1, 1, 23, 59, 59, 999999)),
        ("'12345678-1234-5678-1234-567812345678'::uuid", uuid.UUID("12345678-1234-5678-1234-567812345678")),
        ("interval '1 day 02:03:04.5'", dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
        ("interval '1 year 2 days'", mainstem.Interval(12, 2, 0)), ("NULL", None), ("'infinity'::float8", math.inf),
        ("array_agg(x)", [1, 2, None]),
    ],
)
def test_out(con, sql, value):
    found = one(con, f"SELECT {sql} FROM (VALUES (1), (2), (NULL)) v(x)" if "array" in sql else f"SELECT {sql}")
    assert found == value and type(found) is type(value)
    if isinstance(value, Decimal):
        assert str(found) == str(value)


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    "kind, value, stored",
    [
        ("BIGINT", -(2**63), None), ("NUMERIC(38,0)", 10**38 - 1, Decimal(10**38 - 1)), ("NUMERIC(30,10)", Decimal("1E-10"), None),
        ("DOUBLE PRECISION", 0.1, None), ("DOUBLE PRECISION", 3, 3.0), ("TEXT", "ä€🎉", None), ("TEXT", Colour.RED, "red"),
        ("BYTEA", b"\x00", None), ("BYTEA", bytearray(b"ab"), b"ab"), ("BYTEA", memoryview(b"ab"), b"ab"), ("BOOLEAN", False, None),
        ("DATE", dt.date(1, 1, 1), None), ("TIME", dt.time(23, 59, 59, 999999), None), ("TIMESTAMP", dt.datetime(9999, 12, 31), None),
        ("TIMESTAMPTZ", dt.datetime(2026, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=3))), dt.datetime(2025, 12, 31, 22, tzinfo=UTC)),
        ("UUID", uuid.UUID(int=7), None), ("DATE", "2026-02-28", dt.date(2026, 2, 28)), ("INTEGER", True, "error"),
    ],
)
def test_in(con, kind, value, stored):
    con.execute(f"CREATE TABLE t (v {kind})")
    for insert in (lambda: con.execute("INSERT INTO t VALUES (?)", (value,)), lambda: con.executemany("INSERT INTO t VALUES (?)", [(value,)])):
        if stored == "error":
            with pytest.raises(mainstem.Error):
                insert()
            continue
        insert()
    if stored != "error":
        assert con.execute("SELECT v FROM t").fetchall() == [(value if stored is None else stored,)] * 2


def test_numpy_and_pandas(con):
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    assert one(con, "SELECT ?::bigint", np.int64(5)) == 5
    assert one(con, "SELECT ?::float8", np.float32(1.5)) == 1.5
    assert one(con, "SELECT ?::boolean", np.bool_(True)) is True
    assert one(con, "SELECT ?::timestamp", np.datetime64("2026-11-28T12:00:00")) == dt.datetime(2026, 11, 28, 12)
    assert one(con, "SELECT ?::timestamp", pd.Timestamp("2026-11-28 12:00:00.000001")) == dt.datetime(2026, 11, 28, 12, 0, 0, 1)
    assert one(con, "SELECT ?::float8", np.longdouble(1.5)) == 1.5
    deep = []
    deep.append(deep)
    with pytest.raises(mainstem.ProgrammingError):
        con.execute("SELECT ?", (deep,))
    for null in (pd.NA, pd.NaT, np.datetime64("NaT")):
        assert one(con, "SELECT ?::text", null) is None
    for fine in (pd.Timestamp(1), np.datetime64(1, "ns")):
        with pytest.raises(mainstem.DataError) as raised:
            one(con, "SELECT ?::timestamp", fine)
        assert raised.value.sqlstate == "22008"


@pytest.mark.parametrize(
    "value, sqlstate",
    [(10**39, "22003"), (Decimal("1E400"), "22003"), (Decimal("NaN"), "22003"), ("\ud800", "22021"), (object(), "42804"), (1j, "42804")],
)
def test_what_cannot_be_held_is_an_error(con, value, sqlstate):
    with pytest.raises(mainstem.Error) as raised:
        con.execute("SELECT ?", (value,))
    assert raised.value.sqlstate == sqlstate


def test_naive_times_do_not_become_moments(con):
    con.execute("CREATE TABLE t (at TIMESTAMPTZ)")
    con.execute("INSERT INTO t VALUES (?)", (dt.datetime(2026, 1, 1, tzinfo=UTC),))
    assert con.execute("SELECT at FROM t").fetchone()[0].tzinfo is UTC


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1) | st.none(),
            st.floats(allow_nan=False) | st.none(),
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.none(),
            st.binary() | st.none(),
            st.booleans() | st.none(),
            st.decimals(-(10**9), 10**9, places=4, allow_nan=False) | st.none(),
            st.dates() | st.none(),
            st.times() | st.none(),
            st.datetimes() | st.none(),
            st.datetimes(timezones=st.just(UTC)) | st.none(),
            st.uuids() | st.none(),
        ),
        max_size=20,
    )
)
def test_round_trips(rows):
    con = mainstem.connect()
    con.execute(
        "CREATE TABLE t (id INT, i BIGINT, f FLOAT8, s TEXT, b BYTEA, o BOOLEAN, n NUMERIC(20,4), d DATE, t TIME, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID)"
    )
    numbered = [(at, *row) for at, row in enumerate(rows)]
    marks = ", ".join("?" * 12)
    con.executemany(f"INSERT INTO t VALUES ({marks})", numbered)
    assert con.execute("SELECT * FROM t ORDER BY id").fetchall() == numbered
    for row in numbered[:3]:
        con.execute("DELETE FROM t WHERE id = ?", (row[0],))
        con.execute(f"INSERT INTO t VALUES ({marks})", row)
    assert con.execute("SELECT * FROM t ORDER BY id").fetchall() == numbered
    con.close()
