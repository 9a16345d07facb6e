"""Any function of groups in nested scopes: aggregates and top-k, as the change over the corners of now (corners.py).

The function is its flat operator run from scratch: over empty state, with the content of a corner as the change. What is read is the
whole history of the groups that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import HOME, Context, Delta, Tick
from deltic.circuit.operators.aggregate import Aggregate
from deltic.circuit.operators.corners import History, corners, look
from deltic.circuit.operators.top_k import TopK
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

    flat: Aggregate | TopK
    depth: int
    key: int
    arrangements: tuple[tuple[str, int, int], ...]
    output: int
    always: bool = False

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
        changes = [self._at(corner, sign, found, nest) for corner, sign in corners(nest)]
        return consolidate(Rows.concat(changes))

    def _at(self, corner: int, sign: int, found: Sequence[History], nest: Nest) -> Rows:
        """The rows of the groups as they are in the corner, times the sign."""
        content = [_content(history, corner) for history in found]
        if not self.always and not any(map(len, content)):
            return Rows.empty(self.output, 1)
        tick = Tick(nest.tick.epoch, nest.tick.now_us, frozenset(), nest.tick.before_us)
        scratch = Context(HOME, 1, tick, {}, nest.strings, nest.counters)
        rows = self.flat.step(content, scratch)
        return Rows(rows.columns, [sign * weight for weight in rows.weights])


def _content(history: History, corner: int) -> Batch:
    at = history.at(corner)
    return consolidate(Rows([c[at] for c in history.columns], [w[at] for w in history.weights]))
