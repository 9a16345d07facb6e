"""Nested values in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays.compare import normal
from deltic.expr.arrays.datum import Datum, Kernel, array_of, dense, fail_at, nulls_of, strict_nulls, values_of
from deltic.expr.arrays.distinct import encoded, per_distinct, per_distinct_with_nulls
from deltic.expr.nodes import Call
from deltic.expr.registry import row_form
from deltic.expr.rows.nested import place_or_null
from deltic.schema import INT

Counts = npt.NDArray[np.int64]


def array(call: Call, length: int, *values: Datum) -> pa.Array:
    return pa.ListArray.from_arrays(offsets_of(np.full(length, len(values))), _in_turn(values, length, call), type=call.type.arrow)


def make_struct(call: Call, length: int, *values: Datum) -> pa.Array:
    return pa.StructArray.from_arrays([dense(value, length) for value in values], fields=list(call.type.arrow))


def make_map(call: Call, length: int, *parts: Datum) -> pa.Array:
    """Raises EvaluationError for a NULL key, and for one that comes twice."""
    if call.type.parts[0].type.is_collated:
        return per_distinct_with_nulls(call, length, *parts)
    count = len(parts) // 2
    keys, items = _laid_out(parts[::2], length), _laid_out(parts[1::2], length)
    _, codes = encoded(normal(keys, call.type.parts[0].type) if call.type.parts[0].type.has_zeros else keys)  # 0.0 is -0.0
    by_row = np.sort(np.where(keys.is_null().to_numpy(zero_copy_only=False), -1, codes).reshape(length, count), axis=1)
    bad = (by_row[:, 0] < 0) | (by_row[:, 1:] == by_row[:, :-1]).any(axis=1)
    fail_at(np.asarray(bad), row_form(call), *parts)
    return pa.MapArray.from_arrays(offsets_of(np.full(length, count)), keys, items, type=call.type.arrow)


def _in_turn(values: Sequence[Datum], length: int, call: Call) -> pa.Array:
    return _laid_out(values, length) if values else pa.array([], call.type.parts[0].type.arrow)


def _laid_out(values: Sequence[Datum], length: int) -> pa.Array:
    """The values of the first row, of the second, …"""
    order = np.add.outer(np.arange(length), np.arange(len(values)) * length).ravel()
    return pa.concat_arrays([dense(value, length) for value in values]).take(pa.array(order))


def offsets_of(counts: npt.NDArray[Any]) -> pa.Array:
    return pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))


def as_lists(value: pa.Array) -> pa.Array:
    """ARRAYs as they are, MAPs as lists of their entries."""
    return value.cast(pa.list_(pa.struct([value.type.key_field, value.type.item_field]))) if pa.types.is_map(value.type) else value


def counts_of(value: pa.Array) -> Counts:
    """int64[n]: how many elements, 0 where NULL."""
    counts: Counts = pc.fill_null(pc.list_value_length(as_lists(value)), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return counts


def size(call: Call, length: int, value: Datum) -> pa.Array:
    return array_of(counts_of(dense(value, length)), nulls_of(value), INT)


def entries(call: Call, length: int, value: Datum) -> pa.Array:
    """The entries of MAPs, as ARRAYs."""
    return dense(value, length).cast(call.type.arrow)


def field(call: Call, length: int, value: Datum, index: Datum) -> pa.Array:
    """index: a constant."""
    whole, position = dense(value, length), (index if isinstance(index, pa.Scalar) else index[0]).as_py()
    if call.arguments[0].type.name == "STRUCT":
        return whole.flatten()[position]
    offsets, parts = offsets_of(counts_of(whole)), whole.flatten().flatten()[position]
    mask = whole.is_null() if whole.null_count else None
    return pa.ListArray.from_arrays(offsets, parts, type=call.type.arrow, mask=mask)


def element(place: Callable[[Call, int, int], int | None]) -> Kernel:
    """The element of an ARRAY at a place, or the value of a MAP under a key."""

    def kernel(call: Call, length: int, value: Datum, index: Datum) -> pa.Array:
        if call.arguments[0].type.name == "MAP":
            return per_distinct(call, length, value, index)
        whole, given = dense(value, length), values_of(dense(index, length), INT).astype(np.int64)
        counts, nulls = counts_of(whole), np.asarray(strict_nulls(whole, dense(index, length)))
        from_0 = call.function == "subscript"
        places = given if from_0 else np.where(given > 0, given - 1, counts + given)
        outside = (places < 0) | (places >= counts)
        bad = outside | (given == 0) & (not from_0) if place is not place_or_null else given == 0
        fail_at(bad & ~nulls, row_form(call), value, index)
        missing = np.broadcast_to(outside | nulls, length)
        return whole.flatten().take(pa.array(np.cumsum(counts) - counts + places, mask=missing))

    return kernel
