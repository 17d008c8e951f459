"""Exceptions: those of the DB-API, with a class for each SQLSTATE that programs look for, named as psycopg names them.

Every error of the engine has ``sqlstate`` (five characters), ``kind`` (what to do about it), ``position`` (the
character in the statement, from 1), ``object`` (the name it is about) and ``hint``; each is None where there is none.
"""

from __future__ import annotations

import builtins

__all__ = [
    "Warning",
    "Error",
    "InterfaceError",
    "DatabaseError",
    "DataError",
    "OperationalError",
    "IntegrityError",
    "InternalError",
    "ProgrammingError",
    "NotSupportedError",
    "lookup",
]


class Warning(Exception):  # noqa: A001 - the DB-API calls it so
    """Something that should be known and is no error."""


class Error(Exception):
    """What all errors of this module have in common."""

    sqlstate: str | None = None
    kind: str | None = None
    position: int | None = None
    object: str | None = None
    hint: str | None = None

    def __init__(
        self,
        message: str = "",
        sqlstate: str | None = None,
        kind: str | None = None,
        position: int | None = None,
        object: str | None = None,
    ) -> None:
        super().__init__(message)
        if sqlstate is not None:
            self.sqlstate = sqlstate
        self.kind = kind
        self.position = position
        self.object = object
        # Messages of the engine say what to do behind a semicolon.
        self.hint = message.split("; ", 1)[1] if "; " in message else None

    def __reduce__(self) -> tuple[builtins.object, ...]:
        return type(self), (self.args[0] if self.args else "", self.sqlstate, self.kind, self.position, self.object)


class InterfaceError(Error):
    """The module is used in a wrong way: a closed connection or cursor, a result that is spent."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value is wrong: out of range, no number, too long (class 22)."""


class OperationalError(DatabaseError):
    """The database cannot do it now: a conflict, a full disk, another process, an interrupt."""


class IntegrityError(DatabaseError):
    """A row breaks a constraint (class 23)."""


class InternalError(DatabaseError):
    """A damaged file, or a defect of the engine."""


class ProgrammingError(DatabaseError):
    """The statement is wrong: its syntax, its names, its types (class 42)."""


class NotSupportedError(DatabaseError):
    """The statement means something that is not there (0A000)."""


_CLASSES: dict[str, type[Error]] = {}


def _define(sqlstate: str, name: str, base: type[Error]) -> None:
    made = type(name, (base,), {"sqlstate": sqlstate, "__doc__": f"SQLSTATE {sqlstate}.", "__module__": __name__})
    globals()[name] = made
    _CLASSES[sqlstate] = made
    __all__.append(name)


for _sqlstate, _name, _base in [
    ("0A000", "FeatureNotSupported", NotSupportedError),
    ("08003", "ConnectionDoesNotExist", OperationalError),
    ("08007", "TransactionResolutionUnknown", OperationalError),
    ("08P01", "ProtocolViolation", ProgrammingError),
    ("21000", "CardinalityViolation", ProgrammingError),
    ("22001", "StringDataRightTruncation", DataError),
    ("22003", "NumericValueOutOfRange", DataError),
    ("22007", "InvalidDatetimeFormat", DataError),
    ("22008", "DatetimeFieldOverflow", DataError),
    ("22012", "DivisionByZero", DataError),
    ("22021", "CharacterNotInRepertoire", DataError),
    ("22023", "InvalidParameterValue", DataError),
    ("22P02", "InvalidTextRepresentation", DataError),
    ("22P04", "BadCopyFileFormat", DataError),
    ("23502", "NotNullViolation", IntegrityError),
    ("23503", "ForeignKeyViolation", IntegrityError),
    ("23505", "UniqueViolation", IntegrityError),
    ("23514", "CheckViolation", IntegrityError),
    ("25001", "ActiveSqlTransaction", ProgrammingError),
    ("25006", "ReadOnlySqlTransaction", OperationalError),
    ("25P01", "NoActiveSqlTransaction", ProgrammingError),
    ("25P02", "InFailedSqlTransaction", OperationalError),
    ("2BP01", "DependentObjectsStillExist", ProgrammingError),
    ("38000", "ExternalRoutineException", DataError),
    ("3F000", "InvalidSchemaName", ProgrammingError),
    ("40001", "SerializationFailure", OperationalError),
    ("42501", "InsufficientPrivilege", ProgrammingError),
    ("42601", "SyntaxError", ProgrammingError),
    ("42602", "InvalidName", ProgrammingError),
    ("42701", "DuplicateColumn", ProgrammingError),
    ("42702", "AmbiguousColumn", ProgrammingError),
    ("42703", "UndefinedColumn", ProgrammingError),
    ("42803", "GroupingError", ProgrammingError),
    ("42804", "DatatypeMismatch", ProgrammingError),
    ("42809", "WrongObjectType", ProgrammingError),
    ("42883", "UndefinedFunction", ProgrammingError),
    ("42P01", "UndefinedTable", ProgrammingError),
    ("42P02", "UndefinedParameter", ProgrammingError),
    ("42P07", "DuplicateTable", ProgrammingError),
    ("53000", "InsufficientResources", OperationalError),
    ("53100", "DiskFull", OperationalError),
    ("53200", "OutOfMemory", OperationalError),
    ("54001", "StatementTooComplex", OperationalError),
    ("55000", "ObjectNotInPrerequisiteState", OperationalError),
    ("55006", "ObjectInUse", OperationalError),
    ("55P03", "LockNotAvailable", OperationalError),
    ("57014", "QueryCanceled", OperationalError),
    ("58030", "IoError", OperationalError),
    ("58P01", "UndefinedFile", OperationalError),
    ("XX000", "InternalError_", InternalError),
    ("XX001", "DataCorrupted", InternalError),
]:
    _define(_sqlstate, _name, _base)

_BY_CLASS: dict[str, type[Error]] = {
    "08": OperationalError,
    "0A": NotSupportedError,
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "24": ProgrammingError,
    "25": OperationalError,
    "38": DataError,
    "40": OperationalError,
    "42": ProgrammingError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "XX": InternalError,
}

_BY_KIND: dict[str, type[Error]] = {
    "conflict": OperationalError,
    "constraint": IntegrityError,
    "corrupt": InternalError,
    "io": OperationalError,
    "full": OperationalError,
    "closed": OperationalError,
    "internal": InternalError,
}


def lookup(sqlstate: str) -> type[Error]:
    """The class of errors with this SQLSTATE.

    >>> lookup("23505").__name__
    'UniqueViolation'
    """
    known = _CLASSES.get(sqlstate)
    return known if known is not None else _BY_CLASS.get(sqlstate[:2], ProgrammingError)


def of_engine(sqlstate: str, kind: str, message: str, position: int | None, object: str | None) -> Error:
    """The exception of an error that the engine gave."""
    known = _CLASSES.get(sqlstate)
    if known is None:
        known = _BY_KIND.get(kind) or lookup(sqlstate)
    return known(message, sqlstate, kind, position, object)
