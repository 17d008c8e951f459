"""Types of the DB-API, and values that Python has no class for."""

from __future__ import annotations

import datetime
import re
import time
from dataclasses import dataclass
from typing import Any, Sequence

__all__ = [
    "BINARY", "Binary", "DATETIME", "Date", "DateFromTicks", "Interval", "NUMBER", "ROWID", "STRING", "Time",
    "TimeFromTicks", "Timestamp", "TimestampFromTicks", "Type", "TypeGroup",
]


@dataclass(frozen=True)
class Interval:
    """A span of time with months, which have no fixed length: what ``timedelta`` cannot hold.

    >>> str(Interval(14, 3, 1_500_000))
    '14 months 3 days 1.500000 seconds'
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __str__(self) -> str:
        sign = "-" if self.microseconds < 0 else ""
        seconds, micros = divmod(abs(self.microseconds), 1_000_000)
        return f"{self.months} months {self.days} days {sign}{seconds}.{micros:06} seconds"


@dataclass(frozen=True)
class Type:
    """The SQL type of a column. It equals the group of types that the DB-API compares it with.

    >>> Type("integer") == NUMBER, Type("integer") == STRING
    (True, False)
    """

    name: str
    precision: int | None = None
    scale: int | None = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Type):
            return (self.name, self.precision, self.scale) == (other.name, other.precision, other.scale)
        if isinstance(other, TypeGroup):
            return self.name in other.names
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.precision, self.scale))

    def __str__(self) -> str:
        return self.name


class TypeGroup:
    """Types that the DB-API has one name for."""

    def __init__(self, name: str, *names: str) -> None:
        self.name = name
        self.names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Type):
            return other.name in self.names
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"mainstem.{self.name}"


STRING = TypeGroup("STRING", "text", "varchar", "char", "uuid", "record", "array")
BINARY = TypeGroup("BINARY", "bytea")
NUMBER = TypeGroup(
    "NUMBER", "smallint", "integer", "bigint", "real", "double precision", "decimal", "numeric", "boolean"
)
DATETIME = TypeGroup(
    "DATETIME", "date", "time", "timestamp", "timestamp with time zone", "timestamptz", "interval"
)
ROWID = TypeGroup("ROWID")

_DIGITS = re.compile(r"^(\w[\w ]*?) ?\((\d+)(?:, ?(\d+))?\)$")


def _type(text: str) -> tuple[Type, int | None]:
    """The type that the engine calls ``text``, and the length of its values if it says one."""
    found = _DIGITS.match(text)
    if not found:
        return Type({"timestamptz": "timestamp with time zone"}.get(text, text)), None
    name, first, second = found[1], int(found[2]), found[3]
    if second is not None or name in ("decimal", "numeric"):
        return Type(name, first, int(second or 0)), None
    return Type(name), first


def description(names: Sequence[str], types: Sequence[str]) -> list[tuple[Any, ...]]:
    """``Cursor.description``: seven items for each column."""
    made = []
    for name, text in zip(names, types):
        kind, length = _type(text)
        made.append((name, kind, None, length, kind.precision, kind.scale, None))
    return made


Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The date, here, ``ticks`` seconds after 1970."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day, here, ``ticks`` seconds after 1970."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The moment, here, ``ticks`` seconds after 1970."""
    return datetime.datetime(*time.localtime(ticks)[:6])
