"""The DB-API 2.0 as it stands: ``connect`` begins a transaction with the first statement (autocommit off)."""

from __future__ import annotations

import os
from typing import Any

import mainstem
from mainstem import (
    BINARY as BINARY,
    DATETIME as DATETIME,
    NUMBER as NUMBER,
    ROWID as ROWID,
    STRING as STRING,
    Binary as Binary,
    Cursor as Cursor,
    DatabaseError as DatabaseError,
    DataError as DataError,
    Date as Date,
    DateFromTicks as DateFromTicks,
    Error as Error,
    IntegrityError as IntegrityError,
    InterfaceError as InterfaceError,
    InternalError as InternalError,
    NotSupportedError as NotSupportedError,
    OperationalError as OperationalError,
    ProgrammingError as ProgrammingError,
    Time as Time,
    TimeFromTicks as TimeFromTicks,
    Timestamp as Timestamp,
    TimestampFromTicks as TimestampFromTicks,
    Warning as Warning,
    apilevel as apilevel,
    paramstyle as paramstyle,
    threadsafety as threadsafety,
)


class Connection(mainstem.Connection):
    """A connection as the DB-API has it: closing it twice is an error."""

    def close(self) -> None:
        """Closes the connection; an open transaction is rolled back."""
        if self.closed:
            raise InterfaceError("the connection is closed", "08003")
        super().close()


def connect(path: str | os.PathLike[str] = ":memory:", *, autocommit: bool = False, **options: Any) -> Connection:
    """As ``mainstem.connect``, with autocommit off unless told."""
    made = mainstem.connect(path, autocommit=autocommit, connection_class=Connection, **options)
    assert isinstance(made, Connection)
    return made
