"""Aggregates of users that merge: kept as a tree over the sorted rows of a group, whatever the order in which rows come and go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

import deltic
from deltic.errors import CircuitError, DelticError, EvaluationError
from deltic.expr.nodes import Value
from deltic.expr.rows.ordering import total_key
from session_rows import touched_rows

MERGES: list[int] = []


class Text:
    """All rows, in order: what depends on any order, or leaves a row out, is seen."""

    state = "text STRING"

    def step(self, s: str | None, x: int | None) -> None:
        self.text = f"{s}:{x};"

    def merge(self, later: Text) -> None:
        self.text += later.text

    def finish(self) -> str:
        return self.text


class Rises:
    """How often a value is greater than the one before, by an instance that `merge` returns."""

    state = "n BIGINT, first BIGINT, last BIGINT"

    def step(self, x: int) -> None:
        self.n, self.first, self.last = 0, x, x

    def merge(self, later: Rises) -> Rises:
        MERGES.append(1)
        both = Rises()
        both.n, both.first, both.last = self.n + later.n + (later.first > self.last), self.first, later.last
        return both

    def finish(self) -> int:
        return self.n


def text_of(rows: Sequence[tuple[Value, Value]]) -> str | None:
    return "".join(f"{s}:{x};" for s, x in sorted(rows, key=lambda row: tuple(map(total_key, row)))) or None


STRINGS = (None, "a", "bb", "x" * 23, "x" * 24, "x" * 24 + "b", "x" * 24 + "a", "x" * 40, "y" * 24)
VIEWS = """
CREATE TABLE t (id INT PRIMARY KEY, k INT, s STRING, x INT);
CREATE MATERIALIZED VIEW v AS SELECT k, text(s, x) AS t, text(DISTINCT s, x) FILTER (WHERE x < 5) AS d, text('c', x) AS c FROM t GROUP BY k;
CREATE MATERIALIZED VIEW w AS SELECT text(s, x) AS t FROM t;
CREATE MATERIALIZED VIEW g AS SELECT k, x, text(s, x) AS t FROM t GROUP BY CUBE (k, x);
"""


@pytest.mark.parametrize(("on_spark", "shards"), [(False, 1), (False, 3), pytest.param(True, 2, marks=pytest.mark.spark)])
def test_the_rows_are_in_order_after_any_changes(on_spark: bool, shards: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Long strings, whose words do not order them, among the others; the state is opened again in between."""
    rng, rows = Random(shards), dict[int, dict[str, Any]]()
    options: dict[str, Any] = {}
    if on_spark:
        options["spark"] = request.getfixturevalue("spark")
        request.getfixturevalue("by_value")

    def check(session: deltic.Session) -> None:
        by_key: dict[Value, list[tuple[Value, Value]]] = {}
        for row in rows.values():
            by_key.setdefault(row["k"], []).append((row["s"], row["x"]))
        expected = [
            {
                "k": k,
                "t": text_of(of),
                "d": text_of([row for row in set(of) if row[1] < 5]),
                "c": text_of([("c", x) for _, x in of]),
            }
            for k, of in by_key.items()
        ]
        assert sorted(session.view("v").rows(), key=str) == sorted(expected, key=str)
        whole = text_of([(row["s"], row["x"]) for row in rows.values()])
        assert session.view("w").rows() == [{"t": whole}]
        (cube,) = [row for row in session.view("g").rows() if row["k"] is None and row["x"] is None] if rows else [{"t": None}]
        assert cube["t"] == whole

    for _ in range(2 if on_spark else 3):
        with deltic.Session(state=tmp_path / "state", shards=shards, **options) as session:
            session.register("text", Text, str)
            session.sql(VIEWS)
            for _ in range(3 if on_spark else 12):
                with session.transaction() as tx:
                    for id in rng.sample(range(40), rng.randrange(1, 9)):
                        if id in rows and rng.random() < 0.5:
                            tx.delete("t", [id])
                            del rows[id]
                        else:
                            rows[id] = {"id": id, "k": rng.randrange(3), "s": rng.choice(STRINGS), "x": rng.randrange(8)}
                            tx.upsert("t", [rows[id]])
                check(session)
            with session.transaction() as tx:
                tx.delete("t", list(rows))
            rows.clear()
            check(session)


def test_a_change_costs_as_many_calls_as_the_group_has_levels() -> None:
    """Counted calls and rows for one change: on 64 times the rows not more than the logarithm says."""
    work: dict[int, tuple[float, float]] = {}
    for n in (500, 32_000):
        with deltic.Session() as session:
            session.register("rises", Rises, int)
            session.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, x INT)")
            session.sql("CREATE MATERIALIZED VIEW v AS SELECT k, rises(x) AS n FROM t GROUP BY k")
            session.apply({"t": [{"id": i, "k": 1, "x": 2 * i, "_op": "insert"} for i in range(n)]})
            MERGES.clear()
            touched = []
            for i in range(0, n, n // 10):
                session.sql(f"UPDATE t SET x = {2 * (n - i) + 1} WHERE id = {i}")
                assert session.last_tick is not None
                touched.append(touched_rows(session))
            assert session.view("v").rows() == [{"k": 1, "n": n - 1}]
            work[n] = (len(MERGES) / len(touched), sum(touched) / len(touched))
    levels = math.log(32_000) / math.log(500)
    assert work[32_000][0] < 200 and work[32_000][0] < 2 * levels * work[500][0]
    assert work[32_000][1] < 2 * levels * work[500][1]


def test_a_row_that_occurs_often_is_merged_with_itself() -> None:
    with deltic.Session() as session:
        session.register("rises", Rises, int)
        session.sql("CREATE TABLE t (x INT); CREATE MATERIALIZED VIEW v AS SELECT rises(x) AS n FROM t")
        MERGES.clear()
        session.sql("INSERT INTO t SELECT 7 FROM range(100000); INSERT INTO t VALUES (8)")
        assert session.view("v").rows() == [{"n": 1}]
        assert len(MERGES) < 60


def test_errors_have_the_place_of_the_call() -> None:
    class Wrong(Text):
        def merge(self, later: Text) -> None:
            self.text = 1  # type: ignore[assignment]

    class Raising(Text):
        def merge(self, later: Text) -> None:
            raise RuntimeError("no")

    with deltic.Session(on_view_error="isolate") as session:
        session.sql("CREATE TABLE t (s STRING, x INT)")
        for name, kind, message in (("wrong", Wrong, "returned 1"), ("raising", Raising, "RuntimeError: no")):
            session.register(name, kind, str)
            session.sql(f"CREATE MATERIALIZED VIEW v_{name} AS SELECT {name}(s, x) AS r FROM t")
            session.sql("INSERT INTO t VALUES ('a', 1)")
            assert session.view(f"v_{name}").rows() == [{"r": "a:1;"}]
            with pytest.raises(EvaluationError, match=message) as raised:
                session.sql("INSERT INTO t VALUES ('b', 2)")
            assert raised.value.span is not None
            session.sql(f"DROP VIEW v_{name}; TRUNCATE TABLE t")


def test_a_class_is_an_aggregate_of_a_circuit() -> None:
    circuit = deltic.Circuit()
    rows = circuit.input("t", schema={"k": int, "s": str, "x": int})
    circuit.output("texts", rows.index_with("k").aggregate(Text, schema={"text": str}))
    with pytest.raises(CircuitError, match="has 2 columns"):
        rows.index_with("k").aggregate(Text, schema={"text": str, "more": str})
    with pytest.raises(DelticError, match="does not take 1 values"):
        rows.map({"k": "k", "x": "x"}).index_with("k").aggregate(Text, schema={"text": str})
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"t": [{"k": 1, "s": s, "x": 1, "_op": "insert"} for s in "ba"]})
        assert session.view("texts").rows() == [{"k": 1, "text": "a:1;b:1;"}]
        session.apply({"t": [{"k": 1, "s": "a", "x": 1, "_op": "delete"}]})
        assert session.view("texts").rows() == [{"k": 1, "text": "b:1;"}]
