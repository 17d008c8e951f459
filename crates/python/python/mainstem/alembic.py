"""Migrations with Alembic: registers Mainstem's dialect, which ``mainstem.sqlalchemy`` does where Alembic is loaded
already. An ``env.py`` that makes its engine first imports this module."""

from __future__ import annotations

from typing import Any

from alembic.ddl.impl import DefaultImpl
from sqlalchemy import types

__all__ = ["MainstemImpl"]


class MainstemImpl(DefaultImpl):
    """ALTER TABLE as Mainstem has it: columns are added, dropped, renamed, and take and lose defaults and NOT NULL. Types
    of columns do not change."""

    __dialect__ = "mainstem"
    transactional_ddl = True
    type_synonyms = (
        *DefaultImpl.type_synonyms,
        {"TEXT", "VARCHAR", "STRING"},
        {"DOUBLE", "DOUBLE PRECISION", "FLOAT", "REAL"},
    )

    def compare_type(self, inspector_column: Any, metadata_column: Any) -> bool:
        mine, wanted = inspector_column.type, metadata_column.type.dialect_impl(self.dialect)
        if isinstance(mine, types.TEXT) and isinstance(wanted, (types.String, types.JSON)):
            # A text without a length, whatever it is called.
            return getattr(wanted, "length", None) is not None
        if isinstance(mine, types.Numeric) and isinstance(wanted, types.Numeric) and wanted.precision is None:
            return (mine.precision, mine.scale) != (38, 10) and not isinstance(mine, types.Float)
        return bool(super().compare_type(inspector_column, metadata_column))

    def correct_for_autogen_constraints(
        self,
        conn_unique_constraints: Any,
        conn_indexes: Any,
        metadata_unique_constraints: Any,
        metadata_indexes: Any,
    ) -> None:
        # The indexes that are told belong to constraints; a unique index of a model is a constraint, others are left out.
        for index in list(conn_indexes):
            conn_indexes.remove(index)
        there = {constraint.name for constraint in conn_unique_constraints}
        made = {index.name for index in metadata_indexes if index.unique and index.name in there}
        for index in list(metadata_indexes):
            if not index.unique or index.name in made:
                metadata_indexes.remove(index)
        for constraint in list(conn_unique_constraints):
            if constraint.name in made:
                conn_unique_constraints.remove(constraint)

    def correct_for_autogen_foreignkeys(self, conn_fks: Any, metadata_fks: Any) -> None:
        if "foreign_keys" in getattr(self.dialect, "omit", ()):
            metadata_fks.clear()
