"""The functions of queries over strings, keywords and symbols, by Clojure's names; str/ stands for clojure.string/."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from deltic.errors import Span, TypeMismatch
from deltic.expr import cast, resolve
from deltic.expr.nodes import Expr, Literal
from deltic.frontends.edn.arguments import Builder, Terms, check_count, check_kind
from deltic.frontends.edn.kinds import ANY, BIGDEC, BOOLEAN_KIND, CHAR, INSTANT, KEYWORD, LONG, STRING_KIND, SYMBOL, EdnKind, EdnTerm
from deltic.schema import INT, STRING

_SPACES: Final = "[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]"
"""The characters that Java's Character.isWhitespace accepts."""


def _text(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 1, None, span)
    for one in arguments:
        if one.kind in (ANY, CHAR, INSTANT, BIGDEC) or not one.kind.is_scalar:
            raise TypeMismatch(f"{name} does not accept a value of kind {one.kind}", span=one.expr.span or span, expected="another kind")
    return EdnTerm(resolve("concat", [cast(one.expr, STRING, span) for one in arguments], span), STRING_KIND)


def _of_strings(function: str, kind: EdnKind, count: int = 1) -> Builder:
    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, count, count, span)
        for one in arguments:
            check_kind(name, one, (STRING_KIND,), span)
        return EdnTerm(cast(resolve(function, [one.expr for one in arguments], span), kind.type, span), kind)

    return build


def _blank(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    check_count(name, arguments, 1, 1, span)
    check_kind(name, arguments[0], (STRING_KIND,), span)
    return EdnTerm(resolve("rlike", [arguments[0].expr, Literal(f"^{_SPACES}*$", STRING)], span), BOOLEAN_KIND)


def _without(pattern: str) -> Builder:
    """A string without what the pattern finds."""
    constants = [Literal(pattern, STRING), Literal("", STRING)]
    return _strings(1, STRING_KIND, lambda text, span: resolve("regexp_replace", [text, *constants], span))


def _substring(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    """Of a string, from a position counted from 0, to before another."""
    check_count(name, arguments, 2, 3, span)
    text, *bounds = arguments
    check_kind(name, text, (STRING_KIND,), span)
    for one in bounds:
        check_kind(name, one, (LONG,), span)
    start = cast(bounds[0].expr, INT, span)
    first = resolve("+", [start, Literal(1, INT)], span)
    length = [resolve("-", [cast(bounds[1].expr, INT, span), start], span)] if len(bounds) == 2 else []
    return EdnTerm(resolve("substring", [text.expr, first, *length], span), STRING_KIND)


def _strings(count: int, kind: EdnKind, make: Callable[..., Expr]) -> Builder:
    """A function of so many strings. make: (an expression for each, the place) → the result, of this kind."""

    def build(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
        check_count(name, arguments, count, count, span)
        for one in arguments:
            check_kind(name, one, (STRING_KIND,), span)
        return EdnTerm(make(*(one.expr for one in arguments), span), kind)

    return build


def _capitalized(text: Expr, span: Span | None) -> Expr:
    first = resolve("substring", [text, Literal(1, INT), Literal(1, INT)], span)
    rest = resolve("substring", [text, Literal(2, INT)], span)
    return resolve("concat", [resolve("upper", [first], span), resolve("lower", [rest], span)], span)


def _position(text: Expr, part: Expr, span: Span | None) -> Expr:
    """Counted from 0; NULL if the part does not occur, so that the row goes."""
    position = cast(resolve("instr", [text, part], span), LONG.type, span)
    return resolve("nullif", [resolve("-", [position, Literal(1, LONG.type)], span), Literal(-1, LONG.type)], span)


def _empty(text: Expr, span: Span | None) -> Expr:
    return resolve("=", [text, Literal("", STRING)], span)


def _named(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    """The last part of a keyword or symbol; a string is its own."""
    check_count(name, arguments, 1, 1, span)
    (value,) = arguments
    check_kind(name, value, (STRING_KIND, KEYWORD, SYMBOL), span)
    if value.kind == STRING_KIND:
        return value
    return EdnTerm(resolve("regexp_replace", [value.expr, Literal("^:?([^/]+/)?", STRING), Literal("", STRING)], span), STRING_KIND)


def _namespace(name: str, arguments: Terms, span: Span | None) -> EdnTerm:
    """The part of a keyword or symbol before the slash; NULL if there is none, so that the row goes."""
    check_count(name, arguments, 1, 1, span)
    check_kind(name, arguments[0], (KEYWORD, SYMBOL), span)
    prefix = resolve("regexp_extract", [arguments[0].expr, Literal("^:?([^/]+)/", STRING), Literal(1, INT)], span)
    return EdnTerm(resolve("nullif", [prefix, Literal("", STRING)], span), STRING_KIND)


TEXT_FUNCTIONS: Final[Mapping[str, Builder]] = {
    "str": _text,
    "count": _of_strings("length", LONG),
    "subs": _substring,
    "empty?": _strings(1, BOOLEAN_KIND, _empty),
    "name": _named,
    "namespace": _namespace,
    "str/upper-case": _of_strings("upper", STRING_KIND),
    "str/lower-case": _of_strings("lower", STRING_KIND),
    "str/capitalize": _strings(1, STRING_KIND, _capitalized),
    "str/reverse": _of_strings("reverse", STRING_KIND),
    "str/trim": _without(f"^{_SPACES}+|{_SPACES}+$"),
    "str/triml": _without(f"^{_SPACES}+"),
    "str/trimr": _without(f"{_SPACES}+$"),
    "str/index-of": _strings(2, LONG, _position),
    "str/starts-with?": _of_strings("startswith", BOOLEAN_KIND, 2),
    "str/ends-with?": _of_strings("endswith", BOOLEAN_KIND, 2),
    "str/includes?": _of_strings("contains", BOOLEAN_KIND, 2),
    "str/blank?": _blank,
}
