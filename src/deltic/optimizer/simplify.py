"""Removes nodes and expressions without effect: TRUE filters, identity projections, constants, relations known to be empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deltic.expr.nodes import Column, Expr, Literal
from deltic.optimizer.fold import fold, fold_condition
from deltic.plan.nodes import (
    Aggregate,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Join,
    MultiwayJoin,
    Plan,
    Project,
    Recursion,
    Reduce,
    SetOperation,
    TopK,
    Union,
    Values,
    inputs,
    references,
    union_of,
)
from deltic.plan.streams import is_stream
from deltic.plan.walk import map_expressions, transform


def simplify(plan: Plan) -> Plan:
    """Simplifies bottom up, so that the readers of an empty relation become empty too.

    >>> from deltic.expr.nodes import TRUE
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT),))))
    >>> plan = Union((Union((Filter(t, TRUE), t)), Project(t, (("a", Column(0, BIGINT, True, "a")),))))
    >>> print(show(plan))
    Union
      Union
        Filter true
          Table t (a)
        Table t (a)
      Project a#0
        Table t (a)
    >>> print(show(simplify(plan)))
    Union
      Table t (a)
      Table t (a)
      Table t (a)
    """
    return transform(plan, _simplify)


def _simplify(plan: Plan) -> Plan:
    plan = map_expressions(plan, _fold_of(plan))
    if isinstance(plan, Join) and plan.residual is not None:
        plan = replace(plan, residual=fold_condition(plan.residual))
    if _is_surely_empty(plan) and not is_stream(plan):
        return Values((), plan.schema)
    match plan:
        case Filter(predicate=Literal(value=True)):
            return plan.input
        case Project() if _is_identity(plan):
            return plan.input
        case Union():
            return _flat(plan)
        case Distinct(input=Distinct()):
            return plan.input
        case Join(kind="anti" | "not_in") if _is_empty(plan.right):
            return plan.left
        case Recursion():
            return _read_alone(plan)
        case _:
            return plan


def _fold_of(plan: Plan) -> Callable[[Expr], Expr]:
    if isinstance(plan, Project | Aggregate | Expand | FlatMap | Reduce):
        return _folded
    return fold_condition if isinstance(plan, Filter) else fold


def _folded(expr: Expr) -> Expr:
    """The folded expression, unless its nullability changes: readers depend on the schema."""
    folded = fold(expr)
    return folded if folded.nullable == expr.nullable else expr


def _is_identity(plan: Project) -> bool:
    """Whether the projection changes at most names, which have no meaning within a plan; those of the root are restored."""
    kept = [expr.index for _, expr in plan.columns if isinstance(expr, Column)]
    return len(kept) == len(plan.columns) and kept == list(range(len(plan.input.schema)))


def _flat(plan: Union) -> Plan:
    """Without nested unions and empty inputs, unless that changes the schema.

    A union that shares an input with what is before it stays, or relations that read one another would grow exponentially.
    """
    parts: list[Plan] = []
    for part in plan.inputs:
        if isinstance(part, Union) and set(parts).isdisjoint(part.inputs):
            parts.extend(part.inputs)
        elif not _is_empty(part):
            parts.append(part)
    flat = union_of(parts)
    same = [field.nullable for field in flat.schema] == [field.nullable for field in plan.schema]
    return flat if same else plan


def _read_alone(plan: Recursion) -> Plan:
    """Without the relations that its result does not depend on; the result's body alone if it reads no relation."""
    needed, todo = {plan.result}, [plan.result]
    bodies = dict(plan.relations)
    read: set[str] = set()
    while todo:
        names = {name for name, _ in references(bodies[todo.pop()])} & bodies.keys()
        read |= names
        todo += names - needed
        needed |= names
    if not read:
        return bodies[plan.result]
    kept = tuple(relation for relation in plan.relations if relation[0] in needed)
    return replace(plan, relations=kept) if len(kept) < len(plan.relations) else plan


def _is_surely_empty(plan: Plan) -> bool:
    """Whether the node has no rows for any content of the tables."""
    match plan:
        case Values():
            return False
        case Filter(predicate=Literal(value=False | None)) | TopK(limit=0):
            return True
        case Aggregate(keys=()):
            return False
        case Join():
            left, right = _is_empty(plan.left), _is_empty(plan.right)
            return {"inner": left or right, "semi": left or right, "right": right, "full": left and right}.get(plan.kind, left)
        case MultiwayJoin():
            return any(map(_is_empty, plan.inputs))
        case SetOperation():
            return _is_empty(plan.left) or (plan.kind.startswith("intersect") and _is_empty(plan.right))
        case _:
            below = inputs(plan)
            return bool(below) and all(_is_empty(part) for part in below)


def _is_empty(plan: Plan) -> bool:
    return isinstance(plan, Values) and not plan.rows
