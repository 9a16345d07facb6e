"""Table functions in Python that SQL can call: classes with `eval`, in the form of PySpark's udtf."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from deltic.errors import CircuitError
from deltic.frontends.python.functions import wrapper_of
from deltic.frontends.python.schemas import schema_of
from deltic.purity import name_of
from deltic.schema import Field, Schema, Type
from deltic.types import NESTED, PLAIN

BY_ROW: Final = (300, 301)
"""PySpark's evaluation type of a udtf of rows."""
_COLUMN: Final = re.compile(r"\s*(`[^`]+`|\w+)\s*:?\s+(.+?)\s*$|\s*(`[^`]+`|\w+)\s*:(.+?)\s*$", re.DOTALL)

_ALIASES: Final = {"INTEGER": "INT", "LONG": "BIGINT", "SHORT": "SMALLINT", "BYTE": "TINYINT", "REAL": "FLOAT"}
_WORD: Final = re.compile(rf"\b({'|'.join((*PLAIN, *NESTED, *_ALIASES, 'DECIMAL'))})\b(?!\s*:)", re.IGNORECASE)
"""The name of a type, where it is not that of a field."""


def is_handler(function: object) -> bool:
    """Whether this is a class with `eval`, or what PySpark's udtf returned for one."""
    return isinstance(handler_of(function), type) and hasattr(handler_of(function), "eval")


def handler_of(function: Any) -> Any:
    """The class of a udtf; anything else as it is."""
    return function.func if hasattr(function, "_returnType") and hasattr(function, "func") else function


def columns_of(name: str, function: Any, returns: Any) -> Schema:
    """The columns of the rows that a table function returns; each may be NULL unless a schema in Python says otherwise."""
    given = function._returnType if returns is None and handler_of(function) is not function else returns
    if getattr(function, "evalType", BY_ROW[0]) not in BY_ROW:
        raise CircuitError(f"{name}: a udtf on Arrow batches is not supported", remedy="a udtf of rows, with useArrow=False")
    if given is None:
        message, expected = f"{name}: the return type of a table function is not given", 'its columns, such as "word STRING, n INT"'
        raise CircuitError(message, expected=expected, remedy="analyze() is not supported")
    if isinstance(given, Mapping | Schema):
        return schema_of(given)
    text = given if isinstance(given, str) else getattr(given, "simpleString", lambda: repr(given))()
    return Schema(tuple(_column(name, part) for part in _parts(text)))


def _parts(text: str) -> list[str]:
    """The columns of "a INT, b STRUCT<…>" or "struct<a:int,b:…>"."""
    whole = re.fullmatch(r"\s*struct<(.*)>\s*", text, re.DOTALL | re.IGNORECASE)
    text = whole[1] if whole else text
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def _column(name: str, text: str) -> Field:
    match = _COLUMN.match(text)
    try:
        if match is None:
            raise ValueError(text)
        notation = (match[2] or match[4]).strip()
        type = Type.parse(_spelled(notation))
    except ValueError:
        raise CircuitError(f"{name}: invalid column {text.strip()!r}", expected='columns as "word STRING, n INT"') from None
    return Field((match[1] or match[3]).strip("`"), type)


def _spelled(notation: str) -> str:
    """A type as `Type.parse` takes it: words in upper case, and a blank after the colon of a field."""
    if "<" not in notation:
        return _ALIASES.get(notation.upper(), notation.upper())
    upper = _WORD.sub(lambda word: _ALIASES.get(word[0].upper(), word[0].upper()), notation)
    return re.sub(r"\s*,\s*", ", ", re.sub(r"\s*:\s*", ": ", upper))


def rows_function(handler: type) -> Callable[..., list[tuple[Any, ...]]]:
    """The rows that a new instance of the class returns for one call: those of `eval`, then those of `terminate`."""
    for method in ("analyze", "cleanup"):
        if hasattr(handler, method):
            raise CircuitError(f"{name_of(handler)}: {method}() of a table function is not supported", remedy="eval() and terminate() are")

    @wrapper_of("udtf", handler)
    def rows(*values: Any) -> list[tuple[Any, ...]]:
        instance = handler()
        listed = list(instance.eval(*values) or ())
        if hasattr(instance, "terminate"):
            listed += list(instance.terminate() or ())
        return [tuple(row) if isinstance(row, tuple | list) else (row,) for row in listed]

    return rows
