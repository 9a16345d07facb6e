"""Binds ROLLUP, CUBE and GROUPING SETS, GROUPING and GROUPING_ID.

GROUPING and GROUPING_ID are calls that stand for bits of the set's number while a SELECT is bound; they never occur in a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Call, Column, Expr, Literal, case, resolve
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import distinct_parts
from deltic.frontends.sql import tree
from deltic.frontends.sql.scope import AGGREGATED
from deltic.plan.columns import map_children, named_columns, reference
from deltic.plan.nodes import AggregateCall, Expand, Plan
from deltic.schema import BIGINT, TINYINT

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

GROUPING: Final = "grouping"
GROUPING_ID: Final = "grouping_id"
FUNCTIONS: Final = (GROUPING, GROUPING_ID)
GROUPING_COLUMN: Final = "grouping__id"
MOST_BITS: Final = 62
"""Of the number of a set: one for each key, and those that distinguish equal sets."""
_NUMBER: Final = "grouping_set"
SET_NUMBER: Final = Column(AGGREGATED - 1, BIGINT, False, _NUMBER)
"""The number of the set of a group, before expressions are rewritten over the rows of the Aggregate."""


def bind_grouping(binder: ExpressionBinder, node: tree.FunctionCall) -> Expr:
    """GROUPING(key), or GROUPING_ID([key, …]), which the arguments of aggregates may have, too."""
    if binder.collector is None and not (binder.clause == "FILTER" or binder.clause.startswith("the argument of ")):
        remedy = "HAVING tests it" if binder.clause == "WHERE" else "compute it in a subquery of FROM first"
        raise Unsupported(f"{node.name.upper()} is not allowed in {binder.clause}", span=node.span, remedy=remedy)
    if node.distinct or node.condition is not None:
        raise Unsupported(f"{node.name.upper()} has no DISTINCT and no FILTER", span=node.span, remedy="leave it out")
    least, most = (1, 1) if node.name == GROUPING else (0, None)
    check_count(node.name, node.arguments, least, most, node.span)
    arguments = tuple(replace(binder, collector=None).bind(part) for part in node.arguments)
    return Call(node.name, arguments, TINYINT if node.name == GROUPING else BIGINT, False, node.span)


def bind_grouping_column(span: Span) -> Expr:
    """The column grouping__id of a grouped query, as Hive calls GROUPING_ID()."""
    return Call(GROUPING_ID, (), BIGINT, False, span)


def reads_grouping(expr: Expr) -> bool:
    """Whether the expression has a call of GROUPING or GROUPING_ID."""
    return any(isinstance(part, Call) and part.function in FUNCTIONS for part in distinct_parts([expr]))


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """The sets of a GROUP BY over its different keys.

    numbers: those of the sets (see Expand); () if all keys are the only set. written: the clause has ROLLUP, CUBE or GROUPING SETS.
    """

    keys: tuple[Expr, ...] = ()
    numbers: tuple[int, ...] = ()
    written: bool = False

    def expanded(self, plan: Plan, names: Sequence[str]) -> tuple[Plan, Sequence[tuple[str, Expr]]]:
        """(the rows for each set, the keys of the Aggregate over them: the keys of each set, then its number)."""
        if not self.numbers:
            return plan, tuple(zip(names, self.keys, strict=True))
        width = len(plan.schema)
        expand = Expand(plan, tuple(zip(names, self.keys, strict=True)), self.numbers, _NUMBER)
        return expand, named_columns(expand.schema, range(width, len(expand.schema)))

    def resolved(self, expr: Expr, number: Expr) -> Expr:
        """The expression with bits of the set's number for GROUPING and GROUPING_ID.

        Raises TypeMismatch for what is not a key, and Unsupported if the clause has no sets.
        """
        if not (isinstance(expr, Call) and expr.function in FUNCTIONS):
            return map_children(expr, lambda part: self.resolved(part, number)) if reads_grouping(expr) else expr
        if not self.written:
            message = f"{expr.function.upper()} requires ROLLUP, CUBE or GROUPING SETS"
            raise Unsupported(message, span=expr.span, expected="GROUP BY ROLLUP (…), CUBE (…) or GROUPING SETS (…)")
        whole = number if self.numbers else Literal(0, BIGINT)
        bits = self._bit(expr, whole) if expr.function == GROUPING else self._id(expr, whole)
        return replace(bits, span=expr.span)

    def call(self, call: AggregateCall, plan: Plan) -> AggregateCall:
        """The aggregate over the expanded rows."""
        number = reference(plan.schema, len(plan.schema) - 1) if self.numbers else SET_NUMBER
        condition = None if call.filter is None else self.resolved(call.filter, number)
        return replace(call, arguments=tuple(self.resolved(part, number) for part in call.arguments), filter=condition)

    def _bit(self, call: Call, number: Expr) -> Expr:
        (key,) = call.arguments
        if key not in self.keys:
            raise TypeMismatch("the argument of GROUPING is not a key of GROUP BY", span=key.span, expected="a key, as written there")
        mask = Literal(1 << (len(self.keys) - 1 - self.keys.index(key)), BIGINT)
        kept = resolve("=", [resolve("&", [number, mask]), Literal(0, BIGINT)])
        return case([(kept, Literal(0, TINYINT))], Literal(1, TINYINT))

    def _id(self, call: Call, number: Expr) -> Expr:
        if call.arguments and call.arguments != self.keys:
            message = "the arguments of GROUPING_ID are not the keys of GROUP BY"
            raise TypeMismatch(message, span=call.span, expected="all keys in their order, or none", remedy="GROUPING(key)")
        mask = (1 << len(self.keys)) - 1
        return number if max(self.numbers, default=0) <= mask else resolve("&", [number, Literal(mask, BIGINT)])


def grouping_sets(keys: Sequence[Expr], places: Sequence[int], group: tree.GroupClause) -> GroupingSets:
    """The sets of the clause. keys: the different ones. places: which of them each key of the clause is."""
    if group.sets is None:
        return GroupingSets(tuple(keys))
    if not keys and len(group.sets) == 1:
        return GroupingSets((), (), True)  # as in Spark, one row, also for an empty relation
    seen, numbers = dict[int, int](), list[int]()
    for part in group.sets:
        kept = {places[i] for i in part}
        number = sum(1 << (len(keys) - 1 - i) for i in range(len(keys)) if i not in kept)
        seen[number] = seen.get(number, 0) + 1
        numbers.append((seen[number] - 1) << len(keys) | number)
    if max(numbers).bit_length() > MOST_BITS:
        raise _too_many(group.span)
    return GroupingSets(tuple(keys), tuple(numbers), True)


def _too_many(span: Span) -> Unsupported:
    return Unsupported("there are too many keys in grouping sets", span=span, expected=f"at most {MOST_BITS}")
