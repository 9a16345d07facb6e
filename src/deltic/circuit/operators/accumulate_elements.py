"""stream_aggregate with sets and maps: each element of an accumulator is a row of its state, beside one row of the other columns.

Costs O((rows of the tick + elements changed + elements looked up) · log state), and one call for each key of the tick. A key that is
dropped costs its elements, and so does iteration by the function.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deltic.circuit.groups import Row, members, read_groups
from deltic.circuit.operator import Context
from deltic.circuit.operators.accumulate import AccumulateOperator
from deltic.circuit.operators.linear import negated
from deltic.circuit.scopes import distinct_rows
from deltic.expr.accumulators import (
    ABSENT,
    Changes,
    ElementPart,
    Held,
    accumulated_elements,
    element_key,
    element_of_type,
)
from deltic.expr.nodes import Value
from deltic.schema import BIGINT, INT, Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import Layout, decode_rows, encode_rows
from deltic.trace.entries import Words
from deltic.trace.probe import probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine

PLAIN = 0
"""The tag of the row of the columns that are not sets or maps; that of an element is 1 + the position of its part."""


@dataclass(frozen=True, slots=True)
class AccumulateElementsOperator(AccumulateOperator):
    """Its rows have the key, a tag, and the columns of `tagged`; those of other tags are NULL."""

    parts: tuple[ElementPart, ...]

    @property
    def shape(self) -> Schema:
        return tagged(self.returned, self.parts)

    def _change(self, delta: Batch, context: Context) -> Batch:
        pairs = dict(members(self._placed(delta), self.values, context))
        stored = _Stored(self, distinct_rows([delta], self.key), context.old(self.memory, self.width, 1), context, pairs)
        after: list[tuple[int, Row, tuple[Changes, ...]]] = []
        dropped: list[int] = []
        for group, rows in pairs.items():
            sources = [_Source(stored, part, group) for part in range(len(self.parts))]
            result = accumulated_elements(self.function, self.returned, stored.plain(group), sources, rows)
            if result is not None:
                after.append((group, *result))
            elif stored.plain(group) is not None:
                dropped.append(group)
        return consolidate(Rows.concat([Rows.empty(self.width, 1), *stored.whole(dropped), *stored.changed(after)]))


def tagged(plain: Schema, parts: Sequence[ElementPart]) -> Schema:
    """The columns of the state after the key: the tag, those of each part, the other columns, and the size of each part."""
    elements = [Field(f"{part.name}.{one.name}", one.type, True) for part in parts for one in part.fields]
    others = [Field(one.name, one.type, True) for one in plain]
    return Schema((Field("tag", INT, False), *elements, *others, *(Field(f"size of {part.name}", BIGINT, False) for part in parts)))


def places(plain: Schema, parts: Sequence[ElementPart]) -> tuple[tuple[range, ...], range, range]:
    """The positions of `tagged` of each part's columns, of the other columns, and of the sizes."""
    ends = [1, *(1 + sum(len(one.fields) for one in parts[: i + 1]) for i in range(len(parts)))]
    last = ends[-1] + len(plain)
    return tuple(map(range, ends, ends[1:])), range(ends[-1], last), range(last, last + len(parts))


@dataclass(frozen=True, slots=True)
class _Source:
    """The elements of one set or map of a key."""

    stored: _Stored
    part: int
    group: int

    @property
    def size(self) -> int:
        return self.stored.size(self.part, self.group)

    def find(self, elements: Sequence[Value]) -> list[Held]:
        return self.stored.find(self.part, self.group, elements)

    def all(self) -> Iterator[tuple[Value, Held]]:
        return self.stored.all(self.part, self.group)


@dataclass(slots=True)
class _Stored:
    """The state before the tick, for the keys of its rows. groups: the words of the keys. pairs: their (row, weight) pairs."""

    operator: AccumulateElementsOperator
    groups: Sequence[Words]
    spine: Spine
    context: Context
    pairs: dict[int, list[tuple[Row, int]]]
    held: dict[tuple[int, int, Hashable], Held] = field(default_factory=dict)
    """Elements that were looked up, by part, key and element."""
    sought: set[int] = field(default_factory=set)
    """The parts of which elements were looked up."""
    rows: dict[int, tuple[Row, Row]] = field(init=False)
    """By key: the columns that are not sets or maps, and the sizes of these."""
    before: Batch = field(init=False)
    """The rows of these columns, after the position of the key."""
    nulls: tuple[int, ...] = field(init=False)
    """The words of a row of NULLs."""

    def __post_init__(self) -> None:
        operator, schema = self.operator, self.operator.shape
        _, plain, sizes = places(operator.returned, operator.parts)
        tags = np.full(len(self.pairs), PLAIN, np.int64)
        self.before = read_groups(self.spine, (*self.groups, tags), Layout.of(schema).width - 1, self.context)
        values = decode_rows(
            (np.zeros(len(self.before), np.int64), *self.before.columns[1:]), schema, self.context.strings, len(self.before)
        )
        self.rows = {
            group: (row[plain.start : plain.stop], row[sizes.start : sizes.stop])
            for group, row in zip(self.before.columns[0].tolist(), values, strict=True)
        }
        nothing = encode_rows([tuple(None if one.nullable else 0 for one in schema)], schema, self.context.strings)
        self.nulls = tuple(int(word[0]) for word in nothing)

    def plain(self, group: int) -> Row | None:
        return self.rows[group][0] if group in self.rows else None

    def size(self, part: int, group: int) -> int:
        size = self.rows[group][1][part] if group in self.rows else 0
        assert isinstance(size, int)
        return size

    def find(self, part: int, group: int, elements: Sequence[Value]) -> list[Held]:
        """What the elements have. The first call for a part also looks up what the rows of the tick have in columns of its type."""
        keys = [(part, group, element_key(element)) for element in elements]
        missing = {key: element for key, element in zip(keys, elements, strict=True) if key not in self.held}
        if missing and part not in self.sought:
            self.sought.add(part)
            missing = {**dict(self._likely(part)), **missing}
        if missing:
            self.held.update(dict.fromkeys(missing, ABSENT))
            order = list(missing)
            rows = self._elements(part, [group for _, group, _ in order], list(missing.values()))
            for place, row in self._decoded(part, rows):
                self.held[order[place]] = row[1] if len(row) > 1 else True
        return [self.held[key] for key in keys]

    def all(self, part: int, group: int) -> Iterator[tuple[Value, Held]]:
        """The elements of a set or map."""
        width = Layout.of(self.operator.shape).width - 1
        keys = (*(words[group : group + 1] for words in self.groups), np.array([1 + part], np.int64))
        for _, row in self._decoded(part, read_groups(self.spine, keys, width, self.context)):
            yield row[0], row[1] if len(row) > 1 else True

    def whole(self, groups: Sequence[int]) -> list[Rows]:
        """The removal of all rows of keys."""
        if not groups:
            return []
        keys = [words[groups] for words in self.groups]
        rows = read_groups(self.spine, keys, Layout.of(self.operator.shape).width, self.context)
        return [negated(Rows((*(words[rows.columns[0]] for words in keys), *rows.columns[1:]), rows.weights))]

    def changed(self, after: Sequence[tuple[int, Row, tuple[Changes, ...]]]) -> Iterator[Rows]:
        """The change of the rows of keys that are not dropped."""
        if not after:
            return
        schemas, plain, counts = places(self.operator.returned, self.operator.parts)
        groups = np.array([group for group, _, _ in after], np.int64)
        sizes = [[self.size(part, group) for group, _, _ in after] for part in range(len(self.operator.parts))]
        for part, grown in enumerate(sizes):
            touched = [(place, *entry) for place, (_, _, changes) in enumerate(after) for entry in changes[part].values()]
            if not touched:
                continue
            owners = groups[[place for place, _, _ in touched]]
            old = self._elements(part, owners, [element for _, element, _ in touched])
            yield negated(Rows((*(words[owners[old.columns[0]]] for words in self.groups), *old.columns[1:]), old.weights))
            new = [(place, element, held) for place, element, held in touched if held is not ABSENT]
            owners = groups[[place for place, _, _ in new]]
            yield self._rows(1 + part, owners, {schemas[part]: [entry[1 : 1 + len(schemas[part])] for entry in new]})
            for place in old.columns[0].tolist():
                grown[touched[place][0]] -= 1
            for place, _, _ in new:
                grown[place] += 1
        kept = np.isin(self.before.columns[0], groups).nonzero()[0]
        before = self.before
        tags = np.full(len(kept), PLAIN, np.int64)
        words = (*(words[before.columns[0][kept]] for words in self.groups), tags, *(words[kept] for words in before.columns[1:]))
        yield negated(Rows(words, [before.weights[0][kept]]))
        yield self._rows(PLAIN, groups, {plain: [row for _, row, _ in after], counts: list(zip(*sizes, strict=True))})

    def _rows(self, tag: int, groups: Words, given: Mapping[range, Sequence[Row]]) -> Rows:
        """New rows of these keys, whose columns at some positions are given; the others are NULL."""
        schema, ones = self.operator.shape, np.ones(len(groups), np.int64)
        words = [np.full(len(groups), word) for word in (tag, *self.nulls[1:])]
        for columns, rows in given.items():
            if columns and rows:
                fields = Schema(schema.fields[columns.start : columns.stop])
                start = Layout.of(schema).slices[columns.start].start
                encoded = encode_rows(rows, fields, self.context.strings)
                words[start : start + len(encoded)] = encoded
        return Rows((*(word[groups] for word in self.groups), *words), (ones,))

    def _likely(self, part: int) -> Iterator[tuple[tuple[int, int, Hashable], Value]]:
        """What the rows of the tick have in columns of the elements' type: a function mostly looks these up."""
        type = self.operator.parts[part].element.type
        columns = [i for i, one in enumerate(self.operator.values) if one.type == type]
        for group, pairs in self.pairs.items():
            if self.size(part, group):
                for value in (row[i] for row, _ in pairs for i in columns if row[i] is not None):
                    element = element_of_type(value, type)
                    yield (part, group, element_key(element)), element

    def _elements(self, part: int, groups: Sequence[int] | Words, elements: Sequence[Value]) -> Batch:
        """(position of the element, all words after the key) of the stored rows of elements."""
        schema = self.operator.shape
        (columns, _, _) = places(self.operator.returned, self.operator.parts)
        place, slices = columns[part].start, Layout.of(schema).slices
        sought = encode_rows([(element,) for element in elements], Schema((schema[place],)), self.context.strings)
        start, count = slices[place].start, len(elements)
        prefix = [np.full(count, word) for word in (1 + part, *self.nulls[1:start])]
        keys = [*(words[np.asarray(groups, np.int64)] for words in self.groups), *prefix, *sought]
        rest = range(len(keys), len(self.groups) + Layout.of(schema).width)
        source, stored, weights = probe(self.spine, keys, rest, self.context.counters)
        return consolidate(Rows((source, *(word[source] for word in (*prefix, *sought)), *stored), (weights[0],)))

    def _decoded(self, part: int, rows: Batch) -> Iterable[tuple[int, Row]]:
        """(first word, the columns of the part) of rows of (a position, words after the key or after the tag)."""
        schema = self.operator.shape
        columns = places(self.operator.returned, self.operator.parts)[0][part]
        slices = Layout.of(schema).slices
        skipped = len(rows.columns) - Layout.of(schema).width
        words = rows.columns[skipped:][slices[columns.start].start : slices[columns.stop - 1].stop]
        values = decode_rows(words, Schema(schema.fields[columns.start : columns.stop]), self.context.strings, len(rows))
        return zip(rows.columns[0].tolist(), values, strict=True)
