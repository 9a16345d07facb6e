"""stream_aggregate: one accumulator for each key, which a user's function folds over the ticks of a stream.

Costs O(rows of the tick) and one call for each of their keys, whatever has gone by. The state is the accumulators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.expr.nodes import UserFunction, Value
from deltic.expr.python import accumulated
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode_rows, encode_rows
from deltic.trace.probe import probe
from deltic.trace.rows import Rows

Words = tuple[np.ndarray, ...]
Row = tuple[Value, ...]


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

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        width = self.key + Layout.of(self.returned).width
        fresh = context.tick.fresh
        if fresh is not None and self.memory not in fresh:
            return context.state[self.memory].scan(context.counters)
        delta = as_batch(inputs[0])
        if not len(delta):
            return Rows.empty(width, 1)
        context.counters.touched += len(delta)
        groups = distinct_rows([delta], self.key)
        old, before = self._held(groups, context)
        positions, rows = self._accumulated(delta, groups, before, context)
        new = encode_rows(rows, self.returned, context.strings)
        places = np.concatenate((np.array(positions, np.int64), old.columns[0]))
        words = [np.concatenate(pair) for pair in zip(new, old.columns[1:], strict=True)]
        weights = np.concatenate((np.ones(len(positions), np.int64), -old.weights[0]))
        change = consolidate(Rows((*(word[places] for word in groups), *words), (weights,)))
        context.append(self.memory, change)
        return change

    def _held(self, groups: Words, context: Context) -> tuple[Batch, dict[int, Row]]:
        """(position of the group and words, by position the value) of the groups' accumulators."""
        width = Layout.of(self.returned).width
        spine = context.old(self.memory, self.key + width, 1)
        source, columns, weights = probe(spine, groups, range(self.key, self.key + width), context.counters)
        held = consolidate(Rows((source, *columns), (weights[0],)))
        rows = decode_rows(held.columns[1:], self.returned, context.strings, len(held))
        return held, dict(zip(held.columns[0].tolist(), rows, strict=True))

    def _accumulated(self, delta: Batch, groups: Words, before: dict[int, Row], context: Context) -> tuple[list[int], list[Row]]:
        """(the position of each key that has an accumulator after the tick, the accumulators)."""
        rows = decode_rows(delta.columns[self.key :], self.values, context.strings, len(delta))
        starts = np.ones(len(delta), bool)
        starts[1:] = np.logical_or.reduce([word[1:] != word[:-1] for word in delta.columns[: self.key]])
        entries = zip((np.cumsum(starts) - 1).tolist(), rows, delta.weights[0].tolist(), strict=True)
        positions: list[int] = []
        after: list[Row] = []
        for group, members in groupby(entries, key=lambda entry: entry[0]):
            pairs = [(row, weight) for _, row, weight in members]
            value = accumulated(self.function, self.returned, before.get(group), pairs)
            if value is not None:
                positions.append(group)
                after.append(value)
        return positions, after
