"""The time of a state that is advanced before the session has defined the program of the state: the views follow with the definitions."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.errors import ClockError, DivisionByZero, StateError
from deltic.runtimes.embedded import LoggedEmbedded
from deltic.session.clock import microseconds
from deltic.session.commits import Commits
from deltic.storage.program import CLOCK, ON_TIME, REACHED
from engines import abandon
from timed import QUERIES, SCRIPT, START, TABLE, Timed

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TODAY = "CREATE MATERIALIZED VIEW today AS SELECT id FROM r WHERE t >= now() AND t < now() + INTERVAL 1 DAY;"
COUNTED = "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM r WHERE t >= now() AND t < now() + INTERVAL 1 DAY;"
ROWS = [{"id": id, "t": START + id * 6 * HOUR, "u": None, "d": None} for id in range(20)]


def started(folder: Path, script: str = TABLE + TODAY, **options: Any) -> None:
    with deltic.Session(state=folder, **options) as session:
        session.advance_to(START)
        session.sql(script)
        session.insert("r", ROWS)


def killed(session: deltic.Session) -> None:
    """Ends a session with a commit log as a kill does."""
    assert isinstance(session._runtime, LoggedEmbedded)
    abandon(session._runtime)


def ids(session: deltic.Session, view: str = "today") -> list[int]:
    return sorted(row["id"] for row in session.view(view).rows())


@pytest.mark.parametrize("shards", [1, 3])
def test_a_view_follows_the_time_at_its_definition(tmp_path: Path, shards: int) -> None:
    started(tmp_path / "s", shards=shards)
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START + HOUR)
        session.advance_to(START + DAY)
        assert session.now == START + DAY and session.next_due is None
        assert session.query("SELECT now() AS n").rows() == [{"n": START + DAY}]
        with pytest.raises(ClockError, match="cannot go back"):
            session.advance_to(START + DAY - HOUR)
        session.sql(TABLE + TODAY)
        assert ids(session) == [4, 5, 6, 7] and session.next_due == START + DAY + timedelta(microseconds=1)
        session.advance_to(START + 2 * DAY)
        assert ids(session) == [8, 9, 10, 11] and session.now == START + 2 * DAY


def test_one_tick_touches_the_rows_that_come_due_alone(tmp_path: Path) -> None:
    started(tmp_path / "s")
    with deltic.Session(state=tmp_path / "s") as session:
        session.sql(TABLE + TODAY)
        session.insert("r", [{"id": id, "t": START + 9 * DAY + id * HOUR, "u": None, "d": None} for id in range(100, 5000)])
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START + DAY)
        session.sql(TABLE + TODAY)
        assert session.last_tick is not None and 0 < sum(one.touched for one in session.last_tick.counters.values()) < 100


def test_definitions_in_several_steps_and_of_some_views_alone(tmp_path: Path) -> None:
    started(tmp_path / "s", TABLE + TODAY + COUNTED)
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START + DAY)
        session.sql(TABLE + TODAY)
        assert ids(session) == [4, 5, 6, 7]
        session.sql(COUNTED)
        assert session.view("counted").rows() == [{"n": 4}]
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START + 2 * DAY)
        session.sql(TABLE)
        assert session.now == START + 2 * DAY
        session.sql(COUNTED)
        session.sql(TODAY)
        assert ids(session) == [8, 9, 10, 11] and session.view("counted").rows() == [{"n": 4}]
        session.advance_to(START + 3 * DAY)
        assert ids(session) == [12, 13, 14, 15]


def test_a_view_that_is_new_and_one_of_the_state_share_their_waiting_rows(tmp_path: Path) -> None:
    started(tmp_path / "s")
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START + DAY)
        session.sql(TABLE + TODAY + COUNTED)
        assert ids(session) == [4, 5, 6, 7] and session.view("counted").rows() == [{"n": 4}]


def test_a_state_whose_time_no_tick_has_had(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path / "s") as session:
        session.sql(TABLE)
        session.insert("r", ROWS)
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START + DAY)
        session.sql(TABLE + TODAY)
        assert ids(session) == [4, 5, 6, 7] and session.now == START + DAY


def test_changes_without_rows_before_the_definitions_are_no_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the wall clock they would have a time."""
    now = START
    monkeypatch.setattr("deltic.session.clock.wall_us", lambda: microseconds(now))
    with deltic.Session(state=tmp_path / "s", clock="wall") as session:
        session.sql(TABLE + TODAY)
        session.insert("r", ROWS)
    now += DAY
    with deltic.Session(state=tmp_path / "s", clock="wall") as session:
        session.apply({}, notes={"mine": 1})
        session.sql(TABLE + TODAY)
        assert ids(session) == [4, 5, 6, 7] and session.notes["mine"] == 1
    with deltic.Session(state=tmp_path / "s", clock="wall") as session:
        session.advance_to(now + DAY)
        session.sql(TABLE + TODAY)
        assert ids(session) == [8, 9, 10, 11] and session.now == now + DAY


def test_the_move_is_a_tick_for_relations_of_other_ticks(tmp_path: Path) -> None:
    script = TABLE + TODAY + "CREATE MATERIALIZED VIEW before AS SELECT id FROM delay(today);"
    contents = []
    for name, first in (("a", True), ("b", False)):
        started(tmp_path / name, script)
        with deltic.Session(state=tmp_path / name) as session:
            if first:
                session.advance_to(START + DAY)
            session.sql(script)
            if not first:
                session.advance_to(START + DAY)
            contents.append((ids(session), ids(session, "before")))
    assert contents[0] == contents[1] == ([4, 5, 6, 7], [0, 1, 2, 3])


def test_first_definitions_that_fail_after_an_altered_table_do_not_follow_the_time(tmp_path: Path) -> None:
    """The table has been altered then, and the circuit has its rows alone."""
    table = TABLE.rstrip().removesuffix(";").removesuffix(")") + ", x BIGINT);"
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START)
        session.sql(table + TODAY)
        session.insert("r", [{**row, "x": 1} for row in ROWS])
    altered = table + "ALTER TABLE r DROP COLUMN x;" + TODAY
    with deltic.Session(state=tmp_path / "s") as session:
        with pytest.raises(DivisionByZero):
            session.sql(altered + "CREATE MATERIALIZED VIEW bad AS SELECT 1 / (id - 5) AS y FROM r;")
        session.advance_to(START + DAY)
        session.sql(altered)
        assert ids(session) == [4, 5, 6, 7]
        session.advance_to(START + 2 * DAY)
        assert ids(session) == [8, 9, 10, 11]


def test_a_tick_that_fails_is_made_good_by_the_next_one(tmp_path: Path) -> None:
    script = TABLE + "CREATE MATERIALIZED VIEW v AS SELECT 1 / (id - 5) AS x FROM (SELECT id FROM r WHERE t <= now()) p;"
    started(tmp_path / "s", script)
    with deltic.Session(state=tmp_path / "s") as session:
        session.advance_to(START + 2 * DAY)
        with pytest.raises(DivisionByZero):
            session.sql(script)
        with pytest.raises(DivisionByZero):
            session.insert("r", [{**ROWS[0], "id": 77}])
        assert len(session.view("v")) == 1
        session.delete("r", [ROWS[5]])
        assert len(session.view("v")) == 8 and session.now == START + 2 * DAY


def test_a_crash_between_the_move_the_definitions_and_their_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(tmp_path / "s")
    session = deltic.Session(state=tmp_path / "s", commit_log=True)
    session.advance_to(START + DAY)
    killed(session)
    session = deltic.Session(state=tmp_path / "s", commit_log=True)
    assert session.now == START + DAY
    with monkeypatch.context() as patched:
        patched.setattr(Commits, "_settle", lambda self: None)
        session.sql(TABLE + TODAY + COUNTED)
        assert ids(session) == [0, 1, 2, 3]
    killed(session)
    with deltic.Session(state=tmp_path / "s") as session:
        assert session.now == START + DAY
        session.sql(TABLE + TODAY + COUNTED)
        assert ids(session) == [4, 5, 6, 7] and session.view("counted").rows() == [{"n": 4}]


def in_an_earlier_version(folder: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[deltic.Session], None]) -> None:
    """As a version that moved the time of a state before its definitions, and did not note that its rows are on time."""
    with monkeypatch.context() as patched, deltic.Session(state=folder) as session:
        patched.setattr(Commits, "_awaits_program", False)
        act(session)
        session._commits.note({ON_TIME: None})
        assert REACHED not in session.notes


def moved(session: deltic.Session) -> None:
    session.advance_to(START + DAY)


def defined(session: deltic.Session) -> None:
    session.sql(TABLE + TODAY)


def moved_twice(session: deltic.Session) -> None:
    session.advance_to(START + DAY)
    session.sql(TABLE + TODAY)
    session.advance_to(START + 2 * DAY)


def counted_meanwhile(session: deltic.Session) -> None:
    session.advance_to(START + DAY)
    session.sql(TABLE + TODAY + COUNTED)
    assert session.view("counted").rows() == [{"n": 4}]  # filled, although rows of `today` were overdue
    session.insert("r", [{**ROWS[5], "id": 77}])


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize("act", [moved, moved_twice, counted_meanwhile])
def test_states_whose_time_ran_ahead_are_filled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[deltic.Session], None], shards: int | None
) -> None:
    started(tmp_path / "s")
    in_an_earlier_version(tmp_path / "s", monkeypatch, act)
    with deltic.Session(state=tmp_path / "s", shards=shards) as session:
        if act is counted_meanwhile:
            session.advance_to(START + DAY + HOUR)
        session.sql(TABLE + TODAY + COUNTED)
        for _ in range(3):
            expected = sorted(row["id"] for row in session.query("SELECT id FROM r WHERE t >= now() AND t < now() + INTERVAL 1 DAY").rows())
            assert ids(session) == expected and session.view("counted").rows() == [{"n": len(expected)}]
            assert session.now is not None and session.notes[CLOCK] == microseconds(session.now)
            session.advance_to(session.now + 5 * HOUR)


def test_a_state_on_time_of_an_earlier_version_is_not_filled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(tmp_path / "s")
    in_an_earlier_version(tmp_path / "s", monkeypatch, defined)
    with deltic.Session(state=tmp_path / "s") as session:
        before = session.epoch
        session.sql(TABLE + TODAY)
        assert session.epoch == before + 1 and not session.last_tick.counters  # type: ignore[union-attr]
        assert session.notes[ON_TIME] is True


@pytest.mark.parametrize("function", ["integrate", "delay"])
def test_what_ran_ahead_and_cannot_be_filled_again_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    script = TABLE + TODAY + f"CREATE MATERIALIZED VIEW kept AS SELECT id FROM {function}(today);"
    started(tmp_path / "s", script)
    in_an_earlier_version(tmp_path / "s", monkeypatch, moved)
    with deltic.Session(state=tmp_path / "s") as session:
        with pytest.raises(StateError, match=r"(?s)without view kept.*run the program without it once"):
            session.sql(script)
        session.program(deltic.Program(TABLE + TODAY))
        assert ids(session) == [4, 5, 6, 7]
        session.sql(f"CREATE MATERIALIZED VIEW kept AS SELECT id FROM {function}(today)")
    with deltic.Session(state=tmp_path / "s") as session:
        session.sql(script)


@pytest.mark.parametrize("seed", range(4))
def test_random_sessions_equal_the_oracle(tmp_path: Path, seed: int) -> None:
    """They move the time before, between and after the definitions, define some of the views, are killed, and have other shards."""
    rng = random.Random(seed)
    scripts = [f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in QUERIES.items()]
    timed = Timed(deltic.Session(state=tmp_path / "s", shards=1 + seed % 2, commit_log=True), SCRIPT)
    for _ in range(8):
        for _ in range(rng.randrange(3)):
            timed.step(rng)
        if isinstance(timed.session._runtime, LoggedEmbedded) and rng.random() < 0.5:
            killed(timed.session)
        else:
            timed.session.close()
        session = timed.session = deltic.Session(state=tmp_path / "s", shards=rng.choice((None, None, 2, 3)), commit_log=rng.random() < 0.6)
        chosen = rng.sample(scripts, rng.choice((len(scripts), len(scripts), 5)))
        texts = [TABLE + "".join(chosen)] if rng.random() < 0.7 else [TABLE, "".join(chosen[:3]), "".join(chosen[3:])]
        for text in texts:
            while rng.random() < 0.6:
                assert session.now is not None
                session.advance_to(session.now + rng.choice((0, 1, 12, 36)) * HOUR)
            session.sql(text)
        timed.plans = session._definitions.catalog.plans()
        timed.check()
    timed.session.close()
    assert timed.seen > 50
