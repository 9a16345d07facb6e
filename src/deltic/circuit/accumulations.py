"""Aggregates of users that can take rows back: the value of a group follows from its state and the rows that changed.

The state is values of declared types, which the row of a group stores beside the result and the number of its rows. So a change of m rows
costs m calls, for a group of any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from deltic.aggregates import Signature
from deltic.circuit.extremes import old_words, written
from deltic.circuit.operator import Context
from deltic.errors import Span
from deltic.expr.nodes import PythonFunction, UserFunction, Value
from deltic.expr.python import changed_group
from deltic.expr.rows.ordering import total_key
from deltic.schema import BIGINT, Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode_rows, encode_rows
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]
Row = tuple[Value, ...]
Change = tuple[list[Row], list[Row]]
"""The argument lists of rows that are added, and of rows that are removed."""

COUNT = Field("count", BIGINT)


@dataclass(frozen=True, slots=True)
class Accumulation:
    """A user's aggregate over the rows of a group, whose changes are (key words, words of `values`) → weight.

    arguments: for each argument the position of its value, or a constant in a tuple. signature: of the call. result: the field of the
    value. `fields` of the row of a group: the result, the number of rows, and the state of `user`.
    """

    arrangement: str
    key: int
    values: Schema
    arguments: tuple[int | tuple[Value], ...]
    signature: Signature
    result: Field
    user: UserFunction
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def fields(self) -> tuple[Field, ...]:
        assert self.user.change is not None
        return (self.result, COUNT, *self.user.change.state)

    @property
    def width(self) -> int:
        """The number of words of a row."""
        return Layout.of(self.values).width

    @property
    def identity(self) -> object:
        """What determines the value, beside the rows."""
        types = tuple(type.sql for type in (*self.signature.arguments, *(field.type for field in self.fields)))
        return (self.user.name, self.user.digest, self.arguments, types)


def new_accumulation(
    accumulation: Accumulation, groups: Words, old: Sequence[Words], existed: np.ndarray, delta: Batch, context: Context
) -> Sequence[Words]:
    """The words of each field for each group after `delta`. old, existed: as for `new_extremes`."""
    words = old_words(accumulation.fields, old, existed)
    changes = _changes(accumulation, groups, delta, context)
    if not changes:
        return words
    positions = np.array(list(changes), np.int64)
    stored = Schema(accumulation.fields[1:])
    old_rows = decode_rows([word[positions] for field in words[1:] for word in field], stored, context.strings, len(positions))
    rows = [_changed(accumulation, row, change) for row, change in zip(old_rows, changes.values(), strict=True)]
    whole = Schema(accumulation.fields)
    encoded = encode_rows(rows, whole, context.strings)
    return [written(field, positions, encoded[s]) for field, s in zip(words, Layout.of(whole).slices, strict=True)]


def _changes(accumulation: Accumulation, groups: Words, delta: Batch, context: Context) -> dict[int, Change]:
    """The change of each group that has one, by its position."""
    if not len(delta):
        return {}
    columns = range(accumulation.key, accumulation.key + accumulation.width)
    source, words, weights = probe(Spine.of(delta), groups, columns, context.counters)
    batch = consolidate(Rows((source, *words), (weights[0],)))
    rows = decode_rows(batch.columns[1:], accumulation.values, context.strings, len(batch))
    entries = zip(batch.columns[0].tolist(), rows, batch.weights[0].tolist(), strict=True)
    by_group = groupby(entries, key=lambda entry: entry[0])
    return {group: _parted(accumulation, ((row, weight) for _, row, weight in each)) for group, each in by_group}


def _parted(accumulation: Accumulation, rows: Iterator[tuple[Row, int]]) -> Change:
    change: Change = ([], [])
    for row, weight in rows:
        arguments = tuple(row[a] if isinstance(a, int) else a[0] for a in accumulation.arguments)
        change[weight < 0].extend([arguments] * abs(weight))
    for part in change:
        part.sort(key=lambda arguments: tuple(map(total_key, arguments)))
    return change


def _changed(accumulation: Accumulation, row: Row, change: Change) -> Row:
    """The result, the number of rows and the state; NULL where the group has no rows."""
    before, *state = row
    added, removed = change
    count = (before if isinstance(before, int) else 0) + len(added) - len(removed)
    if not count:
        return (None, 0, *(None for _ in state))
    result = accumulation.result
    call = PythonFunction(accumulation.user, (), 0, result.type, result.nullable, accumulation.span)
    value, *after = changed_group(call, tuple(state) if before else None, added, removed)
    return (value, count, *after)
