"""String functions on columns: in Arrow where it agrees with Spark, else once per distinct combination of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deltic.expr.arrays.datum import Datum, Kernel
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.nodes import Call
from deltic.expr.rows.text import MAX_LENGTH, like_regex
from deltic.schema import BINARY


def with_constants(fast: Callable[..., Datum | None]) -> Kernel:
    """`fast` if all arguments but the first are constants and it does not return None; else per_distinct."""

    def kernel(call: Call, length: int, value: Datum, *others: Datum) -> Datum:
        if isinstance(value, pa.Array) and all(isinstance(o, pa.Scalar) for o in others):
            result = fast(value, *(o.as_py() for o in others))
            if result is not None:
                return result
        return per_distinct(call, length, value, *others)

    return kernel


def of_text(kernel: Kernel, of_bytes: Kernel = per_distinct) -> Kernel:
    """The kernel of a function whose first argument is a STRING, or a BINARY."""
    return lambda call, length, *values: (of_bytes if call.arguments[0].type == BINARY else kernel)(call, length, *values)


def case(change: Callable[[Datum], Datum]) -> Kernel:
    """`change` for ASCII; else per_distinct: Arrow maps case character by character, Java maps 'ß' to 'SS'."""

    def kernel(call: Call, length: int, value: Datum) -> Datum:
        return change(value) if pc.all(pc.string_is_ascii(value)).as_py() is not False else per_distinct(call, length, value)

    return kernel


def trim(change: Callable[..., Datum]) -> Callable[..., Datum | None]:
    """The text without the given characters at its ends; None if there are none, which Arrow refuses."""
    return lambda value, characters=" ": change(value, characters=characters) if characters else None


def substring(value: pa.Array, position: int, count: int) -> Datum:
    if count <= 0:
        return pc.utf8_slice_codeunits(value, 0, 0)
    start = position - 1 if position > 0 else position
    stop = start + count
    return pc.utf8_slice_codeunits(value, start, stop=None if start < 0 <= stop else stop)


def left(value: pa.Array, count: int) -> Datum:
    return pc.utf8_slice_codeunits(value, 0, max(count, 0))


def right(value: pa.Array, count: int) -> Datum:
    return pc.utf8_slice_codeunits(value, -count) if count > 0 else pc.utf8_slice_codeunits(value, 0, 0)


def replace(value: pa.Array, search: str, replacement: str) -> Datum | None:
    if not search:
        return value
    if len(replacement) > len(search) and (pc.max(pc.utf8_length(value)).as_py() or 0) * len(replacement) > MAX_LENGTH:
        return None  # a result may exceed MAX_LENGTH
    return pc.replace_substring(value, pattern=search, replacement=replacement)


def like(value: pa.Array, pattern: str, escape: str) -> Datum:
    if escape not in pattern and "_" not in pattern:
        body, before, after = pattern.strip("%"), pattern.startswith("%"), pattern.endswith("%")
        if "%" not in body:
            if not before and not after:
                return pc.equal(value, body)
            if before and after:
                return pc.match_substring(value, body)
            return pc.starts_with(value, body) if after else pc.ends_with(value, body)
    regex = like_regex(pattern, escape)
    assert regex is not None, "constant patterns are checked when the call is resolved"
    return pc.match_substring_regex(value, rf"(?s)\A(?:{regex})\z")


def concat(call: Call, length: int, *parts: Datum) -> Datum:
    nothing = pa.scalar(b"", pa.binary()) if call.type == BINARY else ""
    return pc.binary_join_element_wise(*parts, nothing, null_handling="emit_null")


def concat_ws(call: Call, length: int, separator: Datum, *parts: Datum) -> Datum:
    """Joins part by part: Arrow's null_handling="skip" gives NULL for rows in which all parts are NULL."""
    joined: Datum = pa.scalar(None, pa.string())
    for part in parts:
        both = pc.binary_join_element_wise(joined, part, separator, null_handling="emit_null")
        joined = pc.coalesce(both, part, joined)
    return pc.if_else(pc.is_valid(separator), pc.coalesce(joined, ""), pa.scalar(None, pa.string()))


def plain(function: Callable[..., Any], **options: Any) -> Kernel:
    """The kernel of an Arrow function that agrees with Spark's."""
    return lambda call, length, value: function(value, **options)
