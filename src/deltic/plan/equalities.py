"""Equalities between the two sides of a join: its keys.

An equality becomes a key unless that could raise an error that the condition would not: one whose operands can fail on a row becomes a key
only if all conditions before it are keys. Others that can fail look rows up in joins without keys (plan/guarded_keys.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from deltic.expr import Call, Expr, Literal, can_fail, columns_of, resolve
from deltic.expr.nodes import outer_columns
from deltic.plan.columns import conjunction, conjuncts, shift
from deltic.plan.nodes import Join, Plan
from deltic.schema import STRING, Type

EQUAL: Final = "equal"
Keys = tuple[tuple[Expr, Expr], ...]


def split(condition: Expr, width: int) -> tuple[Keys, Expr | None]:
    """(keys, residual) of a condition over (left, right). width: the number of left columns."""
    keys: list[tuple[Expr, Expr]] = []
    rest: list[Expr] = []
    for part in conjuncts(condition):
        pair = sides(part, width)
        if pair is not None and (not rest or not (can_fail(pair[0]) or can_fail(pair[1]))):
            keys.append((pair[0], shift(pair[1], -width)))
        elif not (isinstance(part, Literal) and part.value is True):
            rest.append(part)
    return tuple(keys), conjunction(rest) if rest else None


def sides(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """(left, right) of an equality between the two relations, also one that is TRUE of NULLs; None for other conditions."""
    if (compared := _compared(part)) is None or outer_columns(part):
        return None
    for left, right in (compared.sides, compared.sides[::-1]):
        left_columns, right_columns = columns_of(left), columns_of(right)
        if left_columns and right_columns and max(left_columns) < width <= min(right_columns):
            return null_safe([left], [right])[0] if compared.null_safe else (left, right)
    return None


class _Compared(NamedTuple):
    """The two sides of an equality."""

    sides: tuple[Expr, ...]
    null_safe: bool


def _compared(part: Expr) -> _Compared | None:
    """What `a = b`, `a <=> b` and `a = b OR a IS NULL AND b IS NULL` compare: the last two are TRUE on the same rows."""
    match part:
        case Call(function="equal"):
            return _Compared(part.arguments, False)
        case Call(function="same", arguments=(left, right)) if _is_plain(left.type) and left.type == right.type:
            return _Compared((left, right), True)
        case Call(
            function="or",
            arguments=(
                Call(function="equal", arguments=(left, right)),
                Call(function="and", arguments=(Call(function="is_null", arguments=(one,)), Call(function="is_null", arguments=(other,)))),
            ),
        ) if {left, right} == {one, other} and _is_plain(left.type) and left.type == right.type:
            return _Compared((left, right), True)
    return None


def _is_plain(type: Type) -> bool:
    """Whether a STRUCT of values is equal to another one where these are."""
    return not type.is_nested and not type.collation


def with_equality(plan: Plan, condition: Expr) -> Plan | None:
    """`plan` with an equality of WHERE added to the keys of an inner join in it; None if that is not possible."""
    if not (isinstance(plan, Join) and plan.kind in ("inner", "left") and _compared(condition) is not None):
        return None
    width, read = len(plan.left.schema), columns_of(condition)
    pair = sides(condition, width)
    if pair is not None and plan.kind == "inner" and not any(can_fail(side) for side in pair):
        return replace(plan, keys=(*plan.keys, (pair[0], shift(pair[1], -width))))
    if read and max(read) < width:
        left = with_equality(plan.left, condition)
        return None if left is None else replace(plan, left=left)
    if read and min(read) >= width and plan.kind == "inner":
        right = with_equality(plan.right, shift(condition, -width))
        return None if right is None else replace(plan, right=right)
    return None


def null_safe(left: Sequence[Expr], right: Sequence[Expr]) -> Keys:
    """Keys for which NULL is a value like any other."""
    pairs = list(zip(left, right, strict=True))
    plain = [pair for pair in pairs if not (pair[0].nullable and pair[1].nullable)]
    others = [pair for pair in pairs if pair not in plain]
    if not others:
        return tuple(plain)
    return (*plain, (_together([one for one, _ in others]), _together([other for _, other in others])))


def _together(values: Sequence[Expr]) -> Expr:
    """A STRUCT of the values, which is not NULL where they are."""
    return resolve("named_struct", [part for i, value in enumerate(values) for part in (Literal(f"v{i}", STRING), value)], None)
