#!/usr/bin/env python3
"""Compare random statements with PostgreSQL.

    MAINSTEM_RANDOM_QUERIES_EXPORT=FOLDER cargo test -p mainstem --test sql_it -- random_queries
    random_queries.py [--psql "psql -h HOST -p PORT"] FOLDER

The first command writes a file for each seed: tables, statements, and what Mainstem answered. This one runs them on PostgreSQL,
whose database has to be in UTF-8 with collation C, and prints what differs. It makes a schema of its own and drops it.
Reads nothing but the Python standard library; `psql` has to be there.

Decimals are compared to ten digits behind the point, floats to nine significant ones. Errors of values (SQLSTATEs of class 22)
that one side meets are counted, not compared: which rows an expression is evaluated for is open.
"""

import argparse
import csv
import io
import json
import pathlib
import shlex
import subprocess
import sys
from collections import Counter
from decimal import Decimal

MARK = "@@statement"


def script(database):
    lines = ["\\set VERBOSITY sqlstate", "DROP SCHEMA IF EXISTS random_queries CASCADE;", "CREATE SCHEMA random_queries;",
             "SET search_path = random_queries;", database["setup"], f"\\echo {MARK}"]
    for statement in database["statements"]:
        if statement["read"]:
            lines += ["BEGIN;", *(text + ";" for text in statement["before"]), statement["statement"] + ";",
                      statement["read"] + ";", "ROLLBACK;"]
        else:
            lines.append(statement["statement"] + ";")
        lines.append(f"\\echo {MARK}")
    lines.append("DROP SCHEMA random_queries CASCADE;")
    return "\n".join(lines)


def run(psql, database):
    """The output of each statement."""
    command = [*psql, "-X", "-q", "--csv", "-t", "-P", "null=NULL"]
    done = subprocess.run(command, input=script(database), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    setup, *outputs = done.stdout.split(MARK + "\n")
    if "ERROR" in setup:
        return None, setup
    return outputs[:len(database["statements"])], None


def value(text, kind):
    if text == "NULL":
        return None
    if kind == "boolean":
        return {"t": "true", "f": "false"}.get(text, text)
    if kind.startswith("numeric") or kind in ("double precision", "real"):
        if text in ("NaN", "Infinity", "-Infinity"):
            return text
        number = Decimal(text)
        if kind.startswith("numeric"):
            number = round(number, 10)
        else:
            number = Decimal(f"{number:.8e}")
        return str(number.normalize() + 0) if number else "0"
    if kind == "text":
        return "" if text == "(empty)" else text
    return text


def rows(raw, kinds):
    return [tuple(value(text, kind) for text, kind in zip(row, kinds)) for row in raw]


def order(row):
    return [(text is None, text or "") for text in row]


def compare(statement, output):
    """None if both answers are one, else what differs."""
    answer, kinds = statement["answer"], statement["types"]
    state = next((line.split()[-1] for line in output.splitlines() if line.startswith("ERROR:")), None)
    if state:
        if "sqlstate" not in answer:
            return f"error of PostgreSQL only: {state}"
        same = state == answer["sqlstate"] or state[:2] == answer["sqlstate"][:2] == "22"
        return None if same else f"errors: {state} there, {answer['sqlstate']} {answer['message']}"
    if "sqlstate" in answer:
        return f"error of Mainstem only: {answer['sqlstate']} {answer['message'][:70]}"
    theirs = rows((row or [""] for row in csv.reader(io.StringIO(output))), kinds)
    ours = rows(answer["rows"], kinds)
    if sorted(theirs, key=order) != sorted(ours, key=order):
        return "other rows"
    keys = [[row[at] for at in statement["sorted"]] for row in theirs]
    return None if keys == [[row[at] for at in statement["sorted"]] for row in ours] else "another order"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--show", default="", help="only what begins so")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    counts = Counter()
    for path in sorted(arguments.folder.glob("*.json"), key=lambda path: int(path.stem)):
        database = json.loads(path.read_text())
        outputs, wrong = run(shlex.split(arguments.psql), database)
        if outputs is None:
            print(f"{path}: the setup fails:\n{wrong}", file=sys.stderr)
            continue
        for statement, output in zip(database["statements"], outputs):
            found = compare(statement, output)
            counts["statements"] += 1
            if not found:
                continue
            counts[found] += 1
            if found.startswith(arguments.show) and counts[found] <= 200:
                print(f"{path.name} {statement['number']}: {found}\n  {statement['statement']}")
                print(f"  there: {output.strip()[:600]!r}\n  here:  {json.dumps(statement['answer'], ensure_ascii=False)[:600]}")
    for found, count in counts.most_common():
        print(f"{count:8} {found}")


if __name__ == "__main__":
    main()
