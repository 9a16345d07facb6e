"""Sinks of a pipeline in memory: each change once, whoever commits, and however often between two ticks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltic.connectors.files.sinks import ChangesSink
from deltic.pipeline.held_changes import HeldChanges
from shop import SPEND_OUT, TOP_OUT, Row, Shop, views

TABLE = "CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, amount INT, PRIMARY KEY (id));\n"
SHARE = "CREATE {}MATERIALIZED VIEW {} AS SELECT customer, {} AS share FROM orders;\n"
EXACT, CAN_FAIL = "amount + 1", "100 % amount"


def shares(share: str, replace: str = "") -> str:
    return SHARE.format(replace, "spend", share) + SHARE.format(replace, "top", share)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def row(id: int, customer: int = 1, amount: int = 10) -> dict[str, Any]:
    return {"id": id, "customer": customer, "amount": amount}


def by_epoch(shop: Shop) -> list[tuple[int, Counter[Row]]]:
    """The changes that the sink has received, file by file."""
    return [
        (int(path.stem[-12:]), Counter({(one["customer"], one["share"]): one["_weight"] for one in pq.read_table(path).to_pylist()}))
        for path in shop.delivered()
    ]


@pytest.mark.parametrize("share", [EXACT, CAN_FAIL])
def test_commits_between_two_ticks_are_delivered_one_by_one(shop: Shop, share: str) -> None:
    with shop.pipeline(TABLE + shares(share) + SPEND_OUT + TOP_OUT, state=None) as pipeline:
        session = pipeline.session
        first = session.epoch + 1
        for id in (3, 7, 9):
            session.insert("orders", [row(id, id, id)])
        session.delete("orders", [3])
        pipeline.run_once()
        value = {"amount + 1": lambda id: id + 1, "100 % amount": lambda id: 100 % id}[share]
        expected = [{(3, value(3)): 1}, {(7, value(7)): 1}, {(9, value(9)): 1}, {(3, value(3)): -1}]
        assert by_epoch(shop) == [(first + i, Counter(rows)) for i, rows in enumerate(expected)]
        assert shop.snapshot() == views(pipeline)["top"] == shop.summed()
        before = shop.delivered()
        pipeline.run_once()
        assert shop.delivered() == before
        assert pipeline._delivery.lag == {"spend_out": 0, "top_out": 0}


def test_commits_of_another_thread_during_a_delivery(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.pipeline(TABLE + shares(EXACT) + SPEND_OUT + TOP_OUT, state=None) as pipeline:
        deliver = ChangesSink.deliver

        def commit() -> None:
            for id in (101, 102):
                pipeline.session.insert("orders", [row(id, id)])

        def beside(self: ChangesSink, epoch: int, rows: pa.Table) -> None:
            monkeypatch.setattr(ChangesSink, "deliver", deliver)
            thread = Thread(target=commit)
            thread.start()
            thread.join()
            deliver(self, epoch, rows)

        monkeypatch.setattr(ChangesSink, "deliver", beside)
        pipeline.tick({"orders": [{**row(1), "_op": "insert"}]})
        assert ChangesSink.deliver is deliver and shop.snapshot() == views(pipeline)["top"]
        pipeline.run_once()
        assert [dict(rows) for _, rows in by_epoch(shop)] == [{(id, 11): 1} for id in (1, 101, 102)]
        assert shop.snapshot() == views(pipeline)["top"]


def test_sinks_of_a_failing_view_wait_for_as_many_epochs_as_it_fails(shop: Shop) -> None:
    with shop.pipeline(TABLE + shares(CAN_FAIL) + SPEND_OUT + TOP_OUT, state=None) as pipeline:
        session = pipeline.session
        for id in (1, 2):
            pipeline.tick({"orders": [{**row(id, id, 30), "_op": "insert"}]})
        before = shop.delivered(), shop.snapshot()
        for id in (3, 4, 5):
            session.insert("orders", [row(id, id, 0 if id == 3 else 40)])
            pipeline.run_once()
            session.delete("orders", [{4: 1}.get(id, id)] if id != 3 else [2])
            pipeline.run_once()
            assert (shop.delivered(), shop.snapshot()) == before
            assert pipeline._delivery.lag["spend_out"] > 0
        session.delete("orders", [3])
        pipeline.run_once()
        assert by_epoch(shop)[len(before[0]) :] == [(session.epoch, Counter({(1, 10): -1, (2, 10): -1, (4, 20): 1}))]
        assert shop.snapshot() == views(pipeline)["top"] == Counter({(4, 20): 1})


def test_a_view_that_fails_from_the_beginning(shop: Shop) -> None:
    from_nothing = "CREATE VIEW numbers AS SELECT 0 AS amount, 1 AS customer UNION ALL SELECT amount, customer FROM orders;\n"
    with shop.pipeline(
        TABLE + from_nothing + shares(CAN_FAIL).replace("FROM orders", "FROM numbers") + SPEND_OUT + TOP_OUT, state=None
    ) as pipeline:
        pipeline.session.insert("orders", [row(1)])
        pipeline.run_once()
        assert pipeline.session.failing == {"spend": 1, "top": 1} and shop.delivered() == []
        pipeline.session.sql(from_nothing.replace("CREATE", "CREATE OR REPLACE").replace("0 AS amount", "30 AS amount"))
        pipeline.run_once()
        assert shop.summed() == shop.snapshot() == views(pipeline)["spend"] == Counter({(1, 10): 1, (1, 0): 1})


def test_changes_that_wait_for_a_failing_view_need_no_more_memory_than_the_view(shop: Shop) -> None:
    with shop.pipeline(TABLE + shares(CAN_FAIL) + SPEND_OUT, state=None) as pipeline:
        session = pipeline.session
        session.insert("orders", [row(1, 1, 0), *(row(id, id) for id in range(2, 10))])
        (held,) = pipeline._delivery._held.values()
        for number in range(100):
            session.upsert("orders", [row(2 + number % 8, 2 + number % 8, 11 + number)])
            assert sum(rows.num_rows for rows in held._last.waiting) <= 4 * 8 and held._changes == []
        session.delete("orders", [1])
        pipeline.run_once()
        assert [(epoch, sum(rows.values())) for epoch, rows in by_epoch(shop)] == [(session.epoch, 8)]
        assert shop.summed() == views(pipeline)["spend"] and held._last.waiting == ()


@pytest.mark.parametrize("ticks", [False, True])
@pytest.mark.parametrize("after", ["amount + 2", CAN_FAIL, "CAST(customer AS INT)"], ids=["exact", "can fail", "as another view"])
def test_a_view_that_is_redefined_is_delivered_as_a_difference(shop: Shop, after: str, ticks: bool) -> None:
    script = TABLE + shares(EXACT) + SHARE.format("", "same", "CAST(customer AS INT)") + SPEND_OUT + TOP_OUT
    with shop.pipeline(script, state=None) as pipeline:
        session = pipeline.session
        session.insert("orders", [row(1), row(2, 2, 40)])
        for share in (after, EXACT, after):
            session.insert("orders", [row(len(shop.delivered()) + 10, 3, 70)])
            if ticks:
                pipeline.run_once()
            session.sql(shares(share, "OR REPLACE "))
            if ticks:
                pipeline.run_once()
                assert shop.summed() == shop.snapshot() == views(pipeline)["spend"]
            session.insert("orders", [row(len(shop.delivered()) + 100, 3, 60)])
            pipeline.run_once()
            assert shop.summed() == shop.snapshot() == views(pipeline)["spend"]
        before = shop.delivered()
        session.sql(shares(after, "OR REPLACE "))
        pipeline.run_once()
        assert shop.delivered() == before


def test_changes_that_all_sinks_have_are_released(shop: Shop) -> None:
    with shop.pipeline(TABLE + shares(EXACT) + SPEND_OUT + TOP_OUT, state=None) as pipeline:
        for id in range(5):
            pipeline.session.insert("orders", [row(id)])
        (held,) = (one for one in pipeline._delivery._held.values() if one._sums)
        assert len(held._changes) == 5
        pipeline.run_once()
        assert held._changes == []


def test_an_interrupted_commit_is_delivered_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.pipeline(TABLE + shares(EXACT) + SPEND_OUT + TOP_OUT, state=None) as pipeline:
        follow, calls = HeldChanges.follow, 0

        def interrupted(self: HeldChanges, *commit: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 3:  # the first two are for the commit before
                raise KeyboardInterrupt
            last = self._last
            follow(self, *commit)
            if calls == 6:
                self._last = last  # as if the signal came between two steps
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(HeldChanges, "follow", interrupted)
            for id in (1, 2):
                with pytest.raises(KeyboardInterrupt):
                    pipeline.session.insert("orders", [row(id, id)])
            pipeline.session.insert("orders", [row(3, 3)])
        pipeline.run_once()
        assert [dict(rows) for _, rows in by_epoch(shop)] == [{(id, 11): 1} for id in (1, 2, 3)]
        assert shop.snapshot() == views(pipeline)["top"]
