"""Queries by key: where a condition, or a join with few rows, names the columns by which a table or a view is sorted, its rows are sought
instead of scanned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, takewhile
from math import prod
from typing import Final

from deltic.circuit.nodes import ArrangementSpec
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Column, Constants, Expr, Literal, Value
from deltic.plan.columns import conjuncts
from deltic.plan.nodes import Distinct, Filter, Join, Plan, Project, Table, inputs, references
from deltic.plan.walk import nodes
from deltic.runtimes.sought import SoughtValues
from deltic.schema import STRING
from deltic.trace.batch import Batch
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

MOST_KEYS: Final = 10_000
"""A condition with more keys is evaluated on all rows."""
DROPPING_LEFT: Final = ("inner", "semi", "right")
DROPPING_RIGHT: Final = ("inner", "semi", "anti", "left")
"""The kinds of joins that need the rows of their left or right side alone that match a row of the other one."""
Key = tuple[Value, ...]
Keys = Mapping[int, Sequence[Value]]
"""By column, the values that a row must have one of."""


def keys_of(plan: Plan) -> dict[str, Keys]:
    """The tables of a plan that are read once, below a condition on columns with keys. Of these rows alone the condition is TRUE.

    One node may have several readers, as that of a CTE or a view that is used twice: each of them reads the table.
    """
    reads = Counter(below.table.name for node in nodes(plan) for below in inputs(node) if isinstance(below, Table))
    keys_by_table: dict[str, Keys] = {}
    for node in nodes(plan):
        if isinstance(node, Filter) and isinstance(node.input, Table) and reads[node.input.table.name] == 1:
            keys = condition_keys(node.predicate)
            keys_by_table |= {node.input.table.name: keys} if keys else {}
    return keys_by_table


def condition_keys(predicate: Expr) -> Keys:
    """The columns of which a condition allows some values alone."""
    return dict(key for part in conjuncts(predicate) if (key := _key(part)) is not None)


def sought(name: str, spines: Sequence[Spine], keys: Keys, spec: ArrangementSpec, strings: StringTable) -> Sequence[Spine]:
    """The content, without rows that lack these keys if they are of the columns by which it is sorted: then O(keys · log rows)."""
    rows = sought_rows(name, spines, keys, spec, strings)
    return spines if rows is None else [Spine.of(rows)]


def sought_rows(name: str, spines: Sequence[Spine], keys: Keys, spec: ArrangementSpec, strings: StringTable) -> Batch | None:
    """The rows with these keys; None if they are not of the columns by which the content is sorted."""
    leading = [keys[column] for column in takewhile(keys.__contains__, spec.order)]
    if not leading or prod(map(len, leading)) > MOST_KEYS:
        return None
    return _with_keys(name, spines, list(product(*leading)), spec, strings)


def sought_by_rows(
    name: str, spines: Sequence[Spine], columns: Sequence[int], rows: Iterable[Key], spec: ArrangementSpec, strings: StringTable
) -> Sequence[Spine]:
    """As `sought`, for the values of these columns that rows have. None is no value: it equals nothing."""
    leading = [columns.index(column) for column in takewhile(columns.__contains__, spec.order)]
    keys = dict.fromkeys(key for row in rows if None not in (key := tuple(row[i] for i in leading)))
    if not leading or len(keys) > MOST_KEYS:
        return spines
    return [Spine.of(_with_keys(name, spines, list(keys), spec, strings)) if keys else Spine(spec.columns, spec.weights)]


def _with_keys(name: str, spines: Sequence[Spine], keys: Sequence[Key], spec: ArrangementSpec, strings: StringTable) -> Batch:
    """keys: values of the first columns, all of them different."""
    return SoughtValues(name, spec.shape.schema, tuple(range(len(keys[0]))), keys[0], tuple(keys[1:])).rows(spines, strings)


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table of which a query needs the rows alone whose `columns` have the values of some row of `keys`."""

    name: str
    columns: tuple[int, ...]
    keys: Plan


def joined_tables(plan: Plan) -> list[JoinedTable]:
    """The tables of a plan that are read once, by a join on columns of theirs, which drops their rows without a match."""
    readers = Counter(id(below) for node in nodes(plan) for below in inputs(node))
    reads = Counter(below.table.name for node in nodes(plan) for below in inputs(node) if isinstance(below, Table))
    joined: list[JoinedTable] = []
    for node in nodes(plan):
        if not isinstance(node, Join):
            continue
        for kinds, side, other, pairs in (
            (DROPPING_LEFT, node.left, node.right, node.keys),
            (DROPPING_RIGHT, node.right, node.left, [(right, left) for left, right in node.keys]),
        ):
            if node.kind in kinds and not references(other) and (table := _columns_of_table(side, [own for own, _ in pairs], readers)):
                name, columns = table
                exprs = [expr for column, (_, expr) in zip(columns, pairs, strict=True) if column is not None]
                if exprs and reads[name] == 1:
                    values = Distinct(Project(other, tuple((f"key{i}", expr) for i, expr in enumerate(exprs))))
                    joined.append(JoinedTable(name, tuple(column for column in columns if column is not None), values))
    return joined


def _columns_of_table(side: Plan, exprs: Sequence[Expr], readers: Mapping[int, int]) -> tuple[str, list[int | None]] | None:
    """The table below projections and filters that cannot fail and have one reader, and its column that each expression is, or None."""
    columns: list[Expr | None] = [*exprs]
    while readers[id(side)] == 1:
        columns = [column if isinstance(column, Column) and _is_exact(column) else None for column in columns]
        match side:
            case Table():
                return side.table.name, [column.index if isinstance(column, Column) else None for column in columns]
            case Filter() if not can_fail(side.predicate):
                side = side.input
            case Project() if not any(can_fail(expr) for _, expr in side.columns):
                columns = [side.columns[column.index][1] if isinstance(column, Column) else None for column in columns]
                side = side.input
            case _:
                return None
    return None


def _key(condition: Expr) -> tuple[int, Sequence[Value]] | None:
    """The column and the values of `column = value` and `column IN (values)`, for types of which equal values are the same words."""
    match condition:
        case Call(function="equal", arguments=(Column() as of, Literal() as value) | (Literal() as value, Column() as of)):
            return (of.index, (value.value,)) if _is_exact(of) and value.type == of.type and value.value is not None else None
        case Call(function="in", arguments=(Column() as of, Constants() as constants)):
            return (of.index, constants.values) if _is_exact(of) and constants.type == of.type else None
    return None


def _is_exact(column: Column) -> bool:
    return not column.filled and (column.type.is_integer or column.type == STRING)
