"""Left joins of one relation with several aggregates of the same groups are one left join, with one aggregate of all their calls.

Each scalar subquery is such a join: in `x > (SELECT max(y) FROM u WHERE u.g = t.g) OR x < (SELECT min(y) FROM u WHERE u.g = t.g)`
the groups are the same, so that one has a match exactly where the other has. Joined once, the condition compares rows with one row of
their key, by which split_left_joins looks them up.

Left joins with a filter between them stay two, since each condition then looks rows up by itself: so the rule comes after
push_filters_down, and before prune_columns, which gives each aggregate an input of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from deltic.expr.nodes import Call, Column, Expr, calls_python, unwidened
from deltic.plan.columns import choose_columns, columns_of_all, named_columns, remap, substitute
from deltic.plan.nodes import Aggregate, Join, Plan, Project, Reference
from deltic.plan.streams import reads_ticks
from deltic.plan.walk import kinds, transform
from deltic.schema import Schema
from deltic.stacks import unbounded


def merge_left_joins(plan: Plan) -> Plan:
    """Merges each left join with one below it, whose right side has the same groups.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(name, Schema((Field("g", BIGINT), Field("x", BIGINT))))) for name in "tu")
    >>> g, x = Column(0, BIGINT, True, "g"), Column(1, BIGINT, True, "x")
    >>> least, most = (Aggregate(u, (("g", g),), ((name, AggregateCall(name, (x,), BIGINT, True)),)) for name in ("min", "max"))
    >>> print(show(merge_left_joins(Join(Join(t, least, "left", ((g, g),)), most, "left", ((g, g),)))))
    Join left on g#0 = g#0
      Table t (g, x)
      Project g#0, min#1, g#0, max#2
        Aggregate by g#0: min := min(x#1), max := max(x#1)
          Table u (g, x)
    """
    return transform(plan, _merge, Join)


class _Groups(NamedTuple):
    """The right side of a left join: columns of an aggregate, of which each left row matches at most one row.

    keys: of the join, each an expression over the left side, and one over the aggregate's input.
    """

    aggregate: Aggregate
    columns: tuple[tuple[str, Expr], ...]
    keys: frozenset[tuple[Expr, Expr]]


def _merge(plan: Plan) -> Plan:
    if not isinstance(plan, Join) or Reference in kinds(plan) or reads_ticks(plan):
        return plan
    groups = _groups(plan)
    return plan if groups is None else _joined_below(plan.left, groups) or plan


def _groups(join: Join) -> _Groups | None:
    """None unless it is a left join with one row of each key."""
    if join.kind != "left" or join.residual is not None or any(calls_python(key) for pair in join.keys for key in pair):
        return None
    columns: tuple[tuple[str, Expr], ...] = named_columns(join.right.schema)
    below = join.right
    while isinstance(below, Project):
        inner = [expr for _, expr in below.columns]
        columns = tuple((name, substitute(expr, inner)) for name, expr in columns)
        below = below.input
    if type(below) is not Aggregate or not below.keys or any(calls_python(expr) for _, expr in columns):
        return None
    pairs = [(left, substitute(right, [expr for _, expr in columns])) for left, right in join.keys]
    if {i for _, right in pairs for i in _determined(right)} != set(range(len(below.keys))):
        return None
    of_groups = [expr for _, expr in below.keys]
    return _Groups(below, columns, frozenset((left, substitute(right, of_groups)) for left, right in pairs))


def _determined(expr: Expr) -> Iterator[int]:
    """The columns that the value determines."""
    match unwidened(expr):
        case Column(index=index):
            yield index
        case Call(function="make_struct", arguments=fields):
            for field in fields:
                yield from _determined(field)


@unbounded
def _joined_below(plan: Plan, groups: _Groups) -> Plan | None:
    """The plan with the columns of the groups after its own; None if they are not those of a left join in it."""
    match plan:
        case Project():
            inner = [expr for _, expr in plan.columns]
            keys = frozenset((substitute(left, inner), right) for left, right in groups.keys)
            below = _joined_below(plan.input, groups._replace(keys=keys))
            if below is None:
                return None
            return Project(below, (*plan.columns, *named_columns(below.schema, range(len(plan.input.schema), len(below.schema)))))
        case Join(kind="left"):
            return _with(plan, groups) or _beside(plan, groups)
        case _:
            return None


def _with(join: Join, groups: _Groups) -> Plan | None:
    """The left join with the calls of both aggregates, if their groups are the same."""
    own = _groups(join)
    if own is None or own.aggregate.input != groups.aggregate.input or own.keys != groups.keys:
        return None
    keys = [expr for _, expr in own.aggregate.keys]
    calls = [call for _, call in own.aggregate.aggregates]
    others = [(name, call) for name, call in groups.aggregate.aggregates if call not in calls]
    both = replace(own.aggregate, aggregates=(*own.aggregate.aggregates, *others))
    calls += [call for _, call in others]
    places = [keys.index(expr) for _, expr in groups.aggregate.keys]
    places += [len(keys) + calls.index(call) for _, call in groups.aggregate.aggregates]
    added = tuple((name, remap(expr, dict(enumerate(places)), both.schema)) for name, expr in groups.columns)
    return replace(join, right=Project(both, (*own.columns, *added)))


def _beside(join: Join, groups: _Groups) -> Plan | None:
    """The groups among those left joins that its left side has."""
    width, right = len(join.left.schema), len(join.right.schema)
    if any(i >= width for i in columns_of_all(left for left, _ in groups.keys)):
        return None
    below = _joined_below(join.left, groups)
    if below is None:
        return None
    added = len(below.schema) - width
    residual = join.residual
    if residual is not None:
        both = Schema(below.schema.fields + join.right.schema.fields)
        residual = remap(residual, {i: i if i < width else i + added for i in range(width + right)}, both)
    places = (*range(width), *range(width + added, width + added + right), *range(width, width + added))
    return choose_columns(replace(join, left=below, residual=residual), places)
