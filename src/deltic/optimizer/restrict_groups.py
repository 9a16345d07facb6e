"""Groups that are joined by their keys with few rows are computed for the keys of these rows alone: magic sets.

A grouping computes all of its groups, and keeps them right, even where a join reads those of a filtered relation only: the average of each
part's quantities, of which a query reads those of one brand. A semi-join below the grouping (the supplementary magic set of Mumick et al.
1990, "Magic is relevant") drops the rows of the other groups before they are added up. Nothing else changes: a join would drop the groups.

The semi-join reads its rows by key when a key comes to the filtered relation, so they must be stored by key. Where another join of the plan
stores them so, or the table itself, sorted by its primary key, it costs nothing but a look-up for each changed row. Otherwise groups stay
as they are. The result is no fixed point of the other rules: prune_columns would narrow the sides of the semi-join, which are then others
than those that are stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Column, Expr, columns_of
from deltic.optimizer.arranged_sides import arranged_sides, core_of, plain, stored_side
from deltic.optimizer.drop_distinct import unique_key
from deltic.optimizer.join_tree import side_places
from deltic.optimizer.replace_views import replaced
from deltic.optimizer.row_estimates import UNKNOWN, Sizes, column_values, rows_of, values_of
from deltic.plan.columns import choose_columns, columns_of_all, reference, remap
from deltic.plan.key_order import with_ordered_keys
from deltic.plan.nodes import Aggregate, Distinct, Filter, Join, JoinKind, Plan, Project, inputs, references
from deltic.plan.signs import may_be_negative
from deltic.plan.streams import reads_ticks
from deltic.plan.walk import expressions, map_expressions, map_inputs, nodes
from deltic.stacks import unbounded

MOST: Final = 0.4
"""The estimated share of the groups up to which it pays to look up each changed row."""
TO_LEFT: Final[frozenset[JoinKind]] = frozenset(("inner", "right", "semi"))
TO_RIGHT: Final[frozenset[JoinKind]] = frozenset(("inner", "left", "semi", "anti"))
"""The kinds of joins of which only those rows of a side matter that have a match."""


def restrict_groups(plan: Plan, sizes: Sizes = UNKNOWN) -> Plan:
    """Groups read only the rows whose keys are in the relation that they are joined with, if that keeps few.

    >>> from deltic.expr.functions import resolve
    >>> from deltic.expr.nodes import Literal
    >>> from deltic.plan.nodes import AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> item = Table(TableSchema("item", Schema((Field("part", BIGINT), Field("n", BIGINT)))))
    >>> part = Table(TableSchema("part", Schema((Field("id", BIGINT, False), Field("brand", BIGINT))), key=(0,)))
    >>> of_brand = Filter(part, resolve("equal", [Column(1, BIGINT, True, "brand"), Literal(23, BIGINT)]))
    >>> key, n, id = Column(0, BIGINT, True, "part"), Column(1, BIGINT, True, "n"), Column(0, BIGINT, False, "id")
    >>> greatest = Aggregate(item, (("part", key),), (("top", AggregateCall("max", (n,), BIGINT, True)),))
    >>> plan = Join(item, Join(of_brand, greatest, "inner", ((id, key),)), "inner", ((key, id),))
    >>> print(show(plan))
    Join inner on part#0 = id#0
      Table item (part, n)
      Join inner on id#0 = part#0
        Filter (brand#1 = 23)
          Table part (id, brand)
        Aggregate by part#0: top := max(n#1)
          Table item (part, n)
    >>> print(show(restrict_groups(plan)))
    Join inner on part#0 = id#0
      Table item (part, n)
      Join inner on id#0 = part#0
        [1] Filter (brand#1 = 23)
          Table part (id, brand)
        Aggregate by part#0: top := max(n#1)
          Join semi on part#0 = id#0
            Table item (part, n)
            Reused [1]
    """
    while (restricted := _first(plan, sizes)) is not None:
        plan = restricted
    return plan


def _first(plan: Plan, sizes: Sizes) -> Plan | None:
    """The plan with one grouping restricted; None if there is none to restrict."""
    order = list(dict.fromkeys(nodes(plan)))
    groupings = [(grouping, matches) for grouping, matches in _groupings(order) if matches]
    semi_joins = _SemiJoins(order) if groupings else None
    for grouping, matches in groupings:
        assert semi_joins is not None
        few = [(kept, one) for one in (_least(each, sizes) for each in matches) if (kept := _kept(grouping, one, sizes)) <= MOST]
        for _, one in sorted(few, key=lambda each: each[0]):
            if (below := semi_joins.restricted(grouping, one)) is not None:
                return replaced(plan, {grouping: below})
    return None


@dataclass(frozen=True, slots=True)
class _Matches:
    """What the rows of a plan must match to matter. keys: pairs (column of the plan, expression over `rows`)."""

    rows: Plan
    keys: tuple[tuple[int, Expr], ...]

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column, _ in self.keys)

    def over(self, places: Mapping[int, int]) -> _Matches | None:
        """The same over a plan with some of the columns, at other places; None if it has none of the keys."""
        keys = tuple((places[column], expr) for column, expr in self.keys if column in places)
        return _Matches(self.rows, keys) if keys else None


def _over(matches: Sequence[_Matches], places: Mapping[int, int]) -> list[_Matches]:
    return [moved for one in matches if (moved := one.over(places)) is not None]


def _groupings(order: Sequence[Plan]) -> Iterator[tuple[Aggregate, list[_Matches]]]:
    """The groupings that one join reads, with what the rows that they group must match. order: nodes of a plan, inputs first."""
    readers = Counter(below for node in order for below in inputs(node))
    required: dict[Plan, list[_Matches]] = {}
    for node in reversed(order):
        own = required.get(node, []) if readers[node] == 1 else []
        if type(node) is Aggregate:
            if not references(node) and not reads_ticks(node):
                yield node, _over(own, _key_places(node))
        elif isinstance(node, Join):
            required[node.left], required[node.right] = _passed(node, own)
        elif isinstance(node, Project):
            required[node.input] = _over(own, _places(node))
        elif isinstance(node, Filter | Distinct):
            required[node.input] = own


def _passed(node: Join, own: Sequence[_Matches]) -> tuple[list[_Matches], list[_Matches]]:
    """What the rows of either side must match. own: what those of the join must."""
    left, right = side_places(node)
    to_left = _over(own, left) if node.kind not in ("right", "full") else []
    to_right = _over(own, right) if node.kind in ("inner", "right") else []
    keys = [pair for pair in node.keys if not (node.evaluates_pairs and any(map(can_fail, pair)))]  # not on other pairs than the node
    if node.kind in TO_LEFT:
        to_left += _matching(node.right, keys)
    if node.kind in TO_RIGHT:
        to_right += _matching(node.left, [(other, one) for one, other in keys])
    return to_left, to_right


def _matching(rows: Plan, pairs: Sequence[tuple[Expr, Expr]]) -> list[_Matches]:
    keys = tuple((one.index, other) for one, other in pairs if isinstance(one, Column) and not one.type.is_collated)
    return [_Matches(rows, keys)] if keys and not (may_be_negative(rows) or references(rows) or reads_ticks(rows)) else []


def _places(node: Project) -> dict[int, int]:
    return {i: expr.index for i, (_, expr) in enumerate(node.columns) if isinstance(expr, Column)}


def _key_places(node: Aggregate) -> dict[int, int]:
    return {i: expr.index for i, (_, expr) in enumerate(node.keys) if isinstance(expr, Column)}


def _least(matches: _Matches, sizes: Sizes) -> _Matches:
    """The smallest of the relations that are joined to the one to match and have its keys, too."""
    columns = plain([expr for _, expr in matches.keys])
    if columns is None:
        return matches
    rows, found = min(_joined(matches.rows, columns), key=lambda one: rows_of(one[0], sizes))
    keys = zip(matches.columns, (reference(rows.schema, column) for column in found), strict=True)
    return _Matches(rows, tuple(keys))


@unbounded
def _joined(rows: Plan, columns: Sequence[int]) -> list[tuple[Plan, Sequence[int]]]:
    """The relations below inner joins, and these, that have the columns, or equal ones, the lowest first."""
    below: list[tuple[Plan, dict[int, int]]] = []
    match rows:
        case Project(input=Project() | Join(kind="inner") as input):
            below = [(input, _places(rows))]
        case Join(kind="inner"):
            below = [*zip((rows.left, rows.right), side_places(rows), strict=True)]
    found = [_joined(part, [places[i] for i in columns]) for part, places in below if places.keys() >= set(columns)]
    return [*(one for each in found for one in each), (rows, columns)]


def _kept(grouping: Aggregate, matches: _Matches, sizes: Sizes) -> float:
    """The estimated share of the groups that have a match."""
    columns, unique = plain([expr for _, expr in matches.keys]), unique_key(matches.rows)
    whole = [values_of(matches.rows, sizes)] if columns is not None and unique is not None and unique <= set(columns) else []
    values = [column_values(grouping.input, column, sizes) for column in matches.columns]
    known = [number for number in values if number is not None]
    if len(known) == len(values):
        whole.append(prod(known))
    return rows_of(matches.rows, sizes) / max(whole, default=rows_of(grouping, sizes))


class _SemiJoins:
    """Semi-joins of rows that joins of the plan store by key. order: its nodes."""

    def __init__(self, order: Sequence[Plan]) -> None:
        self.sides = arranged_sides(order)
        self.readers = Counter(below for node in order for below in inputs(node))

    def restricted(self, grouping: Aggregate, matches: _Matches) -> Aggregate | None:
        """The grouping of the rows that match. None if they are not stored by these keys. matches: of the grouping's input."""
        found = self.semi_join(grouping.input, matches, columns_of_all(expressions(grouping)))
        if found is None:
            return None
        over = _over_other(grouping, *found)
        assert isinstance(over, Aggregate)
        return over

    @unbounded
    def semi_join(self, rows: Plan, matches: _Matches, read: AbstractSet[int]) -> tuple[Plan, Mapping[int, int]] | None:
        """(a plan with those of the rows that match, or more, where each column that is read is in it); None if none is stored by key."""
        core, places = core_of(rows, matches.columns)
        own = stored_side(core, {places[column] for column in read})
        for side in (*self.sides.get(core, ()), *(() if own is None else (own,))):
            at = {place: i for i, place in reversed([*enumerate(side.columns)])}
            if at.keys() >= {places[column] for column in read}:
                keys = tuple((reference(side.rows.schema, at[places[column]]), expr) for column, expr in matches.keys)
                semi = with_ordered_keys(Join(side.rows, matches.rows, "semi", keys))
                if side.has(plain([key for key, _ in semi.keys])):
                    return semi, {column: at[places[column]] for column in read}
        return self._below(rows, matches, read) if self.readers[rows] <= 1 else None

    def _below(self, rows: Plan, matches: _Matches, read: AbstractSet[int]) -> tuple[Plan, Mapping[int, int]] | None:
        """The same by a semi-join further down, in a plan that has no other readers."""
        every = {i: i for i in range(len(rows.schema))}
        match rows:
            case Filter():
                found = self.semi_join(rows.input, matches, read | columns_of(rows.predicate))
                return None if found is None else (_over_other(rows, *found), found[1])
            case Project():
                own = _whole(matches, _places(rows))
                found = None if own is None else self.semi_join(rows.input, own, columns_of_all(expressions(rows)))
                return None if found is None else (_over_other(rows, *found), every)
            case Aggregate():
                own = _whole(matches, _key_places(rows))
                grouping = None if own is None else self.restricted(rows, own)
                return None if grouping is None else (grouping, every)
            case Join(kind="inner"):
                sides = [rows.left, rows.right]
                for i, places in enumerate(side_places(rows)):
                    own = _whole(matches, places)
                    if own is not None and (found := self.semi_join(sides[i], own, frozenset(range(len(sides[i].schema))))) is not None:
                        sides[i] = _columns(*found)
                        return replace(rows, left=sides[0], right=sides[1]), every
        return None


def _whole(matches: _Matches, places: Mapping[int, int]) -> _Matches | None:
    """The same over a plan that has all of the keys."""
    return matches.over(places) if places.keys() >= set(matches.columns) else None


def _over_other(node: Plan, below: Plan, at: Mapping[int, int]) -> Plan:
    """The node over another input. at: where each column that it reads is there."""
    return map_expressions(map_inputs(node, lambda _: below), lambda expr: remap(expr, at, below.schema))


def _columns(rows: Plan, at: Mapping[int, int]) -> Plan:
    """The columns of the rows in the order of `at`."""
    columns = [at[i] for i in sorted(at)]
    if columns == [*range(len(rows.schema))]:
        return rows
    return choose_columns(rows, columns)
