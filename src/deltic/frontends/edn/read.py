"""Reads EDN: lark's tree by edn.lark, as forms with their places. Every error has its place."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from deltic.errors import Span, SyntaxFailure, Unsupported
from deltic.frontends.edn.values import (
    CHARACTERS,
    ESCAPES,
    GREATEST_LONG,
    LEAST_LONG,
    Char,
    Keyword,
    ListForm,
    LocatedForm,
    MapForm,
    Scalar,
    SetForm,
    Symbol,
    VectorForm,
    write,
)

DEPTH: Final = 200
"""How deep a form may be: forms are converted recursively."""
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}
_INTEGER: Final = re.compile(r"([+-]?)(0|[1-9][0-9]*)(N?)")
_FLOAT: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?(M?)")
_RATIO: Final = re.compile(r"[+-]?[0-9]+/[0-9]+")
_RADIX: Final = re.compile(r"[+-]?(0[xX][0-9A-Fa-f]+|[0-9]+r[0-9A-Za-z]+|0[0-9]+)N?")
_REST: Final = r"[\w.*+!\-?$%&=<>#':|]"
_NAME: Final = rf"(?:[^\W\d]|[*!?$%&=<>|]){_REST}*|[.+\-](?:(?!\d){_REST}+)?"  # a digit does not follow a sign or a point
_SYMBOL: Final = re.compile(rf"(?:(?:{_NAME})/)?(?:{_NAME})|/|(?:{_NAME})//")
_KEYWORD_PART: Final = r"[\w.*+!\-?$%&=<>#'|][\w.*+!\-?$%&=<>#':|]*"
_KEYWORD: Final = re.compile(rf":(?:{_KEYWORD_PART}/)?{_KEYWORD_PART}")
_WORDS: Final = {"nil": None, "true": True, "false": False}
_SYMBOLIC: Final = {"##Inf": float("inf"), "##-Inf": float("-inf"), "##NaN": float("nan")}
_INSTANT: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?(?:Z|([+-])(\d\d):(\d\d))?)?)?)?"
)


def read(text: str, name: str = "<edn>") -> LocatedForm:
    """The single form of a text. Raises SyntaxFailure and Unsupported, with the place.

    >>> write(read("[:a, #_ignored 1.50M #inst \\"2020\\"]"))
    '[:a 1.5M #inst "2020-01-01T00:00:00.000000-00:00"]'
    """
    forms = read_all(text, name)
    if len(forms) != 1:
        end = len(text.rstrip())
        span = forms[1].span if forms else Span(text, end, end, name)
        raise SyntaxFailure("unexpected text after the form" if forms else "there is no form", span=span, expected="one form")
    return forms[0]


def read_all(text: str, name: str = "<edn>") -> tuple[LocatedForm, ...]:
    """The forms of a text."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _failure(error, text, name) from None
    _check_depth(tree, text, name)
    return _Converter(text, name).parts(tree)


def is_open(text: str) -> bool:
    """Whether a text ends within a form: a bracket or a string is not closed."""
    try:
        _parser().parse(text)
    except UnexpectedInput as error:
        token, position = getattr(error, "token", None), getattr(error, "pos_in_stream", None)
        ends = isinstance(token, Token) and token.type == "$END"
        return ends or (isinstance(position, int) and text[position : position + 1] == '"')
    return False


@cache
def _parser() -> Lark:
    grammar = resources.files(__package__ or "").joinpath("edn.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True)


def _failure(error: UnexpectedInput, text: str, name: str) -> SyntaxFailure:
    token = getattr(error, "token", None)
    position = getattr(error, "pos_in_stream", None)
    offset = position if isinstance(position, int) and position >= 0 else len(text)
    if isinstance(token, Token) and token.type == "$END":
        opened = _unclosed(text)
        if opened is not None:
            closing = _CLOSING[text[opened]]
            return SyntaxFailure(f"{text[opened]} is not closed", span=Span(text, opened, opened + 1, name), expected=closing)
        offset = len(text.rstrip())
        return SyntaxFailure("unexpected end of the text", span=Span(text, offset, offset, name), expected="a form")
    if text[offset] == '"':
        return SyntaxFailure("the string is not closed", span=Span(text, offset, offset + 1, name), expected='"')
    what = f"unmatched {text[offset]}" if text[offset] in ")]}" else f"unexpected {text[offset]}"
    return SyntaxFailure(what, span=Span(text, offset, offset + 1, name), expected="a form")


def _unclosed(text: str) -> int | None:
    """The position of the last bracket that is not closed, in a text whose tokens are valid."""
    opened: list[int] = []
    for token in _parser().lex(text):
        if token.type in ("LPAR", "LSQB", "LBRACE") or token == "#{":
            opened.append((token.start_pos or 0) + len(token) - 1)
        elif token.type in ("RPAR", "RSQB", "RBRACE") and opened:
            opened.pop()
    return opened[-1] if opened else None


def _check_depth(tree: Tree[Token], text: str, name: str) -> None:
    level: list[Tree[Token]] = [tree]
    for _ in range(DEPTH):
        level = [part for node in level for part in node.children if isinstance(part, Tree)]
        if not level:
            return
    offset = level[0].meta.start_pos
    raise SyntaxFailure("the form is nested too deeply", span=Span(text, offset, offset + 1, name), expected=f"at most {DEPTH} levels")


class _Converter:
    """Converts lark's trees."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name

    def parts(self, node: Tree[Token]) -> tuple[LocatedForm, ...]:
        """The forms in a tree, without those that are discarded."""
        return tuple(self.form(part) for part in node.children if isinstance(part, Token) or part.data != "discard")

    def form(self, node: Any) -> LocatedForm:
        if isinstance(node, Token):
            span = Span(self.text, node.start_pos or 0, node.end_pos or 0, self.name)
            return LocatedForm(_SCALARS[node.type](str(node), span), span)
        span = Span(self.text, node.meta.start_pos, node.meta.end_pos, self.name)
        match node.data:
            case "tagged":
                return self._tagged(str(node.children[0]), self.form(node.children[-1]), span)
            case "vector":
                return LocatedForm(VectorForm(self.parts(node)), span)
            case "list":
                return LocatedForm(ListForm(self.parts(node)), span)
            case "set":
                parts = self.parts(node)
                _check_different(parts, "a set has the same value twice")
                return LocatedForm(SetForm(parts), span)
            case _:
                return LocatedForm(self._map(self.parts(node)), span)

    def _map(self, parts: tuple[LocatedForm, ...]) -> MapForm:
        if len(parts) % 2:
            raise SyntaxFailure("a key without a value", span=parts[-1].span, expected="pairs of a key and a value")
        _check_different(parts[::2], "a map has the same key twice")
        return MapForm(tuple(zip(parts[::2], parts[1::2], strict=True)))

    def _tagged(self, tag: str, form: LocatedForm, span: Span) -> LocatedForm:
        if tag not in ("#inst", "#uuid"):
            what = f"the namespaced map {tag}" if tag.startswith("#:") else f"the tag {tag}"
            raise Unsupported(f"{what} is not supported", span=span, expected="#inst, #uuid, or no tag")
        if not isinstance(form.value, str):
            raise SyntaxFailure(f"{tag} requires a string", span=form.span, expected=f'{tag} "…"')
        assert form.span is not None
        return LocatedForm(_instant(form.value, form.span) if tag == "#inst" else _uuid(form.value, form.span), span)


def _check_different(parts: tuple[LocatedForm, ...], problem: str) -> None:
    seen: set[str] = set()
    for part in parts:
        text = write(part)
        if text in seen:
            raise SyntaxFailure(problem, span=part.span, expected="different values")
        seen.add(text)


def _atom(word: str, span: Span) -> Scalar:
    if word in _WORDS:
        return _WORDS[word]
    if word[0].isdigit() or (word[0] in "+-" and word[1:2].isdigit()):
        return _number(word, span)
    if word[0] == ":":
        if not _KEYWORD.fullmatch(word):
            raise SyntaxFailure(f"invalid keyword {word}", span=span, expected=":name or :namespace/name")
        return Keyword(word[1:])
    if not _SYMBOL.fullmatch(word):
        raise SyntaxFailure(f"invalid symbol {word}", span=span, expected="name or namespace/name")
    return Symbol(word)


def _number(word: str, span: Span) -> Scalar:
    if _RATIO.fullmatch(word):
        raise Unsupported(f"the ratio {word} is not supported", span=span, remedy="write a double or a decimal: 0.5 or 0.5M")
    if whole := _INTEGER.fullmatch(word):
        value = int(word.removesuffix("N"))
        if not whole[3] and not LEAST_LONG <= value <= GREATEST_LONG:
            raise SyntaxFailure(f"{word} is out of the range of a long", span=span, remedy=f"{word}N is an integer of any size")
        return value
    if _RADIX.fullmatch(word):
        raise Unsupported(f"the number {word} is not decimal", span=span, expected="decimal digits without a leading 0")
    if match := _FLOAT.fullmatch(word):
        return Decimal(word[:-1]) if match[3] else float(word)
    raise SyntaxFailure(f"invalid number {word}", span=span, expected="a number such as 7, 7N, 7.5 or 7.5M")


def _string(word: str, span: Span) -> str:
    def unescaped(match: re.Match[str]) -> str:
        escape = match[0]
        if len(escape) == 6:
            return chr(int(escape[2:], 16))
        if escape[1] not in ESCAPES:
            start = span.start + match.start() + 1
            place = Span(span.text, start, start + len(escape), span.name)
            raise SyntaxFailure(f"invalid escape {escape}", span=place, expected=r"one of \n \t \r \b \f \" \\ and \u with four digits")
        return ESCAPES[escape[1]]

    text = re.sub(r"\\(u[0-9a-fA-F]{4}|[\s\S])", unescaped, word[1:-1])
    return _without_surrogates(text, span)


def _without_surrogates(text: str, span: Span) -> str:
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "\ufffd" in joined and "\ufffd" not in text:
        raise SyntaxFailure("half of a surrogate pair", span=span, expected="both halves, or the character itself")
    return joined


def _character(word: str, span: Span) -> Char:
    name = word[1:]
    if len(name) == 1:
        return Char(name)
    if name[0] == "u" and len(name) == 5:
        return Char(_without_surrogates(chr(int(name[1:], 16)), span))
    if name not in CHARACTERS:
        raise SyntaxFailure(f"there is no character {word}", span=span, expected=f"one character, or {', '.join(CHARACTERS)} or uXXXX")
    return Char(CHARACTERS[name])


def _symbolic(word: str, span: Span) -> float:
    if word not in _SYMBOLIC:
        raise SyntaxFailure(f"there is no value {word}", span=span, expected="##Inf, ##-Inf or ##NaN")
    return _SYMBOLIC[word]


def _instant(text: str, span: Span) -> datetime:
    match = _INSTANT.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        year, month, day, hour, minute, second = (
            int(part or first) for part, first in zip(match.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)
        )
        moment = datetime(year, month, day, hour, minute, second, int((match[7] or "0").ljust(6, "0")[:6]), UTC)
        away = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
        return moment - away if match[8] == "+" else moment + away
    except (ValueError, OverflowError):
        expected = '#inst "2020-01-31T12:30:00.000-00:00", or the beginning of one'
        raise SyntaxFailure(f"invalid instant {text!r}", span=span, expected=expected) from None


def _uuid(text: str, span: Span) -> uuid.UUID:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        raise SyntaxFailure(f"invalid UUID {text!r}", span=span, expected="five groups of 8, 4, 4, 4 and 12 hexadecimal digits")
    return uuid.UUID(text)


_SCALARS: Final[dict[str, Callable[[str, Span], Scalar]]] = {
    "ATOM": _atom,
    "STRING": _string,
    "CHARACTER": _character,
    "SYMBOLIC": _symbolic,
}
