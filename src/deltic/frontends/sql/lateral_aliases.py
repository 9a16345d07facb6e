"""Lateral column aliases: select items that later items and ORDER BY read by name, computed once for each row.

While a SELECT is bound, an alias is a Column with index ALIASED + its position in the select list. The items that are read become columns
of projections below the select list, one for each level of dependence: in a chain of aliases each step is as large as its own text, where
substituted expressions would grow exponentially. An item was evaluated for every row of the result anyway, so that nothing fails that did
not fail without its alias. Clauses that are evaluated before the select list, and items with windows, aggregates or subqueries, whose rows
are made below it, read the whole expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.expr import Column, Expr, columns_of
from deltic.expr.nodes import is_fixed
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import aggregate_of
from deltic.frontends.sql.scope import ALIASED, KEYED
from deltic.plan.columns import columns_of_all, extended, map_columns, reference
from deltic.plan.nodes import Order, Plan
from deltic.plan.traits import is_cheap

Outputs = Sequence[tuple[str, Expr]]


class Aliases:
    """The names of the select items bound so far, in lower case, with what they mean; a list of several meanings is ambiguous.

    meanings: for expressions over the select list. whole: for expressions over the rows below it.
    """

    def __init__(self) -> None:
        self.meanings: dict[str, list[Expr]] = {}
        self.whole: dict[str, list[Expr]] = {}
        self._items: list[Expr] = []

    def add(self, name: str, expr: Expr, *, substituted: bool) -> None:
        """Adds the next item. substituted: whether its readers must see its expression."""
        position = len(self._items)
        whole = self.expanded(expr)
        self._items.append(whole)
        known = self.whole.setdefault(name.lower(), [])
        if substituted or is_cheap(expr) or is_fixed(expr):
            meaning = expr
        elif whole in known:
            meaning = self.meanings[name.lower()][known.index(whole)]
        else:
            meaning = Column(ALIASED + position, expr.type, expr.nullable, name)
        known.append(whole)
        self.meanings.setdefault(name.lower(), []).append(meaning)

    def expanded(self, expr: Expr) -> Expr:
        """The expression over the rows below the select list. O(its own nodes): the expressions of aliases are shared."""

        def item(column: Column) -> Expr:
            return replace(self._items[column.index - ALIASED], span=column.span) if is_alias(column) else column

        return map_columns(expr, item)

    def read_by(self, nodes: Sequence[tree.Expression]) -> dict[str, list[Expr]]:
        """The names as the expressions read them."""
        return self.whole if self.whole and any(map(_reads_below, nodes)) else self.meanings


def is_alias(column: Column) -> bool:
    """Whether the column represents a select item."""
    return ALIASED <= column.index < KEYED


def _reads_below(node: tree.Expression) -> bool:
    """Whether the expression contains a window function, an aggregate or a subquery."""
    return any(isinstance(part, (tree.OverCall, *tree.QUERIES)) or aggregate_of(part) for part in tree.walk(node))


def with_items_below(plan: Plan, outputs: Outputs, order: Sequence[Order]) -> tuple[Plan, tuple[tuple[str, Expr], ...], tuple[Order, ...]]:
    """(the rows with the items that are read as columns, the select list over them, the order over them)."""
    terms = [term.expr for term in order if not (isinstance(term.expr, Column) and is_alias(term.expr))]
    read = sorted(index - ALIASED for index in columns_of_all([*(expr for _, expr in outputs), *terms]) if ALIASED <= index < KEYED)
    levels: dict[int, int] = {}
    for item in read:
        levels[item] = max((levels[i - ALIASED] + 1 for i in columns_of(outputs[item][1]) if ALIASED <= i < KEYED), default=0)
    places: dict[int, int] = {}

    def placed(column: Column) -> Expr:
        if not is_alias(column):
            return column
        return replace(reference(plan.schema, places[column.index - ALIASED]), name=column.name, span=column.span)

    for level in range(max(levels.values(), default=-1) + 1):
        own = [item for item in read if levels[item] == level]
        width, computed = len(plan.schema), [(outputs[item][0], map_columns(outputs[item][1], placed)) for item in own]
        places |= {item: i for i, item in enumerate(own, width)}
        plan = extended(plan, computed)

    def over(position: int) -> Expr:
        expr = outputs[position][1]
        return replace(reference(plan.schema, places[position]), span=expr.span) if position in places else map_columns(expr, placed)

    listed = tuple((name, over(i)) for i, (name, _) in enumerate(outputs))
    written = [expr for _, expr in outputs]

    def sorted_by(expr: Expr) -> Expr:
        if isinstance(expr, Column) and is_alias(expr):
            return replace(listed[expr.index - ALIASED][1], span=expr.span)
        return replace(listed[written.index(expr)][1], span=expr.span) if expr in written else map_columns(expr, placed)

    return plan, listed, tuple(replace(term, expr=sorted_by(term.expr)) for term in order)
