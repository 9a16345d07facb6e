"""merge_levels: a skip list of what a user's aggregate that merges makes of the rows of groups, sorted by its arguments.

Level 0 has the state of each row, as often as the row occurs, a node of level l that of its children, merged in order. So a change of a row
costs O(log n) calls of `merge`. Strings of 24 bytes and more are not ordered by their words: rows with equal words up to such a string are
one key, whose state is computed from all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.operator import Context
from deltic.circuit.operators.value_levels import ValueLevels
from deltic.circuit.scopes import distinct_rows
from deltic.circuit.terms import MARKER, Term, exact_order
from deltic.errors import Span
from deltic.expr.nodes import PythonFunction, UserFunction, Value
from deltic.expr.python import lifted_row, merged_states, repeated_state
from deltic.schema import Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode_rows, encode_rows
from deltic.trace.probe import first_of_each, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class MergeLevels(ValueLevels):
    """(group, level, key, state) for the rows of `arrangement`, (group, order words of `terms`) → copies.

    A key is the order words of a row, without the id of the first long string and the words after it. arguments: of the call, each the
    number of its term, or a constant in a tuple. result: the field of the aggregate's value.
    """

    arrangement: str
    memory: str
    key: int
    terms: tuple[Term, ...]
    arguments: tuple[int | tuple[Value], ...]
    result: Field
    user: UserFunction
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return "merge_levels"

    @property
    def order(self) -> int:  # type: ignore[override]  # computed, where other levels have a field
        return sum(term.width for term in self.terms)

    @property
    def state(self) -> Schema:
        """The attributes of an instance."""
        assert self.user.merge is not None
        return Schema(self.user.merge.state)

    @property
    def value_width(self) -> int:
        return Layout.of(self.state).width

    @property
    def _call(self) -> PythonFunction:
        return PythonFunction(self.user, (), 0, self.result.type, self.result.nullable, self.span)

    @property
    def _texts(self) -> tuple[int, ...]:
        """The positions of ids among the order words."""
        ends = np.cumsum([term.width for term in self.terms]).tolist()
        return tuple(end - 1 for term, end in zip(self.terms, ends, strict=True) if term.field.type.has_bytes)

    def keys_of(self, delta: Batch, context: Context) -> Words:
        own = [np.array(word) for word in delta.columns[self.key :]]
        for position, is_cut in self._cuts(delta.columns[self.key :], context):
            for i in range(position, self.order):
                own[i][is_cut] = MARKER if i in self._texts else 0
        return distinct_rows(
            [consolidate(Rows((*delta.columns[: self.key], *own), (np.ones(len(delta), np.int64),)))], self.key + self.order
        )

    def _cuts(self, words: Sequence[np.ndarray], context: Context) -> Iterator[tuple[int, np.ndarray]]:
        """For each id that may be that of the first long string its position, and bool[n], which rows have one there."""
        uncut = np.ones(len(words[0]), bool) if words else np.zeros(0, bool)
        for position in self._texts:
            is_long = np.zeros(len(uncut), bool)
            is_long[uncut] = context.strings.exceeds_prefix(words[position][uncut])
            uncut &= ~is_long
            yield position, is_long

    def lowest(self, keys: Words, delta: Batch, context: Context) -> tuple[np.ndarray, Words]:
        now = context.old(self.arrangement, self.key + self.order, 1).with_batch(delta)
        parts = [Rows.empty(1 + self.order, 1)]
        rest = np.ones(len(keys[0]), bool)
        for position in self._texts:  # its id is missing, and the string is not NULL
            is_cut = rest & (keys[self.key + position] == MARKER) & (keys[self.key + position - 1] != MARKER)
            rest &= ~is_cut
            parts.append(self._rows(now, keys, np.flatnonzero(is_cut), position, context))
        parts.append(self._rows(now, keys, np.flatnonzero(rest), self.order, context))
        rows = consolidate(Rows.concat(parts))
        order = exact_order(rows.columns, dict.fromkeys((1 + text for text in self._texts), False), context.strings)
        return self._lifted(rows.take(order), context)

    def _rows(self, now: Spine, keys: Words, chosen: np.ndarray, words: int, context: Context) -> Rows:
        """(the number of the key, order words) of all rows of the chosen keys, which agree in so many order words."""
        columns = range(self.key, self.key + self.order)
        source, read_words, weights = probe(now, [word[chosen] for word in keys[: self.key + words]], columns, context.counters)
        return Rows((chosen[source], *read_words), (weights[0],))

    def _lifted(self, rows: Rows | Batch, context: Context) -> tuple[np.ndarray, Words]:
        """(each key, the words of its state) of its rows in order."""
        values = self._values(rows.columns[1:], context)
        states: list[tuple[Value, ...]] = []
        numbers = rows.columns[0]
        begins = first_of_each(numbers)
        copies = rows.weights[0].tolist()
        for start, end in zip(begins.tolist(), [*begins[1:].tolist(), len(numbers)], strict=False):
            parts = [repeated_state(self._call, lifted_row(self._call, values[i]), copies[i]) for i in range(start, end)]
            states.append(merged_states(self._call, parts))
        return numbers[begins], encode_rows(states, self.state, context.strings)

    def _values(self, words: Sequence[np.ndarray], context: Context) -> list[tuple[Value, ...]]:
        """The arguments of each row, from its order words."""
        fields, stored, start = [], [], 0
        for term in self.terms:
            own = tuple(words[start : start + term.width])
            stored += [*term.values(own)]
            fields.append(term.field)
            start += term.width
        rows = decode_rows(stored, Schema(tuple(fields)), context.strings, len(words[0]))
        return [tuple(row[a] if isinstance(a, int) else a[0] for a in self.arguments) for row in rows]

    def together(self, run: np.ndarray, values: Words, context: Context) -> tuple[np.ndarray, Words]:
        states = decode_rows(values, self.state, context.strings, len(run))
        begins = first_of_each(run)
        ends = [*begins[1:].tolist(), len(run)]
        merged = [merged_states(self._call, states[start:end]) for start, end in zip(begins.tolist(), ends, strict=False)]
        return run[begins], encode_rows(merged, self.state, context.strings)
