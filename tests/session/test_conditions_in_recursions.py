"""Recursions whose steps join and test rows by conditions of every form: the oracle's rows after every tick, over restarts."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import deltic
from deltic.plan.evaluate import evaluate
from parts import slow
from seeds import rotating

VALUES: dict[str, Sequence[Any]] = {
    "INT": (None, 0, 1, 2, 3, 4),
    "DOUBLE": (None, 0.0, -0.0, 1.0, 2.0, math.nan, math.inf, -math.inf),
    "DECIMAL(5,1)": (None, Decimal("0.0"), Decimal("1.0"), Decimal("2.5")),
    "STRING": (None, "", "a", "b", "ab"),
    "BOOLEAN": (None, True, False),
}
"""The values of each type. No expression makes others, so that recursions end."""
CONDITIONS = (
    "{x} = {a}",
    "{y} = {b}",
    "{x} <=> {a}",
    "({x}, {y}) = ({a}, {b})",
    "{x} < {a}",
    "{y} <> {b}",
    "{x} BETWEEN {a} AND {a}",
    "{y} > {b} OR {y} < {b}",
    "{x} = {a} AND {y} < {b}",
    "({x} < {a}) IS NOT TRUE",
    "{a} IS NULL OR {x} >= {a}",
    "{x} = {a} OR {y} = {b}",
    "{x} IS NULL OR {x} = {a}",
    "({x} = {a} AND {y} < {b}) OR {y} = {b}",
    "{x} = {a} OR {y} < {b}",
    "{x} <=> {a} OR {y} <=> {b}",
)
TESTS = (
    "r.y IS NOT NULL",
    "r.x IN (SELECT a FROM v)",
    "r.x NOT IN (SELECT a FROM v)",
    "(r.x, r.y) IN (SELECT a, b FROM v)",
    "r.x IN (SELECT a FROM v) OR r.y IS NULL",
    "EXISTS (SELECT 1 FROM v WHERE {})",
    "NOT EXISTS (SELECT 1 FROM v WHERE {})",
    "r.y > (SELECT min(b) FROM v)",
    "r.y = (SELECT max(b) FROM v WHERE v.a = r.x)",
)
STEPS = (
    "SELECT {x}, {y} FROM r JOIN u ON {on_u} WHERE {test}",
    "SELECT {x}, {y} FROM r LEFT JOIN u ON {on_u} WHERE {test}",
    "SELECT {x}, {y} FROM r JOIN u ON {on_u} JOIN v ON {on_v} WHERE {test}",
    "SELECT r.x, s.y FROM r JOIN r AS s ON {on_s} WHERE {test}",
    "SELECT u.a, u.b FROM u WHERE EXISTS (SELECT 1 FROM r WHERE {on_u})",
)
RESULTS = (
    "SELECT x, y FROM r",
    "SELECT x, count(*) AS n FROM r GROUP BY x",
    "SELECT a, b FROM u WHERE a NOT IN (SELECT x FROM r)",
    "SELECT x, y, lag(y) OVER (PARTITION BY x ORDER BY y) AS n FROM r",
)
Row = tuple[Any, ...]


def condition(rng: random.Random, x: str, y: str, a: str, b: str) -> str:
    parts = [rng.choice(CONDITIONS).format(x=x, y=y, a=a, b=b) for _ in range(rng.choice((1, 1, 1, 2)))]
    return " AND ".join(f"({part})" for part in parts)


def step(rng: random.Random) -> str:
    test = rng.choice(TESTS).format(condition(rng, "r.x", "r.y", "v.a", "v.b")) if rng.random() < 0.5 else "TRUE"
    conditions = {f"on_{other}": condition(rng, "r.x", "r.y", *columns) for other, *columns in (("u", "u.a", "u.b"), ("s", "s.x", "s.y"))}
    on_v = condition(rng, "u.a", "r.y", "v.a", "v.b")
    return rng.choice(STEPS).format(x=rng.choice(("r.x", "u.a")), y=rng.choice(("r.y", "u.b")), test=test, on_v=on_v, **conditions)


def query(rng: random.Random) -> str:
    steps = " UNION ".join(step(rng) for _ in range(rng.choice((1, 2))))
    return f"WITH RECURSIVE r (x, y) AS (SELECT a, b FROM t UNION {steps}) {rng.choice(RESULTS)}"


def shown(rows: Iterable[tuple[Any, ...]]) -> Counter[str]:
    """-0.0 is 0.0, as in DISTINCT."""
    return Counter(repr(tuple(value + 0.0 if isinstance(value, float) else value for value in row)) for row in rows)


def check(seed: int, folder: Path) -> int:
    """Returns how many rows the view had."""
    rng, found = random.Random(f"recursion {seed}"), 0
    types = [rng.choice(list(VALUES)) for _ in "ab"]
    script = "".join(f"CREATE TABLE {table} (a {types[0]}, b {types[1]});" for table in "tuv")
    script += f"CREATE MATERIALIZED VIEW answer AS {query(rng)}"
    held = dict[str, list[Row]]({table: [] for table in "tuv"})
    few, many = (0, 1), (3, 6)
    for ticks in (3, 2):
        with deltic.Session(state=folder, shards=rng.choice((1, 2, 3))) as session:
            session.sql(script)
            for tick in range(ticks):
                changes = dict[str, list[dict[str, Any]]]()
                for table, rows in held.items():
                    kept = [rng.random() < 0.8 for _ in rows]
                    gone = [row for row, stays in zip(rows, kept, strict=True) if not stays]
                    new: list[Row] = [tuple(rng.choice(VALUES[type]) for type in types) for _ in range(rng.choice(few if tick else many))]
                    changes[table] = [{"a": a, "b": b, "_weight": w} for part, w in ((gone, -1), (new, 1)) for a, b in part]
                    held[table] = [row for row, stays in zip(rows, kept, strict=True) if stays] + new
                session.apply(changes)
                plan = session._definitions.catalog.views["answer"].plan
                expected = evaluate(plan, {table: Counter(rows) for table, rows in held.items()})
                actual = shown(tuple(row.values()) for row in session.view("answer").rows())
                assert actual == shown(row for row, n in expected.pairs() for _ in range(n)), (script, held)
                found += actual.total()
    return found


@pytest.mark.filterwarnings("ignore:.*equality")
@pytest.mark.parametrize("seeds", [range(8), *slow(rotating(300))], ids=len)
def test_random_steps_have_the_rows_of_the_oracle(seeds: range, tmp_path: Path) -> None:
    assert sum(check(seed, tmp_path / str(seed)) > 0 for seed in seeds) > len(seeds) // 2
