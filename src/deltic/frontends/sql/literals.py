"""Constants as Spark types them: numbers with and without suffix, typed literals, intervals."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sqlglot import exp

from deltic.errors import EvaluationError, Span, SyntaxFailure, TypeMismatch, Unsupported
from deltic.expr import Cast, Literal
from deltic.expr.interpreter import evaluate
from deltic.frontends.sql.spans import Places
from deltic.schema import BIGINT, DOUBLE, FLOAT, INT, INTEGER_BITS, SMALLINT, STRING, TINYINT, Type, decimal

MAX_PRECISION: Final = 38
SUFFIXES: Final[dict[exp.DType, Type]] = {
    exp.DType.BIGINT: BIGINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.TINYINT: TINYINT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.FLOAT: FLOAT,
}

MONTHS: Final = {"YEAR": 12, "MONTH": 1}
DAYS: Final = {"WEEK": 7, "DAY": 1}
MICROSECONDS: Final = {
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
UNITS: Final = (*MONTHS, *DAYS, *MICROSECONDS)


@dataclass(frozen=True, slots=True)
class Interval:
    """A constant interval: of months, or of days and microseconds; `whole_days` where no field is finer than a day."""

    months: int = 0
    days: int = 0
    microseconds: int = 0
    whole_days: bool = True

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.microseconds, self.whole_days)


def number(text: str, negative: bool, span: Span) -> Literal:
    """A number as written: INT, BIGINT or DECIMAL by its size, DECIMAL with a point, DOUBLE with an exponent."""
    if not re.fullmatch(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        raise SyntaxFailure("this is no number", span=span)
    signed = f"-{text}" if negative else text
    if "e" in text.lower():
        return suffixed(text, DOUBLE, negative, span)
    if text.isdigit():
        value = int(signed)
        for type in (INT, BIGINT):
            if _fits(value, type):
                return Literal(value, type, span)
    return _decimal(Decimal(signed), span)


def suffixed(text: str, type: Type, negative: bool, span: Span) -> Literal:
    """A number with a suffix (L, S, Y, D, F)."""
    signed = f"-{text}" if negative else text
    if type.is_float:
        return Literal(_float(float(signed), type, span), type, span)
    if not text.isdigit() or not _fits(int(signed), type):
        raise TypeMismatch(f"the number does not fit {type.sql}", span=span)
    return Literal(int(signed), type, span)


def big_decimal(text: str, negative: bool, span: Span) -> Literal:
    """A number with the suffix BD."""
    return _decimal(Decimal(f"-{text}" if negative else text), span)


def typed(text: str, type: Type, span: Span) -> Literal:
    """DATE '…' and TIMESTAMP '…', read as CAST reads them."""
    try:
        return Literal(evaluate(Cast(Literal(text, STRING), type, False, False, span), ()), type, span)
    except EvaluationError as error:
        form = "DATE '2025-01-31'" if type.name == "DATE" else "TIMESTAMP '2025-01-31 12:00:00'"
        raise TypeMismatch(f"this is no {type.sql}", span=span, expected=form) from error


def _fits(value: int, type: Type) -> bool:
    half = 1 << (INTEGER_BITS[type.name] - 1)
    return -half <= value < half


def _decimal(value: Decimal, span: Span) -> Literal:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale)
    if precision > MAX_PRECISION:
        raise TypeMismatch(f"the number has more than {MAX_PRECISION} digits", span=span)
    return Literal(value, decimal(precision, scale), span)


def _float(value: float, type: Type, span: Span) -> float:
    if type == FLOAT:
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        raise TypeMismatch(f"the number does not fit {type.sql}", span=span)
    return value


def interval(node: exp.Expr, places: Places) -> Interval | None:
    """The interval that a tree of INTERVAL literals means; None where it is not one."""
    match node:
        case exp.Paren():
            return interval(node.this, places)
        case exp.Neg():
            inner = interval(node.this, places)
            return None if inner is None else -inner
        case exp.Interval():
            return _single(node, places)
        case exp.Add() | exp.Sub():
            left, right = interval(node.this, places), interval(node.expression, places)
            if left is None or right is None:
                return None
            return _sum(left, right if isinstance(node, exp.Add) else -right, places.of(node))
        case _:
            return None


def _sum(left: Interval, right: Interval, span: Span) -> Interval:
    if (left.months or right.months) and (left.days or right.days or left.microseconds or right.microseconds):
        raise Unsupported("an interval of months and days together is not supported", span=span, remedy="add one after the other")
    return Interval(
        left.months + right.months,
        left.days + right.days,
        left.microseconds + right.microseconds,
        left.whole_days and right.whole_days,
    )


def _single(node: exp.Interval, places: Places) -> Interval:
    span = places.of(node)
    unit = node.args.get("unit")
    word = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    if word not in UNITS:
        known = ", ".join(UNITS)
        raise Unsupported("this form of INTERVAL is not supported", span=span, expected=f"INTERVAL n UNIT, the unit one of {known}")
    text = _number_of(node.this)
    if text is None or not re.fullmatch(r"[+-]?\d+" if word != "SECOND" else r"[+-]?\d+(\.\d{1,6})?", text):
        raise Unsupported("an INTERVAL of a number that is not constant and whole is not supported", span=span, expected="INTERVAL 3 DAYS")
    if word in MONTHS:
        return Interval(months=int(text) * MONTHS[word])
    if word in DAYS:
        return Interval(days=int(text) * DAYS[word])
    return Interval(microseconds=int(Decimal(text) * MICROSECONDS[word]), whole_days=False)


def _number_of(node: exp.Expr | None) -> str | None:
    if isinstance(node, exp.Neg):
        inner = _number_of(node.this)
        return None if inner is None else f"-{inner}"
    return str(node.this).strip() if isinstance(node, exp.Literal) else None
