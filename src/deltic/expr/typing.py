"""Common types by Spark 4's ANSI coercion, the result types of decimal arithmetic, and casts.

Invariant: `cast` omits a cast of a type to itself, folds casts of literals, and refuses what Spark refuses. A cast of a literal that
fails is kept: it fails on the rows that reach it, not when the view is defined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from deltic.errors import EvaluationError, Span, TypeMismatch
from deltic.expr.collating import agreed_values, has_text, stripped
from deltic.expr.interpreter import evaluate
from deltic.expr.nodes import Call, Case, Cast, Constants, Expr, Literal, Value, lookup_key
from deltic.kinds import DAY_TIME, YEAR_MONTH
from deltic.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    Type,
    decimal,
    interval,
)

MAX_PRECISION: Final = 38
MIN_ADJUSTED_SCALE: Final = 6
MANY_CONSTANTS: Final = 8
"""A CASE with at least this many branches x = c becomes a lookup."""
SECONDS_OF_DAY: Final = decimal(11, 6)
"""What holds a TIME as seconds."""
INTEGER_DIGITS: Final = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_MOMENTS: Final = (DATE, TIMESTAMP_NTZ, TIMESTAMP)
"""Each can be the ones after it."""
_NARROW_FIELDS: Final = ("DAY", "YEAR", "MONTH")
"""Their greatest number is an INT."""
_NUMBERS: Final = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE)


def bounded(precision: int, scale: int) -> Type:
    """DECIMAL limited to 38 digits, keeping the scale and losing integral digits (Spark's DecimalType.bounded)."""
    return decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> Type:
    """DECIMAL limited to 38 digits by reducing the scale, down to 6 places, before integral digits (allowPrecisionLoss).

    >>> adjusted(77, 37).sql, adjusted(40, 2).sql
    ('DECIMAL(38,6)', 'DECIMAL(38,2)')
    """
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    integral = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - integral, min(scale, MIN_ADJUSTED_SCALE)))


def decimal_of(type: Type) -> Type:
    """The decimal that holds every value of an integer type; a decimal is itself.

    >>> decimal_of(BIGINT).sql
    'DECIMAL(20,0)'
    """
    return type if type.is_decimal else decimal(INTEGER_DIGITS[type.name], 0)


def wider_decimal(left: Type, right: Type) -> Type:
    """The common DECIMAL of two where their values are compared or one of them is chosen."""
    scale = max(left.scale, right.scale)
    integral = max(left.precision - left.scale, right.precision - right.scale)
    if integral + scale > MAX_PRECISION:
        # Integral digits go first, as in Spark: two values that differ in late places can become equal.
        return decimal(MAX_PRECISION, min(scale, MAX_PRECISION - min(integral, MAX_PRECISION)))
    return decimal(integral + scale, scale)


def common_type(types: Sequence[Type]) -> Type | None:
    """The type to which CASE, COALESCE, IN, UNION … cast values of `types`; None where Spark refuses."""
    common: Type | None = types[0]
    for type in types[1:]:
        if type is not common:
            common = None if common is None else _wider(common, type)
    return common


def compared_type(types: Sequence[Type]) -> Type | None:
    """As `common_type`, for comparisons, to which the names of a STRUCT's fields do not matter: they are those of the first type."""
    return common_type([types[0], *(_renamed(type, types[0]) for type in types[1:])])


def differ_in_names(left: Type, right: Type) -> bool:
    """Whether two types are equal but for the names of the fields of STRUCTs."""
    return left != right and _renamed(right, left) == left


def _renamed(type: Type, like: Type) -> Type:
    if type.name != like.name or len(type.parts) != len(like.parts):
        return type
    pairs = zip(type.parts, like.parts, strict=True)
    return replace(type, parts=tuple(replace(part, name=named.name, type=_renamed(part.type, named.type)) for part, named in pairs))


def common_type_without_strings(types: Sequence[Type]) -> Type | None:
    """As `common_type`, but STRING has a common type only with STRING (GREATEST and LEAST)."""
    present = [t for t in types if t != NULL]
    if any(t == STRING for t in present) and any(t != STRING for t in present):
        return None
    return common_type(types)


def common_type_without_text(left: Type, right: Type) -> Type | None:
    """As `common_type` of two, but STRING has a common type only with STRING, also as a part of nested types."""
    return None if _mixes_text(left, right) else _wider(left, right)


def tightest_type(left: Type, right: Type) -> Type | None:
    """As `common_type_without_text`, but that of an integer and a FLOAT is FLOAT: elements of ARRAYs and keys of MAPs beside others."""
    return common_type_without_text(_beside_float(left, right), _beside_float(right, left))


def common_type_of_values(types: Sequence[Type]) -> Type | None:
    """The type of a column of VALUES: the tightest."""
    common: Type | None = types[0]
    for type in types[1:]:
        if common is not None and type != common:
            common = tightest_type(common, type)
    return common


def _beside_float(type: Type, other: Type) -> Type:
    """The type with FLOAT in place of an integer where the other has FLOAT, also as a part of nested types."""
    if type.name == other.name and len(type.parts) == len(other.parts):
        parts = (replace(part, type=_beside_float(part.type, beside.type)) for part, beside in zip(type.parts, other.parts, strict=True))
        return replace(type, parts=tuple(parts))
    return FLOAT if type.is_integer and other == FLOAT else type


def _mixes_text(left: Type, right: Type) -> bool:
    if left.parts and right.parts:
        return any(_mixes_text(a.type, b.type) for a, b in zip(left.parts, right.parts, strict=False))
    return NULL not in (left, right) and (left.plain == STRING) != (right.plain == STRING)


def _wider(left: Type, right: Type) -> Type | None:
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if left.is_collated or right.is_collated:
        common = _wider(left.plain, right.plain)
        return None if common is None or has_text(common) else common
    if VARIANT in (left, right):
        return VARIANT if STRING in (left, right) else None
    if left.is_nested or right.is_nested:
        return _wider_nested(left, right)
    if left.is_interval or right.is_interval:
        return _wider_interval(left, right)
    if STRING in (left, right):
        return _with_string(right if left == STRING else left)
    if left.is_numeric and right.is_numeric:
        return _wider_number(left, right)
    return max(left, right, key=_MOMENTS.index) if left in _MOMENTS and right in _MOMENTS else None


def _wider_nested(left: Type, right: Type) -> Type | None:
    """Of two of one kind, with as many parts, a STRUCT's of the same names; part by part. Keys of a MAP are not cast from or to text."""
    if left.name != right.name or [p.name.lower() for p in left.parts] != [p.name.lower() for p in right.parts]:
        return None
    if left.name == "MAP" and _mixes_text(left.parts[0].type, right.parts[0].type):
        return None
    types = [_wider(a.type, b.type) for a, b in zip(left.parts, right.parts, strict=True)]
    parts = [replace(part, type=type) for part, type in zip(left.parts, types, strict=True) if type is not None]
    return Type(left.name, parts=tuple(parts)) if len(parts) == len(types) else None


def _wider_interval(left: Type, right: Type) -> Type | None:
    """From the longer first field to the shorter last one, of two of one family."""
    family = DAY_TIME if left.is_day_time and right.is_day_time else YEAR_MONTH
    if not (left.is_interval and left.is_day_time == right.is_day_time and left.is_year_month == right.is_year_month):
        return None
    places = [tuple(map(family.index, type.fields)) for type in (left, right)]
    return interval(family[min(start for start, _ in places)], family[max(end for _, end in places)])


def _with_string(other: Type) -> Type:
    if other.is_integer:
        return BIGINT
    return DOUBLE if other.is_numeric else other


def _wider_number(left: Type, right: Type) -> Type:
    if left.is_decimal or right.is_decimal:
        if left.is_float or right.is_float:
            return DOUBLE
        return wider_decimal(decimal_of(left), decimal_of(right))
    # FLOAT cannot hold every integer, so an integer and a FLOAT meet in DOUBLE.
    return DOUBLE if left.is_float or right.is_float else max(left, right, key=_NUMBERS.index)


def can_cast(source: Type, target: Type) -> bool:
    """Whether ANSI Spark has a cast between the types."""
    source, target = source.plain, target.plain
    if VARIANT in (source, target) and source != NULL:
        return _can_cast_variant(source, target)
    if source in (target, NULL) or (target == STRING and not source.is_nested):
        return True
    if source.is_nested or target.is_nested:
        return _can_cast_parts(source, target)
    if source == STRING:
        return True
    if source.is_interval or target.is_interval:
        return _can_cast_interval(source, target)
    if source.is_time or target.is_time:
        return source.is_time and (target.is_time or target.is_integer or target.is_decimal)
    if source.is_numeric:
        return target.is_numeric or target in (BOOLEAN, TIMESTAMP)
    if source == BOOLEAN:
        return target.is_numeric
    if source in _MOMENTS:
        return target in _MOMENTS or (source == TIMESTAMP and target.is_numeric)
    return False


def _can_cast_variant(source: Type, target: Type) -> bool:
    """From a VARIANT also to STRUCTs, and MAPs with keys of STRING."""
    return holds(target, objects=True) if source == VARIANT else holds(source, objects=False)


def holds(type: Type, *, objects: bool) -> bool:
    """Whether a VARIANT holds each value of a type; objects: also STRUCTs, and MAPs with keys of STRING."""
    if type.name == "MAP" and type.parts[0].type != STRING:
        return False
    if type.is_nested and not (objects or type.name == "ARRAY"):
        return False
    return not (type.is_interval or type.is_time or type == NULL) and all(holds(part.type, objects=objects) for part in type.parts)


def _can_cast_interval(source: Type, target: Type) -> bool:
    """Within a family; and between an interval and an exact number, which counts its last field."""
    if source.is_interval and target.is_interval:
        return source.is_day_time == target.is_day_time
    number = target if source.is_interval else source
    return number.is_integer or number.is_decimal


def _can_cast_parts(source: Type, target: Type) -> bool:
    """A nested type to one of the same kind with as many parts, or to text."""
    if target == STRING:
        return all(can_cast(part.type, STRING) for part in source.parts)
    pairs = zip(source.parts, target.parts, strict=False)
    return source.name == target.name and len(source.parts) == len(target.parts) and all(can_cast(a.type, b.type) for a, b in pairs)


def cast_can_fail(source: Type, target: Type) -> bool:
    """Whether some value of `source` cannot be represented in `target` (CAST raises, TRY_CAST gives NULL)."""
    source, target = source.plain, target.plain
    if VARIANT in (source, target) and source != target:
        return source == VARIANT
    if source.is_nested and source != target:
        targets = [part.type for part in target.parts] or [STRING] * len(source.parts)
        return source.name == "MAP" or any(cast_can_fail(a.type, b) for a, b in zip(source.parts, targets, strict=True))
    if source == target or NULL in (source, target) or STRING in (source, target):
        return source == BINARY != target or (source == STRING != target and target != BINARY)
    if source.is_interval or target.is_interval:
        return not (
            source.is_interval and (target.is_interval or target == BIGINT or (target == INT and source.fields[1] in _NARROW_FIELDS))
        )
    if source.is_time and not target.is_decimal:
        return target.is_integer and INTEGER_DIGITS[target.name] <= INTEGER_DIGITS["SMALLINT"]
    if target.is_decimal:
        return _decimal_can_fail(source, target)
    if target.is_integer:
        if source.is_integer:
            return INTEGER_DIGITS[target.name] < INTEGER_DIGITS[source.name]
        return source != BOOLEAN and (source, target) != (TIMESTAMP, BIGINT)
    return target == TIMESTAMP and source.is_numeric


def _decimal_can_fail(source: Type, target: Type) -> bool:
    if source.is_float or source == TIMESTAMP:
        return True
    digits = decimal(1, 0) if source == BOOLEAN else SECONDS_OF_DAY if source.is_time else decimal_of(source)
    spare = (target.precision - target.scale) - (digits.precision - digits.scale)
    # Rounding to fewer places can carry into one more integral digit.
    return spare < 0 or (spare == 0 and target.scale < digits.scale)


def cast(expr: Expr, type: Type, span: Span | None = None, *, lenient: bool = False) -> Expr:
    """CAST(expr AS type), or TRY_CAST if `lenient`. Raises TypeMismatch if the types have no cast."""
    if expr.type == type:
        return expr
    place = span or expr.span
    if not can_cast(expr.type, type):
        raise TypeMismatch(f"cannot cast {expr.type.sql} to {type.sql}", span=place, remedy=_cast_remedy(expr.type, type))
    if isinstance(expr, Literal) and expr.value is None:
        return Literal(None, type, expr.span)
    if expr.type.is_collated or type.is_collated:
        plain = cast(stripped(expr), type.plain, place, lenient=lenient) if expr.type.plain != type.plain else expr
        return plain if plain.type == type else Cast(plain, type, plain.nullable, lenient, place)
    nullable = expr.nullable or (lenient and cast_can_fail(expr.type, type)) or (expr.type.is_float and type.is_decimal)
    nullable = nullable or expr.type == VARIANT
    node = Cast(expr, type, nullable, lenient, place)
    return _folded(node) if isinstance(expr, Literal) else node


def _folded(node: Cast) -> Expr:
    try:
        return Literal(evaluate(node, ()), node.type, node.span, derived=True)
    except EvaluationError:
        return node


def _cast_remedy(source: Type, target: Type) -> str | None:
    if target == DATE and source.is_integer:
        return "date_add(DATE '1970-01-01', n) converts a number of days to a date"
    if VARIANT in (source, target) and (source.is_time or target.is_time):
        return "CAST it to STRING first"
    if target == VARIANT and (source.is_nested or any(part.type.is_nested for part in source.parts)):
        return "to_variant_object(x) takes STRUCTs, and MAPs with keys of STRING"
    if source == DATE and target.is_integer:
        return "datediff(d, DATE '1970-01-01') converts a date to a number of days"
    if source.is_time and target in _MOMENTS:
        return "make_timestamp(date, time) adds a date"
    if target.is_time and source in _MOMENTS:
        return "make_time(hour(t), minute(t), extract(SECOND FROM t)) is its time of day"
    if source.is_time or target.is_time:
        return "time_from_seconds() and time_to_seconds(), or those of millis and micros, convert between a TIME and a number"
    if source.is_interval or target.is_interval:
        return "EXTRACT takes an interval apart; a cast to BIGINT counts its last field"
    if source.is_nested or target.is_nested:
        return "array(), map() and named_struct() make nested values; s.field, element_at() and explode() take them apart"
    return None


def type_names(exprs: Iterable[Expr]) -> str:
    """The types of the expressions, each once, for errors."""
    return ", ".join(dict.fromkeys(expr.type.sql for expr in exprs))


def case(branches: Sequence[tuple[Expr, Expr]], otherwise: Expr | None, span: Span | None = None) -> Expr:
    """CASE WHEN … END, its values cast to their common type."""
    last = otherwise or Literal(None, NULL, span)
    for condition, _ in branches:
        if condition.type not in (BOOLEAN, NULL):
            raise TypeMismatch("a condition is not BOOLEAN", span=condition.span or span, expected=f"BOOLEAN, found {condition.type.sql}")
    values = agreed_values("CASE", [*(value for _, value in branches), last], span)
    branches, last = [(condition, value) for (condition, _), value in zip(branches, values[:-1], strict=True)], values[-1]
    type = common_type([value.type for value in values])
    if type is None:
        raise TypeMismatch("the values of CASE have no common type", span=span, expected=f"one type, found {type_names(values)}")
    pairs = tuple((cast(condition, BOOLEAN), cast(value, type)) for condition, value in branches)
    end = cast(last, type)
    return _looked_up(pairs, end, span) or _case(pairs, end, span)


def _case(branches: tuple[tuple[Expr, Expr], ...], otherwise: Expr, span: Span | None) -> Expr:
    nullable = otherwise.nullable or any(value.nullable for _, value in branches)
    return Case(branches, otherwise, otherwise.type, nullable, span) if branches else otherwise


def _looked_up(branches: tuple[tuple[Expr, Expr], ...], otherwise: Expr, span: Span | None) -> Expr | None:
    """A CASE whose first branches compare one expression with many constants, as a lookup whose default is the rest of the CASE."""
    first = _compared(branches[0][0])
    if first is None or len(branches) < MANY_CONSTANTS:
        return None
    subject, values = first[0], dict[Value, tuple[Value, Expr]]()
    run = 0
    for condition, value in branches:
        pair = _compared(condition)
        if pair is None or pair[0] != subject:
            break
        if pair[1] is not None:
            values.setdefault(lookup_key(pair[1]), (pair[1], value))
        run += 1
    if run < MANY_CONSTANTS or not values:
        return None
    constants = Constants(tuple(constant for constant, _ in values.values()), subject.type)
    arguments = (subject, constants, _case(branches[run:], otherwise, span), *(value for _, value in values.values()))
    return Call("lookup", arguments, otherwise.type, any(value.nullable for value in arguments[2:]), span)


def _compared(condition: Expr) -> tuple[Expr, Value] | None:
    """(x, c) of x = c with a constant c."""
    match condition:
        case Call(function="equal", arguments=(subject, Literal(value=constant))) if not isinstance(subject, Literal):
            return subject, constant
        case _:
            return None
