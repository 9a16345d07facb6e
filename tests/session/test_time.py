"""now() in views: rows appear and disappear exactly at their instants, also after a restart."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import deltic
from deltic.errors import ClockError, SetupError
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from timed import MICROSECOND, QUERIES, SCRIPT, START, TABLE, Timed, random_row


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        yield session


@pytest.mark.parametrize("shards", [1, 3])
def test_views_equal_the_oracle_as_time_passes(shards: int) -> None:
    for seed in range(2):
        with deltic.Session(shards=shards) as session:
            timed, rng = Timed(session), random.Random(seed)
            for _ in range(12):
                timed.step(rng)
            assert timed.seen > 100


def test_now_equals_a_literal_in_its_place(session: deltic.Session) -> None:
    session.sql(TABLE)
    rng, catalog = random.Random(5), session._definitions.catalog
    for name, query in QUERIES.items():
        plan = bind_query(query, name, catalog)
        for _ in range(15):
            now = START + rng.choice((-24, 0, 1, 12, 24, 48)) * timedelta(hours=1) + rng.choice((-1, 0, 1)) * MICROSECOND
            literal = f"TIMESTAMP '{now:%Y-%m-%d %H:%M:%S.%f}'"
            fixed = query.replace("current_timestamp()", literal).replace("current_timestamp", literal).replace("now()", literal)
            tables = {"r": {tuple(random_row(rng, id).values()): 1 for id in range(20)}}
            assert evaluate(plan, tables, now=now) == evaluate(bind_query(fixed, name, catalog), tables), name


def test_rows_appear_and_disappear_at_their_microsecond(session: deltic.Session) -> None:
    session.advance_to(START)
    session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE t <= now() AND now() < u")
    begin, end = START + timedelta(hours=1), START + timedelta(hours=2)
    with session.transaction() as tx:
        tx.insert("r", [{"id": 1, "t": begin, "u": end, "d": None}])
    counts = []
    for now in (begin - MICROSECOND, begin, end - MICROSECOND, end):
        session.advance_to(now)
        counts.append(len(session.view("v").rows()))
    assert counts == [0, 1, 1, 0]
    assert session.now == end


def test_a_view_created_later_has_the_content_of_the_current_time(session: deltic.Session) -> None:
    timed = Timed(session, TABLE + f"CREATE MATERIALIZED VIEW one AS {QUERIES['inside']}")
    rng = random.Random(2)
    for _ in range(5):
        timed.step(rng)
    session.sql(f"CREATE MATERIALIZED VIEW two AS {QUERIES['counted']}; CREATE MATERIALIZED VIEW three AS {QUERIES['inside']}")
    timed.plans = session._definitions.catalog.plans()
    timed.check()
    for _ in range(8):
        timed.step(rng)


def test_a_bound_may_be_outside_the_calendar(session: deltic.Session) -> None:
    session.advance_to(START)
    session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE t + INTERVAL 7 DAYS >= now() AND now() + INTERVAL 9 DAYS > d")
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    with session.transaction() as tx:
        tx.insert("r", [{"id": id, "t": last, "u": None, "d": d} for id, d in ((1, None), (2, START.date()))])
    session.advance_to(last)
    assert session.view("v").rows() == [{"id": 2}]


def test_time_does_not_go_back(session: deltic.Session) -> None:
    session.advance_to(START)
    session.advance_to(START)
    with pytest.raises(ClockError, match="cannot go back"):
        session.advance_to(START - MICROSECOND)
    with pytest.raises(ClockError, match="no zone"):
        session.advance_to(START.replace(tzinfo=None))
    assert session.now == START


def test_a_view_of_now_requires_a_clock(session: deltic.Session) -> None:
    with pytest.raises(ClockError, match="the session has no clock"):
        session.sql(SCRIPT)
    assert session.views == () and session.now is None
    with pytest.raises(SetupError, match="clock="):
        deltic.Session(clock="sun")  # type: ignore[arg-type]


def test_the_wall_clock_is_the_time_of_each_tick() -> None:
    before = datetime.now(UTC)
    with deltic.Session(clock="wall") as session:
        session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE t <= now()")
        first = session.now
        assert first is not None and before <= first
        with session.transaction() as tx:
            tx.insert("r", [{"id": 1, "t": first, "u": None, "d": None}])
        assert session.now is not None and first <= session.now <= datetime.now(UTC)
        assert session.view("v").rows() == [{"id": 1}]
