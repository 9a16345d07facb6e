"""Views over fields of structs, which are extracted once: the same rows as without the rule."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

import deltic
from deltic.optimizer import optimize
from deltic.optimizer.row_estimates import Sizes
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Plan

TABLE = """
CREATE TABLE t (id BIGINT, s STRUCT<a: INT, b: STRING, c: STRUCT<d: INT, e: STRING>>, xs ARRAY<STRUCT<a: INT, n: INT>>, PRIMARY KEY (id))
"""
EXTRACTED = {
    "fields": "SELECT s.a, s.b FROM t WHERE s.a < 3",
    "one_again": "SELECT id, s.a + 1 AS next FROM t WHERE s.a < 3 AND s.b <> 'x'",
    "within": "SELECT s.c.d, s.c.e, s.a FROM t WHERE s.c.d IS NOT NULL AND s.a > 0",
    "grouped": "SELECT s.b, count(*) AS n, sum(s.a) AS total FROM t WHERE s.a > 0 GROUP BY s.b",
    "unnested": "SELECT x.a, count(*) AS n, sum(s.a + x.n) AS total FROM t LATERAL VIEW explode(xs) AS x WHERE s.a < 3 GROUP BY x.a",
    "filtered_again": "SELECT id, x.n FROM t LATERAL VIEW explode(xs) AS x WHERE s.a < 3 AND x.a > s.a",
    "joined": "SELECT l.s.a, r.s.b FROM t l JOIN t r ON l.id = r.id + 1 WHERE l.s.a < r.s.a",
}
WHOLE = {
    "passed_on": "SELECT s, s.a FROM t WHERE s.a < 3",
    "once": "SELECT id FROM t WHERE s.a < 3",
    "unfiltered": "SELECT s.a, s.b FROM t",
    "elements": "SELECT x.a, x.n FROM t LATERAL VIEW explode(xs) AS x WHERE x.a < 3",
}


def row(rng: Random, id: int) -> dict[str, Any]:
    def some(value: Any) -> Any:
        return value if rng.random() < 0.8 else None

    inner = some({"d": some(rng.randrange(3)), "e": some(rng.choice("xyz"))})
    elements = some([some({"a": some(rng.randrange(5)), "n": rng.randrange(3)}) for _ in range(rng.randrange(3))])
    return {"id": id, "s": some({"a": some(rng.randrange(5)), "b": some(rng.choice("xyz")), "c": inner}), "xs": elements}


def contents(seed: int) -> list[dict[str, list[str]]]:
    """The rows of all views after each of some random ticks."""
    rng, live, shown = Random(seed), set[int](), []
    with deltic.Session() as session:
        session.sql(
            TABLE + "; ".join(["", *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in (EXTRACTED | WHOLE).items())])
        )
        for _ in range(5):
            with session.transaction() as tx:
                gone = {id for id in live if rng.random() < 0.3}
                tx.delete("t", sorted(gone))
                new = [row(rng, id) for id in range(20) if rng.random() < 0.4]
                tx.upsert("t", new)
                live = live - gone | {one["id"] for one in new}
            shown.append({name: sorted(map(repr, session.view(name).rows())) for name in EXTRACTED | WHOLE})
    return shown


def test_the_rule_keeps_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    with_rule = contents(1)
    monkeypatch.setattr("deltic.optimizer.extract_fields", lambda plan: plan)
    assert with_rule == contents(1)
    assert all(any(views[name] for views in with_rule) for name in EXTRACTED | WHOLE)


@pytest.mark.parametrize("query", EXTRACTED.values(), ids=EXTRACTED)
def test_fields_are_columns_above_the_filter(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[Plan] = []

    def kept(plan: Plan, views: Mapping[Plan, Plan], sizes: Sizes) -> Plan:
        settled.append(optimize(plan, views, sizes))
        return settled[-1]

    monkeypatch.setattr("deltic.session.compiling.optimize", kept)
    with deltic.Session() as session:
        session.sql(TABLE)
        session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        above = str(session.explain("v")).partition(" := field(")[0].splitlines()[:-1]
    assert above and not any("field(s#" in line for line in above), above
    assert fingerprint(optimize(settled[-1])) == fingerprint(settled[-1])


@pytest.mark.parametrize("query", WHOLE.values(), ids=WHOLE)
def test_other_structs_stay_as_they_are(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def explained() -> str:
        with deltic.Session() as session:
            session.sql(TABLE)
            session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
            return str(session.explain("v"))

    with_rule = explained()
    monkeypatch.setattr("deltic.optimizer.extract_fields", lambda plan: plan)
    assert with_rule == explained()
