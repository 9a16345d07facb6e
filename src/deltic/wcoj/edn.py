"""Reads the part of EDN that queries use: maps, vectors, keywords, symbols, strings, numbers, true, false, nil; each with its span.

Other EDN (sets, lists, characters, tagged values) raises Unsupported with its span.
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
    """A keyword, such as :name."""

    name: str

    def __repr__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True, slots=True)
class EdnSymbol:
    """A symbol, such as ?a."""

    name: str


@dataclass(frozen=True, slots=True)
class EdnVector:
    """[ … ]"""

    parts: tuple[EdnForm, ...]


@dataclass(frozen=True, slots=True)
class EdnMap:
    """{ … }: (key, value) pairs in text order."""

    pairs: tuple[tuple[EdnForm, EdnForm], ...]


@dataclass(frozen=True, slots=True)
class EdnForm:
    """A value and its span in the text."""

    value: EdnKeyword | EdnSymbol | EdnVector | EdnMap | str | int | float | bool | None
    span: Span


def read(text: str, name: str = "<edn>") -> EdnForm:
    """The single form of a text. Raises SyntaxFailure and Unsupported, with the span.

    >>> read("[:g/to 7]").value.parts[1].value
    7
    """
    return _Reader(text, name).whole()


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self.text, self.name = text, name
        self.tokens = self._tokens()

    def whole(self) -> EdnForm:
        form = self._form(next(self.tokens), "a form")
        kind, span = next(self.tokens)
        if kind != "end":
            raise SyntaxFailure("unexpected text after the form", span=span, expected="one form")
        return form

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
                raise Unsupported(f"{word} is not supported in queries", span=span, expected="a map, a vector, or a value")
            case _:
                problem = "unexpected end of text" if kind == "end" else f"unmatched {word}"
                raise SyntaxFailure(problem, span=span, expected=expected)

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
            raise SyntaxFailure("a key without a value", span=parts[-1].span, expected="a map of pairs of key and value")
        return EdnMap(tuple(zip(parts[::2], parts[1::2], strict=True)))

    def _string(self, word: str, span: Span) -> str:
        unknown = next((escape for escape in re.findall(r"\\(.)", word, re.DOTALL) if escape not in _ESCAPES), None)
        if unknown is not None:
            raise SyntaxFailure(f"invalid escape \\{unknown}", span=span, expected=r"one of \n \t \r \" \\")
        return re.sub(r"\\(.)", lambda escape: _ESCAPES[escape[1]], word[1:-1])

    def _tokens(self) -> Iterator[tuple[str, Span]]:
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None or match.lastgroup is None:
                raise SyntaxFailure(f"unexpected {self.text[position]}", span=Span(self.text, position, position + 1, self.name))
            if match.lastgroup != "space":
                yield match.lastgroup, Span(self.text, position, match.end(), self.name)
            position = match.end()
        while True:
            yield "end", Span(self.text, len(self.text), len(self.text), self.name)
