"""Pipelines isolate errors: the sinks of a view with errors wait, others go on, and later receive the difference once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from deltic.cli import main
from deltic.errors import EvaluationError, FailedView
from deltic.storage.manifest import Manifest
from deltic.storage.reader import StateReader
from shop import Shop, views

SHARE = """
CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL, amount INT, PRIMARY KEY (id))
USING csv OPTIONS (path 'in/orders', header 'true', op_column '_op');
CREATE MATERIALIZED VIEW spend AS SELECT id, 100 % amount AS share FROM orders;
CREATE MATERIALIZED VIEW top AS SELECT id, 100 % amount AS share FROM orders;
CREATE MATERIALIZED VIEW counted AS SELECT COUNT(*) AS n FROM orders;
CREATE SINK spend_out FROM spend USING parquet OPTIONS (path 'made/spend', mode 'changes');
CREATE SINK top_out FROM top USING json OPTIONS (path 'made/top', mode 'snapshot');
CREATE SINK counted_out FROM counted USING parquet OPTIONS (path 'made/counted', mode 'changes');
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.mark.parametrize("restarts", [False, True])
def test_sinks_of_a_failing_view_wait_and_receive_the_difference(shop: Shop, restarts: bool) -> None:
    shop.orders("a.csv", "insert,1,1,30", "insert,2,1,40")
    pipeline = shop.pipeline(SHARE)
    pipeline.run_once()
    before = Counter({(1, 10): 1, (2, 20): 1})
    assert shop.summed() == shop.snapshot() == before
    for number, lines in enumerate(
        [("insert,3,1,0",), ("insert,4,1,60", "delete,1,,"), ("insert,5,1,0", "update,4,1,70"), ("delete,3,,",)]
    ):
        shop.orders(f"b{number}.csv", *lines)
        summary = pipeline.run_once()
        assert summary.ticks == 1 and pipeline.session.failing == {"spend": 1 + (number == 2), "top": 1 + (number == 2)}
        assert shop.summed() == shop.snapshot() == before
        assert sum(n * count for (n,), count in shop.summed("counted").items()) == pipeline.session.view("counted").rows()[0]["n"]
        with pytest.raises(FailedView):
            pipeline.session.view("spend").rows()
        if restarts:
            pipeline.close()
            pipeline = shop.pipeline(SHARE)
    delivered = len(shop.delivered())
    shop.orders("c.csv", "update,5,1,3")
    pipeline.run_once()
    after = Counter({(2, 20): 1, (4, 30): 1, (5, 1): 1})
    assert views(pipeline)["spend"] == shop.summed() == shop.snapshot() == after
    assert len(shop.delivered()) == delivered + 1
    shop.orders("d.csv", "delete,5,,")
    pipeline.run_once()
    pipeline.close()
    assert shop.summed() == shop.snapshot() == Counter({(2, 20): 1, (4, 30): 1})


def test_a_view_that_fails_from_the_beginning(shop: Shop) -> None:
    shop.orders("a.csv", "insert,1,1,0", "insert,2,1,40")
    with shop.pipeline(SHARE) as pipeline:
        pipeline.run_once()
        assert shop.delivered() == [] and pipeline.session.failing == {"spend": 1, "top": 1}
    shop.orders("b.csv", "insert,3,1,40")
    with shop.pipeline(SHARE) as pipeline:
        pipeline.run_once()
        shop.orders("c.csv", "update,1,1,30")
        pipeline.run_once()
        assert shop.summed() == shop.snapshot() == views(pipeline)["spend"] == Counter({(1, 10): 1, (2, 20): 1, (3, 20): 1})
        assert len(shop.delivered()) == 1


def test_idle_runs_commit_nothing_while_a_sink_waits(shop: Shop) -> None:
    shop.orders("a.csv", "insert,1,1,30")
    with shop.pipeline(SHARE) as pipeline:
        pipeline.run_once()
        shop.orders("b.csv", "insert,2,1,0")
        for number in range(12):
            shop.orders(f"c{number}.csv", f"insert,{10 + number},1,7")
        pipeline.run_once()
        epoch = pipeline.session.epoch
        for _ in range(3):
            pipeline.run_once()
        assert pipeline.session.epoch <= epoch + 1
        shop.orders("d.csv", "delete,2,,")
        pipeline.run_once()
        assert shop.summed() == views(pipeline)["spend"]


def test_rollback_stops_the_pipeline(shop: Shop) -> None:
    shop.orders("a.csv", "insert,1,1,0")
    with shop.pipeline(SHARE, on_view_error="rollback") as pipeline:
        with pytest.raises(EvaluationError, match="division by zero"):
            pipeline.run_once()
        assert pipeline.session.view("counted").rows() == [{"n": 0}]


def test_the_command_reports_failing_views(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.orders("a.csv", "insert,1,1,0")
    script = shop.folder / "shop.sql"
    script.write_text(SHARE)
    run = ["run", str(script), "--engine", "embedded"]
    assert main([*run, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line).get("failing") for line in lines] == [None, {"spend": 1, "top": 1}, {"spend": 1, "top": 1}]
    assert json.loads(lines[1])["sink_lag"] == {"spend_out": 1, "top_out": 1, "counted_out": 0}
    shop.orders("b.csv", "insert,2,1,5")
    assert main(run) == 0
    assert "; views with errors: spend 1, top 1" in capsys.readouterr().err
    assert main(["state", "show", str(shop.folder / "shop.state")]) == 0
    assert "view spend has 1 error\n" in capsys.readouterr().out


@pytest.mark.parametrize("after", ["100 / (amount - 1)", "amount"], ids=["can fail", "exact"])
def test_a_new_sink_of_a_failing_view_that_is_then_redefined_receives_the_whole_view(shop: Shop, after: str) -> None:
    before, after = SHARE.replace("100 % amount", "100 / amount"), SHARE.replace("100 % amount", f"CAST({after} AS DOUBLE)")
    shop.orders("a.csv", "insert,1,1,0", "insert,2,1,51")
    with shop.pipeline(before[: before.index("CREATE SINK")]) as pipeline:
        pipeline.run_once()
    with shop.pipeline(before) as pipeline:
        pipeline.run_once()
        assert pipeline.session.failing == {"spend": 1, "top": 1} and shop.delivered() == []
    shop.run(after)
    with shop.pipeline(after) as pipeline:
        assert sum(shop.summed().values()) == 2 and shop.summed() == shop.snapshot() == views(pipeline)["spend"]


@pytest.mark.parametrize("after", ["7 % amount", "amount"], ids=["can fail", "exact"])
def test_a_failing_view_that_is_redefined_is_delivered_as_the_difference_from_what_the_sink_has(shop: Shop, after: str) -> None:
    shop.orders("a.csv", "insert,1,1,30")
    with shop.pipeline(SHARE) as pipeline:
        pipeline.run_once()
        shop.orders("b.csv", "insert,2,1,0")
        pipeline.run_once()
        assert pipeline.session.failing == {"spend": 1, "top": 1} and shop.summed() == Counter({(1, 10): 1})
        shop.orders("c.csv", "update,2,1,9")
    for share in (after, "8 + amount"):  # the first run ends before its delivery if the view has errors
        shop.run(SHARE.replace("100 % amount", share))
    with shop.pipeline(SHARE.replace("100 % amount", "8 + amount")) as pipeline:
        assert shop.summed() == shop.snapshot() == views(pipeline)["spend"] == Counter({(1, 38): 1, (2, 17): 1})


def test_a_tick_looks_up_only_its_own_definitions_while_a_sink_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up, read = list[int](), StateReader.manifest_at

    def manifest_at(self: StateReader, epoch: int) -> Manifest:
        looked_up.append(epoch)
        return read(self, epoch)

    monkeypatch.setattr(StateReader, "manifest_at", manifest_at)
    shop.orders("a.csv", "insert,1,1,0")
    with shop.pipeline(SHARE) as pipeline:
        for number in range(5):
            shop.orders(f"b{number}.csv", f"insert,{10 + number},1,7")
            pipeline.run_once()
            assert pipeline.session.failing == {"spend": 1, "top": 1}
        assert looked_up == []
        pipeline.session.insert("orders", [{"id": 2, "customer": 1, "amount": 5}])
        pipeline.session.insert("orders", [{"id": 3, "customer": 1, "amount": 5}])
        note, last = pipeline.session.epoch - 2, pipeline.session.epoch  # an idle run has noted the offsets
        pipeline.run_once()
        assert Counter(looked_up) == dict.fromkeys(range(note, last + 1), 3), "once for each sink"


@pytest.mark.parametrize("retain", [2, 100])
def test_a_tick_opens_only_its_own_epochs_while_a_sink_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch, retain: int) -> None:
    opened, opens = list[int | None](), StateReader.open.__func__

    def counted(cls: type[StateReader], root: str, epoch: int | None = None, *arguments: Any, **options: Any) -> StateReader:
        opened.append(epoch)
        return opens(cls, root, epoch, *arguments, **options)

    monkeypatch.setattr(StateReader, "open", classmethod(counted))
    shop.orders("a.csv", "insert,1,1,30")
    with shop.pipeline(SHARE, retain=retain) as pipeline:
        pipeline.run_once()
        shop.orders("b.csv", "insert,2,1,0")
        pipeline.run_once()
        for number in range(6):
            before = pipeline.session.epoch
            for id in (100 + number, 200 + number):
                pipeline.session.insert("orders", [{"id": id, "customer": 1, "amount": 5}])
            opened.clear()
            shop.orders(f"c{number}.csv", f"insert,{10 + number},1,7")
            pipeline.run_once()
            epochs = Counter(epoch for epoch in opened if epoch is not None)
            assert min(epochs) >= before and max(epochs.values()) <= 3, "once for each sink"
            pipeline.run_once()
        shop.orders("d.csv", "delete,2,,")
        pipeline.run_once()
        assert shop.summed() == shop.snapshot() == views(pipeline)["spend"] and len(views(pipeline)["spend"]) == 19
    with shop.pipeline(SHARE, retain=retain) as pipeline:
        pipeline.run_once()
        assert shop.summed() == shop.snapshot() == views(pipeline)["spend"]
