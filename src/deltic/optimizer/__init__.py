"""Plan to plan: rewrites that keep what a plan denotes and make it cheaper to maintain.

A rule is a function from a plan to a plan, in a file of its own, named by its verb; `optimize` applies RULES in turn until a whole
round changes nothing. Laws, all of them tested on random plans:
- the relation is the same, and so are the schema's types, nullability and (at the root) names;
- nothing fails that the written plan would not have failed on: no expression that can fail (expr/failing.py) moves ahead of the
  filter or join that guards it. What is not needed may be dropped, and its failures with it.
When plans have settled, joins are formed into multiway joins, of what by then are their keys, and plans settle again.
Linear aggregates move below joins in lowering, which knows what a weight can carry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from deltic.optimizer.drop_distinct import drop_distinct
from deltic.optimizer.form_multiway_joins import form_multiway_joins
from deltic.optimizer.merge_projections import merge_projections
from deltic.optimizer.prune_columns import prune_columns
from deltic.optimizer.push_filters_down import push_filters_down
from deltic.optimizer.push_time_down import push_time_down
from deltic.optimizer.simplify import simplify
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan, Project
from deltic.schema import Type

Rule = Callable[[Plan], Plan]

RULES: Final[tuple[Rule, ...]] = (simplify, merge_projections, push_filters_down, push_time_down, drop_distinct, prune_columns)
ROUNDS: Final = 20  # each rule only moves down or removes; plans settle in a few rounds

__all__ = ["ROUNDS", "RULES", "optimize"]


def optimize(plan: Plan) -> Plan:
    """The same relation under the same schema, in as few and as narrow nodes as RULES get it to."""
    settled = _settled(plan)
    while (formed := _applied(form_multiway_joins, settled)) != settled:
        settled = _settled(formed)
    return _named(settled, plan.schema.names)


def _settled(plan: Plan) -> Plan:
    for _ in range(ROUNDS):
        before = plan
        for rule in RULES:
            plan = _applied(rule, plan)
        if plan == before:
            break
    return plan


def _applied(rule: Rule, plan: Plan) -> Plan:
    after = rule(plan)
    assert _columns(after) == _columns(plan), rule.__name__
    return after


def _columns(plan: Plan) -> list[tuple[Type, bool]]:
    return [(field.type, field.nullable) for field in plan.schema]


def _named(plan: Plan, names: tuple[str, ...]) -> Plan:
    """Inside a plan names mean nothing, so rules may lose them; the root has those that were asked for."""
    if plan.schema.names == names:
        return plan
    if isinstance(plan, Project):
        return replace(plan, columns=tuple((name, expr) for name, (_, expr) in zip(names, plan.columns, strict=True)))
    return Project(plan, tuple((name, reference(plan.schema, i)) for i, name in enumerate(names)))
