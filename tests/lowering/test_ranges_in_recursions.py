"""Recursions that join by inequalities alone: the oracle's answers after every tick, and work in proportion to the change."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.plan.evaluate import evaluate
from deltic.plan.relation import Relation
from seeds import rotating
from session_rows import touched_rows
from tests.support.parts import slow

pytestmark = pytest.mark.filterwarnings("ignore:.*one comparison looks up rows")

TABLES = """
    CREATE TABLE points (id BIGINT, x BIGINT, PRIMARY KEY (id));
    CREATE TABLE spans (id BIGINT, low BIGINT, high BIGINT, PRIMARY KEY (id));
"""
POINTS = "SELECT x FROM points"
RECURSIONS = {
    "within": f"{POINTS} UNION SELECT s.high FROM r JOIN spans s ON r.x >= s.low AND r.x < s.high",
    "spread": "SELECT id, x FROM points UNION SELECT r.id, s.high FROM r JOIN spans s ON r.x BETWEEN s.low AND s.high",
    "below": "SELECT x, 0L AS n FROM points UNION SELECT s.low, r.n + 1 FROM r JOIN spans s ON s.low < r.x WHERE r.n < 3",
    "overlapping": "SELECT low, high FROM spans UNION SELECT r.low, s.high FROM r JOIN spans s ON r.low <= s.high AND s.low <= r.high",
    "itself": "SELECT id, x FROM points UNION SELECT a.id, b.x FROM r a JOIN r b ON a.x < b.x AND a.x + b.id > 3",
    "intervals": "SELECT low, high FROM spans UNION SELECT p.x, r.high FROM r JOIN points p ON p.x BETWEEN r.low AND r.high",
    "exists": f"{POINTS} UNION SELECT s.high FROM spans s WHERE EXISTS (SELECT 1 FROM r WHERE r.x > s.low AND r.x <= s.high)",
    "one": f"{POINTS} UNION SELECT r.x + 1 FROM r JOIN (SELECT max(high) AS most FROM spans) ON r.x < most",
}
COLUMNS = {"below": "x, n", "spread": "id, x", "itself": "id, x", "overlapping": "low, high", "intervals": "low, high"}


def script(names: list[str]) -> str:
    columns = {name: COLUMNS.get(name, "x") for name in names}
    views = (f"CREATE MATERIALIZED VIEW {n} AS WITH RECURSIVE r ({c}) AS ({RECURSIONS[n]}) SELECT * FROM r" for n, c in columns.items())
    return "; ".join([TABLES.rstrip().rstrip(";"), *views])


def check(seed: int, shards: int, again: int, folder: Path, ticks: int = 8, names: list[str] | None = None, **options: Any) -> None:
    rng, found = Random(seed), 0
    content: dict[str, dict[int, tuple[int | None, ...]]] = {"points": {}, "spans": {}}

    def value() -> int | None:
        return None if rng.random() < 0.05 else rng.randrange(-6, 14)

    for first, last, number in ((0, ticks // 2, shards), (ticks // 2, ticks, again)):
        with deltic.Session(state=folder / "state", shards=number, **options) as session:
            session.sql(script(names or [*RECURSIONS]))
            for _ in range(first, last):
                with session.transaction() as tx:
                    for table, most in (("points", 5), ("spans", 8)):
                        gone = [id for id in content[table] if rng.random() < 0.4]
                        tx.delete(table, gone)
                        content[table] = {id: row for id, row in content[table].items() if id not in gone}
                        for id in range(most):
                            low = value()
                            row = (low,) if table == "points" else (low, None if low is None else low + rng.randrange(-1, 6))
                            if id not in content[table] and rng.random() < 0.4:
                                content[table][id] = row
                                tx.insert(table, [dict(zip(session.table(table).schema.names, (id, *row), strict=True))])
                tables = {name: Relation(((id, *row), 1) for id, row in rows.items()) for name, rows in content.items()}
                for view in session._definitions.catalog.views.values():
                    expected = evaluate(view.plan, tables)
                    found += len(expected)
                    assert Relation((tuple(row.values()), 1) for row in session.view(view.name).rows()) == expected, view.name
    assert found > 20


@pytest.mark.parametrize(
    ("seed", "shards", "again"), [(0, 3, 2), *slow(*((seed, *each) for seed in rotating(3) for each in [(1, 1), (3, 3), (1, 3), (3, 2)]))]
)
def test_recursions_are_those_of_the_oracle(seed: int, shards: int, again: int, tmp_path: Path) -> None:
    check(seed, shards, again, tmp_path, 8 if seed else 4)


@pytest.mark.slow
@pytest.mark.spark
def test_recursions_on_spark_are_those_of_the_oracle(spark: Any, tmp_path: Path) -> None:
    check(1, 3, 3, tmp_path, 4, ["within", "spread", "overlapping"], spark=spark)


def test_which_recursions_look_rows_up() -> None:
    with deltic.Session(shards=2) as session:
        session.sql(script([*RECURSIONS]))
        looked_up = {name: str(session.explain(name)).count("range_join") for name in RECURSIONS}
    assert looked_up == {**dict.fromkeys(RECURSIONS, 1), "overlapping": 2, "one": 0}


@pytest.mark.parametrize("n", [10_000, *slow(1_000_000)])
def test_a_changed_row_costs_the_logarithm_and_its_matches(n: int) -> None:
    with deltic.Session() as session:
        session.sql(script(["within"]))
        ids, weights = np.arange(n), np.ones(n, np.int64)
        spans = pa.table({"id": ids, "low": ids * 20, "high": ids * 20 + 10, "_weight": weights})
        session.apply({"spans": spans, "points": pa.table({"id": [1], "x": [15], "_weight": [1]})})
        for statement, rows in (
            (f"INSERT INTO spans VALUES ({n}, 14, 20)", 3),
            (f"INSERT INTO points VALUES (2, {10 * n + 4})", 5),
            ("UPDATE spans SET high = 40 WHERE id = 1", 6),
            (f"DELETE FROM spans WHERE id = {n}", 3),
        ):
            session.sql(statement)
            assert len(session.view("within").rows()) == rows, statement
            assert session.last_tick is not None
            assert touched_rows(session) < 5_000, statement
