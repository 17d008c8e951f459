#!/usr/bin/env python3
"""Run the queries of experiments `tpch`, `shapes` and `scan` on a peer: a process that lives as long as the experiment.

    tpch.py duckdb-memory | duckdb-disk

The conversation is that of statements.py; the sum of an answer is that of all numbers in hundredths, where a text counts its bytes and a
date its days. Of rows that come as Arrow batches only their number counts.
"""

import datetime
import decimal

import peer
import statements

EPOCH = datetime.date(1970, 1, 1)


def number(cell):
    if isinstance(cell, str):
        return len(cell.encode())
    if isinstance(cell, datetime.date):
        return (cell - EPOCH).days
    return float(cell) if isinstance(cell, (int, float, decimal.Decimal)) else 0


class Query(statements.Statement):
    """A query, ready to be run."""

    def answer(self, value):
        rows = self.run(self.arguments(value))
        if self.call == "arrow":
            return {"rows": rows, "sum": 0}
        return {"rows": len(rows), "sum": round(100 * sum(number(cell) for row in rows for cell in row))}


class Work(statements.Work):
    """A loaded engine and the queries it was told."""

    statement = Query


if __name__ == "__main__":
    # On disk, the experiment's own statements attach the file.
    peer.serve(__doc__, {"duckdb-memory": Work, "duckdb-disk": Work})
