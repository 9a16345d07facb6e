"""Sums and means of FLOAT and DOUBLE by the instructions of programs, beside the steps of their operators."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import pytest

import deltic
from cores import both_cores
from parts import slow
from seeds import rotating

NAN, INF = float("nan"), float("inf")
PLAIN: Final = (None, 0.0, -0.0, 0.1, 1 / 3, -2.5, 1e10)
EXTREME: Final = (*PLAIN, 1e300, -1e300, 1.7976931348623157e308, 5e-324, -1e-310, NAN, INF, -INF)
VIEWS: Final = """
    CREATE MATERIALIZED VIEW by_group AS SELECT g, sum(e) AS s, avg(e) AS m, sum(f) AS t, avg(f) AS u, count(*) AS n FROM v GROUP BY g;
    CREATE MATERIALIZED VIEW whole AS SELECT sum(e) AS s, avg(f) AS m FROM v;
    CREATE MATERIALIZED VIEW beside AS
        SELECT g, h, avg(e) AS m, min(i) AS least, max(e) AS most, sum(i) AS i, sum(e) AS s FROM v GROUP BY g, h;
"""


def row(choose: random.Random, number: int, values: Sequence[float | None]) -> dict[str, Any]:
    return {
        "k": number,
        "g": choose.choice((None, 1, 2)),
        "h": choose.choice("ab"),
        "e": choose.choice((*values, choose.random())),
        "f": choose.choice((0.0, 0.1, -2.5, 3.4e38, -3.4e38, NAN, INF) if NAN in values else (0.0, 0.1, -2.5)),
        "i": choose.choice((None, 1, 2)),
    }


def compare(seed: int) -> None:
    choose, kept = random.Random(seed), list[dict[str, Any]]()
    with both_cores() as compared, deltic.Session() as session:
        session.sql("CREATE TABLE v (k BIGINT PRIMARY KEY, g INT, h STRING, e DOUBLE, f FLOAT NOT NULL, i INT);" + VIEWS)
        for tick in range(12):
            added = [row(choose, 100 * tick + n, PLAIN if seed % 2 else EXTREME) for n in range(choose.choice((1, 3, 60)))]
            removed = [kept.pop(choose.randrange(len(kept))) for _ in range(min(len(kept), choose.choice((0, 2, 50))))]
            session.apply({"v": [*({**one, "_weight": 1} for one in added), *({**one, "_weight": -1} for one in removed)]})
            kept += added
        assert compared.native["TakeApart"] > 30 and "TakeApart" not in compared.stepped
        assert compared.stepped.get("AggregateOperator", 0) <= 1  # the first row of all rows
        session.apply({"v": [{**one, "_weight": -1} for one in kept]})
        assert session.view("by_group").rows() == [] and session.view("whole").rows() == [{"s": None, "m": None}]


@pytest.mark.parametrize("seeds", [range(2), *slow(rotating(58))], ids=len)
def test_sums_and_means(seeds: range) -> None:
    for seed in seeds:
        compare(seed)


def test_limbs_are_carried_and_residues_vanish() -> None:
    """Thousands of rows of one group, whose limbs leave 2^36, and come back."""
    rows = [{"k": k, "g": 1, "h": "a", "e": 0.1, "f": 3e38 if k % 2 else -3e38, "i": 1} for k in range(2_000)]
    with both_cores() as compared, deltic.Session() as session:
        session.sql("CREATE TABLE v (k BIGINT PRIMARY KEY, g INT, h STRING, e DOUBLE, f FLOAT NOT NULL, i INT);" + VIEWS)
        for weight in (1, -1, 1):
            session.apply({"v": [{**one, "_weight": weight} for one in rows]})
        session.apply({"v": [{**one, "_weight": -1} for one in rows[1:]]})
        (group,) = session.view("by_group").rows()
        assert (group["s"], group["m"], group["n"]) == (0.1, 0.1, 1)
        assert "TakeApart" not in compared.stepped
