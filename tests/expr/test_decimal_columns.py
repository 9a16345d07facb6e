"""DECIMALs of many digits: columns of values that fit 64 bits are computed as such, and give what the interpreter gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Context, Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from deltic.expr import Column, Expr, cast, resolve
from deltic.expr.arrays.decimals import cut_product, units_of
from deltic.expr.nodes import Literal
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, INT, Type, decimal
from expr_check import check

TYPES = (decimal(12, 2), decimal(18, 0), decimal(19, 2), decimal(25, 4), decimal(31, 4), decimal(38, 0), decimal(38, 10), decimal(38, 37))
UNITS = (0, 1, 5, 10**9 - 1, 2**31, 10**17, 10**18 - 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 2**63, 2**64, 10**19, 10**30, 10**38 - 1)
OPERATORS = ("+", "-", "*", "/", "%", "div", "pmod", "=", "<")
TARGETS = (decimal(38, 6), decimal(20, 1), decimal(10, 2), BIGINT, INT, DOUBLE, BOOLEAN)
EXACT = Context(prec=60)


class Term(NamedTuple):
    sql: str
    expr: Expr


def values(type: Type, largest: int, rng: random.Random) -> list[Decimal | None]:
    """Values of a type of at most `largest` units, edges among them."""
    most = min(largest, 10**type.precision - 1)
    units = [u for u in UNITS if u <= most] + [rng.randint(0, most) for _ in range(12)]
    chosen = [rng.choice((-1, 1)) * rng.choice(units) for _ in range(30)]
    return [None if rng.random() < 0.1 else Decimal(each).scaleb(-type.scale, EXACT) for each in chosen]


def table(left: Type, right: Type, rows: Any) -> pa.Table:
    cells = list(zip(*rows, strict=True)) or [(), ()]
    return pa.table({"a": pa.array(cells[0], left.arrow), "b": pa.array(cells[1], right.arrow)})


def terms(left: Type, right: Type) -> Iterator[Term]:
    a, b = Column(0, left, True, "a"), Column(1, right, True, "b")
    for symbol in OPERATORS:
        yield Term(f"{left.sql} {symbol} {right.sql}", resolve(symbol, [a, b]))
    for target in TARGETS:
        yield Term(f"{left.sql} as {target.sql}", cast(a, target))
    for name in ("ceil", "floor", "abs", "negative", "round", "bround"):
        yield Term(f"{name}({left.sql})", resolve(name, [a]))


@pytest.mark.parametrize("largest", [10**8, 10**17, 2**62 - 1, 2**64, 10**38], ids=["9", "17", "62 bits", "64 bits", "all"])
@pytest.mark.parametrize("left", TYPES, ids=lambda type: type.sql)
def test_columns_equal_rows(left: Type, largest: int) -> None:
    for right in TYPES:
        rng = random.Random(f"{left.sql} {right.sql} {largest}")
        rows = list(zip(values(left, largest, rng), values(right, largest, rng), strict=True))
        columns = partial(table, left, right)
        for term in terms(left, right):
            check(term, rows, columns)


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.sql)
def test_columns_and_constants_equal_rows(type: Type) -> None:
    """A constant beyond 64 bits is one integer, which NumPy does not take beside a column."""
    rng = random.Random(type.sql)
    rows = [(value, value) for value in values(type, 10**38, rng)]
    column, columns = Column(0, type, True, "a"), partial(table, type, type)
    for other in TYPES:
        for units in (u for u in UNITS if u < 10**other.precision):
            constant = Literal(Decimal(units).scaleb(-other.scale, EXACT), other)
            for symbol in OPERATORS:
                check(Term(f"{type.sql} {symbol} {constant.value}", resolve(symbol, [column, constant])), rows, columns)
                check(Term(f"{constant.value} {symbol} {type.sql}", resolve(symbol, [constant, column])), rows, columns)


@pytest.mark.parametrize("factor", [1, -1])
def test_values_of_62_bits_are_words(factor: int) -> None:
    def units(*of: int | None) -> Any:
        return units_of(pa.array([None if each is None else Decimal(factor * each) for each in of], pa.decimal128(38, 0)), decimal(38, 0))

    assert units(1, 2**62 - 1, None).dtype == np.int64
    assert units(1, 2**62 + 1).dtype == units(2**64).dtype == object
    assert units(1, 2**62 - 1, None).tolist() == [factor, factor * (2**62 - 1), 0]


def test_products_beyond_39_digits_are_cut() -> None:
    long = 10**45 + 5 * 10**6
    assert cut_product(np.array([7, -long, 10**39 - 1], object)).tolist() == [7, -(10**45 + 10**7), 10**39 - 1]
    assert cut_product(long) == 10**45 + 10**7
    few = np.array([7, 9])
    assert cut_product(few) is few
