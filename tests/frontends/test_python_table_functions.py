"""flat_map, explode, join_function and followed_by: one call for a row, functions of batches, rows of one column, times and clocks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import deltic
from deltic.errors import CircuitError, EvaluationError, ImpureFunction, NegativeWeight, Unsupported
from deltic.frontends.python.circuit import Circuit
from deltic.plan.evaluate import evaluate
from python_ticks import PAIR, Build, Ticking, copied_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)
DAY_US = 86_400_000_000
START_US = (START - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def rows_of(build: Callable[[deltic.Stream], deltic.Stream], rows: list[tuple[int, int]], now: datetime | None = None) -> list[Any]:
    """What a session makes of rows of (a, b), beside the oracle."""
    circuit = deltic.Circuit()
    circuit.output("out", build(circuit.input("t", schema={"a": int, "b": int})))
    with deltic.Session() as session:
        if now is not None:
            session.advance_to(now)
        session.install(circuit)
        session.apply({"t": [{"a": a, "b": b, "_weight": 1} for a, b in rows]})
        actual = sorted(tuple(row.values()) for row in session.view("out").rows())
    expected = evaluate(circuit.outputs["out"], {"t": Counter(rows)}, now=now)
    assert Counter(actual) == dict(expected.pairs())
    return actual


def batch_of(rows: list[int], **columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch({"_row": pa.array(rows, pa.int64()), **columns})


def counted_updates(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Each pair from the day of its source on, and its reverse always, twice taken away where its source is 0."""
    rows, n = pa.array([*range(batch.num_rows)] * 2, pa.int64()), batch.num_rows
    times = pa.concat_arrays([pc.add(pc.multiply(batch["src"], DAY_US), START_US), pa.nulls(n, pa.int64())])
    weights = pa.concat_arrays([pc.add(batch["dst"], 1), pa.array([1] * n, pa.int64())])
    src, dst = (pa.concat_arrays([batch[one], batch[other]]) for one, other in (("src", "dst"), ("dst", "src")))
    return pa.record_batch({"_row": rows, "_time": times, "_weight": weights, "src": src, "dst": dst})


def updates_of(row: Any) -> list[Any]:
    """The same for one row."""
    return [((row[0], row[1]), START_US + row[0] * DAY_US, row[1] + 1), ((row[1], row[0]), None, 1)]


BUILDS: dict[str, Build] = {
    "flat_map": lambda e, m: e.flat_map(lambda row: [(row.src, n) for n in range(row.dst)], schema=PAIR),
    "flat_map of batches": lambda e, m: e.plus(m).flat_map(copied_batch, schema=PAIR, on_batches=True),
    "explode": lambda e, m: e.explode(lambda row: [(row.src, row.dst - 1), (row.dst, 1)], schema={"node": int}).weighted(),
    "explode of batches": lambda e, m: e.explode(
        lambda b: pa.record_batch({"node": b["src"], "_weight": pc.subtract(b["dst"], 1), "_row": pa.array(range(b.num_rows), pa.int32())}),
        schema={"node": int},
        on_batches=True,
    ).weighted(),
    "integers": lambda e, m: e.join_function(updates_of, schema=PAIR),
    "updates of batches": lambda e, m: e.join_function(counted_updates, schema=PAIR, on_batches=True),
    "the same": lambda e, m: (
        e.join_function(updates_of, schema=PAIR).minus(e.join_function(counted_updates, schema=PAIR, on_batches=True)).weighted()
    ),
    "followed": lambda e, m: (
        e.followed_by(updates_of, updates_of, schema=PAIR)
        .minus(e.followed_by(counted_updates, counted_updates, schema=PAIR, on_batches=True))
        .weighted()
    ),
    "of a join": lambda e, m: (
        e.index_with("dst")
        .join(m.index_with("src"), lambda key, one, other: (one.src, other.dst))
        .flat_map(lambda pair: [pair, (pair.dst, pair.src)], schema=PAIR)
        .filter("src < 3")
        .distinct()
    ),
    "later": lambda e, m: e.flat_map(lambda row: [row, row], schema=PAIR).delay().differentiate().weighted(),
}


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_of_table_functions_are_the_oracles(shards: int) -> None:
    rng = random.Random(shards)
    with deltic.Session(shards=shards) as session:
        session.advance_to(START)
        ticking = Ticking(BUILDS, session)
        for _ in range(8):
            if rng.random() < 0.4 and session.now is not None:
                session.advance_to(session.now + timedelta(hours=rng.choice((12, 24))))
                ticking.check()
            else:
                ticking.random_tick(rng)
        assert session.view("the same").rows() == session.view("followed").rows() == []
    assert ticking.seen > 100 and ticking.retracted > 10


def test_a_restart_finds_their_state(tmp_path: Path) -> None:
    with deltic.Session(state=tmp_path / "state", shards=3) as session:
        session.advance_to(START)
        ticking = Ticking(BUILDS, session)
        ticking.random_tick(random.Random(5), most=9)
    with deltic.Session(state=tmp_path / "state") as session:
        epoch = session.epoch
        ticking.open(session)
        assert session.epoch == epoch
        ticking.random_tick(random.Random(6), most=9)
        session.advance_to(START + timedelta(days=2))
        ticking.check()


ON_SPARK: dict[str, Build] = {
    **{name: BUILDS[name] for name in ("flat_map", "explode", "explode of batches", "of a join", "later")},
    "times": lambda e, m: e.join_function(
        lambda row: [(row, 1_704_067_200_000_000 + row.src * 86_400_000_000, row.dst), (row, None, 1)], schema=PAIR
    ),
}
"""Lambdas, which go to the workers by value."""


@pytest.mark.slow
@pytest.mark.spark
def test_rows_of_table_functions_are_the_oracles_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(3)
    with deltic.Session(spark=spark, state=str(tmp_path / "state"), shards=2) as session:
        session.advance_to(START)
        ticking = Ticking(ON_SPARK, session)
        for _ in range(2):
            ticking.random_tick(rng, most=8)
        session.advance_to(START + timedelta(days=1))
        ticking.check()


@pytest.mark.parametrize("name", ["flat_map", "explode", "join_function", "followed_by"])
def test_a_function_is_called_once_for_each_consolidated_row(name: str) -> None:
    calls: Counter[tuple[int, int]] = Counter()

    class Recording:
        def __call__(self, row: Any) -> list[Any]:
            calls[tuple(row)] += 1
            ends = {"flat_map": (), "explode": (2,)}.get(name, (None, 2))
            return [(row[0], n, *ends) if name in ("flat_map", "explode") else ((row[0], n), *ends) for n in range(5)]

    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema={**PAIR, "unread": int})
    pairs = edges.map(lambda row: (row.src, row.dst))
    functions = (Recording(), lambda row: [(row, None, 1)]) if name == "followed_by" else (Recording(),)
    out = getattr(pairs, name)(*functions, schema={"a": int, "b": int})
    circuit.output("out", out)
    circuit.output("beside", out.filter("b > 2"))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"edges": [{"src": i % 3, "dst": 7, "unread": i, "_weight": 2} for i in range(30)]})
        assert calls == {(0, 7): 1, (1, 7): 1, (2, 7): 1}
        session.apply({"edges": [{"src": 0, "dst": 7, "unread": 0, "_weight": -2}, {"src": 0, "dst": 7, "unread": 99, "_weight": 2}]})
        assert calls == {(0, 7): 1, (1, 7): 1, (2, 7): 1}, "a change of nothing"
        session.apply({"edges": [{"src": 0, "dst": 7, "unread": 3, "_weight": -2}]})
        assert calls == {(0, 7): 2, (1, 7): 1, (2, 7): 1}


def test_a_function_on_batches_is_called_once_for_a_change() -> None:
    lengths: list[int] = []

    class Recording:
        def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            lengths.append(batch.num_rows)
            return batch_of([0] * 3, x=["u", "v", "w"])

    circuit = deltic.Circuit()
    table = circuit.input("t", schema={"a": int})
    circuit.output("out", table.flat_map(Recording(), schema={"x": str}, on_batches=True))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"t": [{"a": i % 10, "_weight": 1} for i in range(40)]})
    assert lengths == [10]


ONE_COLUMN: dict[str, tuple[Callable[[deltic.Stream], deltic.Stream], Callable[[deltic.Stream], deltic.Stream]]] = {
    "map": (lambda t: t.map(lambda r: r.a + 1, schema={"x": int}), lambda t: t.map(lambda r: (r.a + 1,), schema={"x": int})),
    "map of batches": (
        lambda t: t.map(lambda b: pc.add(b["a"], 1), schema={"x": int}, on_batches=True),
        lambda t: t.map(lambda b: (pc.add(b["a"], 1),), schema={"x": int}, on_batches=True),
    ),
    "filter": (lambda t: t.filter(lambda r: r.a > 1), lambda t: t.filter(lambda r: (r.a > 1,))),
    "flat_map": (
        lambda t: t.flat_map(lambda r: [r.a, r.b], schema={"x": int}),
        lambda t: t.flat_map(lambda r: [(r.a,), (r.b,)], schema={"x": int}),
    ),
    "join_function": (
        lambda t: t.join_function(lambda r: [(r.a, None, 1)], schema={"x": int}),
        lambda t: t.join_function(lambda r: [((r.a,), None, 1)], schema={"x": int}),
    ),
    "index_with": (
        lambda t: t.index_with(lambda r: r.a % 2, schema={"x": int}).count(),
        lambda t: t.index_with(lambda r: (r.a % 2,), schema={"x": int}).count(),
    ),
    "join": (
        lambda t: t.index_with("a").join(t.index_with("a"), lambda k, r, s: r.b + s.b, schema={"x": int}),
        lambda t: t.index_with("a").join(t.index_with("a"), lambda k, r, s: (r.b + s.b,), schema={"x": int}),
    ),
    "aggregate": (
        lambda t: t.index_with("a").aggregate(len, schema={"x": int}),
        lambda t: t.index_with("a").aggregate(lambda group: (len(group),), schema={"x": int}),
    ),
    "aggregate to rows": (
        lambda t: t.index_with("a").aggregate(lambda group: [len(group), 5], schema={"x": int}),
        lambda t: t.index_with("a").aggregate(lambda group: [(len(group),), (5,)], schema={"x": int}),
    ),
}


@pytest.mark.parametrize("name", ONE_COLUMN)
def test_a_row_of_one_column_is_a_value_or_a_tuple_of_one(name: str) -> None:
    bare, tupled = ONE_COLUMN[name]
    rows = [(1, 5), (2, 6), (2, 7)]
    assert rows_of(bare, rows) == rows_of(tupled, rows) != []


def test_no_clock_is_needed_while_no_row_has_a_time() -> None:
    circuit = deltic.Circuit()
    orders = circuit.input("orders", schema={"item": str, "after": int | None})

    def logic(row: Any) -> list[Any]:
        return [((row.item,), row.after, 1)]

    circuit.output("lent", orders.join_function(logic, schema={"item": str}))
    circuit.output("also", orders.join_function(logic, schema={"item": str}).filter("item <> 'x'"))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"orders": [{"item": "drill", "after": None, "_weight": 1}]})
        assert session.view("lent").rows() == [{"item": "drill"}] and session.now is None
        with pytest.raises(EvaluationError, match=r"a row has the time 7 µs, and the session has no clock[\s\S]*advance_to"):
            session.apply({"orders": [{"item": "saw", "after": 7, "_weight": 1}]})
        assert session.view("lent").rows() == [{"item": "drill"}]
        session.advance_to(datetime(1960, 1, 1, tzinfo=UTC))  # before 1970, and the first time of all
        session.apply({"orders": [{"item": "saw", "after": 7, "_weight": 1}, {"item": "drill", "after": None, "_weight": -1}]})
        assert session.view("lent").rows() == [] and session.next_due == datetime(1970, 1, 1, microsecond=7, tzinfo=UTC)
        session.advance_to(datetime(1970, 1, 1, microsecond=6, tzinfo=UTC))
        assert session.view("lent").rows() == []
        session.advance_to(datetime(1970, 1, 1, microsecond=7, tzinfo=UTC))
        assert session.view("lent").rows() == session.view("also").rows() == [{"item": "saw"}]


def test_a_time_without_a_clock_is_refused_when_the_circuit_is_installed() -> None:
    with deltic.Session() as session:
        table, circuit = deltic.Circuit(), deltic.Circuit()
        table.input("t", schema={"a": int})
        session.install(table)
        session.apply({"t": [{"a": 1, "_weight": 1}]})
        again = circuit.input("t", schema={"a": int})
        circuit.output("out", again.join_function(lambda row: [(row.a, START, 1)], schema={"a": int}))
        with pytest.raises(EvaluationError, match="has no clock"):
            session.install(circuit)
        assert session.views == ()


def test_invalid_results_are_refused_with_the_expected_type() -> None:
    def refused(match: str, build: Callable[[deltic.Stream], deltic.Stream], error: type[Exception] = EvaluationError) -> None:
        with pytest.raises(error, match=match):
            rows_of(build, [(1, 5), (2, 6)], START)

    def batches(**columns: Any) -> Callable[[deltic.Stream], deltic.Stream]:
        return lambda t: t.flat_map(lambda batch: pa.record_batch(columns), schema={"x": int}, on_batches=True)

    refused(r"returned None\nexpected: an iterable of rows", lambda t: t.flat_map(lambda row: None, schema={"x": int}))
    refused("returned 'a' as value 1", lambda t: t.explode(lambda row: [("a", 1)], schema={"x": int}))
    refused("returned 1.5 as value 2", lambda t: t.explode(lambda row: [(1, 1.5)], schema={"x": int}))
    refused(r"returned list \[5\]\nexpected: a record batch", lambda t: t.flat_map(lambda b: [5], schema={"x": int}, on_batches=True))
    refused(r"returned the columns x\nexpected: .* x and _row", batches(x=[1]))
    refused(r"returned \[2\] as _row\nexpected: integers from 0 to 1", batches(x=[1], _row=[2]))
    refused(r"as _row", batches(x=[1], _row=[None]))
    refused(r"as _row", batches(x=[1], _row=["0"]))
    refused(r"returned NULL\n", batches(x=[None], _row=[0]))
    refused("is outside the years 1 to 9999", lambda t: t.join_function(lambda row: [(1, 10**30, 1)], schema={"x": int}))
    refused("no tim|TIMESTAMP", lambda t: t.join_function(lambda row: [(1, "now", 1)], schema={"x": int}))
    refused("would have the weight -2", lambda t: t.explode(lambda row: [(1, -1)], schema={"x": int}), NegativeWeight)
    refused("named _row", lambda t: t.flat_map(copied_batch, schema={"_row": int}, on_batches=True), CircuitError)
    refused("a function of 1 argument", lambda t: t.flat_map(lambda: [], schema={"x": int}, on_batches=True), CircuitError)
    refused(
        "with the columns _row, _time, _weight",
        lambda t: t.map({"src": "a", "dst": "b"}).followed_by(copied_batch, copied_batch, schema=PAIR, on_batches=True),
    )


@pytest.mark.usefixtures("repeated_calls")
def test_functions_on_batches_are_watched_too() -> None:
    class Wandering:
        calls = 0

        def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
            self.calls += 1
            return batch_of([0], x=[self.calls])

    with pytest.raises(ImpureFunction, match="Wandering"):
        rows_of(lambda t: t.flat_map(Wandering(), schema={"x": int}, on_batches=True), [(1, 2)])


def test_in_a_recursion_functions_of_rows_are_possible_and_weights_are_not() -> None:
    def build(circuit: Circuit, edges: deltic.Stream, weighted: bool) -> deltic.Stream:
        @circuit.recursive("reached", schema={"n": int})
        def reached(reached):
            step = (
                reached.explode(lambda row: [(row.n - 1, 1)] * (row.n > 0), schema={"n": int})
                if weighted
                else reached.flat_map(lambda row: [row.n - 1, row.n // 2] if row.n > 0 else [], schema={"n": int})
            )
            return edges.map({"n": "src"}).plus(step).distinct()

        return reached

    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema=PAIR)
    with pytest.raises(Unsupported, match="a function that returns weights"):
        build(circuit, edges, True)
    circuit.output("out", build(circuit, edges, False))
    with deltic.Session() as session:
        session.install(circuit)
        session.apply({"edges": [{"src": 5, "dst": 0, "_weight": 1}, {"src": 9, "dst": 0, "_weight": 1}]})
        session.apply({"edges": [{"src": 9, "dst": 0, "_weight": -1}]})
        assert session.view("out").rows() == [{"n": n} for n in range(6)]
