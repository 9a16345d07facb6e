"""TIME_BUCKET: the start of the interval of a fixed length that a time lies in, counted from an origin."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays import dates as arrays
from deltic.expr.functions.intervals import number
from deltic.expr.functions.signature import Parameter, accept, any_nullable, check_count, constant
from deltic.expr.nodes import Call, Expr, Literal, Value
from deltic.expr.registry import Function, Typed
from deltic.expr.rows.casts import EPOCH
from deltic.expr.rows.dates import add_microseconds, add_months
from deltic.expr.typing import cast
from deltic.intervals import MICROSECOND
from deltic.schema import BIGINT, INT, NULL, TIMESTAMP, TIMESTAMP_NTZ

_MOMENT: Final = Parameter("TIMESTAMP", lambda t: t if t in (TIMESTAMP, TIMESTAMP_NTZ) else TIMESTAMP if t == NULL else None)


def _bucketed(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(bucket, moment[, origin]), the bucket and the origin constant -> (months, microseconds, moment, origin)."""
    check_count(name, arguments, 2, 3, span)
    size = number(arguments[0])
    literal = None if size is None else constant(size)
    if size is None or literal is None or (isinstance(literal.value, int) and literal.value <= 0):
        expected = f"a constant INTERVAL greater than 0, found {arguments[0].type.sql}"
        raise TypeMismatch(f"argument 1 of {name} is not the length of a bucket", span=arguments[0].span or span, expected=expected)
    moment = accept(name, 2, arguments[1], _MOMENT, span)
    zoneless = moment.type == TIMESTAMP_NTZ
    origin: Expr = Literal(EPOCH.replace(tzinfo=None) if zoneless else EPOCH, moment.type)
    if len(arguments) == 3:
        origin = constant(accept(name, 3, arguments[2], _MOMENT, span)) or arguments[2]
        if not isinstance(origin, Literal) or (origin.type != moment.type and origin.value is not None):
            raise TypeMismatch(
                f"argument 3 of {name} has the wrong type",
                span=arguments[2].span or span,
                expected=f"a constant of type {moment.type.sql}, found {arguments[2].type.sql}",
            )
    months = arguments[0].type.is_year_month
    parts = (size, Literal(0, BIGINT)) if months else (Literal(0, INT), cast(size, BIGINT))
    taken = (*parts, moment, cast(origin, moment.type))
    return Typed(taken, moment.type, any_nullable(taken))


def _start(call: Call, months: int, microseconds: int, moment: Any, origin: Any) -> Value:
    if not months:
        passed = (moment - origin) // MICROSECOND
        return add_microseconds(origin, passed - passed % microseconds, call.span)
    passed = (moment.year - origin.year) * 12 + moment.month - origin.month
    count = passed - passed % months
    start: datetime.datetime = add_months(origin, count, call.span)
    return start if start <= moment else add_months(origin, count - months, call.span)


FUNCTIONS: Final = (Function(name="time_bucket", signature=_bucketed, can_fail=True, rows=_start, arrays=arrays.time_bucket),)
