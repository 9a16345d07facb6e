"""A running pipeline's own files, which a thread reads: it ends when it is stopped, and the next one begins."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer, get_ident, main_thread

import pytest

from deltic.pipeline import Pipeline, Progress
from deltic.spark.running import Follower, Journal, Running

SCRIPT = """
CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY) USING json OPTIONS (path 'in');
CREATE MATERIALIZED VIEW ids AS SELECT id FROM items;
"""
PATIENCE_S = 20.0


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Pipeline]:
    (tmp_path / "in").mkdir()
    write(tmp_path, 1)
    with Pipeline(SCRIPT, state=str(tmp_path / "state"), base=tmp_path) as pipeline:
        yield pipeline


def write(folder: Path, id: int) -> None:
    (folder / "in" / f"{id}.json").write_text(f'{{"id": {id}}}\n')


def test_a_pipeline_can_be_stopped_after_ctrl_c_has_ended_the_wait(files: Pipeline) -> None:
    running, begun = Running(Journal(), None, lambda: None), Event()

    def interrupt() -> None:
        assert begun.wait(PATIENCE_S)
        signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    running.follow(files, lambda files: files.follow(0.01, lambda _: begun.set()))
    timer = Timer(0, interrupt)
    with pytest.raises(KeyboardInterrupt):
        timer.start()  # the first tick may be over by now
        running.awaitTermination(PATIENCE_S)
    timer.join()
    assert running.isActive
    running.stop()
    assert not running.isActive


def test_a_stop_of_files_that_have_failed_is_not_one_of_the_next_run(files: Pipeline) -> None:
    stopped = Event()

    def fail(files: Pipeline) -> None:
        raise ValueError

    follower = Follower(files, Journal(), fail, lambda: stopped.wait(PATIENCE_S) or None)
    follower.stop()  # as awaitTermination does while the query ends
    stopped.set()
    assert follower.wait(PATIENCE_S)
    ticks = list[Progress]()
    assert Follower(files, Journal(), lambda files: files.run_once(ticks.append), lambda: None).wait(PATIENCE_S)
    assert len(ticks) == 1


def test_a_subscriber_may_stop_the_pipeline_in_whose_thread_it_is_called(files: Pipeline) -> None:
    running, threads = Running(Journal(), None, lambda: None), list[int]()

    def stop(_: object) -> None:
        threads.append(get_ident())
        running.stop()

    ready = Event()
    files.session.view("ids").subscribe(stop)
    running.follow(files, lambda files: ready.wait(PATIENCE_S) and files.follow(0.01))
    ready.set()
    assert running.awaitTermination(PATIENCE_S)
    assert threads and threads != [get_ident()]
