"""Binds LIMIT and OFFSET: the rows that they keep, as TopK.

Without ORDER BY any rows are right; these are the least ones in the order of the columns, so that the result depends on the rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deltic.errors import EvaluationError, Span, TypeMismatch, Unsupported
from deltic.expr import Expr, Literal, columns_of
from deltic.expr.interpreter import evaluate
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_expression import ExpressionBinder
from deltic.frontends.sql.literals import whole
from deltic.frontends.sql.scope import Scope
from deltic.plan.nodes import Aggregate, Distinct, Filter, Order, Plan, Project, TopK, Values
from deltic.schema import BOOLEAN, INT, Schema

GREATEST_LIMIT: Final = 2**31 - 1
"""As in Spark."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows after the first `offset`, at most `limit`; None is all."""

    limit: int | None
    offset: int


def slice_of(node: tree.WholeQuery) -> Slice | None:
    """The rows that LIMIT and OFFSET of a query keep; None if it has neither. Raises Unsupported where they follow an order elsewhere."""
    clause = node.limit
    if clause is None:
        return None
    limit = None if clause.count is None else _count("LIMIT", clause.count, clause.span)
    offset = 0 if clause.offset is None else _count("OFFSET", clause.offset, clause.offset.span)
    if not node.order and (limit or offset) and (term := _order_below(node.body)) is not None:
        remedy = "write ORDER BY beside LIMIT"
        raise Unsupported("LIMIT without ORDER BY reads a subquery that has an ORDER BY", span=term, remedy=remedy)
    return None if limit is None and not offset else Slice(limit, offset)


def _count(word: str, node: tree.Expression, span: Span) -> int:
    """The value of a constant expression, of type INT."""
    number = tree.unnest(node)
    if isinstance(number, tree.NumberText) and number.text.isdigit() and whole(number, GREATEST_LIMIT) is None:
        raise Unsupported(f"{word} is too large", span=span, expected=f"at most {GREATEST_LIMIT:,}, as in Spark")
    if any(_varies(part) for part in tree.walk(node)):
        raise Unsupported(f"{word} requires a constant", span=span, expected=f"{word} 10")
    bound = ExpressionBinder(Scope((), Schema(())), word).bind(node)
    value = _value(bound) if bound.type == INT else None
    if not isinstance(value, int) or value < 0:
        raise Unsupported(f"{word} requires a whole number", span=span, expected=f"{word} 10")
    return value


def _varies(node: object) -> bool:
    """Whether it is no constant."""
    return isinstance(node, tree.ScalarQuery | tree.Star) or (isinstance(node, tree.ColumnName) and node.variable is None)


def _value(bound: Expr) -> object:
    assert not columns_of(bound)
    try:
        return evaluate(bound, ())
    except EvaluationError as error:
        raise TypeMismatch(error.message, span=bound.span) from error


def _order_below(query: tree.Query) -> Span | None:
    """The place of an ORDER BY that has no effect here, but would order the rows that LIMIT takes in Spark; None without one."""
    if isinstance(query, tree.WholeQuery):
        if query.limit is not None:
            return None
        return query.order[0].expression.span if query.order else _order_below(query.body)
    if (
        not isinstance(query, tree.SelectQuery)
        or query.distinct
        or query.group is not None
        or not isinstance(query.source, tree.DerivedTable)
    ):
        return None
    return _order_below(query.source.query)


def cut(plan: Plan, order: tuple[Order, ...], part: Slice) -> Plan:
    """These rows of a plan in an order."""
    if part.limit == 0 and not order:
        return Filter(plan, Literal(False, BOOLEAN))
    if not order and not part.offset and _has_one_row(plan):
        return plan
    return TopK(plan, order, part.limit, offset=part.offset)


def _has_one_row(plan: Plan) -> bool:
    """Whether the relation never has more than one row."""
    while isinstance(plan, Project | Filter | Distinct):
        plan = plan.input
    match plan:
        case Aggregate():
            return not plan.keys
        case Values():
            return len(plan.rows) <= 1
        case TopK():
            return plan.limit is not None and plan.limit <= 1
        case _:
            return False
