"""Binds window(time, size[, slide[, start]]) and session_window(time, gap) of a SELECT: its rows, each once for each of its windows.

The windows are columns that follow those of FROM: the start, and of a session the end of the row's own. A window is a STRUCT of expressions
over them, so GROUP BY a window is GROUP BY its start. GROUP BY a session is GROUP BY the start of the one that the row is in, among those
that are equal in the other keys, and its end is the greatest of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeGuard

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Expr, Literal, cast, resolve
from deltic.expr.functions.event_time import MOMENTS, is_window, last_moment, moved_by
from deltic.expr.functions.nested import name_of
from deltic.expr.functions.signature import check_count
from deltic.expr.nodes import Call, Column, columns_of
from deltic.expr.rows.casts import EPOCH
from deltic.expr.rows.durations import Duration, parse_duration
from deltic.expr.rows.elements import MOST_ELEMENTS
from deltic.frontends.sql import tree
from deltic.intervals import MICROSECOND
from deltic.plan.columns import named_columns
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Filter,
    FlatMap,
    Join,
    Multiset,
    Order,
    Plan,
    Project,
    SetOperation,
    TopK,
    Union,
    Window,
)
from deltic.plan.window_nodes import WindowCall
from deltic.schema import BIGINT, DATE, INT, NULL, STRING, TIMESTAMP

if TYPE_CHECKING:
    from deltic.frontends.sql.bind_expression import ExpressionBinder

SESSION: Final = "session_window"
NAMES: Final = ("window", SESSION)
_DURATION: Final = "'10 minutes', '1 hour 30 minutes', or a whole number of microseconds"
_MONTHS: Final = "weeks or days; or GROUP BY date_trunc('month', time)"


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The windows of the rows of a SELECT.

    name: of the call, and of its value. time: of a row; a row without one has no window. size_us, slide_us, start_us: of window(). end:
    that of a row's own session. place: the position of the column of the start, which the end follows. optional: of grouping sets, in which
    the window may be NULL.
    """

    name: str
    time: Expr
    size_us: int = 0
    slide_us: int = 0
    start_us: int = 0
    end: Expr | None = None
    place: int = 0
    optional: bool = False
    span: Span | None = field(default=None, compare=False)

    @property
    def start(self) -> Column:
        """The start of a row's window."""
        return Column(self.place, self.time.type, self.optional or (self.end is not None and self.time.nullable), self.name, self.span)

    @property
    def own_end(self) -> Column:
        """The end of a row's own session."""
        assert self.end is not None
        return Column(self.place + 1, self.end.type, self.end.nullable, self.name, self.span)

    @property
    def value(self) -> Expr:
        """The window as a STRUCT."""
        end = moved_by(self.start, self.size_us, self.span) if self.end is None else self.own_end
        parts: list[Expr] = [Literal("start", STRING), self.start, Literal("end", STRING), end]
        return resolve("named_struct", parts, self.span)

    def is_named(self, name: str) -> bool:
        """Whether the window is meant by the name."""
        return name.lower() == self.name

    def over(self, plan: Plan) -> Plan:
        """The rows, once for each window, followed by the columns of the window."""
        rows = named_columns(plan.schema)
        if self.end is not None:
            named = Project(plan, (*rows, (self.name, self.time), (f"{self.name}_end", self.end)))
            return Filter(named, resolve(">", [self.own_end, self.start]))
        if self.size_us > self.slide_us or self.time.nullable:
            parts = (Literal(number, BIGINT) for number in (self.size_us, self.slide_us, self.start_us))
            return FlatMap(plan, "window_starts", (self.time, *parts), (self.name,), span=self.span)
        origin = EPOCH + self.start_us * MICROSECOND
        zoned = Literal(origin if self.time.type == TIMESTAMP else origin.replace(tzinfo=None), self.time.type)
        start = Call("time_bucket", (Literal(0, INT), Literal(self.size_us, BIGINT), self.time, zoned), self.time.type, False, self.span)
        return Project(plan, (*rows, (self.name, start)))

    def as_keys(self, keys: Sequence[Expr], group: tree.GroupClause) -> list[Expr]:
        """The keys of GROUP BY with the start in place of the window."""
        if self.value not in keys:
            return list(keys)
        if self.end is None:
            return [self.start if key == self.value and group.sets is None else key for key in keys]
        if group.sets is not None:
            remedy = "a subquery of FROM with GROUP BY session_window(…)"
            raise Unsupported("session_window() is not supported in ROLLUP, CUBE and GROUPING SETS", span=group.span, remedy=remedy)
        for node, key in zip(group.keys, keys, strict=False):
            if key == self.value and isinstance(tree.unnest(node), tree.NumberText):
                remedy = "GROUP BY session_window(…)"
                raise Unsupported("GROUP BY the place of a session does not merge it in Spark", span=node.span, remedy=remedy)
        for key in keys:
            if key != self.value and self.is_read_by(key):
                raise Unsupported("a part of a session is not a key beside it", span=key.span, remedy="leave it out")
        return [self.start if key == self.value else key for key in keys]

    def session_of(self, keys: Sequence[Expr], calls: Sequence[AggregateCall]) -> TimeWindow | None:
        """The windows, if the groups are sessions. Raises Unsupported for aggregates that read them."""
        if self.end is None or self.start not in keys:
            return None
        for call in calls:
            if any(map(self.is_read_by, [*call.arguments, *([] if call.filter is None else [call.filter])])):
                remedy = "session_window.start and session_window.end without an aggregate, or the time of the rows"
                raise Unsupported(f"{call.function.upper()} of a session is not supported", span=call.span, remedy=remedy)
        return self

    def sessions(self, plan: Plan, keys: Sequence[Expr]) -> Plan:
        """The rows followed by the start of their session, among those that are equal in the other keys."""
        call = WindowCall("session_start", self.start.type, False, (self.start, self.own_end), span=self.span)
        others = tuple(key for key in keys if key != self.start)
        return Window(plan, others, (Order(self.start, False, True),), ((self.name, call),))

    @property
    def greatest_end(self) -> AggregateCall:
        """The end of a session, from its rows."""
        return AggregateCall("max", (self.own_end,), self.own_end.type, True, span=self.span)

    def start_in(self, window: Expr) -> Expr:
        """The start of a window that is the key of a grouping set, and NULL where it is not in the set."""
        return resolve("field", [window, Literal("start", STRING)])

    def is_read_by(self, expr: Expr) -> bool:
        """Whether the expression reads the columns of the window."""
        own = {self.place} if self.end is None else {self.place, self.place + 1}
        return not own.isdisjoint(columns_of(expr))


def time_window_of(nodes: Iterable[object], binder: ExpressionBinder, place: int) -> TimeWindow | None:
    """The windows that the parts of a SELECT name, all the same. binder: over the rows of FROM."""
    calls = [part for node in nodes for part in tree.walk(node, lambda part: not isinstance(part, tree.QUERIES)) if is_time_window(part)]
    bound: list[TimeWindow] = []
    for call in sorted(calls, key=lambda call: call.span.start):
        window = replace(_bound(call, binder), place=place, span=call.span)
        if bound and window != bound[0]:
            remedy = "the other windows in a subquery of FROM"
            raise Unsupported("several windows of event time in one SELECT are not supported, as in Spark", span=call.span, remedy=remedy)
        bound.append(window)
    return bound[0] if bound else None


def is_time_window(node: object) -> TypeGuard[tree.FunctionCall]:
    """Whether the node is a call of window or session_window."""
    return isinstance(node, tree.FunctionCall) and node.function is None and node.name in NAMES


def value_of(binder: ExpressionBinder, node: tree.FunctionCall) -> Expr:
    """The value of a call. Raises Unsupported where the rows of a clause cannot be those of the windows."""
    if binder.time_window is None:
        message = f"{node.name}() is not allowed in {binder.clause}"
        remedy = f"a subquery of FROM: (SELECT *, {node.name}(…) AS w FROM t), and w.start"
        raise Unsupported(message, span=node.span, expected="SELECT, GROUP BY or ORDER BY", remedy=remedy)
    return binder.time_window.value


def check_no_session(plan: Plan, key: Expr, span: Span | None = None) -> None:
    """Raises Unsupported for a key that is a session of a subquery. Spark merges sessions again where they are grouped."""
    if isinstance(key, Column) and is_window(key.type) and _is_session(plan, key):
        remedy = "GROUP BY session_window(…) over the rows themselves; or the fields start and end, which are not merged"
        raise Unsupported("sessions of a subquery are not grouped", span=key.span or span, remedy=remedy)


def _is_session(plan: Plan, expr: Expr) -> bool:
    """Whether the value of the expression over the plan's rows is a session."""
    if not isinstance(expr, Column):
        return isinstance(expr, Call) and expr.function == "make_struct" and name_of(expr.arguments[0]) == SESSION
    match plan:
        case Project():
            return _is_session(plan.input, plan.columns[expr.index][1])
        case Aggregate():
            return expr.index < len(plan.keys) and _is_session(plan.input, plan.keys[expr.index][1])
        case Join() if expr.index >= len(plan.left.schema):
            return _is_session(plan.right, replace(expr, index=expr.index - len(plan.left.schema)))
        case Join() | SetOperation():
            return _is_session(plan.left, expr)
        case Union():
            return any(_is_session(part, expr) for part in plan.inputs)
        case Filter() | Distinct() | TopK() | Window() | FlatMap() | Multiset() if expr.index < len(plan.input.schema):
            return _is_session(plan.input, expr)
        case _:
            return False


def part_of(field: Expr) -> Expr:
    """A field of a window as the expression that the window has for it."""
    assert isinstance(field, Call)
    window, index = field.arguments
    assert isinstance(window, Call) and isinstance(index, Literal) and isinstance(index.value, int)
    return window.arguments[index.value]


def _bound(node: tree.FunctionCall, binder: ExpressionBinder) -> TimeWindow:
    name = node.name
    if node.distinct or node.condition is not None:
        raise Unsupported(f"{name} has no DISTINCT and no FILTER", span=node.span, remedy="leave it out")
    check_count(name, node.arguments, 2, 2 if name == SESSION else 4, node.span)
    rows = replace(binder, clause=f"an argument of {name}()")
    time = _time(name, rows.bind(node.arguments[0]))
    if name == SESSION:
        return TimeWindow(name, time, end=_session_end(time, rows.bind(node.arguments[1]), node))
    size, *more = [_micros(rows, argument) for argument in node.arguments[1:]]
    slide, start = more[0] if more else size, more[1] if len(more) > 1 else 0
    places = [argument.span for argument in node.arguments]
    if size <= 0:
        raise TypeMismatch("the size of window() is not greater than 0", span=places[1], expected=_DURATION)
    if not 0 < slide <= size:
        raise TypeMismatch("the slide of window() is not from 0 to its size", span=places[2], expected="0 < slide <= size")
    if abs(start) >= slide:
        raise TypeMismatch("the start of window() is not less than its slide", span=places[3], expected="-slide < start < slide")
    if size // slide >= MOST_ELEMENTS:
        raise TypeMismatch("each row would be in too many windows", span=places[2], expected=f"a slide of at least size / {MOST_ELEMENTS}")
    return TimeWindow(name, time, size, slide, start)


def _time(name: str, time: Expr) -> Expr:
    """The time of a row; of a window its last moment."""
    if is_window(time.type):
        return last_moment(time, time.span)
    if time.type in (DATE, STRING, NULL):
        return cast(time, TIMESTAMP, time.span)
    if time.type not in MOMENTS:
        raise TypeMismatch(f"the time of {name}() has the wrong type", span=time.span, expected=f"TIMESTAMP, found {time.type.sql}")
    return time


def _micros(binder: ExpressionBinder, node: tree.Expression) -> int:
    """A constant duration."""
    literal = binder.bind(node)
    if (
        not isinstance(literal, Literal)
        or literal.derived
        or literal.value is None
        or not (literal.type == STRING or literal.type.is_integer)
    ):
        raise TypeMismatch("a duration of window() is not a text or a whole number", span=node.span, expected=_DURATION)
    if isinstance(literal.value, int):
        return literal.value
    micros = _duration(str(literal.value), node.span).fixed_us
    if micros is None:
        raise TypeMismatch("months of window() have no fixed length", span=node.span, expected=_DURATION, remedy=_MONTHS)
    return micros


def _duration(text: str, span: Span) -> Duration:
    duration = parse_duration(text)
    if duration is None:
        raise TypeMismatch(f"invalid duration {text!r}", span=span, expected="a text such as '10 minutes' or '1 hour 30 minutes'")
    return duration


def _session_end(time: Expr, gap: Expr, call: tree.FunctionCall) -> Expr:
    """The end of a session of one row. An end that is NULL, or not after the start, is no session."""
    span = call.arguments[1].span
    if gap.type != STRING:
        expected = f"a text such as '5 minutes', found {gap.type.sql}"
        raise TypeMismatch("the gap of session_window() is not a text", span=span, expected=expected)
    if isinstance(gap, Literal):
        duration = _duration(str(gap.value), span)
        if sum(duration) <= 0:
            raise TypeMismatch("the gap of session_window() is not greater than 0", span=span, expected="'5 minutes'")
        if duration.fixed_us is not None:
            return moved_by(time, duration.fixed_us, call.span)
    return resolve("session_end", [time, gap], span)
