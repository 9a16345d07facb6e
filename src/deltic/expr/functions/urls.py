"""URLs: their parts, and text in their form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deltic.errors import Span
from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring
from deltic.expr.failures import invalid
from deltic.expr.functions.signature import TEXT, TEXT_ALONE, accept_each, check_count, takes
from deltic.expr.nodes import Call, Expr
from deltic.expr.registry import Function, Typed
from deltic.expr.rows import percent as rows
from deltic.expr.rows.regex import pattern_of
from deltic.schema import STRING


def _decoded(call: Call, text: str) -> str:
    decoded = rows.decode(text)
    if decoded is None:
        raise invalid(f"url_decode: {text!r} has a % without two hexadecimal digits", call.span)
    return decoded


def _parts(name: str, arguments: Sequence[Expr], span: Span | None) -> Typed:
    """(url, part[, key])."""
    check_count(name, arguments, 2, 3, span)
    return Typed(accept_each(name, arguments, TEXT_ALONE, span), STRING, True)


def _part(lenient: bool) -> Callable[..., str | None]:
    def rows_of(call: Call, url: str, part: str, key: str | None = None) -> str | None:
        if key is not None and part != "QUERY":
            return None
        parsed = rows.parse(url)
        if parsed is None:
            if lenient:
                return None
            raise invalid(f"parse_url: {url!r} is not a URL", call.span)
        if key is None:
            return parsed.part(part)
        if parsed.query is None:
            return None
        return rows.value_of(parsed.query, pattern_of(call, f"(&|^){key}=([^&]*)"))

    return rows_of


FUNCTIONS: Final = (
    Function(
        name="url_encode",
        collated=ignoring,
        signature=takes([TEXT], STRING),
        can_fail=False,
        rows=lambda call, text: rows.encode(text),
        arrays=per_distinct,
    ),
    Function(name="url_decode", collated=ignoring, signature=takes([TEXT], STRING), can_fail=True, rows=_decoded, arrays=per_distinct),
    Function(
        name="try_url_decode",
        collated=ignoring,
        signature=takes([TEXT], STRING, nullable="always"),
        can_fail=False,
        rows=lambda call, text: rows.decode(text),
        arrays=per_distinct,
    ),
    Function(name="parse_url", collated=ignoring, signature=_parts, can_fail=True, rows=_part(False), arrays=per_distinct),
    Function(name="try_parse_url", collated=ignoring, signature=_parts, can_fail=True, rows=_part(True), arrays=per_distinct),
)
