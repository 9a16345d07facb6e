"""Values as text in files of facts: a string is as it is, other values are constants of the language, and terms
(`fact_terms.py`); those of Soufflé: `souffle_values.py`."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

from deltic import times
from deltic.frontends.datalog.kinds import (
    BIGINT_KIND,
    BOOL,
    DATE_KIND,
    DOUBLE_KIND,
    FLOAT_KIND,
    MOMENT_KINDS,
    STRING_KIND,
    TIME_KIND,
    TIMESTAMP_KIND,
    IntegerKind,
    Kind,
)
from deltic.frontends.datalog.shown_values import shown_value


def value_of(kind: Kind, text: str) -> Any:
    """The value of a kind without parts; None if the text is not one."""
    try:
        return _value(kind, text)
    except (ValueError, ArithmeticError):
        return None


def _value(kind: Kind, text: str) -> Any:
    if kind == STRING_KIND:
        return text
    text = text.strip()
    if isinstance(kind, IntegerKind):
        number = int(text)
        inside = kind.least <= number <= kind.greatest
        return (Decimal(number) if kind.type.is_decimal else number) if inside else None
    if kind == BIGINT_KIND:
        return Decimal(int(text))
    if kind in (FLOAT_KIND, DOUBLE_KIND):
        real = float(text)
        return real if math.isfinite(real) else None
    if kind == BOOL:
        return {"true": True, "false": False}.get(text)
    if kind == DATE_KIND:
        return datetime.date.fromisoformat(text)
    if kind == TIMESTAMP_KIND:
        moment = datetime.datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)
    return times.parse(text) if kind == TIME_KIND else None


def text_of(kind: Kind, value: Any) -> str:
    """The value in a file."""
    return value if kind == STRING_KIND else shown_value(kind, value).strip('"' if kind in MOMENT_KINDS else "")
