"""Notebooks: the magic, what a cell shows, and progress."""

from __future__ import annotations

import pytest

import mainstem
from mainstem import _progress


@pytest.fixture
def shell():
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    interactive.run_line_magic("load_ext", "mainstem")
    yield interactive
    interactive.reset()


def test_magic(shell):
    shell.user_ns["frame"] = [{"a": 1}, {"a": 2}]
    pytest.importorskip("pyarrow")
    assert shell.run_line_magic("sql", "SELECT sum(a) FROM frame").fetchone() == (3,)
    shell.user_ns["con"] = con = mainstem.connect()
    assert shell.run_line_magic("sql", "con: CREATE TABLE t (k INT)") is None
    assert con.tables() == ["t"]
    assert shell.run_line_magic("sql", "SELECT 1::bigint").fetchone() == (1,)
    assert shell.run_cell_magic("sql", "con << found", "INSERT INTO t VALUES (1), (2);\nSELECT count(*) FROM t") is None
    assert shell.user_ns["found"].fetchone() == (2,)
    with pytest.raises(mainstem.ProgrammingError, match="no connection"):
        shell.run_line_magic("sql", "nothing: SELECT 1")


def test_progress_is_shown_of_what_takes_long(con, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "enabled", True)
    con.execute("SELECT pg_sleep(1.5)").fetchone()
    con.execute("CREATE TABLE t AS SELECT pg_sleep(1.5) AS x")
    assert "1 s" in capsys.readouterr().err
    assert _progress._text(2.0, 50_000_000, 100_000_000).startswith(" 50% |")
    con.execute("SELECT 1")
    assert capsys.readouterr().err == ""
