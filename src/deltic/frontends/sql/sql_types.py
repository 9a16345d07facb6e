"""Types as they are written in SQL, into those of schema.py. Only Spark's own words are types here."""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from deltic.errors import Span, TypeMismatch, Unsupported
from deltic.frontends.sql.spans import Places
from deltic.schema import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, Type, decimal

WORDS: Final[dict[str, Type]] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": TINYINT,
    "BYTE": TINYINT,
    "SMALLINT": SMALLINT,
    "SHORT": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "LONG": BIGINT,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
}
DECIMAL_WORDS: Final = ("DECIMAL", "DEC", "NUMERIC")
MAX_PRECISION: Final = 38

_REMEDIES: Final = {
    "VARCHAR": "STRING; the length would not be checked",
    "CHAR": "STRING; CHAR pads with spaces",
    "CHARACTER": "STRING; CHAR pads with spaces",
    "TEXT": "STRING",
    "TIMESTAMP_NTZ": "TIMESTAMP, which is in UTC",
    "BINARY": "STRING of hex digits or base 64",
    "ARRAY": "a table with one row for each element",
    "MAP": "a table with one row for each key",
    "STRUCT": "a column for each field",
    "INTERVAL": "a number of days or seconds",
    "VARIANT": "a column for each field, or STRING",
}
EXPECTED: Final = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, DATE or TIMESTAMP"


def sql_type(node: exp.DataType, places: Places) -> Type:
    """The type that a tree's DataType means; Unsupported at its place where there is none."""
    span = places.of(node)
    word, bracket, _ = re.split(r"([(<]|$)", span.text[span.start : span.end], maxsplit=1)
    word = " ".join(word.split()).upper()
    if word in DECIMAL_WORDS:
        return _decimal(node, span)
    if word in WORDS and not bracket:
        return WORDS[word]
    raise Unsupported(f"the type {word} is not supported", span=span, expected=EXPECTED, remedy=_REMEDIES.get(word.partition(" ")[0]))


def _decimal(node: exp.DataType, span: Span) -> Type:
    written = [parameter.this for parameter in node.expressions]
    numbers = [int(one.name) for one in written if isinstance(one, exp.Literal) and one.name.isdigit()]
    precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
    if len(numbers) != len(written) or len(numbers) > 2 or not (1 <= precision <= MAX_PRECISION and scale <= precision):
        raise TypeMismatch("this DECIMAL does not exist", span=span, expected=f"DECIMAL(p, s), 1 ≤ p ≤ {MAX_PRECISION}, 0 ≤ s ≤ p")
    return decimal(precision, scale)
