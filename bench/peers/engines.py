"""The engines that experiments are compared with, each behind the same few methods, and the table of experiment `hybrid` in them.

A statement method takes what `hybrid.py` prepared for one operation and runs it in a transaction of its own. The bindings are those that
cost least: apsw instead of the sqlite3 module (2.5 times as many selects a second), DuckDB's own.
"""

import pathlib

import apsw
import duckdb
import numpy

import arrow_stream
import rows

INTEGERS = ", ".join(f"c{column} INTEGER" for column in range(1, rows.COLUMNS + 1))
PLACES = "(" + ", ".join("?" * (rows.COLUMNS + 1)) + ")"
SELECT = "SELECT * FROM t WHERE k = ?"
INSERT = f"INSERT INTO t VALUES {PLACES}"
UPDATE = "UPDATE t SET c1 = ? WHERE k = ?"
DELETE = "DELETE FROM t WHERE k = ?"
UPSERT = f"{INSERT} ON CONFLICT (k) DO UPDATE SET c1 = excluded.c1"
SUMS = ", ".join(f"sum(c{column})" for column in range(1, rows.COLUMNS + 1))
SCAN = f"SELECT count(*), {SUMS} FROM t"
FRESH = f"DELETE FROM t WHERE k % {rows.SPACING} <> 0"


class Sqlite:
    """SQLite, in memory, or in a file with WAL and an fsync a commit."""

    def __init__(self, directory=None):
        path = ":memory:" if directory is None else str(pathlib.Path(directory) / "sqlite.db")
        self.connection = apsw.Connection(path)
        self.cursor = self.connection.cursor()
        self.on_disk = directory is not None
        if self.on_disk:
            self.execute("PRAGMA journal_mode = WAL")
            self.execute("PRAGMA cache_size = -1000000")
        self.cursor.execute(f"CREATE TABLE t (k INTEGER PRIMARY KEY, {INTEGERS})")

    def title(self):
        return f"SQLite {apsw.sqlite_lib_version()}"

    def load(self, keys):
        """Puts rows with the formula's values in, untimed."""
        if self.on_disk:
            self.execute("PRAGMA synchronous = OFF")
        values = ", ".join(rows.formula(column).replace("k", "?1") for column in range(1, rows.COLUMNS + 1))
        with self.connection:
            self.cursor.executemany(f"INSERT INTO t VALUES (?1, {values})", ((key,) for key in keys.tolist()))
        if self.on_disk:
            self.execute("PRAGMA synchronous = FULL")
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def select(self, key):
        return self.cursor.execute(SELECT, (key,)).fetchone()

    def insert(self, row):
        self.cursor.execute(INSERT, row)

    def update(self, values):
        self.cursor.execute(UPDATE, values)

    def delete(self, key):
        self.cursor.execute(DELETE, (key,))

    def upsert(self, row):
        self.cursor.execute(UPSERT, row)

    def insert_many(self, many):
        """One transaction."""
        self.cursor.execute("BEGIN")
        self.cursor.executemany(INSERT, many)
        self.cursor.execute("COMMIT")

    # What insert_many takes.
    form = staticmethod(rows.rows_of)

    def query(self, sql):
        return self.cursor.execute(sql).fetchall()[0]

    def execute(self, sql):
        self.cursor.execute(sql).fetchall()


class DuckDb:
    """DuckDB in memory."""

    def __init__(self):
        self.connection = duckdb.connect()

    def title(self):
        return f"DuckDB {duckdb.__version__}"

    def rows(self, sql, values=None):
        return self.connection.execute(sql, values).fetchall()

    def stream(self, sql, values=None):
        """Fetches the rows as Arrow batches; how many there were."""
        return arrow_stream.count_rows(self.connection.sql(sql))

    def query(self, sql):
        return self.rows(sql)[0]

    def execute(self, sql):
        self.connection.execute(sql)


class DuckDbTable(DuckDb):
    """DuckDB in memory with the table."""

    def __init__(self):
        super().__init__()
        self.execute(f"CREATE TABLE t (k BIGINT PRIMARY KEY, {INTEGERS})")

    def load(self, keys):
        """Puts rows with the formula's values in, untimed."""
        source = {"k": keys}
        self.connection.register("source", source)
        self.connection.execute(f"INSERT INTO t SELECT k, {rows.formulas()} FROM source")
        self.connection.unregister("source")

    def select(self, key):
        return self.connection.execute(SELECT, (key,)).fetchall()[0]

    def insert(self, row):
        self.connection.execute(INSERT, row)

    def update(self, values):
        self.connection.execute(UPDATE, values)

    def delete(self, key):
        self.connection.execute(DELETE, (key,))

    def upsert(self, row):
        self.connection.execute(UPSERT, row)

    @staticmethod
    def form(keys):
        """What insert_many takes: columns of numpy, the way in that costs least."""
        return {f"c{column}": numpy.ascontiguousarray(values) for column, values in enumerate(rows.columns_of(keys))}

    def insert_many(self, columns):
        """One transaction."""
        self.connection.register("source", columns)
        self.connection.execute("INSERT INTO t SELECT * FROM source")
        self.connection.unregister("source")


# By their names: what makes each, given a directory for files.
WITH_TABLE = {
    "sqlite-memory": lambda directory: Sqlite(),
    "sqlite-disk": Sqlite,
    "duckdb-memory": lambda directory: DuckDbTable(),
}
