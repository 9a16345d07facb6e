"""Joins by conditions that are monotone in a number, `(x - m) / s > 3`, `abs(x - m) <= k`, `100 * x / total > 5`: rows are looked up by it.

A measure is an expression over both sides of a join in which one number x is added to, multiplied and divided by values of the other side,
which has one row, or one row of each key. It rises or falls with x, as the signs of its factors say, so a comparison of it with a limit is
TRUE of the numbers from a threshold on, or before it (expr/functions/thresholds.py), which depends on the values alone. One of its size,
abs(…), is outside of two thresholds or between them.

That is so of finite x, and of values for which no step can give NaN, such as inf - inf, or fail. The few other rows of both sides are
joined by the condition as it is written, which also raises its error for a divisor of 0.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final, NamedTuple

from deltic.expr import resolve
from deltic.expr.failing import can_fail
from deltic.expr.functions.attempts import tried
from deltic.expr.functions.failures import FAILS
from deltic.expr.functions.thresholds import NUMBER, threshold
from deltic.expr.nodes import TRUE, Call, Cast, Expr, Literal, calls_python, columns_of, outer_columns
from deltic.plan.alternative_keys import has_alternatives
from deltic.plan.columns import compared, conjunction, conjuncts, disjunction, is_null, map_children, shift
from deltic.plan.guarded_keys import is_guarded, pairs_as_written
from deltic.plan.join_nodes import Join
from deltic.plan.nodes import Filter, Plan
from deltic.plan.outside_ranges import has_outside_range, has_value
from deltic.plan.ranges import GREATER_FIRST, range_of
from deltic.schema import DOUBLE, INTEGER_BITS

MOST_FACTORS: Final = 2
"""Factors of a join whose signs are not known when it is planned: each doubles the joins that it is divided into."""
_INFINITE: Final = Literal(math.inf, DOUBLE)
_ZERO: Final = Literal(0.0, DOUBLE)
_CONNECTIVES: Final = ("and", "or")
TURNED: Final = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
"""Comparison -> the one of its operands exchanged."""


class _Direction(NamedTuple):
    """Whether an expression falls with the number: once for each negation, and for each factor below zero."""

    negated: bool = False
    factors: tuple[Expr, ...] = ()

    def falls(self, negative: Collection[Expr]) -> bool:
        """negative: the factors below zero."""
        return self.negated != (sum(factor in negative for factor in self.factors) % 2 == 1)


class _Measure(NamedTuple):
    """An expression over NUMBER, which stands for a point, and values.

    forms: one, or those with y and with -y for abs(y), the greater of both. inner: the direction of the form, or of y. outer: that of the
    measure in abs(y). finite: the values that must be. bounded: whether the measure of every finite number is finite.
    """

    point: Expr
    forms: tuple[Expr, ...] = (NUMBER,)
    inner: _Direction = _Direction()
    outer: _Direction = _Direction()
    finite: tuple[Expr, ...] = ()
    bounded: bool = True

    def within(self, call: Call, place: int) -> _Measure:
        """The measure as an argument of a call, which is NULL where it fails."""
        others = [tried(argument) for argument in call.arguments]
        if call.function == "divide":
            others[1] = resolve("nullif", [others[1], _ZERO])
        before, after = others[:place], others[place + 1 :]
        return self._replace(forms=tuple(replace(call, arguments=(*before, form, *after), nullable=True) for form in self.forms))

    def turned(self) -> _Measure:
        """As one that falls where this one rises."""
        if len(self.forms) > 1:
            return self._replace(outer=self.outer._replace(negated=not self.outer.negated))
        return self._replace(inner=self.inner._replace(negated=not self.inner.negated))

    def times(self, factor: Expr) -> _Measure:
        """As one that is multiplied by a factor other than zero, or divided by it."""
        if isinstance(factor, Literal):
            assert isinstance(factor.value, float)
            return self.turned() if factor.value < 0 else self
        if len(self.forms) > 1:
            return self._replace(outer=self.outer._replace(factors=(*self.outer.factors, factor)))
        return self._replace(inner=self.inner._replace(factors=(*self.inner.factors, factor)))

    def size(self, call: Call) -> _Measure:
        """Its abs, the call."""
        (form,) = self.forms
        return self._replace(forms=(form, replace(call, function="negate", arguments=(form,))))


class _Condition(NamedTuple):
    """A comparison of a measure with a limit, which the measure is above or below."""

    measure: _Measure
    function: str
    limit: Expr

    @property
    def factors(self) -> tuple[Expr, ...]:
        return (*self.measure.inner.factors, *self.measure.outer.factors)

    def by_thresholds(self, negative: Collection[Expr]) -> Expr:
        """The comparisons of the point that are TRUE where the condition is, for values of which these factors are below zero."""
        measure, greater = self.measure, self.function in GREATER_FIRST
        turned = measure.outer.falls(negative)
        falls = measure.inner.falls(negative) != turned
        parts = [self._part(form, greater != own) for form, own in zip(measure.forms, (falls, not falls), strict=False)]
        return parts[0] if len(parts) == 1 else disjunction(parts) if greater != turned else conjunction(parts)

    def _part(self, form: Expr, rises: bool) -> Expr:
        """rises: whether the condition with this form holds from a number on."""
        limit, point = threshold(compared(self.function, form, tried(self.limit)), rises=rises), tried(self.measure.point)
        return compared("less_equal", limit, point) if rises else compared("less", point, limit)


class _Conditions(NamedTuple):
    """Those of a join by the part of its condition that each is. left: whether the points are over the left side."""

    of: dict[Expr, _Condition]
    left: bool

    @property
    def factors(self) -> list[Expr]:
        return list(dict.fromkeys(factor for each in self.of.values() for factor in each.factors))


def has_monotone_condition(join: Join) -> bool:
    """Whether rows are looked up by thresholds."""
    return _conditions(join) is not None


def by_thresholds(join: Join) -> tuple[Plan, ...] | None:
    """Plans without common pairs whose union is an inner join; None if its condition compares no measure.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.nodes import Aggregate, AggregateCall, Table
    >>> from deltic.plan.show import show
    >>> from deltic.schema import Field, Schema, TableSchema
    >>> t = Table(TableSchema("t", Schema((Field("x", DOUBLE),))))
    >>> x, m = (Column(i, DOUBLE, True, name) for i, name in enumerate("xm"))
    >>> mean = Aggregate(t, (), (("m", AggregateCall("avg", (x,), DOUBLE, True)),))
    >>> above = resolve(">", [resolve("-", [x, m]), Literal(2.0, DOUBLE)])
    >>> for plan in by_thresholds(Join(t, mean, "inner", (), above)): print(show(plan))
    Join inner where (threshold((x@0) -> ((x@0 - m#1) > 2.0), true) <= x#0)
      Filter not(((abs(x#0) >= inf) <=> true))
        Table t (x)
      Aggregate: m := avg(x#0)
        Table t (x)
    Project x#1, m#0
      Join inner where ((not(((abs(x#1) >= inf) <=> true)) <= is_null(m#0)) and (((x#1 - m#0) > 2.0) <=> true))
        Aggregate: m := avg(x#0)
          Table t (x)
        Filter ((abs(x#0) >= inf) <=> true)
          Table t (x)
    """
    assert join.kind == "inner"
    if (conditions := _conditions(join)) is None:
        return None
    few_points = _few_points(join, conditions)
    looked_up = join if few_points is None else _where(join, conditions.left, resolve("not", [few_points]))
    cases = {negative: _regular(join, conditions, negative) for negative in _signs(conditions.factors)}
    plans = list[Plan]()
    for negative, case in cases.items():
        ranged = _rewritten(looked_up, conditions, negative)
        plans.append(ranged if case is None else _where(ranged, not conditions.left, case))
    known = [case for case in cases.values() if case is not None]
    few_values = resolve("not", [known[0] if len(known) == 1 else disjunction(known)]) if known else None
    if few_points is not None or few_values is not None:
        plans += pairs_as_written(join, *((few_points, few_values) if conditions.left else (few_values, few_points)))
    return tuple(plans)


def _where(join: Join, left: bool, condition: Expr) -> Join:
    """The join of the rows of a side on which a condition over it is TRUE."""
    return replace(join, left=Filter(join.left, condition)) if left else replace(join, right=Filter(join.right, condition))


def _signs(factors: Sequence[Expr]) -> list[frozenset[Expr]]:
    """The factors below zero in each case."""
    return [frozenset(chosen) for n in range(len(factors) + 1) for chosen in combinations(factors, n)]


def _rewritten(join: Join, conditions: _Conditions, negative: Collection[Expr]) -> Join:
    def rewritten(expr: Expr) -> Expr:
        if (condition := conditions.of.get(expr)) is not None:
            return condition.by_thresholds(negative)
        match expr:  # as views that isolate their errors have it (plan/isolate.py); of these values no condition fails
            case Call(function="not", arguments=(Call(function=function, arguments=tested),)) if function == FAILS:
                fails = any(can_fail(leaf) and leaf not in conditions.of for each in tested for leaf in _leaves(each))
                return expr if fails else TRUE
        return map_children(expr, rewritten) if isinstance(expr, Call) and expr.function in _CONNECTIVES else expr

    assert join.residual is not None
    parts = map(rewritten, conjuncts(join.residual))
    return replace(join, residual=conjunction(part for part in parts if part != TRUE))


def _few_points(join: Join, conditions: _Conditions) -> Expr | None:
    """Of the side of the points: whether one fails or is not finite. None if no number does or is."""
    tests = list[Expr]()
    for point in dict.fromkeys(each.measure.point for each in conditions.of.values()):
        own = point if conditions.left else shift(point, -len(join.left.schema))
        if can_fail(own):
            tests.append(resolve(FAILS, [own]))
        if not _is_finite(own):
            tests.append(_is_true(resolve(">=", [resolve("abs", [tried(own)]), _INFINITE])))
    return None if not tests else tests[0] if len(tests) == 1 else disjunction(tests)


def _is_finite(expr: Expr) -> bool:
    """Whether it is surely a finite number, as an integer is."""
    return isinstance(expr, Cast) and expr.argument.type.sql in INTEGER_BITS


def _regular(join: Join, conditions: _Conditions, negative: Collection[Expr]) -> Expr | None:
    """Of the side of the values: whether nothing fails, no step gives NaN, and only these factors are below zero. NULL is above zero."""
    by = 0 if not conditions.left else -len(join.left.schema)
    used, each = list[Expr](), conditions.of.values()
    for condition in each:
        used += [condition.limit, *condition.factors, *condition.measure.finite]
    failing = [shift(expr, by) for expr in dict.fromkeys(used) if can_fail(expr)]
    tests = [resolve("not", [resolve(FAILS, failing)])] if failing else []
    for factor in conditions.factors:
        value, below = shift(tried(factor), by), factor in negative
        within = [resolve("<" if below else ">", [value, _ZERO]), _is_bounded(value)]
        tests.append(_is_true(conjunction(within)) if below else _or_null(value, conjunction(within)))
    for value in dict.fromkeys(shift(tried(expr), by) for condition in each for expr in condition.measure.finite):
        tests.append(_or_null(value, _is_bounded(value)))
    return conjunction(tests) if tests else None


def _is_bounded(value: Expr) -> Expr:
    """Whether it is not infinite. Of NaN every step is NaN, whatever the number."""
    return resolve("<>", [resolve("abs", [value]), _INFINITE])


def _or_null(value: Expr, condition: Expr) -> Expr:
    return _is_true(resolve("or", [is_null(value), condition]) if value.nullable else condition)


def _is_true(condition: Expr) -> Expr:
    return resolve("is_true", [condition]) if condition.nullable else condition


def _conditions(join: Join) -> _Conditions | None:
    if join.residual is None or is_guarded(join):
        return None
    width, parts = len(join.left.schema), conjuncts(join.residual)
    for left in (True, False):
        leaves = [leaf for part in parts for leaf in _leaves(part)]
        found = {leaf: condition for leaf in leaves if (condition := _condition(leaf, left, width)) is not None}
        conditions = _Conditions(found, left)
        if found and has_value(join, left=not left) and len(conditions.factors) <= MOST_FACTORS and _serves(join, conditions):
            return conditions
    return None


def _serves(join: Join, conditions: _Conditions) -> bool:
    """Whether thresholds look rows up, and better than the condition does."""
    by, ranged = range_of(join), _rewritten(join, conditions, ())
    after = range_of(ranged)
    if by is not None:
        return not by.is_interval and after is not None and after.is_interval
    return after is not None or has_outside_range(ranged) or has_alternatives(ranged)


def _leaves(condition: Expr) -> Iterator[Expr]:
    """The conditions that ANDs and ORs connect."""
    if isinstance(condition, Call) and condition.function in _CONNECTIVES:
        for part in condition.arguments:
            yield from _leaves(part)
    else:
        yield condition


def _condition(part: Expr, left: bool, width: int) -> _Condition | None:
    """The part as a comparison of a measure. left: whether points are over the left side."""
    if not isinstance(part, Call) or part.function not in TURNED or outer_columns(part) or calls_python(part):
        return None
    sides = _Sides(left, width)
    one, other = part.arguments
    for measured, function, limit in ((one, part.function, other), (other, TURNED[part.function], one)):
        if sides.mixes(measured) and sides.is_value(limit) and (measure := _measure(measured, sides)) is not None:
            return _Condition(measure, function, limit)
    return None


class _Sides(NamedTuple):
    """left: whether points are over the left side, of this width, and values over the right one; or else the other way round."""

    left: bool
    width: int

    def is_point(self, expr: Expr) -> bool:
        return {self.left} == {i < self.width for i in columns_of(expr)}

    def is_value(self, expr: Expr) -> bool:
        return all((i < self.width) != self.left for i in columns_of(expr))

    def mixes(self, expr: Expr) -> bool:
        return not self.is_point(expr) and not self.is_value(expr)


def _measure(expr: Expr, sides: _Sides) -> _Measure | None:
    """The expression over both sides, or over the points alone, as a measure."""
    if expr.type != DOUBLE:
        return None
    if sides.is_point(expr):
        return _Measure(expr)
    if not isinstance(expr, Call):
        return None
    places = [i for i, argument in enumerate(expr.arguments) if not sides.is_value(argument)]
    if len(places) != 1 or (below := _measure(expr.arguments[places[0]], sides)) is None:
        return None
    (place,) = places
    if place > 1 and not below.bounded:
        return None  # the sum of what is before it may be infinite
    others = (*expr.arguments[:place], *expr.arguments[place + 1 :])
    measure = below.within(expr, place)
    match expr.function:
        case "negate":
            return measure.turned()
        case "abs":
            return below.size(expr) if len(below.forms) == 1 else None
        case "add" | "subtract":
            first = below.bounded and len(others) == 1  # whose result may be infinite, of an infinite value, but is not NaN for some
            finite = () if first else tuple(other for other in others if not _is_number(other))
            measure = measure._replace(finite=(*measure.finite, *finite), bounded=False)
            return measure.turned() if expr.function == "subtract" and place == 1 else measure
        case "multiply":
            pass
        case "divide" | "try_divide" if place == 0:
            pass
        case _:
            return None
    (factor,) = others
    if isinstance(factor, Literal) and (not _is_number(factor) or factor.value == 0):
        return None
    return measure.times(factor)._replace(bounded=False)


def _is_number(expr: Expr) -> bool:
    """Whether it is a finite literal."""
    return isinstance(expr, Literal) and isinstance(expr.value, float) and math.isfinite(expr.value)
