"""Aggregates of users that merge: the value of a group from the states of O(log n) parts of it, in order (operators/merge_levels.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.extremes import old_words, written
from deltic.circuit.operator import Context
from deltic.circuit.operators.value_levels import ValueList
from deltic.errors import Span
from deltic.expr.nodes import PythonFunction, UserFunction, Value
from deltic.expr.python import finished_state, merged_states
from deltic.schema import Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.encoding import Layout, decode_rows, encode_rows
from deltic.trace.probe import first_of_each, probe
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class UserMerge:
    """A user's aggregate over the levels of `arrangement`, (key words, level, order words, state). order: the number of order words."""

    arrangement: str
    key: int
    order: int
    result: Field
    user: UserFunction
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (self.result,)

    @property
    def state(self) -> Schema:
        """The attributes of an instance."""
        assert self.user.merge is not None
        return Schema(self.user.merge.state)

    @property
    def width(self) -> int:
        """The number of words of a node after those of its group."""
        return 1 + self.order + Layout.of(self.state).width

    @property
    def identity(self) -> object:
        """What determines the value, beside the levels."""
        return (self.user.name, self.user.digest, self.result.type.sql)


def new_merge(
    merge: UserMerge, groups: Words, old: Sequence[Words], existed: np.ndarray, delta: Batch, context: Context
) -> Sequence[Words]:
    """The words of the value of each group after `delta`. old, existed: as for `new_extremes`."""
    (words,) = old_words(merge.fields, old, existed)
    if not len(delta):
        return [words]
    source, _, _ = probe(Spine.of(delta), groups, (), context.counters)
    changed = source[first_of_each(source)]
    parts = _parts(merge, [group[changed] for group in groups], delta, context)
    values = [(_value(merge, parts.get(i, [])),) for i in range(len(changed))]
    return [written(words, changed, encode_rows(values, Schema((merge.result,)), context.strings))]


def _parts(merge: UserMerge, groups: Sequence[np.ndarray], delta: Batch, context: Context) -> dict[int, list[tuple[Value, ...]]]:
    """The states of nodes that have each row of a group once, in order, by the position of the group."""
    now = context.old(merge.arrangement, merge.key + merge.width, 1).with_batch(delta)
    levels, partitions = ValueList(now, now, merge.key, merge.order), tuple(groups)
    parts: dict[int, list[tuple[Value, ...]]] = {}
    for nodes in levels.cover(partitions, None, None, context.counters):
        node, words = levels.read(nodes.level, tuple(word[nodes.range] for word in partitions), nodes.keys, context.counters)
        states = decode_rows(words, merge.state, context.strings, len(node))
        for group, state in zip(nodes.range[node].tolist(), states, strict=True):
            parts.setdefault(group, []).append(state)
    return parts


def _value(merge: UserMerge, states: Sequence[tuple[Value, ...]]) -> Value:
    """The value of a group; NULL if it has no rows."""
    if not states:
        return None
    call = PythonFunction(merge.user, (), 0, merge.result.type, merge.result.nullable, merge.span)
    return finished_state(call, merged_states(call, states))
