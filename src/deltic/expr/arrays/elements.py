"""Built-in table functions on columns: the number of elements for each row, and all elements in one column.

Equal to expr/rows/elements.py on every row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import Span
from deltic.expr.arrays.dates import FIRST_MICRO
from deltic.expr.arrays.datum import Mask, array_of, values_of
from deltic.expr.rows.elements import MOST_ELEMENTS, elements
from deltic.schema import BIGINT, DATE, INT, Type

Elements = tuple[np.ndarray, pa.Array]
"""(int64[n]: the number of elements of each row, the elements of the first row, the second row, …)."""


def elements_of(function: str, arguments: Sequence[pa.Array], type: Type, length: int, span: Span | None = None) -> Elements:
    """The elements, of `type`. Raises EvaluationError for the first row that fails. Only `array` accepts NULL arguments."""
    if function == "array":
        return _array(arguments, length)
    if function == "elements":
        return _elements(arguments[0], type)
    if function == "split":
        return _split(*arguments)
    if function == "window_starts":
        return _window_starts(arguments, type, span)
    return _sequence(function, arguments, type, span)


def _array(arguments: Sequence[pa.Array], length: int) -> Elements:
    order = np.add.outer(np.arange(length), np.arange(len(arguments)) * length).ravel()
    return np.full(length, len(arguments), np.int64), pa.concat_arrays(arguments).take(pa.array(order))


def _elements(value: pa.Array, type: Type) -> Elements:
    """Of an ARRAY; the entries of a MAP."""
    lists = value.cast(pa.list_(type.arrow)) if pa.types.is_map(value.type) else value
    if len(lists) and not lists.null_count:
        offsets = np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, 4 * lists.offset)
        return np.subtract(offsets[1:], offsets[:-1], dtype=np.int64), lists.values[int(offsets[0]) : int(offsets[-1])]
    return pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64), lists.flatten()


def _split(text: pa.Array, delimiter: pa.Array, limit: pa.Array) -> Elements:
    """The delimiter and the limit are the same on every row."""
    if not len(text):
        return np.zeros(0, np.int64), text
    most = limit[0].as_py()
    pieces = pc.split_pattern(text, delimiter[0].as_py(), max_splits=most - 1 if most > 0 else None)
    return pc.list_value_length(pieces).to_numpy().astype(np.int64), pieces.flatten()


def _window_starts(arguments: Sequence[pa.Array], type: Type, span: Span | None) -> Elements:
    time, size, slide, origin = (values_of(array, type if i == 0 else BIGINT) for i, array in enumerate(arguments))
    since = (time - origin) % np.maximum(slide, 1)
    counts = (size - since + slide - 1) // np.maximum(slide, 1)
    starts = np.repeat(time - since, counts) - places_within(counts) * np.repeat(slide, counts)
    if len(starts) and starts.min() < FIRST_MICRO:
        first = np.zeros(len(time), bool)
        first[np.repeat(np.arange(len(time)), counts)[starts < FIRST_MICRO]] = True
        _fail_at(first, "window_starts", arguments, span)
    return counts, array_of(starts, False, type)


def places_within(counts: np.ndarray) -> np.ndarray:
    """0, 1, … for each count."""
    return np.asarray(np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts))


def _sequence(function: str, arguments: Sequence[pa.Array], type: Type, span: Span | None) -> Elements:
    start, stop = (values_of(array, type).astype(np.int64) for array in arguments[:2])
    step = _steps(function, start, stop, arguments[2] if len(arguments) > 2 else None, type)
    rises, falls = (step > 0) & (start <= stop), (step < 0) & (start >= stop)
    width = np.where(rises, _distance(stop, start), _distance(start, stop))
    by = np.where(step > 0, step.view(np.uint64), _distance(np.zeros_like(step), step))
    beyond = np.where(rises | falls, width // np.maximum(by, np.uint64(1)), np.uint64(0))
    stands = (step == 0) & (start == stop) & (function == "sequence")
    wrong = (beyond >= MOST_ELEMENTS) | (step == 0) & ~stands
    if function == "sequence":
        wrong |= ~(rises | falls | stands)
    _fail_at(wrong, function, arguments, span)
    counts = np.where(rises | falls | stands, beyond.astype(np.int64) + 1, 0)
    return counts, array_of(np.repeat(start, counts) + places_within(counts) * np.repeat(step, counts), False, type)


def _steps(function: str, start: np.ndarray, stop: np.ndarray, step: pa.Array | None, type: Type) -> np.ndarray:
    if step is not None:
        return np.asarray(values_of(step, INT if type == DATE else type).astype(np.int64))
    return np.where((function == "sequence") & (stop < start), -1, 1).astype(np.int64)


def _distance(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """uint64[n]: high - low; high ≥ low, and the result may exceed int64."""
    return np.asarray(high.view(np.uint64) - low.view(np.uint64))


def _fail_at(wrong: Mask, function: str, arguments: Sequence[pa.Array], span: Span | None) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        elements(function, [array[row].as_py() for array in arguments], span)
        raise AssertionError("expected the row form to fail on a bad row")
