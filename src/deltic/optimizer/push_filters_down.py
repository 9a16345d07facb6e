"""Moves filters towards the tables, and turns equalities over a join into its keys.

A predicate is split at its ANDs. A part that can fail stays after everything that it came after. Other parts move through projections whose
expressions they read are cheap, through table functions whose elements they do not read, through temporal filters and unions, to the side
of a join that they read, and through DISTINCT, set operations and the keys of aggregates. The last three change -0.0 to 0.0, so only parts
that do not distinguish the two pass. A condition of a join's ON on one side moves into that side if the kind of join allows it.
Filters do not move into a recursion, whose other rows may depend on the filtered ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Column, Expr, columns_of
from deltic.plan.columns import columns_of_all, conjunction, conjuncts, remap, substitute
from deltic.plan.nodes import (
    Aggregate,
    ByWatermark,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Join,
    JoinKind,
    Plan,
    Project,
    SetOperation,
    TemporalFilter,
    Union,
    Window,
    inputs,
)
from deltic.plan.traits import ignores_sign_of_zero, is_cheap
from deltic.plan.walk import is_much_shared, map_inputs, nodes, transform
from deltic.schema import Schema
from deltic.stacks import unbounded

# The sides that a filter above the join may move to, and those that a condition in its ON may move to.
FROM_ABOVE: Final[dict[JoinKind, tuple[str, ...]]] = {
    "inner": ("left", "right"),
    "left": ("left",),
    "right": ("right",),
    "full": (),
    "semi": ("left",),
    "anti": ("left",),
    "not_in": ("left",),
}
FROM_CONDITION: Final[dict[JoinKind, tuple[str, ...]]] = {
    "inner": ("left", "right"),
    "left": ("right",),
    "right": ("left",),
    "full": (),
    "semi": ("left", "right"),
    "anti": ("right",),
    "not_in": ("right",),
}
NONE: Final[frozenset[Plan]] = frozenset()


def push_filters_down(plan: Plan) -> Plan:
    """Moves every filter as far down as possible. The residual of an inner join counts as a filter above it.

    >>> from deltic.plan.show import show
    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.schema import BIGINT, BOOLEAN, Field, TableSchema
    >>> t, u = (Table(TableSchema(n, Schema((Field("a", BIGINT), Field("ok", BOOLEAN))))) for n in "tu")
    >>> a, ok, b = Column(0, BIGINT, True, "a"), Column(1, BOOLEAN, True, "ok"), Column(2, BIGINT, True, "a")
    >>> plan = Filter(Join(t, u, "inner"), conjunction([Call("equal", (a, b), BOOLEAN, True), ok]))
    >>> print(show(plan))
    Filter ((a#0 = a#2) and ok#1)
      Join inner
        Table t (a, ok)
        Table u (a, ok)
    >>> print(show(push_filters_down(plan)))
    Join inner on a#0 = a#0
      Filter ok#1
        Table t (a, ok)
      Table u (a, ok)
    """
    return _push_above_shared(plan) if is_much_shared(plan) else transform(plan, _push)


def _push(plan: Plan, shared: AbstractSet[Plan] = NONE) -> Plan:
    match plan:
        case Filter():
            return sink(plan.input, conjuncts(plan.predicate), shared)
        case Join() if plan.residual is not None:
            return _without_residual(plan, shared) if plan.kind == "inner" else _split_condition(plan, shared)
        case _:
            return plan


def _push_above_shared(plan: Plan) -> Plan:
    """Moves no filter into a node that others read, too: with filters of its own, each of them would get a copy of all below it."""
    readers = Counter(below for node in nodes(plan) for below in inputs(node))
    done: dict[Plan, Plan] = {}
    shared: set[Plan] = set()
    for node in nodes(plan):
        done[node] = _push(map_inputs(node, done.__getitem__), shared)
        if readers[node] > 1:
            shared.add(done[node])
    return done[plan]


@unbounded
def sink(plan: Plan, parts: Sequence[Expr], shared: AbstractSet[Plan] = NONE) -> Plan:
    """The rows of `plan` on which all `parts`, evaluated in this order, are TRUE, with each part as far down as possible.

    shared: nodes into which none moves.
    """
    if not parts:
        return plan
    if plan in shared:
        return _filter(plan, parts)
    below: Plan
    match plan:
        case Filter():
            return _sink_filter(plan, parts, shared)
        case Project():
            exprs = [expr for _, expr in plan.columns]
            moving, staying = _split(parts, lambda part: all(is_cheap(exprs[i]) for i in columns_of(part)))
            below = replace(plan, input=sink(plan.input, [substitute(part, exprs) for part in moving], shared))
        case Join():
            below, staying = _sink_join(plan, parts, shared)
        case Expand() | FlatMap():
            width = len(plan.input.schema)
            moving, staying = _split(parts, lambda part: all(i < width for i in columns_of(part)))
            below = replace(plan, input=sink(plan.input, moving, shared))
        case TemporalFilter():
            moving, staying = _split(parts, lambda _: True)
            below = replace(plan, input=sink(plan.input, moving, shared))
        case ByWatermark():
            moving, staying = _split(parts, lambda part: not can_fail(part))
            below = replace(plan, input=sink(plan.input, moving, shared))
        case Aggregate() if plan.keys:
            exprs = [expr for _, expr in plan.keys]
            moving, staying = _split(parts, lambda part: _reads_keys(part, exprs))
            below = replace(plan, input=sink(plan.input, [substitute(part, exprs) for part in moving], shared))
        case Window():
            whole = {key.index for key in plan.keys if isinstance(key, Column)}
            moving, staying = _split(parts, lambda part: ignores_sign_of_zero(part) and columns_of(part) <= whole)
            below = replace(plan, input=sink(plan.input, moving, shared))
        case Distinct():
            moving, staying = _split(parts, ignores_sign_of_zero)
            below = Distinct(sink(plan.input, moving, shared))
        case Union():
            moving, staying = _split(parts, lambda _: True)
            below = Union(tuple(sink(part, _moved(moving, part.schema), shared) for part in plan.inputs))
        case SetOperation():
            moving, staying = _split(parts, ignores_sign_of_zero)
            left, right = (sink(side, _moved(moving, side.schema), shared) for side in (plan.left, plan.right))
            below = replace(plan, left=left, right=right)
        case _:
            below, staying = plan, list(parts)
    return _filter(below, staying)


def _sink_filter(plan: Filter, parts: Sequence[Expr], shared: AbstractSet[Plan]) -> Plan:
    """Merges filters. AND evaluates a part even if the one before is NULL, so a part that can fail may keep a separate filter."""
    own = conjuncts(plan.predicate)
    others = [part for part in parts if can_fail(part) or part not in own]
    moving, staying = _split(others, lambda _: True)
    if not plan.predicate.nullable:
        moving, staying = others, []
    return _filter(sink(plan.input, [*own, *moving], shared), staying)


def _sink_join(plan: Join, parts: Sequence[Expr], shared: AbstractSet[Plan]) -> tuple[Plan, list[Expr]]:
    """Moves parts to the sides, then to the keys; the others stay above."""
    return _into_join(plan, parts, FROM_ABOVE[plan.kind], plan.kind == "inner", shared)


def _without_residual(plan: Join, shared: AbstractSet[Plan]) -> Plan:
    assert plan.residual is not None
    return sink(replace(plan, residual=None), conjuncts(plan.residual), shared)


def _split_condition(plan: Join, shared: AbstractSet[Plan]) -> Join:
    """Moves the one-sided conditions and the equalities of an outer, semi or anti join's ON out of the residual."""
    assert plan.residual is not None
    below, rest = _into_join(plan, conjuncts(plan.residual), FROM_CONDITION[plan.kind], True, shared)
    return replace(below, residual=conjunction(rest) if rest else None)


def _into_join(
    plan: Join, parts: Sequence[Expr], sides: Collection[str], keyed: bool, shared: AbstractSet[Plan]
) -> tuple[Join, list[Expr]]:
    """(the join with parts on those of its `sides` that they read alone, and among its keys if `keyed`; the other parts)."""
    width = len(plan.left.schema)
    to_left, rest = _split(parts, lambda part: "left" in sides and all(i < width for i in columns_of(part)))
    to_right, rest = _split(rest, lambda part: "right" in sides and all(i >= width for i in columns_of(part)))
    equalities, rest = _split(rest, lambda part: keyed and _is_key(part, width))
    back = {width + i: i for i in range(len(plan.right.schema))}
    same = {i: i for i in range(width)}
    keys = dict.fromkeys(plan.keys)
    for equality in equalities:
        assert isinstance(equality, Call)
        one, other = sorted(equality.arguments, key=lambda side: min(columns_of(side)))
        keys.setdefault((remap(one, same, plan.left.schema), remap(other, back, plan.right.schema)))
    left = sink(plan.left, [remap(part, same, plan.left.schema) for part in to_left], shared)
    right = sink(plan.right, [remap(part, back, plan.right.schema) for part in to_right], shared)
    return replace(plan, left=left, right=right, keys=tuple(keys)), rest


def _is_key(part: Expr, width: int) -> bool:
    """Whether the part is an equality of an expression over the left with one over the right."""
    if not (isinstance(part, Call) and part.function == "equal"):
        return False
    one, other = part.arguments
    sides = [{i < width for i in columns_of(side)} for side in (one, other)]
    return one.type == other.type and sides in ([{True}, {False}], [{False}, {True}])


def _reads_keys(part: Expr, keys: Sequence[Expr]) -> bool:
    return ignores_sign_of_zero(part) and all(i < len(keys) and is_cheap(keys[i]) for i in columns_of(part))


def _split(parts: Sequence[Expr], may_move: Callable[[Expr], bool]) -> tuple[list[Expr], list[Expr]]:
    """(the parts that may move and cannot fail, the others), both in the given order."""
    moving = [part for part in parts if not can_fail(part) and may_move(part)]
    moved = frozenset(moving)
    return moving, [part for part in parts if part not in moved]


def _moved(parts: Sequence[Expr], schema: Schema) -> list[Expr]:
    """The parts over an input with the same columns, which may differ in nullability."""
    same = {i: i for i in columns_of_all(parts)}
    return [remap(part, same, schema) for part in parts]


def _filter(plan: Plan, parts: Sequence[Expr]) -> Plan:
    return Filter(plan, conjunction(parts)) if parts else plan
