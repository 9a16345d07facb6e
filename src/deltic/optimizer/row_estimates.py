"""Estimates of the rows of relations, by which joins are ordered: sizes of tables, keys, and the usual shares of conditions.

The shares are those of System R (Selinger et al. 1979, table 1), where nothing is stated of a column's values. An estimate need not be
near the truth: it decides between orders only, and never whether a result is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from deltic.expr.nodes import Call, Column, Constants, Expr, Literal
from deltic.optimizer.drop_distinct import unique_key
from deltic.plan.columns import conjuncts
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
    Expand,
    Filter,
    FlatMap,
    Generate,
    Join,
    MultiwayJoin,
    Plan,
    Project,
    Recursion,
    Reference,
    SetOperation,
    Table,
    TemporalFilter,
    TopK,
    Union,
    Values,
    inputs,
)

UNKNOWN_ROWS: Final = 1e6
"""The rows of a table of unknown size, and of a relation of a recursion."""
EQUAL: Final = 0.1
RANGE: Final = 1 / 3
ROWS_PER_VALUE: Final = 10.0
"""The rows of a group, and the elements of a row."""
MATCHES: Final = 2.0
"""The matches of a row by columns that are no key. Few, since keys that are not declared are common."""
_RANGES: Final = frozenset(("less", "less_equal", "greater", "greater_equal", "startswith"))
_EQUALITIES: Final = frozenset(("equal", "same", "like", "rlike", "is_null"))


@dataclass(frozen=True, slots=True)
class Sizes:
    """The rows of tables when a plan is chosen: pairs of a name in lower case and a number. Tables without one are of unknown size."""

    tables: tuple[tuple[str, int], ...] = ()

    def rows(self, table: str) -> float:
        """At least one."""
        return max(1.0, dict(self.tables).get(table.lower(), UNKNOWN_ROWS))


UNKNOWN: Final = Sizes()


def share(condition: Expr) -> float:
    """The share of rows that satisfy a condition.

    >>> from deltic.expr.functions import resolve
    >>> from deltic.schema import BIGINT
    >>> a = Column(0, BIGINT, True, "a")
    >>> one, low = resolve("equal", [a, Literal(1, BIGINT)]), resolve("less", [a, Literal(1, BIGINT)])
    >>> share(one), share(resolve("or", [one, one])), share(resolve("not", [one])), round(share(resolve("and", [one, low])), 3)
    (0.1, 0.2, 0.9, 0.033)
    """
    match condition:
        case Literal():
            return 1.0 if condition.value is True else 0.0
        case Call(function="and", arguments=parts):
            return prod(map(share, parts))
        case Call(function="or", arguments=parts):
            return min(1.0, sum(map(share, parts)))
        case Call(function="not", arguments=(part,)):
            return 1.0 - share(part)
        case Call(function="in", arguments=(_, *members)):
            count = sum(len(each.values) if isinstance(each, Constants) else 1 for each in members)
            return min(0.5, EQUAL * count)
        case Call(function="is_not_null"):
            return 1.0 - EQUAL
        case Call(function=function) if function in _EQUALITIES:
            return EQUAL
        case Call(function=function) if function in _RANGES:
            return RANGE
        case _:
            return 0.5


@once_per_node
def rows_of(plan: Plan, sizes: Sizes) -> float:
    """The estimated number of rows, at least 1."""
    return max(1.0, _rows(plan, sizes))


def _rows(plan: Plan, sizes: Sizes) -> float:
    match plan:
        case Table():
            return sizes.rows(plan.table.name)
        case Reference() | Recursion():
            return UNKNOWN_ROWS
        case Values():
            return len(plan.rows)
        case Filter():
            return 1.0 if _is_one_row(plan) else rows_of(plan.input, sizes) * share(plan.predicate)
        case TemporalFilter():
            return rows_of(plan.input, sizes) * RANGE
        case Aggregate():
            return rows_of(plan.input, sizes) / ROWS_PER_VALUE if plan.keys else 1.0
        case TopK():
            groups = rows_of(plan.input, sizes) / ROWS_PER_VALUE if plan.keys else 1.0
            return rows_of(plan.input, sizes) if plan.limit is None else min(rows_of(plan.input, sizes), plan.limit * groups)
        case Expand():
            return rows_of(plan.input, sizes) * len(plan.sets)
        case FlatMap() | Generate():
            return rows_of(plan.input, sizes) * ROWS_PER_VALUE
        case Union():
            return sum(rows_of(part, sizes) for part in plan.inputs)
        case Join():
            return _joined_rows(plan, sizes)
        case MultiwayJoin() | SetOperation():
            return max(rows_of(part, sizes) for part in inputs(plan))
        case _:
            return rows_of(inputs(plan)[0], sizes)


def _joined_rows(plan: Join, sizes: Sizes) -> float:
    left, right = rows_of(plan.left, sizes), rows_of(plan.right, sizes)
    if plan.kind in ("semi", "anti", "not_in"):
        return left / 2
    sides = ((plan.left, [key for key, _ in plan.keys]), (plan.right, [key for _, key in plan.keys]))
    unique = [values_of(side, sizes) for side, keys in sides if _is_unique(side, keys)]
    rows = left * right * matching(unique, [values_of(side, sizes) for side, _ in sides], len(plan.keys))
    rows *= 1.0 if plan.residual is None else share(plan.residual)
    return max(rows, left if plan.kind in ("left", "full") else 0.0, right if plan.kind in ("right", "full") else 0.0)


def matching(unique: Sequence[float], values: Sequence[float], keys: int) -> float:
    """The share of pairs of rows with equal keys.

    unique: the numbers of values of those sides for which the keys are unique. values: those of all sides. keys: the number of keys.
    """
    if unique:
        return 1.0 / max(unique)
    return MATCHES / min(values) * EQUAL ** (keys - 1) if keys else 1.0


@once_per_node
def values_of(plan: Plan, sizes: Sizes) -> float:
    """The number of values of a unique key, whichever of them filters leave: another relation has rows with all of them."""
    match plan:
        case Filter() | TemporalFilter() | Project():
            return values_of(plan.input, sizes)
        case Join(kind="semi" | "anti" | "not_in"):
            return values_of(plan.left, sizes)
        case _:
            return rows_of(plan, sizes)


def _is_unique(plan: Plan, keys: Sequence[Expr]) -> bool:
    unique = unique_key(plan)
    return unique is not None and unique <= {key.index for key in keys if isinstance(key, Column)}


def _is_one_row(plan: Filter) -> bool:
    """Whether the filter compares a unique key with constants."""
    unique = unique_key(plan.input)
    equal = [part.arguments for part in conjuncts(plan.predicate) if isinstance(part, Call) and part.function == "equal"]
    fixed = {one.index for pair in equal for one, other in (pair, pair[::-1]) if isinstance(one, Column) and isinstance(other, Literal)}
    return unique is not None and unique <= fixed
