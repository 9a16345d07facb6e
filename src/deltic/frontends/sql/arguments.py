"""The values of a script's parameters, `:name` and `?`, as constants of SQL. They are bound when the script is parsed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from deltic.domains import has_nanoseconds
from deltic.errors import QueryError, Span, TypeMismatch, UnknownName, did_you_mean
from deltic.expr import Call, Expr, Literal, resolve
from deltic.intervals import interval_of, units_of
from deltic.purity import shown
from deltic.schema import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING, TIME, TIMESTAMP, TIMESTAMP_NTZ, Type, decimal
from deltic.types import interval
from deltic.variants import Variant

MOST_DIGITS: Final = 38
_DAY_TIME: Final = interval("DAY", "SECOND")
_ACCEPTED: Final = "None, a bool, int, float, Decimal, str, bytes, date, datetime, time, timedelta, or a list of such values"


@dataclass(slots=True)
class Arguments:
    """Values by name, or by position. used: how many positions have been read."""

    named: Mapping[str, Any] = field(default_factory=dict)
    positional: Sequence[Any] = ()
    used: int = 0

    @classmethod
    def of(cls, args: Mapping[str, Any] | Sequence[Any] | None) -> Arguments:
        """Those of `session.sql`. Raises QueryError."""
        if args is None:
            return cls()
        if isinstance(args, Mapping) and all(isinstance(name, str) for name in args):
            return cls(named=dict(args))
        if isinstance(args, Sequence) and not isinstance(args, str | bytes):
            return cls(positional=list(args))
        raise QueryError(f"invalid args {shown(args)}", expected="a dict of values by the names of parameters, or a list of values")

    def value(self, name: str, span: Span) -> Expr:
        """The constant for `:name`. Raises UnknownName and TypeMismatch."""
        if name not in self.named:
            remedy = did_you_mean(name, list(self.named)) or f"args={{'{name}': …}}"
            raise UnknownName(f"the parameter :{name} has no value", span=span, remedy=remedy)
        return constant(self.named[name], f":{name}", span)

    def next_value(self, span: Span) -> Expr:
        """The constant for the next `?`."""
        if self.used == len(self.positional):
            expected = f"{self.used} parameters, as args= has values" if self.positional else None
            raise UnknownName("the parameter ? has no value", span=span, expected=expected, remedy="args=[…], a value for each ?")
        self.used += 1
        return constant(self.positional[self.used - 1], f"? number {self.used}", span)


def constant(value: Any, name: str, span: Span) -> Expr:
    """A value of Python as a constant, with the type that PySpark gives it. Raises TypeMismatch."""
    if isinstance(value, Literal | Call):  # of a DataFrame's program
        return value
    if isinstance(value, list | tuple) and not isinstance(value, Variant):
        return resolve("array", [constant(part, name, span) for part in value], span)
    type, literal = _typed(value)
    if type is None:
        raise TypeMismatch(f"the parameter {name} is {shown(value)}", span=span, expected=_ACCEPTED)
    return Literal(literal, type, span)


def _typed(value: Any) -> tuple[Type | None, Any]:
    """(the type, the value); None for a value that SQL has not."""
    match value:
        case None:
            return NULL, None
        case bool():
            return BOOLEAN, value
        case int():
            return (INT if -(2**31) <= value < 2**31 else BIGINT if -(2**63) <= value < 2**63 else None), value
        case float():
            return DOUBLE, value
        case str():
            return (STRING if _is_utf8(value) else None), value
        case bytes():
            return BINARY, value
        case Decimal():
            return _decimal(value)
        case datetime.datetime() | datetime.timedelta() if has_nanoseconds(value):
            return None, value
        case datetime.datetime():
            return _time(value)
        case datetime.date():
            return DATE, value
        case datetime.time() if value.tzinfo is None:
            return TIME, value
        case datetime.timedelta():
            return (_DAY_TIME if interval_of(units_of(value), _DAY_TIME) is not None else None), value
        case _:
            return None, None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _time(value: datetime.datetime) -> tuple[Type | None, datetime.datetime]:
    if value.tzinfo is None:
        return TIMESTAMP_NTZ, value
    try:
        return TIMESTAMP, value.astimezone(datetime.UTC)
    except OverflowError:  # in UTC it is outside the years 1 to 9999
        return None, value


def _decimal(value: Decimal) -> tuple[Type | None, Decimal]:
    if not value.is_finite():
        return None, value
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > MOST_DIGITS:
        return None, value
    return decimal(precision, scale), value if exponent <= 0 else Decimal(int(value))
