"""Incremental join, distinct and aggregate at times of any depth.

Each maps the input change at the current time to the output change at the current time. Output that is due at a later time waits in the
operator's queue. Between epochs the queue is empty, and the state keeps its iterations, with all past epochs merged into one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deltic.dbsp.operators import Group, Reduction, join_trace, positive, trace_append
from deltic.dbsp.streams import ReferenceOperator
from deltic.dbsp.weights import checked, summed
from deltic.dbsp.zset import PAST, IndexedZSet, Row, ZSet, ZSetTrace, check_kind, order
from deltic.purity import pure
from deltic.trace.time import Time, join, less_equal

Weights = Mapping[Row, int]
Change = Callable[[Row, Group], Weights]
"""Maps a key and its values to output rows with weights."""


class TimedOperator(ReferenceOperator):
    """An operator with output due at later times."""

    @abstractmethod
    def due(self) -> Iterator[Time]:
        """The times at which output is due."""

    def settled(self, now: Time) -> bool:
        return not any(time[: len(now) - 1] == now[:-1] and time[len(now) - 1] > now[-1] for time in self.due())

    def clock_end(self, scope: int) -> None:
        if scope == self.depth:
            assert not list(self.due()), f"{self.name}: output is due after the end of an epoch"
            self.end_epoch()

    @abstractmethod
    def end_epoch(self) -> None:
        """Merges this epoch into the past ones."""


class TimedJoin(TimedOperator):
    """A queue of join results by their times."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.queue = ZSet()

    def due(self) -> Iterator[Time]:
        return (time for _, time in self.queue.weights if time is not None)

    def leaving(self, now: Time, *products: ZSet) -> ZSet:
        """Queues the products and returns those due now."""
        pending = [item for zset in (self.queue, *products) for item in zset.weights.items()]
        self.queue = ZSet.sum((item for item in pending if item[0][1] != now), self.name)
        return ZSet.sum((((row, None), weight) for (row, time), weight in pending if time == now), self.name)

    def end_epoch(self) -> None:
        """The only state is the queue, which is empty."""


class JoinTrace(TimedJoin):
    """join_trace as a node: the change joined with a trace, each product at the join of both times."""

    def __init__(self, function: Callable[[Any, Any, Any], Row]) -> None:
        super().__init__("join_trace")
        self.function = pure(function)

    def evaluate(self, now: Time, *inputs: Any) -> ZSet:
        delta, trace = inputs
        return self.leaving(now, join_trace(self.function, delta, trace, now))


class ReferenceJoin(TimedJoin):
    """The change of the join: out[t] = Σ left[t1] ⋈ right[t2] over t1 ∨ t2 = t. Each pair is probed once.

    Left's change is joined with right's trace before its change, then right's change with left's trace after its change.
    """

    def __init__(self, function: Callable[[Any, Any, Any], Row]) -> None:
        super().__init__("join")
        self.function = pure(function)
        self.flipped = lambda key, right, left: self.function(key, left, right)
        self.left, self.right = ZSetTrace(), ZSetTrace()

    def evaluate(self, now: Time, *inputs: Any) -> ZSet:
        left, right = inputs
        first = join_trace(self.function, left, self.right, now)
        self.left = trace_append(left, self.left, now)
        second = join_trace(self.flipped, right, self.left, now)
        self.right = trace_append(right, self.right, now)
        return self.leaving(now, first, second)

    def end_epoch(self) -> None:
        self.left, self.right = self.left.past(), self.right.past()


class ReferenceReduce(TimedOperator):
    """out[t] = f(Σ in[t′ ≤ t]) - Σ out[t′ < t] for each key, in the product order.

    change: f, of a key and its values. An evaluated key is due again at the join of now with every time of its history that is not ≤ now.
    Costs the histories of the evaluated keys.
    """

    def __init__(self, name: str, change: Change) -> None:
        super().__init__(name)
        self.change = change
        self.inputs: dict[Row, dict[tuple[Row, Time], int]] = {}
        self.outputs: dict[Row, dict[tuple[Row, Time], int]] = {}
        self.queue: dict[Time, set[Row]] = {}

    def due(self) -> Iterator[Time]:
        return iter(self.queue)

    def evaluate(self, now: Time, *inputs: Any) -> ZSet:
        check_kind(self.name, inputs[0], IndexedZSet)
        for ((key, value), _), weight in inputs[0].items():
            _put(self.inputs, key, (value, now), weight, self.name)
            self.queue.setdefault(now, set()).add(key)
        keys = sorted(self.queue.pop(now, ()), key=order)
        return ZSet.sum((((row, None), weight) for key in keys for row, weight in self._changed(key, now).items()), self.name)

    def _changed(self, key: Row, now: Time) -> Weights:
        history = self.inputs.get(key, {})
        for _, time in history:
            if not less_equal(time, now):
                self.queue.setdefault(join(time, now), set()).add(key)
        values = summed(((value, weight) for (value, time), weight in history.items() if less_equal(time, now)), self.name)
        group = dict(sorted(values.items(), key=lambda item: order(item[0])))
        result = self.change(key, group) if group else {}
        before = [(row, -weight) for (row, time), weight in self.outputs.get(key, {}).items() if less_equal(time, now)]
        changes = summed([*result.items(), *before], self.name)
        for row, weight in changes.items():
            _put(self.outputs, key, (row, now), weight, self.name)
        return changes

    def end_epoch(self) -> None:
        self.inputs, self.outputs = ({key: _past(history) for key, history in kept.items()} for kept in (self.inputs, self.outputs))


class ReferenceAggregate(ReferenceReduce):
    """The change of aggregate: (key, the reduction of its values) with weight 1, for each key with values."""

    def __init__(self, reduction: Reduction) -> None:
        reduce = pure(reduction)
        super().__init__("aggregate", lambda key, group: {(key, reduce(group)): 1})


class ReferenceDistinct(ReferenceReduce):
    """The change of distinct, at any depth."""

    def __init__(self) -> None:
        super().__init__("distinct", lambda element, group: {element: positive(group[()])})

    def evaluate(self, now: Time, *inputs: Any) -> ZSet:
        delta: ZSet = inputs[0]
        check_kind(self.name, delta, ZSet, IndexedZSet)
        return super().evaluate(now, IndexedZSet.sum((((element, ()), time), weight) for (element, time), weight in delta.weights.items()))


class ReferenceTopK(ReferenceReduce):
    """The change of the first `limit` of each key's values, in order; a value of weight w counts as w of them."""

    def __init__(self, limit: int, by: Callable[[Any], Any]) -> None:
        self.limit, self.by = limit, pure(by)
        super().__init__("top_k", self._first)

    def _first(self, key: Row, group: Group) -> Weights:
        rest, first = self.limit, dict[Row, int]()
        for value in sorted(group, key=lambda value: (order(self.by(value)), order(value))):
            first[key, value] = max(0, min(group[value], rest))
            rest -= first[key, value]
        return first


class DistinctTrace(TimedOperator):
    """The change of distinct at times (epoch, iteration), by the formula of `operators.distinct_trace`, from per-iteration sums.

    A changed element is evaluated again at the later iterations at which earlier epochs changed it.
    """

    def __init__(self) -> None:
        super().__init__("distinct_trace")
        self.before: dict[Row, dict[int, int]] = {}
        self.present: dict[Row, dict[int, int]] = {}
        self.queue: dict[Time, set[Row]] = {}

    def due(self) -> Iterator[Time]:
        return iter(self.queue)

    def evaluate(self, now: Time, *inputs: Any) -> ZSet:
        epoch, i = now
        delta = {element: weight for (element, _), weight in inputs[0].untimed(self.name).items()}
        elements = sorted({*delta, *self.queue.pop(now, ())}, key=order)
        changes = [(element, None, self._change(element, delta.get(element, 0), i)) for element in elements]
        for element in elements:
            _add(self.present.setdefault(element, {}), i, delta.get(element, 0), element, self.name)
            for later in self.before.get(element, {}):
                if later > i:
                    self.queue.setdefault((epoch, later), set()).add(element)
        return ZSet.of(changes)

    def _change(self, element: Row, w: int, i: int) -> int:
        earlier, w3 = self.before.get(element, {}), sum(self.present.get(element, {}).values())
        w1 = sum(weight for j, weight in earlier.items() if j < i)
        w2 = earlier.get(i, 0)
        return positive(w1 + w2 + w3 + w) - positive(w1 + w3) - positive(w1 + w2) + positive(w1)

    def end_epoch(self) -> None:
        for element, history in self.present.items():
            for i, weight in history.items():
                _add(self.before.setdefault(element, {}), i, weight, element, self.name)
        self.present = {}


def _put(kept: dict[Row, dict[tuple[Row, Time], int]], key: Row, entry: tuple[Row, Time], weight: int, operator: str) -> None:
    history = kept.setdefault(key, {})
    history[entry] = checked(history.get(entry, 0) + weight, (key, entry[0]), operator)


def _past(history: Mapping[tuple[Row, Time], int]) -> dict[tuple[Row, Time], int]:
    return summed((((value, (PAST, *time[1:])), weight) for (value, time), weight in history.items()), "past")


def _add(weights: dict[int, int], i: int, weight: int, row: Row, operator: str) -> None:
    total = checked(weights.get(i, 0) + weight, row, operator)
    if total:
        weights[i] = total
    else:
        weights.pop(i, None)
