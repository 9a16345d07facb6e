"""JSON text: the value at a path, and how long an array is."""

from __future__ import annotations

from typing import Final

from deltic.expr.arrays.distinct import per_distinct
from deltic.expr.collating import ignoring
from deltic.expr.functions.signature import PLAIN_TEXT, TEXT_ALONE, takes
from deltic.expr.registry import Function
from deltic.expr.rows import json_text as rows
from deltic.schema import BOOLEAN, INT, STRING

FUNCTIONS: Final = (
    Function(
        name="get_json_object",
        collated=ignoring,
        signature=takes([TEXT_ALONE, TEXT_ALONE], STRING, nullable="always"),
        can_fail=False,
        rows=lambda call, text, path: rows.value_at(text, path),
        arrays=per_distinct,
    ),
    Function(
        name="is_json",
        collated=ignoring,
        named=False,
        signature=takes([PLAIN_TEXT, PLAIN_TEXT], BOOLEAN),
        can_fail=False,
        rows=lambda call, text, kind: rows.is_json(text, kind),
        arrays=per_distinct,
    ),
    Function(
        name="json_array_length",
        collated=ignoring,
        signature=takes([PLAIN_TEXT], INT, nullable="always"),
        can_fail=False,
        rows=lambda call, text: rows.array_length(text),
        arrays=per_distinct,
    ),
)
