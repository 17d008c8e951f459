"""The compliance suite of the DB-API, with autocommit off as that has it."""

from __future__ import annotations

import dbapi20
import pytest

import mainstem
import mainstem.dbapi


class TestCompliance(dbapi20.DatabaseAPI20Test):
    """All of it, in a folder that is gone afterwards."""

    driver = mainstem.dbapi
    connect_kw_args: dict = {}

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.connect_args = (str(tmp_path / "db"),)
        # The database stays open over the connections of a test.
        self._held = mainstem.connect(self.connect_args[0])
        yield
        self._held.close()

    def test_setoutputsize(self):
        con = self._connect()
        con.cursor().setoutputsize(1_000, 1)
        con.close()

    def test_nextset(self):
        con = self._connect()
        assert not hasattr(con.cursor(), "nextset"), "results of several statements in one call are those of the last"
        con.close()


def test_transactions_begin_by_themselves(tmp_path):
    con = mainstem.dbapi.connect(tmp_path / "db")
    other = mainstem.connect(tmp_path / "db")
    con.execute("CREATE TABLE t (k INT)")
    assert con.in_transaction
    con.commit()
    con.execute("INSERT INTO t VALUES (1)")
    assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
    con.rollback()
    con.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    con.commit()
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    con.execute("INSERT INTO t VALUES (3)")
    con.close()
    assert other.execute("SELECT count(*) FROM t").fetchone() == (2,)
    other.close()


def test_constants():
    for module in (mainstem, mainstem.dbapi):
        assert (module.apilevel, module.threadsafety, module.paramstyle) == ("2.0", 2, "qmark")


def test_description(con):
    cur = con.execute("SELECT 1::bigint AS a, 'x'::varchar(5) AS b, 1.5::numeric(6,2) AS c, now() AS d, true AS e")
    names = [column[0] for column in cur.description]
    assert names == ["a", "b", "c", "d", "e"]
    kinds = [column[1] for column in cur.description]
    assert kinds[0] == mainstem.NUMBER and kinds[1] == mainstem.STRING and kinds[2] == mainstem.NUMBER
    assert kinds[3] == mainstem.DATETIME and kinds[3] != mainstem.NUMBER and kinds[4] == mainstem.NUMBER
    assert cur.description[2][4:6] == (6, 2)
    assert con.execute("CREATE TABLE t (k INT)").description is None
