"""The dialect for SQLAlchemy: ``create_engine("mainstem:///shop")``.

The SQL is PostgreSQL's as far as Mainstem has it, so its compilers, its types and
``sqlalchemy.dialects.postgresql.insert`` (``ON CONFLICT``) serve here. Tables are reflected from
``information_schema``.

What Mainstem does not have is refused when a table with it is made: foreign keys, indexes, sequences, computed columns,
comments. Models made for other databases have foreign keys and indexes often; ``omit=foreign_keys,indexes`` in the URL
leaves them out of CREATE TABLE, with a warning.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from sqlalchemy import exc, pool, types, util
from sqlalchemy.dialects.postgresql import base as postgresql
from sqlalchemy.engine import default, interfaces, reflection
from sqlalchemy.sql.compiler import InsertmanyvaluesSentinelOpts


__all__ = ["MainstemDialect"]

_OMITTED = ("foreign_keys", "indexes")
_BOOLEANS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


class MainstemCompiler(postgresql.PGCompiler):
    """Statements."""

    def visit_ilike_case_insensitive_operand(self, element: Any, **kw: Any) -> Any:
        return element.element._compiler_dispatch(self, **kw)

    def visit_frame_clause(self, frameclause: Any, **kw: Any) -> str:
        # Frames have no parameters.
        clause: str = super().visit_frame_clause(frameclause, **{**kw, "literal_execute": True})
        return clause

    def visit_truediv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        # A cast to NUMERIC, which SQLAlchemy adds where it does not know the divisor's type, would cut it to ten digits.
        if binary.left.type._type_affinity in (types.Numeric, types.Float):
            return f"{self.process(binary.left, **kw)} / {self.process(binary.right, **kw)}"
        quotient: str = super().visit_truediv_binary(binary, operator, **kw)
        return quotient

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
        warnings.warn("foreign keys are left out, as omit=foreign_keys says: nothing checks them", stacklevel=2)
        return None

    def visit_create_index(self, create: Any, **kw: Any) -> Any:
        index = create.element
        if index.unique:
            raise exc.CompileError(f"index {index.name}: a UNIQUE constraint is needed instead of a unique index")
        if "indexes" not in self.dialect.omit:
            raise exc.CompileError(
                f"index {index.name}: Mainstem has no indexes beside keys; omit=indexes in the URL leaves them out"
            )
        warnings.warn("indexes are left out, as omit=indexes says", stacklevel=2)
        # SQLAlchemy runs a statement in any case.
        return "SELECT 1"

    def visit_drop_index(self, drop: Any, **kw: Any) -> Any:
        return "SELECT 1" if "indexes" in self.dialect.omit else super().visit_drop_index(drop, **kw)

    def visit_computed_column(self, generated: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no computed columns")

    def visit_create_sequence(self, create: Any, prefix: Any = None, **kw: Any) -> str:
        raise exc.CompileError(f"sequence {create.element.name}: Mainstem has identity columns, no sequences")

    def visit_set_table_comment(self, create: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no comments")

    visit_set_column_comment = visit_set_table_comment


class MainstemTypeCompiler(postgresql.PGTypeCompiler):
    """Types. JSON is a text."""

    def visit_JSON(self, type_: Any, **kw: Any) -> str:
        return "TEXT"

    visit_JSONB = visit_JSON

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no columns of arrays")

    def visit_INTERVAL(self, type_: Any, **kw: Any) -> str:
        raise exc.CompileError("Mainstem has no columns of intervals; sqlalchemy.Interval is kept as a timestamp")

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        if type_.timezone:
            raise exc.CompileError("Mainstem has no TIME WITH TIME ZONE")
        return "TIME"


class MainstemIdentifierPreparer(postgresql.PGIdentifierPreparer):
    """Names."""


def _numeric(row: Any) -> Any:
    return types.NUMERIC(row["numeric_precision"], row["numeric_scale"])


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

    default_paramstyle = "qmark"
    bind_typing = interfaces.BindTyping.NONE
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

    def __init__(self, json_serializer: Any = None, json_deserializer: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._json_serializer = json_serializer
        self._json_deserializer = json_deserializer
        self.omit: tuple[str, ...] = ()
        # The database in memory, which the connections of an engine share.
        self._memory: Any = None

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
                self.omit = tuple(part for part in value.split(",") if part)
                unknown = set(self.omit).difference(_OMITTED)
                if unknown:
                    raise exc.ArgumentError(f"omit: {', '.join(sorted(unknown))} is none of {', '.join(_OMITTED)}")
            elif name in ("read_only", "replacement_scans"):
                if value.lower() not in _BOOLEANS:
                    raise exc.ArgumentError(f"{name} is true or false, not {value}")
                options[name] = _BOOLEANS[value.lower()]
            elif name in ("memory_limit", "synchronous"):
                options[name] = value
            elif name == "threads":
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
            if self._memory is None or self._memory.closed:
                self._memory = self.loaded_dbapi.connect(*args, **kwargs)
            return self._memory.session()
        return self.loaded_dbapi.connect(*args, **kwargs)

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
