"""64 threads, 10,000 statements each: on a connection of each thread's own, and on one connection that all share.

    python threads.py [--threads 64] [--statements 10000]
"""

from __future__ import annotations

import argparse
import threading
import time

import mainstem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--statements", type=int, default=10_000)
    arguments = parser.parse_args()
    threads, statements = arguments.threads, arguments.statements
    for shared in (False, True):
        con = mainstem.connect()
        con.execute("CREATE TABLE t (thread INT, k INT, v TEXT, PRIMARY KEY (thread, k))")
        failures: list[BaseException] = []

        def work(thread: int, con: mainstem.Connection) -> None:
            try:
                mine = con if shared else con.session()
                for k in range(0, statements, 4):
                    mine.execute("INSERT INTO t VALUES (?, ?, ?)", (thread, k, f"{thread} {k}"))
                    assert mine.execute("SELECT v FROM t WHERE thread = ? AND k = ?", (thread, k)).fetchone() == (
                        f"{thread} {k}",
                    )
                    mine.execute("UPDATE t SET v = 'new' WHERE thread = ? AND k = ?", (thread, k))
                    rows = mine.execute("SELECT k, v FROM t WHERE thread = ? ORDER BY k DESC LIMIT 2", (thread,)).fetchall()
                    assert rows[0] == (k, "new"), rows
            except BaseException as error:
                failures.append(error)

        began = time.perf_counter()
        running = [threading.Thread(target=work, args=(thread, con)) for thread in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        took = time.perf_counter() - began
        if failures:
            raise failures[0]
        expected = threads * len(range(0, statements, 4))
        assert con.execute("SELECT count(*), count(DISTINCT thread) FROM t WHERE v = 'new'").fetchone() == (expected, threads)
        con.close()
        which = "one connection that all share" if shared else "a connection each"
        print(f"{threads} threads, {statements} statements each, {which}: {threads * statements / took:,.0f} a second", flush=True)


if __name__ == "__main__":
    main()
