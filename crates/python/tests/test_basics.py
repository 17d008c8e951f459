"""Connections, cursors, transactions and errors."""

from __future__ import annotations

import gc
import pickle
import threading
import time

import pytest

import mainstem
from mainstem import errors


def test_results_live_on_their_own(t):
    first = t.execute("SELECT k FROM t ORDER BY k")
    second = t.execute("SELECT v FROM t ORDER BY k")
    assert first.fetchone() == (1,)
    t.execute("DELETE FROM t")
    assert second.fetchall() == [("a",), ("b",), (None,)]
    assert first.fetchall() == [(2,), (3,)]
    assert first.fetchone() is None
    big = t.execute("SELECT n FROM generate_series(1, 100000) n")
    assert sum(row[0] for row in big) == 5000050000
    big = t.execute("SELECT n FROM generate_series(1, 10000000) n")
    t.close()
    with pytest.raises(mainstem.InterfaceError, match="closed"):
        big.fetchall()


def test_fetching_in_parts(con):
    cur = con.execute("SELECT n, n::text AS t FROM generate_series(1, 20000) n ORDER BY n")
    assert cur.fetchmany(3) == [(1, "1"), (2, "2"), (3, "3")]
    assert cur.fetchmany() == [(4, "4")]
    cur.arraysize = 2
    assert cur.fetchmany() == [(5, "5"), (6, "6")]
    assert cur.peek(1) == [(7, "7")] and cur.shape == (19994, 2)
    assert next(cur) == (7, "7")
    table = cur.arrow()
    assert table.num_rows == 19993 and table.column("n")[0].as_py() == 8
    with pytest.raises(mainstem.InterfaceError) as spent:
        cur.fetchone()
    assert spent.value.sqlstate == "55000"


def test_no_row_is_lost_between_forms(con):
    query = "SELECT n FROM generate_series(1, 10) n ORDER BY n"
    for rest in (lambda c: c.shape[0], lambda c: c.arrow().num_rows, lambda c: len(c.df()), lambda c: len(c.fetchall()), lambda c: len(c.peek(20))):
        cur = con.sql(query)
        assert cur.fetchone() == (1,)
        assert rest(cur) == 9


def test_an_error_is_no_end(con):
    cur = con.sql("SELECT 1 / (50000 - n) AS x FROM generate_series(1, 100000) n")
    with pytest.raises(mainstem.DataError):
        cur.fetchall()
    with pytest.raises(mainstem.OperationalError, match="run it again"):
        cur.fetchone()
    far = con.sql("SELECT date '2026-01-01' + (CASE WHEN n = 5 THEN 9000000 ELSE n END)::integer AS d FROM generate_series(1, 9) n ORDER BY n")
    assert [far.fetchone() is not None for _ in range(4)] == [True] * 4
    with pytest.raises(mainstem.DataError, match="after year 9999"):
        far.fetchone()


def test_the_state_of_what_is_said_in_front(tmp_path):
    con = mainstem.connect(tmp_path / "db", autocommit=False)
    con.execute("/* made */ -- here\nCREATE TABLE t (k INT)")
    con.commit()
    con.execute("SET threads = 1; INSERT INTO t VALUES (1)")
    con.rollback()
    con.execute("SAVEPOINT s")
    con.execute("INSERT INTO t VALUES (2)")
    con.execute("ROLLBACK TO SAVEPOINT s")
    con.commit()
    assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
    with pytest.raises(mainstem.OperationalError, match="read_only"):
        mainstem.connect(tmp_path / "db", read_only=True)
    con.close()


def test_writers_that_take_less(t, tmp_path):
    parts = []

    class Slow:
        def write(self, data):
            parts.append(bytes(data[:3]))
            return min(len(data), 3)

    assert t.copy_out("COPY t TO STDOUT (FORMAT csv)", Slow()) == 3
    assert b"".join(parts).count(b"\n") == 3

    class Asking:
        def read(self, size):
            return t.execute("SELECT 'x'").fetchone()[0]

    with pytest.raises(mainstem.ProgrammingError, match="use another one"):
        t.copy_in("COPY t FROM STDIN (FORMAT csv)", Asking())


def test_parameters_of_all_styles(t):
    assert t.execute("SELECT v FROM t WHERE k = ?", (1,)).fetchone() == ("a",)
    assert t.execute("SELECT v FROM t WHERE k = $1 OR k = $1", [2]).fetchone() == ("b",)
    assert t.execute("SELECT v FROM t WHERE k = :key", {"key": 1}).fetchone() == ("a",)
    assert t.execute("SELECT '?', \"k\" FROM t WHERE k = ? -- ?", (1,)).fetchone() == ("?", 1)
    assert t.execute("SELECT ? + ?", (1, 2)).fetchone() == (3,)
    for wrong in [(1, 2), (), {"other": 1}]:
        with pytest.raises(mainstem.ProgrammingError):
            t.execute("SELECT v FROM t WHERE k = :key" if isinstance(wrong, dict) else "SELECT v FROM t WHERE k = ?", wrong)
    with pytest.raises(mainstem.ProgrammingError, match="comma"):
        t.execute("SELECT v FROM t WHERE v = ?", "a")


def test_errors_say_what_and_where(t):
    with pytest.raises(errors.UniqueViolation) as twice:
        t.execute("INSERT INTO t VALUES (1, 'x', 0)")
    assert isinstance(twice.value, mainstem.IntegrityError) and twice.value.sqlstate == "23505"
    with pytest.raises(errors.SyntaxError) as syntax:
        t.execute("SELECT k FRM t")
    assert syntax.value.position and syntax.value.sqlstate == "42601"
    with pytest.raises(errors.UndefinedColumn) as column:
        t.execute("SELECT kk FROM t")
    assert column.value.object == "kk"
    for sql, kind in [
        ("SELECT * FROM missing", mainstem.ProgrammingError),
        ("SELECT 1 / 0", mainstem.DataError),
        ("SELECT 'x'::int", mainstem.DataError),
        ("INSERT INTO t VALUES (NULL)", mainstem.IntegrityError),
        ("CREATE INDEX i ON t (v)", mainstem.NotSupportedError),
    ]:
        with pytest.raises(kind) as raised:
            t.execute(sql).fetchall()
        assert len(raised.value.sqlstate) == 5
    again = pickle.loads(pickle.dumps(twice.value))
    assert (type(again), again.sqlstate, str(again)) == (type(twice.value), "23505", str(twice.value))


def test_an_error_does_not_end_the_transaction(t):
    t.begin()
    t.execute("INSERT INTO t VALUES (4, 'd', 1)")
    with pytest.raises(mainstem.IntegrityError):
        t.execute("INSERT INTO t VALUES (4, 'd', 1)")
    with pytest.raises(mainstem.ProgrammingError):
        t.execute("SELECT nothing FROM t")
    assert t.in_transaction
    t.commit()
    assert t.execute("SELECT count(*) FROM t").fetchone() == (4,)


def test_with_blocks(tmp_path):
    with mainstem.connect(tmp_path / "db") as con:
        con.execute("CREATE TABLE t (k INT)")
        with con.transaction():
            con.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(ZeroDivisionError):
                with con.transaction():
                    con.execute("INSERT INTO t VALUES (2)")
                    raise ZeroDivisionError
    with pytest.raises(ValueError):
        with mainstem.connect(tmp_path / "db", autocommit=False) as con:
            con.execute("INSERT INTO t VALUES (3)")
            raise ValueError
    assert con.closed
    with mainstem.connect(tmp_path / "db") as con:
        assert con.execute("SELECT k FROM t").fetchall() == [(1,)]
        con.begin()
        con.execute("INSERT INTO t VALUES (4)")
    with mainstem.connect(tmp_path / "db", read_only=True) as con:
        assert con.execute("SELECT k FROM t ORDER BY k").fetchall() == [(1,), (4,)]
        with pytest.raises(mainstem.OperationalError):
            con.execute("INSERT INTO t VALUES (5)")


def test_use_after_close(t):
    cur = t.execute("SELECT 1")
    cur.close()
    with pytest.raises(mainstem.InterfaceError):
        cur.fetchone()
    with pytest.raises(mainstem.InterfaceError):
        cur.execute("SELECT 1")
    t.close()
    t.close()
    for use in [t.begin, t.commit, t.rollback, t.cursor, lambda: t.execute("SELECT 1"), lambda: t.register("x", [{"a": 1}])]:
        with pytest.raises(mainstem.InterfaceError) as closed:
            use()
        assert closed.value.sqlstate == "08003"
    with t:
        pass


def test_executemany_is_all_or_none(t):
    with pytest.raises(errors.UniqueViolation):
        t.executemany("INSERT INTO t VALUES (?, ?, ?)", [(10, "x", 1), (1, "y", 2)])
    with pytest.raises(mainstem.DataError, match="row 2"):
        t.executemany("INSERT INTO t VALUES (?, ?, ?)", [(10, "x", 1), (11, "y", "none")])

    def rows():
        yield (10, "x", 1)
        raise LookupError("no more")

    with pytest.raises(LookupError):
        t.executemany("INSERT INTO t VALUES (?, ?, ?)", rows())
    with pytest.raises(LookupError):
        t.executemany("UPDATE t SET n = 0 WHERE k = ? AND v = ? AND n = ?", rows())
    assert t.execute("SELECT count(*) FROM t").fetchone() == (3,)
    assert t.executemany("UPDATE t SET v = ? WHERE k = ?", [("z", 1), ("z", 9)]).rowcount == 1
    assert t.executemany("DELETE FROM t WHERE k = :k", [{"k": 1}, {"k": 2}]).rowcount == 2
    assert t.executemany("INSERT INTO t (v, k) VALUES (:v, :k)", [{"k": 1, "v": "again"}]).rowcount == 1
    assert t.execute("SELECT v, n FROM t WHERE k = 1").fetchone() == ("again", None)
    assert t.executemany("INSERT INTO t VALUES (?, ?, ?)", []).rowcount == 0


def test_run_again_after_a_conflict(tmp_path):
    con, other = mainstem.connect(tmp_path / "db"), mainstem.connect(tmp_path / "db")
    con.execute("CREATE TABLE t (k INT PRIMARY KEY, n INT)")
    con.execute("INSERT INTO t VALUES (1, 0)")
    runs = []

    def work(con):
        n = con.execute("SELECT n FROM t WHERE k = 1").fetchone()[0]
        if not runs:
            other.execute("UPDATE t SET n = 10 WHERE k = 1")
        runs.append(n)
        con.execute("UPDATE t SET n = ? WHERE k = 1", (n + 1,))
        return n

    assert con.run(work) == 10 and runs == [0, 10]
    assert con.execute("SELECT n FROM t").fetchone() == (11,)
    con.close(), other.close()


def test_threads_share_a_connection_and_have_their_own(tmp_path):
    con = mainstem.connect(tmp_path / "db", synchronous="off")
    con.execute("CREATE TABLE t (k INT PRIMARY KEY, v TEXT)")
    failures = []

    def work(number, mine):
        try:
            for n in range(100):
                mine.execute("INSERT INTO t VALUES (?, ?)", (number * 100 + n, "x"))
                assert mine.execute("SELECT v FROM t WHERE k = ?", (number * 100 + n,)).fetchone() == ("x",)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n, con if n % 2 else con.session())) for n in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures
    assert con.execute("SELECT count(*) FROM t").fetchone() == (1600,)
    con.close()


def test_many_statements_of_one_call_are_not_interleaved(t):
    """What another thread writes meanwhile does not go when the call fails."""
    begun = threading.Event()

    def rows():
        yield ("x", 1)
        begun.set()
        for _ in range(50):
            yield ("y", 2)
        raise LookupError

    other = threading.Thread(target=lambda: (begun.wait(), t.execute("INSERT INTO t VALUES (50, 'other', 0)")))
    other.start()
    with pytest.raises(LookupError):
        t.executemany("UPDATE t SET v = ? WHERE k = ?", rows())
    other.join()
    assert t.execute("SELECT k, v FROM t WHERE k IN (1, 2, 50) ORDER BY k").fetchall() == [(1, "a"), (2, "b"), (50, "other")]
    # The rows of a call may come of the same connection.
    assert t.executemany("UPDATE t SET v = ? WHERE k = ?", (("z", row[0]) for row in t.execute("SELECT k FROM t"))).rowcount == 4


def test_asking_for_the_state_waits_without_the_interpreter(t):
    """A thread that asks while another one's statement looks for variables."""
    frame = [{"k": 1}]
    end = time.time() + 1.0

    def ask():
        while time.time() < end:
            assert t.in_transaction in (True, False)
            t.commit()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    [thread.start() for thread in threads]
    while time.time() < end:
        t.execute("SELECT count(*) FROM frame, generate_series(1, 1000) g").fetchone()
    [thread.join() for thread in threads]
    del frame


def test_copies(t, tmp_path):
    assert t.copy_in("COPY t FROM STDIN (FORMAT csv)", b"10,x,1\n11,,\n") == 2
    path = tmp_path / "t.csv"
    assert t.copy_out("COPY t TO STDOUT (FORMAT csv)", path) == 5
    t.execute("DELETE FROM t")
    assert t.copy_in("COPY t FROM STDIN (FORMAT csv)", path) == 5

    class Broken:
        def read(self, size):
            raise OSError("no line")

        def write(self, data):
            raise OSError("no room")

    with pytest.raises(OSError, match="no line"):
        t.copy_in("COPY t FROM STDIN", Broken())
    with pytest.raises(OSError, match="no room"):
        t.copy_out("COPY t TO STDOUT", Broken())
    with pytest.raises(mainstem.DataError):
        t.copy_in("COPY t FROM STDIN (FORMAT csv)", b"20,x,one\n")
    assert t.execute("SELECT count(*) FROM t").fetchone() == (5,)
    assert t.load("made", path) == 5 and t.load("made", path) == 5
    assert t.execute("SELECT count(*) FROM made").fetchone() == (10,)


def test_checks(tmp_path):
    con = mainstem.connect(tmp_path / "db")
    con.execute("CREATE TABLE t (k INT PRIMARY KEY)")
    con.executemany("INSERT INTO t VALUES (?)", [(k,) for k in range(100_000)])
    con.execute("CHECKPOINT")
    assert con.path == (tmp_path / "db").resolve() and con.check() == []
    con.close()
    assert mainstem.connect().path is None and mainstem.connect().check() == []


def test_cursors_know_their_connection(t):
    assert t.execute("SELECT 1").connection is t and t.cursor().connection is t
    assert t.executemany("DELETE FROM t WHERE k = ?", []).connection is t


def test_helpers(t):
    assert t.tables() == ["t"]
    assert t.table("t").shape == (3, 3)
    assert "t" in t.explain("SELECT * FROM t")
    with t.appender("t", ["k", "v"]) as rows:
        rows.append(7, "seven")
    assert t.execute("SELECT v FROM t WHERE k = 7").fetchone() == ("seven",)
    shown = repr(t.sql("SELECT k, v FROM t ORDER BY k"))
    assert "bigint" in shown and "NULL" in shown and "4 rows x 2 columns" in shown
    assert "<table>" in t.sql("SELECT '<b>' AS x")._repr_html_() and "&lt;b&gt;" in t.sql("SELECT '<b>' AS x")._repr_html_()
    assert mainstem.sql("SELECT 1").fetchall() == [(1,)]
    with pytest.raises(AttributeError):
        t.sql("SELECT 1").nothing


def test_a_second_process_is_told_who_has_the_folder(tmp_path):
    import os
    import subprocess
    import sys

    con = mainstem.connect(tmp_path / "db")
    code = "import sys, mainstem\ntry: mainstem.connect(sys.argv[1])\nexcept mainstem.OperationalError as e: print(e.sqlstate, e)"
    told = subprocess.run([sys.executable, "-c", code, str(tmp_path / "db")], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("55") and str(os.getpid()) in told.stdout, told.stdout
    con.close()


def test_fork_is_noticed(tmp_path):
    import os

    con = mainstem.connect(tmp_path / "db")
    con.execute("CREATE TABLE t (k INT)")
    child = os.fork()
    if child == 0:
        try:
            con.execute("INSERT INTO t VALUES (1)")
            os._exit(1)
        except mainstem.InterfaceError as error:
            del con
            gc.collect()
            os._exit(0 if "fork" in str(error) else 2)
    assert os.waitpid(child, 0)[1] == 0
    con.execute("INSERT INTO t VALUES (2)")
    assert con.execute("SELECT k FROM t").fetchall() == [(2,)]
    con.close()
