"""Filters of one side of a join that follow from an OR over both.

Of `(n.name = 'FRANCE' AND m.name = 'GERMANY') OR (n.name = 'GERMANY' AND m.name = 'FRANCE')`, n needs the rows with one of both names
alone, and so does m. The OR stays, since it says more. What is derived moves down with other filters, so that the joins between store
fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deltic.expr.failing import can_fail
from deltic.expr.functions.signature import flattened
from deltic.expr.nodes import Call, Expr, columns_of
from deltic.optimizer.fold import fold_condition
from deltic.optimizer.push_filters_down import FROM_ABOVE, FROM_CONDITION, sink
from deltic.plan.columns import conjunction, conjuncts, disjunction, remap
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Filter, Join, Plan
from deltic.plan.streams import is_of_ticks, reads_ticks
from deltic.plan.walk import is_much_shared, map_inputs


@once_per_node
def derive_filters(plan: Plan) -> Plan:
    """Filters the sides of joins by what follows from ORs. Plans whose state would begin again (plan/streams.py) stay as they are.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BOOLEAN, Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(name, Schema((Field("a", BOOLEAN), Field("b", BOOLEAN))))) for name in "tu")
    >>> a, b, c, d = (Column(i, BOOLEAN, True, name) for i, name in enumerate("abab"))
    >>> either = disjunction([conjunction([a, c]), conjunction([b, d])])
    >>> print(show(derive_filters(Filter(Join(t, u, "inner"), either))))
    Filter ((a#0 and a#2) or (b#1 and b#3))
      Join inner
        Filter (a#0 or b#1)
          Table t (a, b)
        Filter (a#0 or b#1)
          Table u (a, b)
    """
    if is_of_ticks(plan):
        return plan
    plan = map_inputs(plan, derive_filters)
    if reads_ticks(plan):
        return plan
    match plan:
        case Filter(input=Join() as join):
            derived = _derived(join, conjuncts(plan.predicate), FROM_ABOVE[join.kind])
            return plan if derived is join else Filter(derived, plan.predicate)
        case Join() if plan.residual is not None:
            return _derived(plan, conjuncts(plan.residual), FROM_CONDITION[plan.kind])
        case _:
            return plan


def _derived(join: Join, parts: Sequence[Expr], sides: Sequence[str]) -> Join:
    """The join with filtered sides; the same object if they have these filters. A side that many read in parts is not copied for it."""
    width, whole = len(join.left.schema), len(join.left.schema) + len(join.right.schema)
    left, right = join.left, join.right
    if "left" in sides and (implied := list(_implied(parts, range(width)))) and not is_much_shared(left):
        left = sink(left, [remap(each, {i: i for i in range(width)}, left.schema) for each in implied])
    if "right" in sides and (implied := list(_implied(parts, range(width, whole)))) and not is_much_shared(right):
        right = sink(right, [remap(each, {i: i - width for i in range(width, whole)}, right.schema) for each in implied])
    return join if left == join.left and right == join.right else replace(join, left=left, right=right)


def _implied(parts: Sequence[Expr], columns: range) -> Iterator[Expr]:
    """What follows from the ORs among the conditions about rows with these columns alone."""
    for part in parts:
        if not (isinstance(part, Call) and part.function == "or") or all(i in columns for i in columns_of(part)):
            continue
        branches = [[each for each in conjuncts(branch) if _is_about(each, columns)] for branch in flattened("or", part.arguments)]
        if all(branches):
            yield fold_condition(disjunction([conjunction(dict.fromkeys(branch)) for branch in branches], part.span))


def _is_about(expr: Expr, columns: range) -> bool:
    read = columns_of(expr)
    return bool(read) and not can_fail(expr) and all(i in columns for i in read)
