"""Aggregates whose FILTER compares rows with a single value read the rows on which it is TRUE through a join, which looks them up by it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.expr.nodes import Case, Expr, Literal
from deltic.plan.columns import columns_of_all, named_columns, narrowed, reference, remap
from deltic.plan.nodes import Aggregate, AggregateCall, Filter, Join, Plan, Project, Reference, Union
from deltic.plan.ranges import range_of
from deltic.plan.signs import may_be_negative
from deltic.plan.streams import is_stream
from deltic.plan.walk import expressions, kinds, transform
from deltic.schema import INT
from deltic.stacks import unbounded


def split_filters(plan: Plan) -> Plan:
    """The rows of an aggregate over a join with one row are a union: all of them, and for each such FILTER those on which it is TRUE.

    When the value changes, the join passes on the rows between the old and the new value; without it, all rows were tested again.

    >>> from deltic.expr.nodes import Call, Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, BOOLEAN, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("g", BIGINT), Field("x", BIGINT)))))
    >>> g, x, top = (Column(i, BIGINT, True, name) for i, name in enumerate(("g", "x", "top")))
    >>> most = Aggregate(t, (), (("top", AggregateCall("max", (x,), BIGINT, True)),))
    >>> below = AggregateCall("count", (), BIGINT, False, filter=Call("less", (x, top), BOOLEAN, True))
    >>> print(show(split_filters(Aggregate(Join(t, most, "inner"), (("g", g),), (("n", below),)))))
    Aggregate by g#0: n := count(*) filter (where (part#1 = 1))
      Union
        Project g#0, part := 0
          Table t (g, x)
        Project g#0, part := 1
          Join inner where (x#1 < top#2)
            Table t (g, x)
            Aggregate: top := max(x#1)
              Table t (g, x)
    """
    return transform(plan, _split, Aggregate)


def _split(plan: Plan) -> Plan:
    if type(plan) is not Aggregate or not isinstance(join := plan.input, Join) or Reference in kinds(plan) or is_stream(plan):
        return plan
    if join.kind != "inner" or join.keys or join.residual is not None or (beside := _beside_a_value(join)) is None:
        return plan
    rows, places = beside
    filtered = replace(plan, aggregates=tuple((name, _filtered(call)) for name, call in plan.aggregates))
    parts = _parts(filtered, places)
    read = sorted(columns_of_all(expressions(_without(filtered, parts))))
    joins = [_where(join, condition) for condition in parts]
    # With negative weights a group's sum of weights could be another one.
    if not any(isinstance(joined, Join) for joined in joins) or not places.keys() >= set(read) or may_be_negative(rows):
        return plan
    below = Union((_part(rows, [places[i] for i in read], 0), *(_part(joined, read, i) for i, joined in enumerate(joins, 1))))
    return _over(below, filtered, read, parts)


def _beside_a_value(join: Join) -> tuple[Plan, dict[int, int]] | None:
    """The rows that are joined with a single row, and the place of each of their columns among those of the join."""
    width = len(join.left.schema)
    if _is_a_value(join.right):
        return join.left, {i: i for i in range(width)}
    return (join.right, {i: i - width for i in range(width, len(join.schema))}) if _is_a_value(join.left) else None


@unbounded
def _is_a_value(plan: Plan) -> bool:
    """Whether the relation always has exactly one row."""
    match plan:
        case Project():
            return _is_a_value(plan.input)
        case Join(kind="inner", keys=(), residual=None):
            return _is_a_value(plan.left) and _is_a_value(plan.right)
        case _:
            return isinstance(plan, Aggregate) and not plan.keys


def _filtered(call: AggregateCall) -> AggregateCall:
    """f(CASE WHEN c THEN x END) of an f that ignores NULLs as f(x) FILTER (WHERE c)."""
    if call.filter is not None or call.user is not None or call.definition.optional:
        return call
    match call.arguments:
        case (Case(branches=((condition, value),), otherwise=Literal(value=None)),):
            return replace(call, arguments=(value,), filter=condition)
        case _:
            return call


def _parts(plan: Aggregate, own: Collection[int]) -> dict[Expr, int]:
    """The filters that read other columns than those of the rows, and cannot fail, each with a number from 1 on."""
    filters = dict.fromkeys(call.filter for _, call in plan.aggregates if call.filter is not None)
    reading = [each for each in filters if not can_fail(each) and not columns_of_all([each]) <= set(own)]
    return {each: i for i, each in enumerate(reading, 1)}


def _without(plan: Aggregate, parts: Collection[Expr]) -> Aggregate:
    calls = ((name, replace(call, filter=None) if call.filter in parts else call) for name, call in plan.aggregates)
    return replace(plan, aggregates=tuple(calls))


def _where(join: Join, condition: Expr) -> Join | Filter:
    """The rows of the join on which the condition is TRUE: a join by it if it looks rows up by their order."""
    ranged = replace(join, residual=condition)
    return Filter(join, condition) if range_of(ranged) is None else ranged


def _part(plan: Plan, read: Sequence[int], number: int) -> Plan:
    """These columns of a plan, and the number of the part."""
    columns = named_columns(plan.schema, read)
    return Project(plan, (*columns, ("part", Literal(number, INT))))


def _over(below: Plan, plan: Aggregate, read: Sequence[int], parts: Mapping[Expr, int]) -> Aggregate:
    """The aggregate over the union of its parts: each call reads the rows of its filter's part, others those of part 0."""
    places = {old: new for new, old in enumerate(read)}
    part = reference(below.schema, len(read))

    def moved(expr: Expr) -> Expr:
        return remap(expr, places, below.schema)

    def of_part(call: AggregateCall) -> AggregateCall:
        number = 0 if call.filter is None else parts.get(call.filter, 0)
        condition = None if number or call.filter is None else moved(call.filter)
        is_own = resolve("equal", [part, Literal(number, INT)])
        return replace(call, arguments=tuple(map(moved, call.arguments)), filter=narrowed(is_own, condition))

    keys = tuple((name, moved(expr)) for name, expr in plan.keys)
    return Aggregate(below, keys, tuple((name, of_part(call)) for name, call in plan.aggregates))
