"""The value of an expression on whole columns, through Arrow compute and NumPy.

What always holds: the result is the interpreter's (expr/interpreter.py) on every row, or the error is of the class that the
interpreter raises on the least row that fails, with `row` set to its index. A part that can fail is evaluated only on the rows
that reach it: the later parts of AND, OR, CASE, COALESCE and IN, and arguments after a NULL one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deltic.errors import EvaluationError
from deltic.expr.arrays import arithmetic, compare, dates, text
from deltic.expr.arrays.casts import cast_array
from deltic.expr.arrays.datum import Datum, Kernel, Mask, dense, nulls_of, truths
from deltic.expr.failing import can_fail
from deltic.expr.failures import at_row, row_of
from deltic.expr.interpreter import DIVISIONS
from deltic.expr.nodes import Call, Case, Cast, Column, Expr, Literal, PythonFunction
from deltic.expr.python import Answers, array_of_function, asked
from deltic.schema import BOOLEAN, Type

_KERNELS: Final[Mapping[str, Kernel]] = {**compare.KERNELS, **arithmetic.KERNELS, **text.KERNELS, **dates.KERNELS}
_SEES_NULLS: Final = frozenset(("same", "is_null", "is_not_null", "isnan", "greatest", "least", "concat", "concat_ws"))


class Frame:
    """Rows that an expression is evaluated on: columns of equal length, taken from wider ones only when they are read.

    answers: what users' functions gave for all of the rows.
    """

    __slots__ = ("_base", "_columns", "_rows", "answers", "length")

    def __init__(self, columns: Sequence[pa.Array | None], length: int, answers: Answers | None = None) -> None:
        self.answers: Answers = {} if answers is None else answers
        self._columns: dict[int, pa.Array] = {i: column for i, column in enumerate(columns) if column is not None}
        self.length = length
        self._base: Frame | None = None
        self._rows: pa.Array | None = None

    def column(self, index: int) -> pa.Array:
        if self._base is not None and index not in self._columns:
            self._columns[index] = self._base.column(index).take(self._rows)
        return self._columns[index]

    def narrow(self, rows: np.ndarray) -> Frame:
        """The frame of some rows, ascending."""
        part = Frame((), len(rows))
        part._base, part._rows = self, pa.array(rows)
        return part


def evaluate_columns(expr: Expr, columns: Sequence[pa.Array | None], length: int, answers: Answers | None = None) -> pa.Array:
    """The expression on each of `length` rows, of exactly `expr.type.arrow`; columns that it does not read may be None.

    answers: of the expressions before on the same rows. What a user's function has answered there it is not asked again; if it is all of
    the expression, its columns may be None as well.
    Raises EvaluationError with the least row that fails, in its `row`.
    """
    if answers is not None and isinstance(expr, PythonFunction) and (given := answers.get(asked(expr))):
        return array_of_function(expr, (), length, given)  # row by row, so that the first failure is the least
    whole: list[pa.Array | None] = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    try:
        return dense(_value(expr, Frame(whole, length, answers)), length)
    except EvaluationError as error:
        raise _least_failure(expr, whole, error) from None


def _least_failure(expr: Expr, columns: Sequence[pa.Array | None], error: EvaluationError) -> EvaluationError:
    """Columns fail part by part, rows one after another: looks for a failure before the row of this one."""
    while row_of(error):
        row = row_of(error)
        try:
            _value(expr, Frame([None if c is None else c.slice(0, row) for c in columns], row))
        except EvaluationError as earlier:
            error = earlier
        else:
            return error
    return error


def _value(expr: Expr, frame: Frame) -> Datum:
    match expr:
        case Column():
            return frame.column(expr.index)
        case Literal():
            return pa.scalar(expr.value, expr.type.arrow)
        case Cast():
            return _on_arrays(lambda n, array: cast_array(expr, array), frame.length, expr.type, _value(expr.argument, frame))
        case Case():
            return _case(expr, frame)
        case Call():
            return _call(expr, frame)
        case PythonFunction():
            return _function(expr, frame)
        case _:
            assert_never(expr)


def _function(expr: PythonFunction, frame: Frame) -> pa.Array:
    given = frame.answers.setdefault(asked(expr), [])
    arguments = () if given else [dense(_value(argument, frame), frame.length) for argument in expr.arguments]
    return array_of_function(expr, arguments, frame.length, given)


def _on_arrays(kernel: Callable[..., Datum], length: int, type: Type, *arguments: Datum) -> Datum:
    """The kernel; constants alone are computed on one row, and where there are no rows nothing is."""
    if not length:
        return pa.array([], type.arrow)
    if any(isinstance(a, pa.Array) for a in arguments):
        return kernel(length, *arguments)
    return dense(kernel(1, *(pa.repeat(a, 1) for a in arguments)), 1)[0]


def _call(call: Call, frame: Frame) -> Datum:
    lazy = _LAZY.get(call.function)
    if lazy is not None:
        return lazy(call, frame)
    arguments = [_value(a, frame) for a in call.arguments] if call.function in _SEES_NULLS else _strict_arguments(call, frame)
    if arguments is None:
        return pa.scalar(None, call.type.arrow)
    kernel = _KERNELS[call.function]
    return _on_arrays(lambda n, *values: kernel(call, n, *values), frame.length, call.type, *arguments)


def _strict_arguments(call: Call, frame: Frame) -> list[Datum] | None:
    """The arguments, each evaluated where those before it are not NULL; None where one is NULL on every row."""
    values: list[Datum] = []
    nulls: Mask | bool = False
    backwards = call.function in DIVISIONS
    for argument in reversed(call.arguments) if backwards else call.arguments:
        guarded = nulls is not False and can_fail(argument)
        value = _value_where(argument, frame, ~np.asarray(nulls)) if guarded else _value(argument, frame)
        here = nulls_of(value)
        if here is True:
            return None
        nulls = nulls | here
        values.append(value)
    return values[::-1] if backwards else values


def _value_where(expr: Expr, frame: Frame, reached: Mask) -> pa.Array:
    """The expression on the rows that reach it; NULL elsewhere."""
    rows = np.flatnonzero(reached)
    part = _value_on(expr, frame, rows)
    places = np.cumsum(reached) - 1
    return part.take(pa.array(places, mask=~reached))


def _value_on(expr: Expr, frame: Frame, rows: np.ndarray) -> pa.Array:
    """The expression on some rows, as a column of just these."""
    if not len(rows):
        return pa.array([], expr.type.arrow)
    if len(rows) == frame.length:
        return dense(_value(expr, frame), frame.length)
    try:
        return dense(_value(expr, frame.narrow(rows)), len(rows))
    except EvaluationError as error:
        raise at_row(error, int(rows[row_of(error)])) from None


def _case(expr: Case, frame: Frame) -> Datum:
    later = [value for _, value in expr.branches] + [condition for condition, _ in expr.branches[1:]] + [expr.otherwise]
    if any(can_fail(part) for part in later):
        return _guarded_case(expr, frame)
    result = _value(expr.otherwise, frame)
    for condition, value in reversed(expr.branches):
        chosen = pc.fill_null(_value(condition, frame), False)
        result = pc.if_else(chosen, _value(value, frame), result)
    return result


def _guarded_case(expr: Case, frame: Frame) -> pa.Array:
    rest = np.arange(frame.length)
    pieces: list[tuple[np.ndarray, pa.Array]] = []
    for condition, value in expr.branches:
        chosen = truths(_value_on(condition, frame, rest), len(rest))
        taken, rest = rest[chosen], rest[~chosen]
        pieces.append((taken, _value_on(value, frame, taken)))
    pieces.append((rest, _value_on(expr.otherwise, frame, rest)))
    return _assembled(pieces, frame.length)


def _assembled(pieces: Sequence[tuple[np.ndarray, pa.Array]], length: int) -> pa.Array:
    """One column of pieces that each belong to some rows; together they cover all."""
    order = np.empty(length, np.int64)
    order[np.concatenate([rows for rows, _ in pieces])] = np.arange(length)
    return pa.concat_arrays([values for _, values in pieces]).take(pa.array(order))


def _connective(stops_at: bool) -> Callable[[Call, Frame], Datum]:
    """AND stops at FALSE, OR at TRUE: there the right side is not evaluated where it can fail."""
    combine = pc.or_kleene if stops_at else pc.and_kleene

    def connective(call: Call, frame: Frame) -> Datum:
        left, right = _value(call.arguments[0], frame), call.arguments[1]
        if not can_fail(right):
            return combine(left, _value(right, frame))
        stopped = truths(left if stops_at else pc.invert(left), frame.length)
        if stopped.all():
            return left
        return combine(left, _value_where(right, frame, ~stopped) if stopped.any() else _value(right, frame))

    return connective


def _coalesce(call: Call, frame: Frame) -> Datum:
    result = _value(call.arguments[0], frame)
    for argument in call.arguments[1:]:
        missing = nulls_of(result)
        if missing is False:
            return result
        guarded = isinstance(missing, np.ndarray) and can_fail(argument)
        result = pc.coalesce(result, _value_where(argument, frame, np.asarray(missing)) if guarded else _value(argument, frame))
    return result


def _in(call: Call, frame: Frame) -> Datum:
    value, items = _value(call.arguments[0], frame), call.arguments[1:]
    type = call.arguments[0].type
    if isinstance(value, pa.Array) and not type.is_float and all(isinstance(i, Literal) for i in items):
        return _in_constants(value, type, [i.value for i in items if isinstance(i, Literal)])
    result: Datum = pc.if_else(pc.is_valid(value), pa.scalar(False), pa.scalar(None, pa.bool_()))
    for item in items:
        open_rows = ~(truths(result, frame.length) | nulls_of(value))
        found = _value_where(item, frame, open_rows) if can_fail(item) else _value(item, frame)
        equal = _on_arrays(lambda n, a, b: compare.compare("equal", type, a, b), frame.length, BOOLEAN, value, found)
        result = pc.or_kleene(result, equal)
    return result


def _in_constants(value: pa.Array, type: Type, items: list[object]) -> pa.Array:
    known = pa.array([item for item in items if item is not None], type.arrow)
    found = pc.is_in(value, value_set=known)
    if len(known) < len(items):
        return pc.if_else(pc.and_(found, pc.is_valid(value)), True, pa.scalar(None, pa.bool_()))
    return pc.if_else(pc.is_valid(value), found, pa.scalar(None, pa.bool_())) if value.null_count else found


_LAZY: Final[Mapping[str, Callable[[Call, Frame], Datum]]] = {
    "and": _connective(False),
    "or": _connective(True),
    "coalesce": _coalesce,
    "in": _in,
}
