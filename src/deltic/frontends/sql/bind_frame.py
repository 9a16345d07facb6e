"""Binds the frames of windows: ROWS by numbers of rows, RANGE by distances of the only term of the order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from deltic.errors import TypeMismatch
from deltic.expr import Expr, Literal, cast, common_type, resolve
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import columns_of, user_functions
from deltic.frontends.sql import tree
from deltic.plan.nodes import Order
from deltic.plan.window_nodes import UNBOUNDED, WHOLE, Edge, WindowFrame
from deltic.schema import DATE, DAY_TO_SECOND, INT, TIMESTAMP, TIMESTAMP_NTZ, YEAR_TO_MONTH

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

_BACK: Final = {"UNBOUNDED": 0, "VALUE": 1, "ROW": 2}
"""The order of the bounds before the current row; those after it follow in the opposite order."""


def bind_frame(binder: ExpressionBinder, text: tree.WindowText, order: Sequence[Order]) -> WindowFrame | None:
    """The frame; None if the window has none."""
    frame = text.frame
    if frame is None:
        return None
    _check_order(frame)
    if frame.unit == "ROWS":
        start, end = (_rows(binder, bound) for bound in (frame.start, frame.end))
        if start.kind == end.kind == "rows" and start.rows > end.rows:
            raise TypeMismatch("the frame ends before it starts", span=frame.span, expected="ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING")
        return WindowFrame(start, end)
    if frame.start.kind == frame.end.kind == "UNBOUNDED":
        return WHOLE
    if not order:
        raise TypeMismatch("RANGE requires ORDER BY", span=frame.span, expected="OVER (ORDER BY x RANGE …)")
    return _range(binder, frame, order)


def _check_order(frame: tree.FrameText) -> None:
    """Raises TypeMismatch unless the start is before the end, by their kinds."""
    places = [4 - _BACK[bound.kind] if bound.following else _BACK[bound.kind] for bound in (frame.start, frame.end)]
    if places[0] == 4:
        raise TypeMismatch("a frame cannot start at UNBOUNDED FOLLOWING", span=frame.start.span, expected="UNBOUNDED PRECEDING")
    if places[1] == 0:
        raise TypeMismatch("a frame cannot end at UNBOUNDED PRECEDING", span=frame.end.span, expected="UNBOUNDED FOLLOWING")
    if places[0] > places[1]:
        raise TypeMismatch("the frame ends before it starts", span=frame.span, expected=f"{frame.unit} BETWEEN start AND end")


def _rows(binder: ExpressionBinder, bound: tree.BoundText) -> Edge:
    if bound.kind == "UNBOUNDED":
        return UNBOUNDED
    if bound.value is None:
        return Edge("rows")
    distance = _constant(binder, bound.value)
    number = evaluate(distance, ()) if distance.type.is_integer and common_type([distance.type, INT]) == INT else None
    if not isinstance(number, int):
        raise TypeMismatch("a bound of ROWS is not an INT", span=bound.value.span, expected="ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")
    return Edge("rows", number if bound.following else -number)


def _constant(binder: ExpressionBinder, node: tree.Expression) -> Expr:
    distance = binder.bind(node)
    if columns_of(distance) or any(user_functions(distance)):
        raise TypeMismatch("the bound of a frame is not constant", span=node.span, expected="a constant")
    return distance


def _range(binder: ExpressionBinder, frame: tree.FrameText, order: Sequence[Order]) -> WindowFrame:
    limits = [_limit(binder, bound, order, frame) for bound in (frame.start, frame.end)]
    return WindowFrame(limits[0], limits[1])


def _limit(binder: ExpressionBinder, bound: tree.BoundText, order: Sequence[Order], frame: tree.FrameText) -> Edge:
    """The edge of a RANGE: the current row's term, less or more a distance."""
    if bound.kind == "UNBOUNDED":
        return UNBOUNDED
    if bound.value is None:
        return Edge("peers")
    if len(order) > 1:
        raise TypeMismatch("RANGE with a distance requires one term of ORDER BY", span=frame.span, expected="ORDER BY x RANGE …")
    (term,) = order
    distance = _constant(binder, bound.value)
    own = _widest(term.expr)
    if (own.type.is_numeric and distance.type.is_numeric) or own.type == _widest(distance).type:
        distance = cast(distance, own.type, distance.span)
    fits = distance.type == own.type if own.type.is_numeric or own.type.is_interval else _is_distance(own, distance)
    if not fits:
        expected = "a number for a number, INTERVAL n DAYS or MONTHS for a DATE, an INTERVAL for a TIMESTAMP or an INTERVAL"
        message = f"a distance of {distance.type.sql} does not fit the order by {term.expr.type.sql}"
        raise TypeMismatch(message, span=bound.value.span, expected=expected)
    operator = "+" if bound.following != term.descending else "-"
    value = evaluate(distance, ())
    return Edge("range", limit=resolve(operator, [own, Literal(value, distance.type, distance.span)], frame.span))


def _widest(expr: Expr) -> Expr:
    """An INTERVAL in the type of its kind that has all fields, in which limits of other fields compare; others as they are."""
    if expr.type.is_interval:
        return cast(expr, DAY_TO_SECOND if expr.type.is_day_time else YEAR_TO_MONTH)
    return expr


def _is_distance(term: Expr, distance: Expr) -> bool:
    """Whether the sum of the two has the term's type."""
    if term.type == DATE:
        return distance.type == INT or (distance.type.is_interval and resolve("+", [term, distance]).type == DATE)
    return term.type in (TIMESTAMP, TIMESTAMP_NTZ) and distance.type.is_interval
