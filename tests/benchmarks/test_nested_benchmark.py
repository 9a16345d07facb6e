"""The benchmark of nested columns compares every tick with DuckDB, and says when an answer is wrong."""

from __future__ import annotations

import numpy as np

import deltic
from benchmarks.nested import SCRIPT, Peer, measured, rows_of


def session_over(rows: object) -> deltic.Session:
    session = deltic.Session()
    session.sql(SCRIPT)
    with session.transaction() as tx:
        tx.insert("t", rows)
    return session


def test_ticks_give_what_the_peer_computes_again() -> None:
    rng = np.random.default_rng(3)
    rows = rows_of(np.arange(200), rng)
    changes = [rows_of(rng.choice(200, 20, replace=False), rng) for _ in range(4)]
    assert measured(session_over(rows), Peer(rows), changes)["correct"]


def test_a_peer_with_another_row_is_noticed() -> None:
    rng = np.random.default_rng(3)
    rows = rows_of(np.arange(50), rng)
    peer = Peer(rows)
    peer.database.execute("INSERT INTO t VALUES (1000, {'a': 1, 'b': 'x'}, [5000])")
    assert not measured(session_over(rows), peer, [rows_of(np.array([7]), rng)])["correct"]
