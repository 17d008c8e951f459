"""Mainstem: one table that writes like SQLite and scans like DuckDB.

>>> import mainstem
>>> con = mainstem.connect()
>>> _ = con.execute("CREATE TABLE city (name TEXT PRIMARY KEY, people INT)")
>>> _ = con.executemany("INSERT INTO city VALUES (?, ?)", [("Ulm", 128928), ("Jena", 111343)])
>>> con.execute("SELECT name FROM city WHERE people > ?", (120000,)).fetchall()
[('Ulm',)]
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, TypeVar

from mainstem import _mainstem, errors
from mainstem._mainstem import Cursor, __version__
from mainstem.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from mainstem.types import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Interval,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

__all__ = [
    "BINARY", "Binary", "Connection", "Cursor", "DATETIME", "DataError", "DatabaseError", "Date", "DateFromTicks",
    "Error", "IntegrityError", "InterfaceError", "InternalError", "Interval", "NUMBER", "NotSupportedError",
    "OperationalError", "ProgrammingError", "ROWID", "STRING", "Time", "TimeFromTicks", "Timestamp",
    "TimestampFromTicks", "Warning", "__version__", "apilevel", "connect", "errors", "paramstyle", "query", "sql",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

T = TypeVar("T")


def _forked() -> None:
    global _default
    _mainstem.forked()
    # The child's own, when it asks for one.
    _default = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


atexit.register(_mainstem.ending)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Connection(_mainstem.Connection):
    """A connection: a session with its own transaction and settings. Threads may share it; statements run one after the
    other. As a context manager it commits, or rolls back after an exception, and closes."""

    # The exceptions, as the DB-API offers them on connections, too.
    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if self.closed:
            return
        try:
            if self.in_transaction:
                if kind is None:
                    self.commit()
                else:
                    self.rollback()
        finally:
            self.close()

    def __repr__(self) -> str:
        return f"<mainstem.Connection{' (closed)' if self.closed else ''}>"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A block that is all or none: a transaction, or a savepoint inside one.

        >>> con = connect()
        >>> _ = con.execute("CREATE TABLE t (k INT)")
        >>> with con.transaction():
        ...     _ = con.execute("INSERT INTO t VALUES (1)")
        ...     try:
        ...         with con.transaction():
        ...             _ = con.execute("INSERT INTO t VALUES (2)")
        ...             raise ValueError
        ...     except ValueError:
        ...         pass
        >>> con.execute("SELECT k FROM t").fetchall()
        [(1,)]
        """
        if not self.in_transaction:
            self.begin()
            try:
                yield self
            except BaseException:
                self.rollback()
                raise
            self.commit()
            return
        self.execute('SAVEPOINT "mainstem block"')
        try:
            yield self
        except BaseException as raised:
            try:
                self.execute('ROLLBACK TO SAVEPOINT "mainstem block"')
                self.execute('RELEASE SAVEPOINT "mainstem block"')
            except Error as error:
                # A conflict has ended the whole transaction, whose savepoints went with it: it says more.
                if error.sqlstate != "25P02":
                    raise error from raised
            raise
        self.execute('RELEASE SAVEPOINT "mainstem block"')

    def run(self, work: Callable[[Connection], T], attempts: int = 20) -> T:
        """What ``work(con)`` gives in a transaction, which is run again where another one was first (40001)."""
        import random
        import time

        for attempt in range(1, attempts + 1):
            try:
                with self.transaction():
                    return work(self)
            except OperationalError as error:
                if error.sqlstate != "40001" or attempt == attempts:
                    raise
                time.sleep(random.random() * min(0.5, 0.001 * 2**attempt))
        raise ProgrammingError("a transaction is run at least once", "22023")

    def query(self, sql: str, params: Any = None) -> Cursor:
        """As ``sql``."""
        return self.sql(sql, params)

    def session(self) -> Connection:
        """Another connection to the same database, with a transaction of its own, and the settings that this one was
        opened with."""
        made = type(self)(of=self, autocommit=self.autocommit, replacement_scans=self.replacement_scans)
        made._settings = self._settings
        made._set_all()
        return made

    # With which it was opened.
    _settings: dict[str, Any] = {}

    def _set_all(self) -> None:
        try:
            for name, value in self._settings.items():
                if value is not None:
                    self.execute(f"SET {_quoted(name)} = {_literal(str(value))}")
        except BaseException:
            self.close()
            raise

    def append(self, table: str, data: Any, *, by: str = "name") -> int:
        """Inserts the rows of a frame or an Arrow table, all or none; how many there were. Columns are found by their
        names, or with ``by="position"`` by their order.

        >>> con = connect()
        >>> _ = con.execute("CREATE TABLE city (name TEXT, people INT)")
        >>> con.append("city", [{"people": 128928, "name": "Ulm"}])  # doctest: +SKIP
        1
        """
        from mainstem._tables import adapter

        source = adapter(data)
        names = list(source.schema.names)
        targets = names
        if by == "position":
            targets = self.execute(f"SELECT * FROM {table} LIMIT 0").columns[: len(names)]
        elif by != "name":
            raise ProgrammingError('columns are found by "name" or by "position"', "22023")
        name = f"mainstem append {id(source)}"
        self.register(name, source)
        try:
            return self.execute(
                f"INSERT INTO {table} ({', '.join(map(_quoted, targets))}) "
                f"SELECT {', '.join(map(_quoted, names))} FROM {_quoted(name)}"
            ).rowcount
        finally:
            self.unregister(name)

    def copy_in(self, sql: str, source: Any) -> int:
        """Runs a ``COPY ... FROM STDIN`` with the data of ``source``: bytes, a path, or something with ``read``.

        >>> con = connect()
        >>> _ = con.execute("CREATE TABLE city (name TEXT, people INT)")
        >>> con.copy_in("COPY city FROM STDIN (FORMAT csv)", b"Ulm,128928\\n")
        1
        """
        if isinstance(source, (bytes, bytearray, memoryview)):
            return self._copy_in_bytes(sql, bytes(source))
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                return self._copy_in(sql, file.read)
        return self._copy_in(sql, source.read)

    def copy_out(self, sql: str, target: Any) -> int:
        """Runs a ``COPY ... TO STDOUT`` into ``target``: a path, or something with ``write`` that takes bytes."""
        if isinstance(target, (str, os.PathLike)):
            with _FileOnceWritten(target) as file:
                return self._copy_out(sql, file.write)
        return self._copy_out(sql, target.write)

    def load(self, table: str, files: str | os.PathLike[str]) -> int:
        """Loads CSV or Parquet files into ``table``, which is made with the types found in them if it is not there.
        ``files`` may have wildcards. Returns how many rows there were."""
        source = _literal(os.fspath(files))
        try:
            self.execute(f"DESCRIBE {table}")
        except errors.lookup("42P01"):
            return self.execute(f"CREATE TABLE {table} AS SELECT * FROM {source}").rowcount
        return self.execute(f"INSERT INTO {table} SELECT * FROM {source}").rowcount

    def table(self, name: str) -> Cursor:
        """All rows of a table."""
        return self.sql(f"SELECT * FROM {name}")

    def tables(self) -> list[str]:
        """The names of all tables and views, with their schemas where these are not ``public``."""
        rows = self.execute(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('information_schema', 'mainstem') ORDER BY 1, 2"
        )
        return [name if schema == "public" else f"{schema}.{name}" for schema, name in rows]

    def explain(self, sql: str, params: Any = None, *, analyze: bool = False) -> str:
        """The plan of a statement, as text."""
        rows = self.execute(f"EXPLAIN {'ANALYZE ' if analyze else ''}{sql}", params).fetchall()
        return "\n".join(str(row[-1]) for row in rows)

    def appender(self, table: str, columns: list[str] | None = None) -> Appender:
        """Rows for ``table``, which are inserted by the thousand."""
        return Appender(self, table, columns)

    def unload(self, folder: str | os.PathLike[str]) -> None:
        """Writes the whole database into ``folder``: its tables as Parquet, and what makes it again as SQL."""
        self.execute(f"UNLOAD DATABASE TO {_literal(os.fspath(folder))}")


class _FileOnceWritten:
    """A file that is made, or emptied, when there is something to write: a statement that is refused leaves it alone."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._file: Any = None

    def write(self, data: bytes) -> None:
        if self._file is None:
            self._file = open(self._path, "wb")
        self._file.write(data)

    def __enter__(self) -> _FileOnceWritten:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is None:
            self.write(b"")
        if self._file is not None:
            self._file.close()


class Appender:
    """Rows that are inserted into one table, many at a time.

    >>> con = connect()
    >>> _ = con.execute("CREATE TABLE t (k INT, v TEXT)")
    >>> with con.appender("t") as rows:
    ...     for k in range(3):
    ...         rows.append(k, str(k))
    >>> con.execute("SELECT count(*) FROM t").fetchone()
    (3,)
    """

    def __init__(self, connection: Connection, table: str, columns: list[str] | None) -> None:
        self._connection = connection
        names = columns or connection.execute(f"SELECT * FROM {table} LIMIT 0").columns
        marks = ", ".join("?" * len(names))
        self._insert = f"INSERT INTO {table} ({', '.join(map(_quoted, names))}) VALUES ({marks})"
        self._rows: list[tuple[Any, ...]] = []

    def append(self, *values: Any) -> None:
        """Adds a row, unless it raises: rows that are inserted then may be refused."""
        self._rows.append(values)
        if len(self._rows) >= 100_000:
            try:
                self.flush()
            except BaseException:
                # Who tries again adds it again.
                self._rows.pop()
                raise

    def flush(self) -> int:
        """Inserts the rows that were added since the last time, all or none. When it fails they are kept, for another try;
        ``discard`` forgets them."""
        if not self._rows:
            return 0
        written = self._connection.executemany(self._insert, self._rows).rowcount
        self._rows = []
        return written

    def discard(self) -> None:
        """Forgets the rows that were not inserted yet."""
        self._rows = []

    def close(self) -> int:
        """As ``flush``, for the last time."""
        return self.flush()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is None:
            self.flush()


def connect(
    path: str | os.PathLike[str] = ":memory:",
    *,
    read_only: bool = False,
    memory_limit: int | str | None = None,
    synchronous: str | None = None,
    threads: int | None = None,
    autocommit: bool = True,
    replacement_scans: bool = True,
    config: dict[str, Any] | None = None,
    connection_class: Callable[..., Any] = Connection,
) -> Connection:
    """Opens the database in folder ``path``, which is made if it is not there, or one in memory.

    ``synchronous`` says when a commit returns: ``full`` (on disk), ``normal`` (handed to the operating system) or
    ``off``. With ``autocommit`` off a statement begins a transaction, as the DB-API wants it. ``config`` has further
    settings by name, as SET takes them. Who connects to a folder again shares the database.
    """
    made: Connection = connection_class(
        None if os.fspath(path) == ":memory:" else path,
        read_only=read_only,
        memory_limit=memory_limit,
        autocommit=autocommit,
        replacement_scans=replacement_scans,
    )
    made._settings = {"synchronous": synchronous, "threads": threads, **(config or {})}
    made._set_all()
    return made


_default: Connection | None = None


def default_connection() -> Connection:
    """The connection of ``mainstem.sql``: to a database in memory that lives as long as the process."""
    global _default
    if _default is None or _default.closed:
        _default = connect()
    return _default


def sql(query: str, params: Any = None) -> Cursor:
    """Runs a query in a database in memory.

    >>> sql("SELECT 6 * 7 AS answer").fetchone()
    (42,)
    """
    return default_connection().sql(query, params)


query = sql


def execute(query: str, params: Any = None) -> Cursor:
    """As ``sql``."""
    return default_connection().execute(query, params)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext mainstem``: the magic ``%sql``."""
    from mainstem._notebook import register

    register(shell)


def main() -> int:
    """The command line: the shell, ``load``, ``check``, ``dump``, ``demo``."""
    return _mainstem.shell(sys.argv)
