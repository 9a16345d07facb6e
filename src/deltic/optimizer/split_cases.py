"""Columns that are one of two values, by how a row compares with a value of all rows or of its key, are a union of both kinds of rows.

In `CASE WHEN x > (SELECT avg(x) FROM t) THEN 'above' ELSE 'below' END` a change of the average changes the rows between the old and the
new one. Each part of the union looks its rows up by the average; a projection of all rows computed all of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.expr.failing import can_fail
from deltic.expr.functions import resolve
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import WIDENED, Call, Expr, calls_python, columns_of
from deltic.optimizer.fold import fold, fold_condition
from deltic.optimizer.split_filters import assuming, beside_a_value, conditions_of
from deltic.plan.columns import columns_of_all, named_columns, reference, remap
from deltic.plan.divided_joins import has_range
from deltic.plan.nodes import Aggregate, Filter, Join, Plan, Project, Reference, Union
from deltic.plan.outside_ranges import has_value
from deltic.plan.streams import is_of_ticks, is_stream
from deltic.plan.walk import expressions, kinds, map_expressions, transform


def split_cases(plan: Plan) -> Plan:
    """Splits the projections, and the keys of aggregates, that read such a value in the condition of a CASE alone.

    >>> from deltic.expr import case
    >>> from deltic.expr.nodes import Column, Literal
    >>> from deltic.plan.nodes import AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("x", BIGINT, False),))))
    >>> x, top = Column(0, BIGINT, False, "x"), Column(1, BIGINT, True, "top")
    >>> most = Aggregate(t, (), (("top", AggregateCall("max", (x,), BIGINT, True)),))
    >>> label = case([(resolve("<", [x, top]), Literal(1, BIGINT))], Literal(2, BIGINT))
    >>> print(show(split_cases(Project(Join(t, most, "inner"), (("x", x), ("label", label))))))
    Union
      Project x#0, label := 1
        Filter (x#0 < top#1)
          [1] Join inner
            Table t (x)
            Aggregate: top := max(x#0)
              Table t (x)
      Project x#0, label := 2
        Filter (is_null(top#1) or (x#0 >= top#1))
          Reused [1]
    """
    if is_of_ticks(plan) or Join not in kinds(plan) or Reference in kinds(plan):
        return plan
    return transform(plan, _split, Join)


def _split(plan: Plan) -> Plan:
    match plan:
        case Project(input=Join() as join):
            return _in_parts(plan, join) or plan
        case Aggregate(input=Join() as join) if type(plan) is Aggregate and any(any(conditions_of(expr)) for _, expr in plan.keys):
            read = sorted(columns_of_all(expressions(replace(plan, keys=()))))
            parts = _in_parts(Project(join, (*plan.keys, *named_columns(join.schema, read))), join)
            return plan if parts is None else _over(parts, plan, read)
        case _:
            return plan


def _in_parts(plan: Project, join: Join) -> Plan | None:
    """The rows on which the one condition is TRUE, and the others; None unless both look rows up by the value that it reads."""
    own = _own(join)
    columns = [expr for _, expr in plan.columns]
    tests = dict.fromkeys(test for expr in columns for test in conditions_of(expr) if own is not None and not columns_of(test) <= own)
    if own is None or len(tests) != 1 or is_stream(join) or any(map(calls_python, columns)):
        return None
    (condition,) = tests
    if can_fail(condition):
        return None
    other = fold_condition(resolve("not", [resolve("is_true", [condition]) if condition.nullable else condition]))
    parts = []
    for holds, where in ((True, condition), (False, other)):
        values = [_as_wide(fold(assuming(expr, condition, holds)), expr) for expr in columns]
        if not columns_of_all(values) <= own or not has_range(replace(join, kind="inner", residual=where)) or _is_of_most(where, own):
            return None
        parts.append(Project(Filter(join, where), tuple((name, value) for (name, _), value in zip(plan.columns, values, strict=True))))
    return Union(tuple(parts))


def _is_of_most(condition: Expr, own: frozenset[int]) -> bool:
    """Whether a negation of the row's own columns decides it: the rows for which `x <> 1`, most as a rule, are listed at each change."""
    parts = flattened("or", (condition,))
    return any(isinstance(part, Call) and part.function in ("not_equal", "not") and columns_of(part) <= own for part in parts)


def _own(join: Join) -> frozenset[int] | None:
    """The columns of the rows that are joined with a value of all of them, or of their key; None for other joins."""
    width = len(join.left.schema)
    if join.residual is not None or join.kind not in ("inner", "left"):
        return None
    if join.keys:
        if has_value(join, left=False):
            return frozenset(range(width))
        return frozenset(range(width, len(join.schema))) if join.kind == "inner" and has_value(join, left=True) else None
    beside = beside_a_value(join) if join.kind == "inner" else None
    return None if beside is None else frozenset(beside[1])


def _as_wide(expr: Expr, written: Expr) -> Expr:
    """The expression with the nullability of the written one, which readers depend on."""
    return resolve(WIDENED, [expr]) if written.nullable and not expr.nullable else expr


def _over(parts: Plan, plan: Aggregate, read: Sequence[int]) -> Aggregate:
    """The aggregate over columns that are its keys, and then those that its calls read."""
    places = {old: new for new, old in enumerate(read, len(plan.keys))}
    calls = map_expressions(replace(plan, input=parts, keys=()), lambda expr: remap(expr, places, parts.schema))
    assert isinstance(calls, Aggregate)
    return replace(calls, keys=tuple((name, reference(parts.schema, i)) for i, (name, _) in enumerate(plan.keys)))
