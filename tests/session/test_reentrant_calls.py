"""Functions that call the session which calls them: they read the last commit, and cannot commit; no commit is lost, or counted twice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest

import deltic
from deltic.errors import DelticError, EvaluationError, ReentrantCall, SubscriberError
from deltic.trace import workers

SCRIPT = """
CREATE TABLE t (id BIGINT NOT NULL, v BIGINT NOT NULL, PRIMARY KEY (id));
CREATE TABLE others (id BIGINT NOT NULL);
CREATE MATERIALIZED VIEW sums AS SELECT count(*) AS n, sum(v) AS v FROM t;
CREATE MATERIALIZED VIEW doubled AS SELECT id, twice(v) AS v FROM t;
"""
CHANGES: dict[str, Callable[[deltic.Session], object]] = {
    "insert": lambda session: session.insert("t", [{"id": 7, "v": 1}]),
    "sql": lambda session: session.sql("INSERT INTO others VALUES (1)"),
    "define": lambda session: session.sql("CREATE VIEW w AS SELECT id FROM t"),
    "drop": lambda session: session.sql("DROP VIEW doubled"),
    "time": lambda session: session.advance_to(datetime(2030, 1, 1, tzinfo=UTC)),
    "close": lambda session: session.close(),
}
READS: dict[str, Callable[[deltic.Session], object]] = {
    "view": lambda session: session.view("sums").rows(),
    "query": lambda session: session.query("SELECT count(*) AS n, sum(v) AS v FROM t").rows(),
}


def twice(x: int) -> int:
    sys.displayhook(x)  # what a test puts there: a function of a view cannot capture a session
    return x * 2


def _opened(**options: Any) -> deltic.Session:
    session = deltic.Session(**options)
    session.register("twice", twice, "BIGINT")
    session.sql(SCRIPT)
    session.sql("INSERT INTO t VALUES (1, 5)")
    return session


def _content(session: deltic.Session) -> list[Any]:
    tables = [session.query(f"SELECT count(*) AS n FROM {table}").rows()[0]["n"] for table in ("t", "others")]
    return [*tables, session.view("sums").rows(), sorted(row["id"] for row in session.view("doubled").rows()), session.views]


@pytest.mark.parametrize("kind", ["memory", "state", "log"])
@pytest.mark.parametrize("call", [*CHANGES, *READS])
def test_a_function_of_a_tick_or_a_definition_changes_nothing(
    kind: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function handles the error, so that the tick goes on."""
    options = {"memory": {}, "state": {"state": tmp_path}, "log": {"state": tmp_path, "commit_log": True}}[kind]
    act, results = {**CHANGES, **READS}[call], list[Any]()

    def called(value: object) -> None:
        try:
            results.append(act(session))
        except DelticError as error:
            results.append(type(error))

    with _opened(**options) as session:
        monkeypatch.setattr(sys, "displayhook", called)
        session.insert("t", [{"id": 2, "v": 6}])
        session.sql("UPDATE t SET v = twice(v) WHERE id = 1")
        session.sql("CREATE MATERIALIZED VIEW more AS SELECT id, twice(v) + 1 AS v FROM t")
        monkeypatch.undo()
        seen = [[{"n": 1, "v": 5}], [{"n": 2, "v": 11}], [{"n": 2, "v": 16}]]
        assert all(result in ([ReentrantCall] if call in CHANGES else seen) for result in results)
        assert len(results) >= 4
        content = _content(session)
        assert content == [2, 0, [{"n": 2, "v": 16}], [1, 2], ("sums", "doubled", "more")]
    if kind != "memory":
        with deltic.open(tmp_path) as state:
            assert state.view("sums").rows() == content[2]


def test_an_error_that_the_function_leaves_rolls_the_tick_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with _opened() as session:
        monkeypatch.setattr(sys, "displayhook", lambda value: CHANGES["sql"](session))
        with pytest.raises(EvaluationError, match="a function that the session calls while it commits has called the session"):
            session.insert("t", [{"id": 2, "v": 6}])
        monkeypatch.undo()
        session.insert("t", [{"id": 3, "v": 1}])
        assert _content(session)[:3] == [2, 0, [{"n": 2, "v": 6}]]


@pytest.mark.parametrize("call", ["sql", "close", "subscribe"])
def test_a_function_in_another_thread_of_a_tick_does_not_wait_for_it(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "DIVIDED_ROWS", 1)
    act = CHANGES.get(call, lambda session: session.view("sums").subscribe(print))
    threads = set[str]()

    def called(value: object) -> None:
        threads.add(current_thread().name)
        with pytest.raises(ReentrantCall):
            act(session)

    with _opened(shards=2, threads=2) as session:
        monkeypatch.setattr(sys, "displayhook", called)
        session.insert("t", [{"id": id, "v": 1} for id in range(10, 30)])
        monkeypatch.undo()
        assert threads == {workers.THREAD}
        assert _content(session)[:2] == [21, 0]


def test_a_function_of_a_query_or_another_session_may_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    with _opened() as session, _opened() as other:
        monkeypatch.setattr(sys, "displayhook", lambda value: CHANGES["sql"](session))
        assert session.query("SELECT twice(v) AS v FROM t").rows() == [{"v": 10}]
        other.insert("t", [{"id": 2, "v": 6}])
        monkeypatch.undo()
        assert _content(session)[:2] == [1, 2]


def test_a_definition_by_a_function_that_defines_others_is_refused() -> None:
    with _opened() as session:

        def made() -> Any:
            with pytest.raises(ReentrantCall):
                session.sql("CREATE TABLE lost (id BIGINT)")
            return session.frame("t")

        session.view_of("same", made)
        assert session.tables == ("t", "others") and len(session.view("same").rows()) == 1


def test_a_subscriber_that_ticks_its_pipeline_reads_no_row_twice(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"{number}.json").write_text(f'{{"id": {number}}}\n')
    script = """
        CREATE TABLE t (id BIGINT NOT NULL) USING json OPTIONS (path 'in');
        CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;
    """
    with deltic.Pipeline(script, state=tmp_path / "state", base=tmp_path, rows_per_tick=1) as pipeline:
        end = pipeline.session.view("v").subscribe(lambda changes: pipeline.tick())
        with pytest.raises(SubscriberError, match="a function that the pipeline calls in a tick has called for another tick"):
            pipeline.tick()
        end()
        pipeline.run_once()
        assert pipeline.session.view("v").rows() == [{"n": 4}]
