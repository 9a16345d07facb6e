"""A stop ends one run: the one that goes on, or the next one. Close ends all."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

import deltic
from deltic.errors import ClosedError
from deltic.pipeline import Pipeline

SCRIPT = """
CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY) USING json OPTIONS (path 'in');
CREATE MATERIALIZED VIEW ids AS SELECT id FROM items;
"""


def test_a_stop_at_the_end_of_a_run_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    with Pipeline(SCRIPT, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        note, notes = pipeline._note, list[None]()

        def stopping() -> None:
            notes.append(note())
            if len(notes) == 2:  # the last act of the run
                pipeline.stop()

        monkeypatch.setattr(pipeline, "_note", stopping)
        assert pipeline.run_once().stopped and len(notes) == 2
        monkeypatch.undo()
        is_set = pipeline._stopping.is_set

        def late() -> bool:
            """Whether a stop came before; then one comes, after the last look of the run."""
            came = is_set()
            if not came:
                looks.append(None)
                if len(looks) == 2:
                    pipeline.stop()
            return came

        looks = list[None]()
        monkeypatch.setattr("deltic.reentrant.ReentrantEvent.is_set", lambda self: late())
        assert not pipeline.run_once().stopped and len(looks) == 2
        monkeypatch.undo()
        (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
        summary = pipeline.run_once()
        assert summary.stopped and not summary.ticks
        assert pipeline.run_once().ticks == 1


CLOSED_CALLS: dict[str, Callable[[Pipeline], object]] = {
    "tick": lambda pipeline: pipeline.tick(),
    "tick with changes": lambda pipeline: pipeline.tick({"t": [{"a": 1, "_weight": 1}]}),
    "run_once": lambda pipeline: pipeline.run_once(),
    "follow": lambda pipeline: pipeline.follow(60),
}


@pytest.mark.parametrize("call", CLOSED_CALLS.values(), ids=CLOSED_CALLS)
@pytest.mark.parametrize("over", [True, False], ids=["over a session", "with a session of its own"])
def test_a_closed_pipeline_does_nothing(tmp_path: Path, over: bool, call: Callable[[Pipeline], object]) -> None:
    (tmp_path / "in").mkdir()
    script = SCRIPT + "CREATE TABLE t (a INT);"
    with deltic.Session(clock="wall") as session:
        if over:
            session.sql(script)
        pipeline = Pipeline.over(session, base=tmp_path) if over else Pipeline(script, base=tmp_path)
        (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
        pipeline.close()
        epoch = pipeline.session.epoch
        with pytest.raises(ClosedError, match="the pipeline is closed"):
            call(pipeline)
        assert pipeline.session.epoch == epoch
        pipeline.close()


@pytest.mark.parametrize("over", [True, False], ids=["over a session", "with a session of its own"])
def test_close_ends_a_run_of_another_thread(tmp_path: Path, over: bool) -> None:
    (tmp_path / "in").mkdir()
    with deltic.Session(clock="wall") as session, ThreadPoolExecutor(1) as threads:
        if over:
            session.sql(SCRIPT)
        pipeline = Pipeline.over(session, base=tmp_path) if over else Pipeline(SCRIPT, base=tmp_path)
        (tmp_path / "in" / "a.json").write_text('{"id": 1}\n')
        ticked = Event()
        run = threads.submit(pipeline.follow, 600, lambda progress: ticked.set())
        try:
            assert ticked.wait(60)
            pipeline.close()
            summary = run.result(60)
        finally:
            pipeline.stop()
        assert summary.stopped and summary.ticks == 1


def test_a_run_ends_if_its_listener_closes_the_pipeline(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / f"{name}.json").write_text(json.dumps({"id": ord(name)}))
    with deltic.Session(clock="wall") as session:
        session.sql(SCRIPT)
        pipeline = Pipeline.over(session, base=tmp_path, rows_per_tick=1)
        summary = pipeline.follow(60, lambda progress: pipeline.close())
        assert (summary.stopped, summary.ticks, len(session.view("ids").rows())) == (True, 1, 1)
