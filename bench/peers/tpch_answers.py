#!/usr/bin/env python3
"""Compute the expected answers of slt/tpch/qNN.sql with DuckDB.

    tpch_answers.py CSV_DIRECTORY ANSWER_DIRECTORY

How slt/tpch/sf0.01 was made:

    cargo run -p mainstem-bench --example tpch_csv -- 0.01 /tmp/tpch
    pip install duckdb
    bench/peers/tpch_answers.py /tmp/tpch slt/tpch/sf0.01

The data are tpchgen's (the crate the tests and the demo use), read from CSV into the tables of
slt/tpch/schema.sql; DuckDB's own generator is not involved. The form of the answers is told in
slt/tpch/README.md. Queries whose ORDER BY leaves ties are named: their rows have no fixed order.
"""

import datetime
import decimal
import pathlib
import re
import sys

import duckdb

TPCH = pathlib.Path(__file__).resolve().parents[2] / "slt" / "tpch"
TABLES = ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"]


def kind(duck_type):
    """The word in the answer's header for a DuckDB type."""
    name = str(duck_type).upper()
    if name.startswith("DECIMAL"):
        return "decimal"
    if name in ("DOUBLE", "FLOAT"):
        return "double"
    if name == "DATE":
        return "date"
    return "int" if "INT" in name else "text"


def text(value):
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def order_has_ties(connection, sql):
    """Whether rows that compare equal under the ORDER BY differ, also across the LIMIT."""
    found = re.search(r"ORDER BY (.*?)(?:\s+LIMIT\s+\d+)?\s*$", sql, re.S)
    if not found:
        return False
    keys = ", ".join(key.replace(" DESC", "").strip() for key in found.group(1).split(","))
    whole = re.sub(r"\s+LIMIT\s+\d+\s*$", "", sql)
    total, distinct = connection.execute(
        f"SELECT count(*), count(DISTINCT ({keys})) FROM ({whole}) AS answer").fetchall()[0]
    return total != distinct


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    data, answers = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    answers.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect()
    connection.execute((TPCH / "schema.sql").read_text())
    for table in TABLES:
        connection.execute(f"COPY {table} FROM '{data / table}.csv' (FORMAT csv, HEADER, DELIMITER ',', QUOTE '\"')")
        print(table, connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
    for query in sorted(TPCH.glob("q*.sql")):
        sql = query.read_text()
        result = connection.execute(sql)
        head = "\t".join(f"{column[0]}:{kind(column[1])}" for column in result.description)
        rows = ["\t".join(map(text, row)) for row in result.fetchall()]
        (answers / f"{query.stem}.tsv").write_text("\n".join([head] + rows) + "\n")
        ties = " (ties under its ORDER BY)" if order_has_ties(connection, sql) else ""
        print(f"{query.stem}: {len(rows)} rows{ties}")


if __name__ == "__main__":
    main()
