"""Trigonometric and hyperbolic functions, and others of DOUBLE: never an error; NaN, and infinity beyond the range, as in Java.

SIN, COS, TAN and their reciprocals may differ from Spark's in the last place; the others do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow.compute as pc

from deltic.errors import Span
from deltic.expr.arrays.datum import Kernel
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.functions.signature import REAL, check_count, takes
from deltic.expr.nodes import Expr, Literal
from deltic.expr.registry import Builder, Function, Rewrite
from deltic.expr.rows import floats, strict_math
from deltic.expr.rows.floats import DEGREES, RADIANS, total
from deltic.schema import DOUBLE


def _of_one(name: str, rows: Callable[[float], float | None], arrays: Kernel = per_distinct, *, nullable: bool = False) -> Function:
    return Function(
        name=name,
        signature=takes([REAL], DOUBLE, nullable="always" if nullable else "as arguments"),
        can_fail=False,
        rows=lambda call, x: rows(x),
        arrays=arrays,
    )


def _arrow(function: Callable[..., object]) -> Kernel:
    return lambda call, length, x: function(x)


def _of_two(name: str, rows: Callable[[float, float], float], arrays: Kernel) -> Function:
    return Function(name=name, signature=takes([REAL, REAL], DOUBLE), can_fail=False, rows=lambda call, x, y: rows(x, y), arrays=arrays)


def _number(value: float) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 0, 0, span)
        return Literal(value, DOUBLE, span)

    return build


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    _of_one("sin", total(math.sin), _arrow(pc.sin)),
    _of_one("cos", total(math.cos), _arrow(pc.cos)),
    _of_one("tan", total(math.tan), _arrow(pc.tan)),
    _of_one("asin", strict_math.asin),
    _of_one("acos", strict_math.acos),
    _of_one("atan", strict_math.atan),
    _of_one("cot", floats.cot),
    _of_one("csc", floats.csc),
    _of_one("sec", floats.sec),
    _of_one("sinh", strict_math.sinh),
    _of_one("cosh", strict_math.cosh),
    _of_one("tanh", strict_math.tanh),
    _of_one("asinh", strict_math.asinh),
    _of_one("acosh", strict_math.acosh),
    _of_one("atanh", strict_math.atanh),
    _of_one("cbrt", strict_math.cbrt),
    _of_one("rint", floats.rint),
    _of_one("expm1", strict_math.expm1),
    _of_one("log1p", floats.log1p, nullable=True),
    _of_one("degrees", lambda x: x * DEGREES, lambda call, length, x: pc.multiply(x, DEGREES)),
    _of_one("radians", lambda x: x * RADIANS, lambda call, length, x: pc.multiply(x, RADIANS)),
    _of_two("atan2", lambda y, x: strict_math.atan2(y + 0.0, x + 0.0), per_distinct),
    _of_two("hypot", strict_math.hypot, per_distinct),
    Rewrite(name="pi", build=_number(math.pi)),
    Rewrite(name="e", build=_number(math.e)),
)
