"""Higher-order functions on columns: the body of a lambda is evaluated once for the elements of all rows, end to end.

The columns that a body reads are repeated for the elements of each row, when they are read. EXISTS, FORALL and AGGREGATE go on element by
element where they must, for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from deltic.errors import EvaluationError
from deltic.expr.arrays.collections import Flat, listed
from deltic.expr.arrays.datum import array_of, dense, nulls_of, python_value, strict_nulls, truths
from deltic.expr.arrays.nested import Counts
from deltic.expr.columns import Frame, assembled, value_after, value_of, value_where
from deltic.expr.failing import can_fail
from deltic.expr.failures import at_row, row_of
from deltic.expr.interpreter import BoundRow, evaluate
from deltic.expr.nodes import Call, Lambda, Value, VariableKey, columns_of, free_variables
from deltic.expr.rows.maps import joined_entries, of_entries
from deltic.schema import INT
from deltic.types import frozen_list


def _lambda(call: Call, index: int) -> Lambda:
    function = call.arguments[index]
    assert isinstance(function, Lambda)
    return function


def _first(call: Call, frame: Frame) -> Flat:
    return Flat.of(value_of(call.arguments[0], frame), frame.length)


def _applied(function: Lambda, frame: Frame, rows: Counts, values: Sequence[pa.Array]) -> pa.Array:
    """The lambda's value for values[·][k] and the row rows[k] of the frame. rows: ascending, with repetitions.

    Raises EvaluationError, whose `row` is that of the frame.
    """
    if not len(rows):
        return pa.array([], function.type.arrow)
    try:
        return dense(value_of(function.body, frame.applied(rows, function, values)), len(rows))
    except EvaluationError as error:
        raise _earliest(function, frame, rows, values, row_of(error), error) from None


def _earliest(
    function: Lambda, frame: Frame, rows: Counts, values: Sequence[pa.Array], failed: int, error: EvaluationError
) -> EvaluationError:
    """The failure of the first element, among those of the row of element `failed`, that fails: another one may fail in an earlier part."""
    row = int(rows[failed])
    for k in range(int(np.searchsorted(rows, row)), failed):
        try:
            value_of(function.body, frame.applied(rows[k : k + 1], function, [value.slice(k, 1) for value in values]))
        except EvaluationError as earlier:
            return at_row(earlier, row)
    return at_row(error, row)


def _places(flat: Flat) -> pa.Array:
    return array_of(flat.places, False, INT)


def transform(call: Call, frame: Frame) -> pa.Array:
    flat = _first(call, frame)
    return flat.lists(_applied(_lambda(call, 1), frame, flat.parents, (flat.elements, _places(flat))), call.type)


def select(call: Call, frame: Frame) -> pa.Array:
    """FILTER and MAP_FILTER."""
    flat = _first(call, frame)
    values = flat.elements.flatten() if call.type.name == "MAP" else (flat.elements, _places(flat))
    kept = truths(_applied(_lambda(call, 1), frame, flat.parents, values), len(flat.elements))
    counts = np.bincount(flat.parents[kept], minlength=frame.length).astype(np.int64)
    return listed(flat.elements.filter(pa.array(kept)), counts, flat.nulls, call.type)


def search(stops_at: bool) -> Callable[[Call, Frame], pa.Array]:
    """EXISTS and FORALL. Where the test can fail, no element is tested after the one at which it stops."""

    def kernel(call: Call, frame: Frame) -> pa.Array:
        flat, function = _first(call, frame), _lambda(call, 1)
        stopped, unknown = (_by_turns if can_fail(function) else _at_once)(function, frame, flat, stops_at)
        return array_of(stopped == stops_at, np.broadcast_to(flat.nulls, frame.length) | ~stopped & unknown, call.type)

    return kernel


def _at_once(function: Lambda, frame: Frame, flat: Flat, stops_at: bool) -> tuple[np.ndarray, np.ndarray]:
    """bool[n]: (the rows that stop, the rows where a test is NULL)."""
    tests = _applied(function, frame, flat.parents, (flat.elements,))
    nulls = np.broadcast_to(nulls_of(tests), len(tests))
    return flat.some(~nulls & (truths(tests, len(tests)) == stops_at)), flat.some(nulls)


def _by_turns(function: Lambda, frame: Frame, flat: Flat, stops_at: bool) -> tuple[np.ndarray, np.ndarray]:
    stopped, unknown = np.zeros(frame.length, bool), np.zeros(frame.length, bool)
    rows, turn = np.flatnonzero(flat.counts), 0
    while len(rows):
        tests = _applied(function, frame, rows, (flat.elements.take(pa.array(flat.starts[rows] + turn)),))
        nulls = np.broadcast_to(nulls_of(tests), len(tests))
        stops = ~nulls & (truths(tests, len(tests)) == stops_at)
        stopped[rows[stops]], unknown[rows[nulls]] = True, True
        turn += 1
        rows = rows[~stops & (flat.counts[rows] > turn)]
    return stopped, unknown


def aggregate(call: Call, frame: Frame) -> pa.Array:
    """One element of every row in turn."""
    flat, merge = _first(call, frame), _lambda(call, 2)
    given = np.flatnonzero(~np.broadcast_to(flat.nulls, frame.length))
    state, rows, turn = value_where(call.arguments[1], frame, ~np.broadcast_to(flat.nulls, frame.length)).take(pa.array(given)), given, 0
    pieces: list[tuple[np.ndarray, pa.Array]] = []
    while len(rows):
        more = flat.counts[rows] > turn
        pieces.append((rows[~more], state.filter(pa.array(~more))))
        rows, state = rows[more], state.filter(pa.array(more))
        state = _applied(merge, frame, rows, (state, flat.elements.take(pa.array(flat.starts[rows] + turn))))
        turn += 1
    missing = np.setdiff1d(np.arange(frame.length), given)
    last = assembled([*pieces, (missing, pa.nulls(len(missing), call.arguments[1].type.arrow))], frame.length)
    if len(call.arguments) == 3:
        return last
    ends = _applied(_lambda(call, 3), frame, given, (last.take(pa.array(given)),))
    return assembled([(given, ends), (missing, pa.nulls(len(missing), call.type.arrow))], frame.length)


def zip_with(call: Call, frame: Frame) -> pa.Array:
    left = value_of(call.arguments[0], frame)
    right = value_after(nulls_of(left), call.arguments[1], frame)
    if right is None:
        return pa.nulls(frame.length, call.type.arrow)
    nulls = np.broadcast_to(strict_nulls(left, right), frame.length)
    flats = [Flat.of(value, frame.length) for value in (left, right)]
    counts = np.where(nulls, 0, np.maximum(flats[0].counts, flats[1].counts))
    whole = Flat(pa.nulls(int(counts.sum())), counts, nulls)
    sides = []
    for flat in flats:
        missing = whole.places >= flat.counts[whole.parents]
        sides.append(flat.elements.take(pa.array(flat.starts[whole.parents] + whole.places, mask=missing)))
    return whole.lists(_applied(_lambda(call, 2), frame, whole.parents, sides), call.type)


def transform_values(call: Call, frame: Frame) -> pa.Array:
    flat = _first(call, frame)
    keys, items = flat.elements.flatten()
    values = _applied(_lambda(call, 1), frame, flat.parents, (keys, items))
    return flat.lists(pa.StructArray.from_arrays([keys, values], ["key", "value"]), call.type)


def transform_keys(call: Call, frame: Frame) -> pa.Array:
    """Raises EvaluationError for a row where a key is NULL or comes twice."""
    flat = _first(call, frame)
    keys, items = flat.elements.flatten()
    changed = _applied(_lambda(call, 1), frame, flat.parents, (keys, items))
    new_keys = frozen_list(changed)
    for row in np.flatnonzero(flat.counts):
        start = flat.starts[row]
        try:
            of_entries(call, ((key, None) for key in new_keys[start : start + flat.counts[row]]))
        except EvaluationError as error:
            raise at_row(error, int(row)) from None
    return flat.lists(pa.StructArray.from_arrays([changed, items], ["key", "value"]), call.type)


def map_zip_with(call: Call, frame: Frame) -> pa.Array:
    left = value_of(call.arguments[0], frame)
    right = value_after(nulls_of(left), call.arguments[1], frame)
    if right is None:
        return pa.nulls(frame.length, call.type.arrow)
    nulls = np.broadcast_to(strict_nulls(left, right), frame.length)
    pairs = zip(frozen_list(dense(left, frame.length)), frozen_list(dense(right, frame.length)), nulls, strict=True)
    joined = [[] if null else joined_entries(a, b, call.type.parts[0].type) for a, b, null in pairs]
    flat = Flat(pa.nulls(sum(map(len, joined))), np.array([len(entries) for entries in joined], np.int64), nulls)
    function = _lambda(call, 2)
    parts = (call.type.parts[0].type, *(argument.type.parts[1].type for argument in call.arguments[:2]))
    columns = [pa.array([entry[i] for entries in joined for entry in entries], type.arrow) for i, type in enumerate(parts)]
    values = _applied(function, frame, flat.parents, columns)
    return flat.lists(pa.StructArray.from_arrays([columns[0], values], ["key", "value"]), call.type)


def by_row(call: Call, frame: Frame) -> pa.Array:
    """Row by row, by the row form."""
    columns, variables = sorted(columns_of(call)), sorted(free_variables(call))
    results: list[Value] = []
    for k in range(frame.length):
        row = BoundRow(_row(frame, columns, k))
        row.variables = _values(frame, variables, k)
        try:
            results.append(evaluate(call, row))
        except EvaluationError as error:
            raise at_row(error, k) from None
    return pa.array(results, call.type.arrow)


def _row(frame: Frame, columns: Sequence[int], k: int) -> list[Value]:
    """The row's values in these columns; NULL in those between."""
    values: list[Value] = [None] * (max(columns, default=-1) + 1)
    for column in columns:
        values[column] = python_value(frame.column(column), k)
    return values


def _values(frame: Frame, variables: Sequence[VariableKey], k: int) -> dict[VariableKey, Value]:
    return {key: python_value(frame.column(key), k) for key in variables}
