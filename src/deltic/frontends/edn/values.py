"""Values of EDN, as forms with their places, and their text.

Invariant: `read(write(form)) == form`. Two forms are one value iff their texts are equal (except for sets and maps, whose order counts
here): 1, 1.0, 1M and true are four values, though they are equal in Python. 1N is 1, as in Clojure, and -0.0 is 0.0.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import MAX_PREC, Context, Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias

from deltic.errors import DataError, Span
from deltic.java_floats import render_double
from deltic.purity import shown

LEAST_LONG: Final = -(2**63)
GREATEST_LONG: Final = 2**63 - 1
CHARACTERS: Final = {"newline": "\n", "return": "\r", "space": " ", "tab": "\t", "formfeed": "\f", "backspace": "\b"}
ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\"}
WRITTEN_ESCAPES: Final = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
"""What a string's text has in place of these characters, in the order of replacement."""
EXACT: Final = Context(prec=MAX_PREC)
"""Of decimals of any length."""
_LONG_EXPONENT: Final = 40
_NAMES: Final = {value: name for name, value in CHARACTERS.items()}
_SYMBOLIC: Final = {"Infinity": "##Inf", "-Infinity": "##-Inf", "NaN": "##NaN", "-0.0": "0.0"}


@dataclass(frozen=True, slots=True, order=True)
class Keyword:
    """A keyword of EDN, such as :person/name. name: without the colon."""

    name: str

    def __repr__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Symbol:
    """A symbol of EDN, such as ?e or count."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, order=True)
class Char:
    """A character of EDN, such as \\a: one code point."""

    value: str

    def __repr__(self) -> str:
        return write(self)


@dataclass(frozen=True, slots=True)
class VectorForm:
    """[ … ]"""

    parts: tuple[LocatedForm, ...]


@dataclass(frozen=True, slots=True)
class ListForm:
    """( … )"""

    parts: tuple[LocatedForm, ...]


@dataclass(frozen=True, slots=True)
class SetForm:
    """#{ … }: different values, in text order."""

    parts: tuple[LocatedForm, ...]


@dataclass(frozen=True, slots=True)
class MapForm:
    """{ … }: pairs of a key and a value, in text order; the keys are different."""

    pairs: tuple[tuple[LocatedForm, LocatedForm], ...]


Scalar: TypeAlias = "bool | int | float | Decimal | str | Keyword | Symbol | Char | datetime | uuid.UUID | None"
Collection: TypeAlias = "VectorForm | ListForm | SetForm | MapForm"


@dataclass(frozen=True, slots=True)
class LocatedForm:
    """A value and its place; None if it came from Python. Equal to forms of the same text."""

    value: Scalar | Collection
    span: Span | None = field(default=None, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocatedForm) and write(self) == write(other)

    def __hash__(self) -> int:
        return hash(write(self))


def write(value: LocatedForm | Scalar | Collection) -> str:
    """The text of a value.

    >>> parts = [Keyword("a/b"), 1, 1.0, True, 'say "x"', Char(" ")]
    >>> write(VectorForm(tuple(map(LocatedForm, parts))))
    '[:a/b 1 1.0 true "say \\\\"x\\\\"" \\\\space]'
    """
    match value:
        case LocatedForm():
            return write(value.value)
        case VectorForm() | ListForm() | SetForm():
            opened, closed = {VectorForm: "[]", ListForm: "()", SetForm: ("#{", "}")}[type(value)]
            return opened + " ".join(map(write, value.parts)) + closed
        case MapForm():
            return "{" + ", ".join(f"{write(key)} {write(one)}" for key, one in value.pairs) + "}"
        case _:
            return _written(value)


def _written(value: Scalar) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if LEAST_LONG <= value <= GREATEST_LONG else f"{value}N"
        case float():
            text = render_double(value)
            return _SYMBOLIC.get(text, text)
        case Decimal():
            return f"{digits(value)}M"
        case str():
            for character, escape in WRITTEN_ESCAPES:
                value = value.replace(character, escape)
            return f'"{value}"'
        case Char():
            return "\\" + _NAMES.get(value.value, value.value)
        case datetime():
            return f'#inst "{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")}-00:00"'
        case uuid.UUID():
            return f'#uuid "{value}"'
        case Keyword() | Symbol():
            return repr(value)


def digits(value: Decimal) -> str:
    """All digits of a decimal without zeros at its end, so that equal ones have one text; with an exponent only if it is long."""
    exact = value.normalize(EXACT)
    if not exact:
        return "0"
    return format(exact, "f") if -_LONG_EXPONENT <= exact.adjusted() <= _LONG_EXPONENT else str(exact)


_SCALARS: Final = frozenset((str, bool, int, float, Decimal, type(None), Keyword, Symbol, Char, uuid.UUID))
"""The types of scalars, most values apart from datetimes."""


def form_of(value: Any, *, names: bool = False) -> LocatedForm:
    """A Python value as a form without a place: a list or tuple is a vector, a set a set, a dict a map.

    A string that begins with a colon is a keyword where names of attributes and operations stand: as a key, as the first part of a pair
    such as [":person/name", "Ann"], and as the first and third part of [":db/add", 1, ":person/name", "Ann"]; everywhere if `names`.
    Raises DataError for other values.
    """
    if type(value) in _SCALARS and not names:
        return LocatedForm(value)
    if type(value) in (list, tuple):
        return _vector(value, names)
    match value:
        case LocatedForm():
            return value
        case str() if names and value.startswith(":") and len(value) > 1:
            return _keyword(value)
        case Mapping():
            pairs = tuple((form_of(key, names=isinstance(key, str)), form_of(one, names=names)) for key, one in value.items())
            return LocatedForm(MapForm(pairs))
        case str() | None | bool() | int() | float() | Decimal() | Keyword() | Symbol() | Char() | uuid.UUID():
            return LocatedForm(value)
        case datetime() if value.tzinfo is not None:
            return LocatedForm(value)
        case Sequence():
            return _vector(value, names)
        case Set():
            return LocatedForm(SetForm(tuple(sorted((form_of(one, names=names) for one in value), key=write))))
        case _:
            expected = "None, a bool, a number, a string, a Keyword, a datetime with a zone, a UUID, a list, a set or a dict"
            raise DataError(f"{shown(value)} is not a value of EDN", expected=expected)


@lru_cache(maxsize=1024)
def _keyword(text: str) -> LocatedForm:
    """Names of attributes and operations occur again and again."""
    return LocatedForm(Keyword(text[1:]))


def _vector(value: Sequence[Any], names: bool) -> LocatedForm:
    if names:
        return LocatedForm(VectorForm(tuple([form_of(one, names=True) for one in value])))
    named = _named(value)
    return LocatedForm(VectorForm(tuple([form_of(one, names=i in named and isinstance(one, str)) for i, one in enumerate(value)])))


def _named(value: Sequence[Any]) -> tuple[int, ...]:
    """The positions of names in a vector."""
    if len(value) == 2:
        return (0,)
    is_operation = bool(value) and isinstance(value[0], str) and value[0].startswith((":db/", ":db.fn/"))
    return (0, 2) if is_operation else ()
