"""The progress of a project's run: rows by source and view, stages, and how far the tables of views are behind."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.connect.proto")
pytest.importorskip("yaml")
pytest.importorskip("deltalake")

from test_publishing import Published

from deltic.cli import main
from deltic.pipeline import Progress
from deltic.pipeline.metrics import Metrics
from deltic.projects.progress import RunProgress
from prometheus import samples

STAGES = ("flows", "read", "tick", "sinks")


def taken(rows: int, files: dict[str, tuple[str, ...]]) -> Any:
    return SimpleNamespace(contents={}, changes={"t": pa.table({"k": [1] * rows})}, files=files)


def test_a_level_with_a_tick_is_reported_and_the_tables_lag_behind_until_they_are_written(tmp_path: Path) -> None:
    published, reports = Published(tmp_path), list[Progress]()
    published.plan.dataset.properties.clear()
    progress = RunProgress(published.session, published.publisher, [published.plan], reports.append)

    def level(*rows: tuple[int, int], publish: bool) -> None:
        progress.begin()
        if rows:
            published.tick(*rows)
            progress.has_read(taken(len(rows), {"t": ("a.json",)}))
            progress.ticked()
        if publish:
            published.publish()
            progress.wrote("v")
        for stage in STAGES:
            progress.clock.lap(stage)
        progress.ended()

    level((1, 1), (2, 2), (2, 3), publish=False)
    first = published.session.epoch
    assert (reports[0].epoch, reports[0].rows_in, reports[0].rows_out) == (first, {"t": 3}, {"v": 2})
    assert reports[0].files == {"t": ("a.json",)} and tuple(reports[0].seconds) == STAGES
    assert reports[0].sink_lag == {"v": first}, "the table has nothing yet"
    level((1, 5), publish=True)
    assert reports[1].rows_out == {"v": 2} and reports[1].sink_lag == {"v": 0}
    level(publish=True)
    assert len(reports) == 2, "a level without a tick"
    again = RunProgress(published.session, published.publisher, [published.plan], reports.append)  # of another run
    again.begin()
    published.tick((4, 0))
    published.tick((4, 1))
    again.ended()
    assert reports[2].sink_lag == {"v": 2}
    assert progress.summary.json()["rows_in"] == {"t": 4} and progress.summary.ticks == 2


def test_an_address_that_is_none_ends_the_command_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipelines", "run", "--spec", str(tmp_path / "none.yml"), "--metrics", "nowhere"])
    assert ended.value.code == 2
    assert not [thread for thread in threading.enumerate() if thread.name == "deltic-metrics"]


def watch(monkeypatch: pytest.MonkeyPatch, stderr: Any) -> list[dict[tuple[str, str], float]]:
    """What a scrape after each tick of a command reads; stderr: gives what the command has written there."""
    read: list[dict[tuple[str, str], float]] = []
    added, said = Metrics.add, list[str]()

    def seen(metrics: Metrics, progress: Progress) -> None:
        added(metrics, progress)
        said.extend(stderr().splitlines())
        url = [line for line in said if line.startswith("metrics at")][-1].split()[2]
        with urllib.request.urlopen(url) as answer:
            read.append(samples(answer.read().decode()))

    monkeypatch.setattr(Metrics, "add", seen)
    return read


@pytest.mark.slow
@pytest.mark.spark
def test_the_command_reports_each_tick(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from test_projects_on_spark import customers, orders  # noqa: PLC0415  its tests are slow

    from benchmarks.connect import connect_server  # noqa: PLC0415  needs the extra
    from pipelines_projects import shop  # noqa: PLC0415

    spec, out = shop(tmp_path), list[str]()
    orders(tmp_path, 0, 20)
    customers(tmp_path, ["ann", "bob", "bob", "cleo"])
    (tmp_path / "server").mkdir()

    def stderr() -> str:
        captured = capfd.readouterr()
        out.extend(captured.out.splitlines())
        return captured.err

    read = watch(monkeypatch, stderr)

    def events(remote: str) -> list[dict[str, Any]]:
        assert main(["pipelines", "run", "--spec", str(spec), "--remote", remote, "--json", "--metrics", "0"]) == 0
        stderr()
        found = [json.loads(line) for line in out]
        out.clear()
        return found

    with connect_server(tmp_path / "server") as remote:
        start, *ticks, end = events(remote)
        assert start["event"] == "start" and start["epoch"] is None and len(start["datasets"]) == 13
        assert {tick["event"] for tick in ticks} == {"tick"} and end["event"] == "end" and end["ticks"] == len(ticks)
        assert end["rows_in"]["raw_orders"] == 20 and ticks[0]["rows_out"]["daily_orders"] == 3
        assert set(ticks[0]["seconds"]) == set(STAGES) and set(ticks[-1]["sink_lag"].values()) == {0}
        assert read[-1]["deltic_rows_in_total", "raw_orders"] == 20 and read[-1]["deltic_epoch", ""] == ticks[-1]["epoch"]
        assert read[-1]["deltic_sink_lag_epochs", "daily_orders"] == 0 and read[-1]["deltic_stage_seconds_total", "flows"] > 0
        orders(tmp_path, 20, 4)
        start, *ticks, end = events(remote)
        assert start["epoch"] > 0 and end["rows_in"]["raw_orders"] == 4 and len(ticks[0]["files"]["raw_orders"]) == 1
