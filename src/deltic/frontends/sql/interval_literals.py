"""INTERVAL literals: units with their amounts, in text or not, and the fields of a text from one unit to another."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.expr import Literal
from deltic.frontends.sql import tree
from deltic.intervals import SIZES, interval_of, parse_fields
from deltic.kinds import DAY_TIME, YEAR_MONTH
from deltic.schema import Type, interval

_PARTS: Final = {"WEEK": ("DAY", 7 * SIZES["DAY"]), "MILLISECOND": ("SECOND", 1000), "MICROSECOND": ("SECOND", 1)}
UNITS: Final = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_AMOUNT: Final = r"[+-]?[0-9]{1,38}(?:\.[0-9]{1,9})?"
_TEXT: Final = re.compile(rf"\s*(?:interval\s+)?({_AMOUNT}\s+[a-z]+(?:\s+{_AMOUNT}\s+[a-z]+)*)\s*", re.IGNORECASE)
_EXPECTED: Final = f"INTERVAL n UNIT …, the unit one of {', '.join(UNITS)}"
_FORMS: Final = {
    "YEAR": "y",
    "MONTH": "m",
    "DAY": "d",
    "HOUR": "hh",
    "MINUTE": "mm",
    "SECOND": "ss.ffffff",
}


def bound(node: tree.IntervalText) -> Literal:
    """The interval, of the type that its units give it. Raises TypeMismatch, Unsupported."""
    if node.to is not None:
        return _from_to(node, node.to)
    amounts: list[tuple[str, str]] = []
    for amount, unit in node.parts:
        text = _text_of(amount)
        if unit is not None:
            amounts.append((_amount(text, node.span), unit.text))
        else:
            match = _TEXT.fullmatch(text or "")
            if match is None:
                raise TypeMismatch("invalid INTERVAL", span=node.span, expected="INTERVAL '1 day 2 hours'")
            words = match[1].split()
            amounts += zip(words[::2], words[1::2], strict=True)
    return _sum(amounts, node.span)


def _from_to(node: tree.IntervalText, end: tree.Name) -> Literal:
    """INTERVAL '1 02:03' DAY TO MINUTE."""
    if len(node.parts) > 1:
        raise TypeMismatch("an INTERVAL of several parts with TO", span=node.span, expected=f"INTERVAL '…' unit TO {end.text.upper()}")
    ((amount, unit),) = node.parts
    type = None if unit is None else _type_of([unit.text.upper(), end.text.upper()])
    if type is None or unit is None or type.fields != (unit.text.upper(), end.text.upper()):
        raise TypeMismatch("invalid INTERVAL", span=node.span, expected="INTERVAL '…' DAY TO SECOND, or from and to other units")
    text, sign = _signed(amount)
    value = None if text is None else parse_fields(text.strip(), type, sign)
    if value is None:
        raise TypeMismatch(
            f"invalid {type.sql}", span=node.span, expected=f"INTERVAL '{_form(type)}' {unit.text.upper()} TO {end.text.upper()}"
        )
    return Literal(value, type, node.span)


def _form(type: Type) -> str:
    family = DAY_TIME if type.is_day_time else YEAR_MONTH
    fields = family[family.index(type.fields[0]) : family.index(type.fields[1]) + 1]
    text = ""
    for field in fields:
        text += ("" if not text else " " if field == "HOUR" else "-" if field == "MONTH" else ":") + _FORMS[field]
    return text


def _signed(node: tree.Expression) -> tuple[str | None, int]:
    if isinstance(node, tree.Prefix) and node.operator in ("-", "+"):
        text, sign = _signed(node.operand)
        return text, -sign if node.operator == "-" else sign
    return (node.text, 1) if isinstance(node, tree.StringText) else (None, 1)


def _sum(amounts: list[tuple[str, str]], span: Span) -> Literal:
    units, fields = 0, list[str]()
    for amount, word in amounts:
        name = word.upper().removesuffix("S")
        field, size = _PARTS.get(name) or (name, SIZES.get(name, 0))
        if not size:
            raise Unsupported(f"the unit {word.upper()} of an INTERVAL is not supported", span=span, expected=_EXPECTED)
        if "." in amount and name != "SECOND":
            raise TypeMismatch(f"an INTERVAL with a part of a {name}", span=span, expected="a whole number, except of SECONDs")
        units += int(Decimal(amount) * size)
        fields.append(field)
    type = _type_of(fields)
    if type is None:
        raise TypeMismatch("an INTERVAL mixes months with days", span=span, expected="one of both", remedy="add one after the other")
    value = interval_of(units, type)
    if value is None:
        most = "64 bits of microseconds" if type.is_day_time else "32 bits of months"
        raise TypeMismatch(f"the INTERVAL does not fit {type.sql}", span=span, expected=f"an interval within {most}")
    return Literal(value, type, span)


def _type_of(fields: list[str]) -> Type | None:
    """From the longest to the shortest."""
    for family in (DAY_TIME, YEAR_MONTH):
        if set(fields) <= set(family):
            places = [family.index(field) for field in fields]
            return interval(family[min(places)], family[max(places)])
    return None


def _amount(text: str | None, span: Span) -> str:
    if text is None or not re.fullmatch(_AMOUNT, text):
        raise Unsupported(
            "an INTERVAL of a number that is not constant is not supported",
            span=span,
            expected="INTERVAL 3 DAYS",
            remedy="make_dt_interval(days, hours, minutes, seconds), or n * INTERVAL 1 DAY",
        )
    return text


def _text_of(node: tree.Expression) -> str | None:
    match node:
        case tree.Prefix(operator="-"):
            inner = _text_of(node.operand)
            return None if inner is None else inner.removeprefix("-") if inner.startswith("-") else f"-{inner}"
        case tree.Parenthesised():
            return _text_of(node.inner)
        case tree.NumberText() | tree.StringText():
            return node.text.strip()
        case _:
            return None
