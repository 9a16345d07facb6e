"""The most general linear operators as methods of streams: logics with times and weights, and temporal filters."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import deltic
from deltic.errors import CircuitError, ClockError, EvaluationError
from python_ticks import Ticking

START = datetime(2024, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def around(row: Any) -> Iterator[Any]:
    """From the day of its source until before that of its destination, and once more always."""
    if row.src < row.dst:
        yield (row.src, row.dst), day(row.src), 1
        yield (row.src, row.dst), day(row.dst), -1
    yield (row.dst, row.src), None, 2


def doubled(pair: Any) -> list[Any]:
    return [((pair[0], pair[0] + pair[1]), day(pair[1]), 2)]


BUILDS = {
    "logic": lambda e, m: e.join_function(around, schema={"a": int, "b": int}),
    "value": lambda e, m: e.join_function(lambda row: [(row.src, day(row.dst), 3)], schema={"n": int}),
    "both": lambda e, m: e.followed_by(around, doubled, schema={"a": int, "b": int}).weighted(),
    "one": lambda e, m: e.followed_by(around, schema={"a": int, "b": int}),
    "functions": lambda e, m: e.temporal_filter(
        lower=lambda row: day(row.src), upper=lambda row: None if row.dst == 3 else day(row.dst + 1)
    ),
    "lower": lambda e, m: e.temporal_filter(lower="date_add(DATE'2024-01-01', CAST(src AS INT))"),
    "upper": lambda e, m: e.plus(m).temporal_filter(upper="date_add(DATE'2024-01-01', CAST(dst AS INT))"),
    "later": lambda e, m: e.temporal_filter(lower=lambda row: day(row.src)).differentiate().weighted("w"),
}


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_present_from_a_time_on_equal_the_oracle(shards: int) -> None:
    rng = random.Random(shards)
    with deltic.Session(shards=shards) as session:
        session.advance_to(START - timedelta(hours=1))
        ticking = Ticking(BUILDS, session)
        for _ in range(10):
            if rng.random() < 0.5 and session.now is not None:
                session.advance_to(session.now + timedelta(hours=rng.choice((1, 12, 24))))
                ticking.check()
            else:
                ticking.random_tick(rng)
    assert ticking.seen > 100 and ticking.retracted > 10


def test_two_logics_in_one_pass_are_one_after_the_other() -> None:
    def apart(edges: deltic.Stream, marks: deltic.Stream) -> deltic.Stream:
        middle = edges.join_function(around, schema={"a": int, "b": int})
        last = middle.join_function(lambda row: doubled((row.a, row.b)), schema={"a": int, "b": int})
        return last.minus(edges.followed_by(around, doubled, schema={"a": int, "b": int})).weighted()

    rng = random.Random(7)
    with deltic.Session() as session:
        session.advance_to(START)
        ticking = Ticking({"nothing": apart}, session)
        for n in range(6):
            ticking.random_tick(rng)
            session.advance_to(day(n))
            ticking.check()
            assert session.view("nothing").rows() == []


def test_invalid_bounds_are_refused() -> None:
    circuit = deltic.Circuit()
    edges = circuit.input("edges", schema={"src": int, "dst": int})
    with pytest.raises(CircuitError, match="without a bound"):
        edges.temporal_filter()
    with pytest.raises(CircuitError, match="followed_by without a logic"):
        edges.followed_by(schema={"n": int})
    with pytest.raises(CircuitError, match="is not an expression of the row"):
        edges.temporal_filter(lower="max(src)")
    with pytest.raises(CircuitError, match="the column dst already exists"):
        edges.weighted("dst")
    circuit.output("out", edges.temporal_filter(lower=lambda row: datetime(2024, 1, row.dst)))
    with deltic.Session() as session:
        with pytest.raises(ClockError):
            session.install(circuit)
        session.advance_to(START)
        session.install(circuit)
        with pytest.raises(EvaluationError, match=r"returned datetime[\s\S]*TIMESTAMP"):
            session.apply({"edges": [{"src": 1, "dst": 2, "_weight": 1}]})
