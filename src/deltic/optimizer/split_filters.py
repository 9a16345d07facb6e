"""Aggregates whose FILTER compares rows with a single value read the rows on which it is TRUE through a join, which looks them up by it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from deltic.expr import case
from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.expr.nodes import Case, Expr, Literal, calls_python, children, columns_of
from deltic.optimizer.fold import fold
from deltic.plan.columns import columns_of_all, map_children, named_columns, narrowed, reference, remap
from deltic.plan.divided_joins import has_range
from deltic.plan.nodes import Aggregate, AggregateCall, Filter, FlatMap, Join, Plan, Project, Reference, Union
from deltic.plan.signs import may_be_negative
from deltic.plan.streams import is_stream
from deltic.plan.walk import kinds, transform
from deltic.schema import BIGINT, BOOLEAN, INT
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


@dataclass(frozen=True, slots=True)
class _Parted:
    """A call that reads the rows on which `condition` is TRUE. otherwise: its argument on other rows; None if it does not read them."""

    call: AggregateCall
    condition: Expr | None = None
    otherwise: Expr | None = None


def _split(plan: Plan) -> Plan:
    if type(plan) is not Aggregate or not isinstance(join := plan.input, Join) or Reference in kinds(plan) or is_stream(plan):
        return plan
    if join.kind != "inner" or join.keys or join.residual is not None or (beside := beside_a_value(join)) is None:
        return plan
    rows, places = beside
    calls = [(name, _parted(call, places, join)) for name, call in plan.aggregates]
    conditions = dict.fromkeys(each.condition for _, each in calls if each.condition is not None)
    parts = {condition: i for i, condition in enumerate(conditions, 1)}
    read = sorted(columns_of_all([*(expr for _, expr in plan.keys), *(expr for _, each in calls for expr in _of(each))]))
    joins = [_where(join, condition) for condition in parts]
    # With negative weights a group's sum of weights could be another one.
    if not any(isinstance(joined, Join) for joined in joins) or not places.keys() >= set(read) or may_be_negative(rows):
        return plan
    true = [_part(joined, read, i) for i, joined in enumerate(joins, 1)]
    replaced = {parts[each.condition] for _, each in calls if each.condition is not None and each.otherwise is not None}
    taken = [FlatMap(_part(joins[i - 1], read, -i), "repeat_row", (Literal(-1, BIGINT),), ()) for i in sorted(replaced)]
    return _over(Union((_part(rows, [places[i] for i in read], 0), *true, *taken)), plan, calls, read, parts)


def beside_a_value(join: Join) -> tuple[Plan, dict[int, int]] | None:
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


def _parted(call: AggregateCall, own: Collection[int], join: Join) -> _Parted:
    """The call by the condition that reads other columns than those of the rows, if there is one.

    One that can fail is evaluated on all rows as before, so it does so only in a join that looks rows up.
    """
    read = set(own)
    if call.filter is None and call.user is None:
        match call.arguments:
            case (Case(branches=((condition, value),), otherwise=Literal(value=None)),) if not call.definition.optional:
                call = replace(call, arguments=(value,), filter=condition)
            case (condition,) if call.function == "count_if" and not call.distinct:
                call = replace(call, function="count", arguments=(), filter=condition)
    if call.filter is not None and not columns_of(call.filter) <= read:
        stays = can_fail(call.filter) and not has_range(replace(join, residual=call.filter))
        return _Parted(call) if stays else _Parted(replace(call, filter=None), call.filter)
    tests = {test for argument in call.arguments for test in conditions_of(argument) if not columns_of(test) <= read}
    if len(call.arguments) != 1 or len(tests) != 1 or call.user is not None:
        return _Parted(call)
    ((argument,), (condition,)) = call.arguments, tests
    then, otherwise = (fold(assuming(argument, condition, holds)) for holds in (True, False))
    if can_fail(condition) or can_fail(otherwise) or calls_python(argument) or not columns_of_all([then, otherwise]) <= read:
        return _Parted(call)
    return _Parted(replace(call, arguments=(then,)), condition, otherwise)


def conditions_of(expr: Expr) -> Iterator[Expr]:
    """The conditions of CASE in an expression."""
    if isinstance(expr, Case):
        yield from (condition for condition, _ in expr.branches)
    for part in children(expr):
        yield from conditions_of(part)


def assuming(expr: Expr, condition: Expr, holds: bool) -> Expr:
    """The expression on rows on which a condition of CASE is TRUE, or on those on which it is not."""
    if isinstance(expr, Case):
        known = Literal(holds, BOOLEAN)
        expr = replace(expr, branches=tuple((known if test == condition else test, value) for test, value in expr.branches))
    return map_children(expr, lambda part: assuming(part, condition, holds))


def _of(parted: _Parted) -> Iterator[Expr]:
    """What the call evaluates on the rows of its parts."""
    yield from parted.call.arguments
    for expr in (parted.call.filter, parted.otherwise):
        if expr is not None:
            yield expr


def _where(join: Join, condition: Expr) -> Join | Filter:
    """The rows of the join on which the condition is TRUE: a join by it if it looks rows up by their order."""
    ranged = replace(join, residual=condition)
    return ranged if has_range(ranged) else Filter(join, condition)


def _part(plan: Plan, read: Sequence[int], number: int) -> Plan:
    """These columns of a plan, and the number of the part."""
    columns = named_columns(plan.schema, read)
    return Project(plan, (*columns, ("part", Literal(number, INT))))


def _over(below: Plan, plan: Aggregate, calls: Sequence[tuple[str, _Parted]], read: Sequence[int], parts: Mapping[Expr, int]) -> Aggregate:
    """The aggregate over the union of its parts. A call reads the rows of its condition's part, or those of part 0, which has all rows.

    A call with another value on the other rows reads all rows with that, less those of the condition, which are part -i, and part i.
    """
    places = {old: new for new, old in enumerate(read)}
    part = reference(below.schema, len(read))

    def moved(expr: Expr) -> Expr:
        return remap(expr, places, below.schema)

    def is_of(number: int) -> Expr:
        return resolve("equal", [part, Literal(number, INT)])

    def of_part(parted: _Parted) -> AggregateCall:
        call = parted.call
        number = 0 if parted.condition is None else parts[parted.condition]
        arguments = tuple(map(moved, call.arguments))
        own = is_of(number)
        if parted.otherwise is not None:
            own = resolve("or", [is_of(0), is_of(number), is_of(-number)])
            arguments = (case([(is_of(number), arguments[0])], moved(parted.otherwise)),)
        return replace(call, arguments=arguments, filter=own if call.filter is None else narrowed(own, moved(call.filter)))

    keys = tuple((name, moved(expr)) for name, expr in plan.keys)
    return Aggregate(below, keys, tuple((name, of_part(parted)) for name, parted in calls))
