#!/usr/bin/env python3
"""Fill in the answers of tables of calls from PostgreSQL.

    generate.py [--dsn DSN] FILE.calls...

A line is `call -> answer`; what stands behind the arrow is written anew: the value as `::text`, NULL, (empty), or the
SQLSTATE of the error. Lines with `=>` are ours alone and stay. The session's time zone is UTC.
Needs psycopg 3 and a PostgreSQL 15 or newer.
"""

import argparse
import os
import pathlib

import psycopg


def answer(connection, call):
    try:
        text = connection.execute(f"SELECT ({call})::text").fetchone()[0]
    except psycopg.Error as error:
        return error.sqlstate
    if text is None:
        return "NULL"
    return text.replace("\n", "\\n").replace("\t", "\\t") or "(empty)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn", default=os.environ.get("SLT_DSN", "dbname=slt"))
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    with psycopg.connect(arguments.dsn, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute("SET statement_timeout = '5s'")
        for path in arguments.files:
            lines = path.read_text().splitlines()
            for at, line in enumerate(lines):
                if " -> " in line and not line.startswith("#"):
                    call = line.rsplit(" -> ", 1)[0]
                    lines[at] = f"{call} -> {answer(connection, call)}"
            path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
