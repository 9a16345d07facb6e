"""Views with window functions against DuckDB's answers, after each of several changes. Orders have no ties where these would decide."""

from __future__ import annotations

from random import Random

import duckdb
import pytest

import deltic

CALLS = (
    "row_number() OVER (PARTITION BY g ORDER BY x, id)",
    "rank() OVER (PARTITION BY g ORDER BY x)",
    "dense_rank() OVER (ORDER BY g, x)",
    "ntile(3) OVER (PARTITION BY g ORDER BY x, id)",
    "lag(x, 2, -1) OVER (PARTITION BY g ORDER BY x, id)",
    "lead(x) OVER (ORDER BY x, id)",
    "first_value(x) OVER (ORDER BY x, id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)",
    "sum(x) OVER (PARTITION BY g)",
    "sum(x) OVER (PARTITION BY g ORDER BY x)",
    "sum(x) OVER (ORDER BY x RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING)",
    "count(*) OVER (PARTITION BY g ORDER BY day RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW)",
    "avg(x) OVER (ORDER BY day DESC, id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    "max(x) OVER (PARTITION BY g ORDER BY day, id ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
    "sum(x) OVER (PARTITION BY g ORDER BY x, id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
)


@pytest.mark.parametrize("seed", range(2))
def test_windows_are_those_of_duckdb(seed: int) -> None:
    rng = Random(seed)
    columns = ", ".join(f"{call} AS c{i}" for i, call in enumerate(CALLS))
    query = f"SELECT id, {columns} FROM a"
    with deltic.Session() as session, duckdb.connect() as other:
        create = "CREATE TABLE a (id BIGINT, g INT NOT NULL, x BIGINT NOT NULL, day DATE NOT NULL, PRIMARY KEY (id))"
        session.sql(create)
        other.execute(create)
        session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        present: list[int] = []
        for tick in range(3):
            new = range(100 * tick, 100 * tick + rng.randint(1, 30))
            gone = rng.sample(present, len(present) // 3)
            present = [*(i for i in present if i not in gone), *new]
            rows = [(i, rng.randint(0, 2), rng.randint(-5, 5), f"2024-01-{rng.randint(1, 28):02}") for i in new]
            with session.transaction() as tx:
                tx.delete("a", [{"id": i} for i in gone])
            other.executemany("DELETE FROM a WHERE id = ?", [[i] for i in gone] or [[-1]])
            values = ", ".join(f"({i}, {g}, {x}, DATE '{day}')" for i, g, x, day in rows)
            session.sql(f"INSERT INTO a VALUES {values}")
            other.execute(f"INSERT INTO a VALUES {values}")
            expected = sorted(other.execute(query).fetchall())
            assert sorted(tuple(row.values()) for row in session.view("v").rows()) == expected
