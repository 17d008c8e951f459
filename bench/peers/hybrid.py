#!/usr/bin/env python3
"""Run the cases of experiment `hybrid` on a peer: a process that lives as long as the experiment.

    hybrid.py sqlite-memory | sqlite-disk | duckdb-memory

The conversation is that of peer.py.

Each case leaves the table as it found it. What an operation needs (keys, rows) is made before its clock starts.
"""

import functools

import numpy

import engines
import peer
import rows
from peer import CHUNK
from rows import Keys

# Rows of a transaction, and of a bulk insertion.
TRANSACTION_ROWS = 100
APPEND_ROWS = 100_000


class Work:
    """A loaded engine and the cases."""

    def __init__(self, engine, rows, directory):
        self.engine = engine(directory)
        self.count = rows
        self.keys = Keys(rows)
        self.engine.load(self.keys.all_loaded())
        self.sums = self.engine.query(engines.SCAN)

    def run(self, case, seconds):
        return getattr(self, f"case_{case}")(peer.Clock(seconds))

    def checked(self, answer, expected_rows, fresh):
        """Puts the table back when fresh keys were inserted, and holds it to what it must be."""
        (found,) = self.engine.query("SELECT count(*) FROM t")
        if found != expected_rows:
            answer["wrong"] = f"{found} rows instead of {expected_rows}"
        if fresh:
            self.engine.execute(engines.FRESH)
        return answer

    def case_select(self, clock):
        wrong = []
        select = self.engine.select

        def one(key):
            if select(key)[0] != key:
                wrong.append(key)

        while clock.more():
            clock.run(one, self.keys.some_loaded(CHUNK).tolist())
        answer = clock.answer()
        if wrong:
            answer["wrong"] = f"another row for key {wrong[0]}"
        return answer

    def case_insert(self, clock):
        while clock.more():
            clock.run(self.engine.insert, rows.rows_of(self.keys.some_fresh(CHUNK)))
        answer = clock.answer()
        return self.checked(answer, self.count + answer["operations"], fresh=True)

    def case_update(self, clock):
        operation = 0
        last = None
        while clock.more():
            keys = self.keys.some_loaded(CHUNK).tolist()
            updates = [(operation + at, key) for at, key in enumerate(keys)]
            done = clock.run(self.engine.update, updates)
            operation += done
            last = updates[done - 1]
        answer = clock.answer()
        value, key = last
        found = self.engine.select(key)[1]
        if found != value:
            answer["wrong"] = f"key {key} has {found} instead of {value}"
        return self.checked(answer, self.count, fresh=False)

    def case_delete(self, clock):
        victims = self.keys.all_loaded()
        done = 0
        while clock.more() and done < len(victims):
            done += clock.run(self.engine.delete, victims[done:done + CHUNK].tolist())
        answer = self.checked(clock.answer(), self.count - done, fresh=False)
        self.engine.load(victims[:done])
        return answer

    def case_upsert(self, clock):
        misses = 0
        while clock.more():
            hits = self.keys.random.random(CHUNK) < 0.5
            keys = numpy.where(hits, self.keys.some_loaded(CHUNK), self.keys.some_fresh(CHUNK))
            done = clock.run(self.engine.upsert, rows.rows_of(keys))
            misses += int(done - hits[:done].sum())
        return self.checked(clock.answer(), self.count + misses, fresh=True)

    def case_transactions(self, clock):
        while clock.more():
            parts = self.keys.some_fresh(TRANSACTION_ROWS * 10).reshape(-1, TRANSACTION_ROWS)
            clock.run(self.engine.insert_many, [self.engine.form(keys) for keys in parts])
        answer = clock.answer(TRANSACTION_ROWS)
        return self.checked(answer, self.count + answer["rows"], fresh=True)

    def case_append(self, clock):
        """Into an empty table, as ours."""
        many = min(APPEND_ROWS, self.count)
        self.engine.execute("ALTER TABLE t RENAME TO loaded")
        key = "INTEGER" if isinstance(self.engine, engines.Sqlite) else "BIGINT"
        self.engine.execute(f"CREATE TABLE t (k {key} PRIMARY KEY, {engines.INTEGERS})")
        try:
            while clock.more():
                clock.run(self.engine.insert_many, [self.engine.form(self.keys.some_fresh(many))])
            answer = clock.answer(many)
            return self.checked(answer, answer["rows"], fresh=False)
        finally:
            self.engine.execute("DROP TABLE t")
            self.engine.execute("ALTER TABLE loaded RENAME TO t")

    def case_scan(self, clock):
        """Sums of all integer columns; rows are those read."""
        wrong = []

        def one(_):
            found = self.engine.query(engines.SCAN)
            # Column 1 is what updates and upserts change.
            if (found[0], found[2:]) != (self.count, self.sums[2:]):
                wrong.append(found)

        while clock.more():
            clock.run(one, [None])
        answer = clock.answer(self.count)
        if wrong:
            answer["wrong"] = f"sums {wrong[0]}"
        return answer


if __name__ == "__main__":
    peer.serve(__doc__, {name: functools.partial(Work, engine) for name, engine in engines.WITH_TABLE.items()})
