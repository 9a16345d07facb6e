"""Types as they are written in SQL, into those of schema.py. Only Spark's own words are types here."""

from __future__ import annotations

from typing import Final

from deltic.errors import TypeMismatch, Unsupported
from deltic.frontends.sql import tree
from deltic.schema import Type, decimal
from deltic.types import KIND_WORDS

MAX_PRECISION: Final = 38

_REMEDIES: Final = {
    "VARCHAR": "STRING; the length would not be checked",
    "CHAR": "STRING; CHAR pads with spaces",
    "CHARACTER": "STRING; CHAR pads with spaces",
    "TEXT": "STRING",
    "ARRAY": "a table with one row for each element",
    "MAP": "a table with one row for each key",
    "STRUCT": "a column for each field",
    "INTERVAL": "a number of days or seconds",
    "VARIANT": "a column for each field, or STRING",
}
EXPECTED: Final = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, BINARY, DATE, TIMESTAMP or TIMESTAMP_NTZ"


def sql_type(node: tree.TypeName) -> Type:
    """The type as written. Raises Unsupported for any other."""
    kind = KIND_WORDS.get(node.word)
    if kind is not None and kind.name == "DECIMAL" and not node.nested:
        return _decimal(node)
    if kind is not None and not (node.nested or node.parameters):
        return Type(kind.name)
    remedy = _REMEDIES.get(node.word.partition(" ")[0])
    raise Unsupported(f"the type {node.word} is not supported", span=node.span, expected=EXPECTED, remedy=remedy)


def _decimal(node: tree.TypeName) -> Type:
    numbers = [int(text) for text in node.parameters if text.isdigit() and len(text) < 4]
    precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
    if len(numbers) != len(node.parameters) or len(numbers) > 2 or not (1 <= precision <= MAX_PRECISION and scale <= precision):
        raise TypeMismatch("invalid DECIMAL", span=node.span, expected=f"DECIMAL(p, s), 1 ≤ p ≤ {MAX_PRECISION}, 0 ≤ s ≤ p")
    return decimal(precision, scale)
