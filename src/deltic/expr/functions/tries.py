"""Arithmetic that is NULL where the operator of its name fails: TRY_ADD and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from deltic.errors import EvaluationError, Span, TypeMismatch
from deltic.expr.arrays.datum import Datum
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.failing import can_fail
from deltic.expr.functions import intervals, times
from deltic.expr.functions.attempts import attempt
from deltic.expr.functions.operators import FUNCTIONS as OPERATORS
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Call, Expr
from deltic.expr.registry import Function, Nulls, Signature, Typed
from deltic.schema import NULL

_OPERATORS: Final = {record.name: record for record in OPERATORS if isinstance(record, Function)}


_INTERVALS: Final = {record.name: record for record in (*intervals.FUNCTIONS, *times.OPERATORS)}
_ON_INTERVALS: Final = ("add_intervals", "subtract_intervals", "multiply_interval", "divide_interval", "add_to_time", "subtract_from_time")
_NEVER_FAILS: Final = "times_between"


def _signature(operator: Function) -> Signature:
    def rule(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed | Expr:
        check_count(name, arguments, 2, 2, span)
        if any(argument.type.is_interval or argument.type.is_time for argument in arguments):
            return _of_intervals(name, operator.signature(name, arguments, span), span)
        for argument in arguments:
            if not (argument.type.is_numeric or argument.type == NULL):
                sql = argument.type.sql
                raise TypeMismatch(f"{name} does not accept {sql}", span=argument.span or span, expected="numbers", remedy="try_cast it")
        typed = operator.signature(name, arguments, span)
        assert isinstance(typed, Typed)
        if len(typed.arguments) > 2:  # a sum on the left has become part of this one, though its own errors stay errors
            typed = typed._replace(arguments=(arguments[0], typed.arguments[-1]))
        return typed._replace(nullable=True)

    return rule


def _of_intervals(name: str, expr: Typed | Expr, span: Span | None) -> Expr:
    """The call of an operator on intervals, tried. A date is refused: after the year 9999 Spark has a date, and no NULL."""
    if isinstance(expr, Call) and expr.function == _NEVER_FAILS:
        return expr
    if not isinstance(expr, Call) or expr.function not in _ON_INTERVALS:
        raise TypeMismatch(f"{name} does not accept a date or time", span=span, expected="numbers, or INTERVALs", remedy="use the operator")
    arguments = tuple(attempt(each) if can_fail(each) else each for each in expr.arguments)  # whose errors are NULL in Spark, too
    return replace(expr, function=f"try_{expr.function}", arguments=arguments, nullable=True)


def try_function(name: str, operator: str) -> Function:
    """The operator's function, but NULL instead of its error; the errors of its arguments stay."""
    record = _OPERATORS[operator]
    return _tried(name, record, _signature(record))


def _tried(name: str, record: Function, signature: Signature, *, named: bool = True) -> Function:
    operator = record.name

    def rows(call: Call, *values: Any) -> Any:
        try:
            return record.rows(replace(call, function=operator), *values)
        except EvaluationError:
            return None

    def arrays(call: Call, length: int, *columns: Datum) -> Datum:
        try:
            result: Datum = record.arrays(replace(call, function=operator), length, *columns)
        except EvaluationError:
            return per_distinct(call, length, *columns)
        return result

    nulls = Nulls.STRICT if record.nulls is Nulls.FOLDED else record.nulls
    return Function(name=name, named=named, signature=signature, nulls=nulls, can_fail=False, rows=rows, arrays=arrays)


FUNCTIONS: Final = (
    try_function("try_add", "add"),
    try_function("try_subtract", "subtract"),
    try_function("try_multiply", "multiply"),
    try_function("try_divide", "divide"),
    try_function("try_mod", "remainder"),
    *(_tried(f"try_{name}", _INTERVALS[name], _INTERVALS[name].signature, named=False) for name in _ON_INTERVALS),
)
