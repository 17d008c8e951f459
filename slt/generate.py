#!/usr/bin/env python3
"""Fill in the expected answers of slt/*.slt from PostgreSQL.

    generate.py [--check] [--dsn DSN] FILE.slt...

Every record of a file runs, in order, in an empty PostgreSQL database; the answers of `query` records and
the row counts of `statement count` records are written back in place, formatted by the rules of
slt/README.md. With --check nothing is written: the exit status says whether the files are what PostgreSQL
would answer. `statement ok` must succeed and `statement error REGEX` must fail with a SQLSTATE and message that match; a
difference is printed and the exit status is 1. Review the diff: PostgreSQL is the witness, not the judge.

Where Mainstem differs from PostgreSQL on purpose:
  * a failed statement inside a transaction undoes only itself: each one runs here under a savepoint,
    released on success; only 40001 leaves the transaction failed;
  * keys are checked at the end of a statement: PRIMARY KEY and UNIQUE become DEFERRABLE INITIALLY IMMEDIATE, unless the file says
    `# pg: plain-keys` in its first comment: PostgreSQL does not take a deferrable key for ON CONFLICT;
  * BEGIN means snapshot isolation: it becomes BEGIN ISOLATION LEVEL REPEATABLE READ;
  * `ORDER BY (...)` and `WITH (...)` after the column list of CREATE TABLE are ours, and dropped here;
  * X'00ff' is a BYTEA literal, in PostgreSQL a bit string: it becomes '\\x00ff'::bytea;
  * the session time zone is UTC and text compares by bytes (collation C).

A comment right above a record can say how that record is treated:
  # pg: skip           not sent; the recorded answer stays (ours only)
  # pg: keep           sent, but the recorded answer stays (a documented difference; say which)
  # pg: sql STATEMENT  this is sent instead
and `# pg: skip-file` in a file's first comment leaves the whole file alone.

Needs psycopg 3 and a PostgreSQL 15 or newer on which the DSN's role is superuser:
  createdb -T template0 --lc-collate=C --lc-ctype=C.UTF-8 -E UTF8 slt
"""

import argparse
import os
import pathlib
import re
import shutil
import sys
import tempfile

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

BOOL, BYTEA, CHAR, INT8, INT2, INT4, FLOAT4, FLOAT8, NUMERIC = 16, 17, 18, 20, 21, 23, 700, 701, 1700
INTEGERS, REALS = {INT8, INT2, INT4}, {FLOAT4, FLOAT8, NUMERIC}


def render(text, oid):
    """One value as the runner prints it."""
    if text is None:
        return "NULL"
    if oid == BOOL:
        return "true" if text == "t" else "false"
    if oid in (FLOAT4, FLOAT8):
        return render_float(text)
    if text == "":
        return "(empty)"
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def render_float(text):
    """Shortest digits that read back the same, laid out as Rust's {:?} does."""
    if text in ("NaN", "Infinity", "-Infinity"):
        return text
    value = float(text)
    if value == 0.0:
        return "0.0"
    shown = repr(value)
    if "e" in shown:
        mantissa, exponent = shown.split("e")
        shown = f"{mantissa}e{int(exponent)}"
    return shown


def type_letter(oid):
    return "I" if oid in INTEGERS else "R" if oid in REALS else "T"


class Record:
    """One blank-line separated block of a file."""

    def __init__(self, lines, number):
        self.lines, self.number = lines, number
        self.comments, self.head, self.connection = [], None, "default"
        self.directive, self.argument = None, None
        for at, line in enumerate(lines):
            if line.startswith("#"):
                self.comments.append(line)
                found = re.match(r"#\s*pg:\s*(skip-file|plain-keys|skip|keep|sql)\s*(.*)", line)
                if found:
                    self.directive, self.argument = found.groups()
            elif line.startswith("connection "):
                self.connection = line.split()[1]
            elif re.match(r"(skipif|onlyif)\s", line):
                pass
            elif re.match(r"(statement|query)\s", line):
                self.head = at
                break
            else:
                raise SystemExit(f"line {number + at}: neither a comment nor a record: {line!r}")
        if self.head is None:
            return
        body = lines[self.head + 1:]
        self.rule = body.index("----") if "----" in body else None
        self.sql = "\n".join(body if self.rule is None else body[:self.rule])
        self.words = lines[self.head].split()

    def with_answer(self, types, rows):
        words = list(self.words)
        words[1:2] = [types] if len(words) > 1 else []
        if len(words) == 1:
            words.append(types)
        return self.lines[:self.head] + [" ".join(words)] + self.sql.split("\n") + ["----"] + rows

    def with_count(self, count):
        return self.lines[:self.head] + [f"statement count {count}"] + self.sql.split("\n")


def split_records(text):
    blocks, current, start = [], [], 1
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() == "":
            if current:
                blocks.append(Record(current, start))
            current = []
        else:
            if not current:
                start = number
            current.append(line.rstrip())
    if current:
        blocks.append(Record(current, start))
    return blocks


def for_postgres(sql, plain_keys=False):
    """The same statement in PostgreSQL's words."""
    if re.match(r"\s*CREATE\s+TABLE\s", sql, re.I) and not re.search(r"\bAS\s+(SELECT|WITH|VALUES)\b", sql, re.I):
        depth, end = 0, len(sql)
        for at, char in enumerate(sql):
            depth += (char == "(") - (char == ")")
            if char == ")" and depth == 0:
                end = at + 1
                break
        sql = sql[:end]
        if not plain_keys:
            sql = re.sub(r"\b(PRIMARY\s+KEY|UNIQUE)\b\s*(\([^)]*\))?",
                         lambda m: m.group(0) + " DEFERRABLE INITIALLY IMMEDIATE ", sql, flags=re.I)
    sql = re.sub(r"\bX'([0-9a-fA-F]*)'", r"'\\x\1'::bytea", sql)
    if re.match(r"\s*(BEGIN|START\s+TRANSACTION)\s*(TRANSACTION|WORK)?\s*$", sql, re.I):
        sql = "BEGIN ISOLATION LEVEL REPEATABLE READ"
    return sql


class Session:
    """A connection that treats errors inside a transaction as Mainstem does."""

    def __init__(self, dsn):
        self.pg = psycopg.connect(dsn, autocommit=True).pgconn
        self.plain("SET timezone = 'UTC'")
        self.plain("SET client_min_messages = error")
        self.plain("SET bytea_output = 'hex'")

    def plain(self, sql):
        return self.pg.exec_(sql.encode())

    def run(self, sql):
        """(sqlstate or None, message, result)"""
        guard = self.pg.transaction_status == TransactionStatus.INTRANS and not re.match(
            r"\s*(BEGIN|START|COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE)\b", sql, re.I)
        if guard:
            self.plain("SAVEPOINT statement_guard")
        result = self.plain(sql)
        failed = result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
        code = result.error_field(ord("C")).decode() if failed else None
        if guard and code != "40001":
            self.plain(("ROLLBACK TO" if failed else "RELEASE") + " SAVEPOINT statement_guard")
        return code, result.error_message.decode().strip() if failed else "", result


def sorted_rows(rows, mode):
    if mode == "rowsort":
        return sorted(rows, key=lambda row: [value.encode() for value in row])
    if mode == "valuesort":
        return sorted(([value] for row in rows for value in row), key=lambda row: row[0].encode())
    return rows


def complete(path, dsn):
    """The file's new text and the list of complaints."""
    records = split_records(path.read_text())
    if any(record.directive == "skip-file" for record in records[:1]):
        return path.read_text(), []
    plain_keys = any(record.directive == "plain-keys" for record in records[:1])
    folder = tempfile.mkdtemp(prefix="slt")
    os.chmod(folder, 0o777)
    sessions, blocks, complaints = {}, [], []

    def session(name):
        if name not in sessions:
            sessions[name] = Session(dsn)
        return sessions[name]

    # Whatever the last file left behind.
    left = session("default").plain("SELECT quote_ident(nspname) FROM pg_namespace "
                                    "WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'")
    for row in range(left.ntuples):
        session("default").plain(f"DROP SCHEMA {left.get_value(row, 0).decode()} CASCADE")
    session("default").plain("CREATE SCHEMA public")
    for record in records:
        if record.head is None or record.directive == "skip":
            blocks.append(record.lines)
            continue
        sql = record.argument if record.directive == "sql" else record.sql
        sql = for_postgres(sql.replace("__TEST_DIR__", folder), plain_keys)
        code, message, result = session(record.connection).run(sql)
        blocks.append(judge(record, code, message, result, lambda text: complaints.append(
            f"{path}:{record.number}: {text}")))
    for each in sessions.values():
        each.pg.finish()
    shutil.rmtree(folder)
    return "\n\n".join("\n".join(block) for block in blocks) + "\n", complaints


def judge(record, code, message, result, complain):
    """The record's new lines."""
    kind, expectation = record.words[0], record.words[1] if len(record.words) > 1 else ""
    keep = record.directive == "keep"
    if expectation == "error":
        pattern = " ".join(record.words[2:])
        if code is None and not keep:
            complain("PostgreSQL accepts this")
        elif code is not None and not keep and not re.search(pattern, f"{code}: {' '.join(message.split())}"):
            complain(f"PostgreSQL says {code}: {message}")
        return record.lines
    if code is not None:
        if not keep:
            complain(f"PostgreSQL says {code}: {message}")
        return record.lines
    if keep or (kind == "statement" and expectation == "ok"):
        return record.lines
    if kind == "statement":
        return record.with_count(int(result.command_tuples or 0))
    oids = [result.ftype(column) for column in range(result.nfields)]
    rows = [[render(None if result.get_value(row, column) is None else result.get_value(row, column).decode(),
                    oid) for column, oid in enumerate(oids)] for row in range(result.ntuples)]
    mode = next((word for word in record.words[1:] if word.endswith("sort")), "nosort")
    return record.with_answer("".join(map(type_letter, oids)), [" ".join(row) for row in sorted_rows(rows, mode)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--dsn", default=os.environ.get("SLT_DSN", "host=localhost dbname=slt"))
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    failed = False
    for path in arguments.files:
        text, complaints = complete(path, arguments.dsn)
        if arguments.check and text != path.read_text():
            complaints.append(f"{path}: PostgreSQL answers differently")
        elif not arguments.check:
            path.write_text(text)
        for complaint in complaints:
            print(complaint)
        failed |= bool(complaints)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
