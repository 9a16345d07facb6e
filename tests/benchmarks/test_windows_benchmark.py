"""The benchmark of window functions compares its views with DuckDB, and says when an answer is wrong."""

from __future__ import annotations

import pytest

from benchmarks import windows
from benchmarks.windows import CASES, Feed, Peer, measured


@pytest.mark.parametrize("case", CASES)
def test_views_have_the_rows_that_the_peer_computes(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "RECENT", 40)
    assert measured(case, 100, 2, (1, 10), True)["correct"]


def test_a_peer_with_another_row_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "RECENT", 40)
    apply = Peer.apply
    monkeypatch.setattr(Peer, "apply", lambda self, upserts, deleted: apply(self, Feed(500).readings(upserts["id"].to_numpy()), []))
    assert not measured("lag of one", 100, 2, (10,), True)["correct"]
