"""Migrations with Alembic: registers Mainstem's dialect, which ``mainstem.sqlalchemy`` does where Alembic is loaded
already. An ``env.py`` that makes its engine first imports this module."""

from __future__ import annotations

from alembic.ddl.impl import DefaultImpl

__all__ = ["MainstemImpl"]


class MainstemImpl(DefaultImpl):
    """ALTER TABLE as Mainstem has it: columns are added, dropped, renamed, and take and lose defaults and NOT NULL. Types
    of columns do not change."""

    __dialect__ = "mainstem"
    transactional_ddl = True
