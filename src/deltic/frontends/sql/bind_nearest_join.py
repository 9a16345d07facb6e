"""Binds NEAREST joins: `a [LEFT] JOIN b {APPROX | EXACT} NEAREST [n] BY {DISTANCE | SIMILARITY} ranking`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from typing import Literal as OneOf

from deltic.errors import SyntaxFailure, Unsupported
from deltic.expr.functions.comparison import check_ordered
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.environment import Environment
from deltic.frontends.sql.literals import whole
from deltic.frontends.sql.scope import Scope, ScopedRelation, moved
from deltic.plan.nearest_by import MOST, nearest_join
from deltic.plan.nodes import Join

_KINDS: Final[dict[str, OneOf["inner", "left"]]] = {"": "inner", "INNER": "inner", "LEFT": "left"}


def bind_nearest_join(left: ScopedRelation, right: ScopedRelation, join: tree.JoinClause, env: Environment) -> ScopedRelation:
    """The join. join: with `nearest`."""
    node = join.nearest
    assert node is not None
    kind = _KINDS.get(join.kind)
    if kind is None or (isinstance(join.right, tree.TableCall | tree.DerivedTable) and join.right.lateral):
        what = "LATERAL" if kind is not None else f"a {join.kind} JOIN"
        raise Unsupported(f"NEAREST with {what} is not supported", span=node.span, expected="[INNER] JOIN or LEFT JOIN of a relation")
    count = 1 if node.count is None else whole(node.count, MOST)
    if not count:
        raise SyntaxFailure("invalid number of rows", span=node.span if node.count is None else node.count.span, expected=f"1 to {MOST:,}")
    columns = left.scope.columns + moved(right.scope.columns, len(left.plan.schema))
    both = Scope(columns, Join(left.plan, right.plan, "inner").schema, env.outer)
    ranking = ExpressionBinder(both, "NEAREST … BY").bind(node.ranking)
    check_ordered("NEAREST … BY", ranking.type, node.ranking.span)
    plan = env.unnest(nearest_join(left.plan, right.plan, kind, ranking, count, greatest=node.greatest, span=join.right.span))
    return ScopedRelation(plan, replace(both, schema=plan.schema, outer=None))
