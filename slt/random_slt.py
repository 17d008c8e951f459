#!/usr/bin/env python3
"""Make SQL logic tests of random statements, answered by PostgreSQL.

    random_slt.py --seed SEED [--files N] [--statements N] [--in-lists] [--dsn DSN] FOLDER

Writes FOLDER/random_SEED.slt, random_SEED+1.slt and so on (in_lists_SEED.slt with --in-lists): tables with keys, checks and defaults, some in a schema of their own, then
writes, transactions with savepoints, schema changes, views, and queries over them, each run on PostgreSQL as it is made; what that
answered is the record. The same seed makes the same file. `MAINSTEM_SLT_RANDOM=FOLDER cargo t random_files` runs
them under every placement configuration, by the rules of slt/README.md; without that variable it runs slt/random/.

With --in-lists a file has one table, full of NULLs, and queries over combined IN lists only.

Only what one answer is right for is made: no order of rows without ORDER BY over all columns, no UPDATE that finds two
rows for one, no float whose sum depends on the order, nothing that docs/sql-differences.md lists. Where a statement
breaks several constraints which one is named is open: the record then expects the class (23), or a text that is too long.

Needs what slt/generate.py needs; the database of the DSN is emptied.
"""

import argparse
import os
import pathlib
import random

import generate
from psycopg.pq import ExecStatus

TYPES = ["SMALLINT", "INTEGER", "BIGINT", "DECIMAL(8,2)", "DOUBLE PRECISION", "TEXT", "VARCHAR(6)", "BOOLEAN", "DATE",
         "TIMESTAMP", "TIME", "UUID", "BYTEA", "CHAR(4)"]
# Whose functions and operators are few; random expressions over them are columns, literals and CASE.
PLAIN = ("TIME", "UUID", "BYTEA", "CHAR(4)")
USING = ("JOIN", "LEFT JOIN")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "CET", "+03")
INTEGERS = ("SMALLINT", "INTEGER", "BIGINT")
TEXTS = ("TEXT", "VARCHAR(6)")


def family(kind):
    return "INTEGER" if kind in INTEGERS else "TEXT" if kind in TEXTS else kind


# Of the table of --in-lists, beside its key.
LIST_COLUMNS = [("g", "INTEGER"), ("h", "INTEGER"), ("i", "INTEGER"), ("s", "TEXT")]


class Column:
    def __init__(self, name, kind):
        self.name, self.kind, self.not_null, self.default = name, kind, False, None
        # "ALWAYS", "BY DEFAULT" or nothing.
        self.identity = None


class View:
    """What queries read as a table; it depends on tables, which then stay as they are."""

    def __init__(self, name, columns, of):
        self.name, self.columns, self.of, self.keys = name, columns, of, []


class Table:
    def __init__(self, name):
        self.name, self.columns, self.keys, self.next_column = name, [], [], 0

    def copy(self):
        other = Table(self.name)
        other.__dict__.update(self.__dict__)
        other.columns, other.keys = list(self.columns), list(self.keys)
        return other


class Generator:
    def __init__(self, seed, dsn):
        self.r = random.Random(seed)
        self.plain_keys = self.r.random() < 0.5
        self.session = generate.Session(dsn)
        self.tables, self.saved, self.in_transaction, self.savepoints = [], [], False, []
        self.views, self.saved_views, self.next_view = [], [], 0
        self.blocks, self.has_schema = [], False
        # Some files are full of NULLs.
        self.null = self.r.choice([1, 1, 4])
        left = self.session.plain("SELECT quote_ident(nspname) FROM pg_namespace "
                                  "WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'")
        for row in range(left.ntuples):
            self.session.plain(f"DROP SCHEMA {left.get_value(row, 0).decode()} CASCADE")
        self.session.plain("CREATE SCHEMA public")

    # ---- running

    def emit(self, sql, query=False, loose=False, forget=None):
        """Runs `sql` on PostgreSQL and records its answer; whether it succeeded. With `forget`, what is then done, a failure is not recorded."""
        code, _, result = self.session.run(generate.for_postgres(sql, self.plain_keys))
        if code is not None and forget:
            forget()
            return False
        if code is not None:
            if code in ("42P17", "XX000", "0A000"):
                return False
            expected = "2(3|2001)" if loose and (code.startswith("23") or code == "22001") else code
            self.blocks.append([("query" if query else "statement") + f" error ^{expected}", sql])
            return False
        if result.status == ExecStatus.TUPLES_OK:
            oids = [result.ftype(column) for column in range(result.nfields)]
            rows = [[generate.render(None if result.get_value(row, column) is None else
                                     result.get_value(row, column).decode(), oid)
                     for column, oid in enumerate(oids)] for row in range(result.ntuples)]
            rows = generate.sorted_rows(rows, "rowsort")
            self.blocks.append([f"query {''.join(map(generate.type_letter, oids))} rowsort", sql, "----"]
                               + [" ".join(row) for row in rows])
        elif sql.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            self.blocks.append([f"statement count {int(result.command_tuples or 0)}", sql])
        else:
            self.blocks.append(["statement ok", sql])
        return True

    # ---- values and expressions

    def chance(self, p):
        return self.r.random() < p

    def literal(self, kind, null=0.12):
        r = self.r
        if r.random() < null * self.null:
            return "NULL"
        if kind == "CHAR(4)":
            return "CAST('" + r.choice(["", "a", "b", "ab", "abcd", "a b", "Zz", "b "]) + "' AS CHAR(4))"
        if kind in INTEGERS:
            return str(r.choice([r.randint(0, 9), r.randint(-3, 30), r.randint(0, 4)]))
        if kind.startswith("DECIMAL"):
            return r.choice([f"{r.randint(-20, 99)}.{r.randint(0, 99):02}", str(r.randint(0, 5))])
        if kind == "DOUBLE PRECISION":
            return f"{r.randint(-8, 40) / 2}"
        if family(kind) == "TEXT":
            return "'" + r.choice(["", "a", "b", "ab", "abc", "Ab", "zz", "a b", "b%", "x_y", "Öl", "é", "A"]) + "'"
        if kind == "BOOLEAN":
            return r.choice(["true", "false"])
        if kind == "DATE":
            return f"DATE '20{r.randint(20, 24)}-{r.randint(1, 12):02}-{r.randint(1, 28):02}'"
        if kind == "TIMESTAMP":
            return f"TIMESTAMP '2024-0{r.randint(1, 3)}-{r.randint(1, 28):02} {r.randint(0, 23):02}:{r.randint(0, 5)}0:00'"
        if kind == "TIME":
            return f"TIME '{r.randint(0, 23):02}:{r.randint(0, 3)}5:00'"
        if kind == "UUID":
            return f"UUID '00000000-0000-0000-0000-00000000000{r.randint(0, 9)}'"
        return f"X'{r.randint(0, 9):02x}{r.choice(['', 'ff', '00'])}'"

    def expression(self, kind, scope, depth=2):
        """Text of an expression of the family of `kind` over `scope`: pairs of a column's text and its kind."""
        r, of = self.r, family(kind)
        columns = [text for text, other in scope if family(other) == of]
        if depth <= 0 or r.random() < 0.35:
            if columns and r.random() < 0.75:
                return r.choice(columns)
            shown = self.literal(kind)
            return f"CAST(NULL AS {kind})" if shown == "NULL" else shown
        sub = lambda other=kind: self.expression(other, scope, depth - 1)
        general = [
            lambda: f"CASE WHEN {self.predicate(scope, depth - 1)} THEN {sub()} ELSE {sub()} END",
            lambda: f"COALESCE({sub()}, {sub()})",
            lambda: f"NULLIF({sub()}, {sub()})",
        ]
        if kind == "CHAR(4)":
            # Anything but a column or a cast loses its blanks here.
            return r.choice(columns) if columns else self.cast(self.literal(kind), kind)
        if kind in PLAIN:
            general = general[:1]
        special = []
        if of == "INTEGER":
            special = [lambda: f"({sub()} {r.choice('+-')} {sub()})", lambda: f"({sub()} * {r.randint(0, 3)})",
                       lambda: f"({sub()} % {r.randint(2, 7)})", lambda: f"({sub()} / {r.randint(2, 4)})",
                       lambda: f"abs({sub()})", lambda: f"length({sub('TEXT')})", lambda: f"(- {sub()})",
                       lambda: f"CAST({sub('TEXT')} || '7' AS INTEGER)" if r.random() < 0.03 else f"({sub()} + 1)",
                       lambda: f"GREATEST({sub()}, {sub()})", lambda: f"(~ {sub()})", lambda: f"({sub()} {r.choice(['&', '|', '#'])} {sub()})",
                       lambda: f"({sub('DATE')} - {sub('DATE')})", lambda: f"CAST(extract({r.choice(['year', 'month', 'day', 'dow'])} FROM {sub('DATE')}) AS INTEGER)",
                       lambda: f"CAST(extract({r.choice(['day', 'hour', 'minute'])} FROM {self.span(scope, depth - 1)}) AS INTEGER)"]
        elif of == "TEXT":
            special = [lambda: f"({sub()} || {sub()})", lambda: f"upper({sub()})", lambda: f"lower({sub()})",
                       lambda: f"substr({sub()}, {r.randint(1, 3)}, {r.randint(0, 3)})",
                       lambda: f"replace({sub()}, 'a', {sub()})", lambda: f"CAST({sub('INTEGER')} AS TEXT)",
                       lambda: f"trim({sub()})", lambda: f"left({sub()}, {r.randint(-1, 3)})",
                       lambda: f"repeat({sub()}, {r.randint(0, 2)})", lambda: f"CAST({sub(r.choice(['DATE', 'TIMESTAMP']))} AS TEXT)",
                       lambda: f"CAST({self.span(scope, depth - 1)} AS TEXT)", lambda: f"to_char({sub('TIMESTAMP')}, 'YYYY-MM-DD HH24:MI:SS')",
                       lambda: f"array_to_string(regexp_split_to_array({sub()}, {r.choice(['[ab]', '', 'b*', ' '])!r}), '|')"]
        elif kind.startswith("DECIMAL"):
            special = [lambda: f"({sub()} {r.choice('+-')} {sub()})", lambda: f"abs({sub()})", lambda: f"(- {sub()})",
                       lambda: f"CAST({sub('INTEGER')} AS {kind})"]
        elif kind == "DOUBLE PRECISION":
            special = [lambda: f"COALESCE({sub()}, {sub('DECIMAL(8,2)')})", lambda: f"GREATEST({sub('DECIMAL(8,2)')}, {sub()})",
                       lambda: f"({sub()} {r.choice('+-')} {sub()})", lambda: f"abs({sub()})",
                       lambda: f"CAST({sub('INTEGER')} AS DOUBLE PRECISION)", lambda: f"floor({sub()})"]
        elif kind == "BOOLEAN":
            special = [lambda: f"({self.predicate(scope, depth - 1)})"]
        elif kind == "DATE":
            special = [lambda: f"({sub()} + {r.randint(0, 40)})", lambda: f"CAST({sub('TIMESTAMP')} AS DATE)"]
        elif kind == "TIMESTAMP":
            special = [lambda: f"({sub()} + INTERVAL '{r.randint(1, 40)} {r.choice(['day', 'hour', 'month'])}')",
                       lambda: f"({sub('DATE')} {r.choice('+-')} INTERVAL '{r.randint(1, 40)} {r.choice(['day', 'hour', 'month'])}')",
                       lambda: f"({sub()} {r.choice('+-')} {r.randint(-2, 3)} * INTERVAL '1 day 90 minutes')",
                       lambda: f"({sub()} AT TIME ZONE '{r.choice(ZONES)}' AT TIME ZONE '{r.choice(ZONES)}')",
                       lambda: f"({sub()} {r.choice('+-')} {self.span(scope, depth - 1)})",
                       lambda: f"COALESCE({sub('DATE')}, {sub()})", lambda: f"COALESCE({sub()}, '9999-12-31 23:59:59')",
                       lambda: f"CAST({sub('DATE')} AS TIMESTAMP)", lambda: f"date_trunc('{r.choice(['day', 'month', 'hour'])}', {sub()})"]
        return r.choice(special + general if special else general)()

    def span(self, scope, depth=1):
        """Text of an interval."""
        r = self.r
        written = ["1 day", "30 hours", "2 days 03:04:05.5", "-1 day 02:00", "1-2", "P1DT2H", "@ 90 minutes ago", "1.5 months", "0"]
        if depth <= 0 or r.random() < 0.4:
            return f"INTERVAL '{r.choice(written)}'"
        sub = lambda: self.span(scope, depth - 1)
        moment = lambda: self.expression("TIMESTAMP", scope, depth - 1)
        return r.choice([lambda: f"({moment()} - {moment()})", lambda: f"({moment()} - {moment()})",
                         lambda: f"({moment()} - {self.expression('DATE', scope, depth - 1)})", lambda: f"({sub()} {r.choice('+-')} {sub()})",
                         lambda: f"({sub()} * {r.choice(['2', '-1', '0.5', '3'])})", lambda: f"({sub()} / {r.choice(['2', '4'])})",
                         lambda: f"COALESCE({sub()}, {sub()})", lambda: f"(- {sub()})"])()

    def predicate(self, scope, depth=2, subqueries=False):
        r = self.r
        if not scope:
            return r.choice(["true", "false", "1 = 1", "NULL IS NULL"])
        choices = ["compare"] * 5 + ["null", "in", "between", "and", "or", "not", "like", "distinct", "bool", "span"]
        if subqueries:
            choices += ["exists", "in query", "in query", "not in query", "scalar"]
        choice = r.choice(choices)
        column, kind = r.choice(scope)
        if depth <= 0 and choice in ("and", "or", "not"):
            choice = "compare"
        part = lambda: self.expression(kind, scope, depth - 1)
        if choice == "compare":
            operators = ["=", "<>", "<", "<=", ">", ">="]
            if kind in ("DATE", "TIMESTAMP") and r.random() < 0.3:
                kind = r.choice(["DATE", "TIMESTAMP"])
            return f"{column} {r.choice(operators)} {self.literal(kind, 0) if r.random() < 0.6 else part()}"
        if choice == "span":
            compared = r.choice([f"{r.choice(['=', '<', '<=', '>', '>=', '<>'])} {self.span(scope, depth - 1)}", f"BETWEEN {self.span([], 0)} AND {self.span([], 0)}",
                                 f"IN ({self.span([], 0)}, {self.span([], 0)})", "IS NULL"])
            return f"{self.span(scope, max(depth, 1))} {compared}"
        if choice == "null":
            return f"{column} IS {r.choice(['', 'NOT '])}NULL"
        if choice == "in":
            return f"{column} {r.choice(['', 'NOT '])}IN ({', '.join(self.literal(kind, 0.05) for _ in range(r.randint(1, 4)))})"
        if choice == "between":
            return f"{column} {r.choice(['', 'NOT '])}BETWEEN {self.literal(kind, 0)} AND {self.literal(kind, 0)}"
        if choice == "and" or choice == "or":
            return f"({self.predicate(scope, depth - 1, subqueries)} {choice.upper()} {self.predicate(scope, depth - 1)})"
        if choice == "not":
            return f"NOT ({self.predicate(scope, depth - 1, subqueries)})"
        if choice == "like":
            return f"{self.expression('TEXT', scope, depth - 1)} {r.choice(['', 'NOT '])}{r.choice(['LIKE', 'LIKE', 'ILIKE'])} " \
                   f"{r.choice(['%a%', 'a%', '%b', '_', '__', '%', '', 'A%'])!r}"
        if choice == "distinct" and kind not in PLAIN:
            return f"{column} IS {r.choice(['', 'NOT '])}DISTINCT FROM {self.literal(kind)}"
        if choice == "bool":
            return f"({self.expression('BOOLEAN', scope, 0)}) IS {r.choice(['', 'NOT '])}{r.choice(['TRUE', 'FALSE', 'NULL'])}"
        if choice in ("exists", "in query", "not in query", "scalar"):
            table = r.choice(self.tables + self.views)
            inner = [(f"q.{c.name}", c.kind) for c in table.columns]
            fitting = [text for text, other in inner if family(other) == family(kind)]
            # A bare name would be the inner table's.
            if fitting and (choice != "exists" or "." in column):
                other = r.choice(fitting)
                if choice == "exists":
                    more = f" AND {self.predicate(inner, 1)}" if r.random() < 0.5 else ""
                    return f"{r.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {table.name} q WHERE {other} = {column}{more})"
                if choice == "scalar":
                    if kind == "BOOLEAN" or kind in ("UUID", "BYTEA"):
                        return f"{column} IS NOT NULL"
                    return f"{column} {r.choice(['=', '<', '>='])} (SELECT {r.choice(['min', 'max'])}({other}) FROM {table.name} q" \
                           f" WHERE {self.predicate(inner, 1)})"
                no = "NOT " if choice == "not in query" else ""
                return f"{column} {no}IN (SELECT {other} FROM {table.name} q WHERE {self.predicate(inner, 1)})"
        return f"{column} IS NOT NULL"

    # ---- statements

    def scope(self, table, alias=None):
        return [(f"{alias}.{c.name}" if alias else c.name, c.kind) for c in table.columns]

    def create_table(self, name):
        r, table = self.r, Table(name)
        for _ in range(r.randint(2, 6)):
            table.columns.append(Column(f"c{table.next_column}", r.choice(TYPES + ["INTEGER"] * 4 + ["TEXT"] * 3)))
            table.next_column += 1
        parts, scope = [], self.scope(table)
        keyable = [c for c in table.columns if c.kind not in ("BOOLEAN",)]
        if keyable and r.random() < 0.7:
            table.keys.append(r.sample(keyable, min(len(keyable), r.choice([1, 1, 1, 2]))))
            for column in table.keys[0]:
                column.not_null = True
        while keyable and r.random() < 0.25 and len(table.keys) < 3:
            table.keys.append(r.sample(keyable, min(len(keyable), r.choice([1, 1, 2]))))
        primary = bool(table.keys) and all(c.not_null for c in table.keys[0])
        for column in table.columns:
            text = f"{column.name} {column.kind}"
            if column.kind in INTEGERS and r.random() < 0.12 and not any(c.identity for c in table.columns):
                column.not_null, column.identity = True, r.choice(["ALWAYS", "BY DEFAULT"])
                parts.append(f"{text} GENERATED {column.identity} AS IDENTITY")
                continue
            if not column.not_null and r.random() < 0.15:
                column.not_null = True
                text += " NOT NULL"
            if r.random() < 0.25:
                column.default = self.literal(column.kind, 0.05)
                text += f" DEFAULT {column.default}"
            if r.random() < 0.15:
                text += f" CHECK ({self.predicate([(column.name, column.kind)], 1)})"
            parts.append(text)
        table.primary = primary
        for at, key in enumerate(table.keys):
            kind = "PRIMARY KEY" if at == 0 and primary else "UNIQUE"
            parts.append(f"{kind} ({', '.join(c.name for c in key)})")
        if r.random() < 0.15:
            parts.append(f"CHECK ({self.predicate(scope, 1)})")
        behind = ""
        sortable = [c.name for c in table.columns if c.kind != "BOOLEAN"]
        if r.random() < 0.4 and sortable:
            chosen = r.sample(sortable, r.randint(1, min(2, len(sortable))))
            behind = f" ORDER BY ({', '.join(chosen)})"
            table.sort = [c for c in table.columns if c.name in chosen]
        if r.random() < 0.2:
            if not self.has_schema:
                self.emit("CREATE SCHEMA other")
                self.has_schema = True
            table.name = f"other.{name}"
        if self.emit(f"CREATE TABLE {table.name} ({', '.join(parts)}){behind}"):
            self.tables.append(table)

    def assigned(self, column, scope):
        """A value for `column`: mostly a literal."""
        if column.identity and self.r.random() < 0.6:
            return "DEFAULT"
        if self.r.random() < 0.65 or column.kind not in TYPES:
            return self.literal(column.kind, 0.03 if column.not_null else 0.15)
        return self.expression(column.kind, scope, 1)

    def returning(self, scope):
        if self.r.random() > 0.2:
            return "", False
        shown = [self.expression(kind, scope, 1) + f" AS x{at}" for at, (_, kind) in
                 enumerate(self.r.sample(scope, min(len(scope), 2)))]
        return " RETURNING " + self.r.choice(["*", ", ".join(shown)]), True

    def insert(self):
        r = self.r
        table = r.choice(self.tables)
        columns = [c for c in table.columns if r.random() < (0.3 if c.identity else 0.9)] or list(table.columns)
        r.shuffle(columns)
        whole = r.random() < 0.3
        if whole:
            columns = table.columns
        into = table.name + ("" if whole else f" ({', '.join(c.name for c in columns)})")
        rows = r.choice([1, 1, 1, 2, 3, 8])
        numbered = next((c for c in table.columns if c.identity), None)
        # Which row of a query gets which number is open.
        of_query = r.random() < 0.25 and not numbered
        if of_query:
            source = r.choice(self.tables)
            scope = self.scope(source)
            shown = ", ".join(self.expression(c.kind, scope, 1) if r.random() < 0.5 else
                              self.cast(self.literal(c.kind, 0), c.kind) for c in columns)
            body = f"SELECT {shown} FROM {source.name} WHERE {self.predicate(scope, 2, True)}"
        else:
            body = "VALUES " + ", ".join("(" + ", ".join(
                "DEFAULT" if r.random() < 0.05 else self.assigned(c, []) for c in columns) + ")" for _ in range(rows))
        conflict = ""
        # Which of two rows of a query comes first is open, and with it the one that conflicts.
        # Numbers that a failed INSERT, or one in conflict, has drawn are open.
        forget = self.numbers_again(table, numbered) if numbered else None
        if self.plain_keys and table.keys and not of_query and not numbered and r.random() < 0.6:
            key = r.choice(table.keys)
            target = "(" + ", ".join(c.name for c in key) + ")"
            others = [c for c in table.columns if c not in key]
            if r.random() < 0.4 or not others:
                conflict = f" ON CONFLICT {r.choice([target, target, ''])} DO NOTHING"
            elif len(table.keys) == 1:
                scope = self.scope(table, table.name) + [(f"excluded.{c.name}", c.kind) for c in table.columns]
                sets = ", ".join(f"{c.name} = {self.expression(c.kind, scope, 1)}"
                                 for c in r.sample(others, r.randint(1, min(2, len(others)))))
                conflict = f" ON CONFLICT {target} DO UPDATE SET {sets}"
                if r.random() < 0.3:
                    conflict += f" WHERE {self.predicate(scope, 1)}"
        tail, query = self.returning(self.scope(table))
        overriding = r.choice(["", "", " OVERRIDING SYSTEM VALUE", " OVERRIDING USER VALUE"])
        into += overriding if numbered else ""
        self.emit(f"INSERT INTO {into} {body}{conflict}{tail}", query, True, forget)

    def numbers_again(self, table, column):
        """Sets the numbers of `column` back to what they are now."""
        of = self.session.plain(f"SELECT pg_get_serial_sequence('{table.name}', '{column.name}')").get_value(0, 0).decode()
        last = self.session.plain(f"SELECT last_value, is_called FROM {of}")
        value, called = (last.get_value(0, at).decode() for at in range(2))
        return lambda: self.session.plain(f"SELECT setval('{of}', {value}, {called == 't'})")

    def cast(self, text, kind):
        return f"CAST({text} AS {kind})"

    def update(self):
        r = self.r
        table = r.choice(self.tables)
        keys = {c for key in table.keys for c in key}
        # Plain keys are checked row by row in PostgreSQL: only updates that do not touch them have one answer.
        free = [c for c in table.columns if not (self.plain_keys and c in keys) and c.identity != "ALWAYS"]
        if not free:
            return
        columns = r.sample(free, r.randint(1, min(2, len(free))))
        scope = self.scope(table)
        tail, query = self.returning(scope)
        other = r.choice(self.tables)
        if r.random() < 0.2 and other is not table and other.keys and all(c.not_null for c in other.keys[0]):
            mine = [(f"t.{c.name}", c.kind) for c in table.columns]
            match = []
            for key in other.keys[0]:
                fitting = [text for text, kind in mine if family(kind) == family(key.kind)]
                if not fitting:
                    return
                match.append(f"o.{key.name} = {r.choice(fitting)}")
            both = mine + [(f"o.{c.name}", c.kind) for c in other.columns]
            sets = ", ".join(f"{c.name} = {self.expression(c.kind, both, 1)}" for c in columns)
            self.emit(f"UPDATE {table.name} AS t SET {sets} FROM {other.name} o WHERE {' AND '.join(match)}"
                      f" AND {self.predicate(both, 1)}", loose=True)
            return
        sets = ", ".join(f"{c.name} = {self.expression(c.kind, scope, 2)}" for c in columns)
        where = "" if r.random() < 0.1 else f" WHERE {self.where(table, scope)}"
        self.emit(f"UPDATE {table.name} SET {sets}{where}{tail}", query, loose=True)

    def where(self, table, scope):
        """Sometimes the whole key, so that the point path is taken too."""
        if table.keys and self.r.random() < 0.4:
            key = " AND ".join(f"{c.name} = {self.literal(c.kind, 0)}" for c in self.r.choice(table.keys))
            return key + (f" AND {self.predicate(scope, 1)}" if self.r.random() < 0.3 else "")
        return self.predicate(scope, 2, self.r.random() < 0.4)

    def delete(self):
        r = self.r
        table = r.choice(self.tables)
        scope = self.scope(table)
        tail, query = self.returning(scope)
        other = r.choice(self.tables)
        mine = [(f"t.{c.name}", c.kind) for c in table.columns]
        theirs = [(f"o.{c.name}", c.kind) for c in other.columns]
        fitting = [(a, b) for a, k in mine for b, l in theirs if family(k) == family(l)]
        if r.random() < 0.2 and fitting:
            a, b = r.choice(fitting)
            self.emit(f"DELETE FROM {table.name} AS t USING {other.name} o WHERE {a} = {b} AND {self.predicate(mine + theirs, 1)}")
            return
        self.emit(f"DELETE FROM {table.name} WHERE {self.where(table, scope)}{tail}", query)

    def transaction(self):
        r = self.r
        if not self.in_transaction:
            if self.emit("BEGIN"):
                self.in_transaction, self.saved, self.savepoints = True, [t.copy() for t in self.tables], []
                self.saved_views = self.views
            return
        choice = r.random()
        if choice < 0.35:
            self.emit("COMMIT")
            self.in_transaction = False
        elif choice < 0.5:
            self.emit("ROLLBACK")
            self.in_transaction, self.tables, self.views = False, self.saved, self.saved_views
        elif choice < 0.75 or not self.savepoints:
            name = f"s{len(self.savepoints)}"
            self.emit(f"SAVEPOINT {name}")
            self.savepoints.append((name, [t.copy() for t in self.tables], self.views))
        else:
            at = r.randrange(len(self.savepoints))
            name, tables, views = self.savepoints[at]
            if r.random() < 0.6:
                self.emit(f"ROLLBACK TO SAVEPOINT {name}")
                self.tables, self.views = [t.copy() for t in tables], views
                del self.savepoints[at + 1:]
            else:
                self.emit(f"RELEASE SAVEPOINT {name}")
                del self.savepoints[at:]

    def view(self):
        """Makes a view, mostly over a table, sometimes over another view; or drops one."""
        r = self.r
        if self.views and r.random() < 0.3:
            view = r.choice(self.views)
            if any(view.name in other.of for other in self.views):
                return
            if self.emit(f"DROP VIEW {view.name}"):
                self.views = [v for v in self.views if v is not view]
            return
        source = r.choice(self.tables + self.views)
        scope = self.scope(source)
        columns, shown = [], []
        for at in range(r.randint(1, 4)):
            text, kind = r.choice(scope)
            # A view's column has a type of its own: what a cast says.
            column = Column(f"v{at}", kind)
            of = self.expression(kind, scope, 2) if kind not in PLAIN and kind != "VARCHAR(6)" and r.random() < 0.5 else text
            shown.append(f"{of if of == text else self.cast(of, kind)} AS {column.name}")
            columns.append(column)
        name = f"w{self.next_view}"
        self.next_view += 1
        where = f" WHERE {self.predicate(scope, 2, r.random() < 0.3)}" if r.random() < 0.6 else ""
        distinct = "DISTINCT " if r.random() < 0.2 else ""
        names = {source.name} | {t.name for t in self.tables + self.views if f" {t.name} " in where + " "}
        if self.emit(f"CREATE VIEW {name} AS SELECT {distinct}{', '.join(shown)} FROM {source.name}{where}"):
            self.views = self.views + [View(name, columns, names)]

    def alter(self):
        r = self.r
        at = r.randrange(len(self.tables))
        table = self.tables[at].copy()
        if any(table.name in view.of for view in self.views):
            return
        choice = r.choice(["add", "add", "drop", "rename", "rename table", "default", "truncate", "not null"])
        column = r.choice(table.columns)
        keys = {c for key in table.keys for c in key} | set(getattr(table, "sort", [])) | {table.columns[0]}
        done = False
        if choice == "add":
            new = Column(f"c{table.next_column}", r.choice(TYPES))
            table.next_column += 1
            text = f"ALTER TABLE {table.name} ADD COLUMN {new.name} {new.kind}"
            if r.random() < 0.5:
                new.default = self.literal(new.kind, 0)
                text += f" DEFAULT {new.default}"
                if r.random() < 0.3:
                    new.not_null = True
                    text += " NOT NULL"
            table.columns.append(new)
            done = self.emit(text)
        elif column.identity and choice in ("default", "not null"):
            return
        elif choice == "drop" and len(table.columns) > 2 and column not in keys and not getattr(table, "checked", False):
            table.columns.remove(column)
            done = self.emit(f"ALTER TABLE {table.name} DROP COLUMN {column.name}")
        elif choice == "rename":
            new = Column(f"c{table.next_column}", column.kind)
            new.not_null, new.default, new.identity = column.not_null, column.default, column.identity
            table.next_column += 1
            table.columns[table.columns.index(column)] = new
            table.keys = [[new if c is column else c for c in key] for key in table.keys]
            if hasattr(table, "sort"):
                table.sort = [new if c is column else c for c in table.sort]
            done = self.emit(f"ALTER TABLE {table.name} RENAME COLUMN {column.name} TO {new.name}")
        elif choice == "rename table":
            old, table.name = table.name, f"t{r.randint(10, 99)}"
            if table.name not in [t.name for t in self.tables]:
                done = self.emit(f"ALTER TABLE {old} RENAME TO {table.name}")
                table.name = old.rpartition(".")[0] + old.rpartition(".")[1] + table.name
        elif choice == "default":
            drop = r.random() < 0.3
            self.emit(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} " +
                      ("DROP DEFAULT" if drop else f"SET DEFAULT {self.literal(column.kind, 0)}"))
        elif choice == "truncate" and r.random() < 0.3:
            restart = " RESTART IDENTITY" if any(c.identity for c in table.columns) and r.random() < 0.5 else ""
            self.emit(f"TRUNCATE {table.name}{restart}")
        elif choice == "not null" and column not in keys:
            new = Column(column.name, column.kind)
            new.default, new.not_null = column.default, r.random() < 0.6
            table.columns[table.columns.index(column)] = new
            done = self.emit(f"ALTER TABLE {table.name} ALTER COLUMN {column.name} "
                             f"{'SET' if new.not_null else 'DROP'} NOT NULL")
        if done:
            self.tables[at] = table

    # ---- queries

    def query(self):
        self.emit(self.query_text(), True)

    def query_text(self):
        r = self.r
        choice = r.choice(["plain", "plain", "join", "join", "group", "group", "set", "set", "window", "window", "limit", "point", "with",
                           "three", "sets", "scalar", "mixed", "lock", "derived", "by key", "range", "spans", "using", "top", "top"])
        sources = self.tables + self.views
        table = r.choice(self.tables if choice in ("point", "lock") else sources)
        scope = self.scope(table, table.name if r.random() < 0.3 and choice in ("plain", "group", "limit") and "." not in table.name
                           else None)
        if choice == "lock":
            # Rows are named by a table of the transaction's own.
            word = r.choice(["FOR UPDATE", "FOR SHARE"]) if self.in_transaction else "FOR UPDATE"
            return f"SELECT * FROM {table.name} WHERE {self.where(table, scope)} {word}"
        if choice == "sets":
            return self.grouping_sets(table, scope)
        if choice in ("derived", "by key", "range", "spans", "using", "top"):
            text = {"derived": self.derived, "by key": self.by_key, "range": self.range_frame, "spans": self.spans,
                    "using": self.using, "top": self.top}[choice](table)
            return text or f"SELECT count(*) AS n FROM {table.name}"
        if choice == "scalar":
            return self.correlated(table)
        if choice == "mixed":
            return self.mixed(table, scope)
        if choice == "plain":
            shown = ", ".join(self.expression(r.choice(scope)[1], scope, 2) + f" AS x{at}" for at in range(r.randint(1, 3)))
            distinct = "DISTINCT " if r.random() < 0.2 else ""
            return f"SELECT {distinct}{shown} FROM {table.name} WHERE {self.predicate(scope, 3, True)}"
        if choice == "point":
            return f"SELECT * FROM {table.name} WHERE {self.where(table, scope)}"
        if choice in ("join", "three"):
            other = r.choice(sources)
            mine, theirs = self.scope(table, "a"), self.scope(other, "b")
            fitting = [(x, y) for x, k in mine for y, l in theirs if family(k) == family(l)]
            both = mine + theirs
            if not fitting:
                return f"SELECT count(*) FROM {table.name} a CROSS JOIN {other.name} b WHERE {self.predicate(both, 1)}"
            x, y = r.choice(fitting)
            kind = r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            more = f" AND {self.predicate(both, 1)}" if kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN") and r.random() < 0.3 else ""
            text = f"FROM {table.name} a {kind} {other.name} b ON {x} = {y}{more}"
            if choice == "three":
                third = r.choice(sources)
                last = self.scope(third, "d")
                again = [(p, q) for p, k in both for q, l in last if family(k) == family(l)]
                if again:
                    p, q = r.choice(again)
                    text += f" {r.choice(['JOIN', 'LEFT JOIN'])} {third.name} d ON {p} = {q}"
                    both = both + last
            shown = ", ".join(f"{text} AS x{at}" for at, (text, _) in enumerate(r.sample(both, min(len(both), 3))))
            where = f" WHERE {self.predicate(both, 2, r.random() < 0.3)}" if r.random() < 0.6 else ""
            return f"SELECT {shown} {text}{where}"
        if choice == "group":
            text, kind = r.choice(scope)
            group = self.expression(kind, scope, 1) if r.random() < 0.4 else text
            if text.split(".")[-1] not in group:
                group = text
            aggregates = []
            for _ in range(r.randint(1, 3)):
                of, other = r.choice(scope)
                distinct = "DISTINCT " if r.random() < 0.2 else ""
                filtered = f" FILTER (WHERE {self.predicate(scope, 1)})" if r.random() < 0.2 else ""
                if other in INTEGERS or other.startswith("DECIMAL") or other == "DOUBLE PRECISION":
                    function = r.choice(["sum", "min", "max", "count"])
                elif other == "BOOLEAN":
                    function = r.choice(["count", "bool_and", "bool_or"])
                elif other in ("UUID", "BYTEA", "CHAR(4)"):
                    function = "count"
                else:
                    function = r.choice(["min", "max", "count"])
                aggregates.append(f"{function}({distinct}{of}){filtered}")
            aggregates.append("count(*)")
            shown = ", ".join(f"{a} AS x{at}" for at, a in enumerate(aggregates))
            having = f" HAVING {r.choice(aggregates)} IS NOT NULL AND count(*) > {r.randint(0, 2)}" if r.random() < 0.3 else ""
            where = f" WHERE {self.predicate(scope, 2, True)}" if r.random() < 0.5 else ""
            if r.random() < 0.3:
                return f"SELECT {shown} FROM {table.name}{where}"
            return f"SELECT {group} AS g, {shown} FROM {table.name}{where} GROUP BY {group}{having}"
        if choice == "set":
            other = r.choice(sources)
            pairs = [(a, b) for a, k in scope for b, l in self.scope(other) if k == l]
            if pairs:
                a, b = r.choice(pairs)
                word = r.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT"])
                return f"SELECT {a} AS x FROM {table.name} {word} SELECT {b} FROM {other.name} WHERE {self.predicate(self.scope(other), 1)}"
        if choice == "window":
            everything = ", ".join(t for t, _ in scope)
            text, kind = r.choice(scope)
            numbers = [t for t, k in scope if k in INTEGERS or k.startswith("DECIMAL")]
            functions = ["row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", f"ntile({r.randint(1, 4)})",
                         f"lag({text})", f"lead({text}, {r.randint(0, 3)})", "count(*)", f"count({text})",
                         f"first_value({text})", f"last_value({text})", f"nth_value({text}, {r.randint(1, 3)})"]
            functions += [f"{r.choice(['sum', 'min', 'max'])}({t})" for t in numbers[:2]] * 2
            function = r.choice(functions)
            partition = f"PARTITION BY {r.choice(scope)[0]} " if r.random() < 0.5 else ""
            by_peers = function in ("rank()", "dense_rank()", "percent_rank()", "cume_dist()")
            order = everything if not by_peers else r.choice(scope)[0]
            order += r.choice(["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
            frame, framed = "", function.split("(")[0] in ("sum", "min", "max", "count", "first_value", "last_value", "nth_value")
            if framed and r.random() < 0.6:
                # None that ends before it begins: such a frame is refused here, in PostgreSQL some of them are empty.
                first, last = sorted(r.choice([-99, -3, -1, 0, 0, 1, 2, 99]) for _ in range(2))
                bound = lambda at, side: f"UNBOUNDED {side}" if abs(at) == 99 else "CURRENT ROW" if at == 0 else \
                    f"{abs(at)} {'PRECEDING' if at < 0 else 'FOLLOWING'}"
                start, end = bound(min(first, 2), "PRECEDING"), bound(max(last, -1), "FOLLOWING")
                unit = r.choice(["ROWS", "ROWS", "GROUPS"])
                frame = f" {unit} BETWEEN {start} AND {end}"
            if by_peers or "GROUPS" in frame or r.random() < 0.9:
                filtered = f" FILTER (WHERE {self.predicate(scope, 1)})" if function.startswith(("sum", "count", "min")) and \
                    r.random() < 0.2 else ""
                return f"SELECT {everything}, {function}{filtered} OVER ({partition}ORDER BY {order}{frame}) AS w FROM {table.name}"
            whole = r.choice(["count(*)", f"count({text})"] + [f"sum({t})" for t in numbers[:1]])
            return f"SELECT {everything}, {whole} OVER ({partition.strip()}) AS w FROM {table.name}"
        if choice == "limit":
            everything = [f"{t}{r.choice(['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST'])}" for t, _ in r.sample(scope, len(scope))]
            where = f" WHERE {self.predicate(scope, 2)}" if r.random() < 0.5 else ""
            offset = f" OFFSET {r.randint(0, 3)}" if r.random() < 0.4 else ""
            return f"SELECT * FROM {table.name}{where} ORDER BY {', '.join(everything)} LIMIT {r.randint(0, 5)}{offset}"
        if choice == "with":
            return f"WITH w AS (SELECT * FROM {table.name} WHERE {self.predicate(scope, 2)}) SELECT count(*) AS n FROM w, w v" \
                   f" WHERE {self.predicate([('w.' + t, k) for t, k in scope], 1)}"
        return f"SELECT * FROM {table.name}"

    def grouping_sets(self, table, scope):
        r = self.r
        columns = [t for t, _ in r.sample(scope, min(len(scope), r.randint(1, 3)))]
        form = r.choice(["ROLLUP", "CUBE", "SETS"])
        if form == "SETS":
            sets = ["(" + ", ".join(r.sample(columns, r.randint(0, len(columns)))) + ")" for _ in range(r.randint(1, 3))]
            # All columns that are shown stand in one of them.
            grouped = f"GROUPING SETS (({', '.join(columns)}), {', '.join(sets)})"
        else:
            grouped = f"{form} ({', '.join(columns)})"
        numbers = [t for t, k in scope if k in INTEGERS or k.startswith("DECIMAL")]
        more = f", sum({r.choice(numbers)}) AS s" if numbers and r.random() < 0.6 else ""
        more += f", GROUPING({columns[0]}) AS g" if r.random() < 0.4 else ""
        where = f" WHERE {self.predicate(scope, 2, r.random() < 0.3)}" if r.random() < 0.5 else ""
        having = f" HAVING count(*) > {r.randint(0, 2)}" if r.random() < 0.3 else ""
        return f"SELECT {', '.join(columns)}, count(*) AS n{more} FROM {table.name}{where} GROUP BY {grouped}{having}"

    def derived(self, table):
        """A set operation within FROM, beside what is done with its rows."""
        r, scope = self.r, self.scope(table)
        other = r.choice(self.tables + self.views)
        pairs = [(a, b, k) for a, k in scope for b, l in self.scope(other) if k == l and k != "CHAR(4)"]
        if not pairs:
            return None
        a, b, kind = r.choice(pairs)
        word = r.choice(["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        both = f"SELECT {a} AS x, {r.randint(0, 1)} AS y FROM {table.name} WHERE {self.predicate(scope, 1)} " \
               f"{word} SELECT {b}, {r.randint(0, 1)} FROM {other.name} WHERE {self.predicate(self.scope(other), 1)}"
        if r.random() < 0.3:
            both = f"({both}) UNION ALL SELECT {b}, 2 FROM {other.name}"
        inner = [("x", kind), ("y", "INTEGER")]
        return r.choice([lambda: f"SELECT x, count(*) AS n, sum(y) AS s FROM ({both}) s GROUP BY x HAVING count(*) > {r.randint(0, 1)}",
                         lambda: f"SELECT x, y FROM ({both}) s WHERE {self.predicate(inner, 2)}",
                         lambda: f"SELECT x FROM ({both}) s ORDER BY x{r.choice(['', ' DESC', ' NULLS FIRST'])} LIMIT {r.randint(1, 4)}",
                         lambda: f"SELECT DISTINCT {self.expression(kind, inner, 1)} AS z FROM ({both}) s",
                         lambda: f"SELECT s.y, t.{a} FROM ({both}) s {r.choice(['JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'])} {table.name} t ON s.x = t.{a}",
                         lambda: f"WITH w AS ({both}) SELECT count(*) AS n, count(w.x) AS m FROM w, (SELECT max(y) AS top FROM w) v WHERE w.y = v.top"])()

    def by_key(self, table):
        """GROUP BY a PRIMARY KEY, which the other columns follow from. PostgreSQL wants one that is not deferrable."""
        r = self.r
        fitting = [t for t in self.tables if getattr(t, "primary", False)]
        if not fitting or not self.plain_keys:
            return None
        table, other = r.choice(fitting), r.choice(self.tables)
        mine, theirs = self.scope(table, "a"), self.scope(other, "b")
        key = ", ".join(f"a.{c.name}" for c in table.keys[0])
        shown = ", ".join(f"{self.expression(kind, [(text, kind)], 1)} AS x{at}" for at, (text, kind) in
                          enumerate(r.sample(mine, min(len(mine), 3))))
        pairs = [(x, y) for x, k in mine for y, l in theirs if family(k) == family(l)]
        if not pairs or r.random() < 0.4:
            having = f" HAVING {self.predicate(mine, 1)}" if r.random() < 0.4 else ""
            return f"SELECT {shown}, count(*) AS n FROM {table.name} a GROUP BY {key}{having}"
        x, y = r.choice(pairs)
        return f"SELECT {shown}, count({y}) AS n FROM {table.name} a {r.choice(['JOIN', 'LEFT JOIN'])} {other.name} b ON {x} = {y} GROUP BY {key}"

    def range_frame(self, table):
        """Windows of RANGE with distances."""
        r, scope = self.r, self.scope(table)
        ordered = [(t, k) for t, k in scope if k in INTEGERS or k.startswith("DECIMAL") or k in ("DATE", "TIMESTAMP")]
        if not ordered:
            return None
        by, kind = r.choice(ordered)
        distance = lambda: f"INTERVAL '{r.choice(['3 days', '1 month', '2 days 12:00', '1 year'])}'" if kind in ("DATE", "TIMESTAMP") \
            else str(r.randint(0, 5)) if kind in INTEGERS else r.choice(["0.5", "2", "10.25"])
        start = r.choice(["UNBOUNDED PRECEDING", "CURRENT ROW", f"{distance()} PRECEDING", f"{distance()} PRECEDING"])
        end = r.choice(["UNBOUNDED FOLLOWING", "CURRENT ROW", f"{distance()} FOLLOWING", f"{distance()} FOLLOWING"])
        numbers = [t for t, k in scope if k in INTEGERS or k.startswith("DECIMAL")]
        functions = ["count(*)", f"count({r.choice(scope)[0]})"] + [f"{r.choice(['sum', 'min', 'max'])}({t})" for t in numbers]
        partition = f"PARTITION BY {r.choice(scope)[0]} " if r.random() < 0.4 else ""
        order = by + r.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
        return f"SELECT {', '.join(t for t, _ in scope)}, {r.choice(functions)} OVER ({partition}ORDER BY {order} RANGE BETWEEN {start} AND {end}) AS w FROM {table.name}"

    def spans(self, table):
        """Intervals: aggregates, windows, order."""
        r, scope = self.r, self.scope(table)
        span = self.span(scope, 2)
        text, _ = r.choice(scope)
        where = f" WHERE {self.predicate(scope, 1)}" if r.random() < 0.3 else ""
        everything = ", ".join(t for t, _ in scope)
        functions = [f"CAST({f}({span}) AS TEXT) AS {f}_of" for f in r.sample(["sum", "avg"], r.randint(1, 2))] + \
            [f"{r.choice(['min', 'max'])}({span}) {r.choice(['<', '>='])} INTERVAL '1 day' AS far"]
        return r.choice([lambda: f"SELECT CAST({span} AS TEXT) AS x FROM {table.name}{where}",
                         lambda: f"SELECT {', '.join(functions)} FROM {table.name}{where}",
                         lambda: f"SELECT {text}, {', '.join(functions)}, count(*) AS n FROM {table.name}{where} GROUP BY {text}",
                         lambda: f"SELECT {everything}, CAST(sum({span}) OVER (ORDER BY {everything} ROWS BETWEEN {r.randint(0, 2)} PRECEDING AND "
                                 f"{r.randint(0, 2)} FOLLOWING) AS TEXT) AS w FROM {table.name}",
                         lambda: f"SELECT {everything}, rank() OVER (ORDER BY {span}) AS w FROM {table.name}",
                         lambda: f"SELECT count(*) AS n FROM (SELECT {span} AS i FROM {table.name}{where}) s WHERE i > {self.span([], 0)}"])()

    def using(self, table):
        """Joins whose columns are one."""
        r, other = self.r, self.r.choice(self.tables)
        kinds = {c.name: c.kind for c in other.columns}
        shared = [c.name for c in table.columns if c.name in kinds and kinds[c.name] == c.kind]
        if not shared:
            return None
        by = r.sample(shared, r.choice([1, 1, min(2, len(shared))]))
        mine = [(f"a.{c.name}", c.kind) for c in table.columns if c.name not in by]
        theirs = [(f"b.{c.name}", c.kind) for c in other.columns if c.name not in by]
        both = [(name, kinds[name]) for name in by] + mine + theirs
        shown = ", ".join(f"{t} AS x{at}" for at, (t, _) in enumerate(r.sample(both, min(len(both), 3))))
        where = f" WHERE {self.predicate(both, 1)}" if r.random() < 0.4 else ""
        join = f"{table.name} a {r.choice(USING)} {other.name} b USING ({', '.join(by)})"
        if r.random() < 0.3:
            return f"SELECT {by[0]}, count(*) AS n FROM {join}{where} GROUP BY {by[0]}"
        return f"SELECT {shown} FROM {join}{where}"

    def top(self, table):
        """The first of groups, by columns that are called like others."""
        r, scope = self.r, self.scope(table)
        fitting = [(t, k) for t, k in scope if k in INTEGERS or k in ("TEXT", "DATE", "DOUBLE PRECISION", "TIMESTAMP") or k.startswith("DECIMAL")]
        if not fitting:
            return None
        text, kind = r.choice(fitting)
        order, limit = r.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]), f"LIMIT {r.randint(1, 3)}"
        other, of = r.choice(fitting)
        function = r.choice(["min", "max"])
        shown = self.expression(kind, [(text, kind)], 1)
        return r.choice([lambda: f"SELECT {shown} AS {text} FROM (SELECT DISTINCT {text} FROM {table.name}) s ORDER BY {text}{order} {limit}",
                         lambda: f"SELECT {text} FROM {table.name} GROUP BY {text} ORDER BY {text}{order} {limit}",
                         lambda: f"SELECT DISTINCT {shown} AS x FROM {table.name} ORDER BY x{order} {limit}",
                         lambda: f"SELECT {function}({other}) AS m FROM {table.name} GROUP BY {text} ORDER BY m{order} {limit}",
                         lambda: f"SELECT {text} AS m, {function}({other}) AS g FROM {table.name} GROUP BY {text} ORDER BY g{order}, m {limit}",
                         lambda: f"SELECT {self.expression(of, [('m', of)], 1)} AS m FROM (SELECT {text} AS g, {function}({other}) AS m FROM {table.name} "
                                 f"GROUP BY {text}) s ORDER BY m{order} {limit}"])()

    def correlated(self, table):
        """Subqueries that look at the row around them."""
        r = self.r
        outer = self.scope(table, "o")
        parts, shown = [], [t for t, _ in r.sample(outer, min(len(outer), 2))]
        for _ in range(r.randint(1, 2)):
            inner_table = r.choice(self.tables + self.views)
            inner = self.scope(inner_table, "q")
            fitting = [(a, b) for a, k in outer for b, l in inner if family(k) == family(l)]
            if not fitting:
                continue
            a, b = r.choice(fitting)
            of, kind = r.choice(inner)
            more = f" AND {self.predicate(inner, 1)}" if r.random() < 0.4 else ""
            body = f"FROM {inner_table.name} q WHERE {b} = {a}{more}"
            if r.random() < 0.5:
                function = "count" if kind in ("BOOLEAN", "UUID", "BYTEA", "CHAR(4)") else r.choice(["min", "max", "count"])
                shown.append(f"(SELECT {function}({of}) {body}) AS x{len(shown)}")
            elif r.random() < 0.5:
                parts.append(f"{r.choice(['', 'NOT '])}EXISTS (SELECT 1 {body})")
            else:
                matching = [(x, y) for x, k in outer for y, l in inner if family(k) == family(l)]
                x, y = r.choice(matching)
                parts.append(f"{x} {r.choice(['', 'NOT '])}IN (SELECT {y} {body})")
        where = f" WHERE {r.choice([' AND ', ' OR ']).join(parts)}" if parts else ""
        return f"SELECT {', '.join(shown)} FROM {table.name} o{where}"

    def mixed(self, table, scope):
        """Columns of one family and several types put together."""
        r = self.r
        families = [("SMALLINT", "INTEGER", "BIGINT", "DECIMAL(8,2)", "DOUBLE PRECISION"), ("TEXT", "VARCHAR(6)"), ("DATE", "TIMESTAMP")]
        other = r.choice(self.tables + self.views)
        theirs = self.scope(other)
        pairs = [(a, k, b, l) for a, k in scope for b, l in theirs for family in families if k in family and l in family]
        if not pairs:
            return f"SELECT count(*) AS n FROM {table.name}"
        a, k, b, l = r.choice(pairs)
        word = r.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        # 1 and 1.00 are one value with two texts.
        both = f"SELECT {a} AS x FROM {table.name} {word} SELECT {b} FROM {other.name} WHERE {self.predicate(theirs, 1)}"
        if {k, l} <= set(INTEGERS) or k == l or k in TEXTS:
            return both
        return f"SELECT count(*) AS n, count(x) AS m, max(x) = min(x) AS one FROM ({both}) s"

    # ---- IN lists

    def member(self, kind):
        r = self.r
        columns = [name for name, other in LIST_COLUMNS if other == kind]
        if r.random() < 0.12:
            return "NULL"
        if r.random() < 0.15:
            return r.choice(columns)
        return str(r.randint(0, 4)) if kind == "INTEGER" else "'" + r.choice("abc") + "'"

    def in_list(self, depth):
        """A condition made of IN lists, equalities and subqueries, joined by AND, OR, NOT and CASE."""
        r = self.r
        if depth > 0 and r.random() < 0.75:
            left, right = self.in_list(depth - 1), self.in_list(depth - 1)
            choice = r.random()
            if choice < 0.38:
                return f"({left} AND {right})"
            if choice < 0.76:
                return f"({left} OR {right})"
            if choice < 0.92:
                return f"NOT ({left})"
            if choice < 0.96:
                return f"(({left}) IS {r.choice(['', 'NOT '])}{r.choice(['TRUE', 'FALSE', 'NULL'])})"
            return f"CASE WHEN {left} THEN {right} ELSE {self.in_list(depth - 2)} END"
        # Most are over one column, so that lists meet.
        name, kind = r.choice(LIST_COLUMNS[:1] * 5 + LIST_COLUMNS)
        choice = r.random()
        if choice < 0.12:
            return f"{name} {r.choice(['=', '=', '<>'])} {self.member(kind)}"
        if choice < 0.2 and kind == "INTEGER":
            where = r.choice(["", f" WHERE q.h > {r.randint(0, 3)}", " WHERE q.h IS NOT NULL", " WHERE q.g = l.g"])
            return f"{name} {r.choice(['', 'NOT '])}IN (SELECT q.{r.choice('gh')} FROM l AS q{where})"
        if choice < 0.25 and kind == "INTEGER":
            name = r.choice([f"{name} + 1", f"abs({name})", f"CAST({name} AS BIGINT)", str(r.randint(0, 3)), f"({name} # {r.choice('ghi')})"])
        members = ", ".join(self.member(kind) for _ in range(r.choice([1, 1, 2, 2, 3, 5])))
        return f"{name} {r.choice(['', 'NOT '])}IN ({members})"

    def in_lists(self, statements):
        r = self.r
        columns = ", ".join(f"{name} {kind}" for name, kind in LIST_COLUMNS)
        self.emit(f"CREATE TABLE l (k INTEGER PRIMARY KEY, {columns})")
        value = lambda kind: "NULL" if r.random() < 0.25 else str(r.randint(0, 4)) if kind == "INTEGER" else "'" + r.choice("abcd") + "'"
        rows = [f"({k}, {', '.join(value(kind) for _, kind in LIST_COLUMNS)})" for k in range(20)]
        self.emit(f"INSERT INTO l VALUES {', '.join(rows)}")
        while len(self.blocks) < statements:
            condition, choice = self.in_list(r.choice([1, 2, 2, 3])), r.random()
            if choice < 0.45:
                self.emit(f"SELECT k FROM l WHERE {condition}", True)
            elif choice < 0.75:
                self.emit(f"SELECT k, ({condition}) AS x FROM l", True)
            elif choice < 0.85:
                self.emit(f"SELECT count(*) FILTER (WHERE {condition}) AS n, bool_and({self.in_list(1)}) AS b FROM l GROUP BY i HAVING count(*) > 1", True)
            elif choice < 0.95:
                self.emit(f"SELECT a.k AS x, l.k AS y FROM l AS a LEFT JOIN l ON a.g = l.h AND {condition}", True)
            else:
                self.emit(f"SELECT k FROM l WHERE k IN ({r.randint(0, 9)}, {r.randint(0, 19)}) AND {condition}", True)
        self.session.pg.finish()
        return "# Random IN lists; the answers are PostgreSQL's (slt/random_slt.py --in-lists).\n\n" + "\n\n".join(
            "\n".join(block) for block in self.blocks) + "\n"

    def file(self, statements):
        if self.plain_keys:
            head = "# Random statements; the answers are PostgreSQL's (slt/random_slt.py).\n# pg: plain-keys"
        else:
            head = "# Random statements; the answers are PostgreSQL's (slt/random_slt.py)."
        for number in range(self.r.randint(2, 3)):
            while len(self.tables) == number:
                self.create_table(f"t{number}")
        for _ in range(6):
            self.insert()
        while len(self.blocks) < statements:
            choice = self.r.random()
            if choice < 0.25:
                self.insert()
            elif choice < 0.4:
                self.update()
            elif choice < 0.48:
                self.delete()
            elif choice < 0.57:
                self.transaction()
            elif choice < 0.60:
                self.alter()
            elif choice < 0.64:
                self.view()
            else:
                self.query()
        if self.in_transaction:
            self.emit("COMMIT")
        for table in self.tables + self.views:
            self.emit(f"SELECT * FROM {table.name}", True)
        self.session.pg.finish()
        return head + "\n\n" + "\n\n".join("\n".join(block) for block in self.blocks) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--statements", type=int, default=150)
    parser.add_argument("--in-lists", action="store_true")
    parser.add_argument("--dsn", default=os.environ.get("SLT_DSN", "host=localhost dbname=slt"))
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.seed, arguments.seed + arguments.files):
        generator = Generator(seed, arguments.dsn)
        text = generator.in_lists(arguments.statements) if arguments.in_lists else generator.file(arguments.statements)
        (arguments.folder / f"{'in_lists' if arguments.in_lists else 'random'}_{seed}.slt").write_text(text)


if __name__ == "__main__":
    main()
