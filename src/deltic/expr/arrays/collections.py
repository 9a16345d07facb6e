"""ARRAYs in columns: functions that look at all elements of all rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays.compare import compare
from deltic.expr.arrays.datum import Datum, Mask, array_of, dense, nulls_of, strict_nulls, truths, values_of
from deltic.expr.arrays.nested import Counts, as_lists, counts_of, offsets_of
from deltic.expr.nodes import Call
from deltic.schema import INT, Type


@dataclass(frozen=True, slots=True)
class Flat:
    """The elements of a column of ARRAYs, or the entries of MAPs, end to end. counts: int64[n], 0 where NULL. nulls: where it is NULL."""

    elements: pa.Array
    counts: Counts
    nulls: Mask | bool

    @staticmethod
    def of(value: Datum, length: int) -> Flat:
        whole = dense(value, length)
        return Flat(as_lists(whole).flatten(), counts_of(whole), nulls_of(whole))

    @property
    def parents(self) -> Counts:
        """int64[elements]: the row of each."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @property
    def starts(self) -> Counts:
        """int64[n]: the position of the first element of each row."""
        return np.cumsum(self.counts) - self.counts

    @property
    def places(self) -> Counts:
        """int64[elements]: the position of each in its row, from 0."""
        return np.arange(len(self.elements)) - np.repeat(self.starts, self.counts)

    def some(self, holds: Mask) -> Mask:
        """bool[n]: the rows with an element where it holds."""
        rows = np.zeros(len(self.counts), bool)
        rows[self.parents[holds]] = True
        return rows

    def lists(self, elements: pa.Array, type: Type) -> pa.Array:
        """ARRAYs of other elements, one for each of these."""
        return listed(elements, self.counts, self.nulls, type)


def listed(elements: pa.Array, counts: Counts, nulls: Mask | bool, type: Type) -> pa.Array:
    """A column of ARRAYs, or of MAPs whose entries are the elements."""
    mask = pa.array(np.broadcast_to(nulls, len(counts))) if nulls is not False else None
    if type.name == "MAP":
        keys, items = elements.flatten()
        whole = pa.MapArray.from_arrays(offsets_of(counts), keys, items, type=type.arrow)
        return whole if mask is None else pc.if_else(mask, pa.scalar(None, type.arrow), whole)
    return pa.ListArray.from_arrays(offsets_of(counts), elements, type=type.arrow, mask=mask)


def contains(call: Call, length: int, value: Datum, element: Datum) -> pa.Array:
    flat, nulls = Flat.of(value, length), strict_nulls(value, element)
    type = call.arguments[1].type
    equal = compare("equal", type, flat.elements, element if isinstance(element, pa.Scalar) else element.take(pa.array(flat.parents)))
    contained = flat.some(truths(equal, len(flat.elements)))
    unknown = flat.some(np.broadcast_to(np.asarray(nulls_of(flat.elements)), len(flat.elements)))
    return array_of(contained, np.broadcast_to(nulls, length) | ~contained & unknown, call.type)


def get(call: Call, length: int, value: Datum, index: Datum) -> pa.Array:
    flat, places = Flat.of(value, length), values_of(dense(index, length), INT).astype(np.int64)
    missing = (places < 0) | (places >= flat.counts) | strict_nulls(value, index)
    return flat.elements.take(pa.array(flat.starts + places, mask=missing))


def flatten(call: Call, length: int, value: Datum) -> pa.Array:
    """NULL where an inner array is."""
    outer = Flat.of(value, length)
    inner = Flat.of(outer.elements, len(outer.elements))
    nulls = np.broadcast_to(outer.nulls, length) | outer.some(np.broadcast_to(inner.nulls, len(outer.elements)))
    counts = np.bincount(outer.parents, inner.counts, length).astype(np.int64)
    if not nulls.any():
        return listed(inner.elements, counts, False, call.type)
    kept = ~nulls[outer.parents][inner.parents]
    return listed(inner.elements.filter(pa.array(kept)), np.where(nulls, 0, counts), nulls, call.type)


def concatenated(call: Call, length: int, *values: Datum) -> pa.Array:
    flats = [Flat.of(value, length) for value in values]
    nulls = np.broadcast_to(strict_nulls(*values), length)
    owners = np.concatenate([flat.parents for flat in flats])
    order = np.argsort(owners, kind="stable")
    order = order[~nulls[owners[order]]]
    counts = np.where(nulls, 0, sum(flat.counts for flat in flats))
    elements = pa.concat_arrays([flat.elements for flat in flats]).take(pa.array(order))
    return listed(elements, counts, nulls if nulls.any() else False, call.type)
