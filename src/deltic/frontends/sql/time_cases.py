"""Comparisons with the time under OR, NOT, <>, IN and IS TRUE: cases, of which a row satisfies at most one at a time.

`a OR b` is the case a, and the case that a is not TRUE and b is. A comparison is not TRUE if the opposite one is, or if it is NULL: so NULL
satisfies the opposite bound. Each case is filters and temporal filters, and the rows of the condition are the union of those of its cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final
from typing import Literal as OneOf

from deltic.errors import Unsupported
from deltic.expr import Call, Expr, Literal, resolve
from deltic.frontends.sql.bind_time import TimeCondition, compared, not_compared, reads_time
from deltic.frontends.sql.scope import reads_outer, reads_subqueries
from deltic.frontends.sql.shared_below import over_shared
from deltic.plan.columns import conjunction, conjuncts
from deltic.plan.nodes import Filter, Plan, TemporalFilter, Union

Part = Expr | TimeCondition
Case = tuple[Part, ...]
"""Conditions on a row, and on the time: all of them, in order."""
Verdict = OneOf["TRUE", "FALSE", "NOT TRUE", "NOT FALSE"]
_INVERSE: Final[dict[Verdict, Verdict]] = {"TRUE": "FALSE", "FALSE": "TRUE", "NOT TRUE": "NOT FALSE", "NOT FALSE": "NOT TRUE"}
_OPPOSITE: Final[dict[Verdict, Verdict]] = {"TRUE": "NOT TRUE", "NOT TRUE": "TRUE", "FALSE": "NOT FALSE", "NOT FALSE": "FALSE"}
MOST_CASES: Final = 32


@dataclass(frozen=True, slots=True)
class TimeCases:
    """A condition by its cases."""

    cases: tuple[Case, ...]

    def over(self, change: Callable[[Expr], Expr]) -> TimeCases:
        """The condition with its expressions over other rows."""
        return TimeCases(tuple(tuple(_over(part, change) for part in case) for case in self.cases))


def _over(part: Part, change: Callable[[Expr], Expr]) -> Part:
    return part.over(change) if isinstance(part, TimeCondition) else change(part)


def conditions(condition: Expr) -> list[Expr | TimeCondition | TimeCases]:
    """The conjuncts, in order. Raises Unsupported for one that reads the time, and not in comparisons."""
    return [_bound(part) if reads_time(part) else part for part in conjuncts(condition)]


def _bound(condition: Expr) -> TimeCondition | TimeCases:
    if (bounds := compared(condition)) is not None:
        return bounds
    cases = _cases(condition, "TRUE")
    if cases is None or reads_subqueries(condition) or reads_outer(condition):
        raise not_compared(condition)
    return TimeCases(tuple(map(_joined, cases)))


def timed(plan: Plan, conditions: Sequence[TimeCondition | TimeCases]) -> Plan:
    """The rows that satisfy the conditions."""
    plan = _current(plan, [condition for condition in conditions if isinstance(condition, TimeCondition)])
    for condition in conditions:
        if isinstance(condition, TimeCases):
            rows = tuple(_case(plan, case) for case in condition.cases)
            plan = rows[0] if len(rows) == 1 else Union(rows)
    return plan


def _current(plan: Plan, times: Sequence[TimeCondition]) -> Plan:
    if not times:
        return plan
    return TemporalFilter(plan, tuple(b for time in times for b in time.lower), tuple(b for time in times for b in time.upper))


def _case(plan: Plan, case: Case) -> Plan:
    for part in case:
        plan = _current(plan, [part]) if isinstance(part, TimeCondition) else over_shared(Filter(plan, part))
    return plan


def _cases(condition: Expr, verdict: Verdict) -> list[Case] | None:
    if not reads_time(condition):
        return [(_test(condition, verdict),)]
    if not isinstance(condition, Call):
        return None
    match condition.function, condition.arguments:
        case "not", (inner,):
            return _cases(inner, _INVERSE[verdict])
        case "and" | "or" as connective, (first, *others):
            rest = others[0] if len(others) == 1 else replace(condition, arguments=tuple(others))
            return _connected(first, rest, verdict, decides="FALSE" if connective == "and" else "TRUE")
        case "same", (inner, Literal(value=bool(value))):
            wanted: Verdict = "TRUE" if value else "FALSE"
            return _cases(inner, wanted if verdict in ("TRUE", "NOT FALSE") else _OPPOSITE[wanted])
        case "same", (one, other):
            equal = resolve("=", [one, other], condition.span)
            return _cases(equal, "TRUE" if verdict in ("TRUE", "NOT FALSE") else "NOT TRUE")
        case "in", (value, *values):
            tests = [resolve("=", [value, other], condition.span) for other in values]
            if verdict == "TRUE" and (apart := _disjoint(tests)):
                return apart
            return _cases(tests[0] if len(tests) == 1 else resolve("or", tests, condition.span), verdict)
        case "not_equal", arguments:
            return _cases(resolve("=", list(arguments), condition.span), _INVERSE[verdict])
    return _compared(condition, verdict)


def _connected(first: Expr, rest: Expr, verdict: Verdict, decides: Verdict) -> list[Case] | None:
    """Of AND, which FALSE `decides`, and of OR, which TRUE does: either operand that has the verdict, or both of them."""
    either = verdict in (decides, _OPPOSITE[_INVERSE[decides]])
    one, other = _cases(first, verdict), _cases(rest, verdict)
    if one is None or other is None:
        return None
    if not either:
        return _both(one, other)
    without = _cases(first, _OPPOSITE[verdict])
    return None if without is None else _checked(one + _both(without, other))


def _both(one: list[Case], other: list[Case]) -> list[Case]:
    return _checked([a + b for a, b in product(one, other)])


def _checked(cases: list[Case]) -> list[Case]:
    if len(cases) <= MOST_CASES:
        return cases
    read = next(moment for case in cases for part in case if isinstance(part, TimeCondition) for moment in part.moments)
    raise Unsupported(
        "the condition compares with the time in too many ways",
        span=read.span,
        expected=f"at most {MOST_CASES} cases, of which a row satisfies one at a time",
        remedy="write intervals of time by BETWEEN, or select the rows of some cases in a view of their own",
    )


def _disjoint(tests: Sequence[Expr]) -> list[Case]:
    """The cases of equalities of one moment, plus different spans, and the time; [] for others."""
    bounds = [compared(test) if reads_time(test) else None for test in tests]
    moments = {moment for each in bounds if each is not None for moment in each.moments}
    return [(each,) for each in dict.fromkeys(bounds) if each is not None] if len(moments) == 1 and None not in bounds else []


def _compared(condition: Call, verdict: Verdict) -> list[Case] | None:
    """Of a comparison with the time."""
    bounds = compared(condition)
    if bounds is None:
        return None
    if verdict in ("TRUE", "NOT FALSE"):
        return [(bounds.optional() if verdict == "NOT FALSE" else bounds,)]
    cases = [*(TimeCondition((), (bound,)) for bound in bounds.lower), *(TimeCondition((bound,), ()) for bound in bounds.upper)]
    return [(case.optional() if verdict == "NOT TRUE" and i == 0 else case,) for i, case in enumerate(cases)]


def _test(condition: Expr, verdict: Verdict) -> Expr:
    """A condition on a row that is TRUE if `condition` has the verdict."""
    match verdict:
        case "TRUE":
            return condition
        case "FALSE":
            return resolve("not", [condition])
        case "NOT TRUE":
            return resolve("is_not_true", [condition])
    return resolve("is_not_false", [condition])


def _joined(case: Case) -> Case:
    """The case with what follows one another joined."""
    parts: list[Part] = []
    for part in case:
        before = parts[-1] if parts else None
        if isinstance(part, TimeCondition) and isinstance(before, TimeCondition):
            parts[-1] = TimeCondition(before.lower + part.lower, before.upper + part.upper)
        elif isinstance(part, Expr) and isinstance(before, Expr):
            parts[-1] = conjunction([before, part])
        else:
            parts.append(part)
    return tuple(parts)
