"""aggregate by a user's function, which computes the rows of each changed group from all rows of the group.

Costs O(rows of the changed groups) and one call for each group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from deltic.circuit.operator import Context, Delta, as_batch
from deltic.circuit.scopes import distinct_rows
from deltic.expr.nodes import UserFunction, Value
from deltic.expr.python import rows_of_reduction
from deltic.schema import Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode_rows, encode_rows
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class ReduceOperator:
    """arrangement: rows of `key` words and the words of `values`. memory: the emitted rows, of the key and the words of `returned`."""

    arrangement: str
    memory: str
    key: int
    values: Schema
    returned: Schema
    function: UserFunction

    @property
    def name(self) -> str:
        return "aggregate"

    @property
    def eager(self) -> bool:
        return False

    def step(self, inputs: Sequence[Delta], context: Context) -> Delta:
        delta = as_batch(inputs[0])
        groups = distinct_rows([delta], self.key)
        now = context.old(self.arrangement, self.key + Layout.of(self.values).width, 1).with_batch(delta)
        source, rows = self._reduced(self._read(now, groups, Layout.of(self.values).width, context), context)
        old = self._read(
            context.old(self.memory, self.key + Layout.of(self.returned).width, 1), groups, Layout.of(self.returned).width, context
        )
        new = encode_rows(rows, self.returned, context.strings)
        positions = np.concatenate((np.array(source, np.int64), old.columns[0]))
        words = [np.concatenate(pair) for pair in zip(new, old.columns[1:], strict=True)]
        weights = np.concatenate((np.ones(len(source), np.int64), -old.weights[0]))
        change = consolidate(Rows((*(word[positions] for word in groups), *words), (weights,)))
        context.append(self.memory, change)
        return change

    def _read(self, spine: Spine, groups: Words, width: int, context: Context) -> Batch:
        """(position of the group, words) of all rows of the groups."""
        source, columns, weights = probe(spine, groups, range(self.key, self.key + width), context.counters)
        return consolidate(Rows((source, *columns), (weights[0],)))

    def _reduced(self, content: Batch, context: Context) -> tuple[list[int], list[Row]]:
        """(the position of each row's group, the rows that the function returns)."""
        source: list[int] = []
        reduced: list[Row] = []
        for group, pairs in self._grouped(content, context):
            rows = rows_of_reduction(self.function, self.returned, pairs)
            source += [group] * len(rows)
            reduced += rows
        return source, reduced

    def _grouped(self, content: Batch, context: Context) -> Iterator[tuple[int, list[tuple[Row, int]]]]:
        rows = decode_rows(content.columns[1:], self.values, context.strings, len(content))
        entries = zip(content.columns[0].tolist(), rows, content.weights[0].tolist(), strict=True)
        for group, members in groupby(entries, key=lambda entry: entry[0]):
            yield group, [(row, weight) for _, row, weight in members]
