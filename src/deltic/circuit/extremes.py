"""MIN and MAX under deletions: the first present value of a group, found from where it can be at the earliest.

The values of each group lie sorted in an arrangement (group, order words) → weight; MAX flips the bits of the words, so that the
extreme is always the first row that is present. Before the old extreme nothing was present, so the search starts at the lesser
of the old extreme and the least value inserted now: rows that cancelled before it are never stepped over twice, however often
the extreme is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deltic.circuit.operator import Context
from deltic.schema import STRING, Field
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.encoding import words_of
from deltic.trace.probe import first, first_of_each, probe
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import PREFIX_BYTES, StringTable

Words = tuple[np.ndarray, ...]
STRING_WORDS = 3
MARKER = np.int64(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class Extreme:
    """MIN, or MAX if `descending`, of a group's values. arrangement: (key words, order words) → weight. field: the result's."""

    arrangement: str
    key: int
    field: Field
    descending: bool

    @property
    def width(self) -> int:
        """Order words of a value; a string's id follows its order words."""
        return STRING_WORDS + 1 if self.field.type == STRING else words_of(self.field.type, False)


def order_words(words: Words, field: Field, descending: bool, strings: StringTable) -> Words:
    """The words by which values (NOT NULL) sort: ascending in the order asked for."""
    if field.type == STRING:
        prefix = strings.order_words(words[0])
        return (*(~w if descending else w for w in prefix), words[0])
    return tuple(~w for w in words) if descending else words


def value_words(order: Words, field: Field, descending: bool) -> Words:
    """Back from order words to the words of a NOT NULL value."""
    if field.type == STRING:
        return (order[-1],)
    return tuple(~w for w in order) if descending else order


def new_extremes(
    extreme: Extreme, groups: Words, old: Words, there: np.ndarray, filled: np.ndarray, delta: Batch, context: Context
) -> Words:
    """The result words of each group after `delta`, given those before (`old`, where `there`). filled: which groups have rows now."""
    nulls = _null_words(extreme.field)
    old = tuple(np.where(there, word, null) for word, null in zip(old, nulls, strict=True))
    if not len(delta):
        return old
    key, width = extreme.key, extreme.width
    spine = context.old(extreme.arrangement, key + width, 1)
    now = spine.with_batch(delta)
    change = Spine.of(delta)
    source, columns, weights = probe(change, groups, range(key, key + width), context.counters)
    looked = source[first_of_each(source)]
    nullable = words_of(extreme.field.type, extreme.field.nullable) - words_of(extreme.field.type, False)
    present = there & ~_is_null(old, extreme.field)
    starts = _known_starts(extreme, old[nullable:], present, context.strings)
    _lower_to(starts, present, source[weights[0] > 0], [c[weights[0] > 0] for c in columns])
    searched = looked[(present & filled)[looked]]
    at, found, _ = first(now, [g[searched] for g in groups], [s[searched] for s in starts], 1, context.counters)
    result = [np.array(w) for w in old]
    for word, null in zip(result, nulls, strict=True):
        word[looked] = null
    rows = searched[at]
    found = found[key:]
    if extreme.field.type == STRING:
        found = (*found[:-1], _least_strings(extreme, now, tuple(g[rows] for g in groups), found, context))
    words = value_words(found, extreme.field, extreme.descending)
    if nullable:
        words = (np.ones(len(rows), np.int64), *words)
    for word, value in zip(result, words, strict=True):
        word[rows] = value
    return tuple(result)


def _known_starts(extreme: Extreme, values: Words, present: np.ndarray, strings: StringTable) -> Words:
    """The order words of the present values, zeros elsewhere.

    A string's id is left out: it does not order strings whose first bytes are equal, so the next one may have a lesser id.
    """
    starts = tuple(np.zeros(len(present), np.int64) for _ in range(extreme.width))
    for start, word in zip(starts, order_words(tuple(v[present] for v in values), extreme.field, extreme.descending, strings), strict=True):
        start[present] = word
    if extreme.field.type == STRING:
        starts[-1][:] = MARKER
    return starts


def _is_null(words: Words, field: Field) -> np.ndarray:
    if not field.nullable:
        return np.zeros(len(words[0]), bool)
    return np.equal(words[0], _null_words(field)[0])


def _null_words(field: Field) -> list[np.int64]:
    """The words of NULL; of zeros where the field cannot be NULL."""
    width = words_of(field.type, field.nullable)
    if not field.nullable or width > words_of(field.type, False):
        return [np.int64(0)] * width
    return [MARKER] + [np.int64(0)] * (width - 1)


def _lower_to(starts: Words, present: np.ndarray, source: np.ndarray, columns: Sequence[np.ndarray]) -> None:
    """Moves each start down to the least inserted value of its group (in place), and marks the group as present.

    source, columns: group and value of each row inserted, in order.
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


def _least_strings(extreme: Extreme, spine: Spine, groups: Words, found: Words, context: Context) -> np.ndarray:
    """The ids of the extremes: among strings whose first bytes are equal and that go on, the bytes decide."""
    ids = np.array(found[-1])
    unsure = np.flatnonzero(context.strings.exceeds(ids, PREFIX_BYTES))
    prefix = [*(g[unsure] for g in groups), *(c[unsure] for c in found[:-1])]
    if not len(unsure):
        return ids
    source, columns, weights = probe(spine, prefix, (extreme.key + STRING_WORDS,), context.counters)
    rows = consolidate(Rows((source, columns[0]), (weights[0],)))
    live = rows.weights[0] > 0
    at, candidates = rows.columns[0][live], rows.columns[1][live]
    texts = context.strings.decode(candidates).to_pylist()
    best: dict[int, tuple[bytes, int]] = {}
    for i, text, candidate in zip(at.tolist(), texts, candidates.tolist(), strict=True):
        value = (text.encode(), candidate)
        if i not in best or (value > best[i] if extreme.descending else value < best[i]):
            best[i] = value
    for i, (_, candidate) in best.items():
        ids[unsure[i]] = candidate
    return ids
