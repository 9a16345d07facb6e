"""The first row of each group in an order, under deletions: MIN, MAX, and the values that go with them.

The rows of each group are sorted in an arrangement (group, order words) → weight. A descending order flips the bits of the words, so the
extreme is always the first row that is present. No row was present before the old extreme, so the search starts at the lesser of the old
extreme and the least row inserted now. Cancelled rows before it are never scanned again, however often the extreme is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context
from deltic.circuit.terms import MARKER, Term, exact_order
from deltic.schema import Field
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import words_of
from deltic.trace.probe import first, first_of_each, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

Words = tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Extreme:
    """The first row of a group by `terms`. arrangement: (key words, order words of each term) → weight.

    fields: the terms' fields in the row of a group. The first term is never NULL in the arrangement; NULL in the group's row, if its field
    allows it, means that the arrangement has no row of the group.
    """

    arrangement: str
    key: int
    terms: tuple[Term, ...]
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        assert not self.terms[0].field.nullable
        assert [term.field.type for term in self.terms] == [field.type for field in self.fields]

    @property
    def width(self) -> int:
        """The number of order words of a row."""
        return sum(term.width for term in self.terms)

    @property
    def texts(self) -> dict[int, bool]:
        """The positions of the order words that are string ids → whether the term descends."""
        ends = np.cumsum([term.width for term in self.terms]).tolist()
        return {end - 1: t.descending for t, end in zip(self.terms, ends, strict=True) if t.field.type.has_bytes}


def new_extremes(
    extreme: Extreme, groups: Words, old: Sequence[Words], existed: np.ndarray, filled: np.ndarray, delta: Batch, context: Context
) -> Sequence[Words]:
    """The words of each field for each group after `delta`.

    old: the words before, valid for groups that `existed`. existed, filled: bool[groups], whether a group had rows before, and has now.
    """
    old = old_words(extreme.fields, old, existed)
    if not len(delta):
        return old
    key, width = extreme.key, extreme.width
    now = context.old(extreme.arrangement, key + width, 1).with_batch(delta)
    source, columns, weights = probe(Spine.of(delta), groups, range(key, key + width), context.counters)
    changed = source[first_of_each(source)]
    present = existed & ~_is_null(old[0], extreme.fields[0])
    starts = known_starts(extreme.terms, old, present, context.strings)
    _lower_to(starts, present, source[weights[0] > 0], [c[weights[0] > 0] for c in columns])
    searched = changed[(present & filled)[changed]]
    matched, order_words, _ = first(now, [g[searched] for g in groups], [s[searched] for s in starts], 1, context.counters)
    rows = searched[matched]
    best = settled(extreme, now, [g[rows] for g in groups], order_words[key:], context)
    nulls = [null_words(field) for field in extreme.fields]
    return [replaced(words, null, changed, rows, value) for words, null, value in zip(old, nulls, _values(extreme, best), strict=True)]


def old_words(fields: Sequence[Field], old: Sequence[Words], existed: np.ndarray) -> list[Words]:
    """The words of each field in the rows of groups that existed; NULL, or zeros, for the others."""
    nulls = [null_words(field) for field in fields]
    return [tuple(np.where(existed, w, null) for w, null in zip(words, n, strict=True)) for words, n in zip(old, nulls, strict=True)]


def written(words: Words, positions: np.ndarray, values: Words) -> Words:
    """The words with `values` at the positions."""
    result = [np.array(word) for word in words]
    for word, value in zip(result, values, strict=True):
        word[positions] = value
    return tuple(result)


def replaced(words: Words, nulls: Sequence[np.int64], changed: np.ndarray, rows: np.ndarray, values: Words) -> Words:
    """The words with `values` for the groups `rows`, and NULL for the other changed groups."""
    result = [np.array(word) for word in words]
    for word, null, value in zip(result, nulls, values, strict=True):
        word[changed] = null
        word[rows] = value
    return tuple(result)


def _values(extreme: Extreme, order: Words) -> list[Words]:
    """The words of each field, from the order words of rows that exist."""
    values, start = [], 0
    for term, field in zip(extreme.terms, extreme.fields, strict=True):
        words = term.values(order[start : start + term.width])
        start += term.width
        missing = words_of(field.type, field.nullable) - len(words)
        values.append((np.ones(len(words[0]), np.int64), *words) if missing else words)
    return values


def known_starts(terms: Sequence[Term], values: Sequence[Words], present: np.ndarray, strings: StringTable) -> Words:
    """The order words at which to start the search: those of the present rows, zeros elsewhere.

    After the first bytes of a long string they are the least words, since ids do not order strings whose first bytes are equal.
    """
    starts: list[np.ndarray] = []
    unsure = np.zeros(int(present.sum()), bool)
    for term, words in zip(terms, values, strict=True):
        stored = words[len(words) - words_of(term.field.type, term.field.nullable) :]
        order = Term(0, term.field, term.descending, term.nulls_first).words(tuple(w[present] for w in stored), strings)
        for j, word in enumerate(order):
            if term.field.type.has_bytes and j == len(order) - 1:
                unsure = unsure | strings.exceeds_prefix(word)
            start = np.zeros(len(present), np.int64)
            start[present] = np.where(unsure, MARKER, word)
            starts.append(start)
    return tuple(starts)


def _is_null(words: Words, field: Field) -> np.ndarray:
    if not field.nullable:
        return np.zeros(len(words[0]), bool)
    return np.equal(words[0], null_words(field)[0])


def null_words(field: Field) -> list[np.int64]:
    """The words of NULL; zeros if the field cannot be NULL."""
    width = words_of(field.type, field.nullable)
    if not field.nullable or width > words_of(field.type, False):
        return [np.int64(0)] * width
    return [MARKER] + [np.int64(0)] * (width - 1)


def _lower_to(starts: Words, present: np.ndarray, source: np.ndarray, columns: Sequence[np.ndarray]) -> None:
    """Lowers each start to the least inserted value of its group, and marks the group as present; both in place.

    source, columns: group and value of each inserted row, sorted.
    """
    heads = first_of_each(source)
    group = source[heads]
    values = [c[heads] for c in columns]
    less = ~present[group]
    equal = ~less
    for start, value in zip(starts, values, strict=True):
        less |= equal & (value < start[group])
        equal &= value == start[group]
    for start, value in zip(starts, values, strict=True):
        start[group[less]] = value[less]
    present[group] = True


def settled(extreme: Extreme, spine: Spine, groups: Sequence[np.ndarray], order_words: Words, context: Context) -> Words:
    """The order words of the extremes: among rows that agree up to a long string, the bytes of the strings decide.

    groups, order_words: key and order words of the first row of each group in word order.
    """
    result = [np.array(word) for word in order_words]
    unsettled = np.ones(len(order_words[0]), bool)
    for position in extreme.texts:
        rows = np.flatnonzero(unsettled)
        rows = rows[context.strings.exceeds_prefix(order_words[position][rows])]
        unsettled[rows] = False
        if len(rows):
            prefix = [*(g[rows] for g in groups), *(w[rows] for w in order_words[:position])]
            for word, best in zip(result, _first_by_bytes(extreme, spine, prefix, context), strict=True):
                word[rows] = best
    return tuple(result)


def _first_by_bytes(extreme: Extreme, spine: Spine, prefix: Sequence[np.ndarray], context: Context) -> Sequence[np.ndarray]:
    """The order words of the first present row with each prefix, strings in order of their bytes. O(rows with the prefixes)."""
    source, columns, weights = probe(spine, prefix, range(extreme.key, extreme.key + extreme.width), context.counters)
    tied = consolidate(Rows((source, *columns), (weights[0],)))
    live = tied.take(np.flatnonzero(tied.weights[0] > 0))
    order = exact_order(live.columns, {1 + position: descending for position, descending in extreme.texts.items()}, context.strings)
    best = order[first_of_each(live.columns[0][order])]
    return [column[best] for column in live.columns[1:]]
