"""What is no row, no weight, or a value of another kind is refused by the operator that it is given to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltic.dbsp import linear, nested
from deltic.dbsp import operators as op
from deltic.dbsp.circuit import ReferenceCircuit
from deltic.dbsp.zset import IndexedZSet, ZSet, ZSetTrace
from deltic.errors import CircuitError

A = ZSet.of([("a", None, 1)])
UNDER_A = op.index_with(lambda row: row, A)
TIMED = op.trace_append(UNDER_A, ZSetTrace(), (0, 1))


def nothing(*rows: Any) -> Any:
    return None


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (lambda: ZSet.of([("a", None, 1.5)]), r"zset: the weight 1.5 of row \('a', None\) is not an integer"),
        (lambda: ZSet.of([("a", None, "1")]), "zset: .* with weight '1'"),
        (lambda: ZSet.of([(["a"], None, 1)]), r"zset: \(\['a'\], None\) with weight 1: unhashable"),
        (lambda: op.map(lambda row: [row], A), r"map: \(\['a'\], None\) with weight 1: unhashable"),
        (lambda: op.flat_map(nothing, A), "the function nothing .* returned None for 'a'"),
        (lambda: op.explode(lambda row: [row], A), "<lambda> .* returned 'a'"),
        (lambda: op.explode(lambda row: [(row, 0.5)], A), "explode: the weight 0.5 of row"),
        (lambda: linear.join_function(lambda row: [(row, 1)], A), r"<lambda> .* returned \('a', 1\)"),
        (lambda: linear.join_function(lambda row: [(row, (1, 2), 1)], ZSet.of([("a", 1, 1)])), r"joins the times \(1,\) and \(1, 2\)"),
        (lambda: op.plus(A, UNDER_A), r"invalid input IndexedZSet\(.*\) of plus"),
        (lambda: op.minus(UNDER_A, A), r"invalid input ZSet\(.*\) of minus"),
        (lambda: op.map(nothing, TIMED), r"invalid input ZSetTrace\(.*\) of map"),
        (lambda: op.consolidate(A), r"invalid input ZSet\(.*\) of consolidate"),
        (lambda: op.aggregate(op.count, A), r"invalid input ZSet\(.*\) of aggregate"),
        (lambda: op.join_stream(nothing, UNDER_A, A), r"invalid input ZSet\(.*\) of join_stream"),
        (lambda: op.join_trace(nothing, UNDER_A, UNDER_A), r"invalid input IndexedZSet\(.*\) of join_trace"),
        (lambda: op.join_trace(nothing, UNDER_A, TIMED, (1,)), r"join_trace joins the times \(1,\) and \(0, 1\)"),
        (lambda: op.trace_append(TIMED, TIMED, (1, 0)), r"invalid input ZSetTrace\(.*\) of trace_append"),
        (lambda: op.untimed_trace_append(A, A), r"invalid input ZSet\(.*\) of untimed_trace_append"),
        (lambda: op.distinct_incremental(UNDER_A, ZSetTrace()), r"invalid input IndexedZSet\(.*\) of distinct_incremental"),
        (lambda: op.distinct_trace(A, op.untimed_trace_append(A, ZSetTrace()), (0, 1)), "distinct_trace reads a trace with time None"),
        (lambda: op.distinct_trace(A, TIMED, (1,)), r"distinct_trace at time \(1,\)"),
    ],
)
def test_an_operator_refuses_what_it_cannot_take(run: Callable[[], object], text: str) -> None:
    with pytest.raises(CircuitError, match=text) as caught:
        run()
    assert "expected: " in str(caught.value)


def test_minus_is_exact_where_the_difference_is() -> None:
    least, one = ZSet.of([("a", None, -(2**63))]), ZSet.of([("a", None, -1)])
    assert op.minus(one, least) == ZSet.of([("a", None, 2**63 - 1)])


@pytest.mark.parametrize("value", [[("a", 1)], TIMED, None])
def test_a_source_takes_changes(value: Any) -> None:
    circuit = ReferenceCircuit()
    circuit.sink("out", circuit.source("in"))
    with pytest.raises(CircuitError, match=r"invalid input .* of source in"):
        circuit.step(**{"in": value})
    circuit.step(**{"in": UNDER_A})


@pytest.mark.parametrize("build", [lambda s: s.join(s, nothing), lambda s: s.aggregate(op.count), lambda s: s.top_k(1, by=nothing)])
def test_what_works_by_keys_wants_an_indexed_stream(build: Callable[[Any], Any]) -> None:
    circuit = ReferenceCircuit()
    circuit.sink("out", build(circuit.source("in")))
    with pytest.raises(CircuitError, match=r"invalid input ZSet\("):
        circuit.step(**{"in": ZSet.of([((1, 2), None, 1)])})


def test_a_source_and_an_operator_are_there_once() -> None:
    circuit = ReferenceCircuit()
    source, distinct = circuit.source("in"), nested.ReferenceDistinct()
    with pytest.raises(CircuitError, match="source in already exists"):
        circuit.source("in")
    with pytest.raises(CircuitError, match="invalid operator 5"):
        circuit.operator(5, source)  # type: ignore[arg-type]
    circuit.operator(distinct, source)
    for place in (circuit, circuit.child("inner")):
        with pytest.raises(CircuitError, match="the operator distinct already has a node"):
            place.operator(distinct, source)


def test_an_import_of_an_import_is_called_by_what_it_imports() -> None:
    circuit = ReferenceCircuit()
    edges = circuit.source("edges")
    circuit.child("outer").child("inner").import_stream(edges)
    assert [line.split() for line in circuit.text().splitlines()[-2:]] == [
        ["1.0.0", "import", "edges", "from", "1.1"],
        ["1.1", "import", "edges", "from", "0"],
    ]


def test_an_empty_change_is_of_its_kind() -> None:
    assert op.plus(IndexedZSet(), UNDER_A) == UNDER_A
    assert op.consolidate(ZSetTrace()) == IndexedZSet()
