"""Wide expressions: chains of 10,000 terms, IN of 100,000 constants, CASE of 10,000 branches. Depth and cost do not grow with them.

Work is counted, not time: how deep an expression is, how many nodes a pass sees, how many conditions a tick evaluates.
"""

from __future__ import annotations

import functools
import itertools
import pickle
import random
from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest

from deltic.errors import ArithmeticOverflow, DivisionByZero, EvaluationError, Span
from deltic.expr import Call, Case, Column, Expr, Literal, can_fail, case, cast, chained, children, columns_of, resolve
from deltic.expr import columns as evaluator
from deltic.expr.columns import evaluate_columns
from deltic.expr.failures import row_of
from deltic.expr.functions.chains import NESTED
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Constants
from deltic.optimizer import optimize
from deltic.optimizer.fold import fold
from deltic.plan.columns import conjunction, conjuncts, shift
from deltic.plan.fingerprint import fingerprint
from deltic.plan.nodes import Filter, Project, Table
from deltic.plan.show import show_expr
from deltic.plan.traits import ignores_sign_of_zero
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Field, Schema, TableSchema, Type, decimal
from parts import slow

FEW, TERMS = 1_000, 10_000
"""As many as nest too deeply if each takes a level, and as many as cost too much if each pays for all others."""
X, S, D = Column(0, BIGINT, True, "x"), Column(1, STRING, True, "s"), Column(2, decimal(10, 2), True, "d")
TABLE = Table(TableSchema("t", Schema((Field("x", BIGINT), Field("s", STRING), Field("d", decimal(10, 2)))), ()))
ROW = (7, "a", Decimal("0.25"))
COLUMNS = [pa.array([value], type.arrow) for value, type in zip(ROW, (BIGINT, STRING, decimal(10, 2)), strict=True)]


def of(value: int | str | None, type: Type = INT) -> Literal:
    return Literal(value, type)


def nested(symbols: str, parts: Sequence[Expr]) -> Expr:
    """The parts, combined from the left by the operators in turn."""
    expr, operators = parts[0], itertools.cycle([symbols] if symbols.isalpha() or symbols == "||" else symbols)
    for part, operator in zip(parts[1:], operators, strict=False):
        expr = resolve("div" if operator == "÷" else operator, [expr, part], span_of(expr, part))
    return expr


def span_of(left: Expr, right: Expr) -> Span | None:
    return Span(left.span.text, left.span.start, right.span.end) if left.span and right.span else None


WIDE: dict[str, tuple[Callable[[int], Expr], Callable[[int], object]]] = {
    "and": (lambda n: nested("and", [resolve("<>", [X, of(-i)]) for i in range(1, n)]), lambda n: True),
    "or": (lambda n: nested("or", [resolve("=", [X, of(-i)]) for i in range(1, n)]), lambda n: False),
    "concat": (lambda n: nested("||", [S] * n), lambda n: "a" * n),
    "add": (lambda n: nested("+", [X] * n), lambda n: 7 * n),
    "subtract": (lambda n: chained(nested("-", [X] * n)), lambda n: 7 * (2 - n)),
    "subtract decimals": (lambda n: chained(nested("-", [D] * n)), lambda n: Decimal(2 - n) / 4),
    "multiply": (lambda n: chained(nested("*", [X, *[of(-1, BIGINT)] * n])), lambda n: 7),
    "divide": (lambda n: chained(nested("/", [cast(X, DOUBLE), *[of(-1, BIGINT)] * 2 * n])), lambda n: 7.0),
    "div": (lambda n: chained(nested("div", [X] * (n + 2))), lambda n: 0),
    "remainder": (lambda n: chained(nested("%", [X, *[of(10, BIGINT)] * n])), lambda n: 7),
    "mixed": (lambda n: chained(nested("+-", [X] * (n + 1))), lambda n: 7),
    "add decimals": (lambda n: nested("+", [D] * n), lambda n: Decimal(n) / 4),
    "in": (lambda n: resolve("in", [X, *(of(i) for i in range(10 * n))]), lambda n: True),
    "lookup": (lambda n: case([(resolve("=", [X, of(i)]), of(f"v{i}", STRING)) for i in range(n)], None), lambda n: "v7"),
    "case": (lambda n: case([(resolve("<", [X, of(i)]), of(f"v{i}", STRING)) for i in range(n)], None), lambda n: "v8"),
}
"""Expressions of n terms, and what they are."""


def depth(expr: Expr) -> int:
    level, deepest = [expr], 0
    while level:
        level, deepest = [part for each in level for part in children(each)], deepest + 1
    return deepest


@pytest.mark.parametrize("terms", [FEW, *slow(TERMS)])
@pytest.mark.parametrize("name", WIDE)
def test_passes_over_wide_expressions(name: str, terms: int) -> None:
    """Every pass that walks expressions, hashing and comparing them, plans, fingerprints, both evaluators, and a copy by pickle."""
    make, value = WIDE[name]
    expr, again = make(terms), make(terms)
    assert depth(expr) < 60  # all terms are a call or some: a decimal's type changes in the first few dozen
    assert expr == again and hash(expr) == hash(again) and pickle.loads(pickle.dumps(expr)) == expr
    assert fold(fold(expr)) == fold(expr) and (fold(expr) == expr) is (name not in ("and", "or"))
    assert conjunction(conjuncts(expr)) == expr and shift(shift(expr, 1), -1) == expr
    assert columns_of(expr) and show_expr(expr) and can_fail(expr) in (True, False) and ignores_sign_of_zero(expr) in (True, False)
    assert evaluate_columns(expr, COLUMNS, 1).to_pylist() == [evaluate(expr, ROW)] == [value(terms)]
    plan = Filter(TABLE, expr) if expr.type == BOOLEAN else Project(TABLE, (("e", expr),))
    assert fingerprint(optimize(plan)) == fingerprint(optimize(plan))


def test_constants_are_one_node_whatever_their_number() -> None:
    many = WIDE["in"][0](FEW)
    assert isinstance(many, Call) and len(children(many)) == 2 and isinstance(many.arguments[1], Constants)
    assert "… 9,980 more" in show_expr(many)
    other = resolve("in", [X, *(of(i) for i in range(1, 10 * FEW + 1))])
    assert many != other and fingerprint(Filter(TABLE, many)) != fingerprint(Filter(TABLE, other))


@pytest.mark.parametrize("rows", [0, 1, 3, 5_000])
@pytest.mark.parametrize("name", ["in", "lookup"])
def test_a_lookup_evaluates_no_condition(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its subject once, and of its values those that some row has."""
    expr, seen = WIDE[name][0](FEW), []
    plain = evaluator.value_of
    monkeypatch.setattr(evaluator, "value_of", lambda part, frame: seen.append(part) or plain(part, frame))
    values = [None if i % 7 == 3 else i * 40 - 5 for i in range(rows)]
    result = evaluate_columns(expr, [pa.array(values, pa.int64()), None, None], rows).to_pylist()
    assert len(seen) <= 2
    limit = 10 * FEW if name == "in" else FEW
    if name == "in":
        assert result == [None if v is None else 0 <= v < limit for v in values]
    else:
        assert result == [f"v{v}" if v is not None and 0 <= v < limit else None for v in values]


@pytest.mark.parametrize(("connective", "operator"), [("or", "="), ("and", "<>")])
def test_many_comparisons_with_constants_are_one_probe(connective: str, operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the constant on the left, with other conditions between, and in several subjects; the same values and NULLs."""
    y = Column(1, BIGINT, True, "y")
    parts = [resolve(operator, [X, of(i)] if i % 2 else [of(i), X]) for i in range(10)]
    parts += [resolve("<", [y, of(3)]), resolve(operator, [X, of(None)]), *(resolve(operator, [y, of(i)]) for i in range(20, 30))]
    expr = nested(connective, [*parts, resolve("is_null", [y])])
    short = fold(expr)
    assert isinstance(short, Call) and len(short.arguments) == 5 and fold(short) == short
    members = [part.arguments[0] if connective == "and" else part for part in (short.arguments[0], short.arguments[3])]
    assert all(isinstance(part, Call) and part.function == "in" for part in members)
    rows = list(itertools.product([None, 0, 9, 10, 50], [None, 0, 5, 25, 40]))
    arrays = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    expected = [evaluate(expr, row) for row in rows]
    assert len(set(expected)) > 1
    assert [evaluate(short, row) for row in rows] == expected
    seen: list[Expr] = []
    plain = evaluator.value_of
    monkeypatch.setattr(evaluator, "value_of", lambda part, frame: seen.append(part) or plain(part, frame))
    assert evaluate_columns(short, arrays, len(rows)).to_pylist() == expected
    assert len(seen) < 20


def test_few_comparisons_stay_and_nan_and_zero_are_equal_in_both_forms() -> None:
    few = nested("or", [resolve("=", [X, of(i)]) for i in range(7)])
    assert fold(few) == few
    x = Column(0, DOUBLE, True)
    values = [0.0, float("nan"), *(float(i) for i in range(1, 9))]
    many = nested("or", [resolve("=", [x, Literal(value, DOUBLE)]) for value in values])
    rows = [0.0, -0.0, float("nan"), 3.0, 3.5, None]
    assert [evaluate(fold(many), (row,)) for row in rows] == [evaluate(many, (row,)) for row in rows] == [True] * 4 + [False, None]


def test_a_case_stops_where_no_row_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    expr, seen = WIDE["case"][0](FEW), []
    plain = evaluator.value_of
    monkeypatch.setattr(evaluator, "value_of", lambda part, frame: seen.append(part) or plain(part, frame))
    assert evaluate_columns(expr, [pa.array([7, 20]), None, None], 2).to_pylist() == ["v8", "v21"]
    assert len(seen) < 100


def test_case_is_a_lookup_from_eight_constants_on() -> None:
    def branches(count: int, subject: Expr = X) -> list[tuple[Expr, Expr]]:
        return [(resolve("=", [subject, of(i)]), of(i)) for i in range(count)]

    assert isinstance(case(branches(7), None), Case)
    lookup = case([*branches(8), (resolve("<", [X, of(0)]), of(-1))], of(-2))
    assert isinstance(lookup, Call) and lookup.function == "lookup" and isinstance(lookup.arguments[2], Case)
    assert [evaluate(lookup, (x,)) for x in (0, 7, 8, -1, None)] == [0, 7, -2, -1, -2]
    assert isinstance(case([*branches(4), *branches(4, Column(1, BIGINT, True))], None), Case)


def test_in_with_nan_zero_and_null() -> None:
    nan, y = float("nan"), Column(0, DOUBLE, True)
    expr = resolve("in", [y, Literal(-0.0, DOUBLE), Literal(nan, DOUBLE), *(Literal(float(i), DOUBLE) for i in range(1, 50))])
    copied = pickle.loads(pickle.dumps(expr))
    values = [0.0, -0.0, nan, 3.0, 3.5, None]
    for each in (expr, copied):
        assert evaluate_columns(each, [pa.array(values)], 6).to_pylist() == [True, True, True, True, False, None]
        assert [evaluate(each, (value,)) for value in values] == [True, True, True, True, False, None]
    null = resolve("in", [X, of(1), of(None), of(1)])
    assert evaluate_columns(null, [pa.array([1, 2, None])], 3).to_pylist() == [True, None, None]


def test_a_sum_fails_at_the_part_that_fails() -> None:
    text = "a + b + c + d"
    parts: list[Expr] = [Column(i, BIGINT, True, name, Span(text, 4 * i, 4 * i + 1)) for i, name in enumerate("abcd")]
    expr = functools.reduce(lambda left, right: resolve("+", [left, right], Span(text, 0, 4 * right.index + 1)), parts)  # type: ignore[union-attr]
    assert isinstance(expr, Call) and len(expr.arguments) == 4
    rows = [(1, 2, 3, 4), (2**63 - 1, 0, 1, -5), (2**63 - 1, 1, None, 0), (None, 1, 1, 1)]
    arrays = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    for row, place in ((1, "a + b + c"), (2, "a + b")):
        with pytest.raises(ArithmeticOverflow) as by_row:
            evaluate(expr, rows[row])
        with pytest.raises(ArithmeticOverflow) as by_column:
            evaluate_columns(expr, [array.slice(row, 2) for array in arrays], 2)
        for error in (by_row.value, by_column.value):
            assert error.span is not None and text[error.span.start : error.span.end] == place
    assert evaluate(expr, rows[0]) == 10 and evaluate(expr, rows[3]) is None
    # A NULL on the right does not hide the overflow on its left, as in Spark; one on the left ends the sum.
    wide = functools.reduce(lambda left, right: resolve("+", [left, right]), [X, X, of(None, BIGINT)])
    with pytest.raises(ArithmeticOverflow):
        evaluate(wide, (2**63 - 1,))


def test_sums_of_other_types_are_calls_of_their_own() -> None:
    i, b = Column(0, INT, True), Column(1, BIGINT, True)
    mixed = resolve("+", [resolve("+", [i, i]), b])
    assert isinstance(mixed, Call) and len(mixed.arguments) == 2
    right = resolve("+", [i, resolve("+", [i, i])])
    assert isinstance(right, Call) and len(right.arguments) == 2


def outcome(run: Callable[..., object], *arguments: object) -> str:
    """The value, or the error with its row and place."""
    try:
        return repr(run(*arguments))
    except EvaluationError as error:
        return repr((type(error), getattr(error, "row", None), error.span and (error.span.start, error.span.end)))


def by_column(expr: Expr, arrays: Sequence[pa.Array]) -> object:
    return evaluate_columns(expr, arrays, len(arrays[0])).to_pylist()


CHAINED = [(kind, symbols) for kind in (INT, BIGINT, DOUBLE, decimal(38, 2), decimal(20, 3)) for symbols in ("+-", "*")]
DIVIDED = [
    *((DOUBLE, symbols) for symbols in ("/", "%", "+-*/%")),
    *((BIGINT, symbols) for symbols in ("%", "÷", "+-*%÷")),
    *((decimal(38, 6), symbols) for symbols in ("/", "%", "+-/%")),
    (INT, "+-%"),
]


@pytest.mark.parametrize(("kind", "symbols"), [*CHAINED, *DIVIDED], ids=lambda value: value if isinstance(value, str) else value.sql)
@pytest.mark.parametrize("nulls", [False, True])
def test_a_chain_is_the_nested_operators(kind: Type, symbols: str, nulls: bool) -> None:
    """The same values, NULLs, errors and places of errors, by row and by column."""
    choose = random.Random(f"{kind.sql} {symbols} {nulls}")
    count = 2 * NESTED
    text = " ".join(f"c{i % 6}" for i in range(count))
    parts: list[Expr] = [Column(choose.randrange(6), kind, True, "c", Span(text, 3 * i, 3 * i + 2)) for i in range(count)]
    expr = nested("".join(choose.choice(symbols) for _ in range(count)), parts)
    chain = chained(expr)
    assert isinstance(chain, Call) and chain.function == "chain" and depth(chain) < 60 < depth(expr)
    assert can_fail(chain) == can_fail(expr) and columns_of(chain) == columns_of(expr)
    values = [0, 1, 1, -1, 2, 10**8, *([None] if nulls else [])]
    scarce = [value for value in values if value != 0]  # of which no row fails by division alone
    columns = [pa.array([choose.choice(scarce if i % 2 else values) for i in range(12)], pa.int32()).cast(kind.arrow) for _ in range(6)]
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    by_row = [outcome(evaluate, chain, row) for row in rows]
    assert by_row == [outcome(evaluate, expr, row) for row in rows]
    assert outcome(by_column, chain, columns) == outcome(by_column, expr, columns)
    for i in range(len(rows)):
        alone = [column.slice(i, 1) for column in columns]
        assert outcome(by_column, chain, alone) == outcome(by_column, expr, alone)
    good = [i for i, text in enumerate(by_row) if "class" not in text]
    together = [column.take(pa.array(good, pa.int64())) for column in columns]
    assert outcome(by_column, chain, together) == outcome(by_column, expr, together)


def test_nothing_is_evaluated_after_a_divisor_that_is_null() -> None:
    """The divisors come first, from the right; then the first operand, which fails here unless a divisor is NULL."""
    x, y, z = (Column(i, DOUBLE, True) for i in range(3))
    expr = nested("/", [resolve("/", [y, z]), *[y] * NESTED, x])
    chain = chained(resolve("+", [expr, y]))
    assert isinstance(chain, Call) and chain.function == "chain"
    rows = [(None, 1.0, 0.0), (None, None, 0.0), (1.0, None, 0.0), (2.0, 1.0, 0.0)]
    assert [evaluate(chain, row) for row in rows[:3]] == [None] * 3
    with pytest.raises(DivisionByZero):
        evaluate(chain, rows[3])
    arrays = [pa.array(column, pa.float64()) for column in zip(*rows, strict=True)]
    assert by_column(chain, [array.slice(0, 3) for array in arrays]) == [None] * 3
    with pytest.raises(DivisionByZero) as raised:
        by_column(chain, arrays)
    assert row_of(raised.value) == 3


def test_short_chains_stay_nested() -> None:
    """Ids of existing states depend on the nested form."""
    for symbol in ("-", "%"):
        short = nested(symbol, [X] * (NESTED + 1))
        assert chained(short) is short and depth(short) == NESTED + 1
