"""The value of an expression on whole columns, through Arrow compute and NumPy.

Invariant: the result equals the interpreter's (expr/interpreter.py) on every row, or the error is of the class that the
interpreter raises on the first row that fails, with `row` set to its index. A part that can fail is evaluated only on the rows
that reach it: the later parts of AND, OR, CASE, COALESCE and IN, and arguments after a NULL one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import EvaluationError
from deltic.expr.arrays.casts import cast_array
from deltic.expr.arrays.datum import Datum, Mask, choosable, dense, nulls_of, truths
from deltic.expr.failing import can_fail
from deltic.expr.failures import at_row, row_of
from deltic.expr.nodes import (
    Call,
    Case,
    Cast,
    Column,
    Constants,
    Expr,
    Lambda,
    LambdaVariable,
    Literal,
    OuterColumn,
    PythonFunction,
    VariableKey,
)
from deltic.expr.python import Results, array_of_function, call_of
from deltic.expr.registry import Function, Nulls, function_of, step_of
from deltic.schema import Type

Key = int | VariableKey


class Frame:
    """The rows on which an expression is evaluated: columns of equal length, narrowed to the selected rows when they are first read.

    results: the results of users' functions for all of the rows.
    """

    __slots__ = ("_base", "_columns", "_rows", "length", "results")

    def __init__(self, columns: Sequence[pa.Array | None], length: int, results: Results | None = None) -> None:
        self.results: Results = {} if results is None else results
        self._columns: dict[Key, pa.Array] = {i: column for i, column in enumerate(columns) if column is not None}
        self.length = length
        self._base: Frame | None = None
        self._rows: pa.Array | None = None

    def column(self, key: Key) -> pa.Array:
        """The column at a position, or the values of a parameter of a lambda."""
        if self._base is not None and key not in self._columns:
            self._columns[key] = self._base.column(key).take(self._rows)
        return self._columns[key]

    def narrow(self, rows: np.ndarray) -> Frame:
        """The frame of some rows, ascending; a row may come several times."""
        part = Frame((), len(rows))
        part._base, part._rows = self, pa.array(rows)
        return part

    def applied(self, rows: np.ndarray, function: Lambda, values: Sequence[pa.Array]) -> Frame:
        """As `narrow`, with values for the parameters of a lambda; there may be more than it has."""
        part = self.narrow(rows)
        part._columns.update((one.key, array) for one, array in zip(function.parameters, values, strict=False))
        return part


def evaluate_columns(expr: Expr, columns: Sequence[pa.Array | None], length: int, results: Results | None = None) -> pa.Array:
    """The expression on each of `length` rows, of exactly `expr.type.arrow`; columns that it does not read may be None.

    results: results of users' functions for earlier expressions on the same rows, which are reused. If the expression is such a
    function alone, its columns may be None as well.
    Raises EvaluationError with `row`, the first row that fails.
    """
    if results is not None and isinstance(expr, PythonFunction) and (earlier := results.get(call_of(expr))):
        return array_of_function(expr, (), length, earlier)  # row by row: the first failure is that of the first row
    whole: list[pa.Array | None] = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    try:
        return dense(value_of(expr, Frame(whole, length, results)), length)
    except EvaluationError as error:
        raise _least_failure(expr, whole, error) from None


def _least_failure(expr: Expr, columns: Sequence[pa.Array | None], error: EvaluationError) -> EvaluationError:
    """The error of the first row that fails. Evaluation by columns may raise the error of a later row, where an earlier part fails."""
    while row_of(error):
        row = row_of(error)
        try:
            value_of(expr, Frame([None if c is None else c.slice(0, row) for c in columns], row))
        except EvaluationError as earlier:
            error = earlier
        else:
            return error
    return error


def value_of(expr: Expr, frame: Frame) -> Datum:
    """The expression on every row of the frame."""
    match expr:
        case Column():
            return frame.column(expr.index)
        case LambdaVariable():
            return frame.column(expr.key)
        case Constants() | Lambda():
            raise AssertionError("Constants and lambdas are only arguments of calls")
        case OuterColumn():
            raise AssertionError(f"{expr.name} is a column of an enclosing query")
        case Literal():
            return pa.scalar(expr.value, expr.type.arrow)
        case Cast():
            return on_arrays(lambda n, array: cast_array(expr, array), frame.length, expr.type, value_of(expr.argument, frame))
        case Case():
            return _case(expr, frame)
        case Call():
            return _call(expr, frame)
        case PythonFunction():
            return _function(expr, frame)
        case _:
            assert_never(expr)


def _function(expr: PythonFunction, frame: Frame) -> pa.Array:
    results = frame.results.setdefault(call_of(expr), [])
    arguments = () if results else [dense(value_of(argument, frame), frame.length) for argument in expr.arguments]
    return array_of_function(expr, arguments, frame.length, results)


def on_arrays(kernel: Callable[..., Datum], length: int, type: Type, *arguments: Datum) -> Datum:
    """The kernel's result. If all arguments are constants it runs on one row; without rows it does not run."""
    if not length:
        return pa.array([], type.arrow)
    if any(isinstance(a, pa.Array) for a in arguments):
        return kernel(length, *arguments)
    return dense(kernel(1, *(pa.repeat(a, 1) for a in arguments)), 1)[0]


def _call(call: Call, frame: Frame) -> Datum:
    function = function_of(call)
    if function.nulls is Nulls.LAZY:
        given: Datum = function.arrays(call, frame)
        return given
    if function.nulls is Nulls.FOLDED and len(call.arguments) > 2:
        return _folded(call, function, frame)
    if function.nulls is Nulls.SEEN:
        arguments: list[Datum] | None = [value_of(a, frame) for a in call.arguments]
    else:
        arguments = _strict_arguments(call, frame, function.nulls is Nulls.STRICT_BACKWARDS)
    if arguments is None:
        return pa.scalar(None, call.type.arrow)
    return on_arrays(partial(function.arrays, call), frame.length, call.type, *arguments)


def _folded(call: Call, function: Function, frame: Frame) -> Datum:
    value = value_of(call.arguments[0], frame)
    for i, argument in enumerate(call.arguments[1:], 1):
        given = value_after(nulls_of(value), argument, frame)
        if given is None:
            return pa.scalar(None, call.type.arrow)
        run = partial(function.arrays, step_of(call, i))
        value = on_arrays(run, frame.length, call.type, value, given)
    return value


def value_after(nulls: Mask | bool, argument: Expr, frame: Frame) -> Datum | None:
    """The next argument; if it can fail, evaluated only where those before it are not NULL. None if the call is NULL on every row."""
    if nulls is True:
        return None
    guarded = nulls is not False and can_fail(argument)
    value = value_where(argument, frame, ~np.asarray(nulls)) if guarded else value_of(argument, frame)
    return None if nulls_of(value) is True else value


def _strict_arguments(call: Call, frame: Frame, backwards: bool) -> list[Datum] | None:
    """The arguments, each evaluated where those before it are not NULL; None if one is NULL on every row."""
    values: list[Datum] = []
    nulls: Mask | bool = False
    for argument in reversed(call.arguments) if backwards else call.arguments:
        value = value_after(nulls, argument, frame)
        if value is None:
            return None
        nulls = nulls | nulls_of(value)
        values.append(value)
    return values[::-1] if backwards else values


def value_where(expr: Expr, frame: Frame, reached: Mask) -> pa.Array:
    """The expression on the rows that reach it; NULL elsewhere."""
    return scattered(value_on(expr, frame, np.flatnonzero(reached)), reached)


def scattered(values: pa.Array, reached: Mask) -> pa.Array:
    """The values, in order, at the rows that are reached; NULL elsewhere."""
    return values.take(pa.array(np.cumsum(reached) - 1, mask=~reached))


def value_on(expr: Expr, frame: Frame, rows: np.ndarray) -> pa.Array:
    """The expression on the given rows: a column of len(rows)."""
    if not len(rows):
        return pa.array([], expr.type.arrow)
    return _value_in(expr, frame if len(rows) == frame.length else frame.narrow(rows), rows)


def _value_in(expr: Expr, part: Frame, rows: np.ndarray) -> pa.Array:
    """The expression on a frame of the given rows; `row` of an error is the position among all rows."""
    try:
        return dense(value_of(expr, part), part.length)
    except EvaluationError as error:
        raise at_row(error, int(rows[row_of(error)])) from None


def _case(expr: Case, frame: Frame) -> Datum:
    if len(expr.branches) > frame.length or any(map(can_fail, _later_parts(expr))):
        return _guarded_case(expr, frame)

    def branch(value: Expr) -> Datum:
        return choosable(value_of(value, frame), frame.length, expr.type)

    result = branch(expr.otherwise)
    for condition, value in reversed(expr.branches):
        chosen = pc.fill_null(value_of(condition, frame), False)
        result = pc.if_else(chosen, branch(value), result)
    return result


def _later_parts(expr: Case) -> Iterator[Expr]:
    """The parts that are not evaluated on every row."""
    for condition, _ in expr.branches[1:]:
        yield condition
    for _, value in expr.branches:
        yield value
    yield expr.otherwise


def _guarded_case(expr: Case, frame: Frame) -> pa.Array:
    """Each part on the rows that reach it, until no row is left."""
    rest, part = np.arange(frame.length), frame
    pieces: list[tuple[np.ndarray, pa.Array]] = []
    for condition, value in expr.branches:
        if not len(rest):
            break
        chosen = truths(_value_in(condition, part, rest), len(rest))
        if chosen.any():
            selected, rest = rest[chosen], rest[~chosen]
            pieces.append((selected, value_on(value, frame, selected)))
            part = frame.narrow(rest)
    pieces.append((rest, value_on(expr.otherwise, frame, rest)))
    return assembled(pieces, frame.length)


def assembled(pieces: Sequence[tuple[np.ndarray, pa.Array]], length: int) -> pa.Array:
    """One column from (rows, values) pieces that together cover all rows."""
    order = np.empty(length, np.int64)
    order[np.concatenate([rows for rows, _ in pieces])] = np.arange(length)
    return pa.concat_arrays([values for _, values in pieces]).take(pa.array(order))
