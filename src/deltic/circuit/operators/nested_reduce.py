"""Any function of groups in nested scopes: aggregates and top-k, as the change over the corners of now (corners.py).

The function is its flat operator run from scratch: over empty state, with the content of a corner as the change. Aggregates are run once
for all corners, whose number is then the last word of a group. What is read is the whole history of the groups that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deltic.circuit.operator import HOME, Context, Delta, Tick
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.corners import KeyHistory, corners, look
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.scopes import Nest, distinct_rows, nest_of
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class NestedReduce:
    """`flat` at times in scopes. key: the words of a group, the first of each arrangement.

    arrangements: of its inputs, (id, words without iterations, weights). output: its words. always: there is one group, which has a row
    also if it is empty.
    """

    flat: AggregateOperator | TopKOperator
    depth: int
    key: int
    arrangements: tuple[tuple[str, int, int], ...]
    output: int
    always: bool = False
    stacked: AggregateOperator | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stacked", _stacked(self.flat) if isinstance(self.flat, AggregateOperator) and not self.always else None)

    @property
    def name(self) -> str:
        return self.flat.name

    @property
    def eager(self) -> bool:
        return self.always

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        nest = nest_of(context)
        parts = [part for part in (*nest.awaited(), *inputs) if len(part)]
        if not parts and not self.always:
            return Rows.empty(self.output, 1)
        groups = distinct_rows(parts, self.key) if parts else (np.zeros(1, np.int64),) * self.key
        found = []
        for arrangement, columns, weights in self.arrangements:
            trace = nest.trace(arrangement, columns + self.depth, weights, self.depth)
            found.append(look(trace, groups, range(columns), nest))
        chosen = _different(found, nest)
        if self.stacked is not None:
            return self._at_once(self.stacked, chosen, found, nest)
        changes = [self._at(corner, factor, found, nest) for corner, factor in chosen]
        return consolidate(Rows.concat([Rows.empty(self.output, 1), *changes]))

    def _at_once(self, flat: AggregateOperator, chosen: Sequence[tuple[int, int]], found: Sequence[KeyHistory], nest: Nest) -> Delta:
        """The sum over the corners of the rows of the groups, times the factors."""
        key = self.key
        rows = flat.step([_contents(history, key, [corner for corner, _ in chosen]) for history in found], _scratch(nest))
        factors = np.array([factor for _, factor in chosen], np.int64)[rows.columns[key]]
        return consolidate(Rows((*rows.columns[:key], *rows.columns[key + 1 :]), (factors * rows.weights[0],)))

    def _at(self, corner: int, factor: int, found: Sequence[KeyHistory], nest: Nest) -> Rows:
        """The rows of the groups as they are in the corner, times the factor."""
        content = [_content(history, corner) for history in found]
        if not self.always and not any(map(len, content)):
            return Rows.empty(self.output, 1)
        rows = self.flat.step(content, _scratch(nest))
        return Rows(rows.columns, [factor * weight for weight in rows.weights])


def _stacked(flat: AggregateOperator) -> AggregateOperator:
    """The operator over groups with one word more, their last."""
    extremes = tuple(replace(extreme, key=extreme.key + 1) for extreme in flat.extremes)
    return replace(flat, key=flat.key + 1, extremes=extremes)


def _scratch(nest: Nest) -> Context:
    """A context without state."""
    tick = Tick(nest.tick.epoch, nest.tick.now_us, frozenset(), nest.tick.before_us)
    return Context(HOME, 1, tick, {}, nest.strings, nest.counters)


def _different(found: Sequence[KeyHistory], nest: Nest) -> list[tuple[int, int]]:
    """The corners of now that differ in content, each with the sum of the signs of those like it, if that is not 0."""
    classes = {c for history in found for c in np.flatnonzero(np.bincount(history.classes)).tolist()}
    factors: dict[frozenset[int], tuple[int, int]] = {}
    for corner, sign in corners(nest):
        content = frozenset(c for c in classes if c | corner == corner)
        factors[content] = corner, sign + factors.get(content, (corner, 0))[1]
    return [(corner, factor) for corner, factor in factors.values() if factor]


def _content(history: KeyHistory, corner: int) -> Batch:
    """What counts in the corner."""
    at = history.at(corner)
    return consolidate(Rows([c[at] for c in history.columns], [w[at] for w in history.weights]))


def _contents(history: KeyHistory, key: int, chosen: Sequence[int]) -> Batch:
    """What counts in each of the corners, whose number among them follows the `key` words of the group."""
    places = [history.at(corner) for corner in chosen]
    number = np.repeat(np.arange(len(places)), [len(at) for at in places])
    at = np.concatenate([np.empty(0, np.int64), *places])
    columns = [column[at] for column in history.columns]
    return consolidate(Rows((*columns[:key], number, *columns[key:]), [weight[at] for weight in history.weights]))
