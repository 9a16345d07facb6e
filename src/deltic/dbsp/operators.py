"""The operators as stateless functions of values. User functions must be pure (`purity.py`).

Costs: linear in the input unless said otherwise. Raises: WeightOverflow with row and operator, ImpureFunction with the function's name.
H(x) is 1 where x > 0, else 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import wraps
from itertools import chain
from typing import Any, TypeVar

from deltic.dbsp.weights import checked
from deltic.dbsp.zset import EntryTime, IndexedZSet, Row, ZSet, ZSetTrace, check_kind
from deltic.errors import CircuitError
from deltic.purity import name_of, pure
from deltic.trace.time import Time, join

Z = TypeVar("Z", ZSet, IndexedZSet)
Group = Mapping[Row, int]
"""The values of one key with their nonzero weights, in order."""
Reduction = Callable[[Group], Row]


def positive(weight: int) -> int:
    """H(weight)."""
    return 1 if weight > 0 else 0


# Linear operators.


def filter(predicate: Callable[[Any], bool], zset: ZSet) -> ZSet:
    """The elements that satisfy the predicate, unchanged.

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
    mapped = pure(function)
    return ZSet.sum((((mapped(element), time), weight) for (element, time), weight in zset.items()), "map")


def flat_map(function: Callable[[Any], Iterable[Row]], zset: ZSet) -> ZSet:
    """Every row that the function returns for each element.

    >>> flat_map(range, ZSet.of([(2, 0, 1), (1, 0, -1)]))
    ZSet([(1, (0,), 1)])
    """
    check_kind("flat_map", zset, ZSet, IndexedZSet)
    results = pure(as_tuple(function))
    return ZSet.sum((((row, time), weight) for (element, time), weight in zset.items() for row in results(element)), "flat_map")


def explode(function: Callable[[Any], Iterable[tuple[Row, int]]], zset: ZSet) -> ZSet:
    """Every (row, weight) that the function returns for each element; weights, also negative ones, are multiplied.

    >>> explode(lambda x: [(x, 3), (-x, -1)], ZSet.of([(1, 0, 2)]))
    ZSet([(-1, (0,), -2), (1, (0,), 6)])
    """
    check_kind("explode", zset, ZSet, IndexedZSet)
    results = pure(as_tuple(function))

    def rows() -> Iterator[tuple[tuple[Row, EntryTime], int]]:
        for (element, time), weight in zset.items():
            for result in results(element):
                row, w = parts(result, 2, function)
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
    """The Z-set itself, after passing it to the callback."""
    callback(zset)
    return zset


def negate(zset: Z) -> Z:
    """Every weight negated. Negating -2**63 raises WeightOverflow.

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
    """Left's weight of each entry minus right's.

    >>> minus(ZSet.of([(0, 0, 1)]), ZSet.of([(0, 0, 1), (1, 0, 1)]))
    ZSet([(1, (0,), -1)])
    """
    check_kind("minus", left, ZSet, IndexedZSet)
    check_kind("minus", right, type(left))
    return type(left).sum(chain(left.weights.items(), ((entry, -weight) for entry, weight in right.weights.items())), "minus")


def consolidate(trace: ZSetTrace) -> IndexedZSet:
    """The sum of the trace over all times, untimed, as a child circuit exports it.

    >>> consolidate(ZSetTrace.of([(0, 1, 0, 1), (0, 1, 1, 1), (1, 3, 0, 1), (1, 3, 0, -1)]))
    IndexedZSet([((0, 1), None, 2)])
    """
    check_kind("consolidate", trace, ZSetTrace)
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
    """(key, the reduction of its values) with weight 1, untimed, for each key with values.

    >>> aggregate(count, IndexedZSet.of([((1, "foo"), 0, 1), ((1, "bar"), 0, 1), ((2, "baz"), 0, 1)]))
    ZSet([((1, 2), None, 1), ((2, 1), None, 1)])
    """
    check_kind("aggregate", indexed, IndexedZSet)
    reduce = pure(reduction)
    return ZSet.of(((key, reduce(group)), None, 1) for key, group in indexed.groups().items())


def join_stream(function: Callable[[Any, Any, Any], Row], left: IndexedZSet, right: IndexedZSet) -> ZSet:
    """function(key, left value, right value) for every pair of values of a key, untimed; weights are multiplied. O(pairs).

    >>> one = IndexedZSet.of([(("a", 1), 0, 2)])
    >>> join_stream(lambda key, x, y: (key, x + y), one, one)
    ZSet([(('a', 2), None, 4)])
    """
    check_kind("join_stream", left, IndexedZSet)
    check_kind("join_stream", right, IndexedZSet)
    joined = pure(function)
    values = right.groups()

    def pairs() -> Iterator[tuple[tuple[Row, EntryTime], int]]:
        for key, group in left.groups().items():
            for value, weight in group.items():
                for other, w in values.get(key, {}).items():
                    yield (joined(key, value, other), None), weight * w

    return ZSet.sum(pairs(), "join_stream")


def join_trace(function: Callable[[Any, Any, Any], Row], delta: IndexedZSet, trace: ZSetTrace, now: Time | None = None) -> ZSet:
    """The delta at time `now` joined with the trace; each product is at the join of `now` and its time in the trace.

    Without `now` the products are untimed. O(trace); an index would make it O(pairs).

    >>> join_trace(lambda key, x, y: (x, y), IndexedZSet.of([(("a", 1), None, 2)]), ZSetTrace.of([("a", 5, (0, 3), 1)]), (1, 2))
    ZSet([((1, 5), (1, 3), 2)])
    """
    check_kind("join_trace", delta, IndexedZSet)
    check_kind("join_trace", trace, ZSetTrace)
    joined = pure(function)
    groups = delta.groups()

    def pairs() -> Iterator[tuple[tuple[Row, EntryTime], int]]:
        for (key, other, time), w in trace.items():
            due = None if now is None or time is None else joined_times(now, time, "join_trace")
            for value, weight in groups.get(key, {}).items():
                yield (joined(key, value, other), due), weight * w

    return ZSet.sum(pairs(), "join_trace")


def trace_append(delta: ZSet | IndexedZSet, trace: ZSetTrace, now: Time) -> ZSetTrace:
    """The trace plus the delta at time `now`.

    >>> trace_append(ZSet.of([("a", None, 1)]), ZSetTrace(), (0,))
    ZSetTrace([('a', (), (0,), 1)])
    """
    return _appended(delta, trace, now, "trace_append")


def untimed_trace_append(delta: ZSet | IndexedZSet, trace: ZSetTrace) -> ZSetTrace:
    """The trace plus the delta, untimed.

    >>> untimed_trace_append(IndexedZSet.of([(("a", 1), 3, 1)]), ZSetTrace.of([("a", 1, None, 1)]))
    ZSetTrace([('a', 1, None, 2)])
    """
    return _appended(delta, trace, None, "untimed_trace_append")


def distinct_incremental(delta: ZSet, trace: ZSetTrace) -> ZSet:
    """The change of the distinct elements: H(old + w) - H(old), where old is the weight in the trace over all times.

    >>> distinct_incremental(ZSet.of([("a", None, 1), ("b", None, -1)]), ZSetTrace.of([("a", (), 0, 1), ("b", (), 0, 1)]))
    ZSet([('b', None, -1)])
    """
    check_kind("distinct_incremental", delta, ZSet)
    check_kind("distinct_incremental", trace, ZSetTrace)
    old = {element: weight for ((element, _), _), weight in consolidate(trace).weights.items()}
    changes = ((element, w, old.get(element, 0)) for (element, _), w in delta.untimed("distinct_incremental").items())
    return ZSet.of(
        (element, None, positive(checked(before + w, element, "distinct_incremental")) - positive(before)) for element, w, before in changes
    )


def distinct_trace(delta: ZSet, trace: ZSetTrace, now: Time) -> ZSet:
    """The change at `now` = (e, i) of the distinct elements of the sum of the trace and the delta at times ≤ now.

    With w1 = the weights at (e0 < e, i0 < i), w2 at (e0 < e, i), w3 at (e, i0 < i) and w the delta's:
    [H(w1 + w2 + w3 + w) - H(w1 + w3)] - [H(w1 + w2) - H(w1)].
    The trace must not contain the delta. Besides the elements of the delta, those with both w2 and w3 can change. O(trace).

    >>> history = ZSetTrace.of([(5, (), (0, 1), 1), (5, (), (1, 0), 1)])
    >>> distinct_trace(ZSet(), history, (1, 1))
    ZSet([(5, None, -1)])
    """
    check_kind("distinct_trace", delta, ZSet)
    check_kind("distinct_trace", trace, ZSetTrace)
    weights = {element: weight for (element, _), weight in delta.untimed("distinct_trace").items()}
    elements = list(dict.fromkeys((*weights, *(key for key, _, _ in trace))))
    return ZSet.of((element, None, _distinct_change(weights.get(element, 0), trace.times(element), now)) for element in elements)


def _distinct_change(w: int, history: Mapping[EntryTime, int], now: Time) -> int:
    if len(now) != 2:
        raise CircuitError(f"distinct_trace at time {now}", expected="a time (epoch, iteration) of a child circuit")
    epoch, iteration = now
    w1 = w2 = w3 = 0
    for time, weight in history.items():
        if time is None or len(time) != 2:
            raise CircuitError(f"distinct_trace reads a trace with time {time}", expected="times (epoch, iteration) of a child circuit")
        e, i = time
        w1 += weight if e < epoch and i < iteration else 0
        w2 += weight if e < epoch and i == iteration else 0
        w3 += weight if e == epoch and i < iteration else 0
    if not w and not (w2 and w3):
        return 0
    return positive(w1 + w2 + w3 + w) - positive(w1 + w3) - (positive(w1 + w2) - positive(w1))


def _appended(delta: ZSet | IndexedZSet, trace: ZSetTrace, now: Time | None, operator: str) -> ZSetTrace:
    check_kind(operator, delta, ZSet, IndexedZSet)
    check_kind(operator, trace, ZSetTrace)
    if isinstance(delta, ZSet):
        rows: list[tuple[Row, Row, int]] = [(element, (), weight) for (element, _), weight in delta.weights.items()]
    else:
        rows = [(key, value, weight) for ((key, value), _), weight in delta.weights.items()]
    return ZSetTrace.sum(chain(trace.weights.items(), (((key, value, now), weight) for key, value, weight in rows)), operator)


Item = TypeVar("Item", bound=Hashable)


def as_tuple(function: Callable[[Any], Iterable[Item]]) -> Callable[[Any], tuple[Item, ...]]:
    """The function with its result as a tuple, so that results can be compared; it keeps its name."""

    @wraps(function)
    def collected(row: Any) -> tuple[Item, ...]:
        result = function(row)
        if not isinstance(result, Iterable):
            raise CircuitError(
                f"the function {name_of(function)} returned {result!r} for {row!r}", expected="an iterable of rows: a list, or yield"
            )
        return tuple(result)

    return collected


def parts(item: Any, count: int, function: Callable[..., Any]) -> Any:
    """An item of a function's result. Raises CircuitError unless it is a tuple of `count` parts."""
    if not isinstance(item, tuple) or len(item) != count:
        raise CircuitError(f"the function {name_of(function)} returned {item!r}", expected=f"a tuple of {count}, ending with the weight")
    return item


def joined_times(one: Time, other: Time, operator: str) -> Time:
    """one ∨ other. Raises CircuitError for times of different depth."""
    if len(one) != len(other):
        raise CircuitError(f"{operator} joins the times {one} and {other}", expected="times of equal depth")
    return join(one, other)


# Common reductions.


def count(group: Group) -> int:
    """COUNT: the sum of the weights."""
    return checked(sum(group.values()), tuple(group), "count")


def total(group: Mapping[Any, int]) -> Any:
    """SUM: the sum of value · weight."""
    return sum(value * weight for value, weight in group.items())


def least(group: Group) -> Row:
    """MIN over the values of positive weight; None if there are none."""
    return min((value for value, weight in group.items() if weight > 0), default=None)  # type: ignore[type-var]


def greatest(group: Group) -> Row:
    """MAX over the values of positive weight; None if there are none."""
    return max((value for value, weight in group.items() if weight > 0), default=None)  # type: ignore[type-var]


def average(group: Mapping[Any, int]) -> Any:
    """AVG: SUM / COUNT; None if COUNT is 0."""
    n = sum(group.values())
    return total(group) / n if n else None
