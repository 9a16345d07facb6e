"""TO_CHAR of numbers, dates and bytes, TO_NUMBER and TO_BINARY, and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import of_plain_texts, stripped
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import PLAIN_TEXT, TEXT, Parameter, accept, check_count, constant, takes
from deltic.expr.nodes import Call, Expr, Literal
from deltic.expr.registry import Builder, Function, Rewrite, Typed, resolve
from deltic.expr.rows.binary_text import bytes_of
from deltic.expr.rows.number_patterns import SHAPE, NumberPattern, format_number_by, number_pattern, parse_number
from deltic.expr.typing import cast, decimal_of
from deltic.schema import BINARY, DATE, DOUBLE, FLOAT, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type, decimal

_BYTE_FORMATS: Final = ("hex", "base64", "utf-8")
_FORMATS: Final = (*_BYTE_FORMATS, "utf8")
TEXT_NUMBER: Final = decimal(38, 18)
"""The type of text that is taken as a DECIMAL."""
_DIGITS: Final = {FLOAT: decimal(14, 7), DOUBLE: decimal(30, 15), STRING: TEXT_NUMBER, NULL: TEXT_NUMBER}


def exact_type(type: Type) -> Type | None:
    """The DECIMAL as which Spark takes a number where it requires one; None for types that are no numbers."""
    return _DIGITS.get(type) or (decimal_of(type) if type.is_numeric else None)


_EXACT: Final = Parameter("a number", exact_type)


def _checked(name: str, argument: Expr, span: Span | None) -> Literal:
    """The pattern, a constant. Raises TypeMismatch."""
    pattern = constant(accept(name, 2, argument, TEXT, span))
    if pattern is None or (isinstance(pattern.value, str) and number_pattern(pattern.value) is None):
        problem = "not a constant" if pattern is None else "invalid"
        raise TypeMismatch(f"the pattern of {name} is {problem}", span=argument.span or span, expected=SHAPE)
    return pattern


def _pattern(call: Call, text: str) -> NumberPattern:
    pattern = number_pattern(text)
    assert pattern is not None, "a pattern is checked when the call is resolved"
    return pattern


def _to_char(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
    """(number, DATE, TIMESTAMP or BINARY, pattern)."""
    check_count(name, arguments, 2, 2, span)
    value, form = arguments
    if value.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return resolve("date_format", arguments, span, written=name)
    if value.type == BINARY:
        return _of_bytes(name, value, form, span)
    pattern = _checked(name, form, span)
    number = accept(name, 1, value, _EXACT, span)
    return Call("format_by", (number, pattern), STRING, number.nullable or pattern.nullable, span)


def _of_bytes(name: str, value: Expr, form: Expr, span: Span | None) -> Expr:
    literal = constant(form)
    word = literal.value.lower() if literal is not None and isinstance(literal.value, str) else None
    if literal is not None and literal.value is None:
        return Literal(None, STRING, span)
    if word not in _BYTE_FORMATS:
        expected = f"a constant, one of {', '.join(_BYTE_FORMATS)}"
        raise TypeMismatch(f"the format of {name} is invalid", span=form.span or span, expected=expected)
    if word == "utf-8":
        return resolve("decode", [value, Literal("utf-8", STRING)], span, written=name)
    return resolve(word, [value], span, written=name)


def _to_number(function: str) -> Builder:
    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 2, 2, span)
        text, pattern = accept(name, 1, arguments[0], TEXT, span), _checked(name, arguments[1], span)
        if not isinstance(pattern.value, str):
            return Literal(None, decimal(10, 0), span)
        form = number_pattern(pattern.value)
        assert form is not None
        return Call(function, (text, pattern), decimal(form.precision, form.scale), True, span)

    return build


def _read(call: Call, text: str, pattern: str) -> Decimal:
    number = parse_number(text, _pattern(call, pattern))
    if number is None:
        raise invalid(f"to_number: the text {text!r} does not match the pattern {pattern!r}; try_to_number gives NULL", call.span)
    return number


def _to_binary(function: str) -> Builder:
    """(text[, format]): a constant, one of hex, base64, utf-8 and utf8."""

    def build(name: str, arguments: Sequence[Expr], span: Span | None) -> Expr:
        check_count(name, arguments, 1, 2, span)
        arguments = [stripped(argument) for argument in arguments]
        text = accept(name, 1, arguments[0], PLAIN_TEXT, span)
        form = constant(accept(name, 2, arguments[1], PLAIN_TEXT, span)) if len(arguments) > 1 else Literal("hex", STRING)
        if form is not None and form.value is None:
            return Literal(None, BINARY, span)
        if form is None or str(form.value).lower() not in _FORMATS:
            if form is not None and function == "try_bytes_of":
                return Literal(None, BINARY, span)
            expected = f"a constant, one of {', '.join(_FORMATS)}"
            raise TypeMismatch(f"the format of {name} is invalid", span=arguments[1].span or span, expected=expected)
        word = Literal(str(form.value).lower().replace("utf8", "utf-8"), STRING)
        return Call(function, (text, word), BINARY, text.nullable or function == "try_bytes_of", span)

    return build


def _bytes(call: Call, text: str, form: str) -> bytes:
    data = bytes_of(text, form)
    if data is None:
        raise invalid(f"to_binary: the text {text!r} is not {form}; try_to_binary gives NULL", call.span)
    return data


def _hidden(name: str, result: Type, run: object, *, can_fail: bool) -> Function:
    return Function(
        name=name,
        named=False,
        signature=takes([TEXT, TEXT], result, nullable="always"),
        can_fail=can_fail,
        rows=run,  # type: ignore[arg-type]
        arrays=per_distinct,
    )


def _formatted(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    number, pattern = arguments
    return Typed((cast(number, exact_type(number.type) or TEXT_NUMBER), pattern), STRING, True)


FUNCTIONS: Final[tuple[Function | Rewrite, ...]] = (
    Rewrite(name="to_char", aliases=("to_varchar",), build=of_plain_texts(_to_char)),
    Function(
        name="format_by",
        named=False,
        signature=_formatted,
        can_fail=False,
        rows=lambda call, value, pattern: format_number_by(value, _pattern(call, pattern)),
        arrays=per_distinct,
    ),
    Rewrite(name="to_number", build=of_plain_texts(_to_number("number_by"))),
    Rewrite(name="try_to_number", build=of_plain_texts(_to_number("try_number_by"))),
    _hidden("number_by", TEXT_NUMBER, _read, can_fail=True),
    _hidden("try_number_by", TEXT_NUMBER, lambda call, text, pattern: parse_number(text, _pattern(call, pattern)), can_fail=False),
    Rewrite(name="to_binary", build=_to_binary("bytes_of")),
    Rewrite(name="try_to_binary", build=_to_binary("try_bytes_of")),
    _hidden("bytes_of", BINARY, _bytes, can_fail=True),
    _hidden("try_bytes_of", BINARY, lambda call, text, form: bytes_of(text, form), can_fail=False),
)
