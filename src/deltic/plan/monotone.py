"""Stratification of recursions: more rows in the relations, or better values, must never give fewer rows or worse values.

Rows are ordered column by column. A value of MIN only falls from one iteration to the next, and one of MAX or COUNT only rises, with NULL
as the worst value of all; other columns are fixed. A relation becomes better if each of its rows stays or is replaced by one with the same
fixed columns and better moving ones. A body that preserves this order is accepted, since its iteration from empty only becomes better.
So is a LEFT JOIN with at most one match, which replaces NULLs: of EXISTS and IN under OR, a BOOLEAN that rises, or of a correlated value.
The check is syntactic and conservative: it rejects some monotone recursions, and accepts no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from typing import Final, NoReturn, assert_never

from deltic.aggregates.definition import First
from deltic.errors import Span, Unsupported
from deltic.expr.nodes import Call, Case, Cast, Column, Expr, Literal, children
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
from deltic.plan.walk import nodes
from deltic.schema import BOOLEAN
from deltic.stacks import unbounded


class Trend(Enum):
    """How a column's values change from one iteration to the next; MIXED is in any direction."""

    FIXED = "fixed"
    FALLING = "falling"
    RISING = "rising"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Motion:
    """A column's or an expression's trend, whether it may be NULL, and whether it is a COUNT, which is never negative."""

    trend: Trend
    null: bool
    counts: bool = False


Motions = tuple[Motion, ...]
States = Mapping[str, Motions]
"""The columns of the recursive relations, by the relation's name."""

OPPOSITE: Final = {Trend.FALLING: Trend.RISING, Trend.RISING: Trend.FALLING}
LOWER: Final = ("less", "less_equal")
HIGHER: Final = ("greater", "greater_equal")
STEPWISE: Final = ("positive", "floor", "ceil")

_OUTSIDE: Final = "compute it in a query that reads the finished relation, outside the recursion"
_MINIMUM: Final = "use MIN or MAX … GROUP BY, or compute it in a query that reads the finished relation, outside the recursion"
_FORM: Final = (
    "use it only in x + y, LEAST, GREATEST, or in x < y where a better value still satisfies it; or compute this in a query that reads the "
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
    for name, motions in _settled(relations, {}).items():
        for field, motion in zip(relations[name].schema, motions, strict=True):
            if motion.trend == Trend.MIXED:
                _refuse(
                    f"column {field.name} of the recursive relation {name} may rise and fall from one iteration to the next",
                    _place(relations.values(), frozenset(relations)),
                    _FORM,
                )


def _settled(relations: Mapping[str, Plan], around: States) -> States:
    """The motions of the relations' columns: the least that their bodies preserve."""
    inner = {name: tuple(Motion(Trend.FIXED, False) for _ in body.schema) for name, body in relations.items()}
    while True:
        states = {**around, **inner}
        now = {name: tuple(map(_either, inner[name], _motions(body, states, frozenset(states)))) for name, body in relations.items()}
        if now == inner:
            return now
        inner = now


@unbounded
def _motions(plan: Plan, states: States, names: frozenset[str]) -> Motions:
    """The motions of the plan's columns. Raises Unsupported if it is not monotone in `names`."""
    if not _reads(plan, names):
        return tuple(Motion(Trend.FIXED, field.nullable) for field in plan.schema)
    match plan:
        case Reference():
            return states[plan.name]
        case Project():
            below = _motions(plan.input, states, names)
            return tuple(_motion(expr, below) for _, expr in plan.columns)
        case Filter():
            below = _motions(plan.input, states, names)
            _check_steady(plan.predicate, below, "a condition", plan, names)
            return below
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
            inside = {name for name, _ in plan.relations}
            outside = {name: state for name, state in states.items() if name not in inside}
            return _settled(dict(plan.relations), outside)[plan.result]
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
            _refuse_read("under ORDER BY … LIMIT", plan, names, _OUTSIDE)
        case Window():
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


def _refuse_over_ticks(plan: OverTicks, names: frozenset[str]) -> NoReturn:
    name = min(name for name, _ in references(plan) if name in names)
    _refuse(
        f"the recursive relation {name} is read by {plan.function}, whose result does not only grow from one iteration to the next",
        _place([plan], names),
        f"use delay, or {_OUTSIDE}",
    )


def _joined(plan: Join, states: States, names: frozenset[str]) -> Motions:
    completes = plan.kind == "left" and plan.residual is None and _is_unique(plan.right, [key for _, key in plan.keys])
    for side, where in () if completes else _JOINED[plan.kind]:
        if _reads(plan.left if side == "left" else plan.right, names):
            _refuse_read(where, plan.left if side == "left" else plan.right, names, _OUTSIDE)
    left, right = _motions(plan.left, states, names), _motions(plan.right, states, names)
    pairs = plan.keys if plan.value is None else (*plan.keys, plan.value)
    for one, other in pairs:
        _check_fixed((_motion(one, left), _motion(other, right)), "a join", one.span or other.span, plan, names)
    if plan.residual is not None and plan.kind in ("inner", "semi"):
        _check_steady(plan.residual, left + right, "a join's condition", plan, names)
    elif plan.residual is not None:
        _check_fixed([_motion(plan.residual, left + right)], "a join's condition", plan.residual.span, plan, names)
    if plan.kind in ("semi", "anti", "not_in"):
        return left
    if completes and _reads(plan.right, names):
        return left + tuple(replace(m, trend=Trend.RISING if m.trend == Trend.FIXED else m.trend, null=True) for m in right)
    return tuple(replace(m, null=m.null or plan.kind == "right") for m in left) + tuple(
        replace(m, null=m.null or plan.kind == "left") for m in right
    )


def _is_unique(plan: Plan, keys: Sequence[Expr]) -> bool:
    """Whether no two rows of the plan have the same keys. Conservative."""
    parts = [part for key in keys for part in (key.arguments if isinstance(key, Call) and key.function == "make_struct" else (key,))]
    columns = {part.index for part in parts if isinstance(part, Column)}
    match plan:
        case Project():
            return _is_unique(plan.input, [plan.columns[i][1] for i in sorted(columns)])
        case Filter():
            return _is_unique(plan.input, keys)
        case Join(kind="semi" | "anti"):
            return _is_unique(plan.left, keys)
        case Distinct():
            return columns.issuperset(range(len(plan.schema)))
        case Aggregate():
            return columns.issuperset(range(len(plan.keys)))
        case _:
            return False


def _joined_by_variables(plan: MultiwayJoin, states: States, names: frozenset[str]) -> Motions:
    columns = tuple(motion for part in plan.inputs for motion in _motions(part, states, names))
    shared = frozenset(plan.shared)
    _check_fixed([motion for motion, variable in zip(columns, plan.flat, strict=True) if variable in shared], "a join", None, plan, names)
    if plan.condition is not None:
        _check_steady(plan.condition, columns, "a join's condition", plan, names)
    return tuple(columns[i] for i in plan.output)


def _made(plan: FlatMap, below: Motions, names: frozenset[str]) -> Motions:
    if makes_negative(plan):
        _refuse_read("under repeat_row with a count that may be negative", plan, names, _OUTSIDE, plan.span)
    _check_fixed([_motion(argument, below) for argument in plan.arguments], f"{plan.function}()", plan.span, plan, names)
    return below + tuple(Motion(Trend.FIXED, field.nullable) for field in plan.returned)


def _expanded(plan: Expand, below: Motions, names: frozenset[str]) -> Motions:
    keys = [_motion(expr, below) for _, expr in plan.keys]
    _check_fixed(keys, "GROUP BY", None, plan, names)
    return below + tuple(Motion(Trend.FIXED, field.nullable) for field in plan.schema.fields[len(below) :])


def _generated(plan: Generate, below: Motions, names: frozenset[str]) -> Motions:
    if plan.weighted:
        _refuse_read("by a function that returns weights, which may be negative,", plan, names, _OUTSIDE)
    _check_fixed(below, "a function of rows", None, plan, names)
    return tuple(Motion(Trend.FIXED, field.nullable) for field in plan.returned)


def _merges(plan: Plan, states: States, names: frozenset[str]) -> bool:
    """Whether several rows of the plan, or of what it reads, may become one as they become better, so that there are fewer."""
    if not _reads(plan, names):
        return False
    if isinstance(plan, Recursion):
        return True
    if isinstance(plan, Reference | Distinct | Multiset) and any(m.trend != Trend.FIXED for m in _motions(plan, states, names)):
        return True
    return any(_merges(part, states, names) for part in inputs(plan))


def _aggregated(plan: Aggregate, states: States, names: frozenset[str]) -> Motions:
    below = _motions(plan.input, states, names)
    counts = [call for _, call in plan.aggregates if call.function == "count"]
    if counts and _merges(plan.input, states, names):
        _refuse_read("by COUNT", plan, names, _MINIMUM, counts[0].span)
    keys = tuple(_motion(expr, below) for _, expr in plan.keys)
    for (_, expr), motion in zip(plan.keys, keys, strict=True):
        _check_fixed([motion], "GROUP BY", expr.span, plan, names)
    return keys + tuple(_extreme(call, below, plan, names) for _, call in plan.aggregates)


def _extreme(call: AggregateCall, below: Motions, plan: Aggregate, names: frozenset[str]) -> Motion:
    better = _better(call)
    if better is None:
        _refuse_read(f"by {call.function.upper()}", plan, names, _MINIMUM, call.span)
    if call.filter is not None:
        _check_steady(call.filter, below, "FILTER", plan, names)
    if call.function == "count":
        _check_counted(call, below, plan, names)
        return Motion(Trend.RISING, False, counts=True)
    argument = _motion(call.arguments[0], below)
    trend = better if argument.trend in (Trend.FIXED, better) else Trend.MIXED
    return Motion(trend, argument.null or not plan.keys or call.filter is not None)


def _check_counted(call: AggregateCall, below: Motions, plan: Plan, names: frozenset[str]) -> None:
    """What is not NULL must stay so, and different values must stay different."""
    trends = {_motion(argument, below).trend for argument in call.arguments}
    if trends - {Trend.FIXED} if call.distinct else Trend.MIXED in trends:
        _refuse_read("by COUNT", plan, names, _MINIMUM, call.span)


def _better(call: AggregateCall) -> Trend | None:
    """The trend of a MIN, MAX, COUNT, BOOL_OR or BOOL_AND as rows are added; None for other aggregates."""
    if call.function in ("count", "bool_or", "bool_and"):
        return Trend.FALLING if call.function == "bool_and" else Trend.RISING
    state = call.definition.state
    if not isinstance(state, First) or state.order != (0,):
        return None
    return Trend.RISING if state.descending else Trend.FALLING


def _combined(plan: SetOperation, states: States, names: frozenset[str]) -> Motions:
    except_ = plan.kind.startswith("except")
    if except_ and _reads(plan.right, names):
        _refuse_read("on the right of EXCEPT", plan.right, names, _OUTSIDE)
    sides = [_motions(side, states, names) for side in (plan.left, plan.right)]
    for side in sides:
        _check_fixed(side, "EXCEPT" if except_ else "INTERSECT", None, plan, names)
    return sides[0] if except_ else tuple(Motion(Trend.FIXED, a.null and b.null) for a, b in zip(*sides, strict=True))


def _motion(expr: Expr, below: Motions) -> Motion:
    """The motion of an expression over rows with the motions `below`."""
    if isinstance(expr, Column):
        return below[expr.index]
    if isinstance(expr, Literal):
        return Motion(Trend.FIXED, expr.value is None)
    parts = [_motion(part, below) for part in children(expr)]
    if isinstance(expr, Call) and expr.function == "coalesce" and parts[0].counts and expr.arguments[1:] == (Literal(0, expr.type),):
        return replace(parts[0], null=False)  # of no rows
    null = _may_be_null(expr, parts)
    if all(part.trend == Trend.FIXED for part in parts):
        return Motion(Trend.FIXED, null)
    return Motion(_moving(expr, parts), null)


def _may_be_null(expr: Expr, parts: Sequence[Motion]) -> bool:
    if isinstance(expr, Call) and expr.function in ("least", "greatest"):
        return all(part.null for part in parts)
    return any(part.null for part in parts) if _is_strict(expr) else expr.nullable


def _is_strict(expr: Expr) -> bool:
    """Whether the expression is NULL only if one of its parts is."""
    if isinstance(expr, Cast):
        return not expr.lenient
    return isinstance(expr, Call) and expr.function in ("add", "subtract", "multiply", "negate", *STEPWISE)


def _moving(expr: Expr, parts: Sequence[Motion]) -> Trend:
    """The trend of an expression with parts that are not fixed."""
    trends = [part.trend for part in parts]
    match expr:
        case Call(function="add"):
            return _joint(trends)
        case Call(function="is_not_null") if trends[0] != Trend.MIXED:
            return Trend.RISING  # false before true
        case Call(function=("least" | "greatest") as function):
            skipping = Trend.RISING if function == "least" else Trend.FALLING  # they ignore NULL, which is the worst value
            hazard = any(part.trend == skipping and part.null for part in parts)
            return Trend.MIXED if hazard else _joint(trends)
        case Call(function="subtract"):
            return _joint((trends[0], _flipped(trends[1])))
        case Call(function="negate"):
            return _flipped(trends[0])
        case Call(function="multiply"):
            return _scaled(expr, trends)
        case Call(function=function) if function in STEPWISE and len(trends) == 1:
            return trends[0]
        case Cast() if not expr.lenient and expr.type.is_numeric and expr.argument.type.is_numeric:
            return trends[0]
        case Case() if all(trend == Trend.FIXED for trend in trends[:-1:2]):
            return _joint((*trends[1::2], trends[-1]))
        case _:
            return Trend.MIXED


def _scaled(expr: Call, trends: Sequence[Trend]) -> Trend:
    """The trend of a product with a constant."""
    for factor, trend in zip(expr.arguments, reversed(trends), strict=True):
        constant = factor.argument if isinstance(factor, Cast) else factor
        if isinstance(constant, Literal) and isinstance(constant.value, int | float | Decimal):
            return trend if constant.value >= 0 else _flipped(trend)
    return Trend.MIXED


def _is_steady(condition: Expr, below: Motions, value: bool = True) -> bool:
    """Whether the condition has the value for every better row if it has it for a row."""
    if _motion(condition, below).trend in (Trend.FIXED, Trend.RISING if value else Trend.FALLING):
        return True
    match condition:
        case Call(function="and" | "or"):
            return all(_is_steady(part, below, value) for part in condition.arguments)
        case Call(function="not"):
            return _is_steady(condition.arguments[0], below, not value)
        case Case():
            return _is_steady_case(condition, below, value)
        case Call(function="is_null"):
            return not value and _motion(condition.arguments[0], below).trend != Trend.MIXED
        case Call(function=function) if function in LOWER + HIGHER:
            one, other = (_motion(part, below).trend for part in condition.arguments)
            return _joint((one, _flipped(other))) == (Trend.FALLING if (function in LOWER) == value else Trend.RISING)
        case _:
            return False


def _is_steady_case(case: Case, below: Motions, value: bool) -> bool:
    """Whether the case keeps the value: if only its first branch has it, its first condition must stay satisfied."""
    (condition, first), *others = case.branches
    rest = (*(result for _, result in others), case.otherwise)
    only = first == Literal(value, BOOLEAN) and all(isinstance(one, Literal) and one.value is not value for one in rest)
    return only and _is_steady(condition, below)


def _joint(trends: Iterable[Trend]) -> Trend:
    moving = set(trends) - {Trend.FIXED}
    return moving.pop() if len(moving) == 1 else Trend.MIXED if moving else Trend.FIXED


def _flipped(trend: Trend) -> Trend:
    return OPPOSITE.get(trend, trend)


def _either(one: Motion, other: Motion) -> Motion:
    return Motion(_joint((one.trend, other.trend)), one.null or other.null)


def _all_of(column: Sequence[Motion]) -> Motion:
    return Motion(_joint(motion.trend for motion in column), any(motion.null for motion in column))


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
    if not _is_steady(condition, below):
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
