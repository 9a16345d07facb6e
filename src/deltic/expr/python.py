"""Users' Python functions in expressions: their arguments, and checks of their results.

An exception raised by a function, or a result that does not match its type, becomes an EvaluationError that names the function.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final

import pyarrow as pa

from deltic.domains import has_distinct_keys, has_fields, has_nanoseconds, of_numpy, outside, with_bad_keys, with_fields
from deltic.errors import EvaluationError
from deltic.expr.failures import at_row
from deltic.expr.nodes import Expr, GroupMerge, PythonFunction, UserFunction, Value
from deltic.expr.rows.ordering import in_row_order
from deltic.intervals import UNITS, interval_of, units_of
from deltic.purity import shown
from deltic.schema import BINARY, BOOLEAN, DATE, DOUBLE, INT, INTEGER_BITS, STRING, TIMESTAMP, TIMESTAMP_NTZ, Schema, Type
from deltic.types import frozen_list
from deltic.variants import of_pyspark

_PACKAGE: Final = str(Path(__file__).parents[1])

FunctionCall = tuple[UserFunction, tuple[Expr, ...]]
Arguments = tuple[Value, ...]
"""A function and its arguments: all columns of one result have the same call."""
Results = dict[FunctionCall, list[Any]]
"""Results for the rows of one change, by call: a function that returns several columns is called once for all of them."""
EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])
"""Never rounds; the default context rounds to 28 digits."""


def value_of_function(expr: PythonFunction, arguments: Sequence[Value]) -> Value:
    """The function's value on one row. Raises EvaluationError."""
    if not expr.function.on_batches:
        return checked_value(expr, element_of(expr, call_function(expr, _rows_of(expr, arguments), of_row=True)))
    types = [argument.type.arrow for argument in expr.arguments]
    arrays = [pa.array([value], type) for value, type in zip(arguments, types, strict=True)]
    value: Value = frozen_list(array_of_function(expr, arrays, 1, []))[0]
    return value


def result_columns(function: UserFunction, schema: Schema) -> list[PythonFunction]:
    """What a function returns, column by column, for `checked_value`."""
    return [PythonFunction(function, (), i, field.type, field.nullable) for i, field in enumerate(schema)]


def rows_of_reduction(function: UserFunction, schema: Schema, group: Iterable[tuple[tuple[Value, ...], int]]) -> list[tuple[Value, ...]]:
    """The rows, of `schema`, that a function returns for a group of (row, weight) pairs. Raises EvaluationError."""
    columns = result_columns(function, schema)
    result = call_function(columns[0], [weighted_rows(function, group)])
    rows = result if isinstance(result, list) else [result]
    return [tuple(checked_value(column, element_of(column, row)) for column in columns) for row in rows]


def accumulated(
    function: UserFunction, schema: Schema, before: tuple[Value, ...] | None, group: Iterable[tuple[tuple[Value, ...], int]]
) -> tuple[Value, ...] | None:
    """The accumulator, of `schema`, after a tick's (row, weight) pairs of a key; None if the function drops it. Raises EvaluationError.

    before: the accumulator before the tick, if there is one.
    """
    columns = result_columns(function, schema)
    names = function.parameters[0]
    held = None if before is None else before[0] if names is None else row_class(names)(*before)
    result = call_function(columns[0], [held, weighted_rows(function, group)])
    return None if result is None else tuple(checked_value(column, element_of(column, result)) for column in columns)


def value_of_group(expr: PythonFunction, rows: Iterable[tuple[tuple[Value, ...], int]], types: Sequence[Type]) -> Value:
    """The value of an aggregate in Python over the argument lists of a group, with their weights. Raises EvaluationError.

    types: of the arguments. The function takes an array for each, with as many copies of a row as its weight says, sorted.
    """
    ordered = in_row_order(rows)
    repeated = [values for values, weight in ordered for _ in range(weight)]
    arrays = [pa.array([values[i] for values in repeated], type.arrow) for i, type in enumerate(types)]
    result = call_function(expr, arrays)
    return checked_value(expr, result.as_py() if isinstance(result, pa.Scalar) else result)


def changed_group(expr: PythonFunction, before: Arguments | None, added: Sequence[Arguments], removed: Sequence[Arguments]) -> Arguments:
    """The value of an aggregate in Python over a group after a change, then the values of its state. Raises EvaluationError.

    before: the values of the state before; None if the group had no rows. added, removed: argument lists.
    """
    change = expr.function.change
    assert change is not None
    call = PythonFunction(change.function, (), 0, expr.type, expr.nullable, expr.span)
    value, *state = call_function(call, [before, added, removed])
    fields = enumerate(change.state, 1)
    checks = [PythonFunction(change.function, (), i, field.type, True, expr.span) for i, field in fields]
    return (checked_value(expr, value), *(checked_value(check, each) for check, each in zip(checks, state, strict=True)))


def lifted_row(expr: PythonFunction, row: Arguments) -> Arguments:
    """The state of an aggregate in Python that merges, of one row. Raises EvaluationError."""
    return _state_of(expr, _merge_of(expr).lift, row)


def merged_states(expr: PythonFunction, states: Sequence[Arguments]) -> Arguments:
    """The state of neighbouring parts of a group together, from theirs in order. Raises EvaluationError."""
    return states[0] if len(states) == 1 else _state_of(expr, _merge_of(expr).merge, states)


def repeated_state(expr: PythonFunction, state: Arguments, copies: int) -> Arguments:
    """The state of so many equal parts. O(log copies) calls. Raises EvaluationError."""
    whole: list[Arguments] = []
    while copies:
        if copies & 1:
            whole.append(state)
        copies >>= 1
        if copies:
            state = merged_states(expr, (state, state))
    return merged_states(expr, whole)


def finished_state(expr: PythonFunction, state: Arguments) -> Value:
    """The value of a group of this state. Raises EvaluationError."""
    call = PythonFunction(_merge_of(expr).finish, (), 0, expr.type, expr.nullable, expr.span)
    return checked_value(expr, call_function(call, [state]))


def _merge_of(expr: PythonFunction) -> GroupMerge:
    merge = expr.function.merge
    assert merge is not None
    return merge


def _state_of(expr: PythonFunction, function: UserFunction, argument: Any) -> Arguments:
    """The checked values of the state that the function returns."""
    call = PythonFunction(function, (), 0, expr.type, expr.nullable, expr.span)
    values = zip(_merge_of(expr).state, call_function(call, [argument]), strict=True)
    return tuple(
        checked_value(PythonFunction(function, (), i, field.type, True, expr.span), value) for i, (field, value) in enumerate(values)
    )


def inspect_rows(function: UserFunction, change: Iterable[tuple[tuple[Value, ...], int]]) -> None:
    """Calls the function with the (row, weight) pairs of a change. Raises EvaluationError if it raises."""
    call_function(PythonFunction(function, (), 0, BOOLEAN, True), [weighted_rows(function, change)])


def weighted_rows(function: UserFunction, rows: Iterable[tuple[tuple[Value, ...], int]]) -> tuple[tuple[Any, int], ...]:
    """The argument of a function of a whole relation: (row, weight) pairs, sorted by row; each row is a named tuple."""
    names = function.parameters[-1]
    assert names is not None
    row = row_class(names)
    ordered = in_row_order(rows)
    return tuple((row(*values), weight) for values, weight in ordered)


def call_of(expr: PythonFunction) -> FunctionCall:
    """The call that computes the expression."""
    return expr.function, expr.arguments


def array_of_function(expr: PythonFunction, arguments: Sequence[pa.Array], length: int, results: list[Any]) -> pa.Array:
    """The function's values on `length` rows: one call per row, or a single call if it is on batches.

    results: earlier results for these rows; they are reused and extended, so each row is passed to the function once.
    Raises EvaluationError, with the row unless the function is on batches.
    """
    if expr.function.on_batches:
        return _array_of_batches(expr, arguments, length, results)
    columns = [frozen_list(argument) for argument in arguments] if len(results) < length else []
    values: list[Value] = []
    for i in range(length):
        try:
            if i == len(results):
                results.append(call_function(expr, _rows_of(expr, [column[i] for column in columns]), of_row=True))
            values.append(checked_value(expr, element_of(expr, results[i])))
        except EvaluationError as error:
            raise at_row(error, i) from error.__cause__
    return pa.array(values, expr.type.arrow)


def _array_of_batches(expr: PythonFunction, arguments: Sequence[pa.Array], length: int, results: list[Any]) -> pa.Array:
    if not length:
        return pa.array([], expr.type.arrow)
    try:
        if not results:
            results.append(call_function(expr, _batches_of(expr, arguments)))
        array = element_of(expr, results[0])
    except EvaluationError as error:
        raise at_row(error, 0) from error.__cause__
    return checked_array(expr, array, length)


def _rows_of(expr: PythonFunction, values: Sequence[Any]) -> list[Any]:
    """The arguments of one call: a row or a value for each parameter."""
    return _grouped(expr, converted(expr, values), lambda names, part: row_class(names)(*part))


def converted(expr: PythonFunction, values: Sequence[Any]) -> Sequence[Any]:
    """The values of the arguments as the function takes them."""
    if (convert := expr.function.converts) is None:
        return values
    return [convert(argument.type, value) for argument, value in zip(expr.arguments, values, strict=True)]


def _batches_of(expr: PythonFunction, arrays: Sequence[pa.Array]) -> list[Any]:
    return _grouped(expr, arrays, lambda names, part: pa.RecordBatch.from_arrays(list(part), list(names)))


def _grouped(expr: PythonFunction, values: Sequence[Any], row: Callable[[tuple[str, ...], Sequence[Any]], Any]) -> list[Any]:
    arguments, start = [], 0
    for names in expr.function.parameters:
        width = 1 if names is None else len(names)
        part = values[start : start + width]
        arguments.append(part[0] if names is None else row(names, part))
        start += width
    return arguments


@lru_cache(maxsize=256)
def row_class(names: tuple[str, ...]) -> Callable[..., Any]:
    """A named tuple with a field per column; a name that is not a Python identifier becomes _0, _1, … by its position."""
    return namedtuple("Row", names, rename=True)


def call_function(expr: PythonFunction, arguments: list[Any], *, of_row: bool = False) -> Any:
    """The function's result. Raises EvaluationError whatever it raises, with the line that raised it. of_row: and with the arguments."""
    try:
        return expr.function.call(*arguments)
    except EvaluationError:
        raise
    except Exception as error:  # a user's function may raise anything
        called = f", called with ({', '.join(map(shown, arguments))})" if of_row else ""
        raise EvaluationError(
            f"the function {expr.function.name} raised {type(error).__name__}: {error}{_line(error)}{called}",
            span=expr.span,
            remedy="a function must return a value for every row that reaches it: filter first, or return None",
        ) from error


def _line(error: Exception) -> str:
    """The line of the function that raised the error; "" if it is not Python's."""
    frames = (frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE))
    place = next(frames, None)
    return "" if place is None else f", at {place.filename}:{place.lineno}"


def element_of(expr: PythonFunction, result: Any) -> Any:
    """The expression's element of its function's result. A single value may be in a tuple of one. Raises EvaluationError."""
    width = expr.function.width
    if isinstance(result, pa.RecordBatch):
        result = tuple(result.columns)
    if not width:
        alone = isinstance(result, tuple) and len(result) == 1
        return result[0] if alone and not (expr.type.is_nested and value_in(expr.type, result) is not None) else result
    if not isinstance(result, tuple) or len(result) != width:
        raise EvaluationError(
            f"the function {expr.function.name} returned {shown(result)}",
            span=expr.span,
            expected="a tuple of 1 value" if width == 1 else f"a tuple of {width} values, one for each column",
        )
    return result[expr.part]


def checked_array(expr: PythonFunction, result: Any, length: int) -> pa.Array:
    """A column returned by a function on batches, as an array of the expression's type. Raises EvaluationError, with the row."""
    array = result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result
    if not isinstance(array, pa.Array) or len(array) != length:
        returned = f"{len(array)} values" if isinstance(array, pa.Array) else f"{type(array).__name__} {shown(array)}"
        raise at_row(_misfit(expr, returned, f"an Arrow array of {length} values"), 0)
    if not has_fields(expr.type, array.type):
        raise at_row(_misfit(expr, f"an array of {array.type}", expr.type.sql), 0)
    try:
        array = with_fields(expr.type, array).cast(expr.type.arrow)
    except pa.ArrowException as error:
        raise at_row(_misfit(expr, f"an array of {array.type}", expr.type.sql), 0) from error
    if (wrong := outside(expr.type, array)) is not None:  # Arrow supports years beyond 9999
        raise at_row(_misfit(expr, wrong.what, expr.type.sql), wrong.row)
    if (row := with_bad_keys(expr.type, array)) >= 0:
        raise at_row(_misfit(expr, "a MAP with a key that is NULL, or there twice", expr.type.sql), row)
    if array.null_count and not expr.nullable:
        raise at_row(_misfit(expr, "NULL", f"{expr.type.sql} NOT NULL"), int(array.is_null().index(True).as_py()))
    return array


def checked_value(expr: PythonFunction, result: Any) -> Value:
    """The result as a value of the expression's type; NumPy scalars are converted. Raises EvaluationError if the type does not hold it."""
    given = of_numpy(result, expr.type)
    if given is None and expr.nullable:
        return None
    value = value_in(expr.type, given)
    if value is None:
        raise _misfit(expr, shown(result), expr.type.sql + ("" if expr.nullable else " NOT NULL"))
    return value


def value_in(type: Type, given: Any) -> Value:
    """The value in the type's representation; None if the type does not hold it. NumPy scalars are converted."""
    try:
        return _value_of(type, of_numpy(given, type))
    except (OverflowError, UnicodeEncodeError):  # an int beyond all floats, an instant outside the calendar in UTC, a lone surrogate
        return None


def _value_of(type: Type, value: Any) -> Value:
    """The value in the type's representation; None if it is of another class, out of range, or more precise than microseconds."""
    if has_nanoseconds(value):
        return None
    if type.is_integer:
        greatest = 2 ** (INTEGER_BITS[type.name] - 1)
        return value if isinstance(value, int) and not isinstance(value, bool) and -greatest <= value < greatest else None
    if type.is_decimal:
        return _decimal(decimal.Decimal(value), type) if isinstance(value, decimal.Decimal | int) and not isinstance(value, bool) else None
    if type.held.is_nested:
        return _nested(type, value)
    if type.is_interval:
        return _interval(type, value)
    match value:
        case bool():
            return value if type == BOOLEAN else None
        case int() | float() if type.is_float:
            return float(value) if type == DOUBLE else float(struct.unpack("f", struct.pack("f", value))[0])
        case str() if type == STRING:
            value.encode()
            return value
        case bytes() | bytearray() if type == BINARY:
            return bytes(value)
        case datetime.datetime():
            if type == TIMESTAMP_NTZ:
                return value if value.tzinfo is None else None
            return value.astimezone(datetime.UTC) if type == TIMESTAMP and value.utcoffset() is not None else None
        case datetime.date() if type == DATE:
            return value
        case datetime.time() if type.is_time:
            return value if value.tzinfo is None else None
        case _:
            return None


def _interval(type: Type, value: Any) -> Value:
    """A timedelta, or a number of months, without a part of the last field."""
    if type.is_year_month:
        value = _value_of(INT, value)
    elif not isinstance(value, datetime.timedelta):
        return None
    if value is None or units_of(value) % UNITS[type.fields[1]]:
        return None
    return interval_of(units_of(value), type)


def _nested(type: Type, value: Any) -> Value:
    """As tables take it: lists or tuples for an ARRAY, dicts or tuples of all fields for a STRUCT, pairs or a dict for a MAP."""
    try:
        given: Value = frozen_list(pa.array([_part(type, value)], type.arrow))[0]
    except (pa.ArrowException, TypeError, ValueError, KeyError):
        return None
    if type.has_variant and outside(type, pa.array([given], type.arrow)) is not None:
        return None
    return given if has_distinct_keys(given, type) else None


def _part(type: Type, value: Any) -> Any:
    """A part of a nested value as Arrow takes it. Raises ValueError or TypeError where the type does not hold it."""
    value = of_numpy(value, type)
    if value is None:
        return None
    if type.name == "VARIANT":
        return _variant(of_pyspark(value))
    if not type.is_nested:
        if (fitted := _value_of(type, value)) is None:
            raise ValueError(value)
        return fitted
    if not issubclass(value.__class__, type.kind.python):
        raise TypeError(value)
    kinds = [part.type for part in type.parts]
    if type.name == "ARRAY":
        return [_part(kinds[0], part) for part in value]
    if type.name == "MAP":
        return [(_part(kinds[0], key), _part(kinds[1], item)) for key, item in (value.items() if isinstance(value, dict) else value)]
    parts = _in_order(type, value) if isinstance(value, dict) else value
    return tuple(_part(kind, part) for kind, part in zip(kinds, parts, strict=True))


def _variant(value: Any) -> tuple[bytes, bytes]:
    """Raises ValueError or TypeError unless it is one, or its two parts."""
    first, second = (value["value"], value["metadata"]) if isinstance(value, dict) else value
    if not isinstance(first, bytes | bytearray) or not isinstance(second, bytes | bytearray):
        raise TypeError(value)
    return bytes(first), bytes(second)


def _in_order(type: Type, value: dict[Any, Any]) -> list[Any]:
    """The values of a STRUCT's fields, by their names in any case. Raises ValueError for a dict without one of them or with another."""
    given = {str(name).lower(): part for name, part in value.items()}
    names = [part.name.lower() for part in type.parts]
    if len(given) < len(value) or set(given) != set(names):
        raise ValueError(f"other fields: {', '.join(map(str, value))}")
    return [given[name] for name in names]


def _decimal(value: decimal.Decimal, type: Type) -> decimal.Decimal | None:
    """The value at the type's scale; None if that loses nonzero digits or needs more than the type's precision."""
    if not value.is_finite() or (value and value.adjusted() >= type.precision):
        return None
    scaled = EXACT.scaleb(value, type.scale)
    if scaled != EXACT.to_integral_value(scaled) or scaled.copy_abs() >= 10**type.precision:
        return None
    return EXACT.quantize(value, decimal.Decimal((0, (1,), -type.scale)))


def _misfit(expr: PythonFunction, returned: str, expected: str) -> EvaluationError:
    part = f" as value {expr.part + 1}" if expr.function.width else ""
    return EvaluationError(f"the function {expr.function.name} returned {returned}{part}", span=expr.span, expected=expected)
