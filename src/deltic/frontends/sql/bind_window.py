"""Binds window functions: calls with OVER, the windows of a SELECT, and their frames.

A window function of a SELECT is a Column with index WINDOWED + its number until its rows are known: those of FROM, or the groups. Functions
over one window, that is with one PARTITION BY and ORDER BY, are one node of the plan, unless one of them reads another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from deltic.aggregates import known_aggregates
from deltic.errors import TypeMismatch, UnknownName, Unsupported, did_you_mean, most_like
from deltic.expr import Column, Expr, cast, common_type, known_functions
from deltic.expr.collating import agreed_values, stripped
from deltic.expr.functions.comparison import check_ordered
from deltic.expr.functions.signature import check_count
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import columns_of, free_variables, user_functions
from deltic.frontends.sql import tree
from deltic.frontends.sql.bind_aggregate import aggregate_call, aggregate_of
from deltic.frontends.sql.bind_frame import bind_frame
from deltic.frontends.sql.scope import SUBQUERY, WINDOWED, reads_windows
from deltic.frontends.sql.store_assignment import may_store
from deltic.plan.columns import columns_of_all, reference
from deltic.plan.nodes import Order
from deltic.plan.whole_rows import whole_rows
from deltic.plan.window_nodes import UNBOUNDED, WHOLE, Edge, WindowCall, WindowFrame, WindowFunction
from deltic.schema import DOUBLE, INT, NULL, STRING, Schema

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

RANKS: Final[dict[str, WindowFunction]] = {
    "row_number": "row_number",
    "rank": "rank",
    "dense_rank": "dense_rank",
    "percent_rank": "percent_rank",
    "cume_dist": "cume_dist",
    "ntile": "ntile",
}
OFFSETS: Final[dict[str, WindowFunction]] = {"lag": "lag", "lead": "lead"}
WINDOW_FUNCTIONS: Final = (*RANKS, *OFFSETS, "nth_value")
"""The functions that require OVER."""
_PICKING: Final[dict[str, WindowFunction]] = {"first": "first_value", "last": "last_value", "any_value": "first_value"}
"""The aggregates that pick a row, by their registered names."""
_BY_RANGE: Final = WindowFrame(UNBOUNDED, Edge("peers"))
_UP_TO_ROW: Final = WindowFrame(UNBOUNDED, Edge("rows"))
_GREATEST: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class WindowKey:
    """PARTITION BY and ORDER BY of a window."""

    keys: tuple[Expr, ...]
    order: tuple[Order, ...]


class WindowCollector:
    """The distinct window functions of one SELECT, by window; a column with index WINDOWED + i represents the i-th."""

    def __init__(self) -> None:
        self.calls: list[tuple[WindowKey, WindowCall]] = []

    def add(self, key: WindowKey, call: WindowCall) -> Column:
        """The column that represents the call."""
        if (key, call) not in self.calls:
            self.calls.append((key, call))
        return Column(WINDOWED + self.calls.index((key, call)), call.type, call.nullable, call.function, call.span)


def with_windows_in_place(select: tree.SelectQuery) -> tree.SelectQuery:
    """The SELECT with the windows of its clause WINDOW in place of their names."""
    if not select.windows:
        return select
    named: dict[str, tree.WindowText] = {}
    for window in select.windows:
        if window.name.text.lower() in named:
            raise Unsupported(f"the window {window.name.text!r} is defined twice", span=window.name.span, remedy="give it another name")
        named[window.name.text.lower()] = window.window
    return replace(select, items=_placed(select.items, named), qualify=_placed(select.qualify, named))


def _placed(node: Any, named: Mapping[str, tree.WindowText]) -> Any:
    """The tree with each window that is a name as what the name means."""

    def placed(part: Any) -> Any:
        return _meaning(part, named) if isinstance(part, tree.WindowText) else part

    return tree.rewritten(node, placed, _outside_queries)


def _outside_queries(node: object) -> bool:
    return not isinstance(node, tree.QUERIES)


def _meaning(text: tree.WindowText, named: Mapping[str, tree.WindowText]) -> tree.WindowText:
    seen: list[str] = []
    while text.name is not None:
        name = text.name.text.lower()
        if name in seen:
            raise UnknownName(f"the window {text.name.text!r} refers to itself", span=text.name.span, remedy="OVER (…)")
        if name not in named:
            raise _unknown(text.name, named)
        seen.append(name)
        text = named[name]
    return text


def _unknown(name: tree.Name, named: Iterable[str]) -> UnknownName:
    return UnknownName(f"there is no window {name.text!r}", span=name.span, remedy=did_you_mean(name.text, named) or "WINDOW name AS (…)")


def without_over(node: tree.FunctionCall) -> TypeMismatch:
    """The error for a call of a window function without OVER."""
    expected = f"{node.name}({'…' * bool(node.arguments)}) OVER (PARTITION BY x ORDER BY y)"
    return TypeMismatch(f"the window function {node.name} requires OVER", span=node.span, expected=expected)


def bind_window(binder: ExpressionBinder, node: tree.OverCall) -> Column:
    """The column that represents the call, which is added to the binder's collector."""
    if binder.windows is None:
        raise Unsupported(f"a window function is not allowed in {binder.clause}", span=node.span, remedy=_elsewhere(binder.clause))
    text = node.window
    if text.name is not None:
        raise _unknown(text.name, ())
    rows = replace(binder, clause="a window function", keys=None, windows=None)

    def bound(part: tree.Expression) -> Expr:
        expr = rows.bind(part)
        return expr if rows.subqueries is None else rows.subqueries.in_first_form(expr)

    terms = tuple(Order(bound(term.expression), term.descending, term.nulls_first) for term in text.order)
    key = WindowKey(tuple(map(bound, text.partition)), terms)
    for clause, exprs in (("PARTITION BY", key.keys), ("ORDER BY", [term.expr for term in terms])):
        for expr in exprs:
            check_ordered(clause, expr.type, expr.span or node.span)
    call = replace(_call(rows, node, text, terms), span=node.span)
    _check_parts(node, key, call, binder.clause)
    return binder.windows.add(key, call)


def _elsewhere(clause: str) -> str:
    if clause in ("WHERE", "HAVING"):
        return "QUALIFY tests window functions"
    return "compute it in a subquery of FROM first"


def levels(calls: Sequence[tuple[WindowKey, WindowCall]], reads: Callable[[int], frozenset[int]]) -> list[int]:
    """For each of the calls, in the order in which they were bound: 0, or one more than those of the calls that it reads.

    reads: the columns that the subquery with a column reads.
    """
    found: list[int] = []
    for key, call in calls:
        read = columns_of_all(_parts(key, call))
        read = read.union(*(reads(index) for index in read if index >= SUBQUERY))
        found.append(max((found[index - WINDOWED] + 1 for index in read if WINDOWED <= index < SUBQUERY), default=0))
    return found


def _parts(key: WindowKey, call: WindowCall) -> list[Expr]:
    aggregate = call.aggregate
    aggregated = () if aggregate is None else (*aggregate.arguments, *([] if aggregate.filter is None else [aggregate.filter]))
    return [*key.keys, *(term.expr for term in key.order), *call.arguments, *aggregated]


def _check_parts(node: tree.OverCall, key: WindowKey, call: WindowCall, clause: str) -> None:
    """Raises an error if a window function cannot read what it does. Those of QUALIFY can read others by a name of the select list."""
    for part in _parts(key, call):
        if reads_windows(part) and clause != "QUALIFY":
            remedy = "compute it in a subquery of FROM first"
            raise Unsupported("a window function is not allowed in another", span=part.span or node.span, remedy=remedy)
        if free_variables(part):
            raise TypeMismatch("a window function cannot read a parameter of a lambda", span=part.span, expected="columns")


def _call(binder: ExpressionBinder, node: tree.OverCall, text: tree.WindowText, order: Sequence[Order]) -> WindowCall:
    name, call = node.call.name, node.call
    if call.distinct:
        raise Unsupported("DISTINCT is not supported with OVER, as in Spark", span=call.span, remedy="GROUP BY in a subquery, and a join")
    if call.function is None and name in WINDOW_FUNCTIONS:
        if not order:
            expected = f"{name}(…) OVER (PARTITION BY x ORDER BY y)"
            raise TypeMismatch(f"the window function {name} requires ORDER BY", span=node.span, expected=expected)
        if name == "nth_value":
            return _nth(binder, node, bind_frame(binder, text, order) or _BY_RANGE)
        _check_frame(name, text.frame, bind_frame(binder, text, order))
        return _ranked(binder, node) if name in RANKS else _offset(binder, node)
    if not aggregate_of(call):
        like = None if name in known_functions() else most_like(name, (*WINDOW_FUNCTIONS, *known_aggregates()))
        remedy = None if like is None else f"did you mean {like!r}?"
        expected = "an aggregate, row_number, rank, lag, lead, …"
        raise Unsupported(f"{name} is not a window function", span=call.span, expected=expected, remedy=remedy)
    return _over_frame(binder, node, order, bind_frame(binder, text, order))


def _check_frame(name: str, text: tree.FrameText | None, frame: WindowFrame | None) -> None:
    """Raises Unsupported for a frame that is not the function's own, as in Spark."""
    own = _BY_RANGE if name == "cume_dist" else _UP_TO_ROW
    if text is not None and (frame != own or name in OFFSETS):
        raise Unsupported(f"{name} has no other frame", span=text.span, remedy="leave ROWS or RANGE out")


def _ranked(binder: ExpressionBinder, node: tree.OverCall) -> WindowCall:
    name, arguments = node.call.name, node.call.arguments
    if name in ("rank", "dense_rank", "percent_rank"):
        for part in arguments:  # Spark takes arguments, which have no effect
            binder.bind(part)
        arguments = ()
    check_count(name, arguments, 0, 1 if name == "ntile" else 0, node.call.span)
    _check_nulls(node)
    number = _number(binder, name, arguments[0], 1) if arguments else 1
    return WindowCall(RANKS[name], DOUBLE if name in ("percent_rank", "cume_dist") else INT, False, number=number)


def _offset(binder: ExpressionBinder, node: tree.OverCall) -> WindowCall:
    """lag or lead: the value, the number of rows, and the default, cast to the value's type as a column's value is; texts to any."""
    name, arguments = node.call.name, node.call.arguments
    check_count(name, arguments, 1, 3, node.call.span)
    value = binder.bind(arguments[0])
    if value.type == NULL:
        raise TypeMismatch(f"the value of {name} is only NULL and has no type", span=value.span, remedy="CAST(NULL AS type)")
    number = _number(binder, name, arguments[1], -_GREATEST) if len(arguments) > 1 else 1
    values: tuple[Expr, ...] = (value,)
    if len(arguments) == 3:
        value, default = agreed_values(name, [value, binder.bind(arguments[2])], node.call.span)
        fits = may_store(default.type, value.type) or (default.type.plain == STRING and not value.type.is_nested)
        if not fits or (default.type.is_interval and value.type.is_interval and default.type != value.type):
            expected = f"{value.type.sql}, found {default.type.sql}"
            raise TypeMismatch(f"the default of {name} is of another type", span=default.span, expected=expected, remedy="CAST the default")
        values = (value, cast(default, value.type, default.span))
    nullable = value.nullable or len(values) == 1 or values[1].nullable
    return WindowCall(OFFSETS[name], value.type, nullable, values, number, node.ignore_nulls)


def _nth(binder: ExpressionBinder, node: tree.OverCall, frame: WindowFrame) -> WindowCall:
    check_count("nth_value", node.call.arguments, 2, 2, node.call.span)
    value, number = binder.bind(node.call.arguments[0]), _number(binder, "nth_value", node.call.arguments[1], 1)
    return WindowCall("nth_value", value.type, True, (value,), number, node.ignore_nulls, frame)


def _number(binder: ExpressionBinder, name: str, node: tree.Expression, least: int) -> int:
    """A constant INT of at least this size."""
    expected = "a constant INT" + (f" of at least {least}" if least > 0 else "")
    bound = binder.bind(node)
    if columns_of(bound) or any(user_functions(bound)) or not (bound.type.is_integer and common_type([bound.type, INT]) == INT):
        raise TypeMismatch(f"an argument of {name} is not a constant number", span=node.span, expected=expected)
    number = evaluate(bound, ())
    if not isinstance(number, int) or number < least:
        raise TypeMismatch(f"invalid argument of {name}", span=node.span, expected=f"{expected}, found {number!r}")
    return number


def _check_nulls(node: tree.OverCall) -> None:
    if node.ignore_nulls:
        raise Unsupported(f"{node.call.name} has no IGNORE NULLS", span=node.span, remedy="leave it out")


def _over_frame(binder: ExpressionBinder, node: tree.OverCall, order: Sequence[Order], frame: WindowFrame | None) -> WindowCall:
    """An aggregate over the frame; FIRST and LAST are the first and last row's, where rows have an order."""
    call = aggregate_call(binder, node.call)
    if node.call.condition is not None:
        call = replace(call, filter=replace(binder, clause="FILTER").condition(node.call.condition))
    frame = frame or (_BY_RANGE if order else WHOLE)
    picking = None if call.user is not None else _PICKING.get(call.function)
    if picking is not None and (order or not frame.is_whole):
        if call.filter is not None:
            remedy = "CASE WHEN … END as the argument, and IGNORE NULLS"
            raise Unsupported(f"FILTER is not supported for {call.function} in the order of a window", span=node.span, remedy=remedy)
        ignores = node.ignore_nulls or (len(call.arguments) > 1 and evaluate(call.arguments[1], ()) is True)
        return WindowCall(picking, call.type, True, call.arguments[:1], 1, ignores, frame)
    if node.ignore_nulls and picking is None:
        raise Unsupported(f"{call.function} has no IGNORE NULLS", span=node.span, remedy="leave it out: aggregates skip NULLs")
    if call.is_listing and not call.directions:
        call = replace(call, arguments=(*call.arguments, *(term.expr for term in order)), directions=_directions(order))
    return WindowCall("aggregate", call.type, call.nullable, frame=frame, aggregate=call)


def _directions(order: Sequence[Order]) -> tuple[tuple[bool, bool], ...]:
    return tuple((term.descending, term.nulls_first) for term in order)


def with_whole_rows(call: WindowCall, order: Sequence[Order], rows: Schema) -> WindowCall:
    """A call whose value is a list in the order of the window, in which equal rows have that of all their columns, as in other calls.

    rows: the columns, those that have an order.
    """
    aggregate = call.aggregate
    if aggregate is None or not aggregate.is_listing or not (order or not call.frame.is_whole):
        return call
    terms = tuple(term.expr for term in order)
    if aggregate.directions != _directions(order) or aggregate.arguments[aggregate.written :] != terms:
        return call  # in an order of its own
    columns = [stripped(reference(rows, i)) for i in range(len(rows))]  # texts that a collation holds for equal are apart by their bytes
    last = [term for term in whole_rows([column for column in columns if column.type.is_ordered]) if term.expr not in terms]
    arguments = (*aggregate.arguments, *(term.expr for term in last))
    return replace(call, aggregate=replace(aggregate, arguments=arguments, directions=(*aggregate.directions, *_directions(last))))
