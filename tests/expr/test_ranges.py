"""in_range on columns equals in_range on rows, and names the first row that is outside."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from deltic.errors import ArithmeticOverflow
from deltic.expr import resolve
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Column, Expr, Literal
from deltic.schema import BIGINT, SMALLINT, Type, decimal
from expr_check import check


def ranged(type: Type, low: Any, high: Any) -> Expr:
    return resolve("in_range", [Column(0, type, True), Literal(low, type), Literal(high, type)])


@pytest.mark.parametrize(
    ("type", "low", "high", "values"),
    [
        (SMALLINT, 0, 255, [0, 255, None, 7]),
        (BIGINT, -5, 5, [-5, 5, None]),
        (decimal(20, 0), Decimal(0), Decimal(2**64 - 1), [Decimal(2**64 - 1), Decimal(0)]),
    ],
)
def test_columns_equal_rows(type: Type, low: Any, high: Any, values: list[Any]) -> None:
    term = SimpleNamespace(expr=ranged(type, low, high), sql="in_range")

    def table(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        return pa.table({"x": pa.array([value for (value,) in rows], type.arrow)})

    check(term, [(value,) for value in values], table)
    for bad in (low - 1, high + 1):
        check(term, [(value,) for value in (*values, bad, bad)], table)
        with pytest.raises(ArithmeticOverflow, match=f"the value {bad} is out of range"):
            evaluate(term.expr, (bad,))
