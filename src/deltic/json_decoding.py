"""JSON text as values, with one limit on its nesting.

Whether a text is accepted depends on the text alone. Python's decoder recurses, so what it accepts depends on how much of the stack its
caller has used: a row could be read when it is inserted and refused when it is deleted. Text that it cannot finish is decoded here
without recursion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

DEEPEST: Final = 1000
"""The levels of nested objects and arrays, as Jackson limits them."""
_CLOSING: Final = {"[": "]", "{": "}"}
_NOT_BRACKETS: Final = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[^"\[\]{}]+', re.DOTALL)
_DEPTHS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}
_WHITE: Final = re.compile(r"[ \t\n\r]*")


class NestedTooDeeply(ValueError):
    """JSON of more than DEEPEST levels."""


@dataclass(slots=True)
class _Open:
    """An object or array whose end is not reached: its pairs or values, and of an object the name of the next value."""

    mark: str
    parts: list[Any]
    name: str = ""

    def add(self, value: Any) -> None:
        self.parts.append((self.name, value) if self.mark == "{" else value)


class JsonDecoder:
    """json.JSONDecoder for text of up to DEEPEST levels, whatever the depth of the caller's stack.

    >>> JsonDecoder(objects=dict).value('{"a": [1, null]} and more')
    ({'a': [1, None]}, 16)
    """

    def __init__(
        self,
        *,
        objects: Callable[[list[tuple[str, Any]]], Any],
        floats: Callable[[str], Any] | None = None,
        integers: Callable[[str], Any] | None = None,
        constants: Callable[[str], Any] | None = None,
        strict: bool = True,
    ) -> None:
        """What objects, numbers, and NaN and Infinity become. strict: without control characters in strings."""
        self._objects, self._strict = objects, strict
        self._decoder = json.JSONDecoder(
            object_pairs_hook=objects, parse_float=floats, parse_int=integers, parse_constant=constants, strict=strict
        )

    def value(self, text: str) -> tuple[Any, int]:
        """The first value, at the very beginning of the text, and where it ends. Raises ValueError; NestedTooDeeply is one."""
        if text.count("[") + text.count("{") <= DEEPEST or _depth(text) <= DEEPEST:
            try:
                return self._decoder.raw_decode(text)
            except RecursionError:
                pass
        return self._value(text)

    def whole(self, text: str) -> Any:
        """The only value of the text. Raises ValueError."""
        start = _after_white(text, 0)
        value, length = self.value(text[start:] if start else text)
        end = _after_white(text, start + length)
        if end != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
        return value

    def _value(self, text: str) -> tuple[Any, int]:
        """`value` without recursion."""
        opened: list[_Open] = []
        position = 0
        while True:
            mark = text[position : position + 1]
            if mark in _CLOSING:
                if len(opened) == DEEPEST:
                    raise NestedTooDeeply(f"more than {DEEPEST} levels")
                opened.append(_Open(mark, []))
                position = _after_white(text, position + 1)
                if text[position : position + 1] != _CLOSING[mark]:
                    position = self._to_value(text, position, opened[-1])
                    continue
            else:
                value, position = self._scalar(text, position)
                if not opened:
                    return value, position
                opened[-1].add(value)
                position = _after_white(text, position)
            while text[position : position + 1] == _CLOSING[opened[-1].mark]:
                done = opened.pop()
                value, position = self._objects(done.parts) if done.mark == "{" else done.parts, position + 1
                if not opened:
                    return value, position
                opened[-1].add(value)
                position = _after_white(text, position)
            if text[position : position + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, position)
            position = self._to_value(text, _after_white(text, position + 1), opened[-1])

    def _scalar(self, text: str, position: int) -> tuple[Any, int]:
        try:
            scanned: tuple[Any, int] = self._decoder.scan_once(text, position)  # type: ignore[attr-defined]
        except StopIteration:
            raise json.JSONDecodeError("Expecting value", text, position) from None
        return scanned

    def _to_value(self, text: str, position: int, within: _Open) -> int:
        """Where the next value begins: in an object after its name."""
        if within.mark == "[":
            return position
        if text[position : position + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, position)
        within.name, end = scanstring(text, position + 1, self._strict)
        end = _after_white(text, end)
        if text[end : end + 1] != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", text, end)
        return _after_white(text, end + 1)


def _after_white(text: str, position: int) -> int:
    match = _WHITE.match(text, position)
    assert match is not None
    return match.end()


def _depth(text: str) -> int:
    """The levels of nested brackets outside of strings."""
    return max(accumulate(map(_DEPTHS.__getitem__, _NOT_BRACKETS.sub("", text))), default=0)
