"""Each worked example of the published notes on DBSP, corrected where they err."""

import pytest

from deltic.dbsp import operators as op
from deltic.dbsp.circuit import ReferenceCircuit
from deltic.dbsp.nested import JoinTrace
from deltic.dbsp.streams import DelayTrace, TraceAppend
from deltic.dbsp.zset import IndexedZSet, ZSet, ZSetTrace
from deltic.trace.time import join, less_equal, meet

A = ZSet.of([(0, 0, 1), (1, 0, 1), (2, 0, 2), (3, 0, 1)])
B = ZSet.of([(0, 0, 1), (1, 0, -1), (2, 0, 1)])


def test_product_order() -> None:
    """2.6.1: and ⟨0, 2⟩, ⟨1, 1⟩ and ⟨2, 0⟩ are incomparable."""
    assert less_equal((0, 0), (0, 1)) and less_equal((0, 1), (1, 1))
    for one, other in (((0, 2), (1, 1)), ((1, 1), (2, 0)), ((0, 1), (1, 0))):
        assert not less_equal(one, other) and not less_equal(other, one)
    assert join((0, 2), (1, 1)) == (1, 2) and meet((0, 2), (1, 1)) == (0, 1)


def test_clocks_of_a_root_and_of_a_child() -> None:
    """2.6.2: a root counts, a child's times are (epoch, iteration)."""
    times: list[tuple[int, ...]] = []

    class Watch(TraceAppend):
        def evaluate(self, now: tuple[int, ...], *inputs: object) -> ZSetTrace:
            times.append(now)
            return super().evaluate(now, *inputs)

    circuit = ReferenceCircuit()
    source = circuit.source("rows")
    scope = circuit.child("three iterations")
    back = scope.feedback("rows")
    scope.connect(back, scope.import_stream(source).plus(back.map(lambda n: n + 1).filter(lambda n: n < 2)))
    trace = scope.feedback("trace", DelayTrace())
    scope.connect(trace, scope.operator(Watch(), back, trace))
    for _ in range(2):
        circuit.step(rows=ZSet.of([(0, None, 1)]))
    assert times == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_aggregate() -> None:
    """2.9.1."""
    rows = IndexedZSet.of([((1, "foo"), 0, 1), ((1, "bar"), 0, 1), ((2, "baz"), 0, 1)])
    assert op.aggregate(op.count, rows).triples() == [((1, 2), None, 1), ((2, 1), None, 1)]


def test_consolidate() -> None:
    """2.9.2."""
    rows = [(0, 0, 0, 1), (0, 0, 0, -1), (0, 1, 0, 1), (0, 1, 0, 1), (1, 2, 0, 2), (1, 3, 0, 1), (1, 3, 0, -1), (1, 4, 0, -1)]
    trace = ZSetTrace.of([*rows, (2, 2, 0, 1), (2, 4, 0, 1)])
    expected = [((0, 1), None, 2), ((1, 2), None, 2), ((1, 4), None, -1), ((2, 2), None, 1), ((2, 4), None, 1)]
    assert op.consolidate(trace).triples() == expected


def test_distinct() -> None:
    """2.9.3."""
    assert op.distinct(ZSet.of([(0, 0, 1), (1, 0, 2), (2, 0, -1), (3, 0, 0)])) == ZSet.of([(0, 0, 1), (1, 0, 1)])


def test_filter() -> None:
    """2.9.4."""
    rows = ZSet.of([(0, 0, 1), (1, 0, 2), (2, 1, -3)])
    assert op.filter(lambda x: x >= 1, rows) == ZSet.of([(1, 0, 2), (2, 1, -3)])


def test_index_with() -> None:
    """2.9.5."""
    rows = ZSet.of([((0, 1, 1), 0, 1), ((1, 2, 1), 1, 1), ((1, 3, 2), 1, -1)])
    expected = [((0, (0, 1, 1)), 0, 1), ((1, (1, 2, 1)), 1, 1), ((1, (1, 3, 2)), 1, -1)]
    assert op.index_with(lambda edge: edge[0], rows) == IndexedZSet.of(expected)


def test_inspect() -> None:
    """2.9.6."""
    seen: list[ZSet] = []
    rows = ZSet.of([(0, 1, 1), (1, 1, 1)])
    assert op.inspect(seen.append, rows) == rows
    assert seen == [rows]


def test_map() -> None:
    """2.9.7, which repeats filter's example by mistake: here a function of its rows."""
    rows = ZSet.of([(0, 0, 1), (1, 0, 2), (2, 1, -3)])
    assert op.map(lambda x: x * 10, rows) == ZSet.of([(0, 0, 1), (10, 0, 2), (20, 1, -3)])
    assert op.map(lambda x: "one", rows) == ZSet.of([("one", 0, 3), ("one", 1, -3)])


def test_negate() -> None:
    """2.9.8."""
    assert op.negate(ZSet.of([(0, 0, 1), (1, 0, -1), (2, 0, -2)])) == ZSet.of([(0, 0, -1), (1, 0, 1), (2, 0, 2)])


def test_distinct_trace() -> None:
    """2.9.11, whose example is right where its text drops a comparison and names an undefined weight."""
    b00 = ZSet.of([(0, (0, 0), 1), (2, (0, 0), 1), (3, (0, 0), -1)])
    b01 = ZSet.of([(5, (0, 1), 1)])
    b10 = ZSet.of([(5, (1, 0), 1)])
    b11 = ZSet.of([(0, (1, 1), 1), (1, (1, 1), 1), (2, (1, 1), -1), (3, (1, 1), 1), (4, (1, 1), -1)])
    t00 = ZSetTrace()
    t01 = op.trace_append(b00, t00, (0, 0))
    t10 = op.trace_append(b01, t01, (0, 1))
    t11 = op.trace_append(b10, t10, (1, 0))
    assert op.distinct_trace(b00, t00, (0, 0)).triples() == [(0, None, 1), (2, None, 1)]
    assert op.distinct_trace(b01, t01, (0, 1)).triples() == [(5, None, 1)]
    assert op.distinct_trace(b10, t10, (1, 0)).triples() == [(5, None, 1)]
    assert op.distinct_trace(b11, t11, (1, 1)).triples() == [(1, None, 1), (2, None, -1), (5, None, -1)]


def test_join_stream() -> None:
    """2.9.12."""
    a = IndexedZSet.of([(("a", 1), 0, 1), (("b", 2), 0, 2), (("c", 2), 0, 1)])
    b = IndexedZSet.of([(("a", 1), 0, 1), (("b", 3), 0, 1), (("b", 4), 0, -1)])
    expected = [(("a", (1, 1)), None, 1), (("b", (2, 3)), None, 2), (("b", (2, 4)), None, -2)]
    assert op.join_stream(lambda key, x, y: (key, (x, y)), a, b).triples() == expected


def test_join_trace() -> None:
    """2.9.13, whose results lack the inner pair that its join function makes."""
    rows = IndexedZSet.of([(("a", 0), 0, 1), (("a", 0), 0, -1), (("a", 1), 0, 1), (("b", 2), 0, 2), (("c", 2), 0, 1)])
    trace = ZSetTrace.of([("a", 1, 0, 1), ("b", -3, 0, -1), ("b", 3, 0, 1), ("b", 4, 0, -1), ("c", 4, 0, 1)])
    expected = [
        (("a", (1, 1)), None, 1),
        (("b", (2, -3)), None, -2),
        (("b", (2, 3)), None, 2),
        (("b", (2, 4)), None, -2),
        (("c", (2, 4)), None, 1),
    ]
    assert op.join_trace(lambda key, x, y: (key, (x, y)), rows, trace).triples() == expected


def test_incremental_join_of_raw_operators() -> None:
    """2.9.13: join_stream + join_trace + join_trace the other way round, over delayed traces, is the change of the join."""

    def pair(key: object, x: object, y: object) -> tuple[object, object, object]:
        return (key, x, y)

    circuit = ReferenceCircuit()
    sides = [circuit.source("a").index_with(lambda row: row[0]), circuit.source("b").index_with(lambda row: row[0])]
    traces = []
    for side in sides:
        trace = circuit.feedback("trace", DelayTrace())
        circuit.connect(trace, circuit.operator(TraceAppend(), side, trace))
        traces.append(trace)
    now = circuit.apply("join_stream", lambda a, b: op.join_stream(pair, a, b), *sides)
    left = circuit.operator(JoinTrace(pair), sides[0], traces[1])
    right = circuit.operator(JoinTrace(lambda key, y, x: pair(key, x, y)), sides[1], traces[0])
    change = circuit.sink("change", now.plus(left).plus(right))
    whole = [ZSet(), ZSet()]
    before = ZSet()
    for a, b in ((1, 1), (2, -1), (-1, 3), (0, 0), (-2, -3)):
        step = [ZSet.of([((0, "x"), None, a), ((1, "y"), None, 1)]), ZSet.of([((0, "z"), None, b), ((1, "w"), None, -1)])]
        whole = [op.plus(old, new) for old, new in zip(whole, step, strict=True)]
        circuit.step(a=step[0], b=step[1])
        after = op.join_stream(pair, *(op.index_with(lambda row: row[0], side) for side in whole))
        assert op.plus(before, change.value) == after
        before = after


def test_minus() -> None:
    """2.9.14."""
    assert op.minus(A, B) == ZSet.of([(1, 0, 2), (2, 0, 1), (3, 0, 1)])


def test_plus() -> None:
    """2.9.15."""
    assert op.plus(A, B) == ZSet.of([(0, 0, 2), (2, 0, 3), (3, 0, 1)])


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ([(0, (), 0, 1)], [(2, None, 1)]),
        ([(2, (), 1, 1), (3, (), 1, 1)], [(0, None, 1), (3, None, -1)]),
        ([(0, (), 2, -1)], [(0, None, 1), (2, None, 1)]),
    ],
)
def test_distinct_incremental(trace: list[tuple[int, tuple[()], int, int]], expected: list[tuple[int, None, int]]) -> None:
    """2.9.18, whose three examples are right, and whose rule of opposite signs is not: H(old + w) - H(old)."""
    batch = ZSet.of([(0, None, 2), (2, None, 1), (3, None, -1)])
    assert op.distinct_incremental(batch, ZSetTrace.of(trace)).triples() == expected
