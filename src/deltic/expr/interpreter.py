"""The value of an expression on one row, in plain Python: the oracle's evaluator, and the one that folds literals.

What always holds: arguments are evaluated from left to right (a divisor before its dividend), and a function that is NULL on a
NULL argument evaluates none after the first NULL, so an error arises here on the very rows where it arises in Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

from deltic.errors import CastFailure
from deltic.expr.nodes import Call, Case, Cast, Column, Expr, Literal, PythonFunction, Value
from deltic.expr.python import value_of_function
from deltic.expr.rows import arithmetic, dates, text
from deltic.expr.rows.casts import cast_value
from deltic.expr.rows.numbers import exponential, float_quotient, power
from deltic.expr.rows.ordering import equal, normalized, order

Row = tuple[Value, ...]


def evaluate(expr: Expr, row: Row) -> Value:
    """The expression's value; raises EvaluationError as Spark's ANSI mode does."""
    match expr:
        case Column():
            return row[expr.index]
        case Literal():
            return expr.value
        case Cast():
            return _cast(expr, row)
        case Case():
            chosen = next((value for condition, value in expr.branches if evaluate(condition, row) is True), expr.otherwise)
            return evaluate(chosen, row)
        case Call():
            return _call(expr, row)
        case PythonFunction():
            return value_of_function(expr, [evaluate(argument, row) for argument in expr.arguments])
        case _:
            assert_never(expr)


def _cast(expr: Cast, row: Row) -> Value:
    value = evaluate(expr.argument, row)
    if value is None:
        return None
    try:
        return cast_value(value, expr.argument.type, expr.type, expr.span)
    except CastFailure:
        if expr.lenient:
            return None
        raise


def _call(call: Call, row: Row) -> Value:
    if (lazy := _LAZY.get(call.function)) is not None:
        return lazy(call, row)
    if (eager := _EAGER.get(call.function)) is not None:
        return eager(*(evaluate(argument, row) for argument in call.arguments))
    values: list[Value] = []
    backwards = call.function in DIVISIONS
    for argument in reversed(call.arguments) if backwards else call.arguments:
        value = evaluate(argument, row)
        if value is None:
            return None
        values.append(value)
    return STRICT[call.function](call, *(reversed(values) if backwards else values))


def _and(call: Call, row: Row) -> Value:
    left = evaluate(call.arguments[0], row)
    if left is False:
        return False
    right = evaluate(call.arguments[1], row)
    return False if right is False else None if left is None or right is None else True


def _or(call: Call, row: Row) -> Value:
    left = evaluate(call.arguments[0], row)
    if left is True:
        return True
    right = evaluate(call.arguments[1], row)
    return True if right is True else None if left is None or right is None else False


def _coalesce(call: Call, row: Row) -> Value:
    return next((value for argument in call.arguments if (value := evaluate(argument, row)) is not None), None)


def _in(call: Call, row: Row) -> Value:
    value = evaluate(call.arguments[0], row)
    if value is None:
        return None
    unknown = False
    for argument in call.arguments[1:]:
        item = evaluate(argument, row)
        if item is None:
            unknown = True
        elif equal(value, item):
            return True
    return None if unknown else False


def _greatest(*values: Value) -> Value:
    best: Value = None
    for value in values:
        if value is not None and (best is None or order(value, best) > 0):
            best = value
    return best


def _least(*values: Value) -> Value:
    best: Value = None
    for value in values:
        if value is not None and (best is None or order(value, best) < 0):
            best = value
    return best


def _same(left: Value, right: Value) -> bool:
    return left is right if left is None or right is None else equal(left, right)


def _concat(*parts: Value) -> Value:
    return None if None in parts else "".join(map(str, parts))


def _concat_ws(separator: Any, *parts: Any) -> Value:
    return None if separator is None else text.concat_ws(separator, parts)


def _log(value: float) -> float | None:
    return None if value <= 0 else math.log(value)


def _log_of(base: float, value: float) -> float | None:
    return None if base <= 0 or value <= 0 else float_quotient(math.log(value), math.log(base))


def _log2(value: float) -> float | None:
    return None if value <= 0 else math.log(value) / math.log(2.0)


_LAZY: Final[Mapping[str, Callable[[Call, Row], Value]]] = {"and": _and, "or": _or, "coalesce": _coalesce, "in": _in}

_EAGER: Final[Mapping[str, Callable[..., Value]]] = {
    "is_null": lambda v: v is None,
    "is_not_null": lambda v: v is not None,
    "isnan": lambda v: v is not None and math.isnan(v),
    "same": _same,
    "greatest": _greatest,
    "least": _least,
    "concat": _concat,
    "concat_ws": _concat_ws,
}

DIVISIONS: Final = frozenset(("divide", "integral_divide", "remainder", "pmod"))

_COMPARISONS: Final[Mapping[str, Callable[..., Value]]] = {
    "equal": lambda call, a, b: order(a, b) == 0,
    "not_equal": lambda call, a, b: order(a, b) != 0,
    "less": lambda call, a, b: order(a, b) < 0,
    "less_equal": lambda call, a, b: order(a, b) <= 0,
    "greater": lambda call, a, b: order(a, b) > 0,
    "greater_equal": lambda call, a, b: order(a, b) >= 0,
    "not": lambda call, a: not a,
    "normalize": lambda call, a: normalized(a),
}

_NUMBERS: Final[Mapping[str, Callable[..., Value]]] = {
    "add": arithmetic.add,
    "subtract": arithmetic.subtract,
    "multiply": arithmetic.multiply,
    "divide": arithmetic.divide,
    "integral_divide": arithmetic.integral_divide,
    "remainder": arithmetic.remainder,
    "pmod": arithmetic.pmod,
    "negate": arithmetic.negate,
    "abs": arithmetic.absolute,
    "sign": lambda call, x: arithmetic.sign(x),
    "ceil": arithmetic.ceil,
    "floor": arithmetic.floor,
    "round": arithmetic.round_,
    "bround": arithmetic.bround,
    "sqrt": lambda call, x: math.nan if x < 0 else math.sqrt(x),
    "exp": lambda call, x: exponential(x),
    "ln": lambda call, x: _log(x),
    "log10": lambda call, x: None if x <= 0 else math.log10(x),
    "log2": lambda call, x: _log2(x),
    "log": lambda call, base, x: _log_of(base, x),
    "power": lambda call, x, y: power(x, y),
    "bit_and": lambda call, a, b: a & b,
    "bit_or": lambda call, a, b: a | b,
    "bit_xor": lambda call, a, b: a ^ b,
    "bit_not": lambda call, a: ~a,
}

_TEXT: Final[Mapping[str, Callable[..., Value]]] = {
    "upper": lambda call, s: s.upper(),
    "lower": lambda call, s: s.lower(),
    "initcap": lambda call, s: text.initcap(s),
    "length": lambda call, s: len(s),
    "octet_length": lambda call, s: len(s.encode()),
    "ascii": lambda call, s: text.ascii_code(s),
    "substring": lambda call, s, position, length: text.substring(s, position, length),
    "left": lambda call, s, n: text.left(s, n),
    "right": lambda call, s, n: text.right(s, n),
    "trim": lambda call, s: s.strip(" "),
    "ltrim": lambda call, s: s.lstrip(" "),
    "rtrim": lambda call, s: s.rstrip(" "),
    "replace": lambda call, s, search, by: text.replace(s, search, by, call.span),
    "lpad": lambda call, s, n, pad: text.pad_left(s, n, pad, call.span),
    "rpad": lambda call, s, n, pad: text.pad_right(s, n, pad, call.span),
    "locate": lambda call, search, s, position: text.locate(search, s, position),
    "startswith": lambda call, s, prefix: s.startswith(prefix),
    "endswith": lambda call, s, suffix: s.endswith(suffix),
    "contains": lambda call, s, part: part in s,
    "reverse": lambda call, s: s[::-1],
    "repeat": lambda call, s, n: text.repeat(s, n, call.span),
    "split_part": lambda call, s, by, n: text.split_part(s, by, n, call.span),
    "like": lambda call, s, pattern, escape: text.like(s, pattern, escape, call.span),
}

_DATES: Final[Mapping[str, Callable[..., Value]]] = {
    "year": lambda call, d: d.year,
    "quarter": lambda call, d: (d.month + 2) // 3,
    "month": lambda call, d: d.month,
    "day": lambda call, d: d.day,
    "dayofweek": lambda call, d: d.isoweekday() % 7 + 1,
    "weekday": lambda call, d: d.weekday(),
    "dayofyear": lambda call, d: d.timetuple().tm_yday,
    "weekofyear": lambda call, d: d.isocalendar()[1],
    "yearofweek": lambda call, d: d.isocalendar()[0],
    "hour": lambda call, t: t.hour,
    "minute": lambda call, t: t.minute,
    "second": lambda call, t: t.second,
    "second_fraction": lambda call, t: dates.second_fraction(t),
    "add_days": lambda call, d, n: dates.add_days(d, n, call.span),
    "subtract_days": lambda call, d, n: dates.add_days(d, -n, call.span),
    "datediff": lambda call, a, b: (a - b).days,
    "add_months": lambda call, d, n: dates.add_months(d, n, call.span),
    "add_microseconds": lambda call, t, n: dates.add_microseconds(t, n, call.span),
    "last_day": lambda call, d: dates.last_day(d),
    "trunc": lambda call, d, unit: dates.trunc(d, unit),
    "date_trunc": lambda call, unit, t: dates.date_trunc(unit, t),
    "make_date": lambda call, y, m, d: dates.make_date(y, m, d, call.span),
    "unix_timestamp": lambda call, t: dates.unix_timestamp(t),
}

STRICT: Final[Mapping[str, Callable[..., Value]]] = {**_COMPARISONS, **_NUMBERS, **_TEXT, **_DATES}
"""NULL where an argument is NULL: (call, value, …) -> value."""
