"""Estimates of the rows of relations, by which joins are ordered: sizes of tables, keys, and the usual shares of conditions.

The shares are those of System R (Selinger et al. 1979, table 1); where the number of a column's values is not known, its constants. An
estimate need not be near the truth: it decides between orders only, and never whether a result is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from deltic.expr.nodes import Call, Column, Constants, Expr, Literal
from deltic.optimizer.drop_distinct import unique_key
from deltic.plan.columns import conjuncts
from deltic.plan.node import once_per_node
from deltic.plan.nodes import (
    Aggregate,
    Distinct,
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
class TableSize:
    """Of a table: its rows, and by the names of columns in lower case the number of their values, as far as it is known."""

    rows: int
    values: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of tables when a plan is chosen, by their names in lower case. Other tables are of unknown size."""

    tables: tuple[tuple[str, TableSize], ...] = ()

    def has(self, table: str) -> bool:
        """Whether the size of the table is known."""
        return self._of(table) is not None

    def rows(self, table: str) -> float:
        """At least one."""
        size = self._of(table)
        return UNKNOWN_ROWS if size is None else max(1.0, size.rows)

    def values(self, table: str, column: str) -> float | None:
        """At least one; None if it is unknown."""
        size = self._of(table)
        number = None if size is None else dict(size.values).get(column.lower())
        return None if number is None else max(1.0, number)

    def _of(self, table: str) -> TableSize | None:
        return next((size for name, size in self.tables if name == table.lower()), None)


UNKNOWN: Final = Sizes()


def _no_values(column: int) -> float | None:
    return None


def share(condition: Expr, values: Callable[[int], float | None] = _no_values) -> float:
    """The share of rows that satisfy a condition. values: the number of values of a column, None if it is unknown.

    >>> from deltic.expr.functions import resolve
    >>> from deltic.schema import BIGINT
    >>> a = Column(0, BIGINT, True, "a")
    >>> one, low = resolve("equal", [a, Literal(1, BIGINT)]), resolve("less", [a, Literal(1, BIGINT)])
    >>> share(one), share(resolve("or", [one, one])), share(resolve("not", [one])), round(share(resolve("and", [one, low])), 3)
    (0.1, 0.2, 0.9, 0.033)
    >>> share(one, lambda column: 50.0)
    0.02
    """
    match condition:
        case Literal():
            return 1.0 if condition.value is True else 0.0
        case Call(function="and", arguments=parts):
            return prod(share(part, values) for part in parts)
        case Call(function="or", arguments=parts):
            return min(1.0, sum(share(part, values) for part in parts))
        case Call(function="not", arguments=(part,)):
            return 1.0 - share(part, values)
        case Call(function="in", arguments=(tested, *members)):
            count = sum(len(each.values) if isinstance(each, Constants) else 1 for each in members)
            return min(0.5, _equal(tested, values) * count)
        case Call(function="is_not_null"):
            return 1.0 - EQUAL
        case Call(function="equal" | "same", arguments=(Column() as one, Literal()) | (Literal(), Column() as one)):
            return _equal(one, values)
        case Call(function=function) if function in _EQUALITIES:
            return EQUAL
        case Call(function=function) if function in _RANGES:
            return RANGE
        case _:
            return 0.5


def _equal(expr: Expr, values: Callable[[int], float | None]) -> float:
    """The share of rows with one value of the expression."""
    number = values(expr.index) if isinstance(expr, Column) else None
    return EQUAL if number is None else 1.0 / number


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
            input = plan.input
            shared = share(plan.predicate, lambda column: column_values(input, column, sizes))
            return 1.0 if _is_one_row(plan) else rows_of(input, sizes) * shared
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
    known = [_key_values(plan, number, sizes) for number in range(len(plan.keys))]
    rows = left * right * matching(unique, [values_of(side, sizes) for side, _ in sides], known)
    rows *= 1.0 if plan.residual is None else share(plan.residual)
    return max(rows, left if plan.kind in ("left", "full") else 0.0, right if plan.kind in ("right", "full") else 0.0)


def matching(unique: Sequence[float], rows: Sequence[float], values: Sequence[float | None]) -> float:
    """The share of pairs of rows with equal keys.

    unique: the numbers of values of those sides for which the keys are unique. rows: of all sides, as of `values_of`. values: for each key,
    the greatest number of its values in a side, None if it is unknown.

    >>> matching([], [100.0, 1000.0], [None]), matching([], [100.0, 1000.0], [50.0]), matching([100.0], [100.0, 1000.0], [None])
    (0.02, 0.02, 0.01)
    """
    if unique:
        return 1.0 / max(unique)
    unknown = sum(number is None for number in values)
    among = MATCHES / min(rows) * EQUAL ** (unknown - 1) if unknown else 1.0
    return among / prod(number for number in values if number is not None)


def _key_values(plan: Join, number: int, sizes: Sizes) -> float | None:
    sides = zip((plan.left, plan.right), plan.keys[number], strict=True)
    known = [column_values(side, key.index, sizes) for side, key in sides if isinstance(key, Column)]
    return max((values for values in known if values is not None), default=None)


@once_per_node
def column_values(plan: Plan, column: int, sizes: Sizes) -> float | None:
    """The number of values of a column, at most that of the rows; None if it is unknown."""
    known = _column_values(plan, column, sizes)
    return None if known is None else min(known, rows_of(plan, sizes))


def _column_values(plan: Plan, column: int, sizes: Sizes) -> float | None:
    match plan:
        case Table():
            return sizes.values(plan.table.name, plan.table.schema.names[column])
        case Project():
            expr = plan.columns[column][1]
            return column_values(plan.input, expr.index, sizes) if isinstance(expr, Column) else None
        case Filter() | TemporalFilter() | Distinct():
            return _column_values(plan.input, column, sizes)
        case Join(kind="semi" | "anti" | "not_in"):
            return _column_values(plan.left, column, sizes)
        case Join():
            width = len(plan.left.schema)
            return _column_values(plan.left, column, sizes) if column < width else _column_values(plan.right, column - width, sizes)
        case _:
            return None


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


@once_per_node
def has_unknown_size(plan: Plan, sizes: Sizes) -> bool:
    """Whether the rows are those of a table of unknown size, or a share of them."""
    match plan:
        case Table():
            return not sizes.has(plan.table.name)
        case Filter() | TemporalFilter() | Project():
            return has_unknown_size(plan.input, sizes)
        case Join(kind="semi" | "anti" | "not_in"):
            return has_unknown_size(plan.left, sizes)
        case _:
            return False


def _is_unique(plan: Plan, keys: Sequence[Expr]) -> bool:
    unique = unique_key(plan)
    return unique is not None and unique <= {key.index for key in keys if isinstance(key, Column)}


def _is_one_row(plan: Filter) -> bool:
    """Whether the filter compares a unique key with constants."""
    unique = unique_key(plan.input)
    equal = [part.arguments for part in conjuncts(plan.predicate) if isinstance(part, Call) and part.function == "equal"]
    fixed = {one.index for pair in equal for one, other in (pair, pair[::-1]) if isinstance(one, Column) and isinstance(other, Literal)}
    return unique is not None and unique <= fixed
