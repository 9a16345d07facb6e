"""Table functions of users as plans: a function of a row gives an iterable of rows; one on batches gives a record batch (see `Stream`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from deltic.errors import CircuitError, EvaluationError
from deltic.expr.table_functions import ROW
from deltic.frontends.python.functions import checked_function, user_function, wrapper_of
from deltic.plan.nodes import Generate, Plan
from deltic.purity import name_of, shown
from deltic.schema import Schema


def generated(plan: Plan, function: Callable[..., Any], made: Schema, *, weighted: bool = False, on_batches: bool = False) -> Plan:
    """The rows, of schema `made`, that the function gives for each row of the plan. weighted: the last column is their weight.

    Raises CircuitError if it is not a function of one argument, or if a column has a name that has a meaning on batches.
    """
    checked_function(function, "batch" if on_batches else "row")
    if on_batches and (repeated := [name for name in (*made.names, ROW) if (*made.names, ROW).count(name) > 1]):
        raise CircuitError(f"a column is named {repeated[0]}, which has a meaning in a function on batches", remedy="rename the column")
    width = 0 if len(made) == 1 else len(made)
    called = user_function(function if on_batches else _rows(function), (plan.schema.names,), width, on_batches=on_batches)
    return Generate(plan, called, made, weighted)


def _rows(function: Callable[..., Iterable[Any]]) -> Callable[..., Any]:
    """The function, returning its rows as a tuple: two results can be compared."""

    @wrapper_of("rows", function)
    def rows(row: Any) -> tuple[Any, ...]:
        given = function(row)
        if not isinstance(given, Iterable):
            raise EvaluationError(f"the function {name_of(function)} returned {shown(given)}", expected="an iterable of rows")
        return tuple(given)

    return rows
