"""The trends of random expressions, checked over pairs of rows of which one is better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from random import Random

import pytest
from test_monotone import is_negative, is_worse

from deltic.errors import EvaluationError, TypeMismatch
from deltic.expr.functions import resolve
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Column, Expr, Literal, Value, children
from deltic.expr.typing import case, cast
from deltic.plan.trends import Motion, Trend, is_steady, motion_of
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, SMALLINT, STRING, Field, Type, decimal
from deltic.types import struct
from seeds import rotating

DECIMAL = decimal(5, 2)
PAIR = struct((Field("a", INT), Field("b", INT)))
DOMAIN: dict[Type, tuple[Value, ...]] = {
    BOOLEAN: (False, True),
    INT: (-2, -1, 0, 1, 2, 3),
    DECIMAL: tuple(map(Decimal, ("-1.50", "0.00", "0.25", "2.00"))),
    DOUBLE: (-1.5, -0.0, 0.0, 1.5, 2e9),
}
PAIRS_OF = {True: ((0, 1), (0, 2), (1, -1), (2, 0)), False: ((0, 1), (None, 2), (1, None), (2, 0))}
"""The values of STRUCTs: those without NULLs, and others."""
NUMBERS = (INT, DECIMAL, DOUBLE)
COLUMNS = [
    (type, trend, null, filled, nonnegative)
    for type in (*DOMAIN, PAIR)
    for trend in (Trend.FIXED, Trend.RISING, Trend.FALLING)
    for null in (False, True)
    for filled in ((False, True) if type == PAIR else (False,))
    for nonnegative in ((False, True) if type in NUMBERS else (False,))
]
BELOW = tuple(Motion(trend, null, nonnegative, filled) for _, trend, null, filled, nonnegative in COLUMNS)
OPERATORS = ("+", "-", "*", "<", "<=", ">", ">=", "=", "<>", "<=>", "least", "greatest", "coalesce")
CONNECTIVES = ("and", "or", "=", "<=>", "coalesce", "least", "<")
UNARY = ("is_null", "is_not_null", "negate", "positive", "floor", "ceil", "abs")
TESTS = ("not", "is_true", "is_false", "is_not_true", "is_not_false", "is_null", "is_not_null")
PAIRS = 40


def random_expr(rng: Random, type: Type, depth: int) -> Expr:
    """An expression of the type, or of another one for some operators."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.25:
            return Literal(None if rng.random() < 0.15 else rng.choice(DOMAIN.get(type, PAIRS_OF[True])), type)
        at = rng.choice([i for i, (each, *_) in enumerate(COLUMNS) if each == type])
        return Column(at, type, COLUMNS[at][2])
    try:
        return combined(rng, type, depth)
    except TypeMismatch:  # of parts of other types
        return random_expr(rng, type, depth)


def combined(rng: Random, type: Type, depth: int) -> Expr:
    if type == PAIR and rng.random() < 0.5:
        parts = (random_expr(rng, INT, depth - 1) for _ in range(2))
        return resolve("named_struct", [part for name, value in zip("ab", parts, strict=True) for part in (Literal(name, STRING), value)])
    if type == INT and rng.random() < 0.15:
        return resolve("field", [random_expr(rng, PAIR, depth - 1), Literal(rng.choice("ab"), STRING)])
    one, other = (random_expr(rng, type, depth - 1) for _ in range(2))
    match rng.randrange(7):
        case 0:
            return resolve(rng.choice(TESTS if type == BOOLEAN else UNARY), [one])
        case 1:
            return case([(random_expr(rng, BOOLEAN, depth - 1), one)], rng.choice([other, None]))
        case 2:
            constants = [random_expr(rng, type, 0) for _ in range(2)]
            return case([(random_expr(rng, BOOLEAN, depth - 1), constants[0])], constants[1])
        case 3 if type == BOOLEAN:
            return case([(random_expr(rng, BOOLEAN, depth - 1), Literal(rng.random() < 0.5, BOOLEAN))], other)
        case 3 if one.type == INT and rng.random() < 0.3:
            return resolve("in_range", [one, Literal(rng.choice([-9, 0]), INT), Literal(9, INT)])
        case 3:
            constant = Literal(rng.choice([-2, 2, 0, None]), type) if type == INT else random_expr(rng, type, 0)
            return resolve(rng.choice(["/", "DIV", "*"]), [one, rng.choice([constant, other])])
        case 4:
            return cast(one, rng.choice([INT, STRING] if type == BOOLEAN else [BIGINT, SMALLINT, DOUBLE, STRING]))
        case _:
            operator = rng.choice(CONNECTIVES if type == BOOLEAN else OPERATORS)
            last = [Literal(0, INT)] if operator == "coalesce" and type in NUMBERS and rng.random() < 0.5 else []
            return resolve(operator, [one, *rng.choice([[], [other]]), *last] if last else [one, other])


def random_rows(rng: Random, read: Sequence[int]) -> tuple[list[Value], list[Value]]:
    """(a row, a better one)."""
    worse: list[Value] = [None] * len(COLUMNS)
    better = list(worse)
    for i in read:
        type, trend, null, filled, nonnegative = COLUMNS[i]
        values = [value for value in DOMAIN.get(type, PAIRS_OF[filled]) if not (nonnegative and is_negative(value))]
        values += [None] if null else []
        one, other = rng.choice(values), rng.choice(values)
        if trend == Trend.FIXED:
            other = one
        elif is_worse(other, one, trend):
            one, other = other, one
        worse[i], better[i] = one, other
    return worse, better


def columns_of(expr: Expr) -> set[int]:
    return {expr.index} if isinstance(expr, Column) else set[int]().union(*map(columns_of, children(expr)))


def value_of(expr: Expr, row: list[Value]) -> Value:
    return evaluate(expr, tuple(row))


def check(rng: Random, expr: Expr) -> Trend:
    motion, read = motion_of(expr, BELOW), sorted(columns_of(expr))
    steady = [value for value in (True, False) if expr.type == BOOLEAN and is_steady(expr, BELOW, value)]
    for _ in range(PAIRS):
        rows = random_rows(rng, read)
        try:
            one, other = (value_of(expr, row) for row in rows)
        except EvaluationError:
            continue
        where = f"{expr} has {one} over {rows[0]}, {other} over {rows[1]}"
        assert motion.null or (one is not None and other is not None), where
        assert not (motion.nonnegative and (is_negative(one) or is_negative(other))), where
        assert not motion.filled or not any(isinstance(value, tuple) and None in value for value in (one, other)), where
        if motion.trend == Trend.FIXED:
            assert repr(one) == repr(other), where
        elif motion.trend != Trend.MIXED:
            assert not is_worse(other, one, motion.trend), where
        assert one not in steady or other == one, where
    return motion.trend


def check_many(seed: int, count: int) -> Counter[Trend]:
    rng = Random(f"trends {seed}")
    return Counter(check(rng, random_expr(rng, rng.choice([BOOLEAN, *DOMAIN, PAIR]), rng.choice([1, 2, 3]))) for _ in range(count))


def test_trends() -> None:
    seen = check_many(0, 1_000)
    assert len(seen) == len(Trend)
    assert min(seen.values()) > 60


def test_a_value_between_null_and_zero_is_mixed() -> None:
    rising, fixed = Column(0, BIGINT, True), Column(1, BIGINT, True)
    below = (Motion(Trend.RISING, True, nonnegative=True), Motion(Trend.FIXED, True, nonnegative=True))
    zero = Literal(0, BIGINT)
    assert motion_of(resolve("coalesce", [rising, zero]), below).trend == Trend.RISING
    assert motion_of(resolve("coalesce", [rising, fixed, zero]), below).trend == Trend.MIXED


@pytest.mark.slow
def test_many_trends() -> None:
    for seed in rotating(50):
        check_many(seed, 1_000)
