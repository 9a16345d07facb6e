"""now() in views: rows come and go as time goes on, exactly at their instants, and go on waiting after a restart."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import deltic
from deltic.errors import ClockError, SetupError
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation

START = datetime(2024, 2, 27, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
TABLE = "CREATE TABLE r (id BIGINT NOT NULL PRIMARY KEY, t TIMESTAMP, u TIMESTAMP, d DATE);"
CONDITIONS = {
    "since": "t > now() - INTERVAL 2 DAYS",
    "since_then": "t >= now() - INTERVAL 2 DAYS",
    "before": "t < now()",
    "before_then": "now() >= t",
    "inside": "now() BETWEEN t AND u",
    "days": "now() BETWEEN t - INTERVAL 1 DAY AND t + INTERVAL 12 HOURS",
    "several": "t <= now() AND u > current_timestamp() AND current_timestamp + INTERVAL 3 HOURS > d AND id <> 3",
    "exactly": "t = now()",
    "not_yet": "NOT (t <= now())",
    "month": "t + INTERVAL 1 MONTH > now() AND d < now()",
    "twice": "t < now() - INTERVAL 1 DAY AND u < now() AND d < now() + INTERVAL 1 DAY",
}
QUERIES = {name: f"SELECT id, d FROM r WHERE {condition}" for name, condition in CONDITIONS.items()}
QUERIES |= {
    "counted": "SELECT d, count(*) AS n, max(u) AS last FROM r WHERE t <= now() AND now() < u GROUP BY d",
    "joined": "SELECT a.id, b.id AS other FROM r a JOIN r b ON a.d = b.d WHERE a.t <= now() AND b.u > now()",
    "elements": "SELECT id, x FROM (SELECT id, x FROM r LATERAL VIEW explode(array(t, u)) v AS x) e WHERE x <= now()",
    "without": "SELECT id FROM r WHERE id NOT IN (SELECT id FROM r WHERE t > now())",
}
SCRIPT = TABLE + ";".join(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in QUERIES.items())
Row = dict[str, Any]


def random_row(rng: random.Random, id: int) -> Row:
    def moment() -> datetime | None:
        far = rng.choice((0, 1, 1, 2, 3, 30, -1, -2)) * timedelta(days=1) + rng.choice((0, 0, 3, 12)) * timedelta(hours=1)
        return None if rng.random() < 0.1 else START + far + rng.choice((-1, 0, 0, 1)) * MICROSECOND

    d = moment()
    return {"id": id, "t": moment(), "u": moment(), "d": None if d is None else d.date()}


class Timed:
    """A session of the script, and what its table holds."""

    def __init__(self, session: deltic.Session, script: str = SCRIPT) -> None:
        self.rows: dict[int, Row] = {}
        self.script, self.seen = script, 0
        session.advance_to(START)
        self.open(session)

    def open(self, session: deltic.Session) -> None:
        """Goes on in this session."""
        self.session = session
        session.sql(self.script)
        self.plans = session._catalog.plans()

    def check(self) -> None:
        table = Relation((tuple(row.values()), 1) for row in self.rows.values())
        for name, plan in self.plans.items():
            wanted = evaluate(plan, {"r": table}, now=self.session.now)
            assert Relation((tuple(row.values()), 1) for row in self.session.view(name).rows()) == wanted, name
            self.seen += len(wanted)

    def step(self, rng: random.Random) -> None:
        """Some rows come, change or go; then it is later, or only one of the two."""
        kind = rng.randrange(3)
        if kind:
            with self.session.transaction() as tx:
                for id in rng.sample(range(12), 4):
                    if id in self.rows and rng.random() < 0.5:
                        tx.delete("r", [self.rows.pop(id)])
                    else:
                        self.rows[id] = random_row(rng, id)
                        tx.upsert("r", [self.rows[id]])
        if kind != 1:
            assert self.session.now is not None
            later = rng.choice((0, 1, 12, 24, 36)) * timedelta(hours=1) + rng.choice((0, 0, 1)) * MICROSECOND
            self.session.advance_to(self.session.now + later)
        self.check()


@pytest.fixture
def session() -> Iterator[deltic.Session]:
    with deltic.Session() as session:
        yield session


@pytest.mark.parametrize("shards", [1, 3])
def test_views_are_the_oracles_as_time_goes_on(shards: int) -> None:
    for seed in range(2):
        with deltic.Session(shards=shards) as session:
            timed, rng = Timed(session), random.Random(seed)
            for _ in range(12):
                timed.step(rng)
            assert timed.seen > 100


def test_now_is_what_a_literal_in_its_place_is(session: deltic.Session) -> None:
    session.sql(TABLE)
    rng, catalog = random.Random(5), session._catalog
    for name, query in QUERIES.items():
        plan = bind_query(query, name, catalog)
        for _ in range(15):
            now = START + rng.choice((-24, 0, 1, 12, 24, 48)) * timedelta(hours=1) + rng.choice((-1, 0, 1)) * MICROSECOND
            literal = f"TIMESTAMP '{now:%Y-%m-%d %H:%M:%S.%f}'"
            fixed = query.replace("current_timestamp()", literal).replace("current_timestamp", literal).replace("now()", literal)
            tables = {"r": {tuple(random_row(rng, id).values()): 1 for id in range(20)}}
            assert evaluate(plan, tables, now=now) == evaluate(bind_query(fixed, name, catalog), tables), name


def test_rows_come_and_go_at_their_microsecond(session: deltic.Session) -> None:
    session.advance_to(START)
    session.sql(TABLE + "CREATE MATERIALIZED VIEW v AS SELECT id FROM r WHERE t <= now() AND now() < u")
    begin, end = START + timedelta(hours=1), START + timedelta(hours=2)
    with session.transaction() as tx:
        tx.insert("r", [{"id": 1, "t": begin, "u": end, "d": None}])
    found = []
    for now in (begin - MICROSECOND, begin, end - MICROSECOND, end):
        session.advance_to(now)
        found.append(len(session.view("v").rows()))
    assert found == [0, 1, 1, 0]
    assert session.now == end


def test_a_view_made_later_has_what_is_there_at_that_time(session: deltic.Session) -> None:
    timed = Timed(session, TABLE + f"CREATE MATERIALIZED VIEW one AS {QUERIES['inside']}")
    rng = random.Random(2)
    for _ in range(5):
        timed.step(rng)
    session.sql(f"CREATE MATERIALIZED VIEW two AS {QUERIES['counted']}; CREATE MATERIALIZED VIEW three AS {QUERIES['inside']}")
    timed.plans = session._catalog.plans()
    timed.check()
    for _ in range(8):
        timed.step(rng)


def test_a_bound_may_lie_outside_of_the_calendar(session: deltic.Session) -> None:
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


def test_a_view_of_now_wants_to_know_the_time(session: deltic.Session) -> None:
    with pytest.raises(ClockError, match="nobody has said what time it is"):
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
