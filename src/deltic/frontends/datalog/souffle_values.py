"""Records and ADTs in Soufflé's files of facts: [1, one], $Circle(2.5), $Empty.

A symbol in one ends at the next comma or at the closing bracket, or is quoted, with backslashes. It is written with quotes if it cannot be
read without them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from deltic.errors import Span, SyntaxFailure, TypeMismatch
from deltic.frontends.datalog.facts import text_of, value_of
from deltic.frontends.datalog.kinds import STRING_KIND, TAG, Kind, TupleKind, UnionKind

_NAME: Final = re.compile(r"[A-Za-z0-9_?.]*")
_QUOTED: Final = re.compile(r'"((?:\\[\s\S]|[^"\\])*)"')


def souffle_text(kind: Kind, value: Any, end: str = "") -> str:
    """The value in a file. end: the bracket that closes the record or ADT that it is part of."""
    match kind:
        case TupleKind():
            return f"[{', '.join(souffle_text(item, value[f'_{i}'], ']') for i, item in enumerate(kind.items))}]"
        case UnionKind():
            own = next(one for one in kind.constructors if not kind.is_tagged or one.name == value[TAG])
            fields = ", ".join(souffle_text(inner, value[name], ")") for name, inner in own.fields)
            return f"${own.name}({fields})" if own.fields else f"${own.name}"
        case _ if kind == STRING_KIND and end and not _is_bare(value, end):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped}"'
        case _:
            return text_of(kind, value)


def _is_bare(text: str, end: str) -> bool:
    """Whether a symbol is read without quotes as it is written."""
    return "," not in text and end not in text and not text.startswith('"') and text == text.lstrip()


def souffle_value(kind: Kind, text: str, place: str) -> Any:
    """The value of a record or ADT, as frames take it. place: the name of the text in errors. Raises SyntaxFailure and TypeMismatch."""
    reader = FactReader(text, place)
    value = reader.read(kind, "")
    reader.skip()
    if reader.position < len(text):
        raise reader.unexpected("the end of the value")
    return value


class FactReader:
    """Reads a value from left to right."""

    def __init__(self, text: str, place: str) -> None:
        self.text, self.place, self.position = text, place, 0

    def skip(self) -> None:
        """Skips white space."""
        while self.text[self.position : self.position + 1].isspace():
            self.position += 1

    def unexpected(self, expected: str) -> SyntaxFailure:
        """The error for what stands at the position."""
        span = Span(self.text, self.position, self.position + 1, self.place)
        what = repr(self.text[self.position]) if self.position < len(self.text) else "end of the value"
        return SyntaxFailure(f"unexpected {what}", span=span, expected=expected)

    def read(self, kind: Kind, end: str) -> Any:
        """A value. end: the bracket that closes the record or ADT that it is part of."""
        self.skip()
        match kind:
            case TupleKind():
                names = [f"_{i}" for i in range(len(kind.items))]
                return self._parts(list(zip(names, kind.items, strict=True)), "[", "]")
            case UnionKind():
                return self._union(kind)
            case _:
                return self._plain(kind, end)

    def _take(self, character: str) -> None:
        self.skip()
        if not self.text.startswith(character, self.position):
            raise self.unexpected(repr(character))
        self.position += 1

    def _parts(self, parts: Sequence[tuple[str, Kind]], begin: str, end: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, kind in parts:
            self._take("," if values else begin)
            values[name] = self.read(kind, end)
        self._take(end)
        return values

    def _union(self, kind: UnionKind) -> dict[str, Any]:
        self._take("$")
        self.skip()
        match = _NAME.match(self.text, self.position)
        assert match is not None
        own = next((one for one in kind.constructors if one.name == match[0]), None)
        if own is None:
            span = Span(self.text, match.start(), max(match.end(), match.start() + 1), self.place)
            expected = f"one of {', '.join(f'${one.name}' for one in kind.constructors)}"
            raise TypeMismatch(f"{kind} has no branch {match[0]}", span=span, expected=expected)
        self.position = match.end()
        values = self._parts(own.fields, "(", ")") if own.fields else {}
        if not kind.is_tagged:
            return values
        return {TAG: own.name, **{name: values.get(name) for name in kind.fields}}

    def _plain(self, kind: Kind, end: str) -> Any:
        quoted = _QUOTED.match(self.text, self.position) if kind == STRING_KIND else None
        if quoted is not None:
            self.position = quoted.end()
            return re.sub(r"\\([\s\S])", r"\1", quoted[1])
        stop = min((i for i in (self.text.find(one, self.position) for one in (",", end)) if i >= 0), default=len(self.text))
        text, start = self.text[self.position : stop], self.position
        self.position = stop
        value = value_of(kind, text)
        if value is None:
            raise TypeMismatch(f"invalid value {text.strip()!r}", span=Span(self.text, start, stop, self.place), expected=str(kind))
        return value
