"""Orders inner joins by their graph: FROM's order is not a plan.

Each tree of inner joins (join_tree.py) whose equalities have no cycle is joined in the order of join_orders.py, if that needs fewer
products of relations that no equality connects, or less than half of the rows in between. Otherwise the written order stays, so that
plans, and the state that they have, do not depend on small differences of estimates. Equality is transitive here: of `a.x = c.x AND
b.x = c.x`, a and b can be joined first.

Values with which rows are compared, relations of one row without a key, are joined with the rows in turn, if each is compared by itself
(ADR 0386).

A join with the hint BINARY_JOIN stays as it is written. Cycles are left to form_multiway_joins. Conditions are tested above the joins, and
other rules push them down again; a condition that can fail is tested on rows of the whole join, as join_tree.py explains.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count, permutations
from typing import Final

from deltic.errors import Span
from deltic.expr.nodes import Call, Column, Expr, columns_of
from deltic.optimizer.drop_distinct import unique_key
from deltic.optimizer.drop_limits import has_one_row
from deltic.optimizer.hypergraph import cyclic_core
from deltic.optimizer.join_orders import GraphCondition, GraphRelation, JoinGraph, Order, scaled
from deltic.optimizer.join_tree import LARGEST, JoinTree, join_tree, other_conditions, over_joined, over_leaves, tree_size
from deltic.optimizer.row_estimates import UNKNOWN, Sizes, column_values, has_unknown_size, rows_of, share, values_of
from deltic.plan.columns import compared, is_equality, remap
from deltic.plan.node import once_per_node
from deltic.plan.nodes import Join, Plan, inputs
from deltic.plan.ranges import inequality, without_cast
from deltic.plan.streams import is_of_ticks
from deltic.plan.walk import map_inputs
from deltic.stacks import unbounded

BETTER: Final = 0.5
"""The share of the rows of the written order that another order may have to replace it."""


def order_joins(plan: Plan, sizes: Sizes = UNKNOWN) -> Plan:
    """Joins the relations of each tree in a good order. Plans whose state would begin again (plan/streams.py) stay as they are.

    >>> from deltic.optimizer.prune_columns import prune_columns
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> part, supplier = (Table(TableSchema(name, Schema((Field("k", BIGINT, False),)), key=(0,))) for name in ("part", "supplier"))
    >>> item = Table(TableSchema("item", Schema((Field("p", BIGINT), Field("s", BIGINT)))))
    >>> p, s, k, other = (Column(i, BIGINT, i < 2, name) for i, name in ((0, "p"), (1, "s"), (0, "k"), (1, "k")))
    >>> plan = Join(Join(part, supplier, "inner"), item, "inner", ((k, p), (other, s)))
    >>> print(show(plan))
    Join inner on k#0 = p#0, k#1 = s#1
      Join inner
        Table part (k)
        Table supplier (k)
      Table item (p, s)
    >>> print(show(order_joins(plan)))
    Project k#0, k#3, p#1, s#2
      Join inner on s#2 = k#0
        Join inner on k#0 = p#0
          Table part (k)
          Table item (p, s)
        Table supplier (k)
    """
    return _ordered(plan, sizes)


@once_per_node
def _ordered(plan: Plan, sizes: Sizes) -> Plan:
    if is_of_ticks(plan):
        return plan
    tree = join_tree(plan) if 2 < tree_size(plan) <= LARGEST else None
    if tree is None:
        return map_inputs(plan, lambda part: _ordered(part, sizes))
    if len(tree.leaves) > 2 and not tree.hinted and not cyclic_core(tree.edges()):
        ordering = _Ordering(tree, sizes)
        if (order := ordering.better(plan)) is not None:
            return ordering.joined(order, plan)
    return over_leaves(plan, tree, lambda part: _ordered(part, sizes))


@dataclass(frozen=True, slots=True)
class _Joined:
    """Joined leaves. positions: column of the tree → position in the plan. members: by class, an expression over the tree that is in it.
    place: of one of the leaves in the text.
    """

    plan: Plan
    positions: Mapping[int, int]
    members: Mapping[int, Expr]
    place: Span | None

    def key(self, number: int) -> Expr:
        """The key of a class, without what lowering does with every key."""
        expr = remap(self.members[number], self.positions, self.plan.schema)
        return expr.arguments[0] if isinstance(expr, Call) and expr.function == "normalize" else expr


class _Ordering:
    """The orders of a tree. members: for each leaf, by class, its expressions that must be equal."""

    def __init__(self, tree: JoinTree, sizes: Sizes) -> None:
        self.tree, self.sizes, self.starts = tree, sizes, tree.starts
        self.members: list[dict[int, list[Expr]]] = [{} for _ in tree.leaves]
        for number, members in enumerate(tree.classes()):
            for expr in members:
                leaf = tree.leaf_of(expr)
                assert leaf is not None, "a class has an expression over several leaves"
                self.members[leaf].setdefault(number, []).append(expr)
        late = (part for part in tree.late if not isinstance(part, tuple) and is_equality(part))
        conditions = [(frozenset(self._leaves(part)), part) for part in (*tree.conditions, *late)]
        unsized = [has_unknown_size(leaf, sizes) for leaf in tree.leaves]
        self.graph = JoinGraph(
            scaled([self._relation(number) for number in range(len(tree.leaves))], unsized),
            [GraphCondition(read, share(part), is_equality(part)) for read, part in conditions if len(read) > 1],
        )

    def better(self, plan: Plan) -> Order | None:
        """An order for the tree of `plan`; None if that is good enough."""
        written, products = _written(plan, self.tree)
        order = self.graph.ordered()
        before, after = self.graph.cost(written), self.graph.cost(order)
        cheaper = after.products < before.products or (after.products == before.products and after.rows < before.rows * BETTER)
        order = self._apart(order if cheaper else written)
        return order if order != written or before.products < products else None

    def _apart(self, order: Order) -> Order:
        """The order with each value that rows are compared with joined by itself, as in `x > (SELECT …) AND y < (SELECT …)`.

        Joined with one another first, all but one of them would be tested on all rows that satisfy the first comparison, at each change.
        """
        if isinstance(order, int):
            return order
        left, right = map(self._apart, order)
        for rows, values, is_right in ((left, right, True), (right, left, False)):
            single = _members(values)
            if len(single) > 1 and all(map(self._has_one_row, single)) and not all(map(self._has_one_row, _members(rows))):
                for part in self._compared_apart(_members(rows), single):
                    rows = (rows, part) if is_right else (part, rows)
                return rows
        return left, right

    def _has_one_row(self, leaf: int) -> bool:
        return has_one_row(self.tree.leaves[leaf]) and not self.members[leaf]

    def _compared_apart(self, rows: frozenset[int], values: frozenset[int]) -> list[Order]:
        """The values in the order of their comparisons, those without one beside the last; all as one unless each is compared by itself.

        Each is, if all conditions on it compare it alone with one expression over the rows, with which no other value is compared. In other
        conditions one row of all values may be what looks few rows up: the ends of an interval, or both sides of an OR.
        """
        points = self._points(rows, values)
        if len(points) < 2 or len({*points.values()}) < len(points):
            return [_product(sorted(values))]
        *first, last = points
        return [*first, _product((last, *sorted(values - points.keys())))]

    def _points(self, rows: frozenset[int], values: frozenset[int]) -> dict[int, Expr]:
        """By value, the one expression over the rows with which it is compared; empty if there are other conditions on the values."""
        if any(values & self._leaves(part) for part in other_conditions(self.tree)):
            return {}
        points = dict[int, Expr]()
        for condition in self.tree.conditions:
            read = self._leaves(condition)
            if values & read and len(read) > 1:
                compared_value = self._compared_value(condition, rows, values)
                if compared_value is None or points.setdefault(*compared_value) != compared_value[1]:
                    return {}
        return points

    def _compared_value(self, condition: Expr, rows: frozenset[int], values: frozenset[int]) -> tuple[int, Expr] | None:
        """(a value, the expression over the rows) of a plain comparison between them."""
        operands = inequality(condition)
        if operands is None:
            return None
        for value, point in permutations(operands[:2]):
            read = self._leaves(value)
            if len(read) == 1 and read <= values and self._leaves(point) <= rows:
                return read.pop(), without_cast(point)
        return None

    def joined(self, order: Order, plan: Plan) -> Plan:
        """The tree of `plan` in that order."""
        whole = self._joined(order)
        same = [compared("equal", first, other) for leaf in self.members for first, *others in leaf.values() for other in others]
        conditions = (*same, *self.tree.conditions)
        return over_joined(self.tree, plan.schema, whole.plan, conditions, lambda expr: remap(expr, whole.positions, whole.plan.schema))

    @unbounded
    def _joined(self, order: Order) -> _Joined:
        if isinstance(order, int):
            leaf, first = _ordered(self.tree.leaves[order], self.sizes), self.starts[order]
            members = {number: exprs[0] for number, exprs in self.members[order].items()}
            return _Joined(leaf, {first + i: i for i in range(len(leaf.schema))}, members, self.tree.places[order])
        left, right = map(self._joined, order)
        keys = tuple((left.key(number), right.key(number)) for number in left.members if number in right.members)
        width = len(left.plan.schema)
        positions = {**left.positions, **{column: width + place for column, place in right.positions.items()}}
        place = right.place or left.place
        return _Joined(Join(left.plan, right.plan, "inner", keys, span=place), positions, {**right.members, **left.members}, place)

    def _relation(self, number: int) -> GraphRelation:
        leaf, first = self.tree.leaves[number], self.starts[number]
        classes = {expr.index: each for each, exprs in self.members[number].items() for expr in exprs if isinstance(expr, Column)}
        unique = unique_key(leaf)
        key = None if unique is None or not all(first + i in classes for i in unique) else frozenset(classes[first + i] for i in unique)
        known = ((each, column_values(leaf, column - first, self.sizes)) for column, each in classes.items())
        values = tuple((each, number) for each, number in known if number is not None)
        return GraphRelation(rows_of(leaf, self.sizes), values_of(leaf, self.sizes), frozenset(self.members[number]), key, values)

    def _leaves(self, expr: Expr) -> set[int]:
        return {bisect_right(self.starts, column) - 1 for column in columns_of(expr)}


def _product(values: Iterable[int]) -> Order:
    """The values joined with one another, in their order."""
    first, *others = values
    order: Order = first
    for value in others:
        order = order, value
    return order


def _members(order: Order) -> frozenset[int]:
    return frozenset((order,)) if isinstance(order, int) else _members(order[0]) | _members(order[1])


def _written(plan: Plan, tree: JoinTree) -> tuple[Order, int]:
    """(the order of the plan, of which this is the tree; the number of its joins without keys)."""
    leaves, numbers, products = {id(leaf) for leaf in tree.leaves}, count(), 0

    @unbounded
    def order(part: Plan) -> Order:
        nonlocal products
        if id(part) in leaves:
            return next(numbers)
        if isinstance(part, Join):
            products += not part.keys
            return order(part.left), order(part.right)
        return order(inputs(part)[0])

    return order(plan), products
