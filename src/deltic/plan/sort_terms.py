"""The terms of an order of rows."""

from __future__ import annotations

from dataclasses import dataclass

from deltic.expr.nodes import Expr


@dataclass(frozen=True, slots=True)
class Order:
    """One term of ORDER BY."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = True
