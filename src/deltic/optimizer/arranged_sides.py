"""Sides of joins that lowering arranges as they are, by plain columns: what another join can read without storing rows again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from deltic.expr.nodes import Call, Column, Expr
from deltic.plan.columns import choose_columns, conjunction, conjuncts
from deltic.plan.key_order import with_ordered_keys
from deltic.plan.nodes import Aggregate, Expand, Filter, Join, MultiwayJoin, Plan, Project, Table, inputs, references
from deltic.plan.streams import is_stream
from deltic.stacks import unbounded


@dataclass(frozen=True, slots=True)
class ArrangedSide:
    """Rows that are arranged. columns: where each of their columns is in their core (`core_of`).

    keys: their columns by which they are arranged, in this order. sorted: whether they are in the order of these, so that the first of them
    are keys, too.
    """

    rows: Plan
    keys: tuple[int, ...]
    columns: tuple[int, ...]
    sorted: bool = False

    def has(self, keys: tuple[int, ...] | None) -> bool:
        """Whether rows are found by these columns."""
        return keys is not None and keys == (self.keys[: len(keys)] if self.sorted else self.keys)


def arranged_sides(nodes: Sequence[Plan]) -> Mapping[Plan, Sequence[ArrangedSide]]:
    """The sides of the joins among these nodes of a plan, inputs before their readers, by their cores. O(nodes).

    Not those whose rows are added up before they are arranged, below a grouping, nor those in recursions.
    """
    sides: dict[Plan, list[ArrangedSide]] = defaultdict(list)
    summed = _summed(nodes)
    for node in nodes:
        if not isinstance(node, Join) or node.kind == "not_in" or node.residual is not None or node in summed or references(node):
            continue
        pairs = with_ordered_keys(node).keys
        for rows, keys in ((node.left, [left for left, _ in pairs]), (node.right, [right for _, right in pairs])):
            if keys and (columns := plain(keys)) is not None:
                core, places = core_of(rows, columns)
                sides[core].append(ArrangedSide(rows, columns, places))
    return sides


def stored_side(table: Plan, read: AbstractSet[int]) -> ArrangedSide | None:
    """A table's own rows, with its primary key and the columns that are read; None if it is no table with one."""
    if not isinstance(table, Table) or is_stream(table) or any(table.schema[i].type.has_zeros for i in table.table.key):
        return None
    key, columns = table.table.key, sorted({*read, *table.table.key})
    rows = table if len(columns) == len(table.schema) else choose_columns(table, columns)
    return ArrangedSide(rows, tuple(map(columns.index, key)), tuple(columns), sorted=True)


def plain(exprs: Sequence[Expr]) -> tuple[int, ...] | None:
    """The columns that the expressions are; None if one is another expression, or has a collation."""
    columns = tuple(expr.index for expr in exprs if isinstance(expr, Column) and not expr.type.is_collated)
    return columns if len(columns) == len(exprs) else None


def core_of(rows: Plan, keys: Sequence[int]) -> tuple[Plan, tuple[int, ...]]:
    """(the plan below projections to plain columns, with rows whose keys are NULL; where each column is in it).

    Two plans with one core have, of the rows that a join by the keys can match, the same ones.
    """
    places = tuple(range(len(rows.schema)))
    while isinstance(rows, Project) and (columns := _columns(rows)) is not None:
        rows, places = rows.input, tuple(columns[i] for i in places)
    for key in keys:
        rows = _with_nulls(rows, places[key])
    return rows, places


def _columns(plan: Project) -> tuple[int, ...] | None:
    columns = tuple(expr.index for _, expr in plan.columns if isinstance(expr, Column))
    return columns if len(columns) == len(plan.columns) else None


@unbounded
def _with_nulls(plan: Plan, column: int) -> Plan:
    """The plan without the conditions that this column of it is not NULL."""
    match plan:
        case Filter():
            parts = conjuncts(plan.predicate)
            kept = [part for part in parts if not _requires(part, column)]
            below = _with_nulls(plan.input, column)
            if not kept:
                return below
            return replace(plan, input=below, predicate=plan.predicate if len(kept) == len(parts) else conjunction(kept))
        case Project():
            expr = plan.columns[column][1]
            return replace(plan, input=_with_nulls(plan.input, expr.index)) if isinstance(expr, Column) else plan
        case Aggregate():
            key = plan.keys[column][1] if column < len(plan.keys) else None
            return replace(plan, input=_with_nulls(plan.input, key.index)) if isinstance(key, Column) else plan
        case Join(kind="inner"):
            width = len(plan.left.schema)
            if column < width:
                return replace(plan, left=_with_nulls(plan.left, column))
            return replace(plan, right=_with_nulls(plan.right, column - width))
        case _:
            return plan


def _requires(part: Expr, column: int) -> bool:
    return isinstance(part, Call) and part.function == "is_not_null" and [*map(_index, part.arguments)] == [column]


def _index(expr: Expr) -> int | None:
    return expr.index if isinstance(expr, Column) else None


def _summed(nodes: Sequence[Plan]) -> set[Plan]:
    """The nodes that lowering may compute as sums for each key, since a grouping reads them (lowering/weigh.py)."""
    summed: set[Plan] = set()
    for node in reversed(nodes):
        if type(node) is Aggregate or (node in summed and isinstance(node, Project | Join | Expand | MultiwayJoin)):
            summed.update(inputs(node))
    return summed
