"""Orders of joins: which relations are joined first, by estimates of the rows of each intermediate result, all of which are stored.

The greedy ordering of operators (Fegaras 1998): of all pairs of parts that an equality connects, the pair with the fewest rows is joined,
until one part is left. Parts that nothing connects are multiplied last, the pair with the fewest rows first. The order need not be linear:
filtered relations of a snowflake's arm are joined with one another first. O(n²) estimates of some microseconds each for n relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from deltic.optimizer.row_estimates import ROWS_PER_VALUE, matching
from deltic.stacks import unbounded

Order = int | tuple["Order", "Order"]
"""The number of a relation, or what is joined with what."""


@dataclass(frozen=True, slots=True)
class GraphRelation:
    """rows, values: see row_estimates. classes: the equalities in which it takes part. unique: those that its unique key takes part in, all
    of the key's columns; None if the key is unknown or has other columns. column_values: by equality, the number of its values in the
    relation, if that is known."""

    rows: float
    values: float
    classes: frozenset[int]
    unique: frozenset[int] | None = None
    column_values: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class GraphCondition:
    """A condition on several relations, by their numbers, and the share of rows that satisfy it. is_equality: it may become a key."""

    relations: frozenset[int]
    share: float
    is_equality: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """products: the joins without an equality. rows: of all intermediate results; that of the last join is the same in all orders."""

    products: int
    rows: float


@dataclass(frozen=True, slots=True)
class _Part:
    """Joined relations. is_product: whether no equality connects the two sides that were joined last."""

    order: Order
    relations: frozenset[int]
    classes: frozenset[int]
    rows: float
    is_product: bool = False


def scaled(relations: Sequence[GraphRelation], unsized: Sequence[bool]) -> list[GraphRelation]:
    """With fewer rows of relations of unknown size whose unique keys others refer to: each row of a key is referred to by several.

    >>> fact, arm = (GraphRelation(1e6, 1e6, frozenset(classes), frozenset(key)) for classes, key in (((0, 1), (0,)), ((1, 2), (1,))))
    >>> [relation.rows for relation in scaled([fact, arm, GraphRelation(1e5, 1e6, frozenset({2}), frozenset({2}))], [True] * 3)]
    [1000000.0, 100000.0, 1000.0]
    """
    above = [[i for i, other in enumerate(relations) if i != number and _refers(other, one)] for number, one in enumerate(relations)]
    depths = [0] * len(relations)
    for _ in relations:  # a chain of references is no longer
        before = list(depths)
        for number, others in enumerate(above):
            depths[number] = max((1 + depths[i] for i in others), default=0)
        if depths == before:
            break
    shares = [ROWS_PER_VALUE**-depth if unknown else 1.0 for depth, unknown in zip(depths, unsized, strict=True)]
    return [
        replace(each, rows=max(1.0, each.rows * share), values=max(1.0, each.values * share))
        for each, share in zip(relations, shares, strict=True)
    ]


def _refers(one: GraphRelation, other: GraphRelation) -> bool:
    """Whether the equalities compare the unique key of the other with columns of this one that are not unique."""
    return _has_key(one, other) and not _has_key(other, one)


def _has_key(one: GraphRelation, other: GraphRelation) -> bool:
    """Whether equalities compare the unique key of the other with columns of this one."""
    return other.unique is not None and other.unique <= one.classes


class JoinGraph:
    """Relations, the classes of equalities between them, and the other conditions."""

    def __init__(self, relations: Sequence[GraphRelation], conditions: Sequence[GraphCondition]) -> None:
        self.relations, self.conditions = relations, conditions

    def ordered(self) -> Order:
        """An order with few rows; of pairs with equal estimates the first ones in the written order are joined first.

        >>> fact, small = GraphRelation(1e6, 1e6, frozenset({0, 1})), GraphRelation(10.0, 1e3, frozenset({1}), frozenset({1}))
        >>> JoinGraph([fact, GraphRelation(1e6, 1e6, frozenset({0}), frozenset({0})), small], []).ordered()
        ((0, 2), 1)
        """
        parts = {place: self._leaf(place) for place in range(len(self.relations))}
        joined = {(i, j): self._joined(parts[i], parts[j]) for i, j in combinations(parts, 2) if parts[i].classes & parts[j].classes}
        while len(parts) > 1:
            pairs = joined or {(i, j): self._joined(parts[i], parts[j]) for i, j in combinations(sorted(parts), 2)}
            first, second = min(pairs, key=lambda pair: (pairs[pair].is_product, pairs[pair].rows, pair))
            new = parts[first] = pairs[first, second]
            del parts[second]
            joined = {pair: part for pair, part in joined.items() if {first, second}.isdisjoint(pair)}
            near = (place for place, part in parts.items() if place != first and part.classes & new.classes)
            for low, high in ((min(place, first), max(place, first)) for place in near):
                joined[low, high] = self._joined(parts[low], parts[high])
        return next(iter(parts.values())).order

    def cost(self, order: Order) -> Cost:
        """That of the order."""
        *inner, whole = self._parts(order)
        return Cost(sum(part.is_product for part in (*inner, whole)), sum(part.rows for part in inner if not isinstance(part.order, int)))

    @unbounded
    def _parts(self, order: Order) -> list[_Part]:
        """The relations and joins of the order, the last join at the end."""
        if isinstance(order, int):
            return [self._leaf(order)]
        left, right = map(self._parts, order)
        return [*left, *right, self._joined(left[-1], right[-1])]

    def _leaf(self, number: int) -> _Part:
        relation = self.relations[number]
        return _Part(number, frozenset((number,)), relation.classes, relation.rows)

    def _joined(self, left: _Part, right: _Part) -> _Part:
        both, shared = left.relations | right.relations, left.classes & right.classes
        near = [self.relations[i] for i in both if self.relations[i].classes & shared]
        unique = [relation.values for relation in near if relation.unique is not None and relation.unique <= shared]
        known = [pair for relation in near for pair in relation.column_values]
        values = [max((number for each, number in known if each == key), default=None) for key in shared]
        rows = left.rows * right.rows * matching(unique, [relation.values for relation in near], values)
        is_product = not shared
        for condition in self.conditions:
            if condition.relations <= both and not (condition.relations <= left.relations or condition.relations <= right.relations):
                rows *= condition.share
                is_product = is_product and not condition.is_equality
        return _Part((left.order, right.order), both, left.classes | right.classes, max(1.0, rows), is_product)
