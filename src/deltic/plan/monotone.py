"""Stratification of recursions: more rows in the relations, or better values, must never give fewer rows or worse values.

Rows are ordered column by column. A value of MIN only falls from one iteration to the next, and one of MAX, COUNT or a SUM without
negative numbers only rises, with NULL as the worst value of all; other columns are fixed. A relation becomes better if each of its rows
stays or is replaced by one with the same fixed columns and better moving ones. A body that preserves this order is accepted, since its
iteration from empty only becomes better. So is a LEFT JOIN with at most one match, which replaces NULLs: of EXISTS and IN under OR, a
BOOLEAN that rises, or of a correlated value. Subqueries over other relations, correlated with a recursive one, may be anything: their
rows come all at once (plan/arrivals.py).
The check is syntactic and conservative: it rejects some monotone recursions, and accepts no others; but see plan/trends.py for NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar, assert_never

from deltic.aggregates.definition import First
from deltic.errors import Span, Unsupported
from deltic.expr.nodes import Call, Column, Expr
from deltic.plan.arrivals import LOOKUPS, Completeness
from deltic.plan.columns import reference
from deltic.plan.nodes import (
    Aggregate,
    AggregateCall,
    ByWatermark,
    DependentJoin,
    Distinct,
    Expand,
    Filter,
    FlatMap,
    Generate,
    Inspect,
    Join,
    JoinKind,
    Multiset,
    MultiwayJoin,
    OverTicks,
    Plan,
    Project,
    Recursion,
    Reduce,
    Reference,
    SetOperation,
    Table,
    TemporalFilter,
    TickRecursion,
    TopK,
    Union,
    Values,
    Weighted,
    Window,
    inputs,
    references,
)
from deltic.plan.signs import makes_negative
from deltic.plan.trends import Motion, Motions, Trend, is_steady, joint, motion_of, nonnegative_by
from deltic.plan.walk import nodes
from deltic.stacks import unbounded


@dataclass(frozen=True, slots=True)
class Evolution:
    """How a recursive relation changes. key: columns in which its rows differ, if they are known.

    merges: several of its rows may become one as they become better, so that there are fewer.
    """

    columns: Motions
    key: frozenset[int] | None = None
    merges: bool = False


Evolutions = Mapping[str, Evolution]
"""The recursive relations, by name."""

T = TypeVar("T")


class _States(dict[str, Evolution]):
    """Evolutions in one iteration, and what follows from them for plans. A plan is a DAG, so that is found once for each of its nodes."""

    def __init__(self, states: Evolutions) -> None:
        super().__init__(states)
        self.memo: dict[Hashable, Any] = {}
        names = frozenset(self)

        def is_set(plan: Plan) -> bool:
            return _key(plan, self) is not None and all(motion.trend == Trend.FIXED for motion in _motions(plan, self, names))

        self.completeness = Completeness(lambda plan: _reads(plan, names), is_set)


def _once(function: Callable[..., T]) -> Callable[..., T]:
    """A function of a plan, the states and their names that runs once for each plan and states."""
    compute = unbounded(function)

    @wraps(function)
    def once(plan: Plan, states: _States, *names: frozenset[str]) -> T:
        if (name := (function, plan)) not in states.memo:
            states.memo[name] = compute(plan, states, *names)
        result: T = states.memo[name]
        return result

    return once


COUNTS: Final = ("count", "count_if")

_OUTSIDE: Final = "compute it in a query that reads the finished relation, outside the recursion"
_MINIMUM: Final = "use MIN or MAX … GROUP BY, or compute it in a query that reads the finished relation, outside the recursion"
_WINDOW: Final = (
    "correlate the subquery by equalities alone; or ORDER BY … LIMIT n in place of row_number() <= n, and a subquery with an aggregate "
    "in place of a frame"
)
_SUM: Final = f"sum values that are not negative, such as abs(x), or x of rows WHERE x >= 0; or {_OUTSIDE}"
_FORM: Final = (
    "use it only in x + y, in x * y of numbers that are not negative, as y of rows WHERE y >= 0 are, in LEAST and GREATEST of values "
    "that are not NULL, which they skip, or in x < y where a better value still satisfies it; or compute this in a query that reads the "
    "finished relation, outside the recursion"
)
_JOINED: Final[dict[JoinKind, tuple[tuple[str, str], ...]]] = {
    "inner": (),
    "semi": (),
    "left": (("right", "on the right of a LEFT JOIN"),),
    "right": (("left", "on the left of a RIGHT JOIN"),),
    "full": (("left", "in a FULL JOIN"), ("right", "in a FULL JOIN")),
    "anti": (("right", "under NOT EXISTS or on the right of an ANTI JOIN"),),
    "not_in": (("right", "under NOT IN"),),
}
"""For each kind of join the sides on which more rows remove rows from the result, with words for the error."""


def check_monotone(relations: Mapping[str, Plan]) -> None:
    """Raises Unsupported, with the place, unless the bodies of the mutually recursive relations are monotone in them.

    The relations of enclosing recursions count as constant here; they are checked with their own recursion.
    """
    evolutions_of(relations)


def evolutions_of(relations: Mapping[str, Plan], around: Evolutions = MappingProxyType({})) -> Evolutions:
    """How the relations change: the least that their bodies preserve. Raises as check_monotone. around: of enclosing recursions."""
    states = _States(around)
    inner = {name: Evolution(_at_first(body, states, frozenset(relations)), _key(body, states)) for name, body in relations.items()}
    while True:
        states = _States({**around, **inner})
        now = {name: _next(state, relations[name], states) for name, state in inner.items()}
        if not around:
            _check_columns(relations, now)
        if now == inner:
            return now
        inner = now


def _check_columns(relations: Mapping[str, Plan], states: Evolutions) -> None:
    for name, state in states.items():
        for field, motion in zip(relations[name].schema, state.columns, strict=True):
            if motion.trend == Trend.MIXED:
                _refuse(
                    f"column {field.name} of the recursive relation {name} may rise and fall from one iteration to the next",
                    _place(relations.values(), frozenset(relations)),
                    _FORM,
                )


def _next(state: Evolution, body: Plan, states: _States) -> Evolution:
    names = frozenset(states)
    columns = tuple(map(_either, state.columns, _motions(body, states, names)))
    return replace(state, columns=columns, merges=state.merges or _merges(body, states, names))


@_once
def _motions(plan: Plan, states: _States, names: frozenset[str]) -> Motions:
    """The motions of the plan's columns. Raises Unsupported if it is not monotone in `names`."""
    if not _reads(plan, names):
        return _fixed(plan, states)
    match plan:
        case Reference():
            return states[plan.name].columns
        case Project():
            below = _motions(plan.input, states, names)
            return tuple(motion_of(expr, below) for _, expr in plan.columns)
        case Filter():
            below = _motions(plan.input, states, names)
            _check_steady(plan.predicate, below, "a condition", plan, names)
            return nonnegative_by(plan.predicate, below)
        case Distinct() | Multiset() | Inspect() | OverTicks(function="delay"):
            return _motions(plan.input, states, names)
        case Union():
            return tuple(_all_of(column) for column in zip(*(_motions(part, states, names) for part in plan.inputs), strict=True))
        case Join():
            return _joined(plan, states, names)
        case MultiwayJoin():
            return _joined_by_variables(plan, states, names)
        case DependentJoin():
            raise AssertionError("subqueries are unnested while a query is bound")
        case Aggregate():
            return _aggregated(plan, states, names)
        case SetOperation():
            return _combined(plan, states, names)
        case TickRecursion():
            _refuse_read("by a feedback over ticks", plan, names, _OUTSIDE)
        case Recursion():
            return _evolution_of(plan, states).columns
        case Expand():
            return _expanded(plan, _motions(plan.input, states, names), names)
        case FlatMap():
            return _made(plan, _motions(plan.input, states, names), names)
        case Generate():
            return _generated(plan, _motions(plan.input, states, names), names)
        case TemporalFilter():
            _refuse("a recursive relation is read under a condition on now()", _place([plan], names), _OUTSIDE)
        case ByWatermark():
            _refuse_read("by windows", plan, names, _OUTSIDE)
        case TopK():
            if _is_complete(plan, states):
                return _motions(plan.input, states, names)
            _refuse_read("under ORDER BY … LIMIT", plan, names, _OUTSIDE)
        case Window():
            if _is_complete(plan.input, states):
                _refuse("a window function in a subquery that a recursion evaluates for each of its rows", _place([plan], names), _WINDOW)
            _refuse_read("by window functions or on the right of an ASOF JOIN", plan, names, _OUTSIDE)
        case Reduce():
            _refuse_read("by a function of whole groups", plan, names, _MINIMUM)
        case Weighted():
            _refuse_read("with its weights", plan, names, _OUTSIDE)
        case OverTicks():
            _refuse_over_ticks(plan, names)
        case Table() | Values():
            raise AssertionError("reads nothing")
        case _:
            assert_never(plan)


@_once
def _fixed(plan: Plan, states: _States) -> Motions:
    """Of a plan that reads no recursive relation."""
    match plan:
        case Project():
            below = _fixed(plan.input, states)
            return tuple(motion_of(expr, below) for _, expr in plan.columns)
        case Filter():
            return nonnegative_by(plan.predicate, _fixed(plan.input, states))
        case Values(rows=()):
            return _of_no_rows(plan)
        case _:
            return tuple(Motion(Trend.FIXED, field.nullable) for field in plan.schema)


def _at_first(body: Plan, states: _States, names: frozenset[str]) -> Motions:
    """Of a relation without rows: without negative numbers, unless the rows that it begins with may have some."""
    begins = _begin(body, states, names | states.keys())
    return tuple(replace(motion, nonnegative=one) for motion, one in zip(_of_no_rows(body), begins, strict=True))


def _begin(plan: Plan, states: _States, names: frozenset[str]) -> tuple[bool, ...]:
    """For each column whether it has no negative number in the rows of the plan that do not come from the relations."""
    match plan:
        case _ if not _reads(plan, names):
            return tuple(motion.nonnegative for motion in _fixed(plan, states))
        case Distinct() | Multiset():
            return _begin(plan.input, states, names)
        case Project():
            below = _begin(plan.input, states, names)
            return tuple(not isinstance(expr, Column) or below[expr.index] for _, expr in plan.columns)
        case Union():
            return tuple(all(column) for column in zip(*(_begin(part, states, names) for part in plan.inputs), strict=True))
        case _:
            return (True,) * len(plan.schema)


def _of_no_rows(plan: Plan) -> Motions:
    return tuple(Motion(Trend.FIXED, False, nonnegative=True, filled=True) for _ in plan.schema)


def _refuse_over_ticks(plan: OverTicks, names: frozenset[str]) -> NoReturn:
    name = min(name for name, _ in references(plan) if name in names)
    _refuse(
        f"the recursive relation {name} is read by {plan.function}, whose result does not only grow from one iteration to the next",
        _place([plan], names),
        f"use delay, or {_OUTSIDE}",
    )


def _joined(plan: Join, states: _States, names: frozenset[str]) -> Motions:
    settled = plan.kind in LOOKUPS and _reads(plan.right, names) and states.completeness.has_all_matches(plan)
    completes = not settled and plan.kind == "left" and _is_unique(plan.right, [key for _, key in plan.keys], states)
    for side, where in () if completes or settled else _JOINED[plan.kind]:
        if _reads(plan.left if side == "left" else plan.right, names):
            _refuse_read(where, plan.left if side == "left" else plan.right, names, _OUTSIDE)
    left, right = _motions(plan.left, states, names), _motions(plan.right, states, names)
    pairs = plan.keys if plan.value is None else (*plan.keys, plan.value)
    for one, other in pairs:
        _check_fixed((motion_of(one, left), motion_of(other, right)), "a join", one.span or other.span, plan, names)
    moves = _reads(plan.right, names)
    if plan.residual is not None and (completes or plan.kind in ("inner", "semi")):
        _check_steady(plan.residual, left + right, "a join's condition", plan, names)
        moves = moves or motion_of(plan.residual, left + right).trend != Trend.FIXED
        if plan.kind in ("inner", "semi"):
            both = nonnegative_by(plan.residual, left + right)
            left, right = both[: len(left)], both[len(left) :]
    elif plan.residual is not None:
        _check_fixed([motion_of(plan.residual, left + right)], "a join's condition", plan.residual.span, plan, names)
    if plan.kind in ("semi", "anti", "not_in"):
        return left
    if completes and moves:
        return left + tuple(replace(m, trend=m.late if m.trend == Trend.FIXED else m.trend, null=True) for m in right)
    return tuple(replace(m, null=m.null or plan.kind == "right") for m in left) + tuple(
        replace(m, null=m.null or plan.kind == "left") for m in right
    )


def _is_complete(plan: Plan, states: _States) -> bool:
    """Whether each of its rows stays as it is, since it is computed of rows that came all at once."""
    return bool(states.completeness.by(plan))


def _is_unique(plan: Plan, values: Sequence[Expr], states: _States) -> bool:
    """Whether no two rows of the plan have the same values. Conservative."""
    parts = [
        part for value in values for part in (value.arguments if isinstance(value, Call) and value.function == "make_struct" else (value,))
    ]
    key = _key(plan, states)
    return key is not None and key <= {part.index for part in parts if isinstance(part, Column)}


@_once
def _key(plan: Plan, states: _States) -> frozenset[int] | None:
    """Columns in which any two rows of the plan differ; None if there are none, or they are not known."""
    match plan:
        case Reference():
            return states[plan.name].key if plan.name in states else None
        case Project():
            return _places(_key(plan.input, states), plan)
        case Filter():
            return _key(plan.input, states)
        case Join(kind="semi" | "anti" | "not_in"):
            return _key(plan.left, states)
        case Join(kind="inner"):
            left, right = _key(plan.left, states), _key(plan.right, states)
            return None if left is None or right is None else left | {len(plan.left.schema) + i for i in right}
        case Distinct():
            below = _key(plan.input, states)
            return frozenset(range(len(plan.schema))) if below is None else below
        case Aggregate():
            return frozenset(range(len(plan.keys)))
        case Union(inputs=(one, Values(rows=()))):
            return _key(one, states)
        case _:
            return None


def _places(key: frozenset[int] | None, plan: Project) -> frozenset[int] | None:
    """The columns of the projection that have the values of the key, if it has them all."""
    places = {expr.index: i for i, (_, expr) in enumerate(plan.columns) if isinstance(expr, Column)}
    return None if key is None or not key <= places.keys() else frozenset(places[i] for i in key)


def _joined_by_variables(plan: MultiwayJoin, states: _States, names: frozenset[str]) -> Motions:
    columns = tuple(motion for part in plan.inputs for motion in _motions(part, states, names))
    shared = frozenset(plan.shared)
    _check_fixed([motion for motion, variable in zip(columns, plan.flat, strict=True) if variable in shared], "a join", None, plan, names)
    if plan.condition is not None:
        _check_steady(plan.condition, columns, "a join's condition", plan, names)
        columns = nonnegative_by(plan.condition, columns)
    return tuple(columns[i] for i in plan.output)


def _made(plan: FlatMap, below: Motions, names: frozenset[str]) -> Motions:
    if makes_negative(plan):
        _refuse_read("under repeat_row with a count that may be negative", plan, names, _OUTSIDE, plan.span)
    _check_fixed([motion_of(argument, below) for argument in plan.arguments], f"{plan.function}()", plan.span, plan, names)
    return below + tuple(Motion(Trend.FIXED, field.nullable) for field in plan.returned)


def _expanded(plan: Expand, below: Motions, names: frozenset[str]) -> Motions:
    keys = [motion_of(expr, below) for _, expr in plan.keys]
    _check_fixed(keys, "GROUP BY", None, plan, names)
    return below + tuple(Motion(Trend.FIXED, field.nullable) for field in plan.schema.fields[len(below) :])


def _generated(plan: Generate, below: Motions, names: frozenset[str]) -> Motions:
    if plan.weighted:
        _refuse_read("by a function that returns weights, which may be negative,", plan, names, _OUTSIDE)
    _check_fixed(below, "a function of rows", None, plan, names)
    return tuple(Motion(Trend.FIXED, field.nullable) for field in plan.returned)


@_once
def _evolution_of(plan: Recursion, states: _States) -> Evolution:
    inside = {name for name, _ in plan.relations}
    return evolutions_of(dict(plan.relations), {name: state for name, state in states.items() if name not in inside})[plan.result]


@_once
def _merges(plan: Plan, states: _States, names: frozenset[str]) -> bool:
    """Whether several rows of the plan may become one as they become better. Groups remain, since their keys are fixed."""
    if not _reads(plan, names):
        return False
    match plan:
        case Reference():
            return states[plan.name].merges
        case Recursion():
            return _evolution_of(plan, states).merges
        case Aggregate():
            return False
        case Distinct():
            motions = _motions(plan, states, names)
            fixed = [reference(plan.schema, i) for i, motion in enumerate(motions) if motion.trend == Trend.FIXED]
            return len(fixed) < len(motions) and not _is_unique(plan.input, fixed, states)
        case Join(kind=("semi" | "anti" | "not_in")):
            return _merges(plan.left, states, names)
        case _:
            return any(_merges(part, states, names) for part in inputs(plan))


def _aggregated(plan: Aggregate, states: _States, names: frozenset[str]) -> Motions:
    below = _motions(plan.input, states, names)
    if _is_complete(plan, states):
        return tuple(Motion(Trend.FIXED, expr.nullable) for _, expr in plan.keys) + tuple(_complete(call) for _, call in plan.aggregates)
    sums = [call for _, call in plan.aggregates if call.function in (*COUNTS, "sum") and not call.distinct]
    if sums and _merges(plan.input, states, names):
        _refuse_read(_written(sums[0]), plan, names, _MINIMUM, sums[0].span)
    keys = tuple(motion_of(expr, below) for _, expr in plan.keys)
    for (_, expr), motion in zip(plan.keys, keys, strict=True):
        _check_fixed([motion], "GROUP BY", expr.span, plan, names)
    return keys + tuple(_extreme(call, below, plan, names) for _, call in plan.aggregates)


def _complete(call: AggregateCall) -> Motion:
    return Motion(Trend.FIXED, call.nullable, nonnegative=call.function in COUNTS, late=_better(call) or Trend.RISING)


def _extreme(call: AggregateCall, below: Motions, plan: Aggregate, names: frozenset[str]) -> Motion:
    better = Trend.RISING if call.function == "sum" else _better(call)
    if better is None:
        _refuse_read(f"by {call.function.upper()}", plan, names, _MINIMUM, call.span)
    if call.filter is not None:
        _check_steady(call.filter, below, "FILTER", plan, names)
    if call.function in COUNTS:
        _check_counted(call, below, plan, names)
        return Motion(Trend.RISING, False, nonnegative=True)
    argument = motion_of(call.arguments[0], below)
    if call.function == "sum" and not (argument.nonnegative and argument.trend in (Trend.FIXED, *(() if call.distinct else (better,)))):
        _refuse_read("by SUM of values that may be negative or may fall", plan, names, _SUM, call.span)
    trend = better if argument.trend in (Trend.FIXED, better) else Trend.MIXED
    return Motion(trend, argument.null or not plan.keys or call.filter is not None, argument.nonnegative, argument.filled)


def _check_counted(call: AggregateCall, below: Motions, plan: Plan, names: frozenset[str]) -> None:
    """What is not NULL, or TRUE, must stay so, and different values must stay different."""
    if call.function == "count_if" and not call.distinct:
        return _check_steady(call.arguments[0], below, "COUNT_IF", plan, names)
    trends = {motion_of(argument, below).trend for argument in call.arguments}
    if trends - {Trend.FIXED} if call.distinct else Trend.MIXED in trends:
        _refuse_read(_written(call), plan, names, _MINIMUM, call.span)


def _written(call: AggregateCall) -> str:
    """What reads a relation by the aggregate, which is not in the text if it is one of PIVOT or ANY."""
    return f"by {call.function.upper()}" if call.span is not None or call.function not in COUNTS else "by a count, of PIVOT or a subquery"


def _better(call: AggregateCall) -> Trend | None:
    """The trend of a MIN, MAX, COUNT, BOOL_OR or BOOL_AND as rows are added; None for other aggregates."""
    if call.function in (*COUNTS, "bool_or", "bool_and"):
        return Trend.FALLING if call.function == "bool_and" else Trend.RISING
    state = call.definition.state
    if not isinstance(state, First) or state.order != (0,):
        return None
    return Trend.RISING if state.descending else Trend.FALLING


def _combined(plan: SetOperation, states: _States, names: frozenset[str]) -> Motions:
    except_ = plan.kind.startswith("except")
    if except_ and _reads(plan.right, names) and not _is_complete(plan, states):
        _refuse_read("on the right of EXCEPT", plan.right, names, _OUTSIDE)
    sides = [_motions(side, states, names) for side in (plan.left, plan.right)]
    for side in sides:
        _check_fixed(side, "EXCEPT" if except_ else "INTERSECT", None, plan, names)
    return sides[0] if except_ else tuple(Motion(Trend.FIXED, a.null and b.null) for a, b in zip(*sides, strict=True))


def _either(one: Motion, other: Motion) -> Motion:
    null, nonnegative = one.null or other.null, one.nonnegative and other.nonnegative
    return Motion(joint((one.trend, other.trend)), null, nonnegative, one.filled and other.filled)


def _all_of(column: Sequence[Motion]) -> Motion:
    null, filled = any(motion.null for motion in column), all(motion.filled for motion in column)
    nonnegative = all(motion.nonnegative for motion in column)
    return Motion(joint(motion.trend for motion in column), null, nonnegative, filled)


def _reads(plan: Plan, names: frozenset[str]) -> bool:
    return any(name in names for name, _ in references(plan))


def _check_fixed(motions: Iterable[Motion], where: str, span: Span | None, plan: Plan, names: frozenset[str]) -> None:
    if any(motion.trend != Trend.FIXED for motion in motions):
        _refuse(
            f"{where} compares a value of an aggregate or a subquery, which may change in later iterations",
            span or _place([plan], names),
            _FORM,
        )


def _check_steady(condition: Expr, below: Motions, where: str, plan: Plan, names: frozenset[str]) -> None:
    if not is_steady(condition, below):
        _refuse(
            f"{where} may be satisfied by a value of an aggregate or a subquery, but not by its value in a later iteration",
            condition.span or _place([plan], names),
            _FORM,
        )


def _refuse_read(where: str, plan: Plan, names: frozenset[str], remedy: str, span: Span | None = None) -> NoReturn:
    name = min(name for name, _ in references(plan) if name in names)
    _refuse(f"the recursive relation {name} is read {where}: more of its rows would remove others", span or _place([plan], names), remedy)


def _refuse(message: str, span: Span | None, remedy: str) -> NoReturn:
    raise Unsupported(message, span=span, remedy=remedy)


def _place(plans: Iterable[Plan], names: frozenset[str]) -> Span | None:
    """The place where the first of the relations is read."""
    spans = (node.span for plan in plans for node in nodes(plan) if isinstance(node, Reference) and node.name in names)
    return next((span for span in spans if span is not None), None)
