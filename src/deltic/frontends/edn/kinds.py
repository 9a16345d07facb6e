"""The kinds of values in queries and attributes, and how they are stored.

A value of a declared kind is stored in a type of its own. A value of any kind is stored as its text in EDN, which says its kind: the texts
of two values are equal iff the values are, so both ways a join compares single words. Keywords, symbols and characters are stored as
their text in either case.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from deltic.errors import Span, TypeMismatch
from deltic.expr import case, cast, resolve
from deltic.expr.nodes import Expr, Literal, Value
from deltic.frontends.edn.read import read
from deltic.frontends.edn.values import (
    EXACT,
    GREATEST_LONG,
    LEAST_LONG,
    WRITTEN_ESCAPES,
    Char,
    Keyword,
    ListForm,
    LocatedForm,
    MapForm,
    SetForm,
    Symbol,
    VectorForm,
    digits,
    write,
)
from deltic.plan.columns import conjunction
from deltic.schema import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Type, decimal
from deltic.types import array_type


@dataclass(frozen=True, slots=True)
class EdnKind:
    """A kind of values. item: of the elements of a set or a vector, which only results have. parts: of a tuple."""

    name: str
    type: Type
    item: EdnKind | None = None
    parts: tuple[EdnKind, ...] = ()

    def __str__(self) -> str:
        of = self.parts if self.item is None else (self.item,)
        return f"{self.name} of {', '.join(map(str, of))}" if of else self.name

    @property
    def is_scalar(self) -> bool:
        return self.item is None and not self.parts


LONG: Final = EdnKind("long", BIGINT)
DOUBLE_KIND: Final = EdnKind("double", DOUBLE)
STRING_KIND: Final = EdnKind("string", STRING)
KEYWORD: Final = EdnKind("keyword", STRING)
SYMBOL: Final = EdnKind("symbol", STRING)
CHAR: Final = EdnKind("char", STRING)
BOOLEAN_KIND: Final = EdnKind("boolean", BOOLEAN)
INSTANT: Final = EdnKind("instant", TIMESTAMP)
UUID: Final = EdnKind("uuid", STRING)
BIGINT_KIND: Final = EdnKind("bigint", decimal(38, 0))
"""Whole numbers of up to 38 digits."""
BIGDEC: Final = EdnKind("bigdec", decimal(38, 18))
"""Decimals of up to 20 digits before the point, and 18 after it."""
ANY: Final = EdnKind("any", STRING)
"""A value with its kind."""
_ALL: Final = (LONG, BIGINT_KIND, DOUBLE_KIND, BIGDEC, STRING_KIND, KEYWORD, SYMBOL, CHAR, BOOLEAN_KIND, INSTANT, UUID, ANY)
KINDS: Final = {kind.name: kind for kind in _ALL}
NUMBERS: Final = (LONG, DOUBLE_KIND)
"""The kinds that functions compute with."""


def collection_of(name: str, item: EdnKind) -> EdnKind:
    """A "set" or "vector" of values."""
    return EdnKind(name, array_type(item.type), item)


@dataclass(frozen=True, slots=True)
class EdnTerm:
    """A value of a query: its expression, and its kind."""

    expr: Expr
    kind: EdnKind


def kind_of(form: LocatedForm) -> EdnKind:
    """The kind of a scalar; ANY of one that no declared kind has. Raises TypeMismatch for collections and nil."""
    match form.value:
        case None:
            raise TypeMismatch("nil is not a value of a store", span=form.span, remedy="leave the attribute out, or use missing?")
        case VectorForm() | ListForm() | MapForm() | SetForm():
            raise TypeMismatch("a collection is not a value", span=form.span, expected="a scalar")
        case bool():
            return BOOLEAN_KIND
        case int():
            return LONG if LEAST_LONG <= form.value <= GREATEST_LONG else BIGINT_KIND if is_of(form.value, BIGINT_KIND) else ANY
        case Decimal():
            return BIGDEC if is_of(form.value, BIGDEC) else ANY
        case float():
            return DOUBLE_KIND
        case value:
            kinds = {str: STRING_KIND, Keyword: KEYWORD, Symbol: SYMBOL, Char: CHAR, datetime: INSTANT, uuid.UUID: UUID}
            return kinds.get(type(value), ANY)


def is_of(value: Any, kind: EdnKind) -> bool:
    """Whether a value is one of bigints, of which longs are some, or of bigdecs."""
    if kind == BIGINT_KIND:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**38
    if kind != BIGDEC or not isinstance(value, Decimal) or not value.is_finite() or abs(value) >= 10**20:
        return False
    return int(value.normalize(EXACT).as_tuple().exponent) >= -18


def accepts(kind: EdnKind, form: LocatedForm) -> bool:
    """Whether a scalar is a value of a kind. Raises TypeMismatch for what is no scalar."""
    return kind in (kind_of(form), ANY) or is_of(form.value, kind)


def encoded(form: LocatedForm, kind: EdnKind) -> Value:
    """The stored value of a scalar of this kind, or of ANY."""
    value: Any = form.value
    stored: Value
    match kind.name:
        case "any" | "keyword" | "symbol" | "char":
            stored = write(form)
        case "bigint":
            stored = Decimal(value)
        case "double":
            stored = value + 0.0
        case "uuid":
            stored = str(value)
        case "instant":
            stored = value.astimezone(UTC)
        case _:
            stored = value
    return stored


def decoded(value: Any, kind: EdnKind) -> Any:
    """The value in Python of a stored one. A vector or set is a tuple: in a set of Python's 1, 1.0 and True would be one value.

    A tuple is stored as the values of a STRUCT.
    """
    if kind.parts:
        return tuple(decoded(one, part) for one, part in zip(value, kind.parts, strict=True))
    if kind.item is not None:
        return tuple(decoded(one, kind.item) for one in value)
    match kind.name:
        case "any" | "char":
            return read(value).value
        case "bigint":
            return int(value)
        case "bigdec":
            return Decimal(digits(value))
        case "keyword":
            return Keyword(value[1:])
        case "symbol":
            return Symbol(value)
        case "uuid":
            return uuid.UUID(value)
        case "instant":
            return value.astimezone(UTC)
        case _:
            return value


def literal(form: LocatedForm, kind: EdnKind | None = None) -> EdnTerm:
    """A constant, by default of its own kind."""
    kind = kind or kind_of(form)
    return EdnTerm(Literal(encoded(form, kind), kind.type, form.span), kind)


def with_kind(term: EdnTerm) -> EdnTerm:
    """The value as one of any kind. Raises TypeMismatch for a tuple."""
    if term.kind == ANY:
        return term
    if not term.kind.is_scalar:
        raise TypeMismatch(f"a {term.kind} is not a value of any kind", span=term.expr.span, expected="the same kind in each branch")
    return EdnTerm(_text(term.expr, term.kind), ANY)


def _text(expr: Expr, kind: EdnKind) -> Expr:
    """What `write` returns for the value."""
    text = cast(expr, STRING)
    match kind.name:
        case "string":
            for character, escape in WRITTEN_ESCAPES:
                text = resolve("replace", [text, _constant(character), _constant(escape)], None)
            return resolve("concat", [_constant('"'), text, _constant('"')], None)
        case "instant":
            text = resolve("date_format", [expr, _constant("yyyy-MM-dd'T'HH:mm:ss.SSSSSS")], None)
            return resolve("concat", [_constant('#inst "'), text, _constant('-00:00"')], None)
        case "bigint":
            bounds = [Literal(Decimal(bound), kind.type) for bound in (LEAST_LONG, GREATEST_LONG)]
            is_long = conjunction([resolve(">=", [expr, bounds[0]], None), resolve("<=", [expr, bounds[1]], None)])
            return case([(is_long, text)], resolve("concat", [text, _constant("N")], None), None)
        case "bigdec":
            plain = resolve("regexp_replace", [text, _constant(r"\.?0+$"), _constant("")], None)
            return resolve("concat", [plain, _constant("M")], None)
        case "uuid":
            return resolve("concat", [_constant('#uuid "'), text, _constant('"')], None)
        case "double":
            names = {"Infinity": "##Inf", "-Infinity": "##-Inf", "NaN": "##NaN", "-0.0": "0.0"}
            branches = [(resolve("=", [text, _constant(name)], None), _constant(written)) for name, written in names.items()]
            return case(branches, text, None)
        case _:
            return text


def _constant(text: str) -> Expr:
    return Literal(text, STRING)


def common(left: EdnTerm, right: EdnTerm, what: str, span: Span | None) -> tuple[EdnTerm, EdnTerm]:
    """Both as values of one kind: their own, or any. Raises TypeMismatch for different kinds, of which no values are equal."""
    if left.kind == right.kind:
        return left, right
    if ANY in (left.kind, right.kind) and left.kind.is_scalar and right.kind.is_scalar:
        return with_kind(left), with_kind(right)
    numbers = (*NUMBERS, BIGINT_KIND, BIGDEC)
    remedy = "compare numbers by ==" if left.kind in numbers and right.kind in numbers else None
    raise TypeMismatch(f"{what} is a {left.kind} and a {right.kind}: no value is both", span=span, remedy=remedy)
