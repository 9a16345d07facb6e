"""stream_aggregate: one accumulator for each key, which a user's function folds over the ticks of a stream.

Costs O(rows of the tick) and one call for each of their keys, whatever has gone by. The state is the accumulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.groups import Row, members, read_groups, replaced
from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.expr.nodes import UserFunction
from deltic.expr.python import accumulated
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.encoding import Layout, decode_rows
from deltic.trace.rows import Rows


@dataclass(frozen=True, slots=True)
class AccumulateOperator:
    """Its input is a stream of `key` words and the words of `values`. memory: the emitted rows, of the key and the words of `returned`."""

    memory: str
    key: int
    values: Schema
    returned: Schema
    function: UserFunction

    @property
    def name(self) -> str:
        return "stream_aggregate"

    @property
    def eager(self) -> bool:
        return True

    @property
    def shape(self) -> Schema:
        """The columns of the emitted rows after the key."""
        return self.returned

    @property
    def width(self) -> int:
        """The words of an emitted row."""
        return self.key + Layout.of(self.shape).width

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        fresh = context.tick.fresh
        if fresh is not None and self.memory not in fresh:
            return context.state[self.memory].scan(context.counters)
        delta = as_batch(inputs[0])
        if not len(delta):
            return Rows.empty(self.width, 1)
        context.counters.touched += len(delta)
        change = self._change(delta, context)
        context.append(self.memory, change)
        return change

    def _change(self, delta: Batch, context: Context) -> Batch:
        """The change of the emitted rows."""
        groups = distinct_rows([delta], self.key)
        old = read_groups(context.old(self.memory, self.width, 1), groups, self.width - self.key, context)
        held = decode_rows(old.columns[1:], self.returned, context.strings, len(old))
        before = dict(zip(old.columns[0].tolist(), held, strict=True))
        positions: list[int] = []
        rows: list[Row] = []
        for group, pairs in members(self._placed(delta), self.values, context):
            after = accumulated(self.function, self.returned, before.get(group), pairs)
            if after is not None:
                positions.append(group)
                rows.append(after)
        return replaced(groups, old, positions, rows, self.returned, context)

    def _placed(self, delta: Batch) -> Rows:
        """(position of the key, words of `values`) of the rows."""
        starts = np.zeros(len(delta), bool)
        starts[1:] = np.logical_or.reduce([word[1:] != word[:-1] for word in delta.columns[: self.key]])
        return Rows((np.cumsum(starts), *delta.columns[self.key :]), delta.weights)
