"""A stop ends one run: the one that goes on, or the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

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
