"""Functions of groups in nested scopes: aggregates and top-k, as a mixed difference over the corners of the current time (corners.py).

The function is computed by its flat operator over empty state, with the content of a corner as the change. Aggregates run once for all
corners, with the number of the corner as the last word of a group. The whole history of the groups that changed is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deltic.circuit.operator import HOME, Context, Delta, Tick
from deltic.circuit.operators.aggregate import AggregateOperator
from deltic.circuit.operators.corners import KeyHistory, corners, look
from deltic.circuit.operators.nested import Nested
from deltic.circuit.operators.top_k import TopKOperator
from deltic.circuit.scopes import ScopeContext, distinct_rows, scope_context
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class NestedReduce(Nested):
    """`flat` at times in scopes. key: the number of words of a group, the first of each arrangement.

    arrangements: those of its inputs, as (id, number of words without iterations, number of weights). output: the number of output words.
    always: there is one group, which has a row even if it is empty.
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
    def eager(self) -> bool:
        return self.always

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        scopes = scope_context(context)
        parts = [part for part in (*scopes.awaited(), *inputs) if len(part)]
        if not parts and not self.always:
            return Rows.empty(self.output, 1)
        groups = distinct_rows(parts, self.key) if parts else (np.zeros(1, np.int64),) * self.key
        histories = []
        for arrangement, columns, weights in self.arrangements:
            trace = scopes.trace(arrangement, columns + self.depth, weights, self.depth)
            histories.append(look(trace, groups, range(columns), scopes))
        chosen = _different(histories, scopes)
        if self.stacked is not None:
            return self._at_once(self.stacked, chosen, histories, scopes)
        changes = [self._at_corner(corner, factor, histories, scopes) for corner, factor in chosen]
        return consolidate(Rows.concat([Rows.empty(self.output, 1), *changes]))

    def _at_once(
        self, flat: AggregateOperator, chosen: Sequence[tuple[int, int]], histories: Sequence[KeyHistory], scopes: ScopeContext
    ) -> Delta:
        """The sum over the corners of the groups' rows, multiplied by the factors."""
        key = self.key
        rows = flat.step([_contents(history, key, [corner for corner, _ in chosen]) for history in histories], _scratch(scopes))
        factors = np.array([factor for _, factor in chosen], np.int64)[rows.columns[key]]
        return consolidate(Rows((*rows.columns[:key], *rows.columns[key + 1 :]), (factors * rows.weights[0],)))

    def _at_corner(self, corner: int, factor: int, histories: Sequence[KeyHistory], scopes: ScopeContext) -> Rows:
        """The rows of the groups in the corner, multiplied by the factor."""
        content = [_content(history, corner) for history in histories]
        if not self.always and not any(map(len, content)):
            return Rows.empty(self.output, 1)
        rows = self.flat.step(content, _scratch(scopes))
        return Rows(rows.columns, [factor * weight for weight in rows.weights])


def _stacked(flat: AggregateOperator) -> AggregateOperator:
    """The operator over groups with one more word at the end."""
    extremes = tuple(replace(extreme, key=extreme.key + 1) for extreme in flat.extremes)
    return replace(flat, key=flat.key + 1, extremes=extremes)


def _scratch(scopes: ScopeContext) -> Context:
    """A context without state."""
    tick = Tick(scopes.tick.epoch, scopes.tick.now_us, frozenset(), scopes.tick.before_us)
    return Context(HOME, 1, tick, {}, scopes.strings, scopes.counters)


def _different(histories: Sequence[KeyHistory], scopes: ScopeContext) -> list[tuple[int, int]]:
    """One corner for each distinct content, with the sum of the signs of all corners of that content, if it is not 0."""
    classes = {c for history in histories for c in np.flatnonzero(np.bincount(history.classes)).tolist()}
    factors: dict[frozenset[int], tuple[int, int]] = {}
    for corner, sign in corners(scopes):
        content = frozenset(c for c in classes if c | corner == corner)
        factors[content] = corner, sign + factors.get(content, (corner, 0))[1]
    return [(corner, factor) for corner, factor in factors.values() if factor]


def _content(history: KeyHistory, corner: int) -> Batch:
    """The changes that count in the corner."""
    counted = history.counted(corner)
    return consolidate(Rows([c[counted] for c in history.columns], [w[counted] for w in history.weights]))


def _contents(history: KeyHistory, key: int, chosen: Sequence[int]) -> Batch:
    """The changes that count in each corner; the number of the corner follows the `key` words of the group."""
    counted = [history.counted(corner) for corner in chosen]
    number = np.repeat(np.arange(len(counted)), [len(positions) for positions in counted])
    positions = np.concatenate([np.empty(0, np.int64), *counted])
    columns = [column[positions] for column in history.columns]
    return consolidate(Rows((*columns[:key], number, *columns[key:]), [weight[positions] for weight in history.weights]))
