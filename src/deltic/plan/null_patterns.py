"""NOT IN of several columns: antijoins by keys, one for each way in which NULLs can make two rows possibly equal.

Two rows are possibly equal if their values are equal in each column or NULL on a side. Rows of the left side are divided by which of their
values are NULL; those of one pattern have no match if none of the right rows with NULLs in some other columns is equal to them in the rest.
Without NULLs all but the first of these antijoins read no rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Expr, Literal
from deltic.plan.columns import conjunction, conjuncts, is_not_null, is_null, shift
from deltic.plan.equalities import sides
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Filter, Plan, union_of
from deltic.plan.signs import may_be_negative
from deltic.schema import BOOLEAN

MOST: Final = 2
"""Columns by whose NULLs rows are divided: two that are nullable on both sides make 9 antijoins. Further ones are compared on matches."""
Pair = tuple[Expr, Expr]


def possible(equal: Expr) -> Expr:
    """Whether an equality is TRUE or NULL."""
    return resolve("coalesce", [equal, Literal(True, BOOLEAN)]) if equal.nullable else equal


def has_possible_keys(join: Join) -> bool:
    """Whether the join is of rows that are possibly equal."""
    return join.kind in ("semi", "anti") and bool(_divided(join)[0])


def by_null_patterns(join: Join) -> Plan | None:
    """An antijoin, or the one that a semijoin is without, by keys; None if its condition does not compare values that may be NULL.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import BIGINT, Field, Schema, TableSchema
    >>> t, u = (Table(TableSchema(name, Schema((Field(column, BIGINT),)))) for name, column in (("t", "a"), ("u", "b")))
    >>> equal = resolve("=", [Column(0, BIGINT, True, "a"), Column(1, BIGINT, True, "b")])
    >>> print(show(by_null_patterns(Join(t, u, "anti", (), possible(equal)))))
    Union
      Join anti
        Join anti on a#0 = b#0
          Filter is_not_null(a#0)
            Table t (a)
          Table u (b)
        Filter is_null(b#0)
          Table u (b)
      Join anti
        Filter is_null(a#0)
          Table t (a)
        Table u (b)
    """
    assert join.kind in ("semi", "anti")
    pairs, rest = _divided(join)
    if not pairs or may_be_negative(join.right):
        return None
    residual = conjunction(rest) if rest else None
    parts: list[Plan] = []
    for missing in _subsets([i for i, (left, _) in enumerate(pairs) if left.nullable]):
        tests = [is_null(left) if i in missing else is_not_null(left) for i, (left, _) in enumerate(pairs) if left.nullable]
        kept: Plan = Filter(join.left, conjunction(tests)) if tests else join.left
        for absent in _subsets([i for i, (_, right) in enumerate(pairs) if right.nullable and i not in missing]):
            tests = [is_null(pairs[i][1]) for i in absent]
            right: Plan = Filter(join.right, conjunction(tests)) if tests else join.right
            equal = tuple(pair for i, pair in enumerate(pairs) if i not in missing and i not in absent)
            kept = replace(join, left=kept, right=right, kind="anti", keys=(*join.keys, *equal), residual=residual)
        parts.append(kept)
    return union_of(parts)


def _divided(join: Join) -> tuple[list[Pair], list[Expr]]:
    """(the values whose equality may be NULL, over their sides, the other conditions)."""
    pairs: list[Pair] = []
    rest: list[Expr] = []
    width = len(join.left.schema)
    for part in () if join.residual is None else conjuncts(join.residual):
        pair = _possible(part, width) if len(pairs) < MOST else None
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    return pairs, rest


def _possible(part: Expr, width: int) -> Pair | None:
    match part:
        case Call(function="coalesce", arguments=(Call(function="equal") as equal, Literal(value=True))) if not can_fail(equal):
            pair = sides(equal, width)
            return None if pair is None else (pair[0], shift(pair[1], -width))
    return None


def _subsets(numbers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All of them, the smaller ones first."""
    return (chosen for size in range(len(numbers) + 1) for chosen in combinations(numbers, size))
