"""Sought values: the columns and values by which rows of a view are looked up, and the rows of a trace that have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from deltic.connectors.fitting import fit
from deltic.errors import DataError, did_you_mean
from deltic.expr.rows.collated_text import key_for
from deltic.expr.rows.ordering import order_key
from deltic.purity import shown
from deltic.schema import BIGINT, Field, Schema
from deltic.trace.batch import Batch
from deltic.trace.consolidate import consolidate
from deltic.trace.counters import Counters
from deltic.trace.encoding import Layout, Words, decode_values, encode
from deltic.trace.probe import probe
from deltic.trace.rearranged import rearranged
from deltic.trace.rows import Rows
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable
from deltic.types import frozen_list

LEAST: Final = -(2**63)
GREATEST: Final = 2**63 - 1
MOST_ZEROS: Final = 10
"""In a key: there are 2^zeros rows that equal it."""
_OF_ONE_LIST: Final = "a key of one column is a tuple of its list: ([…],)"


@dataclass(frozen=True, slots=True)
class SoughtValues:
    """Values of some columns. fields: their positions among the stored fields, ascending. others: more keys, all of them different.

    Texts with a collation, of which equal ones have different words, are no words of a key: the rows that have the other values are
    compared with them. There are then no others.
    """

    view: str
    stored: Schema
    fields: tuple[int, ...]
    values: tuple[Any, ...]
    others: tuple[tuple[Any, ...], ...] = ()

    @property
    def _collated(self) -> dict[int, Any]:
        """By field, the values with texts of a collation."""
        collated = {i: value for i, value in zip(self.fields, self.values, strict=True) if self.stored[i].type.is_collated}
        assert not collated or not self.others
        return collated

    @property
    def _exact(self) -> tuple[int, ...]:
        """The fields whose words are those of the keys."""
        return tuple(i for i in self.fields if not self.stored[i].type.is_collated)

    @property
    def is_leading(self) -> bool:
        """Whether the columns of the keys are the first ones of the stored rows, by which these are sorted."""
        return self._exact == tuple(range(len(self._exact)))

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """The values of columns without a collation as rows may have them: a zero, which equals its negative, is both.

        Raises DataError for values that do not fit.
        """
        fields = self._exact
        keys = [self.values, *self.others]
        if len(fields) < len(self.fields):
            keys = [tuple(value for i, value in zip(self.fields, self.values, strict=True) if i in fields)]
        if not any(self.stored[i].type.has_zeros for i in fields):
            return keys
        columns = [_fitted(values, self.stored[i], self._where) for values, i in zip(zip(*keys, strict=True), fields, strict=True)]
        return list({repr(signed): signed for key in zip(*columns, strict=True) for signed in self._signed(key)}.values())

    def _signed(self, key: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        zeros = sum(_zeros(value) for value in key)
        if zeros > MOST_ZEROS:
            raise DataError(
                f"{self._where} has {zeros} zeros, and rows may have each of them as 0.0 and as -0.0",
                expected=f"at most {MOST_ZEROS} zeros",
                remedy="look the rows up by other columns",
            )
        return product(*map(_forms, key))

    @property
    def _where(self) -> str:
        return f"a key of view {self.view}"

    def words(self, strings: StringTable) -> list[np.ndarray]:
        """The words of the keys. Raises DataError for values that do not fit."""
        columns = zip(zip(*self.keys, strict=True), self._exact, strict=True)
        return [word for values, i in columns for word in _words(values, self.stored[i], self._where, strings)]

    @property
    def has_strings(self) -> bool:
        """Whether the values have strings."""
        return any(self.stored[i].type.has_bytes for i in self.fields)

    def rows(self, spines: Sequence[Spine], strings: StringTable, counters: Counters | None = None) -> Batch:
        """The rows with these values in all spines. O(log state + rows), after the index of other than leading columns has been derived.

        Where all columns have a collation, O(state).
        """
        return self._equal(self._candidates(spines, strings, Counters() if counters is None else counters), strings)

    def _candidates(self, spines: Sequence[Spine], strings: StringTable, counters: Counters) -> Batch:
        """The rows with the values that have no collation."""
        words, width = self.words(strings), Layout.of(self.stored).width
        if self.is_leading:
            return rows_under(spines, words, width, counters)
        slices = Layout.of(self.stored).slices
        leading = [word for i in self._exact for word in range(slices[i].start, slices[i].stop)]
        order = [*leading, *(word for word in range(width) if word not in leading)]
        return _rows_by(spines, words, order, counters)

    def _equal(self, rows: Batch, strings: StringTable) -> Batch:
        """Those of the rows that equal the values with a collation."""
        for i, value in self._collated.items():
            field, part = self.stored[i], Layout.of(self.stored).slices[i]
            key_of = key_for(field.type)
            (key,) = frozen_list(fit([value], field, self._where))
            sought = order_key(key_of(key))
            same = [order_key(key_of(other)) == sought for other in decode_values(rows.columns[part], field, strings)]
            kept = Rows(rows.columns, rows.weights).take(np.flatnonzero(same))
            rows = Batch.trusted(kept.columns, kept.weights)
        return rows


def _words(values: Sequence[Any], field: Field, where: str, strings: StringTable) -> Words:
    is_whole = field.type is BIGINT and not field.nullable and set(map(type, values)) == {int}
    if is_whole and min(values) >= LEAST and max(values) <= GREATEST:  # many keys at once are numbers of entities
        return (np.array(values, np.int64),)
    return encode(fit(list(values), field, where), field, strings)


def _fitted(values: Sequence[Any], field: Field, where: str) -> Sequence[Any]:
    """The values as Arrow has them, if there may be zeros in them."""
    if not field.type.has_zeros:
        return values
    fitted: list[Any] = fit(list(values), field, where).to_pylist()
    return fitted


def _zeros(value: Any) -> int:
    """The number of zeros in a value from Arrow."""
    if isinstance(value, dict | list | tuple):
        return sum(map(_zeros, value.values() if isinstance(value, dict) else value))
    return int(isinstance(value, float) and value == 0.0)


def _forms(value: Any) -> Iterable[Any]:
    """The value with each sign of each zero in it."""
    if isinstance(value, dict):
        return (dict(zip(value, parts, strict=True)) for parts in product(*map(_forms, value.values())))
    if isinstance(value, list | tuple):
        return map(type(value), product(*map(_forms, value)))
    return (0.0, -0.0) if isinstance(value, float) and value == 0.0 else (value,)


def sought_by_key(view: str, stored: Schema, leading: Sequence[Field], key: Any) -> SoughtValues:
    """The first of the leading fields. key: a value, a tuple or a dict. Raises DataError."""
    names = [field.name for field in leading]
    expected = names[0] if len(names) == 1 else f"{', '.join(names)}, or the first of them"
    if isinstance(key, Mapping):
        given = {str(name).lower(): value for name, value in key.items()}
        values = [given.pop(n.lower()) for n in names[: len(given)] if n.lower() in given]
        if given or len(values) != len(key):
            named = ", ".join(map(str, key))
            any_columns = f"by={[str(name) for name in key]} looks rows up by any columns"
            raise DataError(f"view {view} cannot be looked up by {named}", expected=expected, remedy=any_columns)
    else:
        values = _listed(key)
        if not 1 <= len(values) <= len(names):
            remedy = _OF_ONE_LIST if leading[0].type.is_nested else None
            raise DataError(f"view {view} has no key of {len(values)} columns", expected=expected, remedy=remedy)
    return SoughtValues(view, stored, tuple(range(len(values))), tuple(values))


def sought_by_columns(view: str, stored: Schema, columns: Sequence[str], key: Any, by: Any) -> SoughtValues:
    """The columns `by`. columns: those of the view. Raises DataError for a column that it lacks."""
    names = [by] if isinstance(by, str) else list(by) if isinstance(by, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise DataError(f"invalid columns {shown(by)} to look up rows of view {view} by", expected=f"a list of {', '.join(columns)}")
    folded = [name.lower() for name in names]
    for name in names:
        if not stored.find(name):
            raise DataError(
                f"view {view} has no column {name}", expected=f"columns of {', '.join(columns)}", remedy=did_you_mean(name, columns)
            )
        if folded.count(name.lower()) > 1:
            raise DataError(f"column {name} occurs twice in the columns to look up rows of view {view} by", expected="each column once")
    values = _values_of(view, names, folded, key)
    if len(values) != len(names):
        one = stored[stored.find(names[0])[0]]
        remedy = _OF_ONE_LIST if len(names) == 1 and one.type.is_nested else None
        message = f"the key has {len(values)} values to look up rows of view {view} by {len(names)} columns"
        raise DataError(message, expected=f"one for each of {', '.join(names)}", remedy=remedy)
    pairs = sorted(((stored.find(name)[0], value) for name, value in zip(names, values, strict=True)), key=lambda pair: pair[0])
    return SoughtValues(view, stored, tuple(field for field, _ in pairs), tuple(value for _, value in pairs))


def _values_of(view: str, names: Sequence[str], folded: Sequence[str], key: Any) -> list[Any]:
    if not isinstance(key, Mapping):
        return _listed(key)
    given = {str(name).lower(): value for name, value in key.items()}
    if set(given) != set(folded):
        named = ", ".join(map(str, key))
        raise DataError(f"the key has values of {named} to look up rows of view {view}", expected=f"one for each of {', '.join(names)}")
    return [given[name] for name in folded]


def _listed(key: Any) -> list[Any]:
    return list(key) if isinstance(key, Sequence) and not isinstance(key, str | bytes) else [key]


def rows_under(spines: Sequence[Spine], words: Sequence[np.ndarray], width: int, counters: Counters | None = None) -> Batch:
    """The rows with the keys in all spines. words: int64[n] for each leading column. width: the number of words of a row."""
    return _probed(spines, words, range(width), lambda spine: spine, Counters() if counters is None else counters)


def _rows_by(spines: Sequence[Spine], words: Sequence[np.ndarray], order: Sequence[int], counters: Counters) -> Batch:
    stored = [order.index(word) for word in range(len(order))]
    return _probed(spines, words, stored, lambda spine: rearranged(spine, order, counters), counters)


def _probed(
    spines: Sequence[Spine], words: Sequence[np.ndarray], columns: Sequence[int], index: Callable[[Spine], Spine], counters: Counters
) -> Batch:
    """columns: those of the index, in the order in which the spine has them."""
    parts = []
    for spine in spines:
        _, probed, weights = probe(index(spine), words, columns, counters)
        rows = Rows(probed, weights)
        parts.append(rows if spine.share is None else spine.share.of(rows))
    return consolidate(Rows.concat(parts))
