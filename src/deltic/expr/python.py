"""Users' Python functions in expressions: their arguments, and checks of their results.

An exception of a function, or a result that does not fit its type, is an EvaluationError that names the function.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from deltic.errors import EvaluationError
from deltic.expr.failures import at_row
from deltic.expr.nodes import Expr, PythonFunction, UserFunction, Value
from deltic.expr.rows.ordering import total_key
from deltic.purity import shown
from deltic.schema import BOOLEAN, DATE, DOUBLE, INTEGER_BITS, STRING, TIMESTAMP, Schema, Type, outside_calendar

Asked = tuple[UserFunction, tuple[Expr, ...]]
"""A function and its arguments."""
Answers = dict[Asked, list[Any]]
"""Results of functions for the rows of one change: one that returns several columns is called once for all of them."""
EXACT: Final = decimal.Context(prec=decimal.MAX_PREC, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[])
"""Decimals as they are: the default context rounds to 28 digits."""


def value_of_function(expr: PythonFunction, arguments: Sequence[Value]) -> Value:
    """The function's value for one row. Raises EvaluationError."""
    if not expr.function.on_batches:
        return fitting(expr, part_of(expr, called(expr, _rows_of(expr, arguments))))
    types = [argument.type.arrow for argument in expr.arguments]
    arrays = [pa.array([value], type) for value, type in zip(arguments, types, strict=True)]
    value: Value = array_of_function(expr, arrays, 1, [])[0].as_py()
    return value


def rows_of_reduction(function: UserFunction, made: Schema, group: Iterable[tuple[tuple[Value, ...], int]]) -> list[tuple[Value, ...]]:
    """The rows, of schema `made`, that a function makes of a group of rows with how often they are there. Raises EvaluationError."""
    columns = [PythonFunction(function, (), i, field.type, field.nullable) for i, field in enumerate(made)]
    given = called(columns[0], [inspected(function, group)])
    return [tuple(fitting(column, part_of(column, row)) for column in columns) for row in (given if isinstance(given, list) else [given])]


def inspect_rows(function: UserFunction, change: Iterable[tuple[tuple[Value, ...], int]]) -> None:
    """Calls an inspecting function with the rows of a change and their weights. Raises EvaluationError if it raises."""
    called(PythonFunction(function, (), 0, BOOLEAN, True), [inspected(function, change)])


def inspected(function: UserFunction, rows: Iterable[tuple[tuple[Value, ...], int]]) -> tuple[tuple[Any, int], ...]:
    """Rows with weights as a function of a whole relation gets them: under the columns' names, and in their order."""
    (names,) = function.parameters
    assert names is not None
    row = row_class(names)
    ordered = sorted(rows, key=lambda pair: tuple(total_key(value) for value in pair[0]))
    return tuple((row(*values), weight) for values, weight in ordered)


def asked(expr: PythonFunction) -> Asked:
    """What the columns that one call gives have in common."""
    return expr.function, expr.arguments


def array_of_function(expr: PythonFunction, arguments: Sequence[pa.Array], length: int, answers: list[Any]) -> pa.Array:
    """The function's values for `length` rows: one call for each of them, or one for all if it is on batches.

    answers: its results so far for these rows, which are reused and extended, so that it is called once per row.
    Raises EvaluationError, with the row of a function of rows.
    """
    if expr.function.on_batches:
        return _array_of_batches(expr, arguments, length, answers)
    columns = [argument.to_pylist() for argument in arguments] if len(answers) < length else []
    values: list[Value] = []
    for i in range(length):
        try:
            if i == len(answers):
                answers.append(called(expr, _rows_of(expr, [column[i] for column in columns])))
            values.append(fitting(expr, part_of(expr, answers[i])))
        except EvaluationError as error:
            raise at_row(error, i) from error.__cause__
    return pa.array(values, expr.type.arrow)


def _array_of_batches(expr: PythonFunction, arguments: Sequence[pa.Array], length: int, answers: list[Any]) -> pa.Array:
    if not length:
        return pa.array([], expr.type.arrow)
    try:
        if not answers:
            answers.append(called(expr, _batches_of(expr, arguments)))
        given = part_of(expr, answers[0])
    except EvaluationError as error:
        raise at_row(error, 0) from error.__cause__
    return fitting_array(expr, given, length)


def _rows_of(expr: PythonFunction, values: Sequence[Any]) -> list[Any]:
    """For each parameter its row or value."""
    return _grouped(expr, values, lambda names, part: row_class(names)(*part))


def _batches_of(expr: PythonFunction, arrays: Sequence[pa.Array]) -> list[Any]:
    return _grouped(expr, arrays, lambda names, part: pa.RecordBatch.from_arrays(list(part), list(names)))


def _grouped(expr: PythonFunction, values: Sequence[Any], row: Callable[[tuple[str, ...], Sequence[Any]], Any]) -> list[Any]:
    given, start = [], 0
    for names in expr.function.parameters:
        width = 1 if names is None else len(names)
        part = values[start : start + width]
        given.append(part[0] if names is None else row(names, part))
        start += width
    return given


@lru_cache(maxsize=256)
def row_class(names: tuple[str, ...]) -> Callable[..., Any]:
    """A tuple whose parts have the columns' names; those that Python cannot have are _0, _1, … by their place."""
    return namedtuple("Row", names, rename=True)


def called(expr: PythonFunction, arguments: list[Any]) -> Any:
    """What the function gives for its arguments. Raises EvaluationError."""
    try:
        return expr.function.call(*arguments)
    except EvaluationError:
        raise
    except Exception as error:  # whatever a user's function raises
        raise EvaluationError(
            f"the function {expr.function.name} raised {type(error).__name__}: {error}",
            span=expr.span,
            remedy="a function must return a value for every row that reaches it: filter first, or return None",
        ) from error


def part_of(expr: PythonFunction, given: Any) -> Any:
    """The expression's part of what its function gave. A single value may come in a tuple of one. Raises EvaluationError."""
    width = expr.function.width
    if isinstance(given, pa.RecordBatch):
        given = tuple(given.columns)
    if not width:
        return given[0] if isinstance(given, tuple) and len(given) == 1 else given
    if not isinstance(given, tuple) or len(given) != width:
        raise EvaluationError(
            f"the function {expr.function.name} gave {shown(given)}",
            span=expr.span,
            expected=f"a tuple of {width} values, one for each column",
        )
    return given[expr.part]


def fitting_array(expr: PythonFunction, given: Any, length: int) -> pa.Array:
    """What a function on batches gave for one column, as an array of the expression's type. Raises EvaluationError, with the row."""
    array = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    if not isinstance(array, pa.Array) or len(array) != length:
        found = f"{len(array)} values" if isinstance(array, pa.Array) else f"{type(array).__name__} {shown(array)}"
        raise at_row(_misfit(expr, found, f"an Arrow array of {length} values"), 0)
    try:
        array = array.cast(expr.type.arrow)
    except pa.ArrowException as error:
        raise at_row(_misfit(expr, f"an array of {array.type}", expr.type.sql), 0) from error
    if (row := outside_calendar(expr.type, array)) >= 0:  # Arrow's years go beyond those that Deltic holds
        raise at_row(_misfit(expr, "a time outside the years 1 to 9999", expr.type.sql), row)
    if array.null_count and not expr.nullable:
        raise at_row(_misfit(expr, "NULL", f"{expr.type.sql} NOT NULL"), int(array.is_null().index(True).as_py()))
    return array


def fitting(expr: PythonFunction, given: Any) -> Value:
    """The value as one of the expression's type; a NumPy scalar is what it holds. Raises EvaluationError if it does not fit."""
    if given is None and expr.nullable:
        return None
    try:
        value = _value_of(expr.type, given.item() if _is_numpy_scalar(given) else given)
    except (OverflowError, UnicodeEncodeError):  # an int beyond all floats, an instant outside the calendar in UTC, half a character
        value = None
    if value is None:
        raise _misfit(expr, shown(given), expr.type.sql + ("" if expr.nullable else " NOT NULL"))
    return value


def _value_of(type: Type, value: Any) -> Value:
    """The value as the type holds it; None if it is of another class or leaves the type."""
    if type.is_integer:
        greatest = 2 ** (INTEGER_BITS[type.name] - 1)
        return value if isinstance(value, int) and not isinstance(value, bool) and -greatest <= value < greatest else None
    if type.is_decimal:
        return _decimal(decimal.Decimal(value), type) if isinstance(value, decimal.Decimal | int) and not isinstance(value, bool) else None
    match value:
        case bool():
            return value if type == BOOLEAN else None
        case int() | float() if type.is_float:
            return float(value) if type == DOUBLE else float(struct.unpack("f", struct.pack("f", value))[0])
        case str() if type == STRING:
            value.encode()
            return value
        case datetime.datetime():
            return value.astimezone(datetime.UTC) if type == TIMESTAMP and value.utcoffset() is not None else None
        case datetime.date() if type == DATE:
            return value
        case _:
            return None


def _is_numpy_scalar(value: Any) -> bool:
    return type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()


def _decimal(value: decimal.Decimal, type: Type) -> decimal.Decimal | None:
    """The value with as many digits behind the point as the type has; None if it has more that count, or more before it."""
    if not value.is_finite() or (value and value.adjusted() >= type.precision):
        return None
    scaled = EXACT.scaleb(value, type.scale)
    if scaled != EXACT.to_integral_value(scaled) or scaled.copy_abs() >= 10**type.precision:
        return None
    return EXACT.quantize(value, decimal.Decimal((0, (1,), -type.scale)))


def _misfit(expr: PythonFunction, found: str, expected: str) -> EvaluationError:
    part = f" as value {expr.part + 1}" if expr.function.width else ""
    return EvaluationError(f"the function {expr.function.name} gave {found}{part}", span=expr.span, expected=expected)
