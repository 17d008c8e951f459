"""Keys and rows of the table that experiment `hybrid` works on: the same formula as in crates/bench/src/hybrid/rows.rs.

Table t has a key k and sixteen integers. A loaded key is a multiple of 16; keys in between are fresh. Each integer follows from
its row's key, so that every engine can be checked without keeping a copy.
"""

import numpy

COLUMNS = 16
SPACING = 16
PRIME = 1_000_000_007
MULTIPLIERS = [100_003 + 20_000_006 * column for column in range(COLUMNS + 1)]


def formula(column):
    """The value of an integer column in SQL, from k."""
    return f"(k * {MULTIPLIERS[column]} + {column}) % {PRIME}"


def formulas():
    return ", ".join(formula(column) for column in range(1, COLUMNS + 1))


def columns_of(keys):
    """The columns of the rows with these keys, the key first."""
    return [keys] + [(keys * MULTIPLIERS[column] + column) % PRIME for column in range(1, COLUMNS + 1)]


def rows_of(keys):
    """Those rows, as a list of lists."""
    return numpy.stack(columns_of(keys), axis=1).tolist()


class Keys:
    """Hands out keys in random order."""

    def __init__(self, rows, seed=1):
        self.rows = rows
        self.random = numpy.random.default_rng(seed)
        self.residue = 0
        self.fresh = numpy.empty(0, dtype=numpy.int64)

    def all_loaded(self):
        """Every loaded key once."""
        return self.random.permutation(self.rows).astype(numpy.int64) * SPACING

    def some_loaded(self, count):
        """Loaded keys, uniformly."""
        return self.random.integers(0, self.rows, count, dtype=numpy.int64) * SPACING

    def some_fresh(self, count):
        """Keys that were never in the table, each once; begins anew when all of them were used."""
        while len(self.fresh) < count:
            self.residue = self.residue % (SPACING - 1) + 1
            more = self.random.permutation(self.rows).astype(numpy.int64) * SPACING + self.residue
            self.fresh = numpy.concatenate([self.fresh, more])
        taken, self.fresh = self.fresh[:count], self.fresh[count:]
        return taken
