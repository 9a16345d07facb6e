"""Sort terms: words that sort like values, and the exact order of long strings, whose words may tie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deltic.schema import BIGINT, Field
from deltic.trace.encoding import words_of
from deltic.trace.strings import LONG, StringTable

Words = tuple[np.ndarray, ...]
BYTES_WORDS = 3
MARKER = np.int64(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class Term:
    """The field whose words begin at `start`, in one direction. Flagged terms have a word that sorts NULLs first or last.

    A string's id follows its order words; it distinguishes strings whose first bytes are equal, but does not order them.
    """

    start: int
    field: Field
    descending: bool = False
    nulls_first: bool = True

    @property
    def flagged(self) -> bool:
        return self.field.nullable

    @property
    def width(self) -> int:
        """The number of order words."""
        value = BYTES_WORDS + 1 if self.field.type.has_bytes else words_of(self.field.type, False)
        return self.flagged + value

    @property
    def order_fields(self) -> tuple[Field, ...]:
        """A field for each order word; the last one of a string is its id."""
        words = self.width - (self.field.type.has_bytes)
        fields = tuple(Field(f"w{i}", BIGINT, False) for i in range(words))
        return (*fields, Field("id", self.field.type, self.field.nullable)) if self.field.type.has_bytes else fields

    @property
    def is_split(self) -> bool:
        """Whether a separate flag word distinguishes NULL."""
        return words_of(self.field.type, self.field.nullable) > words_of(self.field.type, False)

    def words(self, columns: Words, strings: StringTable) -> Words:
        """The order words of the field."""
        value = columns[self.start : self.start + words_of(self.field.type, self.field.nullable)]
        flags: Words = ()
        if self.flagged:
            null = value[0] == 0 if self.is_split else value[0] == MARKER
            flags = (np.where(null, 0, 1) if self.nulls_first else null.astype(np.int64),)
            value = value[1:] if self.is_split else value
        return (*flags, *_order_words(value, self.field, self.descending, strings))

    def values(self, order: Words) -> Words:
        """The field's words, from its order words."""
        value = order[self.flagged :]
        if self.field.type.has_bytes:
            return (value[-1],)
        words = tuple(~w for w in value) if self.descending else value
        return (np.equal(order[0], int(self.nulls_first)).astype(np.int64), *words) if self.is_split else words


def _order_words(words: Words, field: Field, descending: bool, strings: StringTable) -> Words:
    if field.type.has_bytes:
        prefix = strings.order_words(words[0])
        return (*(~w if descending else w for w in prefix), words[0])
    return tuple(~w for w in words) if descending else words


def is_long(last: np.ndarray, descending: bool) -> np.ndarray:
    """Which strings have PREFIX_BYTES or more, so that their order words do not tell them from others. last: the last of these words."""
    long: np.ndarray = (~last if descending else last) & 0xFF == LONG
    return long


def exact_order(columns: Sequence[np.ndarray], texts: Mapping[int, bool], strings: StringTable) -> np.ndarray:
    """Positions of the rows in the order of their columns. O(rows · log rows) in Python, for the few rows whose first bytes tie.

    texts: the columns that are string ids, which sort by the bytes of the strings → whether they descend.
    """
    order = list(range(len(columns[0])))
    for i in reversed(range(len(columns))):
        if i in texts:
            values = [value or b"" for value in strings.bytes_of(columns[i]).to_pylist()]
            order.sort(key=values.__getitem__, reverse=texts[i])
        else:
            order.sort(key=columns[i].tolist().__getitem__)
    return np.array(order, np.int64)
