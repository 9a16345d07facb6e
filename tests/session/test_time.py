"""now() in views: rows appear and disappear exactly at their instants, also after a restart."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import deltic
from deltic.errors import ClockError, SetupError, Unsupported
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import Moment, evaluate
from deltic.plan.relation import Relation
from deltic.session.clock import EPOCH
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
            fixed = query.replace("current_date()", f"DATE '{now:%Y-%m-%d}'")
            fixed = fixed.replace("current_timestamp()", literal).replace("current_timestamp", literal).replace("now()", literal)
            tables = {"r": {tuple(random_row(rng, id).values()): 1 for id in range(20)}}
            assert evaluate(plan, tables, now=now) == evaluate(bind_query(fixed, name, catalog), tables), name


DAYS = (
    "d = current_date",
    "d >= current_date() - 2",
    "d > current_date - INTERVAL 2 DAYS",
    "d BETWEEN date_sub(current_date(), 1) AND current_date() + 1",
    "NOT (d <= curdate())",
    "d + 2 = current_date() + 1",
    "d + INTERVAL 5 HOURS < current_date()",
    "d >= current_date() + INTERVAL 5 HOURS",
    "d = current_date() + INTERVAL 1 HOUR",
    "d = CAST(now() AS DATE)",
    "date(t) = current_date()",
    "t >= current_date()",
    "t < current_date() + INTERVAL 1 DAY",
    "t > now() AND u >= date_sub(current_date(), 1)",
    "CAST(t AS TIMESTAMP_NTZ) >= current_date()",
    "datediff(current_date(), d) < 2",
    "datediff(t, current_date()) BETWEEN -1 AND 1",
    "current_date() - d <= INTERVAL '1' DAY",
    "now() - t < INTERVAL 1 DAY",
    "t - now() >= INTERVAL 3 HOURS",
    "d <> current_date()",
    "d NOT IN (current_date(), current_date() - 1)",
    "t >= current_date() + 1 OR u < current_date()",
    "d <=> current_date() OR d IS NULL",
)
"""Conditions on the day, and on the time since or until a moment."""


def test_conditions_on_the_day_equal_a_query_at_that_time(session: deltic.Session) -> None:
    session.advance_to(START)
    session.sql(TABLE)
    for i, condition in enumerate(DAYS):
        session.sql(f"CREATE MATERIALIZED VIEW v{i} AS SELECT id FROM r WHERE {condition}")
    rng, seen = random.Random(3), [0] * len(DAYS)
    session.insert("r", [random_row(rng, id) for id in range(200)])
    midnight = START.replace(hour=0)
    for hours in (12, 23, 24, 25, 36, 48, 72, 100):
        for off in (-1, 0, 1):
            session.advance_to(max(START, midnight + timedelta(hours=hours) + off * MICROSECOND))
            for i, condition in enumerate(DAYS):
                rows = sorted(session.query(f"SELECT id FROM r WHERE {condition}").rows(), key=repr)
                assert sorted(session.view(f"v{i}").rows(), key=repr) == rows, (condition, session.now)
                seen[i] += len(rows)
    assert [condition for condition, count in zip(DAYS, seen, strict=True) if not count] == ["d = current_date() + INTERVAL 1 HOUR"]


def test_what_is_due_at_a_midnight_touches_its_rows_alone(session: deltic.Session) -> None:
    session.advance_to(START)
    session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE d >= current_date() - 7")
    session.insert("r", [{"id": id, "t": None, "u": None, "d": START.date() + timedelta(days=id)} for id in range(1000)])
    session.advance_to(START.replace(hour=0) + timedelta(days=8))
    assert session.last_tick is not None and len(session.view("v")) == 999
    assert max(counters.touched for counters in session.last_tick.counters.values()) < 20
    assert session.next_due == START.replace(hour=0) + timedelta(days=9)


@pytest.mark.parametrize(
    "condition", ["t = current_date()", "t <= current_date()", "t > current_date()", "t >= current_date() + INTERVAL 1 HOUR"]
)
def test_a_time_is_not_compared_with_the_midnight_before_it(session: deltic.Session, condition: str) -> None:
    session.advance_to(START)
    session.sql(TABLE)
    with pytest.raises(Unsupported, match=r"(?s)this comparison of a time and current_date\(\).*CAST\(at AS DATE\)"):
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE {condition}")


def test_what_is_due_in_a_case_touches_its_rows_alone(session: deltic.Session) -> None:
    session.advance_to(START)
    session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE id < 3 OR t <= now() OR u > now() + INTERVAL 1 DAY")
    session.insert("r", [{"id": id, "t": START + timedelta(days=id), "u": START + timedelta(days=id), "d": None} for id in range(1000)])
    session.advance_to(START + timedelta(days=500))
    assert len(session.view("v")) == 999
    session.advance_to(START + timedelta(days=501))
    assert session.last_tick is not None and len(session.view("v")) == 999
    assert max(counters.touched for counters in session.last_tick.counters.values()) < 20


def test_a_condition_has_few_cases(session: deltic.Session) -> None:
    session.advance_to(START)
    days = ", ".join(f"current_date() - {day}" for day in range(6))
    session.sql(TABLE + f"CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE d IN ({days})")
    with pytest.raises(Unsupported, match=r"(?s)too many ways.*at most 32 cases.*BETWEEN"):
        session.sql(f"CREATE MATERIALIZED VIEW w AS SELECT id FROM r WHERE d NOT IN ({days})")


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


@pytest.mark.parametrize("type", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_sums_with_timestamps_of_both_kinds_may_leave_the_calendar(session: deltic.Session, type: str) -> None:
    session.advance_to(START)
    session.sql(f"CREATE TABLE e (t {type}); CREATE MATERIALIZED VIEW v AS SELECT t FROM e WHERE t + INTERVAL 1 DAY > now()")
    session.sql(f"INSERT INTO e VALUES ({type} '9999-12-31 23:59:59'), ({type} '2024-02-26 12:00:00')")
    assert len(session.view("v")) == 1


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


OVER_TICKS = """
    CREATE STREAM c (k BIGINT);
    CREATE TABLE o (at TIMESTAMP, k BIGINT);
    CREATE MATERIALIZED VIEW due AS SELECT k FROM o WHERE at <= now();
    CREATE MATERIALIZED VIEW late AS SELECT k FROM delay(c);
    CREATE MATERIALIZED VIEW late_due AS SELECT k FROM delay(due);
    CREATE MATERIALIZED VIEW sums AS SELECT k, count(*) AS n FROM integrate(o) GROUP BY k;
    CREATE MATERIALIZED VIEW due_sums AS SELECT k, count(*) AS n FROM integrate(due) GROUP BY k;
    CREATE MATERIALIZED VIEW ever AS SELECT k FROM integrate(c);
    CREATE MATERIALIZED VIEW last AS SELECT k FROM current(c);
    CREATE MATERIALIZED VIEW each AS SELECT count(*) AS n FROM c JOIN o ON c.k >= o.k;
    CREATE MATERIALIZED VIEW counted AS SELECT n FROM integrate(each);
"""
FEEDBACK = "output relation Rounds(k: s64, n: s64)\nRounds(k, 1) :- Due(k).\nRounds(k, n + 1) :- Rounds-1(k, n), n < 9."


@pytest.mark.parametrize("shards", [1, 3])
def test_a_definition_and_a_reopening_that_move_the_time_are_not_a_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    """As if the tick before had had the later time: compared with the oracle."""
    seconds = 0.0
    monkeypatch.setattr("deltic.session.clock.wall_us", lambda: int(seconds * 1e6))

    def opened() -> deltic.Session:
        session = deltic.Session(state=tmp_path / "s", clock="wall", shards=shards)
        session.program(deltic.Program(OVER_TICKS.replace("k BIGINT", "k BIGINT NOT NULL"), deltic.Datalog(FEEDBACK)))
        return session

    session, held, moments = opened(), {"o": Relation(), "c": Relation()}, list[Moment]()
    for number in range(7):
        seconds += 1
        rows = [{"at": EPOCH + timedelta(seconds=seconds + wait), "k": number, "_weight": 1} for wait in (-0.5, 0.5, 1.5)]
        session.apply({"o": rows, "c": [{"k": number, "_weight": 1}]})
        held = {"o": held["o"] + Relation(((row["at"], row["k"]), 1) for row in rows), "c": Relation([((number,), 1)])}
        moments.append(Moment(held, EPOCH + timedelta(seconds=seconds)))
        compare(session, moments, session.views)
        if number % 2:
            seconds += 0.75
            session.sql(f"CREATE MATERIALIZED VIEW more_{number} AS SELECT k FROM o WHERE at > now()")
            if number % 4 == 1:
                session.close()
                session = opened()
            moments[-1] = Moment(held, EPOCH + timedelta(seconds=seconds))
            compare(session, moments, set(session.views) - {"late", "each"})  # streams are empty
    session.close()


def compare(session: deltic.Session, moments: list[Moment], views: Iterable[str]) -> None:
    plans = {view.name: view.plan for view in session._definitions.catalog.views.values()}
    for name in views:
        expected = evaluate(plans[name], moments[-1].tables, now=moments[-1].now, past=moments[:-1])
        assert Relation((tuple(row.values()), 1) for row in session.view(name).rows()) == expected, (len(moments), name)
