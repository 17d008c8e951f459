#!/usr/bin/env python3
"""Run the statements of experiment `plan` on a peer: a process that lives as long as the experiment.

    statements.py duckdb-memory

The conversation is that of peer.py. The experiment tells the tables and the statements, so that they are written once:

    load    also takes "script": statements that make and fill the tables
    {"do": "tell", "statement": {"case": C, "sql": S, "call": "prepared" | "one-shot" | "text" | "arrow",
                                 "values": null | {"below": N} | {"always": N} | {"from": N}}, "values": [...]}
            ->  {"answers": [{"rows": N, "sum": N}, ...]}, one for each of these values; the case can be run from then on

In a text `$1` stands for the value and `@` for a number that is new in each run. Texts are made before the clock starts. A prepared
statement is one of PREPARE, run by EXECUTE with its value as a literal. Rows of "arrow" are fetched as Arrow batches.
"""

import itertools

import numpy

import engines
import peer


class Statement:
    """A statement, ready to be run."""

    def __init__(self, work, sql, call, values):
        self.work = work
        self.sql = sql
        self.call = call
        self.is_query = sql.startswith(("SELECT", "EXPLAIN"))
        values = values or {"always": None}
        self.always = values.get("always")
        self.below = values.get("below")
        self.new_values = itertools.count(values["from"]) if "from" in values else None
        if call == "prepared":
            self.name = f"p{next(work.numbers)}"
            work.engine.execute(f"PREPARE {self.name} AS {sql}")

    def arguments(self, value):
        """What the engine is given in a run: the text, and values beside it."""
        if self.call == "prepared":
            return f"EXECUTE {self.name}" + (f"({value})" if value is not None else ""), None
        text = self.sql.replace("@", str(next(self.work.numbers)))
        if self.call == "one-shot":
            return text, (value,)
        return text.replace("$1", str(value)), None

    def next_values(self):
        """Values of the next runs."""
        if self.new_values:
            return list(itertools.islice(self.new_values, peer.CHUNK))
        if self.below:
            return self.work.random.integers(0, self.below, peer.CHUNK).tolist()
        return [self.always] * peer.CHUNK

    def run(self, arguments):
        engine = self.work.engine
        return engine.stream(*arguments) if self.call == "arrow" else engine.rows(*arguments)

    def answer(self, value):
        rows = self.run(self.arguments(value))
        if not self.is_query:
            return {"rows": rows[0][0], "sum": 0}
        # A truth value is a number here, as it is to the experiment.
        return {"rows": len(rows), "sum": sum(cell for row in rows for cell in row if isinstance(cell, int))}


class Work:
    """A loaded engine and the statements it was told."""

    statement = Statement

    def __init__(self, rows, directory, script):
        self.engine = engines.DuckDb()
        self.random = numpy.random.default_rng(1)
        self.numbers = itertools.count(1_000_000)
        self.cases = {}
        for sql in script:
            self.engine.execute(sql)

    def tell(self, statement, values):
        case = statement.pop("case")
        told = self.cases[case] = self.statement(self, **statement)
        return {"answers": [told.answer(value) for value in values]}

    def run(self, case, seconds):
        clock = peer.Clock(seconds)
        statement = self.cases[case]
        while clock.more():
            clock.run(statement.run, [statement.arguments(value) for value in statement.next_values()])
        return clock.answer()


if __name__ == "__main__":
    peer.serve(__doc__, {"duckdb-memory": Work})
