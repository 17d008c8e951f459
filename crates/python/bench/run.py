"""What the module does in a second, next to sqlite3, DuckDB and Polars in the same minutes.

    python bench/run.py [--quick] [CASE ...]

Each case runs in turns, as often as `RUNS` says; medians count. Every answer is checked. It needs duckdb, polars, pyarrow,
pandas, adbc-driver-manager and a release build of the module.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

import mainstem

RUNS = 5
Case = dict[str, Callable[[], float]]


def timed(work: Callable[[], Any], check: Callable[[Any], bool] = lambda _: True) -> float:
    start = time.perf_counter()
    got = work()
    took = time.perf_counter() - start
    assert check(got), got
    return took


def opened(kind: str, folder: str) -> Any:
    path = tempfile.mkdtemp(dir=folder)
    if kind == "mainstem":
        return mainstem.connect(path, synchronous="off")
    if kind == "sqlite3":
        con = sqlite3.connect(f"{path}/db")
        con.execute("PRAGMA journal_mode = WAL")
        con.execute("PRAGMA synchronous = OFF")
        return con
    return duckdb.connect(f"{path}/db")


TABLE = "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT, x DOUBLE PRECISION)"
INSERT = "INSERT INTO t VALUES (?, ?, ?)"


def executemany(rows: int, folder: str) -> Case:
    data = [(k, f"row {k}", k / 7) for k in range(rows)]

    def run(kind: str, count: int) -> float:
        con = opened(kind, folder)
        con.execute(TABLE)
        part = data[:count]

        def work() -> None:
            con.executemany(INSERT, part)
            con.commit()

        took = timed(work)
        assert con.execute("SELECT count(*), sum(k) FROM t").fetchone() == (count, count * (count - 1) // 2)
        con.close()
        return took * rows / count

    # DuckDB takes minutes for a million.
    return {
        "mainstem": lambda: run("mainstem", rows),
        "sqlite3": lambda: run("sqlite3", rows),
        "duckdb": lambda: run("duckdb", min(rows, 3_000)),
    }


def loop_inserts(rows: int, folder: str) -> Case:
    def run(kind: str, count: int) -> float:
        con = opened(kind, folder)
        con.execute(TABLE)

        def work() -> None:
            con.execute("BEGIN")
            for k in range(count):
                con.execute(INSERT, (k, "a row", 0.5))
            con.commit()

        took = timed(work)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (count,)
        con.close()
        return took * rows / count

    return {
        "mainstem": lambda: run("mainstem", rows),
        "sqlite3": lambda: run("sqlite3", rows),
        "duckdb": lambda: run("duckdb", min(rows, 3_000)),
    }


def loop_selects(rows: int, folder: str) -> Case:
    def connect(kind: str) -> Any:
        con = opened(kind, folder)
        con.execute(TABLE)
        con.executemany(INSERT, [(k, f"row {k}", k / 7) for k in range(2_000)])
        con.commit()
        return con

    cons = {kind: connect(kind) for kind in ("mainstem", "sqlite3", "duckdb")}

    def run(kind: str, count: int) -> float:
        con = cons[kind]

        def work() -> int:
            found = 0
            for k in range(count):
                found += con.execute("SELECT v, x FROM t WHERE k = ?", (k % 2_000,)).fetchone() is not None
            return found

        return timed(work, lambda found: found == count) * rows / count

    return {
        "mainstem": lambda: run("mainstem", rows),
        "sqlite3": lambda: run("sqlite3", rows),
        "duckdb": lambda: run("duckdb", min(rows, 3_000)),
    }


def filled(kind: str, folder: str, rows: int) -> Any:
    con = opened(kind, folder)
    con.execute(TABLE)
    if kind == "sqlite3":
        con.executemany(INSERT, ((k, f"row {k}", k / 7) for k in range(rows)))
    else:
        con.execute(f"INSERT INTO t SELECT n, 'row ' || n, n / 7.0::float8 FROM generate_series(0, {rows - 1}) g(n)")
    con.commit()
    return con


def fetchall(rows: int, folder: str) -> Case:
    cons = {kind: filled(kind, folder, rows) for kind in ("mainstem", "sqlite3", "duckdb")}
    run = lambda con: timed(lambda: con.execute("SELECT k, v, x FROM t").fetchall(), lambda got: len(got) == rows)
    return {kind: (lambda con=con: run(con)) for kind, con in cons.items()}


def to_arrow(rows: int, folder: str, columns: str = "k, v, x") -> Case:
    ours, theirs = (filled(kind, folder, rows) for kind in ("mainstem", "duckdb"))
    query = f"SELECT {columns} FROM t"

    def check(got: pa.Table) -> bool:
        return got.num_rows == rows and pc.sum(got["k"]).as_py() == rows * (rows - 1) // 2

    return {
        "mainstem": lambda: timed(lambda: ours.sql(query).arrow(), check),
        "duckdb": lambda: timed(lambda: theirs.sql(query).to_arrow_table(), check),
    }


def to_arrow_numbers(rows: int, folder: str) -> Case:
    return to_arrow(rows, folder, "k, x")


def table_of(rows: int) -> pa.Table:
    return pa.table({
        "k": pa.array(range(rows), pa.int32()),
        "v": pa.array([f"row {k % 1000}" for k in range(rows)]),
        "x": pa.array([k / 7 for k in range(rows)]),
    })


def append(rows: int, folder: str) -> Case:
    data = table_of(rows)
    definition = "CREATE TABLE t (k INTEGER, v TEXT, x DOUBLE PRECISION)"

    def run(kind: str) -> float:
        con = opened(kind, folder)
        con.execute(definition)

        def insert() -> None:
            frame = data  # noqa: F841 - the query names it
            con.execute("INSERT INTO t SELECT * FROM frame")

        took = timed(lambda: con.append("t", data)) if kind == "mainstem" else timed(insert)
        assert con.execute("SELECT count(*) FROM t").fetchone() == (rows,)
        con.close()
        return took

    return {"mainstem": lambda: run("mainstem"), "duckdb": lambda: run("duckdb")}


def scan(rows: int, folder: str) -> Case:
    frame = table_of(rows)
    lazy = pl.from_arrow(frame).lazy()
    expected = sum(k for k in range(rows) if k % 1000 < 500)
    ours, theirs = mainstem.connect(), duckdb.connect()
    query = "SELECT sum(k) FROM table_ WHERE x >= 0 AND k % 1000 < 500"

    def run(con: Any) -> int:
        table_ = frame  # noqa: F841 - the query names it
        return con.execute(query).fetchone()[0]

    return {
        "mainstem": lambda: timed(lambda: run(ours), lambda got: got == expected),
        "duckdb": lambda: timed(lambda: run(theirs), lambda got: got == expected),
        "polars": lambda: timed(
            lambda: lazy.filter((pl.col("x") >= 0) & (pl.col("k") % 1000 < 500)).select(pl.col("k").cast(pl.Int64).sum()).collect().item(),
            lambda got: got == expected,
        ),
    }


def scan_pandas(rows: int, folder: str) -> Case:
    frame = pd.DataFrame({"k": range(rows), "x": [k / 7 for k in range(rows)]})
    expected = int(frame.k[frame.k % 1000 < 500].sum())
    ours, theirs = mainstem.connect(), duckdb.connect()
    query = "SELECT sum(k) FROM table_ WHERE x >= 0 AND k % 1000 < 500"

    def run(con: Any) -> int:
        table_ = frame  # noqa: F841 - the query names it
        return con.execute(query).fetchone()[0]

    return {
        "mainstem": lambda: timed(lambda: run(ours), lambda got: got == expected),
        "duckdb": lambda: timed(lambda: run(theirs), lambda got: got == expected),
    }


def adbc(kind: str, folder: str) -> Any:
    path = tempfile.mkdtemp(dir=folder)
    if kind == "mainstem":
        import mainstem.adbc

        return mainstem.adbc.connect(path, options={"mainstem.synchronous": "off"})
    import adbc_driver_duckdb.dbapi

    return adbc_driver_duckdb.dbapi.connect(f"{path}/db")


def frame_of(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"k": range(rows), "v": [f"row {k}" for k in range(rows)], "x": [k / 7 for k in range(rows)]})


def to_sql(rows: int, folder: str) -> Case:
    frame = frame_of(rows)

    def run(kind: str) -> float:
        con = adbc(kind, folder)

        def work() -> None:
            frame.to_sql("t", con, index=False)
            con.commit()

        took = timed(work)
        with con.cursor() as cursor:
            cursor.execute("SELECT count(*), sum(k) FROM t")
            assert cursor.fetchone() == (rows, rows * (rows - 1) // 2)
        con.close()
        return took

    return {kind: (lambda kind=kind: run(kind)) for kind in ("mainstem", "duckdb")}


def read_sql(rows: int, folder: str) -> Case:
    frame = frame_of(rows)
    cons = {kind: adbc(kind, folder) for kind in ("mainstem", "duckdb")}
    for con in cons.values():
        frame.to_sql("t", con, index=False)
        con.commit()
    check = lambda got: len(got) == rows and int(got["k"].sum()) == rows * (rows - 1) // 2
    run = lambda con: timed(lambda: pd.read_sql("SELECT * FROM t", con), check)
    return {kind: (lambda con=con: run(con)) for kind, con in cons.items()}


CASES: dict[str, tuple[Callable[[int, str], Case], int]] = {
    "executemany, 3 columns": (executemany, 1_000_000),
    "execute, inserts": (loop_inserts, 200_000),
    "execute, selects by key": (loop_selects, 200_000),
    "fetchall, 3 columns": (fetchall, 1_000_000),
    "to Arrow, 3 columns": (to_arrow, 5_000_000),
    "to Arrow, 2 of numbers": (to_arrow_numbers, 5_000_000),
    "append of an Arrow table": (append, 10_000_000),
    "scan of an Arrow table": (scan, 10_000_000),
    "scan of a pandas frame": (scan_pandas, 10_000_000),
    "to_sql by ADBC": (to_sql, 1_000_000),
    "read_sql by ADBC": (read_sql, 1_000_000),
}


def session_bytes(count: int = 500) -> str:
    """What an idle session takes, of one that has run nothing and of one that has run a query."""
    con = mainstem.connect()
    con.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    con.session().execute("SELECT sum(k) FROM t").fetchall()
    before = resident()
    sessions = [con.session() for _ in range(count)]
    idle = (resident() - before) // count
    for session in sessions:
        session.execute("SELECT sum(k) FROM t WHERE k > 5").fetchall()
    return f"a session takes {idle / 1024:.0f} kB, and {(resident() - before) // count / 1024:.0f} kB after a query"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="parts of their names; all unless told")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows: to see that it works")
    parser.add_argument("--directory", default=None, help="where databases are made")
    arguments = parser.parse_args()
    print(session_bytes())
    print(f"{'case':28}{'rows':>12}  {'mainstem':>12}  others: rows a second, and the time of mainstem over theirs")
    for name, (make, rows) in CASES.items():
        if arguments.cases and not any(part in name for part in arguments.cases):
            continue
        rows = max(rows // 100, 1_000) if arguments.quick else rows
        with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
            case = make(rows, folder)
            times: dict[str, list[float]] = {kind: [] for kind in case}
            for turn in range(RUNS):
                for kind in sorted(case, reverse=turn % 2 == 1):
                    times[kind].append(case[kind]())
            medians = {kind: statistics.median(taken) for kind, taken in times.items()}
            ours = medians.pop("mainstem")
            others = ", ".join(f"{kind} {rows / took:,.0f} ({ours / took:.2f} x)" for kind, took in medians.items())
            print(f"{name:28}{rows:12,}  {rows / ours:12,.0f}  {others}", flush=True)


if __name__ == "__main__":
    main()
