"""Constant folding: expressions without columns, and NULL tests of NOT NULL expressions, are computed once, unless they fail.

A call of which an argument is the constant NULL is NULL, if it is for any NULL, and no argument can fail.

`<=>` of two NOT NULL expressions is `=`, which can be the key of a join. Many comparisons with constants are one IN or NOT IN, which
costs a hash probe for any number of them.

An expression that fails is kept, and fails on the rows that reach it. Shortcuts do not hide failures: `x AND FALSE` stays, since x may
fail; `FALSE AND x` is FALSE, since x is never evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from typing import Literal as OneOf

from deltic.errors import EvaluationError
from deltic.expr.failing import can_fail
from deltic.expr.functions.signature import flattened
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Call, Case, Cast, Constants, Expr, Lambda, Literal, Value, children, is_fixed, unwidened, user_functions
from deltic.expr.typing import MANY_CONSTANTS
from deltic.optimizer.rejected_nulls import is_strict, without_null_tests
from deltic.plan.columns import conjunction, conjuncts, disjunction, is_null, map_children
from deltic.schema import BOOLEAN
from deltic.stacks import unbounded

_PAIRS: Final = (("equal", "not_equal"), ("less", "greater_equal"), ("greater", "less_equal"), ("is_null", "is_not_null"))
OPPOSITE: Final = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
"""Each test and its negation."""
ORDER: Final = ("less", "less_equal", "greater", "greater_equal")


@unbounded
def fold(expr: Expr) -> Expr:
    """The expression with its constant subexpressions computed.

    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.show import show_expr
    >>> from deltic.schema import BOOLEAN
    >>> b = Column(0, BOOLEAN, True, "b")
    >>> both = Call("and", (Literal(True, BOOLEAN), b), BOOLEAN, True)
    >>> show_expr(both), show_expr(fold(both))
    ('(true and b#0)', 'b#0')
    >>> show_expr(fold(Call("equal", (b, Literal(None, BOOLEAN)), BOOLEAN, True)))
    'null'
    """
    expr = map_children(expr, lambda part: unwidened(fold(part)))
    match expr:
        case Call() | Cast() if children(expr) and all(_is_known(part) for part in children(expr)):
            return _computed(expr)
        case Call() if (
            expr.nullable and is_strict(expr) and any(map(_is_missing, expr.arguments)) and not any(map(can_fail, expr.arguments))
        ):
            return Literal(None, expr.type, expr.span)
        case Call(function="widened", arguments=(argument,)) if argument.nullable:
            return argument
        case Call(function="same", arguments=(left, right)) if not (left.nullable or right.nullable):
            return replace(expr, function="equal")
        case Call(function="and" | "or"):
            return _fold_logic(expr)
        case Call(function="is_null" | "is_not_null", arguments=(argument,)) if not argument.nullable and not can_fail(argument):
            return Literal(expr.function == "is_not_null", expr.type, expr.span)
        case Case():
            return _fold_case(expr)
        case _:
            return expr


def _is_known(part: Expr) -> bool:
    """A constant, or a lambda over constants and its parameters alone."""
    return isinstance(part, Literal | Constants) or (isinstance(part, Lambda) and is_fixed(part) and not any(user_functions(part)))


def _is_missing(part: Expr) -> bool:
    return isinstance(part, Literal) and part.value is None


def fold_condition(expr: Expr) -> Expr:
    """The folded predicate, TRUE on the same rows: `<=>` is `=` there if one side is NOT NULL, and what rejects NULL is tested alone.

    NOT is at comparisons, which it turns around, and NULL in place of FALSE makes no difference: IS TRUE goes, and IS NOT TRUE is at
    comparisons, too.

    >>> from deltic.expr.functions import resolve
    >>> from deltic.expr.nodes import Column
    >>> from deltic.plan.show import show_expr
    >>> from deltic.schema import BIGINT
    >>> above = resolve(">", [Column(0, BIGINT, True, "a"), Column(1, BIGINT, True, "b")])
    >>> show_expr(fold_condition(resolve("is_true", [above]))), show_expr(fold_condition(resolve("is_not_true", [above])))
    ('(a#0 > b#1)', '(is_null(a#0) or is_null(b#1) or (a#0 <= b#1))')
    """
    parts = [
        replace(part, function="equal", nullable=True)
        if isinstance(part, Call) and part.function == "same" and not all(side.nullable for side in part.arguments)
        else part
        for part in conjuncts(_condition(_without_tests(fold(expr))))
    ]
    return conjunction(without_null_tests(parts))


def _without_tests(expr: Expr) -> Expr:
    """A condition that is TRUE on the same rows, with IS [NOT] TRUE and IS [NOT] FALSE at the comparisons that they are about.

    Without IS TRUE a condition may be NULL instead of FALSE, and then AND evaluates what is after it: that must not fail.
    """
    match expr:
        case Call(function="and" | "or") if not any(map(can_fail, expr.arguments)):
            return _with(expr, tuple(map(_without_tests, expr.arguments)))
        case Call(function="not", arguments=(argument,)) if (tested := _tested(argument)) is not None:
            return _unless(*tested) or expr
        case Call(function="coalesce", arguments=(condition, Literal(value=True))):  # IS NOT FALSE
            return _unless(condition, False) or expr
        case _ if (tested := _tested(expr)) is not None:
            return _without_tests(tested[0] if tested[1] else _not(tested[0]))
        case _:
            return expr


def _tested(expr: Expr) -> tuple[Expr, bool] | None:
    """The condition and the value of IS TRUE or IS FALSE; `coalesce(condition, FALSE)` is IS TRUE."""
    match expr:
        case Call(function="coalesce", arguments=(condition, Literal(value=False))):
            return condition, True
        case Call(function="same", arguments=(condition, Literal(value=bool(value)))):
            return condition, value
        case _:
            return None


def _unless(expr: Expr, value: bool) -> Expr | None:
    """A condition that is TRUE where one does not have this value; None if it is written with IS alone, as one that can fail is: with tests
    of NULL before it, it would not be evaluated where they hold."""
    match expr:
        case _ if can_fail(expr):
            return None
        case _ if not expr.nullable:
            return _not(expr) if value else expr
        case Call(function="not", arguments=(argument,)):
            return _unless(argument, not value)
        case Call(function="and" | "or"):
            parts = tuple(_unless(part, value) or _is_not(part, value) for part in flattened(expr.function, expr.arguments))
            return _united(parts) if (expr.function == "and") is value else _shared(parts)
        case Call(function=function, arguments=arguments) if function in ORDER:
            nulls = [test for argument in arguments for test in _null_tests(argument)]
            return _united([*nulls, replace(expr, function=OPPOSITE[function]) if value else expr])
        case _:
            return None


def _is_not(expr: Expr, value: bool) -> Expr:
    return _not(Call("same", (expr, Literal(value, BOOLEAN)), BOOLEAN, False, expr.span))


def _not(expr: Expr) -> Expr:
    return Call("not", (expr,), BOOLEAN, expr.nullable, expr.span)


def _united(parts: Sequence[Expr]) -> Expr:
    """OR over the parts, each once."""
    branches = tuple(dict.fromkeys(branch for part in parts for branch in _branches(part)))
    return disjunction(branches) if len(branches) > 1 else branches[0]


def _shared(parts: Sequence[Expr]) -> Expr:
    """AND over the parts, with the branches of ORs that are in all of them before it."""
    each = [_branches(part) for part in parts]
    common = [branch for branch in each[0] if all(branch in others for others in each[1:])]
    rests = [[branch for branch in branches if branch not in common] for branches in each]
    if not all(rests):
        return _united(common)
    return _united([*common, conjunction(map(_united, rests))])


def _branches(expr: Expr) -> Sequence[Expr]:
    return flattened("or", expr.arguments) if isinstance(expr, Call) and expr.function == "or" else (expr,)


def _null_tests(expr: Expr) -> list[Expr]:
    """Conditions of which some is TRUE where the expression, which cannot fail, is NULL, over its operands."""
    match expr:
        case _ if not expr.nullable:
            return []
        case Call(function="add" | "subtract" | "multiply" | "divide" | "negate" | "abs", arguments=arguments):
            return [test for argument in arguments for test in _null_tests(argument)]
        case Cast(argument=argument, lenient=False) if expr.type.is_numeric and argument.type.is_numeric:
            return _null_tests(argument)
        case _:
            return [is_null(expr)]


@unbounded
def _condition(expr: Expr) -> Expr:
    """An expression that is TRUE where this one is. One that can fail is evaluated on the same rows."""
    match expr:
        case Call(function="not", arguments=(argument,)) if (negated := _negated(argument)) is not None:
            return _condition(negated)
        case Call(function="or"):
            branches = tuple(_condition(part) for part in flattened("or", expr.arguments))
            said = tuple(part for part in branches if not is_never(part))
            return _fold_logic(_with(expr, said)) if said else Literal(False, BOOLEAN, expr.span)
        case Call(function="and"):
            parts = tuple(_condition(part) for part in flattened("and", expr.arguments))
            if any(map(is_never, parts)) and not any(map(can_fail, parts)):
                return Literal(False, BOOLEAN, expr.span)
            return _fold_logic(_with(expr, parts))
        case _:
            return expr


def is_never(expr: Expr) -> bool:
    """Whether a condition, folded, is TRUE of no row."""
    return isinstance(expr, Literal) and expr.value is not True


def _with(expr: Call, arguments: tuple[Expr, ...]) -> Call:
    return expr if arguments == expr.arguments else replace(expr, arguments=arguments, nullable=any(part.nullable for part in arguments))


def _negated(expr: Expr) -> Expr | None:
    """NOT of an expression, with NOT before the parts of AND and OR; None if it is written with NOT alone."""
    match expr:
        case Call(function="not", arguments=(argument,)):
            return argument
        case Call(function="and" | "or"):
            parts = tuple(Call("not", (part,), BOOLEAN, part.nullable, part.span) for part in flattened(expr.function, expr.arguments))
            return replace(expr, function="or" if expr.function == "and" else "and", arguments=parts)
        case Call(function=function) if function in OPPOSITE:
            return replace(expr, function=OPPOSITE[function])
        case _:
            return None


def _computed(expr: Expr) -> Expr:
    try:
        return Literal(evaluate(expr, ()), expr.type, expr.span)
    except EvaluationError:
        return expr


def _with_members(parts: list[Expr], form: OneOf["in", "not in"]) -> list[Expr]:
    """The parts of an OR with many comparisons `x = constant` as one `x IN (…)`; those of an AND with many `x <> constant` as one NOT IN.

    It is at the place of the first of them. So a part that fails is evaluated on fewer rows, never on more.
    """
    if len(parts) < 2:
        return parts
    by_subject: dict[Expr, list[tuple[int, Sequence[Value]]]] = {}
    for i, part in enumerate(parts):
        if (compared := _compared(part, form)) is not None:
            by_subject.setdefault(compared[0], []).append((i, compared[1]))
    merged, dropped = list(parts), set[int]()
    for subject, places in by_subject.items():
        values = [value for _, own in places for value in own]
        if len(places) > 1 and len(values) >= MANY_CONSTANTS:
            call = Call("in", (subject, Constants.of(values, subject.type)), BOOLEAN, subject.nullable, parts[places[0][0]].span)
            merged[places[0][0]] = call if form == "in" else Call("not", (call,), BOOLEAN, subject.nullable, call.span)
            dropped.update(i for i, _ in places[1:])
    return [part for i, part in enumerate(merged) if i not in dropped]


def _compared(part: Expr, form: str) -> tuple[Expr, Sequence[Value]] | None:
    """(x, constants) of `x = c` and `x IN (c, …)`, or of `x <> c` and `x NOT IN (c, …)`."""
    match part:
        case Call(function="equal" | "not_equal", arguments=(one, other)) if (part.function == "equal") is (form == "in"):
            subject, constant = (other, one) if isinstance(one, Literal) else (one, other)
            if isinstance(constant, Literal) and constant.value is not None and not subject.type.is_nested:
                return subject, (constant.value,)
        case Call(function="in", arguments=(subject, Constants() as constants)) if form == "in":
            return subject, constants.values
        case Call(function="not", arguments=(Call(function="in", arguments=(subject, Constants() as constants)),)) if form == "not in":
            return subject, constants.values
    return None


def _fold_logic(expr: Call) -> Expr:
    """TRUE AND x and x AND TRUE become x; FALSE AND x becomes FALSE; x AND FALSE AND y becomes x AND FALSE; likewise for OR."""
    neutral = expr.function == "and"
    rest: list[Expr] = []
    for part in flattened(expr.function, expr.arguments):
        if not isinstance(part, Literal) or part.value is not neutral:
            rest.append(part)
        if isinstance(part, Literal) and part.value is (not neutral):
            break
    rest = _with_members(rest, "in" if expr.function == "or" else "not in")
    if len(rest) < 2:
        return rest[0] if rest else Literal(neutral, expr.type, expr.span)
    return expr if tuple(rest) == expr.arguments else replace(expr, arguments=tuple(rest))


def _fold_case(expr: Case) -> Expr:
    """Removes branches that are never taken, and all branches after one that is always taken."""
    branches: list[tuple[Expr, Expr]] = []
    otherwise = expr.otherwise
    for condition, value in expr.branches:
        if not isinstance(condition, Literal):
            branches.append((condition, value))
        elif condition.value is True:
            otherwise = value
            break
    if not branches:
        return otherwise
    if len(branches) == len(expr.branches):
        return expr
    return Case(tuple(branches), otherwise, expr.type, expr.nullable, expr.span)
