"""Sessions with a commit log: the same answers, epochs and changes as without one, also after a kill."""

from __future__ import annotations

import os
import random
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import deltic
from crashes import watching
from deltic import disk
from deltic.errors import SetupError, StateError, StateTakenOver
from deltic.runtimes.embedded import LoggedEmbedded
from deltic.storage import commit_log
from engines import abandon
from interruptions import interrupted
from logged_runtimes import logged_runtime
from parts import slow
from waiting import wait_until

SCRIPT = """
CREATE TABLE sales (id BIGINT NOT NULL, shop STRING, amount BIGINT, PRIMARY KEY (id));
CREATE STREAM visits (shop STRING);
CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total, max(amount) AS most FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW seen AS SELECT shop FROM visits;
"""


def _opened(folder: Path, **options: Any) -> deltic.Session:
    session = deltic.Session(state=folder, **options)
    session.sql(SCRIPT)
    return session


def _change(rng: random.Random) -> dict[str, Any]:
    shops = ["a", "b", None, f"new {rng.random()}"]
    ids = [rng.randrange(30) for _ in range(rng.randrange(4))]
    sales = [{"_op": "upsert", "id": id, "shop": rng.choice(shops), "amount": rng.randrange(100)} for id in ids]
    return {"sales": sales, "visits": [{"_op": "insert", "shop": rng.choice("ab")}] * rng.randrange(2)}


def _content(session: deltic.Session) -> list[Any]:
    return [sorted(map(repr, session.view(view).rows())) for view in ("totals", "seen")]


@pytest.mark.parametrize(("shards", "folds"), [(1, False), (3, False), (1, True), (3, True)])
def test_the_same_as_without_a_log(tmp_path: Path, shards: int, folds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """folds: a thread folds the log all the time."""
    monkeypatch.setattr(commit_log, "MOST_EPOCHS", 7)
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 0.0 if folds else 60.0)
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_SHARE", 0)
    rng = random.Random(shards)
    with deltic.Session(shards=shards) as memory:
        memory.sql(SCRIPT)
        session = _opened(tmp_path, shards=shards, commit_log=True)
        for tick in range(40):
            change = _change(rng)
            memory.apply(change)
            session.apply(change, notes={"tick": tick})
            changes = [sorted(map(repr, each.view("totals").changes().to_pylist())) for each in (memory, session)]
            assert changes[0] == changes[1]
            if rng.random() < 0.2:
                before = (session.epoch, _content(session)[0])
                abandon(logged_runtime(session)) if rng.random() < 0.5 else session.close()
                session = _opened(tmp_path, commit_log=rng.random() < 0.8)
                assert _content(session)[0] == before[1] and session.epoch > before[0] and session.notes["tick"] == tick
                if not isinstance(session._runtime, LoggedEmbedded):
                    session.close()
                    session = _opened(tmp_path, commit_log=True)
            assert _content(session)[0] == _content(memory)[0]
        session.close()


def test_a_state_takes_new_views_with_joins_as_without_a_log(tmp_path: Path) -> None:
    table = "CREATE TABLE e (a INT, b INT);"
    join = "CREATE MATERIALIZED VIEW r AS SELECT x.a FROM e x JOIN e y ON x.b = y.a JOIN e z ON y.b = z.a;"
    statistics = []
    for logs in (False, True):
        with deltic.Session(state=tmp_path / str(logs)) as session:
            session.sql(f"{table} CREATE MATERIALIZED VIEW r AS SELECT a FROM e; CREATE MATERIALIZED VIEW s AS SELECT b FROM e;")
            session.sql("INSERT INTO e VALUES (1, 1)")
        with deltic.Session(state=tmp_path / str(logs), commit_log=logs) as session:
            assert not session.explain().json()["operators"]
            statistics.append(session._runtime.statistics())
            session.sql(f"{table} {join} INSERT INTO e VALUES (1, 2), (2, 1)")
            statistics.append(session._runtime.statistics())
            assert sorted(row["a"] for row in session.view("r").rows()) == [1] * 5 + [2] * 3
    assert statistics[2:] == statistics[:2]


def test_a_folder_that_was_moved_away_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    session = _opened(tmp_path / "s", commit_log=True)
    session.apply(_change(random.Random(1)))
    (tmp_path / "s").rename(tmp_path / "moved")
    with pytest.raises(StateError, match="cannot be written"):
        logged_runtime(session).fold()
    with pytest.raises(StateError, match="no longer has a state"):
        logged_runtime(session).fold()
    with pytest.raises(StateError, match="no longer has a state") as failure:
        session.apply(_change(random.Random(2)))
    assert not isinstance(failure.value, StateTakenOver)
    (tmp_path / "moved").rename(tmp_path / "s")
    session.apply(_change(random.Random(2)))
    before = _content(session)[0]
    session.close()
    with deltic.Session(state=tmp_path / "s") as again:
        again.sql(SCRIPT)
        assert _content(again)[0] == before


def test_past_changes_are_read_from_the_log_and_from_manifests(tmp_path: Path) -> None:
    session = _opened(tmp_path, commit_log=True)
    first = session.epoch + 1
    for amount in (1, 2, 3):
        session.apply({"sales": [{"_op": "insert", "id": amount, "shop": "s", "amount": amount}]})

    def changes() -> list[Any]:
        return [session.view("totals").changes(epoch).to_pylist() for epoch in range(first, first + 3)]

    logged = changes()
    assert [max(row["total"] for row in change) for change in logged] == [1, 3, 6]
    assert logged_runtime(session)._log.epochs
    session._fold()
    assert not logged_runtime(session)._log.epochs
    assert changes() == logged
    session.close()


def test_readers_see_what_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _opened(tmp_path, commit_log=True)
    session.apply({"sales": [{"_op": "insert", "id": 1, "shop": "s", "amount": 5}]})
    session._fold()
    with deltic.open(tmp_path) as state:
        assert (state.epoch, state.view("totals").rows()) == (session.epoch, [{"shop": "s", "total": 5, "most": 5}])
    monkeypatch.setattr("deltic.runtimes.embedded.logged.FOLD_AFTER_S", 0.01)
    session.apply({"sales": [{"_op": "insert", "id": 2, "shop": "s", "amount": 5}]})
    wait_until(lambda: not logged_runtime(session)._log.epochs)
    with deltic.open(tmp_path) as state:
        assert state.epoch == session.epoch
    session.close()


def test_large_ticks_are_committed_by_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _opened(tmp_path, commit_log=True)
    monkeypatch.setattr("deltic.runtimes.embedded.logged.LARGEST_BYTES", 2_000)
    session.apply({"sales": [{"_op": "insert", "id": 1, "shop": "s", "amount": 5}]})
    session.apply({"sales": pa.table({"id": range(10, 400), "shop": ["t"] * 390, "amount": range(390), "_weight": [1] * 390})})
    assert not logged_runtime(session)._log.epochs
    session.apply({"sales": [{"_op": "insert", "id": 2, "shop": "s", "amount": 6}]})
    abandon(logged_runtime(session))
    with _opened(tmp_path) as again:
        assert again.view("totals").lookup("s") == [{"shop": "s", "total": 11, "most": 6}]
        assert again.view("totals").lookup("t") == [{"shop": "t", "total": sum(range(390)), "most": 389}]


def test_a_failed_commit_has_not_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _opened(tmp_path, commit_log=True)
    epoch = session.epoch

    def at(step: str, path: str) -> None:
        if step == "data-sync:before":
            raise OSError(5, "Input/output error")

    with watching(at), pytest.raises(StateError, match="cannot be written: Input/output error"):
        session.apply({"sales": [{"_op": "insert", "id": 1, "shop": "s", "amount": 5}]})
    assert (session.epoch, session.view("totals").rows()) == (epoch, [])
    session.apply({"sales": [{"_op": "insert", "id": 1, "shop": "s", "amount": 6}]})
    abandon(logged_runtime(session))
    with _opened(tmp_path) as again:
        assert again.view("totals").lookup("s") == [{"shop": "s", "total": 6, "most": 6}]


def test_a_log_requires_a_folder() -> None:
    for options in ({}, {"state": "s3://bucket/state"}):
        with pytest.raises(SetupError, match="invalid option commit_log=True"):
            deltic.Session(commit_log=True, **options)


@pytest.mark.parametrize("stride", [211, *slow(41)])
def test_a_fold_interrupted_at_any_step_loses_nothing(tmp_path: Path, stride: int) -> None:
    """The next definition fills its view with all rows, and the next writer finds those that were logged after the interrupt."""
    session, rows, views = _opened(tmp_path, commit_log=True), 0, 0

    def apply() -> None:
        nonlocal rows
        session.apply({"sales": [{"_op": "insert", "id": rows, "shop": "a", "amount": 1}]})
        rows += 1

    at, came = 1, True
    while came:
        for _ in range(3):
            apply()
        try:
            came = interrupted(at, logged_runtime(session).fold)
        except KeyboardInterrupt:
            came = True
        for name in (f"w{views}", f"w{views - 1}"):
            if name in session.views:
                session.sql(f"DROP VIEW {name}")
        session.sql(f"CREATE MATERIALIZED VIEW w{views} AS SELECT id FROM sales WHERE id >= {-views}")
        assert len(session.view(f"w{views}").rows()) == rows
        for _ in range(2):
            apply()
        abandon(logged_runtime(session))
        session = _opened(tmp_path, commit_log=True)
        assert session.view("totals").rows() == [{"shop": "a", "total": rows, "most": 1}]
        at, views = at + stride, views + 1
    session.close()
    assert views > 2


@pytest.mark.parametrize("last", ["restart", "collect"])
def test_a_fold_interrupted_after_its_commit_loses_nothing(tmp_path: Path, last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = _opened(tmp_path, commit_log=True)
    runtime = logged_runtime(session)

    def apply(*ids: int) -> None:
        for id in ids:
            session.apply({"sales": [{"_op": "insert", "id": id, "shop": "a", "amount": 1}]})

    def interrupt() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    apply(0, 1)
    monkeypatch.setattr(*((runtime._log._rounds[0].writer, "restart") if last == "restart" else (runtime._state, "collect")), interrupt)
    with pytest.raises(KeyboardInterrupt):
        runtime.fold()
    if last == "collect":
        session.sql("CREATE MATERIALIZED VIEW ids AS SELECT id FROM sales")
        assert len(session.view("ids").rows()) == 2
    apply(2, 3)
    abandon(runtime)
    with _opened(tmp_path, commit_log=True) as session:
        assert session.view("totals").rows() == [{"shop": "a", "total": 4, "most": 1}]


def test_a_log_that_could_not_be_opened_is_created_later(tmp_path: Path) -> None:
    def fail(path: Path, flags: int) -> int:
        raise OSError(24, os.strerror(24))

    with _opened(tmp_path, commit_log=True) as session:
        with patch.object(disk, "open_regular", fail), pytest.raises(StateError, match="Too many open files"):
            session.insert("visits", [{"shop": "a"}])
        session.insert("visits", [{"shop": "b"}])
        assert session.view("seen").rows() == [{"shop": "b"}]
        assert len(list((tmp_path / "log").iterdir())) == 1


def test_a_session_whose_log_cannot_be_deleted_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def at(step: str, path: str) -> None:
        if step == "unlink:before" and path.endswith(".log"):
            raise OSError(5, os.strerror(5))

    session = _opened(tmp_path, commit_log=True)
    session.insert("sales", [{"id": 1, "shop": "a", "amount": 2}])
    with watching(at):
        session.close()
    assert "left to its next writer" in caplog.text
    with _opened(tmp_path, commit_log=True) as session:  # it is not in use
        assert session.view("totals").rows() == [{"shop": "a", "total": 2, "most": 2}]
        assert list((tmp_path / "log").iterdir()) == []


def test_a_commit_stands_though_no_thread_can_fold_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with _opened(tmp_path, commit_log=True) as session:
        with patch.object(Thread, "start", side_effect=RuntimeError("can't start new thread")):
            session.sql("INSERT INTO sales VALUES (1, 'a', 2)")
            session.sql("INSERT INTO sales VALUES (2, 'a', 3)")
        assert caplog.text.count("cannot be folded yet: can't start new thread") == 1
        session.sql("INSERT INTO sales VALUES (3, 'a', 4)")
        assert session.view("totals").rows() == [{"shop": "a", "total": 9, "most": 4}]
        assert logged_runtime(session)._folding is not None
