"""Extracts the fields of a STRUCT once, before the filter that reads one, where expressions above the filter read some of them again.

A struct is kept as bytes in a dictionary: every expression over it decodes the structs of its rows, while an extracted field is a plain
column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from deltic.expr.nodes import Call, Column, Expr, FieldPath, Literal, children, field_path
from deltic.plan.columns import map_children, reference
from deltic.plan.nodes import Aggregate, Filter, FlatMap, Plan, Project, TemporalFilter
from deltic.plan.walk import expressions, map_expressions, transform
from deltic.schema import INT, Schema


def extract_fields(plan: Plan) -> Plan:
    """Replaces structs by the fields that are read: where nothing else of them is, and a filter below all other readers reads one.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, BOOLEAN, Field, Schema, TableSchema
    >>> from deltic.types import struct
    >>> s = struct((Field("n", BIGINT), Field("late", BOOLEAN)))
    >>> t = Table(TableSchema("t", Schema((Field("s", s), Field("a", BIGINT)))))
    >>> n, late = (Call("field", (Column(0, s, True, "s"), Literal(i, INT)), f.type, True) for i, f in enumerate(s.parts))
    >>> print(show(extract_fields(Project(Filter(t, late), (("n", n),)))))
    Project n#0
      Filter late#1
        Project n := field(s#0, 0), late := field(s#0, 1)
          Table t (s, a)
    """
    return transform(plan, _extracted)


def _extracted(plan: Plan) -> Plan:
    if not isinstance(plan, Project | Aggregate):
        return plan
    passing: list[Filter | FlatMap | TemporalFilter] = []
    below = plan.input
    while isinstance(below, Filter | FlatMap | TemporalFilter):
        passing.append(below)
        below = below.input
    if not passing or not isinstance(lowest := passing[-1], Filter):
        return plan
    reads = Counter(read for node in (plan, *passing) for expr in expressions(node) for read in _reads(expr))
    times = Counter(column for column, _ in reads.elements())
    structs = {i for i, path in _reads(lowest.predicate) if path and times[i] > 1 and not reads[i, ()]}
    if not structs:
        return plan
    width = len(below.schema)
    kept: list[FieldPath] = [(i, ()) for i in range(width) if i not in structs and times[i]]
    kept += sorted(read for read in reads if read[0] in structs)
    lower: Plan = Project(below, tuple(_column(below, i, path) for i, path in kept))
    places = {read: place for place, read in enumerate(kept)}
    for node in (*reversed(passing), plan):
        lower = map_expressions(replace(node, input=lower), partial(_placed, schema=lower.schema, places=places, width=width))
    return lower


def _read(expr: Expr) -> FieldPath | None:
    """What the expression reads, if it is a column or a field in one."""
    return (expr.index, ()) if isinstance(expr, Column) else field_path(expr)


def _reads(expr: Expr) -> Iterator[FieldPath]:
    """All that the expression reads."""
    if (read := _read(expr)) is not None:
        yield read
    else:
        for part in children(expr):
            yield from _reads(part)


def _column(below: Plan, position: int, path: tuple[int, ...]) -> tuple[str, Expr]:
    """The column of the projection for what is read."""
    expr: Expr = reference(below.schema, position)
    name = below.schema[position].name
    for field in path:
        part = expr.type.parts[field]
        name, expr = part.name, Call("field", (expr, Literal(field, INT)), part.type, True)
    return name, expr


def _placed(expr: Expr, schema: Schema, places: Mapping[FieldPath, int], width: int) -> Expr:
    """The expression over the projection. schema: that of the new input. width: of the old one; then come columns of table functions."""
    if (read := _read(expr)) is not None and read in places:
        return replace(reference(schema, places[read]), span=expr.span)
    if isinstance(expr, Column):
        return replace(expr, index=expr.index + len(places) - width)
    return map_children(expr, partial(_placed, schema=schema, places=places, width=width))
