"""Expressions over values of Datalog's kinds: constants, conversions, checked arithmetic, fields, and structs.

Every expression that is made here has the stored type of its kind.
"""

from __future__ import annotations

import decimal
import math
import struct
from collections.abc import Sequence
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr import cast, resolve
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.typing import case
from deltic.frontends.datalog.declarations import BoundTerm, check_comparable
from deltic.frontends.datalog.kinds import (
    BIGINT_KIND,
    BOOL,
    DOUBLE_KIND,
    FLOAT_KIND,
    MOMENT_KINDS,
    STRING_KIND,
    U64,
    IntegerKind,
    Kind,
    MapKind,
    TupleKind,
    UnionKind,
    VectorKind,
    is_integral,
    is_number,
    option,
    stored,
    widens,
)
from deltic.frontends.datalog.tree import ConstantTerm
from deltic.frontends.datalog.words import inverted_word, shifted_word, word_operation
from deltic.schema import BIGINT, BOOLEAN, INT, NULL, STRING, Type

_RESULTS: Final = {"+": "+", "-": "-", "*": "*", "%": "%"}
_BITS: Final = {"&": "&", "|": "|", "^": "^"}


def constant(term: ConstantTerm, expected: Kind | None) -> BoundTerm:
    """A constant as a value of the expected kind, if it can be one; of s64, double, string or bool otherwise."""
    match term.kind:
        case "bool":
            return BoundTerm(Literal(term.value, BOOLEAN, term.span), BOOL)
        case "string":
            return BoundTerm(_text(term, expected), expected if expected in MOMENT_KINDS else STRING_KIND)
        case "integer" if expected in (FLOAT_KIND, DOUBLE_KIND) and term.bits is None:
            return _real(term, expected)
        case "integer":
            return _whole(term, expected)
        case "float":
            return _real(term, expected if expected == FLOAT_KIND else DOUBLE_KIND)


def _text(term: ConstantTerm, expected: Kind | None) -> Expr:
    text = Literal(term.value, STRING, term.span)
    if expected not in MOMENT_KINDS:
        return text
    assert expected is not None
    value = cast(text, stored(expected), term.span)
    if not isinstance(value, Literal):
        raise TypeMismatch(f"{term.value!r} is not a {expected}", span=term.span, expected="2024-12-31, 2024-12-31 23:59:59 or 23:59:59")
    return value


def _whole(term: ConstantTerm, expected: Kind | None) -> BoundTerm:
    kind = expected if expected is not None and is_integral(expected) else IntegerKind(64, True)
    if term.bits is not None:
        kind = IntegerKind(term.bits, term.signed) if 1 <= term.bits <= 64 else BIGINT_KIND
    value = term.value
    assert isinstance(value, int)
    greatest = 10**38 - 1 if not isinstance(kind, IntegerKind) else kind.greatest
    least = -greatest if not isinstance(kind, IntegerKind) else kind.least
    if not least <= value <= greatest:
        raise TypeMismatch(f"{value} is not a value of {kind}", span=term.span, expected=f"{least} to {greatest}")
    type = stored(kind)
    return BoundTerm(Literal(decimal.Decimal(value) if type.is_decimal else value, type, term.span), kind)


def _real(term: ConstantTerm, kind: Kind) -> BoundTerm:
    value = float(term.value)
    if kind == FLOAT_KIND:
        value = struct.unpack("f", struct.pack("f", value))[0]
    if not math.isfinite(value):
        raise TypeMismatch(f"{term.value} is not a value of {kind}", span=term.span, expected="a number that it holds")
    return BoundTerm(Literal(value, stored(kind), term.span), kind)


def fitted(value: BoundTerm, kind: Kind, span: Span, what: str = "the value") -> BoundTerm:
    """The value as one of `kind`: of another kind only if that has all its values. Raises TypeMismatch."""
    if value.kind == kind:
        return value
    if widens(value.kind, kind):
        return BoundTerm(cast(value.expr, stored(kind), span), kind)
    remedy = f"convert it: … as {kind}" if is_number(value.kind) and is_number(kind) else None
    raise TypeMismatch(f"{what} is {value.kind}, not {kind}", span=span, expected=f"{kind}, found {value.kind}", remedy=remedy)


def common(left: BoundTerm, right: BoundTerm, operator: str, span: Span) -> tuple[BoundTerm, BoundTerm]:
    """Both operands as values of one kind. Raises TypeMismatch."""
    if widens(left.kind, right.kind):
        return fitted(left, right.kind, span), right
    if widens(right.kind, left.kind):
        return left, fitted(right, left.kind, span)
    remedy = f"convert one of them: … as {left.kind}" if is_number(left.kind) and is_number(right.kind) else None
    raise TypeMismatch(
        f"{operator} does not accept {left.kind} and {right.kind}", span=span, expected="operands of one type", remedy=remedy
    )


def checked(expr: Expr, kind: Kind, span: Span | None) -> BoundTerm:
    """A number as a value of the kind: out of range, the tick fails."""
    type = stored(kind)
    if isinstance(kind, IntegerKind) and not (kind.is_exact and expr.type == type):
        wide = expr if expr.type.is_decimal or expr.type in (BIGINT, type) else cast(expr, BIGINT, span)
        ends = [_end(end, wide.type) for end in _ends_in(kind, wide)]
        expr = resolve("in_range", [wide, *ends], span)
    return BoundTerm(cast(expr, type, span), kind)


def _end(value: int, type: Type) -> Expr:
    return cast(Literal(decimal.Decimal(value), stored(BIGINT_KIND)), type) if type.is_decimal else Literal(value, type)


def _ends_in(kind: IntegerKind, wide: Expr) -> tuple[int, int]:
    """The ends of the kind, as far as the type of the expression has them."""
    if wide.type.is_decimal:
        most = 10 ** (wide.type.precision - wide.type.scale) - 1
    else:
        most = (1 << ({"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[wide.type.name] - 1)) - 1
    return max(kind.least, -most), min(kind.greatest, most)


def arithmetic(operator: str, left: BoundTerm, right: BoundTerm, span: Span) -> BoundTerm:
    """+, -, *, /, %, &, |, ^, <<, >> of numbers. Raises TypeMismatch."""
    if operator in ("<<", ">>"):
        return _shift(operator, left, right, span)
    left, right = common(left, right, operator, span)
    kind = left.kind
    if not is_number(kind) or (operator in _BITS and not isinstance(kind, IntegerKind)):
        expected = "integers of up to 64 bits" if operator in _BITS else "numbers"
        remedy = "++ concatenates strings" if operator == "+" and kind == STRING_KIND else None
        raise TypeMismatch(f"{operator} does not accept {kind}", span=span, expected=expected, remedy=remedy)
    if operator in _BITS:
        if kind == U64:
            return BoundTerm(word_operation(operator, left.expr, right.expr, span), kind)
        return BoundTerm(resolve(operator, [left.expr, right.expr], span), kind)
    if operator == "/" and is_integral(kind):
        return _whole_quotient(left, right, span)
    if operator == "/":
        return BoundTerm(cast(resolve("/", [left.expr, right.expr], span), stored(kind), span), kind)
    return checked(resolve(_RESULTS[operator], [left.expr, right.expr], span), kind, span)


def _whole_quotient(left: BoundTerm, right: BoundTerm, span: Span) -> BoundTerm:
    """Rounded towards zero. Of decimals: (x - x % y) / y, whose quotient is whole."""
    if not stored(left.kind).is_decimal:
        return checked(resolve("div", [left.expr, right.expr], span), left.kind, span)
    rest = resolve("%", [left.expr, right.expr], span)
    whole = resolve("-", [left.expr, rest], span)
    return checked(resolve("/", [cast(whole, stored(BIGINT_KIND)), right.expr], span), left.kind, span)


def _shift(operator: str, left: BoundTerm, right: BoundTerm, span: Span) -> BoundTerm:
    """Bits that leave the width are lost: by the width or more all of them, so that a sign remains of a signed >>."""
    kind, by = left.kind, right.expr
    if not isinstance(kind, IntegerKind) or not is_integral(right.kind):
        raise TypeMismatch(f"{operator} does not accept {kind} and {right.kind}", span=span, expected="integers of up to 64 bits")
    count = cast(by, INT, span)
    if kind == U64:
        near, far = shifted_word(operator, left.expr, count, span), cast(Literal(0, INT), stored(kind))
    else:
        near, far = _shifted(operator, cast(left.expr, BIGINT), count, kind, span)
    fits = resolve("and", [resolve(bound, [by, _end(end, by.type)], span) for bound, end in ((">=", 0), ("<", kind.bits))], span)
    return BoundTerm(case([(fits, cast(near, stored(kind), span))], cast(far, stored(kind)), span), kind)


def _shifted(operator: str, wide: Expr, count: Expr, kind: IntegerKind, span: Span) -> tuple[Expr, Expr]:
    """(a BIGINT shifted by fewer bits than the kind has, by more)."""
    if operator == ">>":
        return resolve(operator, [wide, count], span), resolve(operator, [wide, Literal(63, INT)], span)
    if not kind.signed:
        return resolve("&", [resolve(operator, [wide, count], span), Literal(kind.greatest, BIGINT)], span), Literal(0, BIGINT)
    above = Literal(64 - kind.bits, INT)
    highest = resolve(operator, [wide, resolve("+", [count, above], span)], span)
    return resolve(">>", [highest, above], span), Literal(0, BIGINT)


def negative(value: BoundTerm, span: Span) -> BoundTerm:
    """-x."""
    if not is_number(value.kind):
        raise TypeMismatch(f"- does not accept {value.kind}", span=span, expected="a number")
    return checked(resolve("negate", [value.expr], span), value.kind, span)


def inverse(value: BoundTerm, span: Span) -> BoundTerm:
    """~x: every bit of its width inverted."""
    kind = value.kind
    if not isinstance(kind, IntegerKind):
        raise TypeMismatch(f"~ does not accept {kind}", span=span, expected="an integer of up to 64 bits")
    if kind == U64:
        return BoundTerm(inverted_word(value.expr, span), kind)
    if kind.signed:
        return BoundTerm(resolve("~", [value.expr], span), kind)
    return BoundTerm(cast(resolve("-", [Literal(kind.greatest, stored(kind)), value.expr], span), stored(kind)), kind)


def converted(value: BoundTerm, kind: Kind, span: Span) -> BoundTerm:
    """value as kind, of numbers; out of range, the tick fails. A fraction is cut off."""
    if value.kind == kind:
        return value
    if not (is_number(value.kind) and is_number(kind)):
        remedy = "to_string(x) makes a string" if kind == STRING_KIND else None
        raise TypeMismatch(f"cannot convert {value.kind} to {kind}", span=span, expected="numbers", remedy=remedy)
    if not is_integral(kind):
        return BoundTerm(cast(value.expr, stored(kind), span), kind)
    if stored(value.kind).is_float and not stored(kind).is_decimal:  # this cast cuts off itself
        wide = cast(value.expr, stored(kind) if isinstance(kind, IntegerKind) and kind.is_exact else BIGINT, span)
        return checked(wide, kind, span)
    return checked(value.expr if is_integral(value.kind) else _cut_off(value.expr, span), kind, span)


def _cut_off(number: Expr, span: Span) -> Expr:
    """A float without its fraction as a bigint. The cast to a DECIMAL would round it, and make NULL of NaN, which is out of range."""
    type = stored(BIGINT_KIND)
    whole = resolve("-", [number, resolve("%", [number, Literal(1.0, number.type)], span)], span)
    is_finite = resolve("=", [resolve("-", [number, number], span), Literal(0.0, number.type)], span)
    return resolve("if", [is_finite, cast(whole, type, span), cast(cast(number, BIGINT, span), type, span)], span)


def compared(operator: str, left: BoundTerm, right: BoundTerm, span: Span) -> BoundTerm:
    """==, !=, <, … of values of one kind. Raises TypeMismatch."""
    left, right = common(left, right, operator, span)
    check_comparable(left.kind, f"an operand of {operator}", span)
    return BoundTerm(resolve(operator, [left.expr, right.expr], span), BOOL)


def part(value: BoundTerm, index: int, kind: Kind, span: Span | None) -> BoundTerm:
    """The field at a position of the STRUCT."""
    if isinstance(value.expr, Call) and value.expr.function == "make_struct":
        return BoundTerm(value.expr.arguments[index], kind)
    return BoundTerm(Call("field", (value.expr, Literal(index, INT)), stored(kind), True, span), kind)


def tag_is(value: BoundTerm, kind: UnionKind, name: str, span: Span) -> Expr | None:
    """Whether the value is of this constructor; None if it always is."""
    if len(kind.constructors) == 1:
        return None
    return resolve("equal", [part(value, 0, STRING_KIND, span).expr, Literal(name, STRING)], span)


def field_index(kind: UnionKind, name: str) -> int:
    """The position of a field in the STRUCT."""
    return list(kind.fields).index(name) + kind.is_tagged


def constructed(kind: UnionKind, name: str, values: Sequence[BoundTerm], span: Span | None) -> BoundTerm:
    """The value of a constructor, whose fields have these values in order."""
    own = next(one for one in kind.constructors if one.name == name)
    given = {field: value.expr for (field, _), value in zip(own.fields, values, strict=True)}
    tag = (Literal(name, STRING),) if kind.is_tagged else ()
    rest = tuple(given.get(field) or cast(Literal(None, NULL), stored(part)) for field, part in kind.fields.items())
    return BoundTerm(Call("make_struct", (*tag, *rest), stored(kind), False, span), kind)


def tuple_of(values: Sequence[BoundTerm], span: Span | None) -> BoundTerm:
    """A tuple of values."""
    kind = TupleKind(tuple(value.kind for value in values))
    return BoundTerm(Call("make_struct", tuple(value.expr for value in values), stored(kind), False, span), kind)


def vector_of(values: Sequence[BoundTerm], item: Kind, span: Span | None) -> BoundTerm:
    """A vector of values of one kind."""
    kind = VectorKind(item)
    return BoundTerm(Call("array", tuple(value.expr for value in values), stored(kind), False, span), kind)


def map_of(pairs: Sequence[tuple[BoundTerm, BoundTerm]], kind: MapKind, span: Span | None) -> BoundTerm:
    """A map of these entries; a key that comes twice fails the tick."""
    if not pairs:
        return BoundTerm(Literal((), stored(kind), span), kind)
    return BoundTerm(resolve("map", [one.expr for pair in pairs for one in pair], span), kind)


def optional(expr: Expr, kind: Kind, span: Span | None) -> BoundTerm:
    """None of NULL, Some{x} of another value."""
    whole = option(kind)
    some = constructed(whole, "Some", [BoundTerm(expr, kind)], span).expr
    none = constructed(whole, "None", [], span).expr
    return BoundTerm(case([(resolve("is_null", [expr], span), none)], some, span), whole)
