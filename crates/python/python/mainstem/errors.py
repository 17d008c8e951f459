"""The DB-API's exceptions, with a class for each SQLSTATE that programs look for, named as psycopg names them.

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
    "FeatureNotSupported",
    "ConnectionDoesNotExist",
    "TransactionResolutionUnknown",
    "ProtocolViolation",
    "CardinalityViolation",
    "StringDataRightTruncation",
    "NumericValueOutOfRange",
    "InvalidDatetimeFormat",
    "DatetimeFieldOverflow",
    "DivisionByZero",
    "CharacterNotInRepertoire",
    "InvalidParameterValue",
    "InvalidTextRepresentation",
    "BadCopyFileFormat",
    "NotNullViolation",
    "ForeignKeyViolation",
    "UniqueViolation",
    "CheckViolation",
    "ActiveSqlTransaction",
    "ReadOnlySqlTransaction",
    "NoActiveSqlTransaction",
    "InFailedSqlTransaction",
    "DependentObjectsStillExist",
    "ExternalRoutineException",
    "InvalidSchemaName",
    "SerializationFailure",
    "InsufficientPrivilege",
    "SyntaxError",
    "InvalidName",
    "DuplicateColumn",
    "AmbiguousColumn",
    "UndefinedColumn",
    "GroupingError",
    "DatatypeMismatch",
    "WrongObjectType",
    "UndefinedFunction",
    "UndefinedTable",
    "UndefinedParameter",
    "DuplicateTable",
    "InsufficientResources",
    "DiskFull",
    "OutOfMemory",
    "StatementTooComplex",
    "ObjectNotInPrerequisiteState",
    "ObjectInUse",
    "LockNotAvailable",
    "QueryCanceled",
    "IoError",
    "UndefinedFile",
    "InternalError_",
    "DataCorrupted",
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
        # Messages of the engine say what to do after a semicolon.
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


class FeatureNotSupported(NotSupportedError):
    """SQLSTATE 0A000."""

    sqlstate = "0A000"


class ConnectionDoesNotExist(OperationalError):
    """SQLSTATE 08003."""

    sqlstate = "08003"


class TransactionResolutionUnknown(OperationalError):
    """SQLSTATE 08007."""

    sqlstate = "08007"


class ProtocolViolation(ProgrammingError):
    """SQLSTATE 08P01."""

    sqlstate = "08P01"


class CardinalityViolation(ProgrammingError):
    """SQLSTATE 21000."""

    sqlstate = "21000"


class StringDataRightTruncation(DataError):
    """SQLSTATE 22001."""

    sqlstate = "22001"


class NumericValueOutOfRange(DataError):
    """SQLSTATE 22003."""

    sqlstate = "22003"


class InvalidDatetimeFormat(DataError):
    """SQLSTATE 22007."""

    sqlstate = "22007"


class DatetimeFieldOverflow(DataError):
    """SQLSTATE 22008."""

    sqlstate = "22008"


class DivisionByZero(DataError):
    """SQLSTATE 22012."""

    sqlstate = "22012"


class CharacterNotInRepertoire(DataError):
    """SQLSTATE 22021."""

    sqlstate = "22021"


class InvalidParameterValue(DataError):
    """SQLSTATE 22023."""

    sqlstate = "22023"


class InvalidTextRepresentation(DataError):
    """SQLSTATE 22P02."""

    sqlstate = "22P02"


class BadCopyFileFormat(DataError):
    """SQLSTATE 22P04."""

    sqlstate = "22P04"


class NotNullViolation(IntegrityError):
    """SQLSTATE 23502."""

    sqlstate = "23502"


class ForeignKeyViolation(IntegrityError):
    """SQLSTATE 23503."""

    sqlstate = "23503"


class UniqueViolation(IntegrityError):
    """SQLSTATE 23505."""

    sqlstate = "23505"


class CheckViolation(IntegrityError):
    """SQLSTATE 23514."""

    sqlstate = "23514"


class ActiveSqlTransaction(ProgrammingError):
    """SQLSTATE 25001."""

    sqlstate = "25001"


class ReadOnlySqlTransaction(OperationalError):
    """SQLSTATE 25006."""

    sqlstate = "25006"


class NoActiveSqlTransaction(ProgrammingError):
    """SQLSTATE 25P01."""

    sqlstate = "25P01"


class InFailedSqlTransaction(OperationalError):
    """SQLSTATE 25P02."""

    sqlstate = "25P02"


class DependentObjectsStillExist(ProgrammingError):
    """SQLSTATE 2BP01."""

    sqlstate = "2BP01"


class ExternalRoutineException(DataError):
    """SQLSTATE 38000."""

    sqlstate = "38000"


class InvalidSchemaName(ProgrammingError):
    """SQLSTATE 3F000."""

    sqlstate = "3F000"


class SerializationFailure(OperationalError):
    """SQLSTATE 40001."""

    sqlstate = "40001"


class InsufficientPrivilege(ProgrammingError):
    """SQLSTATE 42501."""

    sqlstate = "42501"


class SyntaxError(ProgrammingError):
    """SQLSTATE 42601."""

    sqlstate = "42601"


class InvalidName(ProgrammingError):
    """SQLSTATE 42602."""

    sqlstate = "42602"


class DuplicateColumn(ProgrammingError):
    """SQLSTATE 42701."""

    sqlstate = "42701"


class AmbiguousColumn(ProgrammingError):
    """SQLSTATE 42702."""

    sqlstate = "42702"


class UndefinedColumn(ProgrammingError):
    """SQLSTATE 42703."""

    sqlstate = "42703"


class GroupingError(ProgrammingError):
    """SQLSTATE 42803."""

    sqlstate = "42803"


class DatatypeMismatch(ProgrammingError):
    """SQLSTATE 42804."""

    sqlstate = "42804"


class WrongObjectType(ProgrammingError):
    """SQLSTATE 42809."""

    sqlstate = "42809"


class UndefinedFunction(ProgrammingError):
    """SQLSTATE 42883."""

    sqlstate = "42883"


class UndefinedTable(ProgrammingError):
    """SQLSTATE 42P01."""

    sqlstate = "42P01"


class UndefinedParameter(ProgrammingError):
    """SQLSTATE 42P02."""

    sqlstate = "42P02"


class DuplicateTable(ProgrammingError):
    """SQLSTATE 42P07."""

    sqlstate = "42P07"


class InsufficientResources(OperationalError):
    """SQLSTATE 53000."""

    sqlstate = "53000"


class DiskFull(OperationalError):
    """SQLSTATE 53100."""

    sqlstate = "53100"


class OutOfMemory(OperationalError):
    """SQLSTATE 53200."""

    sqlstate = "53200"


class StatementTooComplex(OperationalError):
    """SQLSTATE 54001."""

    sqlstate = "54001"


class ObjectNotInPrerequisiteState(OperationalError):
    """SQLSTATE 55000."""

    sqlstate = "55000"


class ObjectInUse(OperationalError):
    """SQLSTATE 55006."""

    sqlstate = "55006"


class LockNotAvailable(OperationalError):
    """SQLSTATE 55P03."""

    sqlstate = "55P03"


class QueryCanceled(OperationalError):
    """SQLSTATE 57014."""

    sqlstate = "57014"


class IoError(OperationalError):
    """SQLSTATE 58030."""

    sqlstate = "58030"


class UndefinedFile(OperationalError):
    """SQLSTATE 58P01."""

    sqlstate = "58P01"


class InternalError_(InternalError):
    """SQLSTATE XX000."""

    sqlstate = "XX000"


class DataCorrupted(InternalError):
    """SQLSTATE XX001."""

    sqlstate = "XX001"


_CLASSES: dict[str, type[Error]] = {
    "0A000": FeatureNotSupported,
    "08003": ConnectionDoesNotExist,
    "08007": TransactionResolutionUnknown,
    "08P01": ProtocolViolation,
    "21000": CardinalityViolation,
    "22001": StringDataRightTruncation,
    "22003": NumericValueOutOfRange,
    "22007": InvalidDatetimeFormat,
    "22008": DatetimeFieldOverflow,
    "22012": DivisionByZero,
    "22021": CharacterNotInRepertoire,
    "22023": InvalidParameterValue,
    "22P02": InvalidTextRepresentation,
    "22P04": BadCopyFileFormat,
    "23502": NotNullViolation,
    "23503": ForeignKeyViolation,
    "23505": UniqueViolation,
    "23514": CheckViolation,
    "25001": ActiveSqlTransaction,
    "25006": ReadOnlySqlTransaction,
    "25P01": NoActiveSqlTransaction,
    "25P02": InFailedSqlTransaction,
    "2BP01": DependentObjectsStillExist,
    "38000": ExternalRoutineException,
    "3F000": InvalidSchemaName,
    "40001": SerializationFailure,
    "42501": InsufficientPrivilege,
    "42601": SyntaxError,
    "42602": InvalidName,
    "42701": DuplicateColumn,
    "42702": AmbiguousColumn,
    "42703": UndefinedColumn,
    "42803": GroupingError,
    "42804": DatatypeMismatch,
    "42809": WrongObjectType,
    "42883": UndefinedFunction,
    "42P01": UndefinedTable,
    "42P02": UndefinedParameter,
    "42P07": DuplicateTable,
    "53000": InsufficientResources,
    "53100": DiskFull,
    "53200": OutOfMemory,
    "54001": StatementTooComplex,
    "55000": ObjectNotInPrerequisiteState,
    "55006": ObjectInUse,
    "55P03": LockNotAvailable,
    "57014": QueryCanceled,
    "58030": IoError,
    "58P01": UndefinedFile,
    "XX000": InternalError_,
    "XX001": DataCorrupted,
}

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


def _of_engine(sqlstate: str, kind: str, message: str, position: int | None, object: str | None) -> Error:
    """The exception of an error that the engine gave."""
    known = _CLASSES.get(sqlstate)
    if known is None:
        known = _BY_KIND.get(kind) or lookup(sqlstate)
    return known(message, sqlstate, kind, position, object)
