"""What tests share."""

from __future__ import annotations

from typing import Iterator

import pytest

import mainstem


@pytest.fixture
def con() -> Iterator[mainstem.Connection]:
    """A connection to a database in memory."""
    made = mainstem.connect()
    yield made
    made.close()


@pytest.fixture
def t(con: mainstem.Connection) -> mainstem.Connection:
    """The same, with a table of three rows."""
    con.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v TEXT, n NUMERIC(10,2))")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "a", "1.50"), (2, "b", None), (3, None, "-2.25")])
    return con
