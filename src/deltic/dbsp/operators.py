"""The operators as functions of values, under their names. None keeps anything; user functions must be pure (`purity.py`).

Costs: linear in the input unless said otherwise. Raises: WeightOverflow with row and operator, ImpureFunction with the function's name.
H(x) is 1 where x > 0, else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import wraps
from itertools import chain
from typing import Any, TypeVar

from deltic.dbsp.weights import checked
from deltic.dbsp.zset import At, IndexedZSet, Row, Trace, ZSet, check_kind
from deltic.errors import CircuitError
from deltic.purity import name_of, pure
from deltic.trace.time import Time, join

Z = TypeVar("Z", ZSet, IndexedZSet)
Group = Mapping[Row, int]
"""The values of one key with their weights, none 0, in order."""
Reduction = Callable[[Group], Row]


def positive(weight: int) -> int:
    """H."""
    return 1 if weight > 0 else 0


# Linear operators.


def filter(predicate: Callable[[Any], bool], zset: ZSet) -> ZSet:
    """The elements that satisfy the predicate, as they are.

    >>> filter(lambda x: x >= 1, ZSet.of([(0, 0, 1), (1, 0, 2), (2, 1, -3)]))
    ZSet([(1, (0,), 2), (2, (1,), -3)])
    """
    check_kind("filter", zset, ZSet, IndexedZSet)
    holds = pure(predicate)
    return ZSet.sum((((element, time), weight) for (element, time), weight in zset.items() if holds(element)), "filter")


def map(function: Callable[[Any], Row], zset: ZSet) -> ZSet:
    """The function of each element; weights of elements that become equal add up.

    >>> map(lambda x: x // 2, ZSet.of([(0, 0, 1), (1, 0, 2), (2, 1, -3)]))
    ZSet([(0, (0,), 3), (1, (1,), -3)])
    """
    check_kind("map", zset, ZSet, IndexedZSet)
    answer = pure(function)
    return ZSet.sum((((answer(element), time), weight) for (element, time), weight in zset.items()), "map")


def flat_map(function: Callable[[Any], Iterable[Row]], zset: ZSet) -> ZSet:
    """Every row that the function makes of each element.

    >>> flat_map(range, ZSet.of([(2, 0, 1), (1, 0, -1)]))
    ZSet([(1, (0,), 1)])
    """
    check_kind("flat_map", zset, ZSet, IndexedZSet)
    answers = pure(answered_whole(function))
    return ZSet.sum((((row, time), weight) for (element, time), weight in zset.items() for row in answers(element)), "flat_map")


def explode(function: Callable[[Any], Iterable[tuple[Row, int]]], zset: ZSet) -> ZSet:
    """Every (row, weight) that the function makes of each element; weights are multiplied, negative ones too.

    >>> explode(lambda x: [(x, 3), (-x, -1)], ZSet.of([(1, 0, 2)]))
    ZSet([(-1, (0,), -2), (1, (0,), 6)])
    """
    check_kind("explode", zset, ZSet, IndexedZSet)
    answers = pure(answered_whole(function))

    def rows() -> Iterator[tuple[tuple[Row, At], int]]:
        for (element, time), weight in zset.items():
            for answer in answers(element):
                row, w = parts(answer, 2, function)
                yield (row, time), weight * w

    return ZSet.sum(rows(), "explode")


def index_with(key: Callable[[Any], Row], zset: ZSet) -> IndexedZSet:
    """Each element under its key.

    >>> index_with(lambda edge: edge[0], ZSet.of([((0, 1), 0, 1)]))
    IndexedZSet([((0, (0, 1)), (0,), 1)])
    """
    check_kind("index_with", zset, ZSet, IndexedZSet)
    key_of = pure(key)
    return IndexedZSet.sum((((key_of(element), element), time), weight) for (element, time), weight in zset.items())


def inspect(callback: Callable[[ZSet], object], zset: ZSet) -> ZSet:
    """The Z-set itself, after the callback has seen it."""
    callback(zset)
    return zset


def negate(zset: Z) -> Z:
    """Every weight with the other sign. -(-2**63) leaves 64 bits, which is an error.

    >>> negate(ZSet.of([(0, 0, 1), (1, 0, -1)]))
    ZSet([(0, (0,), -1), (1, (0,), 1)])
    """
    check_kind("negate", zset, ZSet, IndexedZSet)
    return type(zset).sum(((entry, -weight) for entry, weight in zset.weights.items()), "negate")


def plus(left: Z, right: Z) -> Z:
    """The sum of the weights of each entry.

    >>> plus(ZSet.of([(0, 0, 1)]), ZSet.of([(0, 0, -1), (1, 0, 1)]))
    ZSet([(1, (0,), 1)])
    """
    check_kind("plus", left, ZSet, IndexedZSet)
    check_kind("plus", right, type(left))
    return type(left).sum(chain(left.weights.items(), right.weights.items()), "plus")


def minus(left: Z, right: Z) -> Z:
    """Left's weight of each entry less right's.

    >>> minus(ZSet.of([(0, 0, 1)]), ZSet.of([(0, 0, 1), (1, 0, 1)]))
    ZSet([(1, (0,), -1)])
    """
    check_kind("minus", left, ZSet, IndexedZSet)
    check_kind("minus", right, type(left))
    return type(left).sum(chain(left.weights.items(), ((entry, -weight) for entry, weight in right.weights.items())), "minus")


def consolidate(trace: Trace) -> IndexedZSet:
    """The trace without its times, weights added up: what a recursive subcircuit exports.

    >>> consolidate(Trace.of([(0, 1, 0, 1), (0, 1, 1, 1), (1, 3, 0, 1), (1, 3, 0, -1)]))
    IndexedZSet([((0, 1), None, 2)])
    """
    check_kind("consolidate", trace, Trace)
    return IndexedZSet.sum(((((key, value), None), weight) for (key, value, _), weight in trace.weights.items()), "consolidate")


# Operators that are not linear.


def distinct(zset: ZSet) -> ZSet:
    """The elements of positive weight, with weight 1, each at its time.

    >>> distinct(ZSet.of([(0, 0, 1), (1, 0, 2), (2, 0, -1)]))
    ZSet([(0, (0,), 1), (1, (0,), 1)])
    """
    check_kind("distinct", zset, ZSet, IndexedZSet)
    return ZSet.sum((entry, positive(weight)) for entry, weight in zset.weights.items())


def aggregate(reduction: Reduction, indexed: IndexedZSet) -> ZSet:
    """(key, the reduction of its values) with weight 1, untimed, for each key that has any.

    >>> aggregate(count, IndexedZSet.of([((1, "foo"), 0, 1), ((1, "bar"), 0, 1), ((2, "baz"), 0, 1)]))
    ZSet([((1, 2), None, 1), ((2, 1), None, 1)])
    """
    check_kind("aggregate", indexed, IndexedZSet)
    reduce = pure(reduction)
    return ZSet.of(((key, reduce(group)), None, 1) for key, group in indexed.groups().items())


def join_stream(function: Callable[[Any, Any, Any], Row], left: IndexedZSet, right: IndexedZSet) -> ZSet:
    """function(key, left value, right value) of every pair under one key, untimed; weights are multiplied. Costs the pairs.

    >>> one = IndexedZSet.of([(("a", 1), 0, 2)])
    >>> join_stream(lambda key, x, y: (key, x + y), one, one)
    ZSet([(('a', 2), None, 4)])
    """
    check_kind("join_stream", left, IndexedZSet)
    check_kind("join_stream", right, IndexedZSet)
    joined = pure(function)
    values = right.groups()

    def pairs() -> Iterator[tuple[tuple[Row, At], int]]:
        for key, group in left.groups().items():
            for value, weight in group.items():
                for other, w in values.get(key, {}).items():
                    yield (joined(key, value, other), None), weight * w

    return ZSet.sum(pairs(), "join_stream")


def join_trace(function: Callable[[Any, Any, Any], Row], delta: IndexedZSet, trace: Trace, now: Time | None = None) -> ZSet:
    """The delta, whose time is `now`, joined with everything in the trace: each product at now ∨ its time there.

    Without `now` the products are untimed. Costs the trace (an index makes that the pairs).

    >>> join_trace(lambda key, x, y: (x, y), IndexedZSet.of([(("a", 1), None, 2)]), Trace.of([("a", 5, (0, 3), 1)]), (1, 2))
    ZSet([((1, 5), (1, 3), 2)])
    """
    check_kind("join_trace", delta, IndexedZSet)
    check_kind("join_trace", trace, Trace)
    joined = pure(function)
    groups = delta.groups()

    def pairs() -> Iterator[tuple[tuple[Row, At], int]]:
        for (key, other, time), w in trace.items():
            due = None if now is None or time is None else joined_times(now, time, "join_trace")
            for value, weight in groups.get(key, {}).items():
                yield (joined(key, value, other), due), weight * w

    return ZSet.sum(pairs(), "join_trace")


def trace_append(delta: ZSet | IndexedZSet, trace: Trace, now: Time) -> Trace:
    """The trace with the delta in it, at the time `now`.

    >>> trace_append(ZSet.of([("a", None, 1)]), Trace(), (0,))
    Trace([('a', (), (0,), 1)])
    """
    return _appended(delta, trace, now, "trace_append")


def untimed_trace_append(delta: ZSet | IndexedZSet, trace: Trace) -> Trace:
    """The trace with the delta in it, without a time: weights of equal rows add up.

    >>> untimed_trace_append(IndexedZSet.of([(("a", 1), 3, 1)]), Trace.of([("a", 1, None, 1)]))
    Trace([('a', 1, None, 2)])
    """
    return _appended(delta, trace, None, "untimed_trace_append")


def distinct_incremental(delta: ZSet, trace: Trace) -> ZSet:
    """The change of the distinct elements: H(old + w) - H(old), where old is the weight in the trace, whatever the time.

    >>> distinct_incremental(ZSet.of([("a", None, 1), ("b", None, -1)]), Trace.of([("a", (), 0, 1), ("b", (), 0, 1)]))
    ZSet([('b', None, -1)])
    """
    check_kind("distinct_incremental", delta, ZSet)
    check_kind("distinct_incremental", trace, Trace)
    old = {element: weight for ((element, _), _), weight in consolidate(trace).weights.items()}
    changes = ((element, w, old.get(element, 0)) for (element, _), w in delta.untimed("distinct_incremental").items())
    return ZSet.of(
        (element, None, positive(checked(before + w, element, "distinct_incremental")) - positive(before)) for element, w, before in changes
    )


def distinct_trace(delta: ZSet, trace: Trace, now: Time) -> ZSet:
    """The change at `now` = (e, i) of the distinct elements of what the trace, without this delta, and the delta have at times ≤ now.

    With w1 = the weights at (e0 < e, i0 < i), w2 at (e0 < e, i), w3 at (e, i0 < i) and w the delta's:
    [H(w1 + w2 + w3 + w) - H(w1 + w3)] - [H(w1 + w2) - H(w1)].
    Looked at are the elements of the delta, and those whose change now is that of two earlier ones together. Costs the trace.

    >>> history = Trace.of([(5, (), (0, 1), 1), (5, (), (1, 0), 1)])
    >>> distinct_trace(ZSet(), history, (1, 1))
    ZSet([(5, None, -1)])
    """
    check_kind("distinct_trace", delta, ZSet)
    check_kind("distinct_trace", trace, Trace)
    weights = {element: weight for (element, _), weight in delta.untimed("distinct_trace").items()}
    elements = list(dict.fromkeys((*weights, *(key for key, _, _ in trace))))
    return ZSet.of((element, None, _distinct_change(weights.get(element, 0), trace.times(element), now)) for element in elements)


def _distinct_change(w: int, history: Mapping[At, int], now: Time) -> int:
    if len(now) != 2:
        raise CircuitError(f"distinct_trace at the time {now}", expected="a time (epoch, iteration) of a child circuit")
    epoch, iteration = now
    w1 = w2 = w3 = 0
    for time, weight in history.items():
        if time is None or len(time) != 2:
            raise CircuitError(f"distinct_trace reads a trace with the time {time}", expected="times (epoch, iteration) of a child circuit")
        e, i = time
        w1 += weight if e < epoch and i < iteration else 0
        w2 += weight if e < epoch and i == iteration else 0
        w3 += weight if e == epoch and i < iteration else 0
    if not w and not (w2 and w3):
        return 0
    return positive(w1 + w2 + w3 + w) - positive(w1 + w3) - (positive(w1 + w2) - positive(w1))


def _appended(delta: ZSet | IndexedZSet, trace: Trace, now: Time | None, operator: str) -> Trace:
    check_kind(operator, delta, ZSet, IndexedZSet)
    check_kind(operator, trace, Trace)
    if isinstance(delta, ZSet):
        rows: list[tuple[Row, Row, int]] = [(element, (), weight) for (element, _), weight in delta.weights.items()]
    else:
        rows = [(key, value, weight) for ((key, value), _), weight in delta.weights.items()]
    return Trace.sum(chain(trace.weights.items(), (((key, value, now), weight) for key, value, weight in rows)), operator)


Answered = TypeVar("Answered", bound=Hashable)


def answered_whole(function: Callable[[Any], Iterable[Answered]]) -> Callable[[Any], tuple[Answered, ...]]:
    """The function with all of its answer at once, so that two answers can be compared; it keeps its name."""

    @wraps(function)
    def whole(row: Any) -> tuple[Answered, ...]:
        given = function(row)
        if not isinstance(given, Iterable):
            raise CircuitError(
                f"the function {name_of(function)} gave {given!r} for {row!r}", expected="any number of rows: a list, or yield"
            )
        return tuple(given)

    return whole


def parts(answer: Any, count: int, function: Callable[..., Any]) -> Any:
    """One of a function's answers, which is a tuple of so many parts. Raises CircuitError if it is not."""
    if not isinstance(answer, tuple) or len(answer) != count:
        raise CircuitError(f"the function {name_of(function)} gave {answer!r}", expected=f"a tuple of {count}, with the weight at its end")
    return answer


def joined_times(one: Time, other: Time, operator: str) -> Time:
    """one ∨ other. Raises CircuitError where they are times of circuits of different depth."""
    if len(one) != len(other):
        raise CircuitError(f"{operator} joins the times {one} and {other}", expected="times of one depth")
    return join(one, other)


# Reductions that every language has.


def count(group: Group) -> int:
    """How many values there are, each as often as its weight."""
    return checked(sum(group.values()), tuple(group), "count")


def total(group: Mapping[Any, int]) -> Any:
    """SUM: of the values, each as often as its weight."""
    return sum(value * weight for value, weight in group.items())


def least(group: Group) -> Row:
    """MIN: of the values of positive weight; None if there is none."""
    return min((value for value, weight in group.items() if weight > 0), default=None)  # type: ignore[type-var]


def greatest(group: Group) -> Row:
    """MAX: of the values of positive weight; None if there is none."""
    return max((value for value, weight in group.items() if weight > 0), default=None)  # type: ignore[type-var]


def average(group: Mapping[Any, int]) -> Any:
    """AVG: SUM by COUNT; None if the weights come to 0."""
    n = sum(group.values())
    return total(group) / n if n else None
