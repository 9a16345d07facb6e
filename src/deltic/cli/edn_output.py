"""Results of queries in EDN as text: EDN, or JSON with the texts of values that JSON lacks."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import Any, Literal

from deltic.frontends.edn import Char, Keyword, Symbol
from deltic.frontends.edn.values import LocatedForm, MapForm, VectorForm, write

Format = Literal["edn", "json"]


def as_text(value: Any, form: Format) -> str:
    """A result, or a part of one.

    >>> as_text(({":name": "Ann", ":age": 31}, Keyword("k"), Decimal("1.50")), "edn")
    '[{:name "Ann", :age 31} :k 1.5M]'
    >>> as_text(({":name": "Ann"}, Keyword("k"), Decimal("1.50"), None), "json")
    '[{":name": "Ann"}, ":k", "1.5M", null]'
    """
    return write(_form(value)) if form == "edn" else json.dumps(_plain(value), ensure_ascii=False)


def _form(value: Any) -> LocatedForm:
    match value:
        case dict():
            return LocatedForm(MapForm(tuple((_key(key), _form(one)) for key, one in value.items())))
        case list() | tuple():
            return LocatedForm(VectorForm(tuple(map(_form, value))))
        case _:
            return LocatedForm(value)


def _key(key: str) -> LocatedForm:
    """A key of a tree: ":name" stands for a keyword."""
    return LocatedForm(Keyword(key[1:]) if key.startswith(":") else key)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case list() | tuple():
            return list(map(_plain, value))
        case datetime():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
        case Char():
            return value.value
        case float() if not isfinite(value):
            return write(value)
        case Keyword() | Symbol() | Decimal():
            return write(value)
        case _:
            return value
