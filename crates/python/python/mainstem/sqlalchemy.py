"""The dialect for SQLAlchemy: ``create_engine("mainstem:///shop")``.

The SQL is PostgreSQL's as far as Mainstem has it, so its compilers, its types and
``sqlalchemy.dialects.postgresql.insert`` (``ON CONFLICT``) serve here. Tables are reflected from
``information_schema``.

What Mainstem does not have is refused when a table with it is made: foreign keys, sequences, computed columns. Models that
were made for other databases have foreign keys often; ``omit=foreign_keys`` in the URL leaves them out, with a warning.
Indexes change no answer and are left out with a warning in any case; a unique index is a UNIQUE constraint.
"""

from __future__ import annotations

import decimal
import sys
import threading
import warnings
from typing import Any

from sqlalchemy import exc, pool, schema, types, util
from sqlalchemy.dialects.postgresql import base as postgresql
from sqlalchemy.engine import default, interfaces, reflection
from sqlalchemy.sql.compiler import InsertmanyvaluesSentinelOpts


__all__ = ["MainstemDialect"]

_OMITTED = ("foreign_keys", "indexes")
# SQLAlchemy runs a statement for each definition.
_NOTHING = "SELECT 1"
_GREATEST = tuple(2 ** (bits - 1) - 1 for bits in (16, 32, 64))
_LEAST = tuple(-(2 ** (bits - 1)) for bits in (16, 32, 64))
_BOOLEANS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def _left_out(what: str, is_quiet: bool = False) -> None:
    if not is_quiet:
        warnings.warn(f"left out: {what}", stacklevel=3)


class MainstemCompiler(postgresql.PGCompiler):
    """Statements."""

    def visit_ilike_case_insensitive_operand(self, element: Any, **kw: Any) -> Any:
        return element.element._compiler_dispatch(self, **kw)

    def visit_frame_clause(self, frameclause: Any, **kw: Any) -> str:
        # Frames have no parameters.
        clause: str = super().visit_frame_clause(frameclause, **{**kw, "literal_execute": True})
        return clause

    def visit_truediv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        # What SQLAlchemy takes for a fraction may be an integer here; and its cast of the divisor to NUMERIC would cut
        # that to ten digits.
        kinds = [side.type._type_affinity for side in (binary.left, binary.right)]
        left, right = self.process(binary.left, **kw), self.process(binary.right, **kw)
        if any(issubclass(kind, types.Float) for kind in kinds):
            return f"CAST({left} AS DOUBLE PRECISION) / {right}"
        if any(issubclass(kind, types.Numeric) for kind in kinds):
            return f"{left} / {right}"
        if issubclass(kinds[1], types.Integer):
            return f"{left} / CAST({right} AS NUMERIC)"
        return f"({left} * 1.0) / {right}"

    def visit_sequence(self, sequence: Any, **kw: Any) -> str:
        raise exc.CompileError(f"sequence {sequence.name}: use identity columns (Identity) instead of sequences")

    def visit_json_getitem_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        raise exc.CompileError("JSON is kept as text: its parts cannot be selected")

    visit_json_path_getitem_op_binary = visit_json_getitem_op_binary


class MainstemDDLCompiler(postgresql.PGDDLCompiler):
    """Definitions."""

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> Any:
        if "foreign_keys" not in self.dialect.omit:
            return super().visit_foreign_key_constraint(constraint, **kw)
        _left_out(f"the foreign key of {constraint.table.name} ({', '.join(constraint.column_keys)}): nothing checks it")
        return None

    def visit_add_constraint(self, create: Any, **kw: Any) -> Any:
        constraint = create.element
        if isinstance(constraint, schema.ForeignKeyConstraint) and "foreign_keys" in self.dialect.omit:
            self.visit_foreign_key_constraint(constraint)
            return _NOTHING
        return super().visit_add_constraint(create, **kw)

    def visit_drop_constraint(self, drop: Any, **kw: Any) -> Any:
        if isinstance(drop.element, schema.ForeignKeyConstraint) and "foreign_keys" in self.dialect.omit:
            return _NOTHING
        return super().visit_drop_constraint(drop, **kw)

    def visit_create_index(self, create: Any, **kw: Any) -> Any:
        index = create.element
        if not index.unique:
            _left_out(f"index {index.name} of {index.table.name}: there are none but keys", "indexes" in self.dialect.omit)
            return _NOTHING
        options = index.dialect_options["postgresql"]
        if options["where"] is not None or not all(isinstance(part, schema.Column) for part in index.expressions):
            raise exc.CompileError(f"index {index.name}: a unique index is of columns here, and of all rows")
        table, name = self.preparer.format_table(index.table), self._prepared_index_name(index)
        columns = ", ".join(self.preparer.format_column(column) for column in index.expressions)
        return f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE ({columns})"

    def visit_drop_index(self, drop: Any, **kw: Any) -> Any:
        index = drop.element
        if not index.unique or index.table is None:
            return _NOTHING
        return f"ALTER TABLE {self.preparer.format_table(index.table)} DROP CONSTRAINT {self._prepared_index_name(index)}"

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        if isinstance(column.default, schema.Sequence) and not column.default.optional:
            raise exc.CompileError(f"column {column.name}: Mainstem has identity columns (Identity), no sequences")
        specification: str = super().get_column_specification(column, **kw)
        return specification

    def get_identity_options(self, options: Any) -> str:
        # What is told of a table that was reflected is the default, which cannot be spelled.
        kept = [f"{word} {value}" for word, value in (("INCREMENT BY", options.increment), ("START WITH", options.start)) if value]
        start, step = options.start or 1, options.increment or 1
        for word, value, least in (("MINVALUE", options.minvalue, 1), ("MAXVALUE", options.maxvalue, 2**15 - 1)):
            defaults = (None, least, -1, *_GREATEST) if step > 0 or word == "MAXVALUE" else (None, start, *_LEAST)
            if value not in defaults:
                kept.append(f"{word} {value}")
        if options.cycle:
            kept.append("CYCLE")
        return " ".join(kept)

    def visit_computed_column(self, generated: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no computed columns")

    def visit_create_sequence(self, create: Any, prefix: Any = None, **kw: Any) -> str:
        raise exc.CompileError(f"sequence {create.element.name}: Mainstem has identity columns, no sequences")

    def visit_set_table_comment(self, create: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no comments")

    visit_set_column_comment = visit_set_table_comment


class MainstemTypeCompiler(postgresql.PGTypeCompiler):
    """Types. JSON is a text, a NUMERIC without digits has as many as a cast to NUMERIC."""

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        return "TEXT"

    def visit_JSONB(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no JSONB; sqlalchemy.JSON is kept as text")

    def visit_ENUM(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no types of ENUM; sqlalchemy.Enum is kept as text")

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        return "NUMERIC(38, 10)" if type_.precision is None else str(super().visit_NUMERIC(type_, **kw))

    def visit_DECIMAL(self, type_: Any, **kw: Any) -> str:
        return self.visit_NUMERIC(type_, **kw)

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no columns of arrays")

    def visit_INTERVAL(self, type_: Any, type_expression: Any = None, **kw: Any) -> str:
        if isinstance(type_expression, schema.Column):
            raise exc.CompileError("Mainstem has no columns of intervals")
        return "INTERVAL"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return f"TIMESTAMP{_precision(type_)}{' WITH TIME ZONE' if type_.timezone else ''}"

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        if type_.timezone:
            raise exc.CompileError("Mainstem has no TIME WITH TIME ZONE")
        return f"TIME{_precision(type_)}"


def _precision(of_type: Any) -> str:
    # Casts round to it; columns with one are refused.
    precision = getattr(of_type, "precision", None)
    return "" if precision is None else f"({precision})"


class MainstemIdentifierPreparer(postgresql.PGIdentifierPreparer):
    """Names."""

    reserved_words = postgresql.RESERVED_WORDS | {"exists", "trim"}


class MainstemNumeric(types.Numeric[Any]):
    """Numbers with digits after the point: an int that stands for one is one, so that it is divided as such."""

    def bind_processor(self, dialect: Any) -> Any:
        def process(value: Any) -> Any:
            return decimal.Decimal(value) if type(value) is int else value

        return process


def _numeric(row: Any) -> Any:
    return types.NUMERIC(row["numeric_precision"], row["numeric_scale"])


class MainstemInterval(postgresql.INTERVAL):
    """Intervals, of expressions: parameters say what they are, for times minus a text would be a time minus a time."""

    render_bind_cast = True

    @classmethod
    def adapt_emulated_to_native(cls, interval: Any, **kw: Any) -> Any:
        return cls(precision=interval.second_precision)


def _omitted(wanted: Any) -> tuple[str, ...]:
    parts = wanted.split(",") if isinstance(wanted, str) else wanted
    parts = tuple(part.strip() for part in parts if part.strip())
    unknown = set(parts).difference(_OMITTED)
    if unknown:
        raise exc.ArgumentError(f"omit: {', '.join(sorted(unknown))} is none of {', '.join(_OMITTED)}")
    return parts


_TYPES: dict[str, Any] = {
    "boolean": lambda row: types.BOOLEAN(),
    "smallint": lambda row: types.SMALLINT(),
    "integer": lambda row: types.INTEGER(),
    "bigint": lambda row: types.BIGINT(),
    "real": lambda row: types.REAL(),
    "double precision": lambda row: types.DOUBLE_PRECISION(),
    "numeric": _numeric,
    "text": lambda row: types.TEXT(),
    "character varying": lambda row: types.VARCHAR(row["character_maximum_length"]),
    "character": lambda row: types.CHAR(row["character_maximum_length"]),
    "bytea": lambda row: postgresql.BYTEA(),
    "date": lambda row: types.DATE(),
    "time without time zone": lambda row: postgresql.TIME(),
    "timestamp without time zone": lambda row: postgresql.TIMESTAMP(),
    "timestamp with time zone": lambda row: postgresql.TIMESTAMP(timezone=True),
    "uuid": lambda row: types.UUID(),
}


class MainstemDialect(default.DefaultDialect):
    """Mainstem, inside the process."""

    name = "mainstem"
    driver = "mainstem"

    statement_compiler = MainstemCompiler
    ddl_compiler = MainstemDDLCompiler
    type_compiler_cls = MainstemTypeCompiler
    preparer = MainstemIdentifierPreparer
    construct_arguments = postgresql.PGDialect.construct_arguments

    default_paramstyle = "numeric_dollar"
    colspecs = {types.Numeric: MainstemNumeric, types.Interval: MainstemInterval}
    # Of the types above that ask for it: a cast takes a statement off its fast path.
    bind_typing = interfaces.BindTyping.RENDER_CASTS
    supports_statement_cache = True
    max_identifier_length = 63
    supports_alter = True
    supports_comments = False
    supports_constraint_comments = False
    supports_default_values = True
    supports_default_metavalue = True
    supports_empty_insert = False
    supports_identity_columns = True
    supports_multivalues_insert = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_enum = False
    supports_native_uuid = True
    supports_sane_rowcount = True
    supports_sane_multi_rowcount = True
    supports_sequences = False
    supports_server_side_cursors = False
    supports_smallserial = True
    supports_virtual_generated_columns = False
    returns_native_bytes = True
    postfetch_lastrowid = False
    insert_returning = True
    update_returning = True
    delete_returning = True
    update_returning_multifrom = True
    delete_returning_multifrom = True
    use_insertmanyvalues = True
    insertmanyvalues_implicit_sentinel = InsertmanyvaluesSentinelOpts.ANY_AUTOINCREMENT
    default_schema_name = "public"

    # What PostgreSQL's compilers ask of their dialect.
    _backslash_escapes = False
    _supports_create_index_concurrently = False
    _supports_drop_index_concurrently = False
    _supports_jsonb_subscripting = False

    def __init__(
        self, json_serializer: Any = None, json_deserializer: Any = None, omit: Any = (), **kwargs: Any
    ) -> None:
        # A value that stands in several places is one parameter, as GROUP BY wants it; the DB-API has question marks.
        kwargs.setdefault("paramstyle", "numeric_dollar")
        super().__init__(**kwargs)
        self._json_serializer = json_serializer
        self._json_deserializer = json_deserializer
        self.omit = _omitted(omit)
        # The database in memory, which the connections of an engine share.
        self._memory: Any = None
        self._memory_lock = threading.Lock()

    @classmethod
    def import_dbapi(cls) -> Any:
        import mainstem.dbapi

        return mainstem.dbapi

    @classmethod
    def get_pool_class(cls, url: Any) -> type[pool.Pool]:
        return pool.QueuePool

    def create_connect_args(self, url: Any) -> tuple[list[Any], dict[str, Any]]:
        """``mainstem://`` is in memory, ``mainstem:///shop`` and ``mainstem:////srv/shop`` are folders. What stands
        after the question mark are options of ``mainstem.connect``, ``omit``, or settings."""
        if url.host or url.port or url.username or url.password:
            raise exc.ArgumentError("Mainstem runs inside the process: mainstem:///folder, without host and user")
        options: dict[str, Any] = {}
        config: dict[str, str] = {}
        for name, value in url.query.items():
            if not isinstance(value, str):
                raise exc.ArgumentError(f"{name} is given twice")
            if name == "omit":
                self.omit = _omitted(value)
            elif name in ("read_only", "replacement_scans"):
                if value.lower() not in _BOOLEANS:
                    raise exc.ArgumentError(f"{name} is true or false, not {value}")
                options[name] = _BOOLEANS[value.lower()]
            elif name in ("memory_limit", "synchronous"):
                options[name] = value
            elif name == "threads":
                if not value.isdecimal():
                    raise exc.ArgumentError(f"threads is a number, not {value}")
                options[name] = int(value)
            else:
                config[name] = value
        if config:
            options["config"] = config
        # Variables of SQLAlchemy's own frames are nobody's tables.
        options.setdefault("replacement_scans", False)
        return [url.database or ":memory:"], options

    def connect(self, *args: Any, **kwargs: Any) -> Any:
        if args and args[0] == ":memory:":
            with self._memory_lock:
                if self._memory is None or self._memory.closed:
                    self._memory = self.loaded_dbapi.connect(*args, **kwargs)
                return self._memory.session()
        return self.loaded_dbapi.connect(*args, **kwargs)

    def do_close(self, dbapi_connection: Any) -> None:
        if not dbapi_connection.closed:
            dbapi_connection.close()

    do_terminate = do_close

    def do_rollback_to_savepoint(self, connection: Any, name: str) -> None:
        try:
            super().do_rollback_to_savepoint(connection, name)
        except exc.DBAPIError as error:
            # A conflict has ended the whole transaction, whose savepoints went with it: it says more.
            if getattr(error.orig, "sqlstate", None) != "25P02":
                raise

    def initialize(self, connection: Any) -> None:
        # DefaultDialect asks for what PostgreSQL alone would answer otherwise.
        self.server_version_info = (0, 1)
        self.default_schema_name = self._get_default_schema_name(connection)
        self.default_isolation_level = self.get_default_isolation_level(connection.connection.dbapi_connection)

    def _get_default_schema_name(self, connection: Any) -> str:
        name: str = connection.exec_driver_sql("SELECT current_schema()").scalar()
        return name

    # Whatever the level, transactions are snapshots, which is more than all of these ask for.

    def get_isolation_level_values(self, dbapi_connection: Any) -> list[str]:
        return ["AUTOCOMMIT", "READ COMMITTED", "READ UNCOMMITTED", "REPEATABLE READ"]

    def get_isolation_level(self, dbapi_connection: Any) -> str:
        if dbapi_connection.autocommit:
            return "AUTOCOMMIT"
        level: str = getattr(dbapi_connection, "_isolation_level", "REPEATABLE READ")
        return level

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        dbapi_connection.autocommit = level == "AUTOCOMMIT"
        dbapi_connection._isolation_level = level

    def detect_autocommit_setting(self, dbapi_connection: Any) -> bool:
        return bool(dbapi_connection.autocommit)

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return getattr(e, "sqlstate", None) in ("08003", "57P01")

    # Reflection

    def _rows(self, connection: Any, sql: str, *params: Any) -> list[Any]:
        return list(connection.exec_driver_sql(sql, params).mappings().all())

    def _relations(self, connection: Any, kind: str, schema: str | None) -> list[str]:
        rows = self._rows(
            connection,
            "SELECT table_name FROM information_schema.tables WHERE table_type = ? AND table_schema = ? ORDER BY 1",
            kind,
            schema or self.default_schema_name,
        )
        return [row["table_name"] for row in rows]

    def _schema_of(self, connection: Any, table: str, schema: str | None) -> str | None:
        """The schema that ``table`` stands in: a temporary one wins, as in SQL; None if there is no such table."""
        rows = self._rows(
            connection,
            "SELECT table_schema FROM information_schema.tables WHERE table_name = ? "
            "AND (table_schema = ? OR (? AND table_type = 'LOCAL TEMPORARY')) ORDER BY table_type = 'LOCAL TEMPORARY' DESC",
            table,
            schema or self.default_schema_name,
            schema is None,
        )
        return rows[0]["table_schema"] if rows else None

    def _found(self, connection: Any, table: str, schema: str | None) -> str:
        found = self._schema_of(connection, table, schema)
        if found is None:
            raise exc.NoSuchTableError(f"{schema}.{table}" if schema else table)
        return found

    @reflection.cache
    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        return self._schema_of(connection, table_name, schema) is not None

    @reflection.cache
    def has_schema(self, connection: Any, schema_name: str, **kw: Any) -> bool:
        return schema_name in self.get_schema_names(connection, **kw)

    def has_index(
        self, connection: Any, table_name: str, index_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        return any(index["name"] == index_name for index in self.get_indexes(connection, table_name, schema, **kw))

    def has_sequence(self, connection: Any, sequence_name: str, schema: str | None = None, **kw: Any) -> bool:
        return False

    @reflection.cache
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        rows = self._rows(connection, "SELECT schema_name FROM information_schema.schemata ORDER BY 1")
        return [row["schema_name"] for row in rows]

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._relations(connection, "BASE TABLE", schema)

    @reflection.cache
    def get_temp_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        rows = self._rows(
            connection,
            "SELECT table_name FROM information_schema.tables WHERE table_type = 'LOCAL TEMPORARY' ORDER BY 1",
        )
        return [row["table_name"] for row in rows]

    @reflection.cache
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return self._relations(connection, "VIEW", schema)

    def get_materialized_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_temp_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    def get_sequence_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        return []

    @reflection.cache
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        rows = self._rows(
            connection,
            "SELECT view_definition FROM information_schema.views WHERE table_name = ? AND table_schema = ?",
            view_name,
            schema or self.default_schema_name,
        )
        if not rows:
            raise exc.NoSuchTableError(f"{schema}.{view_name}" if schema else view_name)
        definition: str = rows[0]["view_definition"]
        return definition

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        rows = self._rows(
            connection,
            "SELECT column_name, data_type, character_maximum_length, numeric_precision, numeric_scale, is_nullable, "
            "column_default, is_identity, identity_generation, identity_start, identity_increment, identity_minimum, "
            "identity_maximum, identity_cycle FROM information_schema.columns "
            "WHERE table_name = ? AND table_schema = ? ORDER BY ordinal_position",
            table_name,
            self._found(connection, table_name, schema),
        )
        return [self._column(row) for row in rows]

    def _column(self, row: Any) -> dict[str, Any]:
        of_type = _TYPES.get(row["data_type"])
        if of_type is None:
            util.warn(f"Did not recognize type '{row['data_type']}' of column '{row['column_name']}'")
        is_identity = row["is_identity"] == "YES"
        column = {
            "name": row["column_name"],
            "type": of_type(row) if of_type else types.NULLTYPE,
            "nullable": row["is_nullable"] == "YES",
            "default": row["column_default"],
            "autoincrement": is_identity,
        }
        if is_identity:
            column["identity"] = {
                "always": row["identity_generation"] == "ALWAYS",
                "start": int(row["identity_start"] or 1),
                "increment": int(row["identity_increment"] or 1),
                "minvalue": int(row["identity_minimum"] or 1),
                "maxvalue": int(row["identity_maximum"] or sys.maxsize),
                "cycle": row["identity_cycle"] == "YES",
                "cache": 1,
            }
        return column

    def _keys(self, connection: Any, table: str, schema: str | None, kind: str) -> dict[str, list[str]]:
        rows = self._rows(
            connection,
            "SELECT c.constraint_name, k.column_name FROM information_schema.table_constraints c "
            "JOIN information_schema.key_column_usage k ON k.constraint_name = c.constraint_name "
            "AND k.table_schema = c.table_schema AND k.table_name = c.table_name "
            "WHERE c.table_name = ? AND c.table_schema = ? AND c.constraint_type = ? ORDER BY 1, k.ordinal_position",
            table,
            self._found(connection, table, schema),
            kind,
        )
        keys: dict[str, list[str]] = {}
        for row in rows:
            keys.setdefault(row["constraint_name"], []).append(row["column_name"])
        return keys

    @reflection.cache
    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        keys = self._keys(connection, table_name, schema, "PRIMARY KEY")
        for name, columns in keys.items():
            return {"constrained_columns": columns, "name": name}
        return reflection.ReflectionDefaults.pk_constraint()

    @reflection.cache
    def get_unique_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        keys = self._keys(connection, table_name, schema, "UNIQUE")
        return [{"name": name, "column_names": columns} for name, columns in keys.items()]

    @reflection.cache
    def get_check_constraints(
        self, connection: Any, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[Any]:
        rows = self._rows(
            connection,
            "SELECT c.constraint_name, k.check_clause FROM information_schema.table_constraints c "
            "JOIN information_schema.check_constraints k ON k.constraint_name = c.constraint_name "
            "AND k.constraint_schema = c.constraint_schema "
            "WHERE c.table_name = ? AND c.table_schema = ? AND c.constraint_type = 'CHECK' ORDER BY 1",
            table_name,
            self._found(connection, table_name, schema),
        )
        # The text stands in parentheses, which CHECK adds again.
        return [
            {"name": row["constraint_name"], "sqltext": row["check_clause"][1:-1]} for row in rows
        ]

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        self._found(connection, table_name, schema)
        return []

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> list[Any]:
        # Those of unique constraints, which are all that there are; told so that nobody makes them twice.
        return [
            {
                "name": key["name"],
                "column_names": key["column_names"],
                "unique": True,
                "duplicates_constraint": key["name"],
            }
            for key in self.get_unique_constraints(connection, table_name, schema, **kw)
        ]

    def get_table_comment(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        raise NotImplementedError("Mainstem has no comments")


if "alembic" in sys.modules:
    import mainstem.alembic  # noqa: F401
