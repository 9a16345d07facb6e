"""UNION BY NAME: columns are matched by their names; one that a side lacks is NULL there."""

from __future__ import annotations

from collections.abc import Sequence

from deltic.errors import AmbiguousName, Span, TypeMismatch
from deltic.expr import Expr, Literal, cast
from deltic.expr.typing import common_type
from deltic.frontends.sql import tree
from deltic.plan.columns import reference
from deltic.plan.nodes import Plan, Project
from deltic.schema import Type


def by_name(plans: Sequence[Plan], node: tree.SetQuery) -> list[Plan]:
    """The sides with the same columns in the same order: those of the first, then those that a later side adds.

    Raises AmbiguousName for a name that a side has twice, and TypeMismatch for columns of one name without a common type.
    """
    names: dict[str, str] = {}
    for plan, part in zip(plans, node.parts, strict=True):
        own = [name.lower() for name in plan.schema.names]
        if twice := next((name for name in own if own.count(name) > 1), None):
            raise AmbiguousName(f"a side of UNION BY NAME has two columns {twice!r}", span=part.span, remedy="give one another name")
        for name in plan.schema.names:
            names.setdefault(name.lower(), name)
    types = {name: _type(name, plans, node) for name in names}
    return [_aligned(plan, names, types, part.span) for plan, part in zip(plans, node.parts, strict=True)]


def _type(name: str, plans: Sequence[Plan], node: tree.SetQuery) -> Type:
    matching = [field.type for plan in plans for field in plan.schema if field.name.lower() == name]
    type = common_type(matching)
    if type is None:
        sides = " and ".join(dict.fromkeys(each.sql for each in matching))
        raise TypeMismatch(f"column {name!r} of UNION BY NAME has no common type", span=node.span, expected=f"one type, found {sides}")
    return type


def _aligned(plan: Plan, names: dict[str, str], types: dict[str, Type], span: Span) -> Plan:
    own = {name.lower(): i for i, name in enumerate(plan.schema.names)}
    columns: list[tuple[str, Expr]] = []
    for folded, name in names.items():
        if folded in own:
            columns.append((name, cast(reference(plan.schema, own[folded]), types[folded], span)))
        else:
            columns.append((name, Literal(None, types[folded])))
    return Project(plan, tuple(columns))
