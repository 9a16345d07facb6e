"""String functions on columns. What Arrow does as Spark does it runs in Arrow; the rest once per distinct combination of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays.datum import Datum, Kernel
from deltic.expr.arrays.distinct import apply_distinct
from deltic.expr.interpreter import STRICT
from deltic.expr.nodes import Call
from deltic.expr.rows.text import MAX_LENGTH, like_regex


def per_distinct(call: Call, length: int, *arguments: Datum) -> Datum:
    """The interpreter's function on each distinct combination."""
    run = STRICT[call.function]
    return apply_distinct(lambda *values: run(call, *values), arguments, length, call.type)


def _with_constants(fast: Callable[..., Datum | None]) -> Kernel:
    """`fast` where all arguments but the first are constants and it can do it (does not give None)."""

    def kernel(call: Call, length: int, value: Datum, *others: Datum) -> Datum:
        if isinstance(value, pa.Array) and all(isinstance(o, pa.Scalar) for o in others):
            result = fast(value, *(o.as_py() for o in others))
            if result is not None:
                return result
        return per_distinct(call, length, value, *others)

    return kernel


def _case(change: Callable[[Datum], Datum]) -> Kernel:
    """Arrow's change of case is simple, Java's is full: 'ß' becomes 'SS'."""

    def kernel(call: Call, length: int, value: Datum) -> Datum:
        return change(value) if pc.all(pc.string_is_ascii(value)).as_py() is not False else per_distinct(call, length, value)

    return kernel


def _substring(value: pa.Array, position: int, count: int) -> Datum:
    if count <= 0:
        return pc.utf8_slice_codeunits(value, 0, 0)
    start = position - 1 if position > 0 else position
    stop = start + count
    return pc.utf8_slice_codeunits(value, start, stop=None if start < 0 <= stop else stop)


def _left(value: pa.Array, count: int) -> Datum:
    return pc.utf8_slice_codeunits(value, 0, max(count, 0))


def _right(value: pa.Array, count: int) -> Datum:
    return pc.utf8_slice_codeunits(value, -count) if count > 0 else pc.utf8_slice_codeunits(value, 0, 0)


def _replace(value: pa.Array, search: str, replacement: str) -> Datum | None:
    if not search:
        return value
    if len(replacement) > len(search) and (pc.max(pc.utf8_length(value)).as_py() or 0) * len(replacement) > MAX_LENGTH:
        return None  # some string may become too long
    return pc.replace_substring(value, pattern=search, replacement=replacement)


def _like(value: pa.Array, pattern: str, escape: str) -> Datum:
    if escape not in pattern and "_" not in pattern:
        body, before, after = pattern.strip("%"), pattern.startswith("%"), pattern.endswith("%")
        if "%" not in body:
            if not before and not after:
                return pc.equal(value, body)
            if before and after:
                return pc.match_substring(value, body)
            return pc.starts_with(value, body) if after else pc.ends_with(value, body)
    regex = like_regex(pattern, escape)
    assert regex is not None, "a constant pattern is checked when the call is resolved"
    return pc.match_substring_regex(value, rf"(?s)\A(?:{regex})\z")


def _concat(call: Call, length: int, *parts: Datum) -> Datum:
    return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")


def _concat_ws(call: Call, length: int, separator: Datum, *parts: Datum) -> Datum:
    """Part by part: Arrow's own null_handling="skip" loses the rows that are NULL throughout."""
    joined: Datum = pa.scalar(None, pa.string())
    for part in parts:
        both = pc.binary_join_element_wise(joined, part, separator, null_handling="emit_null")
        joined = pc.coalesce(both, part, joined)
    return pc.if_else(pc.is_valid(separator), pc.coalesce(joined, ""), pa.scalar(None, pa.string()))


def _plain(function: Callable[..., Any], **options: Any) -> Kernel:
    return lambda call, length, value: function(value, **options)


KERNELS: Final[Mapping[str, Kernel]] = {
    "upper": _case(pc.ascii_upper),
    "lower": _case(pc.ascii_lower),
    "initcap": per_distinct,
    "length": _plain(pc.utf8_length),
    "octet_length": _plain(pc.binary_length),
    "ascii": per_distinct,
    "substring": _with_constants(_substring),
    "left": _with_constants(_left),
    "right": _with_constants(_right),
    "concat": _concat,
    "concat_ws": _concat_ws,
    "trim": _plain(pc.utf8_trim, characters=" "),
    "ltrim": _plain(pc.utf8_ltrim, characters=" "),
    "rtrim": _plain(pc.utf8_rtrim, characters=" "),
    "replace": _with_constants(_replace),
    "lpad": per_distinct,
    "rpad": per_distinct,
    "locate": per_distinct,
    "startswith": _with_constants(pc.starts_with),
    "endswith": _with_constants(pc.ends_with),
    "contains": _with_constants(pc.match_substring),
    "reverse": _plain(pc.utf8_reverse),
    "repeat": per_distinct,
    "split_part": per_distinct,
    "like": _with_constants(_like),
}
