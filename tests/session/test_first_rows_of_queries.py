"""ORDER BY … LIMIT of a query: the rows are those of a sort of all rows, and few rows are sorted."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

import deltic
from deltic.circuit.nodes import Dataflow
from deltic.circuit.operator import Context, Delta
from deltic.circuit.operators.arrange import Arrange
from deltic.trace.batch import Batch

LONG = "a string of which more than the first bytes count: "
ORDERS = [
    "a",
    "a DESC",
    "a DESC NULLS FIRST",
    "a NULLS LAST, d",
    "d",
    "d DESC, s",
    "s",
    "s DESC NULLS LAST, id",
    "id",
    "a % 2",
    "t DESC, a",
    "c",
    "n, s DESC",
    "a IS NULL, length(s), d DESC",
]
QUERIES = [
    *(f"SELECT * FROM t ORDER BY {order} LIMIT {limit}" for order in ORDERS for limit in (1, 7)),
    *(f"SELECT s, a FROM t WHERE a > 2 ORDER BY {order} LIMIT 3 OFFSET 4" for order in ("a", "s", "s DESC, d", "d DESC")),
    *(
        f"SELECT s FROM t WHERE s LIKE 'a %' ORDER BY s {direction} LIMIT {limit} OFFSET 1"
        for direction in ("ASC", "DESC")
        for limit in (1, 5)
    ),
    "SELECT * FROM t ORDER BY a LIMIT 0",
    "SELECT s, count(*) AS n FROM t GROUP BY s ORDER BY n DESC, s LIMIT 3",
    "SELECT a FROM t EXCEPT ALL SELECT a FROM u ORDER BY a LIMIT 4",
    "SELECT t.a, u.a AS other FROM t LEFT JOIN u ON t.a = u.a ORDER BY t.d DESC, u.a LIMIT 6",
    "SELECT count(*) AS n FROM (SELECT a FROM t ORDER BY d LIMIT 5) WHERE a > 3",
    *(f"SELECT count(*) AS n FROM (SELECT a FROM t {clause})" for clause in ("LIMIT 3", "OFFSET 5", "ORDER BY d LIMIT 2 OFFSET 1")),
    "SELECT 1 AS one FROM (SELECT a FROM t LIMIT 3)",
    "SELECT a FROM (SELECT a, d FROM t ORDER BY d LIMIT 9) ORDER BY a DESC LIMIT 2",
    "SELECT a, d FROM t WHERE a IN (SELECT a FROM t ORDER BY s LIMIT 2) ORDER BY d LIMIT 3",
    "(SELECT a FROM t ORDER BY a LIMIT 3) UNION ALL (SELECT a FROM t ORDER BY a LIMIT 5 OFFSET 2)",
]


def _row(rng: Random, id: int) -> dict[str, Any]:
    text = rng.choice([None, "", "a", f"b{rng.randrange(30)}", LONG + str(rng.randrange(6)), LONG * 2 + str(rng.randrange(3))])
    floats = [None, 0.0, -0.0, float("nan"), float("inf"), -1.5, rng.random()]
    time = rng.choice([None, f"2024-01-{rng.randrange(1, 28):02}"])
    return {
        "id": id,
        "a": rng.choice([None, *range(9)]),
        "d": rng.choice(floats),
        "s": text,
        "day": time,
        "n": rng.choice([None, [1], [1, 2]]),
    }


def _filled(shards: int) -> deltic.Session:
    session, rng = deltic.Session(shards=shards), Random(7)
    session.sql("""
        CREATE TABLE t (id INT NOT NULL, a BIGINT, d DOUBLE, s STRING, t DATE, c DECIMAL(38, 2), n ARRAY<INT>);
        CREATE TABLE u (a BIGINT);
    """)
    for _ in range(3):
        rows = [_row(rng, rng.randrange(150)) for _ in range(150)]
        days = ["NULL" if row["day"] is None else f"DATE'{row['day']}'" for row in rows]
        with session.transaction() as tx:
            tx.insert("u", [{"a": rng.choice([None, *range(6)])} for _ in range(20)])
        with session.transaction() as tx:
            tx.insert("t", [{k: v for k, v in row.items() if k != "day"} | {"t": None, "c": None} for row in rows])
        session.sql(f"INSERT INTO t (id, t, c) VALUES {', '.join(f'({i}, {day}, {i}.25)' for i, day in enumerate(days[:40]))}")
    session.sql("DELETE FROM t WHERE id = 3")
    return session


@pytest.mark.parametrize("shards", [1, 3])
def test_the_first_rows_are_those_of_all_rows_in_order(shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with _filled(shards) as session:
        answers = [list(map(repr, session.query(query).rows())) for query in QUERIES]

        def unchanged(circuit: Dataflow) -> Dataflow:
            return circuit

        monkeypatch.setattr("deltic.runtimes.once._with_first_rows", unchanged)
        for query, answer in zip(QUERIES, answers, strict=True):
            assert answer == list(map(repr, session.query(query).rows())), query
        assert sum(map(bool, answers)) > len(QUERIES) - 3


def _sorted_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that are arranged from now on."""
    arranged: list[int] = []
    step = Arrange.step

    def counted(operator: Arrange, inputs: Sequence[Delta], context: Context) -> Batch:
        arranged.append(len(inputs[0]))
        return step(operator, inputs, context)

    monkeypatch.setattr(Arrange, "step", counted)
    return arranged


@pytest.mark.parametrize("order", ["a", "d DESC", "s, a", "a % 2", "id DESC"])
def test_few_rows_are_sorted(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(1)
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (id INT NOT NULL, a BIGINT, d DOUBLE, s STRING)")
        with session.transaction() as tx:
            tx.insert("t", [{"id": i, "a": rng.randrange(100), "d": rng.random(), "s": f"s{i % 500}"} for i in range(20_000)])
        arranged = _sorted_rows(monkeypatch)
        assert len(session.query(f"SELECT id FROM t ORDER BY {order} LIMIT 10")) == 10
        assert arranged and max(arranged) < 100


def test_rows_that_are_removed_again_are_no_first_rows() -> None:
    """A row and its removal, which come before all others, cancel only once they are sorted."""
    with deltic.Session() as session:
        session.sql("CREATE TABLE t (a INT NOT NULL); CREATE TABLE u (a INT NOT NULL)")
        with session.transaction() as tx:
            tx.insert("t", [{"a": a} for a in range(1000)])
            tx.insert("u", [{"a": a} for a in range(500)])
        query = "SELECT a FROM t WHERE a NOT IN (SELECT a FROM u) ORDER BY a LIMIT 3"
        assert [row["a"] for row in session.query(query).rows()] == [500, 501, 502]
        query = "SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 90 OFFSET 40) ORDER BY a LIMIT 3"
        assert [row["a"] for row in session.query(query).rows()] == [40, 41, 42]
