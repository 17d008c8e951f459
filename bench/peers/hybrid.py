#!/usr/bin/env python3
"""Run the cases of experiment `hybrid` on a peer: a process that lives as long as the experiment.

    hybrid.py sqlite-memory | sqlite-disk | duckdb-memory

Requests come in on stdin, answers go out on stdout, one JSON object a line:

    {"do": "load", "rows": N, "directory": D}     ->  {"engine": "SQLite 3.x", "seconds": S}
    {"do": "run", "case": C, "seconds": S}        ->  {"operations": N, "rows": N, "seconds": S, "p50_us": ..., "p99_us": ...,
                                                       "worst_ms": ..., "wrong": null or what}
    whatever fails                                ->  {"error": message}

Each case leaves the table as it found it. What an operation needs (keys, rows) is made before its clock starts; the clock is read once
an operation, as in our own loop.
"""

import array
import json
import sys
import time

import numpy

import engines
import rows

# Operations whose keys and rows are made at once.
CHUNK = 256
# Rows of a transaction, and of a bulk insertion.
TRANSACTION_ROWS = 100
APPEND_ROWS = 100_000

NAMES = {"sqlite-memory": "SQLite", "sqlite-disk": "SQLite", "duckdb-memory": "DuckDB"}


class Clock:
    """Durations of single operations, until their sum is what the case may take."""

    def __init__(self, seconds):
        self.left = int(seconds * 1e9)
        self.spent = 0
        self.durations = array.array("q")

    def run(self, operation, arguments):
        """Runs operations until the time is over; how many."""
        add = self.durations.append
        now = time.perf_counter_ns
        before = len(self.durations)
        start = last = now()
        stop = start + self.left
        for argument in arguments:
            operation(argument)
            end = now()
            add(end - last)
            last = end
            if end >= stop:
                break
        self.spent += last - start
        self.left = stop - last
        return len(self.durations) - before

    def more(self):
        return self.left > 0

    def answer(self, rows_each=1):
        sorted_ns = numpy.sort(numpy.frombuffer(self.durations, dtype=numpy.int64))
        return {
            "operations": len(sorted_ns),
            "rows": len(sorted_ns) * rows_each,
            "seconds": self.spent / 1e9,
            "p50_us": float(sorted_ns[len(sorted_ns) // 2]) / 1e3,
            "p99_us": float(sorted_ns[len(sorted_ns) * 99 // 100]) / 1e3,
            "worst_ms": float(sorted_ns[-1]) / 1e6,
            "wrong": None,
        }


class Work:
    """A loaded engine and the cases."""

    def __init__(self, name, count, directory):
        self.engine = engines.engine(name, directory)
        self.count = count
        self.keys = rows.Keys(count)
        self.engine.load(self.keys.all_loaded())
        self.sums = self.engine.query(engines.SCAN)

    def run(self, case, seconds):
        return getattr(self, f"case_{case}")(Clock(seconds))

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


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in NAMES:
        sys.exit(__doc__)
    name = sys.argv[1]
    work = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request["do"] == "load":
                began = time.perf_counter()
                work = Work(name, request["rows"], request["directory"])
                answer = {"engine": f"{NAMES[name]} {work.engine.version()}", "seconds": time.perf_counter() - began}
            else:
                answer = work.run(request["case"], request["seconds"])
        except Exception as error:  # The experiment shows it and goes on without this peer.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
