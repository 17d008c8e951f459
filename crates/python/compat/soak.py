"""Everything the module does, again and again, while memory is looked at: it must not grow.

    python soak.py [--seconds 3600]
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

import mainstem
import mainstem.adbc

FRAME = pd.DataFrame({"k": range(2_000), "v": [f"row {k}" for k in range(2_000)]})
ARROW = pa.Table.from_pandas(FRAME, preserve_index=False)
LAZY = pl.from_pandas(FRAME).lazy()


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def refused(work: Any) -> None:
    try:
        work()
    except mainstem.Error:
        return
    raise AssertionError("it was not refused")


def turn(folder: str, number: int) -> None:
    frame, arrow, lazy = FRAME, ARROW, LAZY  # noqa: F841 - queries name them
    with mainstem.connect(folder, synchronous="off") as con:
        con.execute("DROP TABLE IF EXISTS t")
        con.execute("CREATE TABLE t (k INT PRIMARY KEY, v TEXT)")
        con.executemany("INSERT INTO t VALUES (?, ?)", [(k, f"row {k}") for k in range(1_000)])
        refused(lambda: con.executemany("INSERT INTO t VALUES (?, ?)", [(1_000, "new"), (1, "again")]))
        refused(lambda: con.execute("SELECT nothing FROM t"))
        refused(lambda: con.execute("SELECT 1 / ?", [0]).fetchall())
        for name in ("frame", "arrow", "lazy"):
            assert con.execute(f"SELECT count(*) FROM t JOIN {name} USING (k)").fetchone() == (1_000,)
        con.append("t", ARROW.slice(1_000))
        for k in range(0, 2_000, 50):
            assert con.execute("SELECT v FROM t WHERE k = ?", (k,)).fetchone() == (f"row {k}",)
            con.execute("UPDATE t SET v = v || '!' WHERE k = :k", {"k": k})
            con.execute(f"DELETE FROM t WHERE k = {k + 1}")
        assert con.sql("SELECT * FROM t").arrow().num_rows == len(con.sql("SELECT * FROM t").fetchall()) == 1_960
        con.sql("SELECT * FROM t").df(), con.sql("SELECT * FROM t").pl(), con.sql("SELECT k FROM t").numpy()
        con.sql("SELECT * FROM generate_series(1, 1000000) n").fetchone()
        repr(con.sql("SELECT * FROM t"))
        timer = threading.Timer(0.02, con.interrupt)
        timer.start()
        try:
            con.execute("SELECT count(*) FROM generate_series(1, 3000000) a(x), generate_series(1, 3) b(y) WHERE x % 7 < y")
        except mainstem.errors.QueryCanceled:
            pass
        timer.join()
        try:
            with con.transaction():
                con.execute("INSERT INTO t VALUES (-1, 'x')")
                raise KeyError
        except KeyError:
            pass
        con.copy_in("COPY t FROM STDIN (FORMAT csv)", b"-5,five\n-6,six\n")
        con.copy_out("COPY t TO STDOUT", f"{folder}.copy")
        with mainstem.adbc.connect(folder, autocommit=True) as adbc, adbc.cursor() as cursor:
            cursor.adbc_ingest("ingested", ARROW, mode="replace")
            cursor.execute("SELECT * FROM ingested WHERE k > ?", (5,))
            cursor.fetch_arrow_table()
        if number % 10 == 0:
            con.execute("CHECKPOINT")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3_600)
    arguments = parser.parse_args()
    began = time.monotonic()
    samples: list[float] = []
    turns = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - began < arguments.seconds:
            turn(f"{folder}/db", turns)
            turns += 1
            if time.monotonic() - began > len(samples) * arguments.seconds / 60:
                gc.collect()
                samples.append(resident())
                print(f"{time.monotonic() - began:6.0f} s, {turns:6} turns, {samples[-1]:7.1f} MB, {threading.active_count()} threads", flush=True)
    first, last = samples[len(samples) // 3], samples[-1]
    print(f"memory: {first:.1f} MB after a third of the time, {last:.1f} MB at the end")
    assert last < first * 1.1 + 10, "it grows"


if __name__ == "__main__":
    main()
