"""The dialect: models, upserts, reflection, pandas, Alembic. SQLAlchemy's own tests run by ``cargo compat``."""

from __future__ import annotations

import datetime
import decimal
import threading
import uuid
import warnings

import pytest

sa = pytest.importorskip("sqlalchemy")

from sqlalchemy.dialects import registry  # noqa: E402
from sqlalchemy.dialects import postgresql  # noqa: E402
from sqlalchemy.dialects.postgresql import insert  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship  # noqa: E402

registry.register("mainstem", "mainstem.sqlalchemy", "MainstemDialect")


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(30), unique=True)
    token: Mapped[uuid.UUID] = mapped_column(default=uuid.uuid4)
    sales: Mapped[list[Sale]] = relationship(back_populates="customer")


class Sale(Base):
    __tablename__ = "sale"
    id: Mapped[int] = mapped_column(sa.Identity(start=100), primary_key=True)
    customer_id: Mapped[int] = mapped_column(sa.ForeignKey("customer.id"), index=True)
    eur: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(10, 2))
    at: Mapped[datetime.datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    extra: Mapped[dict] = mapped_column(sa.JSON, default=dict)
    customer: Mapped[Customer] = relationship(back_populates="sales")
    __table_args__ = (sa.CheckConstraint("eur >= 0", name="not_negative"),)


@pytest.fixture
def engine():
    engine = sa.create_engine("mainstem://?omit=foreign_keys,indexes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Base.metadata.create_all(engine)
    yield engine
    engine.dispose()


def test_models(engine):
    with Session(engine) as session:
        session.add_all(
            Customer(name=f"c{n}", sales=[Sale(eur=decimal.Decimal(n), extra={"n": [n]}) for _ in range(3)])
            for n in range(200)
        )
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Sale)) == 600
        found = session.scalars(sa.select(Customer).where(Customer.name.ilike("C7"))).one()
        assert [(sale.eur, sale.extra) for sale in found.sales] == [(decimal.Decimal("7.00"), {"n": [7]})] * 3
        assert isinstance(found.token, uuid.UUID) and found.sales[0].at.tzinfo is not None
        by_name = sa.select(Customer.name, sa.func.sum(Sale.eur)).join(Sale).group_by(Customer.name)
        assert session.execute(by_name.order_by(sa.text("2 DESC")).limit(1)).one() == ("c199", decimal.Decimal(597))
        with pytest.raises(sa.exc.IntegrityError) as raised:
            session.execute(sa.insert(Customer).values(name="c7"))
        assert raised.value.orig.sqlstate == "23505"
        session.rollback()
        with session.begin_nested():
            session.execute(sa.delete(Sale).where(Sale.eur > 100))
        session.rollback()
        assert session.scalar(sa.select(sa.func.count(Sale.id))) == 600


def test_upserts_and_returning(engine):
    with engine.begin() as con:
        statement = insert(Customer).values([{"name": "a", "id": 1}, {"name": "b", "id": 2}])
        assert con.execute(statement.returning(Customer.id)).scalars().all() == [1, 2]
        again = insert(Customer).values(name="a", id=9)
        again = again.on_conflict_do_update(index_elements=["name"], set_={"name": again.excluded.name + "!"})
        assert con.execute(again.returning(Customer.id, Customer.name)).all() == [(1, "a!")]
        assert con.execute(insert(Customer).values(name="b", id=7).on_conflict_do_nothing()).rowcount == 0
        update = sa.update(Customer).where(Customer.id == 2).values(name="c").returning(Customer.name)
        assert con.execute(update).scalar() == "c"


def test_many_rows_go_as_one_statement(engine):
    rows = [{"name": f"n{n}", "id": n} for n in range(10_000)]
    with engine.begin() as con:
        con.execute(sa.insert(Customer), rows)
        assert con.scalar(sa.select(sa.func.count(Customer.id))) == 10_000


def test_reflection(engine):
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["customer", "sale"]
    columns = {column["name"]: column for column in inspector.get_columns("sale")}
    assert isinstance(columns["eur"]["type"], sa.Numeric) and columns["eur"]["type"].scale == 2
    assert columns["at"]["type"].timezone and columns["at"]["default"] == "now()"
    assert columns["id"]["identity"]["start"] == 100 and not columns["eur"]["nullable"]
    assert inspector.get_pk_constraint("sale")["constrained_columns"] == ["id"]
    assert [unique["column_names"] for unique in inspector.get_unique_constraints("customer")] == [["name"]]
    (check,) = inspector.get_check_constraints("sale")
    assert check["name"] == "not_negative" and "eur >= 0" in check["sqltext"]
    with engine.begin() as con:
        con.exec_driver_sql("CREATE VIEW rich AS SELECT id FROM sale WHERE eur > 10")
        con.exec_driver_sql("CREATE TEMPORARY TABLE fleeting (k INT)")
        inside = sa.inspect(con)
        assert inside.get_view_names() == ["rich"] and "eur > 10" in inside.get_view_definition("rich")
        assert inside.get_temp_table_names() == ["fleeting"] and inside.has_table("fleeting")
    reflected = sa.MetaData()
    reflected.reflect(engine, views=True)
    assert set(reflected.tables) == {"customer", "sale", "rich"}
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.inspect(engine).get_columns("nothing")


def test_what_is_not_there_is_refused():
    engine = sa.create_engine("mainstem://")
    with pytest.raises(sa.exc.NotSupportedError):
        Base.metadata.create_all(engine)
    for column in (
        sa.Column("k", sa.ARRAY(sa.Integer)),
        sa.Column("k", sa.Interval),
        sa.Column("k", sa.Time(timezone=True)),
        sa.Column("k", sa.Integer, sa.Sequence("s")),
        sa.Column("k", sa.Integer, sa.Computed("1")),
        sa.Column("k", postgresql.JSONB),
        sa.Column("k", postgresql.TIMESTAMP(precision=0)),
    ):
        with pytest.raises((sa.exc.CompileError, sa.exc.NotSupportedError)):
            sa.Table("t", sa.MetaData(), column).create(engine)
    with pytest.raises(sa.exc.CompileError, match="unique index"):
        copy = Customer.__table__.to_metadata(sa.MetaData())
        sa.Index("i", sa.func.lower(copy.c.name), unique=True).create(engine)
    with pytest.raises(sa.exc.ArgumentError, match="host"):
        sa.create_engine("mainstem://host/shop").connect()
    with pytest.raises(sa.exc.ArgumentError, match="omit"):
        sa.create_engine("mainstem://?omit=everything").connect()
    with pytest.warns(UserWarning, match="foreign key of b"):
        metadata = sa.MetaData()
        sa.Table("a", metadata, sa.Column("k", sa.Integer, primary_key=True))
        sa.Table("b", metadata, sa.Column("k", sa.Integer, sa.ForeignKey("a.k")))
        metadata.create_all(sa.create_engine("mainstem://?omit=foreign_keys"))


def test_folders_and_isolation(tmp_path):
    engine = sa.create_engine(f"mainstem:///{tmp_path}/shop?synchronous=normal&memory_limit=200MB")
    with engine.connect() as con:
        con.execute(sa.text("CREATE TABLE t (k INT)"))
        con.execute(sa.text("INSERT INTO t VALUES (:k)"), [{"k": 1}, {"k": 2}])
        con.rollback()
        assert not sa.inspect(con).has_table("t")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as con:
        con.execute(sa.text("CREATE TABLE t (k INT)"))
    with engine.connect() as one, engine.connect() as other:
        one.execute(sa.text("INSERT INTO t VALUES (1)"))
        assert other.scalar(sa.text("SELECT count(*) FROM t")) == 0
        one.commit()
        other.commit()
        assert other.scalar(sa.text("SELECT count(*) FROM t")) == 1
        assert one.scalar(sa.text("SHOW synchronous")) == "normal"
    engine.dispose()


def test_pandas(engine):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"k": range(500), "v": [f"r{n}" for n in range(500)], "at": pandas.date_range("2026-01-01", periods=500, tz="UTC")}
    )
    assert frame.to_sql("frame", engine, index=False) == 500
    again = pandas.read_sql("SELECT * FROM frame ORDER BY k", engine)
    assert again["v"].tolist() == frame["v"].tolist() and again["at"][3] == frame["at"][3]
    assert frame.to_sql("frame", engine, index=False, if_exists="replace", method="multi", chunksize=100) == 500
    assert pandas.read_sql_table("frame", engine, columns=["k"])["k"].sum() == frame["k"].sum()


def test_alembic(tmp_path):
    pytest.importorskip("alembic")
    import mainstem.alembic  # noqa: F401
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    engine = sa.create_engine(f"mainstem:///{tmp_path}/db")
    with engine.begin() as con:
        context = MigrationContext.configure(con)
        op = Operations(context)
        op.create_table("t", sa.Column("id", sa.Integer, primary_key=True), sa.Column("a", sa.String(10)))
        op.bulk_insert(sa.table("t", sa.column("id"), sa.column("a")), [{"id": 1, "a": "x"}])
        op.add_column("t", sa.Column("b", sa.Numeric(8, 2), server_default="1.5", nullable=False))
        op.alter_column("t", "a", new_column_name="c", nullable=False)
        op.create_unique_constraint("u", "t", ["c"])
        op.drop_column("t", "b")
        op.rename_table("t", "s")
        assert con.execute(sa.text("SELECT id, c FROM s")).all() == [(1, "x")]
        metadata = sa.MetaData()
        sa.Table(
            "s",
            metadata,
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("c", sa.String(10), nullable=False),
            sa.UniqueConstraint("c", name="u"),
        )
        assert compare_metadata(context, metadata) == []
        sa.Table("fresh", metadata, sa.Column("k", sa.Integer))
        assert [change[0] for change in compare_metadata(context, metadata)] == ["add_table"]
    engine.dispose()


def test_connections_in_memory_share_a_database_and_have_the_settings_of_the_url():
    engine = sa.create_engine("mainstem://?statement_timeout=100s&threads=1", pool_size=8)
    barrier = threading.Barrier(8)

    def make(number):
        barrier.wait()
        with engine.begin() as con:
            con.exec_driver_sql(f"CREATE TABLE t{number} (k INT)")

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sa.inspect(engine).get_table_names() == [f"t{number}" for number in range(8)]
    users = [{"id": 1}]  # noqa: F841 - a variable is no table here
    with engine.connect() as con:
        assert [con.exec_driver_sql(f"SHOW {name}").scalar() for name in ("statement_timeout", "threads")] == ["100s", "1"]
        with pytest.raises(sa.exc.ProgrammingError):
            con.exec_driver_sql("SELECT * FROM users")


def test_expressions(engine):
    sale = Sale.__table__.c
    number = decimal.Decimal
    with engine.begin() as con:
        con.execute(sa.insert(Customer), [{"id": 3, "name": "x"}])
        at = datetime.datetime(2026, 11, 28, 12, tzinfo=datetime.timezone.utc)
        con.execute(sa.insert(Sale), [{"customer_id": 3, "eur": 5, "at": at, "extra": {}}])

        def value(expression):
            return con.scalar(sa.select(expression))

        assert value(sa.func.sum(sale.customer_id, type_=sa.Float) / 2) == 1.5
        assert value(sa.type_coerce(sale.customer_id, sa.Float) / 2) == 1.5
        assert value(sa.literal(7, sa.Numeric) / sa.literal(2, sa.Numeric)) == number("3.5")
        assert value(sale.customer_id / number("0.00000000015")) == 20_000_000_000
        assert value(sale.customer_id / 2) == number("1.5") and value(sale.customer_id // 2) == 1
        day = datetime.timedelta(days=1)
        assert value(sale.at + day) == at + day and value(sale.at - day) == at - day
        assert value(sale.at - (at - day)) == day
        assert con.scalar(sa.select(sa.func.count()).where(sale.at > sa.func.now() - datetime.timedelta(days=100_000))) == 1
        kind = sa.case((sale.eur > 1, "much"), else_="little").label("kind")
        assert con.execute(sa.select(kind, sa.func.count()).group_by(kind)).all() == [("much", 1)]
        assert value(sa.cast(sa.literal(datetime.datetime(2024, 1, 1, 0, 0, 0, 700_000)), postgresql.TIMESTAMP(precision=0))).second == 1


def test_unique_indexes_are_constraints_and_circles_of_foreign_keys_are_left_out():
    engine = sa.create_engine("mainstem://?omit=foreign_keys,indexes")
    metadata = sa.MetaData()
    sa.Table("user", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("email", sa.String, unique=True, index=True))
    key = sa.Column("id", sa.Integer, primary_key=True)
    sa.Table("a", metadata, key._copy(), sa.Column("b", sa.Integer, sa.ForeignKey("b.id", name="f1")))
    sa.Table("b", metadata, key._copy(), sa.Column("a", sa.Integer, sa.ForeignKey("a.id", name="f2")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metadata.create_all(engine)
        with engine.begin() as con:
            con.exec_driver_sql('INSERT INTO "user" (email) VALUES (\'x\')')
            with pytest.raises(sa.exc.IntegrityError):
                con.exec_driver_sql('INSERT INTO "user" (email) VALUES (\'x\')')
        # What is reflected can be made again.
        reflected = sa.MetaData()
        reflected.reflect(engine)
        reflected.create_all(sa.create_engine("mainstem://"))
        metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []


def test_a_conflict_inside_a_savepoint_is_one(engine):
    with engine.begin() as con:
        con.execute(sa.insert(Customer), [{"id": 1, "name": "x"}])
    with Session(engine) as session:
        session.scalars(sa.select(Customer)).all()
        with engine.begin() as con:
            con.execute(sa.update(Customer).values(name="y"))
        with pytest.raises(sa.exc.OperationalError) as raised:
            with session.begin_nested():
                session.execute(sa.update(Customer).values(name="z"))
        assert raised.value.orig.sqlstate == "40001"


def test_a_frame_with_an_index_replaces_a_table(engine):
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in (2, 3):
            pandas.DataFrame({"k": range(rows)}).to_sql("p", engine, if_exists="replace")
            assert len(pandas.read_sql("SELECT * FROM p", engine)) == rows


def test_alembic_comes_to_rest(engine):
    pytest.importorskip("alembic")
    import mainstem.alembic  # noqa: F401
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with engine.begin() as con:
        assert compare_metadata(MigrationContext.configure(con), Base.metadata) == []
        metadata = sa.MetaData()
        for table in Base.metadata.tables.values():
            table.to_metadata(metadata)
        metadata.tables["customer"].c.name.type = sa.String(50)
        (changes,) = compare_metadata(MigrationContext.configure(con), metadata)
        assert changes[0][0] == "modify_type"
