"""The operators against formulas written down for them, and what they refuse."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count as counting

import pytest

from deltic.dbsp import operators as op
from deltic.dbsp.circuit import ReferenceCircuit
from deltic.dbsp.nested import DistinctTrace, ReferenceDistinct
from deltic.dbsp.streams import Delay, DelayTrace, Delta0, Differentiate, Integrate, ReferenceOperator, TraceAppend, UntimedTraceAppend
from deltic.dbsp.zset import PAST, IndexedZSet, ZSet, ZSetTrace
from deltic.errors import ImpureFunction, WeightOverflow
from deltic.trace.time import Time, less_equal

NOTHING = ZSet()
BIG = 2**62


def random_zset(rng: random.Random, time: int | None = None) -> ZSet:
    return ZSet.of([(rng.randrange(4), time, rng.randrange(-2, 3)) for _ in range(rng.randrange(4))])


def nested_run(operator: ReferenceOperator, inputs: dict[Time, ZSet], epochs: int, iterations: int) -> dict[Time, ZSet]:
    """What an operator of depth 1 gives at each (epoch, iteration), as a circuit would move its clocks."""
    operator.depth = 1
    given = {}
    for e in range(epochs):
        operator.clock_start(1)
        for i in range(iterations):
            operator.clock_start(0)
            given[e, i] = operator.evaluate((e, i), inputs[e, i])
            operator.clock_end(0)
        operator.clock_end(1)
    return given


def random_inputs(seed: int, epochs: int, iterations: int) -> dict[Time, ZSet]:
    rng = random.Random(seed)
    return {(e, i): random_zset(rng) for e in range(epochs) for i in range(iterations)}


def test_linear_operators_are_linear() -> None:
    rng = random.Random(1)
    operators: list[Callable[[ZSet], ZSet]] = [
        lambda z: op.map(lambda x: x // 2, z),
        lambda z: op.filter(lambda x: x > 1, z),
        lambda z: op.flat_map(range, z),
        lambda z: op.explode(lambda x: [(x, -2), (0, x)], z),
        op.negate,
        lambda z: op.inspect(len, z),
    ]
    for operator in operators:
        assert operator(NOTHING) == NOTHING
        for _ in range(50):
            one, other = random_zset(rng), random_zset(rng)
            assert operator(op.plus(one, other)) == op.plus(operator(one), operator(other))
    assert op.plus(random_zset(rng), NOTHING) != op.plus(NOTHING, ZSet.of([(9, None, 1)]))


def test_delay_is_the_input_of_the_iteration_before() -> None:
    """out[e, i] = in[e, i - 1], and nothing at i = 0."""
    inputs = random_inputs(2, 3, 4)
    given = nested_run(Delay(NOTHING), inputs, 3, 4)
    assert given == {(e, i): inputs[e, i - 1] if i else NOTHING for e, i in inputs}


def test_integrate_is_the_sum_over_iterations() -> None:
    """out[e, i] = in[e, 0] + … + in[e, i]."""
    inputs = random_inputs(3, 3, 4)
    given = nested_run(Integrate(NOTHING), inputs, 3, 4)
    for e, i in inputs:
        assert given[e, i] == ZSet.sum(item for j in range(i + 1) for item in inputs[e, j].items())


def test_differentiate_undoes_integrate_and_the_other_way_round() -> None:
    inputs = random_inputs(4, 3, 4)
    assert nested_run(Differentiate(NOTHING), nested_run(Integrate(NOTHING), inputs, 3, 4), 3, 4) == inputs
    assert nested_run(Integrate(NOTHING), nested_run(Differentiate(NOTHING), inputs, 3, 4), 3, 4) == inputs


def test_delta0_gives_iteration_0_alone() -> None:
    inputs = random_inputs(5, 2, 3)
    assert nested_run(Delta0(NOTHING), inputs, 2, 3) == {(e, i): inputs[e, i] if i == 0 else NOTHING for e, i in inputs}


def test_operators_on_a_root_count_epochs() -> None:
    """At depth 0 the clock is the root's: delay gives the epoch before, I the sum of all."""
    circuit = ReferenceCircuit()
    rows = circuit.source("rows")
    sink = circuit.sink("all", rows.delay(), rows.integrate(), rows.integrate().differentiate(), rows.differentiate())
    rng = random.Random(6)
    before = total = NOTHING
    for _ in range(6):
        now = random_zset(rng)
        circuit.step(rows=now)
        total = op.plus(total, now)
        assert sink.values == (before, total, now, op.minus(now, before))
        before = now


def test_trace_append_is_the_sum_with_the_time_of_now() -> None:
    """trace[t′] for t′ ≠ now is what it was; trace[now] grows by the delta."""
    rng = random.Random(7)
    trace = ZSetTrace()
    whole: list[tuple[int, tuple[()], Time, int]] = []
    for epoch in range(4):
        delta = random_zset(rng)
        whole += [(element, (), (epoch,), weight) for element, _, weight in delta.triples()]
        trace = op.trace_append(delta, trace, (epoch,))
        assert trace == ZSetTrace.of(whole)
    indexed = IndexedZSet.of([(("k", "v"), None, 2)])
    assert TraceAppend().evaluate((3,), indexed, ZSetTrace.of([("k", "v", 1, 1)])).rows() == [("k", "v", (1,), 1), ("k", "v", (3,), 2)]


def test_untimed_trace_append_adds_weights_up() -> None:
    rng = random.Random(8)
    trace, total = ZSetTrace(), NOTHING
    for time in range(5):
        delta = random_zset(rng, time)
        total = op.plus(total, delta.untimed())
        trace = UntimedTraceAppend().evaluate((time,), delta, trace)
        assert trace.rows() == [(element, (), None, weight) for element, _, weight in total.triples()]


def test_delay_trace_is_the_trace_before_and_its_epoch_is_past() -> None:
    """out[k] = in[k - 1] in the order of times; once an epoch is over its coordinate is past, iterations stay."""
    operator = DelayTrace()
    operator.depth = 1
    one, two = ZSetTrace.of([("a", (), (0, 0), 1)]), ZSetTrace.of([("a", (), (0, 0), 1), ("b", (), (0, 1), 1)])
    assert operator.evaluate((0, 0), one) == ZSetTrace()
    operator.clock_end(0)
    assert operator.evaluate((0, 1), two) == one
    operator.clock_end(0)
    operator.clock_end(1)
    assert operator.evaluate((1, 0), ZSetTrace()).rows() == [("a", (), (PAST, 0), 1), ("b", (), (PAST, 1), 1)]


def test_past_epochs_add_up_and_iterations_do_not() -> None:
    trace = ZSetTrace.of([("a", (), (0, 1), 1), ("a", (), (1, 1), 2), ("a", (), (1, 2), 1), ("b", (), (0, 0), 1), ("b", (), (1, 0), -1)])
    assert trace.past().rows() == [("a", (), (PAST, 1), 3), ("a", (), (PAST, 2), 1)]


def test_distinct_at_nested_times_is_the_mixed_difference() -> None:
    """Σ out[t′ ≤ t] = distinct(Σ in[t′ ≤ t]) in the product order, of all three forms, as they are looked at again."""
    for seed in range(60):
        inputs = random_inputs(seed, 3, 4)
        trace = ZSetTrace()
        raw = {}
        for now, delta in inputs.items():
            raw[now] = op.distinct_trace(delta, trace, now)
            trace = op.trace_append(delta, trace, now)
        for given in (raw, nested_run(ReferenceDistinct(), inputs, 3, 4), nested_run(DistinctTrace(), inputs, 3, 4)):
            for now in inputs:
                until = [t for t in inputs if less_equal(t, now)]
                sums = [ZSet.sum(item for t in until for item in stream[t].items()) for stream in (given, inputs)]
                assert sums[0] == op.distinct(sums[1]), (seed, now)


def test_join_trace_gives_products_at_the_join_of_times() -> None:
    trace = ZSetTrace.of([("a", 1, (0, 2), 3), ("a", 2, (PAST, 0), -1), ("b", 1, (0, 0), 1)])
    delta = IndexedZSet.of([(("a", 5), None, 2)])
    assert op.join_trace(lambda key, x, y: (x, y), delta, trace, (1, 1)).triples() == [((5, 1), (1, 2), 6), ((5, 2), (1, 1), -2)]


@pytest.mark.parametrize(
    ("operator", "run"),
    [
        ("plus", lambda: op.plus(ZSet.of([("r", None, BIG)]), ZSet.of([("r", None, BIG)]))),
        ("minus", lambda: op.minus(ZSet.of([("r", None, -BIG - 1)]), ZSet.of([("r", None, BIG)]))),
        ("negate", lambda: op.negate(ZSet.of([("r", None, -(2**63))]))),
        ("map", lambda: op.map(lambda x: "r", ZSet.of([(1, None, BIG), (2, None, BIG)]))),
        ("explode", lambda: op.explode(lambda x: [("r", BIG)], ZSet.of([(1, None, 2)]))),
        ("join_stream", lambda: op.join_stream(lambda k, x, y: "r", *[IndexedZSet.of([((0, 0), None, 2**32)])] * 2)),
        ("trace_append", lambda: op.trace_append(ZSet.of([("r", None, BIG)]), ZSetTrace.of([("r", (), 0, BIG)]), (0,))),
        ("consolidate", lambda: op.consolidate(ZSetTrace.of([("r", (), 0, BIG), ("r", (), 1, BIG)]))),
        ("distinct_incremental", lambda: op.distinct_incremental(ZSet.of([("r", None, BIG)]), ZSetTrace.of([("r", (), 0, BIG)]))),
    ],
)
def test_a_weight_beyond_64_bits_is_an_error_that_names_row_and_operator(operator: str, run: Callable[[], object]) -> None:
    with pytest.raises(WeightOverflow, match=rf"^\[DELTIC-3004\] {operator}: the weight .*'?r'?.* exceeds 64 bits"):
        run()


def test_weights_at_the_edge_are_exact() -> None:
    edge = ZSet.of([("r", None, 2**63 - 1), ("s", None, -(2**63))])
    assert op.plus(edge, NOTHING) == edge
    assert op.plus(op.plus(edge, ZSet.of([("r", None, -1)])), ZSet.of([("r", None, 1)])) == edge


@pytest.mark.usefixtures("repeated_calls")
def test_an_impure_function_is_found_and_named() -> None:
    numbers = counting()

    def numbered(row: int) -> int:
        return next(numbers)

    rows = ZSet.of([(1, None, 1), (2, None, 1)])
    for run in (
        lambda: op.map(numbered, rows),
        lambda: op.flat_map(lambda row: [numbered(row)], rows),
        lambda: op.aggregate(lambda group: numbered(0), op.index_with(lambda row: row, rows)),
    ):
        with pytest.raises(ImpureFunction, match=r"the function .*(numbered|<lambda>).* returned .* and then"):
            run()


@pytest.mark.usefixtures("repeated_calls")
def test_functions_of_nan_are_not_held_to_be_impure() -> None:
    (row,) = op.map(lambda row: float("nan"), ZSet.of([(1, None, 1)]))
    assert row[0] != row[0]


def test_values_are_read_in_order() -> None:
    zset = ZSet.of([("b", 0, 1), ("a", 1, 1), ("a", 0, 1), (None, 0, 1), ((1, "x"), 0, 1), (2, 0, 1)])
    assert [element for element, _, _ in zset.triples()] == [None, 2, "a", "a", "b", (1, "x")]
    indexed = IndexedZSet.of([((2, "a"), 0, 1), ((1, "b"), 0, 1), ((1, "a"), 5, 1), ((1, "a"), 0, 1)])
    assert indexed.triples() == [((1, "a"), (0,), 1), ((1, "a"), (5,), 1), ((1, "b"), (0,), 1), ((2, "a"), (0,), 1)]
    assert IndexedZSet.of([((1, "a"), 5, 1), ((1, "a"), 6, -1)]).groups() == {}
