"""Parsing JSON from a state folder, with a check of every type and bound: a checksum shows only that the bytes are as written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from deltic.errors import CorruptState

Json = Any
REMEDY: Final = "restore the state folder from a copy, or build it again from the sources"
WORD_MAX: Final = 2**63 - 1
_SHOWN: Final = 60


def missing_file(name: str) -> CorruptState:
    return CorruptState(f"{name}: the file is missing, though the manifest names it", remedy=REMEDY)


class Malformed(ValueError):
    """A value of an unexpected type or out of bounds. Within `reading` it becomes a CorruptState."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raises CorruptState in place of Malformed. what: the file, or its part, being read."""
    try:
        yield
    except Malformed as error:
        raise CorruptState(f"{what}: {error}", remedy=REMEDY) from None


def parsed(text: bytes) -> Json:
    """The value of a JSON text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"invalid JSON: {error}") from None


def member(value: Json, name: str) -> Json:
    """A member of an object."""
    members = mapping(value, "an object")
    if name not in members:
        raise Malformed(f"{name} is missing")
    return members[name]


def mapping(value: Json, what: str) -> Mapping[str, Json]:
    """An object."""
    if not isinstance(value, Mapping):
        _refuse(value, f"{what}: expected an object")
    return value


def items(value: Json, what: str) -> list[Json]:
    """A list."""
    if not isinstance(value, list):
        _refuse(value, f"{what}: expected a list")
    return value


def string(value: Json, what: str) -> str:
    """A string."""
    if not isinstance(value, str):
        _refuse(value, f"{what}: expected a string")
    return value


def count(value: Json, what: str, most: int = WORD_MAX) -> int:
    """An integer from 0 to `most`."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    _refuse(value, f"{what}: expected an integer from 0 to {most}")


def truth(value: Json, what: str) -> bool:
    """A boolean."""
    if not isinstance(value, bool):
        _refuse(value, f"{what}: expected true or false")
    return value


def counts(value: Json, what: str, most: int = WORD_MAX) -> tuple[int, ...]:
    """A list of integers from 0 to `most`."""
    return tuple(count(each, what, most) for each in items(value, what))


def _refuse(value: Json, expected: str) -> NoReturn:
    shown = repr(value)
    raise Malformed(f"{expected}, not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}")
