"""Queries by key: where a condition names the columns by which a table or a view is sorted, its rows are sought instead of scanned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

from deltic.circuit.nodes import ArrangementSpec
from deltic.expr.nodes import Call, Column, Constants, Expr, Literal, Value
from deltic.plan.columns import conjuncts
from deltic.plan.nodes import Filter, Plan, Table, inputs
from deltic.plan.walk import nodes
from deltic.runtimes.sought import Sought
from deltic.schema import STRING
from deltic.trace.spine import Spine
from deltic.trace.strings import StringTable

MOST_KEYS: Final = 10_000
"""A condition with more keys is evaluated on all rows."""
Keys = Mapping[int, Sequence[Value]]
"""By column, the values that a row must have one of."""


def keys_of(plan: Plan) -> dict[str, Keys]:
    """The tables of a plan that are read once, below a condition on columns with keys. Of these rows alone the condition is TRUE.

    One node may have several readers, as that of a CTE or a view that is used twice: each of them reads the table.
    """
    reads = Counter(below.table.name for node in nodes(plan) for below in inputs(node) if isinstance(below, Table))
    found: dict[str, Keys] = {}
    for node in nodes(plan):
        if isinstance(node, Filter) and isinstance(node.input, Table) and reads[node.input.table.name] == 1:
            keys = dict(key for part in conjuncts(node.predicate) if (key := _key(part)) is not None)
            found |= {node.input.table.name: keys} if keys else {}
    return found


def sought(name: str, spines: Sequence[Spine], keys: Keys, spec: ArrangementSpec, strings: StringTable) -> Sequence[Spine]:
    """The content, without rows that lack these keys if they are of the columns by which it is sorted: then O(keys · log rows)."""
    leading: list[Sequence[Value]] = []
    for column in spec.order:
        if column not in keys:
            break
        leading.append(keys[column])
    if not leading or prod(map(len, leading)) > MOST_KEYS:
        return spines
    first, *others = product(*leading)
    rows = Sought(name, spec.shape.schema, tuple(range(len(leading))), first, tuple(others)).rows(spines, strings)
    return [Spine.of(rows)]


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
