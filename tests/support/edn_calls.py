"""What the functions of queries are of single values, in the plainest way."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any, Final, TypeAlias

Typed: TypeAlias = tuple[str, Any]
"""(the name of the kind, the value); a keyword, and a value of any kind, is its text."""


def called(name: str, arguments: list[Typed]) -> Typed | None:
    """The result of a call; None if it is nil."""
    bare = [value for _, value in arguments]
    if name in ("+", "-", "*"):
        as_kind = "double" if any(kind == "double" for kind, _ in arguments) else "long"
        return as_kind, reduce({"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}[name], bare)
    match name:
        case "=" | "identical?":
            return "boolean", arguments[0] == arguments[1]
        case "not=":
            return "boolean", arguments[0] != arguments[1]
        case "tuple" | "vector":
            return "tuple", tuple(arguments)
        case "name":
            return "string", re.sub("^.*/(?=.)", "", _bare_name(arguments[0]))
        case "namespace":
            before, slash, _ = _bare_name(arguments[0]).partition("/")
            return ("string", before) if slash and before else None
    if name.endswith("?") and name[:-1] in _KINDS:
        return "boolean", arguments[0][0] in _KINDS[name[:-1]]
    kind, function = _FUNCTIONS[name]
    value = function(*bare)
    return None if value is None else (kind, value)


def _bare_name(one: Typed) -> str:
    return str(one[1]).removeprefix(":")


def _wrapped(value: int) -> int:
    """As 64 bits with a sign."""
    return (value + 2**63) % 2**64 - 2**63


def _truncated(left: int, right: int) -> int:
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _found(text: str, part: str) -> int | None:
    return None if part not in text else text.index(part)


_SPACES: Final = "\t\n\v\f\r\x1c\x1d\x1e\x1f \u2003\u3000"
_KINDS: Final = {
    "string": ("string",),
    "keyword": ("keyword",),
    "symbol": ("symbol",),
    "char": ("char",),
    "uuid": ("uuid",),
    "inst": ("instant",),
    "boolean": ("boolean",),
    "int": ("long",),
    "integer": ("long", "bigint"),
    "double": ("double",),
    "float": ("double",),
    "decimal": ("bigdec",),
    "number": ("long", "bigint", "double", "bigdec"),
}
_FUNCTIONS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "<": ("boolean", lambda a, b: a < b),
    "<=": ("boolean", lambda a, b: a <= b),
    ">": ("boolean", lambda a, b: a > b),
    ">=": ("boolean", lambda a, b: a >= b),
    "==": ("boolean", lambda a, b: a == b),
    "compare": ("long", lambda a, b: (a > b) - (a < b)),
    "mod": ("long", lambda a, b: a % b),
    "quot": ("long", _truncated),
    "rem": ("long", lambda a, b: a - b * _truncated(a, b)),
    "inc": ("long", lambda a: a + 1),
    "dec": ("long", lambda a: a - 1),
    "abs": ("long", abs),
    "max": ("long", max),
    "min": ("long", min),
    "even?": ("boolean", lambda a: a % 2 == 0),
    "odd?": ("boolean", lambda a: a % 2 == 1),
    "zero?": ("boolean", lambda a: a == 0),
    "pos?": ("boolean", lambda a: a > 0),
    "neg?": ("boolean", lambda a: a < 0),
    "pos-int?": ("boolean", lambda a: type(a) is int and a > 0),
    "neg-int?": ("boolean", lambda a: type(a) is int and a < 0),
    "nat-int?": ("boolean", lambda a: type(a) is int and a >= 0),
    "bit-and": ("long", lambda a, *others: reduce(lambda x, y: x & y, others, a)),
    "bit-or": ("long", lambda a, b: a | b),
    "bit-xor": ("long", lambda a, b: a ^ b),
    "bit-not": ("long", lambda a: ~a),
    "bit-shift-left": ("long", lambda a, b: _wrapped(a << b % 64)),
    "bit-shift-right": ("long", lambda a, b: a >> b % 64),
    "true?": ("boolean", lambda a: a),
    "false?": ("boolean", lambda a: not a),
    "not": ("boolean", lambda a: not a),
    "and": ("boolean", lambda *all_: all(all_)),
    "or": ("boolean", lambda *all_: any(all_)),
    "long": ("long", int),
    "double": ("double", float),
    "bigint": ("long", int),
    "bigdec": ("bigdec", Decimal),
    "str": ("string", lambda *parts: "".join(map(str, parts))),
    "count": ("long", len),
    "subs": ("string", lambda text, start, end=None: text[start:end]),
    "empty?": ("boolean", lambda text: not text),
    "clojure.string/upper-case": ("string", str.upper),
    "clojure.string/lower-case": ("string", str.lower),
    "clojure.string/capitalize": ("string", lambda text: text[:1].upper() + text[1:].lower()),
    "clojure.string/reverse": ("string", lambda text: text[::-1]),
    "clojure.string/trim": ("string", lambda text: text.strip(_SPACES)),
    "clojure.string/triml": ("string", lambda text: text.lstrip(_SPACES)),
    "clojure.string/trimr": ("string", lambda text: text.rstrip(_SPACES)),
    "clojure.string/index-of": ("long", _found),
    "clojure.string/starts-with?": ("boolean", str.startswith),
    "clojure.string/ends-with?": ("boolean", str.endswith),
    "clojure.string/includes?": ("boolean", lambda text, part: part in text),
    "clojure.string/blank?": ("boolean", lambda text: not text.strip(_SPACES)),
}
