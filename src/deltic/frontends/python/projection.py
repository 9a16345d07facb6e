"""Projections of a stream by a user's function: the columns that it picks, or calls of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from deltic.errors import CircuitError
from deltic.expr.nodes import Expr, PythonFunction
from deltic.frontends.python.functions import Picked, picked, user_function, wrapper_of
from deltic.frontends.python.schemas import Columns, schema_of
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan, Project
from deltic.schema import Schema


@dataclass(frozen=True, slots=True)
class Argument:
    """The columns of a wider row that are one argument of a function. names: those of a row; None for a value."""

    names: tuple[str, ...] | None
    positions: tuple[int, ...]

    def symbol(self, schema: Schema) -> Picked | Expr:
        return reference(schema, self.positions[0]) if self.names is None else Picked(schema, self.positions)


def projected(plan: Plan, function: Callable[..., Any], parts: Sequence[Argument], schema: Columns | None, on_batches: bool) -> Plan:
    return Project(plan, computed_columns(plan, function, parts, schema, on_batches))


def computed_columns(
    plan: Plan, function: Callable[..., Any], parts: Sequence[Argument], schema: Columns | None, on_batches: bool
) -> tuple[tuple[str, Expr], ...]:
    """(name, expression) of each column that the function returns for rows of the plan."""
    columns = None if on_batches else picked(function, [part.symbol(plan.schema) for part in parts])
    if columns is not None and schema is None:
        return named(columns)
    if schema is None:
        raise CircuitError(
            f"the function {getattr(function, '__qualname__', function)} computes values, and has no schema",
            remedy='declare its result: schema={"column": type, …}',
        )
    made = schema_of(schema)
    width = 0 if len(made) == 1 else len(made)
    called = user_function(function, [part.names for part in parts], width, on_batches=on_batches)
    arguments = tuple(reference(plan.schema, i) for part in parts for i in part.positions)
    return tuple((f.name, PythonFunction(called, arguments, i, f.type, f.nullable)) for i, f in enumerate(made))


def listed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, returning a list instead of an iterator: two results can be compared."""

    @wrapper_of("all of a group", function)
    def whole(group: Any) -> Any:
        result = function(group)
        return list(result) if isinstance(result, Iterator) else result

    return whole


def named(columns: Sequence[Expr]) -> tuple[tuple[str, Expr], ...]:
    """(name, column) of each column: its own name, or, if it has none or a duplicate, one with its position."""
    taken: dict[str, Expr] = {}
    for place, expr in enumerate(columns, 1):
        name = getattr(expr, "name", "") or f"c{place}"
        while name.lower() in (other.lower() for other in taken):
            name = f"{name}_{place}"
        taken[name] = expr
    return tuple(taken.items())
