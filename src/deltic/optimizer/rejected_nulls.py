"""The columns whose NULLs a condition rejects: it is not TRUE of a row in which one of them is NULL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Cast, Column, Expr, Literal
from deltic.expr.registry import FUNCTIONS, Nulls
from deltic.plan.columns import conjuncts

NONE: Final[frozenset[int]] = frozenset()
_STRICT: Final = (Nulls.STRICT, Nulls.STRICT_BACKWARDS, Nulls.FOLDED)


def nulls_rejected(expr: Expr) -> frozenset[int]:
    """The columns without a value of which the predicate is not TRUE.

    >>> from deltic.expr.functions import resolve
    >>> from deltic.schema import BIGINT
    >>> a, b = Column(0, BIGINT, True, "a"), Column(1, BIGINT, True, "b")
    >>> less, present = resolve("less", [a, b]), resolve("is_not_null", [a])
    >>> sorted(nulls_rejected(less)), sorted(nulls_rejected(resolve("or", [less, present])))
    ([0, 1], [0])
    """
    match expr:
        case Call(function="and"):
            return union(nulls_rejected(part) for part in conjuncts(expr))
        case Call(function="or", arguments=(first, *rest)):
            return nulls_rejected(first).intersection(*map(nulls_rejected, rest))
        case Call(function="is_not_null", arguments=(argument,)):
            return nulls_passed(argument)
        case Call(function="same", arguments=(left, right)):
            return union(nulls_passed(side) for side, other in ((left, right), (right, left)) if _has_value(other))
        case _:
            return nulls_passed(expr)


def _has_value(expr: Expr) -> bool:
    return not expr.nullable or (isinstance(expr, Literal) and expr.value is not None)


def nulls_passed(expr: Expr) -> frozenset[int]:
    """The columns without a value of which the expression has none, or fails."""
    match expr:
        case Column():
            return frozenset((expr.index,))
        case Cast():
            return nulls_passed(expr.argument)
        case Call(function="in", arguments=(value, *_)):
            return nulls_passed(value)
        case Call() if is_strict(expr):
            return union(map(nulls_passed, expr.arguments))
        case _:
            return NONE


def is_strict(call: Call) -> bool:
    """Whether the call is NULL if any of its arguments is."""
    return (function := FUNCTIONS.get(call.function)) is not None and function.nulls in _STRICT


def union(parts: Iterable[frozenset[int]]) -> frozenset[int]:
    return NONE.union(*parts)


def without_null_tests(parts: Sequence[Expr]) -> list[Expr]:
    """The conditions without `x IS NOT NULL` of a column whose NULLs another one rejects, and which guards none that can fail.

    >>> from deltic.expr.functions import resolve
    >>> from deltic.plan.show import show_expr
    >>> from deltic.schema import BIGINT
    >>> a = Column(0, BIGINT, True, "a")
    >>> present, zero = resolve("is_not_null", [a]), resolve("equal", [a, Literal(0, BIGINT)])
    >>> inverse = resolve("equal", [resolve("mod", [Literal(1, BIGINT), a]), Literal(0, BIGINT)])
    >>> [list(map(show_expr, without_null_tests(parts))) for parts in ([present, zero], [present], [zero, present, inverse])]
    [['(a#0 = 0)'], ['is_not_null(a#0)'], ['(a#0 = 0)', 'is_not_null(a#0)', '((1 % a#0) = 0)']]
    """
    kept: list[Expr] = []
    guards = False
    for i in reversed(range(len(parts))):
        match parts[i]:
            case Call(function="is_not_null", arguments=(Column(index=index),)) if not guards:
                if index not in union(map(nulls_rejected, (*parts[:i], *kept))):
                    kept.append(parts[i])
            case part:
                kept.append(part)
                guards = guards or can_fail(part)
    return kept[::-1]
