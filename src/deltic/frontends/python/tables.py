"""Table functions in Python that SQL can call: classes with `eval`, in the form of PySpark's udtf."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from deltic.errors import CircuitError, QueryError
from deltic.frontends.python.functions import wrapper_of
from deltic.frontends.python.schemas import schema_of
from deltic.frontends.sql.bind_schema import type_in
from deltic.purity import name_of
from deltic.schema import Schema

BY_ROW: Final = (300, 301)
"""PySpark's evaluation type of a udtf of rows."""
_STRUCT: Final = re.compile(r"\s*struct\s*<", re.IGNORECASE)


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
    try:
        row = type_in(text if _STRUCT.match(text) else f"STRUCT<{text}>")
    except QueryError as error:
        raise CircuitError(f"{name}: invalid columns {text!r}: {error.message}", expected='columns as "word STRING, n INT"') from None
    if not row.parts:
        raise CircuitError(f"{name}: a table function without columns", expected='columns as "word STRING, n INT"')
    return Schema(row.parts)


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
