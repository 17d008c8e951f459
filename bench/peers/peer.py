"""What all peers share: the clock of a round, and the conversation with the experiment.

Requests come in on stdin, answers go out on stdout, one JSON object a line:

    {"do": "load", "rows": N, "directory": D, ...} ->  {"engine": "DuckDB 2.x", "seconds": S}
    {"do": "run", "case": C, "seconds": S}         ->  {"operations": N, "rows": N, "seconds": S, "p50_us": ..., "p99_us": ...,
                                                        "worst_ms": ..., "wrong": null or what}
    {"do": another method, its arguments}          ->  what that method of the script's work gives
    whatever fails                                 ->  {"error": message}
"""

import array
import json
import sys
import time

import numpy

# Operations whose arguments are made at once.
CHUNK = 256


class Clock:
    """Durations of single operations, until their sum is what the case may take. It is read once an operation, as in our own loop."""

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


def serve(usage, works):
    """Answers requests until stdin ends. `works` makes the loaded work of an engine by its name, the only argument of the script."""
    if len(sys.argv) != 2 or sys.argv[1] not in works:
        sys.exit(usage)
    work = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            action = request.pop("do")
            if action == "load":
                began = time.perf_counter()
                work = works[sys.argv[1]](**request)
                answer = {"engine": work.engine.title(), "seconds": time.perf_counter() - began}
            else:
                answer = getattr(work, action)(**request)
        except Exception as error:  # The experiment shows it and goes on without this peer.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
