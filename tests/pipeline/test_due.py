"""Rows of a pipeline that wait for their time appear and disappear by the wall clock, without new files and without idle ticks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest

import deltic
from deltic.pipeline import Pipeline, Progress
from deltic.session.clock import microseconds
from waiting import wait_until

SCRIPT = """
    CREATE TABLE offers (id BIGINT PRIMARY KEY, since TIMESTAMP NOT NULL, until TIMESTAMP NOT NULL) USING json OPTIONS (path 'in');
    CREATE MATERIALIZED VIEW open AS SELECT id FROM offers WHERE since <= now() AND now() < until;
    CREATE SINK changes FROM open USING json OPTIONS (path 'out', mode 'changes');
"""
HOUR = timedelta(hours=1)
FAR = datetime(2100, 1, 1, tzinfo=UTC)


def write(folder: Path, name: str, *offers: tuple[int, datetime, datetime]) -> None:
    (folder / "in").mkdir(exist_ok=True)
    lines = [f'{{"id": {id}, "since": "{since.isoformat()}", "until": "{until.isoformat()}"}}\n' for id, since, until in offers]
    (folder / "in" / name).write_text("".join(lines))


def pipeline(folder: Path) -> Pipeline:
    return Pipeline(SCRIPT, state=str(folder / "state"), base=folder)


def ids(pipeline: Pipeline) -> list[int]:
    return sorted(row["id"] for row in pipeline.session.view("open").rows())


class Wall:
    """A wall clock that shows the same time until it is set."""

    def __init__(self) -> None:
        self.now = datetime(2024, 5, 1, tzinfo=UTC)

    def us(self) -> int:
        return microseconds(self.now)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    clock = Wall()
    monkeypatch.setattr("deltic.session.clock.wall_us", clock.us)
    return clock


class Followed:
    """A pipeline that follows its sources in a thread of its own."""

    def __init__(self, pipeline: Pipeline, poll_seconds: float) -> None:
        self.pipeline, self.reports = pipeline, list[Progress]()
        self._thread = Thread(target=lambda: pipeline.follow(poll_seconds, self.reports.append), daemon=True)

    def __enter__(self) -> Followed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pipeline.stop()
        self._thread.join()


def test_rows_that_come_due_make_a_tick_without_new_files(tmp_path: Path, wall: Wall) -> None:
    comes, goes = wall.now + HOUR, wall.now + 2 * HOUR
    write(tmp_path, "1.json", (1, comes, goes), (2, wall.now - HOUR, FAR))
    with pipeline(tmp_path) as running:
        with Followed(running, 0.01) as followed:
            wait_until(lambda: running.session.next_due == comes)
            wall.now = comes
            wait_until(lambda: ids(running) == [1, 2])
            wall.now = goes + HOUR
            wait_until(lambda: ids(running) == [2])
        assert [bool(progress.files) for progress in followed.reports] == [True, False, False]
        assert running.session.next_due == FAR and running.session.now == wall.now
    files = sorted((tmp_path / "out").glob("changes-*"))
    assert len(files) == 3 and files[-1].read_text().count('"_weight":-1') == 1


def test_no_tick_happens_before_a_row_is_due(tmp_path: Path, wall: Wall) -> None:
    write(tmp_path, "1.json", (1, wall.now + HOUR, FAR))
    with pipeline(tmp_path) as running:
        running.run_once()
        epoch, looked = running.session.epoch, list[int]()
        tick = running.tick
        running.tick = lambda: looked.append(1) or tick()  # type: ignore[method-assign, assignment, func-returns-value]
        with Followed(running, 0.01) as followed:
            wall.now += HOUR - timedelta(microseconds=1)
            wait_until(lambda: len(looked) > 5)
        assert running.session.epoch == epoch and not followed.reports


def test_a_follower_wakes_when_rows_come_due_not_at_the_next_poll(tmp_path: Path) -> None:
    comes = datetime.now(UTC) + timedelta(seconds=1)
    write(tmp_path, "1.json", (1, comes, FAR))
    with pipeline(tmp_path) as running, Followed(running, 600.0):
        wait_until(lambda: ids(running) == [1])
        assert running.session.now is not None and running.session.now >= comes


def test_a_run_begins_with_rows_that_came_due_since_the_last(tmp_path: Path, wall: Wall) -> None:
    write(tmp_path, "1.json", (1, wall.now - HOUR, wall.now + HOUR), (2, wall.now - HOUR, FAR))
    with pipeline(tmp_path) as running:
        running.run_once()
        assert ids(running) == [1, 2]
        wall.now += 2 * HOUR
        summary = running.run_once()
        assert summary.ticks == 1 and summary.rows_out == {"open": 1} and ids(running) == [2]
        assert running.run_once().ticks == 0 and running.tick() is None
    assert len(list((tmp_path / "out").glob("changes-*"))) == 2


def test_a_pipeline_with_watermarks_waits_for_its_tables(tmp_path: Path) -> None:
    script = SCRIPT.replace("path 'in'", "path 'in', watermark 'since', watermark_delay '1 hour'")
    start = datetime(2024, 5, 1, tzinfo=UTC)
    write(tmp_path, "1.json", (1, start, start + timedelta(hours=2)), (2, start + timedelta(hours=1), FAR))
    with Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as running:
        running.run_once()
        assert ids(running) == [1] and running.session.now == start and running.session.next_due == start + timedelta(hours=1)
        write(tmp_path, "2.json", (3, start + timedelta(hours=4), FAR))
        assert running.run_once().ticks == 1
        assert ids(running) == [2] and running.session.now == start + timedelta(hours=3)
    with Pipeline(script, state=str(tmp_path / "state"), base=tmp_path) as running:
        assert running.run_once().ticks == 0 and running.session.now == start + timedelta(hours=3)


@pytest.mark.parametrize("shards", [1, 3])
def test_next_due_is_the_least_of_the_existing_rows(shards: int) -> None:
    start = datetime(2024, 5, 1, tzinfo=UTC)
    with deltic.Session(shards=shards) as session:
        session.advance_to(start)
        session.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, at TIMESTAMP)")
        assert session.next_due is None and not session._reads_time
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT id FROM t WHERE at <= now(); CREATE MATERIALIZED VIEW w AS SELECT id FROM t")
        session.apply({"t": [{"id": id, "at": start + timedelta(hours=id), "_op": "insert"} for id in range(-5, 50)]})
        assert session.next_due == start + timedelta(hours=1) and session._reads_time
        with session.transaction() as tx:
            tx.delete("t", list(range(1, 20)))
        assert session.next_due == start + timedelta(hours=20)
        session.advance_to(start + timedelta(hours=49))
        assert session.next_due is None


def test_a_time_that_a_session_has_set_before_is_that_of_the_pipeline(tmp_path: Path, wall: Wall) -> None:
    """By `advance_to` without definitions: to a time before and after the wall clock's."""
    comes, goes = wall.now + HOUR, wall.now + 2 * HOUR
    write(tmp_path, "1.json", (1, comes, goes), (2, wall.now - HOUR, FAR))
    with pipeline(tmp_path) as running:
        running.run_once()
        assert ids(running) == [2]
    for now, later, expected in ((wall.now + HOUR, wall.now, [1, 2]), (wall.now + HOUR, goes, [2])):
        wall.now = now
        with deltic.Session(state=tmp_path / "state") as session:
            session.advance_to(later if later > now else now)
        with pipeline(tmp_path) as running:
            running.run_once()
            assert ids(running) == expected
