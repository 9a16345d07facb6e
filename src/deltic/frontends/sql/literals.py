"""Literals with the types of Spark: numbers with and without suffix, typed literals."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Final

from deltic.errors import EvaluationError, Span, SyntaxFailure, TypeMismatch
from deltic.expr import Cast, Literal
from deltic.expr.interpreter import evaluate
from deltic.expr.rows.numbers import in_range
from deltic.frontends.sql import tree
from deltic.schema import BIGINT, BINARY, DOUBLE, FLOAT, INT, SMALLINT, STRING, TINYINT, Type, decimal

MAX_PRECISION: Final = 38
SUFFIXES: Final[dict[str, Type]] = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT, "D": DOUBLE, "F": FLOAT}
_OF_CLOCK: Final = {
    "now": "now()",
    "today": "current_date()",
    "tomorrow": "current_date() + INTERVAL 1 DAY",
    "yesterday": "current_date() - INTERVAL 1 DAY",
}
"""The words of Spark's literals that depend on the time, and the functions that are accepted where it is known."""
_NUMBER: Final = re.compile(r"(-?)(\d+|\d+\.\d*|\.\d+)(?:E([+-]?\d+))?(BD|[LSYDF])?")


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
    if len(digits.replace(".", "").strip("0")) > MAX_PRECISION or len(exponent or "") > 4:
        raise TypeMismatch(f"the number has more than {MAX_PRECISION} digits", span=span)
    if suffix == "BD" or not digits.isdigit():
        return _decimal(Decimal(text.removesuffix("BD")), span)
    value = int(sign + digits)
    if suffix is not None and not in_range(value, SUFFIXES[suffix]):
        raise TypeMismatch(f"the number does not fit {SUFFIXES[suffix].sql}", span=span)
    for type in (INT, BIGINT) if suffix is None else (SUFFIXES[suffix],):
        if in_range(value, type):
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
    """DATE '…', TIMESTAMP '…', TIMESTAMP_NTZ '…' and TIME '…', parsed as by CAST. All but TIME have 'epoch'."""
    word = text.strip().lower()
    if word == "epoch" and not type.is_time:
        text = "1970-01-01"
    try:
        return Literal(evaluate(Cast(Literal(text, STRING), type, False, False, span), ()), type, span)
    except EvaluationError as error:
        forms = {"DATE": "2025-01-31", "TIME": "12:00:00"}
        expected = f"{type.name} '{forms.get(type.name, '2025-01-31 12:00:00')}'"
        remedy = None if type.is_time else _OF_CLOCK.get(word)
        raise TypeMismatch(f"invalid {type.name}", span=span, expected=expected, remedy=remedy) from error


def binary(text: str, span: Span) -> Literal:
    """X'…': hexadecimal digits; an odd number of them is padded with a leading 0."""
    try:
        return Literal(bytes.fromhex("0" * (len(text) % 2) + text), BINARY, span)
    except ValueError:
        raise TypeMismatch("invalid BINARY", span=span, expected="hex digits, such as X'1F'") from None


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
