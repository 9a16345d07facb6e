"""collect_list and listagg as window functions: lists in the order of the window, beside DuckDB, and what a changed row touches."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deltic
from deltic.frontends.sql import bind_query
from deltic.plan.evaluate import evaluate
from deltic.schema import INT, STRING, Field, Schema, TableSchema

ORDERS = ("o NULLS FIRST, id", "o DESC NULLS LAST, id DESC")
FRAMES = (
    "",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
)
WINDOWS = [f"PARTITION BY k ORDER BY {ORDERS[i % 2]} {frame}" for i, frame in enumerate(FRAMES)]


def _queries(collect: str, texts: str) -> list[str]:
    return [f"SELECT id, {collect} OVER ({window}) AS l, {texts} OVER ({window}) AS s FROM t" for window in WINDOWS]


OURS = _queries("collect_list(x)", "listagg(s, '-')")
THEIRS = [
    query.replace("list(x) FILTER (WHERE x IS NOT NULL) OVER", "coalesce(list(x) FILTER (WHERE x IS NOT NULL) OVER").replace(
        " AS l", ", []) AS l"
    )
    for query in _queries("list(x) FILTER (WHERE x IS NOT NULL)", "string_agg(s, '-')")
]
TIED = "SELECT id, array_agg(s) OVER (PARTITION BY k ORDER BY o ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS l FROM t"
"""The whole row decides."""
TABLE = TableSchema("t", Schema((Field("id", INT, False), Field("k", INT), Field("o", INT), Field("x", INT), Field("s", STRING))), (0,))


class _Catalog:
    def relation(self, name: str) -> TableSchema | None:
        return TABLE if name.lower() == "t" else None

    def function(self, name: str) -> None:
        return None

    def functions(self) -> dict[str, Any]:
        return {}

    def names(self) -> tuple[str, ...]:
        return ("t",)


def _plain(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list | tuple) else value for value in row.values())


@pytest.mark.parametrize("shards", [1, 3])
def test_lists_follow_changes_as_duckdb_and_the_oracle_say(shards: int) -> None:
    rng, rows = random.Random(shards), dict[int, tuple[Any, ...]]()
    tied = bind_query(TIED, "test", _Catalog())
    with deltic.Session(shards=shards) as session, duckdb.connect() as base:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, o INT, x INT, s STRING)")
        base.execute("CREATE TABLE t (id INT, k INT, o INT, x INT, s VARCHAR)")
        for i, query in enumerate((*OURS, TIED)):
            session.sql(f"CREATE MATERIALIZED VIEW v{i} AS {query}")
        for _ in range(6):
            with session.transaction() as tx:
                for id in rng.sample(sorted(rows), min(2, len(rows))):
                    tx.delete("t", [id])
                    del rows[id]
                for id in rng.sample(range(30), 4):
                    rows[id] = (
                        id,
                        rng.choice((None, 1, 2)),
                        rng.choice((None, 1, 2, 3)),
                        rng.choice((None, 5, 6)),
                        rng.choice((None, "a", "b")),
                    )
                    tx.upsert("t", [dict(zip(TABLE.schema.names, rows[id], strict=True))])
            base.execute("DELETE FROM t")
            base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", list(rows.values()))
            for i, query in enumerate(THEIRS):
                expected = Counter(_plain(dict(enumerate(row))) for row in base.execute(query).fetchall())
                assert Counter(map(_plain, session.view(f"v{i}").rows())) == expected, OURS[i]
            oracle = evaluate(tied, {"t": dict.fromkeys(rows.values(), 1)})
            assert Counter(map(_plain, session.view(f"v{len(OURS)}").rows())) == dict(oracle.pairs())


def test_a_changed_row_touches_the_frames_that_have_it() -> None:
    small, large = (_touched(size) for size in (1_000, 64_000))
    assert all(0 < large[view] < 2 * small[view] for view in small), (small, large)


def _touched(size: int) -> dict[str, int]:
    """By view, the rows that a change of one row touches in a table of this size."""
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, o INT, x INT)")
        session.sql("CREATE MATERIALIZED VIEW near AS SELECT id, collect_list(x) OVER (ORDER BY o, id ROWS 3 PRECEDING) AS l FROM t")
        session.sql("CREATE MATERIALIZED VIEW few AS SELECT id, collect_list(x) OVER (PARTITION BY k ORDER BY o) AS l FROM t")
        ids = np.arange(size, dtype=np.int32)
        with session.transaction() as tx:
            tx.insert("t", pa.table({"id": ids, "k": ids // 8, "o": ids, "x": ids}))
        session.sql(f"UPDATE t SET x = -1 WHERE id = {size // 2}")
        assert session.last_tick is not None
        touched = {}
        for view in ("near", "few"):
            own = {operator["id"] for operator in session.explain(view).json()["operators"]}
            touched[view] = sum(counter.touched for node, counter in session.last_tick.counters.items() if node in own)
        return touched


@pytest.mark.parametrize("order", ["x", "x DESC", "s", "s DESC NULLS LAST, d", "d NULLS LAST", "y", "lower(s), x"])
@pytest.mark.parametrize("rows", ["t", "(SELECT max(d) AS d, x, sum(y) AS y, s FROM t GROUP BY x, s, id)"])
def test_equal_rows_are_listed_as_they_are_numbered(rows: str, order: str) -> None:
    frame = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"
    listed = f"collect_list(y) OVER (ORDER BY {order} {frame}) AS l, row_number() OVER (ORDER BY {order}) AS n"
    for seed in range(8):
        rng, session = random.Random(seed), deltic.Session()
        session.sql("CREATE TABLE t (id INT NOT NULL, x INT, y INT, s STRING COLLATE UTF8_LCASE, d DOUBLE, PRIMARY KEY (id))")
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT y, {listed} FROM {rows}")
        for tick in range(3):
            drawn = {
                "x": [None, 1, 2],
                "y": [0, 1, 2, 3],
                "s": ["a", "A", "b", None],
                "d": [0.0, -0.0, 1.0, None],
            }
            with session.transaction() as tx:
                for id in range(tick, 9, 2):
                    tx.upsert("t", [{"id": id, **{name: rng.choice(values) for name, values in drawn.items()}}])
            shown = sorted(session.view("v").rows(), key=lambda row: row["n"])
            assert [list(row["l"]) for row in shown] == [[row["y"] for row in shown[i:]] for i in range(len(shown))]
