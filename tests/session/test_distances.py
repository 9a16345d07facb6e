"""Conditions on the distance from a value, such as `abs(x - m) > 2 * s`: the rows of the oracle, and what a change of the value costs."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.expr.functions.distance_bounds import _arrays, _rows, distance_bound
from deltic.expr.nodes import Column
from deltic.plan.evaluate import evaluate
from deltic.schema import DOUBLE
from seeds import rotating
from session_rows import touched_rows
from tests.support.parts import slow

INF, NAN, MOST = math.inf, math.nan, 1.7976931348623157e308
SPECIAL = (0.0, -0.0, 5e-324, 1.0, 1 + 2**-52, 0.1, 0.3, -0.3, 2.0**53, 1e16, -1e16, MOST, -MOST, MOST / 2, INF, -INF, NAN)


def above(x: float, y: float) -> bool:
    return not math.isnan(y) and (math.isnan(x) or x > y)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("rises", [True, False])
def test_the_bound_of_a_distance_decides_of_each_finite_number(rises: bool, strict: bool) -> None:
    call = distance_bound(Column(0, DOUBLE, True, "m"), Column(1, DOUBLE, True, "k"), rises=rises, strict=strict)
    rng = random.Random(0)
    pairs = [(m, k) for m in SPECIAL for k in SPECIAL] + [(rng.uniform(-9, 9), rng.uniform(-9, 9)) for _ in range(200)]
    bounds = [_rows(call, m, k, rises, strict) for m, k in pairs]
    columns = _arrays(call, len(pairs), *(pa.array(column, pa.float64()) for column in zip(*pairs, strict=True)))
    assert [*map(repr, columns.to_pylist())] == [*map(repr, bounds)]
    for (m, k), bound in zip(pairs, bounds, strict=True):
        near = (math.nextafter(bound, -INF), bound, math.nextafter(bound, INF), m + k, m - k)
        for x in filter(math.isfinite, (*near, *SPECIAL, rng.uniform(-20, 20))):
            with np.errstate(all="ignore"):
                distance = float(np.subtract(x, m) if rises else np.subtract(m, x))
            holds = above(distance, k) if strict else not above(k, distance)
            assert (x >= bound if rises else x < bound) == holds, (m, k, bound, x)


def test_the_bound_of_a_missing_value_is_missing() -> None:
    call = distance_bound(Column(0, DOUBLE, True, "m"), Column(1, DOUBLE, True, "k"), rises=True, strict=True)
    column = pa.array([None, 1.0, 2.0], pa.float64())
    assert _arrays(call, 3, column, pa.array([1.0, None, 1.0], pa.float64())).to_pylist() == [None, None, math.nextafter(3.0, INF)]


MEAN = "(SELECT avg(x) AS m, stddev(x) AS s FROM u) AS q"
GROUPS = "(SELECT g AS k, avg(x) AS m, stddev(x) AS s FROM u GROUP BY g) AS q"
QUERIES = {
    "far": f"SELECT id FROM t, {MEAN} WHERE abs(x - m) > s",
    "far or at it": f"SELECT id FROM t, {MEAN} WHERE abs(m - x) >= s",
    "near": f"SELECT id FROM t, {MEAN} WHERE abs(x - m) < 2 * s",
    "near or at it": f"SELECT id, x, m FROM {MEAN}, t WHERE s >= abs(x - m)",
    "of a constant": f"SELECT id FROM t, {MEAN} WHERE abs(m - x) > 1",
    "of a limit below zero": f"SELECT id FROM t, {MEAN} WHERE abs(x - m) > m OR id = 3",
    "signed": f"SELECT id FROM t, {MEAN} WHERE x - m > s",
    "signed, the other way": f"SELECT id FROM t, {MEAN} WHERE m - x >= s",
    "less": f"SELECT id FROM t, {MEAN} WHERE x - m <= s",
    "both": f"SELECT id FROM t, {MEAN} WHERE x - m < s AND m - x < s",
    "and more": f"SELECT id FROM t, {MEAN} WHERE abs(x - m) > s AND (id > 3 OR m > 0)",
    "of integers": f"SELECT id FROM t, {MEAN} WHERE abs(id - m) > s",
    "by group": f"SELECT id FROM t JOIN {GROUPS} ON t.g = q.k WHERE abs(x - m) > 0.5D * s",
    "near by group": f"SELECT id, m FROM t JOIN {GROUPS} ON t.g = q.k WHERE abs(x - m) <= s",
    "of a partition": "SELECT id FROM t QUALIFY abs(x - avg(x) OVER (PARTITION BY g)) > stddev(x) OVER (PARTITION BY g)",
    "of subqueries": "SELECT id FROM t WHERE abs(x - (SELECT avg(x) FROM u)) > (SELECT stddev(x) FROM u)",
    "correlated": """SELECT id FROM t
        WHERE abs(x - (SELECT avg(x) FROM u WHERE u.g = t.g)) > 0.5D * (SELECT stddev(x) FROM u WHERE u.g = t.g)""",
    "filtered": f"""SELECT g, count(*) FILTER (WHERE abs(x - m) > s) AS n, sum(CASE WHEN x - m > s THEN 1 ELSE 0 END) AS k
        FROM t, {MEAN} GROUP BY g""",
}
TABLES = "".join(f"CREATE TABLE {name} (id INT NOT NULL, g INT, x DOUBLE);" for name in "tu")
VALUES = ((None, 0.0, 1.0, 2.0, 0.1, 0.3), (None, 0.0, 1.0, -5.0, NAN), (1.0, 2.0, INF), (1.0, -1.0, INF, -INF, NAN, MOST))
Row = tuple[int, int | None, float | None]


def shown(rows: Iterable[tuple[object, ...]]) -> Counter[str]:
    return Counter(repr(tuple(value + 0.0 if isinstance(value, float) else value for value in row)) for row in rows)


def drawn(rng: random.Random, values: tuple[float | None, ...]) -> Counter[Row]:
    return Counter((rng.randrange(6), rng.choice((None, 0, 1)), rng.choice(values)) for _ in range(rng.choice((0, 1, 3, 8))))


@pytest.mark.filterwarnings("ignore:.*equality")
@pytest.mark.parametrize(("seed", "shards"), [(1, 1), (2, 3), *slow(*((seed, shards) for seed in rotating(17) for shards in (1, 3)))])
def test_views_have_the_rows_of_the_oracle(seed: int, shards: int, tmp_path: Path) -> None:
    """NaN, infinite numbers, empty tables; ticks of many rows, and of one; a restart in between."""
    script = TABLES + ";".join(f"CREATE MATERIALIZED VIEW v{i} AS {query}" for i, query in enumerate(QUERIES.values()))
    rng, found = random.Random(seed), Counter[str]()
    held: dict[str, Counter[Row]] = {"t": Counter(), "u": Counter()}
    session = deltic.Session(state=tmp_path, shards=shards)
    session.sql(script)
    for tick in range(16):
        if tick == 8:
            session.close()
            session = deltic.Session(state=tmp_path, shards=shards)
            session.sql(script)
        values = rng.choice(VALUES)
        new = {table: drawn(rng, values) if tick % 3 == 0 else held[table] + drawn(rng, values) for table in held}
        changes = {table: [(row, n) for row in {*new[table], *held[table]} if (n := new[table][row] - held[table][row])] for table in held}
        listed = [(table, row, n) for table, rows in changes.items() for row, n in rows]
        for part in ([one] for one in listed) if tick % 2 else [listed]:
            session.apply({table: [{"id": i, "g": g, "x": x, "_weight": n} for of, (i, g, x), n in part if of == table] for table in held})
        held = new
        for i, name in enumerate(QUERIES):
            plan = session._definitions.catalog.views[f"v{i}"].plan
            expected = Counter(row for row, n in evaluate(plan, held).pairs() for _ in range(n))
            assert shown(tuple(row.values()) for row in session.view(f"v{i}").rows()) == shown(expected.elements()), (name, held)
            found[name] += len(expected)
    session.close()
    assert sum(found[name] > 0 for name in QUERIES) > 10


WORK = {
    "of all rows": "SELECT id FROM t, (SELECT avg(x) AS m, stddev(x) AS s FROM t) AS q WHERE abs(x - m) > s",
    "of a group": "SELECT id FROM t JOIN (SELECT g AS k, avg(x) AS m, stddev(x) AS s FROM t GROUP BY g) q ON g = k WHERE abs(x - m) > s",
    "of a partition": "SELECT id FROM t QUALIFY abs(x - avg(x) OVER (PARTITION BY g)) <= stddev(x) OVER (PARTITION BY g)",
    "filtered": "SELECT count(*) FILTER (WHERE abs(x - (SELECT avg(x) FROM t)) > (SELECT stddev(x) FROM t)) AS n FROM t",
    "signed": "SELECT id FROM t WHERE x - (SELECT avg(x) FROM t) > (SELECT stddev(x) FROM t)",
}


@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("type", ["BIGINT", "DOUBLE"])
@pytest.mark.parametrize("n", [5_000, *slow(1_000_000)])
def test_a_change_of_the_value_touches_the_rows_that_it_passes(name: str, type: str, n: int) -> None:
    """Values are as far apart as rows are many, so that a new row moves the value by less than their distance."""
    with deltic.Session() as session:
        session.sql(f"CREATE TABLE t (id INT NOT NULL, g INT, x {type}); CREATE MATERIALIZED VIEW v AS {WORK[name]}")
        session.apply({"t": [{"id": i, "g": i % 4, "x": i * n, "_weight": 1} for i in range(n)]})
        for step in range(2):
            session.apply({"t": [{"id": n + step, "g": 1, "x": n * n // 3 + step, "_weight": 1}]})
            assert touched_rows(session) < 600
