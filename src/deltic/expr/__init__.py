"""Scalar expressions: their nodes, their types, and two evaluators, one by row and one by column."""

from __future__ import annotations

from deltic.expr.failing import can_fail
from deltic.expr.functions import known_functions, resolve
from deltic.expr.functions.chains import chained
from deltic.expr.nodes import TRUE, Call, Case, Cast, Column, Expr, Literal, Value, children, columns_of
from deltic.expr.typing import case, cast, common_type

__all__ = [
    "TRUE",
    "Call",
    "Case",
    "Cast",
    "Column",
    "Expr",
    "Literal",
    "Value",
    "can_fail",
    "case",
    "cast",
    "chained",
    "children",
    "columns_of",
    "common_type",
    "known_functions",
    "resolve",
]
