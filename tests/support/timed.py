"""Test support: views of now() over one table, and random steps of changes and of time, checked with the oracle."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import deltic
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
    "since_days": "now() - t < INTERVAL 36 HOURS AND now() - u >= INTERVAL -1 DAY",
    "either": "t <= now() OR u > now()",
    "or_a_row": "id IN (1, 5) OR t > now() OR id = 3",
    "unequal": "t <> now() AND d <> current_date()",
    "listed": "d IN (current_date(), current_date() - 1, DATE '2024-02-27') OR t IN (now(), u)",
    "days_listed": "d IN (current_date(), current_date() - 1, current_date() + 1, current_date() - 2, current_date() - 1)",
    "outside": "now() NOT BETWEEN t AND u",
    "neither": "NOT (t < now() AND (u > now() OR id > 6))",
    "not_true": "(t > now() OR u <= now()) IS NOT TRUE",
    "not_false": "(t > now() AND u <= now() AND id <> 3) IS NOT FALSE OR NOT (t <=> now())",
    "twice": "t < now() - INTERVAL 1 DAY AND u < now() AND d < now() + INTERVAL 1 DAY",
}
QUERIES = {name: f"SELECT id, d FROM r WHERE {condition}" for name, condition in CONDITIONS.items()}
QUERIES |= {
    "counted": "SELECT d, count(*) AS n, max(u) AS last FROM r WHERE t <= now() AND now() < u GROUP BY d",
    "joined": "SELECT a.id, b.id AS other FROM r a JOIN r b ON a.d = b.d WHERE a.t <= now() AND b.u > now()",
    "on": "SELECT a.id, b.id AS other FROM r a JOIN r b ON a.d = b.d AND a.t <= now() AND (b.u > now() OR b.id = a.id)",
    "on_alone": "SELECT a.id, b.id AS other FROM r a JOIN r b ON b.t <= now() AND a.u > now() - INTERVAL 1 DAY WHERE a.id < 4",
    "on_and_in": "SELECT a.id FROM r a JOIN r b ON a.id = b.id AND a.t <= now() AND b.id IN (SELECT id FROM r WHERE u > now())",
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
        self.plans = session._definitions.catalog.plans()

    def check(self) -> None:
        table = Relation((tuple(row.values()), 1) for row in self.rows.values())
        for name, plan in self.plans.items():
            expected = evaluate(plan, {"r": table}, now=self.session.now)
            assert Relation((tuple(row.values()), 1) for row in self.session.view(name).rows()) == expected, name
            self.seen += len(expected)

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
