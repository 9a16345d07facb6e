"""Finds the intervals that contain the points of a stream by an equality of cells, where a join has no other key.

Windows that are a relation are such intervals. Without a key all rows of both sides would be joined with one another, on the home shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Expr, columns_of
from deltic.plan.columns import conjuncts, reference, remap, shift
from deltic.plan.monotone import HIGHER, LOWER
from deltic.plan.nodes import Filter, FlatMap, Join, Plan, Project
from deltic.plan.streams import is_stream
from deltic.plan.table_function_nodes import has_cells
from deltic.plan.walk import transform

CELL = "cell"


class Containment(NamedTuple):
    """low ≤ point ≤ high, perhaps without equality. point: over one side of a join; low and high: over the other, at its positions."""

    point: Expr
    low: Expr
    high: Expr


def join_by_cells(plan: Plan) -> Plan:
    """Joins a stream with intervals of a relation by the cells of both (expr/rows/cells.py): an interval has one or two, a point 31.

    Only where the points are a stream's, since those of a relation would be stored as often as they have cells.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.expr.nodes import Column
    >>> from deltic.schema import BIGINT, BOOLEAN, Field, Schema, StreamSchema, TableSchema
    >>> windows = Table(TableSchema("windows", Schema((Field("low", BIGINT), Field("high", BIGINT)))))
    >>> points = Table(StreamSchema("points", Schema((Field("at", BIGINT),))))
    >>> low, high, at = (Column(i, BIGINT, True, name) for i, name in enumerate(("low", "high", "at")))
    >>> conditions = Call("less_equal", (low, at), BOOLEAN, True), Call("less", (at, high), BOOLEAN, True)
    >>> print(show(join_by_cells(Filter(Join(windows, points, "inner"), Call("and", conditions, BOOLEAN, True)))))
    Project low#0, high#1, at#3
      Filter ((low#0 <= at#3) and (at#3 < high#1))
        Join inner on cell#2 = cell#1
          FlatMap cell := cells(low#0, high#1)
            Table windows (low, high)
          FlatMap cell := cells(at#0)
            Stream points (at)
    """
    return transform(plan, _by_cells)


def _by_cells(plan: Plan) -> Plan:
    join = plan.input if isinstance(plan, Filter) else plan
    if not isinstance(join, Join) or join.kind != "inner" or join.keys or join.hint is not None:
        return plan
    if is_stream(join.left) == is_stream(join.right):
        return plan
    predicates = [plan.predicate] if isinstance(plan, Filter) else [] if join.residual is None else [join.residual]
    parts = [part for predicate in predicates for part in conjuncts(predicate)]
    contained = next(_containments(parts, len(join.left.schema), is_stream(join.left)), None)
    return plan if contained is None else _joined(plan, join, contained)


def _containments(parts: Sequence[Expr], width: int, points_left: bool) -> Iterator[Containment]:
    """Those that the conditions state. width: of the left side. points_left: whether the points are the left side's."""
    ordered = [pair for part in parts if (pair := _ordered(part)) is not None]
    for low, point in ordered:
        for same, high in ordered:
            exprs = point, low, high
            if same != point or not has_cells(point.type) or any(map(can_fail, exprs)):
                continue
            sides = [{i < width for i in columns_of(expr)} for expr in exprs]
            if sides == [{points_left}, {not points_left}, {not points_left}]:
                yield Containment(*(expr if side == {True} else shift(expr, -width) for expr, side in zip(exprs, sides, strict=True)))


def _ordered(expr: Expr) -> tuple[Expr, Expr] | None:
    """(the lesser, the greater) of a comparison."""
    match expr:
        case Call(function=function, arguments=(left, right)) if function in LOWER:
            return left, right
        case Call(function=function, arguments=(left, right)) if function in HIGHER:
            return right, left
    return None


def _joined(plan: Plan, join: Join, contained: Containment) -> Plan:
    points, intervals = (contained.point,), (contained.low, contained.high)
    of_left, of_right = (points, intervals) if is_stream(join.left) else (intervals, points)
    left, right = FlatMap(join.left, "cells", of_left, (CELL,)), FlatMap(join.right, "cells", of_right, (CELL,))
    width, ending = len(join.left.schema), len(left.schema) + len(join.right.schema)
    keyed = replace(join, left=left, right=right, keys=((reference(left.schema, width), reference(right.schema, ending - width - 1)),))
    places = {i: i if i < width else i + 1 for i in range(len(join.schema))}
    schema = keyed.schema
    if join.residual is not None:
        keyed = replace(keyed, residual=remap(join.residual, places, schema))
    below: Plan = Filter(keyed, remap(plan.predicate, places, schema)) if isinstance(plan, Filter) else keyed
    return Project(below, tuple((schema[i].name, reference(schema, i)) for i in places.values()))
