"""Applies a function of Python values to columns, once per distinct combination of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deltic.canonical import to_bytes
from deltic.errors import EvaluationError
from deltic.expr.arrays.datum import Datum, Mask, python_value, strict_nulls
from deltic.expr.failures import at_row
from deltic.expr.nodes import Call
from deltic.expr.registry import Nulls, function_of, row_form
from deltic.schema import Type
from deltic.types import frozen_list, type_of


def apply_distinct(function: Callable[..., Any], arguments: Sequence[Datum], length: int, type: Type, *, strict: bool = True) -> pa.Array:
    """function(*values) on every row; if `strict`, NULL where an argument is. An error's row is the first row with the failing arguments.

    Cost: one call per distinct combination, and a hash of every row.
    """
    arrays = [a for a in arguments if isinstance(a, pa.Array)]
    nulls = strict and strict_nulls(*arguments)
    if nulls is True or not length:
        return pa.nulls(length, type.arrow)
    values, codes, first = _combinations(arrays, nulls, length)
    results = []
    for k, combination in enumerate(values):
        given = iter(combination)
        try:
            results.append(function(*(next(given) if isinstance(a, pa.Array) else python_value(a) for a in arguments)))
        except EvaluationError as error:
            raise at_row(error, int(first[k])) from None
    return pa.array(results, type.arrow).take(pa.array(codes, mask=nulls if isinstance(nulls, np.ndarray) else None))


def per_distinct(call: Call, length: int, *arguments: Datum) -> pa.Array:
    """The array form of a strict function without one of its own: its row form, once per distinct combination of arguments."""
    assert function_of(call).nulls in (Nulls.STRICT, Nulls.STRICT_BACKWARDS), f"{call.function} receives NULLs; per_distinct passes none"
    return apply_distinct(row_form(call), arguments, length, call.type)


def per_distinct_with_nulls(call: Call, length: int, *arguments: Datum) -> pa.Array:
    """As `per_distinct`, of a function that receives NULLs."""
    assert function_of(call).nulls is Nulls.SEEN, f"{call.function} receives no NULLs"
    return apply_distinct(row_form(call), arguments, length, call.type, strict=False)


def _combinations(arrays: Sequence[pa.Array], nulls: Mask | bool, length: int) -> tuple[list[tuple[Any, ...]], np.ndarray, np.ndarray]:
    """(distinct combinations in order of their first row, int64[n]: the combination of each row, the first row of each combination)."""
    if not arrays:
        return [()], np.zeros(length, np.int64), np.zeros(1, np.int64)
    dictionaries, codes = zip(*map(encoded, arrays), strict=True)
    combined = np.zeros(length, np.int64)
    if nulls is False:
        dictionaries, codes = zip(*map(_with_null, arrays, dictionaries, codes), strict=True)
    for dictionary, code in zip(dictionaries, codes, strict=True):
        combined = combined * max(1, len(dictionary)) + code
    rows = np.flatnonzero(~nulls) if isinstance(nulls, np.ndarray) else np.arange(length)
    _, first, inverse = np.unique(combined[rows], return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    whole = np.zeros(length, np.int64)
    whole[rows] = rank[inverse]
    starts = rows[first[order]]
    values = [frozen_list(d.take(pa.array(code[starts]))) for d, code in zip(dictionaries, codes, strict=True)]
    return list(zip(*values, strict=True)), whole, starts


def _with_null(array: pa.Array, dictionary: pa.Array, codes: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """NULL as one more value."""
    if not array.null_count:
        return dictionary, codes
    whole = pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)])
    return whole, np.where(array.is_null().to_numpy(zero_copy_only=False), len(dictionary), codes)


def encoded(array: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """(distinct values, int64[n]: the code of each row, 0 where NULL). Floats are compared by their bits: -0.0 is not 0.0."""
    if pa.types.is_nested(array.type):
        return _encoded_nested(array)
    bits = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}.get(array.type)
    encoded = (array if bits is None else array.view(bits)).dictionary_encode()
    indices = encoded.indices.fill_null(0) if encoded.indices.null_count else encoded.indices
    dictionary = encoded.dictionary if bits is None else encoded.dictionary.view(array.type)
    return dictionary, np.asarray(indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _encoded_nested(array: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Distinguished by their bytes."""
    indices = to_bytes(array, type_of(array.type)).dictionary_encode().indices
    codes = np.asarray(indices.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    valid = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    _, first = np.unique(codes[valid], return_index=True)
    return array.take(pa.array(valid[first])), codes
