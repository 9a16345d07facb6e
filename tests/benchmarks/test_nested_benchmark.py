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
    assert measured(session_over(rows), Peer(rows), 200, 4, 20, rng)["correct"]


def test_a_peer_with_another_row_is_noticed() -> None:
    rng = np.random.default_rng(3)
    rows = rows_of(np.arange(50), rng)
    peer = Peer(rows)
    peer.database.execute("INSERT INTO t VALUES (1000, {'a': 1, 'b': 'x'}, [5000])")
    assert not measured(session_over(rows), peer, 50, 1, 1, rng)["correct"]
