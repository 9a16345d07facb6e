"""The benchmark of many views compares each of them with DuckDB, and says when an answer is wrong."""

from __future__ import annotations

import numpy as np

from benchmarks.many_views import KINDS, Shop, agrees, measured, queries, run, session_over


def test_every_kind_of_view_gives_what_the_peer_computes() -> None:
    figures = run(views=len(KINDS) + 3, orders=2_000, ticks=2)
    assert figures["correct"] and set(figures["cases"]) == {"10 changes", "1000 changes"}
    assert all(case["correct"] and case["views_changed"] > 0 for case in figures["cases"].values())
    assert figures["params"] == {"views": 13, "orders": 2_000, "ticks": 2}


def test_the_views_differ() -> None:
    assert len(set(queries(200).values())) == 200


def test_a_peer_with_another_row_is_noticed() -> None:
    shop = Shop(500, np.random.default_rng(3))
    session, peer, _ = session_over(shop, len(KINDS))
    assert agrees(session, peer, len(KINDS))
    measured(session, peer, shop, 10, 1)
    peer.database.execute("UPDATE orders SET amount = amount + 1")
    assert not agrees(session, peer, len(KINDS))
