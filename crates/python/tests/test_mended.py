"""What a second reader found, once mended."""

from __future__ import annotations

import os

import pytest

import mainstem
from mainstem import errors


def test_rows_written_are_known_after_close():
    with mainstem.connect() as con:
        con.execute("CREATE TABLE t (k INT PRIMARY KEY)")
        cursor = con.execute("INSERT INTO t VALUES (1), (2)")
        cursor.close()
        assert cursor.rowcount == 2


def test_a_failed_statement_leaves_no_rows_of_the_one_before():
    with mainstem.connect() as con:
        cursor = con.cursor()
        cursor.execute("SELECT * FROM generate_series(1, 3) n")
        with pytest.raises(mainstem.Error):
            cursor.execute("SELECT nothing")
        assert cursor.description is None
        with pytest.raises(mainstem.Error):
            cursor.fetchall()


def test_a_conflict_inside_a_block_is_told_as_one():
    with mainstem.connect() as con:
        con.execute("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        con.execute("INSERT INTO t VALUES (1, 0)")
        other = con.session()
        tries = []

        def work(con):
            tries.append(con.execute("SELECT v FROM t").fetchone())
            if len(tries) == 1:
                other.execute("UPDATE t SET v = 10 WHERE k = 1")
            with con.transaction():
                con.execute("UPDATE t SET v = v + 1 WHERE k = 1")

        con.run(work)
        assert tries == [(0,), (10,)]
        assert con.execute("SELECT v FROM t").fetchone() == (11,)


def test_an_appender_keeps_rows_that_were_refused():
    with mainstem.connect() as con:
        con.execute("CREATE TABLE t (k INT PRIMARY KEY)")
        con.execute("INSERT INTO t VALUES (2)")
        rows = con.appender("t")
        rows.append(1)
        rows.append(2)
        with pytest.raises(errors.UniqueViolation):
            rows.flush()
        con.execute("DELETE FROM t")
        assert rows.flush() == 2
        rows.append(2)
        rows.discard()
        assert rows.close() == 0


def test_a_copy_that_is_refused_leaves_the_file(tmp_path):
    file = tmp_path / "kept"
    file.write_text("kept")
    with mainstem.connect() as con:
        with pytest.raises(mainstem.Error):
            con.copy_out("COPY nothing TO STDOUT", file)
        assert file.read_text() == "kept"
        con.copy_out("COPY (SELECT 1 WHERE false) TO STDOUT", file)
        assert file.read_text() == ""
        con.copy_out("COPY (SELECT 7) TO STDOUT", file)
        assert file.read_text() == "7\n"


def test_times_of_numpy_that_are_out_of_range():
    numpy = pytest.importorskip("numpy")
    with mainstem.connect() as con:
        for far in (numpy.datetime64(2**40, "D"), numpy.datetime64("300000-01-01"), numpy.timedelta64(2**50, "D")):
            with pytest.raises(mainstem.DataError) as raised:
                con.execute("SELECT ?", [far])
            assert raised.value.sqlstate == "22008"
        assert con.execute("SELECT ?::date", [numpy.datetime64("2026-11-28")]).fetchone()[0].year == 2026


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_has_a_default_database_of_its_own():
    mainstem.sql("SELECT 1").fetchall()
    child = os.fork()
    if child == 0:
        os._exit(0 if mainstem.sql("SELECT 6 * 7").fetchone() == (42,) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_script_stops_at_rows_that_fail():
    with mainstem.connect() as con:
        con.execute("CREATE TABLE u (k INT); INSERT INTO u VALUES (2)")
        with pytest.raises(errors.DivisionByZero):
            con.execute("SELECT 1 / (k - 2) FROM u; DROP TABLE u")
        assert con.execute("SELECT k FROM u").fetchall() == [(2,)]


def test_with_autocommit_off_each_statement_of_a_script_is_in_a_transaction():
    with mainstem.connect(autocommit=False) as con:
        con.execute("CREATE TABLE t (k INT); COMMIT; INSERT INTO t VALUES (1)")
        con.rollback()
        assert con.execute("SELECT count(*) FROM t").fetchone() == (0,)
