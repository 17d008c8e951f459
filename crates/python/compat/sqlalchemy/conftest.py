"""SQLAlchemy's own tests for dialects, run by ``pytest -c setup.cfg`` in this folder."""

import pytest
from sqlalchemy.dialects import registry

for name in ("mainstem", "mainstem.mainstem"):
    registry.register(name, "mainstem.sqlalchemy", "MainstemDialect")
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.dialects.postgresql import insert  # noqa: E402
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


@provision.temp_table_keyword_args.for_db("mainstem")
def temp_table_keyword_args(cfg, eng):
    return {"prefixes": ["TEMPORARY"]}


@provision.post_configure_engine.for_db("mainstem")
def post_configure_engine(url, engine, follower_ident):
    with engine.begin() as connection:
        for name in ("test_schema", "test_schema_2"):
            connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {name}")


@provision.set_default_schema_on_connection.for_db("mainstem")
def set_default_schema_on_connection(cfg, dbapi_connection, schema_name):
    dbapi_connection.execute(f"SET search_path = {schema_name}")


@provision.upsert.for_db("mainstem")
def upsert(cfg, table, returning, *, set_lambda=None, sort_by_parameter_order=False, index_elements=None):
    statement = insert(table)
    keys = index_elements or table.primary_key.c
    if set_lambda:
        statement = statement.on_conflict_do_update(index_elements=keys, set_=set_lambda(statement.excluded))
    else:
        statement = statement.on_conflict_do_nothing()
    return statement.returning(*returning, sort_by_parameter_order=sort_by_parameter_order)
