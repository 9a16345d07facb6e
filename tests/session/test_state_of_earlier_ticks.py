"""A state keeps what it has of earlier ticks, or a session refuses to open it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import deltic
from deltic.errors import StateError
from deltic.pipeline.dry_run import dry_run
from session_rows import touched_rows

STREAM = "CREATE STREAM clicks (user BIGINT, amount BIGINT);"
TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT user, sum(amount) AS total FROM integrate(clicks) GROUP BY user;"
LAST = "CREATE MATERIALIZED VIEW last AS SELECT * FROM current(clicks);"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    with deltic.Session(state=tmp_path / "s") as session:
        session.sql(STREAM + TOTALS + LAST)
        session.apply({"clicks": [click(1, 5), click(1, 7)]})
    return tmp_path / "s"


def click(user: int, amount: int) -> dict[str, Any]:
    return {"user": user, "amount": amount, "_weight": 1}


def test_first_definitions_without_a_view_of_the_state_are_refused(state: Path) -> None:
    with deltic.Session(state=state) as session:
        with pytest.raises(StateError, match="the state has rows of earlier ticks for view totals, which the program lacks"):
            session.stream("clicks", schema={"user": int, "amount": int})
        with pytest.raises(StateError, match=r"session\.program"):
            session.sql(STREAM + LAST)
        session.sql(STREAM + TOTALS + LAST)
        assert session.view("totals").rows() == [{"user": 1, "total": 12}]


def test_a_program_drops_views_and_a_changed_query_begins_again(state: Path) -> None:
    with deltic.Session(state=state) as session:
        session.program(STREAM + TOTALS)
        assert session.view("totals").rows() == [{"user": 1, "total": 12}]
    with deltic.Session(state=state) as session:
        session.sql(STREAM + TOTALS.replace("sum(amount)", "max(amount)"))
        session.apply({"clicks": [click(1, 2)]})
        assert session.view("totals").rows() == [{"user": 1, "total": 2}]
    with deltic.Session(state=state) as session:
        session.program(STREAM)
    with deltic.Session(state=state) as session:
        session.sql(STREAM + TOTALS)
        assert session.view("totals").rows() == []


def test_state_of_the_same_query_in_another_form_is_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a version whose optimizer has another rule."""
    monkeypatch.setattr(deltic.optimizer, "LAST", ())
    with deltic.Session(state=state) as session:
        for define in (session.sql, session.program):
            with pytest.raises(StateError, match="kept other rows of earlier ticks for view totals"):
                define(STREAM + TOTALS + LAST)


def test_a_dry_run_says_that_a_run_would_be_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = STREAM + TOTALS
    assert dry_run(program, state=str(state)).start.dropped == ("last",)
    monkeypatch.setattr(deltic.optimizer, "LAST", ())
    with pytest.raises(StateError, match="kept other rows of earlier ticks for view totals") as dry:
        dry_run(program, state=str(state))
    with pytest.raises(StateError) as run:
        deltic.Pipeline(program, state=str(state))
    assert str(run.value) == str(dry.value)


WORKS = """
    CREATE TABLE rows (a BIGINT PRIMARY KEY);
    CREATE STREAM events (a BIGINT);
    CREATE MATERIALIZED VIEW late AS SELECT * FROM delay(rows);
    CREATE MATERIALIZED VIEW late_events AS SELECT * FROM delay(events);
    CREATE MATERIALIZED VIEW last AS SELECT * FROM current(events);
"""


def check_ticks_after_a_load(waits: bool, options: dict[str, Any]) -> None:
    """waits: until the load is no longer in a commit log."""
    count = 20_000
    with deltic.Session(**options) as session:
        session.sql(WORKS)
        session.apply({name: pa.table({"a": range(count), "_op": ["insert"] * count}) for name in ("rows", "events")})
        if waits:
            session._runtime.fold()
        touched = []
        for number in range(count, count + 4):
            session.apply({"rows": [{"a": number, "_op": "insert"}]})
            assert len(session.view("late").rows()) == number and not session.view("last").rows()
            assert session.last_tick is not None
            touched.append(touched_rows(session))
        assert touched[0] >= 2 * count and max(touched[1:]) < 200


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("state", [{}, {"state": True}, {"state": True, "commit_log": True}])
def test_only_the_first_tick_after_a_load_reads_all_its_rows(shards: int, state: dict[str, Any], tmp_path: Path) -> None:
    for waits in (False, True):
        folder = {"state": tmp_path / str(waits)} if state else {}
        check_ticks_after_a_load(waits, {**state, **folder, "shards": shards})


@pytest.mark.spark
def test_only_the_first_tick_after_a_load_reads_all_its_rows_on_spark(spark: Any, tmp_path: Path) -> None:
    check_ticks_after_a_load(False, {"spark": spark, "state": tmp_path / "s", "shards": 2})
