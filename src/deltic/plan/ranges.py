"""Comparisons between the two sides of a join: by which of them rows are looked up in order, and what is left to test on each match.

A range is a point of one side between two bounds of the other, or on one side of one bound. Values are compared by their words, so a type
whose words do not sort, such as STRING, has no ranges. Two comparisons that share no operand, such as those of overlapping intervals, are
two ranges without common matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Final, NamedTuple

from deltic.expr import cast
from deltic.expr.failing import can_fail
from deltic.expr.nodes import Call, Cast, Expr, Literal, calls_python, columns_of, outer_columns
from deltic.expr.typing import cast_can_fail
from deltic.plan.columns import compared, conjunction, conjuncts, shift
from deltic.plan.join_nodes import Join, is_word
from deltic.schema import BIGINT, DOUBLE, FLOAT, NULL, Type

LESSER_FIRST: Final = {"less": True, "less_equal": False}
GREATER_FIRST: Final = {"greater": True, "greater_equal": False}
"""Comparison → whether equal values do not satisfy it."""


class RangeBound(NamedTuple):
    """A bound of a range. expr: over its side. strict: whether a point that equals it is outside. open: whether NULL is no bound."""

    expr: Expr
    strict: bool
    open: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """low ≤ point ≤ high, or < where a bound is strict; one bound may be missing.

    side: that of the point, 0 is left; the bounds are of the other one. point, low, high: over their sides. rest: the conditions, over both
    sides, that matches must satisfy beside these; a comparison that can fail is one of them, since a lookup does not raise its error.
    """

    side: int
    point: Expr
    low: RangeBound | None
    high: RangeBound | None
    rest: tuple[Expr, ...]

    @property
    def is_interval(self) -> bool:
        """Whether the side of the bounds has intervals, and not points."""
        return self.low is not None and self.high is not None


class Inequality(NamedTuple):
    """lesser < greater, both over (left, right). left: whether the lesser operand is over the left side. part: the condition.

    open: the operand that is no bound where it is NULL, as in `end IS NULL OR time < end`.
    """

    lesser: Expr
    greater: Expr
    strict: bool
    left: bool
    part: Expr
    open: Expr | None = None


def range_of(join: Join) -> Range | None:
    """The range by which rows of a join are looked up under its keys; None if its condition compares nothing in order."""
    if join.residual is None:
        return None
    width, parts = len(join.left.schema), conjuncts(join.residual)
    compared = _comparisons(parts, width)
    for pair in permutations(compared, 2):
        if (of_point := on_one_point(*pair)) is not None and _is_point(of_point[0].greater, *of_point):
            return _range(of_point[0].greater, of_point, parts, width)
    for each in compared:
        point = each.lesser if each.greater == each.open else each.greater
        if each.open is None or not point.nullable:  # the condition is TRUE of a NULL where there is no bound
            return _range(point, (each,), parts, width)
    return None


def on_one_point(low: Inequality, high: Inequality) -> tuple[Inequality, Inequality] | None:
    """Both as comparisons of one value with a bound below it and one above it, of one type; None if they compare others.

    An INT above an INT and below a DOUBLE is compared with both as a DOUBLE: as long as no two values become one, nothing else changes.
    """
    if low.left == high.left:
        return None
    if low.greater == high.lesser:
        return low, high
    if low.open is not None or high.open is not None or without_cast(low.greater) != without_cast(high.lesser):
        return None
    if _keeps_values(low.greater, high.lesser.type):
        return low._replace(lesser=cast(low.lesser, high.lesser.type), greater=high.lesser), high
    if _keeps_values(high.lesser, low.greater.type):
        return low, high._replace(lesser=low.greater, greater=cast(high.greater, low.greater.type))
    return None


def without_cast(expr: Expr) -> Expr:
    """The number of which it is a cast that keeps values apart, or the expression itself."""
    return expr.argument if isinstance(expr, Cast) and not expr.lenient and _keeps_values(expr.argument, expr.type) else expr


def _keeps_values(expr: Expr, target: Type) -> bool:
    """Whether a cast of the number to this type neither fails nor rounds."""
    source = expr.type
    if not (source.is_numeric and target.is_numeric) or cast_can_fail(source, target):
        return False
    if target.is_decimal:
        return source.is_integer or (source.is_decimal and source.scale <= target.scale)
    if target == DOUBLE:
        return source == FLOAT or (source.is_integer and source != BIGINT)
    return source == target or (source.is_integer and target.is_integer)


def overlap_of(join: Join) -> tuple[Join, Join] | None:
    """Of a join of intervals that overlap two joins by a range: where the right one begins in the left one, and where it begins before it.

    Together they have the rows of the join, each once: a ≤ d and c ≤ b, if a ≤ c ≤ b and a ≤ d, or if c < a ≤ d and c ≤ b.
    """
    looked_up = range_of(join)
    if join.residual is None or looked_up is None or looked_up.is_interval:
        return None
    parts = conjuncts(join.residual)
    for one, other in permutations(_comparisons(parts, len(join.left.schema)), 2):
        starts = one.lesser, other.lesser
        if one.open in starts or other.open in starts or any(each.open is not None and each.lesser.nullable for each in (one, other)):
            continue
        if one.left and not other.left and starts[0].type == starts[1].type and is_word(starts[0].type) and not any(map(can_fail, starts)):
            inside, before = compared("less_equal", *starts), compared("less", *reversed(starts))
            return _first(join, (inside, other.part), parts), _first(join, (before, one.part), parts)
    return None


def compared_sides(part: Expr, width: int) -> tuple[Expr, Expr] | None:
    """(lesser, greater) of a comparison between the two sides that rows may be looked up by. width: of the left one."""
    each = comparison(part, width)
    return None if each is None or each.open is not None else (each.lesser, each.greater)


def is_ordered(type: Type) -> bool:
    """Whether the words of its values, of which none is NULL, sort as they do."""
    return not type.has_bytes and type != NULL


def _is_point(expr: Expr, low: Inequality, high: Inequality) -> bool:
    """Whether it can be looked up among intervals. That of two open bounds must not be NULL, of which the condition can be TRUE."""
    open_ends = low.open is not None and high.open is not None
    return expr not in (low.open, high.open) and is_word(expr.type) and not can_fail(expr) and not (open_ends and expr.nullable)


def _first(join: Join, first: Sequence[Expr], parts: Sequence[Expr]) -> Join:
    return replace(join, residual=conjunction(dict.fromkeys((*first, *parts))))


def _comparisons(parts: Sequence[Expr], width: int) -> list[Inequality]:
    """Those between the two sides. width: of the left one."""
    return [each for part in parts if (each := comparison(part, width)) is not None]


def comparison(part: Expr, width: int) -> Inequality | None:
    """Between the two sides, as rows may be looked up by. width: of the left one."""
    match part:
        case (
            Call(function="or", arguments=(Call(function="is_null", arguments=(bound,)), Call() as other))
            | Call(function="or", arguments=(Call() as other, Call(function="is_null", arguments=(bound,))))
        ):
            compared = comparison(other, width)
            fits = compared is not None and compared.open is None and bound in (compared.lesser, compared.greater)
            return compared._replace(part=part, open=bound) if compared is not None and fits else None
        case Call(function="same" | "equal", arguments=(Call() as other, Literal(value=True))):  # IS TRUE
            compared = comparison(other, width)
            return None if compared is None else compared._replace(part=part)
    operands = inequality(part)
    if operands is None:
        return None
    lesser, greater, strict = operands
    sides = [{i < width for i in columns_of(operand)} for operand in (lesser, greater)]
    return Inequality(lesser, greater, strict, sides[0] == {True}, part) if sides in ([{True}, {False}], [{False}, {True}]) else None


def inequality(part: Expr) -> tuple[Expr, Expr, bool] | None:
    """(lesser, greater, whether equal values do not satisfy it) of a plain comparison that rows may be looked up by."""
    match part:
        case Call(function=function, arguments=(lesser, greater)) if function in LESSER_FIRST:
            strict = LESSER_FIRST[function]
        case Call(function=function, arguments=(greater, lesser)) if function in GREATER_FIRST:
            strict = GREATER_FIRST[function]
        case _:
            return None
    if lesser.type != greater.type or not is_ordered(lesser.type) or outer_columns(part) or calls_python(part):
        return None
    return lesser, greater, strict


def _range(point: Expr, used: Sequence[Inequality], parts: Sequence[Expr], width: int) -> Range:
    """The range of a point of which the used comparisons state the bounds."""
    side = int(min(columns_of(point)) >= width)
    bounds: dict[bool, RangeBound] = {}
    for each in used:
        is_low = each.greater == point
        bound = each.lesser if is_low else each.greater
        bounds[is_low] = RangeBound(bound if side else shift(bound, -width), each.strict, bound == each.open)
    dropped = [each.part for each in used if not can_fail(each.part)]
    rest = tuple(part for part in parts if part not in dropped)
    return Range(side, shift(point, -width) if side else point, bounds.get(True), bounds.get(False), rest)
