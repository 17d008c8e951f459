"""Ctrl-C ends whatever runs, and the interpreter lives."""

from __future__ import annotations

import signal
import threading
import time

import pytest

import mainstem

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000) a(x), generate_series(1, 1000000) b(y) WHERE x % 7 < y % 5"


def interrupted(work):
    """How long ``work`` goes on after Ctrl-C."""
    at = []

    def press():
        time.sleep(0.3)
        at.append(time.perf_counter())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        work()
    thread.join()
    return time.perf_counter() - at[0]


def test_statements_end(t):
    t.execute("CREATE TABLE big AS SELECT n FROM generate_series(1, 200000) n")
    works = [
        lambda: t.execute(ENDLESS).fetchone(),
        lambda: t.execute(ENDLESS).arrow(),
        lambda: t.execute("INSERT INTO big SELECT a.n FROM big a, big b WHERE a.n % 7 < b.n % 5"),
        lambda: t.executemany("INSERT INTO t (k) VALUES (?)", ((n,) for n in iter(int, 1))),
        lambda: t.executemany("UPDATE t SET v = 'x' WHERE k = ?", ((n,) for n in iter(int, 1))),
    ]
    for at, work in enumerate(works):
        assert interrupted(work) < 1.5, at
        assert t.execute("SELECT count(*) FROM t").fetchone() == (3,)
    assert t.execute("SELECT count(*) FROM big").fetchone() == (200000,)


def test_another_thread_interrupts(t):
    timer = threading.Timer(0.3, t.interrupt)
    timer.start()
    with pytest.raises(mainstem.errors.QueryCanceled):
        t.execute(ENDLESS).fetchone()
    timer.join()
    assert t.execute("SELECT 1").fetchone() == (1,)
