"""Literals with the types of Spark: numbers with and without suffix, typed literals, intervals."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from deltic.errors import EvaluationError, Span, SyntaxFailure, TypeMismatch, Unsupported
from deltic.expr import Cast, Literal
from deltic.expr.interpreter import evaluate
from deltic.frontends.sql import tree
from deltic.schema import BIGINT, BINARY, DOUBLE, FLOAT, INT, INTEGER_BITS, SMALLINT, STRING, TINYINT, Type, decimal

MAX_PRECISION: Final = 38
SUFFIXES: Final[dict[str, Type]] = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT, "D": DOUBLE, "F": FLOAT}
_NUMBER: Final = re.compile(r"(-?)(\d+|\d+\.\d*|\.\d+)(?:E([+-]?\d+))?(BD|[LSYDF])?")

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
    """A constant interval: of months, or of days and microseconds. whole_days: no field is finer than a day."""

    months: int = 0
    days: int = 0
    microseconds: int = 0
    whole_days: bool = True

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.microseconds, self.whole_days)


def number(node: tree.NumberText) -> Literal:
    """A number: INT, BIGINT or DECIMAL by its size, DECIMAL with a point, DOUBLE with an exponent, or the type of its suffix."""
    text, span = node.text.upper(), node.span
    if len(text) < 10 and text.isdigit():
        return Literal(int(text), INT, span)
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise SyntaxFailure("invalid number", span=span)
    sign, digits, exponent, suffix = match.groups()
    if suffix in ("D", "F") or (exponent is not None and suffix is None):
        type = SUFFIXES[suffix or "D"]
        return Literal(_float(float(text.rstrip("DF")), type, span), type, span)
    if suffix in SUFFIXES and (exponent is not None or not digits.isdigit()):
        raise SyntaxFailure("invalid number", span=span, expected=f"a whole number before {suffix}")
    if len(digits.strip("0.")) > MAX_PRECISION or len(exponent or "") > 4:
        raise TypeMismatch(f"the number has more than {MAX_PRECISION} digits", span=span)
    if suffix == "BD" or not digits.isdigit():
        return _decimal(Decimal(text.removesuffix("BD")), span)
    value = int(sign + digits)
    if suffix is not None and not _fits(value, SUFFIXES[suffix]):
        raise TypeMismatch(f"the number does not fit {SUFFIXES[suffix].sql}", span=span)
    for type in (INT, BIGINT) if suffix is None else (SUFFIXES[suffix],):
        if _fits(value, type):
            return Literal(value, type, span)
    return _decimal(Decimal(value), span)


def check_literal(expr: Cast, literal: Literal) -> None:
    """Raises TypeMismatch for a literal whose implicit cast, to the type of the other operand, fails.

    An explicit CAST may fail on the rows that reach it.
    """
    if expr.span != literal.span or expr.lenient:
        return
    try:
        evaluate(expr, ())
    except EvaluationError as error:
        remedy = f"CAST the other side to {literal.type.sql}, or write a {expr.type.sql}"
        raise TypeMismatch(error.message, span=expr.span, expected=f"a value of type {expr.type.sql}", remedy=remedy) from error


def whole(node: tree.Expression | None, most: int) -> int | None:
    """The value of an integer literal from 0 to `most`; None for other nodes."""
    if not isinstance(node, tree.NumberText) or not node.text.isdigit():
        return None
    digits = node.text.lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(most)) and int(digits) <= most else None


def typed(text: str, type: Type, span: Span) -> Literal:
    """DATE '…', TIMESTAMP '…' and TIMESTAMP_NTZ '…', parsed as by CAST."""
    try:
        return Literal(evaluate(Cast(Literal(text, STRING), type, False, False, span), ()), type, span)
    except EvaluationError as error:
        form = "DATE '2025-01-31'" if type.name == "DATE" else f"{type.sql} '2025-01-31 12:00:00'"
        raise TypeMismatch(f"invalid {type.sql}", span=span, expected=form) from error


def binary(text: str, span: Span) -> Literal:
    """X'…': hexadecimal digits; an odd number of them is padded with a leading 0."""
    try:
        return Literal(bytes.fromhex("0" * (len(text) % 2) + text), BINARY, span)
    except ValueError:
        raise TypeMismatch("invalid BINARY", span=span, expected="hex digits, such as X'1F'") from None


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


def interval(node: tree.Expression) -> Interval | None:
    """The value of an INTERVAL literal or a sum of them; None for other nodes."""
    match node:
        case tree.Parenthesised():
            return interval(node.inner)
        case tree.Prefix(operator="-"):
            inner = interval(node.operand)
            return None if inner is None else -inner
        case tree.IntervalText():
            return _written(node)
        case tree.Operation():
            return _sum_of(node)
        case _:
            return None


def _sum_of(node: tree.Operation) -> Interval | None:
    total = interval(node.operands[0]) if set(node.operators) <= {"+", "-"} else None
    for operator, operand in zip(node.operators, node.operands[1:], strict=True):
        part = interval(operand) if total is not None else None
        if total is None or part is None:
            return None
        total = add(total, part if operator == "+" else -part, node.span)
    return total


def add(left: Interval, right: Interval, span: Span) -> Interval:
    """The sum of two intervals, both of months or both without months."""
    if (left.months or right.months) and (left.days or right.days or left.microseconds or right.microseconds):
        raise Unsupported("an INTERVAL that mixes months with days is not supported", span=span, remedy="add one after the other")
    return Interval(
        left.months + right.months,
        left.days + right.days,
        left.microseconds + right.microseconds,
        left.whole_days and right.whole_days,
    )


def _written(node: tree.IntervalText) -> Interval:
    if node.compound:
        raise _no_form(node.span)
    total = _single(*node.parts[0], node.span)
    for amount, unit in node.parts[1:]:
        total = add(total, _single(amount, unit, node.span), node.span)
    return total


def _no_form(span: Span) -> Unsupported:
    expected = f"INTERVAL n UNIT, the unit one of {', '.join(UNITS)}"
    return Unsupported("this form of INTERVAL is not supported", span=span, expected=expected)


def _single(amount: tree.Expression, unit: tree.Name, span: Span) -> Interval:
    word = unit.text.upper().removesuffix("S")
    if word not in UNITS:
        raise _no_form(span)
    text = _number_of(amount)
    if text is None or not re.fullmatch(r"[+-]?\d{1,18}" if word != "SECOND" else r"[+-]?\d{1,18}(\.\d{1,6})?", text):
        raise Unsupported("an INTERVAL of a number that is not constant and whole is not supported", span=span, expected="INTERVAL 3 DAYS")
    if word in MONTHS:
        return Interval(months=int(text) * MONTHS[word])
    if word in DAYS:
        return Interval(days=int(text) * DAYS[word])
    return Interval(microseconds=int(Decimal(text) * MICROSECONDS[word]), whole_days=False)


def _number_of(node: tree.Expression) -> str | None:
    match node:
        case tree.Prefix(operator="-"):
            inner = _number_of(node.operand)
            return None if inner is None else f"-{inner}"
        case tree.Parenthesised():
            return _number_of(node.inner)
        case tree.NumberText() | tree.StringText():
            return node.text.strip()
        case _:
            return None
