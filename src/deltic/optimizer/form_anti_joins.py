"""Outer joins of which a filter keeps the rows without a match alone become anti joins.

`t LEFT JOIN u ON … WHERE u.k IS NULL` has these rows if k is NULL in no match: it is NOT NULL in u, or the condition is not TRUE of a NULL.
An anti join keeps no matches, and looks up by a range the extreme alone, where the outer join has as many rows as there are pairs.
"""

from __future__ import annotations

from collections.abc import Mapping

from deltic.expr.functions import resolve
from deltic.expr.nodes import WIDENED, Call, Column, Expr, Literal
from deltic.optimizer.rejected_nulls import NONE, nulls_passed, nulls_rejected, union
from deltic.plan.columns import conjuncts, reference, remap
from deltic.plan.nodes import Filter, Join, Plan, Project, Reference
from deltic.plan.streams import is_stream
from deltic.plan.walk import kinds, transform
from deltic.schema import Schema


def form_anti_joins(plan: Plan) -> Plan:
    """Converts every outer join whose matches a filter drops.

    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("a", BIGINT), Field("b", BIGINT)))))
    >>> a, b = Column(0, BIGINT, True, "a"), Column(2, BIGINT, True, "a")
    >>> print(show(form_anti_joins(Filter(Join(t, t, "left", ((a, a),)), resolve("is_null", [b])))))
    Filter is_null(a#2)
      Project a#0, b#1, a := null, b := null
        Join anti on a#0 = a#0
          Table t (a, b)
          Table t (a, b)
    """
    return transform(plan, _formed, Filter)


def _formed(plan: Plan) -> Plan:
    if not isinstance(plan, Filter) or not isinstance(join := plan.input, Join) or join.kind not in ("left", "right", "full"):
        return plan
    if Reference in kinds(join) or is_stream(join.left) or is_stream(join.right):
        return plan
    tested = {part.arguments[0] for part in conjuncts(plan.predicate) if isinstance(part, Call) and part.function == "is_null"}
    missing = {expr.index for expr in tested if isinstance(expr, Column)} & _never_null(join)
    width = len(join.left.schema)
    if join.kind != "right" and any(i >= width for i in missing):
        return Filter(_padded(_anti(join, join.left, join.right, {i: i for i in range(len(join.schema))}), join, 0), plan.predicate)
    if join.kind != "left" and any(i < width for i in missing):
        others = len(join.right.schema)
        turned = {i: i + others for i in range(width)} | {width + i: i for i in range(others)}
        return Filter(_padded(_anti(join, join.right, join.left, turned), join, width), plan.predicate)
    return plan


def _never_null(join: Join) -> frozenset[int]:
    """The columns of the join that are NULL in none of its matches; of a FULL JOIN, in none of the rows of their side."""
    width = len(join.left.schema)
    fields = (*join.left.schema, *join.right.schema)
    present = frozenset(i for i, field in enumerate(fields) if not field.nullable)
    if join.kind == "full":
        return present
    left, right = (union(nulls_passed(pair[side]) for pair in join.keys) for side in (0, 1))
    condition = NONE if join.residual is None else nulls_rejected(join.residual)
    return present | left | {width + i for i in right} | condition


def _anti(join: Join, kept: Plan, other: Plan, places: Mapping[int, int]) -> Join:
    """The rows of one side that have no match. places: of the columns of the join among those of both."""
    keys = join.keys if kept is join.left else tuple((right, left) for left, right in join.keys)
    both = Schema(kept.schema.fields + other.schema.fields)
    residual = None if join.residual is None else remap(join.residual, dict(places), both)
    return Join(kept, other, "anti", keys, residual, span=join.span)


def _padded(anti: Join, join: Join, start: int) -> Plan:
    """The rows with NULLs for the columns of the other side. start: the place of their first column in the join."""
    columns: list[tuple[str, Expr]] = []
    for i, field in enumerate(join.schema):
        if start <= i < start + len(anti.schema):
            own = reference(anti.schema, i - start)
            columns.append((field.name, resolve(WIDENED, [own]) if field.nullable and not own.nullable else own))
        else:
            columns.append((field.name, Literal(None, field.type)))
    return Project(anti, tuple(columns))
