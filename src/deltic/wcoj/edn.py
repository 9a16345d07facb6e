"""Reads as much EDN as queries are made of: maps, vectors, keywords, symbols, strings, numbers, true, false, nil; each with its place.

What EDN has beyond (sets, lists, characters, tagged values) is refused by its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from deltic.errors import Span, SyntaxFailure, Unsupported

_TOKEN: Final = re.compile(
    r"""(?P<space>[\s,]+|;[^\n]*)
      | (?P<open>[\[{])
      | (?P<close>[\]}])
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<keyword>:[\w.*+!?$%&=<>-]+(?:/[\w.*+!?$%&=<>-]+)?)
      | (?P<symbol>[A-Za-z_.*+!?$%&=<>-][\w.*+!?$%&=<>-]*(?:/[\w.*+!?$%&=<>-]+)?)
      | (?P<other>[(\#\\]\S?)""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Final = {"true": True, "false": False, "nil": None}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_CLOSING: Final = {"[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class EdnKeyword:
    """:name, a value of its own kind."""

    name: str

    def __repr__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True, slots=True)
class EdnSymbol:
    """A name, such as ?a."""

    name: str


@dataclass(frozen=True, slots=True)
class EdnVector:
    """[ … ]"""

    parts: tuple[EdnForm, ...]


@dataclass(frozen=True, slots=True)
class EdnMap:
    """{ … }: keys, each with its value, as they stand."""

    pairs: tuple[tuple[EdnForm, EdnForm], ...]


@dataclass(frozen=True, slots=True)
class EdnForm:
    """A value and where it stands."""

    value: EdnKeyword | EdnSymbol | EdnVector | EdnMap | str | int | float | bool | None
    span: Span


def read(text: str, name: str = "<edn>") -> EdnForm:
    """The one form of a text. Raises SyntaxFailure and Unsupported, with the place.

    >>> read("[:g/to 7]").value.parts[1].value
    7
    """
    return _Reader(text, name).whole()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.tokens = self._tokens()

    def whole(self) -> EdnForm:
        found = self._form(next(self.tokens), "a form")
        kind, span = next(self.tokens)
        if kind != "end":
            raise SyntaxFailure("the text goes on behind its end", span=span, expected="one form")
        return found

    def _form(self, token: tuple[str, Span], expected: str) -> EdnForm:
        kind, span = token
        word = self.text[span.start : span.end]
        match kind:
            case "open":
                return self._collection(word, span)
            case "string":
                return EdnForm(self._string(word, span), span)
            case "number":
                return EdnForm(int(word) if word.lstrip("+-").isdigit() else float(word), span)
            case "keyword":
                return EdnForm(EdnKeyword(word[1:]), span)
            case "symbol":
                return EdnForm(_WORDS[word] if word in _WORDS else EdnSymbol(word), span)
            case "other":
                raise Unsupported(f"{word} begins something that queries have not", span=span, expected="a map, a vector, or a value")
            case _:
                found = "the text ends" if kind == "end" else f"{word} closes what is not open"
                raise SyntaxFailure(f"{found} where a form begins", span=span, expected=expected)

    def _collection(self, bracket: str, opened: Span) -> EdnForm:
        closing, parts = _CLOSING[bracket], list[EdnForm]()
        while True:
            kind, span = token = next(self.tokens)
            if kind == "end":
                raise SyntaxFailure(f"{bracket} is not closed", span=opened, expected=closing)
            if kind == "close" and self.text[span.start] == closing:
                whole = Span(self.text, opened.start, span.end, self.name)
                return EdnForm(EdnVector(tuple(parts)) if bracket == "[" else self._map(parts), whole)
            parts.append(self._form(token, f"a form or {closing}"))

    def _map(self, parts: list[EdnForm]) -> EdnMap:
        if len(parts) % 2:
            raise SyntaxFailure("a key without a value", span=parts[-1].span, expected="a map has pairs of key and value")
        return EdnMap(tuple(zip(parts[::2], parts[1::2], strict=True)))

    def _string(self, word: str, span: Span) -> str:
        unknown = next((escape for escape in re.findall(r"\\(.)", word, re.DOTALL) if escape not in _ESCAPES), None)
        if unknown is not None:
            raise SyntaxFailure(f"the escape \\{unknown} is unknown", span=span, expected=r"one of \n \t \r \" \\")
        return re.sub(r"\\(.)", lambda found: _ESCAPES[found[1]], word[1:-1])

    def _tokens(self) -> Iterator[tuple[str, Span]]:
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None or found.lastgroup is None:
                raise SyntaxFailure(f"{self.text[at]} begins no form", span=Span(self.text, at, at + 1, self.name))
            if found.lastgroup != "space":
                yield found.lastgroup, Span(self.text, at, found.end(), self.name)
            at = found.end()
        while True:
            yield "end", Span(self.text, len(self.text), len(self.text), self.name)
