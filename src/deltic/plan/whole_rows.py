"""The order of whole rows, which decides where the terms of an order do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deltic.expr.functions import resolve
from deltic.expr.nodes import Expr, Literal
from deltic.expr.typing import cast
from deltic.plan.sort_terms import Order
from deltic.schema import STRING


def whole_rows(columns: Sequence[Expr]) -> tuple[Order, ...]:
    """The order of rows by all of their columns, ascending, NULLs first: only identical rows are equal in it, so -0.0 is before 0.0.

    columns: of types that have an order.
    """
    terms: list[Order] = []
    for column in columns:
        terms.append(Order(column))
        if column.type.is_float:
            terms.append(Order(resolve("<=>", [cast(column, STRING), Literal("-0.0", STRING)]), True, False))
        elif column.type.has_zeros:
            terms.append(Order(resolve("zero_signs", [column])))
    return tuple(terms)


def backwards(terms: Sequence[Order]) -> tuple[Order, ...]:
    """The order from the last row to the first."""
    return tuple(replace(term, descending=not term.descending, nulls_first=not term.nulls_first) for term in terms)
