"""The value of an expression on one row, in plain Python. The oracle uses this evaluator, and so does constant folding.

The row form of a function is in its record (expr/functions). Some array forms call the row form once per distinct combination of
arguments; for such a function this evaluator is no independent check, and the tests compare with Spark or DuckDB instead.

Invariant: arguments are evaluated from left to right (a divisor before its dividend), and a function that is NULL on a
NULL argument evaluates none after the first NULL, so errors arise on exactly the rows where they arise in Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from deltic.errors import CastFailure
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
    Value,
    VariableKey,
)
from deltic.expr.python import value_of_function
from deltic.expr.registry import Function, Nulls, function_of, step_of
from deltic.expr.rows.casts import cast_value

Row = tuple[Value, ...]


class BoundRow(tuple[Value, ...]):
    """A row with the values of the parameters of the lambdas around an expression."""

    variables: Mapping[VariableKey, Value]


def applied(function: Lambda, row: Row, *values: Value) -> Value:
    """The value of a lambda for these values of its parameters; there may be more than it has."""
    inner = BoundRow(row)
    outer = row.variables if isinstance(row, BoundRow) else {}
    inner.variables = {**outer, **{one.key: value for one, value in zip(function.parameters, values, strict=False)}}
    return evaluate(function.body, inner)


def evaluate(expr: Expr, row: Row) -> Value:
    """The expression's value; raises EvaluationError as Spark's ANSI mode does."""
    match expr:
        case Column():
            return row[expr.index]
        case Literal():
            return expr.value
        case LambdaVariable():
            assert isinstance(row, BoundRow)
            return row.variables[expr.key]
        case Constants() | Lambda():
            raise AssertionError("Constants and lambdas are only arguments of calls")
        case OuterColumn():
            raise AssertionError(f"{expr.name} is a column of an enclosing query")
        case Cast():
            return _cast(expr, row)
        case Case():
            chosen = next((value for condition, value in expr.branches if evaluate(condition, row) is True), expr.otherwise)
            return evaluate(chosen, row)
        case Call():
            return _call(expr, row)
        case PythonFunction():
            return value_of_function(expr, [evaluate(argument, row) for argument in expr.arguments])
        case _:
            assert_never(expr)


def _cast(expr: Cast, row: Row) -> Value:
    value = evaluate(expr.argument, row)
    if value is None:
        return None
    try:
        return cast_value(value, expr.argument.type, expr.type, expr.span, lenient=expr.lenient)
    except CastFailure:
        if expr.lenient:
            return None
        raise


def _call(call: Call, row: Row) -> Value:
    function = function_of(call)
    value: Value
    if function.nulls is Nulls.LAZY:
        value = function.rows(call, row)
    elif function.nulls is Nulls.FOLDED:
        value = _folded(call, function, row)
    elif function.nulls is Nulls.SEEN:
        value = function.rows(call, *(evaluate(argument, row) for argument in call.arguments))
    else:
        backwards = function.nulls is Nulls.STRICT_BACKWARDS
        values: list[Value] = []
        for argument in reversed(call.arguments) if backwards else call.arguments:
            if (given := evaluate(argument, row)) is None:
                return None
            values.append(given)
        value = function.rows(call, *(reversed(values) if backwards else values))
    return value


def _folded(call: Call, function: Function, row: Row) -> Value:
    value = evaluate(call.arguments[0], row)
    for i, argument in enumerate(call.arguments[1:], 1):
        if value is None or (right := evaluate(argument, row)) is None:
            return None
        value = function.rows(step_of(call, i), value, right)
    return value
